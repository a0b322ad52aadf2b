"""Smooth activation functions, softmax and its relatives, one-hot coding.

Names, meanings and defaults are those of ``jax.nn``. Functions that need a float convert integers
to the default float. ``piecewise_functions`` has the other activations.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.comparison import eq, full_like, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import as_inexact, convert, rounded_once
from stretto._engine.ops.exponential import log, logistic
from stretto._engine.ops.extrema import clamp, maximum
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, expand_dims
from stretto._engine.ops.powers import rsqrt, sqrt
from stretto._engine.ops.shape import split
from stretto._engine.ops.special.error_functions import erfc
from stretto.numpy.classifying import isfinite
from stretto.numpy.comparisons import less
from stretto.numpy.creation import listed
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import mask_of_where
from stretto.numpy.normalized import log1mexp, log_softmax, logsumexp, softmax, softplus
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import mean as mean_
from stretto.numpy.statistics import mean_about_first
from stretto.numpy.trigonometric import tanh

__all__ = [
    "gelu",
    "glu",
    "identity",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "softsign",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def identity(x: ArrayLike) -> Array:
    """Return ``x`` itself, as an array.

    Args:
        x: an array, or a number.

    Returns:
        The array.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.identity``.

    >>> import stretto as st
    >>> st.nn.identity(st.numpy.array([1.0]))
    Array([1.], dtype=float32)
    """
    return as_value(x, "identity")


# Smooth activations


def sigmoid(x: ArrayLike) -> Array:
    """Take ``1 / (1 + exp(-x))`` of each element.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.sigmoid``.

    >>> import stretto as st
    >>> st.nn.sigmoid(st.numpy.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return logistic(as_inexact(x, "sigmoid"))


def log_sigmoid(x: ArrayLike) -> Array:
    """Take ``log(sigmoid(x))`` of each element, exact for large negative ones.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.log_sigmoid``.

    >>> import stretto as st
    >>> st.nn.log_sigmoid(st.numpy.array([-100.0, 0.0])).round(3)
    Array([-100.   ,   -0.693], dtype=float32)
    """
    return -softplus(-as_inexact(x, "log_sigmoid"))


@rounded_once
def squareplus(x: ArrayLike, b: ArrayLike = 4) -> Array:
    """Take ``(x + sqrt(x**2 + b)) / 2`` of each element.

    Args:
        x: an array of any shape; integers become floats.
        b: how smooth the corner is.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.squareplus``. Source: Barron, Squareplus: A Softplus-Like Algebraic Rectifier, 2021.

    >>> import stretto as st
    >>> st.nn.squareplus(st.numpy.array([0.0]))
    Array([1.], dtype=float32)
    """
    x = as_inexact(x, "squareplus")
    # (x + r) / 2 = max(x, 0) + b / 2 (r + |x|), which keeps its digits where r is nearly |x|
    root, zero = sqrt(x * x + b), eq(x, zeros_like(x))
    size = choose(zero, 1.0, choose(less(x, 0), -x, x))
    away = choose(less(x, 0), 0.0, x) + b / (2 * (root + size))
    return choose(zero, (x + root) * 0.5, away)


def soft_sign(x: ArrayLike) -> Array:
    """Take ``x / (1 + |x|)`` of each element.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.soft_sign``.

    >>> import stretto as st
    >>> st.nn.soft_sign(st.numpy.array([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    x = as_inexact(x, "soft_sign")
    return x / (absolute(x) + 1)


softsign = soft_sign


def silu(x: ArrayLike) -> Array:
    """Take ``x * sigmoid(x)`` of each element, also called swish.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.silu``. Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    >>> import stretto as st
    >>> st.nn.silu(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """
    x = as_inexact(x, "silu")
    return x * logistic(x)


swish = silu


def mish(x: ArrayLike) -> Array:
    """Take ``x * tanh(softplus(x))`` of each element.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.mish``. Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function,
    2019.

    >>> import stretto as st
    >>> st.nn.mish(st.numpy.array([0.0, 1.0])).round(3)
    Array([0.   , 0.865], dtype=float32)
    """
    x = as_inexact(x, "mish")
    return x * tanh(softplus(x))


def gelu(x: ArrayLike, approximate: bool = True) -> Array:
    """Multiply each element by the normal distribution's cumulative function of it.

    Args:
        x: an array of any shape; integers become floats.
        approximate: whether that function is approximated with ``tanh``, which is faster.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.gelu``. Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    >>> import stretto as st
    >>> st.nn.gelu(st.numpy.array([1.0])).round(4)
    Array([0.8412], dtype=float32)
    """
    x = as_inexact(x, "gelu")
    if approximate:
        # Beyond 10 the factor is 0 or 1 in 32 bits; in float16 a cube overflows at 40, its slope
        # would be NaN. (1 + tanh(u)) / 2 = logistic(2 u), which keeps its digits where tanh(u)
        # rounds to -1.
        near = clamp(full_like(x, -10), x, full_like(x, 10))
        return x * logistic(math.sqrt(8 / math.pi) * (near + 0.044715 * (near * near * near)))
    return x * (0.5 * erfc(x * -math.sqrt(0.5)))


def glu(x: ArrayLike, axis: int = -1) -> Array:
    """Multiply the first half along an axis by ``sigmoid`` of the second half.

    Args:
        x: an array of any shape; integers become floats.
        axis: the axis, of even size.

    Returns:
        The products, of half the size along ``axis``.

    Raises:
        ValueError: the size along ``axis`` is odd, or ``axis`` is out of bounds.

    As ``jax.nn.glu``. Source: Dauphin et al., Language Modeling with Gated Convolutional Networks,
    2016.

    >>> import stretto as st
    >>> st.nn.glu(st.numpy.array([3.0, 0.0]))
    Array([1.5], dtype=float32)
    """
    x = as_inexact(x, "glu")
    d = canonical_axis(axis, x.ndim, "glu")
    if x.shape[d] % 2:
        raise ValueError(f"glu: axis {axis} of {x.type} has an odd size, so it has no two halves")
    first, second = split(x, (x.shape[d] // 2,) * 2, d)
    return first * logistic(second)


# Logarithms of sums


@rounded_once
def logmeanexp(
    x: ArrayLike, axis: Axes | None = None, where: ArrayLike | None = None, keepdims: bool = False
) -> Array:
    """Take ``log(mean(exp(x)))`` over axes, without overflow.

    Args:
        x: an array of any shape; integers become floats.
        axis: the axes to average over; all by default.
        where: boolean, which elements count; all by default.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The values, of the shape of ``x`` without the axes.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As ``jax.nn.logmeanexp``.

    >>> import stretto as st
    >>> st.nn.logmeanexp(st.numpy.array([1000.0, 1000.0]))
    Array(1000., dtype=float32)
    """
    x = as_inexact(x, "logmeanexp")
    axes = canonical_axes(axis, x.ndim, "logmeanexp")
    mask = None if where is None else mask_of_where(where, "logmeanexp")
    total = logsumexp(x, axes, where=mask, keepdims=keepdims)
    count = sum_(full_like(x, 1), axes, keepdims=keepdims, where=mask)
    return total - log(count)


# Coding and scaling


@rounded_once
def standardize(
    x: ArrayLike,
    axis: Axes = -1,
    mean: ArrayLike | None = None,
    variance: ArrayLike | None = None,
    epsilon: ArrayLike = 1e-5,
    where: ArrayLike | None = None,
    *,
    algorithm: str = "stable",
) -> Array:
    """Take ``(x - mean) / sqrt(variance + epsilon)``, by default with those of ``x`` over ``axis``.

    Args:
        x: an array of any shape; integers become floats.
        axis: the axes of mean and variance; all for None.
        mean: the mean, which broadcasts to ``x``.
        variance: the variance, which broadcasts to ``x``.
        epsilon: what is added to the variance.
        where: boolean, which elements count; others that are not finite stay as they are.
        algorithm: how to find the variance: ``"stable"`` averages ``(x - mean)**2``; ``"fast"``
            (JAX's default) subtracts ``mean**2`` from the average of ``x**2``, which cancels where
            the mean is much greater than the deviation, and is the same only with the mean of ``x``
            itself.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: ``algorithm`` is unknown, or an axis is out of bounds.

    As ``jax.nn.standardize``.

    >>> import stretto as st
    >>> st.nn.standardize(st.numpy.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    x = finite = as_inexact(x, "standardize")
    axes = canonical_axes(axis, x.ndim, "standardize")
    mask = safe = None
    if where is not None:
        # What the mask leaves out may be NaN or infinite: it stays, and derivatives do not see it.
        mask = mask_of_where(where, "standardize")
        safe = mask | isfinite(x)
        finite = choose(safe, x, 0)
    center: Any = mean
    if mean is None and mask is None:
        center = mean_about_first(finite, axes)
    elif mean is None:
        center = mean_(finite, axes, keepdims=True, where=mask)
    spread: Any = variance
    if spread is None and algorithm == "stable":
        spread = mean_((finite - center) ** 2, axes, keepdims=True, where=mask)
    elif spread is None:
        square = mean_(finite * finite, axes, keepdims=True, where=mask)
        spread = maximum(square - center * center, zeros_like(square))
    out = (finite - center) * rsqrt(as_inexact(spread, "standardize", "variance") + epsilon)
    return out if safe is None else choose(safe, out, x)


def one_hot(
    x: ArrayLike | Sequence[Any], num_classes: int, *, dtype: DTypeLike = float, axis: int = -1
) -> Array:
    """Turn each index into a vector along a new axis: 1 at the index, 0 elsewhere.

    Args:
        x: the indices, an array or lists of integers; one out of bounds gives zeros.
        num_classes: the size of the new axis.
        dtype: the dtype of the vectors.
        axis: where the new axis is; the last by default.

    Returns:
        The vectors, of the shape of ``x`` with the new axis.

    Raises:
        ValueError: ``axis`` is out of bounds.

    As ``jax.nn.one_hot``.

    >>> import stretto as st
    >>> st.nn.one_hot(st.numpy.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    indices = listed(x, "one_hot", "x")
    d = canonical_axis(axis, indices.ndim + 1, "one_hot")
    sizes = tuple(num_classes if i == d else 1 for i in range(indices.ndim + 1))
    classes = broadcasted_iota(np.dtype(np.int32), sizes, d)
    return convert(eq(expand_dims(indices, d), classes), as_dtype(dtype))
