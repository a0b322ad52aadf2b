"""Where in the user's own code an operation was called: found cheaply, resolved when asked.

Layer 1 (core). A position is a code object and an instruction offset, with the named scope around
it; finding the line is left until somebody reads it.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

from stretto._engine.core.scope import scope, scopes

__all__ = [
    "PACKAGE",
    "Place",
    "Position",
    "line_at",
    "lines_of",
    "place",
    "user_position",
    "user_stack_level",
]

PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
"""Where this package's source files are."""

# Names of source files, this package's own and others: strings remember their hash.
_OURS: set[str] = set()
_THEIRS: set[str] = set()


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
        return line_at(lines_of(self.code), self.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.line} ({self.code.co_name})"


Place: TypeAlias = tuple[CodeType, int, str]
"""What a ``Position`` holds: a plain tuple costs a quarter of what one with names does."""


def lines_of(code: CodeType) -> list[int]:
    """The line of each instruction; that of the function at the end, and where there is none."""
    start = code.co_firstlineno
    return [line or start for line, *_ in code.co_positions()] + [start]


def line_at(lines: list[int], offset: int) -> int:
    """Which of these lines the instruction at this offset is on."""
    return lines[min(offset // 2, len(lines) - 1)]


def _is_ours(name: str) -> bool:
    """Whether a source file of this name is this package's own; remembered."""
    # Code made at run time (by dataclasses, for one) has a name such as <string>.
    ours = name.startswith((PACKAGE, "<frozen", "<string>")) or name.endswith("functools.py")
    (_OURS if ours else _THEIRS).add(name)
    return ours


def user_position() -> Position | None:
    """Where the user's code called into this package, if it did."""
    found = place()
    return None if found is None else Position(*found)


def place() -> Place | None:
    """The same, unnamed, for a caller that was itself called by a function of this package."""
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name not in _OURS and (name in _THEIRS or not _is_ours(name)):
            return code, frame.f_lasti, scope.path if scopes.entered else ""
        frame = frame.f_back
    return None


def user_stack_level() -> int:
    """The ``stacklevel`` with which a warning given by the caller points at the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level
