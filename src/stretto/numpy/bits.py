"""Operations on the bits of integers."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import INTEGER, binary_function, eager
from stretto._engine.ops import bits
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bits import bitwise_not, shift_left
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INTEGRAL, promote_values

__all__ = ["bitwise_and", "bitwise_count", "bitwise_invert", "bitwise_left_shift",
           "bitwise_not", "bitwise_or", "bitwise_right_shift", "bitwise_xor", "invert",
           "left_shift", "right_shift"]  # fmt: skip

left_shift = shift_left


_and = binary_function(bits.AND, bits.bitwise_and, operator="and")


_or = binary_function(bits.OR, bits.bitwise_or, operator="or")


_xor = binary_function(bits.XOR, bits.bitwise_xor, operator="xor")


def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by and: ``x & y``.

    Args:
        x: integers or booleans.
        y: integers or booleans; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is neither of integers nor of booleans.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``bitwise_and``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_and(snp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return _and(x, y)


@described_like(bitwise_and)
def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by or: ``x | y``.

    As NumPy's and the array API standard's ``bitwise_or``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_or(snp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return _or(x, y)


@described_like(bitwise_and)
def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by exclusive or: ``x ^ y``.

    As NumPy's and the array API standard's ``bitwise_xor``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_xor(snp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return _xor(x, y)


invert = bitwise_invert = bitwise_not


@described_like(shift_left)
def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Move the bits of integers down, filled with the sign: ``x >> y``.

    As NumPy's ``right_shift``.

    >>> import stretto.numpy as snp
    >>> snp.right_shift(snp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    """
    value, other = promote_values("right_shift", x, y)
    if kind_of(value.dtype) == "uint":
        return bits.SHIFT_RIGHT_LOGICAL(value, other)
    return bits.SHIFT_RIGHT_ARITHMETIC(value, other)


bitwise_left_shift = left_shift


bitwise_right_shift = right_shift


@eager(np.bitwise_count, INTEGER, np.dtype(np.uint8))
def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the bits set in the absolute value of each integer.

    Args:
        x: integers.

    Returns:
        An array of uint8, of the shape of ``x``.

    Raises:
        TypeError: ``x`` is not of integers.

    As NumPy's ``bitwise_count``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_count(snp.array([7, -1]))
    Array([3, 1], dtype=uint8)
    """
    value = as_value(x, "bitwise_count")
    if kind_of(value.dtype) not in INTEGRAL:
        raise TypeError(f"bitwise_count: expected integers, got {value.type}")
    return convert(bits.population_count(absolute(value)), np.dtype(np.uint8))
