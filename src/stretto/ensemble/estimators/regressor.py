"""``EnsembleRegressor``: an ensemble of networks as a regressor of scikit-learn."""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Literal, Self, overload

import numpy as np
from scipy import special

import stretto.numpy as snp
from stretto import nn
from stretto._engine.core.functions import described_like
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto.curvature.likelihoods import Likelihood, likelihood_of
from stretto.ensemble.conformal import (
    ConformalIntervals,
    fit_conformal_intervals,
    fit_variance_scaling,
)
from stretto.ensemble.estimators import estimator
from stretto.ensemble.estimators.estimator import (
    EnsembleEstimator,
    Examples,
    RegressorMixin,
    Scale,
    merge_equal_rows,
    scale_of,
    utils,
    validation,
)
from stretto.nn.module import Module

__all__ = ["EnsembleRegressor"]

_FEW = 9
"""Rows from which intervals of a coverage of 0.9 are finite: ⌈(n + 1) 0.9⌉ is at most n."""
_LOSSES = ("gaussian_nll", "squared_error")


@described_like(EnsembleEstimator)
class EnsembleRegressor(RegressorMixin, EnsembleEstimator):
    """An ensemble of networks that predict numbers, with their uncertainty, from rows of a table.

    Columns and targets are standardized inside, and predictions are in the units of the targets.
    With ``loss="gaussian_nll"`` each member predicts a mean and a variance (Nix and Weigend, 1994),
    so that the noise may differ from row to row; the ensemble is the mixture of their Gaussians
    (Lakshminarayanan et al., 2017): its mean is the mean of the means, its variance the mean of the
    variances plus the variance of the means. With ``"squared_error"`` they predict means alone, and
    the variance of the noise is the mean squared error on the rows that they were trained on, the
    same for all: too little where members have learnt these by heart, which ``calibrate`` mends.

    Args:
        model: a function ``model(key, inputs, outputs)`` that makes a module, instead of
            perceptrons; it maps (rows, inputs) to (rows, outputs): for each target a mean and, with
            ``"gaussian_nll"``, after all means for each a number whose softplus is the variance.
        loss: ``"gaussian_nll"`` or ``"squared_error"``.
        standardize: subtract the mean of each column and target, and divide by its standard
            deviation.

    Rows are weighted and merged as in ``EnsembleClassifier``. Fitted, it has ``n_features_in_``
    and, of a table with names, ``feature_names_in_`` as all regressors; ``ensemble_``, the members
    as a ``stretto.Ensemble``; ``history_``, their losses by epoch; and ``x_scale_`` and
    ``y_scale_``.

    >>> import numpy as np
    >>> from stretto.ensemble import EnsembleRegressor
    >>> x = np.linspace(-1, 1, 200)[:, None]
    >>> y = 100 + 10 * x[:, 0] + np.random.default_rng(0).normal(size=200)
    >>> model = EnsembleRegressor(4, hidden=(16,), random_state=0).fit(x, y)
    >>> mean, std = model.predict([[0.5]], return_std=True)
    >>> bool(abs(mean[0] - 105) < 1), bool(0.5 < std[0] < 2)
    (True, True)
    >>> mean, lower, upper = model.predict(x, return_interval=0.9)
    >>> bool(0.8 < ((lower < y) & (y < upper)).mean() < 1)
    True
    """

    _kept: ClassVar[tuple[str, ...]] = (
        *EnsembleEstimator._kept,
        "noise_",
        "variance_factor_",
        "scores_",
    )

    noise_: np.ndarray
    variance_factor_: np.ndarray
    scores_: np.ndarray
    _one: bool

    def __init__(
        self,
        n_members: int = 10,
        *,
        hidden: Sequence[int] = (64, 64),
        activation: str = "relu",
        dropout: float = 0.0,
        model: Callable[[Key, int, int], Module] | None = None,
        loss: str = "gaussian_nll",
        optimizer: str | Callable[..., Any] = "adamw",
        learning_rate: float = 3e-3,
        optimizer_options: Mapping[str, Any] | None = None,
        epochs: int = 100,
        batch_size: int = 64,
        order: str = "own",
        early_stopping: bool | str = "auto",
        validation_fraction: float = 0.1,
        patience: int = 10,
        standardize: bool = True,
        posterior: str | None = None,
        chunk_size: int | None = None,
        random_state: int | np.random.RandomState | None = None,
    ) -> None:
        super().__init__(
            n_members,
            hidden=hidden,
            activation=activation,
            dropout=dropout,
            model=model,
            optimizer=optimizer,
            learning_rate=learning_rate,
            optimizer_options=optimizer_options,
            epochs=epochs,
            batch_size=batch_size,
            order=order,
            early_stopping=early_stopping,
            validation_fraction=validation_fraction,
            patience=patience,
            standardize=standardize,
            posterior=posterior,
            chunk_size=chunk_size,
            random_state=random_state,
        )
        self.loss = loss

    def __sklearn_tags__(self) -> Tree:
        """Return what scikit-learn's tools ask of an estimator: it takes several targets."""
        tags = super().__sklearn_tags__()
        tags.target_tags.multi_output = True
        return tags

    def _check(self) -> None:
        super()._check()
        if self.loss not in _LOSSES:
            raise ValueError(
                f"EnsembleRegressor: loss must be 'gaussian_nll' or 'squared_error', got "
                f"{self.loss!r}"
            )

    def _loss(self) -> Callable[..., Any]:
        return estimator.gaussian if self.loss == "gaussian_nll" else estimator.squares

    def _outputs(self) -> int:
        return len(self.y_scale_.mean) * (2 if self.loss == "gaussian_nll" else 1)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return self.y_scale_(y)

    def _likelihood(self) -> Likelihood:
        return likelihood_of("gaussian") if self.loss == "squared_error" else _MEAN_AND_SOFTPLUS

    def _noise(self, found: Examples) -> float | None:
        if self.loss != "squared_error":
            return None
        errors = np.square(self._raw(found.x).mean(axis=0) - self.y_scale_(found.y))
        return float(np.sqrt(np.average(errors.mean(axis=1), weights=found.weights)))

    def _scale_of_targets(self, found: Examples) -> Scale:
        return scale_of(found.y, found.weights, self.standardize)

    def fit(self, X: Tree, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train new members.

        Args:
            X: (rows, columns), an array or a table of pandas or polars, of finite numbers.
            y: (rows,) or (rows, targets), finite numbers.
            sample_weight: (rows,), at least 0; equal ones by default.

        Returns:
            The estimator itself.

        Raises:
            ValueError: shapes do not match, numbers are not finite, or a parameter is out of range.
            DivergenceError: the loss of a member became infinite or NaN.
        """
        x, targets, weights = self._checked(X, y, sample_weight, True)
        found = merge_equal_rows(x, targets, weights)
        self._uncalibrated(targets)
        self._train(found)
        if self.loss == "squared_error":
            errors = np.square(self._standard(found.x)[0].mean(axis=0) - self.y_scale_(found.y))
            self.noise_ = np.average(errors, axis=0, weights=found.weights)
        return self

    def partial_fit(self, X: Tree, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Go through more rows once, with the members that there are; none is stopped early.

        Args:
            X: (rows, columns). The first call learns from them and from ``y`` what columns and
                targets are standardized by.
            y: (rows,) or (rows, targets).
            sample_weight: (rows,), factors of the losses.

        Returns:
            The estimator itself.

        Raises:
            ValueError: as in ``fit``.
        """
        first = not hasattr(self, "ensemble_")
        x, targets, weights = self._checked(X, y, sample_weight, first)
        if first:
            self._uncalibrated(targets)
        self._train_more(x, targets, weights)
        if self.loss == "squared_error":
            errors = np.square(self._standard(x)[0].mean(axis=0) - self.y_scale_(_columns(targets)))
            self.noise_ = np.average(errors, axis=0, weights=weights)
        return self

    def _checked(
        self, X: Tree, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        x, targets = validation.validate_data(
            self, X, y, dtype=np.float64, multi_output=True, y_numeric=True, reset=reset
        )
        return x, np.asarray(targets, np.float64), self._weights(sample_weight, x)

    def _uncalibrated(self, targets: np.ndarray) -> None:
        """Set noise and variance factors as before ``calibrate``, for targets of this shape."""
        self._one = targets.ndim == 1
        outputs = _columns(targets).shape[1]
        self.noise_ = np.zeros(outputs)
        self.variance_factor_ = np.ones(outputs)
        self.scores_ = np.zeros((0, outputs))

    # Predicting

    def _standard(self, X: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Return members' means and variances, (members, rows, targets), standardized."""
        raw = self._raw(X)
        if self.loss == "squared_error":
            return raw, np.broadcast_to(self.noise_, raw.shape)
        means, numbers = np.split(raw, 2, axis=-1)
        return means, np.logaddexp(0, numbers) + estimator.LEAST_VARIANCE

    def _mixture(self, X: Tree) -> tuple[np.ndarray, np.ndarray]:
        """Return mean and variance of the mixture, (rows, targets), of standardized targets."""
        means, variances = self._standard(X)
        if self.posterior:
            of = lambda x: self.laplace_.predict(x).variance[..., : means.shape[-1]]
            variances = variances + self._in_parts(X, of, 1)
        return means.mean(axis=0), variances.mean(axis=0) + means.var(axis=0)

    def _in_units(self, x: np.ndarray, *, shift: bool = True) -> np.ndarray:
        """Return standardized numbers (..., targets) in the units and the shape of the targets."""
        x = x * self.y_scale_.scale + (self.y_scale_.mean if shift else 0)
        return x[..., 0] if self._one else x

    @overload
    def predict_members(self, X: Tree, return_std: Literal[False] = False) -> np.ndarray: ...
    @overload
    def predict_members(
        self, X: Tree, return_std: Literal[True]
    ) -> tuple[np.ndarray, np.ndarray]: ...
    def predict_members(
        self, X: Tree, return_std: bool = False
    ) -> np.ndarray | tuple[np.ndarray, np.ndarray]:
        """Return the means that each member predicts.

        Args:
            X: (rows, columns).
            return_std: give the standard deviation of the noise that each predicts, too.

        Returns:
            (members, rows), or (members, rows, targets); with ``return_std`` a pair of these. They
                are not changed by ``calibrate``.
        """
        means, variances = self._standard(X)
        if return_std:
            return self._in_units(means), self._in_units(np.sqrt(variances), shift=False)
        return self._in_units(means)

    @overload
    def predict(
        self, X: Tree, return_std: Literal[False] = False, return_interval: None = None
    ) -> np.ndarray: ...
    @overload
    def predict(
        self, X: Tree, return_std: Literal[True], return_interval: None = None
    ) -> tuple[np.ndarray, np.ndarray]: ...
    @overload
    def predict(
        self, X: Tree, return_std: Literal[False] = False, *, return_interval: float
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]: ...
    def predict(
        self, X: Tree, return_std: bool = False, return_interval: float | None = None
    ) -> np.ndarray | tuple[np.ndarray, ...]:
        """Return the mean of the members' predictions, and how far to trust it.

        Args:
            X: (rows, columns).
            return_std: give the standard deviation of the mixture, too: noise, what members
                disagree on and, with ``posterior``, what each does not know.
            return_interval: the coverage of intervals to give, in (0, 1). After ``calibrate`` they
                are conformal, and hold the target with at least that probability; before it, they
                are those of the Gaussian with this mean and standard deviation.

        Returns:
            The mean, (rows,) or (rows, targets); with ``return_std`` (mean, deviation); with
                ``return_interval`` (mean, lower, upper).

        Raises:
            ValueError: ``return_interval`` is out of range, or both are asked for.
        """
        if return_interval is None:
            mean, variance = self._mixture(X)
            deviation = np.sqrt(variance * self.variance_factor_)
            if return_std:
                return self._in_units(mean), self._in_units(deviation, shift=False)
            return self._in_units(mean)
        if return_std:
            raise ValueError(
                "EnsembleRegressor: predict gives return_std or return_interval, not both: call it "
                "for each"
            )
        if not 0 < return_interval < 1:
            raise ValueError(
                f"EnsembleRegressor: return_interval is a coverage in (0, 1), such as 0.9; got "
                f"{return_interval}"
            )
        mean, variance = self._mixture(X)
        if len(self.scores_):
            intervals = ConformalIntervals(snp.asarray(self.scores_))
            lower, upper = intervals(mean, np.sqrt(variance), return_interval)
        else:
            reach = special.ndtri((1 + return_interval) / 2) * np.sqrt(variance)
            lower, upper = mean - reach, mean + reach
        return tuple(self._in_units(np.asarray(x, np.float64)) for x in (mean, lower, upper))

    def function(self, coverage: float = 0.9) -> Callable[[ArrayLike], dict[str, Array]]:
        """Return what the fitted estimator does, as a function of arrays: for ``st.export``.

        Args:
            coverage: that of the intervals, in (0, 1).

        Returns:
            A function of rows, (rows, columns), that gives "mean", "deviation", "lower" and
                "upper", each (rows,) or (rows, targets), as ``predict`` does; and "members",
                (members, rows) or (members, rows, targets).

        Raises:
            ValueError: ``coverage`` is out of range.
            NotFittedError: it was not fitted.
        """
        if not 0 < coverage < 1:
            raise ValueError(
                f"EnsembleRegressor: coverage must be in (0, 1), such as 0.9; got {coverage}"
            )
        raw_of = self._function_of_members()
        noise = snp.asarray(self.noise_, np.float32)
        factor = np.sqrt(self.variance_factor_).astype(np.float32)
        scores = snp.asarray(self.scores_, np.float32)

        def in_units(x: Array, shift: bool = True) -> Array:
            middle, scale = [np.asarray(part, np.float32) for part in self.y_scale_]
            x = x * scale + middle if shift else x * scale
            return x[..., 0] if self._one else x

        def predict(X: ArrayLike) -> dict[str, Array]:
            raw = raw_of(X)
            if self.loss == "squared_error":
                means, variances = raw, snp.broadcast_to(noise, raw.shape)
            else:
                means, numbers = snp.split(raw, 2, axis=-1)
                variances = nn.functional.softplus(numbers) + estimator.LEAST_VARIANCE
            mean, variance = means.mean(0), variances.mean(0) + means.var(0)
            deviation = snp.sqrt(variance)
            if len(scores):
                lower, upper = ConformalIntervals(scores)(mean, deviation, coverage)
            else:
                reach = float(special.ndtri((1 + coverage) / 2)) * deviation
                lower, upper = mean - reach, mean + reach
            return {
                "mean": in_units(mean),
                "deviation": in_units(deviation * factor, shift=False),
                "lower": in_units(lower),
                "upper": in_units(upper),
                "members": in_units(means),
            }

        return predict

    def calibrate(self, X: Tree, y: ArrayLike) -> Self:
        """Fit intervals and variances on rows that the members were not trained on.

        Fewer than 9 rows are too few for intervals of a coverage of 0.9, and come with a warning.
        Intervals become conformal: ``stretto.ensemble.fit_conformal_intervals`` has their
        guarantee. Variances are multiplied by the factor of ``fit_variance_scaling``.

        Args:
            X: (rows, columns).
            y: (rows,) or (rows, targets).

        Returns:
            The estimator itself; ``predict`` gives other deviations and intervals.

        Raises:
            ValueError: shapes do not match, or numbers are not finite.
        """
        mean, variance = self._mixture(X)
        targets = _columns(utils.check_array(y, ensure_2d=False, dtype=np.float64, input_name="y"))
        if targets.shape != mean.shape:
            raise ValueError(
                f"EnsembleRegressor: calibrate expects y with {mean.shape[1]} targets for each of "
                f"{mean.shape[0]} rows, got an array of shape {np.shape(y)}"
            )
        if len(targets) < _FEW:
            warnings.warn(
                f"EnsembleRegressor: calibrate got {len(targets)} rows; intervals of a coverage of "
                f"0.9 need {_FEW} at least, and one of c need c / (1 - c): below they are infinite",
                stacklevel=user_stack_level(),
            )
        errors = self.y_scale_(targets)
        self.variance_factor_ = _plain(fit_variance_scaling(mean, variance, errors).factor)
        self.scores_ = _plain(fit_conformal_intervals(mean, np.sqrt(variance), errors).scores)
        return self


def _of_outputs(f: Array) -> tuple[Array, Array, Array]:
    """Return means, variances, and the slope of these in the numbers that they are made of."""
    means, numbers = snp.split(f, 2)
    variances = nn.functional.softplus(numbers) + estimator.LEAST_VARIANCE
    return means, variances, nn.functional.sigmoid(numbers)


def _softplus_nll(f: Array, y: Array) -> Array:
    means, variances, _ = _of_outputs(f)
    logs = snp.log(2 * math.pi * variances)
    return snp.sum(logs + snp.square(y - means) / variances) / 2


def _softplus_root(f: Array, y: object) -> Array:
    """Return the root of the Fisher information, 1/v of a mean and v'² / 2v² of its variance v."""
    _, variances, slope = _of_outputs(f)
    return snp.diag(snp.concatenate([variances**-0.5, slope / variances * math.sqrt(0.5)]))


_MEAN_AND_SOFTPLUS = Likelihood("mean and softplus of variance", _softplus_nll, _softplus_root)


def _columns(y: np.ndarray) -> np.ndarray:
    return y.reshape(len(y), -1)


def _plain(x: ArrayLike) -> np.ndarray:
    return np.asarray(x, np.float64)
