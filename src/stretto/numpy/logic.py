"""Comparison, logic, bits, tests of numbers, and choice.

Next, read ``reductions``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, is_inexact, kind_of, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import bitwise
from stretto._engine.ops import comparison as ops
from stretto._engine.ops.arithmetic import absolute, imag, is_finite, real
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.comparison import full_like, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INTEGRAL, promote_values
from stretto.numpy.arguments import refuse_complex, refuse_out
from stretto.numpy.directly import FLOAT, INTEGER, directly
from stretto.numpy.quick import quick

__all__ = [
    "bitwise_and",
    "bitwise_count",
    "bitwise_invert",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "copysign",
    "equal",
    "greater",
    "greater_equal",
    "invert",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "iscomplex",
    "isreal",
    "left_shift",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "not_equal",
    "right_shift",
    "signbit",
]

_BOOL = np.dtype(bool)


def _ordered(primitive: Any) -> Callable[[Any, Any], Any]:
    """The comparison, promoted; complex numbers by real part, then imaginary part, as in NumPy."""

    def compare(x: Any, y: Any) -> Any:
        x, y = promote_values(primitive.name, x, y)
        if is_complex(x.dtype):
            tie = ops.EQ(real(x), real(y))
            return select(tie, primitive(imag(x), imag(y)), primitive(real(x), real(y)))
        return primitive(x, y)

    return compare


_equal = quick(ops.EQ, ops.eq, operator="eq")
_not_equal = quick(ops.NE, ops.ne, operator="ne")
_less = quick(ops.LT, _ordered(ops.LT), operator="lt")
_less_equal = quick(ops.LE, _ordered(ops.LE), operator="le")
_greater = quick(ops.GT, _ordered(ops.GT), operator="gt")
_greater_equal = quick(ops.GE, _ordered(ops.GE), operator="ge")


def equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x == y``, element by element.

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``equal``.

    >>> import stretto.numpy as snp
    >>> snp.equal(snp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _equal(x, y)


def not_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x != y``, element by element.

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``not_equal``.

    >>> import stretto.numpy as snp
    >>> snp.not_equal(snp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _not_equal(x, y)


def less(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x < y``, element by element.

    Args:
        x: an array, or a number; complex numbers are ordered by real, then imaginary part.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``less``.

    >>> import stretto.numpy as snp
    >>> snp.less(snp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _less(x, y)


def less_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x <= y``, element by element.

    Args:
        x: an array, or a number; complex numbers are ordered by real, then imaginary part.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``less_equal``.

    >>> import stretto.numpy as snp
    >>> snp.less_equal(snp.array([1, 2]), 2)
    Array([ True,  True], dtype=bool)
    """
    return _less_equal(x, y)


def greater(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x > y``, element by element.

    Args:
        x: an array, or a number; complex numbers are ordered by real, then imaginary part.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``greater``.

    >>> import stretto.numpy as snp
    >>> snp.greater(snp.array([1, 2]), 2)
    Array([False, False], dtype=bool)
    """
    return _greater(x, y)


def greater_equal(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether ``x >= y``, element by element.

    Args:
        x: an array, or a number; complex numbers are ordered by real, then imaginary part.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``greater_equal``.

    >>> import stretto.numpy as snp
    >>> snp.greater_equal(snp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _greater_equal(x, y)


# Truth


def truth(x: Any, caller: str, argument: str = "x") -> Any:
    """Whether each element is not zero."""
    return convert(as_value(x, caller, argument), _BOOL)


def mask_of_where(where: Any, caller: str) -> Any:
    """The argument ``where`` as a mask; raises ``TypeError`` for what is not boolean."""
    mask = as_value(where, caller, "where")
    if mask.type.kind != "bool":
        raise TypeError(
            f"{caller}: where must be boolean, got {mask.type}; compare its elements (where > "
            "0), or "
            f"convert it with .astype(bool)"
        )
    return mask


def logical_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether both elements are true (not zero).

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``logical_and``.

    >>> import stretto.numpy as snp
    >>> snp.logical_and(snp.array([True, False]), 1)
    Array([ True, False], dtype=bool)
    """
    return bitwise.bitwise_and(truth(x, "logical_and"), truth(y, "logical_and", "y"))


def logical_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether either element is true (not zero).

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``logical_or``.

    >>> import stretto.numpy as snp
    >>> snp.logical_or(snp.array([True, False]), 1)
    Array([ True,  True], dtype=bool)
    """
    return bitwise.bitwise_or(truth(x, "logical_or"), truth(y, "logical_or", "y"))


def logical_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Say whether exactly one element is true (not zero).

    Args:
        x: an array, or a number.
        y: an array, or a number; both broadcast.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``logical_xor``.

    >>> import stretto.numpy as snp
    >>> snp.logical_xor(snp.array([True, False]), 1)
    Array([False,  True], dtype=bool)
    """
    return bitwise.bitwise_xor(truth(x, "logical_xor"), truth(y, "logical_xor", "y"))


def logical_not(x: ArrayLike, /) -> Array:
    """Say whether each element is false (zero).

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's ``logical_not``.

    >>> import stretto.numpy as snp
    >>> snp.logical_not(snp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return bitwise.bitwise_not(truth(x, "logical_not"))


# Bits


_and = quick(bitwise.AND, bitwise.bitwise_and, operator="and")
_or = quick(bitwise.OR, bitwise.bitwise_or, operator="or")
_xor = quick(bitwise.XOR, bitwise.bitwise_xor, operator="xor")


def bitwise_and(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by and: ``x & y``.

    Args:
        x: integers or booleans.
        y: integers or booleans; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is neither of integers nor of booleans.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``bitwise_and``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_and(snp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return _and(x, y)


def bitwise_or(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by or: ``x | y``.

    Args:
        x: integers or booleans.
        y: integers or booleans; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is neither of integers nor of booleans.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``bitwise_or``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_or(snp.array([6, 5]), 3)
    Array([7, 7], dtype=int32)
    """
    return _or(x, y)


def bitwise_xor(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the bits of integers by exclusive or: ``x ^ y``.

    Args:
        x: integers or booleans.
        y: integers or booleans; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is neither of integers nor of booleans.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``bitwise_xor``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_xor(snp.array([6, 5]), 3)
    Array([5, 6], dtype=int32)
    """
    return _xor(x, y)


def bitwise_not(x: ArrayLike, /) -> Array:
    """Invert the bits of integers, or the truth of booleans: ``~x``.

    Args:
        x: integers or booleans.

    Returns:
        An array of the dtype and shape of ``x``.

    Raises:
        TypeError: ``x`` is neither of integers nor of booleans.

    As NumPy's ``bitwise_not``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_not(snp.array([0, 5]))
    Array([-1, -6], dtype=int32)
    """
    return bitwise.bitwise_not(x)


invert = bitwise_invert = bitwise_not


def left_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Move the bits of integers up: ``x << y``.

    Args:
        x: integers.
        y: by how many places; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes do not broadcast.

    As NumPy's ``left_shift``.

    >>> import stretto.numpy as snp
    >>> snp.left_shift(snp.array([1, 2]), 2)
    Array([4, 8], dtype=int32)
    """
    return bitwise.shift_left(x, y)


def right_shift(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Move the bits of integers down, filled with the sign: ``x >> y``.

    Args:
        x: integers.
        y: by how many places; both broadcast.

    Returns:
        An array of the promoted dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is not of integers.
        ValueError: the shapes do not broadcast.

    As NumPy's ``right_shift``.

    >>> import stretto.numpy as snp
    >>> snp.right_shift(snp.array([8, -8]), 2)
    Array([ 2, -2], dtype=int32)
    """
    value, other = promote_values("right_shift", x, y)
    if kind_of(value.dtype) == "uint":
        return bitwise.SHIFT_RIGHT_LOGICAL(value, other)
    return bitwise.SHIFT_RIGHT_ARITHMETIC(value, other)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def bitwise_count(x: ArrayLike, /) -> Array:
    """Count the bits set in the absolute value of each integer.

    Args:
        x: integers.

    Returns:
        An array of uint8, of the shape of ``x``.

    Raises:
        TypeError: ``x`` is not of integers.

    As NumPy's ``bitwise_count``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_count(snp.array([7, -1]))
    Array([3, 1], dtype=uint8)
    """
    found = directly(np.bitwise_count, INTEGER, x, out=np.dtype(np.uint8))
    if found is not None:
        return found
    value = as_value(x, "bitwise_count")
    if kind_of(value.dtype) not in INTEGRAL:
        raise TypeError(f"bitwise_count: expected integers, got {value.type}")
    return convert(bitwise.population_count(absolute(value)), np.dtype(np.uint8))


# Tests of numbers


def isnan(x: ArrayLike, /) -> Array:
    """Say whether each element is NaN.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's and the array API standard's ``isnan``.

    >>> import stretto.numpy as snp
    >>> snp.isnan(snp.array([snp.nan, 1.0]))
    Array([ True, False], dtype=bool)
    """
    found = directly(np.isnan, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    value = as_value(x, "isnan")
    return ops.NE(value, value) if is_inexact(value.dtype) else full_like_bool(value, False)


def full_like_bool(x: Any, element: bool) -> Any:
    """Truth values of the shape of ``x``."""
    return ops.full(x.shape, element, _BOOL)


def isfinite(x: ArrayLike, /) -> Array:
    """Say whether each element is neither infinite nor NaN.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's and the array API standard's ``isfinite``.

    >>> import stretto.numpy as snp
    >>> snp.isfinite(snp.array([snp.inf, 1.0]))
    Array([False,  True], dtype=bool)
    """
    value = as_value(x, "isfinite")
    return is_finite(value) if is_inexact(value.dtype) else full_like_bool(value, True)


def isinf(x: ArrayLike, /) -> Array:
    """Say whether each element is infinite; complex numbers in either part.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's and the array API standard's ``isinf``.

    >>> import stretto.numpy as snp
    >>> snp.isinf(snp.array([-snp.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    found = directly(np.isinf, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    value = as_value(x, "isinf")
    if is_complex(value.dtype):
        return bitwise.bitwise_or(isinf(real(value)), isinf(imag(value)))
    if not is_inexact(value.dtype):
        return full_like_bool(value, False)
    return ops.EQ(absolute(value), full_like(value, np.inf))


def isposinf(x: ArrayLike, /, out: None = None) -> Array:
    """Say whether each element is plus infinity.

    Args:
        x: an array of real numbers.
        out: must be None: arrays are immutable.

    Returns:
        Booleans, of the shape of ``x``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``x`` is complex.

    As NumPy's ``isposinf``.

    >>> import stretto.numpy as snp
    >>> snp.isposinf(snp.array([snp.inf, -snp.inf]))
    Array([ True, False], dtype=bool)
    """
    refuse_out("isposinf", out)
    refuse_complex("isposinf", x=x)
    return _equal(x, np.inf)


def isneginf(x: ArrayLike, /, out: None = None) -> Array:
    """Say whether each element is minus infinity.

    Args:
        x: an array of real numbers.
        out: must be None: arrays are immutable.

    Returns:
        Booleans, of the shape of ``x``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``x`` is complex.

    As NumPy's ``isneginf``.

    >>> import stretto.numpy as snp
    >>> snp.isneginf(snp.array([snp.inf, -snp.inf]))
    Array([False,  True], dtype=bool)
    """
    refuse_out("isneginf", out)
    refuse_complex("isneginf", x=x)
    return _equal(x, -np.inf)


def isreal(x: ArrayLike) -> Array:
    """Say whether the imaginary part of each element is zero.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's ``isreal``.

    >>> import stretto.numpy as snp
    >>> snp.isreal(snp.array([1j, 2.0]))
    Array([False,  True], dtype=bool)
    """
    value = as_value(x, "isreal")
    return _equal(imag(value), 0) if is_complex(value.dtype) else full_like_bool(value, True)


def iscomplex(x: ArrayLike) -> Array:
    """Say whether the imaginary part of each element is not zero.

    Args:
        x: an array, or a number.

    Returns:
        Booleans, of the shape of ``x``.

    As NumPy's ``iscomplex``.

    >>> import stretto.numpy as snp
    >>> snp.iscomplex(snp.array([1j, 2.0]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(x, "iscomplex")
    return _not_equal(imag(value), 0) if is_complex(value.dtype) else full_like_bool(value, False)


def signbit(x: ArrayLike, /) -> Array:
    """Say whether the sign bit of each element is set, also for negative zero and NaN.

    Args:
        x: an array of real numbers.

    Returns:
        Booleans, of the shape of ``x``.

    Raises:
        TypeError: ``x`` is complex.

    As NumPy's and the array API standard's ``signbit``.

    >>> import stretto.numpy as snp
    >>> snp.signbit(snp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)
    """
    found = directly(np.signbit, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    value = as_value(x, "signbit")
    if is_complex(value.dtype):
        raise TypeError(f"signbit: expected real numbers, got {value.type}")
    if is_inexact(value.dtype):
        value = bitcast_convert_type(value, np.dtype(f"i{value.dtype.itemsize}"))
    return _less(value, 0)


def copysign(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Combine the magnitude of ``x`` with the sign of ``y``.

    Args:
        x: an array of real numbers.
        y: an array of real numbers; both broadcast.

    Returns:
        An array of the promoted float dtype and the shape that the two broadcast to.

    Raises:
        TypeError: an argument is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's and the array API standard's ``copysign``.

    >>> import stretto.numpy as snp
    >>> snp.copysign(snp.array([1.0, 2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    found = directly(np.copysign, FLOAT, x, y)
    if found is not None:
        return found
    value, other = promote_values("copysign", x, y, inexact=True)
    size = absolute(value)
    return select(signbit(other), -size, size)


def isclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Say whether ``|a - b| <= atol + rtol * |b|``; equal infinities are close.

    Args:
        a: an array, or a number.
        b: the array to compare with; both broadcast.
        rtol: the tolerance relative to ``b``.
        atol: the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        Booleans, of the shape that the two broadcast to.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``isclose``.

    >>> import stretto.numpy as snp
    >>> snp.isclose(snp.array([1.0, 2.0]), snp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    value, other = promote_values("isclose", a, b)
    if not is_inexact(value.dtype):
        value, other = (convert(v, scalar_dtype(float)) for v in (value, other))
    near = ops.le(absolute(value - other), atol + rtol * absolute(other)) & isfinite(other)
    close = near | ops.EQ(value, other)
    return close | bitwise.bitwise_and(isnan(value), isnan(other)) if equal_nan else close
