"""The fastest formulation as measured, remembered in memory and on disk.

Used with ``config.plan = "measure"``. Running a program is the business of a higher layer, so
``wiring`` sets ``clock.seconds_of``. On disk each measurement is a small JSON file in the folder
``plans`` of the user's cache directory (``core/machine``); if one is damaged or makes no sense, the
measurement is repeated. A file can only choose among formulations with the same results, so it does
not matter who else could have written it.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from stretto._engine import core
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import cache_directory, processor
from stretto._engine.core.program import Program

if TYPE_CHECKING:
    from pathlib import Path

hashlib = LazyModule("hashlib")
json = LazyModule("json")
pathlib = LazyModule("pathlib")


class Clock:
    """Measures programs."""

    seconds_of: Callable[[Program], float]
    """Returns the seconds that a program takes; set by ``wiring``."""


clock = Clock()

_LARGEST = 1 << 16
"""The most bytes of a file that is read; a measurement takes some hundreds."""

_known: dict[str, str] = {}


def directory() -> Path | None:
    """Return the folder where measurements are kept; ``None`` if nowhere."""
    base = cache_directory()
    return pathlib.Path(base) / "plans" if base else None


def fingerprint(program: Program, detail: str) -> str:
    """Return a name for a program on this kind of machine, for which one measurement is valid."""
    about = "\n".join([str(program), detail, processor(), str(os.cpu_count())])
    return hashlib.sha256(about.encode()).hexdigest()


def fastest(key: str, candidates: Mapping[str, Callable[[], Program]]) -> str:
    """Return the name of the fastest candidate; measured unless it is remembered."""
    best = _known.get(key) or _read(key)
    if best not in candidates:
        times = {name: clock.seconds_of(make()) for name, make in candidates.items()}
        best = min(times, key=times.__getitem__)
        _write(key, best, times)
    assert best is not None
    _known[key] = best
    return best


def _read(key: str) -> str | None:
    try:
        folder = directory()
        if folder is None:
            return None
        content = core.files.read_small(str(folder / f"{key}.json"), _LARGEST)
        if content is None:
            return None
        measurement = json.loads(content)
        return measurement["plan"] if isinstance(measurement["plan"], str) else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _write(key: str, plan: str, times: Mapping[str, float]) -> None:
    """Keep it on disk; if that fails, it is only in memory."""
    try:
        folder = directory()
        if folder is None:
            return
        folder.mkdir(parents=True, exist_ok=True)
        content = json.dumps({"plan": plan, "seconds": dict(times)}).encode()
        path = folder / f"{key}.json"
        core.files.write_whole(path, lambda file: file.write(content), "plan", durable=False)
    except OSError:
        pass
