"""Counts and sizes in words, and lists and texts that stay short."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

T = TypeVar("T")

MOST_LINES = 40
"""The most lines that an object prints unasked."""


def size(count: float) -> str:
    """A number of bytes: ``3.7 MB``."""
    for unit, scale in (("GB", 1e9), ("MB", 1e6), ("kB", 1e3)):
        if count >= scale:
            return f"{count / scale:,.1f} {unit}"
    return f"{count:.0f} bytes"


def number(x: float) -> str:
    """A real number with four digits."""
    return f"{x:.4g}"


def counted(count: int, noun: str) -> str:
    """So many of something: ``1 array``, ``2,000 arrays``."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def ends(items: Sequence[T], most: int) -> tuple[Sequence[T], int, Sequence[T]]:
    """The first and the last of these, ``most`` in all, and how many are between."""
    left_out = len(items) - most
    if left_out <= 0:
        return items, 0, ()
    last = most // 4
    return items[: most - last], left_out, items[len(items) - last :]


def first_lines(text: str, rest: str, most: int = MOST_LINES) -> str:
    """The first lines of a text; where more are left out, a last line says how to see the rest."""
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    left_out = len(lines) - most + 1
    return "\n".join([*lines[: most - 1], f"... {left_out:,} more lines: {rest}"])


def one_line(text: str, most: int = 80) -> str:
    """The text on one line, cut to so many characters."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 1]}…"
