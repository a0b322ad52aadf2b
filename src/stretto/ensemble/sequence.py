"""``Layout``, what of an ensemble is not arrays; and ``MemberSequence``, its members as a sequence.

Members are held stacked, one group for each architecture, to take from and to add to. Layouts that
come of one another, by ``eval`` and ``train`` or by taking members, keep what was compiled for each
in common.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Generic, Self, overload

import numpy as np

from stretto import tree as trees
from stretto._engine.core import tree
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value
from stretto._engine.core.typing import Array, Tree
from stretto.ensemble.groups import (
    Group,
    M_co,
    Member,
    at_places,
    call_module,
    groups_of,
    join_groups,
    read_only_member,
    refuse_other_rows,
    refuse_others_than_modules,
)
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.run_members import Runner
from stretto.numpy.taking import take


class Layout:
    """The groups of an ensemble, and how they are run; compared by value."""

    __slots__ = (
        "_hash",
        "_runners",
        "chunk_size",
        "first_names",
        "groups",
        "names",
        "options",
        "over",
        "runner",
    )

    def __init__(
        self,
        groups: Iterable[Group],
        chunk_size: int | str | None = None,
        options: tuple[tuple[str, Any], ...] = (),
        over: OverMesh | None = None,
        runners: dict[Any, Runner] | None = None,
    ) -> None:
        self.groups, self.chunk_size, self.options = tuple(groups), chunk_size, options
        self.over = over
        is_many = len(self.groups) > 1
        self.names = tuple(
            f"group{g}.{name}" if is_many else name
            for g, group in enumerate(self.groups)
            for name in group.names
        )
        """The names of all arrays, one group after the other."""
        self.first_names = {n.partition(".")[0] for group in self.groups for n in group.names}
        """The attributes, or keys, of a member that hold them."""
        self._hash = hash((self.groups, chunk_size, options, over))
        self._runners = {} if runners is None else runners
        runner = Runner(self.groups, chunk_size, dict(options), over)
        self.runner = self._runners.setdefault((self.groups, over), runner)

    def of(self, groups: Iterable[Group]) -> Layout:
        """Return other groups, run in the same way; not over a mesh that does not divide them."""
        groups = tuple(groups)
        over = self.over if self.over and self.over.splits(groups) else None
        return Layout(groups, self.chunk_size, self.options, over, self._runners)

    def over_devices(self, over: OverMesh) -> Layout:
        """Return the same groups, run over a mesh that divides them."""
        return Layout(self.groups, self.chunk_size, self.options, over, self._runners)

    def split(self, arrays: Iterable[Any]) -> list[list[Any]]:
        """Return the arrays of each group, from those of all."""
        rest = iter(arrays)
        return [[next(rest) for _ in group.names] for group in self.groups]

    def replaced(
        self, arrays: Sequence[Sequence[Any]], others: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """Return the arrays of each group, with others in place of those named."""
        if len(others) != len(self.groups):
            raise ValueError(
                f"Ensemble.replace: expected a dictionary for each of {len(self.groups)} groups, "
                f"got {len(others)}"
            )
        columns = []
        for group, old, new in zip(self.groups, arrays, others, strict=True):
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
        return columns

    def difference(self, other: Layout) -> str:
        """Say in what two ensembles differ."""
        ours, theirs = ([(g.size, g.names) for g in x.groups] for x in (self, other))
        if ours != theirs:
            return f"{_described(self.groups)}, and {_described(other.groups)}"
        return "ensembles of other functions, modes, settings, or shared, tied and frozen parts"

    def __eq__(self, other: object) -> bool:
        return self is other or (
            isinstance(other, Layout)
            and self._hash == other._hash
            and self.groups == other.groups
            and self.chunk_size == other.chunk_size
            and self.options == other.options
            and self.over == other.over
        )

    def __hash__(self) -> int:
        return self._hash

    def __deepcopy__(self, memo: object) -> Layout:
        return self  # nothing in it changes

    def __reduce__(self) -> tuple[Any, ...]:
        return Layout, (self.groups, self.chunk_size, self.options, self.over)


def _described(groups: Sequence[Group]) -> str:
    parts = [f"{g.size} members with {', '.join(g.names)}" for g in groups]
    return f"an Ensemble of {'; '.join(parts)}"


class MemberSequence(Generic[M_co]):
    """The members of an ensemble as a sequence; the base class of ``Ensemble``.

    For type checkers it is generic in what a member is: the module, or ``Member``.
    """

    _layout: Layout
    """All of the ensemble that is not arrays."""
    _arrays: list[list[Any]]
    """The arrays of each group."""
    _captured = False
    """True once a program has these arrays as constants."""

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        tree.register_attributes(
            cls, _flatten, lambda layout, arrays: cls._of(layout, layout.split(arrays))
        )

    @classmethod
    def _of(cls, layout: Layout, arrays: list[list[Any]]) -> Self:
        ensemble = object.__new__(cls)
        ensemble._layout, ensemble._arrays = layout, arrays
        return ensemble

    def _undifferentiated(self) -> Iterator[Any]:
        """Yield the leaves that derivatives by an ensemble leave out, where they have none."""
        for group, arrays in zip(self._layout.groups, self._arrays, strict=True):
            yield from [x for x, t in zip(arrays, group.trained, strict=True) if not t]

    def _axes_in_front(self, caller: str) -> int:
        """Return how many axes all arrays have in front of those of an ensemble: 0 for one.

        More for several stacked, as ``st.stack``, and ``vmap`` of a function that makes one, give.
        Raises ``ValueError`` where the arrays are no ensemble's.
        """
        pairs = list(zip(self._layout.groups, self._arrays, strict=True))
        found = {group.axes_in_front(column) for group, column in pairs}
        if len(found) == 1 and (axes := found.pop()) is not None:
            return axes
        self._refuse_other_rows()
        raise ValueError(f"{caller}: the arrays of the groups of an Ensemble differ in their axes")

    def _note_capture(self) -> None:
        """Note that a program is recorded which has the arrays as constants."""
        first = self._arrays[0][0]
        if not isinstance(first, Tracer):
            object.__setattr__(self, "_captured", True)

    def _refuse_other_rows(self) -> None:
        """Raise ``ValueError`` where the arrays are not those of the members."""
        for group, column in zip(self._layout.groups, self._arrays, strict=True):
            refuse_other_rows(group, column)

    def __len__(self) -> int:
        return sum(g.size for g in self._layout.groups)

    @property
    def groups(self) -> list[Self]:
        """An ensemble for each architecture, in the order of first appearance."""
        return [self._alone(g) for g in range(len(self._layout.groups))]

    def _alone(self, g: int) -> Self:
        group = at_places(self._layout.groups[g], range(self._layout.groups[g].size))
        return self._of(self._layout.of([group]), [self._arrays[g]])

    # Taking

    @overload
    def __getitem__(self, index: int | np.integer) -> M_co: ...
    @overload
    def __getitem__(self, index: slice | Sequence[int]) -> Self: ...
    @overload
    def __getitem__(self, index: Array | np.ndarray) -> Tree: ...  # an integer, or many
    def __getitem__(
        self, index: int | np.integer | slice | Sequence[int] | Array | np.ndarray
    ) -> Tree:
        """Return a member for an integer; an ensemble for a slice, a mask, or a list of places."""
        if _is_many(index):
            return self._taken(self._places(index))
        place = self._place(index)
        self._refuse_other_rows()
        for group, arrays in zip(self._layout.groups, self._arrays, strict=True):
            if place in group.places:
                row = group.places.index(place)
                leaves = [
                    x if s else trees.take(x, row)
                    for x, s in zip(arrays, group.shared, strict=True)
                ]
                return read_only_member(group.of(leaves))
        raise AssertionError(place)

    def __setitem__(self, index: int | np.integer, member: Tree) -> None:
        """Put a member in place of another: like those there, or of a new architecture.

        Args:
            index: the place, negative from the end.
            member: a module, or a tree of parameters.

        Raises:
            ValueError: as for ``extend``.
            TypeError: the index names several, or it is not a member.
            IndexError: there is no such place.
        """
        if _is_many(index):
            raise TypeError(
                f"Ensemble: one member is assigned at a time, ensemble[i] = member; got {index!r}"
            )
        place, n = self._place(index), len(self)
        longer = self._of(self._layout, self._arrays)._extend([member], "ensemble[i] = member")
        kept = longer._taken([n if i == place else i for i in range(n)])
        self._layout, self._arrays = kept._layout, kept._arrays

    def __delitem__(self, index: int | np.integer | slice | Sequence[int]) -> None:
        """Remove a member, or several, as ``drop``."""
        self.drop(index)

    def __setattr__(self, name: str, value: object) -> None:
        """Refuse the name of a part, which is in the members and not in the ensemble."""
        held = self.__dict__.get("_layout")
        if held is not None and name not in ("_layout", "_arrays") and name in held.first_names:
            raise AttributeError(
                f"Ensemble: {name} is a part of each member, and an attribute of the ensemble "
                f"would not change it. ensemble = ensemble.replace([{{{name!r}: array}}]), with an "
                f"array of shape (members, ...), and a dictionary for each of "
                f"{len(held.groups)} groups, changes all; ensemble[i] = member one",
                name=name,
                obj=self,
            )
        object.__setattr__(self, name, value)

    def _member_at(self, index: Array) -> Tree:
        """Return the member at a traced place, which is clamped."""
        layout = self._layout
        if len(layout.groups) > 1:
            raise ValueError(
                f"take: a traced place among members of {len(layout.groups)} architectures; "
                f"members that differ in structure are taken by a Python integer"
            )
        group, column = next(iter(layout.groups)), self._arrays[0]
        rows = zip(column, group.shared, strict=True)
        return read_only_member(group.of([x if s else trees.take(x, index) for x, s in rows]))

    def __iter__(self) -> Iterator[M_co]:
        return (self[i] for i in range(len(self)))

    def _place(self, index: object) -> int:
        i, n = integer(index, "Ensemble", "the index of a member"), len(self)
        if not -n <= i < n:
            raise IndexError(f"Ensemble: member {i} of {n}")
        return i % n

    def _places(self, index: Tree) -> list[int]:
        """Return the places that a slice, a mask or a list of them names."""
        n = len(self)
        if isinstance(index, slice):
            return list(range(n)[index])
        places = np.asarray(index)
        if places.dtype == bool:
            if places.shape != (n,):
                raise IndexError(f"Ensemble: a mask of {places.shape} for {n} members")
            places = np.flatnonzero(places)
        return [self._place(i) for i in places.tolist()]

    def _taken(self, places: Sequence[int]) -> Self:
        if not len(places):
            raise ValueError(f"Ensemble: no member is left of {len(self)}")
        self._refuse_other_rows()
        parts: list[tuple[Group, list[Any]]] = []
        for group, arrays in zip(self._layout.groups, self._arrays, strict=True):
            at = {place: row for row, place in enumerate(group.places)}
            here = [k for k, place in enumerate(places) if place in at]
            if here:
                rows = np.asarray([at[places[k]] for k in here], np.int32)
                column = [
                    x if s else take(x, rows, 0) for x, s in zip(arrays, group.shared, strict=True)
                ]
                parts.append((at_places(group, here), column))
        parts.sort(key=lambda part: part[0].places[0])
        layout = self._layout.of(group for group, _ in parts)
        return self._of(layout, [column for _, column in parts])

    # Adding and removing

    def append(self, member: Tree) -> Self:
        """Add a member at the end: one like those already there, or of a new architecture.

        A module in another mode keeps it, in a group of its own, until ``train`` or ``eval``.

        Args:
            member: a module, or a tree of parameters.

        Returns:
            The ensemble itself, which has changed.

        Raises:
            ValueError: as for ``extend``.
            TypeError: it is not a member.
        """
        return self._extend([member], "append")

    def extend(self, other: Tree) -> Self:
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
        return self._extend(other, "extend")

    def _extend(self, other: Tree, method: str) -> Self:
        self._refuse_other_rows()
        if isinstance(other, MemberSequence):
            other._refuse_other_rows()
            groups, arrays = other._layout.groups, other._arrays
        else:
            members = list(other)
            functions = [
                m.function if isinstance(m, Member) else self._function(method) for m in members
            ]
            members = [m.params if isinstance(m, Member) else m for m in members]
            if all(f is call_module for f in functions):
                refuse_others_than_modules(members)
            groups, arrays = groups_of(functions, members, None, None, stacked=False)
        groups, arrays = join_groups(self._layout.groups, self._arrays, groups, arrays)
        self._layout, self._arrays = self._layout.of(groups), arrays
        return self

    def _function(self, method: str) -> Callable[..., Any]:
        """Return the function of all members."""
        functions = {g.function for g in self._layout.groups}
        if len(functions) > 1:
            raise ValueError(
                f"Ensemble.{method}: the ensemble has several functions; give an Ensemble, which "
                f"says which is whose"
            )
        (function,) = functions
        return function

    def drop(self, index: int | np.integer | slice | Sequence[int] | Array | np.ndarray) -> Self:
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
        dropped = set(self._places(index) if _is_many(index) else [self._place(index)])
        kept = self._taken([i for i in range(len(self)) if i not in dropped])
        self._layout, self._arrays = kept._layout, kept._arrays
        return self


def _is_many(index: object) -> bool:
    """Say whether an index names members in a row, and not one."""
    return isinstance(index, (slice, list, tuple)) or (
        isinstance(index, (np.ndarray, Value)) and index.ndim > 0
    )


def _flatten(ensemble: MemberSequence) -> tuple[list[Any], Layout, tuple[str, ...]]:
    layout = ensemble._layout
    return [x for column in ensemble._arrays for x in column], layout, layout.names
