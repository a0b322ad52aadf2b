"""Steps that Ctrl-C does not cut in two.

A step takes the arrays of the state, and gives others. An interrupt between the two would leave
none, and with them lose all that was trained.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["whole"]


def whole(work: Callable[[], Any]) -> None:
    """Do the work to its end, and only then what Ctrl-C asks for; if it asks twice, at once.

    In the main thread, where Python handles signals; in others nothing comes between.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        work()
        return
    asked: list[tuple[int, FrameType | None]] = []

    def later(number: int, frame: FrameType | None) -> None:
        if asked:
            handler(number, frame)
        asked.append((number, frame))

    try:
        signal.signal(signal.SIGINT, later)
        work()
    finally:
        signal.signal(signal.SIGINT, handler)
    if asked:
        handler(*asked[0])
