"""The beta function, and binomial coefficients computed from it.

Source: DLMF 5.12.
"""

from __future__ import annotations

import math

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bitwise import bitwise_and
from stretto._engine.ops.comparison import eq, full_like, ge, select, zeros_like
from stretto._engine.ops.elementwise import FLOAT, binary, check_kind, promote_values
from stretto._engine.ops.special import incomplete_beta
from stretto._engine.ops.special.gamma import (
    digamma,
    gamma_formula,
    log_gamma_formula,
    stirling_remainder,
)
from stretto._engine.ops.written import Number, Written, absolute, exp, floor, log, log1p, where

__all__ = ["beta", "betainc", "betaln", "comb"]

_LOG_ROOT = 0.5 * math.log(2 * math.pi)


def _log_beta_positive(a: Number, b: Number) -> Number:
    """log B(a, b) for 0 < a <= b, accurate for large b as well."""
    far = b >= 8.0
    large = where(far, b, 8.0)
    # log Γ(b) - log Γ(a + b) by Stirling's series
    total = a + large
    gap = a * (1.0 - log(total)) - (large - 0.5) * log1p(a / large)
    gap = gap + stirling_remainder(large) - stirling_remainder(total)
    gap = where(large < math.inf, gap, -math.inf)
    # and log Γ(a) by the same series, where a is large as well
    both = a >= 8.0
    lesser = where(both, a, 8.0)
    ratio = lesser / large
    wide = _LOG_ROOT - 0.5 * log(large) - (lesser - 0.5) * log1p(large / lesser)
    wide = wide - large * log1p(ratio) + stirling_remainder(lesser) + stirling_remainder(large)
    wide = wide - stirling_remainder(lesser + large)
    low, high = where(far, 1.0, a), where(far, 1.0, b)
    near = log(gamma_formula(low) * (gamma_formula(high) / gamma_formula(low + high)))
    few = log_gamma_formula(a) + gap
    return where(both, where(large < math.inf, wide, -math.inf), where(far, few, near))


def _ordered(a: Number, b: Number) -> tuple[Number, Number, Number]:
    """Say whether both are positive; the smaller and the larger, or 1 where they are not."""
    positive = (a > 0.0) & (b > 0.0)
    a, b = where(positive, a, 1.0), where(positive, b, 1.0)
    return positive, where(a < b, a, b), where(a < b, b, a)


def _is_pole(a: Number) -> Number:
    return (a <= 0.0) & (floor(a) == a)


def _turned_from_poles(a: Number, b: Number) -> tuple[Number, Number, Number]:
    """Say where the function is infinite, and the arguments that give its value elsewhere.

    At a pole a, where b is whole and at most -a, it is finite: up to sign, B(1 - a - b, b).
    """
    pole_a, pole_b = _is_pole(a), _is_pole(b)
    first, second = where(pole_a, a, b), where(pole_a, b, a)
    is_pole = pole_a | pole_b
    finite = is_pole & (floor(second) == second) & (second > 0.0) & (1.0 - first - second > 0.0)
    return is_pole & ~finite, where(finite, 1.0 - first - second, a), where(finite, second, b)


def _log_beta_formula(a: Number, b: Number) -> Number:
    infinite, a, b = _turned_from_poles(a, b)
    positive, lesser, greater = _ordered(a, b)
    other = log_gamma_formula(a) + log_gamma_formula(b) - log_gamma_formula(a + b)
    return where(infinite, math.inf, where(positive, _log_beta_positive(lesser, greater), other))


def _sign(x: Number) -> Number:
    down = floor(x)
    return where((x < 0.0) & (down != 2.0 * floor(0.5 * down)), -1.0, 1.0)


def _beta_formula(a: Number, b: Number) -> Number:
    given_a, given_b = a, b
    infinite, a, b = _turned_from_poles(a, b)
    is_turned = (a != given_a) | (b != given_b)
    even = floor(0.5 * b) * 2.0 == b
    sign = where(is_turned & ~even, -1.0, 1.0)
    positive, lesser, greater = _ordered(a, b)
    near = (absolute(a) < 80.0) & (absolute(b) < 80.0)
    x, y = where(near, a, 1.0), where(near, b, 1.0)
    by_gamma = gamma_formula(x) * (gamma_formula(y) / gamma_formula(x + y))
    by_gamma = where(_is_pole(x + y) & near, 0.0, by_gamma)
    log_of = log_gamma_formula(a) + log_gamma_formula(b) - log_gamma_formula(a + b)
    by_log = exp(log_of) * _sign(a) * _sign(b) * _sign(a + b)
    size = exp(_log_beta_positive(lesser, greater))
    out = where(near, by_gamma, where(positive, size, by_log))
    return where(infinite, math.inf, sign * out)


def _binomial_formula(n: Number, k: Number) -> Number:
    """1 / ((n + 1) B(n - k + 1, k + 1)), rounded for whole n and k as long as that is exact."""
    out = 1.0 / ((n + 1.0) * _beta_formula(n - k + 1.0, k + 1.0))
    whole = (floor(n) == n) & (floor(k) == k) & (out < 2.0**46)
    return where(whole, floor(out + 0.5), out)


class Beta(Written):
    """The beta function."""

    formula = staticmethod(_beta_formula)
    partials = (
        lambda da, out, a, b: da * (out * (digamma(a) - digamma(a + b))),
        lambda db, out, a, b: db * (out * (digamma(b) - digamma(a + b))),
    )


class LogBeta(Written):
    """The logarithm of the absolute value of the beta function."""

    formula = staticmethod(_log_beta_formula)
    partials = (
        lambda da, out, a, b: da * (digamma(a) - digamma(a + b)),
        lambda db, out, a, b: db * (digamma(b) - digamma(a + b)),
    )


class Binomial(Written):
    """The binomial coefficient, for n >= k >= 0."""

    formula = staticmethod(_binomial_formula)
    partials = (
        lambda dn, out, n, k: dn * (out * (_psi_after(n) - _psi_after(n - k))),
        lambda dk, out, n, k: dk * (out * (_psi_after(n - k) - _psi_after(k))),
    )


def _psi_after(x: Array) -> Array:
    return digamma(x + full_like(x, 1))


BETA, LOG_BETA, BINOMIAL = Beta(), LogBeta(), Binomial()


def beta(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the beta function ``gamma(a) * gamma(b) / gamma(a + b)``.

    Args:
        a: real numbers.
        b: real numbers, promoted and broadcast with ``a``.

    Returns:
        The values, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``beta``. Source: DLMF 5.12.1.

    >>> import stretto as st
    >>> st.special.beta(2.0, st.numpy.array([1.0, 3.0]))
    Array([0.5       , 0.08333334], dtype=float32)
    """
    return binary(BETA, a, b)


@described_like(beta)
def betaln(a: ArrayLike, b: ArrayLike) -> Array:
    """Compute the logarithm of the absolute value of the beta function.

    As SciPy's ``betaln``.

    >>> import stretto as st
    >>> st.special.betaln(1.0, st.numpy.array([1.0, 1e30]))
    Array([  0.     , -69.07755], dtype=float32)
    """
    return binary(LOG_BETA, a, b, "betaln")


def betainc(a: ArrayLike, b: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized incomplete beta function.

    Args:
        a: the first parameters, positive floats.
        b: the second parameters, positive floats.
        x: the points, from 0 to 1; all three are promoted and broadcast together.

    Returns:
        The values, from 0 to 1; NaN where an argument is out of its range.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``betainc``, with derivatives in all three. Source: DLMF 8.17.2.

    >>> import stretto as st
    >>> st.special.betainc(2.0, 1.0, st.numpy.array([0.0, 0.5, 1.0]))
    Array([0.  , 0.25, 1.  ], dtype=float32)
    """
    return incomplete_beta.betainc(a, b, x)


def comb(N: ArrayLike, k: ArrayLike, *, repetition: bool = False) -> Array:
    """Count the ways to choose ``k`` things of ``N``; for real numbers, by the gamma function.

    Args:
        N: the numbers of things.
        k: how many are chosen, promoted and broadcast with ``N``.
        repetition: whether a thing may be chosen more than once.

    Returns:
        The numbers of ways, floats; 0 where ``N`` or ``k`` is negative, or ``k`` greater than ``N``
            without ``repetition``.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``comb``.

    >>> import stretto as st
    >>> st.special.comb(st.numpy.array([5, 3]), st.numpy.array([2, 4]))
    Array([10.,  0.], dtype=float32)
    >>> st.special.comb(5, 2, repetition=True)
    Array(15., dtype=float32, weak_type=True)
    """
    n, chosen = promote_values("comb", N, k, inexact=True)
    check_kind("comb", FLOAT, n.type)
    zero = zeros_like(n)
    possible = bitwise_and(ge(n, zero), ge(chosen, zero))
    if repetition:
        # there is one way to choose nothing, even from nothing
        n = select(eq(chosen, zero), zero, n + chosen - full_like(n, 1))
    else:
        possible = bitwise_and(possible, ge(n, chosen))
    coefficient = BINOMIAL(select(possible, n, zero), select(possible, chosen, zero))
    return select(possible, coefficient, zero)
