"""What becomes of the operations of StableHLO and CHLO that treat each element alone.

``WRITTEN`` has a function for each name: from the writer, operands of one shape, and the type of
the result. Most are one operator. Where onnxruntime differs from what arrays here do, it is written
out: integers divided by zero, shifts by the width and more, floats that are cast beyond the bounds.
What cannot be kept is the sign of a zero that goes through a choice: ``Where`` adds 0 to it.
Complex numbers are pairs of real ones, and have formulas of their own.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.types import ArrayType, array_type, real_dtype
from stretto._engine.lowering.onnx.graph import Operand, Pair
from stretto._engine.ops import written
from stretto._engine.ops.written import Term, where

_F32, _F64 = np.dtype(np.float32), np.dtype(np.float64)
_BOOL = np.dtype(bool)

Rule = Callable[..., Any]


def _operator(op: str, **attributes: Any) -> Rule:
    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        return b.apply(op, operands, out, **attributes)

    return write


def _terms(function: Callable[..., Any]) -> Rule:
    """Return the rule that is a formula of terms."""

    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        return function(*[Term(b, x) for x in operands]).operand

    return write


def _logic(boolean: str, bitwise: str) -> Rule:
    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        return b.apply(boolean if out.kind == "bool" else bitwise, operands, out)

    return write


def _wide_or(op: str, formula: Callable[..., Any]) -> Rule:
    """Return the rule of an operator without a kernel for float64, which has a formula then."""
    by_formula = _terms(formula)

    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        if out.dtype == _F64:
            return by_formula(b, operands, out)
        return b.apply(op, operands, out)

    return write


# Formulas


def _sign_of(x: Term) -> Term:
    return x.apply("sign")


def _expm1(x: Term) -> Term:
    """Kahan's: what rounding took from exp(x) - 1 is put back by the logarithm.

    As a multiple of x, which keeps the sign of a zero. It is -1 long before -100.
    """
    x = x.apply("maximum", -100.0)
    u = written.exp(x)
    ratio = where(u == 1.0, 1.0, (u - 1.0) / written.log(u))
    ratio = where(u - 1.0 == -1.0, -1.0 / x, ratio)
    return x * where(u == math.inf, u, ratio)


def _log1p(x: Term) -> Term:
    """Kahan's, the other way round; as a multiple of x, too."""
    u = 1.0 + x
    ratio = where(u == 1.0, 1.0, written.log(u) / (u - 1.0))
    return where(u == math.inf, 1.0, x) * where(u == math.inf, u, ratio)


def _cbrt(x: Term) -> Term:
    size = written.absolute(x)
    root = written.power(size, 1.0 / 3.0)
    better = root - (root * root * root - size) / (3.0 * root * root)
    return _sign_of(x) * where((size == 0.0) | (size == math.inf), size, better)


def _round_away(x: Term) -> Term:
    size = written.absolute(x)
    whole = written.floor(size)
    return _sign_of(x) * where(size - whole >= 0.5, whole + 1.0, whole)


def _sinh(x: Term) -> Term:
    """Return (e^a - e^-a) / 2 by expm1, which keeps the digits near zero."""
    size = written.absolute(x)
    most = _expm1(where(size > 700.0, 700.0, size))
    near = 0.5 * (most + most / (most + 1.0))
    half = written.exp(0.5 * size)
    return _sign_of(x) * where(size > 700.0, (0.5 * half) * half, near)


def _cosh(x: Term) -> Term:
    half = written.exp(0.5 * written.absolute(x))
    return (0.5 * half) * half + 0.5 / (half * half)


def _asinh(x: Term) -> Term:
    size = written.absolute(x)
    square = where(size > 1e150, 1.0, size * size)
    near = _log1p(size + square / (1.0 + written.sqrt(square + 1.0)))
    return _sign_of(x) * where(size > 1e150, written.log(size) + math.log(2.0), near)


def _acosh(x: Term) -> Term:
    above = x - 1.0
    near = _log1p(above + written.sqrt(above) * written.sqrt(x + 1.0))
    return where(x > 1e150, written.log(x) + math.log(2.0), near)


def _atanh(x: Term) -> Term:
    size = written.absolute(x)
    return _sign_of(x) * (0.5 * _log1p(2.0 * size / (1.0 - size)))


_ATAN_TERMS = [(-1.0) ** k / (2 * k + 1) for k in range(14)]


def _atan(x: Term) -> Term:
    """Halve the angle twice, then sum the series, for tangents of up to tan(pi / 16)."""
    size = written.absolute(x)
    inverse = size > 1.0
    t = where(inverse, 1.0 / size, size)
    for _ in range(2):
        t = t / (1.0 + written.sqrt(1.0 + t * t))
    angle = 4.0 * (t * written.horner(_ATAN_TERMS, t * t))
    return _sign_of(x) * where(inverse, math.pi / 2 - angle, angle)


def _asin(x: Term) -> Term:
    return _atan(x / written.sqrt((1.0 - x) * (1.0 + x)))


def _acos(x: Term) -> Term:
    return 2.0 * _atan(written.sqrt((1.0 - x) / (1.0 + x)))


def _atan2(y: Term, x: Term) -> Term:
    """Return the angle by the quotient of the lesser and the greater; zeros have signs."""
    b, type = y.b, y.type
    flat, steep = written.absolute(x), written.absolute(y)
    swap = steep > flat
    low, high = where(swap, flat, steep), where(swap, steep, flat)
    equal = low == high
    ratio = where(equal, where(high == 0.0, high.like(0.0), 1.0), low / high)
    angle = Term(b, b.emit("atan", ratio.operand, out=type, dialect="chlo"))
    angle = where(swap, math.pi / 2 - angle, angle)
    angle = where(_is_negative(x), math.pi - angle, angle)
    angle = where(_is_negative(y), -angle, angle)
    return where(written.is_nan(x) | written.is_nan(y), x + y, angle)


def _is_negative(x: Term) -> Term:
    """Say whether the sign is -, of zeros too: 1 / -0 is -inf."""
    return (x < 0.0) | ((x == 0.0) & (1.0 / x < 0.0))


def _erf_wide(x: Term) -> Term:
    """Compute in float64, by a series near zero, and as 1 - erfc(x) elsewhere."""
    size = written.absolute(x)
    near = size < 1.0
    t = where(near, x, 0.0)
    total = written.horner(
        [
            2.0 / math.sqrt(math.pi) * (-1.0) ** k / (math.factorial(k) * (2 * k + 1))
            for k in range(20)  # terms up to x^39
        ],
        t * t,
    )
    return where(near, t * total, _sign_of(x) * (1.0 - _erfc_of_size(size)))


def _erfc_of_size(x: Term) -> Term:
    """Expand it, for x >= 0, in Chebyshev polynomials of (x - 4) / (x + 4), times exp(-x^2)."""
    x = where(x > 30.0, 30.0, x)  # it is 0 there, and infinity has no such quotient
    return written.exp(-(x * x)) * written.chebyshev(_ERFCX, (x - 4.0) / (x + 4.0))


def _erfcx_coefficients() -> list[float]:
    """Interpolate exp(x^2) erfc(x) at Chebyshev points of (x - 4) / (x + 4)."""
    count = 40
    k = np.arange(count)
    theta = np.pi * (k + 0.5) / count
    t = np.cos(theta)
    x = 4.0 * (1.0 + t) / (1.0 - t)
    values = written.special.erfcx(x)
    sums = 2.0 / count * np.cos(np.outer(k, theta)) @ values
    sums[0] /= 2.0
    return [float(c) for c in sums]


_ERFCX_NARROW = (
    1.790011688e-01,
    -3.262336202e-01,
    2.456024885e-01,
    -1.501130205e-01,
    7.168097080e-02,
    -2.441659500e-02,
    4.205710788e-03,
    7.686534807e-04,
    -4.850547715e-04,
)


def _erfc_narrow(b: Any, x: Operand) -> Operand:
    """Take, in float32, a polynomial of (x - 3) / (x + 3) times exp(-x^2): within 4e-6."""
    if not b.exact:
        return (1.0 - Term(b, b.apply("Erf", [x], x.type))).operand
    # Choices between elements, signs and absolute values each take as long as ten products: so the
    # sign is that of a clipped multiple, and near zero, where it is less than one, erfc is 1.
    z = _clipped(b, Term(b, x), 30.0)
    sign = _clipped(b, z * 1e30, 1.0)
    size = z * sign
    tail = written.exp(-(size * size)) * written.horner(_ERFCX_NARROW, (size - 3.0) / (size + 3.0))
    found = ((1.0 - sign) + sign * tail).operand
    b.formulas[b.named(found)] = "Erfc", b.named(x)
    return found


def _clipped(b: Any, x: Term, bound: float) -> Term:
    low, high = [b.splat(v, x.type) for v in (-bound, bound)]
    return Term(b, b.apply("Clip", [x.operand, low, high], x.type))


def _erfc(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Return erfc; by a formula, so that the tail keeps its digits."""
    if out.dtype != _F64:
        x = b.convert(operands[0], _F32)
        return b.convert(_erfc_narrow(b, x), out.dtype)
    global _ERFCX  # noqa: PLW0603 (computed once, when the first is exported)
    if not _ERFCX:
        _ERFCX = _erfcx_coefficients()
    x = Term(b, operands[0])
    size = written.absolute(x)
    tail = _erfc_of_size(size)
    return where(x < 0.0, 2.0 - tail, tail).operand


_ERFCX: list[float] = []


def _erf(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    if out.dtype != _F64:
        return b.apply("Erf", operands, out)
    if not _ERFCX:
        _erfc(b, operands, out)
    return _erf_wide(Term(b, operands[0])).operand


def _erf_inv(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Take Winitzki's first guess, within 2e-3, and three of Halley's steps in float64."""
    x = Term(b, b.convert(operands[0], _F64))
    wide = x.type
    size = written.absolute(x)
    inside = where(size < 1.0, x, 0.0)
    a = 0.147  # Winitzki's
    log_part = _log1p(-(inside * inside))
    u = 2.0 / (math.pi * a) + 0.5 * log_part
    y = _sign_of(inside) * written.sqrt(written.sqrt(u * u - log_part / a) - u)
    for _ in range(3):  # Halley's steps
        error = _erf_term(b, y, wide, inside)
        step = error * (0.5 * math.sqrt(math.pi)) * written.exp(y * y)
        y = y - step / (1.0 + y * step)
    y = where(size == 1.0, _sign_of(x) * math.inf, where(size > 1.0, math.nan, y))
    y = where(written.is_nan(x), x, y)
    return b.convert(y.operand, out.dtype)


def _erf_term(b: Any, y: Term, wide: ArrayType, x: Term) -> Term:
    """Return erf(y) - x, by the complement where that is near one."""
    size = written.absolute(y)
    tail = Term(b, _erfc(b, [size.operand], wide))
    far = _sign_of(y) * ((1.0 - written.absolute(x)) - tail)
    near = Term(b, _erf(b, [y.operand], wide)) - x
    return where(size > 1.0, far, near)


# Integers


def _negate(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    if out.kind == "uint":
        return b.apply("Sub", [b.splat(0, out), operands[0]], out)
    return b.apply("Neg", operands, out)


def _guarded(op: str, by_zero: Callable[..., Any], least: Callable[..., Any]) -> Rule:
    """Return the rule of a quotient, which ends the process for some integers as it is.

    ``by_zero`` is the result for a divisor of zero, and ``least`` for one of -1.
    """

    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        attributes = {"fmod": 1} if op == "Mod" else {}
        if out.kind not in ("int", "uint"):
            return b.apply(op, operands, out, **attributes)
        x, y = operands
        if y.value is not None and np.all(y.value != 0) and np.all(y.value != -1):
            return b.apply(op, operands, out, **attributes)
        zero, one = b.splat(0, out), b.splat(1, out)
        is_zero = b.compare("EQ", y, zero)
        safe = b.select(is_zero, one, y)
        if out.kind == "uint":
            result = b.apply(op, [x, safe], out, **attributes)
        else:
            minus = b.compare("EQ", y, b.splat(-1, out))
            result = b.apply(op, [x, b.select(minus, one, safe)], out, **attributes)
            result = b.select(minus, least(b, x, out), result)
        return b.select(is_zero, by_zero(b, x, out), result)

    return write


def _all_ones(b: Any, x: Operand, out: ArrayType) -> Operand:
    return b.splat(-1 if out.kind == "int" else np.iinfo(out.dtype).max, out)


def _bits(dtype: np.dtype) -> np.dtype:
    return np.dtype(f"u{dtype.itemsize}")


def _shift(direction: str, arithmetic: bool = False) -> Rule:
    """Return the rule of a shift; by the width or more it leaves nothing, or the sign's bits."""

    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        x, amount = operands
        if arithmetic and out.kind == "uint":  # the bits of a signed integer
            signed = array_type(out.shape, np.dtype(f"i{out.dtype.itemsize}"))
            parts = [b.cast(v, signed.dtype) for v in operands]
            return b.cast(write(b, parts, signed), out.dtype)
        unsigned = array_type(out.shape, _bits(out.dtype))
        width = 8 * out.dtype.itemsize
        negative = None
        if arithmetic and out.kind == "int":
            negative = b.compare("LT", x, b.splat(0, out))
            x = b.select(negative, b.apply("BitwiseNot", [x], out), x)
        bits, by = b.convert(x, unsigned.dtype), b.convert(amount, unsigned.dtype)
        known = amount.value is not None and np.all((amount.value >= 0) & (amount.value < width))
        beyond = None if known else b.compare("GE", by, b.splat(width, unsigned))
        if beyond is not None:
            by = b.select(beyond, b.splat(0, unsigned), by)
        moved = b.apply("BitShift", [bits, by], unsigned, direction=direction)
        if beyond is not None:
            moved = b.select(beyond, b.splat(0, unsigned), moved)
        moved = b.convert(moved, out.dtype)
        if negative is None:
            return moved
        return b.select(negative, b.apply("BitwiseNot", [moved], out), moved)

    return write


def _popcount(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Add up bits by pairs, fours, bytes; then the bytes by a product."""
    unsigned = array_type(out.shape, _bits(out.dtype))
    width = 8 * out.dtype.itemsize
    x = b.convert(operands[0], unsigned.dtype)
    for step in (1, 2, 4, 8, 16, 32):
        if step >= width:
            break
        mask = b.splat(sum((2**step - 1) << at for at in range(0, width, 2 * step)), unsigned)
        high = b.apply("BitShift", [x, b.splat(step, unsigned)], unsigned, direction="RIGHT")
        low, high = [b.apply("BitwiseAnd", [v, mask], unsigned) for v in (x, high)]
        x = b.apply("Add", [low, high], unsigned)
    return b.convert(x, out.dtype)


def _clz(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Set all bits below the first, and count those that are left."""
    unsigned = array_type(out.shape, _bits(out.dtype))
    x = b.convert(operands[0], unsigned.dtype)
    step = 1
    while step < 8 * out.dtype.itemsize:
        moved = b.apply("BitShift", [x, b.splat(step, unsigned)], unsigned, direction="RIGHT")
        x = b.apply("BitwiseOr", [x, moved], unsigned)
        step *= 2
    return _popcount(b, [b.convert(b.apply("BitwiseNot", [x], unsigned), out.dtype)], out)


# Floats


def _is_finite(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Say it by comparing with infinity: false for NaN."""
    (x,) = operands
    return b.compare("LT", b.emit("abs", x, out=x.type), b.splat(math.inf, x.type))


def _is_inf(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    return b.apply("IsInf", operands, out)


def _rsqrt(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    return b.apply("Reciprocal", [b.apply("Sqrt", operands, out)], out)


def _logistic(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Return 1 / (1 + exp(-x)); the operator Sigmoid is coarse in its tails."""
    if not b.exact:
        return b.apply("Sigmoid", operands, out)
    e = b.apply("Exp", [b.apply("Neg", operands, out)], out)
    return b.apply("Reciprocal", [b.apply("Add", [e, b.splat(1, out)], out)], out)


def _sign(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Return the sign, and NaN and signed zeros as they are."""
    (x,) = operands
    result = b.apply("Sign", operands, out)
    if out.kind != "float":
        return result
    there = b.compare("GT", b.emit("abs", x, out=out), b.splat(0, out))
    return b.select(there, result, x)


def _clamp(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    low, x, high = operands
    return b.apply("Min", [b.apply("Max", [x, low], out), high], out)


def _extremum(op: str) -> Rule:
    boolean = {"Max": "Or", "Min": "And"}[op]

    def write(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
        return b.apply(boolean if out.kind == "bool" else op, operands, out)

    return write


def _power(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    return b.apply("Pow", operands, out)


def _next_after(b: Any, operands: Sequence[Operand], out: ArrayType) -> Operand:
    """Step the bits by one: towards zero they count down, from zero to the least number."""
    x, y = operands
    bits_type = array_type(out.shape, np.dtype(f"i{out.dtype.itemsize}"))
    bits = b.bitcast(x, bits_type)
    zero = b.splat(0, out)
    at_zero = b.compare("EQ", x, zero)
    up = b.compare("LT", x, y)
    positive = b.compare("GT", x, zero)
    away = b.compare("EQ", up, positive)
    one = b.splat(1, bits_type)
    step = b.select(away, one, b.splat(-1, bits_type))
    moved = b.apply("Add", [bits, step], bits_type)
    least = b.select(up, one, b.splat(int(np.iinfo(bits_type.dtype).min) + 1, bits_type))
    moved = b.bitcast(b.select(at_zero, least, moved), out)
    same = b.compare("EQ", x, y)
    nan = b.apply(
        "Or", [b.compare("NE", x, x), b.compare("NE", y, y)], array_type(out.shape, _BOOL)
    )
    return b.select(nan, b.apply("Add", [x, y], out), b.select(same, y, moved))


def rounded(b: Any, x: Operand, exponent_bits: int, mantissa_bits: int) -> Operand:
    """Round the bits of floats as integers, which carries into the exponent."""
    info = ml_dtypes.finfo(x.type.dtype)
    type = array_type(x.type.shape, _bits(x.type.dtype))
    word = Term(b, b.bitcast(x, type))
    sign = word & (1 << (8 * x.type.dtype.itemsize - 1))
    out = word.apply("xor", sign)
    dropped = max(int(info.nmant) - mantissa_bits, 0)
    if dropped:
        odd = out.apply("shift_right_logical", dropped) & 1
        out = out + odd + ((1 << (dropped - 1)) - 1)
        out = out & (((1 << (8 * x.type.dtype.itemsize)) - 1) ^ ((1 << dropped) - 1))
    exponents = int(info.nexp)
    if exponent_bits < exponents:
        bias, fewer = (1 << (exponents - 1)) - 1, (1 << (exponent_bits - 1)) - 1
        exponent = out.apply("shift_right_logical", int(info.nmant))
        infinity = ((1 << exponents) - 1) << int(info.nmant)
        out = where(exponent > bias + fewer, out.like(infinity), out)
        out = where(exponent > bias - fewer, out, out.like(0))
    result = b.bitcast((out | sign).operand, x.type)
    return b.select(b.compare("EQ", x, x), result, x)


WRITTEN: dict[str, Rule] = {
    "abs": lambda b, xs, out: xs[0] if out.kind == "uint" else b.apply("Abs", xs, out),
    "acos": _wide_or("Acos", _acos),
    "acosh": _wide_or("Acosh", _acosh),
    "add": lambda b, xs, out: b.apply("Or" if out.kind == "bool" else "Add", xs, out),
    "and": _logic("And", "BitwiseAnd"),
    "asin": _wide_or("Asin", _asin),
    "asinh": _wide_or("Asinh", _asinh),
    "atan": _wide_or("Atan", _atan),
    "atan2": _terms(_atan2),
    "atanh": _wide_or("Atanh", _atanh),
    "cbrt": _terms(_cbrt),
    "ceil": _operator("Ceil"),
    "clamp": _clamp,
    "convert": lambda b, xs, out: b.convert(xs[0], out.dtype),
    "cosh": _wide_or("Cosh", _cosh),
    "cosine": _operator("Cos"),
    "count_leading_zeros": _clz,
    "divide": _guarded(
        "Div", _all_ones, lambda b, x, out: b.apply("Sub", [b.splat(0, out), x], out)
    ),
    "erf": _erf,
    "erf_inv": _erf_inv,
    "erfc": _erfc,
    "exponential": _operator("Exp"),
    "exponential_minus_one": _terms(_expm1),
    "floor": _operator("Floor"),
    "is_finite": _is_finite,
    "is_inf": _is_inf,
    "log": _operator("Log"),
    "log_plus_one": _terms(_log1p),
    "logistic": _logistic,
    "maximum": _extremum("Max"),
    "minimum": _extremum("Min"),
    "multiply": lambda b, xs, out: b.apply("And" if out.kind == "bool" else "Mul", xs, out),
    "negate": _negate,
    "next_after": _next_after,
    "not": _logic("Not", "BitwiseNot"),
    "or": _logic("Or", "BitwiseOr"),
    "popcnt": _popcount,
    "power": _power,
    "remainder": _guarded("Mod", lambda b, x, out: x, lambda b, x, out: b.splat(0, out)),
    "round_nearest_afz": _terms(_round_away),
    "round_nearest_even": _operator("Round"),
    "rsqrt": _rsqrt,
    "select": lambda b, xs, out: b.select(*xs),
    "shift_left": _shift("LEFT"),
    "shift_right_arithmetic": _shift("RIGHT", arithmetic=True),
    "shift_right_logical": _shift("RIGHT"),
    "sign": _sign,
    "sine": _operator("Sin"),
    "sinh": _wide_or("Sinh", _sinh),
    "sqrt": _operator("Sqrt"),
    "subtract": _operator("Sub"),
    "tan": _wide_or("Tan", lambda x: written.sin(x) / written.cos(x)),
    "tanh": _operator("Tanh"),
    "xor": _logic("Xor", "BitwiseXor"),
}


# Complex numbers


class _C:
    """A complex number as two terms."""

    def __init__(self, re: Term, im: Term) -> None:
        self.re, self.im = re, im

    def __mul__(self, other: _C) -> _C:
        return _C(self.re * other.re - self.im * other.im, self.re * other.im + self.im * other.re)


def _quotient(x: _C, y: _C) -> _C:
    """Smith's: by the quotient of the lesser and the greater part of the divisor."""
    c, d = y.re, y.im
    flat = written.absolute(c) >= written.absolute(d)
    high, low = where(flat, c, d), where(flat, d, c)
    r = low / where(high == 0.0, 1.0, high)
    den = high + low * r
    a, b = where(flat, x.re, x.im), where(flat, x.im, x.re)
    # (a + ib) / (c + id) = ((a + b r) + i (b - a r)) / (c + d r) with r = d / c
    re = (a + b * r) / den
    im = where(flat, b - a * r, a * r - b)
    im = where(flat, im, (x.im * r - x.re))
    re = where(flat, re, (x.re * r + x.im) / den)
    return _C(re, im / den)


def _hypot(x: Term, y: Term) -> Term:
    a, b = written.absolute(x), written.absolute(y)
    high = where(a > b, a, b)
    low = where(a > b, b, a)
    ratio = low / where((high == 0.0) | (high == math.inf), 1.0, high)
    size = high * written.sqrt(1.0 + ratio * ratio)
    nan = written.is_nan(a) | written.is_nan(b)
    return where((a == math.inf) | (b == math.inf), math.inf, where(nan, a + b, size))


def _angle(z: _C) -> Term:
    return _atan2(z.im, z.re)


def _complex_exp(z: _C) -> _C:
    size = written.exp(z.re)
    return _C(size * written.cos(z.im), size * written.sin(z.im))


def _complex_log(z: _C) -> _C:
    return _C(written.log(_hypot(z.re, z.im)), _angle(z))


def _complex_sqrt(z: _C) -> _C:
    size = _hypot(z.re, z.im)
    root = written.sqrt(0.5 * (size + written.absolute(z.re)))
    other = written.absolute(z.im) / where(root == 0.0, 1.0, 2.0 * root)
    left = z.re < 0.0
    im = where(left, root, other)
    im = where(_is_negative(z.im), -im, im)
    return _C(where(left, other, root), im)


def _complex_log1p(z: _C) -> _C:
    re = z.re + 1.0
    squares = z.re * (2.0 + z.re) + z.im * z.im
    small = written.absolute(squares) < 0.5
    near = 0.5 * _log1p(where(small, squares, 0.0))
    return _C(where(small, near, written.log(_hypot(re, z.im))), _atan2(z.im, re))


def _complex_expm1(z: _C) -> _C:
    # e^a cos b - 1 = (e^a - 1) cos b - 2 sin^2(b / 2)
    half = written.sin(0.5 * z.im)
    grown = _expm1(z.re)
    return _C(grown * written.cos(z.im) - 2.0 * half * half, written.exp(z.re) * written.sin(z.im))


def _complex_power(x: _C, y: _C) -> _C:
    return _complex_exp(y * _complex_log(x))


def _complex_tanh(z: _C) -> _C:
    # tanh(a + ib) = (sinh 2a + i sin 2b) / (cosh 2a + cos 2b), with 2a bounded
    a = 2.0 * z.re
    a = where(a > 80.0, 80.0, where(a < -80.0, -80.0, a))
    b2 = 2.0 * z.im
    den = _cosh(a) + written.cos(b2)
    return _C(_sinh(a) / den, written.sin(b2) / den)


def _complex_tan(z: _C) -> _C:
    w = _complex_tanh(_C(-z.im, z.re))  # tan z = -i tanh(iz)
    return _C(w.im, -w.re)


def _complex_logistic(z: _C) -> _C:
    left = z.re < 0.0
    e = _complex_exp(_C(-written.absolute(z.re), where(left, z.im, -z.im)))
    one = z.re.like(1.0)
    zero = z.re.like(0.0)
    return _quotient(_C(where(left, e.re, one), where(left, e.im, zero)), _C(one + e.re, e.im))


def _complex_sign(z: _C) -> _C:
    size = _hypot(z.re, z.im)
    safe = where(size == 0.0, 1.0, size)
    return _C(z.re / safe, z.im / safe)


def _complex_rsqrt(z: _C) -> _C:
    return _quotient(_C(z.re.like(1.0), z.re.like(0.0)), _complex_sqrt(z))


def _i_times(z: _C) -> _C:
    return _C(-z.im, z.re)


def _complex_asinh(z: _C) -> _C:
    """By Hull, Fairgrieve and Tang's products of square roots (as C99's annex G has them)."""
    one = z.re.like(1.0)
    up, down = _complex_sqrt(_C(one - z.im, z.re)), _complex_sqrt(_C(one + z.im, -z.re))
    # sqrt(1 + iz) and sqrt(1 - iz)
    product = up.re * down.im - up.im * down.re
    re = Term(z.re.b, z.re.b.emit("asinh", (-product).operand, out=z.re.type, dialect="chlo"))
    total = up * down
    return _C(re, _atan2(z.im, total.re))


def _complex_asin(z: _C) -> _C:
    w = _complex_asinh(_i_times(z))  # asin z = -i asinh(iz)
    return _C(w.im, -w.re)


def _complex_acos(z: _C) -> _C:
    one = z.re.like(1.0)
    below, above = _complex_sqrt(_C(one - z.re, -z.im)), _complex_sqrt(_C(one + z.re, z.im))
    re = 2.0 * _atan2(below.re, above.re)
    part = above.re * below.im - above.im * below.re
    im = Term(z.re.b, z.re.b.emit("asinh", part.operand, out=z.re.type, dialect="chlo"))
    return _C(re, im)


def _complex_acosh(z: _C) -> _C:
    one = z.re.like(1.0)
    below, above = _complex_sqrt(_C(z.re - one, z.im)), _complex_sqrt(_C(z.re + one, z.im))
    part = below.re * above.re + below.im * above.im
    re = Term(z.re.b, z.re.b.emit("asinh", part.operand, out=z.re.type, dialect="chlo"))
    return _C(re, 2.0 * _atan2(below.im, above.re))


def _complex_atanh(z: _C) -> _C:
    one = z.re.like(1.0)
    size = written.absolute(z.re)  # of which the logarithm is taken above 1
    square = (one - size) * (one - size) + z.im * z.im
    re = _sign_of(z.re) * (0.25 * _log1p(4.0 * size / square))
    im = 0.5 * _atan2(2.0 * z.im, (one - z.re) * (one + z.re) - z.im * z.im)
    return _C(re, im)


def _complex_atan(z: _C) -> _C:
    w = _complex_atanh(_i_times(z))
    return _C(w.im, -w.re)


_COMPLEX: dict[str, Callable[..., _C]] = {
    "acos": _complex_acos,
    "acosh": _complex_acosh,
    "add": lambda x, y: _C(x.re + y.re, x.im + y.im),
    "asin": _complex_asin,
    "asinh": _complex_asinh,
    "atan": _complex_atan,
    "atanh": _complex_atanh,
    "divide": _quotient,
    "exponential": _complex_exp,
    "exponential_minus_one": _complex_expm1,
    "log": _complex_log,
    "log_plus_one": _complex_log1p,
    "logistic": _complex_logistic,
    "multiply": lambda x, y: x * y,
    "negate": lambda x: _C(-x.re, -x.im),
    "power": _complex_power,
    "rsqrt": _complex_rsqrt,
    "sign": _complex_sign,
    "sqrt": _complex_sqrt,
    "subtract": lambda x, y: _C(x.re - y.re, x.im - y.im),
    "tan": _complex_tan,
    "tanh": _complex_tanh,
}


def write(b: Any, op: str, operands: Sequence[Any], out: ArrayType) -> Any:
    """Write an operation of elements by its name in StableHLO or CHLO."""
    if op == "complex":
        return Pair(out, *operands)
    pairs = any(isinstance(x, Pair) for x in operands)
    if op == "real":
        return operands[0].real if pairs else operands[0]
    if op == "imag":
        return operands[0].imag if pairs else b.splat(0, out)
    if op in ("select", "convert") or not pairs:
        if op not in WRITTEN:
            b.refuse(f"there is no counterpart of {op!r}")
        return WRITTEN[op](b, operands, out)
    terms = [_C(Term(b, x.real), Term(b, x.imag)) for x in operands]
    if op == "abs":
        return _hypot(terms[0].re, terms[0].im).operand
    if op == "is_finite":
        part = array_type(out.shape, real_dtype(operands[0].type.dtype))
        parts = [WRITTEN[op](b, [x], part) for x in (operands[0].real, operands[0].imag)]
        return b.apply("And", parts, out)
    if op not in _COMPLEX:
        b.refuse(f"there is no formula for {op!r} of complex numbers")
    z = _COMPLEX[op](*terms)
    return Pair(out, z.re.operand, z.im.operand)
