"""Activation functions, softmax and its relatives, one-hot coding.

Names, meanings and defaults are those of ``jax.nn``. Functions that need a float take integers as
the default float.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import inexact_dtype, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.arithmetic import absolute, maximum
from stretto._engine.ops.broadcast import canonical_axis, expand_dims
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import exp, expm1, log, log1p, logistic, rsqrt, sqrt
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.shape import split
from stretto._engine.ops.special.error_functions import erfc
from stretto.numpy.creation import listed
from stretto.numpy.directly import FLOAT, directly
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import greater, greater_equal, isfinite, less, less_equal, truth
from stretto.numpy.normalised import log1mexp, log_softmax, logsumexp, softmax
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import where
from stretto.numpy.statistics import mean as mean_
from stretto.numpy.trigonometric import tanh

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "identity",
    "leaky_relu",
    "log1mexp",
    "log_sigmoid",
    "log_softmax",
    "logmeanexp",
    "logsumexp",
    "mish",
    "one_hot",
    "relu",
    "relu6",
    "selu",
    "sigmoid",
    "silu",
    "soft_sign",
    "softmax",
    "softplus",
    "softsign",
    "sparse_plus",
    "sparse_sigmoid",
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]


def _float(x: Any, caller: str) -> Value:
    x = as_value(x, caller)
    return x if is_inexact(x.dtype) else convert(x, inexact_dtype(x.dtype), x.weak_type)


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


# Rectifiers


def relu(x: ArrayLike) -> Array:
    """Take ``max(x, 0)`` of each element; its derivative at 0 is 0.

    Args:
        x: an array of any shape and real dtype.

    Returns:
        The values, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.relu``.

    >>> import stretto as st
    >>> st.nn.relu(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    found = directly(_rectified, FLOAT, x)
    if found is not None:
        return found
    x = as_value(x, "relu")
    return where(less_equal(x, 0), 0, x)  # NaN is not less: it stays


def _rectified(x: np.ndarray) -> np.ndarray:
    """The same in NumPy, whose ``maximum`` may leave -0."""
    out = np.asarray(np.maximum(x, 0))
    return np.add(out, 0, out=out)


def relu6(x: ArrayLike) -> Array:
    """Take ``min(max(x, 0), 6)`` of each element; its derivative at 0 and 6 is 0.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.relu6``. Source: Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10, 2010.

    >>> import stretto as st
    >>> st.nn.relu6(st.numpy.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    x = _float(x, "relu6")
    return select(greater_equal(x, 6), full_like(x, 6), relu(x))


def leaky_relu(x: ArrayLike, negative_slope: ArrayLike = 1e-2) -> Array:
    """Keep elements that are not negative, and multiply the others by a slope.

    Args:
        x: an array of any shape; integers become floats.
        negative_slope: the slope.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.leaky_relu``.

    >>> import stretto as st
    >>> st.nn.leaky_relu(st.numpy.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = _float(x, "leaky_relu")
    return choose(greater_equal(x, 0), x, x * negative_slope)


def _negative_part(x: Any) -> Any:
    """``x`` where it is negative, else 0: so that ``exp`` of it never overflows."""
    return select(greater(x, 0), zeros_like(x), x)


def elu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x) - 1)`` of the others.

    Args:
        x: an array of any shape; integers become floats.
        alpha: minus the limit for large negative elements.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.elu``. Source: Clevert et al., Fast and Accurate Deep Network Learning by ELUs,
    2015.

    >>> import stretto as st
    >>> st.nn.elu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    x = _float(x, "elu")
    return choose(greater(x, 0), x, alpha * expm1(_negative_part(x)))


def selu(x: ArrayLike) -> Array:
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.selu``. Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    >>> import stretto as st
    >>> st.nn.selu(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def celu(x: ArrayLike, alpha: ArrayLike = 1.0) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x / alpha) - 1)`` of the others.

    Args:
        x: an array of any shape; integers become floats.
        alpha: minus the limit for large negative elements.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.celu``. Source: Barron, Continuously Differentiable Exponential Linear Units, 2017.

    >>> import stretto as st
    >>> st.nn.celu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    x = _float(x, "celu")
    return choose(greater(x, 0), x, alpha * expm1(_negative_part(x) / alpha))


# Smooth relatives


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
    return logistic(_float(x, "sigmoid"))


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
    return -softplus(-_float(x, "log_sigmoid"))


def softplus(x: ArrayLike) -> Array:
    """Take ``log(1 + exp(x))`` of each element, without overflow.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.softplus``.

    >>> import stretto as st
    >>> st.nn.softplus(st.numpy.array([0.0, 100.0])).round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    found = directly(_softplus, FLOAT, x)
    if found is not None:
        return found
    x = _float(x, "softplus")
    # By choice of a side: max and |.| have no second derivative at 0.
    positive = greater(x, 0)
    return select(positive, x, zeros_like(x)) + log1p(exp(select(positive, -x, x)))


def _softplus(x: np.ndarray) -> np.ndarray:
    """The same in NumPy."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


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
    x = _float(x, "squareplus")
    return (x + sqrt(x * x + b)) * 0.5


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
    x = _float(x, "soft_sign")
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
    x = _float(x, "silu")
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
    x = _float(x, "mish")
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
    x = _float(x, "gelu")
    if approximate:
        inner = math.sqrt(2 / math.pi) * (x + 0.044715 * (x * x * x))
        return x * (0.5 * (1 + tanh(inner)))
    return x * (0.5 * erfc(x * -math.sqrt(0.5)))


# Piecewise linear


def hard_tanh(x: ArrayLike) -> Array:
    """Keep each element between -1 and 1.

    Args:
        x: an array of any shape and real dtype.

    Returns:
        The values, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.hard_tanh``.

    >>> import stretto as st
    >>> st.nn.hard_tanh(st.numpy.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = as_value(x, "hard_tanh")
    inside = select(less(x, -1), full_like(x, -1), x)
    return select(greater(x, 1), full_like(x, 1), inside)


def hard_sigmoid(x: ArrayLike) -> Array:
    """Take ``relu6(x + 3) / 6`` of each element.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.hard_sigmoid``.

    >>> import stretto as st
    >>> st.nn.hard_sigmoid(st.numpy.array([0.0, 9.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return relu6(_float(x, "hard_sigmoid") + 3) / 6


def hard_silu(x: ArrayLike) -> Array:
    """Take ``x * hard_sigmoid(x)`` of each element, also called hard swish.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.hard_silu``. Source: Howard et al., Searching for MobileNetV3, 2019.

    >>> import stretto as st
    >>> st.nn.hard_silu(st.numpy.array([-3.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    x = _float(x, "hard_silu")
    return x * hard_sigmoid(x)


hard_swish = hard_silu


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
    x = _float(x, "glu")
    d = canonical_axis(axis, x.ndim, "glu")
    if x.shape[d] % 2:
        raise ValueError(f"glu: axis {axis} of {x.type} has an odd size, so it has no two halves")
    first, second = split(x, (x.shape[d] // 2,) * 2, d)
    return first * logistic(second)


def sparse_plus(x: ArrayLike) -> Array:
    """Take 0 up to -1, ``x`` from 1 on, and ``(x + 1)² / 4`` between them.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.sparse_plus``. Source: Martins and Astudillo, From Softmax to Sparsemax, 2016.

    >>> import stretto as st
    >>> st.nn.sparse_plus(st.numpy.array([-2.0, 0.0, 2.0]))
    Array([0.  , 0.25, 2.  ], dtype=float32)
    """
    x = _float(x, "sparse_plus")
    curve = (x + 1) * (x + 1) / 4
    return choose(less_equal(x, -1), 0.0, choose(greater_equal(x, 1), x, curve))


def sparse_sigmoid(x: ArrayLike) -> Array:
    """Take 0 up to -1, 1 from 1 on, and ``(x + 1) / 2`` between: the slope of ``sparse_plus``.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.sparse_sigmoid``.

    >>> import stretto as st
    >>> st.nn.sparse_sigmoid(st.numpy.array([-2.0, 0.0, 2.0]))
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = _float(x, "sparse_sigmoid")
    return choose(less_equal(x, -1), 0.0, choose(greater_equal(x, 1), 1.0, (x + 1) / 2))


# Logarithms of sums


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
    x = _float(x, "logmeanexp")
    total = logsumexp(x, axis, where=where, keepdims=keepdims)
    count = sum_(full_like(x, 1), axis, keepdims=keepdims, where=where)
    return total - log(count)


# Coding and scaling


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
        where: boolean, which elements count; the others stay as they are where not finite.
        algorithm: how to find the variance: ``"stable"`` averages ``(x - mean)**2``; ``"fast"``
            (JAX's default) subtracts ``mean**2`` from the average of ``x**2``, which cancels where
            the mean is much greater than the deviation, and is the same only with the mean of ``x``
            itself.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: ``algorithm`` is another word, or an axis is out of bounds.

    As ``jax.nn.standardize``.

    >>> import stretto as st
    >>> st.nn.standardize(st.numpy.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    if algorithm not in ("fast", "stable"):
        raise ValueError(f"standardize: algorithm must be 'fast' or 'stable', got {algorithm!r}")
    whole = counted = _float(x, "standardize")
    finite = None
    if where is not None:
        # What is left out may be NaN or infinite: that stays, without a way into derivatives.
        finite = truth(where, "standardize", "where") | isfinite(whole)
        counted = choose(finite, whole, 0)
    centre: Any = mean_(counted, axis, keepdims=True, where=where) if mean is None else mean
    spread: Any = variance
    if spread is None and algorithm == "stable":
        spread = mean_((counted - centre) ** 2, axis, keepdims=True, where=where)
    elif spread is None:
        square = mean_(counted * counted, axis, keepdims=True, where=where)
        spread = maximum(square - centre * centre, zeros_like(square))
    out = (counted - centre) * rsqrt(_float(spread, "standardize") + epsilon)
    return out if finite is None else choose(finite, out, whole)


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
