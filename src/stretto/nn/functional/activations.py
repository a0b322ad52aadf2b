"""Activation functions, softmax and its relatives, one-hot coding.

Names, arguments, defaults, and derivatives at corners are those of ``torch.nn.functional``.
``inplace`` is accepted and changes nothing: arrays never change, and compiled code reuses their
memory by itself.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.functions import described, described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike, Key
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import expm1, logistic
from stretto._engine.ops.extrema import clamp
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, expand_dims
from stretto._engine.ops.shape import split
from stretto._engine.ops.special.error_functions import erfc
from stretto.nn.functional.checks import as_float, check_known, explains_keywords, key_or_next
from stretto.numpy import normalized
from stretto.numpy.creation import listed
from stretto.numpy.dtypes import as_dtype
from stretto.random.draw_arguments import wide

_elementwise = described(
    {
        "input": "an array of any shape; integers become floats.",
        "inplace": "ignored, as arrays never change.",
        "dim": "the axis.",
        "dtype": "the dtype to convert to first; by default that of ``input``.",
    },
    "The values, in the shape of ``input``.",
    raises="TypeError: ``input`` is not an array or a number.",
)
"""Complete the docstring of an activation."""

# Rectifiers


def _rectify(x: np.ndarray) -> np.ndarray:
    """Return ``relu`` in NumPy, whose ``maximum`` may leave -0."""
    out = np.asarray(np.maximum(x, 0))
    return np.add(out, 0, out=out)


@eager(_rectify, FLOAT)
def _relu(x: ArrayLike) -> Array:
    """Take ``max(x, 0)``, of one argument, as ``eager`` is fastest with."""
    value = as_value(x, "relu", "input")
    return snp.where(snp.less_equal(value, 0), 0, value)  # NaN is not less: it stays


@_elementwise
def relu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``max(x, 0)`` of each element; its derivative at 0 is 0.

    Args:
        input: an array of any shape and real dtype.

    As PyTorch's ``nn.functional.relu``.

    >>> import stretto as st
    >>> st.nn.functional.relu(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return _relu(input)


@_elementwise
def relu6(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``min(max(x, 0), 6)`` of each element; its derivative at 0 and 6 is 0.

    As PyTorch's ``nn.functional.relu6``. Source: Krizhevsky, Convolutional Deep Belief Networks on
    CIFAR-10, 2010.

    >>> import stretto as st
    >>> st.nn.functional.relu6(st.numpy.array([-1.0, 8.0]))
    Array([0., 6.], dtype=float32)
    """
    x = as_float(input, "relu6")
    return select(snp.greater_equal(x, 6), full_like(x, 6), _relu(x))


@_elementwise
def leaky_relu(input: ArrayLike, negative_slope: ArrayLike = 0.01, inplace: bool = False) -> Array:
    """Keep positive elements, and multiply the others by a slope, at 0 too.

    Args:
        negative_slope: the slope.

    As PyTorch's ``nn.functional.leaky_relu``. Source: Maas et al., Rectifier Nonlinearities Improve
    Neural Network Acoustic Models, 2013.

    >>> import stretto as st
    >>> st.nn.functional.leaky_relu(st.numpy.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = as_float(input, "leaky_relu")
    return snp.where(snp.greater(x, 0), x, x * negative_slope)


@_elementwise
def prelu(input: ArrayLike, weight: ArrayLike) -> Array:
    """Keep positive elements, and multiply the others by a slope that is trained.

    Args:
        weight: the slope: one element, or one for each channel (axis 1, or axis 0 if that is the
            only one).

    Raises:
        ValueError: ``weight`` has another shape.

    As PyTorch's ``nn.functional.prelu``. Source: He et al., Delving Deep into Rectifiers, 2015.

    >>> import stretto as st
    >>> st.nn.functional.prelu(st.numpy.array([[-1.0, -1.0]]), st.numpy.array([0.5, 0.25]))
    Array([[-0.5 , -0.25]], dtype=float32)
    """
    x, weight = as_float(input, "prelu"), as_float(weight, "prelu", "weight")
    channel = min(1, x.ndim - 1)
    if weight.ndim > 1 or (weight.size != 1 and (not x.ndim or weight.size != x.shape[channel])):
        raise ValueError(
            f"prelu: weight must have one element, or one for each channel (axis 1) of the input; "
            f"got weight {weight.type} for input {x.type}"
        )
    if weight.size == 1:
        slope = weight.reshape(())
    else:
        slope = weight.reshape(tuple(-1 if d == channel else 1 for d in range(x.ndim)))
    return snp.where(snp.greater(x, 0), x, x * slope)


@_elementwise
def rrelu(
    input: ArrayLike,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """Keep positive elements, and multiply the others by random slopes.

    Args:
        lower: the least slope.
        upper: the greatest slope.
        training: whether slopes are drawn; otherwise each is the mean of the two.
        key: the key to draw from; by default the ambient stream's next one.

    Raises:
        RuntimeError: there is no key to draw from.
        ValueError: ``lower`` exceeds ``upper``.

    As PyTorch's ``nn.functional.rrelu``. Source: Xu et al., Empirical Evaluation of Rectified
    Activations, 2015.

    >>> import stretto as st
    >>> st.nn.functional.rrelu(st.numpy.array([-4.0, 2.0]), 0.25, 0.75)
    Array([-2.,  2.], dtype=float32)
    """
    x = as_float(input, "rrelu")
    if lower > upper:
        raise ValueError(f"rrelu: lower must not exceed upper, got {lower!r} and {upper!r}")
    if training:
        slope = random.uniform(key_or_next(key, "rrelu"), x.shape, x.dtype, lower, upper)
    else:
        slope = (lower + upper) / 2
    return snp.where(snp.greater(x, 0), x, x * slope)


@_elementwise
def threshold(
    input: ArrayLike, threshold: ArrayLike, value: ArrayLike, inplace: bool = False
) -> Array:
    """Keep elements greater than a threshold, and replace the others.

    Args:
        input: an array of any shape and real dtype.
        threshold: the threshold.
        value: what stands in place of the others.

    Returns:
        The values, of the shape and dtype of ``input``.

    As PyTorch's ``nn.functional.threshold``.

    >>> import stretto as st
    >>> st.nn.functional.threshold(st.numpy.array([0.5, 2.0]), 1.0, -7.0)
    Array([-7.,  2.], dtype=float32)
    """
    x = as_value(input, "threshold", "input")
    return snp.where(snp.less_equal(x, threshold), value, x).astype(x.dtype)


def _negative_part(x: Array) -> Array:
    """Return ``x`` where it is negative, else 0: so that ``exp`` of it never overflows."""
    return select(snp.greater(x, 0), zeros_like(x), x)


@_elementwise
def elu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x) - 1)`` of the others.

    Args:
        alpha: minus the limit for large negative elements.

    As PyTorch's ``nn.functional.elu``. Source: Clevert et al., Fast and Accurate Deep Network
    Learning by ELUs, 2015.

    >>> import stretto as st
    >>> st.nn.functional.elu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    x = as_float(input, "elu")
    return choose(snp.greater(x, 0), x, alpha * expm1(_negative_part(x)))


@_elementwise
def selu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1.

    As PyTorch's ``nn.functional.selu``. Source: Klambauer et al., Self-Normalizing Neural Networks,
    2017.

    >>> import stretto as st
    >>> st.nn.functional.selu(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """
    x = as_float(input, "selu")
    return 1.0507009873554804934193349852946 * elu(x, 1.6732632423543772848170429916717)


@_elementwise
def celu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x / alpha) - 1)`` of the others.

    Args:
        alpha: minus the limit for large negative elements.

    As PyTorch's ``nn.functional.celu``. Source: Barron, Continuously Differentiable Exponential
    Linear Units, 2017.

    >>> import stretto as st
    >>> st.nn.functional.celu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    x = as_float(input, "celu")
    return choose(snp.greater(x, 0), x, alpha * expm1(_negative_part(x) / alpha))


# Bounds and dead zones


def hardtanh(
    input: ArrayLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Array:
    """Keep each element between two limits, at which the derivative is 0.

    Args:
        input: an array of any shape and real dtype.
        min_val: the lower limit.
        max_val: the upper limit.
        inplace: ignored, as arrays never change.

    Returns:
        The values, of the shape and dtype of ``input``.

    Raises:
        ValueError: ``min_val`` exceeds ``max_val``.

    As PyTorch's ``nn.functional.hardtanh``.

    >>> import stretto as st
    >>> st.nn.functional.hardtanh(st.numpy.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    if min_val > max_val:
        raise ValueError(
            f"hardtanh: min_val must not exceed max_val, got {min_val!r} and {max_val!r}"
        )
    x = as_value(input, "hardtanh", "input")
    above = snp.where(snp.less_equal(x, min_val), min_val, x)
    return snp.where(snp.greater_equal(x, max_val), max_val, above).astype(x.dtype)


@_elementwise
def hardsigmoid(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``relu6(x + 3) / 6`` of each element.

    As PyTorch's ``nn.functional.hardsigmoid``. Source: Courbariaux et al., BinaryConnect, 2015.

    >>> import stretto as st
    >>> st.nn.functional.hardsigmoid(st.numpy.array([0.0, 9.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return relu6(as_float(input, "hardsigmoid") + 3) / 6


@_elementwise
def hardswish(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * hardsigmoid(x)``; its derivative at -3 is 0, and at 3 it is 1.

    As PyTorch's ``nn.functional.hardswish``. Source: Howard et al., Searching for MobileNetV3,
    2019.

    >>> import stretto as st
    >>> st.nn.functional.hardswish(st.numpy.array([-3.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    x = as_float(input, "hardswish")
    return x * hardsigmoid(x)


@_elementwise
def softshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """Move each element towards 0 by ``lambd``, and to 0 where it is no farther than that.

    Args:
        lambd: by how much, not negative.

    Raises:
        ValueError: ``lambd`` is negative.

    As PyTorch's ``nn.functional.softshrink``.

    >>> import stretto as st
    >>> st.nn.functional.softshrink(st.numpy.array([-2.0, 0.25, 2.0]))
    Array([-1.5,  0. ,  1.5], dtype=float32)
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd must not be negative, got {lambd!r}")
    x = as_float(input, "softshrink")
    nearer = snp.where(snp.greater(x, 0), x - lambd, x + lambd)
    return select(snp.less_equal(snp.abs(x), lambd), snp.zeros_like(x), nearer)


@_elementwise
def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """Keep each element, but 0 where it is no farther from 0 than ``lambd``.

    Args:
        input: an array of any shape and real dtype.
        lambd: the distance.

    Returns:
        The values, of the shape and dtype of ``input``.

    As PyTorch's ``nn.functional.hardshrink``.

    >>> import stretto as st
    >>> st.nn.functional.hardshrink(st.numpy.array([-2.0, 0.25, 2.0]))
    Array([-2.,  0.,  2.], dtype=float32)
    """
    x = as_value(input, "hardshrink", "input")
    return select(snp.less_equal(snp.abs(x), lambd), snp.zeros_like(x), x)


# Smooth ones


@_elementwise
def gelu(input: ArrayLike, approximate: str = "none") -> Array:
    """Multiply each element by the normal distribution's cumulative function of it.

    Args:
        approximate: ``"none"`` for the exact function, ``"tanh"`` for one that is faster.

    Raises:
        ValueError: ``approximate`` is unknown.

    As PyTorch's ``nn.functional.gelu``. Source: Hendrycks and Gimpel, Gaussian Error Linear Units,
    2016.

    >>> import stretto as st
    >>> st.nn.functional.gelu(st.numpy.array([1.0])).round(4)
    Array([0.8413], dtype=float32)
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    x = as_float(input, "gelu")
    if approximate == "none":
        return x * (0.5 * erfc(x * -math.sqrt(0.5)))
    # Beyond 10 the factor is 0 or 1 in 32 bits; in float16 a cube overflows at 40, and its slope
    # would be NaN. (1 + tanh(u)) / 2 = logistic(2 u), which keeps its digits where tanh(u) rounds
    # to -1.
    near = clamp(full_like(x, -10), x, full_like(x, 10))
    return x * logistic(math.sqrt(8 / math.pi) * (near + 0.044715 * (near * near * near)))


@_elementwise
def silu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * sigmoid(x)`` of each element, also called swish.

    As PyTorch's ``nn.functional.silu``. Source: Hendrycks and Gimpel, Gaussian Error Linear Units,
    2016.

    >>> import stretto as st
    >>> st.nn.functional.silu(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """
    x = as_float(input, "silu")
    return x * logistic(x)


@_elementwise
def mish(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * tanh(softplus(x))`` of each element.

    As PyTorch's ``nn.functional.mish``. Source: Misra, Mish: A Self Regularized Non-Monotonic
    Activation Function, 2019.

    >>> import stretto as st
    >>> st.nn.functional.mish(st.numpy.array([1.0])).round(3)
    Array([0.865], dtype=float32)
    """
    x = as_float(input, "mish")
    return x * snp.tanh(normalized.softplus(x))


@_elementwise
def sigmoid(input: ArrayLike) -> Array:
    """Take ``1 / (1 + exp(-x))`` of each element.

    As PyTorch's ``nn.functional.sigmoid``.

    >>> import stretto as st
    >>> st.nn.functional.sigmoid(st.numpy.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return logistic(as_float(input, "sigmoid"))


@_elementwise
def logsigmoid(input: ArrayLike) -> Array:
    """Take ``log(sigmoid(x))`` of each element, exact for large negative ones.

    As PyTorch's ``nn.functional.logsigmoid``.

    >>> import stretto as st
    >>> st.nn.functional.logsigmoid(st.numpy.array([-100.0, 0.0])).round(3)
    Array([-100.   ,   -0.693], dtype=float32)
    """
    return -normalized.softplus(-as_float(input, "logsigmoid"))


@_elementwise
def tanh(input: ArrayLike) -> Array:
    """Take the hyperbolic tangent of each element.

    As PyTorch's ``nn.functional.tanh``.

    >>> import stretto as st
    >>> st.nn.functional.tanh(st.numpy.array([0.0]))
    Array([0.], dtype=float32)
    """
    return snp.tanh(as_float(input, "tanh"))


@_elementwise
def softplus(input: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Take ``log(1 + exp(beta * x)) / beta`` of each element, without overflow.

    Args:
        beta: how sharp the corner is.
        threshold: beyond this, ``beta * x`` counts as so large that the value is ``x`` itself.

    As PyTorch's ``nn.functional.softplus``.

    >>> import stretto as st
    >>> st.nn.functional.softplus(st.numpy.array([0.0, 100.0]), beta=2).round(3)
    Array([  0.347, 100.   ], dtype=float32)
    """
    x = as_float(input, "softplus")
    scaled = x * beta
    return snp.where(snp.greater(scaled, threshold), x, normalized.softplus(scaled) / beta)


@_elementwise
def softsign(input: ArrayLike) -> Array:
    """Take ``x / (1 + |x|)`` of each element.

    As PyTorch's ``nn.functional.softsign``.

    >>> import stretto as st
    >>> st.nn.functional.softsign(st.numpy.array([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    x = as_float(input, "softsign")
    return x / (absolute(x) + 1)


@_elementwise
def tanhshrink(input: ArrayLike) -> Array:
    """Take ``x - tanh(x)`` of each element.

    As PyTorch's ``nn.functional.tanhshrink``.

    >>> import stretto as st
    >>> st.nn.functional.tanhshrink(st.numpy.array([1.0])).round(3)
    Array([0.238], dtype=float32)
    """
    x = as_float(input, "tanhshrink")
    near = snp.less(snp.abs(x), 1)
    inner = snp.where(near, x, 0)
    return snp.where(near, _tanhshrink_near_zero(inner), x - snp.tanh(x))


def _tanhshrink_near_zero(x: Array) -> Array:
    """Return ``x - tanh(x)`` for ``|x| < 1``, where the difference would lose its digits.

    Lambert's fraction is tanh(x) = x / (1 + r), r = x² / (3 + x² / (5 + ...)); so the difference is
    x r / (1 + r), a sum of positive terms. Cut off at 11 it is right to 32 bits, at 21 to 64.
    """
    z = x * x
    last = 21 if x.dtype.itemsize > 4 else 11
    # r = z b / (3 a), with a and b, numerator and denominator, divided by the odd numbers
    a, b = snp.ones_like(x), snp.ones_like(x)
    for odd in range(last - 2, 1, -2):
        a, b = a + z * (b / (odd * (odd + 2))), a
    part = z * b / 3
    return x * (part / (a + part))


@explains_keywords
def glu(input: ArrayLike, dim: int = -1) -> Array:
    """Multiply the first half along an axis by ``sigmoid`` of the second half.

    Args:
        input: an array of any shape; integers become floats.
        dim: the axis, of even size.

    Returns:
        The products, of half the size along ``dim``.

    Raises:
        ValueError: the size along ``dim`` is odd, or ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.glu``. Source: Dauphin et al., Language Modeling with Gated
    Convolutional Networks, 2016.

    >>> import stretto as st
    >>> st.nn.functional.glu(st.numpy.array([3.0, 0.0]))
    Array([1.5], dtype=float32)
    """
    x = as_float(input, "glu")
    d = canonical_axis(dim, x.ndim, "glu")
    if x.shape[d] % 2:
        raise ValueError(f"glu: dim {dim} of {x.type} has an odd size, so it has no two halves")
    first, second = split(x, (x.shape[d] // 2,) * 2, d)
    return first * logistic(second)


# Along an axis


def _as(x: ArrayLike, dtype: DTypeLike | None, caller: str) -> Array:
    value = as_value(x, caller, "input")
    return value if dtype is None else convert(value, as_dtype(dtype))


@_elementwise
@explains_keywords
def softmax(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``exp(x) / sum(exp(x))`` along an axis, without overflow.

    Args:
        input: an array of any shape.

    Raises:
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.softmax``.

    >>> import stretto as st
    >>> st.nn.functional.softmax(st.numpy.array([0.0, 1000.0]), dim=0)
    Array([0., 1.], dtype=float32)
    """
    return normalized.softmax(_as(input, dtype, "softmax"), dim)


@_elementwise
@explains_keywords
@described_like(softmax)
def softmin(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``softmax(-x)`` along an axis.

    As PyTorch's ``nn.functional.softmin``.

    >>> import stretto as st
    >>> st.nn.functional.softmin(st.numpy.array([0.0, 1000.0]), dim=0)
    Array([1., 0.], dtype=float32)
    """
    x = _as(input, dtype, "softmin")
    return normalized.softmax(-x, canonical_axis(dim, x.ndim, "softmin"))


@_elementwise
@explains_keywords
@described_like(softmax)
def log_softmax(input: ArrayLike, dim: int, dtype: DTypeLike | None = None) -> Array:
    """Take ``x - log(sum(exp(x)))`` along an axis, without overflow.

    As PyTorch's ``nn.functional.log_softmax``.

    >>> import stretto as st
    >>> st.nn.functional.log_softmax(st.numpy.array([0.0, 0.0]), dim=0).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """
    return normalized.log_softmax(_as(input, dtype, "log_softmax"), dim)


@explains_keywords
def gumbel_softmax(
    logits: ArrayLike,
    tau: ArrayLike = 1.0,
    hard: bool = False,
    dim: int = -1,
    key: Key | None = None,
) -> Array:
    """Draw nearly one-hot vectors, differentiable with respect to the logits.

    Args:
        logits: an array of any shape.
        tau: the temperature: the smaller, the nearer.
        hard: whether the draw is one-hot; its derivative is that of the soft one.
        dim: the axis.
        key: the key to draw from; by default the ambient stream's next one.

    Returns:
        The vectors along ``dim``, in the shape of ``logits``.

    Raises:
        RuntimeError: there is no key to draw from.
        ValueError: ``dim`` is out of bounds.

    As PyTorch's ``nn.functional.gumbel_softmax``. Source: Jang et al., Categorical
    Reparameterization with Gumbel-Softmax, 2017.

    >>> import stretto as st
    >>> key = st.random.PRNGKey(0)
    >>> st.nn.functional.gumbel_softmax(st.numpy.array([0.0, 100.0]), hard=True, key=key)
    Array([0., 1.], dtype=float32)
    """
    x = as_float(logits, "gumbel_softmax", "logits")
    dim = canonical_axis(dim, x.ndim, "gumbel_softmax")
    noisy = x.astype(wide(x.dtype))
    noisy = noisy + random.gumbel(key_or_next(key, "gumbel_softmax"), x.shape, noisy.dtype)
    scores = noisy / tau
    soft = convert(normalized.softmax(scores, dim), snp.result_type(x, tau))
    if not hard:
        return soft
    drawn = indicator(snp.argmax(scores, dim), x.shape[dim], x.dtype, dim)
    return drawn + (soft - stop_gradient(soft))


@explains_keywords
def logsumexp(input: ArrayLike, dim: Axes = None, keepdim: bool = False) -> Array:
    """Take ``log(sum(exp(x)))`` over axes, without overflow.

    Args:
        input: an array of any shape; integers become floats.
        dim: the axes to add over; all by default.
        keepdim: whether the axes stay, with size 1.

    Returns:
        The logarithms, -inf with a derivative of 0 where the sum is 0.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As PyTorch's ``logsumexp``; ``stretto.special`` has SciPy's, with weights.

    >>> import stretto as st
    >>> st.nn.logsumexp(st.numpy.array([1000.0, 1000.0]), dim=0).round(2)
    Array(1000.69, dtype=float32)
    """
    return normalized.logsumexp(as_float(input, "logsumexp"), dim, keepdims=keepdim)


# Coding


@explains_keywords
def one_hot(input: ArrayLike | Sequence[Any], num_classes: int = -1) -> Array:
    """Turn each class into a vector along a new last axis: 1 at the class, 0 elsewhere.

    Args:
        input: the classes, an array or lists of integers from 0.
        num_classes: how many there are; -1 for as many as the greatest one says.

    Returns:
        The vectors, integers, of the shape of ``input`` with the new axis.

    Raises:
        TypeError: ``num_classes`` or a class is not an integer.
        ValueError: a class is known to be out of range; one that is traced gives zeros instead.

    As PyTorch's ``nn.functional.one_hot``.

    >>> import stretto as st
    >>> st.nn.one_hot(st.numpy.array([0, 2]), 3)
    Array([[1, 0, 0],
           [0, 0, 1]], dtype=int32)
    """
    classes = listed(input, "one_hot", "input")
    count = integer(num_classes, "one_hot", "num_classes")
    if classes.size and kind_of(classes.dtype) not in ("int", "uint"):
        raise TypeError(f"one_hot: input must be integers, the classes; got {classes.type}")
    if count == -1:
        count = int(snp.max(classes, initial=-1)) + 1
    check_known(
        snp.greater_equal(classes, 0) & snp.less(classes, count),
        f"one_hot: the classes of input must be from 0 to {count - 1}, below num_classes",
    )
    return indicator(classes, count, int)


def indicator(indices: Array, count: int, dtype: DTypeLike, axis: int = -1) -> Array:
    """Return 1 at each index along a new axis of size ``count``, 0 elsewhere and out of range."""
    d = canonical_axis(axis, indices.ndim + 1, "one_hot")
    sizes = tuple(count if i == d else 1 for i in range(indices.ndim + 1))
    classes = broadcasted_iota(np.dtype(np.int32), sizes, d)
    return convert(eq(expand_dims(indices, d), classes), as_dtype(dtype))
