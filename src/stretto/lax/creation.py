"""Arrays made of numbers and shapes, and their dtypes, under the names of ``jax.lax``."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value, type_of
from stretto._engine.core.types import as_dtype
from stretto._engine.core.typing import (
    Array,
    ArrayLike,
    DTypeLike,
    ShapeLike,
    ShardingLike,
    SupportsDType,
)
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import convert
from stretto._engine.ops.sharding import laid_out

__all__ = ["dtype", "empty", "full", "full_like", "shape_argument", "shape_as_value", "stage"]


def shape_argument(shape: ShapeLike, caller: str) -> tuple[int, ...]:
    """Return the sizes that a shape has; a number is that of one axis."""
    return sizes_of(shape, caller)


def dtype(x: ArrayLike | DTypeLike) -> np.dtype:
    """Say the dtype of an array or a number, or the one that a type or a name stands for.

    Args:
        x: an array, a number, a type, or a name such as ``"int8"``.

    Returns:
        The dtype.

    Raises:
        TypeError: ``x`` is anything else.

    >>> import stretto as st
    >>> st.lax.dtype(1.0), st.lax.dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, (str, type, np.dtype)):
        return as_dtype(x)
    return type_of(x, "dtype").dtype


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike | None = None,
) -> Array:
    """Make an array whose elements all are one value.

    Args:
        shape: the sizes of the axes.
        fill_value: a scalar.
        dtype: the dtype; by default that of the value.
        sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over the
            mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: ``fill_value`` is not a scalar.
        ValueError: the result cannot be split as ``sharding`` says.

    >>> import stretto as st
    >>> st.lax.full((2,), 3.0, "bfloat16")
    Array([3, 3], dtype=bfloat16)
    """
    if sharding is not None:
        return laid_out(full(shape, fill_value, dtype), sharding, "full", "sharding")
    return _filled("full", shape, fill_value, dtype)


def _filled(caller: str, shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None) -> Array:
    value = as_value(fill_value, caller, "fill_value")
    if value.ndim:
        raise TypeError(f"{caller}: fill_value must be a scalar, got {value.type}")
    weak = dtype is None and value.weak_type
    value = convert(value, value.dtype if dtype is None else as_dtype(dtype), weak)
    return broadcast_to(value, shape_argument(shape, caller), caller)


@described_like(full)
def full_like(
    x: ArrayLike | SupportsDType,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of one value, of the shape and dtype of another.

    Args:
        x: an array, or what has a shape and a dtype.
        dtype: another dtype.
        shape: another shape.

    >>> import stretto as st
    >>> st.lax.full_like(st.numpy.ones(2), 7)
    Array([7., 7.], dtype=float32)
    """
    like = type_of(x, "full_like")
    own_dtype = like.dtype if dtype is None else dtype
    sizes = like.shape if shape is None else shape
    if sharding is not None:
        return laid_out(full_like(x, fill_value, dtype, shape), sharding, "full_like", "sharding")
    return _filled("full_like", sizes, fill_value, own_dtype)


def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """Make an array whose elements may be anything; here they are zeros.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the result cannot be split as ``out_sharding`` says.

    >>> import stretto as st
    >>> st.lax.empty((2,), float)
    Array([0., 0.], dtype=float32)
    """
    return laid_out(_filled("empty", shape, 0, dtype), out_sharding, "empty")


def shape_as_value(shape: Sequence[int]) -> Array:
    """Make an array of the sizes of a shape.

    Args:
        shape: the sizes of the axes.

    Returns:
        The sizes, int32.

    >>> import stretto as st
    >>> st.lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_value(
        np.asarray(shape_argument(shape, "shape_as_value"), np.int32), "shape_as_value", "shape"
    )


def stage(x: ArrayLike, /) -> Array:
    """Make an array of this package of a number or of NumPy's array.

    Args:
        x: an array or a number.

    Returns:
        The array; one of this package as it is.

    Raises:
        TypeError: ``x`` is neither.

    >>> import stretto as st
    >>> st.lax.stage(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return as_value(x, "stage")
