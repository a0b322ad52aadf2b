"""``jax.experimental.multihost_utils``."""

from __future__ import annotations

from typing import Any

import numpy as np

import stretto
from stretto.compat.jax import trees
from stretto.compat.jax.refused import RefusedName
from stretto.distributed import broadcast_one_to_all, process_allgather, sync_global_devices

__all__ = [
    "assert_equal",
    "broadcast_one_to_all",
    "global_array_to_host_local_array",
    "host_local_array_to_global_array",
    "process_allgather",
    "reached_preemption_sync_point",
    "sync_global_devices",
]

reached_preemption_sync_point = RefusedName(
    "jax.experimental.multihost_utils.reached_preemption_sync_point",
    "notices of preemption are not followed: save at steps of your own choice",
)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    Raises:
        AssertionError: they differ.
    """
    for every in trees.leaves(process_allgather(in_tree)):
        if stretto.distributed.process_count() > 1 and not all(
            [np.array_equal(every[0], x) for x in every]
        ):
            raise AssertionError(f"{fail_message} processes have {every.tolist()}".strip())


def _over(mesh: Any, pspecs: Any, tree: Any) -> list[Any]:
    """The sharding of each leaf, of specs for a prefix of the tree."""
    specs, definition = trees.flatten(pspecs, lambda x: isinstance(x, stretto.P))
    parts = definition.flatten_up_to(tree)
    counts = [len(trees.leaves(part)) for part in parts]
    every = [spec for spec, count in zip(specs, counts, strict=True) for _ in range(count)]
    return [stretto.sharding.NamedSharding(mesh, spec) for spec in every]


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Arrays over the mesh, of which each process has the parts on its devices.

    Args:
        local_inputs: a tree of arrays, the part of this process.
        global_mesh: the devices.
        pspecs: the specs, of a tree that is a prefix of ``local_inputs``.
    """
    flat, definition = trees.flatten(local_inputs)
    shardings = _over(global_mesh, pspecs, local_inputs)
    made = stretto.sharding.make_array_from_process_local_data
    return definition.unflatten(
        [made(s, np.asarray(x)) for s, x in zip(shardings, flat, strict=True)]
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """The parts of arrays that are on the devices of this process, put together.

    Args:
        global_inputs: a tree of arrays over the mesh.
        global_mesh: the devices.
        pspecs: the specs, of a tree that is a prefix of ``global_inputs``.
    """
    flat, definition = trees.flatten(global_inputs)
    shardings = _over(global_mesh, pspecs, global_inputs)
    return definition.unflatten([_local(x, s) for x, s in zip(flat, shardings, strict=True)])


def _local(x: Any, sharding: Any) -> Any:
    whole = stretto.device_put(x, sharding)
    if whole.is_fully_addressable:
        return whole
    shards = whole.addressable_shards
    starts = [
        [index.indices(n)[0] for index, n in zip(s.index, whole.shape, strict=True)] for s in shards
    ]
    columns = [sorted(set(column)) for column in zip(*starts, strict=True)]
    part = shards[0].data.shape
    host = np.empty([len(c) * n for c, n in zip(columns, part, strict=True)], whole.dtype)
    for shard, start in zip(shards, starts, strict=True):
        begin = [c.index(b) * n for c, b, n in zip(columns, start, part, strict=True)]
        places = [slice(b, b + n) for b, n in zip(begin, part, strict=True)]
        host[tuple(places)] = np.asarray(shard.data)
    return stretto.numpy.asarray(host)
