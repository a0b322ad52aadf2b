"""Bayesian linear regression in closed form, with its evidence: a last layer on fixed features.

y = φᵀw + ε for each output, with w ~ N(0, I/α) and ε ~ N(0, σ²): ``prior_precision`` is α, and
``noise`` the deviation σ. All follows from the singular values of the features: the posterior, its
predictions, and the evidence (Bishop, "Pattern recognition and machine learning", 2006, sections
3.3 and 3.5), for any α and σ without another decomposition.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.derivatives import grad
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto.ensemble.gaussian import Gaussian
from stretto.ensemble.score_arguments import at_least_float32, concrete

__all__ = ["BayesianRegression", "fit_bayesian_regression"]

_REACH = math.log(1e12)
"""How far from the mean squared singular value the ratio ασ² is looked for, up and down."""
_GRID = 129


@register_dataclass
@dataclass(frozen=True)
class BayesianRegression:
    """The posterior of a linear regression's weights, to predict with: an immutable tree.

    >>> x, y = snp.array([[1.0], [2.0]]), snp.array([1.0, 3.0])
    >>> fitted = fit_bayesian_regression(x, y, prior_precision=1.0, noise=1.0)
    >>> round(float(fitted.weights[0]), 4), round(float(fitted.covariance[0, 0]), 4)
    (1.1667, 0.1667)
    """

    directions: Array
    """(rank, features): the right singular vectors of the features."""
    singular_values: Array
    """(rank,), falling; rank is the lesser of examples and features."""
    coefficients: Array
    """(rank, outputs): the targets along the left singular vectors."""
    residual: Array
    """(outputs,): the squared length of what no weights explain."""
    prior_precision: Array
    """(outputs,): α."""
    noise: Array
    """(outputs,): σ, a standard deviation."""
    examples: int = field(metadata={"static": True})
    """How many it was fitted to."""
    has_outputs: bool = field(metadata={"static": True})
    """Whether targets had an axis of outputs, and results have."""

    @property
    def weights(self) -> Array:
        """The weights' posterior mean, (features, outputs) or (features,)."""
        squares, noise = self._squares()
        shrunk = self.singular_values[:, None] * self.coefficients
        shrunk = shrunk / (squares + self.prior_precision * snp.square(noise))
        return self._fit_axes(self.directions.T @ shrunk, -1)

    @property
    def covariance(self) -> Array:
        """The weights' posterior covariance, (outputs, features, features) or one matrix."""
        known = self.directions.T[None] * (self._variances().T)[:, None] @ self.directions
        rank, features = self.directions.shape
        if rank < features:
            outside = snp.eye(features, dtype=known.dtype) - self.directions.T @ self.directions
            known = known + outside / self.prior_precision[:, None, None]
        return self._fit_axes(known, 0)

    @property
    def effective_parameters(self) -> Array:
        """How many weights the data determine, γ, (outputs,) or ()."""
        squares, noise = self._squares()
        ratio = self.prior_precision * snp.square(noise)
        return self._fit_axes(snp.sum(squares / (squares + ratio), axis=0), -1)

    def predict(self, features: ArrayLike, noise: bool = False) -> Gaussian:
        """Predict targets, with the variance of their mean.

        Args:
            features: (..., features).
            noise: add σ² to the variance, for that of new targets.

        Returns:
            A distribution for each number, since outputs are independent: mean and variance are
                (..., outputs), or (...) where targets were (examples,).

        Raises:
            ValueError: the last axis of ``features`` has another size.
        """
        x = at_least_float32(features, "BayesianRegression.predict", "features")
        rank, size = self.directions.shape
        if not x.ndim or x.shape[-1] != size:
            raise ValueError(
                f"BayesianRegression.predict: expected features of shape (..., {size}), got "
                f"{x.shape}"
            )
        along = x @ self.directions.T
        weights = self.weights if self.has_outputs else self.weights[:, None]
        variance = snp.square(along) @ self._variances()
        if rank < size:
            # The rest's own length: a difference of two lengths would lose its digits.
            rest = snp.sum(snp.square(x - along @ self.directions), axis=-1, keepdims=True)
            variance = variance + rest @ (1 / self.prior_precision)[None]
        if noise:
            variance = variance + snp.square(self.noise)
        return Gaussian(self._fit_axes(x @ weights, -1), self._fit_axes(variance, -1))

    def log_marginal_likelihood(
        self, prior_precision: ArrayLike | None = None, noise: ArrayLike | None = None
    ) -> Array:
        """Return the log evidence, log p(targets | features), in nats, differentiable.

        That of the Gaussian process with covariance σ²I + ΦΦᵀ/α.

        Args:
            prior_precision: α, a number or (outputs,); by default that of the fit.
            noise: σ, likewise.

        Returns:
            (outputs,), whose sum is that of all targets; or () where targets were (examples,).
        """
        alpha = self.prior_precision if prior_precision is None else prior_precision
        sigma = self.noise if noise is None else noise
        outputs, dtype = self.residual.shape, self.residual.dtype
        alpha = snp.broadcast_to(snp.asarray(alpha).astype(dtype), outputs)
        sigma = snp.broadcast_to(snp.asarray(sigma).astype(dtype), outputs)
        squares = snp.square(self.singular_values)
        value = vmap(_log_evidence, (None, 1, 0, None, 0, 0))(
            squares,
            self.coefficients,
            self.residual,
            self.examples,
            snp.log(alpha * snp.square(sigma)),
            2 * snp.log(sigma),
        )
        return self._fit_axes(value, -1)

    def _squares(self) -> tuple[Array, Array]:
        return snp.square(self.singular_values)[:, None], self.noise

    def _variances(self) -> Array:
        """Return the weights' posterior variances along the directions, (rank, outputs)."""
        squares, noise = self._squares()
        return 1 / (self.prior_precision + squares / snp.square(noise))

    def _fit_axes(self, x: Array, axis: int) -> Array:
        return x if self.has_outputs else snp.squeeze(x, axis)


def fit_bayesian_regression(
    features: ArrayLike,
    targets: ArrayLike,
    *,
    prior_precision: ArrayLike | Literal["evidence"] = "evidence",
    noise: ArrayLike | Literal["evidence"] = "evidence",
) -> BayesianRegression:
    """Fit a Bayesian linear regression to features, such as those before a network's last layer.

    Each output has its own α and σ, and all share one singular value decomposition. What is
    ``"evidence"`` maximizes the evidence (MacKay, 1992), which has one unknown left, the ratio ασ²:
    the best of a grid over 24 decades, then bisected to rounding. Where the optimum is at infinity,
    as for targets that features say nothing of, it is the grid's end.

    An ensemble's features, stacked along axis 0, are fitted at once:
    ``st.vmap(fit_bayesian_regression, (0, None))(features, targets)``. There is no bias: append a
    column of ones to the features for one. α and σ that were found are constants to ``grad``; at
    their maximum the derivative of the evidence by the features is whole all the same.

    Args:
        features: (examples, features).
        targets: (examples,) or (examples, outputs).
        prior_precision: α, a number or (outputs,), or ``"evidence"``.
        noise: σ, the standard deviation of targets, likewise.

    Returns:
        A ``BayesianRegression``: ``predict``, ``weights``, ``covariance`` and
        ``log_marginal_likelihood``.

    Raises:
        ValueError: shapes do not match, there are no examples, or α or σ that is not traced is not
            positive.

    >>> x, y = snp.array([[1.0], [2.0]]), snp.array([1.0, 3.0])
    >>> fitted = fit_bayesian_regression(x, y, prior_precision=1.0, noise=1.0)
    >>> out = fitted.predict(snp.array([[3.0]]))  # the weight is 7/6, its variance 1/6
    >>> out.mean.round(4).tolist(), out.variance.round(4).tolist()
    ([3.5], [1.5])
    """
    caller = "fit_bayesian_regression"
    x = at_least_float32(features, caller, "features")
    y = at_least_float32(targets, caller, "targets")
    if x.ndim != 2 or y.ndim not in (1, 2) or x.shape[0] != y.shape[0] or not all(x.shape):
        raise ValueError(
            f"{caller}: expected features of shape (examples, features) and targets of shape "
            f"(examples,) or (examples, outputs), of at least one example; got {x.shape} and "
            f"{y.shape}"
        )
    dtype = np.promote_types(x.dtype, y.dtype)
    x, y = x.astype(dtype), y.astype(dtype)
    has_outputs = y.ndim == 2
    y = y if has_outputs else y[:, None]
    alpha = _setting(caller, "prior_precision", prior_precision, y)
    sigma = _setting(caller, "noise", noise, y)
    left, values, directions = snp.linalg.svd(x, full_matrices=False)
    coefficients = left.T @ y
    residual = snp.sum(snp.square(y - left @ coefficients), axis=0)
    if alpha is None or sigma is None:
        alpha, sigma = _maximize(values, coefficients, residual, y.shape[0], alpha, sigma)
    return BayesianRegression(
        directions, values, coefficients, residual, alpha, sigma, y.shape[0], has_outputs
    )


def _setting(caller: str, name: str, value: ArrayLike | str, targets: Array) -> Array | None:
    """Return α or σ of each output, or ``None`` where the evidence is to choose."""
    if isinstance(value, str):
        if value != "evidence":
            raise ValueError(f"{caller}: {name} must be a number or 'evidence', got {value!r}")
        return None
    given = snp.asarray(value).astype(targets.dtype)
    if given.ndim > 1 or (given.ndim and given.shape[0] not in (1, targets.shape[1])):
        raise ValueError(
            f"{caller}: expected {name} that is a number or of shape ({targets.shape[1]},), one "
            f"for each output; got {given.shape}"
        )
    values = concrete(given)
    if values is not None and not (values > 0).all():
        raise ValueError(f"{caller}: {name} must be positive, got {values.min()}")
    return snp.broadcast_to(given, targets.shape[1:])


def _log_evidence(
    squares: Array,
    coefficients: Array,
    residual: Array,
    examples: int,
    log_ratio: Array,
    log_variance: Array | None,
) -> Array:
    """Return the evidence for one output by log ασ² and log σ², or the best σ² for that ratio.

    With s the singular values and c the coefficients, yᵀ(I + ΦΦᵀ/(ασ²))⁻¹y is
    r + Σ c² ασ² / (ασ² + s²), and log|I + ΦΦᵀ/(ασ²)| is Σ log(1 + s²/(ασ²)).
    """
    ratio = snp.exp(log_ratio)
    quadratic = _quadratic(squares, coefficients, residual, ratio)
    if log_variance is None:
        log_variance = snp.log(quadratic / examples)
    fit = quadratic * snp.exp(-log_variance)
    determinant = snp.sum(snp.log1p(squares / ratio))
    return -(examples * (math.log(2 * math.pi) + log_variance) + determinant + fit) / 2


def _quadratic(squares: Array, coefficients: Array, residual: Array, ratio: Array) -> Array:
    return residual + snp.sum(snp.square(coefficients) * (ratio / (ratio + squares)))


def _maximize(
    values: Array,
    coefficients: Array,
    residual: Array,
    examples: int,
    alpha: Array | None,
    sigma: Array | None,
) -> tuple[Array, Array]:
    """Return α and σ of each output, (outputs,), with the greatest evidence; one may be given."""
    squares = snp.square(stop_gradient(values))
    mean = snp.mean(squares)
    middle = snp.log(snp.where(mean > 0, mean, 1))
    grid = middle + snp.linspace(-_REACH, _REACH, _GRID, dtype=values.dtype)

    def one(c: Array, r: Array, alpha: Array | None, sigma: Array | None) -> tuple[Array, Array]:
        def log_variance(log_ratio: Array) -> Array | None:
            if sigma is not None:
                return 2 * snp.log(sigma)
            return log_ratio - snp.log(alpha) if alpha is not None else None

        def evidence(log_ratio: Array) -> Array:
            return _log_evidence(squares, c, r, examples, log_ratio, log_variance(log_ratio))

        best = snp.argmax(vmap(evidence)(grid))
        ends = grid[snp.clip(best - 1, 0, _GRID - 1)], grid[snp.clip(best + 1, 0, _GRID - 1)]
        slope = grad(evidence)

        def halve(_: Array, ends: tuple[Array, Array]) -> tuple[Array, Array]:
            low, high = ends
            half = (low + high) / 2
            rises = slope(half) > 0
            return snp.where(rises, half, low), snp.where(rises, high, half)

        low, high = lax.fori_loop(0, 50, halve, ends)
        log_ratio = (low + high) / 2
        known = log_variance(log_ratio)
        if known is None:
            known = snp.log(_quadratic(squares, c, r, snp.exp(log_ratio)) / examples)
        return snp.exp(log_ratio - known), snp.exp(known / 2)

    axes = (1, 0, None if alpha is None else 0, None if sigma is None else 0)
    given = (None if x is None else stop_gradient(x) for x in (alpha, sigma))
    found = vmap(one, axes)(stop_gradient(coefficients), stop_gradient(residual), *given)
    # What was given stays so, to the bit, and for derivatives.
    return (
        stop_gradient(found[0]) if alpha is None else alpha,
        stop_gradient(found[1]) if sigma is None else sigma,
    )
