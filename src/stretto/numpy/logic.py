"""Comparison, logic, bits, tests of numbers, and choice.

Next, read ``reductions``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, is_inexact, kind_of, scalar_dtype
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


def equal(x: Any, y: Any, /) -> Any:
    """Whether ``x == y``, element by element.

    >>> import stretto.numpy as snp
    >>> snp.equal(snp.array([1, 2]), 2)
    Array([False,  True], dtype=bool)
    """
    return _equal(x, y)


def not_equal(x: Any, y: Any, /) -> Any:
    """Whether ``x != y``, element by element."""
    return _not_equal(x, y)


def less(x: Any, y: Any, /) -> Any:
    """Whether ``x < y``, element by element.

    >>> import stretto.numpy as snp
    >>> snp.less(snp.array([1, 2]), 2)
    Array([ True, False], dtype=bool)
    """
    return _less(x, y)


def less_equal(x: Any, y: Any, /) -> Any:
    """Whether ``x <= y``, element by element."""
    return _less_equal(x, y)


def greater(x: Any, y: Any, /) -> Any:
    """Whether ``x > y``, element by element."""
    return _greater(x, y)


def greater_equal(x: Any, y: Any, /) -> Any:
    """Whether ``x >= y``, element by element."""
    return _greater_equal(x, y)


# Truth


def truth(x: Any, who: str, argument: str = "x") -> Any:
    """Whether each element is not zero."""
    return convert(as_value(x, who, argument), _BOOL)


def mask_of_where(where: Any, who: str) -> Any:
    """The argument ``where`` as a mask; raises ``TypeError`` for what is not boolean."""
    mask = as_value(where, who, "where")
    if mask.type.kind != "bool":
        raise TypeError(
            f"{who}: where must be boolean, got {mask.type}; compare its elements (where > 0), or "
            f"convert it with .astype(bool)"
        )
    return mask


def logical_and(x: Any, y: Any, /) -> Any:
    """Whether ``x`` and ``y`` are both true (not zero), element by element.

    >>> import stretto.numpy as snp
    >>> snp.logical_and(snp.array([True, False]), 1)
    Array([ True, False], dtype=bool)
    """
    return ops.bitwise_and(truth(x, "logical_and"), truth(y, "logical_and", "y"))


def logical_or(x: Any, y: Any, /) -> Any:
    """Whether ``x`` or ``y`` is true (not zero), element by element."""
    return ops.bitwise_or(truth(x, "logical_or"), truth(y, "logical_or", "y"))


def logical_xor(x: Any, y: Any, /) -> Any:
    """Whether one of ``x`` and ``y`` is true (not zero) and the other not, element by element."""
    return ops.bitwise_xor(truth(x, "logical_xor"), truth(y, "logical_xor", "y"))


def logical_not(x: Any, /) -> Any:
    """Whether each element is false (zero).

    >>> import stretto.numpy as snp
    >>> snp.logical_not(snp.array([0, 3]))
    Array([ True, False], dtype=bool)
    """
    return ops.bitwise_not(truth(x, "logical_not"))


# Bits


_and = quick(ops.AND, ops.bitwise_and, operator="and")
_or = quick(ops.OR, ops.bitwise_or, operator="or")
_xor = quick(ops.XOR, ops.bitwise_xor, operator="xor")


def bitwise_and(x: Any, y: Any, /) -> Any:
    """``x & y``: bits of integers, truth of booleans, element by element.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_and(snp.array([6, 5]), 3)
    Array([2, 1], dtype=int32)
    """
    return _and(x, y)


def bitwise_or(x: Any, y: Any, /) -> Any:
    """``x | y``: bits of integers, truth of booleans, element by element."""
    return _or(x, y)


def bitwise_xor(x: Any, y: Any, /) -> Any:
    """``x ^ y``: bits of integers, truth of booleans, element by element."""
    return _xor(x, y)


def bitwise_not(x: Any, /) -> Any:
    """``~x``: the other bits of integers, the other truth value of booleans."""
    return ops.bitwise_not(x)


invert = bitwise_invert = bitwise_not


def left_shift(x: Any, y: Any, /) -> Any:
    """``x << y``: the bits of ``x`` moved ``y`` places up.

    >>> import stretto.numpy as snp
    >>> snp.left_shift(snp.array([1, 2]), 2)
    Array([4, 8], dtype=int32)
    """
    return ops.shift_left(x, y)


def right_shift(x: Any, y: Any, /) -> Any:
    """``x >> y``: the bits of ``x`` moved ``y`` places down, filled with the sign."""
    x, y = promote_values("right_shift", x, y)
    if kind_of(x.dtype) == "uint":
        return ops.SHIFT_RIGHT_LOGICAL(x, y)
    return ops.SHIFT_RIGHT_ARITHMETIC(x, y)


bitwise_left_shift = left_shift
bitwise_right_shift = right_shift


def bitwise_count(x: Any, /) -> Any:
    """The number of bits set in the absolute value of each integer, as ``uint8``.

    >>> import stretto.numpy as snp
    >>> snp.bitwise_count(snp.array([7, -1]))
    Array([3, 1], dtype=uint8)
    """
    found = directly(np.bitwise_count, INTEGER, x, out=np.dtype(np.uint8))
    if found is not None:
        return found
    x = as_value(x, "bitwise_count")
    if kind_of(x.dtype) not in INTEGRAL:
        raise TypeError(f"bitwise_count: expected integers, got {x.type}")
    return convert(ops.population_count(absolute(x)), np.dtype(np.uint8))


# Tests of numbers


def isnan(x: Any, /) -> Any:
    """Whether each element is not a number.

    >>> import stretto.numpy as snp
    >>> snp.isnan(snp.array([snp.nan, 1.0]))
    Array([ True, False], dtype=bool)
    """
    found = directly(np.isnan, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    x = as_value(x, "isnan")
    return ops.NE(x, x) if is_inexact(x.dtype) else full_like_bool(x, False)


def full_like_bool(x: Any, element: bool) -> Any:
    """Truth values of the shape of ``x``."""
    return ops.full(x.shape, element, _BOOL)


def isfinite(x: Any, /) -> Any:
    """Whether each element is neither infinite nor NaN."""
    x = as_value(x, "isfinite")
    return is_finite(x) if is_inexact(x.dtype) else full_like_bool(x, True)


def isinf(x: Any, /) -> Any:
    """Whether each element is infinite; of complex numbers, in either part.

    >>> import stretto.numpy as snp
    >>> snp.isinf(snp.array([-snp.inf, 1.0]))
    Array([ True, False], dtype=bool)
    """
    found = directly(np.isinf, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    x = as_value(x, "isinf")
    if is_complex(x.dtype):
        return isinf(real(x)) | isinf(imag(x))
    if not is_inexact(x.dtype):
        return full_like_bool(x, False)
    return ops.EQ(absolute(x), full_like(x, np.inf))


def isposinf(x: Any, /, out: None = None) -> Any:
    """Whether each real number is plus infinity."""
    refuse_out("isposinf", out)
    refuse_complex("isposinf", x=x)
    return _equal(x, np.inf)


def isneginf(x: Any, /, out: None = None) -> Any:
    """Whether each real number is minus infinity."""
    refuse_out("isneginf", out)
    refuse_complex("isneginf", x=x)
    return _equal(x, -np.inf)


def isreal(x: Any) -> Any:
    """Whether the imaginary part of each element is zero."""
    x = as_value(x, "isreal")
    return _equal(imag(x), 0) if is_complex(x.dtype) else full_like_bool(x, True)


def iscomplex(x: Any) -> Any:
    """Whether the imaginary part of each element is not zero."""
    x = as_value(x, "iscomplex")
    return _not_equal(imag(x), 0) if is_complex(x.dtype) else full_like_bool(x, False)


def signbit(x: Any, /) -> Any:
    """Whether the sign bit of each real number is set: also that of negative zero and of NaN.

    >>> import stretto.numpy as snp
    >>> snp.signbit(snp.array([-1.0, -0.0, 0.0]))
    Array([ True,  True, False], dtype=bool)
    """
    found = directly(np.signbit, FLOAT, x, out=_BOOL)
    if found is not None:
        return found
    x = as_value(x, "signbit")
    if is_complex(x.dtype):
        raise TypeError(f"signbit: expected real numbers, got {x.type}")
    if is_inexact(x.dtype):
        x = bitcast_convert_type(x, np.dtype(f"i{x.dtype.itemsize}"))
    return _less(x, 0)


def copysign(x: Any, y: Any, /) -> Any:
    """The magnitude of ``x`` with the sign of ``y``, element by element.

    >>> import stretto.numpy as snp
    >>> snp.copysign(snp.array([1.0, 2.0]), -0.0)
    Array([-1., -2.], dtype=float32)
    """
    found = directly(np.copysign, FLOAT, x, y)
    if found is not None:
        return found
    x, y = promote_values("copysign", x, y, inexact=True)
    size = absolute(x)
    return select(signbit(y), -size, size)


def isclose(a: Any, b: Any, rtol: Any = 1e-05, atol: Any = 1e-08, equal_nan: bool = False) -> Any:
    """Whether ``|a - b| <= atol + rtol * |b|``, element by element; equal infinities are close.

    >>> import stretto.numpy as snp
    >>> snp.isclose(snp.array([1.0, 2.0]), snp.array([1.000001, 2.1]))
    Array([ True, False], dtype=bool)
    """
    a, b = promote_values("isclose", a, b)
    if not is_inexact(a.dtype):
        a, b = (convert(v, scalar_dtype(float)) for v in (a, b))
    near = ops.le(absolute(a - b), atol + rtol * absolute(b)) & isfinite(b)
    close = near | ops.EQ(a, b)
    return close | (isnan(a) & isnan(b)) if equal_nan else close
