"""What runs on a worker: a part is trained by the loop of ``fit``, its steps by traced programs.

``train_part`` gets words and paths, or the files themselves, and gives such. It needs none of the
user's code, and runs none: programs are data (docs/decisions/0076-programs-in-files-are-data.md).
"""

from __future__ import annotations

import dataclasses
import os
import tempfile
import time
import traceback
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import export
from stretto._engine.api.jit.jit import jit
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.machine import cores, cores_of_groups
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.xla import clients
from stretto.ensemble.snapshots import Snapshots
from stretto.ensemble.training.checkpoints import Checkpoints
from stretto.ensemble.training.evaluation import Evaluator
from stretto.ensemble.training.executors.parts import (
    Skeleton,
    bytes_of,
    key_of,
    put_bytes,
    read_arrays,
    read_words,
    words_of,
    write_words,
)
from stretto.ensemble.training.fit_callbacks import Calls, DivergenceError, EarlyStopping
from stretto.ensemble.training.loop import Loop
from stretto.ensemble.training.step import settings_of
from stretto.ensemble.training.train_state import Pack, TrainState
from stretto.ensemble.training.training_data import DataOrder, Own

STOP = "stop"
"""The file in a training's folder that asks its workers to end after the next entry."""
_SECONDS = 2.0
"""The least time between two words of a part's progress."""


class TracedTrainer:
    """The steps of a part, as programs; it has of ``Trainer`` what the loop uses."""

    resizes = False
    """Members that have stopped stay: there is no program for fewer."""

    def __init__(self, programs: Mapping[int, Callable[..., Any]], on_divergence: str) -> None:
        self.on_divergence = on_divergence
        self._programs = {n: jit(f, donate_argnums=(0, 1)) for n, f in programs.items()}

    def in_order(
        self,
        pack: Pack,
        sums: dict[str, Array],
        data: list[Array],
        order: Array,
        counts: Array | None,
        first: Array,
        key: Key,
        sizes: tuple[int, int],
    ) -> tuple[Pack, dict[str, Array]]:
        """Take a step, as ``Trainer.in_order``."""
        leaves, structure = tree.flatten(pack)
        run = self._programs[sizes[1]]
        words = snp.asarray(words_of(key)[0])
        leaves, sums = run(leaves, sums, data, order, counts, snp.asarray(first), words)
        return tree.unflatten(structure, leaves), sums


class TracedEvaluator(Evaluator):
    """The evaluation of a part, as programs by the number of examples."""

    def __init__(self, programs: Mapping[int, Callable[..., Any]], size: int) -> None:
        self._size = size
        self._programs = {n: jit(f) for n, f in programs.items()}
        self.on_part: Any = self._run

    def _run(
        self, pack: Pack, data: Tree, start: ArrayLike, key: Key, size: int, over: None
    ) -> dict[str, Array]:
        words = snp.asarray(words_of(key)[0])
        return self._programs[size](tree.leaves(pack), tree.leaves(data), snp.asarray(start), words)

    def sizes(self, data: Tree) -> Any:  # noqa: ANN401 (a number, or an array)
        """Return the number of examples, or that of each member."""
        return np.asarray(data.counts) if isinstance(data, Own) else self._size


@dataclasses.dataclass(frozen=True)
class PartOrder:
    """The order in which some of the members see examples, as ``DataOrder`` has it for all."""

    whole: DataOrder
    members: tuple[int, ...]

    @property
    def steps(self) -> int:
        """The number of batches in an epoch of all."""
        return self.whole.steps

    @property
    def batch_size(self) -> int:
        """The examples of a batch."""
        return self.whole.batch_size

    @property
    def each(self) -> bool:
        """True where each member has an order of its own."""
        return self.whole.each

    @property
    def uneven(self) -> bool:
        """True where members see different numbers of examples."""
        return self.whole.uneven

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of examples that each of them sees in an epoch."""
        counts = self.whole.counts
        return tuple([counts[i] for i in self.members])

    def batch_size_of(self, step: int) -> int:
        """Return how many examples the batch at this step of an epoch has."""
        return self.whole.batch_size_of(step)

    def epoch(self, key: Key, epoch: int) -> Array:
        """Return the examples of an epoch, in order."""
        return self.whole.epoch(key, epoch, self.members if self.each else None)


class _Progress:
    """Of a reporter what the loop uses: it writes how far the part is, for whoever shows it."""

    def __init__(self, path: Path, stop: Path, calls: Calls) -> None:
        self._path, self._stop, self._calls = path, stop, calls
        self._written = 0.0

    def step(self, state: TrainState) -> None:
        now = time.monotonic()
        if now - self._written < _SECONDS:
            return
        self._written = now
        write_words(self._path, {"step": state.step, "epoch": state.epoch, "time": time.time()})

    def entry(self, state: TrainState) -> None:
        if self._stop.exists():
            self._calls.stopping = True


def train_part(task: Mapping[str, Any]) -> dict[str, Any]:
    """Train a part from its last checkpoint; errors are in what it returns, as words.

    Args:
        task: ``folder``, where the training's files are, or ``files``, themselves by name;
            ``part``, the name of its folder; ``threads``, how many to compute with.

    Returns:
        ``part``, and ``end``: ``"done"``, ``"stopped"``, ``"diverged"``, or ``"failed"`` with the
        ``error``, in words, and whether ``again`` may help; and where there are ``files``, that of
        the last checkpoint.
    """
    part = task["part"]
    _use_threads(task.get("threads"))
    try:
        if "folder" in task:
            return {"part": part, **_train(Path(task["folder"]), part)}
        with tempfile.TemporaryDirectory(prefix="stretto-part-") as folder:
            put_bytes(Path(folder), task["files"])
            ended = _train(Path(folder), part)
            return {"part": part, **ended, "files": bytes_of(Path(folder), [ended["state"]])}
    except Exception as error:
        again = isinstance(error, (OSError, MemoryError))
        words = "".join(traceback.format_exception_only(error)).strip()
        where = traceback.format_exc(limit=-4)
        return {"part": part, "end": "failed", "error": words, "where": where, "again": again}


def _use_threads(threads: int | None) -> None:
    """Have XLA start with so many threads, or with as many as the engine gave this worker."""
    for name in ("SLURM_CPUS_PER_TASK", "OMP_NUM_THREADS"):
        said = os.environ.get(name, "")
        if threads is None and said.isdigit() and int(said):
            threads = int(said)
    if threads is None:  # a container sees all of the machine's processors, whatever it may use
        threads = cores_of_groups()
        threads = None if threads is None else min(threads, cores())
    if threads is not None and not clients.has_runtime() and "NPROC" not in os.environ:
        os.environ["NPROC"] = str(threads)


def _train(folder: Path, part: str) -> dict[str, Any]:
    words = read_words(folder / "training.json")
    own = read_words(folder / part / "part.json")
    with config(**words["config"]), settings_of(words["options"]):
        return _run(folder, part, words, own)


def _run(folder: Path, part: str, words: Mapping[str, Any], own: Mapping[str, Any]) -> dict:
    skeleton = Skeleton(**_with_tuples(own["skeleton"]))
    pack = skeleton.pack(read_arrays(folder / part / "start.safetensors"))
    key = key_of(snp.asarray(np.asarray(words["key"], np.uint32)), words["generator"])
    size = len(skeleton.places)
    layout: Any = SimpleNamespace(over=None, options=tuple(words["options"].items()))
    sums = {n: snp.zeros(size, dtype) for n, dtype in own["sums"].items()}
    state: TrainState = TrainState(
        (pack,),
        ((),),
        key,
        own["step"],
        own["epoch"],
        own["step"],
        (sums,),
        (True,),
        {},
        None,
        layout,
    )
    stopping = words["early_stopping"] and EarlyStopping(**words["early_stopping"])
    checkpoints = Checkpoints(folder / part, **words["checkpoints"])
    configuration = {"part": f"{part}, {own['identity']}"}
    state = checkpoints.resume(state, configuration, "auto")
    calls = Calls(None, together=False)
    progress: Any = _Progress(folder / part / "progress.json", folder / STOP, calls)
    evaluator = None
    validation = None
    if words["validation"]:
        validation = _data(folder, part, own, "validation")
        programs = _programs(folder, own["evaluation"])
        evaluator = TracedEvaluator(programs, words["validation"])
    trainer: Any = TracedTrainer(_programs(folder, own["steps"]), words["on_divergence"])
    order = DataOrder(**_with_tuples(words["order"]))
    in_part: Any = PartOrder(order, skeleton.places)
    loop = Loop(
        trainer,
        _data(folder, part, own, "data"),
        in_part,
        each=order.each,
        epochs=own["epochs"],
        steps=own["steps_in_all"],
        evaluator=evaluator,
        validation=validation,
        evaluate_every=words["evaluate_every"],
        validation_batch_size=words["validation_batch_size"],
        early_stopping=stopping or None,
        snapshots=words["snapshots"] and Snapshots(*words["snapshots"]),
        checkpoints=checkpoints,
        configuration=configuration,
        reporter=progress,
        calls=calls,
    )
    end = "done"
    try:
        loop.run(state)
    except DivergenceError:
        end = "diverged"
        checkpoints.save(loop.state, configuration)
    if calls.stopping:
        end = "stopped"
    path = checkpoints.path(loop.state.step)
    return {"end": end, "step": loop.state.step, "state": f"{part}/{path.name}"}


def _with_tuples(words: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a dataclass from JSON, which has lists for tuples."""
    return {n: tuple(x) if isinstance(x, list) else x for n, x in words.items()}


def _programs(folder: Path, names: Mapping[str, str]) -> dict[int, Callable[..., Any]]:
    return {int(n): export.load(folder / name) for n, name in names.items()}


def _data(folder: Path, part: str, own: Mapping[str, Any], name: str) -> Any:  # noqa: ANN401
    """Return the arrays of the data as a list, of the part's own members where each has its own."""
    counts: Sequence[int] | None = own["counts"][name]
    if counts is None:
        return read_arrays(folder / f"{name}.safetensors")
    *arrays, starts = read_arrays(folder / part / f"{name}.safetensors")
    return Own(arrays, starts, tuple(counts))
