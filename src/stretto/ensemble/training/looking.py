"""What ``fit`` looks at before the first step: that data are finite, and that labels are classes.

Either would make a loss NaN, and look like a learning rate that is too high. Read ``planning``
before, ``fit`` next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.api.varying_sizes.ragged import is_ragged
from stretto._engine.core import tree
from stretto._engine.core.config import config
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Key, Tree
from stretto._engine.higher_order.scan import scan
from stretto.ensemble.training.member_loss import loss_of
from stretto.ensemble.training.step import batch_at
from stretto.ensemble.training.train_state import Pack, TrainState, read
from stretto.ensemble.training.training_data import Own
from stretto.nn.functional.checks import Classes, watch_classes

_BLOCK = 1 << 20  # elements that are added up at a time


@dataclasses.dataclass(frozen=True)
class Looks:
    """How data are looked at: as members of this state see them.

    Labels are those that the losses of ``stretto.nn`` are given, as they are given, so that it does
    not matter how the loss made them from the data. Whatever else the loss does is dead code in the
    program that finds them.
    """

    loss: Callable[..., Any]
    state: TrainState
    has_classes: bool
    """Whether the loss calls one that takes classes."""

    def refuse_unsound(self, data: Tree, argument: str, batch_size: int | None) -> None:
        """Raise ``ValueError`` for what would make the loss NaN, with its place and a way out.

        ``batch_size`` is how many examples the loss gets; ``None`` where the data are one batch.
        """
        there = _Data.of(data, argument, batch_size)
        for path, x in zip(there.paths, there.leaves, strict=True):
            found = None if is_ragged(x) else _not_finite(x)
            if found is None:
                continue
            row, place, value = found
            loss = self._loss_at(there, row)
            if np.isfinite(loss):  # it leaves such numbers out
                continue
            inside = f", at {list(place)} in it" if place else ""
            raise ValueError(
                f"fit: {path} has {value} in {there.example(row)}{inside}, of which the loss is "
                f"{loss}. Data must be finite: leave such examples out, "
                f"keep = np.isfinite(x).reshape(len(x), -1).all(1), or fill them in, "
                f"np.nan_to_num(x); or let the loss leave them out by a where="
            )
        if self.has_classes:
            self._refuse_labels(there)

    def _refuse_labels(self, there: _Data) -> None:
        starts = np.arange(0, there.count, there.size)
        starts = np.minimum(starts, there.count - there.size).astype(np.int32)
        known: list[Classes] = []

        def look(first: Tree, arrays: Tree, starts: Tree, key: Key) -> Tree:
            def of_part(carry: Tree, start: Tree) -> tuple[Tree, Tree]:
                with watch_classes() as watched:
                    self._loss_of(first, there.batch(arrays, start), key)
                known[:] = watched.classes
                return carry, [_wrong(found) for found in watched.classes]

            return scan(of_part, 0, starts)[1]

        for (wrong, at, value), found in zip(self._run(look, there, starts), known, strict=True):
            parts = np.flatnonzero(read(wrong))
            if len(parts):
                place = np.unravel_index(int(read(at)[parts[0]]), found.target.shape)
                start, label = int(starts[parts[0]]), int(read(value)[parts[0]])
                raise _no_class(there, found, start, [int(i) for i in place], label)

    def _loss_at(self, there: _Data, row: int) -> float:
        """The loss of the first member on a batch with this example."""

        def value(first: Tree, arrays: Tree, start: Tree, key: Key) -> Tree:
            return self._loss_of(first, there.batch(arrays, start), key)

        start = np.int32(min(row, there.count - there.size))
        return float(read(self._run(value, there, start)))

    def _run(self, f: Callable[..., Any], there: _Data, starts: Tree) -> Tree:
        with config(recompilation_warning=0, **dict(self.state.layout.options)):
            return jit(f)(_first(self.state.packs[0]), there.arrays, starts, self.state.key)

    def _loss_of(self, first: Tree, batch: Tree, key: Key) -> Array:
        own, extra = first
        return loss_of(self.loss, self.state.packs[0].group, own, batch, extra, key)[0]


@dataclasses.dataclass(frozen=True)
class _Data:
    """Data, and how a batch is drawn from them in order."""

    arrays: Tree
    paths: list[str]
    leaves: list[Any]
    argument: str
    counts: tuple[int, ...] | None
    """The number of examples of each member, where each has its own."""
    is_batch: bool
    """Whether they are one batch, as it comes."""
    count: int
    """How many examples there are."""
    size: int
    """How many of them make a batch."""

    @classmethod
    def of(cls, data: Tree, argument: str, batch_size: int | None) -> _Data:
        own = isinstance(data, Own)
        arrays = data.data if own else data
        leaves, structure = tree.flatten(arrays, is_ragged)
        paths = tree.paths(tree.unflatten(structure, range(len(leaves))), argument)
        is_batch = batch_size is None
        count = 1 if is_batch else len(leaves[0])
        size = min(batch_size or 1, count)
        counts = data.counts if own else None
        return cls(arrays, paths, leaves, argument, counts, is_batch, count, size)

    def batch(self, arrays: Tree, start: Tree) -> Tree:
        """So many examples from a place."""
        if self.is_batch:
            return arrays
        order = snp.arange(self.count, dtype=np.int32)
        return batch_at(arrays, order, start, self.size)[0]

    def example(self, row: int) -> str:
        """Which example it is, in words."""
        if self.counts is None:
            return f"example {row}{' of the first batch' if self.is_batch else ''}"
        ends = np.cumsum(self.counts)
        member = int(np.searchsorted(ends, row, side="right"))
        return f"example {row - int(ends[member] - self.counts[member])} of member {member}"

    def holder(self, row: int, label: int) -> str:
        """The path of the array that has this label in this example, if one alone has."""
        found = [
            path
            for path, x in zip(self.paths, self.leaves, strict=True)
            if not is_ragged(x) and x.ndim and (read(x[row]) == label).any()
        ]
        return found[0] if len(found) == 1 else self.argument


def _no_class(there: _Data, found: Classes, start: int, place: list[int], label: int) -> ValueError:
    """The error for a label at this place of the target of the batch that begins there."""
    shape = found.target.shape
    path, where = there.argument, "a batch"
    if shape and (there.is_batch or shape[0] == there.size):
        row = start + place[0]
        path, where = there.holder(row, label), there.example(row)
        where += f", at {place[1:]} in it" if place[1:] else ""
    return ValueError(
        f"fit: {path} has the class {label} in {where}, and {found.caller} got {found.count} "
        f"classes, which are numbered from 0 to {found.count - 1}. Number the classes from 0, "
        f"labels = np.unique(labels, return_inverse=True)[1], or give the model as many outputs as "
        f"there are classes; what is not to count is {found.ignore_index} (ignore_index)"
    )


def _first(pack: Pack) -> tuple[dict[str, Any], dict[str, Any]]:
    """The arrays of the first member, by name, and its own arguments of the loss."""
    rows = pack.rows
    own = {n: x[0] for n, x in {**rows.own, **rows.kept}.items()}
    return {**own, **pack.shared, **pack.fixed}, {n: x[0] for n, x in rows.extra.items()}


def _wrong(found: Classes) -> tuple[Any, Any, Any]:
    """Whether a target is no class, and the place and the value of the first that is none."""
    t = found.target.reshape(-1)
    outside = snp.logical_or(snp.less(t, 0), snp.greater_equal(t, found.count))
    wrong = snp.logical_and(outside, snp.not_equal(t, found.ignore_index))
    if not t.size:
        return snp.any(wrong), snp.int32(0), snp.int32(0)
    at = snp.argmax(wrong)
    return snp.any(wrong), at, t[at]


def _not_finite(x: Array) -> tuple[int, tuple[int, ...], Any] | None:
    """The example, the place in it and the value of the first number that is not finite."""
    if not is_inexact(x.dtype) or not x.size:
        return None
    flat = read(x).reshape(-1)
    wide = np.complex128 if flat.dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        for start in range(0, flat.size, _BLOCK):
            block = flat[start : start + _BLOCK]
            # The sum of finite numbers is, in 64 bits, unless they are 64 bits wide themselves.
            if np.isfinite(block.sum(dtype=wide)):
                continue
            wrong = np.flatnonzero(~np.isfinite(block))
            if len(wrong):
                place = tuple(map(int, np.unravel_index(start + wrong[0], x.shape)))
                return place[0] if place else 0, place[1:], block[wrong[0]].item()
    return None
