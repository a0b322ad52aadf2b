"""Bits of floats by arithmetic, for versions of the operators that have no BitCast.

A float is its mantissa, an integer, times a power of two: both ways are exact. The powers are read
from a table. What is lost is the sign and the payload of a NaN.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.types import array_type
from stretto._engine.lowering.onnx.graph import Operand
from stretto._engine.ops import written
from stretto._engine.ops.written import Term, where

_I64 = np.dtype(np.int64)


class _Layout:
    """Where the parts of a float lie, and the dtypes in which they are computed."""

    def __init__(self, dtype: np.dtype) -> None:
        info = ml_dtypes.finfo(dtype)
        self.width = 8 * dtype.itemsize
        self.mantissa = int(info.nmant)
        self.last = (1 << self.width - 1 - self.mantissa) - 1  # of infinities and NaN
        self.bias = self.last >> 1
        self.wide = np.dtype(np.float64 if self.width == 64 else np.float32)
        self.whole = np.dtype(np.uint64 if self.width == 64 else np.uint32)


def float_of(b: Any, x: Operand, dtype: np.dtype) -> Operand:
    """Return the floats whose bits these integers are."""
    of = _Layout(dtype)
    bits = Term(b, b.cast(b.cast(x, np.dtype(f"u{dtype.itemsize}")), of.whole))
    exponent = bits.apply("shift_right_logical", of.mantissa) & of.last
    mantissa = bits & ((1 << of.mantissa) - 1)
    powers = np.ldexp(1.0, np.maximum(np.arange(of.last + 1), 1) - of.bias - of.mantissa)
    powers[-1] = np.inf
    hidden = where(exponent == 0, mantissa, mantissa | (1 << of.mantissa))
    size = _cast(hidden, of.wide) * _looked_up(exponent, powers, of.wide)
    size = where((exponent == of.last) & (mantissa != 0), np.nan, size)
    sign = bits.apply("shift_right_logical", of.width - 1)
    return b.cast((size * _looked_up(sign, np.array([1.0, -1.0]), of.wide)).operand, dtype)


def bits_of(b: Any, x: Operand, dtype: np.dtype) -> Operand:
    """Return the bits of floats as integers of this dtype."""
    of = _Layout(x.type.dtype)
    number = Term(b, b.cast(x, of.wide))
    size = where(number == number, written.absolute(number), 1.0)  # noqa: PLR0124 (no NaN)
    least, most = 2.0 ** (1 - of.bias), 2.0**of.bias
    # The logarithm may be one off at a power of two, which comparisons with the powers show.
    bounded = size.apply("maximum", least).apply("minimum", most)
    near = written.floor(written.log(bounded) * (1 / np.log(2)))
    near = near.apply("maximum", 1.0 - of.bias).apply("minimum", float(of.bias))
    exponent = _cast(near, _I64) + of.bias
    powers = np.ldexp(1.0, np.maximum(np.arange(of.last), 1) - of.bias)
    power = _looked_up(exponent, powers, of.wide)
    low, high = size < power, size * 0.5 >= power
    exponent = where(low, exponent - 1, where(high, exponent + 1, exponent))
    power = power * where(low, 0.5, where(high, 2.0, power * 0.0 + 1.0))
    finite = where(size == np.inf, power, size)
    mantissa = _cast((finite / power - 1.0) * 2.0**of.mantissa, _I64)
    bits = exponent * (1 << of.mantissa) + mantissa
    shift = of.bias - 1 + of.mantissa
    tiny = where(size < least, size, 0.0) * 2.0 ** (shift // 2) * 2.0 ** (shift - shift // 2)
    bits = where(size < least, _cast(tiny, _I64), bits)
    infinity = of.last << of.mantissa
    bits = where(size == np.inf, infinity, bits)
    bits = where(number == number, bits, infinity | 1 << of.mantissa - 1)  # noqa: PLR0124
    negative = (number < 0.0) | ((number == 0.0) & (1.0 / number < 0.0))
    bits = where(negative, bits + (-1 << of.width - 1), bits)
    return b.cast(bits.operand, dtype)


def _cast(x: Term, dtype: np.dtype) -> Term:
    return Term(x.b, x.b.cast(x.operand, dtype))


def _looked_up(x: Term, table: np.ndarray, dtype: np.dtype) -> Term:
    """Return the elements of a table at these places."""
    b, places = x.b, _cast(x, _I64).operand
    with np.errstate(over="ignore"):
        name = b.node("Gather", [b.constant(table.astype(dtype)), b.named(places)])
    return Term(b, Operand(name, array_type(places.type.shape, dtype), places.shape))
