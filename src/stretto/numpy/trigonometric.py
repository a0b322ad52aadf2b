"""Trigonometric and hyperbolic functions, and their inverses.

Under NumPy's names, and those of the array API standard. Integers become floats.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops import inverse_trigonometric, trigonometric
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto.numpy.arguments import refuse_complex

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
    "cos",
    "cosh",
    "deg2rad",
    "degrees",
    "rad2deg",
    "radians",
    "sin",
    "sinc",
    "sinh",
    "tan",
    "tanh",
]


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
    return inverse_trigonometric.asin(x)


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
    return inverse_trigonometric.acos(x)


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
    return inverse_trigonometric.atan(x)


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
    return inverse_trigonometric.atan2(y, x)


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
    return inverse_trigonometric.asinh(x)


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
    return inverse_trigonometric.acosh(x)


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
    return inverse_trigonometric.atanh(x)


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
    return trigonometric.sine_ratio(angle)
