"""The process that goes along the hot paths, to be counted from outside; `counts` starts it.

    python -m benchmarks.counts_worker instructions 'eager-*'
    python -m benchmarks.counts_worker allocations 'eager-*'

The first is for Callgrind with ``--dump-before=getppid``: each `mark` ends a section, and the
sections are the start, the import, and for each path getting ready, `times` times and twice as
often. The second prints, as JSON, what Python's allocator says.
"""

from __future__ import annotations

import gc
import json
import os
import sys
import tracemalloc
from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.counts_paths import Path

__all__ = ["IMPORT", "chosen", "main"]

IMPORT = "import"

mark = os.getppid
"""A call of the C library that nothing else makes."""


def main(arguments: Sequence[str]) -> None:
    """Go along the paths whose names match the patterns."""
    kind, *patterns = arguments
    if kind == "instructions":
        _instructions(patterns)
    else:
        print(json.dumps(_allocations(patterns)))


def chosen(patterns: Sequence[str]) -> list[Path]:
    """The paths whose names match any of the patterns, in their order."""
    from benchmarks.counts_paths import PATHS

    return [path for path in PATHS if any(fnmatchcase(path.name, one) for one in patterns)]


def _instructions(patterns: Sequence[str]) -> None:
    mark()
    import stretto
    import stretto.numpy  # noqa: F401

    mark()
    for path in chosen(patterns):
        with path.within():
            path.make(path.times)()  # compiles, fills caches, and lets Python specialise
            once, twice = path.make(path.times), path.make(2 * path.times)
            gc.collect()
            gc.disable()
            mark()
            once()
            mark()
            twice()
            mark()
            gc.enable()


def _allocations(patterns: Sequence[str]) -> dict[str, Any]:
    before = sys.getallocatedblocks()
    import stretto
    import stretto.numpy  # noqa: F401

    allocations = {IMPORT: {"held": float(sys.getallocatedblocks() - before)}}
    for path in chosen(patterns):
        with path.within():
            allocations[path.name] = _of_path(path)
    return allocations


def _of_path(path: Path) -> dict[str, float]:
    """What one time along the path allocates.

    `held`: blocks of what comes out; `garbage`: blocks that only the collector frees; `peak`: bytes
    at most in use on the way.
    """
    times = path.times
    path.make(times)()
    once, twice, last = path.hold(times), path.hold(2 * times), path.make(times)
    blocks = []
    results = []
    for work in (lambda: None, once, twice):
        results.append(work())
        gc.collect()
        blocks.append(sys.getallocatedblocks())
    held = blocks[2] - 2 * blocks[1] + blocks[0]
    del results, once, twice
    gc.collect()
    gc.disable()
    try:
        start = sys.getallocatedblocks()
        last()
        garbage = sys.getallocatedblocks() - start
    finally:
        gc.enable()
    return {"held": held / times, "garbage": garbage / times, "peak": _peak(path)}


def _peak(path: Path) -> float:
    """Bytes, by the difference between two lengths of the path where results are kept."""
    works = path.make(1), path.make(1)
    tracemalloc.start()
    try:
        works[0]()
        start, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        works[1]()
        return float(tracemalloc.get_traced_memory()[1] - start)
    finally:
        tracemalloc.stop()


if __name__ == "__main__":
    main(sys.argv[1:])
