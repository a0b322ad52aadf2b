"""The fastest formulation as measured, remembered in memory and on disk.

Layer 5 (plan). Used with ``config.plan = "measure"``. What compiles and runs a program is a layer
above: ``wiring`` gives it to ``clock``. On disk each measurement is one small JSON file, in
``plans`` of the user's cache directory (``core/machine``), written beside and renamed; one that is
damaged, or says what nobody could have written, is measured anew. All that a file can do is choose
among formulations that give the same: who else could have written it is not asked.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import cache_directory, processor
from stretto._engine.core.program import Program

if TYPE_CHECKING:  # few programs measure anything
    import hashlib
    import json
    import pathlib

    from stretto._engine.core import files
else:
    files = LazyModule("stretto._engine.core.files")
    hashlib, json, pathlib = map(LazyModule, ("hashlib", "json", "pathlib"))

__all__ = ["clock", "directory", "fastest", "fingerprint"]


class Clock:
    """What measures programs."""

    seconds_of: Callable[[Program], float]
    """The seconds that a program takes: put here by ``wiring``."""


clock = Clock()

_LARGEST = 1 << 16
"""Bytes of a file; a measurement takes some hundreds."""

_known: dict[str, str] = {}


def directory() -> pathlib.Path | None:
    """Where measurements are kept; ``None``: nowhere."""
    base = cache_directory()
    return pathlib.Path(base) / "plans" if base else None


def fingerprint(program: Program, detail: str) -> str:
    """A name for a program on a machine, equal where measurements carry over."""
    about = "\n".join([str(program), detail, processor(), str(os.cpu_count())])
    return hashlib.sha256(about.encode()).hexdigest()


def fastest(key: str, candidates: Mapping[str, Callable[[], Program]]) -> str:
    """The name of the candidate that runs in the least time; measured unless it is remembered."""
    found = _known.get(key) or _read(key)
    if found not in candidates:
        times = {name: clock.seconds_of(make()) for name, make in candidates.items()}
        found = min(times, key=times.__getitem__)
        _write(key, found, times)
    assert found is not None
    _known[key] = found
    return found


def _read(key: str) -> str | None:
    try:
        folder = directory()
        if folder is None:
            return None
        content = files.read_small(str(folder / f"{key}.json"), _LARGEST)
        if content is None:
            return None
        said = json.loads(content)
        return said["plan"] if isinstance(said["plan"], str) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(key: str, plan: str, times: Mapping[str, float]) -> None:
    """Keep it on disk; where that cannot be written, in memory only."""
    try:
        folder = directory()
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        said = json.dumps({"plan": plan, "seconds": dict(times)}).encode()
        path = folder / f"{key}.json"
        files.write_whole(path, lambda file: file.write(said), "plan", durable=False)
    except OSError:
        pass
