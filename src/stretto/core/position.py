"""Where in the user's own code an operation was called: found cheaply, resolved when asked.

Layer 1 (core). A position is a code object and an instruction offset, with the named scope around
it; finding the line is left until somebody reads it.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Any, NamedTuple

from stretto.core.scope import scope

__all__ = ["PACKAGE", "Position", "user_position", "user_stack_level"]

PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
"""Where this package's source files are."""

# Whether a source file is this package's own, by its name: strings remember their hash.
_OURS: dict[str, bool] = {}


class Position(NamedTuple):
    """A place in the user's source, and the named scope that it was reached in."""

    code: CodeType
    offset: int
    scope: str = ""

    @property
    def file(self) -> str:
        """The path of the source file."""
        return self.code.co_filename

    @property
    def line(self) -> int:
        """The line in that file, from 1."""
        lines = list(self.code.co_positions())
        line = lines[self.offset // 2][0] if self.offset // 2 < len(lines) else None
        return line if line is not None else self.code.co_firstlineno

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.code.co_name})"


_POSITION: Any = tuple.__new__  # twice as fast as calling the class


def _is_ours(code: CodeType) -> bool:
    name = code.co_filename
    found = _OURS.get(name)
    if found is None:
        # Code made at run time (by dataclasses, for one) has a name such as <string>.
        found = name.startswith((PACKAGE, "<frozen", "<string>")) or name.endswith("functools.py")
        _OURS[name] = found
    return found


def user_position() -> Position | None:
    """Where the user's code called into this package, if it did."""
    frame: FrameType | None = sys._getframe(2)
    get = _OURS.get
    while frame is not None:
        ours = get(frame.f_code.co_filename)
        if not ours and (ours is False or not _is_ours(frame.f_code)):
            return _POSITION(Position, (frame.f_code, frame.f_lasti, scope.path))
        frame = frame.f_back
    return None


def user_stack_level() -> int:
    """The ``stacklevel`` with which a warning given by the caller points at the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and _is_ours(frame.f_code):
        frame = frame.f_back
        level += 1
    return level
