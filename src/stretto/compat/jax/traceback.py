"""Which frames tracebacks leave out, under the names of ``jax._src.traceback_util``."""

from __future__ import annotations

from collections.abc import Callable
from types import FrameType
from typing import Any

__all__ = ["api_boundary", "include_frame", "register_exclusion"]

_exclude_paths: list[str] = []


def register_exclusion(path: str) -> None:
    """Note a file whose frames are of no interest to users."""
    _exclude_paths.append(path)


def include_frame(frame: FrameType) -> bool:
    """Whether a frame is of interest to users."""
    return not any(frame.f_code.co_filename.startswith(path) for path in _exclude_paths)


def api_boundary(fun: Callable[..., Any], **options: Any) -> Callable[..., Any]:
    """The function itself: Stretto's own functions trim tracebacks."""
    del options
    return fun
