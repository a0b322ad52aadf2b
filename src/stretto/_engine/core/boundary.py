"""Tracebacks that show the user's code, without the frames inside this package.

A transformation runs the user's function many frames deep, and puts ``with boundary:`` around its
body, so that an exception leaving it shows the user's frames alone, and says that others were left
out. Functions that are not given functions are guarded (``guarded``), and show the same without a
word. ``config.traceback_filtering = "off"`` shows everything.
"""

from __future__ import annotations

import functools
import os
import re
from collections.abc import Callable, Iterator
from types import FrameType, TracebackType
from typing import Any, TypeVar

import numpy as np

from stretto._engine import core
from stretto._engine.core import guarded
from stretto._engine.core.config import config
from stretto._engine.core.errors import SizeError
from stretto._engine.core.position import PACKAGE

_NOTE = (
    "(The frames inside stretto are left out of this traceback; "
    "stretto.config.traceback_filtering = 'off' shows them.)"
)
_NAMED = re.compile(r"[\w.]+: ")
"""A message that begins with the name of a function."""
_ENGINE = os.path.join(PACKAGE, "_engine") + os.sep
_WORDS = {"getitem": "indexing", "setitem": "indexing"}
_NUMPY = os.path.dirname(os.path.abspath(np.__file__)) + os.sep
_LIBRARIES = os.path.dirname(os.path.dirname(_NUMPY)) + os.sep
_STANDARD = os.path.dirname(os.path.abspath(os.__file__)) + os.sep
_CALLED_HERE = tuple(
    [
        _LIBRARIES + name + os.sep
        for name in ("jaxlib", "ml_dtypes", "numpy", "opt_einsum", "optree", "safetensors", "scipy")
    ]
)
"""The folder of the packages that this one calls; they are installed beside NumPy."""


def reraise_foreign(error: BaseException) -> None:
    """Raise the error again, unless this package or NumPy raised it.

    For an ``except`` clause that falls back to another method after an error that it expects from
    NumPy. A signal handler may run at any line and raise an error of the same class, which must
    not be mistaken for NumPy's.
    """
    entry = error.__traceback__
    assert entry is not None
    while entry.tb_next is not None:
        entry = entry.tb_next
    if not entry.tb_frame.f_code.co_filename.startswith((PACKAGE, _NUMPY)):
        raise error


def hide_frames(error: BaseException) -> None:
    """Remove this package's frames from the tracebacks of the error and of its causes.

    For an ``except`` clause that ends with ``raise``: the frame of that function is removed, too.
    ``TypeError`` is explained to users of PyTorch.
    """
    if isinstance(error, TypeError):
        core.migration.explain_call(error)
    if _trim_all(error) and _NOTE not in getattr(error, "__notes__", ()):
        error.add_note(_NOTE)


def _trim_all(error: BaseException) -> bool:
    """Remove this package's frames from the error and its causes; return whether there were any.

    An error that was handled inside the package, and nowhere else, is no context of another.
    """
    if isinstance(error, SizeError):
        _name_function(error)
    if config.traceback_filtering == "off" or not isinstance(error, Exception):
        return False
    hidden = False
    for e in _chain(error):
        if _trim(e):
            hidden = True
        context = e.__context__
        while context is not None and context is not e.__cause__ and _is_internal(context):
            context = context.__context__
        if context is not e.__context__:
            e.__context__ = context
    return hidden


def _trim_quietly(error: BaseException) -> None:
    _trim_all(error)


guarded.leaving.append(_trim_quietly)


def _is_internal(error: BaseException) -> bool:
    """Say whether an error has been in no frame of the user's."""
    entry = error.__traceback__
    within = True  # whoever handled it is of this package
    while entry is not None:
        within = _is_hidden(entry.tb_frame, within)
        if not within:
            return False
        entry = entry.tb_next
    return True


def _is_hidden(frame: FrameType, within: bool) -> bool:
    """Say whether a frame is left out: this package's, and those of libraries it has called."""
    name = frame.f_code.co_filename
    if name.startswith(PACKAGE):
        return True
    if name == "<string>":  # of dataclasses, as of `python -c`
        return str(frame.f_globals.get("__name__")).startswith("stretto.")
    return within and (
        name.startswith(_CALLED_HERE)
        or name.startswith("<frozen")
        or (name.startswith(_STANDARD) and "site-packages" not in name)
    )


def _is_public(frame: FrameType) -> bool:
    """Say whether the code is that of a function that users call."""
    code = frame.f_code
    names = frame.f_globals.get("__all__")
    if names is not None:
        return code.co_name in names
    own = not code.co_filename.startswith(_ENGINE) and code.co_qualname == code.co_name
    return own and not code.co_name.startswith("_")


def _name_function(error: SizeError) -> None:
    """Put the name of the public function that the user's code called in front of the message.

    It asks about sizes somewhere inside, and the message says what it asked. It may have been
    called by a transformation, which is no answer to who asked.
    """
    called: str | None = None
    entry, within = error.__traceback__, True
    while entry is not None:
        frame, name = entry.tb_frame, entry.tb_frame.f_code.co_name
        within = _is_hidden(frame, within)
        if not within:
            called = None
        elif called is None and _is_public(frame):
            called = _WORDS.get(name, name)
        entry = entry.tb_next
    text = str(error)
    if called is not None and _NAMED.match(text) is None:
        error.args = (f"{called}: {text}",)


def _chain(error: BaseException) -> Iterator[BaseException]:
    """Yield the error, and those that it was raised from or while handling them."""
    seen: set[int] = set()
    pending: list[BaseException | None] = [error]
    while pending:
        e = pending.pop()
        if e is not None and id(e) not in seen:
            seen.add(id(e))
            yield e
            pending += (e.__cause__, e.__context__)


def _trim(error: BaseException) -> bool:
    """Remove this package's frames from the error's traceback; return whether there were any."""
    kept: list[TracebackType] = []
    hidden = within = False
    entry = error.__traceback__
    while entry is not None:
        within = _is_hidden(entry.tb_frame, within)
        if within:
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
        """Do nothing: there is a cost only where an error passes."""

    def __exit__(
        self, kind: type | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is not None:
            hide_frames(error)


boundary = _Boundary()


F = TypeVar("F", bound=Callable[..., Any])


def bounded(fun: F) -> F:
    """Return the function, whose errors leave it without this package's frames."""

    @functools.wraps(fun)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return fun(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise

    return call  # type: ignore[return-value]
