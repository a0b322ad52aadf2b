"""The gamma function's family: factorials, incomplete functions, polygamma, zeta, beta, binomials.

Sources: DLMF chapters 5, 8 and 25.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_complex, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ge, lt, select, zeros_like
from stretto._engine.ops.convert import as_inexact, rounded_once
from stretto._engine.ops.elementwise import FLOAT, binary, check_kind, promote_values, unary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.rounding import floor as floor_of
from stretto._engine.ops.special import gamma as gamma_ops
from stretto._engine.ops.special import incomplete
from stretto._engine.ops.special.gamma import (
    LEAST_SUMMED,
    complex_digamma,
    complex_gamma,
    euler_maclaurin,
    gamma_formula,
    log_gamma_formula,
    stirling_remainder,
)
from stretto._engine.ops.trigonometric import cos as cos_of
from stretto._engine.ops.trigonometric import sin as sin_of
from stretto._engine.ops.written import (
    Number,
    Written,
    absolute,
    exp,
    floor,
    from_scipy,
    log,
    log1p,
    power,
    sin,
    where,
)
from stretto.numpy.creation import array

__all__ = ["bernoulli", "beta", "betainc", "betaln", "comb", "digamma", "factorial", "gamma",
           "gammainc", "gammaincc", "gammaln", "gammasgn", "loggamma", "multigammaln", "poch",
           "polygamma", "zeta"]  # fmt: skip

special = LazyModule("scipy.special")


def _poch_formula(z: Number, m: Number) -> Number:
    """Γ(z + m) / Γ(z); where both are infinite, (-1)^m Γ(1 - z) / Γ(1 - z - m)."""
    pole = (z <= 0.0) & (floor(z) == z)
    mirrored = pole & (floor(m) == m)
    odd = m - 2.0 * floor(0.5 * m)
    low = where(mirrored, 1.0 - z - m, z)
    high = where(mirrored, 1.0 - z, z + m)
    both = (absolute(low) < 170.0) & (absolute(high) < 170.0)
    by_gamma = gamma_formula(where(both, high, 1.0)) / gamma_formula(where(both, low, 1.0))
    # Where both are large: z log(1 + m / z) + m (log(z + m) - 1), corrected by Stirling's series
    far = (low > 8.0) & (high > 8.0)
    lower, upper = where(far, low, 8.0), where(far, high, 8.0)
    step = upper - lower
    exponent = (lower - 0.5) * log1p(step / lower) + step * (log(upper) - 1.0)
    by_series = exp(exponent + stirling_remainder(upper) - stirling_remainder(lower))
    size = exp(log_gamma_formula(high) - log_gamma_formula(low))
    by_log = size * gamma_sign(high) * gamma_sign(low)
    out = where(both, by_gamma, where(far, by_series, by_log))
    out = where(mirrored & (low <= 0.0), 0.0, out * where(mirrored, 1.0 - 2.0 * odd, 1.0))
    out = where((high <= 0.0) & (floor(high) == high), math.inf, out)
    return where(m == 0.0, 1.0, where(pole & ~mirrored, 0.0, out))


def gamma_sign(x: Number) -> Number:
    """Return the sign of Γ(x) away from its poles."""
    down = floor(x)
    return where((x < 0.0) & (down != 2.0 * floor(0.5 * down)), -1.0, 1.0)


def _riemann_formula(s: Number) -> Number:
    """ζ(s): by the functional equation (DLMF 25.4.1) where s is mirrored, else by the sum."""
    mirrored = s < LEAST_SUMMED
    t = where(mirrored, 1.0 - s, s)
    out = euler_maclaurin(t, 0.0 * t + 1.0)
    nearest = floor(0.5 * s + 0.5)
    odd = nearest - 2.0 * floor(0.5 * nearest)
    sine = sin(math.pi * (0.5 * s - nearest)) * (1.0 - 2.0 * odd)
    turn = 2.0 * power(0.0 * t + 2.0 * math.pi, -t) * sine * gamma_formula(t) * out
    turn = where(sine == 0.0, 0.0, turn)
    out = where(mirrored, turn, where(s == math.inf, 1.0, out))
    return where(s == 1.0, math.inf, out)


class Poch(Written):
    """The rising factorial."""

    formula = staticmethod(_poch_formula)
    partials = (
        lambda dz, out, z, m: dz * (out * (digamma(z + m) - digamma(z))),
        lambda dm, out, z, m: dm * (out * digamma(z + m)),
    )


class RiemannZeta(Written):
    """The Riemann zeta function."""

    formula = staticmethod(_riemann_formula)
    exact = from_scipy("zeta")
    partials = (lambda ds, out, s: ds * _riemann_slope(s),)


def _riemann_slope(s: Array) -> Array:
    """ζ'(s): by the functional equation (DLMF 25.4.1) where s is mirrored, else by the sum."""
    # ζ(s) = 2 (2π)^-t sin(πs/2) Γ(t) ζ(t), t = 1 - s
    one, half_pi = full_like(s, 1), full_like(s, 0.5 * math.pi)
    mirrored = lt(s, full_like(s, LEAST_SUMMED))
    t = select(mirrored, one - s, s)
    slope = gamma_ops.ZetaSlope(1)(t, one)
    beyond = select(mirrored, t, one + one)
    value = RIEMANN(beyond)
    angle = half_pi * select(mirrored, s, zeros_like(s))
    sine, cosine = sin_of(angle), cos_of(angle)
    factor_slope = sine * (full_like(s, math.log(2 * math.pi)) - digamma(beyond)) + half_pi * cosine
    below = factor_slope * value - sine * slope
    scale = full_like(s, 2) * exp_of(-beyond * full_like(s, math.log(2 * math.pi)))
    return select(mirrored, scale * gamma_ops.gamma(beyond) * below, slope)


POCH, RIEMANN = Poch(), RiemannZeta()


def gamma(x: ArrayLike) -> Array:
    """Compute the gamma function of each element.

    Args:
        x: real or complex numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN at the negative integers.

    As SciPy's ``gamma``. Source: DLMF 5.2.1.

    >>> import stretto as st
    >>> st.special.gamma(st.numpy.array([5.0, 0.5]))
    Array([24.       ,  1.7724539], dtype=float32)
    """
    value = as_value(x, "gamma")
    return complex_gamma(value) if is_complex(value.dtype) else gamma_ops.gamma(value)


def gammaln(x: ArrayLike) -> Array:
    """Compute the logarithm of the absolute value of the gamma function.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``.

    As SciPy's ``gammaln``.

    >>> import stretto as st
    >>> st.special.gammaln(st.numpy.array([1.0, 100.0]))
    Array([  0.     , 359.13422], dtype=float32)
    """
    return unary(gamma_ops.LGAMMA, x, "gammaln")


def loggamma(x: ArrayLike) -> Array:
    """Compute the logarithm of the gamma function of real numbers.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN where the gamma function is negative.

    As SciPy's ``loggamma``, of real numbers.

    >>> import stretto as st
    >>> st.special.loggamma(st.numpy.array([3.0, -0.5]))
    Array([0.6931472,       nan], dtype=float32)
    """
    value = as_inexact(x, "loggamma")
    check_kind("loggamma", FLOAT, value.type)
    out = gamma_ops.lgamma(value)
    return select(lt(gammasgn(value), zeros_like(value)), full_like(out, math.nan), out)


def gammasgn(x: ArrayLike) -> Array:
    """Compute the sign of the gamma function of each element.

    Args:
        x: real numbers; integers count as floats.

    Returns:
        -1 or 1, of the shape of ``x``; at zero the sign of the zero, NaN at the negative integers.

    As SciPy's ``gammasgn``.

    >>> import stretto as st
    >>> st.special.gammasgn(st.numpy.array([2.5, -0.5, -1.5, -1.0]))
    Array([ 1., -1.,  1., nan], dtype=float32)
    """
    value = as_inexact(x, "gammasgn")
    check_kind("gammasgn", FLOAT, value.type)
    zero, one, half = zeros_like(value), full_like(value, 1), full_like(value, 0.5)
    down = floor_of(value)
    odd = floor_of(down * half) * full_like(value, 2)
    sign = select(eq(down, odd), one, -one)
    sign = select(eq(value, down), full_like(value, math.nan), sign)
    at_zero = select(lt(one / value, zero), -one, one)
    out = select(lt(value, zero), sign, select(eq(value, zero), at_zero, one))
    return select(eq(value, value), out, value)


def gammainc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized lower incomplete gamma function P(a, x).

    Args:
        a: the parameters, positive floats.
        x: the points, promoted and broadcast with ``a``.

    Returns:
        The values, from 0 to 1; NaN where an argument is negative.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``gammainc``. Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.special.gammainc(1.0, st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return binary(incomplete.IGAMMA, a, x, "gammainc")


@described_like(gammainc)
def gammaincc(a: ArrayLike, x: ArrayLike) -> Array:
    """Compute the regularized upper incomplete gamma function Q(a, x), exact in the tail.

    As SciPy's ``gammaincc``. Source: DLMF 8.2.4.

    >>> import stretto as st
    >>> st.special.gammaincc(1.0, st.numpy.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    return binary(incomplete.IGAMMAC, a, x, "gammaincc")


def digamma(x: ArrayLike) -> Array:
    """Compute the derivative of ``gammaln`` at each element.

    Args:
        x: real or complex numbers; integers count as floats.

    Returns:
        The values, of the shape of ``x``; NaN at the negative integers.

    As SciPy's ``digamma``. Source: DLMF 5.2.2.

    >>> import stretto as st
    >>> st.special.digamma(st.numpy.array([1.0, 2.0]))
    Array([-0.5772157 ,  0.42278433], dtype=float32)
    """
    value = as_value(x, "digamma")
    return complex_digamma(value) if is_complex(value.dtype) else gamma_ops.digamma(value)


def polygamma(n: ArrayLike, x: ArrayLike) -> Array:
    """Compute the ``n``-th derivative of ``digamma`` at each ``x``.

    Args:
        n: the orders, whole numbers from 0 on.
        x: the points, promoted and broadcast with ``n``.

    Returns:
        The derivatives; NaN where ``n`` is not 0, 1, 2, ...

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``polygamma``. Source: DLMF 5.15.

    >>> import stretto as st
    >>> st.special.polygamma(1, st.numpy.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return gamma_ops.polygamma(n, x)


def zeta(x: ArrayLike, q: ArrayLike | None = None) -> Array:
    """Compute the Hurwitz zeta function of each pair, or the Riemann zeta function of each ``x``.

    Args:
        x: the exponents, real numbers.
        q: the first terms, promoted and broadcast with ``x``; None for the Riemann zeta function.

    Returns:
        The values; with ``q`` NaN for ``x`` below 1.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``zeta``. Source: DLMF 25.11.1, 25.2.1.

    >>> import stretto as st
    >>> st.special.zeta(st.numpy.array([2.0, 0.0]))
    Array([ 1.644934, -0.5     ], dtype=float32)
    >>> st.special.zeta(2.0, st.numpy.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return unary(RIEMANN, x, "zeta") if q is None else gamma_ops.zeta(x, q)


def factorial(n: ArrayLike, exact: bool = False) -> Array:
    """Compute the factorial ``gamma(n + 1)`` of each element.

    Args:
        n: real numbers.
        exact: must be False.

    Returns:
        The factorials, floats; 0 for negative ``n``.

    Raises:
        NotImplementedError: ``exact`` is True, which takes integers of arbitrary size.

    As SciPy's ``factorial``.

    >>> import stretto as st
    >>> st.special.factorial(st.numpy.array([0, 5, -1]))
    Array([  1., 120.,   0.], dtype=float32)
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True needs integers of arbitrary size; use math.factorial"
        )
    order = as_inexact(n, "factorial", "n")
    check_kind("factorial", FLOAT, order.type)
    one, zero = full_like(order, 1), zeros_like(order)
    below = lt(order, zero)
    return select(below, zero, gamma_ops.gamma(select(below, one, order) + one))


def poch(z: ArrayLike, m: ArrayLike) -> Array:
    """Compute the rising factorial ``gamma(z + m) / gamma(z)``.

    Args:
        z: real numbers.
        m: the numbers of factors, promoted and broadcast with ``z``.

    Returns:
        The values, of the broadcast shape.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    As SciPy's ``poch``. Source: DLMF 5.2.5.

    >>> import stretto as st
    >>> st.special.poch(st.numpy.array([3.0, -2.0]), 2)
    Array([12.,  2.], dtype=float32)
    """
    return binary(POCH, z, m)


@rounded_once
def multigammaln(a: ArrayLike, d: int) -> Array:
    """Compute the logarithm of the multivariate gamma function.

    Args:
        a: real numbers, above ``(d - 1) / 2``.
        d: the dimension, a Python integer.

    Returns:
        The values, of the shape of ``a``.

    Raises:
        TypeError: ``d`` is not an integer, or ``a`` is complex.
        ValueError: ``d`` is negative.

    As SciPy's ``multigammaln``. Source: Muirhead, "Aspects of multivariate statistical theory",
    1982, 2.1.

    >>> import stretto as st
    >>> st.special.multigammaln(st.numpy.array([3.0, 4.0]), 2).round(4)
    Array([1.5502, 3.5651], dtype=float32)
    """
    d = integer(d, "multigammaln", "d", 0)
    value = as_inexact(a, "multigammaln", "a")
    check_kind("multigammaln", FLOAT, value.type)
    halves = broadcasted_iota(value.dtype, (*value.shape, d), value.ndim)
    column = broadcast_to(reshape(value, (*value.shape, 1)), halves.shape)
    terms = column - halves * full_like(halves, 0.5)
    total = reduce_sum(gamma_ops.lgamma(terms), (value.ndim,))
    return total + full_like(total, 0.25 * d * (d - 1) * math.log(math.pi))


def bernoulli(n: int) -> Array:
    """Compute the Bernoulli numbers B_0 to B_n, of which B_1 is -1/2.

    Args:
        n: the last index, a Python integer.

    Returns:
        The numbers, ``[n + 1]``, of the default float.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative.

    As SciPy's ``bernoulli``. Source: DLMF 24.2.1.

    >>> import stretto as st
    >>> st.special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],      dtype=float32)
    """
    n = integer(n, "bernoulli", "n")
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n}")
    # float64 holds them up to B_258; beyond, they are infinite.
    numbers = np.zeros(n + 1)
    numbers[:2] = (1.0, -0.5)[: n + 1]
    even = np.arange(2, n + 1, 2)
    with np.errstate(over="ignore"):
        sizes = 2 * special.zeta(even) * special.gamma(even + 1.0) / (2 * np.pi) ** even
    numbers[2::2] = np.where(even % 4 == 0, -sizes, sizes)
    return array(numbers.astype(scalar_dtype(float)))


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


def _order(a: Number, b: Number) -> tuple[Number, Number, Number]:
    """Say whether both are positive; the smaller and the larger, or 1 where they are not."""
    positive = (a > 0.0) & (b > 0.0)
    a, b = where(positive, a, 1.0), where(positive, b, 1.0)
    return positive, where(a < b, a, b), where(a < b, b, a)


def at_pole(a: Number) -> Number:
    """Say whether Γ has a pole there."""
    return (a <= 0.0) & (floor(a) == a)


def _turn_from_poles(a: Number, b: Number) -> tuple[Number, Number, Number]:
    """Say where the function is infinite, and the arguments that give its value elsewhere.

    At a pole a, where b is whole and at most -a, it is finite: up to sign, B(1 - a - b, b).
    """
    pole_a, pole_b = at_pole(a), at_pole(b)
    first, second = where(pole_a, a, b), where(pole_a, b, a)
    is_pole = pole_a | pole_b
    finite = is_pole & (floor(second) == second) & (second > 0.0) & (1.0 - first - second > 0.0)
    return is_pole & ~finite, where(finite, 1.0 - first - second, a), where(finite, second, b)


def _log_beta_formula(a: Number, b: Number) -> Number:
    infinite, a, b = _turn_from_poles(a, b)
    positive, lesser, greater = _order(a, b)
    other = log_gamma_formula(a) + log_gamma_formula(b) - log_gamma_formula(a + b)
    return where(infinite, math.inf, where(positive, _log_beta_positive(lesser, greater), other))


def _beta_formula(a: Number, b: Number) -> Number:
    given_a, given_b = a, b
    infinite, a, b = _turn_from_poles(a, b)
    is_turned = (a != given_a) | (b != given_b)
    even = floor(0.5 * b) * 2.0 == b
    sign = where(is_turned & ~even, -1.0, 1.0)
    positive, lesser, greater = _order(a, b)
    near = (absolute(a) < 80.0) & (absolute(b) < 80.0)
    x, y = where(near, a, 1.0), where(near, b, 1.0)
    by_gamma = gamma_formula(x) * (gamma_formula(y) / gamma_formula(x + y))
    by_gamma = where(at_pole(x + y) & near, 0.0, by_gamma)
    log_of = log_gamma_formula(a) + log_gamma_formula(b) - log_gamma_formula(a + b)
    by_log = exp(log_of) * gamma_sign(a) * gamma_sign(b) * gamma_sign(a + b)
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
        lambda da, out, a, b: da * (out * (gamma_ops.digamma(a) - gamma_ops.digamma(a + b))),
        lambda db, out, a, b: db * (out * (gamma_ops.digamma(b) - gamma_ops.digamma(a + b))),
    )


class LogBeta(Written):
    """The logarithm of the absolute value of the beta function."""

    formula = staticmethod(_log_beta_formula)
    partials = (
        lambda da, out, a, b: da * (gamma_ops.digamma(a) - gamma_ops.digamma(a + b)),
        lambda db, out, a, b: db * (gamma_ops.digamma(b) - gamma_ops.digamma(a + b)),
    )


class Binomial(Written):
    """The binomial coefficient, for n >= k >= 0."""

    formula = staticmethod(_binomial_formula)
    partials = (
        lambda dn, out, n, k: dn * (out * (_psi_after(n) - _psi_after(n - k))),
        lambda dk, out, n, k: dk * (out * (_psi_after(n - k) - _psi_after(k))),
    )


def _psi_after(x: Array) -> Array:
    return gamma_ops.digamma(x + full_like(x, 1))


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
    return incomplete.betainc(a, b, x)


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
