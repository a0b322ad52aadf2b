"""Make each thing once, whichever thread comes first; the others wait, and none for ever.

Layer 7 (api). What is made may need other things of the kind, as a function being traced calls
others. A thread waits for a maker unless that maker waits, over however many others, for this
thread: then it makes the thing itself, and the first one made is kept.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

__all__ = ["Making", "once"]

K = TypeVar("K")
T = TypeVar("T")


class Making:
    """One thing being made, by one thread."""

    __slots__ = ("done", "maker")

    def __init__(self, maker: int) -> None:
        self.maker = maker
        self.done = threading.Event()


_lock = threading.Lock()
_waits: dict[int, Making] = {}
"""What each waiting thread waits for."""


def once(
    made: dict[K, T],
    making: dict[K, Making],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool],
) -> T:
    """``made[key]``, by ``make()`` where it is not there; what is not for ``keep`` is made anew."""
    me = threading.get_ident()
    while True:
        with _lock:
            if key in made:
                return made[key]
            other = making.get(key)
            if other is None:
                making[key] = Making(me)
                break
            if _leads_to(other, me):
                break
            _waits[me] = other
        try:
            other.done.wait()
        finally:
            with _lock:
                del _waits[me]
    try:
        thing = make()
        if keep(thing):
            with _lock:
                thing = made.setdefault(key, thing)
        return thing
    finally:
        if other is None:
            with _lock:
                making.pop(key).done.set()


def _leads_to(making: Making, thread: int) -> bool:
    """Whether the maker is this thread, or waits for it over others."""
    while making.maker != thread:
        following = _waits.get(making.maker)
        if following is None or following.done.is_set():
            return False
        making = following
    return True
