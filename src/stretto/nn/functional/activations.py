"""Activation functions.

Names, arguments, defaults and derivatives at corners are those of PyTorch's
``torch.nn.functional``. ``inplace`` is taken and changes nothing: arrays never change, and compiled
code uses their memory again by itself. Next, read ``softmaxes``.
"""

from __future__ import annotations

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.ops.comparison import select
from stretto.nn import functions
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import key_or_next

__all__ = [
    "celu",
    "elu",
    "gelu",
    "glu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "logsigmoid",
    "mish",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "sigmoid",
    "silu",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
]


# Rectifiers


def relu(input: ArrayLike, inplace: bool = False) -> Array:
    """``max(x, 0)``; its derivative at 0 is 0.

    >>> import stretto as st
    >>> st.nn.functional.relu(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return functions.relu(input)


def relu6(input: ArrayLike, inplace: bool = False) -> Array:
    """``min(max(x, 0), 6)``; its derivative at 0 and 6 is 0.

    Source: Krizhevsky, Convolutional Deep Belief Networks on CIFAR-10, 2010.
    """
    return functions.relu6(input)


def leaky_relu(input: ArrayLike, negative_slope: ArrayLike = 0.01, inplace: bool = False) -> Array:
    """``x`` where it is positive, else ``negative_slope * x``, at 0 too.

    Source: Maas et al., Rectifier Nonlinearities Improve Neural Network Acoustic Models, 2013.

    >>> import stretto as st
    >>> st.nn.functional.leaky_relu(st.numpy.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = as_float(input, "leaky_relu")
    return snp.where(snp.greater(x, 0), x, x * negative_slope)


def prelu(input: ArrayLike, weight: ArrayLike) -> Array:
    """``x`` where it is positive, else ``weight * x``.

    ``weight`` has one element, or one for each channel, axis 1 of ``input`` (axis 0 if that is its
    only one). Raises ``ValueError`` for another shape. Source: He et al., Delving Deep into
    Rectifiers, 2015.

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


def rrelu(
    input: ArrayLike,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    inplace: bool = False,
    key: Key | None = None,
) -> Array:
    """``x`` where it is positive, else ``x`` times a slope.

    While ``training`` each element's slope is drawn between ``lower`` and ``upper``, from ``key``
    or the ambient stream; else it is their mean. Raises ``ValueError`` where ``lower`` is greater.
    Source: Xu et al., Empirical Evaluation of Rectified Activations, 2015.

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


def threshold(
    input: ArrayLike, threshold: ArrayLike, value: ArrayLike, inplace: bool = False
) -> Array:
    """``x`` where it is greater than ``threshold``, else ``value``.

    >>> import stretto as st
    >>> st.nn.functional.threshold(st.numpy.array([0.5, 2.0]), 1.0, -7.0)
    Array([-7.,  2.], dtype=float32)
    """
    x = as_value(input, "threshold", "input")
    return snp.where(snp.less_equal(x, threshold), value, x).astype(x.dtype)


def elu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """``x`` where it is positive, else ``alpha * (exp(x) - 1)``.

    Source: Clevert et al., Fast and Accurate Deep Network Learning by ELUs, 2015.
    """
    return functions.elu(input, alpha)


def selu(input: ArrayLike, inplace: bool = False) -> Array:
    """``elu`` scaled so that deep networks keep mean 0 and variance 1.

    Source: Klambauer et al., Self-Normalizing Neural Networks, 2017.
    """
    return functions.selu(input)


def celu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """``x`` where it is positive, else ``alpha * (exp(x / alpha) - 1)``.

    Source: Barron, Continuously Differentiable Exponential Linear Units, 2017.
    """
    return functions.celu(input, alpha)


# Smooth functions


def gelu(input: ArrayLike, approximate: str = "none") -> Array:
    """``x`` times the normal distribution's cumulative function, exact or with ``"tanh"`` in it.

    Raises ``ValueError`` for another word. Source: Hendrycks and Gimpel, Gaussian Error Linear
    Units, 2016.

    >>> import stretto as st
    >>> st.nn.functional.gelu(st.numpy.array([1.0])).round(4)
    Array([0.8413], dtype=float32)
    """
    if approximate not in ("none", "tanh"):
        raise ValueError(f"gelu: approximate must be 'none' or 'tanh', got {approximate!r}")
    return functions.gelu(input, approximate=approximate == "tanh")


def silu(input: ArrayLike, inplace: bool = False) -> Array:
    """``x * sigmoid(x)``.

    Source: Hendrycks and Gimpel, Gaussian Error Linear Units, 2016.
    """
    return functions.silu(input)


def mish(input: ArrayLike, inplace: bool = False) -> Array:
    """``x * tanh(softplus(x))``.

    Source: Misra, Mish: A Self Regularized Non-Monotonic Activation Function, 2019.
    """
    return functions.mish(input)


def sigmoid(input: ArrayLike) -> Array:
    """``1 / (1 + exp(-x))``."""
    return functions.sigmoid(input)


def logsigmoid(input: ArrayLike) -> Array:
    """``log(sigmoid(x))``, exact for large negative ``x``."""
    return functions.log_sigmoid(input)


def tanh(input: ArrayLike) -> Array:
    """The hyperbolic tangent."""
    return functions.tanh(input)


def softplus(input: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """``log(1 + exp(beta * x)) / beta``; ``x`` itself where ``beta * x`` exceeds ``threshold``.

    >>> import stretto as st
    >>> st.nn.functional.softplus(st.numpy.array([0.0, 100.0]), beta=2).round(3)
    Array([  0.347, 100.   ], dtype=float32)
    """
    x = as_float(input, "softplus")
    scaled = x * beta
    return snp.where(snp.greater(scaled, threshold), x, functions.softplus(scaled) / beta)


def softsign(input: ArrayLike) -> Array:
    """``x / (1 + |x|)``."""
    return functions.soft_sign(input)


def tanhshrink(input: ArrayLike) -> Array:
    """``x - tanh(x)``.

    >>> import stretto as st
    >>> st.nn.functional.tanhshrink(st.numpy.array([1.0])).round(3)
    Array([0.238], dtype=float32)
    """
    x = as_float(input, "tanhshrink")
    return x - functions.tanh(x)


def glu(input: ArrayLike, dim: int = -1) -> Array:
    """The first half of ``x`` along ``dim`` times ``sigmoid`` of the second.

    Raises ``ValueError`` where the size along ``dim`` is odd. Source: Dauphin et al., Language
    Modeling with Gated Convolutional Networks, 2016.
    """
    return functions.glu(input, dim)


# Piecewise linear functions


def hardtanh(
    input: ArrayLike, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False
) -> Array:
    """``x`` kept between the two values; its derivative there is 0.

    Raises ``ValueError`` where ``min_val`` is greater.

    >>> import stretto as st
    >>> st.nn.functional.hardtanh(st.numpy.array([-2.0, 0.5]))
    Array([-1. ,  0.5], dtype=float32)
    """
    if min_val > max_val:
        raise ValueError(
            f"hardtanh: min_val must not exceed max_val, got {min_val!r} and {max_val!r}"
        )
    x = as_value(input, "hardtanh", "input")
    kept = snp.where(snp.less_equal(x, min_val), min_val, x)
    return snp.where(snp.greater_equal(x, max_val), max_val, kept).astype(x.dtype)


def hardsigmoid(input: ArrayLike, inplace: bool = False) -> Array:
    """``relu6(x + 3) / 6``.

    Source: Courbariaux et al., BinaryConnect, 2015.
    """
    return functions.hard_sigmoid(input)


def hardswish(input: ArrayLike, inplace: bool = False) -> Array:
    """``x * hardsigmoid(x)``; its derivative at -3 is 0, and at 3 it is 1.

    Source: Howard et al., Searching for MobileNetV3, 2019.
    """
    return functions.hard_silu(input)


def softshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """``x`` brought nearer to 0 by ``lambd``, and 0 where it is no farther than that.

    Raises ``ValueError`` where ``lambd`` is negative.

    >>> import stretto as st
    >>> st.nn.functional.softshrink(st.numpy.array([-2.0, 0.25, 2.0]))
    Array([-1.5,  0. ,  1.5], dtype=float32)
    """
    if lambd < 0:
        raise ValueError(f"softshrink: lambd must not be negative, got {lambd!r}")
    x = as_float(input, "softshrink")
    nearer = snp.where(snp.greater(x, 0), x - lambd, x + lambd)
    return select(snp.less_equal(snp.abs(x), lambd), snp.zeros_like(x), nearer)


def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """``x``, but 0 where it is no farther from 0 than ``lambd``.

    >>> import stretto as st
    >>> st.nn.functional.hardshrink(st.numpy.array([-2.0, 0.25, 2.0]))
    Array([-2.,  0.,  2.], dtype=float32)
    """
    x = as_value(input, "hardshrink", "input")
    return select(snp.less_equal(snp.abs(x), lambd), snp.zeros_like(x), x)
