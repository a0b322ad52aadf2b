"""Groups: members of one architecture, sorted and stacked; groups joined; and one member of them.

A group has a function, the structure of one member, and the names of its arrays. These are stacked,
with the members along axis 0, or, where members share them, there once. Mistakes in what an
ensemble is made from are reported here.

Ties are parameters and modules that a module holds in two places, where a tree holds them twice.
The second places are taken out of members before they are stacked, and the one value is put back at
all places when a member is run.
"""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from stretto import tree as trees
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.lazy import shown
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.shape import concatenate
from stretto.files.names import covers, leaf_names
from stretto.nn.module import Module
from stretto.nn.module_tree import BORROWED
from stretto.numpy.taking import take
from stretto.tree.members import is_ensemble

Ties: TypeAlias = tuple[tuple[str, str], ...]
"""The dotted name of each second place, and that of the first, in the order of a walk."""


def ties_of(member: Tree) -> Ties:
    """Return the ties of a module, found by identity; none in a tree that is not a module.

    Arrays count as tied where both are parameters: a buffer is assigned by its own module.

    >>> from stretto import nn
    >>> layer = nn.Linear(2, 2)
    >>> ties_of(nn.Sequential(layer, nn.ReLU(), layer))
    (('2', '0'),)
    """
    ties: list[tuple[str, str]] = []
    first: dict[int, str] = {}

    def walk(module: Module, path: str) -> None:
        first[id(module)] = path
        lead = f"{path}." if path else ""
        parameters = [
            (name, value) for name, value in module._arrays() if module._roles[name] == "parameter"
        ]
        for name, value in parameters:
            if id(value) in first:
                ties.append((lead + name, first[id(value)]))
            else:
                first[id(value)] = lead + name
        for name, child in module.named_children():
            if id(child) in first:
                ties.append((lead + name, first[id(child)]))
            else:
                walk(child, lead + name)

    if isinstance(member, Module):
        walk(member, "")
    return tuple(ties)


def untied(member: Tree, ties: Ties) -> Tree:
    """Return the member with ``None`` at the second places; itself where there are none."""
    if not ties:
        return member
    copy = member.clone()
    for place, _ in ties:
        owner, name = _owner(copy, place)
        owner.__dict__[name] = None
    return copy


def retied(member: Tree, ties: Ties) -> Tree:
    """Return the member itself, in which the second places hold what the first do."""
    for place, first in ties:
        owner, name = _owner(member, place)
        source, attribute = _owner(member, first)
        owner.__dict__[name] = source.__dict__[attribute]
    return member


def _owner(module: Module, place: str) -> tuple[Module, str]:
    """Return the module that has the attribute of this dotted name, and the attribute."""
    path, _, name = place.rpartition(".")
    return module.get_submodule(path), name


if TYPE_CHECKING:
    from typing_extensions import TypeVar

    M_co = TypeVar("M_co", covariant=True, default=Any)
else:
    from typing import TypeVar

    M_co = TypeVar("M_co", covariant=True)
"""The type of a member: its module, or ``Member``. ``Ensemble`` alone has members of any type."""


def call_module(module: Callable[..., Any], *args: Any, **kwargs: Any) -> Tree:
    """Return what an ensemble of modules does with a member."""
    return module(*args, **kwargs)


@shown("stretto.ensemble.cards", "card_of_member", "member_text")
class Member:
    """One member of an ensemble of functions: its parameters, and a call of the function on them.

    >>> import stretto as st
    >>> ensemble = st.Ensemble(lambda p, x: p * x, [2.0, 3.0])
    >>> ensemble[1](st.numpy.ones(2))
    Array([3., 3.], dtype=float32)
    """

    function: Callable[..., Any]
    params: Tree

    def __init__(self, function: Callable[..., Any], params: Tree) -> None:
        self.__dict__.update(function=function, params=params)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse a change, which the ensemble would not see."""
        raise AttributeError(
            f"Member.{name}: a member is a copy of what the ensemble holds, and does not change: "
            f"write ensemble[i] = params with other parameters",
            name=name,
            obj=self,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Tree:
        """Return the function of the parameters and these arguments."""
        return self.function(self.params, *args, **kwargs)

    def _named_by(self) -> Callable[..., Any]:
        """Return what names the arguments of a call."""
        return functools.partial(self.function, self.params)


tree.register_attributes(
    Member,
    lambda member: ([member.params], member.function, ("params",)),
    lambda function, children: Member(function, children[0]),
)


@dataclasses.dataclass(frozen=True)
class Group:
    """All that members of one architecture have in common; static, and compared by value."""

    function: Callable[..., Any]
    structure: Any
    """The structure of one member, without the second places of what it holds twice."""
    names: tuple[str, ...]
    """The dotted names of its leaves."""
    shared: tuple[bool, ...]
    """True for each leaf that all members share."""
    trained: tuple[bool, ...]
    """True for each leaf that an optimizer may change: inexact parameters that are not frozen."""
    places: tuple[int, ...]
    """The places of its members in the ensemble."""
    ties: Ties = ()
    """The second places, each with the first."""
    shapes: tuple[tuple[int, ...], ...] = ()
    """The shapes of one member's leaves; none in a group from before they were kept."""

    @property
    def size(self) -> int:
        """The number of members."""
        return len(self.places)

    def axes_in_front(self, column: Sequence[Any]) -> int | None:
        """Return how many axes stacked arrays have in front of those that an ensemble has.

        0 for an ensemble; ``None`` where a function of trees made something else of the arrays.
        """
        found = set()
        shapes = self.shapes or [None] * len(column)
        for shape, shared, x in zip(shapes, self.shared, column, strict=True):
            have = tuple(getattr(x, "shape", ()))
            if shape is None:
                fits = shared or have[:1] == (self.size,)
                found.add(0 if fits else None)
                continue
            want = shape if shared else (self.size, *shape)
            extra = len(have) - len(want)
            found.add(extra if extra >= 0 and have[extra:] == want else None)
        return found.pop() if len(found) == 1 else None

    @property
    def axes(self) -> list[int | None]:
        """The member axis of each leaf; ``None`` where it is shared."""
        return [None if s else 0 for s in self.shared]

    def of(self, leaves: Sequence[Any]) -> Tree:
        """Return the callable of one member with these leaves: the module, or a ``Member``."""
        params = retied(tree.unflatten(self.structure, leaves), self.ties)
        return params if self.function is call_module else Member(self.function, params)

    def leaves_of(self, member: Tree) -> list[Any]:
        """Return the leaves of such a callable."""
        params = member if self.function is call_module else member.params
        return tree.leaves(untied(params, self.ties))

    def whole(self) -> Tree:
        """Return a member's parameters with all places filled: with the numbers of leaves there."""
        return retied(tree.unflatten(self.structure, range(len(self.names))), self.ties)


def with_fields(group: Group, **fields: Any) -> Group:
    """Return the group with other fields."""
    return dataclasses.replace(group, **fields)


def at_places(group: Group, places: Iterable[int]) -> Group:
    """Return the group with its members at other places of the ensemble."""
    return with_fields(group, places=tuple(places))


def shaped_as(group: Group, column: Sequence[Any]) -> Group:
    """Return the group with leaves shaped as these arrays; itself where they are so already."""
    shapes = tuple([x.shape if s else x.shape[1:] for x, s in zip(column, group.shared)])
    return group if shapes == group.shapes else with_fields(group, shapes=shapes)


def read_only_member(member: Tree) -> Tree:
    """Return a member as an ensemble gives it: to be read, and changed only as a copy.

    What is assigned to a module that was taken out of the stacked arrays would not reach them.
    """
    if isinstance(member, Module):
        for module in member.modules():
            module.__dict__[BORROWED] = True
    return member


def refuse_other_rows(group: Group, column: Sequence[Any]) -> None:
    """Raise ``ValueError`` where a function of trees, or a vmap, separated the rows of members."""
    if group.axes_in_front(column) == 0:
        return
    shapes = group.shapes or [None] * len(column)
    for name, shared, shape, x in zip(group.names, group.shared, shapes, column, strict=True):
        have = tuple(getattr(x, "shape", ()))
        if shared:
            fits, want = shape in (None, have), f"{shape}, which the members share"
        else:
            fits = have == (group.size, *(have[1:] if shape is None else shape))
            want = f"{group.size} along axis 0, the members"
            want += "" if shape is None else f", and {shape} behind"
        if not fits:
            raise ValueError(
                f"Ensemble: {name} has shape {have}, expected {want}. A vmap, or a function of "
                f"trees, that takes an ensemble apart goes by its arrays: ensemble.vmap(f) runs f "
                f"on each member, ensemble[places] takes some"
            )


Choice: TypeAlias = str | Iterable[str] | Callable[[str], bool] | None
"""A choice of parts of members: patterns of dotted names, or a function of a name."""


def groups_of(
    first: Tree, members: Tree, shared: Choice, frozen: Choice, stacked: bool | None
) -> tuple[list[Group], list[list[Array]]]:
    """Return the groups of what an ensemble is made from, and the arrays of each."""
    function, members = _function_and_members(first, members)
    one_each = isinstance(function, (list, tuple))
    if stacked is None:
        stacked = not isinstance(members, (list, tuple, Iterator))
    if stacked:
        if one_each:
            raise TypeError(
                "Ensemble: a function for each member goes with a list of members, got one tree"
            )
        groups, arrays = _of_stacked(function, members, shared, frozen)
    else:
        listed = list(members)
        if not listed:
            raise ValueError("Ensemble: expected at least one member, got none")
        functions = list(function) if one_each else [function] * len(listed)
        if len(functions) != len(listed):
            raise ValueError(
                f"Ensemble: expected a function for each of {len(listed)} members, got "
                f"{len(functions)}"
            )
        if function is call_module:
            refuse_others_than_modules(listed)
        groups, arrays = _sort_into_groups(functions, listed, shared, frozen)
    _refuse_idle_patterns(groups, shared, "shared")
    _refuse_idle_patterns(groups, frozen, "frozen")
    return groups, arrays


def _function_and_members(first: Tree, members: Tree) -> tuple[Any, Any]:
    """Return the function of parameters, or a list with one for each member; and the members."""
    if members is not None:
        functions = first if isinstance(first, (list, tuple)) else [first]
        if not all(callable(f) for f in functions):
            raise TypeError(
                f"Ensemble: expected a function and its members, or a list of functions and as "
                f"many members; got {type(first).__name__} first. Ensemble(models) takes modules, "
                f"Ensemble(apply, members) trees of parameters"
            )
        return first, members
    if is_ensemble(first):
        raise TypeError(
            "Ensemble: got an Ensemble; list(ensemble) gives its members, ensemble[:] a copy, and "
            "one + other joins two"
        )
    if callable(first) and not isinstance(first, Module):
        raise TypeError(
            "Ensemble: got a function without members: Ensemble(apply, members), with a tree of "
            "parameters for each member"
        )
    return call_module, first


def _group(
    function: Callable[..., Any],
    member: Tree,
    leaves: Sequence[Array],
    shared: Choice,
    frozen: Choice,
    places: Iterable[int],
    ties: Ties,
) -> Group:
    """Return the group of members like this one, which is without the second places."""
    spec = tree.structure(member)
    names = tuple(leaf_names(member, "Ensemble"))
    blank = (False,) * len(names)
    group = Group(function, spec, names, blank, blank, tuple(places), ties)
    once, fixed = _choose_leaves(shared, group), _choose_leaves(frozen, group)
    buffers = _buffers(tree.unflatten(spec, range(len(names))))
    trained = tuple(
        is_inexact(x.dtype) and not f and i not in buffers
        for i, (x, f) in enumerate(zip(leaves, fixed, strict=True))
    )
    return with_fields(group, shared=once, trained=trained, shapes=tuple([x.shape for x in leaves]))


def _buffers(numbered: Tree) -> set[int]:
    """Say which leaves of a member are buffers."""
    nodes = tree.leaves(numbered, lambda x: isinstance(x, Module))
    places: Any = [i for node in nodes if isinstance(node, Module) for i in node.buffers()]
    return set(places)


def _names(group: Group) -> list[list[str]]:
    """Return all names of each leaf: more than one where a member holds it at several places."""
    whole = group.whole()
    names: list[list[str]] = [[] for _ in group.names]
    for name, i in zip(leaf_names(whole, "Ensemble"), tree.leaves(whole), strict=True):
        names[i].append(name)
    return names


def _choose_leaves(chosen: Choice, group: Group) -> tuple[bool, ...]:
    """Say which leaves a choice covers: shell patterns (``"fc1.*"``), or a function of a name."""
    if chosen is None:
        return (False,) * len(group.names)
    return tuple(any(covers(chosen, n) for n in names) for names in _names(group))


def _listed(patterns: str | Iterable[str]) -> list[str]:
    return [patterns] if isinstance(patterns, str) else list(patterns)


def _refuse_idle_patterns(groups: Sequence[Group], chosen: Choice, argument: str) -> None:
    """Raise ``ValueError`` for a pattern that covers no part of any member."""
    if chosen is None or callable(chosen):
        return
    names = list(dict.fromkeys(n for g in groups for aliases in _names(g) for n in aliases))
    for p in _listed(chosen):
        if not any(covers(p, n) for n in names):
            raise ValueError(
                f"Ensemble: {argument}: the pattern {p!r} covers no part of a member; the parts "
                f"are {', '.join(names)}"
            )


def _sort_into_groups(
    functions: Sequence[Callable[..., Any]], members: Sequence[Any], shared: Choice, frozen: Choice
) -> tuple[list[Group], list[list[Array]]]:
    """Sort members by function and structure, as they first appear; stack each group's arrays."""
    alike: dict[Any, list[int]] = {}
    for i, (function, member) in enumerate(zip(functions, members, strict=True)):
        alike.setdefault((function, tree.structure(member)), []).append(i)
    groups, arrays = [], []
    for (function, spec), places in alike.items():
        if spec.num_leaves == 0:
            raise ValueError(
                f"Ensemble: member {places[0]} is {members[places[0]]!r}, which holds no arrays; "
                f"expected a module, or a tree of parameters"
            )
        ties = ties_of(members[places[0]])
        for i in places[1:]:
            _refuse_other_ties(ties, ties_of(members[i]), places[0], i)
        untied_members = [untied(members[i], ties) for i in places]
        rows = [
            _leaves(m, f"Ensemble: member {i}") for m, i in zip(untied_members, places, strict=True)
        ]
        group = _group(function, untied_members[0], rows[0], shared, frozen, places, ties)
        for i, row in zip(places, rows, strict=True):
            _refuse_other_shapes(group.names, rows[0], row, places[0], i)
        columns = []
        for name, once, column in zip(
            group.names, group.shared, zip(*rows, strict=True), strict=True
        ):
            if once:
                _refuse_unequal(name, column, places)
            columns.append(column[0] if once else trees.stack(column))
        groups.append(group)
        arrays.append(columns)
    return groups, arrays


def _of_stacked(
    function: Callable[..., Any], stacked: Tree, shared: Choice, frozen: Choice
) -> tuple[list[Group], list[list[Array]]]:
    """Return one group from a stacked tree."""
    ties = ties_of(stacked)
    member = untied(stacked, ties)
    leaves = _leaves(member, "Ensemble")
    group = _group(function, member, leaves, shared, frozen, (), ties)
    own = [(n, x) for n, x, s in zip(group.names, leaves, group.shared, strict=True) if not s]
    sizes = {(x.shape[0] if x.ndim else None) for _, x in own}
    if len(sizes) != 1 or None in sizes:
        described = ", ".join(f"{n}: {x.type}" for n, x in own)
        raise ValueError(
            f"Ensemble: the leaves of a stacked tree must agree in axis 0, the members; got "
            f"{described or 'no leaves'}. A list of members is stacked for you; what all share is "
            f"named in shared="
        )
    (size,) = sizes
    if not size:
        raise ValueError("Ensemble: expected at least one member, got none")
    return [shaped_as(at_places(group, range(size)), leaves)], [leaves]


def _leaves(member: Tree, caller: str) -> list[Array]:
    """Return the arrays of a member, of strong dtypes, whatever numbers they came from."""
    names = leaf_names(member, "Ensemble")
    values = [as_value(x, caller, n) for x, n in zip(tree.leaves(member), names, strict=True)]
    return [convert(x, x.dtype) for x in values]


def _refuse_other_ties(ties: Ties, others: Ties, one: int, other: int) -> None:
    """Raise ``ValueError`` where members of one structure hold different things at two places."""
    for have, lack, i, j in ((ties, others, one, other), (others, ties, other, one)):
        differences = [f"{place} to {first}" for place, first in have if (place, first) not in lack]
        if differences:
            raise ValueError(
                f"Ensemble: member {i} ties {', '.join(differences)} (one array or module at both "
                f"places), and member {j} does not; members of one structure must tie alike"
            )


def _refuse_other_shapes(
    names: Sequence[str], first: Sequence[Array], row: Sequence[Array], one: int, other: int
) -> None:
    """Raise ``ValueError`` where members of one structure differ in shape or dtype."""
    for name, x, y in zip(names, first, row, strict=True):
        if x.shape != y.shape or x.dtype != y.dtype:
            raise ValueError(
                f"Ensemble: member {other} differs from member {one} at {name}: expected "
                f"{x.type}, got {y.type}. Members of one structure must agree; several "
                f"architectures are told apart by their structure: use modules, whose sizes are "
                f"part of it, or give each architecture keys of its own"
            )


def _refuse_unequal(name: str, column: Sequence[Array], places: Sequence[int]) -> None:
    """Raise ``ValueError`` where a part that is to be shared differs between members."""
    for i, x in zip(places, column, strict=True):
        if x is column[0]:
            continue
        if isinstance(x, Tracer) or isinstance(column[0], Tracer):
            raise ValueError(
                f"Ensemble: shared part {name} of member {i} is a traced value of its own; hand "
                f"the same value to all members"
            )
        if not bool((x == column[0]).all()):
            raise ValueError(
                f"Ensemble: {name} is to be shared, but member {i} has other values than member "
                f"{places[0]}; copy one into the other first, or leave it out of shared="
            )


def refuse_others_than_modules(members: Sequence[Any]) -> None:
    """Raise ``TypeError`` for a member that is not a module."""
    for i, member in enumerate(members):
        if not isinstance(member, Module):
            way = "for trees of parameters give the function that takes them, "
            way += "Ensemble(apply, members)"
            if is_ensemble(member):
                way = "one + other joins the members of two ensembles"
            raise TypeError(
                f"Ensemble: member {i} is a {type(member).__name__}, expected a module; {way}"
            )


def in_mode(
    mode: bool, groups: Sequence[Group], arrays: list[list[Array]]
) -> tuple[list[Group], list[list[Array]]]:
    """Return the groups with modules in train mode or not; those that differed in it alone are one.

    Groups that share arrays stay apart: each has its own.
    """
    in_this_mode = []
    for group in groups:
        member = tree.unflatten(group.structure, range(group.structure.num_leaves))
        for x in tree.leaves(member, lambda x: isinstance(x, Module)):
            if isinstance(x, Module):
                x.train(mode)
        in_this_mode.append(with_fields(group, structure=tree.structure(member)))
    if any(any(g.shared) for g in groups):
        return in_this_mode, arrays
    return merge_equal_groups(in_this_mode, arrays)


def join_groups(
    groups: Sequence[Group],
    arrays: Sequence[Sequence[Array]],
    others: Sequence[Group],
    their_arrays: Sequence[Sequence[Array]],
) -> tuple[list[Group], list[list[Array]]]:
    """Return the groups of two ensembles, the second's members last; equal groups become one."""
    start = sum(g.size for g in groups)
    after = [at_places(g, [start + p for p in g.places]) for g in others]
    return merge_equal_groups([*groups, *after], [*arrays, *their_arrays])


def merge_equal_groups(
    groups: Sequence[Group], arrays: Sequence[Sequence[Array]]
) -> tuple[list[Group], list[list[Array]]]:
    """Return the groups, those of one function and structure made one, with the rows in order."""
    by_kind: dict[Any, Group] = {}
    columns: dict[Any, list[Array]] = {}
    for group, columns_of_group in zip(groups, arrays, strict=True):
        kind = group.function, tree.structure(group.whole())
        first = by_kind.get(kind)
        if first is None:
            by_kind[kind], columns[kind] = group, list(columns_of_group)
            continue
        _refuse_other_ties(first.ties, group.ties, first.places[0], group.places[0])
        places = (*first.places, *group.places)
        rows = np.argsort(places).astype(np.int32)
        columns[kind] = [
            _one_column(name, once, x, once_there, y, group.size, rows)
            for name, once, x, once_there, y in zip(
                first.names,
                first.shared,
                columns[kind],
                group.shared,
                columns_of_group,
                strict=True,
            )
        ]
        by_kind[kind] = at_places(first, sorted(places))
    return list(by_kind.values()), list(columns.values())


def _one_column(
    name: str, once: bool, x: Array, once_there: bool, y: Array, size: int, rows: np.ndarray
) -> Array:
    """Return an array of members with that of other members after it, in this order of rows.

    ``once``: the first members share one; ``once_there``: the others do.
    """
    if once:
        value = y if once_there else y[0]
        rest = value if once_there else y
        if value.shape != x.shape or not bool((rest == x).all()):
            raise ValueError(
                f"Ensemble: {name} is shared by the present members, and the new ones have other "
                f"values"
            )
        return x
    more = trees.stack([y] * size) if once_there else y
    if more.shape[1:] != x.shape[1:] or more.dtype != x.dtype:
        raise ValueError(
            f"Ensemble: new members differ at {name}: expected {x.shape[1:]} {x.dtype}, got "
            f"{more.shape[1:]} {more.dtype}"
        )
    both = concatenate([x, more], 0)
    return both if (rows[1:] > rows[:-1]).all() else take(both, rows, 0)
