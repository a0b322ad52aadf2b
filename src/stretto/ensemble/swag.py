"""SWAG: a Gaussian over weights, from the path of a training run, whose samples are an ensemble."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core import tree as trees
from stretto._engine.core.lazy import brief
from stretto._engine.core.tree import register_dataclass, unflatten
from stretto._engine.core.types import is_complex, is_inexact
from stretto._engine.core.typing import ArrayLike, Key, Tree
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import dynamic_update_index_in_dim
from stretto.ensemble.averaging import begun, in_dtypes, moved
from stretto.numpy.arguments import weakly_inexact
from stretto.random.distributions import normal
from stretto.random.keys import split

__all__ = ["SWAG", "SWAGState"]


@brief
@register_dataclass
@dataclasses.dataclass(frozen=True)
class SWAGState:
    """The moments so far. ``squares`` and ``deviations`` have an entry for each leaf of floats."""

    count: Any
    """How many trees were taken, int32."""
    mean: Any
    """The mean tree; leaves of low precision in float32."""
    squares: tuple[Any, ...]
    """The sums of squared deviations from the mean."""
    deviations: tuple[Any, ...]
    """(rank, ...): the last deviations from the mean of their time, in any order."""
    dtypes: tuple[np.dtype, ...] = dataclasses.field(metadata={"static": True})
    """Of the leaves as they were given."""


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
        leaves, alike = begun(tree, "SWAG.init")
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
        mean = moved(state.mean, tree, 1 / count.astype(np.float32), "SWAG.update")
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
