"""What the programs learn from: drawn from seeds by NumPy, the same under JAX and under Stretto.

They are in float32, or in float64 where ``JAX_ENABLE_X64`` is set. With ``TASK_NUDGE`` in the
environment they are larger by one unit in the last place of float32, which shows how far a task's
values depend on rounding.
"""

from __future__ import annotations

import os
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["FLOAT", "NUDGE", "images", "nudged", "regression", "spirals"]

NUDGE = "TASK_NUDGE"
"""The variable of the environment."""

FLOAT: type = np.float64 if os.environ.get("JAX_ENABLE_X64") == "1" else np.float32
"""The type of the data."""

SIDE, CLASSES = 16, 10


def images(count: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Images of 16×16 numbers, each a pattern of its class in noise, and the classes."""
    rng = np.random.default_rng(0)
    patterns = rng.standard_normal((CLASSES, SIDE, SIDE))
    labels = rng.integers(CLASSES, size=count).astype(np.int32)
    noise = rng.standard_normal((count, SIDE, SIDE))
    return nudged(0.5 * patterns[labels] + noise), labels


def regression(count: int, features: int) -> tuple[NDArray[Any], NDArray[np.int32]]:
    """Examples of a logistic regression, and their classes, 0 or 1."""
    rng = np.random.default_rng(1)
    x = rng.standard_normal((count, features))
    chances = 1 / (1 + np.exp(-x @ rng.standard_normal(features)))
    return nudged(x), (rng.random(count) < chances).astype(np.int32)


def spirals(count: int, times: int) -> tuple[NDArray[Any], NDArray[Any]]:
    """Moments from 0 to 10, and where points that spiral inwards are then, `(count, times, 2)`."""
    rng = np.random.default_rng(2)
    moments = np.linspace(0, 10, times)
    radius = rng.uniform(0.6, 1.0, (count, 1)) * np.exp(-0.1 * moments)
    angle = rng.uniform(0, 2 * np.pi, (count, 1)) + moments
    points = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=-1)
    return moments.astype(FLOAT), nudged(points)


def nudged(x: NDArray[Any]) -> NDArray[Any]:
    """Numbers in the type of the run, and by one unit larger where that is wanted."""
    return x.astype(FLOAT) * FLOAT(1 + 2**-23 if os.environ.get(NUDGE) else 1)
