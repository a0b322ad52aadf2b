"""Exponential, sine, cosine and Fresnel integrals, and the dilogarithm.

Sources: DLMF chapters 6, 7.2 and 8.19, 25.12.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute as magnitude
from stretto._engine.ops.comparison import full_like, ge, lt, select, zeros_like
from stretto._engine.ops.elementwise import binary, unary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.exponential import log as log_of
from stretto._engine.ops.special.gamma import digamma_formula, gamma_formula, refused_partial
from stretto._engine.ops.trigonometric import cos as cos_of
from stretto._engine.ops.trigonometric import sin as sin_of
from stretto._engine.ops.trigonometric import sine_ratio
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    chebyshev,
    cos,
    exp,
    floor,
    from_scipy,
    is_nan,
    log,
    log1p,
    loop,
    power,
    sin,
    where,
)
from stretto.special import tables

__all__ = ["exp1", "expi", "expn", "fresnel", "sici", "spence"]

special = LazyModule("scipy.special")

_EULER = 0.5772156649015329
_EI_ROOT, _EI_REST = 0.3725074107813666, 1.3140183414386028e-17
_EPSILON = 2.0**-53


def _exp1_formula(x: Number) -> Number:
    """E_1(x): infinite at 0, NaN below."""
    near = where(x < 1.0, x, 1.0)
    first = x * chebyshev(tables.EIN, 2.0 * near - 1.0) - _EULER - log(near)
    middle = where((x >= 1.0) & (x < 4.0), x, 2.0)
    second = chebyshev(tables.E1_MID, (2.0 / middle - 1.25) * (4 / 3))
    far = where(x >= 4.0, x, 4.0)
    third = chebyshev(tables.E1_FAR, 8.0 / far - 1.0)
    size = where(x < 4.0, middle, far)
    beyond = exp(-size) / size * where(x < 4.0, second, third)
    return where(x < 1.0, where(x < 0.0, math.nan, first), where(is_nan(x), x, beyond))


def _expi_formula(x: Number) -> Number:
    """Ei(x): -E_1(-x) below 0."""
    near = where((x > 0.0) & (x < 6.0), x, 1.0)
    d = near - _EI_ROOT
    slope = chebyshev(tables.EI_0, near * (1 / 3) - 1.0)
    logarithm = where(near < 0.1, log(near / _EI_ROOT), log1p(d / _EI_ROOT))
    first = logarithm + d * slope - _EI_REST * (slope + 1 / _EI_ROOT)
    size = where(x < 6.0, 6.0, x)
    second = chebyshev(tables.EI_6, 24.0 / where(size < 12.0, size, 12.0) - 3.0)
    far = where(size < 12.0, 12.0, size)
    third = chebyshev(tables.EI_12, 48.0 / where(far < 24.0, far, 24.0) - 3.0)
    fourth = chebyshev(tables.EI_24, 48.0 / where(far < 24.0, 24.0, far) - 1.0)
    half = exp(0.5 * where(size < 1e4, size, 1e4))
    series = where(size < 12.0, second, where(size < 24.0, third, fourth))
    beyond = half * (half / where(size < math.inf, size, 1.0) * series)
    above = where(x < 6.0, first, where(is_nan(x), x, beyond))
    return where(x <= 0.0, -_exp1_formula(-x), above)


def _expn_formula(n: Number, x: Number) -> Number:
    """E_n(x) for whole n >= 0 and x >= 0."""
    inside = (n >= 0.0) & (x > 0.0) & (floor(n) == n) & (n < math.inf)
    n_, x_ = where(inside, n, 1.0), where(inside, x, 1.0)
    divided = (x_ > 1.0) & inside
    # DLMF 8.19.17, as Lentz evaluates it
    top = where(divided, x_, 2.0)

    def step(k: Number, c: Number, d: Number, h: Number, gap: Number) -> list[Number]:
        over, b = -k * (n_ - 1.0 + k), top + n_ + 2.0 * k
        d = 1.0 / (over * d + b)
        c = b + over / c
        return [c, d, h * (c * d), absolute(c * d - 1.0)]

    b = top + n_
    start = [alike(x, 1e300), 1.0 / b, 1.0 / b, alike(x, 1.0)]
    fraction = loop(lambda c, d, h, gap: divided & (gap > _EPSILON), step, start, 500)[2]
    # DLMF 8.19.8; for n = 0 simply exp(-x) / x
    low = where(divided, 0.5, x_)
    order = where(n_ < 1.0, 1.0, n_) - 1.0

    def add(k: Number, term: Number, part: Number, total: Number) -> list[Number]:
        term = -term * low / k
        part = where(k == order, 0.0, term / where(k == order, 1.0, k - order))
        return [term, part, total - part]

    def going(term: Number, part: Number, total: Number) -> Number:
        return inside & ~divided & (absolute(term) > _EPSILON * 1e-3)

    first = where(order == 0.0, 0.0, 1.0 / where(order == 0.0, 1.0, order))
    total = loop(going, add, [alike(x, 1.0), alike(x, 1.0), first], 60)[2]
    few = where(order < 160.0, order, 160.0)
    odd = few - 2.0 * floor(0.5 * few)
    peak = power(low, few) / gamma_formula(few + 1.0) * (digamma_formula(few + 1.0) - log(low))
    series = total + (1.0 - 2.0 * odd) * peak
    out = where(divided, exp(-x_) * fraction, series)
    out = where(n_ == 0.0, exp(-x_) / x_, where(x_ < math.inf, out, 0.0))
    border = where(n > 1.0, 1.0 / where(n > 1.0, n - 1.0, 1.0), math.inf)
    border = where((x == 0.0) & (n >= 0.0) & (floor(n) == n), border, math.nan)
    return where(inside, out, border)


def _sici_formulas(x: Number) -> tuple[Number, Number]:
    """Si(x), and Ci(|x|)."""
    size = absolute(x)
    small = size < 4.0
    low = where(small, size, 0.0)
    t = low * low * 0.125 - 1.0
    si = size * chebyshev(tables.SI, t)
    ci = _EULER + log(size) + low * low * chebyshev(tables.CIN, t)
    high = where(small, 4.0, size)
    u = 128.0 / high / high
    t_middle, t_far = (where(u > 2.0, u, 2.0) - 5.0) * (1 / 3), where(u > 2.0, 2.0, u) - 1.0
    middle = high < 8.0
    f = where(middle, chebyshev(tables.SICI_F_MID, t_middle), chebyshev(tables.SICI_F_FAR, t_far))
    g = where(middle, chebyshev(tables.SICI_G_MID, t_middle), chebyshev(tables.SICI_G_FAR, t_far))
    angle = where(high < math.inf, high, 0.0)
    f, g = f / high, g / high / high
    si = where(small, si, 0.5 * math.pi - f * cos(angle) - g * sin(angle))
    ci = where(small, ci, f * sin(angle) - g * cos(angle))
    ci = where(x == -math.inf, math.nan, ci)
    unchanged = is_nan(x) | (x == 0.0)  # with the sign of zero
    return where(unchanged, x, where(x < 0.0, -si, si)), where(is_nan(x), x, ci)


def _fresnel_formulas(x: Number) -> tuple[Number, Number]:
    """S(x) and C(x)."""
    size = absolute(x)
    small = size < 1.6
    low = where(small, size, 0.0)
    square = low * low
    t = 2.0 * (square * (1 / 2.56)) * (square * (1 / 2.56)) - 1.0
    s, c = low * square * chebyshev(tables.FRESNEL_S, t), low * chebyshev(tables.FRESNEL_C, t)
    high = where(small, 1.6, where(size < 1e100, size, 1e100))
    u = 2.56 / high / high
    # π x^2 / 2 modulo 2π, from x = 2k + r: x^2 = 4 (k^2 + k r) + r^2
    k = floor(0.5 * high + 0.5)
    r = high - 2.0 * k
    turn = k * r
    angle = math.pi * (2.0 * (turn - floor(turn)) + 0.5 * r * r)
    t = 2.0 * u * u - 1.0
    f = chebyshev(tables.FRESNEL_F, t) / (math.pi * high)
    g = chebyshev(tables.FRESNEL_G, t) * (u / (2.56 * math.pi**2)) / high
    s = where(small, s, 0.5 - f * cos(angle) - g * sin(angle))
    c = where(small, c, 0.5 + f * sin(angle) - g * cos(angle))
    s, c = where(x < 0.0, -s, s), where(x < 0.0, -c, c)
    unchanged = is_nan(x) | (x == 0.0)  # with the sign of zero
    return where(unchanged, x, s), where(unchanged, x, c)


def _spence_formula(x: Number) -> Number:
    """Li_2(1 - x), by its reflections to an argument of at most 1/2."""
    large = x > 1.5
    y = where(large, 1.0 / x, x)
    small = y < 0.5
    w = where(small, y, where(large, (x - 1.0) / where(large, x, 1.0), 1.0 - y))
    out = w * chebyshev(tables.SPENCE, 2.0 * w)
    # Li_2(1 - y) + Li_2(y) = π^2 / 6 - log y log(1 - y)
    safe = where(small & (y > 0.0), y, 0.5)
    reflected = math.pi**2 / 6 - where(y > 0.0, log(safe) * log1p(-safe), 0.0) - out
    out = where(small, reflected, out)
    # Li_2(1 - x) + Li_2(1 - 1 / x) = -log(x)^2 / 2
    logarithm = log(where(large, x, 1.0))
    out = where(large, -0.5 * logarithm * logarithm - out, out)
    return where(x >= 0.0, where(x < math.inf, out, math.nan), math.nan)


class Exp1(Written):
    """The exponential integral E_1."""

    formula = staticmethod(_exp1_formula)
    exact = from_scipy("exp1")
    partials = (lambda dx, out, x: -(dx * (exp_of(-x) / x)),)


class Expi(Written):
    """The exponential integral Ei."""

    formula = staticmethod(_expi_formula)
    exact = from_scipy("expi")
    partials = (lambda dx, out, x: dx * (exp_of(x) / x),)


class Expn(Written):
    """The generalized exponential integral."""

    formula = staticmethod(_expn_formula)
    partials = (
        refused_partial("expn has no derivative in its order n, which is a whole number"),
        lambda dx, out, n, x: -(dx * _expn_before(n, x, out)),
    )

    def exact(self, n: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value; NaN where the order is not whole."""
        whole = np.floor(n) == n
        return np.where(whole, _scipy_expn(self, np.where(whole, n, -1), x), np.nan)


_scipy_expn = from_scipy("expn")


def _expn_before(n: Array, x: Array, out: Array) -> Array:
    """E_(n - 1), where E_(-1) = (e^-x + E_0) / x."""
    one = full_like(n, 1)
    positive = ge(n, one)
    return select(positive, expn(select(positive, n - one, one), x), (exp_of(-x) + out) / x)


class SineIntegral(Written):
    """The sine integral."""

    partials = (lambda dx, out, x: dx * sine_ratio(x),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Return the first of the pair."""
        return _sici_formulas(x)[0]

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value, with the sign of zero."""
        return np.copysign(_scipy_sici(self, x)[0], x)


class CosineIntegral(Written):
    """The cosine integral, of the absolute value."""

    partials = (lambda dx, out, x: dx * (cos_of(x) / x),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Return the second of the pair."""
        return _sici_formulas(x)[1]

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value."""
        return _scipy_sici(self, x)[1]


class FresnelSine(Written):
    """The Fresnel integral S."""

    partials = (lambda dx, out, x: dx * sin_of(full_like(x, 0.5 * math.pi) * x * x),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Return the first of the pair."""
        return _fresnel_formulas(x)[0]

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value, with the sign of zero; the formula where SciPy's loses the phase."""
        return _fresnel_exact(x, 0)


class FresnelCosine(Written):
    """The Fresnel integral C."""

    partials = (lambda dx, out, x: dx * cos_of(full_like(x, 0.5 * math.pi) * x * x),)

    @staticmethod
    def formula(x: Number) -> Number:
        """Return the second of the pair."""
        return _fresnel_formulas(x)[1]

    def exact(self, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value, with the sign of zero; the formula where SciPy's loses the phase."""
        return _fresnel_exact(x, 1)


_scipy_sici = from_scipy("sici")


def _fresnel_exact(x: np.ndarray, which: int) -> np.ndarray:
    out = np.copysign(special.fresnel(x)[which], x)
    return np.where(np.abs(x) > 100, _fresnel_formulas(x)[which], out)


class Spence(Written):
    """The dilogarithm of 1 - x."""

    formula = staticmethod(_spence_formula)
    exact = from_scipy("spence")
    partials = (lambda dx, out, x: dx * _spence_slope(x),)


def _spence_slope(x: Array) -> Array:
    """log(x) / (1 - x); near 1 its series, so that higher derivatives exist there."""
    one = full_like(x, 1)
    w = one - x
    near = lt(magnitude(w), full_like(w, 0.1))
    inside = select(near, w, zeros_like(w))
    # the sum of -w^k / (k + 1), of which 16 terms are right to 64 bits
    series = zeros_like(x)
    for k in range(16, -1, -1):
        series = full_like(x, -1 / (k + 1)) + inside * series
    return select(near, series, log_of(x) / select(near, one, w))


EXP1, EXPI, EXPN, SPENCE = Exp1(), Expi(), Expn(), Spence()
SI, CI, FRESNEL_S, FRESNEL_C = SineIntegral(), CosineIntegral(), FresnelSine(), FresnelCosine()


def exp1(x: ArrayLike) -> Array:
    """Compute the exponential integral of ``exp(-t) / t`` from ``x`` to infinity.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN below 0.

    As SciPy's ``exp1``. Source: DLMF 6.2.1.

    >>> import stretto as st
    >>> st.special.exp1(st.numpy.array([0.0, 1.0]))
    Array([       inf, 0.21938394], dtype=float32)
    """
    return unary(EXP1, x)


def expi(x: ArrayLike) -> Array:
    """Compute the exponential integral of ``exp(t) / t`` from -infinity to ``x``.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The principal values, of the shape of ``x``.

    As SciPy's ``expi``. Source: DLMF 6.2.5.

    >>> import stretto as st
    >>> st.special.expi(st.numpy.array([-1.0, 0.0, 1.0]))
    Array([-0.21938394,        -inf,  1.8951178 ], dtype=float32)
    """
    return unary(EXPI, x)


def expn(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the integral of ``exp(-x t) / t**n`` from 1 to infinity.

    Args:
        n: whole numbers from 0 on.
        x: numbers from 0 on, promoted and broadcast with ``n``.

    Returns:
        The values; NaN for other arguments.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``expn``. Source: DLMF 8.19.

    >>> import stretto as st
    >>> st.special.expn(2, st.numpy.array([0.0, 1.0]))
    Array([1.        , 0.14849551], dtype=float32)
    """
    return binary(EXPN, n, x)


def sici(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the sine and cosine integrals of each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The sine integral of ``x``, and the cosine integral of its absolute value.

    As SciPy's ``sici``. Source: DLMF 6.2.9, 6.2.11.

    >>> import stretto as st
    >>> [float(part) for part in st.special.sici(1.0)]
    [0.9460830688476562, 0.33740392327308655]
    """
    return unary(SI, x, "sici"), unary(CI, x, "sici")


def fresnel(x: ArrayLike) -> tuple[Array, Array]:
    """Compute the Fresnel integrals of each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The integrals of ``sin(pi t**2 / 2)`` and of ``cos(pi t**2 / 2)`` from 0 to ``x``.

    As SciPy's ``fresnel``. Source: DLMF 7.2.7, 7.2.8.

    >>> import stretto as st
    >>> [float(part) for part in st.special.fresnel(1.0)]
    [0.43825915455818176, 0.7798933982849121]
    """
    return unary(FRESNEL_S, x, "fresnel"), unary(FRESNEL_C, x, "fresnel")


def spence(x: ArrayLike) -> Array:
    """Compute the integral of ``log(t) / (1 - t)`` from 1 to ``x``: the dilogarithm of ``1 - x``.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN below 0.

    As SciPy's ``spence``. Source: DLMF 25.12.1.

    >>> import stretto as st
    >>> st.special.spence(st.numpy.array([0.0, 1.0, 2.0]))
    Array([ 1.644934,  0.      , -0.822467], dtype=float32)
    """
    return unary(SPENCE, x)
