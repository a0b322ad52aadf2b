"""Start a program under JAX or under Stretto, and read what it tells."""

from __future__ import annotations

import json
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from benchmarks.ecosystem.tasks.serving import COMPLETE
from benchmarks.process import ROOT, WorkerError, environment

__all__ = ["PATIENCE", "Told", "Values", "command", "start", "versions"]

Values = Mapping[str, NDArray[np.generic]]

PROGRAMS = "benchmarks.ecosystem.tasks.programs"
PATIENCE = 900.0
"""Seconds that a program may take."""


class Told(NamedTuple):
    """What a program told, with the seconds from its start to its first result.

    Those of ``steps`` are of each step after the first; ``processor`` ones are of all threads.
    """

    first: float
    processor_to_first: float
    steps: list[float]
    processor: list[float]
    values: Values


def command(framework: str, python: str, program: str) -> list[str]:
    """What runs a module of ``programs`` under ``jax``, or under ``stretto`` in its place."""
    through = ["-m", "stretto.as_jax"] if framework == "stretto" else []
    return [python, *through, "-m", f"{PROGRAMS}.{program}"]


def start(
    line: list[str],
    form: str,
    steps: int,
    folder: Path | None,
    variables: Mapping[str, str],
    patience: float = PATIENCE,
) -> Told:
    """Run a program to its end.

    Stretto keeps compiled programs in ``folder``, or none without one; JAX keeps none by default.
    Raises ``WorkerError`` if the program fails or takes longer than ``patience`` seconds.
    """
    keeping = {} if folder is None else _keeping(folder)
    with tempfile.TemporaryFile() as log:
        begin = time.perf_counter()
        try:
            process = subprocess.Popen(
                [*line, form, str(steps)],
                cwd=ROOT,
                env={**environment(), **keeping, **variables},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        except OSError as error:
            raise WorkerError(f"cannot start {line[0]}: {error.strerror}") from error
        assert process.stdout is not None
        timer = threading.Timer(patience, process.kill)
        timer.start()
        try:
            complete = process.stdout.readline().strip() == COMPLETE
            first = time.perf_counter() - begin
            rest = process.stdout.read()
            status = process.wait()
        finally:
            timer.cancel()
            process.stdout.close()
        log.seek(0)
        words = [one.strip() for one in log.read().decode(errors="replace").splitlines()]
    if status != 0 or not complete:
        shown = next((one for one in reversed(words) if "Error" in one), "no message")
        raise WorkerError(f"the program ended with exit status {status}: {shown}")
    return _read(first, rest)


def _read(first: float, text: str) -> Told:
    try:
        told = json.loads(text)
    except ValueError:
        raise WorkerError(f"expected a line of JSON, got {text.strip()[:80]!r}") from None
    types = told["types"]
    values = {name: np.asarray(one, types[name]) for name, one in told["values"].items()}
    return Told(first, told["processor_to_first"], told["seconds"], told["processor"], values)


def _keeping(folder: Path) -> dict[str, str]:
    return {"STRETTO_CACHE_DIR": str(folder), "STRETTO_DISK_CACHE": "1"}


def versions(python: str, packages: tuple[str, ...]) -> dict[str, str]:
    """The installed versions of packages, and Python's own as ``python``."""
    code = (
        "import importlib.metadata as m, json, platform, sys; "
        "print(json.dumps({'python': platform.python_version(), "
        "**{name: m.version(name) for name in sys.argv[1:]}}))"
    )
    try:
        done = subprocess.run(
            [python, "-c", code, *packages],
            env=environment(),
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
    except (OSError, subprocess.CalledProcessError) as error:
        raise WorkerError(f"{python} does not have {', '.join(packages)}: {error}") from error
    return json.loads(done.stdout)
