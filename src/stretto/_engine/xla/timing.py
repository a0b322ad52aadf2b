"""Measure how long a program takes, compiled and run on random numbers.

``wiring`` gives this to ``passes/formulations/measured``, which measures formulations with it.
"""

from __future__ import annotations

import time

import numpy as np

from stretto._engine.core.program import Program
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.xla.array import Array
from stretto._engine.xla.cache import executable

_ROUNDS = 5


def seconds_of(program: Program) -> float:
    """Return the median time of a run, in seconds, after one run to warm up."""
    return float(np.median(times_of(program, _ROUNDS)))


def times_of(program: Program, rounds: int) -> list[float]:
    """Return the times of so many runs, in seconds, after one run to warm up."""
    run = executable(program)
    random = np.random.default_rng(0)
    buffers = [Array(_numbers(t, random), t).to_buffer() for t in program.in_types]
    times = []
    for _ in range(rounds + 1):
        start = time.perf_counter()
        for out, type in zip(run(buffers), program.out_types, strict=True):
            Array(None, type, out).block_until_ready()
        times.append(time.perf_counter() - start)
    return times[1:]


def _numbers(type: ArrayType, random: np.random.Generator) -> np.ndarray:
    """Small random numbers around zero; zeros for integers, which may be indices."""
    if not is_inexact(type.dtype):
        return np.zeros(type.shape, type.dtype)
    return (0.1 * random.standard_normal(type.shape)).astype(type.dtype)
