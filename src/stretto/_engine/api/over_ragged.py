"""``vmap`` over arrays of different lengths: one example of any size, all of them in one program.

Layer 7 (api). The function is traced for one example with a size that varies. The examples are put
into a rectangle of the bucket of their lengths, and the program for the bucket is mapped over it,
with a length for each. Next, read ``control/sized``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.api.arguments import as_values
from stretto._engine.api.lengths import same_lengths
from stretto._engine.api.ragged import Ragged, is_ragged, room_for
from stretto._engine.control.sized import SizedCall
from stretto._engine.core import tree
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import Size, SizeVariable, known_sizes, size_of, varying_sizes
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.bucket import varying
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import canonical_axis, move_axis, move_to_front

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
    axes = _axes(in_axes, args, len(leaves))
    # One that all examples share is captured, like what the function closes over.
    moving = [i for i, x in enumerate(leaves) if not (is_ragged(x) and axes[i] is None)]
    axes = [axes[i] for i in moving]
    plain = [
        x if is_ragged(x) else as_value(x, f"vmap of {name}") for x in [leaves[i] for i in moving]
    ]
    structure_out: Any = None

    def flat(*examples: Any) -> Any:
        nonlocal structure_out
        filled = list(leaves)
        for i, x in zip(moving, examples, strict=True):
            filled[i] = x
        positional, named = tree.unflatten(structure, filled)
        outs, structure_out = tree.flatten(fun(*positional, **named))
        return as_values(outs, name, lambda: ["the result"] * len(outs)), None

    sizes: dict[SizeVariable, Ragged] = {}
    with varying_sizes() as mark:
        types, count = _examples(plain, axes, sizes, mark)
        with known_sizes(_known(sizes)) as guards:
            program, _, captured = record(flat, types, (), name)
    variables = tuple(sizes)
    most = {v: int(min([x._most, *[g.most(v) for g in guards]])) for v, x in sizes.items()}
    carriers = []
    for x, axis, type in zip(plain, axes, types, strict=True):
        if is_ragged(x):
            size: Any = type.shape[0]
            carriers.append(x._rectangle(most[next(size.variables())]))
        else:
            carriers.append(x if axis is None else move_to_front(x, axis % x.ndim))
    mapped = [axis is not None for axis in axes]
    over = (*[True] * len(variables), *mapped, *[False] * len(captured))
    call = SizedCall(program, variables, tuple(most.values()), (count,), (over,))
    lengths = [x.lengths for x in sizes.values()]
    outs = call(*lengths, *carriers, *captured)
    shaped_outs = tree.unflatten(structure_out, [0] * len(outs))
    wanted = tree.prefix_leaves(out_axes, shaped_outs, "vmap", "out_axes")
    results = [
        _result(out, type, sizes, call, axis)
        for out, type, axis in zip(outs, program.out_types, wanted, strict=True)
    ]
    return tree.unflatten(structure_out, results)


def _examples(
    plain: Sequence[Any], axes: Sequence[Any], sizes: dict[SizeVariable, Ragged], mark: str
) -> tuple[list[ArrayType], int]:
    """The types of one example, and how many there are; the variables are put into ``sizes``."""
    types: list[ArrayType] = []
    counts: set[int] = set()
    for x, axis in zip(plain, axes, strict=True):
        if is_ragged(x):
            if axis != 0:
                raise ValueError(f"vmap: a ragged array is mapped along axis 0, got {axis}")
            counts.add(len(x))
            size = size_of(_variable(x, sizes, mark))
            types.append(x._values.type.with_shape((size, *x._inner)))
        elif axis is None:
            types.append(x.type)
        else:
            a = canonical_axis(axis, x.ndim, "vmap")
            counts.add(x.shape[a])
            types.append(x.type.with_shape((*x.shape[:a], *x.shape[a + 1 :])))
    if len(counts) != 1:
        raise ValueError(f"vmap: the numbers of examples differ: {sorted(counts)}")
    (count,) = counts
    return types, count


def _axes(in_axes: Any, args: Any, count: int) -> list[Any]:
    """The axis of each leaf, a ragged array being one; keyword arguments are mapped along 0."""
    leaves = tree.map(lambda _: 0, args, is_leaf=is_ragged)
    axes = tree.prefix_leaves(in_axes, leaves, "vmap", "in_axes")
    return axes + [0] * (count - len(axes))


def _known(sizes: dict[SizeVariable, Ragged]) -> list[dict[SizeVariable, int]] | None:
    """The sizes of the examples that differ, if they are known."""
    lengths = [x.lengths for x in sizes.values()]
    if any([isinstance(x, Tracer) for x in lengths]):
        return None
    rows = sorted(set(zip(*[np.asarray(x).tolist() for x in lengths], strict=True)))
    return [dict(zip(sizes, row, strict=True)) for row in rows]


def _variable(x: Ragged, sizes: dict[SizeVariable, Ragged], mark: str) -> SizeVariable:
    """The size of one of its arrays: the same one for arrays of the same lengths."""
    for variable, other in sizes.items():
        if same_lengths(x._lengths, other._lengths):
            return variable
    name = "nmklpq"[len(sizes)] if len(sizes) < 6 else f"n{len(sizes)}"
    variable = SizeVariable(name + mark)
    sizes[variable] = x
    return variable


def _result(
    out: Any,
    type: ArrayType,
    sizes: dict[SizeVariable, Ragged],
    call: SizedCall,
    axis: Any,
) -> Any:
    """A result for all examples: ragged where its first axis varies."""
    shape: Any = type.shape
    axes = [a for a in varying(type) if any([v in sizes for v in shape[a].variables()])]
    if not axes:
        return out if axis == 0 else out[0] if axis is None else move_axis(out, 0, axis % out.ndim)
    if axes != [0] or axis != 0:
        raise NotImplementedError(
            f"vmap: a result of type {type} varies along axes {axes}, and a ragged array does "
            f"along its first alone: reduce it inside, or put the arguments into a rectangle, "
            f"ragged.pad(), and use a mask"
        )
    size: Any = type.shape[0]
    same = [x for v, x in sizes.items() if size == size_of(v)]
    bound = call.bucket.bound(size)
    if same:
        lengths, room = same[0]._lengths, same[0]._room
    else:
        lengths = _lengths(size, sizes)
        known = None if isinstance(lengths, Tracer) else np.asarray(lengths)
        if known is not None and (known < 1).any():
            raise NotImplementedError(
                f"vmap: a result of size {size} has no elements for example "
                f"{int(np.argmax(known < 1))}, and the arrays of a ragged one have at least one"
            )
        room = len(lengths) * bound if known is None else room_for(int(known.sum()))
    return Ragged._of(out, lengths, bound, True)._packed(room)


def _lengths(size: Size, sizes: dict[SizeVariable, Ragged]) -> Any:
    """The lengths of results of this size."""
    values = {v: x.lengths for v, x in sizes.items()}
    total = size.at(values.__getitem__, lambda n, by: n // by, lambda n: maximum(n, 0))
    return convert(as_value(total), _INT32)
