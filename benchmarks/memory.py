"""The memory that one call takes, by the system's own count."""

from __future__ import annotations

import ctypes
import gc
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["ALLOCATOR", "RESOLUTION", "peak_growth"]

ALLOCATOR = {"MALLOC_MMAP_THRESHOLD_": "8192", "MALLOC_TRIM_THRESHOLD_": "8192"}
"""Makes glibc give memory back at once, so that what a call uses again is counted again.

These are variables of the process's environment. They cost time: figures of time come from
processes without them.
"""

RESOLUTION = 2**18
"""Bytes below which figures say nothing: the kernel counts pages by core, and adds up later."""

_PROCESS = Path("/proc/self")


def peak_growth(call: Callable[[], Any]) -> int | None:
    """Bytes by which resident memory grows at most while `call` runs: temporaries and results.

    What was there before is not counted: inputs, compiled code, what libraries keep from one call
    to the next. None where the
    system does not report it (Linux does).
    """
    gc.collect()
    try:
        ctypes.CDLL(None).malloc_trim(0)
        (_PROCESS / "clear_refs").write_text("5")  # the peak becomes what is resident now
        before = _peak()
        result = call()
        after = _peak()
    except (AttributeError, OSError):
        return None
    del result
    return after - before


def _peak() -> int:
    for line in (_PROCESS / "status").read_text().splitlines():
        if line.startswith("VmHWM:"):
            return 1024 * int(line.split()[1])
    raise OSError("no VmHWM in /proc/self/status")
