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
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import exponential, trigonometric
from stretto._engine.ops.comparison import full_like, gt, ne, select, zeros_like
from stretto._engine.ops.complex_order import complex_greater
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.rounding import ceil
from stretto.numpy.arguments import refuse_complex
from stretto.numpy.eager import FLOAT, eager

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


def _float(x: Any, caller: str) -> Any:
    x = as_value(x, caller)
    return convert(x, inexact_dtype(x.dtype), x.weak_type)


def exp(x: ArrayLike, /) -> Array:
    """Raise e to the power of each element.

    Args:
        x: an array, or a number.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``exp``.

    >>> import stretto.numpy as snp
    >>> snp.exp(snp.array([-snp.inf, 0.0]))
    Array([0., 1.], dtype=float32)
    """
    return exponential.exp(x)


def exp2(x: ArrayLike, /) -> Array:
    """Raise 2 to the power of each element.

    Args:
        x: an array, or a number.

    Returns:
        The powers, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``exp2``.

    >>> import stretto.numpy as snp
    >>> snp.exp2(snp.array([0.0, 3.0]))
    Array([1., 8.], dtype=float32)
    """
    return exponential.exp2(x)


def expm1(x: ArrayLike, /) -> Array:
    """Compute ``exp(x) - 1`` of each element, accurately near zero.

    Args:
        x: an array, or a number.

    Returns:
        The values, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``expm1``.

    >>> import stretto.numpy as snp
    >>> snp.expm1(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return exponential.expm1(x)


def log(x: ArrayLike, /) -> Array:
    """Take the natural logarithm of each element.

    Args:
        x: an array, or a number.

    Returns:
        The logarithms, -inf at zero and NaN below it; of the shape of ``x``; integers become
        floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``log``.

    >>> import stretto.numpy as snp
    >>> snp.log(snp.array([1.0, 0.0]))
    Array([  0., -inf], dtype=float32)
    """
    return exponential.log(x)


def log1p(x: ArrayLike, /) -> Array:
    """Compute ``log(1 + x)`` of each element, accurately near zero.

    Args:
        x: an array, or a number.

    Returns:
        The logarithms, -inf at -1 and NaN below it; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``log1p``.

    >>> import stretto.numpy as snp
    >>> snp.log1p(snp.array([0.0, 1e-8]))
    Array([0.e+00, 1.e-08], dtype=float32)
    """
    return exponential.log1p(x)


@eager(np.log2, FLOAT)
def log2(x: ArrayLike, /) -> Array:
    """Take the logarithm of each element to base 2.

    Args:
        x: an array, or a number.

    Returns:
        The logarithms, -inf at zero and NaN below it; of the shape of ``x``; integers become
        floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``log2``.

    >>> import stretto.numpy as snp
    >>> snp.log2(snp.array([1.0, 8.0]))
    Array([0., 3.], dtype=float32)
    """
    return _by_real(exponential.log(_float(x, "log2")), math.log(2))


@eager(np.log10, FLOAT)
def log10(x: ArrayLike, /) -> Array:
    """Take the logarithm of each element to base 10.

    Args:
        x: an array, or a number.

    Returns:
        The logarithms, -inf at zero and NaN below it; of the shape of ``x``; integers become
        floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``log10``.

    >>> import stretto.numpy as snp
    >>> snp.log10(snp.array([1.0, 100.0])).round(2)
    Array([0., 2.], dtype=float32)
    """
    return _by_real(exponential.log(_float(x, "log10")), math.log(10))


def _by_real(x: Any, number: float) -> Any:
    """``x`` divided by a real number; of complex numbers by parts, of which one may be infinite."""
    if is_complex(x.dtype):
        return complex_(_by_real(real(x), number), _by_real(imag(x), number))
    return x / full_like(x, number)


def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute ``log(exp(x) + exp(y))`` without overflow.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The logarithms, of the promoted float or complex dtype and the broadcast shape. Of complex
        numbers the principal value.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``logaddexp``.

    >>> import stretto.numpy as snp
    >>> snp.logaddexp(snp.array([1000.0]), 1000.0).round(2)
    Array([1000.69], dtype=float32)
    """
    a, b = promote_values("logaddexp", x, y, inexact=True)
    out = _add_exponentials(a, b, exponential.exp, exponential.log1p)
    return _principal(out, math.pi) if is_complex(out.dtype) else out


def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute ``log2(2**x + 2**y)`` without overflow.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The logarithms, of the promoted float or complex dtype and the broadcast shape. Of complex
        numbers the principal value.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``logaddexp2``.

    >>> import stretto.numpy as snp
    >>> snp.logaddexp2(snp.array([1000.0]), 1000.0)
    Array([1001.], dtype=float32)
    """
    a, b = promote_values("logaddexp2", x, y, inexact=True)

    def log2_1p(z: Any) -> Any:
        return exponential.log1p(z) * full_like(z, 1 / math.log(2))

    out = _add_exponentials(a, b, exponential.exp2, log2_1p)
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


def sqrt(x: ArrayLike, /) -> Array:
    """Take the square root of each element.

    Args:
        x: an array, or a number.

    Returns:
        The roots, NaN below zero; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``sqrt``.

    >>> import stretto.numpy as snp
    >>> snp.sqrt(snp.array([4, 9]))
    Array([2., 3.], dtype=float32)
    """
    return exponential.sqrt(x)


def cbrt(x: ArrayLike, /) -> Array:
    """Take the real cube root of each element.

    Args:
        x: an array, or a number.

    Returns:
        The roots, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``cbrt``.

    >>> import stretto.numpy as snp
    >>> snp.cbrt(snp.array([8.0, -1.0]))
    Array([ 2., -1.], dtype=float32)
    """
    return exponential.cbrt(x)


def sin(x: ArrayLike, /) -> Array:
    """Compute the sine of each element.

    Args:
        x: an array, or a number; in radians.

    Returns:
        The sines, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``sin``.

    >>> import stretto.numpy as snp
    >>> snp.sin(snp.array([0.0, snp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return trigonometric.sin(x)


def cos(x: ArrayLike, /) -> Array:
    """Compute the cosine of each element.

    Args:
        x: an array, or a number; in radians.

    Returns:
        The cosines, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``cos``.

    >>> import stretto.numpy as snp
    >>> snp.cos(snp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return trigonometric.cos(x)


def tan(x: ArrayLike, /) -> Array:
    """Compute the tangent of each element.

    Args:
        x: an array, or a number; in radians.

    Returns:
        The tangents, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``tan``.

    >>> import stretto.numpy as snp
    >>> snp.tan(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.tan(x)


def arcsin(x: ArrayLike, /) -> Array:
    """Compute the inverse sine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The angles in radians, from -pi/2 to pi/2; NaN outside [-1, 1]; of the shape of ``x``;
        integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arcsin``.

    >>> import stretto.numpy as snp
    >>> snp.arcsin(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.asin(x)


def arccos(x: ArrayLike, /) -> Array:
    """Compute the inverse cosine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The angles in radians, from 0 to pi; NaN outside [-1, 1]; of the shape of ``x``; integers
        become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arccos``.

    >>> import stretto.numpy as snp
    >>> snp.arccos(snp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.acos(x)


def arctan(x: ArrayLike, /) -> Array:
    """Compute the inverse tangent of each element.

    Args:
        x: an array, or a number.

    Returns:
        The angles in radians, from -pi/2 to pi/2; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arctan``.

    >>> import stretto.numpy as snp
    >>> snp.arctan(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.atan(x)


def arctan2(y: ArrayLike, x: ArrayLike, /) -> Array:
    """Compute the angle of each point (x, y) in the plane.

    Args:
        y: a real array, or a number: the points' second coordinates.
        x: the points' first coordinates; the two broadcast.

    Returns:
        The angles in radians, from -pi to pi, of the promoted float dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number, or is complex.
        ValueError: the shapes do not broadcast.

    As NumPy's ``arctan2``.

    >>> import stretto.numpy as snp
    >>> snp.arctan2(snp.array([1.0]), snp.array([-1.0]))
    Array([2.3561945], dtype=float32)
    """
    return trigonometric.atan2(y, x)


def sinh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic sine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``sinh``.

    >>> import stretto.numpy as snp
    >>> snp.sinh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.sinh(x)


def cosh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic cosine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``cosh``.

    >>> import stretto.numpy as snp
    >>> snp.cosh(snp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return trigonometric.cosh(x)


def tanh(x: ArrayLike, /) -> Array:
    """Compute the hyperbolic tangent of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``tanh``.

    >>> import stretto.numpy as snp
    >>> snp.tanh(snp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)
    """
    return trigonometric.tanh(x)


def arcsinh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic sine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arcsinh``.

    >>> import stretto.numpy as snp
    >>> snp.arcsinh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.asinh(x)


def arccosh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic cosine of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values, NaN below 1; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arccosh``.

    >>> import stretto.numpy as snp
    >>> snp.arccosh(snp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.acosh(x)


def arctanh(x: ArrayLike, /) -> Array:
    """Compute the inverse hyperbolic tangent of each element.

    Args:
        x: an array, or a number.

    Returns:
        The values, NaN outside [-1, 1]; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``arctanh``.

    >>> import stretto.numpy as snp
    >>> snp.arctanh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return trigonometric.atanh(x)


asin, acos, atan, atan2 = arcsin, arccos, arctan, arctan2
asinh, acosh, atanh = arcsinh, arccosh, arctanh


def degrees(x: ArrayLike, /) -> Array:
    """Convert radians to degrees.

    Args:
        x: an array, or a number; in radians.

    Returns:
        The angles in degrees, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``degrees``.

    >>> import stretto.numpy as snp
    >>> snp.degrees(snp.array([snp.pi]))
    Array([180.], dtype=float32)
    """
    refuse_complex("degrees", x=x)
    value = _float(x, "degrees")
    return value * full_like(value, 180 / math.pi)


def radians(x: ArrayLike, /) -> Array:
    """Convert degrees to radians.

    Args:
        x: an array, or a number; in degrees.

    Returns:
        The angles in radians, of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number, or is complex.

    As NumPy's ``radians``.

    >>> import stretto.numpy as snp
    >>> snp.radians(snp.array([180.0]))
    Array([3.1415927], dtype=float32)
    """
    refuse_complex("radians", x=x)
    value = _float(x, "radians")
    return value * full_like(value, math.pi / 180)


rad2deg, deg2rad = degrees, radians


@eager(np.sinc, FLOAT)
def sinc(x: ArrayLike, /) -> Array:
    """Compute the normalised sinc function of each element.

    Args:
        x: an array, or a number.

    Returns:
        ``sin(pi x) / (pi x)``, 1 at zero; of the shape of ``x``; integers become floats.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As NumPy's ``sinc``.

    >>> import stretto.numpy as snp
    >>> snp.sinc(snp.array([0.0, 0.5])).round(4)
    Array([1.    , 0.6366], dtype=float32)
    """
    value = _float(x, "sinc")
    angle = value * full_like(value, math.pi)
    return trigonometric.sine_ratio(angle)
