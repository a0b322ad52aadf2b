"""Normalization: over batches, layers, groups, instances, channels and vectors.

Names, meanings and defaults are those of ``torch.nn.functional``. Statistics of narrow floats are
taken in float32. Arrays never change, so running statistics are not updated here:
``batch_statistics`` gives their parts, and the modules keep them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from ml_dtypes import finfo

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DType
from stretto._engine.ops.broadcast import of_rank, reduce_sum
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import power, rsqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.reducing.window import PLAIN, AxisWindow, ReduceWindowSum
from stretto.nn.functional.checks import as_float, explains_keywords, numbers, per_axis
from stretto.numpy.linalg.systems import vector_norm
from stretto.numpy.statistics import mean_about_first


def _mean(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the mean over the axes, which stay with size 1."""
    shape = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return reshape(reduce_sum(x, axes), shape) / math.prod(x.shape[d] for d in axes)


def _moments(x: Array, axes: tuple[int, ...]) -> tuple[Array, Array]:
    """Return differences from the mean, and the variance, over the axes, which stay with size 1."""
    centered = x - mean_about_first(x, axes)
    return centered, _mean(centered * centered, axes)


def _lay_along(
    caller: str, name: str, param: ArrayLike | None, shape: tuple[int, ...], x: Array, axis: int
) -> Array | None:
    """Lay the argument, of ``shape``, along the axes of ``x`` from ``axis`` on; None stays None."""
    if param is None:
        return None
    value = as_value(param, caller, name)
    if value.shape != shape:
        raise ValueError(
            f"{caller}: {name} must have shape {shape} for input {x.type}, got {value.type}"
        )
    after = (1,) * (x.ndim - axis - len(shape))
    return of_rank(reshape(value, (*shape, *after)), x.ndim)


def _scale_and_shift(x: Array, factor: Array | None, bias: Array | None, dtype: DType) -> Array:
    """Return ``x * factor + bias``, in the dtype of the input."""
    x = x if factor is None else x * factor
    return convert(x if bias is None else x + bias, dtype)


# Over batches and instances


def _check_channels(caller: str, input: ArrayLike) -> Array:
    x = as_float(input, caller)
    if x.ndim < 2:
        raise ValueError(f"{caller}: input must be (batch, channels, ...), got {x.type}")
    return x


def _check_count(caller: str, x: Array, axes: tuple[int, ...]) -> None:
    if math.prod(x.shape[d] for d in axes) == 1:
        raise ValueError(
            f"{caller}: expected more than 1 value for each channel when training, got input "
            f"{x.type}"
        )


def batch_statistics(input: ArrayLike) -> tuple[Array, Array]:
    """Find the mean and the (biased) variance of each channel.

    Running statistics, as PyTorch keeps them, are weighted means of these, the variance times n /
    (n - 1) for n values per channel.

    Args:
        input: (batch, channels, ...).

    Returns:
        The means and the variances, each (channels,), float32 for narrower floats.

    Raises:
        ValueError: ``input`` has fewer than two axes.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.batch_statistics(snp.array([[1.0, 5.0], [3.0, 5.0]]))
    (Array([2., 5.], dtype=float32), Array([1., 0.], dtype=float32))
    """
    x = _check_channels("batch_statistics", input)
    axes = (0, *range(2, x.ndim))
    wide = convert(x, widened(x.dtype))
    mean = mean_about_first(wide, axes)
    centered = wide - mean
    return reshape(mean, (x.shape[1],)), reshape(_mean(centered * centered, axes), (x.shape[1],))


@explains_keywords
def batch_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None,
    running_var: ArrayLike | None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    training: bool = False,
    *,
    eps: float = 1e-5,
) -> Array:
    """Normalize each channel over the batch, then scale and shift it.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias``.

    Args:
        input: (batch, channels, ...).
        running_mean: the means used unless ``training``, (channels,); never changed (see
            ``batch_statistics``).
        running_var: the variances, likewise.
        weight: a factor for each channel, (channels,).
        bias: a summand for each channel, (channels,).
        training: whether mean and variance are those of the input, whose gradient then counts.
        eps: what is added to the variance.

    Returns:
        The shape of ``input``, in its dtype; integers become floats.

    Raises:
        ValueError: shapes do not fit, statistics are missing, or there is one value per channel in
            training.

    As PyTorch's ``nn.functional.batch_norm``. Source: Ioffe and Szegedy, Batch Normalization, 2015.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> x = snp.array([[1.0, 5.0], [3.0, 5.0]])
    >>> F.batch_norm(x, None, None, training=True).round(3)
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    >>> F.batch_norm(x, snp.array([1.0, 0.0]), snp.array([4.0, 1.0])).round(2)
    Array([[0., 5.],
           [1., 5.]], dtype=float32)
    """
    x = _check_channels("batch_norm", input)
    axes = (0, *range(2, x.ndim)) if training else None
    running = _given_statistics("batch_norm", running_mean, running_var, axes, "training=True")
    return _by_channels("batch_norm", x, axes, running, weight, bias, eps)


def _given_statistics(
    caller: str,
    mean: ArrayLike | None,
    variance: ArrayLike | None,
    axes: tuple[int, ...] | None,
    way: str,
) -> tuple[ArrayLike | None, ArrayLike | None]:
    """Return the running statistics; raises ``ValueError`` where they are needed and missing."""
    if axes is None and (mean is None or variance is None):
        raise ValueError(f"{caller}: give running_mean and running_var, or {way}")
    return mean, variance


def _by_channels(
    caller: str,
    x: Array,
    axes: tuple[int, ...] | None,
    running: tuple[ArrayLike | None, ArrayLike | None],
    weight: ArrayLike | None,
    bias: ArrayLike | None,
    eps: float,
) -> Array:
    """Normalize each channel by its statistics over the axes, or by the running without axes."""
    laid: Any = (
        _lay_along(caller, name, value, (x.shape[1],), x, 1)
        for name, value in (
            ("weight", weight),
            ("bias", bias),
            ("running_mean", None if axes else running[0]),
            ("running_var", None if axes else running[1]),
        )
    )
    factor, shift, mean, variance = laid
    wide = convert(x, widened(x.dtype))
    if axes is None:
        centered = wide - mean
    else:
        _check_count(caller, x, axes)
        centered, variance = _moments(wide, axes)
    root = rsqrt(variance + eps)
    return _scale_and_shift(
        centered * (root if factor is None else root * factor), None, shift, x.dtype
    )


@explains_keywords
@described_like(batch_norm)
def instance_norm(
    input: ArrayLike,
    running_mean: ArrayLike | None = None,
    running_var: ArrayLike | None = None,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    use_input_stats: bool = True,
    *,
    eps: float = 1e-5,
) -> Array:
    """Normalize each channel of each example by itself, then scale and shift it.

    Args:
        running_mean: the means used without ``use_input_stats``, (channels,); never changed.
        use_input_stats: whether mean and variance are those of the input.

    Raises:
        ValueError: shapes do not fit, statistics are missing, or there is one value per channel.

    As PyTorch's ``nn.functional.instance_norm``. Source: Ulyanov et al., Instance Normalization,
    2016.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.instance_norm(snp.array([[[1.0, 3.0]], [[10.0, 30.0]]])).round(3)
    Array([[[-1.,  1.]],
    <BLANKLINE>
           [[-1.,  1.]]], dtype=float32)
    """
    x = _check_channels("instance_norm", input)
    axes = tuple(range(2, x.ndim)) if use_input_stats else None
    way = "use_input_stats=True"
    running = _given_statistics("instance_norm", running_mean, running_var, axes, way)
    return _by_channels("instance_norm", x, axes, running, weight, bias, eps)


# Over the features of each example


def _last_axes(
    caller: str, x: Array, normalized_shape: int | Sequence[int]
) -> tuple[tuple[int, ...], Any]:
    shape = numbers(normalized_shape, caller, "normalized_shape")
    start = x.ndim - len(shape)
    if not shape or start < 0 or x.shape[start:] != shape:
        raise ValueError(
            f"{caller}: the last axes of input must be normalized_shape {shape}, got {x.type}"
        )
    return shape, tuple(range(start, x.ndim))


@explains_keywords
def layer_norm(
    input: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalize the last axes to mean 0 and variance 1, then scale and shift.

    Args:
        input: an array whose last axes are ``normalized_shape``.
        normalized_shape: the shape of those axes.
        weight: factors, of shape ``normalized_shape``.
        bias: summands, of shape ``normalized_shape``.
        eps: what is added to the variance.

    Returns:
        The shape of ``input``, in its dtype; integers become floats.

    Raises:
        ValueError: shapes do not fit.

    As PyTorch's ``nn.functional.layer_norm``. Source: Ba et al., Layer Normalization, 2016.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.layer_norm(snp.array([[1.0, 3.0], [0.0, 8.0]]), 2).round(3)
    Array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """
    caller = "layer_norm"
    x = as_float(input, caller)
    shape, axes = _last_axes(caller, x, normalized_shape)
    factor, shift = (
        _lay_along(caller, name, value, shape, x, axes[0])
        for name, value in (("weight", weight), ("bias", bias))
    )
    centered, variance = _moments(convert(x, widened(x.dtype)), axes)
    return _scale_and_shift(centered * rsqrt(variance + eps), factor, shift, x.dtype)


@explains_keywords
@described_like(layer_norm)
def rms_norm(
    input: ArrayLike,
    normalized_shape: int | Sequence[int],
    weight: ArrayLike | None = None,
    eps: float | None = None,
) -> Array:
    """Divide by the root mean square over the last axes, then scale.

    The output is ``input / sqrt(mean(input²) + eps) * weight``.

    Args:
        eps: what is added to the mean; by default the precision of the dtype in which it is taken.

    As PyTorch's ``nn.functional.rms_norm``. Source: Zhang and Sennrich, Root Mean Square Layer
    Normalization, 2019.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.rms_norm(snp.array([[3.0, 4.0]]), 2).round(3)
    Array([[0.849, 1.131]], dtype=float32)
    """
    caller = "rms_norm"
    x = as_float(input, caller)
    shape, axes = _last_axes(caller, x, normalized_shape)
    factor = _lay_along(caller, "weight", weight, shape, x, axes[0])
    wide = convert(x, widened(x.dtype))
    if eps is None:
        eps = float(finfo(wide.dtype).eps)
    return _scale_and_shift(wide * rsqrt(_mean(wide * wide, axes) + eps), factor, None, x.dtype)


@explains_keywords
@described_like(batch_norm)
def group_norm(
    input: ArrayLike,
    num_groups: int,
    weight: ArrayLike | None = None,
    bias: ArrayLike | None = None,
    eps: float = 1e-5,
) -> Array:
    """Normalize each example's channels in groups, then scale and shift each channel.

    Args:
        num_groups: the number of groups, which divides the channels.

    Raises:
        ValueError: shapes do not fit, or the groups do not divide the channels.

    As PyTorch's ``nn.functional.group_norm``. Source: Wu and He, Group Normalization, 2018.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.group_norm(snp.array([[1.0, 3.0, 10.0, 30.0]]), 2).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """
    caller = "group_norm"
    x = _check_channels(caller, input)
    (groups,) = per_axis(num_groups, 1, caller, "num_groups")
    batch, channels, *spatial = x.shape
    if channels % groups:
        raise ValueError(
            f"{caller}: num_groups {groups} does not divide the {channels} channels of input "
            f"{x.type}"
        )
    factor, shift = (
        _lay_along(caller, name, value, (channels,), x, 1)
        for name, value in (("weight", weight), ("bias", bias))
    )
    spread = (groups, channels // groups)
    factor, shift = (
        param if param is None else reshape(param, (1, *spread, *(1,) * len(spatial)))
        for param in (factor, shift)
    )
    grouped = reshape(convert(x, widened(x.dtype)), (batch, *spread, *spatial))
    centered, variance = _moments(grouped, tuple(range(2, grouped.ndim)))
    root = rsqrt(variance + eps)
    out = centered * (root if factor is None else root * factor)
    return reshape(_scale_and_shift(out, None, shift, x.dtype), x.shape)


# Over neighbouring channels, and of vectors


def local_response_norm(
    input: ArrayLike, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0
) -> Array:
    """Divide by a power of the mean square of neighbouring channels.

    The output is ``input / (k + alpha * mean)**beta``; channels beyond the ends count as zeros.

    Args:
        input: (batch, channels, length, ...).
        size: how many channels count, around each.
        alpha: the factor of the mean.
        beta: the power.
        k: what is added to the mean.

    Returns:
        The shape of ``input``, in its dtype; integers become floats.

    Raises:
        ValueError: ``input`` has fewer than three axes, or ``size`` is not positive.

    As PyTorch's ``nn.functional.local_response_norm``. Source: Krizhevsky et al., ImageNet
    Classification with Deep Convolutional Neural Networks, 2012.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.local_response_norm(snp.ones((1, 3, 1)), 3, alpha=3.0, beta=1.0).round(3).ravel()
    Array([0.333, 0.25 , 0.333], dtype=float32)
    """
    caller = "local_response_norm"
    x = as_float(input, caller)
    (size,) = per_axis(size, 1, caller, "size")
    if x.ndim < 3:
        raise ValueError(f"{caller}: input must be (batch, channels, length, ...), got {x.type}")
    wide = convert(x, widened(x.dtype))
    window = AxisWindow(size, 1, size // 2, (size - 1) // 2)
    around = tuple(window if d == 1 else PLAIN for d in range(x.ndim))
    mean = ReduceWindowSum(around)(wide * wide) / size
    return convert(wide * power(mean * alpha + k, -beta), x.dtype)


@explains_keywords
def normalize(input: ArrayLike, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Array:
    """Divide vectors along an axis by their norms: ``input / max(norm, eps)``.

    The derivative at 0 is that of ``input / eps``.

    Args:
        input: an array of any shape.
        p: the norm.
        dim: the axis.
        eps: the least norm.

    Returns:
        The shape of ``input``, in its dtype; integers become floats.

    Raises:
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.normalize``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.normalize(snp.array([[3.0, 4.0], [0.0, 0.0]]))
    Array([[0.6, 0.8],
           [0. , 0. ]], dtype=float32)
    """
    x = as_float(input, "normalize")
    axis = canonical_axis(dim, x.ndim, "normalize")
    wide = convert(x, widened(x.dtype))
    if p == 2:
        # max(|x|, eps) = sqrt(max(x², eps²)), which has a derivative at 0.
        squares = _mean(wide * wide, (axis,)) * x.shape[axis]
        return convert(wide * rsqrt(maximum(squares, eps * eps)), x.dtype)
    norm = vector_norm(wide, axis=axis, keepdims=True, ord=p)
    return convert(wide / maximum(norm, eps), x.dtype)
