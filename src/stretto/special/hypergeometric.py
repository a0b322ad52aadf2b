"""The hypergeometric functions 1F1 and 2F1 of real arguments, and their derivatives.

Sources: DLMF 13.2.2, 13.2.39 (Kummer), 13.7.2 (asymptotic); 15.2.1, 15.8.1 (Pfaff), 15.8.4
(connection with 1 - x).
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.special.gamma import (
    digamma_formula,
    gamma_formula,
    log_gamma_formula,
    refused_partial,
)
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    exp,
    floor,
    from_scipy,
    is_nan,
    log,
    loop,
    power,
    where,
)
from stretto.special.gammas import at_pole, gamma_sign

__all__ = ["hyp1f1", "hyp2f1"]

_EPSILON = 2.0**-54
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
