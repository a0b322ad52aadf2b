"""Averages of weights along a training run: ``EMA``, ``SWA``; and ``SWAG``, a Gaussian of weights.

Each has ``init``, ``update`` and ``value``; the state is a tree, so that all work inside ``jit``,
``scan`` and ``vmap``. The samples of SWAG's Gaussian are an ensemble.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core import tree as trees
from stretto._engine.core.functions import described_like
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass, unflatten
from stretto._engine.core.types import is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import dynamic_update_index_in_dim
from stretto.numpy.arguments import weakly_inexact
from stretto.random.distributions import normal
from stretto.random.keys import split
from stretto.tree.members import Alike
from stretto.tree.sums import of_column, widened

__all__ = ["EMA", "SWA", "SWAG", "AverageState", "SWAGState"]


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class AverageState:
    """An average so far; the ``value`` of its averager gives the tree in its own dtypes."""

    count: Any
    """The number of trees it has taken, int32."""
    left: Any
    """The weight that what it began with still has, float32."""
    average: Any
    """The tree; leaves of low precision in float32."""
    dtypes: tuple[np.dtype, ...] = dataclasses.field(metadata={"static": True})
    """The dtypes of the leaves as they were given."""


def begin_average(tree: Tree, caller: str) -> tuple[list[Any], Alike]:
    """Return a tree's leaves as an average holds them: of low precision in float32, none weak."""
    alike = Alike(caller)
    return [convert(x, widened(x).dtype) for x in alike.row(tree, 0)], alike


def move_average(
    average: Tree, tree: Tree, rate: float | Array, caller: str, number: int = 1
) -> Tree:
    """Return ``average + rate * (tree - average)``; integers and booleans are the tree's.

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
    """Return the tree with its leaves in these dtypes."""
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
        leaves, alike = begin_average(tree, "EMA.init")
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
        average = move_average(state.average, tree, 1 - decay, "EMA.update")
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
        leaves, alike = begin_average(tree, "SWA.init")
        dtypes = tuple([type.dtype for type in alike.types])
        average = unflatten(alike.structure, leaves)
        return AverageState(snp.zeros((), np.int32), snp.ones((), np.float32), average, dtypes)

    @described_like(EMA.update)
    def update(self, state: AverageState, tree: Tree) -> AverageState:
        """Return the state after one more tree."""
        count = state.count + 1
        average = move_average(state.average, tree, 1 / count.astype(np.float32), "SWA.update")
        return AverageState(count, snp.zeros_like(state.left), average, state.dtypes)

    @described_like(EMA.value)
    def value(self, state: AverageState) -> Tree:
        """Return the mean, in the dtypes of the trees."""
        return in_dtypes(state.average, state.dtypes)


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class SWAGState:
    """The moments so far. ``squares`` and ``deviations`` have an entry for each leaf of floats."""

    count: Any
    """The number of trees taken, int32."""
    mean: Any
    """The mean tree; leaves of low precision in float32."""
    squares: tuple[Any, ...]
    """The sums of squared deviations from the mean."""
    deviations: tuple[Any, ...]
    """(rank, ...): the last deviations from the mean of their time, in any order."""
    dtypes: tuple[np.dtype, ...] = dataclasses.field(metadata={"static": True})
    """The dtypes of the leaves as they were given."""


@dataclasses.dataclass(frozen=True)
class SWAG:
    """SWA-Gaussian: mean, diagonal and a covariance of low rank, from trees along a run.

    ``update`` is given trees as ``SWA`` is. ``sample`` draws from
    N(mean, scale · (Σ_diag + D Dᵀ / (K − 1)) / 2), where D holds the last K = ``rank`` deviations.
    The state takes the memory of ``rank`` + 2 trees of float32. Integers and booleans are those of
    the last tree. A sampled model with batch normalization needs ``update_batch_norm``.

    The spread is that of the path. It is the posterior's where plain SGD at a constant learning
    rate of about 2 B / (N h) goes around the least loss, with B of N examples in a batch and h the
    curvature of the mean negative log likelihood (Mandt et al., 2017), on batches drawn with
    replacement, and is collected once an epoch; the guide to ensembles shows it, and what else to
    choose. Of an ``Ensemble`` members are sampled together, with the same weights of the
    deviations.

    Args:
        rank: how many deviations to keep, at least 2.

    Raises:
        ValueError: ``rank`` is below 2; or, in ``update``, a tree differs from the one before, with
            the path.

    Source: Maddox et al., "A simple baseline for Bayesian uncertainty in deep learning", 2019.

    >>> import stretto as st, stretto.numpy as snp
    >>> swag = st.ensemble.SWAG(rank=3)
    >>> state = swag.init({"w": snp.zeros(2)})
    >>> for i in range(4):
    ...     state = swag.update(state, {"w": snp.array([i, 5.0])})
    >>> swag.mean(state)["w"], swag.variance(state)["w"]
    (Array([1.5, 5. ], dtype=float32), Array([1.25, 0.  ], dtype=float32))
    >>> keys = st.random.split(st.random.PRNGKey(0), 10)
    >>> members = st.vmap(lambda key: swag.sample(state, key))(keys)  # a stacked tree
    >>> members["w"].shape
    (10, 2)
    """

    rank: int = 20

    def __post_init__(self) -> None:
        if self.rank < 2:
            raise ValueError(f"SWAG: rank must be at least 2, got {self.rank}")

    def init(self, tree: Tree) -> SWAGState:
        """Return the state before any update.

        Args:
            tree: a tree of real arrays.

        Returns:
            The state.

        Raises:
            TypeError: a leaf is complex.
        """
        leaves, alike = begin_average(tree, "SWAG.init")
        for path, x in zip(trees.paths(tree, "tree"), leaves, strict=True):
            if is_complex(x.dtype):
                raise TypeError(f"SWAG.init: {path} is complex, {x.type}; split it into its parts")
        floats = [x for x in leaves if is_inexact(x.dtype)]
        return SWAGState(
            snp.zeros((), np.int32),
            unflatten(alike.structure, leaves),
            tuple([snp.zeros_like(x) for x in floats]),
            tuple([snp.zeros((self.rank, *x.shape), x.dtype) for x in floats]),
            tuple([type.dtype for type in alike.types]),
        )

    def update(self, state: SWAGState, tree: Tree) -> SWAGState:
        """Return the state after one more tree.

        Args:
            state: the state before.
            tree: a tree of arrays like that given to ``init``.

        Returns:
            The new state.
        """
        count = state.count + 1
        mean = move_average(state.mean, tree, 1 / count.astype(np.float32), "SWAG.update")
        place = state.count % self.rank
        squares, deviations = [], []
        for before, after, x, square, old in zip(
            _floats(state.mean), _floats(mean), _floats(tree), state.squares, state.deviations,
            strict=True,
        ):  # fmt: skip
            x = convert(x, after.dtype)
            # Welford: Σ (x − mean)² grows by (x − mean before) (x − mean after). The first tree
            # is its own mean.
            grown = square + (x - before) * (x - after)
            squares.append(snp.where(count > 1, grown, square))
            deviations.append(dynamic_update_index_in_dim(old, x - after, place, 0))
        return SWAGState(count, mean, tuple(squares), tuple(deviations), state.dtypes)

    def mean(self, state: SWAGState) -> Tree:
        """Return the mean tree, in the dtypes of the trees: what ``SWA`` gives.

        Args:
            state: what ``init`` or ``update`` gave.

        Returns:
            A tree of arrays.
        """
        return in_dtypes(state.mean, state.dtypes)

    def variance(self, state: SWAGState) -> Tree:
        """Return the variance of each weight.

        Args:
            state: what ``init`` or ``update`` gave.

        Returns:
            A tree of arrays, in at least float32; 0 for leaves that are not floats.
        """
        count = weakly_inexact(snp.maximum(state.count, 1))
        squares = iter(state.squares)
        return trees.map(
            lambda x: next(squares) / count if is_inexact(x.dtype) else snp.zeros_like(x),
            state.mean,
        )

    def sample(self, state: SWAGState, key: Key, scale: ArrayLike = 1.0) -> Tree:
        """Draw a tree from the Gaussian.

        Works under ``jit`` and ``vmap``: mapped over keys it gives a stacked tree, an ensemble.

        Args:
            state: what ``update`` gave.
            key: the key.
            scale: what the covariance is multiplied by.

        Returns:
            A tree of arrays in the dtypes of the trees.
        """
        flat, structure = trees.flatten(state.mean)
        each, common = split(key)
        keys = split(each, max(len(state.squares), 1))
        columns = snp.minimum(state.count, self.rank)
        others = weakly_inexact(2 * snp.maximum(columns - 1, 1))
        weights = normal(common, (self.rank,)) / snp.sqrt(others)
        doubled = weakly_inexact(2 * snp.maximum(state.count, 1))
        root = snp.sqrt(scale)
        drawn, place = [], 0
        for x in flat:
            if is_inexact(x.dtype):
                deviation = snp.sqrt(state.squares[place] / doubled)
                diagonal = deviation * normal(keys[place], x.shape, x.dtype)
                low_rank = snp.tensordot(weights.astype(x.dtype), state.deviations[place], 1)
                x = x + root * (diagonal + low_rank)
                place += 1
            drawn.append(x)
        return in_dtypes(unflatten(structure, drawn), state.dtypes)


def _floats(tree: Tree) -> list[Any]:
    return [x for x in map(snp.asarray, trees.leaves(tree)) if is_inexact(x.dtype)]
