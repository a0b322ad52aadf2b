"""Detection: how well a score, such as an uncertainty, tells two kinds of examples apart.

A greater score says "positive": out of distribution, or predicted wrongly. All are computed from
ranks, and tied scores count as one threshold, in any order. They work under ``jit`` and ``vmap``;
they are constant but for jumps, so that derivatives are zero (but for those by losses). A NaN
score, or one kind without examples, makes the result NaN.

Selective prediction leaves the examples of the greatest scores to others; ``aurc`` says what the
rest cost.
"""

from __future__ import annotations

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto.ensemble.score_arguments import at_least_float32

__all__ = ["aupr", "auroc", "aurc", "excess_aurc", "fpr_at_tpr", "ood_aupr", "ood_auroc",
           "ood_fpr"]  # fmt: skip


def auroc(scores: ArrayLike, positive: ArrayLike) -> Array:
    """Return the area under the receiver operating characteristic.

    The probability that a positive example has the greater score than a negative one, ties counting
    half (Hanley and McNeil, 1982).

    Args:
        scores: (..., examples).
        positive: (examples,), or with the leading axes too: booleans, or integers 0 and 1.

    Returns:
        (...), from 0 to 1; 0.5 for a score that says nothing.

    Raises:
        ValueError: shapes do not match.
        TypeError: ``positive`` is not of a boolean or integer dtype.

    >>> float(auroc(snp.array([0.1, 0.4, 0.35, 0.8]), snp.array([0, 0, 1, 1])))
    0.75
    """
    return _auroc(*_of_labels("auroc", scores, positive))


@described_like(auroc)
def aupr(scores: ArrayLike, positive: ArrayLike) -> Array:
    """Return the area under the curve of precision over recall, as the average precision.

    Σ over thresholds of (gain in recall) × precision, without interpolation (Davis and Goadrich,
    2006, show what that would do).

    Returns:
        (...), from 0 to 1; the share of positives for a score that says nothing.

    >>> round(float(aupr(snp.array([0.1, 0.4, 0.35, 0.8]), snp.array([0, 0, 1, 1]))), 4)
    0.8333
    """
    return _aupr(*_of_labels("aupr", scores, positive))


def fpr_at_tpr(scores: ArrayLike, positive: ArrayLike, tpr: float = 0.95) -> Array:
    """Return the share of negatives above the highest threshold that finds ``tpr`` of positives.

    Args:
        scores: (..., examples).
        positive: (examples,), or with the leading axes too: booleans, or integers 0 and 1.
        tpr: the true positive rate to reach, in (0, 1].

    Returns:
        (...), from 0 to 1, lower is better.

    Raises:
        ValueError: shapes do not match, or ``tpr`` is out of range.
        TypeError: ``positive`` is not of a boolean or integer dtype.

    >>> float(fpr_at_tpr(snp.array([0.1, 0.4, 0.35, 0.8]), snp.array([0, 0, 1, 1])))
    0.5
    """
    return _fpr(*_of_labels("fpr_at_tpr", scores, positive), tpr, "fpr_at_tpr")


def aurc(scores: ArrayLike, losses: ArrayLike) -> Array:
    """Return the area under the risk-coverage curve (Geifman, Uziel and El-Yaniv, 2019).

    The mean over k from 1 to examples of the mean loss of the k examples with the least scores.
    Equal scores count as in every order, each as often.

    Args:
        scores: (..., examples), an uncertainty: greater where an error is likelier; the negative of
            a confidence.
        losses: (examples,), or with the leading axes too: errors 0 and 1, or any other losses.

    Returns:
        (...), lower is better; the mean loss for a score that says nothing.

    Raises:
        ValueError: shapes do not match, or there are no examples.

    >>> round(float(aurc(snp.array([0.1, 0.2, 0.3, 0.4]), snp.array([0.0, 0.0, 1.0, 0.0]))), 4)
    0.1458
    """
    return _aurc(*_of_losses("aurc", scores, losses))


@described_like(aurc)
def excess_aurc(scores: ArrayLike, losses: ArrayLike) -> Array:
    """Return by how much ``aurc`` exceeds that of the best order, in which losses ascend.

    Geifman et al. (2019) have a formula for errors of many examples, (1 − r) log(1 − r) + r, in
    place of the best order's exact area.

    Returns:
        (...), at least 0; 0 where no example with a greater loss has a lesser score.

    >>> scores = snp.array([0.1, 0.2, 0.3, 0.4])
    >>> round(float(excess_aurc(scores, snp.array([0.0, 0.0, 1.0, 0.0]))), 4)
    0.0833
    """
    s, loss = _of_losses("excess_aurc", scores, losses)
    best = snp.mean(snp.sort(loss, axis=-1) * _tail_sums(loss), axis=-1)
    return _aurc(s, loss) - best


def ood_auroc(scores_in: ArrayLike, scores_out: ArrayLike) -> Array:
    """Return the ``auroc`` of telling inputs out of the distribution, the positives, from others.

    Args:
        scores_in: (..., examples in), an uncertainty: greater where more unlike the data learnt.
        scores_out: (..., examples out).

    Returns:
        (...), from 0 to 1.

    Raises:
        ValueError: shapes do not match.

    >>> float(ood_auroc(snp.array([0.1, 0.4]), snp.array([0.35, 0.8, 0.4])))
    0.75
    """
    return _auroc(*_of_two("ood_auroc", scores_in, scores_out))


@described_like(ood_auroc)
def ood_aupr(scores_in: ArrayLike, scores_out: ArrayLike) -> Array:
    """Return the ``aupr`` of telling inputs out of the distribution, the positives, from others.

    With those in it as the positives: ``ood_aupr(-scores_out, -scores_in)``.

    >>> round(float(ood_aupr(snp.array([0.1, 0.4]), snp.array([0.35, 0.8]))), 4)
    0.8333
    """
    return _aupr(*_of_two("ood_aupr", scores_in, scores_out))


def ood_fpr(scores_in: ArrayLike, scores_out: ArrayLike, tpr: float = 0.95) -> Array:
    """Return ``fpr_at_tpr``, by default FPR95: alarms on known inputs if 95 % of others are found.

    With those in the distribution as the positives, as some report it: ``ood_fpr(-scores_out,
    -scores_in)``.

    Args:
        scores_in: (..., examples in), an uncertainty: greater where more unlike the data learnt.
        scores_out: (..., examples out).
        tpr: the share of ``scores_out`` to find, in (0, 1].

    Returns:
        (...), from 0 to 1, lower is better.

    Raises:
        ValueError: shapes do not match, or ``tpr`` is out of range.

    >>> float(ood_fpr(snp.array([0.1, 0.4]), snp.array([0.35, 0.8])))
    0.5
    """
    return _fpr(*_of_two("ood_fpr", scores_in, scores_out), tpr, "ood_fpr")


def _of_labels(caller: str, scores: ArrayLike, positive: ArrayLike) -> tuple[Array, Array]:
    s, flag = at_least_float32(scores, caller, "scores"), as_value(positive, caller, "positive")
    if s.ndim < 1 or flag.ndim < 1 or s.shape[-flag.ndim :] != flag.shape:
        raise ValueError(
            f"{caller}: expected scores of shape (..., examples) and positive of shape "
            "(examples,), "
            f"got {s.shape} and {flag.shape}"
        )
    if flag.dtype != np.bool_ and not np.issubdtype(flag.dtype, np.integer):
        raise TypeError(
            f"{caller}: expected positive of a boolean or integer dtype, got {flag.dtype}"
        )
    return s, snp.broadcast_to(flag.astype(bool).astype(np.int32), s.shape)


def _of_two(caller: str, scores_in: ArrayLike, scores_out: ArrayLike) -> tuple[Array, Array]:
    inside = at_least_float32(scores_in, caller, "scores_in")
    outside = at_least_float32(scores_out, caller, "scores_out")
    if inside.ndim < 1 or inside.shape[:-1] != outside.shape[:-1] or outside.ndim < 1:
        raise ValueError(
            f"{caller}: expected scores_in and scores_out of shape (..., examples), alike but for "
            f"the number of examples; got {inside.shape} and {outside.shape}"
        )
    s = snp.concatenate([inside, outside], axis=-1)
    flag = np.repeat(np.array([0, 1], np.int32), [inside.shape[-1], outside.shape[-1]])
    return s, snp.broadcast_to(flag, s.shape)


def _found(scores: Array, positive: Array) -> tuple[Array, Array]:
    """Return positives and negatives with a score at or above each, in falling order: int32."""
    key, flag = lax.sort((-scores, positive), dimension=-1, num_keys=1)
    n = key.shape[-1]
    # Counts at the last of equal scores hold for all of them.
    differs = snp.not_equal(key[..., 1:], key[..., :-1])
    last = snp.pad(differs, [(0, 0)] * (key.ndim - 1) + [(0, 1)], constant_values=True)
    place = lax.cummin(snp.where(last, snp.arange(n), n - 1), axis=key.ndim - 1, reverse=True)
    counts = (snp.cumsum(flag, axis=-1), snp.cumsum(1 - flag, axis=-1))
    true, false = (snp.take_along_axis(c, place, axis=-1) for c in counts)
    return true, false


def _step(counts: Array) -> Array:
    """Return the gain from one threshold to the next, from zero on, in counts, which are exact."""
    padded = snp.pad(counts, [(0, 0)] * (counts.ndim - 1) + [(1, 0)])
    return padded[..., 1:] - padded[..., :-1]


def _defined(result: Array, scores: Array, positive: Array) -> Array:
    """Put NaN where a score is, or one kind has no examples."""
    total, n = snp.sum(positive, axis=-1), positive.shape[-1]
    undefined = snp.any(snp.isnan(scores), axis=-1) | (total == 0) | (total == n)
    return snp.where(undefined, np.nan, result)


def _auroc(scores: Array, positive: Array) -> Array:
    true, false = _found(scores, positive)
    # Trapezia: over a group of ties the curve is straight.
    middle = (2 * true - _step(true)).astype(scores.dtype) / (2 * _total(true, scores))
    area = snp.sum(_step(false).astype(scores.dtype) * middle, axis=-1)
    return _defined(area / _total(false, scores)[..., 0], scores, positive)


def _aupr(scores: Array, positive: Array) -> Array:
    true, false = _found(scores, positive)
    precision = true.astype(scores.dtype) / (true + false).astype(scores.dtype)
    area = snp.sum(_step(true).astype(scores.dtype) * precision, axis=-1)
    return _defined(area / _total(true, scores)[..., 0], scores, positive)


def _fpr(scores: Array, positive: Array, tpr: float, caller: str) -> Array:
    if not 0 < tpr <= 1:
        raise ValueError(f"{caller}: tpr must be in (0, 1], got {tpr}")
    true, false = _found(scores, positive)
    # The least count k with k / total ≥ tpr; rounding of tpr × total must not ask for one more.
    enough = true.astype(scores.dtype) >= snp.ceil(_total(true, scores) * tpr * (1 - 1e-6))
    rate = snp.where(enough, false.astype(scores.dtype) / _total(false, scores), 1)
    return _defined(snp.min(rate, axis=-1), scores, positive)


def _total(counts: Array, scores: Array) -> Array:
    """Return the last count, which is the greatest, as a divisor: 1 where there are none."""
    return snp.maximum(counts[..., -1:], 1).astype(scores.dtype)


def _of_losses(caller: str, scores: ArrayLike, losses: ArrayLike) -> tuple[Array, Array]:
    s = at_least_float32(scores, caller, "scores")
    loss = at_least_float32(losses, caller, "losses")
    if s.ndim < 1 or loss.ndim < 1 or s.shape[-loss.ndim :] != loss.shape or not s.shape[-1]:
        raise ValueError(
            f"{caller}: expected scores of shape (..., examples) and losses of shape (examples,), "
            f"of at least one example; got {s.shape} and {loss.shape}"
        )
    return s, snp.broadcast_to(loss, s.shape)


def _tail_sums(losses: Array) -> Array:
    """Return Σ over k ≥ i of 1 / k, how much the i-th loss in the order weighs in the area."""
    n = losses.shape[-1]
    weights = np.cumsum(1 / np.arange(n, 0, -1.0))[::-1].astype(losses.dtype)
    return of_rank(snp.asarray(weights), losses.ndim)


def _aurc(scores: Array, losses: Array) -> Array:
    order = snp.argsort(scores, axis=-1)
    s = snp.take_along_axis(scores, order, axis=-1)
    loss = snp.take_along_axis(losses, order, axis=-1)
    # Equal scores share their weights: the mean over all their orders.
    n = s.shape[-1]
    differs = snp.not_equal(s[..., 1:], s[..., :-1]).astype(np.int32)
    tie = snp.pad(snp.cumsum(differs, axis=-1), [(0, 0)] * (s.ndim - 1) + [(1, 0)])
    weights = snp.broadcast_to(_tail_sums(loss), s.shape)

    def shared(tie: Array, weights: Array) -> Array:
        total = lax.segment_sum(weights, tie, num_segments=n)
        count = lax.segment_sum(snp.ones_like(weights), tie, num_segments=n)
        return (total / snp.maximum(count, 1))[tie]

    weights = vmap(shared)(tie.reshape(-1, n), weights.reshape(-1, n)).reshape(s.shape)
    area = snp.mean(loss * weights, axis=-1)
    return snp.where(snp.any(snp.isnan(scores), axis=-1), np.nan, area)
