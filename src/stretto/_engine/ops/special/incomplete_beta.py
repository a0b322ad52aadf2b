"""The incomplete beta function, and its derivatives in its parameters.

Sources: DLMF 8.17.22 (continued fraction, evaluated by Lentz's method, Numerical Recipes 5.2),
8.17.4 (symmetry), 5.11 (the beta function by Stirling's series).
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values
from stretto._engine.ops.special.gamma import digamma_formula, refused_partial
from stretto._engine.ops.special.incomplete_gamma import gamma_scale, log_excess
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    exp,
    from_scipy,
    log,
    loop,
    power,
    where,
)

_EPSILON = 2.0**-53
_MOST = 20000


def _part(a: Number, ratio: Number, mu: Number) -> Number:
    """(ratio e^-mu)^a for ratio = 1 + mu."""
    small = (a < 8.0) & (absolute(mu) > 0.35)
    below = power(ratio, a) * exp(-where(small, a * mu, 0.0))
    return where(small, below, exp(where(small, 0.0, a * log_excess(mu, ratio))))


def _density(a: Number, b: Number, x: Number, y: Number) -> Number:
    """x^a y^b / B(a, b) for x + y = 1, about the place a / (a + b) where x^a y^b is greatest."""
    scale = gamma_scale(a) * gamma_scale(b) / gamma_scale(a + b)
    # x and y over their values there are 1 + t / a and 1 - t / b
    total, t = a + b, x * b - a * y
    return scale * _part(a, x * (total / a), t / a) * _part(b, y * (total / b), -t / b)


def _fraction(
    active: Number, a: Number, b: Number, x: Number, da: Number, db: Number
) -> tuple[Number, Number]:
    """Return the fraction of DLMF 8.17.22, and its derivative along (da, db)."""

    def step(m: Number, *state: Number) -> list[Number]:
        c, dc, d, dd, h, dh, _ = state
        before = dh
        top = a + 2.0 * m
        even = m * (b - m) * x / ((top - 1.0) * top)
        even_slope = m * db * x / ((top - 1.0) * top) - even * da * (1.0 / (top - 1.0) + 1.0 / top)
        odd = -(a + m) * (a + b + m) * x / (top * (top + 1.0))
        odd_slope = odd * (
            da / (a + m) + (da + db) / (a + b + m) - da * (1.0 / top + 1.0 / (top + 1.0))
        )
        factor = 1.0
        for over, slope in ((even, even_slope), (odd, odd_slope)):
            dc = (slope - over * dc / c) / c
            c = 1.0 + over / c
            d_next = 1.0 / (1.0 + over * d)
            dd = -d_next * d_next * (slope * d + over * dd)
            d = d_next
            dh = dh * (c * d) + h * (dc * d + c * dd)
            h = h * (c * d)
            factor = factor * (c * d)
        return [c, dc, d, dd, h, dh, absolute(factor - 1.0) + absolute(dh - before)]

    def going(*state: Number) -> Number:
        return active & (state[-1] > 3.0 * _EPSILON)

    first = -(a + b) * x / (a + 1.0)
    slope = first * ((da + db) / (a + b) - da / (a + 1.0))
    d = 1.0 / (1.0 + first)
    dd = -d * d * slope
    state = [alike(a, 1.0), alike(a, 0.0), d, dd, d, dd, alike(a, 1.0)]
    state = loop(going, step, state, _MOST)
    return state[4], state[5]


def _parts(
    a: Number, b: Number, x: Number, da: float, db: float
) -> tuple[Number, Number, Number, Number, Number]:
    """Say whether inside; whether mirrored; density; fraction and its derivative along (da, db)."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a + b < math.inf)
    a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    y = 1.0 - x
    mirrored = (x > (a + 1.0) / (a + b + 2.0)) & ((b > 0.5) | (x > 0.99))
    density = _density(a, b, x, y)
    first, second = where(mirrored, b, a), where(mirrored, a, b)
    argument = where(mirrored, y, x)
    fraction, slope = _fraction(
        inside, first, second, argument, where(mirrored, db, da), where(mirrored, da, db)
    )
    return inside, mirrored, density / first, fraction, slope


def _betainc_formula(a: Number, b: Number, x: Number) -> Number:
    """I_x(a, b); on the border as in SciPy."""
    inside, mirrored, density, fraction, _ = _parts(a, b, x, 0.0, 0.0)
    out = density * fraction
    out = where(mirrored, 1.0 - out, out)
    a_least, b_least = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    border = where(x == 1.0, 1.0, where(x == 0.0, 0.0, where(a_least, 1.0, 0.0)))
    known = (x == 0.0) | (x == 1.0) | (a_least & ~b_least) | (b_least & ~a_least)
    valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    undecided = (a == 0.0) & (b == 0.0) | (a == math.inf) & (b == math.inf)
    return where(inside, out, where(valid & known & ~undecided, border, math.nan))


def _slope_in_a_formula(a: Number, b: Number, x: Number) -> Number:
    """∂I_x(a, b)/∂a: that of log x^a / B(a, b), and that of the fraction."""
    inside, mirrored, density, fraction, slope = _parts(a, b, x, 1.0, 0.0)
    a_, b_ = where(inside, a, 1.0), where(inside, b, 1.0)
    logarithm = log(where(inside, x, 0.5)) - digamma_formula(a_) + digamma_formula(a_ + b_)
    direct = density * (slope + fraction * (logarithm - 1.0 / a_))
    reflected = -density * (slope + fraction * logarithm)
    border = where((x == 0.0) | (x == 1.0), 0.0, math.nan)
    border = where((a > 0.0) & (b > 0.0), border, math.nan)
    return where(inside, where(mirrored, reflected, direct), border)


def _density_formula(a: Number, b: Number, x: Number) -> Number:
    """∂I_x(a, b)/∂x = x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0)
    a_, b_, x_ = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    y = 1.0 - x_
    end = where(x == 0.0, a, b)  # by the exponent at this end, and 1 / B(1, c) = c
    border = where(end > 1.0, 0.0, where(end < 1.0, math.inf, where(x == 0.0, b, a)))
    on_border = (a > 0.0) & (b > 0.0) & ((x == 0.0) | (x == 1.0))
    return where(inside, _density(a_, b_, x_, y) / x_ / y, where(on_border, border, math.nan))


class BetaDensity(Written):
    """The density of the beta distribution, ∂I_x(a, b)/∂x."""

    formula = staticmethod(_density_formula)
    partials = (
        refused_partial("the derivative of betainc in x has itself no derivative in a"),
        refused_partial("the derivative of betainc in x has itself no derivative in b"),
        lambda dx, out, a, b, x: dx * (out * _log_density_slope(a, b, x)),
    )


def _log_density_slope(a: Any, b: Any, x: Any) -> Any:
    one = full_like(x, 1)
    return (a - one) / x - (b - one) / (one - x)


class BetaincGradA(Written):
    """The derivative of the incomplete beta function in its first parameter."""

    formula = staticmethod(_slope_in_a_formula)
    partials = (
        refused_partial("the derivative of betainc in a has itself no derivative in a"),
        refused_partial("the derivative of betainc in a has itself no derivative in b"),
        refused_partial("the derivative of betainc in a has itself no derivative in x"),
    )


class RegularizedIncompleteBeta(Written):
    """The regularized incomplete beta function I_x(a, b)."""

    formula = staticmethod(_betainc_formula)
    exact = from_scipy("betainc")
    partials = (
        lambda da, out, a, b, x: da * GRAD_A(a, b, x),
        # I_x(a, b) = 1 - I_(1 - x)(b, a)
        lambda db, out, a, b, x: -(db * GRAD_A(b, a, full_like(x, 1) - x)),
        lambda dx, out, a, b, x: dx * DENSITY(a, b, x),
    )


DENSITY, GRAD_A, BETAINC = BetaDensity(), BetaincGradA(), RegularizedIncompleteBeta()


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function of each triple.

    Derivatives exist with respect to all three arguments; second ones in ``x`` alone.

    Args:
        a: the first parameters, positive floats.
        b: the second parameters, positive floats.
        x: the points, from 0 to 1; all three are promoted and broadcast together.

    Returns:
        The values, from 0 to 1; NaN where an argument is out of its range.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: DLMF 8.17.2.

    >>> import stretto as st
    >>> st.lax.betainc(2.0, 1.0, st.numpy.array([0.0, 0.5, 1.0]))
    Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    values = promote_values("betainc", a, b, x, inexact=True)
    check_kind("betainc", FLOAT, values[0].type)
    return BETAINC(*values)
