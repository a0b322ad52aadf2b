"""A bar in a notebook: one display, which is updated in its place.

It needs no widgets, and a notebook that is saved has the last of it.
"""

from __future__ import annotations

import datetime as dt
import html
import sys
import time
from typing import Any

__all__ = ["NotebookBar", "in_notebook"]

_SECONDS = 0.1  # between updates, each of which is a message to the browser


def in_notebook() -> bool:
    """Whether the program runs in a notebook's kernel, and not in a terminal's IPython."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """How much is done, of how much, for how long, and what else there is to say."""

    def __init__(self, total: int | None) -> None:
        self._total, self._done, self._first = total, 0, None
        self._description, self._losses = "training", ""
        self._begun = self._shown = time.monotonic()
        self._display: Any = None

    def start(self) -> None:
        """Show it."""
        # IPython is loaded: else this would be no notebook.
        display: Any = sys.modules["IPython"].display
        self._display = display.display(self, display_id=True)

    def update(
        self, completed: int, description: str | None = None, losses: str | None = None
    ) -> None:
        """Show more, unless that was done a moment ago."""
        self._first = completed if self._first is None else self._first
        self._done = completed
        self._description = description or self._description
        self._losses = self._losses if losses is None else losses
        if time.monotonic() - self._shown >= _SECONDS:
            self._show()

    def stop(self) -> None:
        """Show the last."""
        self._show()

    def _show(self) -> None:
        self._shown = time.monotonic()
        if self._display is not None:  # a shell that shows nothing gives none
            self._display.update(self)

    def _text(self) -> str:
        passed = time.monotonic() - self._begun
        parts = [f"{self._done}" if self._total is None else f"{self._done}/{self._total}"]
        parts.append(_duration(passed))
        done = self._done - (self._first or 0)
        if self._total is not None and done > 0 and self._done < self._total:
            parts.append(f"{_duration(passed * (self._total - self._done) / done)} left")
        return " · ".join([self._description, *parts, *([self._losses] if self._losses else [])])

    def _repr_mimebundle_(self, **kwargs: Any) -> dict[str, str]:
        """What notebooks ask of an object that they show."""
        filled = "" if self._total is None else f' value="{self._done}" max="{self._total}"'
        text = self._text()
        bar = f"<progress{filled}></progress> <code>{html.escape(text)}</code>"
        return {"text/plain": text, "text/html": bar}


def _duration(seconds: float) -> str:
    return str(dt.timedelta(seconds=round(seconds)))
