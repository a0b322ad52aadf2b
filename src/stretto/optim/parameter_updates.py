"""Changing parameters: by updates, towards other parameters, from time to time."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

import stretto.numpy as snp
from stretto._engine.core import tree
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_float0
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.ops.convert import convert
from stretto.optim.base import Scalar
from stretto.optim.leaves import columns, running_mean, wide

__all__ = ["apply_updates", "incremental_update", "periodic_update"]

T = TypeVar("T")


def _in_place_of(
    caller: str, names: tuple[str, str], kept: Tree, other: Tree, f: Callable[[Array, Array], Array]
) -> Tree:
    """``f`` of each leaf of ``kept`` and ``other``, with the types of ``kept``."""
    (leaves, others), spec = columns(caller, dict(zip(names, (kept, other), strict=True)))
    news = []
    for x, y in zip(leaves, others, strict=True):
        if is_float0(y):  # the gradient of an integer
            news.append(x)
            continue
        value = as_value(x, caller, "a leaf")
        news.append(convert(f(value, as_value(y, caller, "a leaf")), value.dtype, value.weak_type))
    return tree.unflatten(spec, news)


def apply_updates(params: T, updates: Tree) -> T:
    """Add updates to parameters, leaf by leaf, in the dtypes of the parameters.

    Sums are computed in at least float32. A leaf whose update is float0, as the gradient of an
    integer is, stays.

    Args:
        params: a tree of arrays.
        updates: a tree like it.

    Returns:
        The new parameters.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> apply_updates({"w": snp.ones(2)}, {"w": snp.array([0.5, -0.5])})
    {'w': Array([1.5, 0.5], dtype=float32)}
    """
    added = lambda p, u: wide(p) + wide(u)
    return _in_place_of("apply_updates", ("params", "updates"), params, updates, added)


def incremental_update(new_tensors: T, old_tensors: T, step_size: Scalar) -> T:
    """Move a tree towards another: ``step_size · new + (1 − step_size) · old``.

    Args:
        new_tensors: a tree of arrays.
        old_tensors: a tree like it.
        step_size: the weight of the new tree.

    Returns:
        A tree in the dtypes of the old one: a moving mean.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> incremental_update({"w": snp.ones(1)}, {"w": snp.zeros(1)}, 0.25)
    {'w': Array([0.25], dtype=float32)}
    """
    mixed = lambda old, new: running_mean(step_size, wide(new), wide(old))
    names = ("old_tensors", "new_tensors")
    return _in_place_of("incremental_update", names, old_tensors, new_tensors, mixed)


def periodic_update(
    new_tensors: T, old_tensors: T, steps: ArrayLike, update_period: ArrayLike
) -> T:
    """Take the new tree every ``update_period`` steps, and keep the old one in between.

    Args:
        new_tensors: a tree of arrays.
        old_tensors: a tree like it.
        steps: how many were done.
        update_period: steps from one update to the next.

    Returns:
        A tree in the dtypes of the old one.

    Raises:
        ValueError: the trees or shapes differ, with the path.

    >>> import stretto.numpy as snp
    >>> [float(periodic_update(snp.ones(()), snp.zeros(()), t, 2)) for t in (1, 2)]
    [0.0, 1.0]
    """
    now = snp.mod(steps, update_period) == 0
    chosen = lambda old, new: snp.where(now, convert(new, old.dtype, old.weak_type), old)
    names = ("old_tensors", "new_tensors")
    return _in_place_of("periodic_update", names, old_tensors, new_tensors, chosen)
