"""The fastest formulation as measured, remembered in memory and on disk.

Layer 5 (plan). Used with ``config.plan = "measure"``. What compiles and runs a program is a layer
above: ``wiring`` puts it in ``timer``. On disk each measurement is one small JSON file, in
``plans`` of the user's cache directory (``STRETTO_CACHE_DIR``, else the system's habit), written
beside and renamed; one that is damaged, or says what nobody could have written, is measured anew.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from stretto.core.program import Program

__all__ = ["Timer", "directory", "fastest", "fingerprint", "timer"]

Timer = list[Callable[[Program], float]]
timer: Timer = []
"""What gives the seconds that a program takes: one function, put here by ``wiring``."""

_known: dict[str, str] = {}


def directory() -> Path:
    """Where measurements are kept."""
    given = os.environ.get("STRETTO_CACHE_DIR")
    if given:
        return Path(given) / "plans"
    base = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(base) / "stretto" / "plans"


def fingerprint(program: Program, detail: str) -> str:
    """A name for a program on a machine, equal where measurements carry over."""
    about = "\n".join([str(program), detail, platform.machine(), _processor(), str(os.cpu_count())])
    return hashlib.sha256(about.encode()).hexdigest()


def fastest(key: str, candidates: Mapping[str, Callable[[], Program]]) -> str:
    """The name of the candidate that runs in the least time; measured unless it is remembered."""
    found = _known.get(key) or _read(key)
    if found not in candidates:
        (seconds_of,) = timer
        times = {name: seconds_of(make()) for name, make in candidates.items()}
        found = min(times, key=times.__getitem__)
        _write(key, found, times)
    assert found is not None
    _known[key] = found
    return found


def _read(key: str) -> str | None:
    try:
        with open(directory() / f"{key}.json", encoding="utf-8") as file:
            said = json.load(file)
        return said["plan"] if isinstance(said["plan"], str) else None
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _write(key: str, plan: str, times: Mapping[str, float]) -> None:
    """Keep it on disk; where that cannot be written, in memory only."""
    try:
        folder = directory()
        folder.mkdir(parents=True, exist_ok=True)
        handle, beside = tempfile.mkstemp(dir=folder, suffix=".tmp")
        try:
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                json.dump({"plan": plan, "seconds": dict(times)}, file)
            os.replace(beside, folder / f"{key}.json")
        except BaseException:
            os.unlink(beside)
            raise
    except OSError:
        pass


def _processor() -> str:
    """The processor's model; empty where the system does not say."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            return next((x.split(":", 1)[1].strip() for x in lines if "model name" in x), "")
    except OSError:
        return platform.processor()
