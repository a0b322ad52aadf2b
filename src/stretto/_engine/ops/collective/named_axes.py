"""Named axes as collectives see them: which are bound, an example's index, groups of examples.

``vmap`` binds a name while its function runs.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.errors import UnboundAxisError
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.collective.primitives import AllGather, AxisIndex, take_rows
from stretto._engine.ops.index.dynamic import dynamic_index_in_dim
from stretto._engine.ops.layout import reshape


class Axes:
    """The axes that a call names, and the caller, whom messages name."""

    def __init__(self, axis_name: Any, caller: str) -> None:
        try:
            is_name = axis_name in settings.axes
        except TypeError:  # not hashable
            is_name = False
        is_sequence = not is_name and isinstance(axis_name, (tuple, list))
        self.caller = caller
        self.names = tuple(axis_name) if is_sequence else (axis_name,)
        try:
            self.sizes = tuple([settings.axes[name] for name in self.names])
        except (KeyError, TypeError):
            bound = list(settings.axes)
            missing = next(name for name in self.names if name not in bound)
            raise UnboundAxisError(
                f"{caller}: unbound axis name {missing!r}; bound here are: "
                f"{', '.join(map(repr, bound)) or 'none'}. Name the axis in the vmap that maps "
                f"over it: vmap(fun, axis_name={missing!r})"
            ) from None
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{caller}: axis_name {axis_name!r} names an axis twice")
        self.size = math.prod(self.sizes)

    @property
    def pairs(self) -> list[tuple[Any, int]]:
        """Each name with its size."""
        return list(zip(self.names, self.sizes, strict=True))

    def index(self) -> Any:
        """Return the example's index among all, an int32."""
        index = as_value(np.int32(0))
        for k, (name, size) in enumerate(self.pairs):
            here = AxisIndex(name, size)()
            index = index * size + here if k else here
        return index

    def whole(self, x: Any) -> Any:
        """Return all examples along a new axis 0."""
        shape = x.shape
        for name, size in reversed(self.pairs):
            x = AllGather(name, size)(x)
        return reshape(x, (self.size, *shape))

    def parts(self, x: Any) -> Any:
        """Return axis 0, an entry for each example, as an axis for each name."""
        return reshape(x, (*self.sizes, *x.shape[1:]))


class Groups(NamedTuple):
    """The examples in groups that do not mix."""

    axes: Axes
    members: np.ndarray
    """For each group the indices of its examples, padded with one past the end."""
    sizes: np.ndarray
    of: np.ndarray
    """For each example the number of its group."""
    rank: np.ndarray
    """For each example its place in its group."""

    @property
    def equal(self) -> bool:
        """Say whether all groups have one size."""
        return len(set(self.sizes)) <= 1

    @property
    def size(self) -> int:
        """The size of the largest group."""
        return self.members.shape[1]

    def own(self, table: np.ndarray) -> Any:
        """Return the example's entry of a table."""
        return entry(as_value(table.astype(np.int32)), self.axes.index(), 0)

    def rows(self, x: Any, fill: Any) -> Any:
        """Return the values of all examples along two new axes, group and member."""
        return take_rows(self.axes.whole(x), self.members, fill)

    def of_own(self, x: Any) -> Any:
        """Return the entry along axis 0 for the example's group."""
        return entry(x, self.own(self.of), 0)


def entry(x: Any, index: Any, axis: int) -> Any:
    """Return the entry of number ``index`` along ``axis``, which goes away."""
    return dynamic_index_in_dim(x, index, axis, keepdims=False)


def groups_of(axes: Axes, index_groups: Any, *, equal: bool = False) -> Groups | None:
    """Return the groups with these indices, or None for None; ``equal`` refuses unequal sizes.

    Raises ``TypeError`` for what is not lists of integers, ``ValueError`` unless each index is in
    exactly one of them.
    """
    if index_groups is None:
        return None
    lists = sequence_of(index_groups, axes.caller, "axis_index_groups", "lists of indices")
    groups = [list(integers(group, axes.caller, "axis_index_groups")) for group in lists]
    if sorted(i for group in groups for i in group) != list(range(axes.size)):
        raise ValueError(
            f"{axes.caller}: axis_index_groups must have each of the {axes.size} indices once, got "
            f"{index_groups}"
        )
    sizes = np.array([len(group) for group in groups], np.int32)
    members = np.full((len(groups), max(sizes, default=0)), axes.size, np.int32)
    of, rank = np.zeros(axes.size, np.int32), np.zeros(axes.size, np.int32)
    for k, group in enumerate(groups):
        members[k, : len(group)] = group
        of[group], rank[group] = k, range(len(group))
    result = Groups(axes, members, sizes, of, rank)
    if equal and not result.equal:
        raise ValueError(
            f"{axes.caller}: groups in axis_index_groups must have one size, got sizes "
            f"{sizes.tolist()}"
        )
    return result


def sequence_of(values: Any, caller: str, argument: str, elements: str) -> list[Any]:
    """Return the elements of a sequence; raises ``TypeError``, which says what they must be."""
    try:
        return list(values)
    except TypeError:
        message = f"{caller}: {argument} must be a sequence of {elements}, got {values!r}"
        raise TypeError(message) from None
