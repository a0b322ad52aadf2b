"""The command ``stretto launch``: runs a script in several processes that can compute as one.

The script calls ``stretto.distributed.initialize()``.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import re
import secrets
import signal
import subprocess
import sys
import threading
import time
from collections import deque
from typing import IO, Any

from stretto._engine.core import system
from stretto._engine.xla.coordinator import MARK, free_port
from stretto._engine.xla.handshake import SECRET

_PATIENCE = 5.0
"""The seconds that processes have to finish after they were told to end."""
_LEFT = 2.0
"""The seconds that a coordinator may go on when all processes have ended."""
_LAST_LINES = 8
_GLOO = re.compile(r"\[Gloo\] Rank \d+ is connected to \d+ peer ranks\.")
"""The text that XLA's collectives print of each group of processes."""


class _Child:
    """A process, and what it wrote last to its standard error."""

    def __init__(self, index: int, process: subprocess.Popen[bytes], written: list[int]) -> None:
        self.index, self.process = index, process
        self.last: deque[str] = deque(maxlen=_LAST_LINES)
        self._written = written

    def readers(self) -> list[threading.Thread]:
        """Return threads that write what the process writes."""
        pipes = (self.process.stdout, sys.stdout), (self.process.stderr, sys.stderr)
        return [threading.Thread(target=self._copy, args=pair) for pair in pipes]

    def _copy(self, pipe: IO[bytes], out: IO[str]) -> None:
        """Write each line with the number of the process."""
        with pipe:
            for line in pipe:
                text = line.decode(errors="replace").rstrip()
                if _GLOO.match(text):
                    continue
                self._written.append(self.index)
                if out is sys.stderr:
                    self.last.append(text)
                out.write(_printable(f"[{self.index}] {text}\n", out))
                out.flush()

    def describe(self) -> str:
        """Say how it ended, with what it wrote last where others wrote after it."""
        code = self.process.returncode
        if code < 0:
            with contextlib.suppress(ValueError):
                code = signal.Signals(-code).name
            how = f"was ended by {code}"
        else:
            how = f"ended with status {code}"
        text = f"stretto launch: process {self.index} {how}, so the others were told to end"
        if self.last and self._written[-1] != self.index:
            lines = "".join([f"\n[{self.index}] {line}" for line in self.last])
            text += f"; it wrote last:{lines}"
        return text


def run(options: argparse.Namespace) -> int:
    """Run the processes; return the exit status of the first that fails, else 0."""
    about = {
        "STRETTO_COORDINATOR": f"127.0.0.1:{free_port()}",
        "STRETTO_NUM_PROCESSES": str(options.n),
        SECRET: secrets.token_hex(32),
    }
    if options.devices is not None:
        about["STRETTO_NUM_CPU_DEVICES"] = str(options.devices)
    children: list[_Child] = []
    written: list[int] = []
    told: list[int] = []

    def tell(number: int, frame: object) -> None:
        # Who asks twice does not want to wait for what catches signals.
        is_second = bool(told)
        told.append(number)
        for child in children:
            if child.process.poll() is None:
                child.process.kill() if is_second else system.pass_on(child.process, number)

    handlers = {number: signal.signal(number, tell) for number in (signal.SIGINT, signal.SIGTERM)}
    system.adopt(True)
    try:
        for index in range(options.n):
            children.append(_Child(index, _start(options, about, index), written))
        readers = [reader for child in children for reader in child.readers()]
        for reader in readers:
            reader.start()
        failed, asked = _watch(children, told)
        for reader in readers:
            reader.join(_PATIENCE)
    finally:
        for child in children:
            if child.process.poll() is None:
                child.process.kill()
                child.process.wait()
        _end_coordinators()
        system.adopt(False)
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if failed is None:
        return 128 + told[0] if told else 0
    if not asked:
        print(failed.describe(), file=sys.stderr, flush=True)
    code = failed.process.returncode
    return code if code > 0 else 128 - code


def _start(
    options: argparse.Namespace, about: dict[str, str], index: int
) -> subprocess.Popen[bytes]:
    said = {"PYTHONUNBUFFERED": "1", **about, "STRETTO_PROCESS_ID": str(index)}
    process: subprocess.Popen[Any] = subprocess.Popen(
        [sys.executable, options.script, *options.arguments],
        env={**os.environ, **said},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        **system.apart(),  # the terminal interrupts this process, which tells the others
    )
    return process


def _end_coordinators() -> None:
    """End coordinators that stay though all processes have ended, as one does that was stopped."""
    limit = time.monotonic() + _LEFT
    while numbers := system.children(MARK):  # this process started none itself
        late = time.monotonic() > limit
        for number in numbers:
            system.collect(number, kill=late)
        time.sleep(0.02)


def _printable(text: str, out: IO[str]) -> str:
    """Return the text with what ``out`` cannot write escaped, as a Windows pipe cannot most."""
    encoding = getattr(out, "encoding", None) or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _watch(children: list[_Child], told: list[int]) -> tuple[_Child | None, bool]:
    """Wait for all to end; if one fails, end the others.

    Returns the first that failed, if any did, and whether this one was told to end before it.
    """
    running, failed, asked, limit = list(children), None, False, float("inf")
    while running:
        time.sleep(0.02)
        for child in list(running):
            if child.process.poll() is None:
                continue
            running.remove(child)
            if child.process.returncode and failed is None:
                failed, asked = child, bool(told)
                limit = time.monotonic() + _PATIENCE
                for other in running:
                    other.process.terminate()
        if time.monotonic() > limit:
            for other in running:
                other.process.kill()
            limit = float("inf")
    return failed, asked
