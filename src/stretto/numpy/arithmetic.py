"""Arithmetic: sums to powers, division, extrema, complex parts.

NumPy's names and promotion before the operations of ``ops``. Next, read ``remainders``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, kind_of, scalar_dtype
from stretto._engine.ops import arithmetic as ops
from stretto._engine.ops import exponential
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, where, zeros_like
from stretto._engine.ops.complex_order import complex_greater
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import INEXACT, promote_values
from stretto._engine.ops.trigonometric import atan2
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.eager import quiet
from stretto.numpy.arguments import numeric_values, refuse_complex
from stretto.numpy.directly import FLOAT, REAL, directly, host_of
from stretto.numpy.dtypes import finfo
from stretto.numpy.logic import isinf
from stretto.numpy.quick import element_of, quick

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


def add(x: Any, y: Any, /) -> Any:
    """``x + y``, element by element; of booleans, or.

    >>> import stretto.numpy as snp
    >>> snp.add(snp.array([1.0, 2.0]), 1)
    Array([2., 3.], dtype=float32)
    """
    return _add(x, y)


def subtract(x: Any, y: Any, /) -> Any:
    """``x - y``, element by element.

    >>> import stretto.numpy as snp
    >>> snp.subtract(snp.array([3, 4]), 1)
    Array([2, 3], dtype=int32)
    """
    return _subtract(x, y)


def multiply(x: Any, y: Any, /) -> Any:
    """``x * y``, element by element; of booleans, and.

    >>> import stretto.numpy as snp
    >>> snp.multiply(snp.array([3, 4]), 0.5)
    Array([1.5, 2. ], dtype=float32, weak_type=True)
    """
    return _multiply(x, y)


def true_divide(x: Any, y: Any, /) -> Any:
    """``x / y``, element by element; of integers a float.

    >>> import stretto.numpy as snp
    >>> snp.true_divide(snp.array([1, 2]), snp.array(2))
    Array([0.5, 1. ], dtype=float32)
    """
    return _divide(x, y)


divide = true_divide


def power(x: Any, y: Any, /) -> Any:
    """``x ** y``, element by element; a Python integer ``y`` is multiplied out.

    Raises ``TypeError`` for integers to a negative Python integer.

    >>> import stretto.numpy as snp
    >>> snp.power(snp.array([2.0, 3.0]), 2)
    Array([4., 9.], dtype=float32)
    """
    if type(y) is int:
        x = as_value(x, "power")
        if not is_inexact(x.dtype):
            if y < 0:
                raise TypeError(
                    f"power: integers have no negative powers among integers, got {x.type} ** {y}; "
                    f"use a float: x ** {y}.0"
                )
            if kind_of(x.dtype) == "bool":
                x = convert(x, scalar_dtype(int))
        return exponential.integer_pow(x, y)
    return exponential.POW(*numeric_values("power", x, y))


pow = power


def float_power(x: Any, y: Any, /) -> Any:
    """``x ** y`` in floats.

    >>> import stretto.numpy as snp
    >>> snp.float_power(snp.array([2, 4]), -1)
    Array([0.5 , 0.25], dtype=float32)
    """
    return exponential.POW(*promote_values("float_power", x, y, inexact=True))


def negative(x: Any, /) -> Any:
    """``-x``, element by element."""
    return ops.negative(x)


def positive(x: Any, /) -> Any:
    """``+x``: the numbers as they are."""
    x = as_value(x, "positive")
    if kind_of(x.dtype) == "bool":
        raise TypeError(f"positive: expected numbers, got {x.type}")
    return x


def absolute(x: Any, /) -> Any:
    """The absolute value of each element; of complex numbers the modulus.

    >>> import stretto.numpy as snp
    >>> snp.absolute(snp.array([-1, 2]))
    Array([1, 2], dtype=int32)
    """
    return ops.absolute(x)


abs = absolute


def fabs(x: Any, /) -> Any:
    """The absolute value of each element, as a float."""
    x = as_value(x, "fabs")
    refuse_complex("fabs", x=x)
    return ops.absolute(convert(x, inexact_dtype(x.dtype), x.weak_type))


def sign(x: Any, /) -> Any:
    """-1, 0 or 1 by the sign of each element; of complex numbers ``x / |x|``.

    >>> import stretto.numpy as snp
    >>> snp.sign(snp.array([-5.0, 0.0]))
    Array([-1.,  0.], dtype=float32)
    """
    return ops.sign(x)


def maximum(x: Any, y: Any, /) -> Any:
    """The greater of ``x`` and ``y``, element by element; NaN where either is.

    >>> import stretto.numpy as snp
    >>> snp.maximum(snp.array([1.0, -2.0]), 0)
    Array([1., 0.], dtype=float32)
    """
    return _maximum(x, y)


def minimum(x: Any, y: Any, /) -> Any:
    """The lesser of ``x`` and ``y``, element by element; NaN where either is.

    >>> import stretto.numpy as snp
    >>> snp.minimum(snp.array([1.0, -2.0]), 0)
    Array([ 0., -2.], dtype=float32)
    """
    return _minimum(x, y)


def fmax(x1: Any, x2: Any) -> Any:
    """The greater of ``x1`` and ``x2``, element by element; the other one where one is NaN."""
    found = directly(np.fmax, REAL, x1, x2)
    if found is not None:
        return found
    x, y = promote_values("fmax", x1, x2)
    first = complex_greater(x, y) if is_complex(x.dtype) else gt(x, y)
    return where(first | ne(y, y), x, y)


def fmin(x1: Any, x2: Any) -> Any:
    """The lesser of ``x1`` and ``x2``, element by element; the other one where one is NaN."""
    found = directly(np.fmin, REAL, x1, x2)
    if found is not None:
        return found
    x, y = promote_values("fmin", x1, x2)
    first = complex_greater(y, x) if is_complex(x.dtype) else lt(x, y)
    return where(first | ne(y, y), x, y)


def clip(
    a: Any, /, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None
) -> Any:
    """Each element, but not below ``min`` nor above ``max``; ``None`` is no bound.

    Also under NumPy's older names ``a_min`` and ``a_max``. Raises ``ValueError`` for complex
    numbers.

    >>> import stretto.numpy as snp
    >>> snp.clip(snp.array([-1.0, 0.5, 2.0]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = as_value(a, "clip", "a")
    low, high = (a_min if min is None else min), (a_max if max is None else max)
    if is_complex(x.dtype):
        raise ValueError(f"clip: complex numbers have no order; got {x.type}")
    found = _clip_directly(x, low, high)
    if found is not None:
        return found
    if low is not None:
        x = _maximum(x, low)
    return x if high is None else _minimum(x, high)


def _clip_directly(x: Any, low: Any, high: Any) -> Any:
    """By NumPy where the bounds are numbers; of zeros it takes either, whatever its sign."""
    host = host_of(x, REAL)
    if host is None:
        return None
    bounds = [element_of(b, x.type) for b in (low, high)]
    if bounds[0] is None or bounds[1] is None:
        return None
    out = quiet.run(np.clip, host, *bounds)
    if kind_of(x.dtype) == "float" and 0 in bounds:
        if bounds[1] == 0 or np.signbit(bounds[0]):
            return None
        out = np.add(out, 0, out=np.asarray(out))  # -0 is less than the bound
    return Array(np.asarray(out), x.type)


def square(x: Any, /) -> Any:
    """``x * x``.

    >>> import stretto.numpy as snp
    >>> snp.square(snp.array([2, -3]))
    Array([4, 9], dtype=int32)
    """
    return ops.square(x)


def reciprocal(x: Any, /) -> Any:
    """``1 / x``; of integers a float."""
    return exponential.reciprocal(x)


def heaviside(x: Any, y: Any, /) -> Any:
    """0 for negative ``x``, ``y`` at zero, 1 for positive ``x``; NaN stays."""
    x, y = promote_values("heaviside", x, y, inexact=True)
    zero = zeros_like(x)
    step = select(lt(x, zero), zero, full_like(x, 1))
    return select(eq(x, zero), y, select(ne(x, x), x, step))


def hypot(x: Any, y: Any, /) -> Any:
    """``sqrt(x**2 + y**2)`` without overflow in between.

    >>> import stretto.numpy as snp
    >>> snp.hypot(snp.array([3e30]), 4e30)
    Array([5.e+30], dtype=float32)
    """
    found = directly(np.hypot, FLOAT, x, y)
    if found is not None:
        return found
    refuse_complex("hypot", x=x, y=y)
    x, y = promote_values("hypot", x, y, inexact=True)
    # The signs stay: by way of |x| the second derivative at 0 would be 0.
    first = gt(ops.absolute(x), ops.absolute(y))
    long, short = select(first, x, y), select(first, y, x)
    infinite = isinf(x) | isinf(y)
    none = eq(long, zeros_like(long)) & eq(short, zeros_like(short))  # short may be NaN
    ratio = short / select(none | infinite, full_like(long, 1), long)
    length = ops.absolute(long) * exponential.sqrt(full_like(ratio, 1) + ratio * ratio)
    return select(infinite, full_like(long, np.inf), select(none, zeros_like(long), length))


def nan_to_num(
    x: Any, copy: bool = True, nan: Any = 0.0, posinf: Any = None, neginf: Any = None
) -> Any:
    """NaN replaced by ``nan``, infinities by ``posinf`` and ``neginf``: by default the extremes.

    >>> import stretto.numpy as snp
    >>> snp.nan_to_num(snp.array([snp.nan, snp.inf]), posinf=9)
    Array([0., 9.], dtype=float32)
    """
    del copy  # arrays are immutable: what is given is never changed
    x = as_value(x, "nan_to_num")
    if is_complex(x.dtype):
        parts = (nan_to_num(p, True, nan, posinf, neginf) for p in (ops.real(x), ops.imag(x)))
        return ops.complex_(*parts)
    if not is_inexact(x.dtype):
        return x
    if all(v is None or v.__class__ in (int, float) for v in (nan, posinf, neginf)):
        found = directly(np.nan_to_num, FLOAT, x, nan=nan, posinf=posinf, neginf=neginf)
        if found is not None:
            return found
    limits = finfo(x.dtype)
    high = limits.max if posinf is None else posinf
    low = limits.min if neginf is None else neginf
    x = where(ne(x, x), convert(as_value(nan), x.dtype), x)
    x = where(eq(x, full_like(x, np.inf)), convert(as_value(high), x.dtype), x)
    return where(eq(x, full_like(x, -np.inf)), convert(as_value(low), x.dtype), x)


# Parts of complex numbers


def real(val: Any) -> Any:
    """The real part of each element; real arrays as they are."""
    return ops.real(val)


def imag(val: Any) -> Any:
    """The imaginary part of each element; zeros for real arrays.

    >>> import stretto.numpy as snp
    >>> snp.imag(snp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return ops.imag(val)


def conj(x: Any, /) -> Any:
    """The complex conjugate of each element; real arrays as they are."""
    return ops.conj(x)


conjugate = conj


def angle(z: Any, deg: bool = False) -> Any:
    """The angle of each complex number in the plane, in radians, or degrees if ``deg``.

    >>> import stretto.numpy as snp
    >>> snp.angle(snp.array([1j, -1]), deg=True)
    Array([ 90., 180.], dtype=float32)
    """
    z = as_value(z, "angle", "z")
    z = convert(z, inexact_dtype(z.dtype), z.weak_type)
    radians = atan2(ops.imag(z), ops.real(z))
    return radians * (180 / math.pi) if deg else radians
