"""Threads and interrupts: locks after a fork, latches, attributes held, and work done once."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable
from typing import Any, Protocol, TypeVar

# What a forked child process repairs: locks that other threads held when it was forked.
#
# A child has a copy of the parent's memory but only one thread, the one that forked. A lock held
# by any other thread would stay locked for ever.


def in_child(fun: Callable[[], Any]) -> None:
    """Have each forked child call this first; does nothing on systems without fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=fun)


Lock: Any = threading.Lock
"""A lock that an interrupt of a ``with`` of it leaves free."""

RLock: Any = threading.RLock
"""The same, and the thread that holds it may take it again."""

if sys.version_info[:2] == (3, 14):
    # There Python looks for signals between the return of `__enter__` and the block of `with`: of
    # 10,123 interrupts of a loop that takes a lock, 5,767 left it taken for ever; in 3.11 and 3.15
    # none. `__exit__` stays the lock's own, in C, before which there is no such look.

    _Base: Any = type(threading.RLock())

    class _RLock(_Base):
        def __enter__(self) -> bool:
            before = self._recursion_count()
            try:
                return self.acquire()
            except BaseException:
                if self._recursion_count() > before:
                    self.release()
                raise

    Lock = RLock = _RLock

_locks: list[Any] = []


def lock() -> Any:
    """Give a lock for use at module level, never freed; the thread that holds it may take it again.

    Finalizers and signal handlers do that, since they run in the middle of other code. In a forked
    child the lock is free, unless the thread that forked holds it.
    """
    new = RLock()
    _locks.append(new)
    return new


def _release() -> None:
    """Free the locks of threads that the child does not have."""
    for each in _locks:
        if not each._is_owned():
            each._at_fork_reinit()


in_child(_release)


# A latch: what one thread opens once, and others wait for.
#
# ``threading.Event`` waits in Python, where the error of a signal handler may meet locks in a
# state that turns it into another error; here the only wait is that of a lock itself.


_IS_DEAF = os.name == "nt"
"""Says that who waits for a lock hears of no signal meanwhile, as of Ctrl-C on Windows."""
_SLICE = 0.1
"""The seconds of each such wait where a signal must be heard of."""


class Latch:
    """Closed until ``open`` is called."""

    __slots__ = ("_is_open", "_waiting")

    def __init__(self) -> None:
        self._is_open = False
        self._waiting: list[threading.Lock] = []
        """A lock of each wait that goes on, or that was interrupted, taken until this opens."""

    def is_open(self) -> bool:
        """Say whether it has been opened."""
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
                if seconds < 0 and _IS_DEAF:
                    while not own.acquire(timeout=_SLICE):
                        pass
                else:
                    own.acquire(timeout=seconds)
        return self._is_open


# Set an attribute for the duration of one call, and restore it however the call ends.
#
# An interrupt (Ctrl-C) may raise its exception between nearly any two instructions, also just as
# an ``__exit__`` method written in Python begins, which then restores nothing. So the state that a
# thread depends on, such as its current interpreter, is set through these functions.


def holding(holder: Any, name: str, value: Any, fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``, called while this attribute of ``holder`` has this value.

    Afterwards it has its former value again, even if one interrupt came at the worst moment.
    """
    outer = getattr(holder, name)
    try:
        try:
            setattr(holder, name, value)
            return fun(*args)
        finally:
            setattr(holder, name, outer)
    finally:  # once more: an interrupt may have come in the clause above
        setattr(holder, name, outer)


def restoring(restore: Callable[[], Any], fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; afterwards ``restore()`` is called, perhaps twice."""
    try:
        try:
            return fun(*args)
        finally:
            restore()
    finally:
        restore()


# Make each thing once: the first thread to need it makes it, others wait, and none deadlocks.
#
# Tracing and compiling go through here. Making one thing may need others of the same kind, as a
# function being traced calls other jitted functions, so threads could end up waiting for each
# other in a ring. Before it waits, a thread therefore checks whether the maker is itself waiting
# for this thread, directly or through others; if so it makes the thing itself, and the first
# result to be stored is kept.
#
# An interrupt, a finalizer or a signal handler may run between any two instructions here.
# Therefore only a held lock says that a thing is being made: ``with`` releases it whatever
# happens, which no ``finally`` clause written in Python guarantees. The other tables are read and
# written without a lock; the worst that a stale entry can do is to make two threads do the same
# work.


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
        self.lock = Lock()
        self.holder = 0
        """The thread that has the lock; meaningful only while the lock is held."""
        self.forks = _Process.forks


class _Process:
    """Say how many forks lie between the first process and this one."""

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
            try:
                return do()
            finally:
                # From Python 3.13 on, a lock may go to who waits for it without being free between,
                # and whoever looks before that thread has woken would find this one.
                turn.holder = 0
    finally:
        if outer is None:
            _waits.pop(me, None)
        else:
            _waits[me] = outer


def _leads_to(turn: Turn, thread: int) -> bool:
    """Say whether this thread has the turn, or who has it waits for it, perhaps through others."""
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
    """Say where things are kept by key: a dictionary, or what has these two methods of one."""

    def get(self, key: K_contra, /) -> T | None: ...

    def setdefault(self, key: K_contra, thing: T, /) -> T: ...


def once(
    things: Table[K, T],
    making: dict[K, Turn],
    key: K,
    make: Callable[[], T],
    keep: Callable[[T], bool] = lambda thing: True,
) -> T:
    """Return ``things[key]``, first made by ``make()`` if missing.

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


def _after_fork() -> None:
    _Process.forks += 1
    _waits.clear()


in_child(_after_fork)
