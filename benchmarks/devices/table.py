"""The rows: calls on arrays that are split, moving them, and steps of training over devices."""

from __future__ import annotations

from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import Goal, Workload

__all__ = ["COUNTS", "DATA", "MEMBERS", "RATE", "ROWS", "Sizes", "batch", "initial", "small"]

COUNTS = (2, 4)
"""How many devices the arrays of a row are split over."""

RATE = 0.01
Sizes: TypeAlias = tuple[int, ...]
DATA: Sizes = (64, 256, 256, 10)
"""The layers of the network that is trained on parts of a batch."""
MEMBERS: Sizes = (784, 128, 128, 10)
"""Those of the members of an ensemble."""

_EXAMPLES, _COUNT = 256, 8
_CALLS = (
    ("call", "x + 1, of one array of 64×8"),
    ("call-of-ten", "ten sums, of ten arrays of 64×8"),
    ("put", "device_put of a NumPy array of 64×8"),
    ("move", "device_put of such an array, rows to columns"),
)
_STEPS = (
    ("data-step", f"MLP {'-'.join(map(str, DATA))}, {_EXAMPLES} examples split: step"),
    ("members-step", f"{_COUNT} × MLP {'-'.join(map(str, MEMBERS))}, B=64, members split: step"),
)

ROWS: dict[str, Workload] = {
    f"{name}-{n}": Workload(
        f"{name}-{n}", f"{title}, over {n} devices", unit, (Goal("fastest", most),), 1e-4, 1e-5
    )
    for rows, unit, most in ((_CALLS, "us", 1.0), (_STEPS, "us", 1.05))
    for name, title in rows
    for n in COUNTS
}


def small() -> NDArray[np.float32]:
    """What calls are made on."""
    return np.arange(512, dtype=np.float32).reshape(64, 8) / 512


def initial(sizes: Sizes, members: int = 0) -> list[tuple[NDArray[np.float32], ...]]:
    """Weights and biases of each layer, of one network or of stacked ones."""
    rng, front = np.random.default_rng(0), (members,) if members else ()
    layers = []
    for i, o in pairwise(sizes):
        weights = rng.standard_normal((*front, i, o)).astype(np.float32) / np.sqrt(i)
        layers.append((weights.astype(np.float32), np.zeros((*front, o), np.float32)))
    return layers


def batch(sizes: Sizes, members: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Examples and targets, of one network or of stacked ones."""
    rng, front = np.random.default_rng(1), (members, 64) if members else (_EXAMPLES,)
    x = rng.standard_normal((*front, sizes[0])).astype(np.float32)
    return x, rng.standard_normal((*front, sizes[-1])).astype(np.float32)
