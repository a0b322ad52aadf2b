"""Writes to parts of arrays, and reads of parts, as passes over loops see them.

A write gives its first operand with a part changed: what it changes, and how, is in its other
operands. ``passes/delay_writes`` and ``higher_order/fixed_sizes`` are the passes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.sizes import at_most
from stretto._engine.core.types import ArrayType, bytes_of, is_complex, kind_of
from stretto._engine.ops.arithmetic import add, multiply, subtract
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import eq, full, full_like, ge, le, select
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.gather_scatter import ScatterMax, ScatterMin, ScatterMul
from stretto._engine.ops.index.geometry import window_sizes
from stretto._engine.ops.index.primitives import (
    Gather,
    ScatterAdd,
    ScatterFamily,
    ScatterSet,
    ScatterSub,
)
from stretto._engine.ops.reducing.reduce import reduce_and
from stretto._engine.ops.shape import concatenate

WRITES = (ScatterFamily, DynamicUpdateSlice)
"""The primitives that give their first operand with a part changed."""

NEUTRAL = (ScatterAdd, ScatterMul)
"""The writes that change nothing, at any place, with the neutral element; they subtract, too."""

READS = (Gather, DynamicSlice)
"""The primitives that give a part of their first operand, at places that the others say."""


_BYTES = 1 << 10
_PART = 4


def large(array: ArrayType) -> bool:
    """Say whether it matters if an array is copied in each step of a loop: from 1 KiB on."""
    return not array.varies and bytes_of(array) >= _BYTES


def small_part(part: ArrayType, array: ArrayType) -> bool:
    """Say whether the array is large, and a part of it a quarter or less."""
    return large(array) and not part.varies and part.size * _PART <= array.size


def is_write(primitive: Any, array: ArrayType) -> bool:
    """Say whether a primitive changes a part of such an array, and could change nothing.

    A product with 1 changes complex infinities.
    """
    product = isinstance(primitive, ScatterMul) and is_complex(array.dtype)
    return isinstance(primitive, WRITES) and not product


def update_of(write: Any) -> int:
    """Say which operand of a write has the new values; the others say where they go."""
    return 1 if isinstance(write, DynamicUpdateSlice) else 2


def changes_nothing(write: Any, x: Any, *operands: Any) -> Any:
    """Return the update with which a write to ``x``, at the same places, changes nothing."""
    update = operands[update_of(write) - 1]
    if isinstance(write, ScatterMul):
        return full_like(update, 1)
    if isinstance(write, NEUTRAL):  # -0 + 0 is 0, and -0 - 0 and -0 + -0 are -0
        exact = isinstance(write, ScatterSub) or update.dtype.kind not in "fcV"
        return full_like(
            update, 0 if exact else complex(-0.0, -0.0) if is_complex(update.dtype) else -0.0
        )
    if isinstance(write, DynamicUpdateSlice):
        return DynamicSlice(update.shape)(x, *operands[1:])
    return write.read(x, *operands)


def sees_behind(read: Any, write: Any, types: Sequence[ArrayType], place: np.dtype) -> bool:
    """Say whether ``seen_behind`` knows what a read finds behind a write.

    ``types`` are those of the write's operands, ``place`` the dtype of the read's places. Windows
    must be alike, and equal or disjoint.
    """
    x = types[0]
    if isinstance(read, DynamicSlice):
        sizes = types[1].shape
        alike = isinstance(write, DynamicUpdateSlice) and read.sizes == sizes
        alike = alike and types[2].dtype == place
        return alike and all([m in (1, n) for m, n in zip(sizes, x.shape, strict=True)])
    if isinstance(write, DynamicUpdateSlice) or types[1].dtype != place:
        return False
    if kind_of(x.dtype) == "bool" and not isinstance(write, ScatterSet):
        return False
    numbers = write.dimension_numbers.gather()
    sizes = window_sizes(x, types[2], numbers)
    moved = numbers.start_index_map
    whole = [d for d in range(x.ndim) if d not in (*moved, *numbers.operand_batching_dims)]
    return (
        read.dimension_numbers == numbers
        and read.slice_sizes == sizes
        and at_most(math.prod(_apart(numbers, types[1]))) <= 1
        and all([sizes[d] == 1 for d in moved])
        and all([sizes[d] == x.shape[d] for d in whole])
    )


def _apart(numbers: Any, indices: ArrayType) -> list[int]:
    """Count the windows along the axes of the indices that go in step with no other."""
    batched = numbers.start_indices_batching_dims
    return [n for d, n in enumerate(indices.shape[:-1]) if d not in batched]


def seen_behind(
    read: Any, write: Any, x: Any, value: Any, places: Sequence[Any], operands: Sequence[Any]
) -> Any:
    """Return what a read gives of a write's result, from ``value``, what it gives of ``x``.

    ``places`` are the read's operands behind the first, ``operands`` those of the write.
    """
    update = operands[update_of(write) - 1]
    if isinstance(read, DynamicSlice):
        same = full((), True, np.dtype(bool))
        for n, m, here, there in zip(x.shape, update.shape, places, operands[1:], strict=True):
            if n != m:
                same = bitwise_and(same, eq(_inside(here, n - m), _inside(there, n - m)))
        return select(same, update, value)
    (here,), there = places, operands[0]
    line = (*here.shape[:-1], 1)
    lasts = [full(line, x.shape[d] - 1, here.dtype) for d in read.dimension_numbers.start_index_map]
    zero, last = full_like(here, 0), concatenate(lasts, here.ndim - 1)
    if read.mode == "clip":
        here = maximum(zero, minimum(here, last))
    if write.mode == "clip":
        there = maximum(zero, minimum(there, last))
    same = eq(here, there)
    if read.mode == "fill":
        same = bitwise_and(same, bitwise_and(ge(here, zero), le(here, last)))
    same = reduce_and(same, (same.ndim - 1,))
    offset = read.dimension_numbers.offset_dims
    others = [d for d in range(value.ndim) if d not in offset]
    mask = broadcast_in_dim(same, value.shape, others)
    return select(mask, _combined(write, value, update), value)


def _inside(start: Any, last: int) -> Any:
    """Return the start, moved so that the slice fits."""
    return maximum(minimum(start, full_like(start, last)), full_like(start, 0))


def _combined(write: Any, old: Any, new: Any) -> Any:
    """Return the elements that a write makes of the old ones and its update's."""
    if isinstance(write, ScatterSub):
        return subtract(old, new)
    for family, combine in (
        (ScatterAdd, add),
        (ScatterMul, multiply),
        (ScatterMin, minimum),
        (ScatterMax, maximum),
    ):
        if isinstance(write, family):
            return combine(old, new)
    return new
