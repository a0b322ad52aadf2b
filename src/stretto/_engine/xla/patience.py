"""Waiting for programs that may take long, so that Ctrl-C is heard; and what goes on after it.

XLA waits in C++, where Python hears of no signal, and a program that was begun cannot be stopped.
While one that may take long has not ended, the main thread, which alone hears of signals, therefore
asks again and again whether what it waits for is there. After an interrupt the program goes on in
vain, on a thread of XLA's. XLA has what a thread begins later wait for what it began before, so
another thread begins the programs of the main thread then.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

from stretto._engine.core.machine import cores
from stretto._engine.core.threads import in_child

T = TypeVar("T")

_MOST = 8
"""The most such calls at a time: XLA has a call wait in C++ while 32 programs are unfinished."""

_SPIN = 1e-4
"""The seconds for which is asked without a pause, as an ordinary short program takes."""

_SHARE, _LONGEST = 1 / 128, 5e-3
"""The pauses, of the time waited so far, and at most in seconds: what waiting so may add."""

_GOES_ON = (
    "A compiled program cannot be stopped, so the one that this waited for goes on in vain on a "
    "thread of XLA's, perhaps for ever, and ends with the process"
)
_NO_MORE = (
    "XLA has as many threads as there are processors, and none of them is left: start the process "
    "anew, as compiled programs wait now until one of those has ended"
)

_MIXED_UP = "release unlocked lock"
"""Python's own wait for a thread's start makes this of a handler's error, at one moment."""

unusual: list[str] = []
"""Why programs are not simply run: "ended", "abandoned". Calls ask for this first, and only this:
while it is empty, all is as usual."""

watch: list[Callable[[], None]] = []
"""Called when calls have to ask for it: short ways do not."""

_unfinished: dict[int, Any] = {}
"""A result of each call of a program that may take long, by its ``id`` and the oldest first, unless
it was seen to be computed."""

_abandoned: list[Any] = []
"""Such results that the main thread has been interrupted in waiting for."""


def _in_main_thread() -> bool:
    return threading.get_ident() == threading.main_thread().ident


def _is_there(buffer: Any) -> bool:
    """Say whether nobody has to wait for it.

    One that was given away is not known, and not waited for.

    It may be given away meanwhile, by another thread.
    """
    try:
        return buffer.is_deleted() or buffer.is_ready()
    except RuntimeError:  # a signal handler's, if the buffer is there
        if not buffer.is_deleted():
            raise
        return True


def _look() -> None:
    """Forget what has been computed.

    Other threads may do so meanwhile. No error is caught, as it might be a signal handler's.
    """
    for key in list(_unfinished):
        buffer = _unfinished.get(key)
        if buffer is None:
            continue
        if not _is_there(buffer):
            return
        _unfinished.pop(key, None)


def count_unfinished() -> int:
    """Return how many programs that may take long are running, or waiting for others."""
    _look()
    return len(_unfinished)


class LongRun:
    """Runs a program that may take long; in the place of ``execute_sharded``.

    ``smallest`` is the number of the result that takes least memory.
    """

    __slots__ = ("_execute", "_smallest")

    def __init__(self, execute: Callable[[Sequence[Any]], Any], smallest: int) -> None:
        self._execute = execute
        self._smallest = smallest

    def __call__(self, buffers: Sequence[Any]) -> Begun:
        """Begin to run it."""
        _look()
        if len(_unfinished) >= _MOST and _in_main_thread():
            for oldest in list(_unfinished.values())[:1]:
                _wait_for(oldest)
        return Begun(self._execute(buffers), self._smallest)


class Begun:
    """The results of a program that may take long, as the runtime has them."""

    __slots__ = ("_results", "_smallest")

    def __init__(self, results: Any, smallest: int) -> None:
        self._results = results
        self._smallest = smallest

    def consume_with_handlers(self, handlers: Sequence[Any]) -> list[Any]:
        """Return the buffers."""
        buffers = self._results.consume_with_handlers(handlers)
        smallest = buffers[self._smallest]
        if not _is_there(smallest):
            _unfinished[id(smallest)] = smallest
        return buffers


def patient(buffers: Sequence[Any]) -> None:
    """Wait until these are computed, if a program that may take long might be what they wait for.

    Only the main thread does; an interrupt ends it.
    """
    if not _unfinished or not _in_main_thread():
        return
    _look()
    if _unfinished:
        for buffer in buffers:
            _wait_for(buffer)


def _wait_for(buffer: Any) -> None:
    start = time.perf_counter()
    try:
        while not _is_there(buffer):
            waited = time.perf_counter() - start
            time.sleep(0 if waited < _SPIN else min(waited * _SHARE, _LONGEST))
    except BaseException as error:
        _abandon(error)
        raise


def _abandon(error: BaseException) -> None:
    """Have what is running end by itself, while others run; the interrupt says so."""
    _abandoned[:] = [*_abandoned, *_unfinished.values()]
    _unfinished.clear()
    _other.clear()  # it may have begun them, and would wait for them
    _set("abandoned")
    error.add_note(_GOES_ON if count_abandoned() < cores() else f"{_GOES_ON}. {_NO_MORE}")


def count_abandoned() -> int:
    """Return how many programs go on in vain."""
    _abandoned[:] = [buffer for buffer in _abandoned if not _is_there(buffer)]
    return len(_abandoned)


def _set(reason: str) -> None:
    if reason not in unusual:
        unusual.append(reason)
    for told in watch:
        told()


def start_thread(thread: threading.Thread) -> bool:
    """Start a thread; return False if the interpreter is ending, and starts no more."""
    try:
        thread.start()
    except RuntimeError as error:
        if str(error).startswith("can't"):
            return False
        if str(error) == _MIXED_UP and error.__context__ is not None:
            raise error.__context__ from None
        raise  # a signal handler's
    except KeyError as error:
        # Python looks for the thread among those that begin, to take it back after an error of a
        # signal handler; it has begun meanwhile.
        if error.args == (thread,) and error.__context__ is not None:
            raise error.__context__ from None
        raise
    return True


class _Other:
    """A thread that begins programs for the main thread."""

    def __init__(self) -> None:
        # Locks, each taken until there is work, or it is done. A semaphore's own Python drops a
        # RuntimeError that a signal handler raises in it.
        self._there, self._done = threading.Lock(), threading.Lock()
        self._there.acquire()
        self._done.acquire()
        self._work: Callable[[], Any] | None = None
        self._result: Any = None
        self._error: BaseException | None = None
        thread = threading.Thread(target=self._run, name="stretto-beginner", daemon=True)
        self.there = start_thread(thread)

    def _run(self) -> None:
        while True:
            self._there.acquire()
            assert self._work is not None
            try:
                self._result, self._error = self._work(), None
            except BaseException as error:  # raised where it is waited for
                self._result, self._error = None, error
            self._done.release()

    def does(self, work: Callable[[], T]) -> T:
        """Return what ``work()`` gives there."""
        self._work = work
        self._there.release()
        self._done.acquire()
        result, error = self._result, self._error
        self._work = self._result = self._error = None
        if error is not None:
            raise error
        return result

    def is_at_work(self) -> bool:
        """Say whether it has not been seen to have done what it was asked for last."""
        return self._work is not None


_other: list[_Other] = []


def elsewhere(run: Callable[[Sequence[Any]], T], buffers: Sequence[Any]) -> T:
    """Return ``run(buffers)`` while something is ``unusual``.

    Raises ``SystemExit`` in any thread but the main one while the process ends.
    """
    end_threads()
    if not _in_main_thread() or "abandoned" not in unusual:
        return run(buffers)
    if not count_abandoned():
        unusual.remove("abandoned")
        _other.clear()
        return run(buffers)
    other = _other[0] if _other else _Other()
    if not other.there:
        return run(buffers)
    _other[:] = [other]
    try:
        return other.does(lambda: run(buffers))
    except BaseException as error:
        if other.is_at_work():  # so it is this thread that was interrupted
            _abandon(error)
        raise


def end_threads() -> None:
    """End this thread, as others end, if the process ends and it is not the main one."""
    if "ended" in unusual and not _in_main_thread():
        # What a thread does in XLA when the interpreter ends would abort the process.
        raise SystemExit


def close() -> None:
    """Let no thread but the main one begin anything in XLA from now on."""
    _set("ended")


def _after_fork() -> None:
    _unfinished.clear()
    _abandoned.clear()
    _other.clear()
    unusual.clear()


in_child(_after_fork)
