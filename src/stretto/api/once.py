"""Make each thing once, whichever thread comes first; the others wait, and none for ever.

Layer 7 (api). What is made may need other things of the kind, as a function being traced calls
others. A thread waits for a maker unless that maker waits, over however many others, for this
thread: then it makes the thing itself, and the first one made is kept.

An interrupt may end a maker between any two instructions, and a fork leaves all threads but one
behind. So nothing here is a lock that must be given back: who waits looks now and then whether the
maker is still at work, and makes the thing itself where it is not.
"""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Generator
from typing import Any, TypeVar

from stretto.core.forks import in_child

__all__ = ["Making", "once"]

K = TypeVar("K")
T = TypeVar("T")

_PATIENCE = 0.05
"""Seconds between two looks at a maker who has not said that it is done."""

_NOTHING: Any = object()


class Making:
    """One thing being made, by one thread."""

    __slots__ = ("__weakref__", "_done", "maker", "work")

    def __init__(self) -> None:
        self.maker = threading.get_ident()
        self.work: Any = None
        """What makes it: Python itself knows whether a generator runs, whatever ended it."""
        self._done = threading.Lock()
        self._done.acquire()
        _all.add(self)

    def goes_on(self) -> bool:
        """Whether it is still being made."""
        work = self.work
        return work is not None and work.gi_running

    def end(self) -> None:
        """Let go of the work, and wake who waits."""
        self.work = None
        if self._done.locked():
            self._done.release()

    def wait(self) -> None:
        """Return when it is made, or will not be."""
        while self.goes_on():
            if self._done.acquire(timeout=_PATIENCE):
                self.end()  # for the next one who waits
                return


_all: weakref.WeakSet[Making] = weakref.WeakSet()
_waits: dict[int, Making] = {}
"""What each waiting thread waits for; where a wait was interrupted, also what it waited for."""


def once(
    made: dict[K, T],
    making: dict[K, Making],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool],
) -> T:
    """``made[key]``, by ``make()`` where it is not there; what is not for ``keep`` is made anew."""
    mine = Making()
    mine.work = work = _at_work(mine, made, making, key, make, keep)
    ((thing, error),) = work
    if error is not None:
        raise error
    return thing


def _at_work(
    mine: Making,
    made: dict[K, T],
    making: dict[K, Making],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool],
) -> Generator[Any, None, None]:
    """Give the thing; or the error, if it is one that a generator may not raise.

    The dictionaries change by single operations, which are atomic.
    """
    thing: Any = None
    error = None
    try:
        while (thing := made.get(key, _NOTHING)) is _NOTHING:
            other = making.setdefault(key, mine)
            if other is mine or not _awaited(other, mine.maker):
                thing = make()
                if keep(thing):
                    thing = made.setdefault(key, thing)
                break
            if making.get(key) is other:
                making.pop(key, None)  # its maker did not come to do it
    except StopIteration as stop:
        error = stop
    finally:
        if making.get(key) is mine:
            making.pop(key, None)
        mine.end()
    yield thing, error


def _awaited(other: Making, me: int) -> bool:
    """Wait for another maker; false, at once, where that would be a circle."""
    try:
        _waits[me] = other  # first: of two who look for a circle at once, one at least sees it
        if _leads_to(other, me):
            return False
        other.wait()
        return True
    finally:
        _waits.pop(me, None)


def _leads_to(making: Making, thread: int) -> bool:
    """Whether the maker is at work, and is this thread or waits for it over others."""
    seen = set()
    while making.goes_on() and making not in seen:
        if making.maker == thread:
            return True
        seen.add(making)
        following = _waits.get(making.maker)
        if following is None:
            return False
        making = following
    return False


def _forget_other_threads() -> None:
    """In a forked child: what other threads were making will not be made."""
    _waits.clear()
    for making in list(_all):
        if making.maker != threading.get_ident():
            making.end()


in_child(_forget_other_threads)
