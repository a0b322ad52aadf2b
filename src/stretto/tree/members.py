"""Members: a list of trees, and one tree of stacked arrays.

An ensemble is a list of its members here, not the tree of its arrays: its class, which is above,
says so by a method ``_axes_in_front``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, TypeVar

import numpy as np

from stretto._engine.core import tree as _tree
from stretto._engine.core.caches import room
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.tree import flatten, leaves, structure, unflatten
from stretto._engine.core.types import ArrayType, is_float0
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.index.dynamic import dynamic_index_in_dim
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape
from stretto._engine.ops.shape import concatenate, slice_

__all__ = ["Alike", "concat", "is_ensemble", "member_at", "of_members", "size_of", "stack", "take",
           "unstack"]  # fmt: skip

T = TypeVar("T")


class Alike:
    """Gives the leaves of tree after tree, which must have the structure and shapes of the first.

    Holds none of them. ``value(leaf, caller, argument)`` makes a value of a leaf.
    """

    def __init__(self, caller: str, value: Callable[[Any, str, str], Any] = as_value) -> None:
        self.caller, self.value = caller, value
        self.structure: Any = None
        self.types: list[ArrayType] = []

    def row(self, member: Tree, number: int) -> list[Any]:
        """Return the leaves of this member. Raises ``ValueError`` naming it, and the path."""
        flat, structure = flatten(member)
        if self.structure is None:
            self.structure = structure
        elif structure != self.structure:
            raise ValueError(
                f"{self.caller}: member {number} differs in structure from member 0; they part at "
                f"{_tree.difference(self._sketch(), member, 'member')}"
            )
        row = [self.value(x, self.caller, "a leaf") for x in flat]
        if not self.types:
            self.types = [x.type for x in row]
        for k, (type, x) in enumerate(zip(self.types, row, strict=True)):
            if type.shape != x.shape:
                path = _tree.paths(self._sketch(), "member")[k]
                raise ValueError(
                    f"{self.caller}: member {number} differs from member 0 at {path}: shape "
                    f"{x.shape}, expected {type.shape}"
                )
        return row

    def _sketch(self) -> Tree:
        """Return the first tree, with types for leaves."""
        return unflatten(self.structure, self.types)


# Ensembles

_with_ensembles: dict[Any, bool] = {}
"""Structures of trees, with whether they hold ensembles."""


def of_members(trees: Tree, caller: str) -> Tree:
    """Return an ensemble, where this is one, as the sequence of its members.

    ``None`` for another tree, and for ensembles stacked, of which each array has an axis more.
    Raises ``ValueError`` where the arrays are neither.
    """
    return trees if is_ensemble(trees) and not trees._axes_in_front(caller) else None


def is_ensemble(node: object) -> bool:
    """Say whether a node of a tree is an ensemble, or several stacked."""
    return hasattr(type(node), "_axes_in_front")


def _refuse_ensembles(tree: Tree, spec: Any, caller: str) -> None:  # noqa: ANN401 (a structure)
    """Raise ``ValueError`` for an ensemble in the tree, whose axis 0 has its own members."""
    found = _with_ensembles.get(spec)
    if found is None:
        nodes = leaves(tree, is_ensemble)
        found = room(_with_ensembles)[spec] = any(map(is_ensemble, nodes))
    if not found:
        return
    paths = _tree.paths_of(structure(tree, is_ensemble), "tree")
    for path, node in zip(paths, leaves(tree, is_ensemble), strict=True):
        if of_members(node, caller) is not None:
            raise ValueError(
                f"{caller}: {path} is an Ensemble of {len(node)} members; axis 0 of its arrays has "
                f"these, and is not that of the tree. Give the ensemble alone, which stands for "
                f"its members, or stack trees with ensembles first: st.stack([tree, ...])"
            )


def _along_members(axis: int, caller: str) -> None:
    if axis != 0:
        raise ValueError(f"{caller}: axis must be 0, the members of an Ensemble; got {axis}")


def stack(trees: Iterable[T], axis: int = 0) -> T:
    """Stack trees of one structure: each leaf gets a new axis of members.

    Args:
        trees: trees of arrays, or an ``Ensemble``, which stands for its members. A list of
            ensembles is stacked as it is, for ``vmap`` over ensembles; ``concat`` joins their
            members.
        axis: where the new axis goes; 0 for ensembles.

    Returns:
        One tree of arrays.

    Raises:
        ValueError: structures or shapes differ, with the member and the path; or there are no
            trees.

    >>> import stretto.numpy as snp
    >>> stack([{"w": snp.ones(2)}, {"w": snp.zeros(2)}])
    {'w': Array([[1., 1.],
           [0., 0.]], dtype=float32)}
    """
    alike = Alike("stack")
    rows = [alike.row(member, i) for i, member in enumerate(trees)]
    if not rows:
        raise ValueError("stack: expected at least one tree, got none")
    if axis != 0:
        _refuse_ensembles(alike._sketch(), alike.structure, "stack")
    columns = []
    for column in zip(*rows, strict=True):
        place = canonical_axis(axis, column[0].ndim + 1, "stack")
        columns.append(concatenate([expand_dims(x, place) for x in column], place))
    return unflatten(alike.structure, columns)


def size_of(tree: Tree, axis: int, caller: str) -> tuple[list[Any], Any, int]:
    """Return the leaves of a stacked tree, its structure, and how many members it has.

    Gradients of integers, float0, stay NumPy's arrays.
    """
    flat, spec = flatten(tree)
    _refuse_ensembles(tree, spec, caller)
    values = [x if is_float0(x) else as_value(x, caller, "a leaf") for x in flat]
    if not values:
        raise ValueError(f"{caller}: expected a tree with arrays, got one without leaves")
    sizes = {v.shape[axis] if -v.ndim <= axis < v.ndim else None for v in values}
    if len(sizes) != 1 or None in sizes:
        described = ", ".join(
            f"{p}: {v.dtype}{list(v.shape)}"
            for p, v in zip(_tree.paths(tree, "tree"), values, strict=True)
        )
        raise ValueError(f"{caller}: leaves must share the size of axis {axis}; got {described}")
    (size,) = sizes
    assert size is not None
    return values, spec, size


def member_at(x: Array, i: int, axis: int) -> Array:
    """Return the part of a stacked array that is member ``i``."""
    axis %= x.ndim
    if is_float0(x):
        return np.take(x, i, axis)
    starts = [i if d == axis else 0 for d in range(x.ndim)]
    limits = [i + 1 if d == axis else n for d, n in enumerate(x.shape)]
    shape = tuple(n for d, n in enumerate(x.shape) if d != axis)
    return reshape(slice_(x, starts, limits), shape)


def unstack(tree: T, axis: int = 0) -> list[T]:
    """Split a stacked tree into its members: undoes ``stack``.

    Args:
        tree: a tree of arrays, or an ``Ensemble``.
        axis: that of the members.

    Returns:
        A list of trees.

    Raises:
        ValueError: leaves differ in the number of members, with the path.

    >>> import stretto.numpy as snp
    >>> unstack({"w": snp.array([1.0, 2.0])})
    [{'w': Array(1., dtype=float32)}, {'w': Array(2., dtype=float32)}]
    """
    members: Any = of_members(tree, "unstack")
    if members is not None:
        _along_members(axis, "unstack")
        return list(members)
    values, spec, size = size_of(tree, axis, "unstack")
    return [unflatten(spec, [member_at(v, i, axis) for v in values]) for i in range(size)]


def take(tree: T, i: ArrayLike, axis: int = 0) -> T:
    """Take one member of a stacked tree.

    Args:
        tree: a tree of arrays, or an ``Ensemble``.
        i: its place, negative from the end; a traced one is clamped.
        axis: that of the members.

    Returns:
        A tree of arrays without the axis.

    Raises:
        TypeError: ``i`` is not an integer.
        IndexError: there is no such member.
        ValueError: leaves differ in the number of members, with the path.

    >>> import stretto.numpy as snp
    >>> take({"w": snp.array([1.0, 2.0])}, -1)
    {'w': Array(2., dtype=float32)}
    """
    members: Any = of_members(tree, "take")
    if members is not None:
        _along_members(axis, "take")
        if isinstance(i, Tracer) and i.concrete() is None:
            return members._member_at(i)
        return members[integer(i, "take", "i")]
    values, spec, size = size_of(tree, axis, "take")
    if isinstance(i, Tracer) and i.concrete() is None:
        taken = [
            member_at(v, 0, axis)
            if is_float0(v)  # all of which are alike
            else dynamic_index_in_dim(v, i, axis % v.ndim, keepdims=False)
            for v in values
        ]
        return unflatten(spec, taken)
    place = integer(i, "take", "i")
    if not -size <= place < size:
        raise IndexError(f"take: member {place} of {size}")
    return unflatten(spec, [member_at(v, place % size, axis) for v in values])


def concat(trees: Iterable[T], axis: int = 0) -> T:
    """Join stacked trees: their members one after the other.

    Args:
        trees: trees of arrays, or ensembles, whose members are joined as by ``+``.
        axis: that of the members.

    Returns:
        One tree of arrays, or one ensemble.

    Raises:
        ValueError: structures or shapes differ, with the tree and the path; or there are no trees.
        TypeError: ``trees`` is one ensemble, or has other trees beside ensembles.

    >>> import stretto.numpy as snp
    >>> concat([{"w": snp.array([1.0])}, {"w": snp.array([2.0, 3.0])}])
    {'w': Array([1., 2., 3.], dtype=float32)}
    """
    if is_ensemble(trees):
        raise TypeError(
            "concat: got one Ensemble; expected a list of ensembles, or of stacked trees. "
            "st.stack(ensemble) makes one stacked tree of its members"
        )
    members: Any = list(trees)
    if not members:
        raise ValueError("concat: expected at least one tree, got none")
    whole = [of_members(member, "concat") is not None for member in members]
    if any(whole):
        return _join(members, whole, axis)
    spec = structure(members[0])
    _refuse_ensembles(members[0], spec, "concat")
    for i, member in enumerate(members[1:], 1):
        if structure(member) != spec:
            raise ValueError(
                f"concat: tree {i} differs in structure from tree 0; they part at "
                f"{_tree.difference(members[0], member)}"
            )
    rows = [[as_value(x, "concat", "a leaf") for x in leaves(m)] for m in members]
    for k, (path, *column) in enumerate(zip(_tree.paths(members[0], "tree"), *rows, strict=True)):
        kept = [_without(x.shape, axis) for x in column]
        for i, shape in enumerate(kept):
            if shape is None or shape != kept[0]:
                raise ValueError(
                    f"concat: tree {i} does not match tree 0 along axis {axis} at {path}: "
                    f"{rows[i][k].type} and {column[0].type}"
                )
    return unflatten(spec, [concatenate(list(c), axis) for c in zip(*rows, strict=True)])


def _join(ensembles: list[Any], whole: list[bool], axis: int) -> Tree:
    """Return the members of all ensembles as one."""
    _along_members(axis, "concat")
    if not all(whole):
        i = whole.index(False)
        raise TypeError(
            f"concat: tree {i} is a {type(ensembles[i]).__name__}, and others are ensembles; make "
            f"it an Ensemble, or append it to one"
        )
    first, *others = ensembles
    joined = first[:]
    for other in others:
        joined = joined + other
    return joined


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    """Return the shape without an axis, where it has that."""
    if not -len(shape) <= axis < len(shape):
        return None
    place = axis % len(shape)
    return shape[:place] + shape[place + 1 :]
