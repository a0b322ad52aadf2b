"""Whether references, objects or memory grow with the number of calls.

    python -m tests.native.growth

10^6 eager calls, 10^5 jitted ones, and 10^4 of each kind that fails: after a tenth of them as a
warm-up, the counts of references to shared objects and of blocks of memory must be as before, and
the process no larger than its allocators' slack.
"""

from __future__ import annotations

import gc
import resource
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto as st
import stretto.numpy as snp

SLACK_BLOCKS = 200
"""Blocks by which caches and free lists may differ between two counts."""

SLACK_BYTES = 4 << 20
"""What the process may grow by: the allocator gives memory back in pieces."""


def failing(function: Callable[[], Any]) -> Callable[[], None]:
    """The function, which must raise."""

    def call() -> None:
        try:
            function()
        except Exception:
            return
        raise AssertionError("a call that must fail did not")

    return call


def kinds() -> dict[str, tuple[int, Callable[[], Any]]]:
    """By name: how many calls, and the call."""
    x, i, w = snp.ones(3), snp.ones(3, int), snp.ones((40, 40))
    deleted = snp.ones(3) + 1
    deleted.delete()
    small = st.jit(lambda x, y: x * 2 + y)
    large = st.jit(lambda xs: {"out": [a @ a for a in xs["in"]]})
    host = np.ones((40, 40), np.float32)
    raising = st.jit(lambda x: st.pure_callback(lambda a: 1 // 0, x, x))
    return {
        "x + y": (1_000_000, lambda: x + x),
        "x + 1": (1_000_000, lambda: i + 1),
        "sin": (1_000_000, lambda: snp.sin(x)),
        "jitted, interpreted": (100_000, lambda: small(x, x)),
        "jitted, compiled": (100_000, lambda: large({"in": [w, w]})),
        "jitted, fresh arrays": (100_000, lambda: large({"in": [snp.array(host), w]})),
        "fails: deleted operand": (10_000, failing(lambda: deleted + x)),
        "fails: shapes": (10_000, failing(lambda: x + w)),
        "fails: number too large": (10_000, failing(lambda: snp.ones(2, snp.int8) + (1 << 70))),
        "fails: deleted argument": (10_000, failing(lambda: small(deleted, x))),
        "fails: text as an argument": (10_000, failing(lambda: small("x", x))),
        "fails: a rule": (10_000, failing(lambda: x.at[7].get(mode="raise"))),
        "fails: a callback": (10_000, failing(lambda: raising(x))),
    }


def shared() -> list[Any]:
    """Objects that calls hold for a while."""
    return [None, snp.ones(3).type, snp.ones((40, 40)).type, st.Array, np.dtype(np.float32), True]


def measure() -> tuple[list[int], int, int]:
    """References to shared objects, blocks of memory, and the most memory that there was."""
    gc.collect()
    counts = [sys.getrefcount(o) for o in shared()]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    return counts, sys.getallocatedblocks(), most


def grown(count: int, call: Callable[[], Any]) -> str:
    """What grew, in words; empty for nothing."""
    for _ in range(max(count // 10, 1000)):
        call()
    references, blocks, most = measure()
    for _ in range(count):
        call()
    after_references, after_blocks, after_most = measure()
    found = []
    for object, before, after in zip(shared(), references, after_references, strict=True):
        if abs(after - before) > SLACK_BLOCKS:
            found.append(f"references to {object!r:.40}: {before} to {after}")
    if after_blocks - blocks > SLACK_BLOCKS:
        found.append(f"blocks: {blocks} to {after_blocks}")
    if after_most - most > SLACK_BYTES:
        found.append(f"memory: {most >> 10} to {after_most >> 10} KiB")
    return "; ".join(found)


def main() -> int:
    """Run all kinds: 1 where something grew."""
    bad = 0
    for name, (count, call) in kinds().items():
        found = grown(count, call)
        bad += bool(found)
        print(f"{name:28} {count:9,} calls: {found or 'nothing grew'}", flush=True)
    return int(bool(bad))


if __name__ == "__main__":
    sys.exit(main())
