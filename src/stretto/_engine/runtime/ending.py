"""The end of the process, which waits until XLA's threads rest.

Layer 6 (runtime). A result that nobody waited for, or what an interrupted call had begun, is
computed on threads of XLA's. When the process ends meanwhile, the data of libraries are destroyed
under them, and it may end by a signal: seen where oneDNN was writing a kernel. Next, read
``clients``, which asks for it once there is a client.
"""

from __future__ import annotations

import atexit
import os
import time

__all__ = ["busy", "wait_at_end", "wait_until_idle"]

_TASKS = "/proc/self/task"
_PATIENCE = 5.0
"""The seconds after which the process ends all the same: somebody may want it to."""


def busy() -> bool:
    """Whether any thread of XLA's is running; False where the system does not tell."""
    try:
        tasks = os.listdir(_TASKS)
    except OSError:
        return False
    for task in tasks:
        try:
            with open(f"{_TASKS}/{task}/stat", encoding="utf-8", errors="replace") as file:
                name, _, rest = file.read().partition("(")[2].rpartition(")")
        except OSError:  # it has ended
            continue
        if name.startswith("tf_") and rest.split()[0] in "RD":
            return True
    return False


def wait_until_idle(patience: float = _PATIENCE) -> None:
    """Wait until no thread of XLA's is running, so many seconds at most."""
    end = time.monotonic() + patience
    while busy() and time.monotonic() < end:
        time.sleep(0.001)


def wait_at_end() -> None:
    """Wait so when the process ends, asked once or more often."""
    atexit.unregister(wait_until_idle)
    atexit.register(wait_until_idle)
