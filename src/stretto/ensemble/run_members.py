"""A function run on all members of an ensemble: one compiled program, a ``vmap`` a group.

A call at rest of arrays alone finds its compiled function by their number, and passes all arrays
one by one, which is jit's short way.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.api.jit.jit import jit
from stretto._engine.api.jit.stages import on_device
from stretto._engine.api.varying_sizes.ragged import Ragged, is_ragged
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.ops.shape import concatenate
from stretto.ensemble.groups import Group, call_module, refuse_other_rows
from stretto.ensemble.over_mesh import OverMesh, map_members
from stretto.ensemble.score_arguments import is_table
from stretto.nn.module import stateful_call
from stretto.numpy.taking import take
from stretto.random.keys import as_key, split
from stretto.random.streams import keys, refusing

if TYPE_CHECKING:
    from optree import PyTreeSpec

    from stretto._engine.api.jit.jit import Jitted


_NO_KEY = (
    "the ensemble is in train mode, and was called without a key: put it in evaluation mode with "
    ".eval(), or pass key= to the call, from which each member gets its own"
)
_ARRAYS = (Value, np.ndarray)
_TRACED = (Value, np.ndarray, np.generic, int, float, complex)


def _is_traced(x: object) -> bool:
    """Say whether an argument is an array or a number; all else is static."""
    return isinstance(x, _TRACED) and x.__class__ is not bool


class _Setting:
    """A number that is part of a member's program: the same for all, and not traced."""

    def __init__(self, value: complex) -> None:
        self.value, self._key = value, (type(value), repr(value))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Setting) and self._key == other._key

    def __hash__(self) -> int:
        return hash(self._key)


def _with_numbers(x: Tree) -> Tree:
    """Return arguments with numbers in place of settings."""
    return tree.map(lambda leaf: leaf.value if isinstance(leaf, _Setting) else leaf, x)


def over_members(
    groups: Sequence[Group],
    f: Callable[..., Any],
    arrays: Sequence[Sequence[Any]],
    args: Sequence[Any],
    axes: Sequence[Any],
    key: Key | None,
    chunk_size: int | str | None,
    over: OverMesh | None,
    out_axes: Tree = 0,
) -> list[Any]:
    """Call ``f(group, member, *args)`` for each member; stack the results, one tree a group.

    Arguments are mapped along the given axes over the members of the whole ensemble; what is
    neither an array nor a number is the same for all.
    """
    total = sum(g.size for g in groups)
    all_keys = None if key is None else split(key, total)
    # One that all members share is a tree of arrays; else each has an array of it.
    flat = [
        tree.flatten(a, None if axis is None else is_ragged)
        for a, axis in zip(args, axes, strict=True)
    ]
    leaves = [x for part, _ in flat for x in part]
    along = [axis for (part, _), axis in zip(flat, axes, strict=True) for _ in part]
    if over is not None and any([is_ragged(x) for x in leaves]):
        raise NotImplementedError(
            f"Ensemble: a ragged argument with an array for each member is one row of elements, "
            f"which {over.mesh} does not split: put the arrays into a rectangle, ragged.pad(), and "
            f"use a mask; or call the ensemble before shard()"
        )
    traced = [i for i, x in enumerate(leaves) if _is_traced(x) or is_ragged(x)]
    _refuse_tables([x for i, x in enumerate(leaves) if i not in traced])
    outs = []
    for group, column in zip(groups, arrays, strict=True):
        refuse_other_rows(group, column)
        # Typed keys are trees.
        own = tree.map(lambda x, group=group: _of(x, group, total), all_keys)
        parts = [leaves[i] if along[i] is None else _of(leaves[i], group, total) for i in traced]

        def one(member: Tree, key: Key | None, *parts: Any, group: Group = group) -> Tree:
            filled = list(leaves)
            for i, part in zip(traced, parts, strict=True):
                filled[i] = part
            values = iter(filled)
            own = [
                tree.unflatten(spec, list(itertools.islice(values, len(part))))
                for part, spec in flat
            ]
            with refusing(_NO_KEY) if key is None else keys(key):
                return f(group, group.of(member), *own)

        in_axes = (group.axes, None if own is None else 0, *[along[i] for i in traced])
        out = out_axes(group) if callable(out_axes) else out_axes
        run = map_members(one, in_axes, out, group.size, chunk_size, over)
        outs.append(run(list(column), own, *parts))
    return outs


def _check_integers(args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise ``OverflowError`` that names the argument with integers that do not fit."""
    for root, x in (("args", tuple(args)), *kwargs.items()):
        for leaf, path in zip(tree.leaves(x), tree.paths(x, root), strict=True):
            if isinstance(leaf, (np.ndarray, np.generic)):
                as_value(leaf, "Ensemble", path)


def _refuse_tables(static: Sequence[object]) -> None:
    """Raise ``TypeError`` for a table, which would be taken for a setting."""
    for x in static:
        if is_table(x):
            raise TypeError(
                f"Ensemble: an argument is a {type(x).__name__}; give its numbers as an array, "
                f"np.asarray(x)"
            )


def _of(x: Tree, group: Group, total: int) -> Tree:
    """Return the rows of the members of a group."""
    places = np.asarray(group.places, np.int32)
    if is_ragged(x):
        if len(x) != total:
            raise ValueError(
                f"Ensemble: a ragged argument must have an array for each of {total} members, got "
                f"{len(x)}"
            )
        return x if group.size == total else x._at(places)
    value = as_value(x, "Ensemble", "an argument")
    if not value.ndim or value.shape[0] != total:
        raise ValueError(
            f"Ensemble: an argument with an entry for each member must have {total} along axis 0, "
            f"got {value.type}"
        )
    return value if group.size == total else take(value, places, 0)


def join_results(groups: Sequence[Group], outs: Sequence[Any]) -> Tree:
    """Return one tree from that of each group, its rows in the order of the members."""
    if len(outs) == 1:
        return outs[0]
    flat, first = tree.flatten(outs[0], is_ragged)
    rows = [flat]
    for group, out in zip(groups[1:], outs[1:], strict=True):
        flat, spec = tree.flatten(out, is_ragged)
        if spec != first:
            raise ValueError(
                f"Ensemble: members give results of different structure: member "
                f"{groups[0].places[0]} gives {first}, member {group.places[0]} gives {spec}"
            )
        rows.append(flat)
    order = np.argsort(np.concatenate([g.places for g in groups])).astype(np.int32)
    joined = []
    for column in zip(*rows, strict=True):
        if any([is_ragged(x) for x in column]):
            joined.append(_ragged_together(column, order))
            continue
        for group, x in zip(groups, column, strict=True):
            if x.shape[1:] != column[0].shape[1:]:
                raise ValueError(
                    f"Ensemble: members give results of different shapes: member "
                    f"{groups[0].places[0]} gives {column[0].shape[1:]}, member "
                    f"{group.places[0]} gives {x.shape[1:]}; the results of an ensemble are stacked"
                )
        joined.append(take(concatenate(list(column), 0), order, 0))
    return tree.unflatten(first, joined)


def _ragged_together(column: Sequence[Any], order: np.ndarray) -> Tree:
    """Return ragged results of several groups as one, in the order of the members."""
    for x in column:
        if not is_ragged(x) or x._inner != column[0]._inner:
            raise ValueError(
                f"Ensemble: members give results of different shapes: {column[0]} and {x}; the "
                f"results of an ensemble are stacked"
            )
    most = max([x._most for x in column])
    values = concatenate([x._rectangle(most) for x in column], 0)
    lengths = concatenate([x.lengths for x in column], 0)
    least = min([x._least for x in column])
    wide = Ragged._of(values, lengths, most, True, least)._at(order)
    return wide._packed(sum([x._room for x in column]))


class Runner:
    """The compiled calls of an ensemble's groups.

    A call is identified by its axis, 0 where each member has its own arguments and ``None`` where
    all have the same, and by whether it keeps the buffers that the members update.
    """

    def __init__(
        self,
        groups: Sequence[Group],
        chunk_size: int | str | None,
        options: Mapping[str, Any],
        over: OverMesh | None,
    ) -> None:
        self._groups, self._chunk_size, self._options = groups, chunk_size, options
        self._over = over
        self._compiled: dict[Any, Any] = {}
        self._quick: dict[Any, Any] = {}

    def __call__(
        self,
        arrays: Sequence[Sequence[Array]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        key: Key | None,
        axis: int | None,
        stateful: bool,
    ) -> Tree:
        """Return the result of a call; with ``stateful`` also all arrays as it leaves them."""
        run, inputs = self.compiled(arrays, args, kwargs, key, axis, stateful)
        try:
            if not self._options:
                return run(*inputs)
            with config(**self._options):
                return run(*inputs)
        except OverflowError:
            _check_integers(args, kwargs)
            raise

    def compiled(
        self,
        arrays: Sequence[Sequence[Array]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        key: Key | None,
        axis: int | None,
        stateful: bool,
    ) -> tuple[Jitted[..., Any], list[Any]]:
        """Return the jitted function of a call, and the arrays and numbers to call it with.

        Arguments that are neither arrays nor numbers are static, and must be hashable.
        """
        inputs = [x for column in arrays for x in column]
        kind = (key is None, axis, stateful)
        plain = not kwargs and all([isinstance(x, _ARRAYS) for x in args])
        run = self._quick.get((len(args), *kind)) if plain else None
        if run is not None:
            inputs += [on_device(x) for x in args]
        else:
            leaves, spec = tree.flatten(self._with_settings(args, kwargs))
            moving = tuple([_is_traced(x) for x in leaves])
            static = tuple([x for x, m in zip(leaves, moving, strict=True) if not m])
            _refuse_tables(static)
            # 1, 1.0 and True are equal; as settings of a call they are not.
            name = (spec, moving, static, tuple(map(type, static)), *kind)
            try:
                run = self._compiled.get(name)
            except TypeError:
                raise TypeError(
                    f"Ensemble: arguments that are neither arrays nor numbers are static, and must "
                    f"be hashable; got {', '.join(map(repr, static))}"
                ) from None
            if run is None:
                run = self._compiled[name] = jit(self._flat(spec, moving, static, *kind))
            if plain:
                self._quick[len(args), *kind] = run
            inputs += [x for x, m in zip(leaves, moving, strict=True) if m]
        if key is not None:
            inputs.append(as_key(key, "Ensemble"))
        return run, inputs

    @functools.cached_property
    def _asked(self) -> list[Any]:
        """Members of the groups that know which numbers are part of their programs."""
        members = [group.whole() for group in self._groups if group.function is call_module]
        return [member for member in members if hasattr(member, "is_setting")]

    def _with_settings(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Tree:
        """Return the arguments, with a ``_Setting`` in place of each number that is not traced."""

        def held(place: int | str, x: Tree) -> Tree:
            if not any([member.is_setting(place) for member in self._asked]):
                return x
            return tree.map(
                lambda leaf: (
                    leaf if isinstance(leaf, _ARRAYS) or not _is_traced(leaf) else _Setting(leaf)
                ),
                x,
            )

        if not self._asked:
            return args, kwargs
        by_name = {name: held(name, x) for name, x in kwargs.items()}
        return tuple([held(k, x) for k, x in enumerate(args)]), by_name

    def _flat(
        self,
        spec: PyTreeSpec,
        moving: Sequence[bool],
        static: Sequence[Any],
        keyless: bool,
        axis: int | None,
        stateful: bool,
    ) -> Callable[..., Any]:
        """Return a call as a function of all arrays and numbers, one by one."""

        def ensemble(*inputs: Any) -> Tree:
            values, settings = iter(inputs), iter(static)
            arrays = [[next(values) for _ in group.names] for group in self._groups]
            merged = [next(values) if m else next(settings) for m in moving]
            args, kwargs = tree.unflatten(spec, merged)
            key = None if keyless else next(values)
            return self._run(arrays, args, kwargs, key, axis, stateful)

        return ensemble

    def _run(
        self,
        arrays: Sequence[Sequence[Array]],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        key: Key | None,
        axis: int | None,
        stateful: bool,
    ) -> Tree:
        """Return the results of all members; with ``stateful`` also their arrays after the call."""

        def plain(group: Group, member: Tree, *args: Any) -> Tree:
            return member(*_with_numbers(args), **_with_numbers(kwargs))

        def with_arrays(group: Group, member: Tree, *args: Any) -> Tree:
            out, after = stateful_call(member, *_with_numbers(args), **_with_numbers(kwargs))
            before, leaves = group.leaves_of(member), group.leaves_of(after)
            for name, shared, x, y in zip(group.names, group.shared, before, leaves, strict=True):
                if shared and x is not y:
                    raise ValueError(
                        f"Ensemble.stateful_call: the call updates {name}, which the members "
                        f"share, differently in each; leave it out of shared="
                    )
            return out, leaves

        outs = over_members(
            self._groups,
            with_arrays if stateful else plain,
            arrays,
            args,
            (axis,) * len(args),
            key,
            self._chunk_size,
            self._over,
            (lambda group: (0, group.axes)) if stateful else 0,
        )
        if not stateful:
            return join_results(self._groups, outs)
        return join_results(self._groups, [out for out, _ in outs]), [after for _, after in outs]
