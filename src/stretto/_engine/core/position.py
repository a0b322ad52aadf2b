"""Positions in the user's own code where operations were called: noted cheaply, resolved when read.

A position is a code object and an instruction offset, with the named scope around it; the line
number is worked out only when somebody asks for it. The recorder notes one for each equation, and
error messages and compiled programs show them.
"""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import NamedTuple, TypeAlias

from stretto._engine.core.scope import scope, scopes

PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
"""Where this package's source files are."""

# File names seen so far: this package's own, and others. Strings cache their hash, so a look-up is
# cheap.
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
"""What a ``Position`` holds, as a plain tuple: making one costs a quarter of a named tuple."""


def lines_of(code: CodeType) -> list[int]:
    """Return the line of each instruction, then that of the function.

    An instruction without a line has that of the function, too.
    """
    start = code.co_firstlineno
    return [line or start for line, *_ in code.co_positions()] + [start]


def line_at(lines: list[int], offset: int) -> int:
    """Say which of these lines the instruction at this offset is on."""
    return lines[min(offset // 2, len(lines) - 1)]


def _is_ours(name: str) -> bool:
    """Say whether a source file of this name counts as this package's own; remembered."""
    # Code generated at run time, as by dataclasses, has a name such as <string>.
    ours = name.startswith((PACKAGE, "<frozen", "<string>")) or name.endswith("functools.py")
    (_OURS if ours else _THEIRS).add(name)
    return ours


def user_position() -> Position | None:
    """Return the ``Position`` at which the user's code called into this package, if it did."""
    user_place = place()
    return None if user_place is None else Position(*user_place)


def place() -> Place | None:
    """Do as ``user_position``, with a plain tuple."""
    # The three innermost frames are this package's: this one, its caller, and the caller of that.
    frame: FrameType | None = sys._getframe(3)
    while frame is not None:
        code = frame.f_code
        name = code.co_filename
        if name not in _OURS and (name in _THEIRS or not _is_ours(name)):
            return code, frame.f_lasti, scope.path if scopes.entered else ""
        frame = frame.f_back
    return None


def user_stack_level() -> int:
    """Return the ``stacklevel`` for which a warning of the caller points at the user's line."""
    frame: FrameType | None = sys._getframe(1)
    level = 1
    while frame is not None and _is_ours(frame.f_code.co_filename):
        frame = frame.f_back
        level += 1
    return level
