"""Arguments of linear algebra: arrays of floats, not weakly typed."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg.family import check_matrix


def floats(caller: str, x: ArrayLike, argument: str = "a") -> Array:
    """The value, with integers and booleans as the default float."""
    value = as_value(x, caller, argument)
    return convert(value, inexact_dtype(value.dtype))


def matrices(caller: str, x: ArrayLike, argument: str = "a", square: bool = False) -> Array:
    """The same for matrices, square if so asked; raises as ``check_matrix`` does."""
    value = floats(caller, x, argument)
    check_matrix(caller, value.type, square)
    return value


def same_floats(caller: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Two values of one floating dtype, each of its own shape."""
    value, other = promote_dtypes(caller, x, y)
    return floats(caller, value), floats(caller, other)


def systems(caller: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, bool]:
    """Both in one dtype, a vector as a column; and whether it was a vector."""
    matrix, right = same_floats(caller, a, b)
    matrices(caller, matrix, square=True)
    is_vector = right.ndim == 1
    if not right.ndim or right.shape[0 if is_vector else -2] != matrix.shape[-1]:
        raise ValueError(
            f"{caller}: b must have {matrix.shape[-1]} rows, as a has: got a: {matrix.type} and "
            f"b: {right.type}"
        )
    return matrix, expand_dims(right, 1) if is_vector else right, is_vector


def values_of(caller: str, **arguments: ArrayLike) -> list[Array]:
    """The arguments as values; errors name the one that is not an array."""
    return [as_value(x, caller, name) for name, x in arguments.items()]


def as_complex(x: Array) -> Array:
    """Floating-point numbers as complex ones of the same precision."""
    return convert(x, np.result_type(x.dtype, np.complex64))
