"""``Checkpoints``: the whole state in a file now and then, and exact resumption from the last.

A file is complete or absent: it is written under another name, and renamed. It has a checksum, and
one that was damaged afterwards is skipped.

What must be equal for a training to be resumed from its checkpoints, in words.
"""

from __future__ import annotations

import contextlib
import dataclasses
import errno
import json
import os
import re
import warnings
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.integers import count
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Tree
from stretto._engine.xla.device import process_index
from stretto.ensemble.training.train_state import TrainState, divide_pack
from stretto.ensemble.training.trainer import Trainer
from stretto.ensemble.training.training_data import checksum
from stretto.files.file_parts import remove
from stretto.files.load_files import Header, load_checked
from stretto.files.names import Damaged
from stretto.files.save_files import write
from stretto.random.keys import key_data

_ADDRESS = re.compile("0x[0-9a-f]+")


def configuration_of(
    trainer: Trainer,
    state: TrainState,
    examples: list[Any],
    each: bool,
    data: Tree,
    validation: Tree,
    **settings: Any,
) -> dict[str, str]:
    """Describe in words what must be equal for a training to be resumed.

    The program of a step stands for the loss, the optimizer and the members.
    """
    texts = {n: str(x) for n, x in settings.items()}
    texts["key"] = str(np.asarray(key_data(state.key)).tolist())
    texts["on_divergence"] = trainer.on_divergence
    texts["enable_x64"] = str(config.enable_x64)
    texts["threefry_partitionable"] = str(config.threefry_partitionable)
    for name, x in (("data", data), ("validation", validation)):
        if x is not None:
            texts[name] = f"{', '.join(str(v.type) for v in tree.leaves(x))}, CRC {checksum(x):08x}"
    for g, (pack, sums, example) in enumerate(zip(state.packs, state.sums, examples, strict=True)):
        texts[f"architecture {g}"] = f"{pack.group.size} members at {list(pack.group.places)}"
        for name, x in zip(pack.group.names, pack.arrays(), strict=True):
            texts[f"architecture {g}, {name}"] = str(x.type)
        text = trainer.program(pack, sums, example, each)
        digest = zlib.crc32(_ADDRESS.sub("", text).encode())
        texts[f"architecture {g}, program of a step (loss, optimizer, model)"] = f"{digest:08x}"
        own = (pack.rows.extra, getattr(pack.rows.optimizer, "hyperparams", None))
        texts[f"architecture {g}, hyperparameters"] = f"CRC {checksum(own):08x}"
    return texts


_NAME = re.compile(r"step-(\d{12})\.safetensors")
_WITH_DATA = re.compile(rf"{_NAME.pattern}(\.parts)?")
_ENTRY = "stretto.fit"
_VERSION = 2
_UNREADABLE = (errno.EIO, errno.EINVAL, errno.EISDIR)
"""Errors of the system for a damaged disk, and of ``files`` for what is not a plain file."""


@dataclasses.dataclass(frozen=True)
class Checkpoints:
    """The place and the interval of a training's saves: ``step-000000001200.safetensors``.

    A save happens whenever one of the intervals given has passed; by default after every epoch; and
    at the end. Each file has a checksum of all that is in it. A file that is damaged, cut off, or
    something else is skipped with a warning, and stays until a training that goes on writes its
    step again, or ``keep`` later ones.

    Where the state is split over devices of several processes, each writes its own parts, to a
    folder beside the file, ``step-000000001200.safetensors.parts``. Training may go on with another
    number of devices, and of processes.

    Args:
        directory: for the files; made if it does not exist.
        every_steps: steps from save to save.
        every_epochs: epochs from save to save.
        every_seconds: seconds from save to save.
        keep: how many files stay. Training goes on from the one before the last where the last was
            damaged, so that keeping a single one is a risk.

    Raises:
        ValueError: an interval, or ``keep``, is not positive.

    >>> Checkpoints("runs/first", every_steps=500).keep
    3
    """

    directory: str | os.PathLike[str]
    every_steps: int | None = None
    every_epochs: int | None = None
    every_seconds: float | None = None
    keep: int = 3

    def __post_init__(self) -> None:
        for name in ("every_steps", "every_epochs", "keep"):
            value = getattr(self, name)
            if value is not None:
                count(value, "Checkpoints", name, 1)
        if self.every_seconds is not None and not self.every_seconds > 0:
            raise ValueError(
                f"Checkpoints: every_seconds must be positive, got {self.every_seconds}"
            )

    def due(self, state: TrainState, epoch_ended: bool, seconds: float) -> bool:
        """Say whether to save after this step.

        Args:
            state: the state after it.
            epoch_ended: whether it was the last of an epoch.
            seconds: since the last save.

        Returns:
            Whether to save.
        """
        if self.every_steps is None and self.every_epochs is None and self.every_seconds is None:
            return epoch_ended
        return (
            bool(self.every_steps and state.step % self.every_steps == 0)
            or bool(self.every_epochs and epoch_ended and state.epoch % self.every_epochs == 0)
            or bool(self.every_seconds and seconds >= self.every_seconds)
        )

    def steps(self) -> list[int]:
        """List the steps of the files that are there.

        Returns:
            The steps, in ascending order.
        """
        if not os.path.isdir(self.directory):
            return []
        matches = [_NAME.fullmatch(name) for name in os.listdir(self.directory)]
        return sorted(int(m[1]) for m in matches if m)

    def path(self, step: int) -> Path:
        """Return the path of a step's file.

        Args:
            step: its number.

        Returns:
            The path, whether or not there is a file.
        """
        return Path(self.directory) / f"step-{step:012}.safetensors"

    # Writing

    def save(self, state: TrainState, configuration: Mapping[str, str]) -> None:
        """Write the state, and remove files older than the last ``keep`` up to this one.

        Args:
            state: the state of a training.
            configuration: what must be equal for it to be resumed: by name, in words.
        """
        os.makedirs(self.directory, exist_ok=True)
        words = {
            "version": _VERSION,
            "configuration": dict(configuration),
            "running": [p.group.places for p in state.packs],
            "finished": [[p.group.places for p in f] for f in state.finished],
        }
        path = self.path(state.step)
        write(path, _contents(state), {_ENTRY: json.dumps(words)}, with_checksum=True)
        if process_index() == 0:
            self._prune(state.step)

    def _prune(self, last: int) -> None:
        # Later ones were skipped as damaged, so they are nothing to fall back on.
        steps = [step for step in self.steps() if step <= last]
        names = [_WITH_DATA.fullmatch(name) for name in os.listdir(self.directory)]
        for step in {int(m[1]) for m in names if m}:
            if len(steps) > self.keep and step < steps[-self.keep]:
                with contextlib.suppress(IsADirectoryError):  # not a checkpoint: skipped, too
                    remove(str(self.path(step)))

    # Reading

    def resume(
        self, fresh: TrainState, configuration: Mapping[str, str], resume: bool | str
    ) -> TrainState:
        """Return the state of the last whole file, or the fresh one where there is none.

        Warns of files that are damaged and were skipped.

        Args:
            fresh: the state before the first step, with the ``sums`` that a step has.
            configuration: as given to ``save``.
            resume: ``"auto"`` resumes if there is a file, ``True`` requires one, ``False`` refuses
                one.

        Returns:
            The state to go on from.

        Raises:
            ValueError: a file is of another configuration, and in what; all files are damaged;
                there are files though ``resume`` is false; or ``resume`` is none of these.
            FileNotFoundError: ``resume`` is true, and there is no file.
        """
        if resume not in (True, False, "auto"):
            raise ValueError(f"fit: resume must be True, False or 'auto', got {resume!r}")
        steps = self.steps()
        if steps and resume is False:
            raise ValueError(
                f"fit: resume=False, but {self.path(steps[-1])} is there; give another directory, "
                f"or remove it, or go on from it with resume='auto'"
            )
        skipped: list[str] = []
        for step in reversed(steps):
            path = self.path(step)
            try:
                state = _restored(path, fresh, configuration)
            except (Damaged, OSError) as error:
                if isinstance(error, OSError) and not _is_damage(error):
                    raise
                skipped.append(str(error))
                continue
            if skipped:
                message = "\n  ".join(
                    [f"fit: going on from {path}, as later checkpoints are damaged:", *skipped]
                )
                warnings.warn(message, stacklevel=user_stack_level())
            return state
        if skipped:
            message = "\n  ".join(["fit: there is no whole checkpoint to go on from:", *skipped])
            raise ValueError(
                f"{message}\nput a copy of one there, or remove them to start again, or give "
                f"another directory"
            )
        if resume is True:
            raise FileNotFoundError(f"fit: there is no checkpoint in {self.directory}")
        return fresh


def _is_damage(error: OSError) -> bool:
    """Say whether it is of the file, and an older one may be better."""
    return isinstance(error, FileNotFoundError) or error.errno in _UNREADABLE


def _contents(state: TrainState) -> dict[str, Any]:
    return {
        "packs": list(state.packs),
        "finished": [list(f) for f in state.finished],
        "sums": list(state.sums),
        "key": state.key,
        "counts": {
            "step": state.step,
            "epoch": state.epoch,
            "first": state.first,
            "going": state.going,
        },
        "history": state.history,
    }


def _restored(path: Path, fresh: TrainState, configuration: Mapping[str, str]) -> TrainState:
    """Read the state in a file; raise ``Damaged`` where it differs from what was written."""
    states = []

    def like(header: Header) -> dict[str, Any]:
        words = json.loads(header.metadata[_ENTRY])
        if words["version"] != _VERSION:
            raise ValueError(
                f"fit: {path} is of version {words['version']}; this Stretto knows {_VERSION}"
            )
        refuse_other(path, words["configuration"], configuration)
        history = {
            name.removeprefix("history."): ShapeDtypeStruct(x.shape, x.dtype)
            for name, x in header.arrays.items()
            if name.startswith("history.")
        }
        states.append(_divided_as(fresh, words["finished"]))
        return {**_contents(states[0]), "history": history}

    loaded = load_checked(path, like)
    return states[0].replace(
        packs=tuple(loaded["packs"]),
        finished=tuple(tuple(f) for f in loaded["finished"]),
        sums=tuple(loaded["sums"]),
        key=loaded["key"],
        history={n: np.asarray(x) for n, x in loaded["history"].items()},
        **loaded["counts"],
    )


def _divided_as(state: TrainState, finished: list[list[list[int]]]) -> TrainState:
    """Return the state with its packs divided as these places of finished members say."""
    packs, others, sums = [], [], []
    for pack, finished_packs, own_sums in zip(state.packs, finished, state.sums, strict=True):
        stopped_packs = []
        for places in finished_packs:
            pack, stopped = divide_pack(pack, [p not in places for p in pack.group.places])
            stopped_packs.append(stopped)
        packs.append(pack)
        others.append(tuple(stopped_packs))
        size = pack.group.size
        sums.append({n: snp.zeros(size, x.dtype) for n, x in own_sums.items()})
    return state.replace(packs=tuple(packs), finished=tuple(others), sums=tuple(sums))


def refuse_other(path: Path, theirs: Mapping[str, str], ours: Mapping[str, str]) -> None:
    """Raise ``ValueError`` listing in what a checkpoint is of another configuration."""
    names = [n for n in {**theirs, **ours} if theirs.get(n) != ours.get(n)]
    if names:
        message = "\n  ".join(
            f"{n}: {theirs.get(n, 'absent')} in the checkpoint, {ours.get(n, 'absent')} here"
            for n in names
        )
        raise ValueError(
            f"fit: {path} is of another configuration, and to go on from it would be another "
            f"training; give another directory, or these settings again:\n  {message}"
        )
