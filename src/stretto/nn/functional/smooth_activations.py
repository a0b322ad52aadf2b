"""Smooth activation functions.

Names, arguments, defaults and meanings are those of ``torch.nn.functional``.
"""

from __future__ import annotations

import stretto.numpy as snp
from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functions
from stretto.nn.functional.arguments import as_float

__all__ = [
    "gelu",
    "glu",
    "logsigmoid",
    "mish",
    "sigmoid",
    "silu",
    "softplus",
    "softsign",
    "tanh",
    "tanhshrink",
]


def gelu(input: ArrayLike, approximate: str = "none") -> Array:
    """Multiply each element by the normal distribution's cumulative function of it.

    Args:
        input: an array of any shape; integers become floats.
        approximate: ``"none"`` for the exact function, ``"tanh"`` for one that is faster.

    Returns:
        The values, in the shape of ``input``.

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
    return functions.gelu(as_float(input, "gelu"), approximate=approximate == "tanh")


def silu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * sigmoid(x)`` of each element, also called swish.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.silu``. Source: Hendrycks and Gimpel, Gaussian Error Linear Units,
    2016.

    >>> import stretto as st
    >>> st.nn.functional.silu(st.numpy.array([1.0])).round(3)
    Array([0.731], dtype=float32)
    """
    return functions.silu(as_float(input, "silu"))


def mish(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * tanh(softplus(x))`` of each element.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.mish``. Source: Misra, Mish: A Self Regularized Non-Monotonic
    Activation Function, 2019.

    >>> import stretto as st
    >>> st.nn.functional.mish(st.numpy.array([1.0])).round(3)
    Array([0.865], dtype=float32)
    """
    return functions.mish(as_float(input, "mish"))


def sigmoid(input: ArrayLike) -> Array:
    """Take ``1 / (1 + exp(-x))`` of each element.

    Args:
        input: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.sigmoid``.

    >>> import stretto as st
    >>> st.nn.functional.sigmoid(st.numpy.array([0.0]))
    Array([0.5], dtype=float32)
    """
    return functions.sigmoid(as_float(input, "sigmoid"))


def logsigmoid(input: ArrayLike) -> Array:
    """Take ``log(sigmoid(x))`` of each element, exact for large negative ones.

    Args:
        input: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.logsigmoid``.

    >>> import stretto as st
    >>> st.nn.functional.logsigmoid(st.numpy.array([-100.0, 0.0])).round(3)
    Array([-100.   ,   -0.693], dtype=float32)
    """
    return functions.log_sigmoid(as_float(input, "logsigmoid"))


def tanh(input: ArrayLike) -> Array:
    """Take the hyperbolic tangent of each element.

    Args:
        input: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.tanh``.

    >>> import stretto as st
    >>> st.nn.functional.tanh(st.numpy.array([0.0]))
    Array([0.], dtype=float32)
    """
    return functions.tanh(as_float(input, "tanh"))


def softplus(input: ArrayLike, beta: float = 1.0, threshold: float = 20.0) -> Array:
    """Take ``log(1 + exp(beta * x)) / beta`` of each element, without overflow.

    Args:
        input: an array of any shape; integers become floats.
        beta: how sharp the corner is.
        threshold: beyond this, ``beta * x`` counts as so large that the value is ``x`` itself.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.softplus``.

    >>> import stretto as st
    >>> st.nn.functional.softplus(st.numpy.array([0.0, 100.0]), beta=2).round(3)
    Array([  0.347, 100.   ], dtype=float32)
    """
    x = as_float(input, "softplus")
    scaled = x * beta
    return snp.where(snp.greater(scaled, threshold), x, functions.softplus(scaled) / beta)


def softsign(input: ArrayLike) -> Array:
    """Take ``x / (1 + |x|)`` of each element.

    Args:
        input: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.softsign``.

    >>> import stretto as st
    >>> st.nn.functional.softsign(st.numpy.array([1.0, -3.0]))
    Array([ 0.5 , -0.75], dtype=float32)
    """
    return functions.soft_sign(as_float(input, "softsign"))


def tanhshrink(input: ArrayLike) -> Array:
    """Take ``x - tanh(x)`` of each element.

    Args:
        input: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.tanhshrink``.

    >>> import stretto as st
    >>> st.nn.functional.tanhshrink(st.numpy.array([1.0])).round(3)
    Array([0.238], dtype=float32)
    """
    x = as_float(input, "tanhshrink")
    near = snp.less(snp.abs(x), 1)
    inner = snp.where(near, x, 0)
    return snp.where(near, _tanhshrink_near_zero(inner), x - functions.tanh(x))


def _tanhshrink_near_zero(x: Array) -> Array:
    """``x - tanh(x)`` for ``|x| < 1``, where the difference would lose its digits.

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
    return functions.glu(as_float(input, "glu"), dim)
