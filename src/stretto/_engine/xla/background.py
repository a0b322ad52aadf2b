"""One thread that does work in the background, a piece at a time, and ends when none is left.

Programs are optimized there while calls are run as compiled quickly; see ``api/jit/entry``. A
process that ends waits for the piece at hand, since XLA cannot be interrupted, and drops the
others.
"""

from __future__ import annotations

import collections
import threading
import time
from collections.abc import Callable
from typing import Any

from stretto._engine.core.config import settings, under
from stretto._engine.core.threads import in_child, lock
from stretto._engine.xla import ending
from stretto._engine.xla.patience import started

_waiting: collections.deque[Callable[[], Any]] = collections.deque()
_lock = lock()


class _Worker:
    """Whether the thread is running, and whether it is to end; read and set with the lock."""

    running = False
    ended = False


def in_background(work: Callable[[], Any]) -> None:
    """Have ``work()`` done in the background, under the settings of this thread."""
    values = dict(settings.values)
    with _lock:
        _waiting.append(lambda: under(values, work))
        if not _Worker.running and not _Worker.ended:
            # The end of the process waits for it otherwise, so that an interrupt is heard.
            thread = threading.Thread(target=_run, name="stretto-background", daemon=True)
            if started(thread):
                _Worker.running = True
            else:
                _waiting.clear()


def _end() -> None:
    """Drop what waits, and wait for the piece at hand."""
    _Worker.ended = True
    while _Worker.running:
        time.sleep(0.001)


def _run() -> None:
    while True:
        with _lock:
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


def _forked() -> None:
    """In a forked child: there is no such thread, and what it was doing is done in the parent."""
    _waiting.clear()
    _Worker.running = False


in_child(_forked)
ending.wait_for(_end)
