"""The end of the process, which waits until XLA's threads rest, and those that compile.

Layer 6 (runtime). A result that nobody waited for, or what an interrupted call had begun, is
computed on threads of XLA's. When the process ends meanwhile, the data of libraries are destroyed
under them, and it may end by a signal: seen where oneDNN was writing a kernel. A thread of Python's
that is in XLA is aborted, and the process with it. Next, read ``clients``, which asks for it once
there is a client.
"""

from __future__ import annotations

import atexit
import os
import signal
import sys
import threading
import time
from collections.abc import Callable

__all__ = ["busy", "wait_at_end", "wait_for", "wait_until_idle"]

_TASKS = "/proc/self/task"
_PATIENCE = 5.0
"""The seconds after which the process ends all the same: somebody may want it to."""


def busy() -> bool:
    """Whether any thread is running that is none of Python's; False where nobody tells.

    Most of XLA's have no names, so they are not told from those of other libraries.
    """
    try:
        tasks = os.listdir(_TASKS)
    except OSError:
        return False
    ours = {str(thread.native_id) for thread in threading.enumerate()}
    for task in tasks:
        if task in ours:
            continue
        try:
            with open(f"{_TASKS}/{task}/stat", encoding="utf-8", errors="replace") as file:
                state = file.read().rpartition(")")[2].split()[0]
        except OSError:  # it has ended
            continue
        if state in "RD":
            return True
    return False


def wait_until_idle(patience: float = _PATIENCE) -> None:
    """Wait until no thread of XLA's is running, so many seconds at most."""
    end = time.monotonic() + patience
    resting = 0
    # Twice, since a thread that hands work to another rests before that has woken.
    while resting < 2 and time.monotonic() < end:
        resting = 0 if busy() else resting + 1
        time.sleep(0.001)


def wait_at_end() -> None:
    """Wait so when the process ends, asked once or more often."""
    atexit.unregister(wait_until_idle)
    atexit.register(wait_until_idle)


def wait_for(threads: Callable[[], None]) -> None:
    """Have ``threads()`` wait for threads of Python's when the process ends, then for XLA's.

    An interrupt meanwhile ends the process at once: XLA cannot be interrupted.
    """

    def wait() -> None:
        try:
            threads()
            wait_until_idle()
        except KeyboardInterrupt:
            sys.stdout.flush()
            sys.stderr.flush()
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            os.kill(os.getpid(), signal.SIGINT)

    atexit.register(wait)
