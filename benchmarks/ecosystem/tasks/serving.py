"""What a program tells: when its first result is there, what each step took, and its values.

A task is a generator of steps. Each gives the numbers that it computed, by name, and what it
returns at last are numbers of the whole. A step has ended when its numbers are in NumPy's arrays.
"""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Generator, Mapping
from typing import Any, TypeAlias

import numpy as np

__all__ = ["COMPLETE", "Steps", "serve"]

Numbers: TypeAlias = Mapping[str, Any]
Steps: TypeAlias = Generator[Numbers, None, Numbers]

COMPLETE = "complete"
"""The line that a program prints when its first result is there."""


def serve(single: Callable[[int], Steps], ensemble: Callable[[int], Steps]) -> None:
    """Run one of the two as the command line says, ``single STEPS`` or ``ensemble STEPS``.

    After the line of the first result comes one of JSON: the values, those of all steps along the
    first axis; the seconds of each step after the first, by the clock and of the processor; and the
    processor's up to the first result.
    """
    form, count = sys.argv[1], int(sys.argv[2])
    steps = {"single": single, "ensemble": ensemble}[form](count)
    results = [_arrays(next(steps))]
    first = time.process_time()
    print(COMPLETE, flush=True)
    seconds: list[float] = []
    processor: list[float] = []
    for _ in range(count - 1):
        before, busy = time.perf_counter(), time.process_time()
        results.append(_arrays(next(steps)))
        seconds.append(time.perf_counter() - before)
        processor.append(time.process_time() - busy)
    values = {name: np.stack([one[name] for one in results]) for name in results[0]}
    try:
        next(steps)
    except StopIteration as end:
        values |= _arrays(end.value)
    told = {
        "values": {name: array.tolist() for name, array in values.items()},
        "types": {name: str(array.dtype) for name, array in values.items()},
        "seconds": seconds,
        "processor": processor,
        "processor_to_first": first,
    }
    print(json.dumps(told), flush=True)


def _arrays(numbers: Numbers) -> dict[str, np.ndarray]:
    return {name: np.asarray(value) for name, value in numbers.items()}
