"""The parent's side: worker processes, and the contestants that they time."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import tempfile
import threading
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any

from numpy.typing import NDArray

from benchmarks import wire
from benchmarks.workloads import SETTLE, Exact

__all__ = [
    "PATIENCE",
    "ROOT",
    "Worker",
    "WorkerContestant",
    "WorkerError",
    "WorkerReference",
    "environment",
]

ROOT = Path(__file__).resolve().parent.parent
"""The repository, from where `python -m benchmarks.…` is found."""

PATIENCE = 180.0
"""Seconds that one command may take before its worker is given up."""


class WorkerError(Exception):
    """A worker reported an error, died, or did not answer; the message says which."""


class Worker:
    """One framework's process, started at once and again whenever it is needed after a death."""

    def __init__(
        self,
        framework: str,
        python: str,
        patience: float = PATIENCE,
        variables: Mapping[str, str] = MappingProxyType({}),
        package: str = "benchmarks",
    ) -> None:
        """Start `<package>.<framework>_worker` in the interpreter `python`.

        `variables` are set in its environment besides those of all workers.
        """
        self.framework = framework
        self.python = python
        self._module = f"{package}.{framework}_worker"
        self._patience = patience
        self._variables = variables
        self._log = tempfile.TemporaryFile()  # noqa: SIM115 (lives as long as the worker)
        self._process: subprocess.Popen[str] | None = None
        self.about: dict[str, Any] = {}
        self.kept: dict[str, Sequence[NDArray[Any]]] = {}
        """Results that are not to be computed again, by name."""
        try:
            self._start()
        except WorkerError:
            self.close()
            raise

    @property
    def cases(self) -> list[tuple[str, str]]:
        """Workload and formulation of each case that the worker has."""
        return [(workload, formulation) for workload, formulation in self.about["cases"]]

    @property
    def alive(self) -> bool:
        """Whether the process was running when last spoken to."""
        return self._process is not None

    def ask(self, command: str, **fields: Any) -> dict[str, Any]:
        """Send one command and return its answer, or raise `WorkerError`."""
        if self._process is None:
            self._start()
        assert self._process is not None and self._process.stdin is not None
        try:
            self._process.stdin.write(json.dumps({"command": command, **fields}) + "\n")
            self._process.stdin.flush()
        except OSError:
            raise self._death(timed_out=False) from None
        answer = self._read()
        if "error" in answer:
            raise WorkerError(answer["error"])
        return answer

    def close(self) -> None:
        """End the process, whatever it is doing."""
        self._stop()
        self._log.close()

    def _start(self) -> None:
        self._log.seek(0)
        self._log.truncate()
        try:
            self._process = subprocess.Popen(
                [self.python, "-m", self._module],
                cwd=ROOT,
                env={**environment(), **self._variables},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._log,
                text=True,
                encoding="utf-8",
            )
        except OSError as error:
            raise WorkerError(f"cannot start {self.python}: {error.strerror}") from error
        self.about = self._read()

    def _read(self) -> dict[str, Any]:
        """The next line of the worker's output, if it comes in time."""
        process = self._process
        assert process is not None and process.stdout is not None
        timed_out = threading.Event()

        def give_up() -> None:
            timed_out.set()
            process.kill()

        timer = threading.Timer(self._patience, give_up)
        timer.start()
        try:
            line = process.stdout.readline()
        finally:
            timer.cancel()
        if not line.endswith("\n"):
            raise self._death(timed_out.is_set())
        try:
            return json.loads(line)
        except ValueError:
            raise WorkerError(f"expected a line of JSON, got {line.strip()[:80]!r}") from None

    def _death(self, timed_out: bool) -> WorkerError:
        """Reap the process, and say how it ended."""
        assert self._process is not None
        try:
            status = self._process.wait(timeout=5)
        except subprocess.TimeoutExpired:
            status = None
        self._stop()
        self._log.seek(0)
        lines = self._log.read().decode(errors="replace").strip().splitlines()
        last_words = f"; its last words: {lines[-1].strip()}" if lines else ""
        if timed_out:
            return WorkerError(f"the worker did not answer within {self._patience:g} s{last_words}")
        return WorkerError(f"the worker died (exit status {status}){last_words}")

    def _stop(self) -> None:
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            if pipe is not None:
                with contextlib.suppress(OSError):  # it may hold what was never read
                    pipe.close()
        self._process = None


class WorkerContestant:
    """One case of one worker; see `measure.Contestant`."""

    def __init__(
        self,
        worker: Worker,
        workload: str,
        formulation: str,
        weigher: Worker | None = None,
        settle: float = SETTLE,
    ) -> None:
        """The case that `worker` calls `(workload, formulation)`; `weigher` tells its memory.

        `settle` seconds pass before each batch.
        """
        self.framework = worker.framework
        self.name = f"{worker.framework} {formulation}".strip()
        self._worker = worker
        self._weigher = weigher
        self._settle = settle
        self._case = {"workload": workload, "formulation": formulation}
        self.details: dict[str, Any] = {}

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Make the case, run it once, and return its results."""
        return [wire.decode(text) for text in self._worker.ask("prepare", **self._case)["result"]]

    def warm_up(self, seconds: float) -> None:
        """Find how many iterations a batch of `seconds` has."""
        self.details = self._worker.ask("calibrate", seconds=seconds, **self._case)

    def time(self) -> float:
        """Seconds for one iteration, the mean over a batch."""
        time.sleep(self._settle)
        iterations = self.details["iterations"]
        return self._worker.ask("time", iterations=iterations, **self._case)["seconds"]

    def weigh(self) -> None:
        """Find the memory that a call takes, in a process for that."""
        if self._weigher is not None:
            self.details |= self._weigher.ask("weigh", **self._case)

    def release(self) -> None:
        """Let go of what the worker holds."""
        if self._worker.alive:
            self._worker.ask("release")


class WorkerReference:
    """A case in float64, computed once for all rows of it; see `measure.Reference`.

    Its worker is not one that is timed: what was allocated and compiled for this stays apart.
    """

    def __init__(self, worker: Worker, exact: Exact) -> None:
        """The case of the row `exact` in `worker`."""
        self.framework = worker.framework
        self.name = f"{worker.framework} {exact.FORMULATION}"
        self._worker = worker
        self._case = {"workload": exact.name, "formulation": exact.FORMULATION}

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Run the case, unless its results are there, and return them."""
        kept, name = self._worker.kept, self._case["workload"]
        if name not in kept:
            answer = self._worker.ask("prepare", **self._case)
            kept[name] = [wire.decode(text) for text in answer["result"]]
            self._worker.ask("release")
        return kept[name]


def environment() -> dict[str, str]:
    """The environment for all measured processes.

    CPU only; modules compiled to bytecode are kept on disk, compiled programs are not.
    """
    unwanted = ("PYTHONDONTWRITEBYTECODE", "JAX_COMPILATION_CACHE_DIR", "STRETTO_CACHE_DIR")
    kept = {name: value for name, value in os.environ.items() if name not in unwanted}
    return {**kept, "JAX_PLATFORMS": "cpu", "CUDA_VISIBLE_DEVICES": "", "STRETTO_DISK_CACHE": "0"}
