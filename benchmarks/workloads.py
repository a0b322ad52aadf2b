"""What a row is, and the rows about overheads: inputs, tolerances, and what must be reached.

Every worker takes its inputs from here, so all frameworks compute on the same numbers. The
ensembles are in `workloads_ensembles`; `catalogue` puts all rows together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CHAIN_LENGTH",
    "OVERHEAD_ROWS",
    "Goal",
    "Workload",
    "affine_inputs",
    "chain_input",
    "eager_add_inputs",
    "product_inputs",
]

Floats: TypeAlias = NDArray[np.float32]

CHAIN_LENGTH = 1_000
PRODUCT_SIZE = 1_024


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
    `left_out` maps contestants that do not take part to the reason. `shows_memory`: the row
    belongs to the table that has every formulation in a column, with the memory it takes.
    """

    name: str
    title: str
    unit: Literal["us", "ms"]
    goals: tuple[Goal, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    flops: int = 0
    timed_by: Literal["worker", "import"] = "worker"
    left_out: dict[str, str] = field(default_factory=dict)
    shows_memory: bool = False


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


def _normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _of_jax(first: float, final: float) -> tuple[Goal, Goal]:
    return Goal("jax", first, "first"), Goal("jax", final, "final")


# A chain of 1,000 multiplications rounds 1,000 times, by half of 2**-23 each, on either side.
_CHAIN_RTOL = 2 * CHAIN_LENGTH * 2.0**-24

OVERHEAD_ROWS: list[Workload] = [
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
]
