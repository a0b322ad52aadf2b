"""Training over the devices of a mesh: where a state's arrays are, and a step on each device."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import numpy as np

import stretto.numpy as snp
from stretto._engine import api
from stretto._engine.core import tree
from stretto._engine.core.mesh import PartitionSpec
from stretto._engine.core.shardings import NamedSharding
from stretto._engine.core.typing import Array, Tree
from stretto._engine.ops import collective
from stretto.ensemble.over_mesh import OverMesh
from stretto.ensemble.training.spread import spec_of
from stretto.ensemble.training.train_state import Pack, Rows, TrainState

M = TypeVar("M")

_SAME = PartitionSpec()


def _specs(over: OverMesh, pack: Pack) -> Pack:
    """How a pack is split: a prefix of it."""
    rows: Any = over.rows
    if over.split:
        spec = functools.partial(spec_of, over)
        own = tree.map(spec, pack.rows.own) if over.split == "parameters" else rows
        optimizer = tree.map(spec, pack.rows.optimizer)
        rows = Rows(rows, own, rows, optimizer, rows, rows, rows, rows, rows, rows)
    same: Any = _SAME
    return Pack(pack.group, rows, same, same, same, same)


def _put_pack(over: OverMesh, pack: Pack) -> Pack:
    """The pack with its members on the devices, as many on each, and what they share on all."""
    named = functools.partial(NamedSharding, over.mesh)
    where = tree.map(named, _specs(over, pack), is_leaf=lambda x: isinstance(x, PartitionSpec))
    return api.sharding.placement.device_put(pack, where)


def put_state(state: TrainState[M]) -> TrainState[M]:
    """The state with all that a step takes on the devices of the ensemble's mesh, if it has one."""
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
    """Which members of a pack to go on computing: those that run, and others to fill the devices.

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
    """The pack, and arrays with a row for each member, after a step on each device's part of both.

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
    """The sum over the members of all devices of a sum over those of each."""
    return x if over is None or over.members is None else collective.functions.psum(x, over.members)


def over_data(over: OverMesh | None, x: Tree) -> Tree:
    """The mean of each array over the parts of the batch."""
    return x if over is None or over.data is None else collective.functions.pmean(x, over.data)


def of_all_parts(over: OverMesh | None, flags: Array) -> Array:
    """Which flags are true on every device that has a part of what they are about."""
    if over is None or over.split != "parameters":
        return flags
    return collective.functions.psum(snp.logical_not(flags).astype(np.int32), over.data) == 0


def part_of_data(over: OverMesh | None) -> Array | int:
    """Which part of the batch this is; 0 where there is one."""
    return 0 if over is None or over.data_parts == 1 else collective.functions.axis_index(over.data)
