"""Trigonometric and hyperbolic functions, and their inverses.

Under NumPy's names, and those of the array API standard. Integers become floats.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto._engine.ops.inverse_trigonometric import acos, acosh, asin, asinh, atan, atanh
from stretto._engine.ops.inverse_trigonometric import atan2 as atan2_of
from stretto._engine.ops.trigonometric import cos, cosh, sin, sine_ratio, sinh, tan, tanh
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
