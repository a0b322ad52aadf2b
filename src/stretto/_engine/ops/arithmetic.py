"""Arithmetic, element by element: sums, products, quotients, signs.

Each primitive is a class, with a function in front of it. In its rules ``dx`` is a tangent and
``out`` the primitive's own output.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.boundary import reraise_foreign
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Kernel, leibniz
from stretto._engine.core.types import is_complex, is_inexact, kind_of, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.bitcast import has_negative_zero, signs
from stretto._engine.ops.comparison import full_like, select, zeros_like
from stretto._engine.ops.complex_edges import is_infinite
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import (
    ALL,
    COMPARABLE,
    NUMERIC,
    Elementwise,
    binary,
    describe_binary,
    describe_unary,
    unary,
)
from stretto._engine.ops.rounding import truncated

_HIGHEST = np.uint16(1 << 15)
_MANY = 1 << 12
"""Reading signs from the bits is faster than comparing from this many elements on."""


class Neg(Elementwise):
    """The negative."""

    accepts = NUMERIC
    keeps_zeros = True
    op = "negate"
    reference = staticmethod(np.negative)
    partials = (lambda dx, out, x: -dx,)

    def widely(self, x: np.ndarray) -> np.ndarray:
        return (x.view(np.uint16) ^ _HIGHEST).view(x.dtype)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        return (-ct,)


class Add(Elementwise):
    """The sum; of booleans, the logical or."""

    accepts = ALL
    keeps_zeros = True
    hands_on = True
    costs = thresholds.HALF
    commutative = True
    op = "add"
    reference = staticmethod(np.add)
    partials = (lambda dx, out, x, y: dx, lambda dy, out, x, y: dy)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return ct if x.__class__ is Linear else None, ct if y.__class__ is Linear else None


class Sub(Elementwise):
    """The difference."""

    accepts = NUMERIC
    keeps_zeros = True
    costs = thresholds.HALF
    op = "subtract"
    reference = staticmethod(np.subtract)
    partials = (lambda dx, out, x, y: dx, lambda dy, out, x, y: -dy)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        return (ct if isinstance(x, Linear) else None, -ct if isinstance(y, Linear) else None)


class Mul(Elementwise):
    """The product; of booleans, the logical and."""

    accepts = ALL
    costs = thresholds.HALF
    commutative = True
    op = "multiply"
    reference = staticmethod(np.multiply)
    partials = (lambda dx, out, x, y: dx * y, lambda dy, out, x, y: x * dy)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        """Multiply ``ct`` by the other argument, which is not linear."""
        if isinstance(x, Linear):
            return ct * y, None
        return None, x * ct

    def taylor(self, k: int, out: Any, x: Any, y: Any) -> Any:
        return leibniz(self, k, x, y)


class Div(Elementwise):
    """The quotient; of integers, truncated towards zero, with -1 for division by zero."""

    accepts = NUMERIC
    costs = thresholds.HALF
    widens = True
    op = "divide"
    # d(x/y) = dx/y - (x/y) dy/y
    # Both cotangents are made of ct / y. With (x/y)/y XLA would divide by y^2, which overflows.
    partials = (lambda dx, out, x, y: dx / y, lambda dy, out, x, y: -(out * dy) / y)

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's division for floats; XLA's conventions for integers."""
        return np.divide(x, y) if is_inexact(x.dtype) else quotient(x, y)

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """Write one operation, on which the compiler does not multiply divisors."""
        return b.quotient(x, y)

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        """Return ``ct / y``; the quotient is linear in ``x`` alone."""
        return ct / y, None

    def taylor(self, k: int, out: Any, x: Any, y: Any) -> Any:
        """Return the rule of Leibniz for x = out y, solved for the derivative of ``out``."""
        known, top = leibniz(MUL, k, out, y, most=k - 1), x(k)
        if known is None:
            return None if top is None else top / y(0)
        return (-known if top is None else top - known) / y(0)


class Rem(Elementwise):
    """The remainder with the sign of the dividend; of integers by zero, the dividend."""

    accepts = COMPARABLE
    kernel = Kernel.LONG
    widens = True
    op = "remainder"
    # x - trunc(x/y) y
    partials = (lambda dx, out, x, y: dx, lambda dy, out, x, y: -dy * truncated(divide(x, y)))

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        return np.fmod(x, y) if is_inexact(x.dtype) else rest(x, y)


class Abs(Elementwise):
    """The absolute value; of complex numbers, the modulus."""

    accepts = NUMERIC - {"uint"}
    op = "abs"
    reference = staticmethod(np.abs)

    def widely(self, x: np.ndarray) -> np.ndarray:
        return (x.view(np.uint16) & ~_HIGHEST).view(x.dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """Write StableHLO ``abs``; XLA's is not infinite wherever a part of a complex number is."""
        out = b.emit(self.op, x)
        return b.inline(_modulus, x, out) if is_complex(x.type.dtype) else out

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        return real_dtype(dtype)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return ``sign(x) dx``; of complex ``x``, the part of ``dx`` along ``x``."""
        (x,), (dx,) = primals, tangents
        if is_complex(x.dtype):
            return self(x), real(dx * conj(sign(x)))
        return self(x), dx * sign(x)


def _modulus(z: Any, size: Any) -> Any:
    infinite = is_infinite(real(z)) | is_infinite(imag(z))
    return select(infinite, full_like(size, np.inf), size)


class Sign(Elementwise):
    """-1, 0 or 1; of complex numbers ``x / |x|``."""

    accepts = NUMERIC
    widens = True
    op = "sign"

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Use NumPy's; zeros keep their sign, as in XLA, and a complex NaN is NaN in both parts."""
        if x.dtype.char == "e" and x.size >= _MANY:
            return signs(x)
        out = np.sign(x)
        if kind_of(x.dtype) == "float":
            return np.copysign(out, x) if has_negative_zero(x) else out
        if is_complex(x.dtype) and (undefined := np.isnan(x)).any():
            return np.where(undefined, x.dtype.type(complex(np.nan, np.nan)), out)
        return out

    def widely(self, x: np.ndarray) -> np.ndarray:
        return signs(x)

    def lower(self, b: Any, x: Any) -> Any:
        """Write StableHLO ``sign``, which takes no unsigned integers."""
        if x.type.kind == "uint":
            return b.emit("minimum", x, b.splat(1, x.type))
        return b.emit(self.op, x)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return zero for real numbers; for complex ones, how ``x / |x|`` turns."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        if not is_complex(x.dtype):
            return out, None
        # d(x/|x|) = (dx - out Re(dx conj(out))) / |x|
        along = real(dx * conj(out))
        return out, (dx - out * complex_(along, zeros_like(along))) / convert(absolute(x), x.dtype)


class Square(Elementwise):
    """The square."""

    accepts = NUMERIC
    op = "square"
    reference = staticmethod(np.square)
    partials = (lambda dx, out, x: dx * (full_like(x, 2) * x),)

    def lower(self, b: Any, x: Any) -> Any:
        return b.emit("multiply", x, x)


NEG, ADD, SUB, MUL, DIV, REM, ABS, SIGN = Neg(), Add(), Sub(), Mul(), Div(), Rem(), Abs(), Sign()
SQUARE = Square()


def _no_booleans(x: Any, caller: str) -> Any:
    """Return the value; raises ``TypeError`` for booleans, as NumPy does."""
    x = as_value(x, caller)
    if x.type.kind == "bool":
        raise TypeError(
            f"{caller}: expected numbers, got {x.type}; use ~x (logical_not), or x.astype(int)"
        )
    return x


@describe_unary
def negative(x: ArrayLike) -> Array:
    """Negate each element.

    Returns:
        ``-x``, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is boolean.

    As NumPy's ``negative``. Source: StableHLO, ``negate``.

    >>> import stretto.numpy as snp
    >>> snp.negative(snp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return unary(NEG, _no_booleans(x, "negative"))


@describe_binary
def add(x: ArrayLike, y: ArrayLike) -> Array:
    """Add two arrays, element by element.

    Returns:
        The sums, of the promoted dtype.

    Source: StableHLO, ``add``.

    >>> import stretto.numpy as snp
    >>> snp.add(snp.array([1.0, 2.0]), 1)
    Array([2., 3.], dtype=float32)
    """
    return binary(ADD, x, y)


@describe_binary
def subtract(x: ArrayLike, y: ArrayLike) -> Array:
    """Subtract ``y`` from ``x``, element by element.

    Returns:
        The differences, of the promoted dtype.

    Source: StableHLO, ``subtract``.

    >>> import stretto as st
    >>> st.lax.sub(st.numpy.array([1.0, 2.0]), 1)
    Array([0., 1.], dtype=float32)
    """
    return binary(SUB, x, y)


def multiply(x: Any, y: Any) -> Any:
    """Multiply ``x`` by ``y``, element by element, promoted and broadcast.

    Source: StableHLO, ``multiply``.

    >>> import stretto as st
    >>> st.lax.mul(st.numpy.array([1.0, 2.0]), 3)
    Array([3., 6.], dtype=float32)
    """
    return binary(MUL, x, y)


@describe_binary
def divide(x: ArrayLike, y: ArrayLike) -> Array:
    """Divide ``x`` by ``y``, element by element, in the operands' own dtype.

    ``snp.true_divide`` and the operator ``/`` give floats.

    Returns:
        The quotients, of the promoted dtype; of integers, truncated towards zero.

    Source: StableHLO, ``divide``.

    >>> import stretto as st
    >>> st.lax.div(st.numpy.array([7, -7]), 2)
    Array([ 3, -3], dtype=int32)
    """
    return binary(DIV, x, y)


@describe_binary
def remainder(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the remainder of ``x / y``, element by element.

    Returns:
        The remainders, with the sign of ``x``, of the promoted dtype.

    Source: StableHLO, ``remainder``; C, ``fmod``.

    >>> import stretto as st
    >>> st.lax.rem(st.numpy.array([7, -7]), 4)
    Array([ 3, -3], dtype=int32)
    """
    return binary(REM, x, y)


@describe_unary
def square(x: ArrayLike) -> Array:
    """Square each element.

    Returns:
        ``x * x``, of the shape and dtype of ``x``.

    As NumPy's ``square``.

    >>> import stretto.numpy as snp
    >>> snp.square(snp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    return unary(SQUARE, x)


@describe_unary
def absolute(x: ArrayLike) -> Array:
    """Take the absolute value of each element; of complex numbers the modulus.

    Returns:
        ``|x|``, of the shape of ``x`` and its dtype; for complex numbers that of their parts.

    As NumPy's ``absolute``. Source: StableHLO, ``abs``.

    >>> import stretto.numpy as snp
    >>> snp.absolute(snp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    value = as_value(x, "abs")
    return value if kind_of(value.dtype) in ("bool", "uint") else ABS(value)


@describe_unary
def sign(x: ArrayLike) -> Array:
    """Compute the sign of each element.

    Returns:
        -1, 0 or 1, or for complex numbers ``x / |x|``; NaN stays NaN. Of the shape and
        dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is boolean.

    As NumPy's ``sign``. Source: StableHLO, ``sign``.

    >>> import stretto.numpy as snp
    >>> snp.sign(snp.array([-5.0, 0.0]))
    Array([-1.,  0.], dtype=float32)
    """
    return unary(SIGN, _no_booleans(x, "sign"))


# Quotients and remainders of integers, in NumPy.
#
# Truncating division follows XLA: by zero, the quotient is -1, or the greatest number of an
# unsigned dtype, and the remainder is the dividend. Floor division follows NumPy: by zero, both are
# 0. The least integer divided by -1 is itself.
#
# For integers of up to 32 bits, float64 division is several times as fast as NumPy's for integers,
# and exact once truncated or rounded down: x / y is at least 1/|y| away from any other whole
# number, or 1/|x| relative to itself, which is more than rounding moves it by. A quotient that is
# not finite, or does not fit, makes the processor flag an invalid conversion.


def _whole(x: np.ndarray, y: np.ndarray, down: bool) -> np.ndarray | None:
    """Truncate ``x / y``, or round it down; None where a quotient is undefined or does not fit."""
    if x.dtype.itemsize > 4 or x.dtype.kind not in "iu":
        return None
    if down and _one(y) not in (None, 0, -1):
        return np.asarray(np.floor_divide(x, y))  # which multiplies by an inverse
    if x.size > _BLOCK and x.shape == y.shape and x.flags.c_contiguous and y.flags.c_contiguous:
        return _in_blocks(x, y, down)
    out = np.asarray(np.true_divide(x, y))
    if down:
        np.floor(out, out=out)
    try:
        with np.errstate(invalid="raise"):
            whole = out.astype(np.int32 if x.dtype.kind == "i" else np.int64)
    except FloatingPointError as error:
        reraise_foreign(error)
        return None
    return whole.astype(x.dtype, copy=False)


_BLOCK = 1 << 15


def _in_blocks(x: np.ndarray, y: np.ndarray, down: bool) -> np.ndarray | None:
    """Return the same, block by block, so that the 64-bit floats are few and stay in the cache."""
    out = np.empty(x.shape, x.dtype)
    lines = [v.reshape(-1) for v in (out, x, y)]
    for start in range(0, x.size, _BLOCK):
        target, dividend, divisor = (v[start : start + _BLOCK] for v in lines)
        whole = _whole(dividend, divisor, down)
        if whole is None:
            return None
        target[:] = whole
    return out


def _one(y: np.ndarray) -> int | None:
    """Return the one element that ``y`` repeats; None where there may be several."""
    return int(y[(0,) * y.ndim]) if y.size and not any(y.strides) else None


def _less(x: np.ndarray, y: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Return ``x - y whole``, in the memory of ``whole``."""
    np.multiply(whole, y, out=whole)
    return np.subtract(x, whole, out=whole)


def quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Truncate ``x / y`` towards zero."""
    result = _whole(x, y, down=False)
    if result is not None:
        return result
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    if kind_of(x.dtype) == "uint":
        return np.where(y == 0, ~np.zeros_like(x), x // safe)
    # The least integer over -1 overflows to itself; -1 is negation, which wraps.
    safe = np.where(y == -1, 1, safe).astype(y.dtype)
    whole = x // safe
    towards_zero = whole + ((whole * safe != x) & ((x < 0) != (safe < 0)))
    return np.where(y == 0, -1, np.where(y == -1, -x, towards_zero)).astype(x.dtype)


def rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of ``quotient``, which has the sign of ``x``."""
    if x.size > _BLOCK and x.dtype.kind in "iu" and y.size and y.min() > 0:
        return np.fmod(x, y)
    result = _whole(x, y, down=False)
    if result is not None:
        return _less(x, y, result)
    safe = np.where(y == 0, 1, y).astype(y.dtype)
    return np.where(y == 0, x, np.fmod(x, safe)).astype(x.dtype)


def floor_quotient(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Round ``x / y`` down; by zero 0."""
    result = _whole(x, y, down=True)
    return _in_numpy(np.floor_divide, x, y) if result is None else result


def modulo(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of ``floored``, which has the sign of ``y``; by zero 0."""
    result = _whole(x, y, down=True)
    return _in_numpy(np.remainder, x, y) if result is None else _less(x, y, result)


def signed_rest(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Return the remainder of truncating division, which has the sign of ``x``; by zero 0."""
    return _in_numpy(np.fmod, x, y)


def _in_numpy(function: Callable[..., Any], x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Use NumPy's function; that of ``ml_dtypes`` for 4 bits crashes on division by zero."""
    if x.dtype.isbuiltin == 1:
        return np.asarray(function(x, y))
    wide = np.int8 if kind_of(x.dtype) == "int" else np.uint8
    return np.asarray(function(x.astype(wide), y.astype(wide))).astype(x.dtype)
