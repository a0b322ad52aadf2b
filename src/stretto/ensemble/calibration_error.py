"""Calibration error: do events that are given the probability p happen in a share p of cases?

Arguments as in ``scores``. Bins are of equal width, or, with ``binning="mass"``, of equally many
examples. All these figures are biased upwards where bins hold few examples. Read ``calibration``
for what to do about them.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import check_binning, correct, labeled, one_hot_like
from stretto.ensemble.scores import brier
from stretto.nn.functional.activations import indicator

__all__ = [
    "Binning",
    "BrierParts",
    "Reliability",
    "brier_decomposition",
    "classwise_ece",
    "ece",
    "mce",
    "reliability",
]

Binning: TypeAlias = Literal["width", "mass"]


class Reliability(NamedTuple):
    """What a reliability diagram shows, bin by bin; the last axis of each array is that of bins."""

    share: Array
    """(..., bins): the share of examples whose confidence falls into the bin; sums to 1."""
    confidence: Array
    """(..., bins): their mean confidence; 0 where the bin is empty."""
    accuracy: Array
    """(..., bins): the share of them that is right; 0 where the bin is empty."""


def reliability(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> Reliability:
    """Confidence and accuracy in bins (DeGroot and Fienberg, 1983).

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
    return _of_prediction("reliability", probs, labels, bins, binning)


def ece(probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width") -> Array:
    """The expected calibration error (Guo et al., 2017, equation 3).

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
    return _expected_gap(_of_prediction("ece", probs, labels, bins, binning))


@described_like(ece)
def mce(probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width") -> Array:
    """The maximum calibration error (Guo et al., 2017, equation 5).

    The greatest |accuracy − mean confidence| of a bin that is not empty.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(mce(probs, snp.array([0, 1, 0, 1]), bins=4))
    0.25
    """
    in_bins = _of_prediction("mce", probs, labels, bins, binning)
    return snp.max(snp.abs(in_bins.accuracy - in_bins.confidence), axis=-1)


@described_like(ece)
def classwise_ece(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> Array:
    """The mean over classes of each class's calibration error: all probabilities count.

    For each class, Σ over bins of (share of examples whose p_c is in the bin) × |share of these
    that are of class c − their mean p_c|. The static calibration error of Nixon et al. (2019); with
    ``binning="mass"`` their adaptive one. Classes without examples count too.

    >>> probs = snp.array([[0.75, 0.25], [0.75, 0.25], [1.0, 0.0], [0.0, 1.0]])
    >>> float(classwise_ece(probs, snp.array([0, 1, 0, 1]), bins=4))
    0.125
    """
    in_bins = _of_classes("classwise_ece", probs, labels, bins, binning)
    return snp.mean(_expected_gap(in_bins), axis=0)


class BrierParts(NamedTuple):
    """Parts of the Brier score: ``reliability − resolution + uncertainty + within`` is the score.

    Each is an array (...), and a sum over classes.
    """

    reliability: Array
    """How far probabilities are from the frequencies of their bins: lower is better."""
    resolution: Array
    """How far those frequencies are from the classes' overall ones: higher is better."""
    uncertainty: Array
    """The Brier score of always predicting the classes' frequencies: of the data alone."""
    within: Array
    """What differences inside bins add; 0 where all predictions in a bin are equal."""


@described_like(reliability)
def brier_decomposition(
    probs: ArrayLike, labels: ArrayLike, bins: int = 15, binning: Binning = "width"
) -> BrierParts:
    """The Brier score in parts: reliability, resolution and uncertainty (Murphy, 1973).

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
    in_bins = _of_classes("brier_decomposition", probs, labels, bins, binning)
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


def _of_prediction(
    caller: str, probs: ArrayLike, labels: ArrayLike, bins: int, binning: Binning
) -> Reliability:
    """Of the predicted class: each array (..., bins)."""
    check_binning(caller, bins, binning)
    p, y = labeled(caller, probs, labels)
    return _in_bins(snp.max(p, axis=-1), correct(p, y), bins, binning)


def _of_classes(
    caller: str, probs: ArrayLike, labels: ArrayLike, bins: int, binning: Binning
) -> Reliability:
    """Of every class: each array (classes, ..., bins). One class at a time bounds the memory."""
    check_binning(caller, bins, binning)
    p, y = labeled(caller, probs, labels)
    happened = snp.broadcast_to(one_hot_like(p, y), p.shape)
    return lax.map(
        lambda c: _in_bins(c[0], c[1], bins, binning),
        (snp.moveaxis(p, -1, 0), snp.moveaxis(happened, -1, 0)),
    )


def _in_bins(confidence: Array, happened: Array, bins: int, binning: Binning) -> Reliability:
    """Examples, along the last axis, put into bins by their confidence."""
    examples = confidence.shape[-1]
    if binning == "width":
        inner_edges = snp.arange(1, bins, dtype=confidence.dtype) / bins
        bin_of = snp.sum(confidence[..., None] > of_rank(inner_edges, confidence.ndim + 1), axis=-1)
    else:
        order = snp.argsort(confidence, axis=-1)
        confidence = snp.take_along_axis(confidence, order, axis=-1)
        happened = snp.take_along_axis(happened, order, axis=-1)
        sizes = [len(places) for places in np.array_split(np.arange(examples), bins)]
        bin_of = snp.asarray(np.repeat(np.arange(bins), sizes))
    in_bin = indicator(bin_of, bins, confidence.dtype)  # (..., examples, bins)
    count = snp.sum(in_bin, axis=-2)
    divisor = snp.where(count > 0, count, 1)
    mean_in_bin = lambda x: (x[..., None, :] @ in_bin)[..., 0, :] / divisor
    share = snp.broadcast_to(count / examples, confidence.shape[:-1] + (bins,))
    return Reliability(share, mean_in_bin(confidence), mean_in_bin(happened))
