"""Score predicted classes and their probabilities.

Every score of classes takes ``probs`` of shape (..., examples, classes), probabilities over the
last axis (or ``logits``, where the name says so), and ``labels`` of shape (examples,), integers
from 0 to classes − 1. Leading axes of ``probs``, such as an axis of members, remain in the result;
labels that differ from member to member have them too. Results are float32, or float64 where
``probs`` are, and NaN where a prediction is. All work under ``jit``, ``vmap`` and, where smooth,
``grad``. A label out of range raises; while labels are traced, it is of no class, and so has
probability 0.

For scores of predicted classes, class by class (the confusion matrix, F1, balanced accuracy),
logits will do, since only the most probable class counts. None is differentiable: derivatives are
zero.

Calibration error: do events that are given the probability p happen in a share p of cases? Bins are
of equal width, or, with ``binning="mass"``, of equally many examples. All these figures are biased
upwards where bins hold few examples. Read ``calibration`` for what to do about them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import (
    at_least,
    check_binning,
    check_labels,
    clamped,
    correct,
    one_hot_like,
)
from stretto.nn.functional.activations import indicator
from stretto.numpy.normalized import log_softmax

__all__ = ["Binning", "BrierParts", "Reliability", "accuracy", "balanced_accuracy", "brier",
           "brier_decomposition", "classwise_ece", "confusion_matrix", "ece", "f1", "mce", "nll",
           "nll_from_logits", "reliability", "top_k_accuracy"]  # fmt: skip


def accuracy(probs: ArrayLike, labels: ArrayLike) -> Array:
    """Return the share of examples whose most probable class (the first of equals) is their label.

    Args:
        probs: (..., examples, classes); logits will do.
        labels: (examples,), integers.

    Returns:
        (...), between 0 and 1.

    Raises:
        ValueError: shapes do not match, or a label is out of range.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.7, 0.3], [0.6, 0.4], [0.2, 0.8], [0.1, 0.9]])
    >>> float(accuracy(probs, snp.array([0, 1, 1, 1])))
    0.75
    """
    p, y = check_labels("accuracy", probs, labels)
    return snp.mean(correct(p, y), axis=-1)


@described_like(accuracy)
def top_k_accuracy(probs: ArrayLike, labels: ArrayLike, k: int = 5) -> Array:
    """Return the share of examples whose label is among their ``k`` most probable classes.

    Of equally probable classes the first come first, so that exactly ``k`` are looked at.

    Args:
        k: from 1 to classes.

    Raises:
        ValueError: shapes do not match, a label or ``k`` is out of range.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.5, 0.3, 0.2], [0.5, 0.3, 0.2]])
    >>> float(top_k_accuracy(probs, snp.array([1, 2]), k=2))
    0.5
    """
    p, y = check_labels("top_k_accuracy", probs, labels)
    at_least(1, k, "top_k_accuracy", "as k")
    if k > p.shape[-1]:
        raise ValueError(f"top_k_accuracy: k is {k}, but there are {p.shape[-1]} classes")
    _, best = lax.top_k(p, k)
    right = snp.any(best == of_rank(y[..., None], p.ndim), axis=-1).astype(p.dtype)
    return snp.mean(snp.where(snp.any(snp.isnan(p), axis=-1), np.nan, right), axis=-1)


@described_like(accuracy)
def nll(probs: ArrayLike, labels: ArrayLike) -> Array:
    """Return the mean negative log-likelihood of the labels, in nats (the log score of Good, 1952).

    −mean over examples of log p[label]. A probability that underflowed to zero counts as the least
    normal number of its dtype (87 nats in float32), so that one such example does not make the mean
    infinite.

    Args:
        probs: (..., examples, classes).

    Returns:
        (...), at least 0.

    >>> probs = snp.array([[0.5, 0.5], [0.25, 0.75]])
    >>> round(float(nll(probs, snp.array([0, 0]))), 4)  # 1.5 log 2
    1.0397
    """
    p, y = check_labels("nll", probs, labels)
    of_label = snp.sum(p * one_hot_like(p, y), axis=-1)
    return -snp.mean(snp.log(clamped(of_label)), axis=-1)


@described_like(accuracy)
def nll_from_logits(logits: ArrayLike, labels: ArrayLike) -> Array:
    """Return the labels' mean negative log-likelihood, from logits: exact however small it is.

    mean over examples of logsumexp(z) − z[label]. That of an ensemble's mean probability is
    ``nll_from_logits(log_mean(logits), labels)``.

    Args:
        logits: (..., examples, classes); −inf where a class is ruled out.

    Returns:
        (...), at least 0; infinite where a label's class is ruled out.

    >>> float(nll_from_logits(snp.array([[0.0, -500.0]]), snp.array([1])))
    500.0
    """
    z, y = check_labels("nll_from_logits", logits, labels, "logits")
    chosen = one_hot_like(z, y) > 0  # −inf of other classes times 0 would be NaN
    of_label = snp.sum(snp.where(chosen, log_softmax(z, axis=-1), 0), axis=-1)
    of_label = snp.where(snp.any(chosen, axis=-1), of_label, -np.inf)
    return -snp.mean(of_label, axis=-1)


@described_like(nll)
def brier(probs: ArrayLike, labels: ArrayLike) -> Array:
    """Return the Brier score over all classes: the mean squared distance to the one-hot label.

    Mean over examples of Σ_c (p_c − [c is the label])² (Brier, 1950). Its parts are given by
    ``brier_decomposition``.

    Returns:
        (...), from 0 (sure and right) to 2 (sure and wrong).

    >>> probs = snp.array([[1.0, 0.0], [0.5, 0.5]])
    >>> float(brier(probs, snp.array([0, 0])))
    0.25
    """
    p, y = check_labels("brier", probs, labels)
    error = p - one_hot_like(p, y)
    return snp.mean(snp.sum(error * error, axis=-1), axis=-1)


def confusion_matrix(probs: ArrayLike, labels: ArrayLike) -> Array:
    """Return how many examples of each class were predicted to be of each class.

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


@described_like(nll)
def balanced_accuracy(probs: ArrayLike, labels: ArrayLike) -> Array:
    """Return the mean over classes of the share of a class's examples that is recognized.

    Brodersen et al. (2010). Classes without examples are left out.

    Returns:
        (...), between 0 and 1; NaN without examples, or where a prediction is.

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
    """Return the harmonic mean of precision and recall (van Rijsbergen, 1979), over classes.

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
    """Count each class: right, of the label, of the prediction; and note whether a NaN was met."""
    counts, p = _count(caller, probs, labels)
    counts = counts.astype(p.dtype)
    right = snp.diagonal(counts, axis1=-2, axis2=-1)
    missing = snp.any(snp.isnan(p), axis=(-2, -1))
    return right, snp.sum(counts, axis=-1), snp.sum(counts, axis=-2), missing


def _count(caller: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    """Return the matrix of counts, and the probabilities."""
    p, y = check_labels(caller, probs, labels)
    y = of_rank(y, p.ndim - 1)
    classes, leading = p.shape[-1], p.shape[:-2]
    counted = (y >= 0) & (y < classes) & ~snp.any(snp.isnan(p), axis=-1)
    nowhere = classes * classes
    place = snp.where(counted, y * classes + snp.argmax(p, axis=-1), nowhere).astype(np.int32)
    count = lambda place: snp.zeros(nowhere, np.int32).at[place].add(1, mode="drop")
    counts = vmap(count)(place.reshape(-1, p.shape[-2]))
    return counts.reshape(*leading, classes, classes), p


Binning: TypeAlias = Literal["width", "mass"]


class Reliability(NamedTuple):
    """The contents of a reliability diagram; the last axis of each array is that of bins."""

    share: Array
    """(..., bins): the share of examples whose confidence falls into the bin; sums to 1."""
    confidence: Array
    """(..., bins): their mean confidence; 0 where the bin is empty."""
    accuracy: Array
    """(..., bins): the share of them that is right; 0 where the bin is empty."""


def reliability(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> Reliability:
    """Return confidence and accuracy in bins (DeGroot and Fienberg, 1983).

    The confidence of an example is its largest probability. Of equal width, bin m of M holds the
    examples with confidence in ((m − 1)/M, m/M], as in Guo et al. (2017), section 2. Of equal mass,
    the bins hold equally many examples in the order of their confidence (of equals, in the order
    given), the first ones an example more where they must (Nguyen and O'Connor, 2015).

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.
        bins: how many bins.
        binning: ``"width"`` or ``"mass"``.

    Returns:
        A ``Reliability`` of shares, confidences and accuracies, each (..., bins).

    Raises:
        ValueError: shapes do not match, a label is out of range, ``bins`` is below 1, or
            ``binning`` is neither.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> in_bins = reliability(probs, snp.array([0, 1, 0, 1]), bins=4)
    >>> in_bins.share.tolist(), in_bins.confidence.tolist(), in_bins.accuracy.tolist()
    ([0.0, 0.0, 0.5, 0.5], [0.0, 0.0, 0.75, 1.0], [0.0, 0.0, 0.5, 1.0])
    """
    return _binned("reliability", probs, labels, bins, binning)


def ece(probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width") -> Array:
    """Return the expected calibration error (Guo et al., 2017, equation 3).

    Σ over bins of (share of examples in the bin) × |accuracy − mean confidence in the bin|, for the
    confidence in the predicted class. With ``binning="mass"`` it is called adaptive.

    Args:
        probs: (..., examples, classes).
        labels: (examples,), integers.
        bins: how many bins.
        binning: ``"width"`` or ``"mass"``; see ``reliability``.

    Returns:
        (...), between 0 and 1.

    Raises:
        ValueError: shapes do not match, a label is out of range, no bins, an unknown binning.
        TypeError: labels are not integers.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(ece(probs, snp.array([0, 1, 0, 1]), bins=4))  # half the examples, off by a quarter
    0.125
    """
    return calibration_error(ece, probs, labels, bins, binning)


@described_like(ece)
def mce(probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width") -> Array:
    """Return the maximum calibration error (Guo et al., 2017, equation 5).

    The greatest |accuracy − mean confidence| of a bin that is not empty.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(mce(probs, snp.array([0, 1, 0, 1]), bins=4))
    0.25
    """
    return calibration_error(mce, probs, labels, bins, binning)


@described_like(ece)
def classwise_ece(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> Array:
    """Return the mean over classes of each class's calibration error: all probabilities count.

    For each class, Σ over bins of (share of examples whose p_c is in the bin) × |share of these
    that are of class c − their mean p_c|. The static calibration error of Nixon et al. (2019); with
    ``binning="mass"`` their adaptive one. Classes without examples count too.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(classwise_ece(probs, snp.array([0, 1, 0, 1]), bins=4))
    0.125
    """
    return calibration_error(classwise_ece, probs, labels, bins, binning)


class BrierParts(NamedTuple):
    """Parts of the Brier score: ``reliability − resolution + uncertainty + within`` is the score.

    Each is an array (...), and a sum over classes.
    """

    reliability: Array
    """The distance of probabilities from the frequencies of their bins: lower is better."""
    resolution: Array
    """The distance of those frequencies from the classes' overall ones: higher is better."""
    uncertainty: Array
    """The Brier score of always predicting the classes' frequencies: of the data alone."""
    within: Array
    """The part that differences inside bins add; 0 where all predictions in a bin are equal."""


@described_like(reliability)
def brier_decomposition(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> BrierParts:
    """Return the Brier score in parts: reliability, resolution and uncertainty (Murphy, 1973).

    Class by class, with n_b / n the share of examples whose p_c is in bin b, f_b the frequency of
    the class there, and f its frequency overall: Σ_b n_b / n (mean p_c − f_b)², Σ_b n_b / n
    (f_b − f)², and f (1 − f). Bins make a remainder (Stephenson et al., 2008), given as ``within``.

    Args:
        binning: ``"width"`` or ``"mass"``; see ``reliability``.

    Returns:
        A ``BrierParts``, whose parts are each (...).

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> parts = brier_decomposition(probs, snp.array([0, 1, 0, 1]), bins=5)
    >>> [float(part) for part in parts]
    [0.0625, 0.25, 0.5, 0.0]
    """
    in_bins = _binned("brier_decomposition", probs, labels, bins, binning, each_class=True)
    share, predicted, frequency = in_bins  # (classes, ..., bins)
    overall = snp.sum(share * frequency, axis=-1)
    miss, lift = predicted - frequency, frequency - overall[..., None]
    parts = (
        snp.sum(share * miss * miss, axis=(0, -1)),
        snp.sum(share * lift * lift, axis=(0, -1)),
        snp.sum(overall * (1 - overall), axis=0),
    )
    return BrierParts(*parts, brier(probs, labels) - (parts[0] - parts[1] + parts[2]))


def _expected_gap(in_bins: Reliability) -> Array:
    return snp.sum(in_bins.share * snp.abs(in_bins.accuracy - in_bins.confidence), axis=-1)


def _greatest_gap(in_bins: Reliability) -> Array:
    return snp.max(snp.abs(in_bins.accuracy - in_bins.confidence), axis=-1)


def _mean_gap(in_bins: Reliability) -> Array:
    return snp.mean(_expected_gap(in_bins), axis=0)


OF_BINS: dict[Callable[..., Array], tuple[bool, Callable[[Reliability], Array]]] = {
    ece: (False, _expected_gap),
    mce: (False, _greatest_gap),
    classwise_ece: (True, _mean_gap),
}
"""Calibration errors: whether each class is put into bins, and what is read from these."""


def calibration_error(
    score: Callable[..., Array],
    probs: ArrayLike,
    labels: ArrayLike,
    bins: int = 15,
    binning: Binning = "width",
    of: Array | None = None,
) -> Array:
    """Return a score of ``OF_BINS``; if ``of`` is given, (examples,), of those examples alone."""
    each_class, gap = OF_BINS[score]
    return gap(_binned(score.__name__, probs, labels, bins, binning, each_class, of))


def _binned(
    caller: str,
    probs: ArrayLike,
    labels: ArrayLike,
    bins: int,
    binning: Binning,
    each_class: bool = False,
    of: Array | None = None,
) -> Reliability:
    """Bin the predicted class, each array (..., bins), or every class: (classes, ..., bins)."""
    check_binning(caller, bins, binning)
    p, y = check_labels(caller, probs, labels)
    put = lambda confidence, happened: _in_bins(confidence, happened, bins, binning, of)
    if not each_class:
        return put(snp.max(p, axis=-1), correct(p, y))
    happened = snp.broadcast_to(one_hot_like(p, y), p.shape)
    of_classes = (snp.moveaxis(p, -1, 0), snp.moveaxis(happened, -1, 0))
    return lax.map(lambda c: put(*c), of_classes)  # one at a time, to bound the memory


def _in_bins(
    confidence: Array, happened: Array, bins: int, binning: Binning, of: Array | None = None
) -> Reliability:
    """Return examples, along the last axis, put into bins by their confidence.

    With ``of``, (examples,), those alone where it is true; all shares are 0 where it never is.
    """
    examples: Any = confidence.shape[-1]
    total, counted = examples, True if of is None else of
    if of is not None:
        examples = snp.sum(of)
        total = snp.maximum(examples, 1).astype(confidence.dtype)
        confidence, happened = (snp.where(of, x, 0) for x in (confidence, happened))
    if binning == "width":
        inner_edges = snp.arange(1, bins, dtype=confidence.dtype) / bins
        bin_of = snp.sum(confidence[..., None] > of_rank(inner_edges, confidence.ndim + 1), axis=-1)
    else:
        if of is None:
            order = snp.argsort(confidence, axis=-1)
        else:  # those that count first
            order = snp.lexsort((confidence, snp.broadcast_to(~of, confidence.shape)), axis=-1)
        confidence = snp.take_along_axis(confidence, order, axis=-1)
        happened = snp.take_along_axis(happened, order, axis=-1)
        place = snp.arange(order.shape[-1])
        counted = place < examples
        least, more = examples // bins, examples % bins
        first = more * (least + 1)  # the places in bins with an example more
        rest = more + (place - first) // snp.maximum(least, 1)
        bin_of = snp.where(place < first, place // (least + 1), rest)
    if of is not None:
        bin_of = snp.where(counted, bin_of, bins)
    in_bin = indicator(bin_of, bins, confidence.dtype)  # (..., examples, bins)
    count = snp.sum(in_bin, axis=-2)
    divisor = snp.where(count > 0, count, 1)
    mean_in_bin = lambda x: (x[..., None, :] @ in_bin)[..., 0, :] / divisor
    share = snp.broadcast_to(count / total, confidence.shape[:-1] + (bins,))
    return Reliability(share, mean_in_bin(confidence), mean_in_bin(happened))
