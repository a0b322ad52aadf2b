"""A bar that shows how far training is, and the loss of each member.

In a terminal or a notebook a bar, elsewhere a line for each entry of the history.

A bar in a notebook: one display, which is updated in its place.

It needs no widgets, and a notebook that is saved has the last of it.
"""

from __future__ import annotations

import datetime as dt
import html
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
    TimeRemainingColumn,
)

from stretto.ensemble.training.checkpoints import Checkpoints
from stretto.ensemble.training.member_loss import COUNT
from stretto.ensemble.training.train_state import TrainState, read

_NOTEBOOK_SECONDS = 0.1  # between updates, each of which is a message to the browser


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
        if time.monotonic() - self._shown >= _NOTEBOOK_SECONDS:
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
        """Return what notebooks show, as text and as HTML."""
        filled = "" if self._total is None else f' value="{self._done}" max="{self._total}"'
        text = self._text()
        bar = f"<progress{filled}></progress> <code>{html.escape(text)}</code>"
        return {"text/plain": text, "text/html": bar}


def _duration(seconds: float) -> str:
    return str(dt.timedelta(seconds=round(seconds)))


_SECONDS = 0.25  # between readings from the device, which make the computation wait
_FEW = 6


class Reporter(AbstractContextManager["Reporter"]):
    """What ``fit`` shows its user while it runs.

    ``show`` says whether it does; ``None`` shows the bar in a terminal or a notebook only. Together
    with other processes, whose devices have to be read at the same steps, the bar has the losses of
    the last entry.
    """

    def __init__(
        self,
        show: bool | None,
        total: int | None,
        console: Console | None = None,
        together: bool = False,
    ) -> None:
        self._together = together
        self._console = console or Console(stderr=True, highlight=False)
        self._bar: TerminalBar | NotebookBar | None = None
        if show is not False and in_notebook():
            self._bar = NotebookBar(total)
        elif show is not False and self._console.is_terminal:
            self._bar = TerminalBar(total, self._console)
        self._shows = show is not False
        self._lines = bool(show) and self._bar is None
        self._shown = time.monotonic()

    def __enter__(self) -> Reporter:
        if self._bar is not None:
            self._bar.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._bar is not None:
            self._bar.stop()

    def step(self, state: TrainState) -> None:
        """A step was done."""
        now = time.monotonic()
        if self._bar is None or now - self._shown < _SECONDS:
            return
        self._shown = now
        losses = None
        if not self._together:
            losses = named(means(state).get("loss", np.empty(0)))
        self._bar.update(state.step, losses=losses)

    def resumed(self, state: TrainState, checkpoints: Checkpoints | None) -> None:
        """Say from where a training goes on."""
        if self._shows:
            path = "" if checkpoints is None else f" from {checkpoints.path(state.step)}"
            words = f"fit: goes on{path}: step {state.step}, epoch {state.epoch}"
            self._console.print(words, soft_wrap=True)

    def entry(self, state: TrainState) -> None:
        """An entry of the history was made."""
        last = {n: x[-1] for n, x in state.history.items()}
        if self._bar is not None:
            self._bar.update(state.step, f"epoch {int(last['epoch'])}", named(last["loss"]))
        elif self._lines:
            self._console.print(entry_text(last), soft_wrap=True)


class TerminalBar:
    """How much is done, of how much, for how long, and what else there is to say."""

    def __init__(self, total: int | None, console: Console) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(bar_width=20),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TimeRemainingColumn(),
            TextColumn("{task.fields[losses]}"),
            console=console,
        )
        self._task = self._progress.add_task("training", total=total, losses="")

    def start(self) -> None:
        """Show it."""
        self._progress.start()

    def update(
        self, completed: int, description: str | None = None, losses: str | None = None
    ) -> None:
        """Show more."""
        fields: dict[str, Any] = {} if losses is None else {"losses": losses}
        self._progress.update(self._task, completed=completed, description=description, **fields)

    def stop(self) -> None:
        """Show the last."""
        self._progress.stop()


def entry_text(last: Mapping[str, Any]) -> str:
    """One entry of the history as a line."""
    parts = [f"step {int(last['step'])}, epoch {int(last['epoch'])}"]
    parts += [f"{n} {described(x)}" for n, x in last.items() if n not in ("step", "epoch")]
    return " · ".join(parts)


def named(losses: np.ndarray) -> str:
    """The losses of the members, and what they are.

    >>> named(np.array([0.5, 0.25])), named(np.arange(9.0))
    ('loss 0.5 0.25', 'loss (least … median … most) 0 … 4 … 8 (9 members)')
    """
    if not len(losses):
        return ""
    order = "" if len(losses) <= _FEW else " (least … median … most)"
    return f"loss{order} {described(losses)}"


def described(values: np.ndarray) -> str:
    """The numbers of a few members, or the range of those of many; NaN is left out of the range.

    >>> described(np.array([0.5, np.nan, 0.25]))
    '0.5 – 0.25'
    >>> described(np.arange(9.0))
    '0 … 4 … 8 (9 members)'
    """
    if len(values) <= _FEW:
        return " ".join("–" if np.isnan(x) else f"{x:.4g}" for x in values)
    numbers = values[~np.isnan(values)]
    if not len(numbers):
        return "–"
    low, middle, high = np.min(numbers), np.median(numbers), np.max(numbers)
    return f"{low:.4g} … {middle:.4g} … {high:.4g} ({len(numbers)} members)"


def means(state: TrainState) -> dict[str, np.ndarray]:
    """By name the means, since the last entry of the history, of what steps gave for each member.

    NaN for a member that did none.
    """
    by_name: dict[str, np.ndarray] = {}
    for pack, sums in zip(state.packs, state.sums, strict=True):
        if not sums:
            continue
        count = read(sums[COUNT])
        for name, x in sums.items():
            if name != COUNT:
                here = by_name.setdefault(name, np.full(state.size, np.nan, np.float32))
                mean = read(x) / np.maximum(count, 1)
                here[list(pack.group.places)] = np.where(count > 0, mean, np.nan)
    return by_name
