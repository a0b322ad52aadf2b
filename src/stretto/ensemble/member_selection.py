"""Selection: which members to combine, and with what weights, as held-out examples have it.

Each takes ``probs`` of shape (members, examples, classes) of examples that the members were not
trained on, and gives weights for ``combination.weighted_mean``. All work under ``jit`` and
``vmap``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.score_arguments import at_least, clamped, labeled, one_hot_like
from stretto.ensemble.scores import nll
from stretto.nn.functional.activations import indicator

__all__ = ["Selection", "greedy_selection", "stacking_weights"]


def stacking_weights(
    probs: ArrayLike, labels: ArrayLike, *, tolerance: float = 1e-5, max_steps: int = 10_000
) -> Array:
    """The convex weights of the mean with the least NLL: stacking (Smyth and Wolpert, 1999).

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
    """What greedy selection chose."""

    weights: Array
    """How often each member was chosen until the score was best, (members,); adds up to 1."""
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
    p, y = labeled(caller, probs, labels)
    if p.ndim != 3 or y.ndim != 1 or 0 in p.shape:
        raise ValueError(
            f"{caller}: expected probs of shape (members, examples, classes), none of them 0, and "
            f"labels of shape (examples,); got {p.shape} and {y.shape}"
        )
    return p, y
