"""Pooling over windows of one size, and to a given size: the maximum, the mean, and power means.

Names, meanings and defaults are those of ``torch.nn.functional``. Maximum and mean over windows of
one size are one window reduction each. Where an output size is given, output o of m, over n
elements, has the window from floor(o n / m) to ceil((o + 1) n / m); where m divides n these tile
the axis, and are of one size. A ``Table`` gives, for each window along an axis, the indices of its
elements, and which of them count.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Literal, TypeAlias, overload

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import differs_by_example, without_elements
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import broadcast_to, of_rank, reduce_sum
from stretto._engine.ops.comparison import eq, full, full_like, gt, ne, where, zeros_like
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import power
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.reducing.reduce import ReduceMax, ReduceMin, greatest_below, widened
from stretto._engine.ops.reducing.window import PLAIN, AxisWindow, ReduceWindowMax, ReduceWindowSum
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.nn.functional.checks import add_batch_axis, as_float, drop_batch_axis, per_axis
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


_pool = described(
    {
        "input": "(batch, channels, length), or without the batch.",
        "kernel_size": "the size of a window, a number or one per axis, as are the settings\n"
        "        after it.",
        "stride": "the distance between windows; ``kernel_size`` by default.",
        "padding": "how many elements, which never win, to add at both ends; at most half a\n"
        "        window.",
        "dilation": "the distance between elements of a window.",
        "ceil_mode": "whether a last window may reach beyond the end.",
        "return_indices": "whether to return the indices of the maxima as well.",
        "count_include_pad": "whether the zeros of the padding count.",
        "norm_type": "the power.",
    },
    raises="ValueError: ``input`` has another rank, a setting is out of range, or no window fits.",
)
"""Complete the docstring of a function that pools."""


def _windows(
    caller: str,
    x: Array,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
) -> list[AxisWindow]:
    n = x.ndim - 2
    sizes = per_axis(kernel_size, n, caller, "kernel_size")
    strides = sizes if stride is None else per_axis(stride, n, caller, "stride")
    paddings = per_axis(padding, n, caller, "padding", 0)
    dilations = per_axis(dilation, n, caller, "dilation")
    windows = []
    for size, k, s, p, d in zip(x.shape[2:], sizes, strides, paddings, dilations, strict=True):
        if 2 * p > d * (k - 1) + 1:
            raise ValueError(
                f"{caller}: padding must be at most half of what a window spans, got padding "
                f"{paddings}, kernel_size {sizes}, dilation {dilations}"
            )
        window = window_of(size, k, s, p, d, ceil_mode)
        if not differs_by_example(size) and window.count(size) < 1:
            raise ValueError(
                f"{caller}: a window that spans {window.extent} does not fit an axis of {size} "
                f"with padding {p}: input {x.type}"
            )
        windows.append(window)
    return windows


# The greatest


def _max_pool(
    n: int,
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    dilation: int | Sequence[int],
    ceil_mode: bool,
    return_indices: bool,
) -> Tree:
    caller = f"max_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    windows = _windows(caller, x, kernel_size, stride, padding, dilation, ceil_mode)
    if not return_indices:
        return drop_batch_axis(ReduceWindowMax((PLAIN, PLAIN, *windows))(x), single)
    tables = [table_of(size, w) for size, w in zip(x.shape[2:], windows, strict=True)]
    values, indices = greatest_and_indices(x, tables)
    return drop_batch_axis(values, single), drop_batch_axis(indices, single)


@_pool
def max_pool1d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tree:
    """Take the maximum of each window of signals; the derivative goes to the first of equals.

    Args:
        kernel_size: the size of a window.

    Returns:
        (batch, channels, length), without the batch if the input is; with ``return_indices`` also
        the index of each in its channel, flattened, int32, of equals the first.

    As PyTorch's ``nn.functional.max_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.max_pool1d(snp.array([[1.0, 3.0, 2.0, 5.0, 4.0]]), 2)
    Array([[3., 5.]], dtype=float32)
    """
    return _max_pool(1, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_pool
def max_pool2d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tree:
    """Take the maximum of each window of images; the derivative goes to the first of equals.

    Args:
        input: (batch, channels, height, width), or without the batch.

    Returns:
        (batch, channels, height, width), without the batch if the input is; with ``return_indices``
        also the index of each in its channel, flattened, int32, of equals the first.

    As PyTorch's ``nn.functional.max_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.max_pool2d(snp.arange(16.0).reshape(1, 4, 4), 2)
    Array([[[ 5.,  7.],
            [13., 15.]]], dtype=float32)
    """
    return _max_pool(2, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


@_pool
def max_pool3d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tree:
    """Take the maximum of each window of volumes; the derivative goes to the first of equals.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; with
        ``return_indices`` also the index of each in its channel, flattened, int32, of equals the
        first.

    As PyTorch's ``nn.functional.max_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.max_pool3d(snp.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _max_pool(3, input, kernel_size, stride, padding, dilation, ceil_mode, return_indices)


# The mean


def _divisor(windows: list[AxisWindow], sizes: tuple[int, ...], count_padding: bool) -> Tree:
    """Return how many elements count in each window; one number where it is the same for all."""
    total: Tree = 1
    for axis, (w, n) in enumerate(zip(windows, sizes, strict=True)):
        if w.low == w.high and (count_padding or not w.low):  # no window reaches further
            total = total * w.size
            continue
        functions = snp if is_size(n) else np
        count = w.count(n)
        starts = functions.arange(count) * w.stride - w.low
        ends = functions.minimum(starts + w.size, n + w.low)  # beyond the padding nothing counts
        if not count_padding:
            starts, ends = functions.maximum(starts, 0), functions.minimum(ends, n)
        counts = ends - starts
        total = total * functions.reshape(counts, (count, *(1,) * (len(sizes) - 1 - axis)))
    return total


def _avg_pool(
    n: int,
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    padding: int | Sequence[int],
    ceil_mode: bool,
    count_include_pad: bool,
    divisor_override: int | None,
    kind: str = "avg",
) -> Array:
    caller = f"{kind}_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    x = as_float(x, caller)
    windows = _windows(caller, x, kernel_size, stride, padding, 1, ceil_mode)
    if divisor_override == 0:
        raise ValueError(f"{caller}: divisor_override must not be 0")
    divisor = divisor_override
    if divisor is None:
        divisor = of_rank(_divisor(windows, x.shape[2:], count_include_pad), x.ndim)
    total = ReduceWindowSum((PLAIN, PLAIN, *windows))(convert(x, widened(x.dtype)))
    total = total / convert(as_value(divisor), total.dtype)
    return drop_batch_axis(convert(total, x.dtype), single)


@_pool
def avg_pool1d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Array:
    """Take the mean of each window of signals.

    Args:
        kernel_size: the size of a window.
        padding: how many zeros to add at both ends; at most half a window.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.

    Returns:
        (batch, channels, length), without the batch if the input is; integers become floats.

    As PyTorch's ``nn.functional.avg_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.avg_pool1d(snp.array([[1.0, 3.0, 2.0, 6.0]]), 2)
    Array([[2., 4.]], dtype=float32)
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


@_pool
def avg_pool2d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Take the mean of each window of images.

    Args:
        input: (batch, channels, height, width), or without the batch.
        padding: how many zeros to add at both ends; at most half a window.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.
        divisor_override: what to divide sums by, in place of the number of elements.

    Returns:
        (batch, channels, height, width), without the batch if the input is; integers become floats.

    As PyTorch's ``nn.functional.avg_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.avg_pool2d(snp.arange(16.0).reshape(1, 4, 4), 2)
    Array([[[ 2.5,  4.5],
            [10.5, 12.5]]], dtype=float32)
    """
    return _avg_pool(
        2, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


@_pool
def avg_pool3d(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    padding: int | Sequence[int] = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Array:
    """Take the mean of each window of volumes.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.
        padding: how many zeros to add at both ends; at most half a window.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.
        divisor_override: what to divide sums by, in place of the number of elements.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; integers become
        floats.

    As PyTorch's ``nn.functional.avg_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.avg_pool3d(snp.ones((1, 2, 4, 4, 4)), 2).shape
    (1, 2, 2, 2, 2)
    """
    return _avg_pool(
        3, input, kernel_size, stride, padding, ceil_mode, count_include_pad, divisor_override
    )


# Power means, not divided


def _lp_pool(
    n: int,
    input: ArrayLike,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None,
    ceil_mode: bool,
) -> Array:
    caller = f"lp_pool{n}d"
    powers = power(as_float(input, caller), norm_type)
    mean = _avg_pool(n, powers, kernel_size, stride, 0, ceil_mode, True, None, "lp")
    size = math.prod(per_axis(kernel_size, n, caller, "kernel_size"))
    total = mean * size
    if norm_type <= 1:
        return power(total, 1 / norm_type)
    # The slope of the root is infinite at 0, where that of the powers is 0.
    none = snp.equal(total, 0)
    return snp.where(none, 0, power(snp.where(none, 1, total), 1 / norm_type))


@_pool
@rounded_once
def lp_pool1d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Array:
    """Take the root of the sum of powers in each window of signals.

    As in PyTorch, powers are of elements, not of their magnitudes, and a norm's derivative at 0 is
    0. A window that reaches beyond the end counts as if it were full of elements like those inside.

    Args:
        kernel_size: the size of a window.

    Returns:
        (batch, channels, length), without the batch if the input is; integers become floats.

    As PyTorch's ``nn.functional.lp_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.lp_pool1d(snp.array([[3.0, 4.0]]), 2.0, 2)
    Array([[5.]], dtype=float32)
    """
    return _lp_pool(1, input, norm_type, kernel_size, stride, ceil_mode)


@_pool
@rounded_once
def lp_pool2d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Array:
    """Take the root of the sum of powers in each window of images.

    As in PyTorch, powers are of elements, not of their magnitudes. A window that reaches beyond the
    end counts as if it were full of elements like those inside.

    Args:
        input: (batch, channels, height, width), or without the batch.

    Returns:
        (batch, channels, height, width), without the batch if the input is; integers become floats.

    As PyTorch's ``nn.functional.lp_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.lp_pool2d(snp.ones((1, 4, 4)), 2.0, 2)
    Array([[[2., 2.],
            [2., 2.]]], dtype=float32)
    """
    return _lp_pool(2, input, norm_type, kernel_size, stride, ceil_mode)


@_pool
@rounded_once
def lp_pool3d(
    input: ArrayLike,
    norm_type: float,
    kernel_size: int | Sequence[int],
    stride: int | Sequence[int] | None = None,
    ceil_mode: bool = False,
) -> Array:
    """Take the root of the sum of powers in each window of volumes.

    As in PyTorch, powers are of elements, not of their magnitudes. A window that reaches beyond the
    end counts as if it were full of elements like those inside.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; integers become
        floats.

    As PyTorch's ``nn.functional.lp_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.lp_pool3d(snp.ones((1, 2, 2, 2)), 3.0, 2)
    Array([[[[2.]]]], dtype=float32)
    """
    return _lp_pool(3, input, norm_type, kernel_size, stride, ceil_mode)


# To a given size: the window of each output is its share of the input


def _output_sizes(
    caller: str, x: Array, output_size: int | Sequence[int | None] | None
) -> tuple[int, ...]:
    """Return the output's spatial sizes; None keeps the input's."""
    spatial = x.shape[2:]
    n = len(spatial)
    wanted: Any = output_size if isinstance(output_size, (tuple, list)) else (output_size,) * n
    valid = all(
        size is None or (isinstance(size, (int, np.integer)) and size > 0) for size in wanted
    )
    if len(wanted) != n or not valid:
        raise ValueError(
            f"{caller}: output_size must be a positive integer, or {n} of them or None; got "
            f"{output_size!r}"
        )
    if any([without_elements(n, caller) for n in spatial]):
        raise ValueError(f"{caller}: input {x.type} has an empty spatial axis")
    return tuple(s if size is None else int(size) for s, size in zip(spatial, wanted, strict=True))


def _table_of_shares(n: int, m: int) -> Table:
    o = np.arange(m)
    starts, ends = o * n // m, -(-(o + 1) * n // m)
    index = starts[:, None] + np.arange((ends - starts).max())
    inside = index < ends[:, None]
    return np.minimum(index, ends[:, None] - 1).astype(np.int32), inside


def _adaptive_avg_pool(
    n: int, input: ArrayLike, output_size: int | Sequence[int | None] | None
) -> Array:
    caller = f"adaptive_avg_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    x = as_float(x, caller)
    sizes = _output_sizes(caller, x, output_size)
    out = convert(x, widened(x.dtype))
    # The mean over a product of windows is the mean of means, axis by axis.
    for axis, m in enumerate(sizes, 2):
        n = out.shape[axis]
        if is_size(n):
            mean = lambda part, axis=axis: reduce_sum(part, (axis,)) / part.shape[axis]
            out = _shares(out, axis, m, mean)
        elif n % m:
            out = _mean_along(out, axis, m)
    tiles = [(m, n // m) for n, m in zip(out.shape[2:], sizes)]
    out = reshape(out, (*x.shape[:2], *[size for tile in tiles for size in tile]))
    count = int(np.prod([k for _, k in tiles]))
    out = reduce_sum(out, tuple(range(3, out.ndim, 2))) / count
    return drop_batch_axis(convert(out, x.dtype), single)


def _shares(x: Array, axis: int, m: int, reduce: Callable[[Array], Array]) -> Array:
    """Return what ``reduce`` gives for each of ``m`` windows along an axis whose size varies."""
    n: Any = x.shape[axis]
    if is_size(m):  # that of the input
        return x
    bounds = [(o * n // m, -(-(o + 1) * n // m)) for o in range(m)]
    parts = [reduce(slice_in_dim(x, start, end, 1, axis)) for start, end in bounds]
    return concatenate([expand_dims(part, axis) for part in parts], axis)


def _mean_along(x: Array, axis: int, m: int) -> Array:
    """Return the means of ``m`` windows that do not tile the axis.

    A few long windows are summed one by one: the derivative of ``take`` is a scatter.
    """
    index, inside = _table_of_shares(x.shape[axis], m)
    after = (1,) * (x.ndim - axis - 1)
    if m <= index.shape[1]:
        shape = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
        sums = [reduce_sum(elements_of(x, axis, line), (axis,)) for line in index]
        total = concatenate([reshape(one, shape) for one in sums], axis)
    else:
        lines = take(x, index, axis, mode="clip")
        counted = as_value(inside.reshape(*inside.shape, *after))
        total = reduce_sum(where(counted, lines, zeros_like(lines)), (axis + 1,))
    return total / as_value(inside.sum(1).astype(total.dtype).reshape(*(1,) * axis, m, *after))


def _adaptive_max_pool(
    n: int, input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool
) -> Tree:
    caller = f"adaptive_max_pool{n}d"
    x, single = add_batch_axis(input, n, caller)
    sizes = _output_sizes(caller, x, output_size)
    if not return_indices:
        for axis, m in enumerate(sizes, 2):
            if is_size(x.shape[axis]):
                x = _shares(x, axis, m, ReduceMax((axis,)))
    pairs = [*zip(x.shape[2:], sizes, strict=True)]
    if not return_indices and all(n % m == 0 for n, m in pairs):
        windows = [AxisWindow(n // m, n // m) for n, m in pairs]
        return drop_batch_axis(ReduceWindowMax((PLAIN, PLAIN, *windows))(x), single)
    values, indices = greatest_and_indices(x, [_table_of_shares(n, m) for n, m in pairs])
    if not return_indices:
        return drop_batch_axis(values, single)
    return drop_batch_axis(values, single), drop_batch_axis(indices, single)


def adaptive_avg_pool1d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of signals.

    Args:
        input: (batch, channels, length), or without the batch.
        output_size: the number of windows; None keeps the input's size.

    Returns:
        (batch, channels, length), without the batch if the input is; integers become floats.

    Raises:
        ValueError: ``input`` has another rank or an empty axis, or a size is not positive.

    As PyTorch's ``nn.functional.adaptive_avg_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool1d(snp.array([[1.0, 2.0, 3.0]]), 2)
    Array([[1.5, 2.5]], dtype=float32)
    """
    return _adaptive_avg_pool(1, input, output_size)


def adaptive_avg_pool2d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of images.

    Args:
        input: (batch, channels, height, width), or without the batch.
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.

    Returns:
        (batch, channels, height, width), without the batch if the input is; integers become floats.

    Raises:
        ValueError: ``input`` has another rank or an empty axis, or a size is not positive.

    As PyTorch's ``nn.functional.adaptive_avg_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool2d(snp.ones((2, 16, 7, 5)), (1, None)).shape
    (2, 16, 1, 5)
    """
    return _adaptive_avg_pool(2, input, output_size)


@described_like(adaptive_avg_pool2d)
def adaptive_avg_pool3d(input: ArrayLike, output_size: int | Sequence[int | None] | None) -> Array:
    """Take the mean of each of a given number of windows of volumes.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; integers become
        floats.

    As PyTorch's ``nn.functional.adaptive_avg_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_avg_pool3d(snp.ones((2, 16, 4, 7, 5)), 2).shape
    (2, 16, 2, 2, 2)
    """
    return _adaptive_avg_pool(3, input, output_size)


@overload
def adaptive_max_pool1d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool1d)
def adaptive_max_pool1d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of signals.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, length), without the batch if the input is; with ``return_indices`` also
        the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool1d(snp.array([[1.0, 2.0, 3.0]]), 2)
    Array([[2., 3.]], dtype=float32)
    """
    return _adaptive_max_pool(1, input, output_size, return_indices)


@overload
def adaptive_max_pool2d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool2d)
def adaptive_max_pool2d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of images.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, height, width), without the batch if the input is; with ``return_indices``
        also the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool2d(snp.ones((2, 16, 7, 5)), (3, None)).shape
    (2, 16, 3, 5)
    """
    return _adaptive_max_pool(2, input, output_size, return_indices)


@overload
def adaptive_max_pool3d(
    input: ArrayLike,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Array: ...
@overload
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: Literal[True]
) -> tuple[Array, Array]: ...
@overload
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree: ...
@described_like(adaptive_avg_pool3d)
def adaptive_max_pool3d(
    input: ArrayLike, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tree:
    """Take the maximum of each of a given number of windows of volumes.

    Args:
        return_indices: whether to return the indices of the maxima as well.

    Returns:
        (batch, channels, depth, height, width), without the batch if the input is; with
        ``return_indices`` also the index of each in its channel, flattened, int32.

    As PyTorch's ``nn.functional.adaptive_max_pool3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.adaptive_max_pool3d(snp.ones((2, 16, 4, 7, 5)), 2).shape
    (2, 16, 2, 2, 2)
    """
    return _adaptive_max_pool(3, input, output_size, return_indices)
