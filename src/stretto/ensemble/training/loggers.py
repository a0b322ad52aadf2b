"""Loggers: callbacks of ``fit`` that write each entry of the history somewhere."""

from __future__ import annotations

import csv
import io
import os
import sys
from collections.abc import Mapping
from typing import Any, TextIO

import numpy as np

from stretto._engine.core.files import checked_path, write_whole
from stretto.ensemble.optional import first_of
from stretto.ensemble.training.fit_callbacks import Callback, Event
from stretto.ensemble.training.fitted import columns_of
from stretto.ensemble.training.progress import entry_text


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
    """Rows as text; numbers with as many digits as their dtype has."""
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(zip(*columns.values(), strict=True))
    return text.getvalue()


def _scalars(event: Event, members: bool) -> dict[str, float]:
    """The entry as numbers by name: the means over members, and each member's; those that are."""
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
