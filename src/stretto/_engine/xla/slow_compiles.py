"""Say of a program that takes long to compile that it does, and how long it took.

While anything is compiled, a thread looks once a second for what has taken longer than
``config.slow_compile_warning``.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import TypeVar

from stretto._engine.core.config import config
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.position import Position, user_position
from stretto._engine.core.threads import in_child, lock

R = TypeVar("R")

_logging = LazyModule("logging")
_lock = lock()
_EVERY = 1.0
"""The seconds after which the thread looks again, or ends; to start one takes some 0.1 ms."""


class _Compilation:
    """A program that is being compiled."""

    def __init__(self, name: str, position: Position | None, limit: int) -> None:
        self.name, self.position, self.limit = name, position, limit
        self.start = time.perf_counter()
        self.is_said = False

    def seconds(self) -> float:
        """Give the seconds since it began."""
        return time.perf_counter() - self.start

    def say(self, done: bool) -> None:
        """Log how long it takes, or took."""
        # A thread of the package's own was started by threading, and called by nobody.
        known = self.position and self.position.file != threading.__file__
        where = f", called at {self.position}," if known else ""
        _logging.getLogger("stretto").warning(
            "compiled %s%s in %.0f s" if done else "compiling %s%s has taken %.0f s so far",
            self.name,
            where,
            self.seconds(),
        )


_at_work: list[_Compilation] = []


class _Watch:
    """Whether the thread is running; read and set with the lock."""

    running = False


def watch(name: str, compile: Callable[[], R]) -> R:
    """Return ``compile()``, a program of this name; log how long it takes if that is long."""
    limit = config.slow_compile_warning
    if not limit:
        return compile()
    compilation = _Compilation(name, user_position(), limit)
    try:
        with _lock:
            _at_work.append(compilation)
            if not _Watch.running:
                _start()
        result = compile()
    finally:
        with _lock:
            if compilation in _at_work:
                _at_work.remove(compilation)
    if compilation.is_said:
        compilation.say(done=True)
    return result


def _start() -> None:
    try:
        threading.Thread(target=_run, name="stretto-slow-compiles", daemon=True).start()
        _Watch.running = True
    except RuntimeError:  # the interpreter is ending, and starts no more threads
        pass


def _run() -> None:
    while True:
        time.sleep(_EVERY)
        with _lock:
            if not _at_work:
                _Watch.running = False
                return
            late = [c for c in _at_work if not c.is_said and c.seconds() >= c.limit]
            for compilation in late:
                compilation.is_said = True
        for compilation in late:
            compilation.say(done=False)


def _forked() -> None:
    """Forget in a forked child, which has no such thread, what the parent compiles."""
    _at_work.clear()
    _Watch.running = False


in_child(_forked)
