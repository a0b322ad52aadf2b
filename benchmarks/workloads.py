"""The rows of the table: what each workload is, its inputs, its tolerance, and what it must reach.

Every worker takes its inputs from here, so all frameworks compute on the same numbers.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "BATCHES",
    "CHAIN_LENGTH",
    "MEMBERS",
    "WORKLOADS",
    "Batch",
    "Goal",
    "Workload",
    "affine_inputs",
    "chain_input",
    "eager_add_inputs",
    "ensemble_inputs",
    "product_inputs",
]

Floats: TypeAlias = NDArray[np.float32]
Batch: TypeAlias = Literal["same", "own"]
"""Whether all members of an ensemble see the same batch, or each its own."""

BATCHES: tuple[Batch, ...] = ("same", "own")
CHAIN_LENGTH = 1_000
MEMBERS = 10
BATCH_SIZE = 64
LAYER_SIZES = (784, 128, 128, 10)
PRODUCT_SIZE = 1_024

# With this seed no activation of the ensemble lies within 1e-5 of ReLU's kink, so that rounding
# cannot switch a unit on in one framework and off in another (tests/benchmarks checks it).
ENSEMBLE_SEED = 9


@dataclass(frozen=True)
class Goal:
    """Stretto's time divided by a peer's, at most `at_most`.

    `peer` is a column's name, or "fastest": whichever peer, in whichever formulation, has the
    smallest median in this run. A "first" goal is due already, a "final" one is where to arrive.
    """

    peer: str
    at_most: float
    stage: Literal["first", "final"]


@dataclass(frozen=True)
class Workload:
    """One row. Results of two frameworks must agree within `rtol` and `atol`.

    `unit` is what the table shows; every time is kept in seconds. `flops` counts the
    floating-point operations of the matrix products, 0 where they are not the point.
    """

    name: str
    title: str
    unit: Literal["us", "ms"]
    goals: tuple[Goal, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    flops: int = 0
    timed_by: Literal["worker", "import"] = "worker"


def eager_add_inputs() -> tuple[Floats, Floats]:
    """Two vectors of 4 floats."""
    return _normal(0, 4), _normal(1, 4)


def affine_inputs() -> tuple[Floats, Floats, Floats]:
    """`x` of 4 floats, `W` of 4×2, `b` of 2."""
    return _normal(0, 4), _normal(1, 4, 2), _normal(2, 2)


def chain_input() -> Floats:
    """4 floats near 1, whose 1,001st power is still an ordinary number."""
    return 1 + np.float32(1e-3) * _normal(0, 4)


def product_inputs() -> tuple[Floats, Floats]:
    """Two square matrices of 1,024."""
    return _normal(0, PRODUCT_SIZE, PRODUCT_SIZE), _normal(1, PRODUCT_SIZE, PRODUCT_SIZE)


def ensemble_inputs(batch: Batch) -> tuple[list[tuple[Floats, Floats]], Floats, Floats]:
    """Parameters of the ten networks, stacked on axis 0, their inputs, and their targets.

    The parameters are one `(W[member, in, out], b[member, out])` for each layer. Inputs and
    targets have the member axis only where `batch` is "own".
    """
    random = np.random.default_rng(ENSEMBLE_SEED)

    def normal(*shape: int, scale: float = 1.0) -> Floats:
        return (scale * random.standard_normal(shape)).astype(np.float32)

    params = [
        (normal(MEMBERS, i, o, scale=(2 / i) ** 0.5), normal(MEMBERS, o, scale=0.1))
        for i, o in pairwise(LAYER_SIZES)
    ]
    x = normal(MEMBERS, BATCH_SIZE, LAYER_SIZES[0])
    target = normal(MEMBERS, BATCH_SIZE, LAYER_SIZES[-1])
    return (params, x, target) if batch == "own" else (params, x[0], target[0])


def _normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _of_jax(first: float, final: float) -> tuple[Goal, Goal]:
    return Goal("jax", first, "first"), Goal("jax", final, "final")


def _ensemble_rows() -> list[Workload]:
    """Forward pass and gradient of the mean squared error, same batch and own batches."""
    weights = [i * o for i, o in pairwise(LAYER_SIZES)]
    forward = 2 * MEMBERS * BATCH_SIZE * sum(weights)
    # Backward: once more for the weights, and once for the activations of all but the first layer.
    gradient = 2 * MEMBERS * BATCH_SIZE * (3 * sum(weights) - weights[0])
    goals = (Goal("jax", 1.1, "first"), Goal("fastest", 1.05, "final"))
    phrase = {"same": "same batch", "own": "own batches"}
    # float32 sums of 784 products of order 1 differ by some 1e-6 between orders of summation,
    # which the two layers behind it amplify a few times.
    return [
        Workload(
            f"ensemble-{kind}-{batch}",
            f"{MEMBERS} MLPs: {kind}, {phrase[batch]}",
            "us",
            goals,
            rtol=1e-4,
            atol=atol,
            flops=flops,
        )
        for kind, flops, atol in (("forward", forward, 2e-5), ("gradient", gradient, 1e-6))
        for batch in BATCHES
    ]


# A chain of 1,000 multiplications rounds 1,000 times, by half of 2**-23 each, on either side.
_CHAIN_RTOL = 2 * CHAIN_LENGTH * 2.0**-24

_ROWS: list[Workload] = [
    Workload(
        "eager-add",
        "eager add, 4 floats",
        "us",
        (*_of_jax(0.25, 0.15), Goal("numpy", 3.0, "final")),
    ),
    # Sums of 5 terms of order 1, in any order.
    Workload("jitted-affine", "jitted x @ W + b, 4×2", "us", _of_jax(1.3, 1.0), atol=1e-6),
    Workload("trace-chain", "trace 1,000 multiplies", "ms", _of_jax(0.25, 0.15), rtol=_CHAIN_RTOL),
    Workload("lower-chain", "lower that trace", "ms", _of_jax(0.4, 0.25), rtol=_CHAIN_RTOL),
    Workload("import", "import the package", "ms", _of_jax(0.5, 0.4), timed_by="import"),
    # The best of all columns here is the peak that the table's fractions refer to. Errors of
    # float32 sums of 1,024 products of order 1: some 2e-4.
    Workload("product", "1,024³ product", "ms", rtol=1e-4, atol=1e-3, flops=2 * PRODUCT_SIZE**3),
    *_ensemble_rows(),
]

WORKLOADS: dict[str, Workload] = {row.name: row for row in _ROWS}
