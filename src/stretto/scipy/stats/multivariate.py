"""Distributions of vectors.

Definitions as in SciPy's manual. Next, read ``ranks``.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.linalg.triangular import triangular_solve
from stretto._engine.ops.shape import concatenate
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute, square
from stretto.numpy.elementary import exp, log
from stretto.numpy.linalg.factorisations import cholesky
from stretto.numpy.manipulation import broadcast_shapes, diagonal, expand_dims
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.rounding import floor
from stretto.numpy.searching import where
from stretto.special import gammaln, xlogy

__all__ = ["dirichlet", "multinomial", "multivariate_normal"]


class Dirichlet:
    """The Dirichlet distribution of ``k`` proportions, of density ∝ Π x_i^(alpha_i - 1).

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import dirichlet
    >>> dirichlet.pdf(snp.array([0.5, 0.5]), snp.array([1.0, 1.0])).round(4)
    Array(1., dtype=float32)
    """

    def logpdf(self, x: Any, alpha: Any) -> Any:
        """The logarithm of the density; -inf where ``x`` is not on the simplex.

        ``alpha`` is ``[k]``; ``x`` is ``[k, ...]``, or ``[k - 1, ...]``, which leaves the last
        proportion to be what is missing to 1. Raises ``ValueError`` for other shapes.
        """
        x, alpha = inexact_values("dirichlet", x=x, alpha=alpha)
        if alpha.ndim != 1 or not x.ndim or x.shape[0] not in (alpha.size, alpha.size - 1):
            raise ValueError(
                f"dirichlet: expected alpha of shape (k,) and x of shape (k, ...) or (k - 1, ...), "
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

    def pdf(self, x: Any, alpha: Any) -> Any:
        """The density; 0 where ``x`` is not on the simplex."""
        return exp(self.logpdf(x, alpha))


class Multinomial:
    """The multinomial distribution: counts of ``k`` outcomes among ``n`` trials.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import multinomial
    >>> multinomial.pmf(snp.array([1, 1]), 2, snp.array([0.5, 0.5])).round(4)
    Array(0.5, dtype=float32)
    """

    def logpmf(self, x: Any, n: Any, p: Any) -> Any:
        """The logarithm of the probability of the counts ``x``; -inf where they do not sum to n.

        ``x`` and ``p`` are ``[..., k]``, ``n`` is ``[...]``.
        """
        x, p = promote_values("multinomial", x, p, inexact=True)
        (n,) = inexact_values("multinomial", n=n)
        inside = all_((x >= 0) & (x == floor(x)), -1) & (sum_(x, -1) == n)
        safe = where(expand_dims(inside, -1), x, 0)
        out = gammaln(n + 1) + sum_(xlogy(safe, p) - gammaln(safe + 1), -1)
        return where(inside, out, -math.inf)

    def pmf(self, x: Any, n: Any, p: Any) -> Any:
        """The probability of the counts ``x``."""
        return exp(self.logpmf(x, n, p))


class MultivariateNormal:
    """The normal distribution of vectors, with mean ``mean`` and covariance ``cov``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import multivariate_normal
    >>> zero, unit = snp.zeros(2), snp.eye(2)
    >>> (multivariate_normal.pdf(zero, zero, unit) * 6.2831855).round(4)
    Array(1., dtype=float32)
    """

    def logpdf(self, x: Any, mean: Any = 0, cov: Any = 1, allow_singular: None = None) -> Any:
        """The logarithm of the density; NaN where the covariance is not positive definite.

        ``x`` is ``[..., n]``, ``mean`` ``[..., n]`` or one number, ``cov`` ``[..., n, n]``, or one
        number: that times the unit matrix. Where ``mean`` is one number and ``cov`` too, ``x`` are
        numbers. Raises ``NotImplementedError`` for ``allow_singular``.
        """
        if allow_singular is not None:
            raise NotImplementedError(
                "multivariate_normal: allow_singular must be None; add a small multiple of the "
                "unit matrix to cov"
            )
        values = inexact_values("multivariate_normal", x=x, mean=mean, cov=cov)
        x, mean, cov = values
        if not mean.ndim and not cov.ndim:
            return -(square(x - mean) / cov + log(2 * math.pi * cov)) / 2
        gap = x - mean
        n = cov.shape[-1] if cov.ndim else gap.shape[-1]
        if gap.shape[-1:] != (n,) or (cov.ndim and cov.shape[-2:] != (n, n)):
            raise ValueError(
                f"multivariate_normal: expected x [..., n], mean [..., n] and cov [..., n, n], got "
                f"{values[0].type}, {values[1].type} and {values[2].type}"
            )
        if not cov.ndim:
            return -(sum_(square(gap), -1) / cov + n * log(2 * math.pi * cov)) / 2
        factor = cholesky(cov)
        front = broadcast_shapes(gap.shape[:-1], factor.shape[:-2])
        gap = broadcast_to(gap, (*front, n))
        white = triangular_solve(
            broadcast_to(factor, (*front, n, n)),
            expand_dims(gap, -1),
            left_side=True,
            lower=True,
        )
        spread = sum_(log(diagonal(factor, axis1=-2, axis2=-1)), -1)
        return -(sum_(square(white), (-2, -1)) + n * math.log(2 * math.pi)) / 2 - spread

    def pdf(self, x: Any, mean: Any = 0, cov: Any = 1, allow_singular: None = None) -> Any:
        """The density."""
        return exp(self.logpdf(x, mean, cov, allow_singular))


dirichlet, multinomial, multivariate_normal = Dirichlet(), Multinomial(), MultivariateNormal()
