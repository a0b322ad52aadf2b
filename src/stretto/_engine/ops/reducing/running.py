"""All elements up to each along an axis, combined, in blocks.

Running reductions and linear recurrences are compiled to this.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.core.types import array_type
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.identities import optimization_barrier
from stretto._engine.ops.layout import reshape, squeeze
from stretto._engine.ops.reducing.cumulative import shift_by_one
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim

Values: TypeAlias = tuple[Any, ...]

_BLOCK = 16


def running(
    combine: Callable[[Values, Values], Sequence[Any]],
    identities: Values,
    values: Values,
    axis: int,
    reverse: bool,
) -> Values:
    """Combine all up to each along an axis, from the end if ``reverse``; the axis is not empty.

    ``combine`` is associative: it takes what was combined so far, and what follows; combined with
    ``identities`` as what was so far, anything is as it was.

    Within blocks of 16 one element after another, all blocks at once, and then over the blocks'
    totals in the same way: linear work, and a program whose length grows with the logarithm of the
    size. Each step of all blocks is a loop of its own over whole rows, which a block's doubling
    steps are not: these read and write it four times.
    """
    n = values[0].shape[axis]
    if n <= _BLOCK:
        return _in_turn(combine, values, axis, reverse)
    shape, blocks = values[0].shape, -(-n // _BLOCK)
    missing = blocks * _BLOCK - n
    ends = (missing, 0, 0) if reverse else (0, missing, 0)
    config = [ends if d == axis else (0, 0, 0) for d in range(len(shape))]
    split = (*shape[:axis], blocks, _BLOCK, *shape[axis + 1 :])
    parts = [reshape(pad(v, e, config), split) for v, e in zip(values, identities, strict=True)]
    within = axis + 1
    parts = _in_turn(combine, tuple(parts), within, reverse)
    last = 0 if reverse else _BLOCK - 1
    totals = tuple(squeeze(slice_in_dim(v, last, last + 1, axis=within), within) for v in parts)
    totals = running(combine, identities, totals, axis, reverse)
    dims = tuple(d for d in range(len(split)) if d != within)
    # Behind the barrier, so that XLA does not compute totals once for each element of a block.
    before = optimization_barrier(
        [shift_by_one(v, axis, reverse, e) for v, e in zip(totals, identities, strict=True)]
    )
    whole = (*shape[:axis], blocks * _BLOCK, *shape[axis + 1 :])
    outs = combine(tuple(broadcast_in_dim(v, split, dims) for v in before), parts)
    start = missing if reverse else 0
    return tuple(slice_in_dim(reshape(v, whole), start, start + n, axis=axis) for v in outs)


def _in_turn(
    combine: Callable[[Values, Values], Sequence[Any]], values: Values, axis: int, reverse: bool
) -> Values:
    """Write one element after another."""
    n = values[0].shape[axis]
    order = range(n)[::-1] if reverse else range(n)
    lines = [tuple(slice_in_dim(v, i, i + 1, axis=axis) for v in values) for i in order]
    outs = [lines[0]]
    for line in lines[1:]:
        outs.append(tuple(combine(outs[-1], line)))
    ordered = outs[::-1] if reverse else outs
    return tuple(concatenate(column, axis) for column in zip(*ordered, strict=True))


def in_a_loop(
    b: Any,
    combine: Callable[[Values, Values], Sequence[Any]],
    identities: Values,
    operands: Values,
    axis: int,
    reverse: bool,
) -> Values:
    """Write the same through a builder as a loop along the axis, whose size is not known."""
    shape = operands[0].type.shape
    counter, n = array_type((), np.dtype(np.int32)), shape[axis]
    sizes = (*shape[:axis], 1, *shape[axis + 1 :])
    count = len(operands)

    def step(i: Any, *state: Any) -> list[Any]:
        so_far, outs, xs = state[:count], state[count : 2 * count], state[2 * count :]
        at = i
        if reverse:
            last = b.scalar(n - 1, counter.dtype)
            at = b.emit("subtract", last, i, out=counter)
        zero = b.scalar(0, counter.dtype)
        starts = [at if d == axis else zero for d in range(len(shape))]
        here = [b.dynamic_slice(x, starts, sizes) for x in xs]
        both = lambda *values: combine(values[:count], values[count:])
        so_far = b.inline_many(both, *so_far, *here)
        outs = [b.dynamic_update_slice(o, v, starts) for o, v in zip(outs, so_far, strict=True)]
        return [b.emit("add", i, b.scalar(1, counter.dtype), out=counter), *so_far, *outs, *xs]

    first = [
        b.splat(e, array_type(sizes, x.type.dtype))
        for e, x in zip(identities, operands, strict=True)
    ]
    empty = [b.splat(0, x.type) for x in operands]
    start = [b.scalar(0, counter.dtype), *first, *empty, *operands]
    end = b.while_loop(lambda i, *_: [b.compare("LT", i, b.scalar(n, counter.dtype))], step, start)
    return tuple(end[1 + count : 1 + 2 * count])
