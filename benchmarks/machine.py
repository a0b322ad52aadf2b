"""What the figures were measured on."""

from __future__ import annotations

import os
import platform
import subprocess
from pathlib import Path
from typing import Any

__all__ = ["describe", "processor", "revision"]

VECTORS = {"avx512f": 512, "avx2": 256, "sse2": 128}
"""Flags of a processor, and the bits of the vectors that they stand for, the widest first."""


def describe() -> dict[str, Any]:
    """The processor's model and vectors, the cores for this process, the system, how busy it is."""
    return {
        "cpu": _processor(),
        "cores": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "system": platform.platform(),
        "load_average": list(os.getloadavg()) if hasattr(os, "getloadavg") else None,
    }


def revision(root: Path) -> str | None:
    """The commit of the working tree, with a "+" if files differ from it; None without git."""
    try:
        commit = _git(root, "rev-parse", "--short", "HEAD")
        changed = _git(root, "status", "--porcelain", "--untracked-files=no")
    except (OSError, subprocess.SubprocessError):
        return None
    return f"{commit}+" if changed else commit


def _git(root: Path, *arguments: str) -> str:
    done = subprocess.run(
        ["git", *arguments], check=True, cwd=root, capture_output=True, text=True, timeout=30
    )
    return done.stdout.strip()


def _processor() -> str:
    """Its name, and on Linux the widest vectors that compilers use: names may tell little."""
    try:
        text = Path("/proc/cpuinfo").read_text(encoding="utf-8")
    except OSError:
        return platform.processor() or platform.machine()
    return processor(text) or platform.machine()


def processor(text: str) -> str:
    """What ``/proc/cpuinfo`` says of the first processor; empty if it has no name."""
    entries: dict[str, str] = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        entries.setdefault(name.strip(), value.strip())
    flags = entries.get("flags", "").split()
    width = next((width for flag, width in VECTORS.items() if flag in flags), None)
    name = entries.get("model name", "")
    return f"{name}, {width}-bit vectors" if name and width else name
