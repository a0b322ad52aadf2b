"""What combinations, scores and calibrators all do with probabilities.

Arguments are arrays already, checked by ``arguments``. Read ``combination`` or ``scores`` next.
"""

from __future__ import annotations

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.typing import Array
from stretto._engine.ops.broadcast import of_rank
from stretto.nn.functional.activations import indicator

__all__ = ["clamped", "correct", "one_hot_like", "to_sum_one"]


def clamped(probs: Array) -> Array:
    """At least the least normal number, which a probability that underflowed to 0 counts as."""
    return snp.maximum(probs, float(np.finfo(probs.dtype).tiny))


def correct(probs: Array, labels: Array) -> Array:
    """(..., examples): 1 where the most probable class is the label; NaN where a probability is."""
    right = (snp.argmax(probs, axis=-1) == of_rank(labels, probs.ndim - 1)).astype(probs.dtype)
    return snp.where(snp.any(snp.isnan(probs), axis=-1), np.nan, right)


def one_hot_like(probs: Array, labels: Array) -> Array:
    """(..., examples, classes) of ``probs``'s dtype: 1 at the label."""
    return of_rank(indicator(labels, probs.shape[-1], probs.dtype), probs.ndim)


def to_sum_one(values: Array) -> Array:
    """Divided by their sum over the last axis; all zeros become equal."""
    total = snp.sum(values, axis=-1, keepdims=True)
    some = snp.not_equal(total, 0)
    return snp.where(some, values / snp.where(some, total, 1), 1 / values.shape[-1])
