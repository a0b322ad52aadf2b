"""Trigonometric and hyperbolic functions. Angles are in radians."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import complex_edges, thresholds
from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.elementwise import (
    FLOAT,
    INEXACT,
    Elementwise,
    describe_unary,
    in_float32,
    unary,
)
from stretto._engine.ops.rounding import is_finite
from stretto._engine.ops.written import Term, absolute, exp, expm1, where


class ByParts(Elementwise, abstract=True):
    """A function of complex numbers that computes its parts, so that small ones keep digits."""

    accepts = INEXACT
    costs = thresholds.CIRCULAR

    @staticmethod
    def parts(a: Any, b: Any) -> tuple[Any, Any]:
        """Return the parts of the result for ``a + ib``."""
        raise NotImplementedError

    def lower(self, b: Any, x: Any) -> Any:
        """Write one operation; of complex numbers by parts."""
        return b.inline(self._complex, x) if is_complex(x.type.dtype) else self.lower_real(b, x)

    def _complex(self, z: Any) -> Any:
        return complex_(*self.parts(real(z), imag(z)))

    def lower_real(self, b: Any, x: Any) -> Any:
        """Write the function of real numbers."""
        return b.emit(self.op, x)


class Sin(ByParts):
    """The sine; radians."""

    op = "sine"
    reference = staticmethod(np.sin)
    partials = (lambda dx, out, x: dx * cos(x),)

    @staticmethod
    def parts(a: Any, b: Any) -> tuple[Any, Any]:
        # sin(z) = -i sinh(iz)
        u, v = _sinh_parts(-b, a)
        return v, -u


class Cos(ByParts):
    """The cosine; radians."""

    op = "cosine"
    reference = staticmethod(np.cos)
    partials = (lambda dx, out, x: -(dx * sin(x)),)

    @staticmethod
    def parts(a: Any, b: Any) -> tuple[Any, Any]:
        return _cosh_parts(-b, a)  # cos(z) = cosh(iz)


class Tan(complex_edges.WithEdges):
    """The tangent; radians."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.CIRCULAR
    op = "tan"
    reference = staticmethod(complex_edges.tan_reference)
    edges = staticmethod(complex_edges.tan_edges)
    partials = (lambda dx, out, x: dx * (full_like(out, 1) + out * out),)


def _half_exp(size: Term) -> Term:
    """Return exp(size) / 2 for size >= 0, which overflows as late as the hyperbolic functions.

    CHLO adds log(1/2) to the argument, whose rounding makes large results hundreds of ulps wrong;
    to take 1 from an argument of 1 or more is exact.
    """
    large = size >= 1.0
    rest = exp(where(large, size - 1.0, size))
    return rest * where(large, size.like(math.e / 2), 0.5)


def _sinh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    # sinh(a + ib) = sinh(a) cos(b) + i cosh(a) sin(b); real for b = 0 even where cosh(a) overflows,
    # and with the real part a = sinh(a) where that is 0 or infinite and cos(b) is NaN
    unchanged = ~is_finite(b) & (eq(a, zeros_like(a)) | complex_edges.is_infinite(a))
    return (
        select(unchanged, a, sinh(a) * cos(b)),
        select(eq(b, zeros_like(b)), b, cosh(a) * sin(b)),
    )


def _cosh_parts(a: Any, b: Any) -> tuple[Any, Any]:
    # cosh(a + ib) = cosh(a) cos(b) + i sinh(a) sin(b), zero where either factor is
    at_a, at_b = eq(a, zeros_like(a)), eq(b, zeros_like(b))
    zero = select(at_a, a * _finite_like(b), b * _finite_like(a))
    return (
        select(
            ~is_finite(b) & complex_edges.is_infinite(a), full_like(a, math.inf), cosh(a) * cos(b)
        ),
        select(at_a | at_b, zero, sinh(a) * sin(b)),
    )


def _finite_like(x: Any) -> Any:
    """Return a finite number with the sign of ``x``."""
    one = full_like(x, 1)
    return select(gt(x, one), one, select(lt(x, -one), -one, select(ne(x, x), one, x)))


class Hyperbolic(ByParts, abstract=True):
    """A hyperbolic function that ``formula`` writes out in 32 and 64 bits."""

    kernel = Kernel.LONG
    costs = thresholds.HYPERBOLIC

    @staticmethod
    def formula(x: Term) -> Term:
        """Write the function out."""
        raise NotImplementedError

    def lower_real(self, b: Any, x: Any) -> Any:
        if x.type.dtype.itemsize < 4:
            return b.emit(self.op, x, dialect="chlo")
        return type(self).formula(Term(b, x)).operand


class Sinh(Hyperbolic):
    """The hyperbolic sine."""

    op = "sinh"
    reference = staticmethod(np.sinh)
    partials = (lambda dx, out, x: dx * cosh(x),)
    parts = staticmethod(_sinh_parts)

    @staticmethod
    def formula(x: Term) -> Term:
        # sinh |x| = e^|x| / 2 - e^-|x| / 2 = (m + m / (m + 1)) / 2 with m = e^|x| - 1
        size = absolute(x)
        half, m = _half_exp(size), expm1(size)
        out = where(size < 1.0, 0.5 * (m + m / (m + 1.0)), half - 0.25 / half)
        return where(x == 0.0, x, where(x < 0.0, -out, out))


class Cosh(Hyperbolic):
    """The hyperbolic cosine."""

    op = "cosh"
    reference = staticmethod(np.cosh)
    partials = (lambda dx, out, x: dx * sinh(x),)
    parts = staticmethod(_cosh_parts)

    @staticmethod
    def formula(x: Term) -> Term:
        # cosh x = e^|x| / 2 + e^-|x| / 2
        half = _half_exp(absolute(x))
        return half + 0.25 / half


class Tanh(complex_edges.WithEdges):
    """The hyperbolic tangent."""

    accepts = INEXACT
    kernel = Kernel.LONG
    costs = thresholds.HYPERBOLIC
    op = "tanh"
    reference = staticmethod(complex_edges.tanh_reference)
    edges = staticmethod(complex_edges.tanh_edges)
    partials = (lambda dx, out, x: dx * _tanh_slope(out, x),)


def _tanh_slope(out: Any, x: Any) -> Any:
    # 1 - out^2 has no digit left where out rounds to 1, from |x| = 9 on in float32.
    return full_like(out, 1) - out * out if is_complex(x.type.dtype) else sech_squared(x)


class SechSquared(Elementwise):
    """The square of the hyperbolic secant, which is the slope of tanh, exact in both tails."""

    accepts = FLOAT
    kernel = Kernel.LONG
    # d sech^2(x) = -2 tanh(x) sech^2(x) dx
    partials = (lambda dx, out, x: dx * (full_like(x, -2) * tanh(x) * out),)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Compute by one exponential, in at least float32."""
        return in_float32(lambda v: _sech_squared(2 * np.exp(-np.abs(v))), x)

    def lower(self, b: Any, x: Any) -> Any:
        wide = b.convert(x, np.dtype(np.float32)) if x.type.dtype.itemsize < 4 else x
        return b.convert(_sech_squared(2.0 * exp(-absolute(Term(b, wide)))).operand, x.type.dtype)


def _sech_squared(h: Any) -> Any:
    """Return sech^2(x) of h = 2 exp(-|x|), a square of its root: h^2 underflows before it."""
    root = h / (h * h * 0.25 + 1.0)
    return root * root


SIN, COS, TAN, SINH, COSH, TANH = Sin(), Cos(), Tan(), Sinh(), Cosh(), Tanh()
SECH_SQUARED = SechSquared()


def sech_squared(x: Any) -> Any:
    """Return ``1 / cosh(x)**2``, without overflow or cancellation.

    >>> import stretto.numpy as snp
    >>> sech_squared(snp.array([0.0, 20.0]))
    Array([1.0000000e+00, 1.6993418e-17], dtype=float32)
    """
    return unary(SECH_SQUARED, x)


@describe_unary
def sin(x: ArrayLike) -> Array:
    """Compute the sine of each element.

    Args:
        x: an array, or a number; in radians.

    As NumPy's ``sin``. Source: StableHLO, ``sine``.

    >>> import stretto.numpy as snp
    >>> snp.sin(snp.array([0.0, snp.pi / 2]))
    Array([0., 1.], dtype=float32)
    """
    return unary(SIN, x)


@describe_unary
def cos(x: ArrayLike) -> Array:
    """Compute the cosine of each element.

    Args:
        x: an array, or a number; in radians.

    As NumPy's ``cos``. Source: StableHLO, ``cosine``.

    >>> import stretto.numpy as snp
    >>> snp.cos(snp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return unary(COS, x)


@describe_unary
def tan(x: ArrayLike) -> Array:
    """Compute the tangent of each element.

    Args:
        x: an array, or a number; in radians.

    As NumPy's ``tan``. Source: StableHLO, ``tan``.

    >>> import stretto.numpy as snp
    >>> snp.tan(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(TAN, x)


@describe_unary
def sinh(x: ArrayLike) -> Array:
    """Compute the hyperbolic sine of each element.

    As NumPy's ``sinh``. Source: CHLO, ``sinh``.

    >>> import stretto.numpy as snp
    >>> snp.sinh(snp.array([0.0]))
    Array([0.], dtype=float32)
    """
    return unary(SINH, x)


@describe_unary
def cosh(x: ArrayLike) -> Array:
    """Compute the hyperbolic cosine of each element.

    As NumPy's ``cosh``. Source: CHLO, ``cosh``.

    >>> import stretto.numpy as snp
    >>> snp.cosh(snp.array([0.0]))
    Array([1.], dtype=float32)
    """
    return unary(COSH, x)


@describe_unary
def tanh(x: ArrayLike) -> Array:
    """Compute the hyperbolic tangent of each element.

    As NumPy's ``tanh``. Source: StableHLO, ``tanh``.

    >>> import stretto.numpy as snp
    >>> snp.tanh(snp.array([0.0, 100.0]))
    Array([0., 1.], dtype=float32)
    """
    return unary(TANH, x)


def sine_ratio(x: Any) -> Any:
    """Return ``sin(x) / x``, 1 at zero, with all derivatives there: near zero by its series.

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
