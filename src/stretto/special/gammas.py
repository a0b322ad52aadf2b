"""The gamma function's family: factorials, incomplete functions, polygamma, zeta.

Sources: DLMF chapters 5, 8 and 25. Next, read ``betas``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import is_complex, scalar_dtype
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum, reshape
from stretto._engine.ops.comparison import eq, full_like, lt, select, zeros_like
from stretto._engine.ops.convert import as_inexact
from stretto._engine.ops.elementwise import binary, unary
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.rounding import floor as floor_of
from stretto._engine.ops.special import gamma as gamma_ops
from stretto._engine.ops.special import incomplete
from stretto._engine.ops.special import zeta as zeta_ops
from stretto._engine.ops.special.complex_gamma import complex_digamma, complex_gamma
from stretto._engine.ops.special.gamma_formulas import (
    gamma_formula,
    log_gamma_formula,
    stirling_remainder,
)
from stretto._engine.ops.special.zeta import euler_maclaurin
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

__all__ = [
    "bernoulli",
    "digamma",
    "factorial",
    "gamma",
    "gammainc",
    "gammaincc",
    "gammaln",
    "gammasgn",
    "loggamma",
    "multigammaln",
    "poch",
    "polygamma",
    "zeta",
]


special = LazyModule("scipy.special")


def _poch_formula(z: Number, m: Number) -> Number:
    """Γ(z + m) / Γ(z); where both are infinite, (-1)^m Γ(1 - z) / Γ(1 - z - m)."""
    pole = (z <= 0.0) & (floor(z) == z)
    turned = pole & (floor(m) == m)
    odd = m - 2.0 * floor(0.5 * m)
    low = where(turned, 1.0 - z - m, z)
    high = where(turned, 1.0 - z, z + m)
    both = (absolute(low) < 170.0) & (absolute(high) < 170.0)
    by_gamma = gamma_formula(where(both, high, 1.0)) / gamma_formula(where(both, low, 1.0))
    # Far up: z log(1 + m / z) + m (log(z + m) - 1), corrected by Stirling's series
    far = (low > 8.0) & (high > 8.0)
    least, most = where(far, low, 8.0), where(far, high, 8.0)
    step = most - least
    exponent = (least - 0.5) * log1p(step / least) + step * (log(most) - 1.0)
    by_series = exp(exponent + stirling_remainder(most) - stirling_remainder(least))
    size = exp(log_gamma_formula(high) - log_gamma_formula(low))
    by_log = size * _sign(high) * _sign(low)
    out = where(both, by_gamma, where(far, by_series, by_log))
    out = where(turned & (low <= 0.0), 0.0, out * where(turned, 1.0 - 2.0 * odd, 1.0))
    out = where((high <= 0.0) & (floor(high) == high), math.inf, out)
    return where(m == 0.0, 1.0, where(pole & ~turned, 0.0, out))


def _sign(x: Number) -> Number:
    """The sign of Γ(x), for x no pole."""
    down = floor(x)
    return where((x < 0.0) & (down != 2.0 * floor(0.5 * down)), -1.0, 1.0)


def _riemann_formula(s: Number) -> Number:
    """ζ(s): the sum for s > 1, and by the functional equation (DLMF 25.4.1) for s < 0."""
    mirrored = s < 0.0
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


def _riemann_slope(s: Any) -> Any:
    """ζ'(s): the sum for s >= 0, below by the functional equation (DLMF 25.4.1)."""
    # ζ(s) = 2 (2π)^-t sin(πs/2) Γ(t) ζ(t), t = 1 - s
    one, half_pi = full_like(s, 1), full_like(s, 0.5 * math.pi)
    mirrored = lt(s, zeros_like(s))
    t = select(mirrored, one - s, s)
    slope = zeta_ops.ZetaSlope(1)(t, one)
    beyond = select(mirrored, t, one + one)
    value = RIEMANN(beyond)
    angle = half_pi * select(mirrored, s, zeros_like(s))
    sine, cosine = sin_of(angle), cos_of(angle)
    turned = sine * (full_like(s, math.log(2 * math.pi)) - digamma(beyond)) + half_pi * cosine
    below = turned * value - sine * slope
    scale = full_like(s, 2) * exp_of(-beyond * full_like(s, math.log(2 * math.pi)))
    return select(mirrored, scale * gamma_ops.gamma(beyond) * below, slope)


POCH, RIEMANN = Poch(), RiemannZeta()


def gamma(x: Any) -> Any:
    """The gamma function of each element; NaN at the negative integers (DLMF 5.2.1).

    Of real and of complex numbers.

    >>> import stretto as st
    >>> st.special.gamma(st.numpy.array([5.0, 0.5]))
    Array([24.       ,  1.7724539], dtype=float32)
    """
    x = as_value(x, "gamma")
    return complex_gamma(x) if is_complex(x.dtype) else gamma_ops.gamma(x)


def gammaln(x: Any) -> Any:
    """The logarithm of the absolute value of the gamma function of each element.

    >>> import stretto as st
    >>> st.special.gammaln(st.numpy.array([1.0, 100.0]))
    Array([  0.     , 359.13422], dtype=float32)
    """
    return gamma_ops.lgamma(x)


def loggamma(x: Any) -> Any:
    """The logarithm of the gamma function of real numbers: NaN where that is negative.

    >>> import stretto as st
    >>> st.special.loggamma(st.numpy.array([3.0, -0.5]))
    Array([0.6931472,       nan], dtype=float32)
    """
    x = as_inexact(x, "loggamma")
    out = gamma_ops.lgamma(x)
    return select(lt(gammasgn(x), zeros_like(x)), full_like(out, math.nan), out)


def gammasgn(x: Any) -> Any:
    """The sign of the gamma function of each element; NaN at the negative integers.

    At zero that of the zero.

    >>> import stretto as st
    >>> st.special.gammasgn(st.numpy.array([2.5, -0.5, -1.5, -1.0]))
    Array([ 1., -1.,  1., nan], dtype=float32)
    """
    x = as_inexact(x, "gammasgn")
    zero, one, half = zeros_like(x), full_like(x, 1), full_like(x, 0.5)
    down = floor_of(x)
    odd = floor_of(down * half) * full_like(x, 2)
    sign = select(eq(down, odd), one, -one)
    sign = select(eq(x, down), full_like(x, math.nan), sign)
    at_zero = select(lt(one / x, zero), -one, one)
    out = select(lt(x, zero), sign, select(eq(x, zero), at_zero, one))
    return select(eq(x, x), out, x)


def gammainc(a: Any, x: Any) -> Any:
    """The regularised lower incomplete gamma function P(a, x) (DLMF 8.2.4).

    >>> import stretto as st
    >>> st.special.gammainc(1.0, st.numpy.array([0.0, 1.0]))
    Array([0.        , 0.63212055], dtype=float32)
    """
    return incomplete.igamma(a, x)


def gammaincc(a: Any, x: Any) -> Any:
    """The regularised upper incomplete gamma function Q(a, x), exact in the tail (DLMF 8.2.4).

    >>> import stretto as st
    >>> st.special.gammaincc(1.0, st.numpy.array([0.0, 1.0]))
    Array([1.        , 0.36787945], dtype=float32)
    """
    return incomplete.igammac(a, x)


def digamma(x: Any) -> Any:
    """The derivative of ``gammaln`` at each element; NaN at the negative integers (DLMF 5.2.2).

    Of real and of complex numbers.

    >>> import stretto as st
    >>> st.special.digamma(st.numpy.array([1.0, 2.0]))
    Array([-0.5772157 ,  0.42278433], dtype=float32)
    """
    x = as_value(x, "digamma")
    return complex_digamma(x) if is_complex(x.dtype) else gamma_ops.digamma(x)


def polygamma(n: Any, x: Any) -> Any:
    """The ``n``-th derivative of ``digamma`` at each ``x``; NaN where ``n`` is not 0, 1, 2, ...

    Source: DLMF 5.15.

    >>> import stretto as st
    >>> st.special.polygamma(1, st.numpy.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return zeta_ops.polygamma(n, x)


def zeta(x: Any, q: Any = None) -> Any:
    """The Hurwitz zeta function of each pair, or the Riemann zeta function of each ``x``.

    The first is NaN for ``x`` below 1. Source: DLMF 25.11.1, 25.2.1.

    >>> import stretto as st
    >>> st.special.zeta(st.numpy.array([2.0, 0.0]))
    Array([ 1.644934, -0.5     ], dtype=float32)
    >>> st.special.zeta(2.0, st.numpy.array([1.0, 2.0]))
    Array([1.644934  , 0.64493406], dtype=float32)
    """
    return unary(RIEMANN, x) if q is None else zeta_ops.zeta(x, q)


def factorial(n: Any, exact: bool = False) -> Any:
    """``gamma(n + 1)``, and 0 for negative ``n``.

    Raises ``NotImplementedError`` with ``exact``: arrays have no integers of any length.

    >>> import stretto as st
    >>> st.special.factorial(st.numpy.array([0, 5, -1]))
    Array([  1., 120.,   0.], dtype=float32)
    """
    if exact:
        raise NotImplementedError(
            "factorial: exact=True needs integers of any length; use math.factorial"
        )
    n = as_inexact(n, "factorial", "n")
    one, zero = full_like(n, 1), zeros_like(n)
    below = lt(n, zero)
    return select(below, zero, gamma_ops.gamma(select(below, one, n) + one))


def poch(z: Any, m: Any) -> Any:
    """The rising factorial ``gamma(z + m) / gamma(z)`` (DLMF 5.2.5).

    >>> import stretto as st
    >>> st.special.poch(st.numpy.array([3.0, -2.0]), 2)
    Array([12.,  2.], dtype=float32)
    """
    return binary(POCH, z, m)


def multigammaln(a: Any, d: Any) -> Any:
    """The logarithm of the multivariate gamma function of dimension ``d``, for a > (d - 1) / 2.

    ``d`` is a Python integer. Source: Muirhead, "Aspects of multivariate statistical theory", 1982,
    2.1.

    >>> import stretto as st
    >>> st.special.multigammaln(st.numpy.array([3.0, 4.0]), 2).round(4)
    Array([1.5502, 3.5651], dtype=float32)
    """
    d = integer(d, "multigammaln", "d")
    a = as_inexact(a, "multigammaln", "a")
    halves = broadcasted_iota(a.dtype, (*a.shape, d), a.ndim)
    column = broadcast_to(reshape(a, (*a.shape, 1)), halves.shape)
    terms = column - halves * full_like(halves, 0.5)
    total = reduce_sum(gamma_ops.lgamma(terms), (a.ndim,))
    return total + full_like(total, 0.25 * d * (d - 1) * math.log(math.pi))


def bernoulli(n: Any) -> Any:
    """The first Bernoulli numbers B_0 to B_n, of which B_1 is -1/2 (DLMF 24.2.1).

    ``n`` is a Python integer. Raises ``ValueError`` where it is negative.

    >>> import stretto as st
    >>> st.special.bernoulli(4)
    Array([ 1.        , -0.5       ,  0.16666667,  0.        , -0.03333334],      dtype=float32)
    """
    n = integer(n, "bernoulli", "n")
    if n < 0:
        raise ValueError(f"bernoulli: n must not be negative, got {n}")
    # 64 bits hold them up to B_258; beyond, they are infinite.
    numbers = np.zeros(n + 1)
    numbers[:2] = (1.0, -0.5)[: n + 1]
    even = np.arange(2, n + 1, 2)
    with np.errstate(over="ignore"):
        sizes = 2 * special.zeta(even) * special.gamma(even + 1.0) / (2 * np.pi) ** even
    numbers[2::2] = np.where(even % 4 == 0, -sizes, sizes)
    return array(numbers.astype(scalar_dtype(float)))
