"""``stretto.tree``: trees of arrays, and arithmetic on them.

Layer 7. The structure functions come from ``core.tree``; here is what computes: stacking members,
weighted sums, norms.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto.core import tree as _tree
from stretto.core.interpreter import Tracer, Value, as_value
from stretto.core.tree import (
    flatten,
    flatten_with_path,
    leaves,
    map,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    structure,
    unflatten,
)
from stretto.core.types import as_dtype, inexact_dtype, is_inexact, kind_of
from stretto.ops.arithmetic import absolute, add, multiply
from stretto.ops.broadcast import canonical_axis, expand_dims, reduce_sum, reshape
from stretto.ops.contract import tensordot
from stretto.ops.convert import convert
from stretto.ops.dynamic import dynamic_index_in_dim
from stretto.ops.exponential import sqrt
from stretto.ops.shape import concatenate, slice_

__all__ = [
    "all",
    "axpy",
    "cast",
    "concat",
    "flatten",
    "flatten_with_path",
    "leaves",
    "lerp",
    "map",
    "map_with_path",
    "mean",
    "norm",
    "reduce",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "stack",
    "structure",
    "take",
    "transpose",
    "unflatten",
    "unstack",
    "weighted_sum",
]


def reduce(f: Callable[[Any, Any], Any], tree: Any, *initial: Any) -> Any:
    """Combine all leaves, from the left, by ``f``, beginning with ``initial`` if it is given.

    >>> reduce(lambda x, y: x + y, {"a": 1, "b": [2, 3]})
    6
    """
    return functools.reduce(f, leaves(tree), *initial)


def all(tree: Any) -> bool:
    """Whether every leaf is true.

    >>> all([True, {"a": 1}])
    True
    """
    return not [leaf for leaf in leaves(tree) if not leaf]


def map_with_path(f: Callable[..., Any], tree: Any, *rest: Any) -> Any:
    """Apply ``f(path, leaf, ...)`` to each leaf; the path is the tuple of keys that lead to it.

    >>> map_with_path(lambda path, x: (path, x), {"w": [1]})
    {'w': [(('w', 0), 1)]}
    """
    pairs, spec = flatten_with_path(tree)
    others = [_tree.prefix_subtrees(spec, tree, other, i + 1) for i, other in enumerate(rest)]
    flat = [f(path, leaf, *more) for (path, leaf), *more in zip(pairs, *others, strict=True)]
    return unflatten(spec, flat)


def transpose(outer: Any, inner: Any, tree: Any) -> Any:
    """Turn a tree of structure ``outer`` of trees of structure ``inner`` inside out.

    >>> transpose(structure([0, 0]), structure({"a": 0}), [{"a": 1}, {"a": 2}])
    {'a': [1, 2]}
    """
    rows = [inner.flatten_up_to(sub) for sub in outer.flatten_up_to(tree)]
    return unflatten(inner, [unflatten(outer, column) for column in zip(*rows, strict=True)])


# Members: a list of trees, and one tree of stacked arrays


def _members(trees: Iterable[Any], who: str) -> tuple[list[list[Any]], Any]:
    """The leaves of each tree, checked to be alike, and the structure."""
    members = list(trees)
    if not members:
        raise ValueError(f"{who}: expected at least one tree, got none")
    first, spec = flatten(members[0])
    rows = [[as_value(x, who, "a leaf") for x in first]]
    for i, member in enumerate(members[1:], 1):
        rows.append(_row(members[0], rows[0], spec, member, i, who))
    return rows, spec


def _row(
    first_tree: Any, first: Sequence[Any], spec: Any, member: Any, number: int, who: str
) -> list[Any]:
    """The leaves of a member, which must have the structure and shapes of the first."""
    flat, other = flatten(member)
    if other != spec:
        raise ValueError(
            f"{who}: member {number} has another structure than member 0; they part at "
            f"{_tree.difference(first_tree, member, 'member')}"
        )
    row = [as_value(x, who, "a leaf") for x in flat]
    for k, (x, y) in enumerate(zip(first, row, strict=True)):
        if x.shape != y.shape:
            path = _tree.paths(first_tree, "member")[k]
            raise ValueError(
                f"{who}: member {number} differs from member 0 at {path}: shape {y.shape}, "
                f"expected {x.shape}"
            )
    return row


def stack(trees: Iterable[Any], axis: int = 0) -> Any:
    """One tree of arrays from trees of one structure: each leaf with a new axis of members.

    Raises ``ValueError`` naming the member and the path where structures or shapes differ.

    >>> import stretto.numpy as snp
    >>> stack([{"w": snp.ones(2)}, {"w": snp.zeros(2)}])
    {'w': Array([[1., 1.],
           [0., 0.]], dtype=float32)}
    """
    rows, spec = _members(trees, "stack")
    columns = []
    for column in zip(*rows, strict=True):
        place = canonical_axis(axis, column[0].ndim + 1, "stack")
        columns.append(concatenate([expand_dims(x, place) for x in column], place))
    return unflatten(spec, columns)


def _size(tree: Any, axis: int, who: str) -> tuple[list[Any], Any, int]:
    flat, spec = flatten(tree)
    values = [as_value(x, who, "a leaf") for x in flat]
    if not values:
        raise ValueError(f"{who}: expected a tree with arrays, got one without leaves")
    sizes = {v.shape[axis] if -v.ndim <= axis < v.ndim else None for v in values}
    if len(sizes) != 1 or None in sizes:
        described = ", ".join(
            f"{p}: {v.type}" for p, v in zip(_tree.paths(tree, "tree"), values, strict=True)
        )
        raise ValueError(f"{who}: leaves must share the size of axis {axis}; got {described}")
    (size,) = sizes
    assert size is not None
    return values, spec, size


def _at(x: Any, i: int, axis: int) -> Any:
    axis %= x.ndim
    starts = [i if d == axis else 0 for d in range(x.ndim)]
    limits = [i + 1 if d == axis else n for d, n in enumerate(x.shape)]
    shape = tuple(n for d, n in enumerate(x.shape) if d != axis)
    return reshape(slice_(x, starts, limits), shape)


def unstack(tree: Any, axis: int = 0) -> list[Any]:
    """The members of a stacked tree, as a list of trees: undoes ``stack``.

    >>> import stretto.numpy as snp
    >>> unstack({"w": snp.array([1.0, 2.0])})
    [{'w': Array(1., dtype=float32)}, {'w': Array(2., dtype=float32)}]
    """
    values, spec, size = _size(tree, axis, "unstack")
    return [unflatten(spec, [_at(v, i, axis) for v in values]) for i in range(size)]


def take(tree: Any, i: Any, axis: int = 0) -> Any:
    """Member ``i`` of a stacked tree; negative counts from the end. A traced ``i`` is clamped.

    Raises ``IndexError`` where there is no such member.

    >>> import stretto.numpy as snp
    >>> take({"w": snp.array([1.0, 2.0])}, -1)
    {'w': Array(2., dtype=float32)}
    """
    values, spec, size = _size(tree, axis, "take")
    if isinstance(i, Tracer) and i.concrete() is None:
        return unflatten(
            spec, [dynamic_index_in_dim(v, i, axis % v.ndim, keepdims=False) for v in values]
        )
    place = operator.index(i)
    if not -size <= place < size:
        raise IndexError(f"take: member {place} of {size}")
    return unflatten(spec, [_at(v, place % size, axis) for v in values])


def concat(trees: Iterable[Any], axis: int = 0) -> Any:
    """One stacked tree from several: their members one after the other along ``axis``.

    Raises ``ValueError`` naming the tree and the path where structures or shapes differ.

    >>> import stretto.numpy as snp
    >>> concat([{"w": snp.array([1.0])}, {"w": snp.array([2.0, 3.0])}])
    {'w': Array([1., 2., 3.], dtype=float32)}
    """
    members = list(trees)
    if not members:
        raise ValueError("concat: expected at least one tree, got none")
    spec = structure(members[0])
    for i, member in enumerate(members[1:], 1):
        if structure(member) != spec:
            raise ValueError(
                f"concat: tree {i} has another structure than tree 0; they part at "
                f"{_tree.difference(members[0], member)}"
            )
    rows = [[as_value(x, "concat", "a leaf") for x in leaves(m)] for m in members]
    for k, (path, *column) in enumerate(zip(_tree.paths(members[0], "tree"), *rows, strict=True)):
        kept = [_without(x.shape, axis) for x in column]
        for i, shape in enumerate(kept):
            if shape is None or shape != kept[0]:
                raise ValueError(
                    f"concat: tree {i} does not fit tree 0 along axis {axis} at {path}: "
                    f"{rows[i][k].type} and {column[0].type}"
                )
    return unflatten(spec, [concatenate(list(c), axis) for c in zip(*rows, strict=True)])


def _without(shape: tuple[int, ...], axis: int) -> tuple[int, ...] | None:
    """The shape without an axis, where it has that."""
    if not -len(shape) <= axis < len(shape):
        return None
    place = axis % len(shape)
    return shape[:place] + shape[place + 1 :]


# Arithmetic


def _accumulator(dtype: np.dtype) -> np.dtype:
    """The dtype in which sums of leaves of this dtype are kept."""
    if kind_of(dtype) == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    return dtype


def _weights(weights: Any, who: str) -> list[Any]:
    """The weights, one scalar value each."""
    if isinstance(weights, (list, tuple)):
        values = [as_value(w, who, "a weight") for w in weights]
    else:
        vector = as_value(weights, who, "weights")
        if vector.ndim != 1:
            raise ValueError(f"{who}: weights must be a vector, one a tree; got {vector.type}")
        values = [_at(vector, i, 0) for i in range(vector.shape[0])]
    for w in values:
        if w.ndim:
            raise ValueError(f"{who}: each weight must be a scalar; got {w.type}")
    return values


def _finish(total: Any, like: Any) -> Any:
    """Leaves of low precision come back in their own dtype; others in that of the sum."""
    return convert(total, like.dtype) if _accumulator(like.dtype) != like.dtype else total


def _wide(x: Any) -> Any:
    return convert(x, _accumulator(x.dtype), x.weak_type)


def _is_stacked(trees: Any, count: int) -> bool:
    """Whether ``trees`` is one tree with ``count`` members along axis 0 of its leaves.

    A list or tuple of as many entries as weights is a list of trees. One of another length is a
    stacked tree if it could be nothing else, or if its leaves are arrays such as ``stack`` gives
    and it is shorter than the weights.
    """
    if not isinstance(trees, (list, tuple)):
        return True
    if len(trees) == count or not trees:
        return False
    flat = leaves(trees)
    stacked = [isinstance(x, Value) and x.ndim and x.shape[0] == count for x in flat]
    if not flat or False in stacked:
        return False
    shapes = [(structure(t), [x.shape for x in leaves(t)]) for t in trees]
    return len(trees) < count or shapes != shapes[:1] * len(trees)


def _streamed_sum(
    trees: Iterable[Any],
    part: Callable[[Any, int], Any],
    whole: Callable[[Any, int], Any],
    who: str,
) -> Any:
    """Add up what ``part`` makes of each leaf of tree after tree, holding one and the sum.

    ``whole`` makes of each sum, and the number of trees, what comes back.
    """
    first_tree: Any = None
    first: list[Any] = []
    spec: Any = None
    totals: list[Any] = []
    count = 0
    for number, member in enumerate(trees):
        if not number:
            flat, spec = flatten(member)
            row = first = [as_value(x, who, "a leaf") for x in flat]
            first_tree = member
        else:
            row = _row(first_tree, first, spec, member, number, who)
        parts = [part(_wide(x), number) for x in row]
        totals = [add(t, p) for t, p in zip(totals, parts, strict=True)] if number else parts
        count += 1
    if not count:
        raise ValueError(f"{who}: expected at least one tree, got none")
    sums = [whole(t, count) for t in totals]
    return unflatten(spec, [_finish(t, x) for t, x in zip(sums, first, strict=True)])


def _sum_by_weights(trees: Iterable[Any], weights: Sequence[Any]) -> Any:
    def weighed(x: Any, number: int) -> Any:
        if number >= len(weights):
            raise ValueError(f"weighted_sum: expected {len(weights)} trees, one a weight; got more")
        return multiply(x, weights[number])

    def counted(x: Any, count: int) -> Any:
        if count != len(weights):
            raise ValueError(
                f"weighted_sum: expected {len(weights)} trees, one a weight; got {count}"
            )
        return x

    return _streamed_sum(trees, weighed, counted, "weighted_sum")


def weighted_sum(trees: Any, weights: Any, *, stacked: bool | None = None) -> Any:
    """The sum of ``weights[i] * trees[i]``, leaf by leaf, in one pass without a stacked copy.

    Parameters: ``trees`` a list or tuple of trees of one structure; or a generator of them, of
    which one is held at a time; or one tree with the members stacked along axis 0 of its leaves.
    ``weights`` a vector or list of scalars, differentiable. ``stacked`` says which ``trees`` is,
    where that could be doubted: a list of as many entries as weights is a list of trees. Leaves of
    low precision are summed in float32, and come back in their own dtype.

    Raises ``ValueError`` naming the member and path where trees differ, or the counts where trees
    and weights are not as many.

    >>> import stretto.numpy as snp
    >>> weighted_sum([{"w": snp.ones(2)}, {"w": snp.ones(2)}], [0.25, 0.5])
    {'w': Array([0.75, 0.75], dtype=float32)}
    """
    scalars = _weights(weights, "weighted_sum")
    if isinstance(trees, Iterator):
        return _sum_by_weights(trees, scalars)
    if not (_is_stacked(trees, len(scalars)) if stacked is None else stacked):
        members = list(trees)
        if len(members) != len(scalars):
            raise ValueError(
                f"weighted_sum: expected one weight a tree; got {len(members)} trees and "
                f"{len(scalars)} weights"
            )
        return _sum_by_weights(members, scalars)
    values, spec, size = _size(trees, 0, "weighted_sum")
    if size != len(scalars):
        raise ValueError(
            f"weighted_sum: expected one weight a member; the stacked tree has {size} members, and "
            f"there are {len(scalars)} weights"
        )
    vector = stack(scalars)
    return unflatten(spec, [_finish(tensordot(vector, _wide(v), 1), v) for v in values])


def mean(trees: Any, *, stacked: bool | None = None) -> Any:
    """The mean of trees of one structure, leaf by leaf: the uniform soup of weights.

    ``trees`` as for ``weighted_sum``: a list (the default for lists), a generator, of which one is
    held at a time, or a stacked tree. Source: Wortsman et al., "Model soups", 2022.

    >>> import stretto.numpy as snp
    >>> mean([{"w": snp.zeros(2)}, {"w": snp.ones(2)}])
    {'w': Array([0.5, 0.5], dtype=float32)}
    """
    is_list = isinstance(trees, (list, tuple, Iterator))
    if stacked or (stacked is None and not is_list):
        size = _size(trees, 0, "mean")[2]
        return weighted_sum(trees, [1 / size] * size, stacked=True)
    as_float = lambda x, _: convert(x, inexact_dtype(x.dtype), x.weak_type)
    return _streamed_sum(trees, as_float, lambda x, count: multiply(x, 1 / count), "mean")


def lerp(start: Any, end: Any, weight: Any) -> Any:
    """``start + weight * (end - start)``, leaf by leaf.

    >>> import stretto.numpy as snp
    >>> lerp({"w": snp.zeros(1)}, {"w": snp.ones(1)}, 0.25)
    {'w': Array([0.25], dtype=float32)}
    """
    return weighted_sum([start, end], [1 - weight, weight], stacked=False)


def axpy(a: Any, x: Any, y: Any) -> Any:
    """``a * x + y``, leaf by leaf, for a scalar ``a``.

    >>> import stretto.numpy as snp
    >>> axpy(2.0, {"w": snp.ones(1)}, {"w": snp.ones(1)})
    {'w': Array([3.], dtype=float32)}
    """
    return weighted_sum([x, y], [a, 1], stacked=False)


def norm(tree: Any) -> Any:
    """The Euclidean norm of all elements of all leaves, as one scalar of at least float32.

    >>> import stretto.numpy as snp
    >>> norm({"a": snp.array([3.0]), "b": snp.array([4.0])})
    Array(5., dtype=float32)
    """
    total: Any = None
    for leaf in leaves(tree):
        x = absolute(as_value(leaf, "norm", "a leaf"))
        x = _wide(convert(x, inexact_dtype(x.dtype)))
        part = reduce_sum(multiply(x, x), tuple(range(x.ndim)))
        total = part if total is None else add(total, part)
    if total is None:
        raise ValueError("norm: expected a tree with arrays, got one without leaves")
    return sqrt(total)


def cast(tree: Any, dtype: Any) -> Any:
    """The floating leaves in another dtype; integers and booleans as they are.

    >>> import stretto.numpy as snp
    >>> cast({"n": snp.array([1]), "w": snp.ones(1)}, snp.bfloat16)
    {'n': Array([1], dtype=int32), 'w': Array([1], dtype=bfloat16)}
    """
    target = as_dtype(dtype)

    def one(leaf: Any) -> Any:
        x = as_value(leaf, "cast", "a leaf")
        return convert(x, target) if is_inexact(x.dtype) else x

    return map(one, tree)
