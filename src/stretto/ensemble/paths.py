"""Paths between models in weight space, and the barrier on them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import stretto.numpy as snp
from stretto import tree
from stretto._engine.core.typing import Array, Tree

__all__ = ["Barrier", "barrier"]


class Barrier(NamedTuple):
    """Losses along the path between two models."""

    weights: Array
    """(points,): how much of the second model, from 0 to 1."""
    losses: Array
    """(points,): at each point."""
    height: Array
    """(): the most that a loss exceeds the line between the losses of the ends; 0 if none does."""


def barrier(
    loss: Callable[[Any], Any],
    start: Tree,
    end: Tree,
    points: int = 11,
    *,
    path: Callable[[Any, Any, Any], Any] = tree.lerp,
) -> Barrier:
    """The loss along the path between two models, and the height of its barrier.

    height = max over α of loss(path(α)) − (1 − α) loss(start) − α loss(end), at least 0. Without a
    barrier the models are linearly connected, and their average is worth trying. The points are run
    one after the other.

    Args:
        loss: a function from a tree to a number; models with batch normalization should recompute
            their statistics in it (``update_batch_norm``).
        start: a tree of arrays.
        end: a tree of arrays like ``start``.
        points: on the path, both ends included.
        path: ``path(start, end, α)``, such as ``tree.lerp`` or ``tree.slerp``.

    Returns:
        A ``Barrier``: the weights of the points, the losses there, and the height.

    Raises:
        ValueError: there are fewer than 2 points, the loss is not one number, or the trees differ.

    Sources: Frankle et al., "Linear mode connectivity and the lottery ticket hypothesis", 2020;
    Entezari et al., "The role of permutation invariance in linear mode connectivity of neural
    networks", 2022 (the height).

    >>> import stretto as st, stretto.numpy as snp
    >>> loss = lambda p: (p["w"] ** 2 - 1) ** 2  # the least at -1 and 1
    >>> found = st.ensemble.barrier(loss, {"w": snp.float32(-1)}, {"w": snp.float32(1)}, points=3)
    >>> found.losses, found.height
    (Array([0., 1., 0.], dtype=float32), Array(1., dtype=float32))
    """
    if points < 2:
        raise ValueError(f"barrier: expected at least 2 points, got {points}")
    weights = [i / (points - 1) for i in range(points)]
    losses = snp.stack([snp.asarray(loss(path(start, end, w))) for w in weights])
    if losses.ndim != 1:
        raise ValueError(f"barrier: loss must give one number, got {losses.shape[1:]}")
    along = snp.array(weights)
    excess = losses - (1 - along) * losses[0] - along * losses[-1]
    return Barrier(along, losses, snp.maximum(snp.max(excess), 0))
