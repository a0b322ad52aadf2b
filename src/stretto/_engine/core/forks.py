"""What a forked child sets right, and the locks that it finds open.

Layer 1 (core). A child has one thread, that which forked, and the memory as it was: what another
thread was in the midst of, nobody will end.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable
from typing import Any

__all__ = ["in_child", "lock"]


def in_child(fun: Callable[[], Any]) -> None:
    """Let each forked child call this first; where there is no fork, never."""
    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=fun)


_locks: list[Any] = []


def lock() -> Any:
    """A lock for a module, which its thread may take again, as a finalizer or a handler does.

    In a forked child it is open, unless it is held by the thread that forked.
    """
    made = threading.RLock()
    _locks.append(made)
    return made


def _open() -> None:
    for one in _locks:
        if not one._is_owned():
            one._at_fork_reinit()


in_child(_open)
