"""Follow axes through views, broadcasts and products, from results to operands and back.

An axis of an array is a list of what it consists of, so that axes which a reshape joins are still
known behind it, and what one splits is in parts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.program import Equation
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.identities import OptimizationBarrier
from stretto._engine.ops.layout import Reshape, Transpose


class Axis:
    """An axis, or a part of one: reshapes may split it."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.parts: tuple[Axis, ...] = ()

    def leaves(self) -> list[Axis]:
        """Return its parts, of which none has parts; itself if it has none."""
        return [leaf for part in self.parts for leaf in part.leaves()] if self.parts else [self]


Dims = list[list[Axis]]
"""For each axis of an array, what it consists of, without what has size 1."""


class Unlike(Exception):
    """What is looked at is not what is looked for."""


def demand(holds: object) -> None:
    """Raise ``Unlike`` unless this holds."""
    if not holds:
        raise Unlike


def leaves_of(dims: Dims) -> list[Axis]:
    """Return all that an array's axes consist of, in order."""
    return [leaf for group in dims for axis in group for leaf in axis.leaves()]


def fresh(shape: Sequence[int]) -> Dims:
    """Return new axes for a shape."""
    return [[Axis(n)] if n != 1 else [] for n in shape]


def regrouped(dims: Dims, shape: Sequence[int], may_split: bool = True) -> Dims:
    """Return the axes of an array with its elements, in order, in another shape."""
    flat = leaves_of(dims)
    found: Dims = []
    for size in shape:
        group: list[Axis] = []
        while size > 1:
            demand(flat)
            leaf = flat.pop(0)
            if size % leaf.size == 0:
                size //= leaf.size
            else:
                demand(may_split and leaf.size % size == 0)
                leaf.parts = (Axis(size), Axis(leaf.size // size))
                leaf, rest = leaf.parts
                flat.insert(0, rest)
                size = 1
            group.append(leaf)
        found.append(group)
    demand(not flat)
    return found


def is_view(e: Equation) -> bool:
    """Say whether an operation has the elements of its operand in another order or shape."""
    primitive = e.primitive
    kept = primitive.same or isinstance(primitive, OptimizationBarrier)
    return len(e.inputs) == 1 and (kept or isinstance(primitive, (Reshape, Transpose)))


def is_repeated(e: Equation) -> bool:
    """Say whether it is a view, or a broadcast."""
    return is_view(e) or isinstance(e.primitive, BroadcastInDim)


def of_operand(e: Equation, dims: Dims) -> Dims:
    """Return the axes of the operand of a view or a broadcast."""
    primitive: Any = e.primitive
    shape = e.inputs[0].type.shape
    if isinstance(primitive, Transpose):
        found: Dims = [[] for _ in shape]
        for axis, group in zip(primitive.permutation, dims, strict=True):
            found[axis] = group
        return found
    if isinstance(primitive, Reshape):
        return regrouped(dims, shape)
    if isinstance(primitive, BroadcastInDim):
        return [dims[axis] if n != 1 else [] for n, axis in zip(shape, primitive.dims, strict=True)]
    return dims


def of_result(e: Equation, dims: Dims, may_split: bool = False) -> Dims:
    """Return the axes of what a view makes of its operand."""
    primitive: Any = e.primitive
    if isinstance(primitive, Transpose):
        return [dims[axis] for axis in primitive.permutation]
    if isinstance(primitive, Reshape):
        return regrouped(dims, primitive.shape, may_split)
    return dims


def product_axes(
    e: Equation, out: Dims | None = None, x: Dims | None = None, y: Dims | None = None
) -> tuple[Dims, Dims, Dims, list[Axis]]:
    """Return the axes of a product's operands and its result, and those that it sums over.

    They are known of the result or of an operand.
    """
    primitive: Any = e.primitive
    operands = [a.type.shape for a in e.inputs]
    (summed, shared), rank = (primitive.summed, primitive.shared), e.outputs[0].type.ndim
    free = primitive.free_of(*[len(shape) for shape in operands])
    places = [[*shared[i], *free[i]] for i in range(2)]  # the axes that are in the result
    where = [
        [*range(len(shared[0])), *range(len(shared[0]), len(shared[0]) + len(free[0]))],
        [*range(len(shared[0])), *range(rank - len(free[1]), rank)],
    ]
    dims: Any = [x, y]
    if out is None:
        out = [[] for _ in range(rank)]
        for i in range(2):
            for axis, at in zip(places[i], where[i], strict=True) if dims[i] is not None else ():
                out[at] = dims[i][axis]
        missing = 1 if y is None else 0
        for axis, at in zip(places[missing], where[missing], strict=True):
            if axis in free[missing]:
                out[at] = fresh([operands[missing][axis]])[0]
    sums: list[Any] = []
    for i, j in zip(*summed, strict=True):
        known = dims[0][i] if dims[0] is not None else dims[1][j] if dims[1] is not None else None
        sums.append(fresh([operands[0][i]])[0] if known is None else known)
    for i in range(2):
        if dims[i] is None:
            dims[i] = [[] for _ in operands[i]]
            for axis, at in zip(places[i], where[i], strict=True):
                dims[i][axis] = out[at]
            for axis, group in zip(summed[i], sums, strict=True):
                dims[i][axis] = group
    return dims[0], dims[1], out, [axis for group in sums for axis in group]


def other_side(e: Equation, atom: Any, dims: Dims) -> tuple[Any, Dims, Dims, list[Axis]]:
    """Return what a product multiplies an array by: it, its axes, the result's, and the sums."""
    if e.inputs[0] is atom:
        _, other, out, sums = product_axes(e, x=dims)
        return e.inputs[1], other, out, sums
    other, _, out, sums = product_axes(e, y=dims)
    return e.inputs[0], other, out, sums


def sides(e: Equation, dims: Dims, key: Axis) -> tuple[Any, Any, Axis]:
    """Return the sides of a product of rows and keys, each with its axes, and what it sums over."""
    x, y, _, sums = product_axes(e, out=dims)
    demand(len(sums) == 1)
    rows, keys = zip(e.inputs, (x, y), strict=True)
    return (keys, rows, sums[0]) if key in leaves_of(x) else (rows, keys, sums[0])
