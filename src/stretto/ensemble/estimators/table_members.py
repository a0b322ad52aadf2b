"""The members of an estimator, and what they are trained to make small.

A batch is a dictionary: ``x`` and ``y``, and ``w``, the weight of each example, or ``i``, its place
among the weights that each member has of its own.

The rows of a table as examples: weighted, merged where they are equal, and standardized.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np

import stretto.numpy as snp
from stretto import nn, random
from stretto._engine.core.errors import meant
from stretto._engine.core.typing import Array, Key, Tree
from stretto.nn.module import Module

_SEED = 0x57E770  # of the numbers that rows are told apart by


class Examples(NamedTuple):
    """Rows that differ, in an order that depends on their values alone."""

    x: np.ndarray
    """(examples, features), float64."""
    y: np.ndarray
    """(examples, outputs), float64."""
    weights: np.ndarray
    """(examples,), float64, positive."""

    def at(self, places: np.ndarray) -> Examples:
        """Those at these places."""
        return Examples(self.x[places], self.y[places], self.weights[places])


class Scale(NamedTuple):
    """What is subtracted from each column, and what it is then divided by."""

    mean: np.ndarray
    scale: np.ndarray

    def __call__(self, x: np.ndarray) -> np.ndarray:
        """The standardized columns, of float32."""
        return ((x - self.mean) / self.scale).astype(np.float32)


def merged(x: np.ndarray, y: np.ndarray, weights: np.ndarray | None) -> Examples:
    """Examples of positive weight, equal ones merged into one with the sum of their weights.

    An example of weight 2 is thereby the same as two of it, one of weight 0 the same as none, and
    the order of the rows does not matter, to the last bit.
    """
    y = y.reshape(len(y), -1)
    weights = np.ones(len(x)) if weights is None else np.asarray(weights, np.float64)
    rows = np.concatenate([x, y], axis=1, dtype=np.float64) + 0.0  # −0 is 0
    here = weights > 0
    rows, weights = rows[here], weights[here]
    # By a number made of all bits of a row: sorting rows themselves costs a hundred times as much.
    # Rows that share it without being equal are at worst not merged.
    factors = np.random.default_rng(_SEED).integers(2**63, size=rows.shape[1], dtype=np.uint64)
    bits = np.ascontiguousarray(rows).view(np.uint64)
    numbers = ((bits ^ (bits >> np.uint64(32))) * (2 * factors + np.uint64(1))).sum(axis=1)
    order = np.argsort(numbers, kind="stable")
    rows, weights = rows[order], weights[order]
    new = np.ones(len(rows), bool)
    new[1:] = (rows[1:] != rows[:-1]).any(axis=1)
    starts = np.flatnonzero(new)
    rows = rows[starts]
    features = x.shape[1]
    return Examples(rows[:, :features], rows[:, features:], np.add.reduceat(weights, starts))


def scale_of(columns: np.ndarray, weights: np.ndarray, standardize: bool) -> Scale:
    """The weighted means and standard deviations; 1 for a column that is constant."""
    if not standardize:
        return Scale(np.zeros(columns.shape[1]), np.ones(columns.shape[1]))
    mean = np.average(columns, axis=0, weights=weights)
    spread = np.sqrt(np.average(np.square(columns - mean), axis=0, weights=weights))
    constant = spread <= 10 * np.finfo(np.float64).eps * np.abs(mean)
    return Scale(mean, np.where(constant, 1.0, spread))


def halves(
    count: int, fraction: float, rng: np.random.Generator, caller: str
) -> tuple[np.ndarray, np.ndarray]:
    """Places of examples to train on, and of those held out."""
    if not 0 < fraction < 1:
        raise ValueError(f"{caller}: validation_fraction must be in (0, 1), got {fraction}")
    held = max(1, round(fraction * count))
    if held >= count:
        raise ValueError(
            f"{caller}: early_stopping=True holds out {held} of {count} different examples, which "
            f"leaves none to train on; give more examples, or early_stopping=False"
        )
    places = rng.permutation(count)
    return np.sort(places[held:]), np.sort(places[:held])


def counted(weights: np.ndarray, members: int, rng: np.random.Generator) -> np.ndarray:
    """How often each member has each example: a sample with replacement of its own (Efron, 1979).

    (members, examples). Weights are taken for numbers of examples, made larger where they add up to
    less than the examples there are.
    """
    total = max(len(weights), round(weights.sum()))
    return rng.multinomial(total, weights / weights.sum(), size=members).astype(np.float64)


ACTIVATIONS: Mapping[str, type[Module]] = {
    "relu": nn.ReLU,
    "gelu": nn.GELU,
    "silu": nn.SiLU,
    "tanh": nn.Tanh,
}

LEAST_VARIANCE = 1e-4
"""Of a prediction, in units of the variance of the targets."""


def perceptron(
    key: Key,
    inputs: int,
    outputs: int,
    hidden: Sequence[int],
    activation: str,
    dropout: float,
    caller: str,
) -> Module:
    """Linear layers of these widths, with an activation after each but the last."""
    if activation not in ACTIVATIONS:
        guess = meant(str(activation), ACTIVATIONS)
        raise ValueError(
            f"{caller}: activation must be one of {', '.join(ACTIVATIONS)}, got {activation!r}"
            f"{'' if guess is None else f' (did you mean {guess!r}?)'}; model= takes a function "
            f"that makes any module"
        )
    widths = [inputs, *hidden]
    keys = random.split(key, len(widths))
    layers: list[Module] = []
    for i, (before, after) in enumerate(itertools.pairwise(widths)):
        layers += [nn.Linear(before, after, key=keys[i]), ACTIVATIONS[activation]()]
        if dropout:
            layers.append(nn.Dropout(dropout))
    return nn.Sequential(*layers, nn.Linear(widths[-1], outputs, key=keys[-1]))


def _weighted(losses: Array, batch: Mapping[str, Array], weights: Array | None) -> Array:
    """Their mean; a validation batch has weights itself."""
    if weights is not None and "i" in batch:
        return snp.mean(losses * snp.take(weights, batch["i"], 0))
    return snp.mean(losses * batch["w"])


def cross_entropy(member: Tree, batch: Mapping[str, Array], weights: Array | None = None) -> Array:
    """−log p of the class y."""
    losses = nn.functional.cross_entropy(member(batch["x"]), batch["y"], reduction="none")
    return _weighted(losses, batch, weights)


def squares(member: Tree, batch: Mapping[str, Array], weights: Array | None = None) -> Array:
    """(y − μ)², summed over outputs."""
    losses = snp.sum(snp.square(member(batch["x"]) - batch["y"]), axis=-1)
    return _weighted(losses, batch, weights)


def gaussian(member: Tree, batch: Mapping[str, Array], weights: Array | None = None) -> Array:
    """½ (log σ² + (y − μ)² / σ²), summed over outputs (Nix and Weigend, 1994)."""
    means, raw = snp.split(member(batch["x"]), 2, axis=-1)
    variances = nn.functional.softplus(raw) + LEAST_VARIANCE
    losses = snp.log(variances) + snp.square(batch["y"] - means) / variances
    return _weighted(snp.sum(losses, axis=-1) / 2, batch, weights)
