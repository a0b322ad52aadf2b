"""Make each thing once: the first thread to need it makes it, others wait, and none deadlocks.

Tracing and compiling go through here. Making one thing may need others of the same kind, as a
function being traced calls other jitted functions, so threads could end up waiting for each other
in a ring. Before it waits, a thread therefore checks whether the maker is itself waiting for this
thread, directly or through others; if so it makes the thing itself, and the first result to be
stored is kept.

An interrupt, a finalizer or a signal handler may run between any two instructions here. Therefore
only a held lock says that a thing is being made: ``with`` releases it whatever happens, which no
``finally`` clause written in Python guarantees. The other tables are read and written without a
lock; the worst that a stale entry can do is to make two threads do the same work.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from stretto._engine.core.forks import in_child

K = TypeVar("K")
K_contra = TypeVar("K_contra", contravariant=True)
T = TypeVar("T")


class Turn:
    """A task that one thread at a time works on."""

    __slots__ = ("forks", "holder", "lock")

    def __init__(self) -> None:
        self.begin()

    def begin(self) -> None:
        """Start with no thread at work."""
        self.lock = threading.Lock()
        self.holder = 0
        """The thread that has the lock; meaningful only while the lock is held."""
        self.forks = _Process.forks


class _Process:
    """How many forks lie between the first process and this one."""

    forks = 0


_waits: dict[int, Turn] = {}
"""The turn that each waiting thread waits for."""


def in_turn(turn: Turn, do: Callable[[], T]) -> T:
    """Call ``do()`` while no other thread has this turn, unless waiting for it would deadlock.

    So ``do`` must tolerate being run by two threads at once, or by one thread within itself.
    """
    me = threading.get_ident()
    if turn.holder == me and turn.lock.locked():
        return do()
    if turn.forks != _Process.forks:  # the thread that had it is in the parent process
        turn.begin()
    outer = _waits.get(me)  # set where a finalizer or a signal handler runs in a waiting thread
    try:
        _waits[me] = turn
        # In a ring of threads, the last one to get here sees that all the others wait.
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
    """Whether this thread has the turn, or whoever has it waits, perhaps through others, for it."""
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


class Table(Protocol[K_contra, T]):
    """Where things are kept by key: a dictionary, or what has these two methods of one."""

    def get(self, key: K_contra, /) -> T | None: ...

    def setdefault(self, key: K_contra, thing: T, /) -> T: ...


def once(
    things: Table[K, T],
    making: dict[K, Turn],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool] = lambda thing: True,
) -> T:
    """``things[key]``, first made by ``make()`` if missing.

    What ``keep`` refuses is not stored, so that the next call makes it again.
    """

    def do() -> T:
        existing = things.get(key)  # another thread may have made it in the meantime
        if existing is not None:
            return existing
        thing = make()
        return things.setdefault(key, thing) if keep(thing) else thing

    existing = things.get(key)
    if existing is not None:
        return existing
    try:
        return in_turn(making.setdefault(key, Turn()), do)
    finally:
        making.pop(key, None)


def _forked() -> None:
    _Process.forks += 1
    _waits.clear()


in_child(_forked)
