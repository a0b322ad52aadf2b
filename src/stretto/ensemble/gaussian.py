"""``Gaussian``: predictions as normal distributions; and the links that make probabilities of them.

A link takes the Gaussian of logits to probabilities. None has a closed form: ``sampled`` is exact
but for the noise of its draws, ``probit`` and ``bridge`` are approximations without it.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable

import numpy as np

import stretto.numpy as snp
from stretto import lax, random
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto.ensemble.score_arguments import at_least, at_least_float32
from stretto.numpy.normalized import logsumexp

__all__ = ["Gaussian"]


@register_dataclass
@dataclasses.dataclass(frozen=True)
class Gaussian:
    """Normal distributions: one, or many along leading axes.

    An event is what one distribution is over. Its axes are the last of ``mean``, and stand twice at
    the end of ``covariance``; there are none where each number has a distribution of its own, and
    ``covariance`` is its variance.

    >>> import stretto.numpy as snp
    >>> one = Gaussian(snp.array([1.0, 2.0]), snp.array([[4.0, 1.0], [1.0, 9.0]]))
    >>> one.variance
    Array([4., 9.], dtype=float32)
    """

    mean: Array
    """(..., *event)."""
    covariance: Array
    """(..., *event, *event)."""

    @property
    def _event(self) -> tuple[int, ...]:
        return self.mean.shape[2 * self.mean.ndim - self.covariance.ndim :]

    @property
    def _matrix(self) -> Array:
        """The covariance as matrices, (..., size, size)."""
        size = math.prod(self._event)
        before = self.mean.shape[: self.mean.ndim - len(self._event)]
        return self.covariance.reshape(*before, size, size)

    @property
    def variance(self) -> Array:
        """The variance of each number, of the shape of ``mean``."""
        return snp.diagonal(self._matrix, axis1=-2, axis2=-1).reshape(self.mean.shape)

    @property
    def std(self) -> Array:
        """The standard deviation of each number, of the shape of ``mean``."""
        return snp.sqrt(self.variance)

    def sample(self, key: Key, n: int) -> Array:
        """Draw from each distribution.

        Args:
            key: the key of the draws.
            n: how many.

        Returns:
            (n, ..., *event).

        >>> import stretto as st, stretto.numpy as snp
        >>> Gaussian(snp.zeros(2), snp.eye(2)).sample(st.random.key(0), 5).shape
        (5, 2)
        """
        at_least(1, n, "Gaussian.sample", "draw")
        root = root_of(self._matrix)
        z = random.normal(key, (n, *root.shape[:-1]), root.dtype)
        return self.mean + (root @ z[..., None])[..., 0].reshape(n, *self.mean.shape)

    def log_density(self, y: ArrayLike) -> Array:
        """Return the logarithm of the density at ``y``.

        Args:
            y: (..., *event), of the shape of ``mean`` or one that it is broadcast to.

        Returns:
            (...), NaN where a covariance is singular.

        >>> import stretto.numpy as snp
        >>> round(float(Gaussian(snp.zeros(1), snp.eye(1)).log_density(0.0)), 4)  # -log(2π) / 2
        -0.9189
        """
        size = math.prod(self._event)
        difference = at_least_float32(y, "Gaussian.log_density", "y") - self.mean
        lower = root_of(self._matrix)
        left = difference.reshape(*difference.shape[: difference.ndim - len(self._event)], size)
        diagonal = snp.diagonal(lower, axis1=-2, axis2=-1)
        diagonal = snp.where(diagonal > 0, diagonal, np.nan)

        def solve(left: Array, j: Array) -> tuple[Array, Array]:
            """Return what is left of R w = d after an element of w, and the element."""
            w = snp.take(left, j, -1) / snp.take(diagonal, j, -1)
            return left - snp.take(lower, j, -1) * w[..., None], w

        _, white = lax.scan(solve, left, snp.arange(size))
        half = snp.sum(snp.log(diagonal), -1)
        return -snp.sum(snp.square(white), 0) / 2 - half - size / 2 * math.log(2 * math.pi)

    def mixture(self) -> Gaussian:
        """Return the Gaussian with the mean and covariance of the equal mixture along axis 0.

        The mean of the means; and the mean of the covariances plus the covariance of the means.

        Returns:
            Distributions of one axis less.

        Raises:
            ValueError: there is no axis beside those of the event.

        >>> import stretto.numpy as snp
        >>> two = Gaussian(snp.array([[0.0], [2.0]]), snp.array([[[1.0]], [[3.0]]]))
        >>> two.mixture().mean, two.mixture().variance
        (Array([1.], dtype=float32), Array([3.], dtype=float32))
        """
        if self.mean.ndim == len(self._event):
            raise ValueError(
                f"Gaussian.mixture: expected members along axis 0, got one distribution over "
                f"{self._event}"
            )
        mean = snp.mean(self.mean, 0)
        away = (self.mean - mean).reshape(*self._matrix.shape[:-1], 1)
        matrix = snp.mean(self._matrix + away * snp.swapaxes(away, -1, -2), 0)
        return Gaussian(mean, matrix.reshape(self.covariance.shape[1:]))

    def with_noise(self, variance: ArrayLike) -> Gaussian:
        """Return the distributions with independent noise added to each number.

        Args:
            variance: that of the noise, of a shape that is broadcast to that of ``mean``.

        Returns:
            Distributions of the same means.

        >>> import stretto.numpy as snp
        >>> Gaussian(snp.zeros(2), snp.eye(2)).with_noise(3.0).variance
        Array([4., 4.], dtype=float32)
        """
        matrix = self._matrix
        own = snp.broadcast_to(variance, self.mean.shape).reshape(matrix.shape[:-1])
        eye = snp.eye(matrix.shape[-1], dtype=matrix.dtype)
        return Gaussian(self.mean, (matrix + own[..., None] * eye).reshape(self.covariance.shape))

    def part(self, index: int) -> Gaussian:
        """Return the distributions of one entry along the last axis of the event.

        Args:
            index: which entry.

        Returns:
            Distributions over an event of one axis less.

        >>> import stretto.numpy as snp
        >>> Gaussian(snp.array([1.0, 2.0]), snp.eye(2)).part(1).mean
        Array(2., dtype=float32)
        """
        first = self.mean.ndim - 1  # the last axis of the event, where it stands first
        matrix = snp.take(snp.take(self.covariance, index, -1), index, first)
        return Gaussian(self.mean[..., index], matrix)


def root_of(matrix: Array) -> Array:
    """Return the lower triangular R with R Rᵀ the matrix, which may be singular.

    Cholesky's method, with a column of zeros where what is left of a diagonal is rounding;
    LAPACK's has NaN for singular matrices.
    """
    size = matrix.shape[-1]
    rows = snp.arange(size)
    least = size * float(np.finfo(matrix.dtype).eps) * snp.diagonal(matrix, axis1=-2, axis2=-1)

    def column(left: Array, j: Array) -> tuple[Array, Array]:
        """Return what is left of the matrix after a column of R, and the column."""
        own = snp.take(left, j, -1)
        pivot = snp.take(own, j, -1)
        some = pivot > snp.take(least, j, -1)
        scale = snp.where(some, 1 / snp.sqrt(snp.where(some, pivot, 1)), 0)
        own = snp.where(rows >= j, own * scale[..., None], 0)
        return left - own[..., :, None] * own[..., None, :], own

    _, columns = lax.scan(column, matrix, rows)
    return snp.moveaxis(columns, 0, -1)


def mean_over_draws(
    draw: Callable[[Key], Array], function: Callable[[Array], Array], key: Key, samples: int
) -> Array:
    """Return the mean of a function of draws, one at a time: memory does not grow with them."""
    keys = random.split(key, samples)
    first = function(draw(keys[0]))

    def add(total: Array, key: Key) -> tuple[Array, None]:
        return total + function(draw(key)), None

    total, _ = lax.scan(add, first, keys[1:])
    return total / samples


def log_mean_over_draws(
    draw: Callable[[Key], Array], function: Callable[[Array], Array], key: Key, samples: int
) -> Array:
    """Return the logarithm of the mean of e^f of draws, one at a time."""
    keys = random.split(key, samples)

    def add(total: Array, key: Key) -> tuple[Array, None]:
        return snp.logaddexp(total, function(draw(key))), None

    total, _ = lax.scan(add, function(draw(keys[0])), keys[1:])
    return total - math.log(samples)


def probit(mean: Array, variance: Array) -> Array:
    """Return logits divided by √(1 + π/8 σ²), for the link (MacKay, 1992; Gibbs, 1998)."""
    return mean / snp.sqrt(1 + math.pi / 8 * variance)


def bridge(mean: Array, covariance: Array) -> Array:
    """Return the mean of the Dirichlet that the Laplace bridge gives (Hobbhahn et al., 2022).

    α_k = (1 − 2/K + e^{μ_k} / K² Σ_l e^{−μ_l}) / Σ_kk of K logits, (..., K), whose sum was made 0,
    as the bridge needs it: by conditioning the Gaussian on that.
    """
    classes = mean.shape[-1]
    row = snp.sum(covariance, -1)
    total = snp.sum(row, -1, keepdims=True)
    mean = mean - row * snp.sum(mean, -1, keepdims=True) / total
    variance = snp.diagonal(covariance, axis1=-2, axis2=-1) - snp.square(row) / total
    # α is divided by the largest e^{μ_k} Σ_l e^{−μ_l}, which overflows in float32 at 89.
    logs = mean + logsumexp(-mean, -1, keepdims=True)
    most = snp.max(logs, -1, keepdims=True)
    alpha = ((1 - 2 / classes) * snp.exp(-most) + snp.exp(logs - most) / classes**2) / variance
    return alpha / snp.sum(alpha, -1, keepdims=True)
