"""A user's first program: it makes a network, and calls a compiled step of it once.

`benchmarks.starts` runs it, and has the clock, from the call to the result:

    python -m benchmarks.networks.start FRAMEWORK ROW
"""

from __future__ import annotations

import importlib
import sys

import numpy as np

from benchmarks import wire
from benchmarks.networks import table
from benchmarks.worker import run_once

__all__ = ["main"]


def main(framework: str, name: str) -> None:
    """Run the row's program once, and say when it begins and when its result is there."""
    task = next(one for one in table.all_tasks() if one.name == name)
    case = importlib.import_module(f"benchmarks.networks.cases_{framework}").case(task)
    print(wire.READY, flush=True)
    result = run_once(case)
    wire.tell(np.concatenate([np.ravel(array) for array in case.arrays(result)]))


if __name__ == "__main__":
    main(*sys.argv[1:])
