"""Distributions on integers.

Definitions as in SciPy's manual.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, ClassVar

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values
from stretto.numpy.arithmetic import floor
from stretto.numpy.creation import arange
from stretto.numpy.elementary import exp, expm1, log, log1p
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import where
from stretto.scipy.stats.distribution import Cumulative, Discrete
from stretto.special import betainc, betaln, gammaincc, gammaln, xlog1py, xlogy


def log_choose(n: Array, k: Array) -> Array:
    """Return the logarithm of the binomial coefficient, by the beta function."""
    return -betaln(n - k + 1, k + 1) - log1p(n)


class Binom(Cumulative):
    """The binomial distribution: successes among ``n`` trials of probability ``p``.

    Args:
        n: the number of trials.
        p: the probability of success.

    As SciPy's ``binom``.

    >>> from stretto.scipy.stats import binom
    >>> binom.pmf(1, 2, 0.5).round(4)
    Array(0.5, dtype=float32, weak_type=True)
    """

    shapes = ("n", "p")

    def allowed(self, n: Array, p: Array) -> Array:
        """Take natural numbers n, and p in [0, 1]."""
        return (n >= 0) & (n == floor(n)) & (p >= 0) & (p <= 1)

    def support(self, n: Array, p: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, n

    def logpmf_formula(self, k: Array, n: Array, p: Array) -> Array:
        """Return log of (n choose k) p^k (1-p)^(n-k)."""
        return log_choose(n, k) + xlogy(k, p) + xlog1py(n - k, -p)

    def cdf_formula(self, k: Array, n: Array, p: Array) -> Array:
        """Return the incomplete beta function of 1 - p."""
        return betainc(where(n > k, n - k, 1.0), k + 1, 1 - p)


class Bernoulli(Cumulative):
    """One trial of probability ``p``: 1 or 0.

    Args:
        p: the probability of 1.

    As SciPy's ``bernoulli``.

    >>> from stretto.scipy.stats import bernoulli
    >>> bernoulli.pmf(0, 0.25)
    Array(0.75, dtype=float32, weak_type=True)
    """

    shapes = ("p",)
    methods: ClassVar[dict[str, str]] = {**Cumulative.methods, "ppf": "q"}

    if TYPE_CHECKING:  # what ``methods`` names, made by the base class

        def ppf(self, q: ArrayLike, *args: ArrayLike, **kwargs: ArrayLike) -> Array:
            """Return the quantile: the inverse of ``cdf``."""
            ...

    def allowed(self, p: Array) -> Array:
        return (p >= 0) & (p <= 1)

    def support(self, p: Array) -> tuple[ArrayLike, ArrayLike]:
        """Return 0 and 1."""
        return 0, 1

    def logpmf_formula(self, k: Array, p: Array) -> Array:
        """Return log p, or log(1 - p)."""
        return xlogy(k, p) + xlog1py(1 - k, -p)

    def cdf_formula(self, k: Array, p: Array) -> Array:
        return 1 - p

    def _ppf_of(self, q: Array, shapes: Sequence[Array], loc: Array | float = 0.0) -> Array:
        """Return the smallest value at which the ``cdf`` is at least ``q``; NaN outside [0, 1]."""
        (p,) = shapes
        valid = self.allowed(p) & (q >= 0) & (q <= 1)
        out = where(q <= 1 - p, 0, 1) + loc
        return where(valid, where(q == 0, loc - 1, out), math.nan)


class BetaBinom(Discrete):
    """The binomial distribution whose probability is beta distributed.

    Args:
        n: the number of trials.
        a: the first shape of the beta distribution, positive.
        b: the second shape, positive.

    As SciPy's ``betabinom``.

    >>> from stretto.scipy.stats import betabinom
    >>> betabinom.pmf(1, 3, 1.0, 1.0).round(4)
    Array(0.25, dtype=float32, weak_type=True)
    """

    shapes = ("n", "a", "b")

    def allowed(self, n: Array, a: Array, b: Array) -> Array:
        """Take natural numbers n, and positive a and b."""
        return (n >= 0) & (n == floor(n)) & (a > 0) & (b > 0)

    def support(self, n: Array, a: Array, b: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, n

    def logpmf_formula(self, k: Array, n: Array, a: Array, b: Array) -> Array:
        """Return log of (n choose k) B(k + a, n - k + b) / B(a, b)."""
        return log_choose(n, k) + betaln(k + a, n - k + b) - betaln(a, b)


class Geom(Cumulative):
    """The trial of the first success, of probability ``p`` each.

    Args:
        p: the probability of success, above 0.

    As SciPy's ``geom``.

    >>> from stretto.scipy.stats import geom
    >>> geom.pmf(2, 0.5)
    Array(0.25, dtype=float32, weak_type=True)
    """

    shapes = ("p",)

    def allowed(self, p: Array) -> Array:
        return (p > 0) & (p <= 1)

    def support(self, p: Array) -> tuple[ArrayLike, ArrayLike]:
        return 1, math.inf

    def inner(self, p: Array) -> float:
        return 1.0

    def logpmf_formula(self, k: Array, p: Array) -> Array:
        """(k - 1) log(1 - p) + log p."""
        return xlog1py(k - 1, -p) + log(p)

    def cdf_formula(self, k: Array, p: Array) -> Array:
        return -expm1(k * log1p(-p))


class NBinom(Cumulative):
    """The negative binomial distribution: failures before the ``n``-th success.

    Args:
        n: the number of successes, positive.
        p: the probability of success, above 0.

    As SciPy's ``nbinom``.

    >>> from stretto.scipy.stats import nbinom
    >>> nbinom.pmf(0, 2, 0.5).round(4)
    Array(0.25, dtype=float32, weak_type=True)
    """

    shapes = ("n", "p")

    def allowed(self, n: Array, p: Array) -> Array:
        return (n > 0) & (p > 0) & (p <= 1)

    def support(self, n: Array, p: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, math.inf

    def logpmf_formula(self, k: Array, n: Array, p: Array) -> Array:
        """Return log of Γ(k + n) / (k! Γ(n)) p^n (1-p)^k."""
        return gammaln(k + n) - gammaln(k + 1) - gammaln(n) + n * log(p) + xlog1py(k, -p)

    def cdf_formula(self, k: Array, n: Array, p: Array) -> Array:
        """Return the incomplete beta function of p."""
        return betainc(n, k + 1, p)


class Poisson(Cumulative):
    """The Poisson distribution of mean ``mu``.

    Args:
        mu: the mean, 0 or more.

    As SciPy's ``poisson``.

    >>> from stretto.scipy.stats import poisson
    >>> poisson.logpmf(0, 2.5)
    Array(-2.5, dtype=float32, weak_type=True)
    """

    shapes = ("mu",)

    terms: ClassVar[int] = 320
    """The terms that the entropy sums, for means up to which its series is not yet accurate."""

    def allowed(self, mu: Array) -> Array:
        return mu >= 0

    def support(self, mu: Array) -> tuple[ArrayLike, ArrayLike]:
        return 0, math.inf

    def logpmf_formula(self, k: Array, mu: Array) -> Array:
        """k log mu - mu - log k!."""
        return xlogy(k, mu) - mu - gammaln(k + 1)

    def cdf_formula(self, k: Array, mu: Array) -> Array:
        """Return the complement of the incomplete gamma function."""
        return gammaincc(k + 1, mu)

    @rounded_once
    def entropy(self, mu: ArrayLike, loc: ArrayLike = 0) -> Array:
        """Compute the entropy, in nats.

        Summed by its definition up to a mean of 150; above, by its series in 1/mu, whose relative
        error is below 1e-10 there.

        Args:
            mu: the mean, 0 or more.
            loc: the location; it does not change the entropy.

        Returns:
            The entropies; NaN where ``mu`` is negative.

        >>> from stretto.scipy.stats import poisson
        >>> poisson.entropy(0.0)
        Array(0., dtype=float32)
        """
        mean, _ = promote_values("poisson.entropy", mu, loc, inexact=True)
        check_kind("poisson.entropy", FLOAT, mean.type)
        is_small = (mean > 0) & (mean <= 150)
        small, large = where(is_small, mean, 1.0), where(mean > 150, mean, 1000.0)
        k = of_rank(arange(self.terms, dtype=mean.dtype), mean.ndim + 1)
        log_pmf = self._logpmf_of(k, (small[..., None],))
        total = -sum_(exp(log_pmf) * log_pmf, -1)
        inverse = 1 / large
        series = (1 / 12, 1 / 24, 19 / 360, 9 / 80)
        tail = sum(c * inverse ** (i + 1) for i, c in enumerate(series))
        limit = (math.log(2 * math.pi * math.e) + log(large)) / 2 - tail
        entropy = where(is_small, total, where(mean > 0, limit, 0.0))
        return where(mean >= 0, entropy, math.nan)


binom, bernoulli, betabinom = Binom(), Bernoulli(), BetaBinom()
geom, nbinom, poisson = Geom(), NBinom(), Poisson()
