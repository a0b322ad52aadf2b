"""Arithmetic: sums to powers, division, signs.

NumPy's names and promotion before the operations of ``ops``.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_inexact, kind_of, scalar_dtype
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.twins import FLOAT, binary_function, eager
from stretto._engine.ops import arithmetic, exponential
from stretto._engine.ops.arithmetic import absolute, negative, sign, square
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT, promote_values
from stretto._engine.ops.exponential import reciprocal
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import numeric_values, refuse_complex
from stretto.numpy.logic import isinf

__all__ = [
    "abs",
    "absolute",
    "add",
    "divide",
    "fabs",
    "float_power",
    "heaviside",
    "hypot",
    "multiply",
    "negative",
    "positive",
    "pow",
    "power",
    "reciprocal",
    "sign",
    "square",
    "subtract",
    "true_divide",
]


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
