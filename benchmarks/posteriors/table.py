"""The rows: fits of curvature, predictions from it, and chains; weights and data for all."""

from __future__ import annotations

from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Goal, Workload

__all__ = ["CHAIN", "CLASSES", "FEW", "LAYERS", "MEMBERS", "POINTS", "ROWS", "Chain",
           "cnn_weights", "curve", "images", "labels", "mlp_weights", "start", "summary",
           "vectors"]  # fmt: skip

Floats = NDArray[np.float32]

LAYERS = (784, 256, 128, 10)
CLASSES = 10
MEMBERS = 10
POINTS = 32
"""Examples of which a prediction is made."""
FEW = 64
"""Examples of a diagonal fit: BackPACK keeps a matrix of 235,000 weights for each ten of them."""


class Chain(NamedTuple):
    """Stochastic gradient Hamiltonian Monte Carlo over a small network, and its data."""

    chains: int = 20
    steps: int = 2_000
    hidden: int = 50
    examples: int = 128
    rate: float = 1e-3
    friction: float = 10.0
    noise: float = 0.1


CHAIN = Chain()

_FITS = (Goal("torch curvlinops", 0.35),)

ROWS: dict[str, Workload] = {
    name: Workload(name, title, "ms", goals, rtol, atol, of_largest=of_largest, left_out=left_out)
    for name, title, goals, rtol, atol, of_largest, left_out in (
        ("kron-fit-mlp", "MLP 784-256-128-10, 1,000 examples: Kronecker factors",
         _FITS, 1e-3, 0.0, 1e-4, {}),
        ("kron-fit-cnn", "CNN 1-16-32-10, 256 images of 28×28: Kronecker factors",
         _FITS, 1e-3, 0.0, 1e-4, {}),
        ("kron-fit-members", f"{MEMBERS} MLPs, 1,000 examples: Kronecker factors",
         (), 1e-3, 0.0, 1e-4, {}),
        ("ggn-product-mlp", "MLP 784-256-128-10, 1,000 examples: a product with the GGN",
         (), 1e-3, 0.0, 1e-4, {}),
        ("diagonal-fit-mlp", f"MLP 784-256-128-10, {FEW} examples: diagonal of the GGN",
         (), 1e-3, 0.0, 1e-4, {}),
        ("last-layer-fit-mlp", "MLP 784-256-128-10, 1,000 examples: the last layer's whole GGN",
         (), 1e-3, 0.0, 1e-4, {}),
        ("kron-predictive-mlp", f"MLP 784-256-128-10, {POINTS} points: covariances by factors",
         (Goal("torch", 0.05),), 2e-3, 0.0, 1e-3, {}),
        ("kron-predictive-cnn", f"CNN 1-16-32-10, {POINTS} points: covariances by factors",
         (Goal("torch", 0.05),), 2e-3, 0.0, 1e-3, {}),
        ("sghmc", f"SGHMC, {CHAIN.chains} chains of {CHAIN.steps:,} steps, MLP 1-{CHAIN.hidden}-1",
         (Goal("jax", 0.9),), 0.0, 0.03, 0.0, {}),
    )
}  # fmt: skip


def mlp_weights(member: int = 0) -> list[tuple[Floats, Floats]]:
    """Weights of shape (out, in) and biases of each layer."""
    rng = np.random.default_rng(member)
    return [
        (
            (rng.standard_normal((o, i)) / np.sqrt(i)).astype(np.float32),
            (0.1 * rng.standard_normal(o)).astype(np.float32),
        )
        for i, o in pairwise(LAYERS)
    ]


def cnn_weights() -> list[tuple[Floats, Floats]]:
    """Those of two convolutions of 3×3 with a step of two, and of the layer behind them."""
    rng = np.random.default_rng(7)
    shapes = ((16, 1, 3, 3), (32, 16, 3, 3), (10, 32 * 6 * 6))
    return [
        (
            (rng.standard_normal(s) / np.sqrt(np.prod(s[1:]))).astype(np.float32),
            (0.1 * rng.standard_normal(s[0])).astype(np.float32),
        )
        for s in shapes
    ]


def vectors(count: int) -> Floats:
    """Inputs of the MLP."""
    return np.random.default_rng(1).standard_normal((count, LAYERS[0])).astype(np.float32)


def images(count: int) -> Floats:
    """Inputs of the CNN."""
    return np.random.default_rng(2).standard_normal((count, 1, 28, 28)).astype(np.float32)


def labels(count: int) -> NDArray[np.int64]:
    """Classes of as many examples."""
    return np.random.default_rng(3).integers(0, CLASSES, count)


def curve() -> tuple[Floats, Floats]:
    """Inputs and targets of the chains' network."""
    x = np.linspace(-1, 1, CHAIN.examples, dtype=np.float32)[:, None]
    return x, np.sin(3 * x).astype(np.float32)


def start() -> dict[str, Floats]:
    """The chains' first weights, stacked."""
    rng, hidden, front = np.random.default_rng(4), CHAIN.hidden, (CHAIN.chains,)
    return {
        "w": rng.standard_normal((*front, 1, hidden)).astype(np.float32),
        "b": np.zeros((*front, hidden), np.float32),
        "v": (rng.standard_normal((*front, hidden, 1)) / hidden**0.5).astype(np.float32),
        "c": np.zeros((*front, 1), np.float32),
    }


def summary(draws: Any) -> list[NDArray[Any]]:
    """Mean and standard deviation of (chains, steps, points), without the first half of the steps.

    Chains of two frameworks have other random numbers: these differ by what so few of them leave.
    """
    kept = np.asarray(draws)[:, CHAIN.steps // 2 :]
    return [kept.mean((0, 1)), kept.std((0, 1))]
