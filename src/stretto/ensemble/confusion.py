"""Scores of predicted classes, class by class: the confusion matrix, F1, balanced accuracy.

Arguments as in ``scores``: ``probs`` of shape (..., examples, classes), for which logits will do,
since only the most probable class counts, and ``labels`` of shape (examples,). None is
differentiable: derivatives are zero.
"""

from __future__ import annotations

from typing import Literal

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.arguments import labeled

__all__ = ["balanced_accuracy", "confusion_matrix", "f1"]


def confusion_matrix(probs: ArrayLike, labels: ArrayLike) -> Array:
    """How many examples of each class were predicted to be of each class.

    Args:
        probs: (..., examples, classes). An example with a NaN is left out.
        labels: (examples,), integers.

    Returns:
        (..., classes, classes), int32: the label's class first, then the predicted one.

    Raises:
        ValueError: shapes do not match, or a label is out of range. A traced label that is out of
            range is left out.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    >>> confusion_matrix(probs, snp.array([0, 0, 1])).tolist()
    [[1, 1], [0, 1]]
    """
    return _count("confusion_matrix", probs, labels)[0]


def balanced_accuracy(probs: ArrayLike, labels: ArrayLike) -> Array:
    """The mean over classes of the share of a class's examples that is recognized.

    Brodersen et al. (2010). Classes without examples are left out.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.

    Returns:
        (...), between 0 and 1; NaN without examples, or where a prediction is.

    Raises:
        ValueError: shapes do not match, or a label is out of range.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    >>> float(balanced_accuracy(probs, snp.array([0, 0, 1])))
    0.75
    """
    right, of_label, _, missing = _totals("balanced_accuracy", probs, labels)
    occurs = of_label > 0
    recall = snp.where(occurs, right / snp.where(occurs, of_label, 1), 0)
    return snp.where(
        missing, np.nan, snp.sum(recall, axis=-1) / snp.sum(occurs, axis=-1, dtype=recall.dtype)
    )


def f1(
    probs: ArrayLike,
    labels: ArrayLike,
    average: Literal["macro", "micro", "weighted"] | None = "macro",
) -> Array:
    """The harmonic mean of precision and recall (van Rijsbergen, 1979), over classes.

    Of a class: 2 right / (labelled so + predicted so).

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.
        average: ``"macro"``, the mean over classes that are the label or the prediction of some
            example; ``"weighted"``, that by the number of labels; ``"micro"``, of all counts, which
            is the accuracy; ``None``, no mean: each class's, 0 where it does not occur.

    Returns:
        (...), or (..., classes) for ``None``; between 0 and 1; NaN where a prediction is.

    Raises:
        ValueError: shapes do not match, a label is out of range, or an unknown average.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.9, 0.1], [0.2, 0.8], [0.3, 0.7]])
    >>> f1(probs, snp.array([0, 0, 1]), average=None).round(3)
    Array([0.667, 0.667], dtype=float32)
    """
    if average not in ("macro", "micro", "weighted", None):
        raise ValueError(
            f"f1: average must be 'macro', 'micro', 'weighted' or None, got {average!r}"
        )
    right, of_label, of_prediction, missing = _totals("f1", probs, labels)
    either = of_label + of_prediction
    occurs = either > 0
    scores = 2 * right / snp.where(occurs, either, 1)
    if average == "macro":
        result = snp.sum(scores, axis=-1) / snp.sum(occurs, axis=-1, dtype=scores.dtype)
    elif average == "weighted":
        result = snp.sum(scores * of_label, axis=-1) / snp.sum(of_label, axis=-1)
    elif average == "micro":
        result = 2 * snp.sum(right, axis=-1) / snp.sum(either, axis=-1)
    else:
        return snp.where(missing[..., None], np.nan, scores)
    return snp.where(missing, np.nan, result)


def _totals(caller: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Array, Array, Array, Array]:
    """Counts class by class: right, of the label, of the prediction; and whether a NaN was met."""
    counts, p = _count(caller, probs, labels)
    counts = counts.astype(p.dtype)
    right = snp.diagonal(counts, axis1=-2, axis2=-1)
    missing = snp.any(snp.isnan(p), axis=(-2, -1))
    return right, snp.sum(counts, axis=-1), snp.sum(counts, axis=-2), missing


def _count(caller: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """The matrix of counts, and the probabilities."""
    p, y = labeled(caller, probs, labels)
    y = of_rank(y, p.ndim - 1)
    classes, leading = p.shape[-1], p.shape[:-2]
    counted = (y >= 0) & (y < classes) & ~snp.any(snp.isnan(p), axis=-1)
    nowhere = classes * classes
    place = snp.where(counted, y * classes + snp.argmax(p, axis=-1), nowhere).astype(np.int32)
    count = lambda place: snp.zeros(nowhere, np.int32).at[place].add(1, mode="drop")
    counts = vmap(count)(place.reshape(-1, p.shape[-2]))
    return counts.reshape(*leading, classes, classes), p
