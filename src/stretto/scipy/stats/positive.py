"""Continuous distributions written with the incomplete gamma and beta functions.

Formulas are of the standard form; definitions as in SciPy's manual.
"""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array, ArrayLike
from stretto.numpy.arithmetic import absolute
from stretto.numpy.clipping import minimum
from stretto.numpy.elementary import exp, log, log1p
from stretto.numpy.searching import where
from stretto.scipy.stats.distribution import Continuous
from stretto.special import betainc, betaln, gammainc, gammaincc, gammaln, xlog1py, xlogy


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
        """Start at 0."""
        return 0, math.inf

    def inner(self, a: Array) -> float:
        """1."""
        return 1.0

    def logpdf_formula(self, y: Array, a: Array) -> Array:
        """(a - 1) log y - y - log Γ(a)."""
        return xlogy(a - 1, y) - y - gammaln(a)

    def cdf_formula(self, y: Array, a: Array) -> Array:
        """The regularized incomplete gamma function."""
        return gammainc(a, y)

    def sf_formula(self, y: Array, a: Array) -> Array:
        """Its complement."""
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
        """Span 0 to 1."""
        return 0, 1

    def inner(self, a: Array, b: Array) -> float:
        """1/2."""
        return 0.5

    def logpdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """(a - 1) log y + (b - 1) log(1 - y) - log B(a, b)."""
        return xlogy(a - 1, y) + xlog1py(b - 1, -y) - betaln(a, b)

    def cdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """The regularized incomplete beta function."""
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
        """Half the beta integral in the tail."""
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
        """By symmetry."""
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
        """Log beta - log 2 - log Γ(1/beta) - |y|^beta."""
        return log(beta / 2) - gammaln(1 / beta) - self._power(y, beta)

    def cdf_formula(self, y: Array, beta: Array) -> Array:
        """1/2, plus or minus half the gamma integral."""
        # At 0 the sign has no derivative: there, a half plus y times the density.
        middle = 0.5 + y * exp(self.logpdf_formula(y, beta))
        tail = gammaincc(1 / beta, self._power(y, beta)) / 2
        return where(y == 0, middle, where(y < 0, tail, 1 - tail))

    def sf_formula(self, y: Array, beta: Array) -> Array:
        """By symmetry."""
        return self.cdf_formula(-y, beta)

    def _power(self, y: Array, beta: Array) -> Array:
        # |y|^beta, whose derivative in beta is 0 at y = 0
        zero = y == 0
        return where(zero, 0.0, exp(beta * log(where(zero, 1.0, absolute(y)))))


gamma, chi2, beta, t, gennorm = Gamma(), Chi2(), Beta(), T(), GenNorm()
