"""Positions in the user's own code, where operations come from, and named scopes around them.

A position is a code object and an instruction offset, with the named scope around it; it is noted
cheaply, and the line number is worked out only when somebody asks for it. The recorder notes one
for each equation, and error messages and compiled programs show them.

A named scope says which part of a model an operation belongs to, such as ``layer1/attention``. Each
equation keeps the names of the ``with`` blocks around it, relative to the program that it is in;
they appear in the lowered and the compiled text.
"""

from __future__ import annotations

import contextlib
import functools
import os
import sys
import threading
from collections.abc import Callable
from types import CodeType, FrameType
from typing import NamedTuple, ParamSpec, TypeAlias, TypeVar

P = ParamSpec("P")
R = TypeVar("R")


class _Scope(threading.local):
    """The path of the scopes that this thread is in; empty outside any."""

    path: str = ""


scope = _Scope()


class _Scopes:
    """Hold what is known about the scopes of all threads."""

    __slots__ = ("entered",)

    def __init__(self) -> None:
        self.entered = False
        """Says whether any scope was ever entered; hot paths read ``scope.path`` only then."""


scopes = _Scopes()


def join_scopes(outer: str, inner: str) -> str:
    """Return the path of one scope inside another."""
    return f"{outer}/{inner}" if outer and inner else outer or inner


class named_scope(contextlib.ContextDecorator):
    """Give the operations of a ``with`` block, or of a decorated function, a name; scopes nest.

    The name shows where a compiled program's time goes: in the ``op_name`` of its instructions, and
    in profiles. It changes nothing else.

    Args:
        name: the scope's name.

    Raises:
        TypeError: ``name`` is not a string.

    >>> import stretto as st, stretto.numpy as snp
    >>> @st.jit
    ... def f(x):
    ...     with st.named_scope("layer1"):
    ...         return snp.sin(x)
    >>> "layer1/sin" in f.lower(1.0).as_text()
    True
    """

    def __init__(self, name: str) -> None:
        if not isinstance(name, str):
            raise TypeError(f"named_scope: name must be a string, got {type(name).__name__}")
        self.name = name
        self._outer: list[str] = []

    def _recreate_cm(self) -> named_scope:
        """Return a new one for each call of a decorated function, since threads may share it."""
        return named_scope(self.name)

    def __enter__(self) -> named_scope:
        scopes.entered = True
        self._outer.append(scope.path)
        scope.path = join_scopes(scope.path, self.name)
        return self

    def __exit__(self, *error: object) -> None:
        scope.path = self._outer[-1]  # first, as an interrupt may come in the call of pop
        self._outer.pop()


def named_call(fun: Callable[P, R], *, name: str | None = None) -> Callable[P, R]:
    """Give the operations of a function a scope of its name, or of ``name``.

    Args:
        fun: the function.
        name: the scope's name; by default that of ``fun``.

    Returns:
        A function of the same arguments and values.

    Raises:
        TypeError: ``name`` is not a string.

    >>> import stretto as st, stretto.numpy as snp
    >>> def layer(x):
    ...     return snp.sin(x)
    >>> "layer/sin" in st.jit(named_call(layer)).lower(1.0).as_text()
    True
    """
    within = named_scope(getattr(fun, "__name__", "function") if name is None else name)
    return functools.wraps(fun)(within(fun))


PACKAGE = os.path.abspath(os.path.join(os.path.dirname(__file__), "..", "..")) + os.sep
"""The folder of this package's source files."""

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
"""The contents of a ``Position`` as a plain tuple, which costs a quarter of a named one."""


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
