"""States of optimizers, and parameters, split over the axis that also splits the data.

Every device would have them all otherwise: the states of Adam are twice as large as the parameters.
Split, each device updates its part of every array, and the parts of all are put together: before
the next step, or after this one. An array is split along its first axis that can be split evenly;
one without such an axis stays whole. Source: Rajbhandari et al., "ZeRO: Memory optimizations toward
training trillion parameter models", 2020 (stages 1 and 3).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.api.graph import ShapeDtypeStruct, make_graph
from stretto._engine.core import tree
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.program import Atom, Program
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.family import Call
from stretto._engine.ops import collective
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim
from stretto.ensemble.over_mesh import OverMesh
from stretto.optim.base import GradientTransformationExtraArgs


def _axis(shape: Sequence[int], parts: int) -> int | None:
    """The first axis after that of the members that can be split so; ``None`` if there is none."""
    if not math.prod(shape):
        return None  # nothing to split
    return next((i for i, n in enumerate(shape) if i and n % parts == 0), None)


def spec_of(over: OverMesh, x: ArrayLike) -> PartitionSpec:
    """How an array with the members along axis 0 is split, over both axes of the mesh."""
    axis = _axis(np.shape(x), over.data_parts)
    if axis is None:
        return over.rows
    return PartitionSpec(over.members, *[None] * (axis - 1), over.data)


def part_of(over: OverMesh, x: Array, part: Array | int) -> Array:
    """The part of a whole array that one device has."""
    axis = _axis(x.shape, over.data_parts)
    if axis is None:
        return x
    size = x.shape[axis] // over.data_parts
    return dynamic_slice_in_dim(x, part * size, size, axis)


def gathered(
    over: OverMesh, parts: Mapping[str, Array], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Array]:
    """The whole arrays, of these shapes, from the parts of all devices: a collective for a dtype.

    Args:
        over: the mesh, and what splits what.
        parts: by name, those of this device.
        shapes: by name, those of the whole arrays of one member.
    """
    whole = dict(parts)
    split = [n for n in parts if tuple(shapes[n]) != parts[n].shape[1:]]
    for dtype in sorted({parts[n].dtype for n in split}, key=str):
        names = [n for n in split if parts[n].dtype == dtype]
        flat = snp.concatenate([parts[n].reshape(-1) for n in names])
        rows = collective.functions.all_gather(flat, over.data)
        start = 0
        for n in names:
            shape = parts[n].shape
            full = (shape[0], *shapes[n])
            axis = next(i for i, size in enumerate(shape) if size != full[i])
            size = math.prod(shape)
            of_all = rows[:, start : start + size].reshape(len(rows), *shape)
            whole[n] = snp.moveaxis(of_all, 0, axis).reshape(full)
            start += size
    return whole


def check_elementwise(
    optimizer: GradientTransformationExtraArgs, own: Mapping[str, Any], state: Tree, losses: Tree
) -> None:
    """Raise ``ValueError`` for an optimizer that needs whole arrays.

    Args:
        optimizer: the transformation of all members.
        own: what it updates, or the types of that.
        state: its state, or the types of that.
        losses: those of the members, or their type.
    """

    def update(grads: Tree, state: Tree, own: Tree, losses: Array) -> Tree:
        return optimizer.update(grads, state, own, value=losses)

    types = tree.map(lambda x: ShapeDtypeStruct(np.shape(x), x.dtype), (own, state, own, losses))
    program = make_graph(update)(*types)
    leaves = tree.leaves(types)
    split = [len(x.shape) > 1 for x in leaves]
    _elementwise(program, split)


def _elementwise(program: Program, split: Sequence[bool]) -> list[bool]:
    """Which outputs come of arrays that are split, by what goes element by element alone."""
    known: dict[Atom, bool] = dict(zip(program.inputs, split, strict=True))
    for e in program.equations:
        primitive: Any = e.primitive
        inputs = [known.get(a, False) for a in e.inputs]
        outs = [any(inputs)] * len(e.outputs)
        if type(primitive) is Call:
            outs = _elementwise(primitive.program, inputs)
        elif any(inputs) and not isinstance(primitive, (Elementwise, Select, ConvertElementType)):
            place = f", {e.position}" if e.position else ""
            raise ValueError(
                f"fit: the ensemble's mesh splits what the optimizer works on, which must go "
                f"element by element, and this one needs whole arrays: {primitive.name}{place}; "
                f"leave out split= of Ensemble.shard, or use an optimizer such as adamw"
            )
        known.update(zip(e.outputs, outs, strict=True))
    return [known.get(a, False) for a in program.outputs]
