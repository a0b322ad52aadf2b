"""``EnsembleClassifier``: an ensemble of networks as a classifier of scikit-learn."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, ClassVar, Self

import numpy as np
from scipy import special

import stretto.numpy as snp
from stretto import nn, random
from stretto._engine.core.functions import described_like
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto.curvature.likelihoods import Likelihood, likelihood_of
from stretto.ensemble.calibration import fit_temperature
from stretto.ensemble.combination import log_mean
from stretto.ensemble.estimators import estimator
from stretto.ensemble.estimators.estimator import (
    ClassifierMixin,
    EnsembleEstimator,
    merge_equal_rows,
    multiclass,
    utils,
    validation,
)
from stretto.ensemble.uncertainty import mutual_information

__all__ = ["EnsembleClassifier"]

_FEW = 5
"""Rows of a class from which a temperature can be told."""


@described_like(EnsembleEstimator)
class EnsembleClassifier(ClassifierMixin, EnsembleEstimator):
    """An ensemble of networks that classify the rows of a table, trained as one program.

    Columns are standardized inside. Members are multilayer perceptrons, or what ``model`` makes.
    Probabilities are the mean of the members'. The order of the rows does not matter, and a row of
    ``sample_weight`` 2 is the same as two of it: equal rows are merged, with the sum of their
    weights, whose mean is then made 1.

    Args:
        model: a function ``model(key, inputs, outputs)`` that makes a module, instead of
            perceptrons; it maps (rows, inputs) to logits (rows, outputs).
        standardize: subtract the mean of each column, and divide by its standard deviation.

    Fitted, it has ``classes_``, ``n_features_in_`` and, of a table with names,
    ``feature_names_in_`` as all classifiers; ``ensemble_``, the members as a ``stretto.Ensemble``;
    ``history_``, their losses by epoch; and ``x_scale_``, what columns are standardized by.

    >>> import numpy as np
    >>> from stretto.ensemble import EnsembleClassifier
    >>> x = np.random.default_rng(0).normal(size=(200, 2))
    >>> y = np.where(x[:, 0] > x[:, 1], "above", "below")
    >>> model = EnsembleClassifier(4, hidden=(16,), epochs=20, random_state=0).fit(x, y)
    >>> model.predict([[2.0, -2.0], [-2.0, 2.0]]).tolist()
    ['above', 'below']
    >>> model.predict_members(x[:5]).shape
    (4, 5, 2)
    """

    classes_: np.ndarray
    temperature_: np.float64
    _kept: ClassVar[tuple[str, ...]] = (*EnsembleEstimator._kept, "temperature_")

    def _loss(self) -> Callable[..., Any]:
        return estimator.cross_entropy

    def _outputs(self) -> int:
        return len(self.classes_)

    def _targets(self, y: np.ndarray) -> np.ndarray:
        return y[:, 0].astype(np.int32)

    def _likelihood(self) -> Likelihood:
        return likelihood_of("categorical")

    def fit(self, X: Tree, y: ArrayLike, sample_weight: ArrayLike | None = None) -> Self:
        """Train new members.

        Args:
            X: (rows, columns), an array or a table of pandas or polars, of finite numbers.
            y: (rows,), the classes: numbers, strings or booleans.
            sample_weight: (rows,), at least 0; equal ones by default.

        Returns:
            The estimator itself.

        Raises:
            ValueError: shapes do not match, numbers are not finite, or a parameter is out of range.
            DivergenceError: the loss of a member became infinite or NaN.
        """
        x, labels, weights = self._checked(X, y, sample_weight, True)
        if weights is not None:
            x, labels, weights = x[weights > 0], labels[weights > 0], weights[weights > 0]
        self.classes_, encoded = np.unique(labels, return_inverse=True)
        self.temperature_ = np.float64(1)
        self._train(merge_equal_rows(x, encoded, weights))
        return self

    def partial_fit(
        self,
        X: Tree,
        y: ArrayLike,
        classes: ArrayLike | None = None,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Go through more rows once, with the members that there are; none is stopped early.

        Args:
            X: (rows, columns). The first call learns from them what columns are standardized by.
            y: (rows,).
            classes: all classes that there will be; needed in the first call.
            sample_weight: (rows,), factors of the losses.

        Returns:
            The estimator itself.

        Raises:
            ValueError: as in ``fit``; or ``classes`` are missing in the first call, differ later,
                or lack one of ``y``.
        """
        first = not hasattr(self, "ensemble_")
        if multiclass._check_partial_fit_first_call(self, classes):
            self.temperature_ = np.float64(1)
        x, labels, weights = self._checked(X, y, sample_weight, first)
        places = np.searchsorted(self.classes_, labels)
        places = np.minimum(places, len(self.classes_) - 1)
        if (self.classes_[places] != labels).any():
            unknown = sorted(set(labels.tolist()) - set(self.classes_.tolist()))
            raise ValueError(
                f"EnsembleClassifier: y has classes {unknown}, which are not among classes, "
                f"{self.classes_.tolist()}"
            )
        self._train_more(x, places, weights)
        return self

    def _checked(
        self, X: Tree, y: ArrayLike, sample_weight: ArrayLike | None, reset: bool
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
        x, labels = validation.validate_data(self, X, y, dtype=np.float64, reset=reset)
        multiclass.check_classification_targets(labels)
        labels = utils.column_or_1d(labels, warn=True)
        return x, labels, self._weights(sample_weight, x)

    def predict_members(self, X: Tree) -> np.ndarray:
        """Return the probabilities that each member gives.

        Args:
            X: (rows, columns).

        Returns:
            (members, rows, classes), not changed by ``calibrate`` or ``posterior``.
        """
        return special.softmax(self._raw(X), axis=-1)

    def predict_proba(self, X: Tree) -> np.ndarray:
        """Return the probabilities of the classes: the mean of the members'.

        Args:
            X: (rows, columns).

        Returns:
            (rows, classes), in the order of ``classes_``.
        """
        logs = self._log_mean(X)
        if self.temperature_ == 1:
            return np.exp(logs)
        return special.softmax(logs / self.temperature_, axis=-1)

    def predict(self, X: Tree) -> np.ndarray:
        """Return the most probable class.

        Args:
            X: (rows, columns).

        Returns:
            (rows,).
        """
        places = self._log_mean(X).argmax(axis=-1)
        return self.classes_[places]

    def function(self) -> Callable[[ArrayLike], dict[str, Array]]:
        """Return what the fitted estimator does, as a function of arrays: for ``st.export``.

        Returns:
            A function of rows, (rows, columns), that gives "probabilities", (rows, classes), after
                ``calibrate`` calibrated ones; "place", (rows,) int32, of the most probable class in
                ``classes_``; "members", (members, rows, classes); and "disagreement", (rows,), the
                mutual information of class and member in nats.

        Raises:
            NotFittedError: it was not fitted.
        """
        raw_of = self._function_of_members()
        temperature = float(self.temperature_)

        def predict(X: ArrayLike) -> dict[str, Array]:
            raw = raw_of(X)
            mean = log_mean(raw)
            members = nn.functional.softmax(raw, -1)
            return {
                "probabilities": nn.functional.softmax(mean / temperature, -1),
                "place": snp.argmax(mean, -1),
                "members": members,
                "disagreement": mutual_information(members),
            }

        return predict

    def calibrate(self, X: Tree, y: ArrayLike) -> Self:
        """Fit the temperature of the members' mean, on rows that they were not trained on.

        Args:
            X: (rows, columns).
            y: (rows,).

        Returns:
            The estimator itself; ``temperature_`` has changed.

        Raises:
            ValueError: shapes do not match, or a class is none of ``classes_``.
        """
        logs = self._log_mean(X)
        labels = utils.column_or_1d(y, warn=True)
        validation.check_consistent_length(logs, labels)
        if len(labels) < _FEW * len(self.classes_):
            warnings.warn(
                f"EnsembleClassifier: calibrate got {len(labels)} rows for {len(self.classes_)} "
                f"classes; from fewer than {_FEW} for each a temperature is mostly chance",
                stacklevel=user_stack_level(),
            )
        places = np.minimum(np.searchsorted(self.classes_, labels), len(self.classes_) - 1)
        if (self.classes_[places] != labels).any():
            raise ValueError(
                f"EnsembleClassifier: y has classes that are not among {self.classes_.tolist()}"
            )
        temperature = fit_temperature(logs.astype(np.float32), places.astype(np.int32))
        self.temperature_ = np.float64(np.asarray(temperature.temperature))
        return self

    def _log_mean(self, X: Tree) -> np.ndarray:
        """Return the logarithm of the mean of the members' probabilities."""
        if self.posterior:
            key = random.key(self._seed)
            of = lambda x: self.laplace_.probabilities(x, key)
            return np.log(np.maximum(self._in_parts(X, of, 0), np.finfo(np.float32).tiny))
        raw = self._raw(X)
        logs = special.log_softmax(raw, axis=-1)
        return special.logsumexp(logs, axis=0) - np.log(len(raw))
