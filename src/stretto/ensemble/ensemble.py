"""``Ensemble``: many models as one object that can be called, trained, measured and saved.

An ensemble keeps its members stacked, one group for each architecture, and runs each group as one
``vmap``. It is a tree whose leaves are the stacked arrays. Before this, read ``groups``,
``running`` and ``layout``.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto import tree as trees
from stretto._engine.api.jit import jit
from stretto._engine.api.vectorise import vmap
from stretto._engine.control.chunks import positive
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value
from stretto._engine.core.lazy import LazyMethod, LazyModule
from stretto._engine.core.typing import Key
from stretto.ensemble.grouping import groups_of, joined, merged, refuse_others_than_modules
from stretto.ensemble.groups import Member, call_module, changed, moved
from stretto.ensemble.layout import Layout
from stretto.ensemble.running import over_members, together
from stretto.ensemble.tied import Ties, retied, ties_of, untied
from stretto.nn.module import Module
from stretto.numpy.taking import take
from stretto.random.keys import split

if TYPE_CHECKING:  # loaded when an ensemble is first explained, saved, loaded or trained
    from stretto.ensemble import explaining, files
    from stretto.ensemble.training.fit import fit
else:
    explaining = LazyModule("stretto.ensemble.explaining")
    files = LazyModule("stretto.ensemble.files")

__all__ = ["Ensemble"]


class Ensemble:
    """Members run, trained and measured as one program.

    ``Ensemble(models)`` takes modules; ``Ensemble(apply, members)`` a function ``apply(params,
    ...)`` and a tree of parameters for each member. Members of several structures make several
    groups, each run as one; the order of members is kept. What a module holds in two places (tied
    weights, or one module used twice) is kept, trained and named once.

    Args:
        apply_or_members: modules, as a list or as one tree stacked along axis 0; or ``apply``, one
            function for all members or a list with one for each.
        members: trees of arrays, the parameters of ``apply``: a list, or one stacked tree.
        shared: parts that are kept once for all members: a pattern of dotted names such as
            ``"trunk"`` or ``"*.bias"``, a list of them, or a function of the name.
        frozen: parts that training leaves alone, named as in ``shared``.
        chunk_size: members run at a time, which bounds memory; ``"auto"`` runs as many as fit in
            ``memory_budget``. All by default.
        memory_budget: in bytes.
        plan: the formulation to use, as in ``config.plan``; ``explain`` shows which was chosen.
        stacked: whether the members are one stacked tree, where a list leaves that open.

    Raises:
        ValueError: members of one structure differ in shape or ties, the axes of a stacked tree
            disagree, or a shared part differs; the message names the member and the part.
        TypeError: something is not a member.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 2.0}, {"w": 3.0}])
    >>> ensemble(snp.ones(2))
    Array([[2., 2.],
           [3., 3.]], dtype=float32)
    >>> ensemble.each(snp.array([10.0, 100.0]))
    Array([ 20., 300.], dtype=float32)
    >>> len(ensemble), ensemble[1].params
    (2, {'w': Array(3., dtype=float32)})
    """

    def __init__(
        self,
        apply_or_members: Any,
        members: Any = None,
        *,
        shared: Any = None,
        frozen: Any = None,
        chunk_size: int | str | None = None,
        memory_budget: int | None = None,
        plan: str | None = None,
        stacked: bool | None = None,
    ) -> None:
        groups, columns = groups_of(apply_or_members, members, shared, frozen, stacked)
        options = (("plan", plan), ("memory_budget", memory_budget))
        asked = tuple([(name, value) for name, value in options if value is not None])
        with config(**dict(asked)):  # refuses what is not such a setting
            pass
        if chunk_size is not None and chunk_size != "auto":
            chunk_size = positive(chunk_size, "Ensemble: chunk_size")
        self._layout, self._arrays = Layout(groups, chunk_size, asked), columns

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        _register(cls)

    @classmethod
    def _of(cls, layout: Layout, arrays: list[list[Any]]) -> Ensemble:
        made = object.__new__(cls)
        made._layout, made._arrays = layout, arrays
        return made

    @classmethod
    def init(
        cls,
        init: Callable[[Key], Any],
        key: Key,
        size: int,
        *,
        apply: Callable[..., Any] | None = None,
        **options: Any,
    ) -> Ensemble:
        """Make an ensemble of ``size`` members, each ``init`` of its own key, with one program.

        Args:
            init: a function from a key to a module, or to the parameters of ``apply``.
            key: member ``i`` is ``init(split(key, size)[i])``.
            size: the number of members.
            apply: the function of the parameters; left out for modules.
            **options: as for ``Ensemble``.

        Returns:
            The ensemble.

        Raises:
            TypeError: ``init`` does not return a module, and ``apply`` is not given.

        >>> import stretto as st
        >>> from stretto import nn
        >>> make = lambda key: nn.Linear(3, 2, key=key)
        >>> ensemble = st.Ensemble.init(make, st.random.PRNGKey(0), 10)
        >>> ensemble(st.numpy.ones((4, 3))).shape
        (10, 4, 2)
        """
        ties: Ties = ()

        def made(key: Any) -> Any:
            nonlocal ties
            member = init(key)
            ties = ties_of(member)
            return untied(member, ties)

        stacked = retied(jit(vmap(made))(split(key, size)), ties)
        if apply is None and not isinstance(stacked, Module):
            raise TypeError(
                f"Ensemble.init: init gave {type(stacked).__name__}; expected a module, or "
                f"apply=, the function that takes these parameters"
            )
        given = (stacked,) if apply is None else (apply, stacked)
        return cls(*given, stacked=True, **options)

    # Members

    def __len__(self) -> int:
        return sum(g.size for g in self._layout.groups)

    @property
    def groups(self) -> list[Ensemble]:
        """An ensemble for each architecture, in the order of first appearance."""
        return [self._alone(g) for g in range(len(self._layout.groups))]

    def _alone(self, g: int) -> Ensemble:
        alone = moved(self._layout.groups[g], range(self._layout.groups[g].size))
        return self._of(self._layout.of([alone]), [self._arrays[g]])

    def __getitem__(self, index: Any) -> Any:
        """A member for an integer; an ensemble for a slice, a mask, or a list of places."""
        if _is_several(index):
            return self._taken(self._places(index))
        place = self._place(index)
        for group, arrays in zip(self._layout.groups, self._arrays, strict=True):
            if place in group.places:
                row = group.places.index(place)
                leaves = [
                    x if s else trees.take(x, row)
                    for x, s in zip(arrays, group.shared, strict=True)
                ]
                return group.of(leaves)
        raise AssertionError(place)

    def _place(self, index: Any) -> int:
        i, n = integer(index, "Ensemble", "the index of a member"), len(self)
        if not -n <= i < n:
            raise IndexError(f"Ensemble: member {i} of {n}")
        return i % n

    def _places(self, index: Any) -> list[int]:
        """The places that a slice, a mask or a list of them names."""
        n = len(self)
        if isinstance(index, slice):
            return list(range(n)[index])
        places = np.asarray(index)
        if places.dtype == bool:
            if places.shape != (n,):
                raise IndexError(f"Ensemble: a mask of {places.shape} for {n} members")
            places = np.flatnonzero(places)
        return [self._place(i) for i in places.tolist()]

    def _taken(self, places: Sequence[int]) -> Ensemble:
        if not len(places):
            raise ValueError(f"Ensemble: no member is left of {len(self)}")
        parts = []
        for group, arrays in zip(self._layout.groups, self._arrays, strict=True):
            at = {place: row for row, place in enumerate(group.places)}
            here = [k for k, place in enumerate(places) if place in at]
            if here:
                rows = np.asarray([at[places[k]] for k in here], np.int32)
                column = [
                    x if s else take(x, rows, 0) for x, s in zip(arrays, group.shared, strict=True)
                ]
                parts.append((moved(group, here), column))
        parts.sort(key=lambda part: part[0].places[0])
        layout = self._layout.of(group for group, _ in parts)
        return self._of(layout, [column for _, column in parts])

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def append(self, member: Any) -> Ensemble:
        """Add a member at the end: one like those already there, or of a new architecture.

        A module in another mode keeps it, in a group of its own, until ``train`` or ``eval``.

        Args:
            member: a module, or a tree of parameters.

        Returns:
            The ensemble itself, which has changed.

        Raises:
            ValueError: as for ``extend``.
        """
        return self.extend([member])

    def extend(self, other: Any) -> Ensemble:
        """Add the members of an ensemble, or of a list, at the end.

        Args:
            other: an ensemble, or modules or trees of parameters.

        Returns:
            The ensemble itself, which has changed.

        Raises:
            ValueError: members of one structure differ in shape, or in the values of shared parts;
                or the ensemble has several functions, and parameters do not say which is theirs.
            TypeError: something is not a member.
        """
        if not isinstance(other, Ensemble):
            members = list(other)
            functions = [m.function if isinstance(m, Member) else self._function() for m in members]
            listed = [m.params if isinstance(m, Member) else m for m in members]
            if all(f is call_module for f in functions):
                refuse_others_than_modules(listed)
            other = Ensemble(functions, listed)
        both = self + other
        self._layout, self._arrays = both._layout, both._arrays
        return self

    def _function(self) -> Callable[..., Any]:
        """That of all members."""
        found = {g.function: None for g in self._layout.groups}
        if len(found) > 1:
            raise ValueError(
                "Ensemble.extend: the ensemble has several functions; give an Ensemble, which says "
                "which is whose"
            )
        return next(iter(found))

    def drop(self, index: Any) -> Ensemble:
        """Remove a member, or those of a slice, a mask or a list of places.

        Args:
            index: a place, negative from the end; a slice, a list of places, or booleans of shape
                (members,).

        Returns:
            The ensemble itself, which has changed.

        Raises:
            ValueError: no member would be left.
            IndexError: there is no such place, or a mask has another length.
        """
        gone = set(self._places(index) if _is_several(index) else [self._place(index)])
        kept = self._taken([i for i in range(len(self)) if i not in gone])
        self._layout, self._arrays = kept._layout, kept._arrays
        return self

    def __add__(self, other: Any) -> Any:
        """The members of one ensemble, then those of the other."""
        if not isinstance(other, Ensemble):
            return NotImplemented
        groups, arrays = joined(
            self._layout.groups, self._arrays, other._layout.groups, other._arrays
        )
        return self._of(self._layout.of(groups), arrays)

    # Running

    def __call__(self, *args: Any, key: Key | None = None, **kwargs: Any) -> Any:
        """The results of all members on the same arguments, stacked along a new axis 0.

        Numbers and arrays are traced; other arguments are static. ``key`` gives each member a key
        of its own for the layers that draw random numbers.
        """
        return self._layout.runner(self._arrays, args, kwargs, key, None, False)

    def each(self, *args: Any, key: Key | None = None, **kwargs: Any) -> Any:
        """Run each member on its own arguments.

        Args:
            *args: trees of arrays of shape (members, ...): entry ``i`` goes to member ``i``.
            key: a key, split between the members, for layers that draw random numbers.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along a new axis 0: (members, ...).

        Raises:
            ValueError: an argument does not have an entry for each member.
        """
        return self._layout.runner(self._arrays, args, kwargs, key, 0, False)

    def explain(self, *args: Any, each: bool = False, key: Key | None = None, **kwargs: Any) -> Any:
        """Say which formulation a call with these arguments uses, and its cost.

        Args:
            *args: those of the call.
            each: whether it is a call of ``each``.
            key: as in a call.
            **kwargs: those of the call.

        Returns:
            A report, which prints as a table: for each product and convolution its ``decisions``
                say what was chosen and what the alternatives were, with costs predicted and
                measured.

        >>> import stretto as st, stretto.numpy as snp
        >>> weights = snp.ones((10, 100, 50))
        >>> ensemble = st.Ensemble(lambda w, x: x @ w, weights)
        >>> [d.chosen for d in ensemble.explain(snp.ones((1, 100))).decisions]
        ['one batched product']
        """
        layout = self._layout
        run, given = layout.runner.compiled(
            self._arrays, args, kwargs, key, 0 if each else None, False
        )
        with config(**dict(layout.options)):
            return explaining.explained(run, given, layout.chunk_size)

    def vmap(self, f: Callable[..., Any], in_axes: Any = None) -> Callable[..., Any]:
        """Make a function that runs ``f(member, *args)`` for every member, and stacks the results.

        Args:
            f: a function of a member and of ``args``.
            in_axes: for each argument, 0 where it has an entry for each member along axis 0, and
                ``None`` where all share it; one value stands for all. ``None`` by default.

        Returns:
            A function of ``args``, and of ``key=`` as in a call.

        Raises:
            ValueError: when called, if ``in_axes`` is not 0 or ``None`` for each argument.

        >>> import stretto as st, stretto.numpy as snp
        >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
        >>> square = ensemble.vmap(lambda member, x: member(x) ** 2)
        >>> square(1.0)
        Array([4., 9.], dtype=float32)
        """
        layout = self._layout

        def mapped(*args: Any, key: Any = None) -> Any:
            axes = in_axes if isinstance(in_axes, (tuple, list)) else (in_axes,) * len(args)
            if len(axes) != len(args) or any(a not in (0, None) for a in axes):
                raise ValueError(
                    f"Ensemble.vmap: in_axes must be 0 or None for each of the {len(args)} "
                    f"arguments, got {in_axes!r}"
                )
            with config(**dict(layout.options)):
                outs = over_members(
                    layout.groups,
                    lambda group, member, *args: f(member, *args),
                    self._arrays,
                    args,
                    axes,
                    key,
                    layout.chunk_size,
                )
                return together(layout.groups, outs)

        return mapped

    def stateful_call(
        self, *args: Any, key: Key | None = None, **kwargs: Any
    ) -> tuple[Any, Ensemble]:
        """Run all members on the same arguments, and give the buffers that they updated.

        For modules in train mode that keep running statistics. The ensemble itself does not change.

        Args:
            *args: the same for all members.
            key: as in a call.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along axis 0, and the ensemble with the new buffers.

        Raises:
            TypeError: the members are functions, which return their state themselves.
        """
        return self._stateful(args, kwargs, key, None)

    def stateful_each(
        self, *args: Any, key: Key | None = None, **kwargs: Any
    ) -> tuple[Any, Ensemble]:
        """Run each member on its own arguments, and give the buffers that they updated.

        Args:
            *args: trees of arrays of shape (members, ...): entry ``i`` goes to member ``i``.
            key: as in a call.
            **kwargs: the same for all members.

        Returns:
            The results, stacked along axis 0, and the ensemble with the new buffers.

        Raises:
            TypeError: the members are functions, which return their state themselves.
        """
        return self._stateful(args, kwargs, key, 0)

    def _stateful(self, args: Any, kwargs: Any, key: Any, axis: int | None) -> Any:
        layout = self._layout
        for group in layout.groups:
            if group.function is not call_module:
                raise TypeError(
                    "Ensemble.stateful_call: expected members that are modules; a function returns "
                    "its state itself"
                )

        out, after = layout.runner(self._arrays, args, kwargs, key, axis, True)
        return out, self._of(layout, after)

    # Training

    fit = fit if TYPE_CHECKING else LazyMethod("stretto.ensemble.training.fit", "fit")

    # Modes

    def train(self, mode: bool = True) -> Ensemble:
        """Put all members in train mode, or take them out of it.

        Members that differed in their mode alone form one group from then on.

        Args:
            mode: whether to train.

        Returns:
            The ensemble itself, which has changed.
        """
        groups = []
        for group in self._layout.groups:
            member = tree.unflatten(group.structure, range(group.structure.num_leaves))
            for x in tree.leaves(member, lambda x: isinstance(x, Module)):
                if isinstance(x, Module):
                    x.train(mode)
            groups.append(changed(group, structure=tree.structure(member)))
        arrays = self._arrays
        if not any(any(g.shared) for g in groups):
            groups, arrays = merged(groups, arrays)
        self._layout, self._arrays = self._layout.of(groups), arrays
        return self

    def eval(self) -> Ensemble:
        """Put all members in evaluation mode.

        Returns:
            The ensemble itself, which has changed.
        """
        return self.train(False)

    # Arrays

    def state_dict(self) -> list[dict[str, Any]]:
        """Return all arrays of each group, by dotted name.

        Returns:
            A dictionary for each group: arrays of shape (members, ...), or (...) where shared.
        """
        return [
            dict(zip(g.names, arrays, strict=True))
            for g, arrays in zip(self._layout.groups, self._arrays, strict=True)
        ]

    def trainable(self) -> list[dict[str, Any]]:
        """Return the arrays of each group that an optimiser may change, by dotted name.

        Parameters of inexact dtype; not buffers, nor what is frozen.

        Returns:
            A dictionary for each group, as in ``state_dict``.
        """
        return [
            {n: x for n, x, t in zip(g.names, arrays, g.trained, strict=True) if t}
            for g, arrays in zip(self._layout.groups, self._arrays, strict=True)
        ]

    def replace(self, arrays: Sequence[dict[str, Any]]) -> Ensemble:
        """Return an ensemble with other arrays in place of those named.

        Args:
            arrays: a dictionary for each group, as ``trainable`` gives them.

        Returns:
            The new ensemble.

        Raises:
            ValueError: there is no part of a name, a shape differs, or there is not a dictionary
                for each group.
        """
        if len(arrays) != len(self._layout.groups):
            raise ValueError(
                f"Ensemble.replace: expected a dictionary for each of {len(self._layout.groups)} "
                f"groups, got {len(arrays)}"
            )
        columns = []
        for group, old, new in zip(self._layout.groups, self._arrays, arrays, strict=True):
            unknown = sorted(set(new) - set(group.names))
            if unknown:
                raise ValueError(
                    f"Ensemble.replace: there is no {', '.join(unknown)}; the parts are "
                    f"{', '.join(group.names)}"
                )
            column = [new.get(n, x) for n, x in zip(group.names, old, strict=True)]
            for n, x, y in zip(group.names, old, column, strict=True):
                if x.shape != y.shape:
                    raise ValueError(
                        f"Ensemble.replace: {n}: expected shape {x.shape}, got {y.shape}"
                    )
            columns.append(column)
        return self._of(self._layout, columns)

    # Files

    def save(self, path: str | os.PathLike[str], metadata: Mapping[str, str] | None = None) -> None:
        """Write all members to one safetensors file, whole or not at all.

        Arrays are named as in ``state_dict``, after ``group0.`` and so on where there are several
        architectures; the metadata has the places of the members, what they share and what they
        tie. Functions, modes and settings are not saved.

        Args:
            path: the file, replaced if it exists.
            metadata: further entries, strings by name.

        Raises:
            ValueError, OSError: as for ``stretto.save``.
        """
        files.write(path, self._layout, self._arrays, metadata)

    @classmethod
    def load(cls, path: str | os.PathLike[str], like: Ensemble) -> Ensemble:
        """Read the ensemble that ``save`` wrote.

        Args:
            path: the file.
            like: an ensemble of the same architectures in the same order, of any number of members;
                functions, modes, settings and what is frozen come from it.

        Returns:
            An ensemble whose arrays, number of members, places and shared parts are the file's.

        Raises:
            ValueError: the file is damaged, or does not match ``like``; the message names the path.
            TypeError: ``like`` is not an ensemble.

        >>> import os, tempfile, stretto as st
        >>> from stretto import nn
        >>> path = os.path.join(tempfile.mkdtemp(), "ensemble.safetensors")
        >>> st.Ensemble([nn.Linear(3, 2) for _ in range(10)]).save(path)
        >>> len(st.Ensemble.load(path, like=st.Ensemble([nn.Linear(3, 2)])))
        10
        """
        if not isinstance(like, Ensemble):
            raise TypeError(
                f"Ensemble.load: like must be an Ensemble, with one member of each architecture or "
                f"more; got {type(like).__name__}"
            )
        return cls._of(*files.read(path, like._layout, like._arrays))

    def __repr__(self) -> str:
        lines = [f"Ensemble of {len(self)} members"]
        for group in self._layout.groups:
            params = tree.unflatten(group.structure, group.names)
            kind = type(params).__name__
            if group.function is not call_module:
                kind = getattr(group.function, "__name__", "a function")
            once = sum(group.shared)
            note = f", {once} of {len(group.names)} arrays shared" if once else ""
            lines.append(f"  {group.size} × {kind}: {len(group.names)} arrays each{note}")
        return "\n".join(lines)


def _is_several(index: Any) -> bool:
    """Whether an index names members in a row, and not one."""
    return isinstance(index, (slice, list, tuple)) or (
        isinstance(index, (np.ndarray, Value)) and index.ndim > 0
    )


def _flatten(ensemble: Ensemble) -> tuple[list[Any], Layout, tuple[str, ...]]:
    layout = ensemble._layout
    return [x for column in ensemble._arrays for x in column], layout, layout.names


def _register(cls: type[Ensemble]) -> None:
    tree.register_attributes(
        cls, _flatten, lambda layout, given: cls._of(layout, layout.split(given))
    )


_register(Ensemble)
