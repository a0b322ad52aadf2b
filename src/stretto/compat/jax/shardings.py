"""``jax.sharding``, and what ``jax.experimental`` has of meshes and of several processes.

XLA partitions functions of ``custom_partitioning`` as it does any other, so that they compute the
same; what their author says of shardings is taken, and not followed.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import stretto
from stretto._engine.core.mesh import Mesh
from stretto._engine.core.shardings import get_mesh
from stretto.compat.jax import tree_util
from stretto.compat.jax.modules import RefusedName
from stretto.distributed import process_allgather

_TYPES = "shardings are not part of types here: use NamedSharding and with_sharding_constraint"

auto_axes = RefusedName("jax.sharding.auto_axes", _TYPES)
explicit_axes = RefusedName("jax.sharding.explicit_axes", _TYPES)
reshard = RefusedName("jax.sharding.reshard", _TYPES)


class AxisType(enum.Enum):
    """Says how an axis of a mesh is followed; Stretto's are ``Auto``."""

    Auto = enum.auto()
    Explicit = enum.auto()
    Manual = enum.auto()


class _Axes(type):
    def __instancecheck__(cls, x: object) -> bool:
        return type.__instancecheck__(cls, x) or isinstance(x, Mesh)


class AbstractMesh(metaclass=_Axes):
    """The axes of a mesh, without devices.

    Args:
        axis_sizes: their sizes.
        axis_names: their names.
        axis_types: ignored.
    """

    def __init__(self, axis_sizes: Any, axis_names: Any, axis_types: Any = None) -> None:
        del axis_types
        self.axis_sizes, self.axis_names = tuple(axis_sizes), tuple(axis_names)

    @property
    def shape(self) -> dict[Any, int]:
        """The sizes by name."""
        return dict(zip(self.axis_names, self.axis_sizes))

    @property
    def empty(self) -> bool:
        """True where it has no axes."""
        return not self.axis_names

    def __eq__(self, other: object) -> bool:
        return isinstance(other, AbstractMesh) and self.shape == dict(other.shape)

    def __hash__(self) -> int:
        return hash((self.axis_sizes, self.axis_names))


def _types(self: Any) -> tuple[AxisType, ...]:
    """Say how axes are followed: by the compiler."""
    return (AxisType.Auto,) * len(self.axis_names)


def _with_types(cls: Any) -> None:
    """Give a class of meshes what says how axes are followed."""
    cls.axis_types = property(_types)
    cls.are_all_axes_auto = property(lambda self: True)
    cls.are_all_axes_explicit = cls.are_all_axes_manual = property(lambda self: False)
    cls.abstract_mesh = property(lambda self: self)


_with_types(AbstractMesh)
_with_types(Mesh)


def _current() -> Mesh | None:
    try:
        return get_mesh()
    except ValueError:
        return None


def get_abstract_mesh() -> AbstractMesh | Mesh:
    """Return the mesh in use; one without axes where there is none."""
    mesh = _current()
    return AbstractMesh((), ()) if mesh is None else mesh


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **options: Any
) -> np.ndarray:
    """Return an array of devices of this shape."""
    del options
    given = list(stretto.devices() if devices is None else devices)
    if len(given) != math.prod(mesh_shape):
        raise ValueError(
            f"create_device_mesh: a mesh of shape {tuple(mesh_shape)} needs "
            f"{math.prod(mesh_shape)} devices, got {len(given)}"
        )
    made = np.empty(len(given), object)
    made[:] = given
    return made.reshape(tuple(mesh_shape))


def shard_map(
    f: Callable[..., Any],
    mesh: Any,
    in_specs: Any,
    out_specs: Any,
    check_rep: bool = True,
    auto: frozenset[Any] = frozenset(),
) -> Any:
    """Call ``stretto.shard_map`` with the parameters of the older function."""
    names = {"axis_names": frozenset(mesh.axis_names) - auto} if auto else {}
    return stretto.shard_map(
        f, mesh=mesh, in_specs=in_specs, out_specs=out_specs, check_vma=check_rep, **names
    )


class CompoundFactor(tuple[Any, ...]):
    """The factors that one axis is the product of."""

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Make one of the names given."""
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factor, or factors, of each axis of an array."""

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        """Make one of the names given."""
        return super().__new__(cls, dim_mappings)


class _Rule(NamedTuple):
    operand_mappings: tuple[ArrayMapping, ...]
    result_mappings: tuple[ArrayMapping, ...]
    factor_sizes: dict[str, Any]


def SdyShardingRule(
    operand_mappings: tuple[ArrayMapping, ...],
    result_mappings: tuple[ArrayMapping, ...],
    **factor_sizes: Any,
) -> _Rule:
    """Say which axes of operands and results are split together."""
    return _Rule(operand_mappings, result_mappings, factor_sizes)


class custom_partitioning:
    """A function whose partitioning its author may define.

    Args:
        fun: the function.
        static_argnums: positions of arguments that are passed as they are.
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Any = ()) -> None:
        functools.update_wrapper(self, fun)
        self.fun, self.static_argnums = fun, static_argnums

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        **factors: Any,
    ) -> Callable[..., Any]:
        """Take the author's rules, which XLA is not told."""
        del infer_sharding_from_operands, propagate_user_sharding, decode_shardings
        del sharding_rule, factors
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        return self.fun(*args, **kwargs)


reached_preemption_sync_point = RefusedName(
    "jax.experimental.multihost_utils.reached_preemption_sync_point",
    "notices of preemption are not followed: save at steps of your own choice",
)


def assert_equal(in_tree: Any, fail_message: str = "") -> None:
    """Check that all processes have the same values.

    Raises:
        AssertionError: they differ.
    """
    for every in tree_util.leaves(process_allgather(in_tree)):
        if stretto.distributed.process_count() > 1 and not all(
            [np.array_equal(every[0], x) for x in every]
        ):
            raise AssertionError(f"{fail_message} processes have {every.tolist()}".strip())


def _over(mesh: Any, pspecs: Any, tree: Any) -> list[Any]:
    """Return the sharding of each leaf, of specs for a prefix of the tree."""
    specs, definition = tree_util.flatten(pspecs, lambda x: isinstance(x, stretto.P))
    parts = definition.flatten_up_to(tree)
    counts = [len(tree_util.leaves(part)) for part in parts]
    every = [spec for spec, count in zip(specs, counts, strict=True) for _ in range(count)]
    return [stretto.sharding.NamedSharding(mesh, spec) for spec in every]


def host_local_array_to_global_array(local_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Make arrays over the mesh, of which each process has the parts on its devices.

    Args:
        local_inputs: a tree of arrays, the part of this process.
        global_mesh: the devices.
        pspecs: the specs, of a tree that is a prefix of ``local_inputs``.
    """
    flat, definition = tree_util.flatten(local_inputs)
    shardings = _over(global_mesh, pspecs, local_inputs)
    made = stretto.sharding.make_array_from_process_local_data
    return definition.unflatten(
        [made(s, np.asarray(x)) for s, x in zip(shardings, flat, strict=True)]
    )


def global_array_to_host_local_array(global_inputs: Any, global_mesh: Any, pspecs: Any) -> Any:
    """Return the parts of arrays that are on the devices of this process, put together.

    Args:
        global_inputs: a tree of arrays over the mesh.
        global_mesh: the devices.
        pspecs: the specs, of a tree that is a prefix of ``global_inputs``.
    """
    flat, definition = tree_util.flatten(global_inputs)
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
