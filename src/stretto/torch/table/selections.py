"""What masks select, where its size depends on their values: see ``stretto.torch.selections``."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.control.sized import SizedCall
from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import SizeVariable, known_sizes, size_of, varying_sizes
from stretto._engine.ops.bucket import varying

__all__ = ["TABLE"]


def _selected(part: Callable[..., Any], masks: Sequence[Any], free: Sequence[Any]) -> Any:
    """The results of a part, for the places of the true elements of each mask.

    With the numbers of true elements known, the places are as many as that. Otherwise there is one
    for each element of a mask, and their number is a size that varies.
    """
    flat = [(mask != 0).reshape(-1) for mask in masks]
    if not any([isinstance(x, Tracer) for x in flat]):
        return tuple(part(*[np.flatnonzero(np.asarray(x)) for x in flat], *free))
    bounds = [x.shape[0] for x in flat]
    if not all([isinstance(n, int) for n in bounds]):
        raise SizeError(
            "what a mask selects is bounded by its size, which is known only while the program "
            "runs: call the module without dynamic_axes, and outside of vmap over ragged arrays"
        )
    counts = [snp.sum(x, dtype=np.int32) for x in flat]
    places = [snp.argsort(~x, stable=True).astype(np.int32) for x in flat]
    with varying_sizes() as mark:
        variables = [SizeVariable(f"u{k}{mark}", 0, n) for k, n in enumerate(bounds)]
    sizes: list[Any] = [size_of(v) for v in variables]
    types = [x.type.with_shape((n,)) for x, n in zip(places, sizes, strict=True)]

    def flat_part(*own: Any) -> tuple[list[Any], None]:
        return [as_value(x, "from_torch") for x in part(*own, *free)], None

    try:
        with varying_sizes(), known_sizes(None, of_examples=True):
            program, _, captured = record(flat_part, types, (), "selected")
    except SizeError as error:
        error.add_note(
            "How many elements a mask selects is known only while compiled code runs, and there "
            "may be none: call the imported module outside of it, or compute with "
            "torch.where(mask, x, value), which has the mask's size."
        )
        raise
    for type in program.out_types:
        if varying(type):
            raise SizeError(
                f"a result of the imported module is {type}, whose size depends on the values of "
                f"a mask: call the module outside of compiled code, where they are known, or let "
                f"give what has a fixed size, such as torch.where(mask, x, 0), or "
                f"pad_packed_sequence(…, total_length=…)"
            )
    call = SizedCall(program, tuple(variables), tuple([max(n, 1) for n in bounds]))
    return tuple(call(*counts, *places, *captured))


def _nonzero(places: Any, mask: Any) -> Any:
    if not mask.ndim:
        return snp.zeros((places.shape[0], 0), snp.int32)
    return snp.stack(_unravelled(places, mask.shape), -1)


def _unravelled(places: Any, shape: Sequence[int]) -> list[Any]:
    """The indices along each axis of places in an array that is laid out in rows."""
    strides = [math.prod(shape[k + 1 :]) for k in range(len(shape))]
    return [places // max(s, 1) % max(n, 1) for s, n in zip(strides, shape, strict=True)]


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
    return x[tuple(found)]


def _masked_select(places: Any, x: Any, mask: Any) -> Any:
    values, shaped = snp.broadcast_arrays(x, mask)
    if shaped.shape != mask.shape:
        raise NotImplementedError(
            f"masked_select: a mask of shape {mask.shape} for a tensor of shape {x.shape}: "
            f"expand the mask to the tensor's shape, mask.expand_as(x)"
        )
    return snp.take(values.reshape(-1), places)


TABLE: dict[str, Callable[..., Any]] = {
    "stretto.index.Tensor": _index,
    "stretto.masked_select.default": _masked_select,
    "stretto.nonzero.default": _nonzero,
    "stretto.selected": _selected,
}
