"""Operations on bits: logic, shifts, counts, the high half of products, floats of fewer bits.

Logic is on the bits of integers, and on truth values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.config import enable_x64
from stretto._engine.core.functions import described
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import ZERO_DERIVATIVE
from stretto._engine.core.types import array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.elementwise import (
    FLOAT,
    INTEGRAL,
    NOT_BROADCAST,
    OPERANDS,
    Elementwise,
    binary,
    promote_values,
    unary,
)


class Bitwise(Elementwise, abstract=True):
    """Bits of integers; truth values."""

    accepts = INTEGRAL | {"bool"}
    jvp = ZERO_DERIVATIVE


class And(Bitwise):
    """Bits, or truth, in both."""

    op = "and"
    reference = staticmethod(np.bitwise_and)


class Or(Bitwise):
    """Bits, or truth, in either."""

    op = "or"
    reference = staticmethod(np.bitwise_or)


class Xor(Bitwise):
    """Bits, or truth, in one of the two."""

    op = "xor"
    reference = staticmethod(np.bitwise_xor)


class Not(Bitwise):
    """The bits, or the truth value, inverted."""

    op = "not"
    reference = staticmethod(np.bitwise_not)


class Shift(Elementwise, abstract=True):
    """Bits moved by a number of places; a count of the width or more moves all of them out."""

    accepts = INTEGRAL
    jvp = ZERO_DERIVATIVE


def _bits(x: np.ndarray) -> np.ndarray:
    """Give the same bits as an unsigned integer; types narrower than a byte lie in its low bits."""
    return x.view(f"u{x.dtype.itemsize}")


def _shifted(f: Any, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return NumPy's shift of the bits, 0 for counts of the width or more; counts are unsigned."""
    bits, count, width = _bits(x), _bits(y), ml_dtypes.iinfo(x.dtype).bits
    if x.dtype.kind in "iu":
        return f(bits, count).view(x.dtype)
    shifted = f(bits, np.minimum(count, width - 1)) & (2**width - 1)
    return np.where(count < width, shifted, 0).astype(bits.dtype).view(x.dtype)


class ShiftLeft(Shift):
    """Towards the high bits."""

    op = "shift_left"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's, 0 for counts that are negative, or of the width or more."""
        return np.left_shift(x, y) if x.dtype.kind in "iu" else _shifted(np.left_shift, x, y)


class ShiftRightArithmetic(Shift):
    """Towards the low bits, filled with the sign."""

    op = "shift_right_arithmetic"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's on signed integers, and the sign for counts of the width or more."""
        if x.dtype.kind == "i":
            return np.right_shift(x, y)
        bits, width = _bits(x), ml_dtypes.iinfo(x.dtype).bits
        # With the sign in the highest bit of the byte, a shift of signed integers repeats it.
        above = 8 * x.dtype.itemsize - width
        signed = np.left_shift(bits, above).view(f"i{x.dtype.itemsize}")
        count = np.minimum(_bits(y), width - 1) + above
        shifted = np.right_shift(signed, count.astype(signed.dtype)).view(bits.dtype)
        return (shifted & (2**width - 1)).astype(bits.dtype).view(x.dtype)


class ShiftRightLogical(Shift):
    """Towards the low bits, filled with zeros."""

    op = "shift_right_logical"

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's on unsigned integers, 0 for counts of the width or more."""
        return _shifted(np.right_shift, x, y)


class PopulationCount(Bitwise):
    """The number of bits set."""

    accepts = INTEGRAL
    op = "popcnt"

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.bitwise_count(_bits(x)).astype(x.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write ``popcnt``; for types narrower than a byte XLA counts copies of the sign."""
        width = ml_dtypes.iinfo(x.type.dtype).bits
        if width >= 8:
            return b.emit(self.op, x)
        byte = array_type(x.type.shape, np.dtype(np.uint8))
        bits = b.emit("and", b.convert(x, byte.dtype), b.splat(2**width - 1, byte), out=byte)
        return b.convert(b.emit(self.op, bits, out=byte), x.type.dtype)


AND, OR, XOR, NOT, SHIFT_LEFT = And(), Or(), Xor(), Not(), ShiftLeft()
SHIFT_RIGHT_ARITHMETIC, SHIFT_RIGHT_LOGICAL = ShiftRightArithmetic(), ShiftRightLogical()
POPULATION_COUNT = PopulationCount()

_logic = described(
    OPERANDS | {"x": "an array or a number, of integers or booleans."},
    "The results, of the promoted dtype.",
    f"TypeError: an argument is neither of integers nor boolean.\n    {NOT_BROADCAST}",
)
_shift = described(
    {"x": "integers.", "y": "the numbers of bits, promoted and broadcast with ``x``."},
    raises=f"TypeError: an argument is not of integers.\n    {NOT_BROADCAST}",
)


@_logic
def bitwise_and(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x & y``: of the bits of integers, or of booleans.

    Source: StableHLO, ``and``.

    >>> import stretto as st
    >>> st.lax.bitwise_and(st.numpy.array([6, 3]), 2)
    Array([2, 2], dtype=int32)
    """
    return binary(AND, x, y, "bitwise_and")


@_logic
def bitwise_or(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x | y``: of the bits of integers, or of booleans.

    Source: StableHLO, ``or``.

    >>> import stretto as st
    >>> st.lax.bitwise_or(st.numpy.array([6, 3]), 1)
    Array([7, 3], dtype=int32)
    """
    return binary(OR, x, y, "bitwise_or")


@_logic
def bitwise_xor(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute ``x ^ y``: of the bits of integers, or of booleans.

    Source: StableHLO, ``xor``.

    >>> import stretto as st
    >>> st.lax.bitwise_xor(st.numpy.array([6, 3]), 2)
    Array([4, 1], dtype=int32)
    """
    return binary(XOR, x, y, "bitwise_xor")


def bitwise_not(x: ArrayLike) -> Array:
    """Invert the bits of integers, or the truth of booleans: ``~x``.

    Args:
        x: integers or booleans.

    Returns:
        An array of the dtype and shape of ``x``.

    Raises:
        TypeError: ``x`` is neither of integers nor of booleans.

    As NumPy's ``bitwise_not``. Source: StableHLO, ``not``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_not(snp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return unary(NOT, x, "bitwise_not")


@_shift
def shift_left(x: ArrayLike, y: ArrayLike) -> Array:
    """Move the bits of integers up: ``x << y``.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    As NumPy's ``left_shift``. Source: StableHLO, ``shift_left``.

    >>> import stretto.numpy as snp
    >>> snp.left_shift(snp.array([1, 2]), 2)
    Array([4, 8], dtype=int32)
    """
    return binary(SHIFT_LEFT, x, y)


@_shift
def shift_right_arithmetic(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of ``x`` down by ``y``, filling with the sign.

    Returns:
        The integers, of the promoted dtype; the sign alone for counts of the width or more.

    Source: StableHLO, ``shift_right_arithmetic``.

    >>> import stretto as st
    >>> st.lax.shift_right_arithmetic(st.numpy.array([-8, 8]), 1)
    Array([-4,  4], dtype=int32)
    """
    return binary(SHIFT_RIGHT_ARITHMETIC, x, y)


@_shift
def shift_right_logical(x: ArrayLike, y: ArrayLike) -> Array:
    """Shift the bits of ``x`` down by ``y``, filling with zeros.

    Returns:
        The integers, of the promoted dtype; 0 for counts of the width or more.

    Source: StableHLO, ``shift_right_logical``.

    >>> import stretto as st
    >>> st.lax.shift_right_logical(st.numpy.array([-1, 8]), 1)
    Array([2147483647,          4], dtype=int32)
    """
    return binary(SHIFT_RIGHT_LOGICAL, x, y)


def population_count(x: ArrayLike) -> Array:
    """Count the bits that are set in each integer.

    Args:
        x: integers.

    Returns:
        The counts, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not of integers.

    Source: StableHLO, ``popcnt``.

    >>> import stretto as st
    >>> st.lax.population_count(st.numpy.array([7, 8]))
    Array([3, 1], dtype=int32)
    """
    return unary(POPULATION_COUNT, x)


class Clz(Bitwise):
    """The number of zero bits above the highest set one."""

    accepts = INTEGRAL
    op = "count_leading_zeros"

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Subtract the number's length, which is ``frexp``'s exponent, from the width."""
        width = int(ml_dtypes.iinfo(x.dtype).bits)
        bits = x.astype(np.int64).astype(np.uint64) if x.dtype != np.uint64 else x
        bits = bits & np.uint64(2**width - 1)
        high, low = bits >> np.uint64(32), bits & np.uint64(2**32 - 1)
        length = np.where(high > 0, np.frexp(high)[1] + 32, np.frexp(low)[1])
        return (width - length).astype(x.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write StableHLO ``count_leading_zeros``; for types narrower than a byte, in a byte."""
        width = int(ml_dtypes.iinfo(x.type.dtype).bits)
        if width >= 8:
            return b.emit(self.op, x)
        byte = array_type(x.type.shape, np.dtype(np.uint8))
        bits = b.emit("and", b.convert(x, byte.dtype), b.splat(2**width - 1, byte), out=byte)
        count = b.emit(
            "subtract", b.emit(self.op, bits, out=byte), b.splat(8 - width, byte), out=byte
        )
        return b.convert(count, x.type.dtype)


def _high_half(x: Any, y: Any) -> Any:
    """Give the high half of products, for NumPy and traced arrays: from products twice as wide."""
    width = int(ml_dtypes.iinfo(x.dtype).bits)
    wide = np.dtype(np.uint64 if kind_of(x.dtype) == "uint" else np.int64)
    u, v = x.astype(wide), y.astype(wide)
    if width < 64:
        return (u * v >> width).astype(x.dtype)
    # (a 2^32 + b)(c 2^32 + d) = ac 2^64 + (ad + bc) 2^32 + bd, with b and d not negative.
    mask = 2**32 - 1
    a, b, c, d = u >> 32, u & mask, v >> 32, v & mask
    first = a * d + (b.astype(np.uint64) * d.astype(np.uint64) >> 32).astype(wide)
    second = b * c + (first & mask)
    return a * c + (first >> 32) + (second >> 32)


class Mulhi(Elementwise):
    """The bits of the product above those that the dtype holds."""

    accepts = INTEGRAL
    reference = staticmethod(_high_half)
    jvp = ZERO_DERIVATIVE

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """Write it out, in 64 bits whatever the setting; XLA cannot fuse CHLO ``mulhi``."""
        with enable_x64():
            return b.inline(_high_half, x, y)


class ReducePrecision(Elementwise):
    """Floats rounded, halves to even, to fewer bits of exponent and mantissa; in their dtype."""

    accepts = FLOAT
    keeps_zeros = True

    exponent_bits: int
    mantissa_bits: int

    def __post_init__(self) -> None:
        if self.exponent_bits < 1 or self.mantissa_bits < 0:
            raise ValueError(
                f"reduce_precision: expected exponent_bits >= 1 and mantissa_bits >= 0, got "
                f"{self.exponent_bits} and {self.mantissa_bits}"
            )

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Round the bits as an integer, which carries into the exponent."""
        info = ml_dtypes.finfo(x.dtype)
        bits = x.view(f"u{x.dtype.itemsize}")
        word = bits.dtype.type
        sign = bits & word(1 << (8 * x.dtype.itemsize - 1))
        dropped = max(int(info.nmant) - self.mantissa_bits, 0)
        out = bits ^ sign
        if dropped:
            odd = out >> word(dropped) & word(1)
            out = out + odd + word((1 << (dropped - 1)) - 1)
            out = out & ~word((1 << dropped) - 1)
        exponents = int(info.nexp)
        if self.exponent_bits < exponents:
            bias, fewer = (1 << (exponents - 1)) - 1, (1 << (self.exponent_bits - 1)) - 1
            exponent = out >> word(info.nmant)
            infinity = word((1 << exponents) - 1 << int(info.nmant))
            out = np.where(exponent > word(bias + fewer), infinity, out)
            out = np.where(exponent <= word(bias - fewer), word(0), out).astype(bits.dtype)
        return np.where(np.isnan(x), x, (out | sign).astype(bits.dtype).view(x.dtype))

    def lower(self, b: Any, x: Any) -> Any:
        return b.reduce_precision(x, self.exponent_bits, self.mantissa_bits)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Let the tangent through, rounded in the same way, as mixed precision needs."""
        return self(*primals), None if tangents[0] is None else self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (self(ct),)


CLZ, MULHI = Clz(), Mulhi()


def clz(x: ArrayLike) -> Array:
    """Count the leading zero bits of each integer.

    Args:
        x: integers.

    Returns:
        The counts, of the shape and dtype of ``x``; the width of the dtype for 0.

    Raises:
        TypeError: ``x`` is not of integers.

    Source: StableHLO, ``count_leading_zeros``.

    >>> import stretto as st
    >>> st.lax.clz(st.numpy.array([0, 1, -1]))
    Array([32, 31,  0], dtype=int32)
    """
    return unary(CLZ, x)


def mulhi(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the high half of the bits of each product of two integers.

    Args:
        x: integers.
        y: integers, promoted and broadcast with ``x``.

    Returns:
        The high halves, of the operands' dtype.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes cannot be broadcast together.

    Source: CHLO, ``mulhi``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.mulhi(snp.uint32(2**31), snp.uint32(6))
    Array(3, dtype=uint32)
    """
    return MULHI(*promote_values("mulhi", x, y))


def reduce_precision(operand: ArrayLike, exponent_bits: int, mantissa_bits: int) -> Array:
    """Round floats to what a narrower format holds, in the same dtype.

    Rounds to the nearest, halves to even; beyond the range to infinity, and below it to zero.
    Tangents and cotangents are rounded in the same way.

    Args:
        operand: an array of floats.
        exponent_bits: the number of bits of the exponent, at least 1.
        mantissa_bits: the number of bits of the mantissa.

    Returns:
        The rounded floats, of the shape and dtype of ``operand``.

    Raises:
        TypeError: ``operand`` is not of floats.
        ValueError: there is no bit for the exponent, or a number of bits is negative.

    Source: StableHLO, ``reduce_precision``.

    >>> import stretto as st
    >>> st.lax.reduce_precision(st.numpy.array([1.2345678, 1e30]), 5, 10)  # float16
    Array([1.234375,      inf], dtype=float32)
    """
    primitive = ReducePrecision(
        integer(exponent_bits, "reduce_precision", "exponent_bits"),
        integer(mantissa_bits, "reduce_precision", "mantissa_bits"),
    )
    return primitive(as_value(operand, "reduce_precision", "operand"))
