"""A thread that starts programs of several processes, since a start may never return.

The runtime runs small programs where they are started, and so waits there for other processes.
"""

from __future__ import annotations

import contextlib
import ctypes
import signal
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from stretto._engine.core.latch import Latch


class _Task:
    """A call, and what comes of it."""

    def __init__(self, fun: Callable[[], Any]) -> None:
        self.fun = fun
        self.done = Latch()
        self.result: Any = None
        self.error: BaseException | None = None


class Launcher:
    """A thread that makes calls, one after the other, for others that watch it."""

    def __init__(self) -> None:
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        self._task: _Task | None = None
        """The call that is being made."""
        self._thread = threading.Thread(target=self._serve, name="stretto-launcher", daemon=True)
        self._thread.start()

    def call(self, fun: Callable[[], Any], watch: Callable[[], None]) -> Any:
        """Return ``fun()``; ``watch()``, called from time to time until then, may raise instead."""
        task = _Task(fun)
        self._tasks.put(task)
        while not task.done.wait(0.1):
            watch()
        if task.error is not None:
            raise task.error
        return task.result

    def end(self) -> None:
        """Let the thread end; one that does not return stays as it is for ever."""
        self._tasks.put(None)

    def freeze(self) -> None:
        """Keep a call that has not returned from returning, which must not be while Python ends.

        Its thread would be ended in the midst of functions in C++, and the process with it.
        """
        number, ident = getattr(signal, "SIGRTMAX", 0), self._thread.ident
        if number and ident and self._task is not None:
            with contextlib.suppress(AttributeError, OSError):
                system = ctypes.CDLL(None)
                system.signal(int(number), system.pause)
                signal.pthread_kill(ident, number)

    def _serve(self) -> None:
        while (task := self._tasks.get()) is not None:
            self._task = task
            try:
                task.result = task.fun()
            except BaseException as error:
                task.error = error
            self._task = None
            task.done.open()
            del task
