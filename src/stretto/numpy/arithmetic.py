"""Arithmetic: sums to powers, division, extrema, complex parts.

NumPy's names and promotion before the operations of ``ops``. Next, read ``remainders``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, kind_of, scalar_dtype
from stretto._engine.core.typing import ArrayLike
from stretto._engine.ops import arithmetic as ops
from stretto._engine.ops import exponential
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, where, zeros_like
from stretto._engine.ops.complex_order import complex_greater
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT, promote_values
from stretto._engine.ops.trigonometric import atan2
from stretto._engine.runtime.array import Array
from stretto.numpy.arguments import numeric_values, refuse_complex
from stretto.numpy.dtypes import finfo
from stretto.numpy.eager import FLOAT, REAL, eager
from stretto.numpy.logic import isinf
from stretto.numpy.quick import quick

__all__ = [
    "abs",
    "absolute",
    "add",
    "angle",
    "clip",
    "conj",
    "conjugate",
    "divide",
    "fabs",
    "float_power",
    "fmax",
    "fmin",
    "heaviside",
    "hypot",
    "imag",
    "maximum",
    "minimum",
    "multiply",
    "nan_to_num",
    "negative",
    "positive",
    "pow",
    "power",
    "real",
    "reciprocal",
    "sign",
    "square",
    "subtract",
    "true_divide",
]

_add = quick(ops.ADD, ops.add, operator="add")
_subtract = quick(ops.SUB, ops.subtract, operator="sub")
_multiply = quick(ops.MUL, ops.multiply, operator="mul")
_maximum = quick(ops.MAX, ops.maximum)
_minimum = quick(ops.MIN, ops.minimum)


def _divide_floats(x: Any, y: Any) -> Any:
    return ops.DIV(*promote_values("divide", x, y, inexact=True))


_divide = quick(ops.DIV, _divide_floats, INEXACT, operator="truediv")


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


def negative(x: ArrayLike, /) -> Array:
    """Negate each element.

    Args:
        x: an array, or a number.

    Returns:
        ``-x``, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is boolean.

    As NumPy's ``negative``.

    >>> import stretto.numpy as snp
    >>> snp.negative(snp.array([1, -2]))
    Array([-1,  2], dtype=int32)
    """
    return ops.negative(x)


def positive(x: ArrayLike, /) -> Array:
    """Give the numbers as they are.

    Args:
        x: an array, or a number.

    Returns:
        ``+x``, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number, or is boolean.

    As NumPy's ``positive``.

    >>> import stretto.numpy as snp
    >>> snp.positive(snp.array([1, -2]))
    Array([ 1, -2], dtype=int32)
    """
    value = as_value(x, "positive")
    if kind_of(value.dtype) == "bool":
        raise TypeError(f"positive: expected numbers, got {value.type}")
    return value


def absolute(x: ArrayLike, /) -> Array:
    """Take the absolute value of each element; of complex numbers the modulus.

    Args:
        x: an array, or a number.

    Returns:
        ``|x|``, of the shape of ``x`` and its dtype; for complex numbers that of their parts.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``absolute``.

    >>> import stretto.numpy as snp
    >>> snp.absolute(snp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    return ops.absolute(x)


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
    return ops.absolute(convert(value, inexact_dtype(value.dtype), value.weak_type))


def sign(x: ArrayLike, /) -> Array:
    """Give the sign of each element.

    Args:
        x: an array, or a number.

    Returns:
        -1, 0 or 1, or for complex numbers ``x / |x|``; of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``sign``.

    >>> import stretto.numpy as snp
    >>> snp.sign(snp.array([-5.0, 0.0]))
    Array([-1.,  0.], dtype=float32)
    """
    return ops.sign(x)


def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Take the greater of two elements; NaN where either is NaN.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The greater ones, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``maximum``.

    >>> import stretto.numpy as snp
    >>> snp.maximum(snp.array([1.0, -2.0]), 0)
    Array([1., 0.], dtype=float32)
    """
    return _maximum(x, y)


def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Take the lesser of two elements; NaN where either is NaN.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The lesser ones, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``minimum``.

    >>> import stretto.numpy as snp
    >>> snp.minimum(snp.array([1.0, -2.0]), 0)
    Array([ 0., -2.], dtype=float32)
    """
    return _minimum(x, y)


@eager(np.fmax, REAL)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the greater of two elements; where one is NaN, the other.

    Args:
        x1: an array, or a number.
        x2: as ``x1``; the two broadcast.

    Returns:
        The greater ones, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``fmax``.

    >>> import stretto.numpy as snp
    >>> snp.fmax(snp.array([1.0, snp.nan]), 0)
    Array([1., 0.], dtype=float32)
    """
    x, y = promote_values("fmax", x1, x2)
    first = complex_greater(x, y) if is_complex(x.dtype) else gt(x, y)
    return where(first | ne(y, y), x, y)


@eager(np.fmin, REAL)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the lesser of two elements; where one is NaN, the other.

    Args:
        x1: an array, or a number.
        x2: as ``x1``; the two broadcast.

    Returns:
        The lesser ones, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``fmin``.

    >>> import stretto.numpy as snp
    >>> snp.fmin(snp.array([1.0, snp.nan]), 0)
    Array([0., 0.], dtype=float32)
    """
    x, y = promote_values("fmin", x1, x2)
    first = complex_greater(y, x) if is_complex(x.dtype) else lt(x, y)
    return where(first | ne(y, y), x, y)


def clip(
    a: ArrayLike,
    /,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    *,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """Limit each element to a range.

    Args:
        a: a real array, or a number.
        a_min: the older name of ``min``.
        a_max: the older name of ``max``.
        min: the lower bound, an array that broadcasts or a number; by default there is none.
        max: the upper bound, likewise.

    Returns:
        The limited elements, of the promoted dtype and the broadcast shape.

    Raises:
        ValueError: ``a`` is complex, or the shapes do not broadcast.
        TypeError: an argument is not an array or a number.

    As NumPy's ``clip``.

    >>> import stretto.numpy as snp
    >>> snp.clip(snp.array([-1.0, 0.5, 2.0]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = as_value(a, "clip", "a")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if is_complex(x.dtype):
        raise ValueError(f"clip: complex numbers have no order; got {x.type}")
    return _clip(x, low, high)


def _clip_between_numbers(x: np.ndarray, low: Any, high: Any) -> Any:
    """NumPy's ``clip`` if the bounds are numbers; of zeros it takes either, whatever its sign."""
    if low.__class__ is np.ndarray or high.__class__ is np.ndarray:
        return None
    at_zero = x.dtype.kind == "f" and 0 in (low, high)
    if at_zero and (high == 0 or np.signbit(low)):
        return None
    result = x.clip(low, high)
    return np.add(result, 0, out=np.asarray(result)) if at_zero else result  # -0 is below the bound


@eager(_clip_between_numbers, REAL)
def _clip(x: Any, low: Any, high: Any) -> Any:
    if low is not None:
        x = _maximum(x, low)
    return x if high is None else _minimum(x, high)


def square(x: ArrayLike, /) -> Array:
    """Square each element.

    Args:
        x: an array, or a number.

    Returns:
        ``x * x``, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``square``.

    >>> import stretto.numpy as snp
    >>> snp.square(snp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    return ops.square(x)


def reciprocal(x: ArrayLike, /) -> Array:
    """Take the reciprocal of each element.

    Args:
        x: an array, or a number.

    Returns:
        ``1 / x``, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``reciprocal``.

    >>> import stretto.numpy as snp
    >>> snp.reciprocal(snp.array([2, 4]))
    Array([0.5 , 0.25], dtype=float32)
    """
    return exponential.reciprocal(x)


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
    a, b = promote_values("heaviside", x, y, inexact=True)
    zero = zeros_like(a)
    step = select(lt(a, zero), zero, full_like(a, 1))
    return select(eq(a, zero), b, select(ne(a, a), a, step))


@eager(np.hypot, FLOAT)
def hypot(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute the length of the hypotenuse, without overflow on the way.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        ``sqrt(x**2 + y**2)``, of the promoted float dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's ``hypot``.

    >>> import stretto.numpy as snp
    >>> snp.hypot(snp.array([3e30]), 4e30)
    Array([5.e+30], dtype=float32)
    """
    refuse_complex("hypot", x=x, y=y)
    a, b = promote_values("hypot", x, y, inexact=True)
    # The signs stay: by way of |x| the second derivative at 0 would be 0.
    first = gt(ops.absolute(a), ops.absolute(b))
    long, short = select(first, a, b), select(first, b, a)
    infinite = isinf(a) | isinf(b)
    none = eq(long, zeros_like(long)) & eq(short, zeros_like(short))  # short may be NaN
    ratio = short / select(none | infinite, full_like(long, 1), long)
    length = ops.absolute(long) * exponential.sqrt(full_like(ratio, 1) + ratio * ratio)
    return select(infinite, full_like(long, np.inf), select(none, zeros_like(long), length))


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and infinities by numbers.

    Args:
        x: an array, or a number; integers and booleans stay as they are.
        copy: ignored: arrays are immutable.
        nan: what replaces NaN.
        posinf: what replaces infinity; by default the greatest number of the dtype.
        neginf: what replaces minus infinity; by default the least number of the dtype.

    Returns:
        The numbers, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` or a replacement is not an array or a number.

    As NumPy's ``nan_to_num``.

    >>> import stretto.numpy as snp
    >>> snp.nan_to_num(snp.array([snp.nan, snp.inf]), posinf=9)
    Array([0., 9.], dtype=float32)
    """
    del copy  # arrays are immutable: the argument never changes
    value = as_value(x, "nan_to_num")
    if is_complex(value.dtype):
        parts = (
            nan_to_num(p, True, nan, posinf, neginf) for p in (ops.real(value), ops.imag(value))
        )
        return ops.complex_(*parts)
    if not is_inexact(value.dtype):
        return value
    return _nan_to_num(value, nan=nan, posinf=posinf, neginf=neginf)


def _nan_to_numbers(x: np.ndarray, **replacements: Any) -> Any:
    """NumPy's ``nan_to_num`` if the replacements are Python numbers."""
    for value in replacements.values():
        if value is not None and value.__class__ not in (int, float):
            return None
    return np.nan_to_num(x, **replacements)


@eager(_nan_to_numbers, FLOAT)
def _nan_to_num(x: Any, *, nan: Any, posinf: Any, neginf: Any) -> Any:
    limits, dtype = finfo(x.dtype), x.dtype
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf

    def replacement(value: Any, argument: str) -> Any:
        return convert(as_value(value, "nan_to_num", argument), dtype)

    x = where(ne(x, x), replacement(nan, "nan"), x)
    x = where(eq(x, full_like(x, np.inf)), replacement(high, "posinf"), x)
    return where(eq(x, full_like(x, -np.inf)), replacement(low, "neginf"), x)


# Parts of complex numbers


def real(val: ArrayLike) -> Array:
    """Take the real part of each element.

    Args:
        val: an array, or a number.

    Returns:
        The real parts, of the shape of ``val``; real arrays as they are.

    Raises:
        TypeError: ``val`` is not an array or a number.

    As NumPy's ``real``.

    >>> import stretto.numpy as snp
    >>> snp.real(snp.array([1 + 2j]))
    Array([1.], dtype=float32)
    """
    return ops.real(val)


def imag(val: ArrayLike) -> Array:
    """Take the imaginary part of each element.

    Args:
        val: an array, or a number.

    Returns:
        The imaginary parts, of the shape of ``val``; zeros for real arrays.

    Raises:
        TypeError: ``val`` is not an array or a number.

    As NumPy's ``imag``.

    >>> import stretto.numpy as snp
    >>> snp.imag(snp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return ops.imag(val)


def conj(x: ArrayLike, /) -> Array:
    """Take the complex conjugate of each element.

    Args:
        x: an array, or a number.

    Returns:
        The conjugates, of the shape and dtype of ``x``; real arrays as they are.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``conj``.

    >>> import stretto.numpy as snp
    >>> snp.conj(snp.array([1 + 2j]))
    Array([1.-2.j], dtype=complex64)
    """
    return ops.conj(x)


conjugate = conj


def angle(z: ArrayLike, deg: bool = False) -> Array:
    """Compute the angle of each complex number in the plane.

    Args:
        z: an array, or a number, real or complex.
        deg: whether the angles are in degrees rather than radians.

    Returns:
        The angles, from -pi to pi or from -180 to 180; a float array of the shape of ``z``.

    Raises:
        TypeError: ``z`` is not an array or a number.

    As NumPy's ``angle``.

    >>> import stretto.numpy as snp
    >>> snp.angle(snp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    value = as_value(z, "angle", "z")
    value = convert(value, inexact_dtype(value.dtype), value.weak_type)
    radians = atan2(ops.imag(value), ops.real(value))
    return radians * (180 / math.pi) if deg else radians
