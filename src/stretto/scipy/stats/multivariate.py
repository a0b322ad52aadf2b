"""Distributions of vectors.

Definitions as in SciPy's manual.
"""

from __future__ import annotations

import math

from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import FLOAT, check_kind, promote_values
from stretto._engine.ops.elementwise import broadcast_shapes as common_shape
from stretto._engine.ops.linalg.triangular import triangular_solve
from stretto._engine.ops.shape import concatenate
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute, floor, square
from stretto.numpy.elementary import exp, log
from stretto.numpy.linalg.factorizations import cholesky
from stretto.numpy.manipulation import broadcast_shapes, diagonal, expand_dims
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import where
from stretto.special import gammaln, xlogy


class Dirichlet:
    """The Dirichlet distribution of ``k`` proportions, of density ∝ Π x_i^(alpha_i - 1).

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import dirichlet
    >>> dirichlet.pdf(snp.array([0.5, 0.5]), snp.array([1.0, 1.0])).round(4)
    Array(1., dtype=float32)
    """

    @rounded_once
    def logpdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """Compute the logarithm of the density.

        Args:
            x: the proportions, ``[k, ...]``; or ``[k - 1, ...]`` without the last one,
                which follows.
            alpha: the concentrations, ``[k]``.

        Returns:
            The logarithms; -inf where ``x`` is not on the simplex.

        Raises:
            ValueError: ``x`` or ``alpha`` has another shape.
        """
        return self._logpdf("dirichlet.logpdf", x, alpha)

    def _logpdf(self, caller: str, points: ArrayLike, concentrations: ArrayLike) -> Array:
        x, alpha = inexact_values(caller, x=points, alpha=concentrations)
        if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.size, alpha.size - 1):
            raise ValueError(
                f"{caller}: expected alpha of shape (k,) and x of shape (k, ...) or (k - 1, ...), "
                f"got alpha {alpha.type} and x {x.type}"
            )
        if x.shape[0] < alpha.size:
            x = concatenate([x, 1 - sum_(x, 0, keepdims=True)], 0)
        alpha = expand_dims(alpha, tuple(range(1, x.ndim)))
        inside = all_(x > 0, 0) & (absolute(sum_(x, 0) - 1) < 1e-6)
        safe = where(inside, x, 1 / alpha.size)
        norm = sum_(gammaln(alpha), 0) - gammaln(sum_(alpha, 0))
        out = sum_(xlogy(alpha - 1, safe), 0) - norm
        return where(inside, out, -math.inf)

    @rounded_once
    def pdf(self, x: ArrayLike, alpha: ArrayLike) -> Array:
        """Compute the density, 0 where ``x`` is not on the simplex; arguments as of ``logpdf``."""
        return exp(self._logpdf("dirichlet.pdf", x, alpha))


class Multinomial:
    """The multinomial distribution: counts of ``k`` outcomes among ``n`` trials.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import multinomial
    >>> multinomial.pmf(snp.array([1, 1]), 2, snp.array([0.5, 0.5])).round(4)
    Array(0.5, dtype=float32)
    """

    @rounded_once
    def logpmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Compute the logarithm of the probability of counts.

        Args:
            x: the counts, ``[..., k]``.
            n: the numbers of trials, ``[...]``.
            p: the probabilities of the outcomes, ``[..., k]``.

        Returns:
            The logarithms, ``[...]``; -inf where the counts do not add up to ``n``.
        """
        return self._logpmf("multinomial.logpmf", x, n, p)

    def _logpmf(self, caller: str, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        counts, shares = promote_values(caller, x, p, inexact=True)
        check_kind(caller, FLOAT, counts.type)
        (trials,) = inexact_values(caller, n=n)
        inside = all_((counts >= 0) & (counts == floor(counts)), -1) & (sum_(counts, -1) == trials)
        safe = where(expand_dims(inside, -1), counts, 0)
        out = gammaln(trials + 1) + sum_(xlogy(safe, shares) - gammaln(safe + 1), -1)
        return where(inside, out, -math.inf)

    @rounded_once
    def pmf(self, x: ArrayLike, n: ArrayLike, p: ArrayLike) -> Array:
        """Compute the probability of the counts ``x``; arguments as of ``logpmf``."""
        return exp(self._logpmf("multinomial.pmf", x, n, p))


class MultivariateNormal:
    """The normal distribution of vectors, with mean ``mean`` and covariance ``cov``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import multivariate_normal
    >>> zero, unit = snp.zeros(2), snp.eye(2)
    >>> (multivariate_normal.pdf(zero, zero, unit) * 6.2831855).round(4)
    Array(1., dtype=float32)
    """

    @rounded_once
    def logpdf(
        self, x: ArrayLike, mean: ArrayLike = 0, cov: ArrayLike = 1, allow_singular: None = None
    ) -> Array:
        """Compute the logarithm of the density.

        Args:
            x: the points, ``[..., n]``; numbers where both ``mean`` and ``cov`` are numbers.
            mean: the means, ``[..., n]``, or one number.
            cov: the covariances, ``[..., n, n]``, or one number, which multiplies the unit matrix.
            allow_singular: must be None.

        Returns:
            The logarithms; NaN where a covariance is not positive definite.

        Raises:
            ValueError: the shapes do not match.
            NotImplementedError: ``allow_singular`` is not None.
        """
        caller = "multivariate_normal.logpdf"
        return self._logpdf(caller, allow_singular, x=x, mean=mean, cov=cov)

    def _logpdf(self, caller: str, allow_singular: object, **arguments: ArrayLike) -> Array:
        if allow_singular is not None:
            raise NotImplementedError(
                f"{caller}: allow_singular must be None; add a small multiple of the unit matrix "
                f"to cov"
            )
        x, mean, cov = inexact_values(caller, **arguments)
        if not mean.ndim and not cov.ndim:
            return -(square(x - mean) / cov + log(2 * math.pi * cov)) / 2
        common_shape(caller, x.shape, mean.shape)
        gap = x - mean
        n = cov.shape[-1] if cov.ndim else gap.shape[-1]
        if gap.shape[-1:] != (n,) or (cov.ndim and cov.shape[-2:] != (n, n)):
            raise ValueError(
                f"{caller}: expected x [..., n], mean [..., n] and cov [..., n, n], got "
                f"{x.type}, {mean.type} and {cov.type}"
            )
        if not cov.ndim:
            return -(sum_(square(gap), -1) / cov + n * log(2 * math.pi * cov)) / 2
        factor = cholesky(cov)
        front = broadcast_shapes(gap.shape[:-1], factor.shape[:-2])
        gap = broadcast_to(gap, (*front, n))
        white = triangular_solve(
            broadcast_to(factor, (*front, n, n)), expand_dims(gap, -1), left_side=True, lower=True
        )
        spread = sum_(log(diagonal(factor, axis1=-2, axis2=-1)), -1)
        return -(sum_(square(white), (-2, -1)) + n * math.log(2 * math.pi)) / 2 - spread

    @rounded_once
    def pdf(
        self, x: ArrayLike, mean: ArrayLike = 0, cov: ArrayLike = 1, allow_singular: None = None
    ) -> Array:
        """Compute the density; arguments as of ``logpdf``."""
        caller = "multivariate_normal.pdf"
        return exp(self._logpdf(caller, allow_singular, x=x, mean=mean, cov=cov))


dirichlet, multinomial, multivariate_normal = Dirichlet(), Multinomial(), MultivariateNormal()
