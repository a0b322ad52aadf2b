"""Measure how unsure an ensemble is, and how far its members disagree.

``probs`` of shape (members, ..., classes) are probabilities over the last axis; ``logits`` are not.
Entropies are in nats. Results are float32, or float64 where the argument is. All but votes are
differentiable. Read ``detection`` for how well such a score tells unknown inputs from known ones.

Diversity: how differently two members behave over a data set, pair by pair.

Arguments are ``probs`` of shape (members, ..., examples, classes), for which logits will do, since
only votes count, and ``labels`` of shape (examples,); results are symmetric, (members, members,
...). The definitions are those of Kuncheva and Whitaker (2003). The functions of one example are
above.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.combination import vote_shares
from stretto.ensemble.score_arguments import (
    are_members,
    at_least_float32,
    check_labels,
    clamped,
    concrete,
    correct,
    of_members,
)
from stretto.nn.functional.activations import indicator
from stretto.numpy.normalized import logsumexp

__all__ = ["TotalVariance", "cohen_kappa", "confidence", "disagreement", "energy_score",
           "expected_entropy", "margin", "mutual_information", "pairwise_disagreement",
           "pairwise_js", "pairwise_kl", "predictive_entropy", "q_statistic", "total_variance",
           "variance", "variation_ratio"]  # fmt: skip


def predictive_entropy(probs: ArrayLike) -> Array:
    """Return the entropy of the ensemble's mean prediction, in nats: all its uncertainty.

    H[mean over members of p], with H[p] = −Σ_c p_c log p_c and 0 log 0 = 0 (Shannon, 1948).

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
    return _entropy(snp.mean(are_members("predictive_entropy", probs), axis=0))


@described_like(predictive_entropy)
def expected_entropy(probs: ArrayLike) -> Array:
    """Return the members' mean entropy, in nats: the uncertainty that each of them has alone.

    The aleatoric part of ``predictive_entropy`` (Depeweg et al., 2018); the rest of it is
    ``mutual_information``.

    >>> probs = snp.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> [round(x, 4) for x in expected_entropy(probs).tolist()]
    [0.0, 0.6931]
    """
    return snp.mean(_entropy(are_members("expected_entropy", probs)), axis=0)


@described_like(predictive_entropy)
def mutual_information(probs: ArrayLike) -> Array:
    """Say how much the members disagree, in nats: what knowing the right member would tell.

    H[mean over members of p] − mean over members of H[p]: the mutual information between the
    prediction and the member (BALD; Houlsby et al., 2011, equation 2), which is the members'
    Jensen-Shannon divergence. Zero where all members agree, however unsure each is.

    Returns:
        (...), from 0 to log(members).

    >>> probs = snp.array([[[1.0, 0.0], [0.5, 0.5]], [[0.0, 1.0], [0.5, 0.5]]])
    >>> [round(x, 4) for x in mutual_information(probs).tolist()]  # they disagree; all are unsure
    [0.6931, 0.0]
    """
    p = are_members("mutual_information", probs)
    information = _entropy(snp.mean(p, axis=0)) - snp.mean(_entropy(p), axis=0)
    return snp.maximum(information, 0)  # below zero by rounding only (Jensen)


@described_like(predictive_entropy)
def confidence(probs: ArrayLike) -> Array:
    """Return the largest of the ensemble's mean probabilities (Hendrycks and Gimpel, 2017).

    Returns:
        (...), from 1 / classes to 1; low where the ensemble is unsure.

    >>> float(confidence(snp.array([[1.0, 0.0], [0.5, 0.5]])))
    0.75
    """
    return snp.max(snp.mean(are_members("confidence", probs), axis=0), axis=-1)


def margin(probs: ArrayLike) -> Array:
    """Return the largest less the second largest of the ensemble's mean probabilities.

    Args:
        probs: (members, ..., classes), of at least 2 classes.

    Returns:
        (...), from 0 to 1; low where the ensemble is unsure.

    Raises:
        ValueError: probs has no axis of members, or fewer than 2 classes.

    Source: Scheffer et al., Active Hidden Markov Models for Information Extraction, 2001.

    >>> float(margin(snp.array([[1.0, 0.0], [0.5, 0.5]])))
    0.5
    """
    p = are_members("margin", probs)
    if p.shape[-1] < 2:
        raise ValueError(f"margin: expected at least 2 classes on the last axis, got {p.shape}")
    first, second = snp.moveaxis(lax.top_k(snp.mean(p, axis=0), 2)[0], -1, 0)
    return first - second


def variation_ratio(predictions: ArrayLike) -> Array:
    """Return the share of members that do not vote for the class most of them vote for.

    1 − (votes of the modal class) / members (Freeman, 1965).

    Args:
        predictions: (members, ..., classes), probabilities or logits.

    Returns:
        (...), from 0 to 1 − 1 / classes.

    Raises:
        ValueError: no axis of members or classes.

    >>> float(variation_ratio(snp.array([[0.9, 0.1], [0.4, 0.6], [0.3, 0.7], [0.2, 0.8]])))
    0.25
    """
    p = are_members("variation_ratio", predictions, "predictions")
    return 1 - snp.max(vote_shares(p), axis=-1)


@described_like(variation_ratio)
def disagreement(predictions: ArrayLike) -> Array:
    """Return the share of pairs of members that vote for different classes.

    M / (M − 1) × (1 − Σ_c share_c²) for M members; 0 for one member. ``pairwise_disagreement`` has
    the same over a data set, pair by pair.

    Returns:
        (...), from 0 to 1.

    >>> round(float(disagreement(snp.array([[0.9, 0.1], [0.6, 0.4], [0.2, 0.8]]))), 4)
    0.6667
    """
    p = are_members("disagreement", predictions, "predictions")
    members, shares = p.shape[0], vote_shares(p)
    return (1 - snp.sum(shares * shares, axis=-1)) * (members / max(members - 1, 1))


def variance(predictions: ArrayLike) -> Array:
    """Return the population variance over the members, output by output: divided by their number.

    Args:
        predictions: (members, ...), of any meaning.

    Returns:
        (...), at least 0; 0 for one member.

    Raises:
        ValueError: no axis of members, or none of them.

    >>> float(variance(snp.array([1.0, 3.0])))
    1.0
    """
    return snp.var(are_members("variance", predictions, "predictions", "..."), axis=0)


class TotalVariance(NamedTuple):
    """The moments of a mixture of members that each predict a Gaussian."""

    mean: Array
    """(...): the mean of the members' means."""
    aleatoric: Array
    """(...): the mean of their variances: noise, as the members see it."""
    epistemic: Array
    """(...): the variance of their means: how far they disagree."""

    @property
    def total(self) -> Array:
        """(...): the variance of the mixture, the sum of the two."""
        return self.aleatoric + self.epistemic


def total_variance(means: ArrayLike, variances: ArrayLike) -> TotalVariance:
    """Return mean and variance of an equal mixture of Gaussians, by the law of total variance.

    Var y = E[Var(y | member)] + Var(E[y | member]); as an ensemble's predictive distribution in
    Lakshminarayanan et al. (2017), section 2.4; the parts are those of Kendall and Gal (2017).

    Args:
        means: (members, ...).
        variances: (members, ...), of the same shape, not negative (checked unless traced).

    Returns:
        ``TotalVariance`` of mean, aleatoric and epistemic variance, each (...).

    Raises:
        ValueError: shapes differ, or a variance is negative.

    >>> parts = total_variance(snp.array([0.0, 2.0]), snp.array([0.25, 0.75]))
    >>> float(parts.mean), float(parts.aleatoric), float(parts.epistemic), float(parts.total)
    (1.0, 0.5, 1.0, 1.5)
    """
    m = are_members("total_variance", means, "means", "...")
    v = are_members("total_variance", variances, "variances", "...")
    if m.shape != v.shape:
        raise ValueError(
            f"total_variance: expected variances of the shape of means, {m.shape}; got {v.shape}"
        )
    values = concrete(v)
    if values is not None and (values < 0).any():
        raise ValueError(
            f"total_variance: variances must not be negative, got {values.min()}; if a head "
            f"predicts log variances, pass their exponentials"
        )
    return TotalVariance(snp.mean(m, axis=0), snp.mean(v, axis=0), snp.var(m, axis=0))


@described_like(predictive_entropy)
def pairwise_kl(probs: ArrayLike) -> Array:
    """Return the Kullback-Leibler divergence of each member's prediction from the others', in nats.

    KL(p_i ‖ p_j) = Σ_c p_ic log(p_ic / p_jc) (Kullback and Leibler, 1951). A probability that
    underflowed to zero counts as the least normal number in the logarithm, so that results are
    finite.

    Returns:
        (members, members, ...), at least 0; i first, then j; 0 on the diagonal.

    >>> pairwise_kl(snp.array([[0.5, 0.5], [0.25, 0.75]])).round(4)
    Array([[0.    , 0.1438],
           [0.1308, 0.    ]], dtype=float32)
    """
    p = are_members("pairwise_kl", probs)
    logs = snp.log(clamped(p))
    own = snp.sum(p * logs, axis=-1)
    # Σ_c p_ic log p_jc of each example: one product of (members, classes) matrices.
    across = snp.moveaxis(p, 0, -2) @ snp.swapaxes(snp.moveaxis(logs, 0, -2), -1, -2)
    across = snp.moveaxis(across, (-2, -1), (0, 1))
    members = snp.eye(p.shape[0], dtype=bool).reshape(*[p.shape[0]] * 2, *[1] * (p.ndim - 2))
    # Below zero by rounding only (Gibbs).
    return snp.where(members, 0, snp.maximum(own[:, None] - across, 0))


@described_like(predictive_entropy)
def pairwise_js(probs: ArrayLike) -> Array:
    """Return the Jensen-Shannon divergence of each two members' predictions, in nats.

    JS(p_i, p_j) = H[(p_i + p_j) / 2] − (H[p_i] + H[p_j]) / 2 (Lin, 1991). One member is held
    against all the others at a time, which bounds the memory.

    Returns:
        (members, members, ...), from 0 to log 2, symmetric.

    >>> pairwise_js(snp.array([[1.0, 0.0], [0.0, 1.0]])).round(4)
    Array([[0.    , 0.6931],
           [0.6931, 0.    ]], dtype=float32)
    """
    p = are_members("pairwise_js", probs)
    entropies = _entropy(p)

    def against_all(one: tuple[Array, Array]) -> Array:
        q, entropy = one
        return snp.maximum(_entropy((q[None] + p) / 2) - (entropy[None] + entropies) / 2, 0)

    return lax.map(against_all, (p, entropies))


def energy_score(logits: ArrayLike, temperature: float = 1.0) -> Array:
    """Return the free energy of logits, high for unfamiliar inputs (Liu et al., 2020, eq. 4).

    −T logsumexp(z / T) over classes. Not the proper scoring rule of that name, which is
    ``energy_score_ensemble``.

    Args:
        logits: (..., classes); of an ensemble, for example the mean over its members.
        temperature: T, positive.

    Returns:
        (...).

    Raises:
        ValueError: logits is a single number.

    >>> round(float(energy_score(snp.array([0.0, 0.0]))), 4)  # -log 2
    -0.6931
    """
    z = at_least_float32(logits, "energy_score", "logits")
    if z.ndim < 1:
        raise ValueError(f"energy_score: expected logits of shape (..., classes), got {z.shape}")
    return -temperature * logsumexp(z / temperature, axis=-1)


def _entropy(probs: Array) -> Array:
    """Return −Σ p log p over the last axis; the inner ``where`` keeps its slope finite at 0."""
    zero = snp.equal(probs, 0)
    return -snp.sum(snp.where(zero, 0, probs * snp.log(snp.where(zero, 1, probs))), axis=-1)


def pairwise_disagreement(predictions: ArrayLike) -> Array:
    """Return the share of examples on which two members predict different classes.

    Args:
        predictions: (members, ..., examples, classes), probabilities or logits.

    Returns:
        (members, members, ...), from 0 to 1.

    Raises:
        ValueError: no axis of members, examples or classes.

    >>> predictions = snp.array([[[0.9, 0.1], [0.8, 0.2]], [[0.9, 0.1], [0.2, 0.8]]])
    >>> pairwise_disagreement(predictions).tolist()
    [[0.0, 0.5], [0.5, 0.0]]
    """
    votes = _votes("pairwise_disagreement", predictions)
    return 1 - _pairs(votes.reshape(*votes.shape[:-2], -1)) / votes.shape[-2]


@described_like(pairwise_disagreement)
def cohen_kappa(predictions: ArrayLike) -> Array:
    """Say how far two members agree beyond chance: 1 always, 0 as by chance (Cohen, 1960).

    (a − e) / (1 − e) with a the share of examples on which they agree, and e that expected if they
    predicted classes as often as they do, but independently.

    Returns:
        (members, members, ...), from −1 to 1; NaN where both predict one class only.

    >>> predictions = snp.array([[[0.9, 0.1], [0.2, 0.8]], [[0.9, 0.1], [0.2, 0.8]]])
    >>> cohen_kappa(predictions).tolist()
    [[1.0, 1.0], [1.0, 1.0]]
    """
    votes = _votes("cohen_kappa", predictions)
    examples = votes.shape[-2]
    agreed = _pairs(votes.reshape(*votes.shape[:-2], -1)) / examples
    expected = _pairs(snp.sum(votes, axis=-2) / examples)
    return _ratio(agreed - expected, 1 - expected)


def q_statistic(predictions: ArrayLike, labels: ArrayLike) -> Array:
    """Return Yule's Q of two members being right: 1 if on the same examples, negative if on others.

    (n₁₁n₀₀ − n₀₁n₁₀) / (n₁₁n₀₀ + n₀₁n₁₀), with n₁₀ the number of examples that the first has right
    and the second wrong (Yule, 1900). 0 for independent members.

    Args:
        predictions: (members, ..., examples, classes), probabilities or logits.
        labels: (examples,), integers.

    Returns:
        (members, members, ...), from −1 to 1; NaN where both products are 0.

    Raises:
        ValueError: shapes do not match, or a label is out of range.
        TypeError: labels are not integers.

    >>> predictions = snp.array([[[0.9, 0.1], [0.9, 0.1]], [[0.1, 0.9], [0.1, 0.9]]])
    >>> q_statistic(predictions, snp.array([0, 1]))[0, 1].tolist()  # never right together
    -1.0
    """
    p = of_members("q_statistic", predictions, "predictions", "..., examples, classes")
    right = correct(*check_labels("q_statistic", p, labels, "predictions"))
    both, neither = _pairs(right), _pairs(1 - right)
    first = snp.sum(right, axis=-1)[:, None] - both
    second = snp.swapaxes(first, 0, 1)
    return _ratio(both * neither - first * second, both * neither + first * second)


def _votes(caller: str, predictions: ArrayLike) -> Array:
    """Return (members, ..., examples, classes): 1 at the greatest output; NaN where one is."""
    p = of_members(caller, predictions, "predictions", "..., examples, classes")
    votes = indicator(snp.argmax(p, axis=-1), p.shape[-1], p.dtype)
    return snp.where(snp.any(snp.isnan(p), axis=-1, keepdims=True), np.nan, votes)


def _pairs(x: Array) -> Array:
    """Return (members, members, ...) of (members, ..., n): inner products of two members' rows."""
    rows = snp.moveaxis(x, 0, -2)
    return snp.moveaxis(rows @ snp.swapaxes(rows, -1, -2), (-2, -1), (0, 1))


def _ratio(above: Array, below: Array) -> Array:
    """Return their quotient, NaN where the divisor is 0."""
    zero = snp.equal(below, 0)
    return snp.where(zero, np.nan, above / snp.where(zero, 1, below))
