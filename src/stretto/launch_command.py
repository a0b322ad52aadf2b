"""The command ``stretto launch``: runs a script in several processes that can compute as one.

Layer 9. The script calls ``stretto.distributed.initialize()``. Next, read ``distributed``.
"""

from __future__ import annotations

import argparse
import ctypes
import os
import signal
import subprocess
import sys
import threading
import time
from typing import IO

from stretto._engine.runtime.coordinator import free_port

__all__ = ["run"]

_PATIENCE = 5.0
"""For so many seconds processes may finish after they were told to end."""


def run(options: argparse.Namespace) -> int:
    """Run the processes; return the exit status of the first that fails, else 0."""
    coordinator = f"127.0.0.1:{free_port()}"
    processes: list[subprocess.Popen[bytes]] = []
    told: list[int] = []

    def tell(number: int, frame: object) -> None:
        told.append(number)
        for process in processes:
            if process.poll() is None:
                process.send_signal(number)

    handlers = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        for index in range(options.n):
            processes.append(_started(options, coordinator, index))
        readers = [
            threading.Thread(target=_copy, args=(i, pipe, out))
            for i, process in enumerate(processes)
            for pipe, out in ((process.stdout, sys.stdout), (process.stderr, sys.stderr))
        ]
        for reader in readers:
            reader.start()
        status = _watch(processes)
        for reader in readers:
            reader.join(_PATIENCE)
    finally:
        for process in processes:
            if process.poll() is None:
                process.kill()
                process.wait()
        for number, handler in handlers.items():
            signal.signal(number, handler)
    return status or (128 + told[0] if told else 0)


def _started(options: argparse.Namespace, coordinator: str, index: int) -> subprocess.Popen[bytes]:
    said = {
        "STRETTO_COORDINATOR": coordinator,
        "STRETTO_NUM_PROCESSES": str(options.n),
        "STRETTO_PROCESS_ID": str(index),
    }
    if options.devices is not None:
        said["STRETTO_NUM_CPU_DEVICES"] = str(options.devices)
    return subprocess.Popen(
        [sys.executable, options.script, *options.arguments],
        env={**os.environ, "PYTHONUNBUFFERED": "1", **said},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,  # the terminal interrupts this process, which tells the others
        preexec_fn=_ended_with_this_one,  # noqa: PLW1509 (this process has no threads yet)
    )


_PDEATHSIG = 1
_SYSTEM = ctypes.CDLL(None)


def _ended_with_this_one() -> None:
    """Have the system end the new process where this one is killed, if it can: Linux does."""
    if hasattr(_SYSTEM, "prctl"):
        _SYSTEM.prctl(_PDEATHSIG, signal.SIGTERM)


def _copy(index: int, pipe: IO[bytes], out: IO[str]) -> None:
    """Write what a process writes, each line with its number."""
    with pipe:
        for line in pipe:
            out.write(f"[{index}] {line.decode(errors='replace').rstrip()}\n")
            out.flush()


def _watch(processes: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all to end; if one fails, end the others. The first status that is not 0, or 0."""
    running, status, limit = list(processes), 0, float("inf")
    while running:
        time.sleep(0.02)
        for process in list(running):
            code = process.poll()
            if code is None:
                continue
            running.remove(process)
            if code and not status:
                status = code if code > 0 else 128 - code
                limit = time.monotonic() + _PATIENCE
                for other in running:
                    other.terminate()
        if time.monotonic() > limit:
            for other in running:
                other.kill()
            limit = float("inf")
    return status
