"""Snapshots: an ensemble from one training run, of the weights at the end of each cycle."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import flatten, map, register_dataclass, unflatten
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.cond import cond
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import dynamic_update_index_in_dim
from stretto.ensemble.ensemble import Ensemble
from stretto.optim.schedules import cyclical_schedule
from stretto.tree.members import Alike, concat, unstack

__all__ = ["SnapshotState", "Snapshots"]


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class SnapshotState:
    """The snapshots so far."""

    count: Any
    """The number taken, int32."""
    stacked: Any
    """A tree with room for ``size`` members along axis 0."""


@dataclasses.dataclass(frozen=True)
class Snapshots:
    """Collect the weights at the end of each cycle of ``period`` steps, keeping the last ``size``.

    Steps count from 0, so a cycle ends with step ``period`` − 1. All but ``members`` works under
    ``jit``, ``scan`` and ``vmap``. ``fit(..., snapshots=Snapshots(...))`` collects those of each
    member by itself.

    Args:
        period: the steps of a cycle.
        size: how many snapshots to keep.
        start: the steps before the first that may end a cycle: what a sampler burns in.

    Raises:
        ValueError: ``period`` or ``size`` is less than 1, or ``start`` is negative; or, in
            ``update``, a tree differs from the first, with the path.

    Source: Huang et al., "Snapshot ensembles: train 1, get M for free", 2017.

    >>> import stretto as st, stretto.numpy as snp
    >>> snapshots = st.ensemble.Snapshots(period=2, size=3)
    >>> state = snapshots.init({"w": snp.zeros(())})
    >>> for step in range(4):
    ...     state = snapshots.update(state, step, {"w": snp.float32(step)})
    >>> snapshots.members(state)
    {'w': Array([1., 3.], dtype=float32)}
    """

    period: int
    size: int
    start: int = 0

    def __post_init__(self) -> None:
        if self.period < 1 or self.size < 1:
            raise ValueError(
                f"Snapshots: period and size must be at least 1, got {self.period} and {self.size}"
            )
        if self.start < 0:
            raise ValueError(f"Snapshots: start must be at least 0, got {self.start}")

    def ends(self, step: int | Array) -> Any:  # noqa: ANN401 (a boolean, or an array of them)
        """Say whether a snapshot is taken after a step.

        Args:
            step: the number of the step, from 0.

        Returns:
            A boolean, or an array of them, of the shape of ``step``.

        >>> [step for step in range(12) if Snapshots(3, 1, start=4).ends(step)]
        [5, 8, 11]
        """
        return (step % self.period == self.period - 1) & (step >= self.start)

    @property
    def first(self) -> int:
        """The first step, from 0, after which a snapshot is taken."""
        return self.start // self.period * self.period + self.period - 1

    def factor(self, step: int | Array) -> Array:
        """Return what to multiply the learning rate by at a step: half a cosine in each cycle.

        (1 + cos(π (step mod period) / period)) / 2.

        Args:
            step: the number of the step, from 0.

        Returns:
            The factor, from 1 down to 0, of the shape of ``step``.

        >>> [round(float(Snapshots(4, 1).factor(step)), 3) for step in range(5)]
        [1.0, 0.854, 0.5, 0.146, 1.0]
        """
        return cyclical_schedule(1.0, self.period)(step)

    def init(self, tree: Tree) -> SnapshotState:
        """Return the state before any snapshot.

        Args:
            tree: a tree of arrays like those to come, or an ``Ensemble``.

        Returns:
            The state, with room for ``size`` trees.

        Raises:
            ValueError: an ensemble's members share parts that are trained: those of one snapshot
                are not those of another.
        """
        if isinstance(tree, Ensemble):
            _refuse_shared(tree)
        room = map(lambda x: _room(snp.asarray(x), self.size), tree)
        return SnapshotState(snp.zeros((), np.int32), room)

    def update(self, state: SnapshotState, step: ArrayLike, tree: Tree) -> SnapshotState:
        """Return the state after a step, with the tree in it if a cycle ended.

        Args:
            state: the state before.
            step: the number of the step, from 0.
            tree: a tree of arrays, the weights after it.

        Returns:
            The new state.
        """
        alike = Alike("Snapshots.update")
        flat, structure = flatten(state.stacked)
        alike.row(map(lambda x: x[0], state.stacked), 0)
        row = alike.row(tree, 1)

        def taken(count: Array, stacked: Tree, row: Array) -> Tree:
            place = count % self.size
            return count + 1, [
                dynamic_update_index_in_dim(old, convert(x, old.dtype), place, 0)
                for old, x in zip(stacked, row, strict=True)
            ]

        def passed(count: Array, stacked: Tree, row: Array) -> Tree:
            return count, stacked

        count, flat = cond(self.ends(snp.asarray(step)), taken, passed, state.count, flat, row)
        return SnapshotState(count, unflatten(structure, flat))

    def members(self, state: SnapshotState) -> Tree:
        """Return the snapshots that are kept, the oldest first.

        Args:
            state: what ``update`` gave.

        Returns:
            One stacked tree, with the members along axis 0; of an ensemble one ensemble, with all
                members of the oldest snapshot first.

        Raises:
            ValueError: no cycle has ended yet.
        """
        count = int(state.count)
        if not count:
            raise ValueError("Snapshots.members: no cycle has ended yet")
        order = np.arange(max(0, count - self.size), count) % self.size
        kept = map(lambda x: snp.take(x, order, axis=0), state.stacked)
        return concat(unstack(kept)) if isinstance(kept, Ensemble) else kept


def _refuse_shared(ensemble: Ensemble) -> None:
    for group in ensemble._layout.groups:
        parts = zip(group.names, group.shared, group.trained, strict=True)
        both = [name for name, shared, trained in parts if shared and trained]
        if both:
            raise ValueError(
                f"Snapshots.init: the members share {', '.join(both)}, which are trained, and "
                f"those of one snapshot are not those of another: keep the ensembles apart, by "
                f"Snapshots of ensemble.state_dict()"
            )


def _room(x: Array, size: int) -> Tree:
    return snp.zeros((size, *x.shape), x.dtype)
