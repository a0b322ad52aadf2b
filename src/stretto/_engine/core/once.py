"""Make each thing once, whichever thread comes first; the others wait, and none for ever.

Layer 1 (core). What is made may need other things of the kind, as a function being traced calls
others. A thread waits for a maker unless that maker waits, over however many others, for this
thread: then it makes the thing itself, and the first one made is kept.

An interrupt, a finalizer or a signal handler may come between any two instructions here. So
nothing but a lock says that a thing is being made: ``with`` gives it back whatever comes, as no
clause written in Python would, and no lock is needed to read or write the rest. What is left behind
in the worst case only makes a thread do what another one does, too.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import TypeVar

from stretto._engine.core.forks import in_child

__all__ = ["Turn", "in_turn", "once"]

K = TypeVar("K")
T = TypeVar("T")


class Turn:
    """What one thread at a time does."""

    __slots__ = ("forks", "holder", "lock")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Let nobody have it."""
        self.lock = threading.Lock()
        self.holder = 0
        """The thread that has the lock, where one has it."""
        self.forks = _Process.forks


class _Process:
    """This process, and how many forks it is away from the first."""

    forks = 0


_waits: dict[int, Turn] = {}
"""What each waiting thread waits for."""


def in_turn(turn: Turn, do: Callable[[], T]) -> T:
    """``do()`` while no other thread has this turn, but where it would wait for this one.

    So ``do`` must be harmless where two threads, or one within itself, are at it.
    """
    me = threading.get_ident()
    if turn.holder == me and turn.lock.locked():
        return do()
    if turn.forks != _Process.forks:  # whoever had it is in the parent
        turn.begin()
    outer = _waits.get(me)  # where this is a finalizer or a signal handler of one that waits
    try:
        _waits[me] = turn
        # The last of a ring to come here sees all the others wait.
        if _leads_to(turn, me):
            return do()
        with turn.lock:
            turn.holder = me
            _waits.pop(me, None)
            return do()
    finally:
        if outer is None:
            _waits.pop(me, None)
        else:
            _waits[me] = outer


def _leads_to(turn: Turn, thread: int) -> bool:
    """Whether the turn is this thread's, or of one that waits for it over others."""
    seen: set[int] = set()
    while turn.lock.locked() and turn.holder not in seen:
        if turn.holder == thread:
            return True
        seen.add(turn.holder)
        following = _waits.get(turn.holder)
        if following is None:
            return False
        turn = following
    return False


def once(
    made: dict[K, T],
    making: dict[K, Turn],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool] = lambda thing: True,
) -> T:
    """``made[key]``, by ``make()`` where it is not there; what is not for ``keep`` is made anew."""

    def do() -> T:
        found = made.get(key)
        if found is not None:
            return found
        thing = make()
        return made.setdefault(key, thing) if keep(thing) else thing

    found = made.get(key)
    if found is not None:
        return found
    try:
        return in_turn(making.setdefault(key, Turn()), do)
    finally:
        making.pop(key, None)


def _forked() -> None:
    _Process.forks += 1
    _waits.clear()


in_child(_forked)
