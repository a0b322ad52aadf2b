"""The error function and its relatives: the normal distribution, Faddeeva's and Owen's functions.

Sources: DLMF chapter 7 for the definitions; for the inverse, Wichura, "Algorithm AS 241", Applied
Statistics 37, 1988; for complex numbers, Al Azah, Chandler-Wilde, "Computation of the complex error
function using modified trapezoidal rules", SIAM J. Numer. Anal. 59, 2021.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute as absolute_of
from stretto._engine.ops.comparison import full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, real
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.elementwise import COMPLEX, binary, unary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.special import error_functions
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    chebyshev,
    complex_number,
    cos,
    exp,
    floor,
    from_scipy,
    horner,
    imaginary,
    is_nan,
    log,
    log1p,
    real_part,
    sin,
    sqrt,
    where,
)
from stretto._engine.ops.written import erfc as erfc_of
from stretto.special import tables

__all__ = ["dawsn", "erf", "erfc", "erfcx", "erfinv", "log_ndtr", "ndtr", "ndtri", "owens_t",
           "wofz"]  # fmt: skip

_WOFZ_TERMS = 12
_WOFZ_STEP = math.sqrt(math.pi / _WOFZ_TERMS)
_WOFZ_MIDPOINTS = [((k + 0.5) * _WOFZ_STEP) ** 2 for k in range(_WOFZ_TERMS)]
_WOFZ_POINTS = [((k + 1.0) * _WOFZ_STEP) ** 2 for k in range(_WOFZ_TERMS - 1)]


def _divide_complex(top_x: Number, top_y: Number, x: Number, y: Number) -> tuple[Number, Number]:
    """(top_x + i top_y) / (x + iy) as real and imaginary parts, for numbers far from overflow."""
    size = x * x + y * y
    return (top_x * x + top_y * y) / size, (top_y * x - top_x * y) / size


def _trapezoidal_rule(
    x: Number, y: Number, squares: list[float], start: float
) -> tuple[Number, Number]:
    """h/π i (start / z + 2z Σ exp(-t^2) / (z^2 - t^2)), z = x + iy, over these t^2."""
    u, v = (x - y) * (x + y), 2.0 * x * y
    total_x, total_y = 0.0, 0.0
    for square in squares:
        part_x, part_y = _divide_complex(math.exp(-square), 0.0, u - square, v)
        total_x, total_y = total_x + part_x, total_y + part_y
    # z Σ + start / 2z
    sum_x, sum_y = x * total_x - y * total_y, x * total_y + y * total_x
    if start:  # else z may be zero
        start_x, start_y = _divide_complex(start * 0.5, 0.0 * x, x, y)
        sum_x, sum_y = sum_x + start_x, sum_y + start_y
    scale = 2.0 * _WOFZ_STEP / math.pi
    return -scale * sum_y, scale * sum_x


def _pole_term(x: Number, y: Number, sign: float) -> tuple[Number, Number]:
    """2 exp(-z^2) / (1 + sign exp(-2πi z / h)), what the rule leaves out at its pole."""
    angle, phase = 2.0 * x * y, x / _WOFZ_STEP
    phase = (2.0 * math.pi) * (phase - floor(phase))
    # exp(-2πi z / h) = exp(2π y / h) (cos - i sin); the fraction is reduced by its size
    growth = exp(-2.0 * math.pi / _WOFZ_STEP * y)
    below_x, below_y = growth + sign * cos(phase), -sign * sin(phase)
    decay = 2.0 * exp((y - x) * (y + x)) * growth
    return _divide_complex(decay * cos(angle), -decay * sin(angle), below_x, below_y)


def _wofz_quadrant(x: Number, y: Number) -> tuple[Number, Number]:
    """w(x + iy) for x, y >= 0, by whichever of three rules has no node near z."""
    far = (x > 1e8) | (y > 1e8)
    near_x, near_y = where(far, 1.0, x), where(far, 1.0, y)
    tall = near_y >= where(near_x > math.pi / _WOFZ_STEP, near_x, math.pi / _WOFZ_STEP)
    phase = near_x / _WOFZ_STEP
    phase = phase - floor(phase)
    middle = (phase >= 0.25) & (phase <= 0.75)  # closer to the midpoints than to the points
    mid_x, mid_y = _trapezoidal_rule(near_x, near_y, _WOFZ_MIDPOINTS, 0.0)
    at_x = where(middle, near_x, 1.0)  # the rule has a pole at zero
    end_x, end_y = _trapezoidal_rule(at_x, near_y, _WOFZ_POINTS, 1.0)
    plus_x, plus_y = _pole_term(near_x, near_y, 1.0)
    minus_x, minus_y = _pole_term(near_x, near_y, -1.0)
    out_x = where(tall, mid_x, where(middle, end_x + minus_x, mid_x + plus_x))
    out_y = where(tall, mid_y, where(middle, end_y + minus_y, mid_y + plus_y))
    # i / (√π z), scaled so that nothing overflows
    largest = where(x > y, x, y)
    scale = where(far & (largest < math.inf), largest, 1.0)
    last_x, last_y = _divide_complex(0.0, 1.0 / math.sqrt(math.pi), x / scale, y / scale)
    infinite = largest == math.inf
    last_x, last_y = where(infinite, 0.0, last_x / scale), where(infinite, 0.0, last_y / scale)
    return where(far, last_x, out_x), where(far, last_y, out_y)


def _wofz_formula(z: Number) -> Number:
    """w(z) from its values in the first quadrant."""
    x, y = real_part(z), imaginary(z)
    out_x, out_y = _wofz_quadrant(absolute(x), absolute(y))
    # w(-conj z) = conj w(z); w(z) = 2 exp(-z^2) - w(-z)
    below = y < 0.0
    out_y = where((x < 0.0) != below, -out_y, out_y)
    twice, angle = 2.0 * exp((y - x) * (y + x)), 2.0 * x * y
    sine = where(twice == 0.0, 0.0, twice * sin(angle))
    sine = where(angle == 0.0, angle, sine)  # not infinity times zero
    cosine = where(twice == 0.0, 0.0, twice * cos(angle))
    out_x = where(below, cosine - out_x, out_x)
    out_y = where(below, -sine - out_y, out_y)
    return complex_number(out_x, out_y)


class Wofz(Written):
    """The Faddeeva function."""

    accepts = COMPLEX
    formula = staticmethod(_wofz_formula)
    exact = from_scipy("wofz")
    # w' = -2 z w + 2i / √π
    partials = (
        lambda dz, out, z: dz * (full_like(z, 2j / math.sqrt(math.pi)) - full_like(z, 2) * z * out),
    )


WOFZ = Wofz()


def wofz(z: ArrayLike) -> Array:
    """Compute the Faddeeva function ``exp(-z**2) * erfc(-1j * z)`` of each element.

    Args:
        z: real or complex numbers.

    Returns:
        The values, complex, of the shape of ``z``.

    As SciPy's ``wofz``. Source: DLMF 7.2.3.

    >>> import stretto as st
    >>> st.special.wofz(st.numpy.array([0.0, 1j]))
    Array([1.        +0.j, 0.42758358+0.j], dtype=complex64)
    """
    value = as_inexact(z, "wofz", "z")
    return WOFZ(value if is_complex(value.dtype) else complex_(value, zeros_like(value)))


# The error function and its relatives for complex numbers, by the Faddeeva function.


def erfcx_complex(z: Array) -> Array:
    """Compute ``exp(z**2) * erfc(z)`` for complex numbers (DLMF 7.2.3)."""
    return wofz(z * full_like(z, 1j))


def erfc_complex(z: Array) -> Array:
    """Compute ``exp(-z**2) * erfcx(z)`` in the right half plane, ``2 - erfc(-z)`` in the left."""
    left = lt(real(z), zeros_like(real(z)))
    right = select(left, -z, z)
    out = exp_of(-(right * right)) * erfcx_complex(right)
    return select(left, full_like(z, 2) - out, out)


def erf_complex(z: Array) -> Array:
    """Compute ``1 - erfc(z)``; near zero by its series (DLMF 7.6.1)."""
    size = absolute_of(z)
    near = lt(size, full_like(size, 1))
    inside = select(near, z, zeros_like(z))
    square = -(inside * inside)
    total = zeros_like(z)
    for k in range(22, -1, -1):
        total = total * square + full_like(z, 1 / (math.factorial(k) * (2 * k + 1)))
    series = full_like(z, 2 / math.sqrt(math.pi)) * inside * total
    return select(near, series, full_like(z, 1) - erfc_complex(select(near, full_like(z, 1), z)))


_ROOT_HALF = math.sqrt(0.5)

# Wichura's rational functions: of x - 1/2, of sqrt(-log x) - 1.6, and of sqrt(-log x) - 5.
_CENTER = (
    (3.3871328727963666080, 133.14166789178437745, 1971.5909503065514427, 13731.693765509461125,
     45921.953931549871457, 67265.770927008700853, 33430.575583588128105, 2509.0809287301226727),
    (1.0, 42.313330701600911252, 687.18700749205790830, 5394.1960214247511077,
     21213.794301586595867, 39307.895800092710610, 28729.085735721942674, 5226.4952788528545610),
)  # fmt: skip
_TAIL = (
    (1.42343711074968357734, 4.63033784615654529590, 5.76949722146069140550,
     3.64784832476320460504, 1.27045825245236838258, 0.241780725177450611770,
     0.0227238449892691845833, 0.000774545014278341407640),
    (1.0, 2.05319162663775882187, 1.67638483018380384940, 0.689767334985100004550,
     0.148103976427480074590, 0.0151986665636164571966, 0.000547593808499534494600,
     1.05075007164441684324e-9),
)  # fmt: skip
_FAR_TAIL = (
    (6.65790464350110377720, 5.46378491116411436990, 1.78482653991729133580,
     0.296560571828504891230, 0.0265321895265761230930, 0.00124266094738807843860,
     2.71155556874348757815e-5, 2.01033439929228813265e-7),
    (1.0, 0.599832206555887937690, 0.136929880922735805310, 0.0148753612908506148525,
     0.000786869131145613259100, 1.84631831751005468180e-5, 1.42151175831644588870e-7,
     2.04426310338993978564e-15),
)  # fmt: skip


def _exp_square(x: Number) -> Number:
    """exp(x^2) without the error of rounding x^2: x = h + r with h^2 exact."""
    high = floor(x * 64.0) * 0.015625
    high = where(absolute(x) < 1000.0, high, x)
    rest = (x - high) * (x + high)
    return exp(high * high) * exp(where(is_nan(rest), 0.0, rest))


def erfcx_formula(x: Number) -> Number:
    """exp(x^2) erfc(x)."""
    size = absolute(x)
    out = chebyshev(tables.ERFCX, 1.0 - 8.0 / (size + 4.0)) / (1.0 + size)
    return where(x < 0.0, 2.0 * _exp_square(x) - out, out)


def _dawsn_formula(x: Number) -> Number:
    size = absolute(x)
    near = x * chebyshev(tables.DAWSON_NEAR, where(size < 2.0, 0.5 * x * x - 1.0, 0.0))
    middle = (size >= 2.0) & (size < 5.0)
    between = chebyshev(tables.DAWSON_MID, where(middle, (size - 3.5) * (2 / 3), 0.0))
    far = where(size < 5.0, 5.0, size)
    beyond = where(middle, between, chebyshev(tables.DAWSON_FAR, 50.0 / far / far - 1.0) / far)
    return where(size < 2.0, near, where(x < 0.0, -beyond, where(is_nan(x), x, beyond)))


def _log_ndtr_formula(x: Number) -> Number:
    left = x < -1.0
    tail = where(left, x, -1.0)
    below = log(0.5 * erfcx_formula(-_ROOT_HALF * tail)) - 0.5 * tail * tail
    return where(left, below, log1p(-0.5 * erfc_of(_ROOT_HALF * where(left, -1.0, x))))


def _ndtri_formula(p: Number) -> Number:
    q = p - 0.5
    r = 0.180625 - q * q
    center = q * horner(_CENTER[0], r) / horner(_CENTER[1], r)
    s = sqrt(-log(where(q < 0.0, p, 1.0 - p)))
    near = horner(_TAIL[0], s - 1.6) / horner(_TAIL[1], s - 1.6)
    far = horner(_FAR_TAIL[0], s - 5.0) / horner(_FAR_TAIL[1], s - 5.0)
    tail = where(s < math.inf, where(s <= 5.0, near, far), s)
    return where(absolute(q) <= 0.425, center, where(q < 0.0, -tail, tail))


class Erfcx(Written):
    """exp(x^2) erfc(x)."""

    formula = staticmethod(erfcx_formula)
    exact = from_scipy("erfcx")
    partials = (lambda dx, out, x: dx * ErfcxSlope(1)(x),)


class Dawsn(Written):
    """Dawson's integral."""

    formula = staticmethod(_dawsn_formula)
    exact = from_scipy("dawsn")
    partials = (lambda dx, out, x: dx * DawsnSlope(1)(x),)


class ErfcxSlope(Written):
    """A derivative of erfcx, in 64 bits: its terms cancel far out, down to their ratio to x^-2."""

    order: int

    def formula(self, x: Number) -> Number:
        """E' = 2 x E - 2 / sqrt(π), and E^(n + 1) = 2 x E^(n) + 2 n E^(n - 1)."""
        before = erfcx_formula(x)
        return _recurrence(before, 2.0 * x * before - 2 / math.sqrt(math.pi), 2.0, x, self.order)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the derivative of the next order."""
        return self(*primals), tangents[0] * ErfcxSlope(self.order + 1)(*primals)


class DawsnSlope(Written):
    """A derivative of Dawson's integral, in 64 bits, as its terms cancel far out."""

    order: int

    def formula(self, x: Number) -> Number:
        """F' = 1 - 2 x F, and F^(n + 1) = -2 x F^(n) - 2 n F^(n - 1)."""
        before = _dawsn_formula(x)
        return _recurrence(before, 1.0 - 2.0 * x * before, -2.0, x, self.order)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the derivative of the next order."""
        return self(*primals), tangents[0] * DawsnSlope(self.order + 1)(*primals)


def _recurrence(before: Number, out: Number, factor: float, x: Number, order: int) -> Number:
    """Return this order's derivative, where y^(n + 1) = factor (x y^(n) + n y^(n - 1))."""
    for n in range(1, order):
        before, out = out, factor * (x * out + n * before)
    return out


class Ndtr(Written):
    """The normal distribution function."""

    exact = from_scipy("ndtr")
    # exp(-x^2 / 2) / sqrt(2π)
    partials = (
        lambda dx, out, x: (
            dx * (exp_of(full_like(x, -0.5) * x * x) * full_like(x, 1 / math.sqrt(2 * math.pi)))
        ),
    )

    @staticmethod
    def formula(x: Number) -> Number:
        """Compute by the complementary error function, which is exact in the tail."""
        return 0.5 * erfc_of(-_ROOT_HALF * x)


class LogNdtr(Written):
    """The logarithm of the normal distribution function."""

    formula = staticmethod(_log_ndtr_formula)
    exact = from_scipy("log_ndtr")
    partials = (lambda dx, out, x: dx * _log_ndtr_slope(x),)


def _log_ndtr_slope(x: Array) -> Array:
    """φ / Φ = sqrt(2/π) / erfcx(-x / √2), whose second form overflows on the right."""
    left = lt(x, zeros_like(x))
    tail = select(left, full_like(x, -_ROOT_HALF) * x, zeros_like(x))
    density = exp_of(full_like(x, -0.5) * x * x) * full_like(x, 1 / math.sqrt(2 * math.pi))
    return select(
        left,
        full_like(x, math.sqrt(2 / math.pi)) / erfcx(tail),
        density / NDTR(select(left, zeros_like(x), x)),
    )


class Ndtri(Written):
    """The inverse of the normal distribution function."""

    formula = staticmethod(_ndtri_formula)
    exact = from_scipy("ndtri")
    # 1 / φ(out)
    partials = (
        lambda dp, out, p: (
            dp * (exp_of(full_like(out, 0.5) * out * out) * full_like(out, math.sqrt(2 * math.pi)))
        ),
    )


ERFCX, DAWSN, NDTR, LOG_NDTR, NDTRI = Erfcx(), Dawsn(), Ndtr(), LogNdtr(), Ndtri()


def erf(x: ArrayLike) -> Array:
    """Compute the error function of each element.

    Args:
        x: real or complex numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    As SciPy's ``erf``. Source: DLMF 7.2.1.

    >>> import stretto as st
    >>> st.special.erf(st.numpy.array([0.0, 9.0]))
    Array([0., 1.], dtype=float32)
    """
    value = as_value(x, "erf")
    return erf_complex(value) if is_complex(value.dtype) else error_functions.erf(value)


@described_like(erf)
def erfc(x: ArrayLike) -> Array:
    """Compute ``1 - erf(x)`` of each element, exact in the tail.

    As SciPy's ``erfc``. Source: DLMF 7.2.2.

    >>> import stretto as st
    >>> st.special.erfc(st.numpy.array([0.0, 99.0]))
    Array([1., 0.], dtype=float32)
    """
    value = as_value(x, "erfc")
    return erfc_complex(value) if is_complex(value.dtype) else error_functions.erfc(value)


@described_like(erf)
def erfcx(x: ArrayLike) -> Array:
    """Compute ``exp(x**2) * erfc(x)``, which neither underflows nor loses digits.

    As SciPy's ``erfcx``. Source: DLMF 7.2.3 and 7.7.

    >>> import stretto as st
    >>> st.special.erfcx(st.numpy.array([0.0, 100.0]))
    Array([1.        , 0.00564161], dtype=float32)
    """
    value = as_value(x, "erfcx")
    return erfcx_complex(value) if is_complex(value.dtype) else unary(ERFCX, value)


def erfinv(x: ArrayLike) -> Array:
    """Compute the inverse of ``erf`` at each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; infinite at -1 and 1, NaN beyond.

    As SciPy's ``erfinv``.

    >>> import stretto as st
    >>> st.special.erfinv(st.numpy.array([0.0, 1.0, 2.0]))
    Array([ 0., inf, nan], dtype=float32)
    """
    return unary(error_functions.ERF_INV, x, "erfinv")


def dawsn(x: ArrayLike) -> Array:
    """Compute Dawson's integral of each element.

    That is ``exp(-x**2)`` times the integral of ``exp(t**2)`` from 0 to ``x``.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    As SciPy's ``dawsn``. Source: DLMF 7.2.5.

    >>> import stretto as st
    >>> st.special.dawsn(st.numpy.array([0.0, 1.0]))
    Array([0.       , 0.5380795], dtype=float32)
    """
    return unary(DAWSN, x)


def ndtr(x: ArrayLike) -> Array:
    """Compute the distribution function of the standard normal distribution.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The probabilities, from 0 to 1, of the shape of ``x``.

    As SciPy's ``ndtr``.

    >>> import stretto as st
    >>> st.special.ndtr(st.numpy.array([0.0, 99.0]))
    Array([0.5, 1. ], dtype=float32)
    """
    return unary(NDTR, x)


def log_ndtr(x: ArrayLike, series_order: int = 3) -> Array:
    """Compute the logarithm of ``ndtr``, exact in both tails.

    Args:
        x: real numbers; integers count as floats.
        series_order: from 1 to 30; has no effect, since no series is truncated here.

    Returns:
        The values, of the shape of ``x``.

    Raises:
        TypeError: ``series_order`` is not an integer.
        ValueError: ``series_order`` is not from 1 to 30.

    As SciPy's ``log_ndtr``.

    >>> import stretto as st
    >>> st.special.log_ndtr(st.numpy.array([0.0, -100.0]))
    Array([-6.9314718e-01, -5.0055244e+03], dtype=float32)
    """
    if not isinstance(series_order, (int, np.integer)):
        raise TypeError(f"log_ndtr: series_order must be an integer, got {series_order!r}")
    if not 0 < series_order <= 30:
        raise ValueError(f"log_ndtr: series_order must be from 1 to 30, got {series_order}")
    return unary(LOG_NDTR, x)


def ndtri(p: ArrayLike) -> Array:
    """Compute the inverse of ``ndtr``: the quantiles of the standard normal distribution.

    Args:
        p: probabilities, from 0 to 1.

    Returns:
        The quantiles, of the shape of ``p``; infinite at 0 and 1, NaN beyond.

    As SciPy's ``ndtri``.

    >>> import stretto as st
    >>> st.special.ndtri(st.numpy.array([0.5, 0.975, 1.0]))
    Array([0.       , 1.9599644,       inf], dtype=float32)
    """
    return unary(NDTRI, p)


legendre = LazyModule("numpy.polynomial.legendre")


@functools.cache
def _legendre_nodes() -> tuple[tuple[float, float], ...]:
    """Return nodes and weights of Gauss-Legendre quadrature on [0, 1]."""
    nodes, weights = legendre.leggauss(32)
    return tuple(zip((0.5 * nodes + 0.5).tolist(), (0.5 * weights).tolist(), strict=True))


def _owens_integral(h: Number, a: Number) -> Number:
    """T(h, a) for h >= 0 and 0 <= a <= 1: ∫ exp(-h^2 (1 + x^2) / 2) / (1 + x^2) dx / 2π.

    Beyond x = 9 / h the integrand is negligible compared with its value at 0.
    """
    end = where(a * h > 9.0, 9.0 / where(h > 1.0, h, 1.0), a)
    total = 0.0
    for node, weight in _legendre_nodes():
        x = end * node
        square = x * x
        total = total + weight * exp(-0.5 * (h * h) * square) / (1.0 + square)
    return total * end * exp(-0.5 * h * h) * (0.5 / math.pi)


def _owens_t_formula(h: Number, a: Number) -> Number:
    """Even in h, odd in a; for a > 1 by T(h, a) + T(ah, 1/a) = (Q(h) + Q(ah)) / 2 - Q(h) Q(ah)."""
    height, slope = absolute(h), absolute(a)
    steep = slope > 1.0
    product = where(height == 0.0, 0.0, height * slope)
    low = where(steep, product, height)
    low = where(low < 100.0, low, 100.0)  # beyond, everything is zero
    part = _owens_integral(low, where(steep, 1.0 / slope, slope))
    q, r = 0.5 * erfc_of(math.sqrt(0.5) * height), 0.5 * erfc_of(math.sqrt(0.5) * product)
    out = where(steep, 0.5 * (q + r) - q * r - part, part)
    out = where(is_nan(h) | is_nan(a), math.nan, out)
    return where(a < 0.0, -out, out)


class OwensT(Written):
    """Owen's T function."""

    formula = staticmethod(_owens_t_formula)
    # ∂T/∂h = -φ(h) erf(ah / √2) / 2; ∂T/∂a the integrand at a
    partials = (
        lambda dh, out, h, a: (
            -(
                dh
                * exp_of(full_like(h, -0.5) * h * h)
                * error_functions.erf(full_like(h, math.sqrt(0.5)) * a * h)
                * full_like(h, 0.5 / math.sqrt(2 * math.pi))
            )
        ),
        lambda da, out, h, a: da * _owens_integrand(h, a),
    )

    def exact(self, h: np.ndarray, a: np.ndarray) -> np.ndarray:
        """Take SciPy's value, with the sign of zero."""
        out = _scipy_owens_t(self, h, a)
        return np.where(out == 0, np.where(a < 0, -0.0, 0.0), out)


_scipy_owens_t = from_scipy("owens_t")


def _owens_integrand(h: Array, a: Array) -> Array:
    square = full_like(a, 1) + a * a
    return exp_of(full_like(h, -0.5) * h * h * square) * full_like(a, 0.5 / math.pi) / square


OWENS_T = OwensT()


def owens_t(h: ArrayLike, a: ArrayLike) -> Array:
    """Compute Owen's T function, a probability of two normal variables.

    Args:
        h: real numbers.
        a: real numbers, promoted and broadcast with ``h``.

    Returns:
        The probabilities of X > h and 0 < Y < aX, for independent standard normal X and Y.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``owens_t``. Source: Owen, "Tables for computing bivariate normal probabilities",
    1956.

    >>> import stretto as st
    >>> st.special.owens_t(st.numpy.array([0.0, 1.0]), 1.0)
    Array([0.125     , 0.06674188], dtype=float32)
    """
    return binary(OWENS_T, h, a)
