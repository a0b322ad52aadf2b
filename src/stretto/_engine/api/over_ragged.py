"""``vmap`` over arrays of different lengths: one example of any size, all of them in one program.

Layer 7 (api). The function is traced for one example with a size that varies. The examples are put
into a rectangle of the bucket of their lengths, and the program for the bucket is mapped over it,
with a length for each. Next, read ``control/sized``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.api.arguments import as_values
from stretto._engine.api.ragged import Ragged, is_ragged, room_for
from stretto._engine.control.sized import SizedCall
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import Size, SizeVariable, size_of, size_variable
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.bucket import varying
from stretto._engine.ops.comparison import full, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, move_axis, move_to_front
from stretto._engine.ops.rows import examples_of_rows, to_rows
from stretto._engine.ops.shape import pad, slice_
from stretto._engine.transforms.packed import variable_of_rows

__all__ = ["vmap_ragged"]

_INT32 = np.dtype(np.int32)


def vmap_ragged(
    fun: Callable[..., Any], name: str, in_axes: Any, out_axes: Any, args: Any, kwargs: Any
) -> Any:
    """As ``vmap``, where an argument is ragged; results of the size of one are ragged, too.

    Raises ``NotImplementedError`` for results whose size varies along another axis than the first,
    and ``ValueError`` for numbers of examples that differ.
    """
    leaves, structure = tree.flatten((args, kwargs), is_ragged)
    shaped_args = tree.map(lambda _: 0, args, is_leaf=is_ragged)
    axes = tree.prefix_leaves(in_axes, shaped_args, "vmap", "in_axes")
    axes += [0] * (len(leaves) - len(axes))
    plain = [x if is_ragged(x) else as_value(x, f"vmap of {name}") for x in leaves]
    sizes: dict[SizeVariable, Ragged] = {}
    types: list[ArrayType] = []
    counts: set[int] = set()
    for x, axis in zip(plain, axes, strict=True):
        if is_ragged(x):
            if axis != 0:
                raise ValueError(f"vmap: a ragged array is mapped along axis 0, got {axis}")
            counts.add(len(x))
            shape = (_variable(x, sizes), *x._values.shape[1:])
            types.append(x._values.type.with_shape(shape))
        elif axis is None:
            types.append(x.type)
        else:
            a = canonical_axis(axis, x.ndim, "vmap")
            counts.add(x.shape[a])
            types.append(x.type.with_shape((*x.shape[:a], *x.shape[a + 1 :])))
    if len(counts) != 1:
        raise ValueError(f"vmap: the numbers of examples differ: {sorted(counts)}")
    (count,) = counts
    structure_out: Any = None

    def flat(*examples: Any) -> Any:
        nonlocal structure_out
        positional, named = tree.unflatten(structure, examples)
        outs, structure_out = tree.flatten(fun(*positional, **named))
        return as_values(outs, name, lambda: ["the result"] * len(outs)), None

    program, _, captured = record(flat, types, (), name)
    variables = tuple(sizes)
    most = tuple([x._most for x in sizes.values()])
    carriers = []
    rooms: dict[Any, int] = {v: x._values.shape[0] for v, x in sizes.items()}
    for x, type, axis in zip(plain, types, axes, strict=True):
        if is_ragged(x):
            carriers.append(_rows(x, rooms[variable_of_rows(type)]))
        else:
            carriers.append(x if axis is None else move_to_front(x, axis % x.ndim))
    mapped = [axis is not None for axis in axes]
    over = (*[True] * len(variables), *mapped, *[False] * len(captured))
    call = SizedCall(program, variables, most, (count,), (over,), tuple(rooms.values()))
    lengths = [x.lengths for x in sizes.values()]
    outs = call(*lengths, *carriers, *captured)
    shaped_outs = tree.unflatten(structure_out, [0] * len(outs))
    wanted = tree.prefix_leaves(out_axes, shaped_outs, "vmap", "out_axes")
    results = [
        _result(out, type, sizes, call, axis)
        for out, type, axis in zip(outs, program.out_types, wanted, strict=True)
    ]
    return tree.unflatten(structure_out, results)


def _variable(x: Ragged, sizes: dict[SizeVariable, Ragged]) -> Size:
    """The size of one of its arrays: the same one for arrays of the same lengths."""
    for variable, other in sizes.items():
        if x._lengths is other._lengths or _equal(x._lengths, other._lengths):
            return size_of(variable)
    size = size_variable("nmklpq"[len(sizes)] if len(sizes) < 6 else f"n{len(sizes)}")
    sizes[next(size.variables())] = x
    return size


def _equal(one: Any, other: Any) -> bool:
    known = not (isinstance(one, Tracer) or isinstance(other, Tracer))
    return known and np.array_equal(np.asarray(one), np.asarray(other))


def _result(
    out: Any,
    type: ArrayType,
    sizes: dict[SizeVariable, Ragged],
    call: SizedCall,
    axis: Any,
) -> Any:
    """A result for all examples: ragged where its first axis varies."""
    axes = varying(type)
    if not axes:
        return out if axis == 0 else out[0] if axis is None else move_axis(out, 0, axis % out.ndim)
    if axes != [0] or axis != 0:
        raise NotImplementedError(
            f"vmap: a result of type {type} varies along axes {axes}, and a ragged array does "
            f"along its first alone: reduce it inside, or put the arguments into a rectangle, "
            f"ragged.pad(), and use a mask"
        )
    size: Any = type.shape[0]
    for v, x in sizes.items():
        if size == size_of(v):
            return Ragged._of(_cleared(out, x._lengths), x._lengths, x._most)
    lengths = _lengths(size, sizes)
    known = None if isinstance(lengths, Tracer) else np.asarray(lengths)
    if known is not None and (known < 1).any():
        raise NotImplementedError(
            f"vmap: a result of size {size} has no elements for example "
            f"{int(np.argmax(known < 1))}, and the arrays of a ragged one have at least one"
        )
    bound = call.bucket.bound(size)
    room = len(lengths) * bound if known is None else room_for(int(known.sum()))
    rows = to_rows(out, lengths, examples_of_rows(lengths, room))
    return Ragged._of(_cleared(rows, lengths), lengths, bound)


def _rows(x: Ragged, room: int) -> Any:
    """The elements of all arrays, with so much room; what is behind them counts for nothing."""
    values, have = x._values, x._values.shape[0]
    if have > room:
        values = slice_(values, (0,) * values.ndim, (room, *values.shape[1:]))
    elif have < room:
        config = [(0, room - have, 0), *[(0, 0, 0)] * (values.ndim - 1)]
        values = pad(values, full((), 0, values.dtype), config)
    return _cleared(values, x._lengths)


def _cleared(rows: Any, lengths: Any) -> Any:
    """The rows, and 0 in those behind the last array, so that these have no derivative either."""
    total = broadcast_in_dim(reduce_sum(lengths, (0,)), rows.shape, ())
    inside = lt(broadcasted_iota(_INT32, rows.shape, 0), total)
    return select(inside, rows, full(rows.shape, 0, rows.dtype, rows.type.weak_type))


def _lengths(size: Size, sizes: dict[SizeVariable, Ragged]) -> Any:
    """The lengths of results of this size."""
    values = {v: x.lengths for v, x in sizes.items()}
    total = size.at(values.__getitem__, lambda n, by: n // by, lambda n: maximum(n, 0))
    return convert(as_value(total), _INT32)
