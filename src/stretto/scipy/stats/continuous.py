"""Continuous distributions written with elementary functions and the normal integral.

Formulas are of the standard form, at location 0 and scale 1; definitions as in SciPy's manual.
"""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.trigonometric import sech_squared
from stretto.numpy.arithmetic import absolute
from stretto.numpy.clipping import maximum, minimum
from stretto.numpy.elementary import exp, expm1, log, log1p
from stretto.numpy.normalized import log1mexp
from stretto.numpy.searching import where
from stretto.numpy.trigonometric import arctan2, tan
from stretto.scipy.stats.distribution import Continuous, Invertible
from stretto.special import expit, log_ndtr, logit, ndtr, ndtri

_LOG_2PI = math.log(2 * math.pi)


class Norm(Invertible):
    """The normal distribution, of density exp(-y²/2) / √(2π).

    As SciPy's ``norm``.

    >>> from stretto.scipy.stats import norm
    >>> norm.ppf(norm.cdf(1.0, 3.0, 2.0), 3.0, 2.0).round(4)
    Array(1., dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        """-y²/2 - log √(2π)."""
        return -(y * y + _LOG_2PI) / 2

    def cdf_formula(self, y: Array) -> Array:
        """The normal integral."""
        return ndtr(y)

    def logcdf_formula(self, y: Array) -> Array:
        """Its logarithm."""
        return log_ndtr(y)

    def ppf_formula(self, q: Array) -> Array:
        """Its inverse."""
        return ndtri(q)

    def sf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return ndtr(-y)

    def logsf_formula(self, y: Array) -> Array:
        """Take it at -y, by symmetry."""
        return log_ndtr(-y)

    def isf_formula(self, q: Array) -> Array:
        """By symmetry."""
        return -ndtri(q)


class Cauchy(Invertible):
    """The Cauchy distribution, of density 1 / (π (1 + y²)).

    As SciPy's ``cauchy``.

    >>> from stretto.scipy.stats import cauchy
    >>> cauchy.cdf(1.0)
    Array(0.75, dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        """-log π - log(1 + y²)."""
        return -math.log(math.pi) - log1p(y * y)

    def cdf_formula(self, y: Array) -> Array:
        """The angle of (-y, 1), over π: exact in the left tail."""
        return arctan2(1.0, -y) / math.pi

    def sf_formula(self, y: Array) -> Array:
        """By symmetry, exact in the right tail."""
        return arctan2(1.0, y) / math.pi

    def ppf_formula(self, q: Array) -> Array:
        """-cot(π q), as a tangent in the middle; exact in both tails."""
        tail = minimum(q, 1 - q)
        far = 1 / tan(math.pi * tail)
        return where(tail < 0.25, where(q < 0.5, -far, far), tan(math.pi * (q - 0.5)))

    def isf_formula(self, q: Array) -> Array:
        """By symmetry."""
        return -self.ppf_formula(q)


class Expon(Invertible):
    """The exponential distribution, of density exp(-y) for y ≥ 0.

    As SciPy's ``expon``.

    >>> from stretto.scipy.stats import expon
    >>> expon.logsf(3.0, 1.0)
    Array(-2., dtype=float32, weak_type=True)
    """

    def support(self) -> tuple[ArrayLike, ArrayLike]:
        """Start at 0."""
        return 0, math.inf

    def logpdf_formula(self, y: Array) -> Array:
        """The logarithm of exp(-y)."""
        return -y

    def cdf_formula(self, y: Array) -> Array:
        """1 - exp(-y)."""
        return -expm1(-y)

    def sf_formula(self, y: Array) -> Array:
        """exp(-y)."""
        return exp(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """log(1 - exp(-y))."""
        return log1mexp(y)

    def logsf_formula(self, y: Array) -> Array:
        """The logarithm of exp(-y)."""
        return -y

    def ppf_formula(self, q: Array) -> Array:
        """-log(1 - q)."""
        return -log1p(-q)

    def isf_formula(self, q: Array) -> Array:
        """-log q."""
        return -log(q)


class Laplace(Invertible):
    """The Laplace distribution, of density exp(-|y|) / 2.

    As SciPy's ``laplace``.

    >>> from stretto.scipy.stats import laplace
    >>> laplace.cdf(0.0)
    Array(0.5, dtype=float32, weak_type=True)
    """

    def logpdf_formula(self, y: Array) -> Array:
        """-|y| - log 2."""
        return -absolute(y) - math.log(2)

    def cdf_formula(self, y: Array) -> Array:
        """exp(y)/2 on the left, 1 - exp(-y)/2 on the right."""
        left = y < 0
        tail = exp(where(left, y, -y)) / 2
        return where(left, tail, 1 - tail)

    def sf_formula(self, y: Array) -> Array:
        """By symmetry."""
        return self.cdf_formula(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """y - log 2 on the left, log(1 - exp(-y)/2) on the right."""
        left = y < 0
        return where(left, y - math.log(2), log1p(-exp(-where(left, 0, y)) / 2))

    def logsf_formula(self, y: Array) -> Array:
        """By symmetry."""
        return self.logcdf_formula(-y)

    def ppf_formula(self, q: Array) -> Array:
        """log 2q in the left half, -log(2 - 2q) in the right."""
        left = q < 0.5
        return where(left, log(2 * where(left, q, 0.5)), -log(2 * where(left, 0.5, 1 - q)))

    def isf_formula(self, q: Array) -> Array:
        """By symmetry."""
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
        """1 / (1 + exp(-y))."""
        return expit(y)

    def ppf_formula(self, q: Array) -> Array:
        """Its inverse."""
        return logit(q)

    def sf_formula(self, y: Array) -> Array:
        """By symmetry."""
        return expit(-y)

    def logcdf_formula(self, y: Array) -> Array:
        """-log(1 + exp(-y)) without overflow."""
        left = y < 0
        return where(left, y, 0) - log1p(exp(where(left, y, -y)))

    def logsf_formula(self, y: Array) -> Array:
        """By symmetry."""
        return self.logcdf_formula(-y)

    def isf_formula(self, q: Array) -> Array:
        """By symmetry."""
        return -logit(q)


class Uniform(Invertible):
    """The uniform distribution from ``loc`` to ``loc + scale``.

    As SciPy's ``uniform``.

    >>> from stretto.scipy.stats import uniform
    >>> uniform.cdf(3.0, 2.0, 4.0)
    Array(0.25, dtype=float32, weak_type=True)
    """

    def support(self) -> tuple[ArrayLike, ArrayLike]:
        """Span 0 to 1."""
        return 0, 1

    def logpdf_formula(self, y: Array) -> Array:
        """0."""
        return 0 * y

    def cdf_formula(self, y: Array) -> Array:
        """y."""
        return y

    def ppf_formula(self, q: Array) -> Array:
        """q."""
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
        """a < b."""
        return a < b

    def support(self, a: Array, b: Array) -> tuple[ArrayLike, ArrayLike]:
        """Span a to b."""
        return a, b

    def inner(self, a: Array, b: Array) -> Array:
        """The point nearest to 0."""
        return minimum(maximum(a, 0), b)

    def logpdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """The normal density over the mass in [a, b]."""
        return -(y * y + _LOG_2PI) / 2 - _log_mass(a, b)

    def cdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """The mass in [a, y] over that in [a, b]."""
        return exp(self.logcdf_formula(y, a, b))

    def sf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """The mass in [y, b] over that in [a, b]."""
        return exp(self.logsf_formula(y, a, b))

    def logcdf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Its logarithm."""
        return _log_mass(a, y) - _log_mass(a, b)

    def logsf_formula(self, y: Array, a: Array, b: Array) -> Array:
        """Its logarithm."""
        return _log_mass(y, b) - _log_mass(a, b)


def _log_mass(a: Array, b: Array) -> Array:
    """The logarithm of the normal probability of [a, b], exact in both tails."""
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
