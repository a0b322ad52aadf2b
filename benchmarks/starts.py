"""How long it takes from the start of a process to the result of its first ensemble."""

from __future__ import annotations

import subprocess
import tempfile
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from benchmarks import wire
from benchmarks.process import PATIENCE, ROOT, WorkerError, environment

__all__ = ["STARTERS", "StartContestant"]

STARTERS = ("stretto", "jax")
"""The frameworks that compile programs and keep them on disk."""


class StartContestant:
    """A first program, up to its result; see `measure.Contestant`.

    It is `benchmarks.start_<framework>`, or another, whose clock starts when it says that it is
    ready. The directory for compiled programs is its own: empty at each start, or, with `again`, as
    the start before left it.
    """

    def __init__(
        self,
        framework: str,
        python: str,
        again: bool,
        program: Sequence[str] = (),
        patience: float = PATIENCE,
    ) -> None:
        """`python` has the framework; `program` is a module and its arguments."""
        self.framework = self.name = framework
        self._python = python
        self._again = again
        self._patience = patience
        self._program = list(program) or [f"benchmarks.start_{framework}"]
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self.details: dict[str, Any] = {}

    def prepare(self) -> Sequence[NDArray[Any]]:
        """Start once with nothing on disk, and return the result."""
        _, result = self._start()
        assert self._folder is not None
        kept = [file for file in Path(self._folder.name).rglob("*") if file.is_file()]
        if not kept:
            raise WorkerError("no compiled program was kept on disk")
        self.details = {"files": len(kept), "bytes": sum(file.stat().st_size for file in kept)}
        return [result]

    def warm_up(self, seconds: float) -> None:
        """Nothing to calibrate: a process starts once, however long that takes."""

    def time(self) -> float:
        """Seconds from the start of the process to the result."""
        return self._start()[0]

    def weigh(self) -> None:
        """The memory of a process is not the point."""

    def release(self) -> None:
        """Remove what was kept."""
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    def _start(self) -> tuple[float, NDArray[Any]]:
        if not self._again:
            self.release()
        self._folder = self._folder or tempfile.TemporaryDirectory(prefix="benchmarks-")
        with tempfile.TemporaryFile() as log:
            start = time.perf_counter()
            process = subprocess.Popen(
                [self._python, "-m", *self._program],
                cwd=ROOT,
                env={**environment(), **_keeping(self._folder.name)},
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
            assert process.stdout is not None
            timer = threading.Timer(self._patience, process.kill)
            timer.start()
            try:
                if process.stdout.readline().strip() == wire.READY:
                    start = time.perf_counter()
                    process.stdout.readline()
                seconds = time.perf_counter() - start
                result = process.stdout.read()
                status = process.wait()
            finally:
                timer.cancel()
                process.stdout.close()
            log.seek(0)
            last_words = log.read().decode(errors="replace").strip().splitlines()
        if status != 0:
            message = last_words[-1] if last_words else "no message"
            raise WorkerError(f"the first program ended with exit status {status}: {message}")
        try:
            return seconds, wire.decode(result)
        except (ValueError, EOFError) as error:
            raise WorkerError(f"the first program's result cannot be read: {error}") from error


def _keeping(folder: str) -> dict[str, str]:
    """What has both frameworks keep every compiled program there."""
    return {
        "JAX_COMPILATION_CACHE_DIR": folder,
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
        "STRETTO_CACHE_DIR": folder,
        "STRETTO_DISK_CACHE": "1",
    }
