"""Combination: from the predictions of all members to one; and which members, with what weights.

Axis 0 of every argument is that of members; all others remain. What takes ``predictions`` works
alike for probabilities, logits and numbers; what takes ``probs`` or ``logits`` means just these,
over the last axis. Results are float32, or float64 where the predictions are, and are
differentiable unless they are votes. Read ``uncertainty`` for what a combination hides.

``stacking_weights`` and ``greedy_selection`` take ``probs`` of shape (members, examples, classes)
of examples that the members were not trained on, and give weights for ``weighted_mean``. They work
under ``jit`` and ``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.score_arguments import (
    at_least,
    at_least_float32,
    check_labels,
    clamped,
    concrete,
    mark_as_average,
    of_members,
    one_hot_like,
    to_sum_one,
)
from stretto.ensemble.scores import nll
from stretto.nn.functional.activations import indicator
from stretto.numpy.normalized import log_softmax, softmax

__all__ = ["Selection", "geometric_mean", "greedy_selection", "log_mean", "logit_mean",
           "majority_vote", "maximum", "mean", "median", "product_of_experts", "stacking_weights",
           "trimmed_mean", "vote_shares", "weighted_mean"]  # fmt: skip

Weights: TypeAlias = ArrayLike | Sequence[float]

_LARGE = 80.0  # whose exponential float32 holds


def mean(predictions: ArrayLike) -> Array:
    """Return the mean over the members: of probabilities, the linear opinion pool (Stone, 1961).

    Args:
        predictions: (members, ...).

    Returns:
        (...).

    Raises:
        ValueError: no axis of members, or none of them.

    >>> mean(snp.array([[0.75, 0.25], [0.25, 0.75]])).tolist()
    [0.5, 0.5]
    """
    return mark_as_average(snp.mean(of_members("mean", predictions, "predictions", "..."), axis=0))


def weighted_mean(predictions: ArrayLike, weights: Weights, *, normalize: bool = False) -> Array:
    """Return the mean over the members by their weights, which are divided by their sum.

    Args:
        predictions: (members, ...).
        weights: (members,); or (members, outputs), each output's own, where outputs are the last
            axis, or the last axes, of the predictions. Probabilities combined so need not add up
            to 1.
        normalize: divide the result by its sum over the last axis.

    Returns:
        (...).

    Raises:
        ValueError: another number of weights than of members or outputs; a weight that is negative,
            infinite or NaN; weights that add up to 0. The values of traced weights are not
            checked. For a combination with negative weights use ``snp.tensordot(weights,
            predictions, 1)``.

    >>> predictions = snp.array([[1.0, 0.0], [0.0, 1.0]])
    >>> weighted_mean(predictions, [3, 1]).tolist()
    [0.75, 0.25]
    >>> weighted_mean(predictions, snp.array([[3.0, 0.0], [1.0, 1.0]])).tolist()
    [0.75, 1.0]
    """
    p = of_members("weighted_mean", predictions, "predictions", "...")
    combined = snp.sum(p * _shares("weighted_mean", weights, p), axis=0)
    return mark_as_average(to_sum_one(combined) if normalize else combined)


def median(predictions: ArrayLike, *, normalize: bool = False) -> Array:
    """Return the median over members, output by output; of an even number, the middle two's mean.

    Robust: fewer than half of the members cannot move it arbitrarily. Medians of probabilities need
    not add up to 1 (Kittler et al., 1998, median rule).

    Args:
        predictions: (members, ...).
        normalize: divide the result by its sum over the last axis; all zeros become equal.

    Returns:
        (...), NaN where a member's is.

    Raises:
        ValueError: no axis of members, or none of them.

    >>> float(median(snp.array([1.0, 2.0, 9.0])))
    2.0
    """
    p = of_members("median", predictions, "predictions", "...")
    combined = snp.median(p, axis=0)
    return mark_as_average(to_sum_one(combined) if normalize else combined)


def trimmed_mean(predictions: ArrayLike, cut: float = 0.1, *, normalize: bool = False) -> Array:
    """Return the mean over the members without the least and the greatest of each output.

    Args:
        predictions: (members, ...).
        cut: the share of members to leave out at each end, rounded down to whole members, as in
            ``scipy.stats.trim_mean``.
        normalize: divide the result by its sum over the last axis; all zeros become equal.

    Returns:
        (...).

    Raises:
        ValueError: ``cut`` is not in [0, 0.5); no axis of members, or none of them.

    >>> float(trimmed_mean(snp.array([1.0, 2.0, 3.0, 90.0]), 0.25))
    2.5
    """
    if not 0 <= cut < 0.5:
        raise ValueError(f"trimmed_mean: cut must be in [0, 0.5), a share at each end; got {cut}")
    p = of_members("trimmed_mean", predictions, "predictions", "...")
    members = p.shape[0]
    left_out = int(cut * members)
    kept = snp.sort(p, axis=0)[left_out : members - left_out]
    missing = snp.any(snp.isnan(p), axis=0)  # sorted last, it would be left out in silence
    combined = snp.where(missing, np.nan, snp.mean(kept, axis=0))
    return mark_as_average(to_sum_one(combined) if normalize else combined)


@described_like(mean)
def maximum(predictions: ArrayLike, *, normalize: bool = False) -> Array:
    """Return the greatest over the members, output by output (Kittler et al., 1998, max rule).

    Args:
        normalize: divide the result by its sum over the last axis, as probabilities need it.

    >>> maximum(snp.array([[0.75, 0.25], [0.25, 0.75]]), normalize=True).tolist()
    [0.5, 0.5]
    """
    p = of_members("maximum", predictions, "predictions", "...")
    combined = snp.max(p, axis=0)
    return mark_as_average(to_sum_one(combined) if normalize else combined)


def vote_shares(predictions: ArrayLike, weights: Weights | None = None) -> Array:
    """Return each class's share of the members' votes; a member votes for its greatest output.

    A member's tie goes to the first class. A member with a NaN does not vote.

    Args:
        predictions: (members, ..., classes), probabilities or logits.
        weights: (members,), or ``None`` for equal ones.

    Returns:
        (..., classes), adding up to 1; zeros where nobody votes.

    Raises:
        ValueError: as ``weighted_mean`` for the weights; no axis of members or classes.

    >>> vote_shares(snp.array([[0.9, 0.1], [0.4, 0.6], [0.2, 0.8], [0.3, 0.7]])).tolist()
    [0.25, 0.75]
    """
    return _votes("vote_shares", predictions, weights)


@described_like(vote_shares)
def majority_vote(predictions: ArrayLike, weights: Weights | None = None) -> Array:
    """Return the class with most of the members' votes; a tie goes to the first of its classes.

    A member votes for its greatest output, likewise the first of equals. The rule for ties is that
    of scikit-learn's ``VotingClassifier``.

    Returns:
        (...), int32.

    >>> members = snp.array([[0.9, 0.1], [0.4, 0.6], [0.4, 0.6]])
    >>> int(majority_vote(members)), int(majority_vote(members, [3, 1, 1]))
    (1, 0)
    """
    return snp.argmax(_votes("majority_vote", predictions, weights), axis=-1)


def geometric_mean(probs: ArrayLike, weights: Weights | None = None) -> Array:
    """Return the normalized geometric mean of probabilities: the logarithmic opinion pool.

    p_c ∝ Π over members of p_mc^w_m with Σ w = 1 (Genest and Zidek, 1986): the mean of log
    probabilities. A probability that underflowed to zero counts as the least normal number.

    Args:
        probs: (members, ..., classes).
        weights: (members,), divided by their sum; or ``None`` for equal ones.

    Returns:
        (..., classes), adding up to 1.

    Raises:
        ValueError: as ``weighted_mean`` for the weights; no axis of members or classes.

    >>> geometric_mean(snp.array([[0.9, 0.1], [0.5, 0.5]])).tolist()
    [0.75, 0.25]
    """
    p = of_members("geometric_mean", probs)
    shares = _shares("geometric_mean", _or_equal(weights, p), p)
    return mark_as_average(softmax(snp.sum(snp.log(clamped(p)) * shares, axis=0), axis=-1))


@described_like(geometric_mean)
def product_of_experts(probs: ArrayLike) -> Array:
    """Return the normalized product of the members' probabilities (Hinton, 2002).

    Sharper than ``geometric_mean``, which takes the members' root of the product: right where
    members have seen independent evidence. A zero counts as the least normal number.

    Raises:
        ValueError: no axis of members or classes, or no member.

    >>> product_of_experts(snp.array([[0.75, 0.25], [0.5, 0.5]])).tolist()
    [0.75, 0.25]
    """
    p = of_members("product_of_experts", probs)
    return mark_as_average(softmax(snp.sum(snp.log(clamped(p)), axis=0), axis=-1))


@described_like(geometric_mean)
def logit_mean(logits: ArrayLike, weights: Weights | None = None) -> Array:
    """Return the probabilities of the mean logits: ``geometric_mean`` that never leaves logarithms.

    softmax(Σ over members of w_m z_m), with Σ w = 1.

    Args:
        logits: (members, ..., classes).

    >>> logit_mean(snp.log(snp.array([[0.9, 0.1], [0.5, 0.5]]))).round(3).tolist()
    [0.75, 0.25]
    """
    z = of_members("logit_mean", logits, "logits")
    shares = _shares("logit_mean", _or_equal(weights, z), z)
    return mark_as_average(softmax(snp.sum(z * shares, axis=0), axis=-1))


@described_like(logit_mean)
def log_mean(logits: ArrayLike, weights: Weights | None = None) -> Array:
    """Return the logarithm of the members' mean probability, from their logits, without underflow.

    log Σ over members of w_m softmax(z_m), with Σ w = 1. The result is log probabilities, which are
    logits too: of the ensemble, for ``nll_from_logits`` and ``fit_temperature``.

    Returns:
        (..., classes), at most 0.

    >>> logits = snp.array([[0.0, -200.0], [0.0, -300.0]])  # exp(-200) is 0 in float32
    >>> log_mean(logits).round(2)  # -200 - log 2
    Array([   0.  , -200.69], dtype=float32)
    """
    z = of_members("log_mean", logits, "logits")
    shares = _shares("log_mean", _or_equal(weights, z), z)
    logs = log_softmax(z, axis=-1)
    top = lax.stop_gradient(snp.max(snp.where(shares > 0, logs, -np.inf), axis=0))
    top = snp.where(snp.isneginf(top), 0, top)
    # Members without weight may lie far above: they must not overflow, and keep a derivative.
    total = snp.sum(shares * snp.exp(snp.minimum(logs - top[None], _LARGE)), axis=0)
    none = snp.equal(total, 0)
    return snp.where(none, -np.inf, snp.log(snp.where(none, 1, total)) + top)


def _votes(caller: str, predictions: ArrayLike, weights: Weights | None) -> Array:
    p = of_members(caller, predictions, "predictions")
    shares = _shares(caller, _or_equal(weights, p), p[..., 0])
    shares = snp.where(snp.any(snp.isnan(p), axis=-1), 0, shares)[..., None]
    votes = snp.sum(indicator(snp.argmax(p, axis=-1), p.shape[-1], p.dtype) * shares, axis=0)
    total = snp.sum(votes, axis=-1, keepdims=True)
    return votes / snp.where(total > 0, total, 1)


def _or_equal(weights: Weights | None, predictions: Array) -> Weights:
    return snp.ones(predictions.shape[0], predictions.dtype) if weights is None else weights


def _shares(caller: str, weights: Weights, predictions: Array) -> Array:
    """Return the weights divided by their sum, of a shape to multiply the predictions with."""
    w = at_least_float32(snp.asarray(weights), caller, "weights")
    members, *outputs = predictions.shape
    own = w.shape[1:]  # each output's own
    if w.ndim < 1 or w.shape[0] != members or tuple(outputs[len(outputs) - len(own) :]) != own:
        raise ValueError(
            f"{caller}: expected {members} weights, one a member, or weights of shape (members, "
            f"outputs), each output's own; got shape {w.shape} for predictions of shape "
            f"{predictions.shape}"
        )
    values = concrete(w)
    if values is not None:
        wrong = ~((values >= 0) & (values < np.inf))
        if wrong.any():
            place = tuple(int(i[0]) for i in np.nonzero(wrong))
            raise ValueError(
                f"{caller}: weights must be finite and not negative; got {values[place]} for "
                f"member {place[0]}"
            )
        if not values.sum(axis=0).all():
            raise ValueError(f"{caller}: the weights add up to 0, so there is no mean by them")
    shares = (w / snp.sum(w, axis=0)).astype(predictions.dtype)
    return shares.reshape(members, *[1] * (len(outputs) - len(own)), *own)


def stacking_weights(
    probs: ArrayLike, labels: ArrayLike, *, tolerance: float = 1e-5, max_steps: int = 10_000
) -> Array:
    """Return the convex weights of the mean with the least NLL: stacking (Smyth and Wolpert, 1999).

    They minimize −mean over examples of log Σ_m w_m p_m[label], which is convex in w, by
    expectation and maximization: w_m ← w_m × g_m with g_m = mean over examples of
    p_m[label] / Σ w p[label]. No other weights are better by more than log max_m g_m nats
    (Lindsay, 1983), and the search ends when this is at most ``tolerance``.

    Args:
        probs: (members, examples, classes). A zero counts as the least normal number.
        labels: (examples,), integers.
        tolerance: how far above the least NLL the result may be, in nats.
        max_steps: when to stop in any case.

    Returns:
        (members,), not negative, adding up to 1. Not differentiable in reverse: it is found by a
        loop whose number of steps is unknown.

    Raises:
        ValueError: shapes do not match, a label is out of range, a tolerance that is not positive.
        TypeError: labels are not integers.

    >>> always_right = snp.array([[0.9, 0.1], [0.1, 0.9]])
    >>> probs = snp.stack([always_right, always_right[::-1]])
    >>> stacking_weights(probs, snp.array([0, 1])).round(3)
    Array([1., 0.], dtype=float32)
    """
    p, y = _held_out("stacking_weights", probs, labels)
    if not tolerance > 0:
        raise ValueError(f"stacking_weights: tolerance must be positive, got {tolerance}")
    members = p.shape[0]
    of_label = clamped(snp.sum(p * one_hot_like(p, y), axis=-1))
    # Only ratios within an example count; this keeps them from underflow.
    of_label = of_label / snp.max(of_label, axis=0, keepdims=True)

    def gains(weights: Array) -> Array:
        return snp.mean(of_label / (weights @ of_label)[None], axis=-1)

    def unfinished(carry: tuple[Array, Array, Array]) -> Array:
        _, g, step = carry
        return (snp.log(snp.max(g)) > tolerance) & (step < max_steps)

    def improve(carry: tuple[Array, Array, Array]) -> tuple[Array, Array, Array]:
        w, g, step = carry
        w = w * g
        w = w / snp.sum(w)
        return w, gains(w), step + 1

    equal = snp.full((members,), 1 / members, p.dtype)
    weights, last, _ = lax.while_loop(unfinished, improve, (equal, gains(equal), snp.int32(0)))
    return snp.where(snp.any(snp.isnan(last)), np.nan, weights)


class Selection(NamedTuple):
    """The choice of greedy selection."""

    weights: Array
    """The share of choices that each member had until the score was best, (members,)."""
    order: Array
    """The member chosen in each round, (rounds,), int32."""
    scores: Array
    """The score of the mean of all chosen until then, (rounds,)."""


def greedy_selection(
    probs: ArrayLike,
    labels: ArrayLike,
    rounds: int,
    *,
    score: Callable[[Any, Any], Any] = nll,
    replacement: bool = True,
) -> Selection:
    """Choose members one by one, each time that whose addition to the mean scores best.

    Ensemble selection of Caruana et al. (2004): from the best member on, with replacement, and of
    all rounds the one with the best score counts. Equals go to the first member, and to the
    earliest round.

    Args:
        probs: (members, examples, classes).
        labels: (examples,), integers.
        rounds: how many times to choose.
        score: of (members, examples, classes) and labels to (members,), lower is better; for
            example ``lambda p, y: -accuracy(p, y)``.
        replacement: whether a member may be chosen again, which gives it more weight.

    Returns:
        ``Selection`` of weights, order and scores.

    Raises:
        ValueError: shapes do not match, a label is out of range, no rounds, or without replacement
            more rounds than members.
        TypeError: labels are not integers.

    >>> good, bad = [[0.9, 0.1], [0.1, 0.9]], [[0.1, 0.9], [0.9, 0.1]]
    >>> chosen = greedy_selection(snp.array([bad, good]), snp.array([0, 1]), rounds=2)
    >>> chosen.weights.tolist(), chosen.order.tolist()
    ([0.0, 1.0], [1, 1])
    """
    p, y = _held_out("greedy_selection", probs, labels)
    members = p.shape[0]
    at_least(1, rounds, "greedy_selection", "round")
    if not replacement and rounds > members:
        raise ValueError(
            f"greedy_selection: without replacement there are at most {members} rounds, one a "
            f"member; got {rounds}"
        )

    def choose(carry: tuple[Array, Array], number: Array) -> tuple[Any, Any]:
        total, counts = carry
        scores_with = snp.asarray(score((total + p) / number, y))
        if scores_with.shape != (members,):
            raise ValueError(
                f"greedy_selection: score must give one number a member, shape ({members},), for "
                f"probabilities of shape {p.shape}; it gave {scores_with.shape}"
            )
        # NaN is the worst, so that a member that diverged is not chosen.
        ranked = snp.where(snp.isnan(scores_with), np.inf, scores_with).astype(p.dtype)
        if not replacement:
            ranked = snp.where(counts > 0, np.inf, ranked)
        best = snp.argmin(ranked)
        counts = counts + indicator(best, members, p.dtype)
        return (total + snp.take(p, best, axis=0), counts), (best, snp.take(ranked, best), counts)

    start = (snp.zeros_like(p[0]), snp.zeros(members, p.dtype))
    numbers = snp.arange(1, rounds + 1, dtype=p.dtype)
    _, (order, scores, counts) = lax.scan(choose, start, numbers)
    best = snp.argmin(scores)
    return Selection(snp.take(counts / numbers[:, None], best, axis=0), order, scores)


def _held_out(caller: str, probs: ArrayLike, labels: ArrayLike) -> tuple[Array, Array]:
    p, y = check_labels(caller, probs, labels)
    if p.ndim != 3 or y.ndim != 1 or 0 in p.shape:
        raise ValueError(
            f"{caller}: expected probs of shape (members, examples, classes), none of them 0, and "
            f"labels of shape (examples,); got {p.shape} and {y.shape}"
        )
    return p, y
