"""Places in words, and lists that stay short."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stretto._engine.core.position import Position


def where(position: Position | None) -> str:
    """Return the user's line and function, with the file as seen from the current folder."""
    if position is None:
        return "an unknown line"
    return f"{near(position.file)}:{position.line} ({position.code.co_name})"


def near(file: str) -> str:
    """Return the path of a file, relative if it is below the current folder."""
    here = os.getcwd() + os.sep
    return file.removeprefix(here)


def short(lines: Sequence[str], most: int) -> list[str]:
    """Return the first of these lines, indented, and how many are left out."""
    shown = [f"  {line}" for line in lines[:most]]
    return shown if len(lines) <= most else [*shown, f"  and {len(lines) - most} more"]
