"""What masks select, where its size depends on their values: see ``stretto.torch.selections``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import (
    Size,
    SizeVariable,
    at_least,
    at_most,
    greater,
    known_sizes,
    size_of,
    varying_sizes,
)
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.sized import SizedCall
from stretto.numpy.unique import starts_of_runs
from stretto.torch.table.indexing import readable

__all__ = ["TABLE"]


def _selected(
    part: Callable[..., Any], masks: Sequence[Any], free: Sequence[Any], some: Sequence[bool]
) -> Any:
    """The results of a part, for the places of the true elements of each mask.

    ``some`` says of which masks an element is true wherever they have any. With the numbers of true
    elements known, the places are as many as that. Otherwise there is one for each element of a
    mask, and their number is a size that varies.
    """
    flat = [(mask != 0).reshape(-1) for mask in masks]
    if not any([isinstance(x, Tracer) for x in flat]):
        return tuple(part(*[np.flatnonzero(np.asarray(x)) for x in flat], *free))
    most = [at_most(x.shape[0]) for x in flat]
    if any(map(math.isinf, most)):
        raise SizeError(
            "what a mask selects is bounded by its size, which is known only while the program "
            "runs: call the module without dynamic_axes, and outside of vmap over ragged arrays"
        )
    bounds = [int(n) for n in most]
    counts = [snp.sum(x, dtype=np.int32) for x in flat]
    places = [_room(snp.argsort(~x, stable=True).astype(np.int32), n) for x, n in zip(flat, bounds)]
    with varying_sizes() as mark:
        least = [min(at_least(x.shape[0]), s) for x, s in zip(flat, some, strict=True)]
        variables = [
            SizeVariable(f"u{k}{mark}", *span) for k, span in enumerate(zip(least, bounds))
        ]
    sizes: list[Any] = [size_of(v) for v in variables]
    types = [x.type.with_shape((n,)) for x, n in zip(places, sizes, strict=True)]

    def flat_part(*own: Any) -> tuple[list[Any], None]:
        return [as_value(x, "from_torch") for x in part(*own, *free)], None

    try:
        with varying_sizes(), known_sizes(None, of_examples=True):
            program, _, captured = record(flat_part, types, (), "selected")
    except SizeError as error:
        error.add_note(
            "How many elements a mask selects, or how many are distinct, is known only while "
            "compiled code runs, and a mask may select none: call the imported module outside of "
            "it, or compute with torch.where(mask, x, value), which has the mask's size."
        )
        raise
    for type in program.out_types:
        if _sizes_in(type) & set(variables):
            raise SizeError(
                f"a result of the imported module is {type}, whose size depends on the values of "
                f"a mask, or on how many elements are distinct: call the module outside of "
                f"compiled code, where they are known, or let it give what has a fixed size, such "
                f"as torch.where(mask, x, 0), torch.unique(x, return_inverse=True)[1], or "
                f"pad_packed_sequence(…, total_length=…)"
            )
    call = SizedCall(program, tuple(variables), tuple([max(n, 1) for n in bounds]))
    return tuple(call(*counts, *places, *captured))


def _room(x: Any, most: int) -> Any:
    """A vector at the beginning of one of so many elements."""
    return x if x.shape[0] == most else snp.concatenate([x, snp.zeros(most - x.shape[0], x.dtype)])


def _sizes_in(type: ArrayType) -> set[SizeVariable]:
    """The variables of which the sizes of a type depend."""
    return {v for n in type.shape if isinstance(n, Size) for v in n.variables()}


def _nonzero(places: Any, mask: Any) -> Any:
    if not mask.ndim:
        return snp.zeros((places.shape[0], 0), snp.int32)
    return snp.stack(_unravelled(places, mask.shape), -1)


def _unravelled(places: Any, shape: Sequence[int]) -> list[Any]:
    """The indices along each axis of places in an array that is laid out in rows."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [
        places // snp.asarray(greater(s, 1)) % snp.asarray(greater(n, 1))
        for s, n in zip(strides, shape, strict=True)
    ]


def _index(places: Any, x: Any, indices: Sequence[Any]) -> Any:
    """``x[..., mask, ...]``, where the mask may be one of several indices."""
    found: list[Any] = []
    for index in indices:
        if index is None:
            found.append(slice(None))
        elif isinstance(index, Value) and index.dtype.kind == "b":
            found += _unravelled(places, index.shape)
        else:
            found.append(index)
    for axis, index in enumerate(found):
        if isinstance(index, Value):
            x, found[axis] = readable(x, axis, index)
    return x[tuple(found)]


def _masked_select(places: Any, x: Any, mask: Any) -> Any:
    values, shaped = snp.broadcast_arrays(x, mask)
    if shaped.shape != mask.shape:
        raise NotImplementedError(
            f"masked_select: a mask of shape {mask.shape} for a tensor of shape {x.shape}: "
            f"expand the mask to the tensor's shape, mask.expand_as(x)"
        )
    return snp.take(*readable(values.reshape(-1), 0, places))


# What is distinct


def _runs(x: Any, axis: int | None, is_sorted: bool) -> tuple[Any, Any, Any]:
    """Give where runs of equal elements or slices begin, their order, and the run of each.

    They are in ascending order, or in that of ``x``. NaN is equal to nothing.
    """
    parts = x.reshape(-1) if axis is None else snp.moveaxis(x, axis, 0)
    n = parts.shape[0]
    order = snp.arange(n)
    if is_sorted:
        width = math.prod(parts.shape[1:])
        rows = parts.reshape(n, width)
        order = snp.lexsort([rows[:, k] for k in reversed(range(width))]) if width else order
    begins = starts_of_runs(snp.take(*readable(parts, 0, order), 0), equal_nan=False)
    number = snp.cumsum(begins.astype(snp.int32)) - 1
    inverse = number if not is_sorted else snp.zeros_like(number).at[order].set(number)
    return begins, order, inverse.reshape(x.shape) if axis is None else inverse


def _distinct(x: Any, axis: int | None, order: Any, places: Any) -> Any:
    """Give the first element or slice of each run."""
    first = snp.take(*readable(order, 0, places[:, 0]))
    parts = x.reshape(-1) if axis is None else x
    return snp.take(*readable(parts, axis or 0, first), axis or 0)


def _counts(inverse: Any, places: Any) -> Any:
    """Give how long each run is."""
    return snp.zeros(places.shape[0], snp.int32).at[inverse.reshape(-1)].add(1)


TABLE: dict[str, Callable[..., Any]] = {
    "stretto.counts": _counts,
    "stretto.distinct": _distinct,
    "stretto.index.Tensor": _index,
    "stretto.masked_select.default": _masked_select,
    "stretto.nonzero.default": _nonzero,
    "stretto.runs": _runs,
    "stretto.selected": _selected,
}
