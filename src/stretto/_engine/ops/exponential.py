"""Exponentials, logarithms, the logistic function, powers and roots."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.primitive import Kernel
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    inexact_dtype,
    is_complex,
    is_inexact,
    kind_of,
    real_dtype,
    scalar_dtype,
)
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import complex_edges, thresholds, written
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import eq, full_like, ge, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import (
    FLOAT,
    INEXACT,
    NUMERIC,
    Elementwise,
    binary,
    describe_unary,
    in_float32,
    unary,
    widened_to_float32,
)
from stretto._engine.ops.trigonometric import tanh


class Exp(complex_edges.WithEdges):
    """e to the power x."""

    accepts = INEXACT
    costs = thresholds.EXP
    op = "exponential"
    reference = staticmethod(np.exp)
    edges = staticmethod(complex_edges.exp_edges)
    partials = (lambda dx, out, x: dx * out,)


class Exp2(Elementwise):
    """2 to the power x."""

    accepts = INEXACT
    costs = thresholds.EXP2
    op = "exp2"
    reference = staticmethod(np.exp2)
    partials = (lambda dx, out, x: dx * (full_like(x, math.log(2)) * out),)

    def lower(self, b: Any, x: Any) -> Any:
        """Write ``power`` of 2; for complex numbers the exponential of x log 2."""
        if is_complex(x.type.dtype):
            return b.inline(lambda x: exp(x * full_like(x, math.log(2))), x)
        return b.emit("power", b.splat(2, x.type), x)


class Expm1(complex_edges.WithEdges):
    """e to the power x, minus 1, exact near zero."""

    accepts = INEXACT
    kernel = Kernel.LONG
    op = "exponential_minus_one"
    reference = staticmethod(complex_edges.expm1_reference)
    edges = staticmethod(complex_edges.expm1_edges)
    # exp(x), as out + 1 has no digit left where out rounds to -1
    partials = (lambda dx, out, x: dx * exp(x),)


class Log(complex_edges.WithEdges):
    """The natural logarithm."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.LOG
    op = "log"
    reference = staticmethod(np.log)
    edges = staticmethod(complex_edges.log_edges)
    partials = (lambda dx, out, x: dx / x,)


class Log1p(complex_edges.WithEdges):
    """The natural logarithm of 1 + x, exact near zero."""

    accepts = INEXACT
    kernel = Kernel.LONG
    op = "log_plus_one"
    reference = staticmethod(complex_edges.log1p_reference)
    edges = staticmethod(complex_edges.log_edges)
    partials = (lambda dx, out, x: dx / (x + full_like(x, 1)),)

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; in float64, where it is off by a hundred ulps, write it out."""
        if x.type.dtype == np.float64:
            return written.log1p(written.Term(b, x)).operand
        return super().lower(b, x)


class Logistic(Elementwise):
    """1 / (1 + exp(-x))."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.LOGISTIC
    op = "logistic"
    partials = (lambda dx, out, x: dx * _logistic_slope(out, x),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by the definition, in at least float32; complex numbers without overflow."""
        if is_complex(x.dtype):
            left = np.real(x) < 0
            e = np.exp(np.where(left, x, -x))
            return np.where(left, e, 1) / (1 + e)
        return in_float32(_logistic, x)


def _logistic_slope(out: Any, x: Any) -> Any:
    # out (1 - out) has no digit left where out rounds to 1, from x = 17 on in float32.
    return out * (full_like(out, 1) - out) if is_complex(x.type.dtype) else LOGISTIC_SLOPE(x)


class LogisticSlope(Elementwise):
    """The derivative of the logistic function, exact in both tails."""

    accepts = FLOAT
    kernel = Kernel.LONG
    # s''(x) = -tanh(x / 2) s'(x)
    partials = (lambda dx, out, x: -(dx * (tanh(full_like(x, 0.5) * x) * out)),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by one exponential, in at least float32."""
        return in_float32(lambda v: _slope_by(np.exp(-np.abs(v))), x)

    def lower(self, b: Any, x: Any) -> Any:
        wide = b.convert(x, np.dtype(np.float32)) if x.type.dtype.itemsize < 4 else x
        return b.convert(
            _slope_by(written.exp(-written.absolute(written.Term(b, wide)))).operand, x.type.dtype
        )


def _slope_by(e: Any) -> Any:
    """Return e / (1 + e)^2, the slope for e = exp(-|x|)."""
    return e / ((e + 1.0) * (e + 1.0))


def _logistic(x: np.ndarray) -> np.ndarray:
    """Return 1 / (1 + exp(-x)), computed in place."""
    out = np.negative(x, out=np.empty_like(x))
    np.exp(out, out=out)
    out += 1
    return np.reciprocal(out, out=out)


EXP, EXP2, EXPM1, LOG, LOG1P, LOGISTIC = Exp(), Exp2(), Expm1(), Log(), Log1p(), Logistic()
LOGISTIC_SLOPE = LogisticSlope()


@describe_unary
def exp(x: ArrayLike) -> Array:
    """Raise e to the power of each element.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    As NumPy's ``exp``. Source: StableHLO, ``exponential``.

    >>> import stretto.numpy as snp
    >>> snp.exp(snp.array([-snp.inf, 0.0]))
    Array([0., 1.], dtype=float32)
    """
    return unary(EXP, x)


@describe_unary
def exp2(x: ArrayLike) -> Array:
    """Raise 2 to the power of each element.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    As NumPy's ``exp2``.

    >>> import stretto.numpy as snp
    >>> snp.exp2(snp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return unary(EXP2, x)


@describe_unary
def expm1(x: ArrayLike) -> Array:
    """Compute ``exp(x) - 1`` of each element, accurately near zero.

    As NumPy's ``expm1``. Source: StableHLO, ``exponential_minus_one``.

    >>> import stretto.numpy as snp
    >>> snp.expm1(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return unary(EXPM1, x)


@describe_unary
def log(x: ArrayLike) -> Array:
    """Take the natural logarithm of each element.

    Returns:
        The logarithms, -inf at zero and NaN below it; of the shape of ``x``; integers become
        floats.

    As NumPy's ``log``. Source: StableHLO, ``log``.

    >>> import stretto.numpy as snp
    >>> snp.log(snp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return unary(LOG, x)


@describe_unary
def log1p(x: ArrayLike) -> Array:
    """Compute ``log(1 + x)`` of each element, accurately near zero.

    Returns:
        The logarithms, -inf at -1 and NaN below it; of the shape of ``x``; integers become floats.

    As NumPy's ``log1p``. Source: StableHLO, ``log_plus_one``.

    >>> import stretto.numpy as snp
    >>> snp.log1p(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return unary(LOG1P, x)


@describe_unary
def logistic(x: ArrayLike) -> Array:
    """Compute ``1 / (1 + exp(-x))`` of each element.

    Source: StableHLO, ``logistic``.

    >>> import stretto as st
    >>> st.lax.logistic(st.numpy.array([0.0, 100.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return unary(LOGISTIC, x)


# Powers and roots


class Pow(Elementwise):
    """``x`` to the power ``y``."""

    accepts = NUMERIC
    kernel = Kernel.LONG
    costs = thresholds.POW
    # x^y log(x) dy, zero at x = 0 where y > 0
    partials = (
        lambda dx, out, x, y: dx * _slope(x, y),
        lambda dy, out, x, y: dy * out * log(select(eq(x, zeros_like(x)), full_like(x, 1), x)),
    )

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's; integers to a negative power are 0, except 1 and -1."""
        if is_inexact(x.dtype):
            halves = not any(y.strides) and y.size and y[(0,) * y.ndim] == 0.5
            if halves and np.min(x) > 0:
                return np.sqrt(x)
            # Of one exponent for all, one half, NumPy takes roots: not so of -0 and -inf.
            return np.power(x, np.array(y) if halves else y)
        if not (y < 0).any():
            return np.power(x, y)
        whole = np.power(x, np.maximum(y, 0))
        below = np.where(x == 1, 1, np.where(x == -1, np.where(y % 2 != 0, -1, 1), 0))
        return np.where(y < 0, below, whole).astype(x.dtype)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """Write StableHLO ``power``; of integers a loop, as XLA reads six bits of the exponent."""
        if x.type.kind == "float":
            return b.emit("power", x, y)
        return self._complex(b, x, y) if x.type.kind == "complex" else self._integer(b, x, y)

    def _complex(self, b: Any, x: Any, y: Any) -> Any:
        """Write ``power``, but 0 for 0 to a power of positive real part, where XLA gives NaN."""
        part = array_type(x.type.shape, real_dtype(x.type.dtype))
        positive = b.compare("GT", b.emit("real", y, out=part), b.splat(0, part))
        zero = b.splat(0, x.type)
        vanishes = b.emit("and", b.compare("EQ", x, zero), positive, out=positive.type)
        return b.emit("select", vanishes, zero, b.emit("power", x, y))

    def _integer(self, b: Any, x: Any, y: Any) -> Any:
        """Multiply by squaring, for as many bits as the greatest exponent has."""
        type = x.type

        def unfinished(result: Any, square: Any, left: Any) -> list[Any]:
            active = b.compare("NE", left, b.splat(0, type))
            return [b.reduce("or", active, range(type.ndim), False)]

        def step(result: Any, square: Any, left: Any) -> list[Any]:
            one = b.splat(1, type)
            odd = b.compare("EQ", b.emit("and", left, one, out=type), one)
            factor = b.emit("select", odd, square, one, out=type)
            return [
                b.emit("multiply", result, factor, out=type),
                b.emit("multiply", square, square, out=type),
                b.emit("shift_right_logical", left, one, out=type),
            ]

        one, zero = b.splat(1, type), b.splat(0, type)
        whole = b.while_loop(unfinished, step, (one, x, b.emit("maximum", y, zero, out=type)))[0]
        if type.kind == "uint":
            return whole
        # 1 and -1 alone have whole inverses: (±1)^y = (±1)^(y & 1)
        unit = b.compare("EQ", b.emit("abs", x, out=type), one)
        odd = b.compare("EQ", b.emit("and", y, one, out=type), one)
        inverse = b.emit("select", odd, x, one, out=type)
        below = b.emit("select", unit, inverse, zero, out=type)
        return b.emit("select", b.compare("LT", y, zero), below, whole)


def _slope(x: Any, y: Any) -> Any:
    """Return y x^(y-1); zero where y is, even where 1 / x^2 is not finite."""
    # Its derivative by y at y = 0 is 1 / x, so y = 0 alone does not make it constant.
    size = absolute(x)
    least = math.sqrt(float(ml_dtypes.finfo(size.dtype).smallest_normal))
    constant = eq(y, zeros_like(y)) & ~ge(size, full_like(size, least))
    slope = y * power(select(constant, full_like(x, 1), x), y - full_like(y, 1))
    return select(constant, zeros_like(y), slope)


class IntegerPow(Elementwise):
    """``x`` to a static integer power, by multiplication; of narrow floats in float32."""

    exponent: int
    accepts = NUMERIC

    def infer(self, x: ArrayType) -> ArrayType:
        """Return the operand's type; a negative power needs an inexact one."""
        if self.exponent < 0 and not is_inexact(x.dtype):
            raise TypeError(f"integer_pow: {x} to the power {self.exponent} is not an integer")
        return super().infer(x)

    def reference(self, x: np.ndarray) -> np.ndarray:
        if not self.exponent:
            return np.ones_like(x)
        invert = lambda v: np.divide(v.dtype.type(1), v)
        if self._rounds_several_times(x.dtype):
            wide = widened_to_float32(x)
            return _by_squaring(wide, self.exponent, np.multiply, invert).astype(x.dtype)
        return _by_squaring(x, self.exponent, np.multiply, invert)

    def _rounds_several_times(self, dtype: np.dtype) -> bool:
        """Say whether the steps would round, and overflow, in a narrow dtype."""
        narrow = dtype.itemsize < 4 and kind_of(dtype) == "float"
        return narrow and self.exponent != -1

    def lower(self, b: Any, x: Any) -> Any:
        if not self.exponent:
            return b.splat(1, x.type)
        dtype = x.type.dtype
        several = self._rounds_several_times(dtype)
        wide = b.convert(x, np.dtype(np.float32)) if several else x
        times = lambda u, v: b.emit("multiply", u, v, out=wide.type)
        invert = lambda v: b.emit("divide", b.splat(1, wide.type), v, out=wide.type)
        out = _by_squaring(wide, self.exponent, times, invert)
        return b.convert(out, dtype) if several else out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return ``n x^(n-1) dx``."""
        (x,), (dx,) = primals, tangents
        n = self.exponent
        if n == 0:
            return self(x), None
        return self(x), dx * (full_like(x, n) * integer_pow(x, n - 1))


def _by_squaring(x: Any, n: int, multiply: Any, invert: Any) -> Any:
    """Raise ``x`` to the power ``n``, not 0, by squaring and multiplying."""
    result, square, left = None, x, abs(n)
    while left:
        if left & 1:
            result = square if result is None else multiply(result, square)
        left >>= 1
        if left:
            square = multiply(square, square)
    return invert(result) if n < 0 else result


class Sqrt(complex_edges.WithEdges):
    """The square root."""

    accepts = INEXACT
    costs = thresholds.SQRT
    op = "sqrt"
    reference = staticmethod(np.sqrt)
    edges = staticmethod(complex_edges.sqrt_edges)
    partials = (lambda dx, out, x: dx * (full_like(out, 0.5) / out),)


class Rsqrt(Elementwise):
    """One over the square root."""

    accepts = INEXACT
    op = "rsqrt"
    # d x^(-1/2) = -1/2 x^(-1/2) / x
    partials = (lambda dx, out, x: dx * (full_like(out, -0.5) * (out / x)),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by the definition, in at least float32."""
        return in_float32(lambda v: 1 / np.sqrt(v), x)


class Cbrt(Elementwise):
    """The real cube root."""

    accepts = FLOAT
    kernel = Kernel.LONG
    op = "cbrt"
    partials = (lambda dx, out, x: dx * (full_like(out, 1 / 3) * (out / x)),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return in_float32(np.cbrt, x)


POW, SQRT, RSQRT, CBRT = Pow(), Sqrt(), Rsqrt(), Cbrt()


def power(x: ArrayLike, y: ArrayLike) -> Array:
    """Raise ``x`` to the power ``y``, element by element.

    Args:
        x: an array or a number.
        y: the exponents, promoted and broadcast with ``x``; a Python integer is multiplied out.

    Returns:
        The powers, of the promoted dtype.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    >>> import stretto.numpy as snp
    >>> snp.power(snp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    if type(y) is int:
        base = as_value(x, "power")
        if y >= 0 or is_inexact(base.dtype):
            return integer_pow(base, y)
    return binary(POW, x, y)


def integer_pow(x: ArrayLike, y: int) -> Array:
    """Raise each element to a static integer power, by squaring and multiplying.

    Args:
        x: an array or a number; booleans count as integers.
        y: the exponent, a Python integer; below zero for floats and complex numbers alone.

    Returns:
        The powers, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``y`` is not an integer, or is negative where ``x`` is of integers.

    >>> import stretto as st
    >>> st.lax.integer_pow(st.numpy.array([2.0, 3.0]), -2)
    Array([0.25      , 0.11111111], dtype=float32)
    """
    value, y = as_value(x, "integer_pow"), integer(y, "integer_pow", "y")
    if value.type.kind == "bool":
        value = convert(value, scalar_dtype(int), True)
    if y == 1:
        return value
    if y == 2:
        return value * value
    return unary(IntegerPow(y), value)


@describe_unary
def reciprocal(x: ArrayLike) -> Array:
    """Take the reciprocal of each element.

    Returns:
        ``1 / x``, of the shape of ``x``; integers become floats.

    As NumPy's ``reciprocal``.

    >>> import stretto.numpy as snp
    >>> snp.reciprocal(snp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)
    """
    value = as_value(x, "reciprocal")
    return IntegerPow(-1)(convert(value, inexact_dtype(value.dtype), value.weak_type))


@describe_unary
def sqrt(x: ArrayLike) -> Array:
    """Take the square root of each element.

    Returns:
        The roots, NaN below zero; of the shape of ``x``; integers become floats.

    As NumPy's ``sqrt``. Source: StableHLO, ``sqrt``.

    >>> import stretto.numpy as snp
    >>> snp.sqrt(snp.array([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return unary(SQRT, x)


def root_of_squares(total: Any) -> Any:
    """Give the square root of a sum of squares, a length; its derivative at 0 is taken to be 0."""
    if state.interpreter is state.eager:
        return unary(SQRT, total)
    is_zero = eq(total, zeros_like(total))
    return select(is_zero, zeros_like(total), sqrt(select(is_zero, full_like(total, 1), total)))


@describe_unary
def rsqrt(x: ArrayLike) -> Array:
    """Compute ``1 / sqrt(x)`` of each element.

    Source: StableHLO, ``rsqrt``.

    >>> import stretto as st
    >>> st.lax.rsqrt(st.numpy.array([4.0, 0.25]))
    Array([0.5, 2. ], dtype=float32)
    """
    return unary(RSQRT, x)


@describe_unary
def cbrt(x: ArrayLike) -> Array:
    """Take the real cube root of each element.

    Returns:
        The roots, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``cbrt``. Source: StableHLO, ``cbrt``.

    >>> import stretto.numpy as snp
    >>> snp.cbrt(snp.array([8.0, -1.0]))
    Array([ 2., -1.], dtype=float32)
    """
    return unary(CBRT, x)
