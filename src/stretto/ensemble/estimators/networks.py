"""The members of an estimator, and what they are trained to make small.

A batch is a dictionary: ``x`` and ``y``, and ``w``, the weight of each example, or ``i``, its place
among the weights that each member has of its own.
"""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import stretto.numpy as snp
from stretto import nn, random
from stretto._engine.core.spelling import meant
from stretto._engine.core.typing import Array, Key, Tree
from stretto.nn.module import Module

__all__ = ["LEAST_VARIANCE", "cross_entropy", "gaussian", "perceptron", "squares"]

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
