"""Tracebacks that show the user's code: the frames inside this package are left out.

Layer 1 (core). A transformation runs the user's function somewhere deep inside; what passes out of
its call shows the user's frames alone, unless ``config.traceback_filtering`` is ``"off"``.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Iterator
from types import TracebackType
from typing import Any

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.position import PACKAGE

__all__ = ["boundary", "bounded", "hide_frames", "reraise_foreign"]

_NOTE = (
    "(The frames inside stretto are left out of this traceback; "
    "stretto.config.traceback_filtering = 'off' shows them.)"
)
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep


def reraise_foreign(error: BaseException) -> None:
    """Raise the error again, unless this package or NumPy raised it.

    For an ``except`` clause that takes another way after an error that it expects of NumPy: a
    signal handler, which may run at any line, raises errors of the same classes.
    """
    entry = error.__traceback__
    assert entry is not None
    while entry.tb_next is not None:
        entry = entry.tb_next
    if not entry.tb_frame.f_code.co_filename.startswith((PACKAGE, _NUMPY)):
        raise error


def hide_frames(error: BaseException) -> None:
    """Leave this package's frames out of the error's traceback, and of those that it came from.

    For an ``except`` clause that ends with ``raise``: then the frame of the clause goes as well.
    """
    if config.traceback_filtering == "off" or not isinstance(error, Exception):
        return
    hidden = [_trim(e) for e in _chain(error)]
    if any(hidden) and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """The error, and those that it was raised from or while handling."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        e = pending.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            yield e
            pending += (e.__cause__, e.__context__)


def _trim(error: BaseException) -> bool:
    """Whether there were frames to leave out."""
    kept: list[TracebackType] = []
    hidden = False
    entry = error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename.startswith(PACKAGE):
            hidden = True
        else:
            kept.append(entry)
        entry = entry.tb_next
    if hidden:
        following: TracebackType | None = None
        for entry in reversed(kept):
            entry.tb_next = following
            following = entry
        error.__traceback__ = following
    return hidden


class _Boundary:
    """Reads as a statement: ``with boundary:`` around the body of a transformation."""

    __slots__ = ()

    def __enter__(self) -> None:
        """Nothing to do: it costs only where an error passes."""

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            hide_frames(error)


boundary = _Boundary()


def bounded(fun: Callable[..., Any]) -> Callable[..., Any]:
    """The function, from which errors pass without this package's frames."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return call
