"""The inverse trigonometric and hyperbolic functions. Angles are in radians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import complex_edges, thresholds
from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import full_like, select
from stretto._engine.ops.elementwise import (
    FLOAT,
    INEXACT,
    Elementwise,
    binary,
    describe_unary,
    unary,
)
from stretto._engine.ops.exponential import rsqrt
from stretto._engine.ops.written import Term, absolute, horner, log1p, where

_ATAN = {
    np.dtype(np.float32): (
        -0.3333333218503327, 0.19999911972339923, -0.14283390543552557, 0.11081089989556632,
        -0.0887203228837293, 0.06728706367545154, -0.04025492198296319, 0.01301676323579824,
    ),
    np.dtype(np.float64): (
        -0.33333333333333326, 0.19999999999997467, -0.14285714285471762, 0.11111111099287106,
        -0.09090908745578029, 0.07692301072718595, -0.0666657848568483, 0.05881505260390544,
        -0.05257127398558839, 0.047296268224150714, -0.04216528076789991, 0.035919618768971213,
        -0.02732573224159055, 0.01672823541547129, -0.007038182430937714, 0.0014786757121107179,
    ),
}  # fmt: skip
"""(atan(z) / z - 1) / z^2 as a polynomial in z^2 for |z| < 0.66, by Remez's exchange.

It makes atan(z) off by less than a thousandth of a unit in the last place.
"""

_PI_LESS_ROUNDED = {
    np.dtype(np.float32): -8.742277657347586e-08,
    np.dtype(np.float64): 1.2246467991473532e-16,
}
"""Pi less the number nearest to it, which is what that lacks."""


def _asinh_slope(x: Any) -> Any:
    """Return 1 / sqrt(x^2 + 1), which is 1 / |x| to the last digit where x^2 might overflow."""
    one = full_like(x, 1)
    if is_complex(x.dtype):
        return rsqrt(x * x + one)
    size = magnitude(x)
    large = size > full_like(x, 2 / np.sqrt(np.finfo(x.dtype).eps))
    near = select(large, one, x)
    return select(large, one / select(large, size, one), rsqrt(near * near + one))


def _over_square(z: Any, x: Any, y: Any) -> Any:
    """Return z / (x^2 + y^2) in units of the larger, since squares may overflow or vanish."""
    ax, ay = magnitude(x), magnitude(y)
    unit = select(ax > ay, ax, ay)
    u, v = x / unit, y / unit
    return z / unit / (u * u + v * v) / unit


class Inverse(complex_edges.WithEdges, abstract=True):
    """The inverse of a trigonometric or hyperbolic function, one operation of CHLO."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ARC
    dialect = "chlo"


class Asin(Inverse):
    """The inverse sine, in radians."""

    op = "asin"
    reference = staticmethod(np.arcsin)
    edges = staticmethod(complex_edges.asin_edges)
    partials = (lambda dx, out, x: dx * rsqrt(full_like(x, 1) - x * x),)


class Acos(Inverse):
    """The inverse cosine, in radians."""

    op = "acos"
    reference = staticmethod(np.arccos)
    edges = staticmethod(complex_edges.acos_edges)
    partials = (lambda dx, out, x: -(dx * rsqrt(full_like(x, 1) - x * x)),)


class Atan(Inverse):
    """The inverse tangent, in radians."""

    derives_widely = True
    costs = thresholds.ATAN
    op = "atan"
    reference = staticmethod(np.arctan)
    edges = staticmethod(complex_edges.atan_edges)
    partials = (lambda dx, out, x: dx / (full_like(x, 1) + x * x),)

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; in 32 and 64 bits, where XLA is off by up to 5 ulps, write it."""
        dtype = x.type.dtype
        if dtype not in _ATAN:
            return super().lower(b, x)
        term = Term(b, x)
        size = absolute(term)
        # atan x = pi / 2 + atan(-1 / x) = pi / 4 + atan((x - 1) / (x + 1)) for x > 0
        large, middle = size > 2.4, size > 0.66
        over = where(large, -1.0, where(middle, size - 1.0, size))
        z = over / where(large, size, where(middle, size + 1.0, 1.0))
        turns = where(large, term.like(0.5), where(middle, term.like(0.25), 0.0))
        rest = turns * _PI_LESS_ROUNDED[dtype]
        out = turns * math.pi + (z + (z * (z * z) * horner(_ATAN[dtype], z * z) + rest))
        return where(term == 0.0, term, where(term < 0.0, -out, out)).operand


class Asinh(Inverse):
    """The inverse hyperbolic sine."""

    derives_widely = True
    op = "asinh"
    reference = staticmethod(np.arcsinh)
    edges = staticmethod(complex_edges.asinh_edges)
    partials = (lambda dx, out, x: dx * _asinh_slope(x),)


class Acosh(Inverse):
    """The inverse hyperbolic cosine."""

    derives_widely = True
    op = "acosh"
    reference = staticmethod(np.arccosh)
    edges = staticmethod(complex_edges.acosh_edges)
    partials = (lambda dx, out, x: dx * (rsqrt(x - full_like(x, 1)) * rsqrt(x + full_like(x, 1))),)


class Atanh(Inverse):
    """The inverse hyperbolic tangent."""

    costs = thresholds.ATANH
    op = "atanh"
    reference = staticmethod(np.arctanh)
    edges = staticmethod(complex_edges.atanh_edges)
    partials = (lambda dx, out, x: dx / (full_like(x, 1) - x * x),)

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; in float64, where it is off by a hundred ulps, use log1p."""
        if x.type.dtype != np.float64:
            return super().lower(b, x)
        term = Term(b, x)
        size = absolute(term)
        out = 0.5 * log1p(2.0 * size / (1.0 - size))
        return where(term == 0.0, term, where(term < 0.0, -out, out)).operand


class Atan2(Elementwise):
    """The angle of the point (y, x), in radians."""

    derives_widely = True
    accepts = FLOAT
    kernel = Kernel.LONG
    op = "atan2"
    reference = staticmethod(np.arctan2)
    # d atan2(x, y) = (y dx - x dy) / (x^2 + y^2)
    partials = (
        lambda dx, out, x, y: dx * _over_square(y, x, y),
        lambda dy, out, x, y: dy * -_over_square(x, x, y),
    )


ASIN, ACOS, ATAN, ATAN2, ASINH, ACOSH = Asin(), Acos(), Atan(), Atan2(), Asinh(), Acosh()
ATANH = Atanh()


@describe_unary
def asin(x: ArrayLike) -> Array:
    """Compute the inverse sine of each element.

    Returns:
        The angles in radians, from -pi/2 to pi/2; NaN outside [-1, 1]; of the shape of ``x``;
        integers become floats.

    As NumPy's ``arcsin``. Source: CHLO, ``asin``.

    >>> import stretto.numpy as snp
    >>> snp.arcsin(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(ASIN, x)


@describe_unary
def acos(x: ArrayLike) -> Array:
    """Compute the inverse cosine of each element.

    Returns:
        The angles in radians, from 0 to pi; NaN outside [-1, 1]; of the shape of ``x``; integers
        become floats.

    As NumPy's ``arccos``. Source: CHLO, ``acos``.

    >>> import stretto.numpy as snp
    >>> snp.arccos(snp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return unary(ACOS, x)


@describe_unary
def atan(x: ArrayLike) -> Array:
    """Compute the inverse tangent of each element.

    Returns:
        The angles in radians, from -pi/2 to pi/2; of the shape of ``x``; integers become floats.

    As NumPy's ``arctan``. Source: CHLO, ``atan``.

    >>> import stretto.numpy as snp
    >>> snp.arctan(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(ATAN, x)


@describe_unary
def asinh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic sine of each element.

    As NumPy's ``arcsinh``. Source: CHLO, ``asinh``.

    >>> import stretto.numpy as snp
    >>> snp.arcsinh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(ASINH, x)


@describe_unary
def acosh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic cosine of each element.

    Returns:
        The values, NaN below 1; of the shape of ``x``; integers become floats.

    As NumPy's ``arccosh``. Source: CHLO, ``acosh``.

    >>> import stretto.numpy as snp
    >>> snp.arccosh(snp.array([1.0]))
    Array([0.], dtype=float32)
    """
    return unary(ACOSH, x)


@describe_unary
def atanh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic tangent of each element.

    Returns:
        The values, NaN outside [-1, 1]; of the shape of ``x``; integers become floats.

    As NumPy's ``arctanh``. Source: CHLO, ``atanh``.

    >>> import stretto.numpy as snp
    >>> snp.arctanh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(ATANH, x)


def atan2(x: ArrayLike, y: ArrayLike) -> Array:
    """Compute the angle, in radians, of the points with ordinates ``x`` and abscissae ``y``.

    Args:
        x: the coordinate along the sine, an array or a number.
        y: the coordinate along the cosine, promoted and broadcast with ``x``.

    Returns:
        The angles, from -pi to pi, whose sine is along ``x`` and whose cosine is along ``y``.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``atan2``.

    >>> import stretto as st
    >>> st.lax.atan2(st.numpy.array([1.0, -1.0]), st.numpy.array([0.0, -1.0]))
    Array([ 1.5707964, -2.3561945], dtype=float32)
    """
    return binary(ATAN2, x, y)
