"""Continuous distributions.

Formulas are of the standard form, at location 0 and scale 1; definitions as in SciPy's manual. The
first are written with elementary functions and the normal integral, those of positive numbers with
the incomplete gamma and beta functions; distributions of angles, in radians, are last.
"""

from __future__ import annotations

import math
from typing import ClassVar

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.trigonometric import sech_squared
from stretto.numpy.arithmetic import absolute
from stretto.numpy.elementary import arctan2, cos, exp, expm1, log, log1p, tan
from stretto.numpy.extrema import maximum, minimum
from stretto.numpy.normalized import log1mexp
from stretto.numpy.searching import where
from stretto.scipy.stats.distribution import Continuous, Density, Invertible
from stretto.special import (
    betainc,
    betaln,
    expit,
    gammainc,
    gammaincc,
    gammaln,
    i0e,
    log_ndtr,
    logit,
    ndtr,
    ndtri,
    xlog1py,
    xlogy,
)

_LOG_2PI = math.log(2 * math.pi)


class Norm(Invertible):
    """The normal distribution, of density exp(-y²/2) / √(2π).

    As SciPy's ``norm``.

    >>> from stretto.scipy.stats import norm
    >>> norm.ppf(norm.cdf(1.0, 3.0, 2.0), 3.0, 2.0).round(4)
    Array(1., dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        return -(y * y + _LOG_2PI) / 2

    def cdf_formula(self, y: Array) -> Array:
        """Return the normal integral."""
        return ndtr(y)

    def logcdf_formula(self, y: Array) -> Array:
        """Return its logarithm."""
        return log_ndtr(y)

    def ppf_formula(self, q: Array) -> Array:
        """Return its inverse."""
        return ndtri(q)

    def sf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return ndtr(-y)

    def logsf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return log_ndtr(-y)

    def isf_formula(self, q: Array) -> Array:
        """Negate the quantile, by symmetry."""
        return -ndtri(q)


class Cauchy(Invertible):
    """The Cauchy distribution, of density 1 / (π (1 + y²)).

    As SciPy's ``cauchy``.

    >>> from stretto.scipy.stats import cauchy
    >>> cauchy.cdf(1.0)
    Array(0.75, dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        return -math.log(math.pi) - log1p(y * y)

    def cdf_formula(self, y: Array) -> Array:
        """Return the angle of (-y, 1), over π: exact in the left tail."""
        return arctan2(1.0, -y) / math.pi

    def sf_formula(self, y: Array) -> Array:
        """Take the angle of (y, 1), over π: exact in the right tail."""
        return arctan2(1.0, y) / math.pi

    def ppf_formula(self, q: Array) -> Array:
        """-cot(π q), as a tangent in the middle; exact in both tails."""
        tail = minimum(q, 1 - q)
        far = 1 / tan(math.pi * tail)
        return where(tail < 0.25, where(q < 0.5, -far, far), tan(math.pi * (q - 0.5)))

    def isf_formula(self, q: Array) -> Array:
        """Negate the quantile, by symmetry."""
        return -self.ppf_formula(q)


class Expon(Invertible):
    """The exponential distribution, of density exp(-y) for y ≥ 0.

    As SciPy's ``expon``.

    >>> from stretto.scipy.stats import expon
    >>> expon.logsf(3.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """

    def support(self) -> tuple[ArrayLike, ArrayLike]:
        return 0, math.inf

    def logpdf_formula(self, y: Array) -> Array:
        return -y

    def cdf_formula(self, y: Array) -> Array:
        return -expm1(-y)

    def sf_formula(self, y: Array) -> Array:
        return exp(-y)

    def logcdf_formula(self, y: Array) -> Array:
        return log1mexp(y)

    def logsf_formula(self, y: Array) -> Array:
        return -y

    def ppf_formula(self, q: Array) -> Array:
        return -log1p(-q)

    def isf_formula(self, q: Array) -> Array:
        return -log(q)


class Laplace(Invertible):
    """The Laplace distribution, of density exp(-|y|) / 2.

    As SciPy's ``laplace``.

    >>> from stretto.scipy.stats import laplace
    >>> laplace.cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        return -absolute(y) - math.log(2)

    def cdf_formula(self, y: Array) -> Array:
        """exp(y)/2 on the left, 1 - exp(-y)/2 on the right."""
        left = y < 0
        tail = exp(where(left, y, -y)) / 2
        return where(left, tail, 1 - tail)

    def sf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return self.cdf_formula(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """y - log 2 on the left, log(1 - exp(-y)/2) on the right."""
        left = y < 0
        return where(left, y - math.log(2), log1p(-exp(-where(left, 0, y)) / 2))

    def logsf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return self.logcdf_formula(-y)

    def ppf_formula(self, q: Array) -> Array:
        """log 2q in the left half, -log(2 - 2q) in the right."""
        left = q < 0.5
        return where(left, log(2 * where(left, q, 0.5)), -log(2 * where(left, 0.5, 1 - q)))

    def isf_formula(self, q: Array) -> Array:
        """Negate the quantile, by symmetry."""
        return -self.ppf_formula(q)


class Logistic(Invertible):
    """The logistic distribution, of density exp(-y) / (1 + exp(-y))².

    As SciPy's ``logistic``.

    >>> from stretto.scipy.stats import logistic
    >>> logistic.ppf(0.5)
    Array(0., dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        """log sech²(y/2) / 4 near 0, where its slope is small; log F(y) + log(1 - F(y)) beyond."""
        near = absolute(y) < 1
        middle = log(sech_squared(where(near, y, 0) / 2) / 4)
        return where(near, middle, self.logcdf_formula(y) + self.logcdf_formula(-y))

    def cdf_formula(self, y: Array) -> Array:
        return expit(y)

    def ppf_formula(self, q: Array) -> Array:
        """Return its inverse."""
        return logit(q)

    def sf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return expit(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """-log(1 + exp(-y)) without overflow."""
        left = y < 0
        return where(left, y, 0) - log1p(exp(where(left, y, -y)))

    def logsf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return self.logcdf_formula(-y)

    def isf_formula(self, q: Array) -> Array:
        """Negate the quantile, by symmetry."""
        return -logit(q)


class Uniform(Invertible):
    """The uniform distribution from ``loc`` to ``loc + scale``.

    As SciPy's ``uniform``.

    >>> from stretto.scipy.stats import uniform
    >>> uniform.cdf(3.0, 2.0, 4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """

    def support(self) -> tuple[ArrayLike, ArrayLike]:
        return 0, 1

    def logpdf_formula(self, y: Array) -> Array:
        return 0 * y

    def cdf_formula(self, y: Array) -> Array:
        return y

    def ppf_formula(self, q: Array) -> Array:
        return q


class TruncNorm(Continuous):
    """The normal distribution truncated to [a, b], in units of ``scale`` from ``loc``.

    Args:
        a: the lower end, in units of ``scale`` from ``loc``.
        b: the upper end, likewise; above ``a``.

    As SciPy's ``truncnorm``.

    >>> from stretto.scipy.stats import truncnorm
    >>> truncnorm.cdf(0.0, -1.0, 1.0).round(4)
    Array(0.5, dtype=float32, weak_type=True)
    """

    shapes = ("a", "b")

    def allowed(self, a: Array, b: Array) -> Array:
        return a < b

    def support(self, a: Array, b: Array) -> tuple[ArrayLike, ArrayLike]:
        return a, b

    def inner(self, a: Array, b: Array) -> Array:
        """Return the point nearest to 0."""
        return minimum(maximum(a, 0), b)

    def logpdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return the normal density over the mass in [a, b]."""
        return -(y * y + _LOG_2PI) / 2 - _log_mass(a, b)

    def cdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return the mass in [a, y] over that in [a, b]."""
        return exp(self.logcdf_formula(y, a, b))

    def sf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return the mass in [y, b] over that in [a, b]."""
        return exp(self.logsf_formula(y, a, b))

    def logcdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return its logarithm."""
        return _log_mass(a, y) - _log_mass(a, b)

    def logsf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return its logarithm."""
        return _log_mass(y, b) - _log_mass(a, b)


def _log_mass(a: Array, b: Array) -> Array:
    """Return the logarithm of the normal probability of [a, b], exact in both tails."""
    right = a > 0
    low, high = where(right, -b, a), where(right, -a, b)  # the mirror image lies left of 0
    across = high > 0
    # left of 0: log(F(high) - F(low)) = log F(high) + log(1 - F(low) / F(high))
    end = where(across, 0.0, high)
    start = where(across, -1.0, low)
    top = log_ndtr(end)
    empty = start >= end
    left = top + log1mexp(where(empty, 1.0, top - log_ndtr(where(empty, end - 1, start))))
    wide = log1p(-ndtr(where(across, low, -1.0)) - ndtr(-where(across, high, 1.0)))
    return where(across, wide, where(empty, -math.inf, left))


norm, cauchy, expon, laplace = Norm(), Cauchy(), Expon(), Laplace()
logistic, uniform, truncnorm = Logistic(), Uniform(), TruncNorm()


class Pareto(Invertible):
    """The Pareto distribution with exponent ``b``, of density b / y^(b+1) for y ≥ 1.

    Args:
        b: the exponent, positive.

    As SciPy's ``pareto``.

    >>> from stretto.scipy.stats import pareto
    >>> pareto.sf(2.0, 3.0)
    Array(0.125, dtype=float32, weak_type=True)
    """

    shapes = ("b",)

    def support(self, b: Array) -> tuple[ArrayLike, ArrayLike]:
        return 1, math.inf

    def inner(self, b: Array) -> float:
        return 2.0

    def logpdf_formula(self, y: Array, b: Array) -> Array:
        return log(b) - (b + 1) * log(y)

    def cdf_formula(self, y: Array, b: Array) -> Array:
        return -expm1(-b * log(y))

    def sf_formula(self, y: Array, b: Array) -> Array:
        return exp(-b * log(y))

    def logcdf_formula(self, y: Array, b: Array) -> Array:
        return log1mexp(b * log(y))

    def logsf_formula(self, y: Array, b: Array) -> Array:
        return -b * log(y)

    def ppf_formula(self, q: Array, b: Array) -> Array:
        return exp(-log1p(-q) / b)

    def isf_formula(self, q: Array, b: Array) -> Array:
        return exp(-log(q) / b)


class Gumbel_R(Invertible):
    """The Gumbel distribution of maxima, of distribution function exp(-exp(-y)).

    As SciPy's ``gumbel_r``.

    >>> from stretto.scipy.stats import gumbel_r
    >>> gumbel_r.logcdf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        return -y - exp(-y)

    def cdf_formula(self, y: Array) -> Array:
        return exp(-exp(-y))

    def sf_formula(self, y: Array) -> Array:
        return -expm1(-exp(-y))

    def logcdf_formula(self, y: Array) -> Array:
        return -exp(-y)

    def logsf_formula(self, y: Array) -> Array:
        return log1mexp(exp(-y))

    def ppf_formula(self, q: Array) -> Array:
        return -log(-log(q))

    def isf_formula(self, q: Array) -> Array:
        return -log(-log1p(-q))


class Gumbel_L(Invertible):
    """The Gumbel distribution of minima: the mirror image of ``gumbel_r``.

    As SciPy's ``gumbel_l``.

    >>> from stretto.scipy.stats import gumbel_l
    >>> gumbel_l.logsf(0.0)
    Array(-1., dtype=float32, weak_type=True)
    """

    _mirror: ClassVar[Gumbel_R] = Gumbel_R()

    def logpdf_formula(self, y: Array) -> Array:
        """Take it at -y."""
        return self._mirror.logpdf_formula(-y)

    def cdf_formula(self, y: Array) -> Array:
        """Return the survival function at -y."""
        return self._mirror.sf_formula(-y)

    def sf_formula(self, y: Array) -> Array:
        """Return the distribution function at -y."""
        return self._mirror.cdf_formula(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """Return the logarithm of the survival function at -y."""
        return self._mirror.logsf_formula(-y)

    def logsf_formula(self, y: Array) -> Array:
        """Return the logarithm of the distribution function at -y."""
        return self._mirror.logcdf_formula(-y)

    def ppf_formula(self, q: Array) -> Array:
        """Return the negative of the ``isf`` of ``gumbel_r``."""
        return -self._mirror.isf_formula(q)

    def isf_formula(self, q: Array) -> Array:
        """Return the negative of the ``ppf`` of ``gumbel_r``."""
        return -self._mirror.ppf_formula(q)


pareto, gumbel_r, gumbel_l = Pareto(), Gumbel_R(), Gumbel_L()


class Gamma(Continuous):
    """The gamma distribution with shape ``a``, of density y^(a-1) exp(-y) / Γ(a) for y ≥ 0.

    Args:
        a: the shape, positive.

    As SciPy's ``gamma``.

    >>> from stretto.scipy.stats import gamma
    >>> gamma.logpdf(2.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """

    shapes = ("a",)

    def support(self, a: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, math.inf

    def inner(self, a: Array) -> float:
        return 1.0

    def logpdf_formula(self, y: Array, a: Array) -> Array:
        """(a - 1) log y - y - log Γ(a)."""
        return xlogy(a - 1, y) - y - gammaln(a)

    def cdf_formula(self, y: Array, a: Array) -> Array:
        """Return the regularized incomplete gamma function."""
        return gammainc(a, y)

    def sf_formula(self, y: Array, a: Array) -> Array:
        """Return its complement."""
        return gammaincc(a, y)


class Chi2(Gamma):
    """The chi-squared distribution with ``df`` degrees of freedom: gamma with df/2, doubled.

    Args:
        df: the degrees of freedom, positive.

    As SciPy's ``chi2``.

    >>> from stretto.scipy.stats import chi2
    >>> chi2.sf(0.0, 3.0)
    Array(1., dtype=float32, weak_type=True)
    """

    shapes = ("df",)

    def logpdf_formula(self, y: Array, df: Array) -> Array:
        """Take that of gamma at y/2, minus log 2."""
        return gamma.logpdf_formula(y / 2, df / 2) - math.log(2)

    def cdf_formula(self, y: Array, df: Array) -> Array:
        """Take that of gamma at y/2."""
        return gammainc(df / 2, y / 2)

    def sf_formula(self, y: Array, df: Array) -> Array:
        """Take that of gamma at y/2."""
        return gammaincc(df / 2, y / 2)


class Beta(Continuous):
    """The beta distribution, of density y^(a-1) (1-y)^(b-1) / B(a, b) for y in [0, 1].

    Args:
        a: the first shape, positive.
        b: the second shape, positive.

    As SciPy's ``beta``.

    >>> from stretto.scipy.stats import beta
    >>> beta.pdf(0.25, 1.0, 1.0)
    Array(1., dtype=float32, weak_type=True)
    """

    shapes = ("a", "b")

    def support(self, a: Array, b: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, 1

    def inner(self, a: Array, b: Array) -> float:
        return 0.5

    def logpdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)."""
        return xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)

    def cdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Return the regularized incomplete beta function."""
        return betainc(a, b, y)

    def sf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Take it at 1 - y with a and b exchanged."""
        return betainc(b, a, 1 - y)


class T(Continuous):
    """Student's distribution, of density ∝ (1 + y²/df)^(-(df+1)/2).

    Args:
        df: the degrees of freedom, positive.

    As SciPy's ``t``.

    >>> from stretto.scipy.stats import t
    >>> t.cdf(0.0, 5.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    shapes = ("df",)

    def logpdf_formula(self, y: Array, df: Array) -> Array:
        """-(df + 1)/2 log(1 + y²/df) - log(√df B(df/2, 1/2))."""
        return -(df + 1) / 2 * log1p(y * y / df) - log(df) / 2 - betaln(df / 2, 0.5)

    def cdf_formula(self, y: Array, df: Array) -> Array:
        """Take half the beta integral in the tail."""
        # The integral has an infinite slope in y^2 at 0: near 0, by the density's series.
        near = y * y < 0.05 * minimum(df, 1)
        square = where(near, 1, y * y)
        share = square / (df + square)
        tail = where(
            share < 0.5,
            1 - betainc(0.5, df / 2, where(share < 0.5, share, 0.5)),
            betainc(df / 2, 0.5, df / (df + square)),
        )
        return where(near, self._middle(y, df), where(y < 0, tail / 2, 1 - tail / 2))

    def _middle(self, y: Array, df: Array) -> Array:
        # f(0) times the integral of (1 + t^2 / df)^(-(df + 1) / 2), by its binomial series, whose
        # first 13 terms are right to 64 bits
        ratio = where(y * y < 0.05 * minimum(df, 1), y, 0) ** 2 / df
        total, term = 1.0, 1.0
        for k in range(1, 13):
            term = -term * ratio * ((df - 1) / 2 + k) / k
            total = total + term / (2 * k + 1)
        return 0.5 + y * total * exp(-log(df) / 2 - betaln(df / 2, 0.5))

    def sf_formula(self, y: Array, df: Array) -> Array:
        """Take it at -y, by symmetry."""
        return self.cdf_formula(-y, df)


class GenNorm(Continuous):
    """The generalized normal distribution, of density ∝ exp(-|y|^beta).

    Args:
        beta: the exponent, positive.

    As SciPy's ``gennorm``.

    >>> from stretto.scipy.stats import gennorm
    >>> gennorm.cdf(0.0, 3.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    shapes = ("beta",)

    def logpdf_formula(self, y: Array, beta: Array) -> Array:
        """log(beta / 2) - log Γ(1/beta) - |y|^beta."""
        return log(beta / 2) - gammaln(1 / beta) - self._power(y, beta)

    def cdf_formula(self, y: Array, beta: Array) -> Array:
        """Add half the gamma integral to 1/2, or subtract it."""
        # At 0 the sign has no derivative: there, a half plus y times the density.
        middle = 0.5 + y * exp(self.logpdf_formula(y, beta))
        tail = gammaincc(1 / beta, self._power(y, beta)) / 2
        return where(y == 0, middle, where(y < 0, tail, 1 - tail))

    def sf_formula(self, y: Array, beta: Array) -> Array:
        """Take it at -y, by symmetry."""
        return self.cdf_formula(-y, beta)

    def _power(self, y: Array, beta: Array) -> Array:
        # |y|^beta, whose derivative in beta is 0 at y = 0
        zero = y == 0
        return where(zero, 0.0, exp(beta * log(where(zero, 1.0, absolute(y)))))


gamma, chi2, beta, t, gennorm = Gamma(), Chi2(), Beta(), T(), GenNorm()


class VonMises(Density):
    """The von Mises distribution, of density exp(kappa cos y) / (2π I₀(kappa)), periodic in y.

    Args:
        kappa: the concentration, 0 or more.

    As SciPy's ``vonmises``.

    >>> from stretto.scipy.stats import vonmises
    >>> (vonmises.pdf(1.0, 0.0) * 6.2831855).round(4)
    Array(1., dtype=float32, weak_type=True)
    """

    shapes = ("kappa",)

    def allowed(self, kappa: Array) -> Array:
        return kappa >= 0

    def logpdf_formula(self, y: Array, kappa: Array) -> Array:
        """Take I₀ scaled by exp(-kappa), so that nothing overflows."""
        return kappa * (cos(y) - 1) - _LOG_2PI - log(i0e(kappa))


class WrapCauchy(Density):
    """The wrapped Cauchy distribution on [0, 2π], with 0 < c < 1.

    Args:
        c: the concentration, between 0 and 1.

    As SciPy's ``wrapcauchy``.

    >>> from stretto.scipy.stats import wrapcauchy
    >>> wrapcauchy.pdf(7.0, 0.5)
    Array(0., dtype=float32, weak_type=True)
    """

    shapes = ("c",)

    def allowed(self, c: Array) -> Array:
        return (c > 0) & (c < 1)

    def support(self, c: Array) -> tuple[ArrayLike, ArrayLike]:
        """Cover one turn."""
        return 0, 2 * math.pi

    def logpdf_formula(self, y: Array, c: Array) -> Array:
        return log1p(-c * c) - _LOG_2PI - log1p(c * c - 2 * c * cos(y))


vonmises, wrapcauchy = VonMises(), WrapCauchy()
