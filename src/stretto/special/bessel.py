"""Bessel functions, spherical harmonics, and the hypergeometric functions of real arguments.

Bessel functions are the modified ones of orders 0 and 1 and those of the first kind; the
hypergeometric ones 1F1 and 2F1, with their derivatives.

Sources: DLMF chapter 10; for spherical harmonics, 14.30 (definition), 14.10.3 (recurrence in the
degree of normalized Legendre functions); 13.2.2, 13.2.39 (Kummer), 13.7.2 (asymptotic); 15.2.1,
15.8.1 (Pfaff), 15.8.4 (connection with 1 - x).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like, gt, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import COMPARABLE, FLOAT, check_kind, promote_values, unary
from stretto._engine.ops.exponential import sqrt as sqrt_of
from stretto._engine.ops.extrema import minimum
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.special import bessel as bessel_ops
from stretto._engine.ops.special.gamma import (
    digamma_formula,
    gamma_formula,
    log_gamma_formula,
    refused_partial,
)
from stretto._engine.ops.trigonometric import cos as cos_of
from stretto._engine.ops.trigonometric import sin as sin_of
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    cos,
    exp,
    floor,
    from_scipy,
    is_nan,
    log,
    loop,
    power,
    sin,
    sqrt,
    where,
)
from stretto.special.gammas import at_pole, gamma_sign

__all__ = ["bessel_jn", "hyp1f1", "hyp2f1", "i0", "i0e", "i1", "i1e", "sph_harm_y"]

_EPSILON = 2.0**-54


def _bessel_series(active: Number, n: Number, x: Number) -> Number:
    """J_n(x) by its power series (DLMF 10.2.2), for x^2 <= 4 (n + 1)."""
    x = where(active, x, 0.0)
    square = -0.25 * x * x

    def step(k: Number, term: Number, total: Number) -> list[Number]:
        term = term * square / (k * (n + k))
        return [term, total + term]

    one = alike(x, 1.0)
    total = loop(lambda term, total: absolute(term) > _EPSILON * absolute(total), step,
                 [one, one], 100)[1]  # fmt: skip
    low = where(n == 0.0, 1.0, where(x > 0.0, x, 0.0))
    first = exp(n * log(0.5 * where(low > 0.0, low, 1.0)) - log_gamma_formula(n + 1.0))
    return where(n == 0.0, 1.0, where(low > 0.0, first, 0.0)) * total


def _backwards(active: Number, n: Number, x: Number) -> Number:
    """J_n(x) by Miller's recurrence from an order where J is negligible (DLMF 3.6, 10.6.1)."""
    x = where(active, x, 1.0)
    largest = where(n > x, n, x)
    start = 2.0 * floor(0.5 * largest + 4.0 * power(largest, 1 / 3) + 12.0)

    def step(k: Number, *state: Number) -> list[Number]:
        m, above, here, total, value = state
        below = 2.0 * m / x * here - above
        scale = where(absolute(below) > 1e100, 1e-100, 1.0)
        m = m - 1.0
        value = where(m == n, below, value) * scale
        even = m == 2.0 * floor(0.5 * m)
        total = total + where(even, where(m == 0.0, below, 2.0 * below), 0.0)
        return [m, here * scale, below * scale, total * scale, value]

    zero = alike(x, 0.0)
    begin = [where(active, start, 0.0), zero, alike(x, 1e-30), zero, zero]
    state = loop(lambda m, *_: m > 0.0, step, begin, 1 << 20)
    return state[4] / where(active, state[3], 1.0)


def _far(active: Number, n: Number, x: Number) -> Number:
    """J_n(x) by Hankel's expansion (DLMF 10.17.3)."""
    n, x = where(active, n, 0.0), where(active, x, 25.0)
    even, odd, term = 1.0, 0.0, 1.0
    for k in range(1, 31):
        term = term * (4.0 * n * n - (2.0 * k - 1.0) ** 2) / (8.0 * k * x)
        if k % 2:
            odd = odd + (term if k % 4 == 1 else -term)
        else:
            even = even + (term if k % 4 == 0 else -term)
    # cos and sin of x - nπ/2 - π/4, times √2
    quarter = n - 4.0 * floor(0.25 * n)
    cosine, sine = cos(x) + sin(x), sin(x) - cos(x)
    is_swapped = (quarter == 1.0) | (quarter == 3.0)
    cosine, sine = where(is_swapped, sine, cosine), where(is_swapped, -cosine, sine)
    sign = where(quarter >= 2.0, -1.0, 1.0)
    return sign * (even * cosine - odd * sine) / sqrt(math.pi * x)


def _bessel_j_formula(n: Number, x: Number) -> Number:
    """J_n(x) for whole n >= 0."""
    size = absolute(x)
    inside = (n >= 0.0) & (floor(n) == n) & (size < math.inf)
    n_, x_ = where(inside, n, 0.0), where(inside, size, 0.0)
    near = x_ * x_ <= 4.0 * (n_ + 1.0)
    far = ~near & (x_ >= 25.0) & (x_ >= 0.5 * n_ * n_)
    between = ~near & ~far
    out = where(far, _far(far, n_, x_), _backwards(between, n_, x_))
    out = where(near, _bessel_series(near, n_, x_), out)
    odd = (x < 0.0) & (n_ != 2.0 * floor(0.5 * n_))
    out = where(odd, -out, out)
    border = where(is_nan(n) | is_nan(x) | (n < 0.0) | (floor(n) != n), math.nan, 0.0)
    return where(inside, out, border)


class BesselJ(Written):
    """The Bessel function of the first kind, of whole order."""

    formula = staticmethod(_bessel_j_formula)
    partials = (
        refused_partial("bessel_jn has no derivative in the order, which is a whole number"),
        lambda dx, out, n, x: dx * _bessel_j_slope(n, x),
    )

    def exact(self, n: np.ndarray, x: np.ndarray) -> np.ndarray:
        """Take SciPy's value, zero at infinities; NaN where the order is not 0, 1, 2, ..."""
        out = np.where(np.isinf(x), 0, _scipy_jv(self, n, x))
        return np.where((n >= 0) & (np.floor(n) == n), out, np.nan)


_scipy_jv = from_scipy("jv")


def _bessel_j_slope(n: Array, x: Array) -> Array:
    """(J_(n - 1) - J_(n + 1)) / 2, where J_(-1) = -J_1."""
    one, positive = full_like(n, 1), gt(n, zeros_like(n))
    after = BESSEL_J(n + one, x)
    before = BESSEL_J(select(positive, n - one, one), x)
    return select(positive, (before - after) * full_like(x, 0.5), -before)


BESSEL_J = BesselJ()


def i0(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of order 0.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    As SciPy's ``i0``. Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.special.i0(st.numpy.array([0.0, 1.0]))
    Array([1.       , 1.2660658], dtype=float32)
    """
    return unary(bessel_ops.I0, x, "i0")


@described_like(i0)
def i0e(x: ArrayLike) -> Array:
    """Compute ``exp(-abs(x)) * i0(x)``, which does not overflow.

    As SciPy's ``i0e``. Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.special.i0e(st.numpy.array([0.0, 1.0]))
    Array([1.       , 0.4657596], dtype=float32)
    """
    return unary(bessel_ops.I0E, x, "i0e")


@described_like(i0)
def i1(x: ArrayLike) -> Array:
    """Compute the modified Bessel function of order 1.

    As SciPy's ``i1``. Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.special.i1(st.numpy.array([0.0, 1.0]))
    Array([0.       , 0.5651591], dtype=float32)
    """
    return unary(bessel_ops.I1, x, "i1")


@described_like(i0)
def i1e(x: ArrayLike) -> Array:
    """Compute ``exp(-abs(x)) * i1(x)``, which does not overflow.

    As SciPy's ``i1e``. Source: DLMF 10.25.2.

    >>> import stretto as st
    >>> st.special.i1e(st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.20791042], dtype=float32)
    """
    return unary(bessel_ops.I1E, x, "i1e")


def bessel_jn(z: ArrayLike, *, v: int, n_iter: int = 50) -> Array:
    """Compute the Bessel functions of the first kind J_0 to J_v.

    Args:
        z: real numbers.
        v: the last order, a Python integer.
        n_iter: has no effect, and is there for ``jax.scipy.special``: the recurrence is as long as
            ``z`` needs.

    Returns:
        The values, ``[v + 1, *z.shape]``.

    Raises:
        TypeError: ``v`` is not an integer.
        ValueError: ``v`` is negative.

    Source: DLMF 10.2.2.

    >>> import stretto as st
    >>> st.special.bessel_jn(st.numpy.array([0.0, 1.0]), v=1)
    Array([[1.        , 0.7651977 ],
           [0.        , 0.44005057]], dtype=float32)
    """
    v = integer(v, "bessel_jn", "v")
    if v < 0:
        raise ValueError(f"bessel_jn: v must not be negative, got {v}")
    value = as_value(z, "bessel_jn", "z")
    check_kind("bessel_jn", COMPARABLE | {"bool"}, value.type)
    value = convert(value, inexact_dtype(value.dtype), value.weak_type)
    orders = broadcasted_iota(value.dtype, (v + 1, *value.shape), 0)
    return BESSEL_J(orders, broadcast_to(value, orders.shape))


def _legendre_formula(n: Number, m: Number, theta: Number) -> Number:
    """Return the factor of Y that depends on theta; zero for |m| > n."""
    order = absolute(m)
    defined = (n >= order) & (floor(n) == n) & (floor(m) == m)
    n, order = where(defined, n, 0.0), where(defined, order, 0.0)
    height, width = cos(theta), absolute(sin(theta))  # a function of cos(theta) alone

    def across(k: Number, degree: Number, here: Number) -> list[Number]:
        return [degree + 1.0, here * -width * sqrt(1.0 + 0.5 / k)]

    zero = alike(theta, 0.0)
    start = [zero, alike(theta, math.sqrt(0.25 / math.pi))]
    degree, here = loop(lambda degree, here: degree < order, across, start, 1 << 16)

    def up(_: Number, degree: Number, before: Number, here: Number, ratio: Number) -> list[Number]:
        after = degree + 1.0
        next_ratio = sqrt((4.0 * after * after - 1.0) / (after * after - order * order))
        return [after, here, next_ratio * (height * here - before / ratio), next_ratio]

    state = [degree, zero, here, alike(theta, 1.0)]
    out = loop(lambda degree, *_: degree < n, up, state, 1 << 16)[2]
    odd = (m < 0.0) & (order != 2.0 * floor(0.5 * order))
    return where(defined, where(odd, -out, out), 0.0 * theta)


class NormalizedLegendre(Written):
    """The spherical harmonic at longitude zero."""

    formula = staticmethod(_legendre_formula)
    partials = (
        refused_partial("sph_harm_y has no derivative in the degree n, which is a whole number"),
        refused_partial("sph_harm_y has no derivative in the order m, which is a whole number"),
        lambda dtheta, out, n, m, theta: dtheta * _legendre_slope(n, m, theta),
    )


def _legendre_slope(n: Array, m: Array, theta: Array) -> Array:
    """(√((n - m)(n + m + 1)) P^(m + 1) - √((n + m)(n - m + 1)) P^(m - 1)) / 2.

    For theta from 0 to π; where the sine is negative, with the opposite sign.
    """
    one = full_like(m, 1)
    above = sqrt_of((n - m) * (n + m + one)) * LEGENDRE(n, m + one, theta)
    below = sqrt_of((n + m) * (n - m + one)) * LEGENDRE(n, m - one, theta)
    backwards = lt(sin_of(theta), zeros_like(theta))
    half = select(backwards, full_like(theta, -0.5), full_like(theta, 0.5))
    return (above - below) * half


LEGENDRE = NormalizedLegendre()


def sph_harm_y(
    n: ArrayLike,
    m: ArrayLike,
    theta: ArrayLike,
    phi: ArrayLike,
    diff_n: None = None,
    n_max: int | None = None,
) -> Array:
    """Compute spherical harmonics.

    Args:
        n: the degrees, whole numbers from 0 on.
        m: the orders, whole numbers.
        theta: the colatitudes, in radians.
        phi: the longitudes, in radians; all four are broadcast together.
        diff_n: must be None.
        n_max: the largest degree; larger ones count as this one.

    Returns:
        The values, complex; 0 where ``abs(m) > n``.

    Raises:
        NotImplementedError: ``diff_n`` is not None.
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``sph_harm_y``, with derivatives in both angles. Source: DLMF 14.30.1.

    >>> import stretto as st
    >>> st.special.sph_harm_y(1, 0, st.numpy.array([0.0, 3.1415927]), 0.0)
    Array([ 0.48860252+0.j, -0.48860252-0.j], dtype=complex64)
    """
    if diff_n is not None:
        raise NotImplementedError(
            f"sph_harm_y: diff_n must be None, got {diff_n!r}; use stretto.grad or stretto.jvp"
        )
    first, second = promote_values("sph_harm_y", theta, phi, inexact=True)
    values = promote_values("sph_harm_y", n, m, first, second, inexact=True)
    check_kind("sph_harm_y", FLOAT, values[0].type)
    degree, order, colatitude, longitude = values
    if n_max is not None:
        degree = minimum(degree, full_like(degree, n_max))
    part = LEGENDRE(degree, order, colatitude)
    angle = order * longitude
    return complex_(part * cos_of(angle), part * sin_of(angle))


_MOST = 50000


def _series(
    active: Number,
    top: Sequence[Number],
    bottom: Sequence[Number],
    moved: Sequence[Number],
    x: Number,
) -> tuple[Number, Number]:
    """Σ (top)_n / (bottom)_n x^n / n!, and its derivative along ``moved``, top then bottom."""
    x = where(active, x, 0.0)
    above, below = list(zip(top, moved)), list(zip(bottom, moved[len(top) :]))

    def step(n: Number, *state: Number) -> list[Number]:
        term, slope, total, slopes, _ = state
        k = n - 1.0
        ratio, turn = x / n, 0.0
        for a, da in above:
            turn = turn * (a + k) + ratio * da  # the product rule, without dividing by a + k
            ratio = ratio * (a + k)
        for b, db in below:
            turn = (turn - ratio * db / (b + k)) / (b + k)
            ratio = ratio / (b + k)
        slope = slope * ratio + term * turn
        term = term * ratio
        gap = absolute(term) - _EPSILON * absolute(total)
        gap = where(gap > 0.0, gap, absolute(slope) - _EPSILON * absolute(slopes))
        return [term, slope, total + term, slopes + slope, gap]

    one, zero = alike(x, 1.0), alike(x, 0.0)
    going = lambda term, slope, total, slopes, gap: active & (gap > 0.0)
    state = loop(going, step, [one, zero, one, zero, one], _MOST)
    return state[2], state[3]


def _kummer(a: Number, b: Number, x: Number, da: float, db: float) -> tuple[Number, Number]:
    """M(a, b, x) and its derivative: for x < 0 by e^x M(b - a, b, -x), unless it is a polynomial.

    For x < -500 by the asymptotic series, whose derivative is not known here: it is NaN.
    """
    pole = at_pole(b)
    b = where(pole, 1.0, b)
    mirrored = (x < 0.0) & ~at_pole(a)
    far = mirrored & (x < -500.0)
    first = where(mirrored, b - a, a)
    active = ~pole & ~far & (absolute(x) < 2000.0)
    total, slope = _kummer_series(active, first, b, where(mirrored, -x, x), mirrored, da, db)
    factor = where(mirrored, exp(x), 1.0)
    out, turn = factor * total, factor * slope
    # Γ(b) / Γ(b - a) (-x)^-a Σ (a)_n (a - b + 1)_n / n! (-x)^-n
    size = where(far, -x, 500.0)
    term, sum_ = alike(x, 1.0), alike(x, 1.0)
    for n in range(24):
        term = term * ((a + float(n)) * (a - b + (n + 1.0)) / ((n + 1.0) * size))
        sum_ = sum_ + term
    sign = gamma_sign(b) * gamma_sign(b - a)
    lead = sign * exp(log_gamma_formula(b) - log_gamma_formula(b - a) - a * log(size))
    out = where(far, where(at_pole(b - a), 0.0, lead * sum_), out)
    out = where(pole, math.inf, where(x > 2000.0, math.inf, out))
    undefined = is_nan(a) | is_nan(b) | is_nan(x)
    return where(undefined, math.nan, out), where(undefined | pole | far, math.nan, turn)


def _kummer_series(
    active: Number, a: Number, b: Number, x: Number, mirrored: Number, da: float, db: float
) -> tuple[Number, Number]:
    """Return the series and its derivative; where ``mirrored``, a stands for b - a."""
    moved = where(mirrored, db - da, da + 0.0 * x)
    return _series(active, (a,), (b,), (moved, db), x)


def _gauss_series(
    a: Number, b: Number, c: Number, x: Number, moved: Sequence[Number], active: Number
) -> tuple[Number, Number]:
    return _series(active, (a, b), (c,), moved, x)


def _gauss(
    a: Number, b: Number, c: Number, x: Number, da: float, db: float, dc: float
) -> tuple[Number, Number]:
    """F(a, b; c; x) and its derivative along (da, db, dc).

    For polynomials, and x from -0.5 to 0.9, by the series; below by (1 - x)^-a F(a, c - b; c;
    x / (x - 1)); above by the connection with 1 - x, unless c - a - b is nearly whole: then by the
    series.
    """
    polynomial = at_pole(a) | at_pole(b)
    pole = at_pole(c) & ~(polynomial & (where(a > b, a, b) > c))
    outside = (x > 1.0) & ~polynomial
    undefined = is_nan(a) | is_nan(b) | is_nan(c) | is_nan(x) | outside | pole
    a_, b_, c_ = (where(undefined, 1.0, v) for v in (a, b, c))
    x_ = where(undefined, 0.0, x)
    # Pfaff: of a and b the smaller becomes the exponent, as (1 - x)^-a grows
    left = (x_ < -0.5) & ~polynomial
    swapped = left & (b_ < a_)
    p, q = where(swapped, b_, a_), where(swapped, a_, b_)
    dp, dq = where(swapped, db, da + 0.0 * x_), where(swapped, da, db + 0.0 * x_)
    second, dsecond = where(left, c_ - q, q), where(left, dc - dq, dq)
    z = where(left, x_ / (x_ - 1.0), x_)
    gap = c_ - p - second
    edge = (z > 0.9) & ~polynomial & ~at_pole(p) & ~at_pole(second)
    apart = absolute(gap - floor(gap + 0.5)) > 1e-3
    at_1 = edge & (z == 1.0)
    connected = edge & apart & ~at_1
    total, slope = _gauss_series(
        p, second, c_, z, (dp, dsecond, dc), ~connected & ~at_1 & ~undefined
    )
    # DLMF 15.8.4
    y = where(connected, 1.0 - z, 0.05)
    d = where(connected, gap, 0.5)
    first, dfirst = _gauss_series(
        p, second, 1.0 - d, y, (dp, dsecond, dp + dsecond - dc), connected
    )
    e, f = c_ - p, c_ - second
    last, dlast = _gauss_series(
        e, f, 1.0 + d, y, (dc - dp, dc - dsecond, dc - dp - dsecond), connected
    )
    gc = gamma_formula(c_)
    psi_c = digamma_formula(c_)
    dd = dc - dp - dsecond
    u = gc * gamma_formula(d) / _finite_gamma(e) / _finite_gamma(f)
    du = dc * psi_c + dd * digamma_formula(d) - (dc - dp) * _psi(e) - (dc - dsecond) * _psi(f)
    v = gc * gamma_formula(-d) / _finite_gamma(p) / _finite_gamma(second) * power(y, d)
    dv = dc * psi_c - dd * (digamma_formula(-d) - log(y)) - dp * _psi(p) - dsecond * _psi(second)
    joined = u * first + v * last
    turn = u * (dfirst + du * first) + v * (dlast + dv * last)
    total, slope = where(connected, joined, total), where(connected, turn, slope)
    # Gauss's sum at 1
    at_one = gc * gamma_formula(where(at_1 & (gap > 0.0), gap, 1.0))
    at_one = at_one / _finite_gamma(e) / _finite_gamma(f)
    total = where(at_1, where(gap > 0.0, at_one, math.inf), total)
    slope = where(at_1, at_one * du, slope)
    # (1 - x)^-p, and its derivative
    base = where(left, 1.0 - x_, 1.0)
    factor = power(base, -p)
    slope = factor * (slope - dp * log(base) * total)
    total = factor * total
    total = where(undefined, where(pole & ~outside, math.inf, math.nan), total)
    total = where(outside & ~is_nan(a + b + c), math.inf, total)
    return total, where(undefined, math.nan, slope)


def _finite_gamma(x: Number) -> Number:
    """Γ(x), infinite at its poles."""
    return where(at_pole(x), math.inf, gamma_formula(x))


def _psi(x: Number) -> Number:
    """ψ(x), 0 at its poles, where 1 / Γ is 0."""
    return where(at_pole(x), 0.0, digamma_formula(x))


class Hyp1f1(Written):
    """Kummer's confluent hypergeometric function."""

    partials = (
        lambda da, out, a, b, x: da * Hyp1f1Slope(0)(a, b, x),
        lambda db, out, a, b, x: db * Hyp1f1Slope(1)(a, b, x),
        lambda dx, out, a, b, x: dx * ((a / b) * HYP1F1(a + 1, b + 1, x)),
    )

    @staticmethod
    def formula(a: Number, b: Number, x: Number) -> Number:
        """Return the value alone."""
        return _kummer(a, b, x, 0.0, 0.0)[0]

    exact = from_scipy("hyp1f1")


class Hyp1f1Slope(Written):
    """The derivative of 1F1 in its parameter number ``which``."""

    which: int
    partials = (refused_partial("the derivatives of hyp1f1 in a and b have no derivatives"),) * 3

    def formula(self, a: Number, b: Number, x: Number) -> Number:
        """Return the derivative alone."""
        return _kummer(a, b, x, float(self.which == 0), float(self.which == 1))[1]


class Hyp2f1(Written):
    """Gauss's hypergeometric function."""

    partials = (
        lambda da, out, a, b, c, x: da * Hyp2f1Slope(0)(a, b, c, x),
        lambda db, out, a, b, c, x: db * Hyp2f1Slope(1)(a, b, c, x),
        lambda dc, out, a, b, c, x: dc * Hyp2f1Slope(2)(a, b, c, x),
        lambda dx, out, a, b, c, x: dx * ((a * b / c) * HYP2F1(a + 1, b + 1, c + 1, x)),
    )

    @staticmethod
    def formula(a: Number, b: Number, c: Number, x: Number) -> Number:
        """Return the value alone."""
        return _gauss(a, b, c, x, 0.0, 0.0, 0.0)[0]

    exact = from_scipy("hyp2f1")


class Hyp2f1Slope(Written):
    """The derivative of 2F1 in its parameter number ``which``."""

    which: int
    partials = (refused_partial("the derivatives of hyp2f1 in a, b and c have no derivatives"),) * 4

    def formula(self, a: Number, b: Number, c: Number, x: Number) -> Number:
        """Return the derivative alone."""
        return _gauss(a, b, c, x, *[float(self.which == i) for i in range(3)])[1]


HYP1F1, HYP2F1 = Hyp1f1(), Hyp2f1()


def hyp1f1(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute Kummer's function 1F1(a; b; x) of each triple.

    Differentiable in all three arguments, except in ``a`` and ``b`` below ``x = -500``, where the
    asymptotic series is used.

    Args:
        a: the first parameters, real numbers.
        b: the second parameters.
        x: the points; all three are promoted and broadcast together.

    Returns:
        The values; infinite where ``b`` is 0, -1, -2, ...

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``hyp1f1``. Source: DLMF 13.2.2.

    >>> import stretto as st
    >>> st.special.hyp1f1(1.0, 2.0, st.numpy.array([0.0, 1.0]))
    Array([1.       , 1.7182819], dtype=float32)
    """
    return HYP1F1(*promote_values("hyp1f1", a, b, x, inexact=True))


@described_like(hyp1f1)
def hyp2f1(a: ArrayLike, b: ArrayLike, c: ArrayLike, x: ArrayLike) -> Array:
    """Compute Gauss's function 2F1(a, b; c; x) of each quadruple.

    Differentiable in all four arguments. Slow and less accurate for ``x`` above 0.9 where ``c - a -
    b`` is nearly a whole number.

    Args:
        c: the third parameters.
        x: the points, at most 1, or anywhere for polynomials; all four are promoted and broadcast
            together.

    Returns:
        The values.

    As SciPy's ``hyp2f1``. Source: DLMF 15.2.1.

    >>> import stretto as st
    >>> st.special.hyp2f1(1.0, 1.0, 2.0, st.numpy.array([0.0, 0.5]))
    Array([1.       , 1.3862944], dtype=float32)
    """
    return HYP2F1(*promote_values("hyp2f1", a, b, c, x, inexact=True))
