"""Processes that a test starts, to compute together, and a coordinator without a runtime."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from types import SimpleNamespace

from stretto._engine.xla import coordinator

__all__ = ["SECRET", "START", "coordinated", "read", "started", "together", "wait_for"]

SECONDS = 60
"""Far more than any of them takes: where they hang, the test fails."""

SECRET = b"a secret of the tests"
"""That of ``coordinated``."""

START = """
import faulthandler, os, signal, time
import numpy as np
import stretto as st, stretto.numpy as snp
from stretto import P, lax
from stretto.sharding import NamedSharding
faulthandler.enable()
"""
"""What scripts begin with."""


@contextlib.contextmanager
def started(script, count=2, devices=1, **environ):
    """Processes that run a script, each with its file of output; at the end all are killed."""
    settings = {
        "STRETTO_COORDINATOR": f"127.0.0.1:{coordinator.free_port()}",
        "STRETTO_NUM_PROCESSES": str(count),
        "STRETTO_NUM_CPU_DEVICES": str(devices),
        **environ,
    }
    code = START + textwrap.dedent(script)
    processes = []
    with contextlib.ExitStack() as stack:
        for index in range(count):
            output = stack.enter_context(tempfile.TemporaryFile("w+"))
            process = subprocess.Popen(
                [sys.executable, "-u", "-c", code],
                env={**os.environ, **settings, "STRETTO_PROCESS_ID": str(index)},
                stdout=output,
                stderr=subprocess.STDOUT,
            )
            processes.append(SimpleNamespace(process=process, output=output))
        try:
            yield processes
        finally:
            for one in processes:
                with contextlib.suppress(ProcessLookupError):
                    one.process.kill()
                one.process.wait()


def read(one):
    """What the process has written so far, without what the runtime writes."""
    one.output.seek(0)
    lines = one.output.read().splitlines()
    gloos = "[Gloo]", "connected peer ranks"  # written in pieces, between which others write
    return "".join(f"{line}\n" for line in lines if not any(words in line for words in gloos))


def wait_for(one, text):
    """Wait until the process has written this."""
    end = time.monotonic() + SECONDS
    while text not in read(one):
        assert one.process.poll() is None and time.monotonic() < end, read(one)
        time.sleep(0.02)


def together(script, count=2, devices=1, lost=(), **environ):
    """What each process writes, all of which must end well but those that are to be lost."""
    with started(script, count, devices, **environ) as processes:
        end = time.monotonic() + SECONDS
        for index, one in enumerate(processes):
            if index in lost:
                continue
            try:
                status = one.process.wait(max(end - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                one.process.send_signal(signal.SIGABRT)
                one.process.wait()
                status = "it hung"
            assert status == 0, f"process {index}, {status}: {read(one)}"
        return [read(one) for one in processes]


@contextlib.contextmanager
def coordinated(count, heartbeat=10.0):
    """The port of a coordinator in a thread of this process, without the runtime's service."""
    server = coordinator.listening("127.0.0.1", 0)
    meeting = coordinator.Meeting(server, 7, count, heartbeat, SECRET)
    reading, writing = os.pipe()
    with os.fdopen(reading, "rb", buffering=0) as pipe:
        thread = threading.Thread(target=meeting.run, args=(pipe,))
        thread.start()
        try:
            yield SimpleNamespace(port=server.getsockname()[1], meeting=meeting, thread=thread)
        finally:
            os.close(writing)
            thread.join(SECONDS)
        assert not thread.is_alive()
        for peer in meeting.strangers:
            peer.connection.close()
        server.close()
        meeting.selector.close()
