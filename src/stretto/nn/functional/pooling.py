"""Pooling over windows of one size: the maximum, the mean, and power means.

Names, meanings and defaults are those of ``torch.nn.functional``. Maximum and mean are one window
reduction each.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import differs_by_example
from stretto._engine.core.sizes import is_size
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import power
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.reducing.window import PLAIN, AxisWindow, ReduceWindowMax, ReduceWindowSum
from stretto.nn.functional.checks import add_batch_axis, as_float, drop_batch_axis, per_axis
from stretto.nn.functional.windows import greatest_and_indices, table_of, window_of

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
                f"{caller}: padding must be at most half of what a window spans, got "
                "padding "
                f"{paddings}, kernel_size {sizes}, dilation {dilations}"
            )
        window = window_of(size, k, s, p, d, ceil_mode)
        if not differs_by_example(size) and window.count(size) < 1:
            raise ValueError(
                f"{caller}: a window that spans {window.extent} does not fit an axis of "
                f"{size} "
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
