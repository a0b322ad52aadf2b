"""Diversity: how differently two members behave over a data set, pair by pair.

Arguments are ``probs`` of shape (members, ..., examples, classes), for which logits will do, since
only votes count, and ``labels`` of shape (examples,); results are symmetric, (members, members,
...). The definitions are those of Kuncheva and Whitaker (2003). ``uncertainty`` has the same
example by example.
"""

from __future__ import annotations

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.typing import Array, ArrayLike
from stretto.ensemble.arguments import labeled, of_members
from stretto.ensemble.probabilities import correct
from stretto.nn.functional.activations import indicator

__all__ = ["cohen_kappa", "pairwise_disagreement", "q_statistic"]


def pairwise_disagreement(predictions: ArrayLike) -> Array:
    """The share of examples on which two members predict different classes.

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


def cohen_kappa(predictions: ArrayLike) -> Array:
    """How far two members agree beyond chance: 1 always, 0 as chance would have it (Cohen, 1960).

    (a − e) / (1 − e) with a the share of examples on which they agree, and e that expected if they
    predicted classes as often as they do, but independently.

    Args:
        predictions: (members, ..., examples, classes), probabilities or logits.

    Returns:
        (members, members, ...), from −1 to 1; NaN where both predict one class only.

    Raises:
        ValueError: no axis of members, examples or classes.

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
    """Yule's Q of two members being right: 1 if on the same examples, negative if on others.

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
    right = correct(*labeled("q_statistic", p, labels, "predictions"))
    both, neither = _pairs(right), _pairs(1 - right)
    first = snp.sum(right, axis=-1)[:, None] - both
    second = snp.swapaxes(first, 0, 1)
    return _ratio(both * neither - first * second, both * neither + first * second)


def _votes(caller: str, predictions: ArrayLike) -> Array:
    """(members, ..., examples, classes): 1 at the greatest output; NaN where an output is."""
    p = of_members(caller, predictions, "predictions", "..., examples, classes")
    votes = indicator(snp.argmax(p, axis=-1), p.shape[-1], p.dtype)
    return snp.where(snp.any(snp.isnan(p), axis=-1, keepdims=True), np.nan, votes)


def _pairs(x: Array) -> Array:
    """(members, ..., n) to (members, members, ...): the inner product of each two members' rows."""
    rows = snp.moveaxis(x, 0, -2)
    return snp.moveaxis(rows @ snp.swapaxes(rows, -1, -2), (-2, -1), (0, 1))


def _ratio(above: Array, below: Array) -> Array:
    """Their quotient, NaN where the divisor is 0."""
    zero = snp.equal(below, 0)
    return snp.where(zero, np.nan, above / snp.where(zero, 1, below))
