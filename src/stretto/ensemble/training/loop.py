"""``Loop``: steps, evaluations and checkpoints, in an order that can be resumed.

When each of them happens depends on the number of steps and on arrays of the state, not on a clock,
so that a run that was killed and resumed gives the same, bit for bit.

Ctrl-C does not cut a step in two. A step takes the arrays of the state, and gives others. An
interrupt between the two would leave neither, and lose all that was trained.
"""

from __future__ import annotations

import functools
import signal
import threading
import time
from collections.abc import Callable, Iterator
from types import FrameType
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core import tree
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.typing import Array, Key, Tree
from stretto.ensemble.snapshots import Snapshots
from stretto.ensemble.training.checkpoints import Checkpoints
from stretto.ensemble.training.evaluation import Evaluator
from stretto.ensemble.training.fit_callbacks import (
    Calls,
    Divergence,
    EarlyStopping,
    report_new,
)
from stretto.ensemble.training.fitted import with_entry
from stretto.ensemble.training.loggers import Reporter, means
from stretto.ensemble.training.step import put_state, with_company
from stretto.ensemble.training.train_state import (
    Pack,
    TrainState,
    divide_pack,
    read,
    take_snapshots,
)
from stretto.ensemble.training.trainer import Trainer
from stretto.ensemble.training.training_data import (
    DataOrder,
    Own,
    batches_of,
    with_rectangles,
)


def finish_before_interrupt(work: Callable[[], Any]) -> None:
    """Do the work to its end, and handle Ctrl-C only then; a second Ctrl-C is handled at once.

    This holds in the main thread, where Python handles signals; others are not interrupted.
    """
    handler: Any = signal.getsignal(signal.SIGINT)
    if not callable(handler) or threading.current_thread() is not threading.main_thread():
        work()
        return
    interrupts: list[tuple[int, FrameType | None]] = []

    def later(number: int, frame: FrameType | None) -> None:
        if interrupts:
            handler(number, frame)
        interrupts.append((number, frame))

    try:
        signal.signal(signal.SIGINT, later)
        work()
    finally:
        signal.signal(signal.SIGINT, handler)
    if interrupts:
        handler(*interrupts[0])


_SECONDS = 0.5  # between looks for members that diverged


def places_of_epoch(order: DataOrder, data: Tree, key: Key, epoch: int) -> Array:
    """Return the places in the data that members see in an epoch, one after the other."""
    places = order.epoch(key, epoch)
    if isinstance(data, Own):
        places = places + data.starts[:, None]
    if order.uneven:  # whole batches, of which members see what they have left
        room = order.steps * order.batch_size - places.shape[1]
        places = snp.pad(places, ((0, 0), (0, max(0, room))))
    return places


class Loop:
    """A training: what ``fit`` was asked for, and the state that it has reached."""

    def __init__(
        self,
        trainer: Trainer,
        data: Tree,
        order: DataOrder | None,
        *,
        each: bool,
        epochs: int | None,
        steps: int | None,
        evaluator: Evaluator | None,
        validation: Tree,
        evaluate_every: int | None,
        validation_batch_size: int,
        early_stopping: EarlyStopping | None,
        snapshots: Snapshots | None,
        checkpoints: Checkpoints | None,
        configuration: dict[str, str],
        reporter: Reporter,
        calls: Calls,
    ) -> None:
        self._trainer, self._data, self._order, self._each = trainer, data, order, each
        self._epochs, self._steps = epochs, steps
        self._evaluator, self._validation = evaluator, validation
        self._every, self._part = evaluate_every, validation_batch_size
        self._stopping, self._snapshots = early_stopping, snapshots
        self._take = jit(take_snapshots, donate_argnums=0)
        self._checkpoints, self._configuration = checkpoints, configuration
        self._reporter, self._calls = reporter, calls
        self._known: dict[int, Divergence] = {}
        self._looked = self._saved = time.monotonic()
        self._saved_step = -1
        self._together = False
        """True where several processes train, which do the same things at the same steps."""
        self.state: TrainState

    def run(self, state: TrainState) -> TrainState:
        """Train from a state to the last; ``self.state`` is the one reached, whatever happens."""
        self.state = state
        if state.layout.over is not None:  # once, and not at each step
            self._data = self._put(self._data) if self._order else self._data
            self._validation = self._put(self._validation)
            self._together = state.layout.over.mesh.is_multi_process
        self._saved_step = state.step if state.step else -1
        self._calls.start(self.state)
        while not self._done():
            first = self.state.step
            for _ in self._epoch():
                if self._done():
                    break
            if self.state.step == first:
                raise ValueError(
                    f"fit: data has no batch left for epoch {self.state.epoch}; an iterator "
                    f"can be iterated over only once: give a list, or an object whose __iter__ "
                    f"starts again"
                )
        state = self.state
        if state.step and (not len(state.history) or state.history["step"][-1] != state.step):
            self._entry()
        self._look()
        if self._checkpoints and self._saved_step != self.state.step:
            self._save()
        return self.state

    def _done(self) -> bool:
        state = self.state
        return (
            self._calls.stopping
            or (self._epochs is not None and state.epoch >= self._epochs)
            or (self._steps is not None and state.step >= self._steps)
            or not any(state.going)
        )

    # One epoch

    def _epoch(self) -> Iterator[None]:
        """Continue the epoch that the state is in, a step at a time."""
        number = self.state.step - self.state.first
        if self._order is None:
            for batch, last in batches_of(self._data, number):
                self._step(functools.partial(self._on_batch, batch), last)
                yield
            return
        orders: dict[Any, tuple[Any, ...]] = {}
        first = np.int32(self.state.first)
        for i in range(number, self._order.steps):
            sizes = (self._order.batch_size, self._order.batch_size_of(i))
            self._step(
                functools.partial(self._in_order, orders, first, sizes), i == self._order.steps - 1
            )
            yield

    def _in_order(
        self,
        orders: dict[Any, tuple[Any, ...]],
        first: np.int32,
        sizes: tuple[int, int],
        pack: Pack,
        sums: dict[str, Array],
    ) -> tuple[Pack, dict[str, Array]]:
        assert self._order is not None
        # Of all members, also those that have stopped, so that one program serves all epochs.
        places, data = pack.group.places, self._data
        if isinstance(data, Own):
            data = data.data
        if not orders:
            order = places_of_epoch(self._order, self._data, self.state.key, self.state.epoch)
            orders["all"] = order, self._put(snp.asarray(first))
        if places not in orders:
            order, start = orders["all"]
            rows = np.asarray(places, np.int32)
            if self._order.each and len(places) < self.state.size:
                order = snp.take(order, rows, 0)
            counts = None
            if self._order.uneven:
                counts = snp.asarray(np.asarray(self._order.counts, np.int32)[rows])
            each = self._order.each
            orders[places] = self._put(order, each), self._put(counts, each), start
        order, counts, start = orders[places]
        return self._trainer.in_order(pack, sums, data, order, counts, start, self.state.key, sizes)

    def _on_batch(
        self, batch: Tree, pack: Pack, sums: dict[str, Array]
    ) -> tuple[Pack, dict[str, Array]]:
        if self._each:
            batch = with_rectangles(batch)
        if self._each and pack.group.size != self.state.size:
            places = np.asarray(pack.group.places, np.int32)
            batch = tree.map(lambda x: snp.take(x, places, 0), batch)
        batch = self._trainer.put_batch(batch, self._each, "fit")
        return self._trainer.on_batch(pack, sums, batch, self._each, self.state.key)

    def _put(self, x: Tree, rows: bool = False) -> Tree:
        """Return arrays on all devices of the mesh, or split over its members, if there is one."""
        over = self.state.layout.over
        return x if over is None else over.put(x, over.rows if rows else PartitionSpec())

    # One step, and what comes after it

    def _step(self, run: Callable[..., tuple[Pack, dict[str, Array]]], last: bool) -> None:
        finish_before_interrupt(lambda: self._advance(run, last))
        state = self.state
        self._reporter.step(state)
        if last if self._every is None else state.step % self._every == 0:
            self._entry()
        elif not self._together and time.monotonic() - self._looked > _SECONDS:
            self._look()
        if self._checkpoints:
            seconds = time.monotonic() - self._saved
            if self._checkpoints.due(self.state, last, seconds):
                self._save()

    def _advance(self, run: Callable[..., tuple[Pack, dict[str, Array]]], last: bool) -> None:
        state = self.state
        packs, sums = list(state.packs), list(state.sums)
        ends = self._snapshots is not None and self._snapshots.ends(state.step)
        for g, going in enumerate(state.going):
            if going:
                packs[g], sums[g] = run(packs[g], sums[g])
                packs[g] = self._take(packs[g]) if ends else packs[g]
        step = state.step + 1
        ended = {"epoch": state.epoch + 1, "first": step} if last else {}
        self.state = state.replace(packs=tuple(packs), sums=tuple(sums), step=step, **ended)

    def _entry(self) -> None:
        """Measure, stop members, and set aside those that no longer run."""
        state = self.state
        entry = means(state)
        if self._evaluator is not None:
            measured = self._evaluator(state, self._validation, self._part)
            entry |= {f"validation_{n}": x for n, x in measured.items()}
            if self._stopping is not None and measured:
                finish_before_interrupt(functools.partial(self._observe, self._stopping, measured))
                state = self.state
        history = with_entry(state.history, state.step, state.epoch, entry, state.size)
        self.state = divide_idle_packs(state.replace(history=history), self._trainer.resizes)
        self._reporter.entry(self.state)
        self._calls.entry(self.state)
        self._look()

    def _observe(self, stopping: EarlyStopping, measured: dict[str, np.ndarray]) -> None:
        self.state = stopping.observe(self.state, stopping.score(measured))

    def _look(self) -> None:
        """Say which members have diverged since the last look."""
        if self._trainer.on_divergence != "ignore":
            self._known = report_new(self.state, self._known, self._trainer.on_divergence)
        self._looked = time.monotonic()

    def _save(self) -> None:
        assert self._checkpoints is not None
        self._checkpoints.save(self.state, self._configuration)
        self._saved, self._saved_step = time.monotonic(), self.state.step


def divide_idle_packs(state: TrainState, resizes: bool = True) -> TrainState:
    """Give the state new sums, and divide packs of which at most half of the members still run.

    So a pack of n is compiled again at most log₂ n times; without ``resizes`` it stays as it is.
    Where members train shared parts, one that has stopped leaves at once, since what it does must
    not reach the others.
    """
    packs, finished, sums, going = [], [], [], []
    for pack, others, own_sums in zip(state.packs, state.finished, state.sums, strict=True):
        active = read(pack.rows.active)
        count = int(active.sum())
        if resizes and 0 < count < len(active) and (2 * count <= len(active) or pack.shared):
            running = with_company(state.layout.over, pack, active.tolist())
            if not all(running):
                pack, stopped = divide_pack(pack, running)
                others = (*others, stopped)
        packs.append(pack)
        finished.append(others)
        going.append(count > 0)
        size = pack.group.size
        sums.append({n: snp.zeros(size, x.dtype) for n, x in own_sums.items()})
    return put_state(
        state.replace(
            packs=tuple(packs), finished=tuple(finished), sums=tuple(sums), going=tuple(going)
        )
    )
