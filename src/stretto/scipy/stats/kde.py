"""Densities estimated from samples."""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.tree import register_pytree_node_class
from stretto._engine.core.typing import Array, ArrayLike, Key, ShapeLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.linalg.triangular import triangular_solve
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import square
from stretto.numpy.elementary import exp, log, sqrt
from stretto.numpy.linalg.factorisations import cholesky
from stretto.numpy.linalg.systems import inv
from stretto.numpy.manipulation import atleast_1d, atleast_2d
from stretto.numpy.reductions import sum as sum_
from stretto.random.discrete import choice
from stretto.random.distributions import normal
from stretto.random.keys import split
from stretto.special import logsumexp, ndtr

__all__ = ["gaussian_kde"]


@register_pytree_node_class
class gaussian_kde:
    """A density estimate by a Gaussian around each sample.

    An estimate is a tree of arrays, and passes through transformations.

    Args:
        dataset: the samples, ``[dimensions, samples]`` or ``[samples]``.
        bw_method: the factor that multiplies the root of the samples' covariance: ``"scott"``, the
            default, ``"silverman"``, a number, or a function of the estimate.
        weights: the weights of the samples, ``[samples]``; by default equal.

    Raises:
        ValueError: there is no more than one sample, the weights have another shape, or there is no
            such ``bw_method``.

    As SciPy's ``gaussian_kde``.

    >>> import stretto.numpy as snp
    >>> from stretto.scipy.stats import gaussian_kde
    >>> density = gaussian_kde(snp.array([0.0, 1.0, 2.0]))
    >>> density.integrate_box_1d(-50.0, 1.0).round(4)
    Array(0.5, dtype=float32)
    """

    def __init__(self, dataset: Any, bw_method: Any = None, weights: Any = None) -> None:
        data = atleast_2d(*inexact_values("gaussian_kde", dataset=dataset))
        if data.size <= 1:
            raise ValueError(f"gaussian_kde: expected more than one sample, got {data.type}")
        n = data.shape[1]
        if weights is None:
            weights = broadcast_to(as_value(1 / n).astype(data.dtype), (n,))
        else:
            weights = atleast_1d(as_value(weights, "gaussian_kde", "weights")).astype(data.dtype)
            if weights.shape != (n,):
                raise ValueError(
                    f"gaussian_kde: expected weights of shape ({n},), got {weights.type}"
                )
            weights = weights / sum_(weights)
        self.dataset, self.weights = data, weights
        self.neff = 1 / sum_(square(weights))
        self.factor = self._bandwidth(bw_method)
        mean = sum_(data * weights, 1, keepdims=True)
        gap = data - mean
        # the unbiased estimate with weights: over 1 - Σ w²
        covariance = matmul(gap * weights, gap.T) / (1 - sum_(square(weights)))
        self.covariance = covariance * square(self.factor)

    def _bandwidth(self, method: Any) -> Any:
        if method is None or method == "scott":
            return self.scotts_factor()
        if isinstance(method, str):
            if method != "silverman":
                raise ValueError(
                    f"gaussian_kde: bw_method must be 'scott', 'silverman', a number or a "
                    f"function, got {method!r}"
                )
            return self.silverman_factor()
        return method(self) if callable(method) else as_value(method, "gaussian_kde", "bw_method")

    def scotts_factor(self) -> Array:
        """Compute Scott's bandwidth: n^(-1/(d + 4)) of the effective number of samples.

        Returns:
            The factor, a scalar.
        """
        return self.neff ** (-1 / (self.d + 4))

    def silverman_factor(self) -> Array:
        """Compute Silverman's bandwidth: (n (d + 2) / 4)^(-1/(d + 4)).

        Returns:
            The factor, a scalar.
        """
        return (self.neff * (self.d + 2) / 4) ** (-1 / (self.d + 4))

    @property
    def d(self) -> int:
        """The number of dimensions."""
        return self.dataset.shape[0]

    @property
    def n(self) -> int:
        """The number of samples."""
        return self.dataset.shape[1]

    @property
    def inv_cov(self) -> Array:
        """The inverse of the kernel's covariance."""
        return inv(self.covariance)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Give its arrays, as a node of trees.

        Returns:
            The arrays, and None.
        """
        return (self.dataset, self.weights, self.neff, self.factor, self.covariance), None

    @classmethod
    def tree_unflatten(cls, _: None, children: tuple[Any, ...]) -> gaussian_kde:
        """Make an estimate of these arrays.

        Args:
            children: the arrays, as ``tree_flatten`` gives them.

        Returns:
            The estimate.
        """
        made = object.__new__(cls)
        made.dataset, made.weights, made.neff, made.factor, made.covariance = children
        return made

    def _points(self, points: Any, caller: str) -> Any:
        points = atleast_2d(*inexact_values(f"gaussian_kde.{caller}", points=points))
        if points.shape[0] == 1 and points.shape[1] == self.d and self.d > 1:
            points = points.T
        if points.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde.{caller}: expected points of {self.d} dimensions, got {points.type}"
            )
        return points.astype(self.dataset.dtype)

    def _log_kernels(self, points: Any, covariance: Any) -> Any:
        """The log density of each sample's Gaussian (rows) at each point (columns)."""
        factor = cholesky(covariance)
        white = [
            triangular_solve(factor, v, left_side=True, lower=True) for v in (self.dataset, points)
        ]
        gap = reshape(white[0], (self.d, self.n, 1)) - reshape(white[1], (self.d, 1, -1))
        spread = sum_(log(factor.diagonal()))
        return -sum_(square(gap), 0) / 2 - self.d * math.log(2 * math.pi) / 2 - spread

    def logpdf(self, x: ArrayLike) -> Array:
        """Compute the logarithm of the density.

        Args:
            x: the points, ``[dimensions, points]``.

        Returns:
            The logarithms, ``[points]``.

        Raises:
            ValueError: the points have another number of dimensions.
        """
        points = self._points(x, "logpdf")
        kernels = self._log_kernels(points, self.covariance)
        return logsumexp(kernels, axis=0, b=reshape(self.weights, (-1, 1)))

    def pdf(self, x: ArrayLike) -> Array:
        """Compute the density.

        Args:
            x: the points, ``[dimensions, points]``.

        Returns:
            The density at each, ``[points]``.

        Raises:
            ValueError: the points have another number of dimensions.
        """
        return exp(self.logpdf(x))

    def evaluate(self, points: ArrayLike) -> Array:
        """Compute the density, as ``pdf`` does.

        Args:
            points: the points, ``[dimensions, points]``.

        Returns:
            The density at each, ``[points]``.

        Raises:
            ValueError: the points have another number of dimensions.
        """
        return self.pdf(points)

    __call__ = evaluate

    def integrate_gaussian(self, mean: Any, cov: Any) -> Any:
        """Integrate the density times a Gaussian.

        Args:
            mean: the mean of the Gaussian, ``[dimensions]``.
            cov: its covariance, ``[dimensions, dimensions]``.

        Returns:
            The integral, a scalar.

        Raises:
            ValueError: ``mean`` or ``cov`` has another shape.
        """
        mean, cov = atleast_1d(as_value(mean)), atleast_2d(as_value(cov))
        if mean.shape != (self.d,) or cov.shape != (self.d, self.d):
            raise ValueError(
                f"gaussian_kde.integrate_gaussian: expected mean [{self.d}] and cov "
                f"[{self.d}, {self.d}], got {mean.type} and {cov.type}"
            )
        point = self._points(reshape(mean, (-1, 1)), "integrate_gaussian")
        kernels = self._log_kernels(point, self.covariance + cov.astype(self.dataset.dtype))
        return sum_(exp(kernels[:, 0]) * self.weights)

    def integrate_box_1d(self, low: Any, high: Any) -> Any:
        """Compute the probability of an interval, for samples of one dimension.

        Args:
            low: its lower end, a number.
            high: its upper end, a number.

        Returns:
            The probability, a scalar.

        Raises:
            ValueError: the samples have more than one dimension, or an end is not a number.
        """
        if self.d != 1:
            raise ValueError(f"integrate_box_1d: the samples have {self.d} dimensions, not one")
        low, high = promote_values("integrate_box_1d", low, high, inexact=True)
        if low.ndim:
            raise ValueError(f"integrate_box_1d: expected two numbers, got shape {low.shape}")
        width = sqrt(self.covariance[0, 0])
        ends = [(end.astype(width.dtype) - self.dataset[0]) / width for end in (low, high)]
        return sum_(self.weights * (ndtr(ends[1]) - ndtr(ends[0])))

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Integrate the product of two estimates.

        Args:
            other: an estimate of as many dimensions.

        Returns:
            The integral, a scalar.

        Raises:
            ValueError: the dimensions differ.
        """
        if other.d != self.d:
            raise ValueError(f"integrate_kde: the estimates have {self.d} and {other.d} dimensions")
        kernels = self._log_kernels(other.dataset, self.covariance + other.covariance)
        return matmul(matmul(self.weights, exp(kernels)), other.weights)

    def resample(self, key: Key, shape: ShapeLike = ()) -> Array:
        """Draw samples from the estimate.

        Args:
            key: the key.
            shape: how many; by default one.

        Returns:
            The samples, ``[dimensions, *shape]``.
        """
        which, where_ = split(key)
        index = choice(which, self.n, shape, p=self.weights)
        noise = normal(where_, (self.d, *index.shape), self.dataset.dtype)
        factor = cholesky(self.covariance)
        flat = matmul(factor, reshape(noise, (self.d, -1)))
        return self.dataset[:, index] + reshape(flat, noise.shape)

    def integrate_box(self, low_bounds: Any, high_bounds: Any, maxpts: Any = None) -> Any:
        """Refuse: there is no integral of several dimensions here.

        Args:
            low_bounds: not used.
            high_bounds: not used.
            maxpts: not used.

        Returns:
            Nothing: it always raises.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.integrate_box: not available; use integrate_box_1d for one dimension, or "
            "average over resample()"
        )

    def set_bandwidth(self, bw_method: Any = None) -> Any:
        """Refuse: estimates do not change.

        Args:
            bw_method: not used.

        Returns:
            Nothing: it always raises.

        Raises:
            NotImplementedError: always.
        """
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: estimates are immutable; make another with bw_method="
        )
