"""Parts of a training, as files: members of one architecture, and what their worker needs.

A part's worker has Stretto and none of the user's code. It gets the state of its members as a list
of arrays, and the step and the evaluation as programs that were traced where the user's code is,
which take and give such lists. What it needs to know of the state beside the arrays is a
``Skeleton``, in words.

A training's folder has data, validation data and programs once, and a folder for each part, with
its first state and its checkpoints. Where the workers share no folder, the same files travel with
each part as bytes.
"""

from __future__ import annotations

import dataclasses
import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import export
from stretto._engine.core import tree
from stretto._engine.core.files import write_whole
from stretto._engine.core.typing import Array, Key, Tree
from stretto.ensemble.groups import Group, call_module
from stretto.ensemble.snapshots import SnapshotState
from stretto.ensemble.training.evaluation import Evaluator
from stretto.ensemble.training.step import settings_of
from stretto.ensemble.training.train_state import Best, Pack, Rows
from stretto.ensemble.training.trainer import Trainer
from stretto.files.load_files import load
from stretto.files.save_files import save
from stretto.random.key_arrays import KeyArray
from stretto.random.keys import key_data, wrap_key_data


@dataclasses.dataclass(frozen=True)
class Skeleton:
    """A pack without its arrays: what names they go by, and how many an optimizer's state has."""

    places: tuple[int, ...]
    """The members' places in the ensemble."""
    own: tuple[str, ...]
    kept: tuple[str, ...]
    extra: tuple[str, ...]
    fixed: tuple[str, ...]
    optimizer: int | None
    """The number of arrays of the optimizer's state; ``None`` where members train nothing."""
    best: bool
    snapshots: bool

    @classmethod
    def of(cls, pack: Pack) -> Skeleton:
        """Return that of a pack whose members share nothing that is trained."""
        rows = pack.rows
        state = None if rows.optimizer is None else len(tree.leaves(rows.optimizer))
        return cls(
            tuple(pack.group.places),
            own=tuple(sorted(rows.own)),
            kept=tuple(sorted(rows.kept)),
            extra=tuple(sorted(rows.extra)),
            fixed=tuple(sorted(pack.fixed)),
            optimizer=state,
            best=rows.best is not None,
            snapshots=rows.snapshots is not None,
        )

    def pack(self, leaves: Sequence[Any]) -> Pack:
        """Return a pack of these arrays, which are in the order of the leaves of the pack.

        Its members' places are those in the part; an optimizer's state is a list.
        """
        size, nothing = len(self.places), 0
        names = tuple(sorted({*self.own, *self.kept, *self.fixed}))
        group = Group(
            call_module,
            None,
            names,
            tuple([n in self.fixed for n in names]),
            tuple([n in self.own for n in names]),
            tuple(range(size)),
        )
        whole = dict.fromkeys((*self.own, *self.kept), nothing)
        rows = Rows(
            number=nothing,
            own=dict.fromkeys(self.own, nothing),
            kept=dict.fromkeys(self.kept, nothing),
            optimizer=None if self.optimizer is None else [nothing] * self.optimizer,
            extra=dict.fromkeys(self.extra, nothing),
            active=nothing,
            failed=nothing,
            fault=nothing,
            stopped=nothing,
            best=Best(nothing, nothing, whole) if self.best else None,
            snapshots=SnapshotState(nothing, whole) if self.snapshots else None,
        )
        empty = Pack(group, rows, {}, dict.fromkeys(self.fixed, nothing), None, nothing)
        return tree.unflatten(tree.structure(empty), leaves)


def rows_of_members(pack: Pack, rows: Sequence[int]) -> Pack:
    """Return a pack of some members, at places of their own, from 0."""
    at = np.asarray(rows, np.int32)
    group = dataclasses.replace(pack.group, places=tuple(range(len(rows))))
    own = tree.map(lambda x: snp.take(x, at, 0), pack.rows)
    return dataclasses.replace(pack, group=group, rows=own)


# Keys travel as words, and the name of their generator, where they are typed.


def words_of(key: Key) -> tuple[np.ndarray, str | None]:
    """Return the words of a key, and the name of its generator if it is typed."""
    scheme = str(key._implementation.name) if isinstance(key, KeyArray) else None
    return np.asarray(key_data(key)), scheme


def key_of(words: Any, scheme: str | None) -> Key:  # noqa: ANN401 (an array)
    """Return the key of these words."""
    return words if scheme is None else wrap_key_data(words, impl=scheme)


# Programs


def step_program(
    trainer: Trainer,
    pack: Pack,
    sums: Mapping[str, Array],
    data: Tree,
    order: Tree,
    counts: Tree,
    key: Key,
    sizes: tuple[int, int],
    options: Mapping[str, Any],
) -> export.artifact.Artifact:
    """Trace a step on a batch, as a function of lists of arrays."""
    leaves, structure = tree.flatten(pack)
    examples, of_data = tree.flatten(data)
    words, scheme = words_of(key)

    def step(
        leaves: list[Array],
        sums: dict[str, Array],
        examples: list[Array],
        order: Array,
        counts: Array | None,
        first: Array,
        words: Array,
    ) -> tuple[list[Any], dict[str, Array]]:
        pack = tree.unflatten(structure, leaves)
        data = tree.unflatten(of_data, examples)
        key = key_of(words, scheme)
        pack, sums = trainer.in_order(pack, sums, data, order, counts, first, key, sizes)
        return tree.leaves(pack), sums

    with settings_of(options):
        return export.program(
            step, leaves, dict(sums), examples, order, counts, np.int32(0), words, derivatives=0
        )


def evaluation_program(
    evaluator: Evaluator, pack: Pack, data: Tree, key: Key, size: int, options: Mapping[str, Any]
) -> export.artifact.Artifact:
    """Trace the evaluation of so many examples, as a function of lists of arrays."""
    leaves, structure = tree.flatten(pack)
    examples, of_data = tree.flatten(data)
    words, scheme = words_of(key)

    def evaluate(
        leaves: list[Array], examples: list[Array], start: Array, words: Array
    ) -> dict[str, Array]:
        pack = tree.unflatten(structure, leaves)
        data = tree.unflatten(of_data, examples)
        return evaluator.on_part(pack, data, start, key_of(words, scheme), size, None)

    with settings_of(options):
        return export.program(evaluate, leaves, examples, np.int32(0), words, derivatives=0)


# Files


def write_words(path: Path, words: object) -> None:
    """Write JSON, whole or not at all."""
    data = json.dumps(words).encode()
    write_whole(path, lambda file: file.write(data), "fit")


def read_words(path: Path) -> Any:  # noqa: ANN401 (JSON)
    """Read JSON; ``None`` where there is no such file."""
    try:
        return json.loads(path.read_bytes())
    except FileNotFoundError:
        return None


def write_once(path: Path, write: Callable[[Path], object]) -> None:
    """Write a file that is not there yet; what is there was written whole, with the same name."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        write(path)


def write_arrays(path: Path, arrays: Sequence[Any]) -> None:
    """Write a list of arrays."""
    save(path, {"arrays": list(arrays)})


def read_arrays(path: Path) -> list[Any]:
    """Read a list of arrays."""
    return load(path)["arrays"]


def bytes_of(folder: Path, names: Sequence[str]) -> dict[str, bytes]:
    """Return files of a folder by name."""
    return {name: (folder / name).read_bytes() for name in names}


def put_bytes(folder: Path, files: Mapping[str, bytes]) -> None:
    """Write files into a folder of a worker's own."""
    for name, data in files.items():
        if os.path.isabs(name) or ".." in Path(name).parts:
            raise ValueError(f"fit: a part's file is called {name!r}, which leads elsewhere")
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
