"""Where the windows of a pool lie, and the greatest element of each window with its place.

``pooling`` has windows of one size, ``adaptive`` windows of differing sizes. A ``Table`` gives, for
each window along an axis, the indices of its elements, and which of them count.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array
from stretto._engine.ops.comparison import full_like, where
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.layout import expand_dims, reshape, squeeze, transpose
from stretto._engine.ops.reducing.places import argmax
from stretto._engine.ops.reducing.reduce import greatest_below
from stretto._engine.ops.reducing.window_geometry import AxisWindow
from stretto.numpy.taking import take

__all__ = ["Table", "greatest_and_places", "table_of", "window_of"]

Table: TypeAlias = tuple[np.ndarray, np.ndarray]
"""Indices (windows, elements), and whether each element counts; any index for one that does not."""


def window_of(n: int, k: int, stride: int, padding: int, dilation: int, ceil: bool) -> AxisWindow:
    """The windows over ``n`` elements; with ``ceil`` the last may reach over the padding's end.

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
    """The indices of the elements of each window over ``n`` elements."""
    w = window
    starts = np.arange(w.count(n))[:, None] * w.stride - w.low
    index = starts + np.arange(w.size) * w.dilation
    inside = (index >= 0) & (index < n)
    return np.clip(index, 0, max(n - 1, 0)).astype(np.int32), inside


def greatest_and_places(x: Array, tables: Sequence[Table]) -> tuple[Array, Array]:
    """The greatest element of each window, and its index in the flattened spatial axes, int32.

    Among equals the first counts; NaN is the greatest.
    """
    n, sizes = len(tables), x.shape[2:]
    flat, counted = np.zeros((1,) * 2 * n, np.int64), np.ones((1,) * 2 * n, np.bool_)
    for d, (index, inside) in enumerate(tables):
        shape = [1] * 2 * n
        shape[d], shape[n + d] = index.shape
        flat = flat + index.reshape(shape) * math.prod(sizes[d + 1 :])
        counted = counted & inside.reshape(shape)
    windows = flat.shape[:n]
    flat, counted = (t.reshape(*windows, -1) for t in (flat, counted))
    # Where nothing exceeds the padding, its place is that of the window's first element.
    first = np.take_along_axis(flat, counted.argmax(-1)[..., None], -1)
    flat = np.where(counted, flat, first).astype(np.int32)

    lines = x
    for d, (index, _) in enumerate(tables):
        lines = take(lines, index, 2 + 2 * d, mode="clip")
    apart = (0, 1, *range(2, 2 + 2 * n, 2), *range(3, 3 + 2 * n, 2))
    lines = reshape(transpose(lines, apart), (*x.shape[:2], *windows, flat.shape[-1]))
    lines = where(as_value(counted), lines, full_like(lines, greatest_below(x.dtype)))
    at = expand_dims(argmax(lines, lines.ndim - 1), (lines.ndim - 1,))
    values = squeeze(take_along_axis(lines, at, -1), (lines.ndim - 1,))
    places = take_along_axis(as_value(flat[None, None]), at, -1)
    return values, squeeze(places, (lines.ndim - 1,))
