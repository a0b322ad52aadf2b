"""Activation functions, softmax and its relatives, one-hot coding.

Layer 7 (nn). Names, meanings and defaults are those of ``jax.nn``. Functions that need a float
take integers as the default float.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.control.stop_gradient import StopGradient
from stretto.core.interpreter import as_value
from stretto.core.types import inexact_dtype, is_complex, is_inexact
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.elementary import tanh
from stretto.numpy.logic import greater, greater_equal, isfinite, less, less_equal, truth
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import where
from stretto.numpy.statistics import mean as mean_
from stretto.numpy.statistics import var
from stretto.ops.arithmetic import absolute, maximum, real
from stretto.ops.arithmetic import sign as sign_
from stretto.ops.broadcast import canonical_axes, canonical_axis, expand_dims, squeeze
from stretto.ops.comparison import eq, full_like, select, zeros_like
from stretto.ops.comparison import where as choose
from stretto.ops.convert import convert
from stretto.ops.exponential import erfc, exp, expm1, log, log1p, logistic, rsqrt, sqrt
from stretto.ops.iota import broadcasted_iota
from stretto.ops.shape import split

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
    "log_sigmoid",
    "log_softmax",
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
    "squareplus",
    "standardize",
    "swish",
    "tanh",
]

_STOP = StopGradient()


def _float(x: Any, who: str) -> Any:
    x = as_value(x, who)
    return x if is_inexact(x.dtype) else convert(x, inexact_dtype(x.dtype), x.weak_type)


def identity(x: Any) -> Any:
    """``x`` itself."""
    return as_value(x, "identity")


# Rectifiers


def relu(x: Any) -> Any:
    """``max(x, 0)``; its derivative at 0 is 0.

    >>> import stretto as st
    >>> st.nn.relu(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    x = as_value(x, "relu")
    return where(less_equal(x, 0), 0, x)  # NaN is not less: it stays


def relu6(x: Any) -> Any:
    """``min(max(x, 0), 6)``; its derivative at 0 and 6 is 0.

    Source: Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10, 2010.

    >>> import stretto as st
    >>> st.nn.relu6(st.numpy.array([-1.0, 2.0, 8.0]))
    Array([0., 2., 6.], dtype=float32)
    """
    x = _float(x, "relu6")
    return select(greater_equal(x, 6), full_like(x, 6), relu(x))


def leaky_relu(x: Any, negative_slope: Any = 1e-2) -> Any:
    """``x`` where it is not negative, else ``negative_slope * x``.

    >>> import stretto as st
    >>> st.nn.leaky_relu(st.numpy.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = _float(x, "leaky_relu")
    return choose(greater_equal(x, 0), x, x * negative_slope)


def _negative_part(x: Any) -> Any:
    """``x`` where it is negative, else 0: so that ``exp`` of it never overflows."""
    return select(greater(x, 0), zeros_like(x), x)


def elu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Source: Clevert et al., Fast and Accurate Deep Network Learning by ELUs, 2015.

    >>> import stretto as st
    >>> st.nn.elu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    x = _float(x, "elu")
    return choose(greater(x, 0), x, alpha * expm1(_negative_part(x)))


def selu(x: Any) -> Any:
    """``elu`` scaled so that deep networks keep mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.

    >>> import stretto as st
    >>> st.nn.selu(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


def celu(x: Any, alpha: Any = 1.0) -> Any:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Source: Barron, Continuously Differentiable Exponential Linear Units, 2017.
    """
    x = _float(x, "celu")
    return choose(greater(x, 0), x, alpha * expm1(_negative_part(x) / alpha))


# Smooth relatives


def sigmoid(x: Any) -> Any:
    """``1 / (1 + exp(-x))``.

    >>> import stretto as st
    >>> st.nn.sigmoid(st.numpy.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return logistic(_float(x, "sigmoid"))


def log_sigmoid(x: Any) -> Any:
    """``log(sigmoid(x))``, exact for large negative ``x``."""
    return -softplus(-_float(x, "log_sigmoid"))


def softplus(x: Any) -> Any:
    """``log(1 + exp(x))`` without overflow.

    >>> import stretto as st
    >>> st.nn.softplus(st.numpy.array([0.0, 100.0])).round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    x = _float(x, "softplus")
    return maximum(x, zeros_like(x)) + log1p(exp(-absolute(x)))


def squareplus(x: Any, b: Any = 4) -> Any:
    """``(x + sqrt(x**2 + b)) / 2``.

    Source: Barron, Squareplus: A Softplus-Like Algebraic Rectifier, 2021.
    """
    x = _float(x, "squareplus")
    return (x + sqrt(x * x + b)) * 0.5


def soft_sign(x: Any) -> Any:
    """``x / (1 + |x|)``.

    >>> import stretto as st
    >>> st.nn.soft_sign(st.numpy.array([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    x = _float(x, "soft_sign")
    return x / (absolute(x) + 1)


softsign = soft_sign


def silu(x: Any) -> Any:
    """``x * sigmoid(x)``, also called swish.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

    >>> import stretto as st
    >>> st.nn.silu(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """
    x = _float(x, "silu")
    return x * logistic(x)


swish = silu


def mish(x: Any) -> Any:
    """``x * tanh(softplus(x))``.

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.
    """
    x = _float(x, "mish")
    return x * tanh(softplus(x))


def gelu(x: Any, approximate: bool = True) -> Any:
    """``x`` times the normal distribution's cumulative function; by default with ``tanh`` in it.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.

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


def hard_tanh(x: Any) -> Any:
    """``x`` kept between -1 and 1.

    >>> import stretto as st
    >>> st.nn.hard_tanh(st.numpy.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    x = as_value(x, "hard_tanh")
    inside = select(less(x, -1), full_like(x, -1), x)
    return select(greater(x, 1), full_like(x, 1), inside)


def hard_sigmoid(x: Any) -> Any:
    """``relu6(x + 3) / 6``.

    >>> import stretto as st
    >>> st.nn.hard_sigmoid(st.numpy.array([0.0, 9.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return relu6(_float(x, "hard_sigmoid") + 3) / 6


def hard_silu(x: Any) -> Any:
    """``x * hard_sigmoid(x)``, also called hard swish.

    Source: Howard et al., Searching for MobileNetV3, 2019.
    """
    x = _float(x, "hard_silu")
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def glu(x: Any, axis: int = -1) -> Any:
    """The first half of ``x`` along ``axis`` times ``sigmoid`` of the second.

    Raises ``ValueError`` where the size along ``axis`` is odd. Source: Dauphin et al., Language
    Modeling with Gated Convolutional Networks, 2016.

    >>> import stretto as st
    >>> st.nn.glu(st.numpy.array([3.0, 0.0]))
    Array([1.5], dtype=float32)
    """
    x = _float(x, "glu")
    d = canonical_axis(axis, x.ndim, "glu")
    if x.shape[d] % 2:
        raise ValueError(f"glu: axis {axis} of {x.type} has an odd size, so it has no halves")
    first, second = split(x, (x.shape[d] // 2,) * 2, d)
    return first * logistic(second)


# Softmax


def _greatest(x: Any, axes: tuple[int, ...], where: Any = None) -> Any:
    """The greatest element over the axes, kept, as a constant."""
    x = _STOP(real(x) if is_complex(x.dtype) else x)
    lowest = None if where is None and x.size else -math.inf
    return max_(x, axes, None, True, lowest, where)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` over ``axis``, one or several, of the elements ``where`` holds.

    The others are 0. Types below float32 are added up in float32.

    >>> import stretto as st
    >>> st.nn.softmax(st.numpy.array([0.0, 1000.0]))
    Array([0., 1.], dtype=float32)
    """
    x = _float(x, "softmax")
    axes = canonical_axes(axis, x.ndim, "softmax")
    unnormalized = exp(x - _greatest(x, axes, where))
    out = unnormalized / sum_(unnormalized, axes, keepdims=True, where=where)
    return out if where is None else choose(where, out, zeros_like(out))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``x - log(sum(exp(x)))`` over ``axis``, one or several, of the elements ``where`` holds.

    The others are -inf.

    >>> import stretto as st
    >>> st.nn.log_softmax(st.numpy.array([0.0, 0.0])).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """
    x = _float(x, "log_softmax")
    axes = canonical_axes(axis, x.ndim, "log_softmax")
    shifted = x - _greatest(x, axes, where)
    out = shifted - log(sum_(exp(shifted), axes, keepdims=True, where=where))
    return out if where is None else choose(where, out, full_like(out, -math.inf))


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, all by default, without overflow.

    -inf, with a derivative of 0, where the sum is 0. With ``return_sign`` a tuple of the logarithm
    of the sum's size, and its sign.

    >>> import stretto as st
    >>> st.nn.logsumexp(st.numpy.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    x = _float(a, "logsumexp")
    if b is not None:
        b = as_value(b, "logsumexp", "b")
        x = choose(eq(b, zeros_like(b)), -math.inf, x)
    if where is not None:
        x = choose(truth(where, "logsumexp", "where"), x, -math.inf)
    axes = canonical_axes(axis, x.ndim, "logsumexp")
    top = _greatest(x, axes)
    top = select(isfinite(top), top, zeros_like(top))
    terms = exp(x - top)
    total = sum_(terms if b is None else terms * b, axes, keepdims=True)
    size, sign = total, None
    if return_sign:
        size, sign = absolute(total), sign_(total)
    none = eq(total, zeros_like(total))
    size = log(select(none, full_like(size, 1), size))
    out = select(none, full_like(size, -math.inf), size + top)
    if not keepdims:
        out, sign = squeeze(out, axes), None if sign is None else squeeze(sign, axes)
    return (out, sign) if return_sign else out


# Coding and scaling


def standardize(
    x: Any,
    axis: Any = -1,
    mean: Any = None,
    variance: Any = None,
    epsilon: Any = 1e-5,
    where: Any = None,
) -> Any:
    """``(x - mean) / sqrt(variance + epsilon)``, by default those of ``x`` over ``axis``.

    >>> import stretto as st
    >>> st.nn.standardize(st.numpy.array([1.0, 3.0]), epsilon=0.0)
    Array([-1.,  1.], dtype=float32)
    """
    x = _float(x, "standardize")
    if mean is None:
        mean = mean_(x, axis, keepdims=True, where=where)
    if variance is None:
        variance = var(x, axis, keepdims=True, where=where)
    return (x - mean) * rsqrt(_float(variance, "standardize") + epsilon)


def one_hot(x: Any, num_classes: int, *, dtype: Any = float, axis: int = -1) -> Any:
    """For each index in ``x`` a vector along a new ``axis``: 1 at the index, else 0.

    An index out of bounds gives zeros.

    >>> import stretto as st
    >>> st.nn.one_hot(st.numpy.array([0, 2]), 3)
    Array([[1., 0., 0.],
           [0., 0., 1.]], dtype=float32)
    """
    x = as_value(x, "one_hot")
    d = canonical_axis(axis, x.ndim + 1, "one_hot")
    sizes = tuple(num_classes if i == d else 1 for i in range(x.ndim + 1))
    classes = broadcasted_iota(np.dtype(np.int32), sizes, d)
    return convert(eq(expand_dims(x, d), classes), as_dtype(dtype))
