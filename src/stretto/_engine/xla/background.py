"""Threads of our own, which compile beside the calls, work in the background, and watch compilers.

A first call may return before its program is compiled. A thread compiles the program and runs it,
while the caller goes on, perhaps to the next program; whoever reads a result meanwhile waits for
the thread. Such a call takes nobody's memory, and calls no Python, so that it does not matter when
it is run; a call that takes memory waits first until the others have read theirs
(``wait_for_all``).

Another thread does work in the background, a piece at a time, and ends when none is left: programs
are optimized there while calls are run as compiled quickly; see ``api/jit/entry``. A process that
ends waits for the piece at hand, since XLA cannot be interrupted, and drops the others.

While anything is compiled, a third one looks once a second for what has taken longer than
``config.slow_compile_warning``, and says so.
"""

from __future__ import annotations

import collections
import copy
import os
import threading
import time
from collections.abc import Callable, Sequence
from types import TracebackType
from typing import Any, TypeVar

from stretto._engine.core.config import config, settings, under
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.machine import cores
from stretto._engine.core.position import Position, user_position
from stretto._engine.core.threads import Latch, in_child, lock
from stretto._engine.core.types import ArrayType
from stretto._engine.xla import ending
from stretto._engine.xla.array import Absent, Array
from stretto._engine.xla.clients import left_behind, refuse_fork
from stretto._engine.xla.patience import start_thread, unusual
from stretto._engine.xla.pjrt import Executable

_at_work: list[tuple[threading.Thread, _Call]] = []
"""Threads and what they are at; read and set with the lock, under which they are started, too."""

_lock = lock()

_MOST = 8
"""The most such calls at a time: each compiler needs memory."""


class Pending(Absent):
    """Takes the place of a result's buffer until that is there."""

    __slots__ = ("_buffer", "_call")

    def __init__(self, call: _Call) -> None:
        self._call: _Call | None = call
        self._buffer: Any = None

    def arrived(self, type: ArrayType) -> Any:
        """Return the buffer, once the call has been run; its error if it could not be."""
        call = self._call
        if call is not None:
            call.wait()
        return self._buffer

    def is_ready(self) -> bool:
        """Say whether nobody waits for it, as buffers do: it is computed, or the call failed."""
        call = self._call
        return call.has_ended() if call is not None else self._buffer.is_ready()

    def arrive(self, buffer: Any) -> None:
        """Let those have it who wait; the call, which has the other results, is not kept."""
        self._buffer, self._call = buffer, None


class _Call:
    """One call: its error, if it could not be run."""

    def __init__(self, about: str) -> None:
        self._about = about
        self._ended = Latch()
        self._error: BaseException | None = None
        self._traceback: TracebackType | None = None
        self._process = os.getpid()

    def wait(self) -> None:
        """Wait until it has been run; raise its error."""
        if self._process != os.getpid() and not self.has_ended():
            refuse_fork()
        self.end()
        if self._error is not None:
            raise _again(self._error, self._traceback)

    def end(self) -> None:
        """Wait until it has been run, or has failed."""
        self._ended.wait()

    def has_ended(self) -> bool:
        """Say whether it has been run, or has failed."""
        return self._ended.is_open()

    def run(
        self,
        compiled: Callable[[], Executable],
        arguments: Sequence[tuple[ArrayType, Any]],
        results: Sequence[Pending],
    ) -> None:
        """Compile and run; for a thread."""
        try:
            executable = compiled()
            buffers = [b.arrived(t) if isinstance(b, Pending) else b for t, b in arguments]
            for result, buffer in zip(results, executable(buffers), strict=True):
                result.arrive(buffer)
        except BaseException as error:  # raised where a result is read
            if not hasattr(error, "__notes__"):  # or it is that of a call that this one waited for
                error.add_note(self._about)
            self._error, self._traceback = error, error.__traceback__
        finally:
            self._ended.open()


def _again(error: BaseException, traceback: TracebackType | None) -> BaseException:
    """Copy the error: raising one adds to its traceback, and other threads may raise it."""
    try:
        copied = copy.copy(error)
    except Exception:  # its class takes other arguments than it keeps
        copied = error
    if copied is error or type(copied) is not type(error):
        return error.with_traceback(traceback)
    copied.__dict__.update(error.__dict__)
    if hasattr(error, "__notes__"):
        copied.__notes__ = [*error.__notes__]
    copied.__cause__, copied.__context__ = error.__cause__, error.__context__
    copied.__suppress_context__ = error.__suppress_context__
    return copied.with_traceback(traceback)


def begin(
    name: str,
    compiled: Callable[[], Executable],
    arrays: Sequence[Array],
    out_types: Sequence[ArrayType],
) -> list[Array] | None:
    """Return the results of a call that a thread makes, once it has compiled the program.

    Args:
        name: what messages call the function.
        compiled: gives the compiled program, under the settings of this thread.
        arrays: what is passed to it.
        out_types: the types of its results.

    Raises:
        ForkedProcessError: the process was forked from one that had a runtime.

    Returns:
        Arrays that can be used at once; None where as many threads as there are processors, or
        eight, are at it already, or none can be started.
    """
    if left_behind:
        refuse_fork()
    if unusual:
        return None
    call = _Call(_about(name, user_position()))
    arguments = [(x.type, _buffer_of(x)) for x in arrays]
    results = [Pending(call) for _ in out_types]
    values = dict(settings.values)
    work = lambda: call.run(lambda: under(values, compiled), arguments, results)
    with _lock:
        # One whose start was interrupted is not alive.
        _at_work[:] = [(thread, its) for thread, its in _at_work if thread.is_alive()]
        if len(_at_work) >= min(cores(), _MOST):
            return None
        # The end of the process waits for it otherwise: see below.
        thread = threading.Thread(target=work, name="stretto-first-call", daemon=True)
        _at_work.append((thread, call))
        if not start_thread(thread):
            return None
    return [Array(None, type, result) for type, result in zip(out_types, results, strict=True)]


def _about(name: str, position: Position | None) -> str:
    return f"This was raised by compiling or running {name}" + (
        f", which was called at {position}" if position else ""
    )


def _buffer_of(x: Array) -> Any:
    """Return the buffer of an array, or what stands for one that has not arrived."""
    return x._buffer if isinstance(x._buffer, Pending) else x.to_buffer()


def wait_for_all() -> None:
    """Wait until all such calls have been run, or have failed."""
    with _lock:
        at_work = [*_at_work]
    for thread, call in at_work:
        # A finalizer, which may call anything, runs in any of these threads as well.
        if thread.is_alive() and thread is not threading.current_thread():
            call.end()


in_child(_at_work.clear)
ending.wait_for(wait_for_all)


# Work in the background


_waiting: collections.deque[Callable[[], Any]] = collections.deque()
_work_lock = lock()


class _Worker:
    """Says whether the thread is running, and whether it is to end; used with the lock."""

    running = False
    ended = False


def in_background(work: Callable[[], Any]) -> None:
    """Have ``work()`` done in the background, under the settings of this thread."""
    values = dict(settings.values)
    with _work_lock:
        _waiting.append(lambda: under(values, work))
        if not _Worker.running and not _Worker.ended:
            # The end of the process waits for it otherwise, so that an interrupt is heard.
            thread = threading.Thread(target=_work, name="stretto-background", daemon=True)
            if start_thread(thread):
                _Worker.running = True
            else:
                _waiting.clear()


def _end_work() -> None:
    """Drop what waits, and wait for the piece at hand."""
    _Worker.ended = True
    while _Worker.running:
        time.sleep(0.001)


def _work() -> None:
    while True:
        with _work_lock:
            if not _waiting or _Worker.ended:
                _waiting.clear()
                _Worker.running = False
                return
            work = _waiting.popleft()
        try:
            work()
        except BaseException as error:  # an interrupt goes to the main thread
            threading.excepthook(
                threading.ExceptHookArgs((type(error), error, error.__traceback__, None))
            )


def _forget_work() -> None:
    """Forget in a forked child, which has no such thread, what is done in the parent."""
    _waiting.clear()
    _Worker.running = False


in_child(_forget_work)
ending.wait_for(_end_work)


# Compilations that take long


R = TypeVar("R")

_logging = LazyModule("logging")
_watch_lock = lock()
_LOOK_EVERY = 1.0
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


_compilations: list[_Compilation] = []


class _Watch:
    """Says whether the thread is running; read and set with the lock."""

    running = False


def watch(name: str, compile: Callable[[], R]) -> R:
    """Return ``compile()``, a program of this name; log how long it takes if that is long."""
    limit = config.slow_compile_warning
    if not limit:
        return compile()
    compilation = _Compilation(name, user_position(), limit)
    try:
        with _watch_lock:
            _compilations.append(compilation)
            if not _Watch.running:
                _start_watching()
        result = compile()
    finally:
        with _watch_lock:
            if compilation in _compilations:
                _compilations.remove(compilation)
    if compilation.is_said:
        compilation.say(done=True)
    return result


def _start_watching() -> None:
    thread = threading.Thread(target=_watch_compilations, name="stretto-slow-compiles", daemon=True)
    if start_thread(thread):
        _Watch.running = True


def _watch_compilations() -> None:
    while True:
        time.sleep(_LOOK_EVERY)
        with _watch_lock:
            if not _compilations:
                _Watch.running = False
                return
            late = [c for c in _compilations if not c.is_said and c.seconds() >= c.limit]
            for compilation in late:
                compilation.is_said = True
        for compilation in late:
            compilation.say(done=False)


def _forget_compilations() -> None:
    """Forget in a forked child, which has no such thread, what the parent compiles."""
    _compilations.clear()
    _Watch.running = False


in_child(_forget_compilations)
