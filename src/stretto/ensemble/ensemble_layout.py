"""``Layout``: what of an ensemble is not arrays.

Layouts that come of one another, by ``eval`` and ``train`` or by taking members, keep what was
compiled for each in common. Read ``groups`` before, ``ensemble`` next.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from stretto.ensemble.groups import Group
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.run_members import Runner


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
        """Of all arrays, one group after the other."""
        self.first_names = {n.partition(".")[0] for group in self.groups for n in group.names}
        """The attributes, or keys, of a member that hold them."""
        self._hash = hash((self.groups, chunk_size, options, over))
        self._runners = {} if runners is None else runners
        runner = Runner(self.groups, chunk_size, dict(options), over)
        self.runner = self._runners.setdefault((self.groups, over), runner)

    def of(self, groups: Iterable[Group]) -> Layout:
        """Other groups, run in the same way; not over a mesh that does not divide them."""
        groups = tuple(groups)
        over = self.over if self.over and self.over.splits(groups) else None
        return Layout(groups, self.chunk_size, self.options, over, self._runners)

    def over_devices(self, over: OverMesh) -> Layout:
        """The same groups, run over a mesh that divides them."""
        return Layout(self.groups, self.chunk_size, self.options, over, self._runners)

    def split(self, arrays: Iterable[Any]) -> list[list[Any]]:
        """The arrays of each group, from those of all."""
        rest = iter(arrays)
        return [[next(rest) for _ in group.names] for group in self.groups]

    def replaced(
        self, arrays: Sequence[Sequence[Any]], others: Sequence[Mapping[str, Any]]
    ) -> list[list[Any]]:
        """The arrays of each group, with others in place of those named."""
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
        """In what two ensembles differ, in words."""
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
