"""Where the windows of a pool lie, and the greatest element of each window with its index.

``pooling`` has windows of one size, ``adaptive`` windows of differing sizes. A ``Table`` gives, for
each window along an axis, the indices of its elements, and which of them count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, gt, ne, where
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin, greatest_below
from stretto._engine.ops.reducing.window import AxisWindow
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.numpy.taking import take

Table: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Indices (windows, elements), and whether each element counts; any index for one that does not.

In a window indices are evenly spaced.
"""


_INDEX = np.dtype(np.int32)


def window_of(n: int, k: int, stride: int, padding: int, dilation: int, ceil: bool) -> AxisWindow:
    """Return windows over ``n`` elements; with ``ceil`` the last may reach over the padding's end.

    A window that would begin in the padding at the end is left out. ``count`` of the result is 0
    where none fits.
    """
    extent = dilation * (k - 1) + 1
    high = padding
    if ceil:
        count = -(-(n + 2 * padding - extent) // stride) + 1
        if (count - 1) * stride >= n + padding:
            count -= 1
        high = max(high, (count - 1) * stride + extent - n - padding)
    return AxisWindow(k, stride, padding, high, 1, dilation)


def table_of(n: int, window: AxisWindow) -> Table:
    """Return the indices of the elements of each window over ``n`` elements."""
    w = window
    starts = np.arange(w.count(n))[:, None] * w.stride - w.low
    index = starts + np.arange(w.size) * w.dilation
    inside = (index >= 0) & (index < n)
    return np.clip(index, 0, max(n - 1, 0)).astype(np.int32), inside


def greatest_and_indices(x: Array, tables: Sequence[Table]) -> tuple[Array, Array]:
    """Return each window's greatest element, and its index in the flattened spatial axes, int32.

    Among equals the first counts; NaN is the greatest. The derivative goes to that element.
    """
    n, sizes = len(tables), x.shape[2:]
    # Axis by axis from the last: among equals the first row counts, and in it the first column.
    best, indices = x, full((), 0, _INDEX)
    for d in reversed(range(n)):
        step = math.prod(sizes[d + 1 :])
        here = np.arange(sizes[d], dtype=_INDEX).reshape(*(1,) * (2 + d), -1, *(1,) * (n - 1 - d))
        indices = broadcast_to(indices + as_value(here * step), best.shape)
        best, indices = _best_along(best, indices, 2 + d, *tables[d])
    # A window in the padding alone has its first element's index.
    starts, inside = np.zeros((1,) * (2 + n), np.int64), np.ones((1,) * (2 + n), np.bool_)
    for d, (index, there) in enumerate(tables):
        shape = [1, 1, *[len(index) if e == d else 1 for e in range(n)]]
        starts = starts + index[:, 0].reshape(shape) * math.prod(sizes[d + 1 :])
        inside = inside & there.any(1).reshape(shape)
    if not inside.all():
        indices = where(as_value(inside), indices, as_value(starts.astype(_INDEX)))
    flat = reshape(x, (*x.shape[:2], math.prod(sizes)))
    at = reshape(indices, (*x.shape[:2], math.prod(indices.shape[2:])))
    values = reshape(take_along_axis(flat, at, -1), indices.shape)
    if not inside.all():
        values = where(as_value(inside), values, full_like(values, greatest_below(x.dtype)))
    return values, indices


def _best_along(
    x: Array, indices: Array, axis: int, index: np.ndarray, inside: np.ndarray
) -> tuple[Array, Array]:
    """Return the greatest element of each window along an axis, and the index of the first such.

    A few long windows are reduced one by one; of many short ones the first elements are compared
    with the second ones, and so on.
    """
    # An element that does not count is one that does, again.
    first = np.take_along_axis(index, inside.argmax(1)[:, None], 1)
    index = np.where(inside, index, first)
    count, size = index.shape
    if not 0 < count <= size:
        best, at = (take(v, index[:, 0], axis, mode="clip") for v in (x, indices))
        for column in index.T[1:]:
            other, there = (take(v, column, axis, mode="clip") for v in (x, indices))
            better = gt(other, best)
            if is_inexact(x.dtype):
                better = better | (ne(other, other) & eq(best, best))
            best, at = where(better, other, best), where(better, there, at)
        return best, at
    found = [
        _best(elements_of(x, axis, line), elements_of(indices, axis, line), axis) for line in index
    ]
    return concatenate([v for v, _ in found], axis), concatenate([at for _, at in found], axis)


def elements_of(x: Array, axis: int, index: np.ndarray) -> Array:
    """Return the elements of one window, in order, each once."""
    index = np.unique(index)
    step = int(index[1] - index[0]) if index.size > 1 else 1
    return slice_in_dim(x, int(index[0]), int(index[-1]) + 1, step, axis)


def _best(x: Array, indices: Array, axis: int) -> tuple[Array, Array]:
    """Return the greatest element along an axis, and the least index of such."""
    shape = tuple(1 if d == axis else size for d, size in enumerate(x.shape))
    best = reshape(ReduceMax((axis,))(x), shape)
    there = eq(x, broadcast_to(best, x.shape))
    if is_inexact(x.dtype):
        there = there | ne(x, x)
    at = ReduceMin((axis,))(where(there, indices, np.iinfo(_INDEX).max))
    return best, reshape(at, shape)
