"""Scores of predicted probabilities: accuracy, likelihood, calibration, uncertainty.

Layer 7 (ensemble). Every score takes ``probs`` of shape (..., examples, classes), probabilities
over the last axis, and ``labels`` of shape (examples,), integers from 0 to classes − 1. Leading
axes of ``probs``, such as an axis of members, remain in the result; labels that differ from member
to member have them too. Results are float32, or float64 where ``probs`` are. All work under
``jit``, ``vmap`` and, where smooth, ``grad``.
"""

from __future__ import annotations

from typing import NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto import nn
from stretto.core.interpreter import Value

__all__ = [
    "accuracy",
    "nll",
    "brier",
    "ece",
    "Reliability",
    "reliability",
    "predictive_entropy",
    "mutual_information",
]

ArrayLike: TypeAlias = Value | np.ndarray


def accuracy(probs: ArrayLike, labels: ArrayLike) -> Value:
    """The share of examples whose most probable class (the first of equals) is their label.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.

    Returns:
        (...), between 0 and 1.

    Raises:
        ValueError: shapes do not fit.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    >>> float(accuracy(probs, snp.array([0, 1, 1, 1])))
    0.75
    """
    probs, labels = _checked("accuracy", probs, labels)
    return snp.mean(_correct(probs, labels), axis=-1)


def nll(probs: ArrayLike, labels: ArrayLike) -> Value:
    """The mean negative log-likelihood of the labels, in nats (the log score of Good, 1952).

    −mean over examples of log p[label]. A probability that underflowed to zero counts as the least
    normal number of its dtype (87 nats in float32), so that one such example does not make the mean
    infinite.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.

    Returns:
        (...), at least 0.

    Raises:
        ValueError: shapes do not fit.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.5, 0.5], [0.25, 0.75]])
    >>> round(float(nll(probs, snp.array([0, 0]))), 4)  # 1.5 log 2
    1.0397
    """
    probs, labels = _checked("nll", probs, labels)
    of_label = snp.sum(probs * _one_hot(probs, labels), axis=-1)
    least = float(np.finfo(probs.dtype).tiny)
    return -snp.mean(snp.log(snp.maximum(of_label, least)), axis=-1)


def brier(probs: ArrayLike, labels: ArrayLike) -> Value:
    """The Brier score over all classes: the mean squared distance to the one-hot label.

    Mean over examples of Σ_c (p_c − [c is the label])² (Brier, 1950).

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.

    Returns:
        (...), from 0 (sure and right) to 2 (sure and wrong).

    Raises:
        ValueError: shapes do not fit.
        TypeError: labels are not integers.

    >>> probs = snp.array([[1.0, 0.0], [0.5, 0.5]])
    >>> float(brier(probs, snp.array([0, 0])))
    0.25
    """
    probs, labels = _checked("brier", probs, labels)
    error = probs - _one_hot(probs, labels)
    return snp.mean(snp.sum(error * error, axis=-1), axis=-1)


class Reliability(NamedTuple):
    """What a reliability diagram shows, bin by bin; the last axis of each array is that of bins."""

    share: Value
    """(..., bins): the share of examples whose confidence falls into the bin; sums to 1."""
    confidence: Value
    """(..., bins): their mean confidence; 0 where the bin is empty."""
    accuracy: Value
    """(..., bins): the share of them that is right; 0 where the bin is empty."""


def reliability(probs: ArrayLike, labels: ArrayLike, bins: int = 15) -> Reliability:
    """Confidence and accuracy in bins of equal width (DeGroot and Fienberg, 1983).

    The confidence of an example is its largest probability; bin m of M holds the examples with
    confidence in ((m − 1)/M, m/M], as in Guo et al. (2017), section 2.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.
        bins: how many bins.

    Raises:
        ValueError: shapes do not fit, or no bins.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> in_bins = reliability(probs, snp.array([0, 1, 0, 1]), bins=4)
    >>> in_bins.share.tolist(), in_bins.confidence.tolist(), in_bins.accuracy.tolist()
    ([0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.75, 1.0], [0.0, 0.0, 0.5, 1.0])
    """
    if bins < 1:
        raise ValueError(f"reliability: expected at least 1 bin, got {bins}")
    probs, labels = _checked("reliability", probs, labels)
    confidence = snp.max(probs, axis=-1)
    inner_edges = snp.arange(1, bins, dtype=probs.dtype) / bins
    bin_of = snp.sum(confidence[..., None] > inner_edges, axis=-1)
    in_bin = nn.one_hot(bin_of, bins).astype(probs.dtype)  # (..., examples, bins)
    share = snp.mean(in_bin, axis=-2)
    divisor = snp.where(share > 0, share, 1)
    right = _correct(probs, labels)
    return Reliability(
        share,
        snp.mean(in_bin * confidence[..., None], axis=-2) / divisor,
        snp.mean(in_bin * right[..., None], axis=-2) / divisor,
    )


def ece(probs: ArrayLike, labels: ArrayLike, bins: int = 15) -> Value:
    """The expected calibration error, with bins of equal width (Guo et al., 2017, equation 3).

    Σ over bins of (share of examples in the bin) × |accuracy − mean confidence in the bin|, for the
    confidence in the predicted class. It is biased upwards where bins hold few examples.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.
        bins: how many bins.

    Returns:
        (...), between 0 and 1.

    Raises:
        ValueError: shapes do not fit, or no bins.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(ece(probs, snp.array([0, 1, 0, 1]), bins=4))  # half the examples, off by a quarter
    0.125
    """
    in_bins = reliability(probs, labels, bins)
    return snp.sum(in_bins.share * snp.abs(in_bins.accuracy - in_bins.confidence), axis=-1)


def predictive_entropy(probs: ArrayLike) -> Value:
    """The entropy of the ensemble's mean prediction, in nats: all its uncertainty.

    H[mean over members of p], with H[p] = −Σ_c p_c log p_c and 0 log 0 = 0.

    Args:
        probs: (members, ..., classes).

    Returns:
        (...), from 0 to log(classes).

    Raises:
        ValueError: probs has no axis of members.

    >>> probs = snp.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> [round(x, 4) for x in predictive_entropy(probs).tolist()]  # log 2, whatever the reason
    [0.6931, 0.6931]
    """
    return _entropy(snp.mean(_of_members("predictive_entropy", probs), axis=0))


def mutual_information(probs: ArrayLike) -> Value:
    """How much the members disagree, in nats: what knowing the right member would tell.

    H[mean over members of p] − mean over members of H[p]: the mutual information between the
    prediction and the member (Houlsby et al., 2011, equation 2). Zero where all members agree,
    however unsure each is.

    Args:
        probs: (members, ..., classes).

    Returns:
        (...), from 0 to log(members).

    Raises:
        ValueError: probs has no axis of members.

    >>> probs = snp.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> [round(x, 4) for x in mutual_information(probs).tolist()]  # they disagree; all are unsure
    [0.6931, 0.0]
    """
    probs = _of_members("mutual_information", probs)
    information = _entropy(snp.mean(probs, axis=0)) - snp.mean(_entropy(probs), axis=0)
    return snp.maximum(information, 0)  # below zero by rounding only (Jensen)


def _entropy(probs: Value) -> Value:
    """−Σ p log p over the last axis; the inner ``where`` keeps its derivative finite at 0."""
    positive = snp.greater(probs, 0)
    return -snp.sum(snp.where(positive, probs * snp.log(snp.where(positive, probs, 1)), 0), axis=-1)


def _correct(probs: Value, labels: Value) -> Value:
    """(..., examples) of ``probs``'s dtype: 1 where the most probable class is the label."""
    return (snp.argmax(probs, axis=-1) == labels).astype(probs.dtype)


def _one_hot(probs: Value, labels: Value) -> Value:
    return nn.one_hot(labels, probs.shape[-1]).astype(probs.dtype)


def _checked(score: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Value, Value]:
    """Both as arrays whose shapes fit, or an error that says what was expected."""
    p, y = _at_least_float32(probs), snp.asarray(labels)
    if p.ndim < 2 or y.ndim < 1 or p.shape[:-1][-y.ndim :] != y.shape:
        raise ValueError(
            f"{score}: expected probs of shape (..., examples, classes) and labels of shape "
            f"(examples,), got {p.shape} and {y.shape}"
        )
    if not np.issubdtype(y.dtype, np.integer):
        raise TypeError(f"{score}: expected labels of an integer dtype, got {y.dtype}")
    return p, y


def _of_members(score: str, probs: ArrayLike) -> Value:
    probs = _at_least_float32(probs)
    if probs.ndim < 2:
        raise ValueError(
            f"{score}: expected probs of shape (members, ..., classes), got {probs.shape}"
        )
    return probs


def _at_least_float32(probs: ArrayLike) -> Value:
    """As an array of float32 or float64: bfloat16 cannot tell a confidence of 0.999 from 1."""
    values = snp.asarray(probs)
    return values if values.dtype == np.float64 else values.astype(np.float32)
