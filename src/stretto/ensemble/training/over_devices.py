"""Training over the devices of a mesh: where a state's arrays are, and a step on each device.

States of optimizers, and parameters, can be split over the axis that also splits the data. Every
device would have them all otherwise: the states of Adam are twice as large as the parameters.
Split, each device updates its part of every array, and the parts of all are put together: before
the next step, or after this one. An array is split along its first axis that can be split evenly;
one without such an axis stays whole. Source: Rajbhandari et al., "ZeRO: Memory optimizations toward
training trillion parameter models", 2020 (stages 1 and 3).
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine import api
from stretto._engine.api.graph import ShapeDtypeStruct, make_graph
from stretto._engine.core import tree
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.program import Atom, Program
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.family import Call
from stretto._engine.ops import collective
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.train_state import Pack, Rows, TrainState
from stretto.optim.base import GradientTransformationExtraArgs

M = TypeVar("M")

_SAME = PartitionSpec()


def _axis(shape: Sequence[int], parts: int) -> int | None:
    """Return the first axis after that of the members that can be split so, or ``None``."""
    if not math.prod(shape):
        return None  # nothing to split
    return next((i for i, n in enumerate(shape) if i and n % parts == 0), None)


def spec_of(over: OverMesh, x: ArrayLike) -> PartitionSpec:
    """Say how an array with the members along axis 0 is split, over both axes of the mesh."""
    axis = _axis(np.shape(x), over.data_parts)
    if axis is None:
        return over.rows
    return PartitionSpec(over.members, *[None] * (axis - 1), over.data)


def part_of(over: OverMesh, x: Array, part: Array | int) -> Array:
    """Return the part of a whole array that one device has."""
    axis = _axis(x.shape, over.data_parts)
    if axis is None:
        return x
    size = x.shape[axis] // over.data_parts
    return dynamic_slice_in_dim(x, part * size, size, axis)


def gather_parts(
    over: OverMesh, parts: Mapping[str, Array], shapes: Mapping[str, Sequence[int]]
) -> dict[str, Array]:
    """Put arrays of these shapes together from the parts of all devices: a collective for a dtype.

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
    """Say which outputs come of arrays that are split, by what goes element by element alone."""
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


def _specs(over: OverMesh, pack: Pack) -> Pack:
    """Say how a pack is split: a prefix of it."""
    rows: Any = over.rows
    if over.split:
        spec = functools.partial(spec_of, over)
        own = tree.map(spec, pack.rows.own) if over.split == "parameters" else rows
        optimizer = tree.map(spec, pack.rows.optimizer)
        rows = Rows(rows, own, rows, optimizer, rows, rows, rows, rows, rows, rows)
    same: Any = _SAME
    return Pack(pack.group, rows, same, same, same, same)


def _put_pack(over: OverMesh, pack: Pack) -> Pack:
    """Put the pack's members on the devices, as many on each, and what they share on all."""
    named = functools.partial(NamedSharding, over.mesh)
    where = tree.map(named, _specs(over, pack), is_leaf=lambda x: isinstance(x, PartitionSpec))
    return api.sharding.placement.device_put(pack, where)


def put_state(state: TrainState[M]) -> TrainState[M]:
    """Put what a step takes of the state on the devices of the ensemble's mesh, if it has one."""
    over = state.layout.over
    if over is None:
        return state
    over.check([pack.group for pack in state.packs], "fit")
    return state.replace(
        packs=tuple([_put_pack(over, pack) for pack in state.packs]),
        sums=over.put(state.sums, over.rows),
        key=over.put(state.key, _SAME),
    )


def check_examples(over: OverMesh | None, size: int, caller: str) -> None:
    """Raise ``ValueError`` for a batch of so many examples that cannot be split evenly."""
    if over is not None and size % over.data_parts:
        raise ValueError(
            f"{caller}: a batch has {size} examples, and the axis {over.data!r} of {over.mesh} "
            f"splits it into {over.data_parts} parts, which must be of one size: give a batch_size "
            f"that {over.data_parts} divides"
        )


def with_company(over: OverMesh | None, pack: Pack, running: Sequence[bool]) -> list[bool]:
    """Choose members of a pack to go on computing: those that run, and others to fill the devices.

    Raises ``ValueError`` where others may not be computed beside those that run.
    """
    chosen, parts = list(running), 1 if over is None else over.parts
    missing = -sum(chosen) % parts
    if missing and pack.shared:
        raise ValueError(
            f"fit: {sum(chosen)} members that train {', '.join(pack.shared)} together are left, "
            f"and cannot be split evenly over {parts} parts of the mesh: train them on_divergence="
            f"'raise', or on a mesh without an axis for members"
        )
    for i, runs in enumerate(running):
        if missing and not runs:
            chosen[i] = True
            missing -= 1
    return chosen


def on_each_device(
    over: OverMesh, step: Callable[..., Any], pack: Pack, *inputs: tuple[Tree, Tree]
) -> Tree:
    """Step each device's part of the pack, and of arrays with a row for each member.

    Args:
        over: the mesh, and what splits what.
        step: a function of the pack and the inputs that returns such a pair.
        pack: the members of an architecture.
        *inputs: trees of arrays, each with how it is split.
    """
    packs = _specs(over, pack)
    return api.sharding.shard_map.shard_map(
        step,
        mesh=over.mesh,
        in_specs=(packs, *[spec for _, spec in inputs]),
        out_specs=(packs, over.rows),
        axis_names=set(over.axes),
    )(pack, *[x for x, _ in inputs])


def everywhere(over: OverMesh | None, x: Array) -> Array:
    """Return the sum over the members of all devices of a sum over those of each."""
    return x if over is None or over.members is None else collective.functions.psum(x, over.members)


def over_data(over: OverMesh | None, x: Tree) -> Tree:
    """Return the mean of each array over the parts of the batch."""
    return x if over is None or over.data is None else collective.functions.pmean(x, over.data)


def of_all_parts(over: OverMesh | None, flags: Array) -> Array:
    """Say which flags are true on every device that has a part of what they are about."""
    if over is None or over.split != "parameters":
        return flags
    return collective.functions.psum(snp.logical_not(flags).astype(np.int32), over.data) == 0


def part_of_data(over: OverMesh | None) -> Array | int:
    """Say which part of the batch this is; 0 where there is one."""
    return 0 if over is None or over.data_parts == 1 else collective.functions.axis_index(over.data)
