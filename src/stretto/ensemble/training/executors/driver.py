"""The driver: cuts members into parts, hands these to workers, and puts together what they reached.

A stage is a training of all members that still run up to an epoch; there are several where
configurations are dropped on the way (``EarlyStopping.stages``). Within a stage parts know nothing
of each other. A part that is lost goes on from its last checkpoint, elsewhere: it writes the same
bits, however often it is run, and counts once. The cuts of a stage are kept with the parts, so that
a driver that was lost itself finds them again.
"""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import hashlib
import json
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.typing import Tree
from stretto.ensemble.snapshots import Snapshots
from stretto.ensemble.training.checkpoints import Checkpoints, refuse_other
from stretto.ensemble.training.evaluation import Evaluator
from stretto.ensemble.training.executors import worker
from stretto.ensemble.training.executors.engines import Engine, Job, Workers
from stretto.ensemble.training.executors.parts import (
    Skeleton,
    bytes_of,
    evaluation_program,
    put_bytes,
    read_words,
    rows_of_members,
    step_program,
    words_of,
    write_arrays,
    write_once,
    write_words,
)
from stretto.ensemble.training.fit_callbacks import Calls, EarlyStopping, report_new
from stretto.ensemble.training.loggers import Reporter
from stretto.ensemble.training.loop import places_of_epoch
from stretto.ensemble.training.step import put_state
from stretto.ensemble.training.train_state import Pack, TrainState, divide_pack, read, unite_packs
from stretto.ensemble.training.trainer import Trainer
from stretto.ensemble.training.training_data import DataOrder, Own

_WORDS, _POLL = "training.json", 0.05
_SENT = ("enable_x64", "threefry_partitionable")
"""Settings that programs depend on."""


@dataclasses.dataclass(frozen=True)
class Part:
    """Members of one architecture that are trained together, in one folder."""

    name: str
    group: int
    places: tuple[int, ...]
    files: tuple[str, ...] = ()
    """What its worker needs beside what all need."""
    fresh: Any = None
    """The state that it begins with, in the form of its worker."""
    pack: Any = None
    """The same members, in the form of the user's."""
    configuration: Any = None


class LoopOnWorkers:
    """A training by workers; has of ``Loop`` what ``fit`` uses."""

    def __init__(
        self,
        workers: Workers,
        trainer: Trainer,
        data: Tree,
        order: DataOrder,
        *,
        epochs: int | None,
        steps: int | None,
        evaluator: Evaluator | None,
        validation: Tree,
        evaluate_every: int | None,
        validation_batch_size: int,
        early_stopping: EarlyStopping | None,
        snapshots: Snapshots | None,
        checkpoints: Checkpoints | None,
        resume: bool | str,
        configuration: Mapping[str, str],
        reporter: Reporter,
        calls: Calls,
    ) -> None:
        self._workers, self._trainer, self._data, self._order = workers, trainer, data, order
        self._epochs, self._steps = epochs, steps
        self._evaluator, self._validation = evaluator, validation
        self._every, self._part_size = evaluate_every, validation_batch_size
        self._stopping, self._snapshots = early_stopping, snapshots
        self._checkpoints, self._resume = checkpoints, resume
        self._configuration = dict(configuration)
        self._reporter, self._calls = reporter, calls
        self._parts: list[Part] = []
        self._folder = Path()
        self.state: TrainState

    def run(self, state: TrainState) -> TrainState:
        """Train from a state to the last; ``self.state`` is the one reached, whatever happens."""
        self.state = state
        engine = Engine(self._workers)
        with contextlib.ExitStack() as stack:
            stack.callback(engine.close)
            if self._checkpoints is None:
                made = stack.enter_context(tempfile.TemporaryDirectory(prefix="stretto-fit-"))
                self._folder = Path(made)
            else:
                self._folder = Path(self._checkpoints.directory)
            self._begin()
            self._calls.start(self.state)
            ends = [*(self._stopping.stages if self._stopping else ()), self._epochs]
            for stage, end in enumerate(ends):
                if self._calls.stopping or not any(self.state.going):
                    break
                self._run_stage(engine, stage, end)
        return self.state

    # A stage

    def _run_stage(self, engine: Engine, stage: int, end: int | None) -> None:
        before = self.state
        self._parts = self._cut(stage, end, engine)
        try:
            diverged = self._hand_out(engine, self._parts)
        except BaseException:
            (self._folder / worker.STOP).touch()  # workers end after their next entry
            self.state = self._gathered(before)
            raise
        self.state = self._gathered(before)
        if diverged:
            report_new(self.state, {}, "raise")
        elif self._trainer.on_divergence != "ignore":
            report_new(self.state, {}, self._trainer.on_divergence)
        if self._stopping is not None:
            self.state = put_state(self.state)
            self.state = self._stopping.after_stage(self.state)
            going = [bool(read(p.rows.active).any()) for p in self.state.packs]
            self.state = self.state.replace(going=tuple(going))
        self._tell(before)

    def _tell(self, before: TrainState) -> None:
        """Call what is called after each entry, for those of this stage."""
        history = self.state.history
        for n in range(len(before.history.get("step", ())), len(history.get("step", ()))):
            until = {name: x[: n + 1] for name, x in history.items()}
            at = self.state.replace(
                history=until, step=int(until["step"][-1]), epoch=int(until["epoch"][-1])
            )
            self._reporter.entry(at)
            self._calls.entry(at)

    def _cut(self, stage: int, end: int | None, engine: Engine) -> list[Part]:
        """Return the parts of a stage, with all that their workers need in their folders."""
        path = self._folder / f"stage-{stage}.json"
        cuts = read_words(path)
        active = [np.flatnonzero(read(p.rows.active)) for p in self.state.packs]
        if cuts is None:
            cuts = _cuts([len(rows) for rows in active], engine.count, self._workers.members)
            write_words(path, cuts)
        parts = []
        for g, (rows, sizes) in enumerate(zip(active, cuts, strict=True)):
            for i, own in enumerate(np.split(rows, np.cumsum(sizes)[:-1]) if len(rows) else []):
                name = f"stage-{stage}-group-{g}-part-{i}"
                parts.append(self._written(name, g, own.tolist(), end))
        return parts

    def _written(self, name: str, group: int, rows: list[int], end: int | None) -> Part:
        """Write a part's files."""
        whole = self.state.packs[group]
        places = tuple([whole.group.places[row] for row in rows])
        pack = rows_of_members(whole, rows)
        skeleton = dataclasses.replace(Skeleton.of(pack), places=places)
        sums = {n: snp.zeros(len(rows), x.dtype) for n, x in self.state.sums[group].items()}
        options = dict(self.state.layout.options)
        data, counts = _of_members(self._data, places)
        validation, of_validation = _of_members(self._validation, places)
        files = {"data": data, "validation": validation}
        counts_by_name = {"data": counts, "validation": of_validation}
        order = worker.PartOrder(self._order, places)
        seen = places_of_epoch(order, data, self.state.key, 0)  # pyright: ignore[reportArgumentType]
        seen_counts = np.asarray(order.counts, np.int32) if order.uneven else None
        arrays = data.data if isinstance(data, Own) else data
        label = f"group-{group}-members-{len(rows)}"
        alike = f"-{name}" if counts is not None or of_validation is not None else ""
        steps, evaluation = {}, {}
        usual = order.batch_size
        for size in sorted({order.batch_size_of(i) for i in range(order.steps)}):
            steps[str(size)] = f"programs/step-{label}-batch-{size}{alike}.safetensors"
            make = lambda size=size: step_program(
                self._trainer, pack, sums, arrays, seen, seen_counts, self.state.key,
                (usual, size), options,
            )  # fmt: skip
            write_once(self._folder / steps[str(size)], lambda path, make=make: make().save(path))
        evaluator = self._evaluator
        if evaluator is not None:
            for size in _sizes_of(evaluator, validation, self._part_size):
                evaluation[str(size)] = f"programs/evaluation-{label}-{size}{alike}.safetensors"
                make = lambda size=size: evaluation_program(
                    evaluator, pack, validation, self.state.key, size, options
                )
                write_once(
                    self._folder / evaluation[str(size)], lambda path, make=make: make().save(path)
                )
        folder = self._folder / name
        leaves = tree.leaves(pack)
        write_once(folder / "start.safetensors", lambda path: write_arrays(path, leaves))
        own_files = []
        for kind, own_counts in counts_by_name.items():
            if own_counts is not None:
                own = files[kind]
                assert isinstance(own, Own)
                values = [*tree.leaves(own.data), own.starts]
                write_once(
                    folder / f"{kind}.safetensors", lambda path, v=values: write_arrays(path, v)
                )
                own_files.append(f"{name}/{kind}.safetensors")
        words = {
            "skeleton": dataclasses.asdict(skeleton),
            "sums": {n: x.dtype.name for n, x in sums.items()},
            "step": self.state.step,
            "epoch": self.state.epoch,
            "epochs": end,
            "steps_in_all": self._steps,
            "steps": steps,
            "evaluation": evaluation,
            "counts": counts_by_name,
            "identity": self._identity(),
        }
        write_once(folder / "part.json", lambda path: write_words(path, words))
        fresh: TrainState = TrainState(
            (skeleton.pack(leaves),), ((),), self.state.key, sums=(sums,), going=(True,)
        )
        needed = [*steps.values(), *evaluation.values(), *own_files]
        needed += [f"{name}/part.json", f"{name}/start.safetensors"]
        configuration = {"part": f"{name}, {self._identity()}"}
        return Part(name, group, places, tuple(needed), fresh, pack, configuration)

    def _identity(self) -> str:
        text = json.dumps(self._configuration, sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    # The folder

    def _begin(self) -> None:
        """Write what all parts need; or find that it is there, of the same training."""
        path = self._folder / _WORDS
        known = read_words(path)
        if known is not None and self._resume is False:
            raise ValueError(
                f"fit: resume=False, but {path} is there; give another directory, or remove it, or "
                f"go on from it with resume='auto'"
            )
        if known is None and self._resume is True:
            raise FileNotFoundError(f"fit: there is no training of workers in {self._folder}")
        if known is not None:
            refuse_other(path, known["configuration"], self._configuration)
        with contextlib.suppress(FileNotFoundError):
            (self._folder / worker.STOP).unlink()
        stopping, snapshots = self._stopping, self._snapshots
        words, generator = words_of(self.state.key)
        intervals = ("every_steps", "every_epochs", "every_seconds", "keep")
        checkpoints = self._checkpoints or Checkpoints(self._folder)
        said = {
            "configuration": self._configuration,
            "config": {name: getattr(config, name) for name in _SENT},
            "options": dict(self.state.layout.options),
            "key": np.asarray(words).tolist(),
            "generator": generator,
            "order": {f.name: getattr(self._order, f.name) for f in dataclasses.fields(DataOrder)},
            "on_divergence": self._trainer.on_divergence,
            "early_stopping": stopping
            and {f.name: getattr(stopping, f.name) for f in dataclasses.fields(EarlyStopping)},
            "snapshots": snapshots and [snapshots.period, snapshots.size, snapshots.start],
            "checkpoints": {name: getattr(checkpoints, name) for name in intervals},
            "evaluate_every": self._every,
            "validation": None
            if self._evaluator is None
            else int(np.max(self._evaluator.sizes(self._validation))),
            "validation_batch_size": self._part_size,
        }
        for name, data in (("data", self._data), ("validation", self._validation)):
            if data is not None and not isinstance(data, Own):
                leaves = tree.leaves(data)
                write_once(
                    self._folder / f"{name}.safetensors", lambda p, v=leaves: write_arrays(p, v)
                )
        write_once(path, lambda path: write_words(path, said))

    # Jobs

    def _task(self, part: Part) -> dict[str, Any]:
        task: dict[str, Any] = {"part": part.name, "threads": self._workers.threads}
        if self._checkpoints is not None:
            return {**task, "folder": str(self._folder.resolve())}
        common = [_WORDS, "data.safetensors", "validation.safetensors"]
        there = [name for name in common if (self._folder / name).exists()]
        return {**task, "files": bytes_of(self._folder, [*there, *part.files])}

    def _hand_out(self, engine: Engine, parts: Sequence[Part]) -> bool:
        """Have all parts trained; True where one diverged, and the training is to end."""
        left = {part.name: part for part in parts if self._ended(part) is None}
        jobs: dict[str, Job] = {}
        losses = _Losses(self._workers.retries)
        try:
            while left:
                for name, part in left.items():
                    if name in jobs:
                        continue
                    try:
                        jobs[name] = engine.submit(worker.train_part, self._task(part))
                    except concurrent.futures.BrokenExecutor as error:
                        self._renewed(engine, jobs, error)
                        losses.lost(name, str(error), self._go_on())
                        break
                time.sleep(_POLL)
                for name in [n for n, job in jobs.items() if job.done()]:
                    ended = self._result(engine, jobs, name, losses)
                    if ended is None:
                        continue
                    del left[name]
                    write_words(self._folder / name / "done.json", ended)
                    if ended["end"] == "diverged" and self._trainer.on_divergence == "raise":
                        return True
                losses.reached(self._reached_by(parts))
                self._show(parts, len(parts) - len(left))
        finally:
            for job in jobs.values():
                job.cancel()
        return False

    def _result(
        self, engine: Engine, jobs: dict[str, Job], name: str, losses: _Losses
    ) -> dict[str, Any] | None:
        """Return how a part has ended; ``None`` where it was lost, and is to be run again."""
        job = jobs.pop(name)
        try:
            ended = dict(job.result())
        except Exception as error:
            if isinstance(error, concurrent.futures.BrokenExecutor):
                self._renewed(engine, jobs, error)
            losses.lost(name, f"{type(error).__name__}: {error}", self._go_on())
            return None
        if ended["end"] == "failed":
            if ended["again"]:
                losses.lost(name, ended["error"], self._go_on())
                return None
            raise RuntimeError(
                f"fit: the worker of {name} failed: {ended['error']}{self._go_on()}\n"
                f"{ended['where']}"
            )
        put_bytes(self._folder, ended.pop("files", {}))
        return ended

    def _renewed(self, engine: Engine, jobs: dict[str, Job], error: Exception) -> None:
        """Have a new executor made in place of one that has broken, and with it all of its jobs."""
        if not engine.renew():
            raise RuntimeError(
                f"fit: a worker died, and with it the executor, which takes no more work "
                f"({error}); give executor a function that makes one, such as lambda: "
                f"ProcessPoolExecutor(...), and it is made again{self._go_on()}"
            ) from error
        jobs.clear()

    def _go_on(self) -> str:
        if self._checkpoints is None:
            return "; with checkpoint= a training can go on from what its parts reached"
        return f"; the same call goes on from what is in {self._folder}"

    def _ended(self, part: Part) -> dict[str, Any] | None:
        ended = read_words(self._folder / part.name / "done.json")
        return None if ended is None or ended["end"] == "stopped" else ended

    def _reached_by(self, parts: Sequence[Part]) -> int:
        """Return a number that grows whenever a part gets further."""
        return sum(sum(Checkpoints(self._folder / part.name).steps()[-1:]) for part in parts)

    def _show(self, parts: Sequence[Part], done: int) -> None:
        steps = 0.0
        for part in parts:
            there = [
                read_words(self._folder / part.name / n) for n in ("done.json", "progress.json")
            ]
            at = max([w["step"] for w in there if w is not None], default=0)
            steps += at * len(part.places)
        members = sum(len(part.places) for part in parts)
        self._reporter.parts(int(steps / members), f"{done} of {len(parts)} parts done")

    # What was reached

    def _gathered(self, before: TrainState) -> TrainState:
        """Return the state with what each part has reached, its history behind that before."""
        reached: dict[int, list[Pack]] = {}
        histories = []
        step, epoch = before.step, before.epoch
        for part in self._parts:
            checkpoints = Checkpoints(self._folder / part.name)
            state = checkpoints.resume(part.fresh, part.configuration, "auto")
            (pack,) = state.packs
            structure = tree.structure(part.pack)
            own = tree.unflatten(structure, tree.leaves(pack))
            group = dataclasses.replace(own.group, places=part.places)
            reached.setdefault(part.group, []).append(dataclasses.replace(own, group=group))
            if len(state.history):
                histories.append((part.places, state.history))
            step, epoch = max(step, state.step), max(epoch, state.epoch)
        packs = []
        for g, pack in enumerate(before.packs):
            trained = {p for own in reached.get(g, ()) for p in own.group.places}
            rest = [p not in trained for p in pack.group.places]
            parts = [*reached.get(g, ())]
            if any(rest):
                parts.append(divide_pack(pack, rest)[0] if trained else pack)
            packs.append(unite_packs(parts))
        return before.replace(
            packs=tuple(packs),
            step=step,
            epoch=epoch,
            first=step,
            going=tuple([bool(read(p.rows.active).any()) for p in packs]),
            history=_joined(before.history, histories, before.size),
        )


class _Losses:
    """Counts losses in a row between which nothing got further."""

    def __init__(self, most: int) -> None:
        self._most, self._count, self._reached = most, 0, -1

    def reached(self, number: int) -> None:
        """Note how far all parts are together."""
        if number > self._reached:
            self._reached, self._count = number, 0

    def lost(self, name: str, words: str, go_on: str) -> None:
        """Count a loss; raises ``RuntimeError`` where there were too many."""
        self._count += 1
        if self._count > self._most:
            self._give_up(name, words, go_on)

    def _give_up(self, name: str, words: str, go_on: str) -> NoReturn:
        raise RuntimeError(
            f"fit: {name} was lost {self._count} times, and nothing got further meanwhile: "
            f"{words}{go_on}"
        )


def _cuts(sizes: Sequence[int], count: int | None, most: int | None) -> list[list[int]]:
    """Return the sizes of the parts of each architecture, which differ by one at most.

    >>> _cuts([10, 3], 4, None), _cuts([5], 2, 2)
    ([[4, 3, 3], [3]], [[2, 2, 1]])
    """
    if count is None and most is None:
        raise ValueError(
            "fit: this executor does not say how many workers it has: give executor=st.ensemble."
            "Workers(executor, count=...)"
        )
    total = sum(sizes)
    cuts = []
    for size in sizes:
        parts = -(-size // most) if most else round((count or 1) * size / max(total, 1))
        parts = min(max(parts, 1), size)
        cuts.append([len(x) for x in np.array_split(np.arange(size), parts)] if size else [])
    return cuts


def _of_members(data: Tree, places: Sequence[int]) -> tuple[Any, tuple[int, ...] | None]:
    """Return the data that some members see, and the counts of theirs where each has its own."""
    if not isinstance(data, Own):
        return data, None
    counts = tuple([data.counts[i] for i in places])
    starts = read(data.starts)
    at = np.concatenate([np.arange(starts[i], starts[i] + data.counts[i]) for i in places])
    rows = tree.map(lambda x: snp.take(x, at.astype(np.int32), 0), data.data)
    first = np.cumsum((0, *counts[:-1])).astype(np.int32)
    return Own(rows, snp.asarray(first), counts), counts


def _sizes_of(evaluator: Evaluator, data: Tree, most: int) -> list[int]:
    """Return the numbers of examples that programs of an evaluation take."""
    here = evaluator.sizes(data)
    starts = range(0, int(np.max(here)), most)
    return sorted({int(np.max(np.clip(here - start, 0, most))) for start in starts})


def _joined(
    before: Mapping[str, np.ndarray],
    parts: Sequence[tuple[Sequence[int], Mapping[str, np.ndarray]]],
    size: int,
) -> dict[str, Any]:
    """Return the history of all members, NaN where a part had ended."""
    if not parts:
        return dict(before)
    rows = sorted({(int(s), int(e)) for _, h in parts for s, e in zip(h["step"], h["epoch"])})
    names = list(dict.fromkeys([n for _, h in parts for n in h if n not in ("step", "epoch")]))
    place = {s: i for i, (s, _) in enumerate(rows)}
    columns: dict[str, Any] = {
        "step": np.asarray([s for s, _ in rows], np.int32),
        "epoch": np.asarray([e for _, e in rows], np.int32),
    }
    for name in names:
        columns[name] = np.full((len(rows), size), np.nan, np.float32)
    for places, history in parts:
        at = [place[int(s)] for s in history["step"]]
        for name in names:
            if name in history:
                columns[name][np.ix_(at, list(places))] = history[name]
    joined = {}
    counts = len(before.get("step", ())), len(rows)
    for name in dict.fromkeys([*columns, *before]):
        nothing = [np.full((n, size), np.nan, np.float32) for n in counts]
        ends = [np.asarray(before.get(name, nothing[0])), np.asarray(columns.get(name, nothing[1]))]
        joined[name] = np.concatenate([x for x in ends if len(x)])
    return joined
