"""How long importing a package takes, in processes that do nothing else."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Sequence
from typing import Any

from numpy.typing import NDArray

from benchmarks.process import ROOT, WorkerError, environment

__all__ = ["ImportContestant"]

PATIENCE = 180.0


class ImportContestant:
    """Time of a process that imports, minus that of one that does not; see `measure.Contestant`."""

    def __init__(self, framework: str, python: str, statement: str) -> None:
        """`statement` is what a first line of a user's program says, such as "import numpy"."""
        self.framework = self.name = framework
        self._python = python
        self._statement = statement
        self.details: dict[str, Any] = {"statement": statement, "process": [], "empty_process": []}

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Import once: compiled modules are then on disk. There is nothing to compare."""
        self._run(self._statement)
        return []

    def warm_up(self, seconds: float) -> None:
        """Nothing to calibrate: a process imports once, however long that takes."""

    def time(self) -> float:
        """Seconds that the import adds to an empty process."""
        empty, whole = self._run("pass"), self._run(self._statement)
        self.details["empty_process"].append(empty)
        self.details["process"].append(whole)
        return whole - empty

    def weigh(self) -> None:
        """The memory of an import is not the point."""

    def release(self) -> None:
        """Nothing is held."""

    def _run(self, statement: str) -> float:
        command = [self._python, "-c", statement]
        start = time.perf_counter()
        try:
            done = subprocess.run(
                command,
                check=False,
                cwd=ROOT,
                env=environment(),
                capture_output=True,
                text=True,
                timeout=PATIENCE,
            )
        except subprocess.TimeoutExpired:
            raise WorkerError(f"`{statement}` took longer than {PATIENCE:g} s") from None
        except OSError as error:
            raise WorkerError(f"cannot start {self._python}: {error.strerror}") from error
        seconds = time.perf_counter() - start
        if done.returncode != 0:
            lines = done.stderr.strip().splitlines() or ["no message"]
            status = done.returncode
            raise WorkerError(f"`{statement}` ended with exit status {status}: {lines[-1]}")
        return seconds
