"""Products by kernels of our own: whether one can be, and how its operands lie in memory.

A kernel sees a product as C[b, m, n] = sum over k of A[b, m, k] B[b, k, n], each axis with its
stride in every array (``kernels/product.h``). So transposes and broadcasts in front of a product
are strides, and nothing is moved for them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple, TypeAlias, TypeVar

import numpy as np

TARGET = "stretto_product"
"""The name of the kernel."""

WORTH = (1 << 12) + 1
"""The multiply-adds of a pair of matrices from which a kernel is called, however many pairs there
are, so that members are computed alike on one device and on several. Fewer are XLA's, which may
make them part of other kernels, and of loops that are one (``xla/options``)."""

_NARROW_WORK, _NARROW_DEPTH, _NARROW_SIDE = 1 << 18, 32, 8
"""The multiply-adds, terms of a sum, and rows and columns from which integers narrower than 32 bits
are a kernel's. XLA adds those up in as many bits, with vectors, where its loops are small: 32³ of
int8 took it 0.6 of the kernel's time, 64³ 17 times as long."""

_FLAT = 64
"""The fewest terms of a sum times rows or columns, for results of 32 bits: 100,000 x 2 times 2 x 8
took the kernel 3 times as long as XLA, and 1,000 x 4 times 4 x 1,000 a fifth."""

_BATCH_AXES = 3

AxisPairs: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]


class View(NamedTuple):
    """How an operand lies in the memory of another: its shape, and strides in elements."""

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    offset: int = 0
    """Where its first element lies: not in front where it is reversed."""


def row_major(shape: Sequence[int]) -> View:
    """Return the view of an array that lies row by row.

    >>> row_major((2, 3, 4)).strides
    (12, 4, 1)
    """
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return View(tuple(shape), tuple(strides))


class _Axis(NamedTuple):
    """An axis of a product: its size, and its strides in operands, result and what is added."""

    size: int
    x: int
    y: int
    out: int
    added: int = 0


Axis = TypeVar("Axis", bound=tuple[int, ...])


def merged(axes: Sequence[Axis]) -> list[Axis]:
    """Return the axes with as many as possible joined, and without those of one element.

    Each is a size and strides; two that follow each other are one if they lie so everywhere.
    """
    found: list[Axis] = []
    for axis in axes:
        size, *strides = axis
        if size == 1:
            continue
        if found and list(found[-1][1:]) == [stride * size for stride in strides]:
            make: Any = type(axis)
            axis = make(found.pop()[0] * size, *strides)
        found.append(axis)
    return found


class Geometry(NamedTuple):
    """A product as a kernel sees it."""

    swapped: bool
    """Says whether the second operand is A."""
    numbers: tuple[int, ...]
    """What is passed to the kernel, in the order that it expects."""
    work: int
    """Multiply-adds of one pair of matrices: a member is computed alike, however many there are."""

    def is_quicker(self, x: np.dtype, out: np.dtype) -> bool:
        """Say whether a kernel is quicker than XLA at products of such operands and results."""
        if out.kind not in "iu":
            return self.work >= WORTH
        m, n, k = self.numbers[:3]
        least = min(m, n)
        if out.itemsize < 4:
            deep = k >= _NARROW_DEPTH and least >= _NARROW_SIDE
            return deep and self.work >= _NARROW_WORK
        if x.itemsize == 4 and least == 1:
            return False  # XLA takes 0.5 to 1 of the time, since words are no fewer
        return self.work >= WORTH and least * k >= _FLAT


def geometry(
    x: View,
    y: View,
    summed: AxisPairs,
    shared: AxisPairs,
    order: Sequence[int] | None = None,
    added: View | None = None,
    relu: bool = False,
) -> Geometry | None:
    """Return what a kernel needs to know of a product; None if XLA is to compute it.

    That is where its axes lie otherwise, where nothing is summed, and where rows and columns are
    one each.

    Args:
        x: how the first operand lies.
        y: how the second operand lies.
        summed: the axes of each operand that are multiplied and summed, in pairs.
        shared: the axes that the operands share, in pairs.
        order: which axis of the product each axis of the result is; in order if it is None.
        added: how what is added to the result lies, if anything is.
        relu: whether the result is cut off at zero.
    """
    free_x = [a for a in range(len(x.shape)) if a not in (*summed[0], *shared[0])]
    free_y = [a for a in range(len(y.shape)) if a not in (*summed[1], *shared[1])]
    outer = [(x.shape[a], x.strides[a], y.strides[c]) for a, c in zip(*shared, strict=True)]
    outer += [(x.shape[a], x.strides[a], 0) for a in free_x]
    outer += [(y.shape[a], 0, y.strides[a]) for a in free_y]
    if order is not None:
        outer = [outer[axis] for axis in order]
    out = row_major([size for size, *_ in outer])
    depth = [_Axis(x.shape[a], x.strides[a], y.strides[c], 0) for a, c in zip(*summed, strict=True)]
    is_empty = not math.prod(out.shape) * math.prod([axis.size for axis in depth])
    depth = merged(sorted(depth, key=lambda axis: -axis.x))
    if is_empty or len(depth) > 1:
        return None
    beside = (0,) * len(outer) if added is None else added.strides
    strides = zip(outer, out.strides, beside, strict=True)
    axes = merged([_Axis(*axis, s, a) for axis, s, a in strides])
    one = _Axis(1, 0, 0, 0)
    k = depth[0] if depth else one
    # The columns of the result lie side by side. B is the operand that has them.
    n = axes.pop() if axes and not (axes[-1].x and axes[-1].y) else one
    swapped = bool(n.x)
    rows = [axis for axis in axes if (axis.x if swapped else axis.y) == 0]
    m = max(rows, key=lambda axis: axis.size, default=one)
    if rows:
        axes.remove(m)
    if k.size == 1 or m.size == n.size == 1:
        return None  # XLA makes element-wise work of it, with what comes before and after
    if len(axes) > _BATCH_AXES or (added is not None and n.size > 1 and n.added != 1):
        return None
    axes = [*[one] * (_BATCH_AXES - len(axes)), *axes]
    if swapped:  # exchange the operands' strides
        m, n, k, *axes = [axis._replace(x=axis.y, y=axis.x) for axis in (m, n, k, *axes)]
    numbers = [m.size, n.size, k.size, *[axis.size for axis in axes]]
    numbers += [axis.x for axis in axes] + [axis.y for axis in axes]
    numbers += [axis.out for axis in axes] + [axis.added for axis in axes]
    numbers += [m.x, k.x, k.y, n.y if n.size > 1 else 1, m.out, m.added, int(relu)]
    return Geometry(swapped, tuple(numbers), m.size * n.size * k.size)
