"""The incomplete gamma and beta functions: their formulas, their derivatives, and the primitives.

Sources for the gamma functions: DLMF 8.7.1 and 8.11.4 (series), 8.9.2 (continued fraction), 8.12
(Temme's uniform expansion, for large parameters near the transition); for the beta function:
8.17.22 (continued fraction), 8.17.4 (symmetry), 5.11 (the beta function by Stirling's series).
Continued fractions are evaluated by Lentz's method, Numerical Recipes 5.2.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import exponential
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import FLOAT, NOT_BROADCAST, binary, check_kind, promote_values
from stretto._engine.ops.special.gamma import (
    digamma,
    digamma_formula,
    gamma_formula,
    log_gamma_two,
    refused_partial,
    stirling_remainder,
)
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    alike,
    erfc,
    exp,
    expm1,
    from_scipy,
    horner,
    log,
    log1p,
    loop,
    power,
    sqrt,
    where,
)

# The coefficients of η^n in C_k(η), of Temme's expansion: computed with a hundred digits from the
# recurrence η C_k = C_{k-1}' + (-1)^k γ_k η / (λ - 1).
_TEMME = (
    (
        -0.3333333333333333,
        0.08333333333333333,
        -0.014814814814814815,
        0.0011574074074074073,
        0.0003527336860670194,
        -0.0001787551440329218,
        3.919263178522438e-05,
        -2.185448510679992e-06,
        -1.85406221071516e-06,
        8.296711340953087e-07,
        -1.7665952736826078e-07,
        6.707853543401498e-09,
        1.0261809784240309e-08,
        -4.382036018453353e-09,
        9.14769958223679e-10,
        -2.5514193994946248e-11,
        -5.830772132550426e-11,
    ),
    (
        -0.001851851851851852,
        -0.003472222222222222,
        0.0026455026455026454,
        -0.0009902263374485596,
        0.00020576131687242798,
        -4.018775720164609e-07,
        -1.8098550334489977e-05,
        7.64916091608111e-06,
        -1.6120900894563446e-06,
        4.647127802807434e-09,
        1.378633446915721e-07,
        -5.752545603517705e-08,
        1.1951628599778148e-08,
        -1.7543241719747647e-11,
        -1.0091543710600413e-09,
    ),
    (
        0.004133597883597883,
        -0.0026813271604938273,
        0.0007716049382716049,
        2.0093878600823047e-06,
        -0.0001073665322636516,
        5.2923448829120125e-05,
        -1.2760635188618728e-05,
        3.423578734096138e-08,
        1.3721957309062934e-06,
        -6.298992138380055e-07,
        1.4280614206064242e-07,
    ),
    (
        0.0006494341563786008,
        0.00022947209362139917,
        -0.0004691894943952557,
        0.00026772063206283885,
        -7.561801671883977e-05,
        -2.396505113867297e-07,
        1.1082654115347302e-05,
        -5.6749528269915965e-06,
        1.4230900732435883e-06,
    ),
    (
        -0.0008618882909167117,
        0.0007840392217200666,
        -0.0002990724803031902,
        -1.4638452578843418e-06,
        6.641498215465122e-05,
        -3.968365047179435e-05,
        1.1375726970678419e-05,
    ),
    (
        -0.00033679855336635813,
        -6.972813758365857e-05,
        0.0002772753244959392,
        -0.00019932570516188847,
        6.797780477937208e-05,
    ),
    (0.0005313079364639922, -0.0005921664373536939),
)

_EPSILON = 2.0**-53
_MOST = 20000
_TRANSITION, _LARGE = 0.3, 200.0
"""Temme's expansion is used from this parameter on, this close (relatively) to x = a."""


def log_excess(x: Number, ratio: Number) -> Number:
    """log(1 + x) - x, where ``ratio`` is 1 + x as exactly as it is known."""
    close = absolute(x) < 0.35
    near = where(close, x, 0.0)
    # log(1 + x) = 2 artanh(r), r = x / (2 + x); and 2r - x = -r x
    r = near / (2.0 + near)
    odd = [2.0 / (2 * k + 3) for k in range(13)]
    return where(close, r * (r * r * horner(odd, r * r) - near), log(ratio) - x)


def gamma_scale(a: Number) -> Number:
    """a^a e^-a / Γ(a), for a > 0."""
    small = a < 8.0
    less = where(small, a, 1.0)
    below = less * exp(less * (log(less) - 1.0)) / gamma_formula(less + 1.0)
    more = where(small, 8.0, a)
    return where(small, below, sqrt(more * (0.5 / math.pi)) * exp(-stirling_remainder(more)))


def _gamma_density(a: Number, x: Number) -> Number:
    """x^a e^-x / Γ(a), for finite a > 0 and x > 0."""
    small = a < 8.0
    below = power(where(x < 800.0, x, 800.0), a) * exp(-x) / gamma_formula(where(small, a, 1.0))
    above = gamma_scale(a) * exp(a * log_excess((x - a) / a, x / a))
    return where(small, below, above)


def _inside(a: Number, x: Number) -> tuple[Number, Number, Number]:
    """Say whether a and x are positive and finite; and both, where they are not, as 1."""
    inside = (a > 0.0) & (x > 0.0) & (a < math.inf) & (x < math.inf)
    return inside, where(inside, a, 1.0), where(inside, x, 1.0)


def _transition(a: Number, x: Number) -> tuple[Number, Number, Number, Number]:
    """Say whether Temme's expansion is used; λ - 1, η and a to expand with."""
    serves = (a >= _LARGE) & (absolute(x - a) <= _TRANSITION * a)
    a = where(serves, a, _LARGE)
    mu = where(serves, (x - a) / a, 0.0)
    eta = sqrt(-2.0 * log_excess(mu, 1.0 + mu))
    return serves, mu, where(mu < 0.0, -eta, eta), a


def _series(active: Number, a: Number, x: Number) -> Number:
    """Σ x^n / ((a + 1) ... (a + n))."""

    def step(n: Number, term: Number, total: Number) -> list[Number]:
        term = term * x / (a + n)
        return [term, total + term]

    first = where(active, 1.0, alike(a, 0.0))
    going = lambda term, total: term > _EPSILON * total
    return loop(going, step, [first, alike(a, 1.0)], _MOST)[1]


def _series_with_slope(active: Number, a: Number, x: Number) -> tuple[Number, Number]:
    """Return the same, and its derivative in a."""

    def going(term: Number, slope: Number, total: Number, slopes: Number) -> Number:
        return (term > _EPSILON * total) | (absolute(slope) > _EPSILON * absolute(slopes))

    def step(n: Number, *state: Number) -> list[Number]:
        term, slope, total, slopes = state
        ratio = x / (a + n)
        slope = ratio * (slope - term / (a + n))
        return [term * ratio, slope, total + term * ratio, slopes + slope]

    one, zero = where(active, 1.0, alike(a, 0.0)), alike(a, 0.0)
    return tuple(loop(going, step, [one, zero, alike(a, 1.0), zero], _MOST)[2:])


def _upper_series(active: Number, a: Number, x: Number) -> Number:
    """Q(a, x) for x up to about 1 and small a, where 1 - P would cancel (DLMF 8.7.1)."""
    x, a = where(active, x, 1.0), where(active, a, 1.0)

    def step(n: Number, power_n: Number, term: Number, total: Number) -> list[Number]:
        power_n = -power_n * x / n
        term = power_n / (a + n)
        return [power_n, term, total + term]

    def going(power_n: Number, term: Number, total: Number) -> Number:
        return active & (absolute(term) > _EPSILON * absolute(total))

    one, zero = alike(a, 1.0), alike(a, 0.0)
    total = loop(going, step, [one, one, zero], 60)[2]
    # x^a / Γ(1 + a) - 1; Γ(1 + a) = Γ(2 + a) / (1 + a), expanded about 2 for a up to 1/2
    e = where(a < 0.5, a, a - 1.0)
    beside = where(a < 0.5, log1p(a), 0.0)
    less = expm1(a * log(x) - log_gamma_two(e) + beside)
    return -less - (less + 1.0) * a * total


def _gamma_fraction(active: Number, a: Number, x: Number) -> Number:
    """Γ(a, x) / (x^a e^-x)."""
    a, x = where(active, a, 1.0), where(active, x, 2.0)

    def step(n: Number, c: Number, d: Number, h: Number, gap: Number) -> list[Number]:
        b, over = x - a + (2.0 * n + 1.0), -n * (n - a)
        c, d = b + over / c, 1.0 / (over * d + b)
        return [c, d, h * (c * d), absolute(c * d - 1.0)]

    first = 1.0 / (x - a + 1.0)
    state = [alike(a, 1e300), first, first, where(active, 1.0, alike(a, 0.0))]
    return loop(lambda c, d, h, gap: gap > 2.0 * _EPSILON, step, state, _MOST)[2]


def _fraction_with_slope(active: Number, a: Number, x: Number) -> tuple[Number, Number]:
    """Return the same, and its derivative in a."""
    a, x = where(active, a, 1.0), where(active, x, 2.0)

    def step(n: Number, *state: Number) -> list[Number]:
        c, dc, d, dd, h, dh, _ = state
        b = x - a + (2.0 * n + 1.0)
        over = -n * (n - a)  # its derivative is n, that of b is -1
        dc = (n - over * dc / c) / c - 1.0
        c = b + over / c
        below = 1.0 / (over * d + b)
        dd = -below * below * (n * d + over * dd - 1.0)
        d = below
        factor = c * d
        slope = dh * factor + h * (dc * d + c * dd)
        return [c, dc, d, dd, h * factor, slope, absolute(factor - 1.0) + absolute(slope - dh)]

    h, zero = 1.0 / (x - a + 1.0), alike(a, 0.0)
    state = [alike(a, 1e300), zero, h, h * h, h, h * h, where(active, 1.0, zero)]
    return tuple(loop(lambda *state: state[-1] > 2.0 * _EPSILON, step, state, _MOST)[4:6])


def incomplete_gamma_formula(a: Number, x: Number) -> tuple[Number, Number]:
    """Return P(a, x) and Q(a, x)."""
    inside, a_, x_ = _inside(a, x)
    central, _, eta, large = _transition(a_, x_)
    small = (x_ <= 1.1) & where(
        x_ <= 0.5, a_ * -log(where(x_ <= 0.5, x_, 0.5)) < 0.4, a_ < 1.1 * x_
    )
    summed = ~small & ~central & ((x_ <= 1.1) | (x_ < a_))
    divided = ~small & ~central & ~summed
    density = _gamma_density(a_, x_)
    lower = density * _series(summed, a_, where(summed, x_, 0.0)) / a_
    upper = density * _gamma_fraction(divided, a_, x_)
    upper = where(small, _upper_series(small, a_, x_), upper)
    # Q = erfc(η √(a/2)) / 2 + R
    u = eta * sqrt(0.5 * large)
    terms = horner([horner(c, eta) for c in _TEMME], 1.0 / large)
    rest = exp(-u * u) / sqrt(2.0 * math.pi * large) * terms
    p = where(central, 0.5 * erfc(-u) - rest, where(summed, lower, 1.0 - upper))
    q = where(central, 0.5 * erfc(u) + rest, where(summed, 1.0 - lower, upper))
    # On the border: P is 0 at x = 0 and for a infinite, 1 for x infinite and at a = 0.
    is_zero = (a > 0.0) & (x == 0.0) | (a == math.inf) & (x >= 0.0) & (x < math.inf)
    is_one = (a == 0.0) & (x > 0.0) | (x == math.inf) & (a >= 0.0) & (a < math.inf)
    p = where(inside, p, where(is_zero, 0.0, where(is_one, 1.0, math.nan)))
    q = where(inside, q, where(is_zero, 1.0, where(is_one, 0.0, math.nan)))
    return p, q


def gamma_density_formula(a: Number, x: Number) -> Number:
    """∂P(a, x)/∂x = x^(a - 1) e^-x / Γ(a)."""
    inside, a_, x_ = _inside(a, x)
    at_zero = where(a > 1.0, 0.0, where(a == 1.0, 1.0, math.inf))
    border = where((a > 0.0) & (x == 0.0), at_zero, math.nan)
    border = where((a >= 0.0) & (x == math.inf) | (a == math.inf) & (x >= 0.0), 0.0, border)
    return where(inside, _gamma_density(a_, x_) / x_, border)


def random_gamma_grad_formula(a: Number, x: Number) -> tuple[Number, Number]:
    """-(∂P/∂a) / (∂P/∂x), how a sample x moves with a where P(a, x) stays; and -∂P/∂a."""
    inside, a_, x_ = _inside(a, x)
    central, mu, eta, large = _transition(a_, x_)
    summed = ~central & ((x_ <= 1.1) | (x_ < a_))
    total, slope = _series_with_slope(summed, a_, where(summed, x_, 0.0))
    fraction, fraction_slope = _fraction_with_slope(~central & ~summed, a_, x_)
    logarithm = log(x_)
    by_sum = -((logarithm - digamma_formula(a_ + 1.0)) * total + slope) / a_
    by_fraction = fraction_slope + (logarithm - digamma_formula(a_)) * fraction
    # Temme's, differentiated: ∂η/∂a = -(λ - 1) / (a η), ∂(η² a / 2)/∂a = -log λ
    level = eta == 0.0
    divisor = where(level, 1.0, eta)
    logarithm = log1p(mu)
    inverse = 1.0 / large
    terms = horner([horner(c, eta) for c in _TEMME], inverse)
    moved = horner([horner([n * c for n, c in enumerate(row)][1:], eta) for row in _TEMME], inverse)
    lowered = horner([k * horner(c, eta) for k, c in enumerate(_TEMME)], inverse)
    turn = -where(level, 1.0, mu / divisor) * moved - lowered
    bracket = where(level, 1.0, logarithm / divisor) + logarithm * terms
    bracket = bracket + inverse * (turn - 0.5 * terms)
    by_expansion = exp(stirling_remainder(large)) * inverse * bracket
    out = where(central, by_expansion, where(summed, by_sum, by_fraction))
    at_border = (a > 0.0) & ((x == 0.0) | (x == math.inf)) & (a < math.inf)
    slope = where(inside, _gamma_density(a_, x_) * out, where(at_border, 0.0, math.nan))
    return where(inside, x_ * out, where(at_border, x, math.nan)), slope


special = LazyModule("scipy.special")


def _gamma_log_slope(a: Any, x: Any) -> Any:
    """Return the derivative of the logarithm of the density in x: (a - 1) / x - 1."""
    one = full_like(a, 1)
    return (a - one) / x - one


def _exact(name: str) -> Any:
    """Return the method ``exact``: SciPy's; the formula from a = 200, where that is exacter."""

    def exact(self: Written, a: np.ndarray, x: np.ndarray) -> np.ndarray:
        out = np.asarray(getattr(special, name)(a, x))
        large = a >= 200
        if np.any(large):
            out[large] = self.formula(a[large], x[large])
        return out

    exact.__doc__ = f"SciPy's ``{name}``; for large parameters, where it errs, the formula."
    return exact


class GammaDensity(Written):
    """The density of the gamma distribution, ∂P(a, x)/∂x."""

    formula = staticmethod(gamma_density_formula)
    partials = (
        lambda da, out, a, x: da * (out * (exponential.log(x) - digamma(a))),
        lambda dx, out, a, x: dx * (out * _gamma_log_slope(a, x)),
    )


class IgammaGradA(Written):
    """The derivative of the lower incomplete gamma function in its parameter."""

    partials = (
        refused_partial(
            "igamma_grad_a has no derivative in a: second derivatives of igamma in its parameter "
            "are not implemented"
        ),
        lambda dx, out, a, x: dx * (GAMMA_DENSITY(a, x) * (exponential.log(x) - digamma(a))),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return ``random_gamma_grad``, times the density."""
        return -random_gamma_grad_formula(a, x)[1]


class RandomGammaGrad(Written):
    """Say how a gamma variate moves with its parameter, at a constant distribution function."""

    partials = (
        refused_partial("random_gamma_grad has no derivative in a: it is not implemented"),
        # r = -P_a / p: r_x = -(p_a / p) - r (p_x / p)
        lambda dx, out, a, x: dx * (digamma(a) - exponential.log(x) - out * _gamma_log_slope(a, x)),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Write it so that nothing underflows where the density does."""
        return random_gamma_grad_formula(a, x)[0]


class Igamma(Written):
    """The regularized lower incomplete gamma function P(a, x)."""

    exact = _exact("gammainc")
    partials = (
        lambda da, out, a, x: da * IGAMMA_GRAD_A(a, x),
        lambda dx, out, a, x: dx * GAMMA_DENSITY(a, x),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return the first of the two."""
        return incomplete_gamma_formula(a, x)[0]


class Igammac(Written):
    """The regularized upper incomplete gamma function Q(a, x)."""

    exact = _exact("gammaincc")
    partials = (
        lambda da, out, a, x: -(da * IGAMMA_GRAD_A(a, x)),
        lambda dx, out, a, x: -(dx * GAMMA_DENSITY(a, x)),
    )

    @staticmethod
    def formula(a: Number, x: Number) -> Number:
        """Return the second of the two."""
        return incomplete_gamma_formula(a, x)[1]


GAMMA_DENSITY, IGAMMA_GRAD_A, RANDOM_GAMMA_GRAD = GammaDensity(), IgammaGradA(), RandomGammaGrad()
IGAMMA, IGAMMAC = Igamma(), Igammac()

_incomplete = described(
    {
        "a": "the parameters, positive floats.",
        "x": "the points, promoted and broadcast with ``a``.",
    },
    "The values, from 0 to 1; NaN where an argument is negative.",
    NOT_BROADCAST,
)


@_incomplete
def igamma(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function P(a, x).

    Derivatives exist with respect to both arguments.

    Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.lax.igamma(1.0, st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return binary(IGAMMA, a, x)


@_incomplete
def igammac(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute ``1 - igamma(a, x)``, exact in the tail.

    Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.lax.igammac(1.0, st.numpy.array([0.0, 50.0]))
    Array([1.0000000e+00, 1.9287499e-22], dtype=float32)
    """
    return binary(IGAMMAC, a, x)


@_incomplete
def igamma_grad_a(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the derivative of ``igamma(a, x)`` with respect to ``a``.

    It has a derivative with respect to ``x`` alone; one in ``a`` raises ``MissingRuleError``.

    Returns:
        The derivatives, of the promoted dtype.

    >>> import stretto as st
    >>> st.lax.igamma_grad_a(1.0, st.numpy.array([0.0, 1.0]))
    Array([-0.       , -0.4317297], dtype=float32)
    """
    return binary(IGAMMA_GRAD_A, a, x)


def random_gamma_grad(a: ArrayLike, sample: ArrayLike) -> Array:
    """Compute how a variate of the gamma distribution moves with its parameter.

    ``igamma(a, sample)`` stays the same along it, which makes samples differentiable.

    Args:
        a: the parameters, positive floats.
        sample: the variates, promoted and broadcast with ``a``.

    Returns:
        The derivatives with respect to ``a``, of the promoted dtype.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", 2018.

    >>> import stretto as st
    >>> st.lax.random_gamma_grad(st.numpy.array([1.0, 1e6]), st.numpy.array([1.0, 1e6]))
    Array([1.173563 , 1.0000001], dtype=float32)
    """
    return binary(RANDOM_GAMMA_GRAD, a, sample)


# The incomplete beta function


def _beta_part(a: Number, ratio: Number, mu: Number) -> Number:
    """(ratio e^-mu)^a for ratio = 1 + mu."""
    small = (a < 8.0) & (absolute(mu) > 0.35)
    below = power(ratio, a) * exp(-where(small, a * mu, 0.0))
    return where(small, below, exp(where(small, 0.0, a * log_excess(mu, ratio))))


def _beta_density(a: Number, b: Number, x: Number, y: Number) -> Number:
    """x^a y^b / B(a, b) for x + y = 1, about the place a / (a + b) where x^a y^b is greatest."""
    scale = gamma_scale(a) * gamma_scale(b) / gamma_scale(a + b)
    # x and y over their values there are 1 + t / a and 1 - t / b
    total, t = a + b, x * b - a * y
    return scale * _beta_part(a, x * (total / a), t / a) * _beta_part(b, y * (total / b), -t / b)


def _beta_fraction(
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


def _beta_parts(
    a: Number, b: Number, x: Number, da: float, db: float
) -> tuple[Number, Number, Number, Number, Number]:
    """Say whether inside; whether mirrored; density; fraction and its derivative along (da, db)."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0) & (a + b < math.inf)
    a, b, x = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    y = 1.0 - x
    mirrored = (x > (a + 1.0) / (a + b + 2.0)) & ((b > 0.5) | (x > 0.99))
    density = _beta_density(a, b, x, y)
    first, second = where(mirrored, b, a), where(mirrored, a, b)
    argument = where(mirrored, y, x)
    fraction, slope = _beta_fraction(
        inside, first, second, argument, where(mirrored, db, da), where(mirrored, da, db)
    )
    return inside, mirrored, density / first, fraction, slope


def _betainc_formula(a: Number, b: Number, x: Number) -> Number:
    """I_x(a, b); on the border as in SciPy."""
    inside, mirrored, density, fraction, _ = _beta_parts(a, b, x, 0.0, 0.0)
    out = density * fraction
    out = where(mirrored, 1.0 - out, out)
    a_least, b_least = (a == 0.0) | (b == math.inf), (b == 0.0) | (a == math.inf)
    border = where(x == 1.0, 1.0, where(x == 0.0, 0.0, where(a_least, 1.0, 0.0)))
    known = (x == 0.0) | (x == 1.0) | a_least | b_least
    valid = (a >= 0.0) & (b >= 0.0) & (x >= 0.0) & (x <= 1.0)
    undecided = (a == 0.0) & (b == 0.0) | (a == math.inf) & (b == math.inf)
    return where(inside, out, where(valid & known & ~undecided, border, math.nan))


def _slope_in_a_formula(a: Number, b: Number, x: Number) -> Number:
    """∂I_x(a, b)/∂a: that of log x^a / B(a, b), and that of the fraction."""
    inside, mirrored, density, fraction, slope = _beta_parts(a, b, x, 1.0, 0.0)
    a_, b_ = where(inside, a, 1.0), where(inside, b, 1.0)
    logarithm = log(where(inside, x, 0.5)) - digamma_formula(a_) + digamma_formula(a_ + b_)
    direct = density * (slope + fraction * (logarithm - 1.0 / a_))
    reflected = -density * (slope + fraction * logarithm)
    border = where((x == 0.0) | (x == 1.0), 0.0, math.nan)
    border = where((a > 0.0) & (b > 0.0), border, math.nan)
    return where(inside, where(mirrored, reflected, direct), border)


def _beta_density_formula(a: Number, b: Number, x: Number) -> Number:
    """∂I_x(a, b)/∂x = x^(a - 1) (1 - x)^(b - 1) / B(a, b)."""
    inside = (a > 0.0) & (b > 0.0) & (x > 0.0) & (x < 1.0)
    a_, b_, x_ = where(inside, a, 1.0), where(inside, b, 1.0), where(inside, x, 0.5)
    y = 1.0 - x_
    end = where(x == 0.0, a, b)  # by the exponent at this end, and 1 / B(1, c) = c
    border = where(end > 1.0, 0.0, where(end < 1.0, math.inf, where(x == 0.0, b, a)))
    on_border = (a > 0.0) & (b > 0.0) & ((x == 0.0) | (x == 1.0))
    return where(inside, _beta_density(a_, b_, x_, y) / x_ / y, where(on_border, border, math.nan))


class BetaDensity(Written):
    """The density of the beta distribution, ∂I_x(a, b)/∂x."""

    formula = staticmethod(_beta_density_formula)
    partials = (
        refused_partial("the derivative of betainc in x has itself no derivative in a"),
        refused_partial("the derivative of betainc in x has itself no derivative in b"),
        lambda dx, out, a, b, x: dx * (out * _beta_log_slope(a, b, x)),
    )


def _beta_log_slope(a: Any, b: Any, x: Any) -> Any:
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
        lambda da, out, a, b, x: da * BETAINC_GRAD_A(a, b, x),
        # I_x(a, b) = 1 - I_(1 - x)(b, a)
        lambda db, out, a, b, x: -(db * BETAINC_GRAD_A(b, a, full_like(x, 1) - x)),
        lambda dx, out, a, b, x: dx * BETA_DENSITY(a, b, x),
    )


BETA_DENSITY, BETAINC_GRAD_A, BETAINC = BetaDensity(), BetaincGradA(), RegularizedIncompleteBeta()


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
