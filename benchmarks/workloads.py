"""What a row is, and the rows about overheads: inputs, tolerances, and what must be reached.

Every worker takes its inputs from here, so all frameworks compute on the same numbers. The
ensembles are in `workloads_ensembles`; `catalogue` puts all rows together.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "CHAIN_LENGTH",
    "OVERHEAD_ROWS",
    "QUICK_ROUNDS",
    "SETTLE",
    "Goal",
    "Workload",
    "affine_inputs",
    "chain_input",
    "dict_inputs",
    "eager_add_inputs",
    "eager_product_inputs",
    "lengths_inputs",
    "mlp_inputs",
    "product_inputs",
    "start_inputs",
    "transformed_inputs",
]

Floats: TypeAlias = NDArray[np.float32]

CHAIN_LENGTH = 1_000
DICT_SIZE = 20
LENGTHS = 1_000
PRODUCT_SIZE = 1_024
QUICK_ROUNDS = 5

SETTLE = 0.05
"""Seconds before a batch, in which the threads of the worker before stop waiting for work.

OpenBLAS's idle threads, for one, keep a core busy for some 30 ms.
"""


@dataclass(frozen=True)
class Goal:
    """Stretto's time divided by a peer's, at most `at_most`.

    `peer` is a column's name, or "fastest": whichever peer, in whichever formulation, has the
    smallest median in this run.
    """

    peer: str
    at_most: float


@dataclass(frozen=True)
class Exact:
    """Where rounding decides single numbers: what is compared in float64, and what in float32.

    The case `name` with the formulation `FORMULATION` computes the row in float64, in each
    framework, and must agree with the others' within `tolerance`. `by_norm` are the places of the
    results that are matrices, whose rows are compared by their norms in float32; `rounding` has
    how.
    """

    name: str
    tolerance: float
    by_norm: tuple[int, ...]
    FORMULATION: ClassVar[str] = "float64"


@dataclass(frozen=True)
class Workload:
    """One row. Results of two frameworks must agree within `rtol` and `atol`.

    `exact` is for results of which rounding decides single numbers. `of_largest` adds to `atol`
    this part of the largest number of an array: what rounding leaves of sums that cancel.
    `unit` is what the table shows; every time is kept in seconds. `flops` counts the
    floating-point operations of the matrix products, 0 where they are not the point.
    `left_out` maps contestants that do not take part to the reason. `shows_memory`: the row
    belongs to the table that has every formulation in a column, with the memory it takes.
    `quick_rounds` are those of the quick run; 0 leaves the row out of it. `warm_up`: a round
    comes before those that count; not where each time is like the first. `settle` seconds pass
    before each batch. `program` is the module, and its arguments, that a start runs in place of
    `benchmarks.start_<framework>`, with `{framework}` in it.
    """

    name: str
    title: str
    unit: Literal["us", "ms"]
    goals: tuple[Goal, ...] = ()
    rtol: float = 0.0
    atol: float = 0.0
    of_largest: float = 0.0
    exact: Exact | None = None
    flops: int = 0
    timed_by: Literal["worker", "import", "first start", "second start"] = "worker"
    left_out: dict[str, str] = field(default_factory=dict)
    shows_memory: bool = False
    quick_rounds: int = QUICK_ROUNDS
    warm_up: bool = True
    settle: float = SETTLE
    program: tuple[str, ...] = ()


def eager_add_inputs() -> tuple[Floats, Floats]:
    """Two vectors of 4 floats."""
    return _normal(0, 4), _normal(1, 4)


def affine_inputs() -> tuple[Floats, Floats, Floats]:
    """`x` of 4 floats, `W` of 4×2, `b` of 2."""
    return _normal(0, 4), _normal(1, 4, 2), _normal(2, 2)


def chain_input() -> Floats:
    """4 floats near 1, whose 1,001st power is still an ordinary number."""
    return 1 + np.float32(1e-3) * _normal(0, 4)


def eager_product_inputs() -> NDArray[np.int32]:
    """A vector of 4 integers."""
    return np.arange(1, 5, dtype=np.int32)


def transformed_inputs() -> tuple[Floats, Floats, Floats]:
    """A batch of 8 vectors of 4 floats, and the affine function's `W` and `b`."""
    return _normal(3, 8, 4), *affine_inputs()[1:]


def mlp_inputs() -> tuple[list[tuple[Floats, Floats]], Floats, Floats]:
    """Three layers `(W, b)`, 64 wide; a batch of 32, and the targets.

    No unit is near ReLU's kink, where rounding would decide whether it is on.
    """
    scale = np.float32((2 / 64) ** 0.5)
    layers = [(scale * _normal(i, 64, 64), _normal(10 + i, 64)) for i in range(3)]
    return layers, _normal(20, 32, 64), _normal(21, 32, 64)


def dict_inputs() -> dict[str, Floats]:
    """20 arrays of 8 floats by name."""
    return {f"parameter_{i}": _normal(i, 8) for i in range(DICT_SIZE)}


def lengths_inputs() -> list[Floats]:
    """1,000 vectors, their lengths drawn from 1 to 1,000: some 600 different ones."""
    lengths = np.random.default_rng(0).integers(1, 1_000, LENGTHS, endpoint=True)
    return [_normal(i, length) for i, length in enumerate(lengths.tolist())]


def start_inputs() -> tuple[list[tuple[Floats, Floats]], Floats]:
    """Ten MLPs 784-128-128-10, stacked, and the batch of 64 that all of them see."""
    sizes = (784, 128, 128, 10)
    layers = [
        (np.float32((2 / i) ** 0.5) * _normal(n, 10, i, o), _normal(10 + n, 10, o))
        for n, (i, o) in enumerate(pairwise(sizes))
    ]
    return layers, _normal(20, 64, sizes[0])


def product_inputs() -> tuple[Floats, Floats]:
    """Two square matrices of 1,024."""
    return _normal(0, PRODUCT_SIZE, PRODUCT_SIZE), _normal(1, PRODUCT_SIZE, PRODUCT_SIZE)


def _normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _of_jax(at_most: float) -> tuple[Goal]:
    return (Goal("jax", at_most),)


# A chain of 1,000 multiplications rounds 1,000 times, by half of 2**-23 each, on either side.
_CHAIN_RTOL = 2 * CHAIN_LENGTH * 2.0**-24

# Sums of 5 terms of order 1, in any order.
_AFFINE_ATOL = 1e-6

OVERHEAD_ROWS: list[Workload] = [
    Workload("eager-add", "eager add, 4 floats", "us", (Goal("jax", 0.15), Goal("numpy", 3.0))),
    Workload("eager-product", "eager x @ x, 4 integers", "us", _of_jax(0.3)),
    Workload("eager-affine", "eager x @ W + b, 4×2", "us", _of_jax(0.2), atol=_AFFINE_ATOL),
    # tanh(x @ W + b) from here to the gradient; its slope is at most 1, the sums are as above.
    Workload("eager-jvp", "eager jvp of tanh(x @ W + b)", "us", _of_jax(0.3), atol=4e-6),
    Workload("eager-vjp", "eager vjp of tanh(x @ W + b)", "us", _of_jax(0.3), atol=4e-6),
    Workload("eager-vmap", "eager vmap of tanh(x @ W + b)", "us", _of_jax(0.3), atol=4e-6),
    # Three sums of 64 products of order 1, divided by the 2,048 outputs.
    Workload(
        "eager-gradient",
        "eager grad of a 3-layer MLP's loss, 64 wide, batch 32",
        "us",
        _of_jax(0.2),
        rtol=1e-4,
        atol=1e-6,
    ),
    Workload("jitted-affine", "jitted x @ W + b, 4×2", "us", _of_jax(1.0), atol=_AFFINE_ATOL),
    Workload(
        "jitted-affine-compiled",
        "the same, compiled for certain",
        "us",
        _of_jax(1.0),
        atol=_AFFINE_ATOL,
    ),
    Workload("jitted-dict", f"jitted, compiled, {DICT_SIZE} arrays in a dict", "us", _of_jax(1.0)),
    Workload("trace-chain", "trace 1,000 multiplies", "ms", _of_jax(0.15), rtol=_CHAIN_RTOL),
    Workload("lower-chain", "lower that trace", "ms", _of_jax(0.25), rtol=_CHAIN_RTOL),
    Workload(
        "compile-chain",
        "compile that chain",
        "ms",
        _of_jax(0.25),
        rtol=_CHAIN_RTOL,
        quick_rounds=3,
        warm_up=False,
    ),
    Workload("dead-chain", "1,000 dead multiplies, first call", "ms", _of_jax(0.3)),
    # A product of three rounds twice.
    Workload(
        "lengths",
        f"{LENGTHS:,} calls of jitted x * x * x, random lengths",
        "ms",
        _of_jax(0.02),
        rtol=4 * 2.0**-24,
        quick_rounds=0,  # for which JAX takes two minutes alone
        warm_up=False,
    ),
    Workload(
        "import",
        "import the package",
        "ms",
        _of_jax(0.4),
        timed_by="import",
        quick_rounds=2,
        warm_up=False,
    ),
    # As the ensembles' forward passes: sums of up to 784 products, amplified by the layers behind.
    Workload(
        "start-first",
        "new process to the first ensemble, nothing on disk",
        "ms",
        rtol=1e-4,
        atol=5e-5,
        timed_by="first start",
        quick_rounds=0,
        warm_up=False,
    ),
    Workload(
        "start-second",
        "the same, second start",
        "ms",
        _of_jax(0.5),
        rtol=1e-4,
        atol=5e-5,
        timed_by="second start",
        quick_rounds=3,
        warm_up=False,
    ),
    # The best of all columns here is the peak that the table's fractions refer to. Errors of
    # float32 sums of 1,024 products of order 1: some 2e-4.
    Workload("product", "1,024³ product", "ms", rtol=1e-4, atol=1e-3, flops=2 * PRODUCT_SIZE**3),
]
