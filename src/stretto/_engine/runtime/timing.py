"""How long a program takes: compiled, and run on numbers made up for it.

Layer 6 (runtime). What the planner measures formulations with.
"""

from __future__ import annotations

import time

import numpy as np

from stretto._engine.core.program import Program
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.cache import executable

__all__ = ["seconds_of"]

_ROUNDS = 5


def seconds_of(program: Program) -> float:
    """The median time of a run, in seconds, after one to warm up."""
    run = executable(program)
    random = np.random.default_rng(0)
    buffers = [Array(_made_up(t, random), t).to_buffer() for t in program.in_types]
    times = []
    for _ in range(_ROUNDS + 1):
        start = time.perf_counter()
        for out, type in zip(run(buffers), program.out_types, strict=True):
            Array(None, type, out).block_until_ready()
        times.append(time.perf_counter() - start)
    return float(np.median(times[1:]))


def _made_up(type: ArrayType, random: np.random.Generator) -> np.ndarray:
    """Small numbers around zero; zeros for integers, which may be indices."""
    if not is_inexact(type.dtype):
        return np.zeros(type.shape, type.dtype)
    return (0.1 * random.standard_normal(type.shape)).astype(type.dtype)
