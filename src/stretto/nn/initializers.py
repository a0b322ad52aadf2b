"""``stretto.nn.initializers``: initial values of parameters, under JAX's names.

Each returns, or is, a function of a key, a shape and a dtype. One axis of the shape is a weight's
inputs, another its outputs; ``init`` has PyTorch's functions, whose shapes put the outputs first.
Read ``initializer`` first, then ``variance_scaling``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from stretto._engine.core.guarded import guard_module
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShardingLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis, move_axis, reshape
from stretto._engine.ops.sharding import laid_out
from stretto.nn.initializer import Initializer, dtype_or, initializer, scaled
from stretto.nn.variance_scaling import (
    glorot_normal,
    glorot_uniform,
    he_normal,
    he_uniform,
    kaiming_normal,
    kaiming_uniform,
    lecun_normal,
    lecun_uniform,
    variance_scaling,
    xavier_normal,
    xavier_uniform,
)
from stretto.numpy.index_updates import At
from stretto.random import distributions, matrices

if TYPE_CHECKING:  # loaded when numbers between bounds are first drawn
    from stretto.random import truncated
else:
    truncated = LazyModule("stretto.random.truncated")

__all__ = [
    "Initializer",
    "glorot_normal",
    "glorot_uniform",
    "he_normal",
    "he_uniform",
    "kaiming_normal",
    "kaiming_uniform",
    "lecun_normal",
    "lecun_uniform",
    "variance_scaling",
    "xavier_normal",
    "xavier_uniform",
    "constant",
    "delta_orthogonal",
    "normal",
    "ones",
    "orthogonal",
    "truncated_normal",
    "uniform",
    "zeros",
]


# Without chance


def zeros(
    key: Key,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of zeros.

    Args:
        key: the key, which is not used.
        shape: the shape of the array.
        dtype: the dtype, by default the default float.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the result cannot be split as ``out_sharding`` says.

    As ``jax.nn.initializers.zeros``.

    >>> import stretto as st
    >>> st.nn.initializers.zeros(st.random.key(0), (2,))
    Array([0., 0.], dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(zeros(key, shape, dtype), out_sharding, "initializers.zeros")
    return full(sizes_of(shape, "initializers.zeros"), 0, dtype_or(dtype))


def ones(
    key: Key,
    shape: Sequence[int],
    dtype: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of ones.

    Args:
        key: the key, which is not used.
        shape: the shape of the array.
        dtype: the dtype, by default the default float.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the result cannot be split as ``out_sharding`` says.

    As ``jax.nn.initializers.ones``.

    >>> import stretto as st
    >>> st.nn.initializers.ones(st.random.key(0), (2,))
    Array([1., 1.], dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(ones(key, shape, dtype), out_sharding, "initializers.ones")
    return full(sizes_of(shape, "initializers.ones"), 1, dtype_or(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Give the same number everywhere, or a broadcast array.

    Args:
        value: the number, or an array that broadcasts to the shape.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: in a call, the result cannot be split as ``out_sharding`` says.

    As ``jax.nn.initializers.constant``.

    >>> import stretto as st
    >>> st.nn.initializers.constant(0.5)(st.random.key(0), (2,))
    Array([0.5, 0.5], dtype=float32)
    """
    default = dtype

    def init(
        key: Key,
        shape: Sequence[int],
        dtype: DTypeLike | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        if out_sharding is not None:
            return laid_out(init(key, shape, dtype), out_sharding, "initializers.constant")
        target = dtype_or(dtype, default)
        return broadcast_to(
            convert(as_value(value, "initializers.constant", "value"), target), tuple(shape)
        )

    return init


# Of a fixed spread


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers equally likely in [0, ``scale``).

    Args:
        scale: the bound above.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call; or the result cannot be
            split as ``out_sharding`` says.

    As ``jax.nn.initializers.uniform``.

    >>> import stretto as st
    >>> st.nn.initializers.uniform(10.0)(st.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return scaled(distributions.uniform(key, shape, dtype), scale)

    return initializer("uniform", dtype, draw)


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Draw numbers from the normal distribution.

    Args:
        stddev: the standard deviation.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call; or the result cannot be
            split as ``out_sharding`` says.

    As ``jax.nn.initializers.normal``.

    >>> import stretto as st
    >>> st.nn.initializers.normal(5.0)(st.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return scaled(distributions.normal(key, shape, dtype), stddev)

    return initializer("normal", dtype, draw)


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """Draw numbers from the normal distribution cut off at two limits, times ``stddev``.

    Args:
        stddev: the standard deviation before the cut.
        dtype: the dtype where a call gives none, by default the default float.
        lower: the lower limit, in standard deviations.
        upper: the upper limit, in standard deviations.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: ``dtype`` is neither floating nor complex; on the call; or the result cannot be
            split as ``out_sharding`` says.

    As ``jax.nn.initializers.truncated_normal``.

    >>> import stretto as st
    >>> x = st.nn.initializers.truncated_normal(5.0)(st.random.key(0), (100,))
    >>> bool((abs(x) <= 10).all())
    True
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        return scaled(truncated.truncated_normal(key, lower, upper, shape, dtype), stddev)

    return initializer("truncated_normal", dtype, draw)


# Orthogonal


def orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw orthonormal columns or rows, whichever are fewer, times ``scale``.

    Args:
        scale: the factor.
        column_axis: the axis of the columns; all others count as one.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        TypeError: in a call, a size is not an integer.
        ValueError: the shape has fewer than two axes, or the dtype is neither floating nor complex;
            on the call; or the result cannot be split as ``out_sharding`` says.

    As ``jax.nn.initializers.orthogonal``. Source: Saxe et al., Exact Solutions to the Nonlinear
    Dynamics of Learning in Deep Linear Neural Networks, 2013.

    >>> import stretto as st
    >>> q = st.nn.initializers.orthogonal()(st.random.key(0), (2, 3))
    >>> abs((q @ q.T).round(5))
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) < 2:
            raise ValueError(
                f"initializers.orthogonal: expected a shape of two axes or more, got {shape}"
            )
        axis = canonical_axis(column_axis, len(shape), "initializers.orthogonal")
        columns = shape[axis]
        others = shape[:axis] + shape[axis + 1 :]
        q = matrices.orthogonal(key, math.prod(others), (), dtype, columns)
        return scaled(move_axis(reshape(q, (*others, columns)), len(others), axis), scale)

    return initializer("orthogonal", dtype, draw)


def delta_orthogonal(
    scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None
) -> Initializer:
    """Draw a convolution's kernel that is an orthogonal matrix in the middle, and zero elsewhere.

    The shape has one to three spatial axes, then inputs and outputs, with at least as many outputs
    as inputs.

    Args:
        scale: the factor.
        column_axis: the axis of the matrix that is its columns.
        dtype: the dtype where a call gives none, by default the default float.

    Returns:
        A function of a key, a shape and a dtype.

    Raises:
        ValueError: the shape is not of this form, or the dtype is neither floating nor complex; on
            the call.

    As ``jax.nn.initializers.delta_orthogonal``. Source: Xiao et al., Dynamical Isometry and a Mean
    Field Theory of CNNs, 2018.

    >>> import stretto as st
    >>> x = st.nn.initializers.delta_orthogonal()(st.random.key(0), (3, 2, 2))
    >>> abs(x[0]).max(), abs((x[1] @ x[1].T).round(5))
    (Array(0., dtype=float32), Array([[1., 0.],
           [0., 1.]], dtype=float32))
    """

    def draw(key: Key, shape: tuple[int, ...], dtype: np.dtype) -> Array:
        if len(shape) not in (3, 4, 5) or shape[-1] < shape[-2]:
            raise ValueError(
                f"initializers.delta_orthogonal: expected one to three spatial axes, inputs, and "
                f"outputs no fewer than these in shape; got {shape}"
            )
        q = orthogonal(scale, column_axis, dtype)(key, shape[-2:])
        middle = tuple((n - 1) // 2 for n in shape[:-2])
        return At(full(shape, 0, dtype))[middle].set(q)

    return initializer("delta_orthogonal", dtype, draw)


guard_module(__name__)
