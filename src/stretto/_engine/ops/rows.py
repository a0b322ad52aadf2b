"""Examples one behind the other, or in a rectangle: where each element is, and the way over.

The first axis of an array holds the elements of all examples, *rows*, in order, and maybe room
behind them; or the first axis is that of examples, and the second has room for the longest. What is
behind the end of an example, or behind the last, holds anything.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.ops.arithmetic import subtract
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.comparison import full, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.identities import optimization_barrier
from stretto._engine.ops.index.gather_scatter import gather, scatter_add
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.cumulative import cumsum

_INT32 = np.dtype(np.int32)
_COMPARED = 1 << 20
"""Up to so many comparisons, all at once, take less time than a running sum, step by step.

A barrier keeps XLA from making them again for each element that is gathered.
"""


def starts(lengths: Any) -> Any:
    """Return the row at which each example begins."""
    return subtract(_ends(lengths), lengths)


def examples_of_rows(lengths: Any, room: int) -> Any:
    """Give the example that each row is of; those behind the last are of one that is not there."""
    count = lengths.shape[0]
    ends = _ends(lengths)
    if count * room <= _COMPARED:  # how many examples end before
        shape = (room, count)
        over = lt(broadcast_in_dim(ends, shape, (1,)), broadcasted_iota(_INT32, shape, 0) + 1)
        return optimization_barrier(reduce_sum(convert(over, _INT32), (1,)))
    numbers = ScatterDimensionNumbers.of(GatherDimensionNumbers((), (0,), (0,)))
    zeros, ones = full((room,), 0, _INT32), full((count,), 1, _INT32)
    return cumsum(scatter_add(zeros, reshape(ends, (count, 1)), ones, numbers), 0)


def _ends(lengths: Any) -> Any:
    """Return the row behind the last of each example."""
    count = lengths.shape[0]
    if count * count > _COMPARED:
        return cumsum(lengths, 0)
    shape = (count, count)
    before = lt(broadcasted_iota(_INT32, shape, 1), broadcasted_iota(_INT32, shape, 0) + 1)
    every = broadcast_in_dim(lengths, shape, (1,))
    return optimization_barrier(reduce_sum(select(before, every, full(shape, 0, _INT32)), (1,)))


def for_each_row(x: Any, examples: Any) -> Any:
    """Return what an array has for each example, for each row."""
    return rows_at(x, examples)


def to_rectangle(rows: Any, lengths: Any, longest: int) -> Any:
    """Return rows as a rectangle, ``[example, place, ...]``."""
    shape = (lengths.shape[0], longest)
    place = broadcasted_iota(_INT32, shape, 1)
    first = broadcast_in_dim(starts(lengths), shape, (0,))
    return rows_at(rows, first + place)


def to_rows(x: Any, lengths: Any, examples: Any) -> Any:
    """Return a rectangle as rows, of which ``examples`` are those that they are of."""
    count, longest = x.shape[:2]
    # Row r of example e is element e longest + (r - starts[e]) of the rectangle.
    shift = broadcasted_iota(_INT32, (count,), 0) * longest - starts(lengths)
    row = broadcasted_iota(_INT32, examples.shape, 0)
    index = row + for_each_row(shift, examples)
    return rows_at(reshape(x, (count * longest, *x.shape[2:])), index)


def cleared(rows: Any, lengths: Any) -> Any:
    """Return the rows, with 0 in those behind the last example, which so have no derivative."""
    total = broadcast_in_dim(reduce_sum(lengths, (0,)), rows.shape, ())
    inside = lt(broadcasted_iota(_INT32, rows.shape, 0), total)
    return select(inside, rows, full(rows.shape, 0, rows.dtype, rows.type.weak_type))


def rows_at(x: Any, index: Any, mode: str = "clip") -> Any:
    """Elements along the first axis; those out of range by the mode of ``gather``."""
    batch = index.ndim
    numbers = GatherDimensionNumbers(tuple(range(batch, batch + x.ndim - 1)), (0,), (0,))
    places, sizes = reshape(index, (*index.shape, 1)), (1, *x.shape[1:])
    return gather(x, places, numbers, sizes, mode=mode, fill_value=0 if mode == "fill" else None)
