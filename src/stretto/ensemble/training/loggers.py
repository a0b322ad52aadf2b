"""Loggers, callbacks of ``fit`` that write the history somewhere; and the bar that shows progress.

In a terminal or a notebook there is a bar, with the loss of each member, elsewhere a line for each
entry of the history. A bar in a notebook is one display, which is updated in its place. It needs no
widgets, and a notebook that is saved has the last of it.
"""

from __future__ import annotations

import csv
import datetime as dt
import html
import io
import os
import sys
import time
from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any, TextIO

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

from stretto._engine.core.files import checked_path, write_whole
from stretto.ensemble.optional import first_of
from stretto.ensemble.training.checkpoints import Checkpoints
from stretto.ensemble.training.fit_callbacks import Callback, Event
from stretto.ensemble.training.fitted import columns_of
from stretto.ensemble.training.step import COUNT
from stretto.ensemble.training.train_state import TrainState, read

_NOTEBOOK_SECONDS = 0.1  # between updates, each of which is a message to the browser


def in_notebook() -> bool:
    """Say whether the program runs in a notebook's kernel, and not in a terminal's IPython."""
    ipython: Any = sys.modules.get("IPython")
    shell = None if ipython is None else ipython.get_ipython()
    return getattr(shell, "kernel", None) is not None


class NotebookBar:
    """A bar of what is done, of how much, for how long, and what else there is to say."""

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
    """The display of ``fit`` for its user while it runs.

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
            losses = name_losses(means(state).get("loss", np.empty(0)))
        self._bar.update(state.step, losses=losses)

    def parts(self, step: int, words: str) -> None:
        """Workers have got so far, on average."""
        now = time.monotonic()
        if self._bar is not None and now - self._shown >= _SECONDS:
            self._shown = now
            self._bar.update(step, words)

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
            self._bar.update(state.step, f"epoch {int(last['epoch'])}", name_losses(last["loss"]))
        elif self._lines:
            self._console.print(entry_text(last), soft_wrap=True)


class TerminalBar:
    """A bar of what is done, of how much, for how long, and what else there is to say."""

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
    """Say one entry of the history in a line."""
    parts = [f"step {int(last['step'])}, epoch {int(last['epoch'])}"]
    parts += [f"{n} {describe_values(x)}" for n, x in last.items() if n not in ("step", "epoch")]
    return " · ".join(parts)


def name_losses(losses: np.ndarray) -> str:
    """Return the losses of the members, and what they are.

    >>> name_losses(np.array([0.5, 0.25])), name_losses(np.arange(9.0))
    ('loss 0.5 0.25', 'loss (least … median … most) 0 … 4 … 8 (9 members)')
    """
    if not len(losses):
        return ""
    order = "" if len(losses) <= _FEW else " (least … median … most)"
    return f"loss{order} {describe_values(losses)}"


def describe_values(values: np.ndarray) -> str:
    """Say the numbers of a few members, or the range of those of many; the range leaves out NaN.

    >>> describe_values(np.array([0.5, np.nan, 0.25]))
    '0.5 – 0.25'
    >>> describe_values(np.arange(9.0))
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
    """Return by name each member's means, since the history's last entry, of what steps gave.

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


class Logger(Callback):
    """A callback that writes entries; to derive from, with ``write``, and ``open`` and ``close``.

    Where several processes train together, only the first is asked to write.

    >>> import stretto as st, stretto.numpy as snp
    >>> class Printed(st.ensemble.Logger):
    ...     def write(self, event):
    ...         print(event.step, event.entry["loss"])
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 2.0}])
    >>> loss = lambda member, x: ((member(x) - 1) ** 2).mean()
    >>> fitted = ensemble.fit(loss, snp.ones(8), st.optim.sgd(0.0), epochs=2, callbacks=[Printed()])
    1 [1. 1.]
    2 [1. 1.]
    """

    def open(self, event: Event) -> None:
        """Begin to write.

        Args:
            event: how far the training is. Entries of later steps that were written before, by a
                training that was then killed, come again.
        """

    def write(self, event: Event) -> None:
        """Write the last entry.

        Args:
            event: with the ``entry``.

        Raises:
            NotImplementedError: a class that derives from this one does not have it.
        """
        raise NotImplementedError

    def close(self) -> None:
        """End."""

    def on_start(self, event: Event) -> None:
        """Begin to write, in the first process.

        Args:
            event: how far the training is.
        """
        if event.is_first_process:
            self.open(event)

    def on_entry(self, event: Event) -> None:
        """Write the last entry, in the first process.

        Args:
            event: with the ``entry``.
        """
        if event.is_first_process:
            self.write(event)

    def on_end(self, event: Event) -> None:
        """End, in the first process.

        Args:
            event: how far the training is.
        """
        if event.is_first_process:
            self.close()


class ConsoleLogger(Logger):
    """A line for each entry: the numbers of a few members, or the range of those of many.

    Args:
        file: where to; by default ``sys.stdout``.

    >>> import stretto as st, stretto.numpy as snp
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 2.5}])
    >>> loss = lambda member, x: ((member(x) - 1) ** 2).mean()
    >>> fitted = ensemble.fit(
    ...     loss, snp.ones(8), st.optim.sgd(0.0), steps=1, callbacks=[st.ensemble.ConsoleLogger()]
    ... )
    step 1, epoch 1 · loss 1 2.25
    """

    def __init__(self, file: TextIO | None = None) -> None:
        self._file = file

    def write(self, event: Event) -> None:
        """Print a line.

        Args:
            event: with the ``entry``.
        """
        line = entry_text({"step": event.step, "epoch": event.epoch, **event.entry})
        print(line, file=self._file or sys.stdout, flush=True)


class CSVLogger(Logger):
    """A file of comma-separated values: a row for each member of each entry.

    The columns are ``step``, ``epoch``, ``member``, and what is measured, as those of
    ``Fitted.to_frame``. The file has the whole history of the training: each entry is appended when
    it is made, and a resumed training first writes those until its checkpoint, so that none is
    missing, and none is there twice. A training from the beginning writes the file anew.

    Args:
        path: the file.

    Raises:
        TypeError: ``path`` is not a path.

    >>> import os, tempfile, stretto as st, stretto.numpy as snp
    >>> path = os.path.join(tempfile.mkdtemp(), "losses.csv")
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 2.5}])
    >>> loss = lambda member, x: ((member(x) - 1) ** 2).mean()
    >>> logger = st.ensemble.CSVLogger(path)
    >>> fitted = ensemble.fit(loss, snp.ones(8), st.optim.sgd(0.0), steps=1, callbacks=[logger])
    >>> with open(path) as file:
    ...     print(file.read())
    step,epoch,member,loss
    1,1,0,1.0
    1,1,1,2.25
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = checked_path(path, "CSVLogger")
        self._names: list[str] = []

    def open(self, event: Event) -> None:
        """Write the entries until now, if there are any.

        Args:
            event: how far the training is.
        """
        self._names = []
        os.makedirs(os.path.dirname(self._path) or ".", exist_ok=True)
        if event.entry:
            self.write(event)

    def write(self, event: Event) -> None:
        """Append the rows of the last entry.

        Args:
            event: with the ``entry``.
        """
        last = {n: x[-1:] for n, x in event.history.items()}
        columns = columns_of(last, "long", "CSVLogger")
        if list(columns) == self._names:
            with open(self._path, "a", encoding="utf-8", newline="") as file:
                file.write(_rows(columns))
            return
        self._names = list(columns)
        text = _rows({n: np.array([n]) for n in columns})
        text += _rows(columns_of(event.history, "long", "CSVLogger"))
        write_whole(self._path, lambda file: file.write(text.encode()), "CSVLogger")


def _rows(columns: Mapping[str, np.ndarray]) -> str:
    """Return rows as text; numbers with as many digits as their dtype has."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _scalars(event: Event, members: bool) -> dict[str, float]:
    """Return the entry as numbers by name: the means over members, and each member's."""
    scalars: dict[str, float] = {"epoch": float(event.epoch)}
    for name, x in event.entry.items():
        known = ~np.isnan(x)
        if known.any():
            scalars[f"{name}/mean"] = float(x[known].mean())
        scalars |= {f"{name}/{i}": float(x[i]) for i in np.flatnonzero(known) if members}
    return scalars


class TensorBoardLogger(Logger):
    """Event files of TensorBoard: ``loss/0`` is that of member 0, ``loss/mean`` that over members.

    They are written by ``tensorboardX``, or by ``torch.utils.tensorboard``, of which one must be
    installed. Entries that a resumed training makes again replace those of the run before it.

    Args:
        directory: the folder of the run.
        members: whether to write each member's numbers, beside the mean over members.

    Raises:
        ModuleNotFoundError: neither is installed.
        TypeError: ``directory`` is not a path.

    >>> import stretto as st
    >>> logger = st.ensemble.TensorBoardLogger("runs/first")  # doctest: +SKIP
    """

    def __init__(self, directory: str | os.PathLike[str], members: bool = True) -> None:
        self._directory, self._members = checked_path(directory, "TensorBoardLogger"), members
        self._module: Any = first_of(
            ("tensorboardX", "torch.utils.tensorboard"), "TensorBoardLogger", "tensorboardX"
        )
        self._writer: Any = None

    def open(self, event: Event) -> None:
        """Open a file, and take back entries of later steps in the others.

        Args:
            event: how far the training is.
        """
        self._writer = self._module.SummaryWriter(
            self._directory,
            purge_step=event.step + 1,
            filename_suffix=f".{event.step}",  # else two of one second have one name
        )

    def write(self, event: Event) -> None:
        """Write the last entry.

        Args:
            event: with the ``entry``.
        """
        for name, x in _scalars(event, self._members).items():
            self._writer.add_scalar(name, x, event.step)
        self._writer.flush()

    def close(self) -> None:
        """Close the file."""
        if self._writer is not None:
            self._writer.close()


class TrackingLogger(Logger):
    """A run of an experiment tracker, which gets the numbers of each entry.

    ``loss/0`` is that of member 0, ``loss/mean`` that over members. The run is not ended.

    Args:
        run: the module ``mlflow``, a run of Weights & Biases, or any object with one of
            ``log_metrics(by_name, step=)``, ``log_metric(name, value, step=)`` and
            ``log(by_name, step=)``.
        members: whether to log each member's numbers, beside the mean over members.

    Raises:
        TypeError: ``run`` has none of these.

    >>> import stretto as st, stretto.numpy as snp
    >>> class Run:
    ...     def log_metrics(self, by_name, step):
    ...         print(step, by_name)
    >>> ensemble = st.Ensemble(lambda p, x: p["w"] * x, [{"w": 0.0}, {"w": 2.5}])
    >>> loss = lambda member, x: ((member(x) - 1) ** 2).mean()
    >>> logger = st.ensemble.TrackingLogger(Run())
    >>> fitted = ensemble.fit(loss, snp.ones(8), st.optim.sgd(0.0), steps=1, callbacks=[logger])
    1 {'epoch': 1.0, 'loss/mean': 1.625, 'loss/0': 1.0, 'loss/1': 2.25}
    """

    def __init__(self, run: object, members: bool = True) -> None:
        methods = ("log_metrics", "log_metric", "log")
        self._method = next((m for m in methods if callable(getattr(run, m, None))), None)
        if self._method is None:
            raise TypeError(
                f"TrackingLogger: expected a run with log_metrics(by_name, step=), "
                f"log_metric(name, value, step=) or log(by_name, step=), got {type(run).__name__}"
            )
        self._log, self._members = getattr(run, self._method), members

    def write(self, event: Event) -> None:
        """Log the last entry.

        Args:
            event: with the ``entry``.
        """
        scalars = _scalars(event, self._members)
        if self._method != "log_metric":
            self._log(scalars, step=event.step)
            return
        for name, x in scalars.items():
            self._log(name, x, step=event.step)
