"""Gathers by a kernel of our own: whether one can be, and how its operands lie in memory.

A kernel sees the result of a gather axis by axis, each with its stride in the table and in the
indices (``kernels/gather.h``), one of which is 0 unless both are batched. So windows of any axes,
tables and indices of members, and transposed tables are one form.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import NamedTuple

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.fused_gather import FusedGather
from stretto._engine.ops.product_strides import View, merged

TARGET = "stretto_gather"
"""The name of the kernel."""

_AXES = _COMPONENTS = 4
_KINDS = {"sum": 1, "weighted": 1, "greatest": 2}
_LEAST_BYTES = 64
"""The bytes of a run of which bags are summed: those of the widest vectors."""
_SINGLE = (4, 8)
"""The bytes of elements that are read one by one."""


class _Axis(NamedTuple):
    """An axis of the result: its size, and strides in table, indices, weights and counts."""

    size: int
    table: int
    index: int
    weight: int = 0
    kept: int = 0


def geometry(
    op: FusedGather, x: ArrayType, table: View, indices: View, *beside: View
) -> tuple[int, ...] | None:
    """Return what a kernel is told of a gather, or of a bag; None if XLA is to compute it.

    Args:
        op: the operation.
        x: the type of its operand.
        table: how that lies.
        indices: how the indices lie, along a further axis where they are vectors.
        beside: how the weights of a bag lie, and what says which rows count.
    """
    gather, bag, numbers = op.gather, op.bag, op.gather.dimension_numbers
    moved, summed = numbers.start_index_map, bag.axes if bag else ()
    weighted, counts = bool(bag and bag.kind == "weighted"), bool(bag and bag.counts)
    more = [beside[0] if weighted else None, beside[-1] if counts else None]
    axes = _axes(op, table, indices, more)
    one = _Axis(1, 0, 0)
    lead = merged([axis for d, axis in enumerate(axes) if d not in summed])
    run = lead.pop() if lead and lead[-1][1:] == (1, 0, 0, 0) else one
    terms = merged([axes[d] for d in summed]) or [one]
    if len(terms) > 1 or len(lead) > _AXES or len(moved) > _COMPONENTS:
        return None
    size = x.dtype.itemsize
    if run.size * size < _LEAST_BYTES if bag else run.size == 1 and size not in _SINGLE:
        return None
    lead = [*[one] * (_AXES - len(lead)), *lead]
    known = [k for k, _ in op.counting]
    sought = [a for k, a in enumerate(moved) if k not in known]
    missing = [0] * (_COMPONENTS - len(sought))
    fills = gather.mode == "fill" and bool(sought)
    fill = (gather.fill if fills else b"").ljust(16, b"\0")
    told = [_KINDS[bag.kind] if bag else 0, terms[0].size, run.size, size, int(fills)]
    told += [_integer(fill[:8]), _integer(fill[8:])]
    told += [len(sought), indices.strides[-1] if op.vectors else 0]
    told += [*[table.strides[a] for a in sought], *missing]
    told += [*[table.shape[a] - gather.slice_sizes[a] for a in sought], *missing]
    told += [*[table.shape[a] if op.wraps else 0 for a in sought], *missing]
    divisor = bag.divisor if bag and bag.divisor is not None else None
    told += [int(divisor is not None), _integer(struct.pack("<d", divisor or 0.0))]
    for each in zip(*lead, strict=True):
        told += each
    return (*told, *terms[0][1:], int(weighted), int(counts))


def _axes(
    op: FusedGather, table: View, indices: View, beside: Sequence[View | None]
) -> list[_Axis]:
    """Return the axes of the gather, before any are summed."""
    numbers, sizes = op.gather.dimension_numbers, op.gather.slice_sizes
    omitted = (*numbers.collapsed_slice_dims, *numbers.operand_batching_dims)
    window = iter([a for a in range(len(table.shape)) if a not in omitted])
    pairs = zip(numbers.start_indices_batching_dims, numbers.operand_batching_dims, strict=True)
    steps = {i: table.strides[a] for i, a in pairs}
    for k, i in op.counting:
        steps[i] = steps.get(i, 0) + table.strides[numbers.start_index_map[k]]
    rank = len(numbers.offset_dims) + len(indices.shape) - op.vectors
    place = iter(range(len(indices.shape)))
    axes: list[_Axis] = []
    for d in range(rank):
        if d in numbers.offset_dims:
            a = next(window)
            size, strides = sizes[a], (table.strides[a], 0)
        else:
            i = next(place)
            size, strides = indices.shape[i], (steps.get(i, 0), indices.strides[i])
        axes.append(
            _Axis(size, *strides, *[0 if view is None else view.strides[d] for view in beside])
        )
    return axes


def _integer(data: bytes) -> int:
    return int.from_bytes(data, "little", signed=True)
