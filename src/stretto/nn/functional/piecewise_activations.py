"""Activation functions in pieces: ``relu`` and its relatives.

Names, arguments, defaults and derivatives at corners are those of PyTorch's
``torch.nn.functional``. ``inplace`` is accepted and changes nothing: arrays never change, and
compiled code reuses their memory by itself.
"""

from __future__ import annotations

import stretto.numpy as snp
from stretto import random
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.ops.comparison import select
from stretto.nn import piecewise_functions as functions
from stretto.nn.functional.arguments import as_float
from stretto.nn.functional.checks import key_or_next

__all__ = [
    "celu",
    "elu",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "leaky_relu",
    "prelu",
    "relu",
    "relu6",
    "rrelu",
    "selu",
    "softshrink",
    "threshold",
]


# Rectifiers


def relu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``max(x, 0)`` of each element; its derivative at 0 is 0.

    Args:
        input: an array of any shape and real dtype.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.relu``.

    >>> import stretto as st
    >>> st.nn.functional.relu(st.numpy.array([-1.0, 2.0]))
    Array([0., 2.], dtype=float32)
    """
    return functions.relu(as_value(input, "relu", "input"))


def relu6(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``min(max(x, 0), 6)`` of each element; its derivative at 0 and 6 is 0.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.relu6``. Source: Krizhevsky, Convolutional Deep Belief Networks on
    CIFAR-10, 2010.

    >>> import stretto as st
    >>> st.nn.functional.relu6(st.numpy.array([-1.0, 8.0]))
    Array([0., 6.], dtype=float32)
    """
    return functions.relu6(as_float(input, "relu6"))


def leaky_relu(input: ArrayLike, negative_slope: ArrayLike = 0.01, inplace: bool = False) -> Array:
    """Keep positive elements, and multiply the others by a slope, at 0 too.

    Args:
        input: an array of any shape; integers become floats.
        negative_slope: the slope.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.leaky_relu``. Source: Maas et al., Rectifier Nonlinearities Improve
    Neural Network Acoustic Models, 2013.

    >>> import stretto as st
    >>> st.nn.functional.leaky_relu(st.numpy.array([-1.0, 2.0]))
    Array([-0.01,  2.  ], dtype=float32)
    """
    x = as_float(input, "leaky_relu")
    return snp.where(snp.greater(x, 0), x, x * negative_slope)


def prelu(input: ArrayLike, weight: ArrayLike) -> Array:
    """Keep positive elements, and multiply the others by a slope that is trained.

    Args:
        input: an array of any shape; integers become floats.
        weight: the slope: one element, or one for each channel (axis 1, or axis 0 if that is the
            only one).

    Returns:
        The values, in the shape of ``input``.

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
        input: an array of any shape; integers become floats.
        lower: the least slope.
        upper: the greatest slope.
        training: whether slopes are drawn; otherwise each is the mean of the two.
        inplace: ignored, as arrays never change.
        key: the key to draw from; by default the ambient stream's next one.

    Returns:
        The values, in the shape of ``input``.

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


def threshold(
    input: ArrayLike, threshold: ArrayLike, value: ArrayLike, inplace: bool = False
) -> Array:
    """Keep elements greater than a threshold, and replace the others.

    Args:
        input: an array of any shape and real dtype.
        threshold: the threshold.
        value: what stands in place of the others.
        inplace: ignored, as arrays never change.

    Returns:
        The values, of the shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.threshold``.

    >>> import stretto as st
    >>> st.nn.functional.threshold(st.numpy.array([0.5, 2.0]), 1.0, -7.0)
    Array([-7.,  2.], dtype=float32)
    """
    x = as_value(input, "threshold", "input")
    return snp.where(snp.less_equal(x, threshold), value, x).astype(x.dtype)


def elu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x) - 1)`` of the others.

    Args:
        input: an array of any shape; integers become floats.
        alpha: minus the limit for large negative elements.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.elu``. Source: Clevert et al., Fast and Accurate Deep Network
    Learning by ELUs, 2015.

    >>> import stretto as st
    >>> st.nn.functional.elu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    return functions.elu(as_float(input, "elu"), alpha)


def selu(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``elu``, scaled so that deep networks keep mean 0 and variance 1.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.selu``. Source: Klambauer et al., Self-Normalizing Neural Networks,
    2017.

    >>> import stretto as st
    >>> st.nn.functional.selu(st.numpy.array([1.0])).round(3)
    Array([1.051], dtype=float32)
    """
    return functions.selu(as_float(input, "selu"))


def celu(input: ArrayLike, alpha: ArrayLike = 1.0, inplace: bool = False) -> Array:
    """Keep positive elements, and take ``alpha * (exp(x / alpha) - 1)`` of the others.

    Args:
        input: an array of any shape; integers become floats.
        alpha: minus the limit for large negative elements.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.celu``. Source: Barron, Continuously Differentiable Exponential
    Linear Units, 2017.

    >>> import stretto as st
    >>> st.nn.functional.celu(st.numpy.array([-1.0, 2.0])).round(3)
    Array([-0.632,  2.   ], dtype=float32)
    """
    return functions.celu(as_float(input, "celu"), alpha)


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


def hardsigmoid(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``relu6(x + 3) / 6`` of each element.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.hardsigmoid``. Source: Courbariaux et al., BinaryConnect, 2015.

    >>> import stretto as st
    >>> st.nn.functional.hardsigmoid(st.numpy.array([0.0, 9.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return functions.hard_sigmoid(as_float(input, "hardsigmoid"))


def hardswish(input: ArrayLike, inplace: bool = False) -> Array:
    """Take ``x * hardsigmoid(x)``; its derivative at -3 is 0, and at 3 it is 1.

    Args:
        input: an array of any shape; integers become floats.
        inplace: ignored, as arrays never change.

    Returns:
        The values, in the shape of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.hardswish``. Source: Howard et al., Searching for MobileNetV3,
    2019.

    >>> import stretto as st
    >>> st.nn.functional.hardswish(st.numpy.array([-3.0, 0.0, 3.0]))
    Array([-0.,  0.,  3.], dtype=float32)
    """
    return functions.hard_silu(as_float(input, "hardswish"))


def softshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """Move each element towards 0 by ``lambd``, and to 0 where it is no farther than that.

    Args:
        input: an array of any shape; integers become floats.
        lambd: by how much, not negative.

    Returns:
        The values, in the shape of ``input``.

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


def hardshrink(input: ArrayLike, lambd: float = 0.5) -> Array:
    """Keep each element, but 0 where it is no farther from 0 than ``lambd``.

    Args:
        input: an array of any shape and real dtype.
        lambd: the distance.

    Returns:
        The values, of the shape and dtype of ``input``.

    Raises:
        TypeError: ``input`` is not an array or a number.

    As PyTorch's ``nn.functional.hardshrink``.

    >>> import stretto as st
    >>> st.nn.functional.hardshrink(st.numpy.array([-2.0, 0.25, 2.0]))
    Array([-2.,  0.,  2.], dtype=float32)
    """
    x = as_value(input, "hardshrink", "input")
    return select(snp.less_equal(snp.abs(x), lambd), snp.zeros_like(x), x)
