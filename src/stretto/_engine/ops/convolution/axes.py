"""Axes of a convolution's operands merged into others and split out again, and their order.

Groups and mapped examples lie inside the axes of features or of the batch.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.ops.layout import move_axis, reshape, transpose


def split_axis(x: Any, axis: int, outer: int) -> Any:
    """The axis as two, of sizes ``outer`` and the rest."""
    n = x.shape[axis]
    return reshape(x, (*x.shape[:axis], outer, n // outer, *x.shape[axis + 1 :]))


def merge(x: Any, source: int, target: int) -> Any:
    """The axis ``source`` joined, as the outer one, to what is axis ``target`` without it."""
    x = move_axis(x, source, target)
    shape = x.shape
    return reshape(x, (*shape[:target], shape[target] * shape[target + 1], *shape[target + 2 :]))


def merge_inside(x: Any, source: int, target: int, groups: int) -> Any:
    """As ``merge``, but within each of the ``groups`` that the target axis is made of."""
    if groups == 1:
        return merge(x, source, target)
    x = split_axis(move_axis(x, source, 0), target + 1, groups)
    return merge(merge(x, 0, target + 1), target, target)


def order_of(source: Sequence[int], target: Sequence[int]) -> tuple[int, ...]:
    """The permutation that moves all axes, ``source``, to the places ``target``."""
    axes = dict(zip(target, source, strict=True))
    return tuple(axes[place] for place in range(len(axes)))


def relaid(x: Any, source: Sequence[int], target: Sequence[int]) -> Any:
    """The array with all its axes, ``source``, moved to the places ``target``."""
    return transpose(x, order_of(source, target))
