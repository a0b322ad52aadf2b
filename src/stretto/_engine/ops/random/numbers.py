"""Random bits as numbers: floats in [0, 1), and integers below a bound.

Both treat each element alone; as primitives they are one step where nothing is compiled.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.arithmetic import ADD, MUL, REM, SUB
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.bitwise import OR, SHIFT_RIGHT_LOGICAL
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import Elementwise


def bits_width(dtype: np.dtype) -> int:
    """The number of random bits from which ``unit_float`` makes one number of this dtype."""
    info = ml_dtypes.finfo(dtype)
    return 8 if info.nmant < 8 else int(info.bits)


class UnitFloat(Elementwise):
    """The highest bits as the mantissa of a float in [1, 2), less 1."""

    accepts = frozenset({"uint"})
    splat = False
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    dtype: np.dtype

    def infer(self, *types: ArrayType) -> ArrayType:
        """The floating dtype; refuses other numbers of bits."""
        (x,) = types
        if kind_of(x.dtype) != "uint" or 8 * x.dtype.itemsize != bits_width(self.dtype):
            raise TypeError(
                f"unit_float: expected uint{bits_width(self.dtype)} for {self.dtype}, got {x}"
            )
        return array_type(x.shape, self.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        shift, one = self._constants(x.dtype)
        word = np.right_shift(x, x.dtype.type(shift), dtype=x.dtype).astype(one.dtype, copy=False)
        return np.bitwise_or(word, one).view(self.dtype) - self.dtype.type(1)

    def _constants(self, bits: np.dtype) -> tuple[int, np.ndarray]:
        one = np.ones((), self.dtype).view(f"u{self.dtype.itemsize}")
        return 8 * bits.itemsize - ml_dtypes.finfo(self.dtype).nmant, one

    def lower(self, b: Any, x: Any) -> Any:
        def written_out(bits: Any) -> Any:
            shift, one = self._constants(bits.dtype)
            word = convert(SHIFT_RIGHT_LOGICAL(bits, full_like(bits, shift)), one.dtype)
            number = bitcast_convert_type(OR(word, full_like(word, one)), self.dtype)
            return SUB(number, full_like(number, 1))

        return b.inline(written_out, x)


class WideRemainder(Elementwise):
    """``(upper * 2**bits + lower) mod span``; a span of 0 stands for ``2**bits``."""

    accepts = frozenset({"uint"})
    splat = False
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def reference(self, upper: np.ndarray, lower: np.ndarray, span: np.ndarray) -> np.ndarray:
        """Products that wrap, of remainders; modulo 0 is no change."""
        whole = span == 0
        safe = np.where(whole, 1, span).astype(span.dtype)
        half = span.dtype.type(1 << 4 * span.dtype.itemsize)
        factor = half % safe
        factor = factor * factor % safe  # 2**bits mod span
        return np.where(whole, lower, (upper % safe * factor + lower % safe) % safe)

    def lower(self, b: Any, upper: Any, lower: Any, span: Any) -> Any:
        def written_out(upper: Any, lower: Any, span: Any) -> Any:
            factor = REM(full_like(span, 1 << 4 * span.dtype.itemsize), span)
            factor = REM(MUL(factor, factor), span)
            return REM(ADD(MUL(REM(upper, span), factor), REM(lower, span)), span)

        return b.inline(written_out, upper, lower, span)


WIDE_REMAINDER = WideRemainder()


def unit_float(bits: Any, dtype: np.dtype) -> Any:
    """Floats in [0, 1), as many as the mantissa has values, from unsigned integers.

    >>> import stretto.numpy as snp
    >>> unit_float(snp.array([0, 2**31, 2**32 - 1], dtype=snp.uint32), np.dtype("float32"))
    Array([0.       , 0.5      , 0.9999999], dtype=float32)
    """
    return UnitFloat(dtype)(as_value(bits, "unit_float", "bits"))


def wide_remainder(upper: Any, lower: Any, span: Any) -> Any:
    """Integers below ``span`` from twice their number of bits, all unsigned and of one type.

    >>> import stretto.numpy as snp
    >>> upper, lower, span = (snp.array(n, dtype=snp.uint8) for n in (2, 7, 10))
    >>> wide_remainder(upper, lower, span)  # (2 * 256 + 7) mod 10
    Array(9, dtype=uint8)
    """
    operands = zip((upper, lower, span), ("upper", "lower", "span"), strict=True)
    return WIDE_REMAINDER(*[as_value(x, "wide_remainder", name) for x, name in operands])
