"""Steps that Ctrl-C does not cut in two.

A step takes the arrays of the state, and gives others. An interrupt between the two would leave
neither, and lose all that was trained.
"""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["whole"]


def whole(work: Callable[[], Any]) -> None:
    """Do the work to its end, and handle Ctrl-C only then; a second Ctrl-C is handled at once.

    This holds in the main thread, where Python handles signals; others are not interrupted.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        work()
        return
    interrupts: list[tuple[int, FrameType | None]] = []

    def later(number: int, frame: FrameType | None) -> None:
        if interrupts:
            handler(number, frame)
        interrupts.append((number, frame))

    try:
        signal.signal(signal.SIGINT, later)
        work()
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        handler(*interrupts[0])
