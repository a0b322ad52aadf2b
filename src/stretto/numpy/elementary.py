"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions.

Under NumPy's names, and those of the array API standard. Integers become floats. Next, read
``logic``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype, is_complex
from stretto._engine.ops import exponential, trigonometric
from stretto._engine.ops.comparison import full_like, gt, ne, select, zeros_like
from stretto._engine.ops.complex_order import complex_greater
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.rounding import ceil
from stretto.numpy.arguments import refuse_complex
from stretto.numpy.directly import FLOAT, directly

__all__ = [
    "acos",
    "acosh",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cbrt",
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "exp",
    "exp2",
    "expm1",
    "log",
    "log10",
    "log1p",
    "log2",
    "logaddexp",
    "logaddexp2",
    "rad2deg",
    "radians",
    "sin",
    "sinc",
    "sinh",
    "sqrt",
    "tan",
    "tanh",
]


def _float(x: Any, who: str) -> Any:
    x = as_value(x, who)
    return convert(x, inexact_dtype(x.dtype), x.weak_type)


def exp(x: Any, /) -> Any:
    """e to the power of each element.

    >>> import stretto.numpy as snp
    >>> snp.exp(snp.array([-snp.inf, 0.0]))
    Array([0., 1.], dtype=float32)
    """
    return exponential.exp(x)


def exp2(x: Any, /) -> Any:
    """2 to the power of each element.

    >>> import stretto.numpy as snp
    >>> snp.exp2(snp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return exponential.exp2(x)


def expm1(x: Any, /) -> Any:
    """``exp(x) - 1``, exact near zero."""
    return exponential.expm1(x)


def log(x: Any, /) -> Any:
    """The natural logarithm of each element: -inf at zero, NaN below.

    >>> import stretto.numpy as snp
    >>> snp.log(snp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return exponential.log(x)


def log1p(x: Any, /) -> Any:
    """``log(1 + x)``, exact near zero."""
    return exponential.log1p(x)


def log2(x: Any, /) -> Any:
    """The logarithm of each element to base 2.

    >>> import stretto.numpy as snp
    >>> snp.log2(snp.array([1.0, 8.0]))
    Array([0., 3.], dtype=float32)
    """
    found = directly(np.log2, FLOAT, x)
    if found is not None:
        return found
    return _by_real(exponential.log(_float(x, "log2")), math.log(2))


def log10(x: Any, /) -> Any:
    """The logarithm of each element to base 10."""
    found = directly(np.log10, FLOAT, x)
    if found is not None:
        return found
    return _by_real(exponential.log(_float(x, "log10")), math.log(10))


def _by_real(x: Any, number: float) -> Any:
    """``x`` divided by a real number; of complex numbers by parts, of which one may be infinite."""
    if is_complex(x.dtype):
        return complex_(_by_real(real(x), number), _by_real(imag(x), number))
    return x / full_like(x, number)


def logaddexp(x: Any, y: Any, /) -> Any:
    """``log(exp(x) + exp(y))`` without overflow; of complex numbers the principal value.

    >>> import stretto.numpy as snp
    >>> snp.logaddexp(snp.array([1000.0]), 1000.0).round(2)
    Array([1000.69], dtype=float32)
    """
    x, y = promote_values("logaddexp", x, y, inexact=True)
    out = _add_exponentials(x, y, exponential.exp, exponential.log1p)
    return _principal(out, math.pi) if is_complex(out.dtype) else out


def logaddexp2(x: Any, y: Any, /) -> Any:
    """``log2(2**x + 2**y)`` without overflow."""
    x, y = promote_values("logaddexp2", x, y, inexact=True)

    def log2_1p(z: Any) -> Any:
        return exponential.log1p(z) * full_like(z, 1 / math.log(2))

    out = _add_exponentials(x, y, exponential.exp2, log2_1p)
    return _principal(out, math.pi / math.log(2)) if is_complex(out.dtype) else out


def _principal(z: Any, half: float) -> Any:
    """``z`` with its imaginary part in (-half, half], by whole periods."""
    y, period = imag(z), full_like(imag(z), 2 * half)
    turns = ceil(y / period - full_like(y, 0.5))
    return complex_(real(z), y - period * turns)


def _add_exponentials(x: Any, y: Any, power: Any, log_1p: Any) -> Any:
    """max(x, y) + log(1 + exp(-|x - y|)); where x - y is NaN, of equal infinities too, x + y."""
    # By choice of the greater: max and |.| have no second derivative where x = y.
    first = complex_greater(x, y) if is_complex(x.dtype) else gt(x, y)
    gap = select(first, y - x, x - y)
    undefined = ne(gap, gap)
    gap = select(undefined, zeros_like(gap), gap)
    return select(undefined, x + y, select(first, x, y) + log_1p(power(gap)))


def sqrt(x: Any, /) -> Any:
    """The square root of each element; NaN below zero.

    >>> import stretto.numpy as snp
    >>> snp.sqrt(snp.array([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return exponential.sqrt(x)


def cbrt(x: Any, /) -> Any:
    """The real cube root of each element."""
    return exponential.cbrt(x)


def sin(x: Any, /) -> Any:
    """The sine of each element, in radians.

    >>> import stretto.numpy as snp
    >>> snp.sin(snp.array([0.0, snp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return trigonometric.sin(x)


def cos(x: Any, /) -> Any:
    """The cosine of each element, in radians."""
    return trigonometric.cos(x)


def tan(x: Any, /) -> Any:
    """The tangent of each element, in radians."""
    return trigonometric.tan(x)


def arcsin(x: Any, /) -> Any:
    """The inverse sine of each element, in radians; NaN outside [-1, 1]."""
    return trigonometric.asin(x)


def arccos(x: Any, /) -> Any:
    """The inverse cosine of each element, in radians; NaN outside [-1, 1]."""
    return trigonometric.acos(x)


def arctan(x: Any, /) -> Any:
    """The inverse tangent of each element, in radians."""
    return trigonometric.atan(x)


def arctan2(y: Any, x: Any, /) -> Any:
    """The angle of the point (x, y), in radians, between -pi and pi.

    >>> import stretto.numpy as snp
    >>> snp.arctan2(snp.array([1.0]), snp.array([-1.0]))
    Array([2.3561945], dtype=float32)
    """
    return trigonometric.atan2(y, x)


def sinh(x: Any, /) -> Any:
    """The hyperbolic sine of each element."""
    return trigonometric.sinh(x)


def cosh(x: Any, /) -> Any:
    """The hyperbolic cosine of each element."""
    return trigonometric.cosh(x)


def tanh(x: Any, /) -> Any:
    """The hyperbolic tangent of each element.

    >>> import stretto.numpy as snp
    >>> snp.tanh(snp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)
    """
    return trigonometric.tanh(x)


def arcsinh(x: Any, /) -> Any:
    """The inverse hyperbolic sine of each element."""
    return trigonometric.asinh(x)


def arccosh(x: Any, /) -> Any:
    """The inverse hyperbolic cosine of each element; NaN below 1."""
    return trigonometric.acosh(x)


def arctanh(x: Any, /) -> Any:
    """The inverse hyperbolic tangent of each element; NaN outside [-1, 1]."""
    return trigonometric.atanh(x)


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


def degrees(x: Any, /) -> Any:
    """Radians to degrees.

    >>> import stretto.numpy as snp
    >>> snp.degrees(snp.array([snp.pi]))
    Array([180.], dtype=float32)
    """
    refuse_complex("degrees", x=x)
    x = _float(x, "degrees")
    return x * full_like(x, 180 / math.pi)


def radians(x: Any, /) -> Any:
    """Degrees to radians."""
    refuse_complex("radians", x=x)
    x = _float(x, "radians")
    return x * full_like(x, math.pi / 180)


rad2deg, deg2rad = degrees, radians


def sinc(x: Any, /) -> Any:
    """``sin(pi x) / (pi x)``, 1 at zero.

    >>> import stretto.numpy as snp
    >>> snp.sinc(snp.array([0.0, 0.5])).round(4)
    Array([1.    , 0.6366], dtype=float32)
    """
    found = directly(np.sinc, FLOAT, x)
    if found is not None:
        return found
    x = _float(x, "sinc")
    angle = x * full_like(x, math.pi)
    return trigonometric.sine_ratio(angle)
