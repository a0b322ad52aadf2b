"""Conformal prediction: sets of classes that hold the label with a probability asked for.

As in ``calibration``, ``fit_conformal(probs, labels)``, on held-out examples, gives a tree that,
called with probabilities, gives sets. The guarantee needs nothing of the model: only that held-out
and new examples are exchangeable.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.tree import register_dataclass
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.arguments import at_least, at_least_float32, labeled
from stretto.ensemble.probabilities import one_hot_like

__all__ = ["ConformalSets", "fit_conformal"]


@register_dataclass
@dataclass(frozen=True)
class ConformalSets:
    """The classes whose score is at most a threshold."""

    threshold: Array
    """(...), one for each of the leading axes of the probabilities that it was fitted to."""
    method: Literal["lac", "aps"] = field(metadata={"static": True})
    """Which score: see ``fit_conformal``."""

    def __call__(self, probs: ArrayLike) -> Array:
        """Which classes are in the set: booleans of the shape of probs (..., examples, classes)."""
        p = at_least_float32(probs, "ConformalSets", "probs")
        t = self.threshold
        return _scores(p, self.method) <= (t[..., None, None] if t.ndim else t)


def fit_conformal(
    probs: ArrayLike,
    labels: ArrayLike,
    coverage: float = 0.9,
    method: Literal["lac", "aps"] = "lac",
) -> ConformalSets:
    """Fit the threshold with which sets hold the label with probability ``coverage``, or more.

    Split conformal prediction (Vovk et al., 2005): of n held-out examples' scores of their labels
    the threshold is the ⌈(n + 1) coverage⌉-th least, and infinite, so that sets hold all classes,
    where n is too small for the coverage. With ``"lac"`` (Sadinle et al., 2019) the score of a
    class is 1 − p: small sets, empty for some examples. With ``"aps"`` (Romano et al., 2020,
    without their randomisation, which makes sets larger) it is the sum of all probabilities that
    are not less than the class's own, itself included: sets that are larger for harder examples.

    Args:
        probs: (..., examples, classes), of examples that the model was not trained on.
        labels: (examples,), integers.
        coverage: in (0, 1).
        method: ``"lac"`` or ``"aps"``.

    Returns:
        ``ConformalSets``, whose thresholds are (...), NaN, and the sets empty, where a probability
        is.

    Raises:
        ValueError: shapes do not match, no examples, a label or ``coverage`` is out of range, an
            unknown method.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.8, 0.2], [0.7, 0.3], [0.4, 0.6]])
    >>> sets = fit_conformal(probs, snp.array([0, 0, 1]), coverage=0.75)
    >>> sets(snp.array([[0.9, 0.1], [0.5, 0.5], [0.4, 0.6]])).tolist()
    [[True, False], [False, False], [False, True]]
    """
    if not 0 < coverage < 1:
        raise ValueError(f"fit_conformal: coverage must be in (0, 1), got {coverage}")
    if method not in ("lac", "aps"):
        raise ValueError(f"fit_conformal: method must be 'lac' or 'aps', got {method!r}")
    p, y = labeled("fit_conformal", probs, labels)
    n = p.shape[-2]
    at_least(1, n, "fit_conformal", "example")
    of_label = snp.sum(_scores(p, method) * one_hot_like(p, y), axis=-1)
    rank = math.ceil((n + 1) * coverage * (1 - 1e-12))  # 0.9 × 10 is 9, whatever its rounding
    threshold = snp.sort(of_label, axis=-1)[..., rank - 1] if rank <= n else np.inf
    missing = snp.any(snp.isnan(p), axis=(-2, -1))
    return ConformalSets(snp.where(missing, np.nan, threshold).astype(p.dtype), method)


def _scores(p: Array, method: str) -> Array:
    """How badly each class fits."""
    if method == "lac":
        return 1 - p
    falling = snp.argsort(-p, axis=-1)
    sums = snp.cumsum(snp.take_along_axis(p, falling, axis=-1), axis=-1)
    return snp.take_along_axis(sums, snp.argsort(falling, axis=-1), axis=-1)
