"""Leading zero bits, the high half of integer products, and floats rounded to fewer bits."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.config import enable_x64
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import ZERO_DERIVATIVE
from stretto._engine.core.types import array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bitwise import Bitwise
from stretto._engine.ops.elementwise import FLOAT, INTEGRAL, Elementwise, promote_values, unary


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
