"""Trigonometric and hyperbolic functions and their inverses. Angles are in radians.

Layer 2 (ops).
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, zeros_like
from stretto._engine.ops.complex_edges import (
    Edged,
    acos_edges,
    acosh_edges,
    asin_edges,
    asinh_edges,
    atan_edges,
    atanh_edges,
    is_infinite,
    tan_edges,
    tan_reference,
    tanh_edges,
    tanh_reference,
)
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.elementwise import FLOAT, INEXACT, Elementwise, binary, unary
from stretto._engine.ops.exponential import rsqrt
from stretto._engine.ops.rounding import is_finite
from stretto._engine.ops.written import Term, absolute, log1p, where

__all__ = [
    "acos",
    "acosh",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "cos",
    "cosh",
    "sin",
    "sine_ratio",
    "sinh",
    "tan",
    "tanh",
]


class Sin(Elementwise):
    """The sine; radians."""

    accepts = INEXACT
    costs = thresholds.CIRCULAR
    op = "sine"
    reference = staticmethod(np.sin)
    partials = (lambda dx, out, x: dx * cos(x),)

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``sine``; of complex numbers by parts, lest small ones lose their digits."""
        return b.inline(_complex_sin, x) if is_complex(x.type.dtype) else b.emit(self.op, x)


def _complex_sin(z: Any) -> Any:
    # sin(z) = -i sinh(iz)
    u, v = _sinh_parts(-imag(z), real(z))
    return complex_(v, -u)


class Cos(Elementwise):
    """The cosine; radians."""

    accepts = INEXACT
    costs = thresholds.CIRCULAR
    op = "cosine"
    reference = staticmethod(np.cos)
    partials = (lambda dx, out, x: -(dx * sin(x)),)

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``cosine``; of complex numbers by parts."""
        return b.inline(_complex_cos, x) if is_complex(x.type.dtype) else b.emit(self.op, x)


class Tan(Edged):
    """The tangent; radians."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.CIRCULAR
    op = "tan"
    reference = staticmethod(tan_reference)
    edges = staticmethod(tan_edges)
    partials = (lambda dx, out, x: dx * (full_like(out, 1) + out * out),)


class Asin(Edged):
    """The inverse sine, in radians."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ARC
    op = "asin"
    dialect = "chlo"
    reference = staticmethod(np.arcsin)
    edges = staticmethod(asin_edges)
    partials = (lambda dx, out, x: dx * rsqrt(full_like(x, 1) - x * x),)


class Acos(Edged):
    """The inverse cosine, in radians."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ARC
    op = "acos"
    dialect = "chlo"
    reference = staticmethod(np.arccos)
    edges = staticmethod(acos_edges)
    partials = (lambda dx, out, x: -(dx * rsqrt(full_like(x, 1) - x * x)),)


class Atan(Edged):
    """The inverse tangent, in radians."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ATAN
    op = "atan"
    dialect = "chlo"
    reference = staticmethod(np.arctan)
    edges = staticmethod(atan_edges)
    partials = (lambda dx, out, x: dx / (full_like(x, 1) + x * x),)


class Sinh(Elementwise):
    """The hyperbolic sine."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.HYPERBOLIC
    op = "sinh"
    reference = staticmethod(np.sinh)
    partials = (lambda dx, out, x: dx * cosh(x),)

    def lower(self, b: Any, x: Any) -> Any:
        """CHLO ``sinh``; of complex numbers by parts, lest small ones lose their digits."""
        if is_complex(x.type.dtype):
            return b.inline(_complex_sinh, x)
        return b.emit(self.op, x, dialect="chlo")


def _sinh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    # sinh(a + ib) = sinh(a) cos(b) + i cosh(a) sin(b); at b = 0 also where cosh(a) overflows, and
    # where cos(b) is NaN with what sinh(a) = 0 or infinity leaves
    kept = ~is_finite(b) & (eq(a, zeros_like(a)) | is_infinite(a))
    return (
        select(kept, a, sinh(a) * cos(b)),
        select(eq(b, zeros_like(b)), b, cosh(a) * sin(b)),
    )


def _complex_sinh(z: Any) -> Any:
    return complex_(*_sinh_parts(real(z), imag(z)))


def _cosh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    # cosh(a + ib) = cosh(a) cos(b) + i sinh(a) sin(b), zero where either factor is
    at_a, at_b = eq(a, zeros_like(a)), eq(b, zeros_like(b))
    zero = select(at_a, a * _bounded(b), b * _bounded(a))
    return (
        select(~is_finite(b) & is_infinite(a), full_like(a, math.inf), cosh(a) * cos(b)),
        select(at_a | at_b, zero, sinh(a) * sin(b)),
    )


def _bounded(x: Any) -> Any:
    """A finite number of the sign of ``x``."""
    one = full_like(x, 1)
    return select(gt(x, one), one, select(lt(x, -one), -one, select(ne(x, x), one, x)))


def _complex_cosh(z: Any) -> Any:
    return complex_(*_cosh_parts(real(z), imag(z)))


def _complex_cos(z: Any) -> Any:
    # cos(z) = cosh(iz)
    return complex_(*_cosh_parts(-imag(z), real(z)))


class Cosh(Elementwise):
    """The hyperbolic cosine."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.HYPERBOLIC
    op = "cosh"
    reference = staticmethod(np.cosh)
    partials = (lambda dx, out, x: dx * sinh(x),)

    def lower(self, b: Any, x: Any) -> Any:
        """CHLO ``cosh``; of complex numbers by parts."""
        if is_complex(x.type.dtype):
            return b.inline(_complex_cosh, x)
        return b.emit(self.op, x, dialect="chlo")


class Tanh(Edged):
    """The hyperbolic tangent."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.HYPERBOLIC
    op = "tanh"
    reference = staticmethod(tanh_reference)
    edges = staticmethod(tanh_edges)
    partials = (lambda dx, out, x: dx * (full_like(out, 1) - out * out),)


class Asinh(Edged):
    """The inverse hyperbolic sine."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ARC
    op = "asinh"
    dialect = "chlo"
    reference = staticmethod(np.arcsinh)
    edges = staticmethod(asinh_edges)
    partials = (lambda dx, out, x: dx * rsqrt(x * x + full_like(x, 1)),)


class Acosh(Edged):
    """The inverse hyperbolic cosine."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ARC
    op = "acosh"
    dialect = "chlo"
    reference = staticmethod(np.arccosh)
    edges = staticmethod(acosh_edges)
    partials = (lambda dx, out, x: dx * (rsqrt(x - full_like(x, 1)) * rsqrt(x + full_like(x, 1))),)


class Atanh(Edged):
    """The inverse hyperbolic tangent."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.ATANH
    op = "atanh"
    dialect = "chlo"
    reference = staticmethod(np.arctanh)
    edges = staticmethod(atanh_edges)
    partials = (lambda dx, out, x: dx / (full_like(x, 1) - x * x),)

    def lower(self, b: Any, x: Any) -> Any:
        """The one operation; of float64, where that errs by a hundred units, by log1p."""
        if x.type.dtype != np.float64:
            return super().lower(b, x)
        term = Term(b, x)
        size = absolute(term)
        out = 0.5 * log1p(2.0 * size / (1.0 - size))
        return where(term == 0.0, term, where(term < 0.0, -out, out)).operand


class Atan2(Elementwise):
    """The angle of the point (y, x), in radians."""

    accepts = FLOAT
    kernel = Kernel.LONG
    op = "atan2"
    reference = staticmethod(np.arctan2)
    # d atan2(x, y) = (y dx - x dy) / (x^2 + y^2)
    partials = (
        lambda dx, out, x, y: dx * (y / (x * x + y * y)),
        lambda dy, out, x, y: dy * (-x / (x * x + y * y)),
    )


SIN, COS, TAN, ASIN, ACOS, ATAN, ATAN2 = Sin(), Cos(), Tan(), Asin(), Acos(), Atan(), Atan2()
SINH, COSH, TANH, ASINH, ACOSH, ATANH = Sinh(), Cosh(), Tanh(), Asinh(), Acosh(), Atanh()


def sin(x: ArrayLike) -> Array:
    """Compute the sine of each element.

    Args:
        x: angles in radians, an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: StableHLO, ``sine``.

    >>> import stretto as st
    >>> st.lax.sin(st.numpy.array([0.0, st.numpy.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return unary(SIN, x)


def cos(x: ArrayLike) -> Array:
    """Compute the cosine of each element.

    Args:
        x: angles in radians, an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: StableHLO, ``cosine``.

    >>> import stretto as st
    >>> st.lax.cos(st.numpy.array([0.0, st.numpy.pi]))
    Array([ 1., -1.], dtype=float32)
    """
    return unary(COS, x)


def tan(x: ArrayLike) -> Array:
    """Compute the tangent of each element.

    Args:
        x: angles in radians, an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: StableHLO, ``tan``.

    >>> import stretto as st
    >>> st.lax.tan(st.numpy.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(TAN, x)


def asin(x: ArrayLike) -> Array:
    """Compute the inverse sine of each element, in radians.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The angles, from -pi/2 to pi/2, of the shape of ``x``.

    Source: CHLO, ``asin``.

    >>> import stretto as st
    >>> st.lax.asin(st.numpy.array([0.0, 1.0]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return unary(ASIN, x)


def acos(x: ArrayLike) -> Array:
    """Compute the inverse cosine of each element, in radians.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The angles, from 0 to pi, of the shape of ``x``.

    Source: CHLO, ``acos``.

    >>> import stretto as st
    >>> st.lax.acos(st.numpy.array([0.0, 1.0]))
    Array([1.5707964, 0.       ], dtype=float32)
    """
    return unary(ACOS, x)


def atan(x: ArrayLike) -> Array:
    """Compute the inverse tangent of each element, in radians.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The angles, from -pi/2 to pi/2, of the shape of ``x``.

    Source: CHLO, ``atan``.

    >>> import stretto as st
    >>> st.lax.atan(st.numpy.array([0.0, float("inf")]))
    Array([0.       , 1.5707964], dtype=float32)
    """
    return unary(ATAN, x)


def sinh(x: ArrayLike) -> Array:
    """Compute the hyperbolic sine of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: CHLO, ``sinh``.

    >>> import stretto as st
    >>> st.lax.sinh(st.numpy.array([0.0, float("inf")]))
    Array([ 0., inf], dtype=float32)
    """
    return unary(SINH, x)


def cosh(x: ArrayLike) -> Array:
    """Compute the hyperbolic cosine of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: CHLO, ``cosh``.

    >>> import stretto as st
    >>> st.lax.cosh(st.numpy.array([0.0, float("inf")]))
    Array([ 1., inf], dtype=float32)
    """
    return unary(COSH, x)


def tanh(x: ArrayLike) -> Array:
    """Compute the hyperbolic tangent of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: StableHLO, ``tanh``.

    >>> import stretto as st
    >>> st.lax.tanh(st.numpy.array([0.0, float("inf")]))
    Array([0., 1.], dtype=float32)
    """
    return unary(TANH, x)


def asinh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic sine of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: CHLO, ``asinh``.

    >>> import stretto as st
    >>> st.lax.asinh(st.numpy.array([0.0, float("inf")]))
    Array([ 0., inf], dtype=float32)
    """
    return unary(ASINH, x)


def acosh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic cosine of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: CHLO, ``acosh``.

    >>> import stretto as st
    >>> st.lax.acosh(st.numpy.array([1.0, float("inf")]))
    Array([ 0., inf], dtype=float32)
    """
    return unary(ACOSH, x)


def atanh(x: ArrayLike) -> Array:
    """Compute the inverse hyperbolic tangent of each element.

    Args:
        x: an array or a number; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    Source: CHLO, ``atanh``.

    >>> import stretto as st
    >>> st.lax.atanh(st.numpy.array([0.0, 1.0]))
    Array([ 0., inf], dtype=float32)
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


def sine_ratio(x: Any) -> Any:
    """``sin(x) / x``, 1 at zero, with all derivatives there: near it by its series.

    >>> import stretto.numpy as snp
    >>> sine_ratio(snp.array([0.0, 2.0])).round(5)
    Array([1.     , 0.45465], dtype=float32)
    """
    # sum of (-x^2)^k / (2k + 1)!
    size = magnitude(x)
    near = lt(size, full_like(size, 1))
    inside = select(near, x, zeros_like(x))
    square = inside * inside
    series = zeros_like(x)
    for k in range(10, -1, -1):
        series = full_like(x, 1 / math.factorial(2 * k + 1)) - series * square
    safe = select(near, full_like(x, 1), x)
    return select(near, series, sin(safe) / safe)
