"""A latch: what one thread opens once, and others wait for.

``threading.Event`` waits in Python, where the error of a signal handler may meet locks in a state
that turns it into another error; here the only wait is that of a lock itself.
"""

from __future__ import annotations

import threading


class Latch:
    """Closed until ``open`` is called."""

    __slots__ = ("_is_open", "_waiting")

    def __init__(self) -> None:
        self._is_open = False
        self._waiting: list[threading.Lock] = []
        """A lock of each wait that goes on, or that was interrupted, taken until this opens."""

    def is_open(self) -> bool:
        """Whether it has been opened."""
        return self._is_open

    def open(self) -> None:
        """Let all go on who wait."""
        self._is_open = True
        while self._waiting:  # nobody enters any more who does not see that it is open
            self._waiting.pop().release()

    def wait(self, seconds: float = -1) -> bool:
        """Wait until it is open, but at most these seconds if there are any; say if it is."""
        if not self._is_open:
            own = threading.Lock()
            own.acquire()
            self._waiting.append(own)
            if not self._is_open:  # which it may have become before the lock was entered
                own.acquire(timeout=seconds)
        return self._is_open
