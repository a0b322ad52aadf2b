"""Averages of weights along a training run: ``EMA`` and ``SWA``.

Each has ``init``, ``update`` and ``value``; the state is a tree, so both work inside ``jit``,
``scan`` and ``vmap``.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.functions import described_like
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass, unflatten
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops.convert import convert
from stretto.tree.members import Alike
from stretto.tree.sums import of_column, widened

__all__ = ["EMA", "SWA", "AverageState"]


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class AverageState:
    """An average so far; the ``value`` of its averager gives the tree in its own dtypes."""

    count: Any
    """How many trees it has taken, int32."""
    left: Any
    """The weight that what it began with still has, float32."""
    average: Any
    """The tree; leaves of low precision in float32."""
    dtypes: tuple[np.dtype, ...] = dataclasses.field(metadata={"static": True})
    """Of the leaves as they were given."""


def begun(tree: Tree, caller: str) -> tuple[list[Any], Alike]:
    """The leaves of a tree as an average holds them: of low precision in float32, none weak."""
    alike = Alike(caller)
    return [convert(x, widened(x).dtype) for x in alike.row(tree, 0)], alike


def moved(average: Tree, tree: Tree, rate: float | Array, caller: str, number: int = 1) -> Tree:
    """``average + rate * (tree - average)``; integers and booleans are the tree's.

    Where the tree differs from the average, the error calls it member ``number``.
    """
    alike = Alike(caller)
    rows = zip(alike.row(average, 0), alike.row(tree, number), strict=True)
    leaves = [
        of_column([a, x], [1 - rate, rate]) if is_inexact(a.dtype) else convert(x, a.dtype)
        for a, x in rows
    ]
    return unflatten(alike.structure, leaves)


def in_dtypes(tree: Tree, dtypes: tuple[np.dtype, ...]) -> Tree:
    """The tree with its leaves in these dtypes."""
    alike = Alike("value")
    row = alike.row(tree, 0)
    return unflatten(
        alike.structure, [convert(x, dtype) for x, dtype in zip(row, dtypes, strict=True)]
    )


@dataclasses.dataclass(frozen=True)
class EMA:
    """The exponential moving average of weights: each ``update`` keeps ``decay`` of what was.

    It begins with the tree given to ``init``; with ``bias_correction`` with zeros instead, whose
    share ``value`` divides out, as Adam does, so that the first tree does not count for more than
    others. Leaves of low precision are kept in float32; integers and booleans are those of the last
    tree.

    Args:
        decay: the share of the average that an update keeps, from 0 to 1.
        bias_correction: begin with zeros, and correct for them.
        warm_up: let the decay be at most (1 + n) / (10 + n) after n updates, so that the beginning
            is soon forgotten.

    Raises:
        ValueError: ``decay`` is outside 0 to 1; or, in ``update``, a tree differs from the one
            before, with the path.

    Sources: Polyak and Juditsky, 1992; Kingma and Ba, "Adam", 2015 (section 3); TensorFlow's
    ``ExponentialMovingAverage`` (warm-up).

    >>> import stretto as st, stretto.numpy as snp
    >>> ema = st.ensemble.EMA(0.5)
    >>> state = ema.init({"w": snp.zeros(1)})
    >>> for w in (1.0, 2.0):
    ...     state = ema.update(state, {"w": snp.array([w])})
    >>> ema.value(state)
    {'w': Array([1.25], dtype=float32)}
    """

    decay: Any = 0.999
    bias_correction: bool = False
    warm_up: bool = False

    def __post_init__(self) -> None:
        if isinstance(self.decay, (int, float)) and not 0 <= self.decay <= 1:
            raise ValueError(f"EMA: decay must be between 0 and 1, got {self.decay}")

    def init(self, tree: Tree) -> AverageState:
        """Return the state before any update.

        Args:
            tree: a tree of arrays, the weights to begin with.

        Returns:
            The state.
        """
        leaves, alike = begun(tree, "EMA.init")
        if self.bias_correction:
            leaves = [snp.zeros_like(x) if is_inexact(x.dtype) else x for x in leaves]
        dtypes = tuple([type.dtype for type in alike.types])
        average = unflatten(alike.structure, leaves)
        return AverageState(snp.zeros((), np.int32), snp.ones((), np.float32), average, dtypes)

    def update(self, state: AverageState, tree: Tree) -> AverageState:
        """Return the state after one more tree.

        Args:
            state: the state before.
            tree: a tree of arrays like that given to ``init``.

        Returns:
            The new state.
        """
        decay = self.decay
        if self.warm_up:
            count = state.count.astype(np.float32)
            decay = snp.minimum(decay, (1 + count) / (10 + count))
        average = moved(state.average, tree, 1 - decay, "EMA.update")
        left = (state.left * decay).astype(np.float32)
        return AverageState(state.count + 1, left, average, state.dtypes)

    def value(self, state: AverageState) -> Tree:
        """Return the average, in the dtypes of the trees.

        Args:
            state: what ``init`` or ``update`` gave.

        Returns:
            A tree of arrays.
        """
        average = state.average
        if self.bias_correction:
            share = snp.where(state.count > 0, 1 - state.left, 1)
            alike = Alike("EMA.value")
            row = alike.row(average, 0)
            leaves = [x / share if is_inexact(x.dtype) else x for x in row]
            average = unflatten(alike.structure, leaves)
        return in_dtypes(average, state.dtypes)


@dataclasses.dataclass(frozen=True)
class SWA:
    """Stochastic weight averaging: the mean of all trees given to ``update``.

    They are taken from the end of a run, at a constant or cyclic learning rate, once an epoch or a
    cycle; before the average is used, a model with batch normalization needs
    ``update_batch_norm``. Leaves of low precision are kept in float32; integers and booleans are
    those of the last tree.

    Raises:
        ValueError: in ``update``, a tree differs from the one before, with the path.

    Source: Izmailov et al., "Averaging weights leads to wider optima and better generalization",
    2018.

    >>> import stretto as st, stretto.numpy as snp
    >>> swa = st.ensemble.SWA()
    >>> state = swa.init({"w": snp.zeros(1)})
    >>> for w in (1.0, 2.0, 6.0):
    ...     state = swa.update(state, {"w": snp.array([w])})
    >>> swa.value(state), int(state.count)
    ({'w': Array([3.], dtype=float32)}, 3)
    """

    def init(self, tree: Tree) -> AverageState:
        """Return the state before any update, whose value is the tree itself.

        Args:
            tree: a tree of arrays.

        Returns:
            The state.
        """
        leaves, alike = begun(tree, "SWA.init")
        dtypes = tuple([type.dtype for type in alike.types])
        average = unflatten(alike.structure, leaves)
        return AverageState(snp.zeros((), np.int32), snp.ones((), np.float32), average, dtypes)

    @described_like(EMA.update)
    def update(self, state: AverageState, tree: Tree) -> AverageState:
        """Return the state after one more tree."""
        count = state.count + 1
        average = moved(state.average, tree, 1 / count.astype(np.float32), "SWA.update")
        return AverageState(count, snp.zeros_like(state.left), average, state.dtypes)

    @described_like(EMA.value)
    def value(self, state: AverageState) -> Tree:
        """Return the mean, in the dtypes of the trees."""
        return in_dtypes(state.average, state.dtypes)
