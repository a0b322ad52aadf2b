"""Whose name errors carry: an optimizer's, in the transformations that it is made of.

``adam`` makes its parts by ``making("adam", ...)``. Each part asks ``caller_of("scale_by_adam")``
once, when it is made, for the name that it begins its messages with, then and in its updates.
"""

from __future__ import annotations

import threading
from collections.abc import Callable

from stretto._engine.core.threads import holding
from stretto.optim.base import GradientTransformationExtraArgs

__all__ = ["caller_of", "making"]


class _Making(threading.local):
    """What this thread is making parts for, or None."""

    optimizer: str | None = None


_now = _Making()


def making(
    optimizer: str, make: Callable[[], GradientTransformationExtraArgs]
) -> GradientTransformationExtraArgs:
    """What ``make`` gives, its parts named after the optimizer, or after the one that calls it."""
    return holding(_now, "optimizer", _now.optimizer or optimizer, make)


def caller_of(part: str) -> str:
    """The name for a part's messages: that of the optimizer being made, or else its own."""
    return _now.optimizer or part
