"""What a forked child process repairs: locks that other threads held when it was forked.

A child has a copy of the parent's memory but only one thread, the one that forked. A lock held by
any other thread would stay locked for ever.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any


def in_child(fun: Callable[[], Any]) -> None:
    """Have each forked child call this first; does nothing on systems without fork."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=fun)


_locks: list[Any] = []


def lock() -> Any:
    """A lock for use at module level, never freed; the thread that holds it may take it again.

    Finalizers and signal handlers do that, since they run in the middle of other code. In a forked
    child the lock is free, unless the thread that forked holds it.
    """
    new = threading.RLock()
    _locks.append(new)
    return new


def _release() -> None:
    """Free the locks of threads that the child does not have."""
    for each in _locks:
        if not each._is_owned():
            each._at_fork_reinit()


in_child(_release)
