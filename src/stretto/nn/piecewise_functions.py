"""Activation functions in pieces: rectifiers, and others that stop at a bound.

Names, meanings and defaults are those of ``jax.nn``.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.comparison import full_like, select, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto._engine.ops.exponential import expm1
from stretto.numpy.comparisons import greater, greater_equal, less, less_equal
from stretto.numpy.searching import where

__all__ = [
    "celu",
    "elu",
    "hard_sigmoid",
    "hard_silu",
    "hard_swish",
    "hard_tanh",
    "leaky_relu",
    "relu",
    "relu6",
    "selu",
    "sparse_plus",
    "sparse_sigmoid",
]


# Rectifiers


def _rectified(x: np.ndarray) -> np.ndarray:
    """``relu`` in NumPy, whose ``maximum`` may leave -0."""
    out = np.asarray(np.maximum(x, 0))
    return np.add(out, 0, out=out)


@eager(_rectified, FLOAT)
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
    x = as_value(x, "relu")
    return where(less_equal(x, 0), 0, x)  # NaN is not less: it stays


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
    x = as_inexact(x, "relu6")
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
    x = as_inexact(x, "leaky_relu")
    return choose(greater_equal(x, 0), x, x * negative_slope)


def _negative_part(x: ArrayLike) -> Array:
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
    x = as_inexact(x, "elu")
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
    x = as_inexact(x, "selu")
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
    x = as_inexact(x, "celu")
    return choose(greater(x, 0), x, alpha * expm1(_negative_part(x) / alpha))


# Bounded on both sides, or quadratic between


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
    return relu6(as_inexact(x, "hard_sigmoid") + 3) / 6


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
    x = as_inexact(x, "hard_silu")
    return x * hard_sigmoid(x)


hard_swish = hard_silu


@rounded_once
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
    x = as_inexact(x, "sparse_plus")
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
    x = as_inexact(x, "sparse_sigmoid")
    return choose(less_equal(x, -1), 0.0, choose(greater_equal(x, 1), 1.0, (x + 1) / 2))
