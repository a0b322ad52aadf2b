"""The machine: its processors, and the folder for caches that outlive the process."""

from __future__ import annotations

import os
import platform

_IDENTIFYING = ("vendor_id", "cpu", "model", "stepping", "flags", "CPU", "Features", "isa")
"""The beginnings of lines of ``/proc/cpuinfo`` that identify the processor, on any architecture."""

_CHANGING = ("cpu MHz", "cpu cores")
"""Lines that begin like those, but may differ between two runs on one machine."""


def cache_directory() -> str | None:
    """Return this user's folder for caches, which may not exist: ``STRETTO_CACHE_DIR``, if set.

    Otherwise ``stretto`` below ``XDG_CACHE_HOME``, by the XDG base directory specification, or
    below ``~/.cache``. ``None`` where there is no home directory either.
    """
    chosen = os.environ.get("STRETTO_CACHE_DIR")
    if chosen:
        return os.path.abspath(chosen)
    base = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(base):  # the specification says to ignore relative paths
        base = os.path.expanduser("~/.cache")
    return os.path.join(base, "stretto") if os.path.isabs(base) else None


def cores() -> int:
    """Say how many processors this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)  # not on every system
    return len(affinity(0)) if affinity else os.cpu_count() or 1


def processor() -> str:
    """Give the architecture, and what the system says about the processor, such as its features."""
    about = []
    try:
        with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as lines:
            for line in lines:
                if not line.strip():  # the end of the first processor's lines
                    break
                if line.startswith(_IDENTIFYING) and not line.startswith(_CHANGING):
                    about.append(line)
    except OSError:
        pass
    # platform.processor() takes tens of milliseconds.
    return "\n".join([platform.machine(), *(about or [platform.processor()])])
