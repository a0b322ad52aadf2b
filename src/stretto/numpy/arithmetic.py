"""Arithmetic: sums to powers, division with and without a remainder, signs, rounding.

NumPy's names and promotion before the operations of ``ops``.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, kind_of, scalar_dtype
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.twins import FLOAT, binary_function, eager
from stretto._engine.ops import arithmetic, exponential, rounding
from stretto._engine.ops.arithmetic import absolute, negative, sign, square
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT, promote_values
from stretto._engine.ops.exponential import reciprocal
from stretto._engine.ops.rounding import ceil, floor
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import numeric_values, refuse_complex, refuse_out
from stretto.numpy.logic import copysign, isinf

__all__ = ["abs", "absolute", "add", "around", "ceil", "divide", "divmod", "fabs",
           "fix", "float_power", "floor", "floor_divide", "fmod", "heaviside", "hypot",
           "mod", "multiply", "negative", "positive", "pow", "power", "reciprocal",
           "remainder", "rint", "round", "sign", "square", "subtract", "true_divide",
           "trunc"]  # fmt: skip


def _add_promoted(x: ArrayLike, y: ArrayLike) -> Array:
    return arithmetic.ADD(*promote_values("add", x, y))


def _subtract_promoted(x: ArrayLike, y: ArrayLike) -> Array:
    value, other = promote_values("subtract", x, y)
    if kind_of(value.dtype) == "bool":
        raise TypeError("subtract: booleans have no difference; use != or .astype(int)")
    return arithmetic.SUB(value, other)


def _multiply_promoted(x: ArrayLike, y: ArrayLike) -> Array:
    return arithmetic.MUL(*promote_values("multiply", x, y))


def _divide_floats(x: ArrayLike, y: ArrayLike) -> Array:
    return arithmetic.DIV(*promote_values("divide", x, y, inexact=True))


_add = binary_function(arithmetic.ADD, _add_promoted, operator="add", caller="add")
_subtract = binary_function(arithmetic.SUB, _subtract_promoted, operator="sub", caller="subtract")
_multiply = binary_function(arithmetic.MUL, _multiply_promoted, operator="mul", caller="multiply")
_divide = binary_function(
    arithmetic.DIV, _divide_floats, INEXACT, operator="truediv", caller="divide"
)


def add(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Add two arrays, element by element.

    Args:
        x: an array, or a number; of booleans the sum is ``or``.
        y: as ``x``; the two broadcast.

    Returns:
        ``x + y``, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``add``.

    >>> import stretto.numpy as snp
    >>> snp.add(snp.array([1.0, 2.0]), 1)
    Array([2., 3.], dtype=float32)
    """
    return _add(x, y)


def subtract(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Subtract one array from another, element by element.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        ``x - y``, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or both are boolean.
        ValueError: the shapes do not broadcast.

    As NumPy's ``subtract``.

    >>> import stretto.numpy as snp
    >>> snp.subtract(snp.array([3, 4]), 1)
    Array([2, 3], dtype=int32)
    """
    return _subtract(x, y)


def multiply(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Multiply two arrays, element by element.

    Args:
        x: an array, or a number; of booleans the product is ``and``.
        y: as ``x``; the two broadcast.

    Returns:
        ``x * y``, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``multiply``.

    >>> import stretto.numpy as snp
    >>> snp.multiply(snp.array([3, 4]), 0.5)
    Array([1.5, 2. ], dtype=float32, weak_type=True)
    """
    return _multiply(x, y)


def true_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Divide one array by another, element by element.

    Args:
        x: an array, or a number; integers and booleans become floats.
        y: as ``x``; the two broadcast.

    Returns:
        ``x / y``, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``divide``.

    >>> import stretto.numpy as snp
    >>> snp.true_divide(snp.array([1, 2]), snp.array(2))
    Array([0.5, 1. ], dtype=float32)
    """
    return _divide(x, y)


divide = true_divide


def power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise the elements of one array to the powers of another.

    A Python integer as ``y`` is multiplied out.

    Args:
        x: an array, or a number; booleans count as integers.
        y: as ``x``; the two broadcast.

    Returns:
        ``x ** y``, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or integers are raised to a negative
            Python integer.
        ValueError: the shapes do not broadcast.

    As NumPy's ``power``.

    >>> import stretto.numpy as snp
    >>> snp.power(snp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    if type(y) is int:
        base = as_value(x, "power")
        if not is_inexact(base.dtype):
            if y < 0:
                raise TypeError(
                    f"power: integers have no negative powers among integers, got "
                    f"{base.type} ** {y}; use a float: x ** {y}.0"
                )
            if kind_of(base.dtype) == "bool":
                base = convert(base, scalar_dtype(int))
        return exponential.integer_pow(base, y)
    return exponential.POW(*numeric_values("power", x, y))


pow = power


def float_power(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Raise the elements of one array to the powers of another, as floats.

    Args:
        x: an array, or a number; integers become floats.
        y: as ``x``; the two broadcast.

    Returns:
        ``x ** y``, of the promoted float or complex dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``float_power``.

    >>> import stretto.numpy as snp
    >>> snp.float_power(snp.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return exponential.POW(*promote_values("float_power", x, y, inexact=True))


@described_like(negative)
def positive(x: ArrayLike, /) -> Array:
    """Return the numbers as they are.

    Returns:
        ``+x``, of the shape and dtype of ``x``.

    As NumPy's ``positive``.

    >>> import stretto.numpy as snp
    >>> snp.positive(snp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    value = as_value(x, "positive")
    if kind_of(value.dtype) == "bool":
        raise TypeError(f"positive: expected numbers, got {value.type}")
    return value


abs = absolute


def fabs(x: ArrayLike, /) -> Array:
    """Take the absolute value of each element, as a float.

    Args:
        x: an array, or a number.

    Returns:
        ``|x|``, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``fabs``.

    >>> import stretto.numpy as snp
    >>> snp.fabs(snp.array([-1, 2]))
    Array([1., 2.], dtype=float32)
    """
    value = as_value(x, "fabs")
    refuse_complex("fabs", x=value)
    return arithmetic.absolute(convert(value, inexact_dtype(value.dtype), value.weak_type))


def heaviside(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Evaluate the Heaviside step function of each element.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        0 where ``x`` is negative, ``y`` where it is zero, 1 where it is positive, NaN where it is
        NaN; of the promoted float dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's ``heaviside``.

    >>> import stretto.numpy as snp
    >>> snp.heaviside(snp.array([-1.0, 0.0, 2.0]), 0.5)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    refuse_complex("heaviside", x=x, y=y)
    a, b = promote_values("heaviside", x, y, inexact=True)
    zero = zeros_like(a)
    step = select(lt(a, zero), zero, full_like(a, 1))
    return select(eq(a, zero), b, select(ne(a, a), a, step))


@eager(np.hypot, FLOAT)
@described_like(heaviside)
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the length of the hypotenuse, without intermediate overflow.

    Returns:
        ``sqrt(x**2 + y**2)``, of the promoted float dtype and the broadcast shape.

    As NumPy's ``hypot``.

    >>> import stretto.numpy as snp
    >>> snp.hypot(snp.array([3e30]), 4e30)
    Array([5.e+30], dtype=float32)
    """
    refuse_complex("hypot", x=x, y=y)
    a, b = promote_values("hypot", x, y, inexact=True)
    # The signs are kept: through |x| the second derivative at 0 would be 0.
    first = gt(arithmetic.absolute(a), arithmetic.absolute(b))
    long, short = select(first, a, b), select(first, b, a)
    infinite = isinf(a) | isinf(b)
    none = eq(long, zeros_like(long)) & eq(short, zeros_like(short))  # short may be NaN
    ratio = short / select(none | infinite, full_like(long, 1), long)
    length = arithmetic.absolute(long) * exponential.sqrt(full_like(ratio, 1) + ratio * ratio)
    return select(infinite, full_like(long, np.inf), select(none, zeros_like(long), length))


# With the remainder r of the division truncated towards zero: where r is not zero and its sign
# differs from that of the divisor y, the quotient rounded down is less by one, and its remainder is
# r + y. For floats a remainder of zero has the sign of y, and a quotient of zero that of x / y.
# Integers divided by zero give 0, as in NumPy. It is written twice: for values that are traced, and
# for NumPy.


def _real_values(caller: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    value, other = numeric_values(caller, x, y)
    if is_complex(value.dtype):
        raise TypeError(f"{caller}: expected real numbers, got {value.type}")
    return value, other


def _opposed(rest: Array, y: Array) -> Array:
    zero = zeros_like(rest)
    return ne(rest, zero) & ne(lt(rest, zero), lt(y, zero))


def _unless_by_zero(result: Array, y: Array) -> Array:
    """Return the result for integers, or 0 where the divisor is 0."""
    host = y.to_host() if y.__class__ is Array else None
    if host is not None and host.size and not any(host.strides) and host[(0,) * host.ndim]:
        return result
    none = zeros_like(y)
    return select(eq(y, none), none, result)


def _trace_remainder(x: Array, y: Array) -> Array:
    x, y = _real_values("remainder", x, y)
    rest = arithmetic.REM(x, y)
    if is_inexact(x.dtype):
        rest = select(eq(rest, zeros_like(rest)), copysign(rest, y), rest)
        return select(_opposed(rest, y), rest + y, rest)
    if kind_of(x.dtype) != "uint":
        rest = select(_opposed(rest, y), rest + y, rest)
    return _unless_by_zero(rest, y)


def _host_remainder(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.remainder(x, y) if is_inexact(x.dtype) else arithmetic.modulo(x, y)


def _trace_floor_divide(x: Array, y: Array, caller: str = "floor_divide") -> Array:
    x, y = _real_values(caller, x, y)
    if kind_of(x.dtype) == "uint":
        return _unless_by_zero(arithmetic.DIV(x, y), y)
    rest = arithmetic.REM(x, y)
    # For floats x - r is a multiple of y, so that only rounding errors are rounded away.
    whole = rounding.round_((x - rest) / y) if is_inexact(x.dtype) else arithmetic.DIV(x, y)
    whole = select(_opposed(rest, y), whole - full_like(whole, 1), whole)
    if not is_inexact(x.dtype):
        return _unless_by_zero(whole, y)
    quotient, none = rounding.floor(x / y), zeros_like(x)
    whole = select(eq(whole, none), copysign(whole, quotient), whole)
    return select(eq(y, none), quotient, whole)


def _host_floor_divide(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.floor_divide(x, y) if is_inexact(x.dtype) else arithmetic.floor_quotient(x, y)


def _trace_fmod(x: Array, y: Array) -> Array:
    x, y = _real_values("fmod", x, y)
    rest = arithmetic.REM(x, y)
    return rest if is_inexact(x.dtype) else _unless_by_zero(rest, y)


def _host_fmod(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.fmod(x, y) if is_inexact(x.dtype) else arithmetic.signed_rest(x, y)


_SIGNED = frozenset(("int", "float"))
_fmod = binary_function(arithmetic.REM, _trace_fmod, _SIGNED, _host_fmod)
_remainder = binary_function(
    arithmetic.REM, _trace_remainder, _SIGNED, _host_remainder, operator="mod"
)
_floor_divide = binary_function(
    arithmetic.REM, _trace_floor_divide, _SIGNED, _host_floor_divide, operator="floordiv"
)


_divmod_quotient = binary_function(
    arithmetic.REM, partial(_trace_floor_divide, caller="divmod"), _SIGNED, _host_floor_divide
)


def floor_divide(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Divide and round down: the greatest whole number not above ``x / y``.

    Args:
        x: an array of real numbers.
        y: the divisors; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to; 0 for integers
        divided by zero.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``floor_divide``.

    >>> import stretto.numpy as snp
    >>> snp.floor_divide(snp.array([7, -7]), 2)
    Array([ 3, -4], dtype=int32)
    """
    return _floor_divide(x, y)


@described_like(floor_divide)
def remainder(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Find the remainder ``x - y * floor(x / y)``, with the sign of ``y``.

    As NumPy's and the array API standard's ``remainder``.

    >>> import stretto.numpy as snp
    >>> snp.remainder(snp.array([7, -7]), 3)
    Array([1, 2], dtype=int32)
    """
    return _remainder(x, y)


mod = remainder


@described_like(floor_divide)
def divmod(x: ArrayLike, y: ArrayLike, /) -> tuple[Array, Array]:
    """Find ``floor_divide`` and ``remainder`` together.

    Returns:
        A tuple of the quotients and the remainders; 0 for integers divided by zero.

    As NumPy's ``divmod``.

    >>> import stretto.numpy as snp
    >>> snp.divmod(snp.array([7.0, -7.0]), 2)
    (Array([ 3., -4.], dtype=float32), Array([1., 1.], dtype=float32))
    """
    return _divmod_quotient(x, y), _remainder(x, y)


@described_like(floor_divide)
def fmod(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Find the remainder of ``x / y`` with the sign of ``x``.

    As NumPy's ``fmod``.

    >>> import stretto.numpy as snp
    >>> snp.fmod(snp.array([7, -7]), 3)
    Array([ 1, -1], dtype=int32)
    """
    return _fmod(x, y)


@eager(np.trunc, FLOAT)
@described_like(ceil)
def trunc(x: ArrayLike) -> Array:
    """Leave out the fraction of each element.

    As NumPy's and the array API standard's ``trunc``.

    >>> import stretto.numpy as snp
    >>> snp.trunc(snp.array([1.7, -1.7]))
    Array([ 1., -1.], dtype=float32)
    """
    return rounding.truncated(x)


fix = trunc


def rint(x: ArrayLike, /) -> Array:
    """Round each element to the nearest whole number, halves to the even one.

    Args:
        x: an array, or a number; complex numbers are rounded part by part.

    Returns:
        An array of the dtype of ``x``, integers as the default float.

    As NumPy's ``rint``.

    >>> import stretto.numpy as snp
    >>> snp.rint(snp.array([1.5, 2.5]))
    Array([2., 2.], dtype=float32)
    """
    value = as_value(x, "rint")
    return _rounded(convert(value, inexact_dtype(value.dtype), value.weak_type))


def _rounded(x: Array) -> Array:
    """Round to the nearest whole number; complex numbers part by part."""
    if is_complex(x.dtype):
        return complex_(rounding.round_(real(x)), rounding.round_(imag(x)))
    return rounding.round_(x)


def round(a: ArrayLike, decimals: int = 0, out: None = None) -> Array:
    """Round each element to a multiple of ``10 ** -decimals``, halves to the even digit.

    Args:
        a: an array, or a number; complex numbers are rounded part by part.
        decimals: the number of digits after the point; before it for negative numbers.
        out: must be None: arrays are immutable.

    Returns:
        An array of the dtype and shape of ``a``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``decimals`` is not an integer.

    As NumPy's ``round``.

    >>> import stretto.numpy as snp
    >>> snp.round(snp.array([1.26, 2.5]), 1)
    Array([1.3, 2.5], dtype=float32)
    """
    refuse_out("round", out)
    decimals = integer(decimals, "round", "decimals")
    return _round(as_value(a, "round", "a"), decimals=decimals)


@eager(np.round, FLOAT)
def _round(x: Array, *, decimals: int) -> Array:
    if not is_inexact(x.dtype):
        if decimals >= 0:
            return x
        step = full_like(x, 10**-decimals)
        return convert(_rounded(true_divide(x, step)), x.dtype) * step
    if decimals == 0:
        return _rounded(x)
    wide = convert(x, np.dtype(np.float32)) if x.dtype.itemsize < 4 else x
    scale = full_like(wide, 10.0 ** np.abs(decimals))
    if decimals > 0:
        result = _rounded(wide * scale) / scale
    else:
        result = _rounded(wide / scale) * scale
    return convert(result, x.dtype, x.weak_type)


around = round
