"""Shapes that change: the rows about lengths that vary between calls, and between the examples.

Inputs are drawn with NumPy from seeds, so all frameworks compute on the same numbers. What a row
computes is written in `shapes_<framework>`.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from benchmarks.workloads import LENGTHS, Goal, Workload, lengths_inputs

__all__ = [
    "BATCHES",
    "CALLS",
    "HEADS",
    "MODELS",
    "SHAPE_ROWS",
    "WIDTH",
    "Batch",
    "Kind",
    "RaggedTask",
    "as_rectangle",
    "call_inputs",
    "call_weights",
    "parts",
    "power_of_two",
    "ragged_tasks",
    "summary",
    "valid_of",
    "weights",
]

Floats: TypeAlias = NDArray[np.float32]
Kind: TypeAlias = Literal["forward", "gradient"]

WIDTH, HIDDEN, HEADS = 64, 256, 4
"""Features of an element, of the layer inside of an MLP, and heads of the attention."""

LONGEST = 256


@dataclass(frozen=True)
class Batch:
    """So many examples, whose lengths are drawn in one way."""

    name: str
    title: str
    examples: int = 32

    def lengths(self) -> list[int]:
        """The lengths, from 1 to `LONGEST`."""
        rng = np.random.default_rng(0)
        if self.name == "uniform":
            return rng.integers(1, LONGEST, self.examples, endpoint=True).tolist()
        drawn = np.exp(rng.normal(np.log(40.0), 1.0, self.examples))
        return np.clip(drawn, 1, LONGEST).astype(int).tolist()

    @property
    def valid(self) -> float:
        """The share of the rectangle up to the longest that is not padding."""
        lengths = self.lengths()
        return sum(lengths) / (len(lengths) * max(lengths))


BATCHES = (Batch("uniform", "uniform"), Batch("skewed", "log-normal"))

MODELS: dict[str, str] = {
    "attention": f"self-attention, {HEADS} heads",
    "block": f"transformer block, MLP of {HIDDEN}",
    "lstm": "LSTM, its last state",
    "pool": f"mean pooling, MLP of {HIDDEN}",
}
"""What is computed of each example, and its title."""


@dataclass(frozen=True)
class RaggedTask:
    """One row about examples of different lengths."""

    model: str
    batch: Batch
    kind: Kind

    @property
    def name(self) -> str:
        """The row's name."""
        return f"ragged-{self.model}-{self.batch.name}-{self.kind}"


def ragged_tasks() -> Iterator[RaggedTask]:
    """A task for each row, in the order of the table."""
    for model in MODELS:
        for batch in BATCHES:
            yield RaggedTask(model, batch, "forward")
            yield RaggedTask(model, batch, "gradient")


def parts(batch: Batch) -> list[Floats]:
    """The examples, `[length, WIDTH]` each."""
    return [_normal(100 + i, n, WIDTH) for i, n in enumerate(batch.lengths())]


def as_rectangle(arrays: Sequence[Floats], length: int | None = None) -> Floats:
    """The examples padded with zeros, by default to the longest."""
    made = np.zeros((len(arrays), length or max(map(len, arrays)), WIDTH), np.float32)
    for row, array in zip(made, arrays, strict=True):
        row[: len(array)] = array
    return made


def valid_of(out: Floats, lengths: NDArray[np.int32]) -> list[Floats]:
    """What is valid of a padded result, one example behind the other; states are so wholly."""
    if out.ndim == 2:
        return [out]
    return [np.concatenate([row[:n] for row, n in zip(out, lengths, strict=True)])]


def power_of_two(length: int) -> int:
    """The least power of two that is not less: a usual choice of buckets by hand."""
    return 1 << (length - 1).bit_length()


def weights(model: str) -> dict[str, Floats]:
    """The weights by name; matrices as `[in, out]`."""
    square, wide, narrow = (WIDTH, WIDTH), (WIDTH, HIDDEN), (HIDDEN, WIDTH)
    attention = {"k": square, "o": square, "q": square, "v": square}
    mlp = {"b1": (HIDDEN,), "b2": (WIDTH,), "w1": wide, "w2": narrow}
    norms = {"bias1": (WIDTH,), "bias2": (WIDTH,), "scale1": (WIDTH,), "scale2": (WIDTH,)}
    shapes: dict[str, dict[str, tuple[int, ...]]] = {
        "attention": attention,
        "block": {**attention, **mlp, **norms},
        "lstm": {"bias": (4 * WIDTH,), "hidden": (WIDTH, 4 * WIDTH), "input": (WIDTH, 4 * WIDTH)},
        "pool": mlp,
    }
    return {
        name: np.float32(shape[0] ** -0.5) * _normal(i, *shape)
        for i, (name, shape) in enumerate(sorted(shapes[model].items()))
    }


CALLS: dict[str, str] = {"cube": "x * x * x", "attend": f"attention, {WIDTH} features"}
"""The functions that are called with arrays of many lengths, and their titles."""


def call_inputs(function: str) -> list[Floats]:
    """Arrays for 1,000 calls, their lengths drawn from 1 to 1,000."""
    xs = lengths_inputs()
    if function == "cube":
        return xs
    whole = _normal(0, 1_000, WIDTH)
    return [whole[: len(x)].copy() for x in xs]


def call_weights() -> tuple[Floats, Floats, Floats]:
    """The weights of the single head: for queries, keys and values."""
    square = (WIDTH, WIDTH)
    q, k, v = (np.float32(WIDTH**-0.5) * _normal(i, *square) for i in range(3))
    return q, k, v


def summary(results: Sequence[NDArray[np.float32]]) -> list[NDArray[np.float32]]:
    """What is compared of the results of all calls: their means, first and last elements."""
    arrays = [np.asarray(x) for x in results]
    means = np.array([x.mean(dtype=np.float64) for x in arrays], np.float32)
    return [means, np.stack([x[0] for x in arrays]), np.stack([x[-1] for x in arrays])]


def _normal(seed: int, *shape: int) -> Floats:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def _rows() -> Iterator[Workload]:
    for name, title in CALLS.items():
        many = f"{LENGTHS:,} calls of {title}, lengths 1 to 1,000"
        # Sums of up to 1,000 terms of order 1.
        rtol, atol = 1e-5, 1e-5
        yield Workload(
            f"sizes-{name}-first",
            f"{many}, from the first",
            "ms",
            (Goal("jax", 0.02),),
            rtol=rtol,
            atol=atol,
            quick_rounds=0,
            warm_up=False,
        )
        yield Workload(
            f"sizes-{name}-warm",
            f"{many}, warm",
            "ms",
            (Goal("stretto full", 1.3),),
            rtol=rtol,
            atol=atol,
            quick_rounds=0,
        )
    for task in ragged_tasks():
        valid, backward = task.batch.valid, task.kind == "gradient"
        yield Workload(
            task.name,
            f"{MODELS[task.model]}, {task.batch.title} ({valid:.0%} valid): {task.kind}",
            "us",
            (Goal("fastest", 1.1),),
            # As the ensembles': float32 sums in other orders; those of gradients may cancel.
            rtol=1e-3 if backward else 1e-4,
            atol=1e-6 if backward else 5e-5,
            of_largest=1e-5 if backward else 0.0,
            quick_rounds=0,
        )


SHAPE_ROWS: list[Workload] = list(_rows())
