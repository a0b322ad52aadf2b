"""Exponentials, logarithms, roots, trigonometric and hyperbolic functions; complex parts.

Under NumPy's names, and those of the array API standard. Integers become floats.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops import complex_parts
from stretto._engine.ops.comparison import full_like, gt, lt, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, conj
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.exponential import cbrt, exp, exp2, expm1, log, log1p, sqrt
from stretto._engine.ops.extrema import complex_greater
from stretto._engine.ops.inverse_trigonometric import acos, acosh, asin, asinh, atan, atanh
from stretto._engine.ops.inverse_trigonometric import atan2 as atan2_of
from stretto._engine.ops.rounding import ceil
from stretto._engine.ops.trigonometric import cos, cosh, sin, sine_ratio, sinh, tan, tanh
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import refuse_complex

__all__ = ["acos", "acosh", "angle", "arccos", "arccosh", "arcsin", "arcsinh",
           "arctan", "arctan2", "arctanh", "asin", "asinh", "atan", "atan2", "atanh",
           "cbrt", "conj", "conjugate", "cos", "cosh", "deg2rad", "degrees", "exp",
           "exp2", "expm1", "imag", "log", "log1p", "log2", "log10", "logaddexp",
           "logaddexp2", "rad2deg", "radians", "real", "sin", "sinc", "sinh", "sqrt",
           "tan", "tanh"]  # fmt: skip


@eager(np.log2, FLOAT)
@described_like(log)
def log2(x: ArrayLike, /) -> Array:
    """Take the logarithm of each element to base 2.

    As NumPy's ``log2``.

    >>> import stretto.numpy as snp
    >>> snp.log2(snp.array([1.0, 8.0]))
    Array([0., 3.], dtype=float32)
    """
    return _by_real(log(as_inexact(x, "log2")), math.log(2))


@eager(np.log10, FLOAT)
@described_like(log)
def log10(x: ArrayLike, /) -> Array:
    """Take the logarithm of each element to base 10.

    As NumPy's ``log10``.

    >>> import stretto.numpy as snp
    >>> snp.log10(snp.array([1.0, 100.0])).round(2)
    Array([0., 2.], dtype=float32)
    """
    return _by_real(log(as_inexact(x, "log10")), math.log(10))


def _by_real(x: Array, number: float) -> Array:
    """Divide by a real number: complex numbers part by part, as one may be infinite."""
    if is_complex(x.dtype):
        parts = complex_parts.real(x), complex_parts.imag(x)
        return complex_(*[_by_real(part, number) for part in parts])
    return x / full_like(x, number)


def logaddexp(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute ``log(exp(x) + exp(y))`` without overflow.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The logarithms, of the promoted float or complex dtype and the broadcast shape. Of complex
        numbers the principal value. Slopes are the shares of ``exp(x)`` and ``exp(y)`` in their
        sum: a half each where both are inf, and 0 where both are -inf, as in ``logsumexp``.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``logaddexp``.

    >>> import stretto.numpy as snp
    >>> snp.logaddexp(snp.array([1000.0]), 1000.0).round(2)
    Array([1000.69], dtype=float32)
    """
    a, b = promote_values("logaddexp", x, y, inexact=True)
    out = _add_exponentials(a, b, exp, log1p)
    return _principal(out, math.pi) if is_complex(out.dtype) else out


@described_like(logaddexp)
def logaddexp2(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Compute ``log2(2**x + 2**y)`` without overflow.

    Returns:
        The logarithms, of the promoted float or complex dtype and the broadcast shape. Of complex
        numbers the principal value.

    As NumPy's ``logaddexp2``.

    >>> import stretto.numpy as snp
    >>> snp.logaddexp2(snp.array([1000.0]), 1000.0)
    Array([1001.], dtype=float32)
    """
    a, b = promote_values("logaddexp2", x, y, inexact=True)

    def log2_1p(z: Array) -> Array:
        return log1p(z) * full_like(z, 1 / math.log(2))

    out = _add_exponentials(a, b, exp2, log2_1p)
    return _principal(out, math.pi / math.log(2)) if is_complex(out.dtype) else out


def _principal(z: Array, half: float) -> Array:
    """Move the imaginary part of ``z`` into (-half, half] by whole periods."""
    y, period = complex_parts.imag(z), full_like(complex_parts.imag(z), 2 * half)
    turns = ceil(y / period - full_like(y, 0.5))
    return complex_(complex_parts.real(z), y - period * turns)


def _add_exponentials(
    x: Array, y: Array, power: Callable[[Array], Array], log_1p: Callable[[Array], Array]
) -> Array:
    """Compute max(x, y) + log(1 + exp(-|x - y|)), or (x + y) / 2 where x - y is NaN.

    It is NaN for equal infinities. Slopes are the shares of exp(x) and exp(y) in their sum. Where
    there is nothing to share, of -inf and -inf, they are 0, as those of ``logsumexp``.
    """
    # Written with select: max and |.| have no second derivative where x = y.
    first = complex_greater(x, y) if is_complex(x.dtype) else gt(x, y)
    gap = select(first, y - x, x - y)
    undefined = ne(gap, gap)
    gap = select(undefined, zeros_like(gap), gap)
    mean = x + y
    if not is_complex(x.dtype):
        mean = select(lt(mean, zeros_like(mean)), stop_gradient(mean), mean * full_like(mean, 0.5))
    return select(undefined, mean, select(first, x, y) + log_1p(power(gap)))


arcsin, arccos, arctan = asin, acos, atan
arcsinh, arccosh, arctanh = asinh, acosh, atanh


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
    return atan2_of(y, x)


atan2 = arctan2


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
    value = as_inexact(x, "degrees")
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
    value = as_inexact(x, "radians")
    return value * full_like(value, math.pi / 180)


rad2deg, deg2rad = degrees, radians


@eager(np.sinc, FLOAT)
@rounded_once
def sinc(x: ArrayLike, /) -> Array:
    """Compute the normalized sinc function of each element.

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
    value = as_inexact(x, "sinc")
    angle = value * full_like(value, math.pi)
    return sine_ratio(angle)


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
    return complex_parts.real(val)


@described_like(real)
def imag(val: ArrayLike) -> Array:
    """Take the imaginary part of each element.

    Returns:
        The imaginary parts, of the shape of ``val``; zeros for real arrays.

    As NumPy's ``imag``.

    >>> import stretto.numpy as snp
    >>> snp.imag(snp.array([1 + 2j]))
    Array([2.], dtype=float32)
    """
    return complex_parts.imag(val)


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
    value = as_inexact(z, "angle", "z")
    radians = atan2_of(complex_parts.imag(value), complex_parts.real(value))
    return radians * (180 / math.pi) if deg else radians
