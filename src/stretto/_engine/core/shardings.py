"""Shardings: which part of an array is on which device; and the mesh in use.

Pure geometry; ``xla/sharded`` has the arrays. A sharding is checked against an array's type where
the two meet, and errors name the argument, the axis, the sizes and the mesh.

A specification alone, without a mesh, is over the mesh in use. That is a setting, ``config.mesh``,
so that programs are traced for it.
"""

from __future__ import annotations

import abc
import functools
import math
import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.mesh import Mesh, PartitionSpec, axes_of

Index: TypeAlias = tuple[slice, ...]
"""The part of an array that a device has: a slice for each axis."""


class Sharding(abc.ABC):
    """Say which part of an array is on which device: the base class of all shardings.

    >>> import stretto.numpy as snp
    >>> from stretto.sharding import Sharding
    >>> isinstance(snp.ones(2).sharding, Sharding)
    True
    """

    __slots__ = ()

    memory_kind = None
    """There is one kind of memory."""

    @property
    @abc.abstractmethod
    def device_list(self) -> tuple[Any, ...]:
        """The devices, in the order in which programs number them."""

    @abc.abstractmethod
    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of each device's part of an array.

        Args:
            global_shape: the shape of the array.

        Returns:
            The shape of a part.

        Raises:
            ValueError: an axis cannot be split so.
        """

    @property
    @abc.abstractmethod
    def is_fully_replicated(self) -> bool:
        """Say whether every device has the whole array."""

    @property
    def device_set(self) -> set[Any]:
        """The devices."""
        return set(self.device_list)

    @property
    def num_devices(self) -> int:
        """Say how many devices there are."""
        return len(self.device_list)

    @property
    def addressable_devices(self) -> set[Any]:
        """Return the devices that belong to this process."""
        return {device for device in self.device_list if device.is_local}

    @property
    def is_fully_addressable(self) -> bool:
        """Say whether all of the devices belong to this process."""
        return all([device.is_local for device in self.device_list])

    def devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """Say which part of an array each device has.

        Args:
            global_shape: the shape of the array.

        Returns:
            A slice for each axis, by device.

        Raises:
            ValueError: an axis cannot be split so.
        """
        shape = tuple(global_shape)
        return dict(zip(self.device_list, self.indices(shape), strict=True))

    def addressable_devices_indices_map(self, global_shape: Sequence[int]) -> dict[Any, Index]:
        """Say which part of an array each device of this process has.

        Args:
            global_shape: the shape of the array.

        Returns:
            A slice for each axis, by device.

        Raises:
            ValueError: an axis cannot be split so.
        """
        parts = self.devices_indices_map(global_shape)
        return {device: index for device, index in parts.items() if device.is_local}

    def indices(self, shape: tuple[int, ...]) -> tuple[Index, ...]:
        """Say which part of an array each device has, in the order of the devices.

        Args:
            shape: the shape of the array.

        Returns:
            For each device a slice for each axis.

        Raises:
            ValueError: an axis cannot be split so.
        """
        return _indices(self, shape)

    def is_equivalent_to(self, other: Any, ndim: int) -> bool:
        """Say whether another sharding puts the same parts on the same devices.

        Args:
            other: the other one.
            ndim: the number of axes of the arrays.

        Returns:
            A Python boolean.
        """
        if self is other:
            return True
        if not isinstance(other, Sharding) or self.device_list != other.device_list:
            return False
        return self.tiling(ndim) == other.tiling(ndim)

    @abc.abstractmethod
    def tiling(self, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Say into how many parts arrays are split, and which of them each device has.

        Args:
            ndim: the number of axes of the arrays.

        Returns:
            The number of parts along each axis; and for each device the number of its part, counted
            row by row.
        """


class SingleDeviceSharding(Sharding):
    """The whole array on one device.

    Args:
        device: the device.

    >>> import stretto as st, stretto.numpy as snp
    >>> snp.ones(2).sharding
    SingleDeviceSharding(cpu:0)
    """

    __slots__ = ("_device",)

    def __init__(self, device: Any) -> None:
        self._device = device

    @property
    def device_list(self) -> tuple[Any, ...]:
        """The device."""
        return (self._device,)

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of the device's part, the whole.

        Args:
            global_shape: the shape of the array.

        Returns:
            That shape.
        """
        return tuple(global_shape)

    @property
    def is_fully_replicated(self) -> bool:
        """Say whether every device has the whole array: yes."""
        return True

    def tiling(self, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Say into how many parts arrays are split, and which of them each device has.

        Args:
            ndim: the number of axes of the arrays.

        Returns:
            One part along each axis, and the first of them.
        """
        return (1,) * ndim, (0,)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SingleDeviceSharding) and self._device == other._device

    def __hash__(self) -> int:
        return hash((SingleDeviceSharding, self._device))

    def __reduce__(self) -> tuple[Any, ...]:
        return SingleDeviceSharding, (self._device,)

    def __repr__(self) -> str:
        return f"SingleDeviceSharding({self._device})"


class NamedSharding(Sharding):
    """An array split over a mesh as a specification says.

    Args:
        mesh: the mesh.
        spec: for each axis of the array the axis of the mesh that it is split over.

    Raises:
        TypeError: they are not a mesh and a specification.
        ValueError: the specification names an axis that the mesh does not have.

    >>> import stretto as st
    >>> mesh = st.make_mesh((1,), ("data",))
    >>> st.sharding.NamedSharding(mesh, st.P("data"))
    NamedSharding(Mesh('data': 1), PartitionSpec('data'))
    """

    __slots__ = ("_hash", "mesh", "spec")

    mesh: Mesh
    spec: PartitionSpec

    def __init__(self, mesh: Mesh, spec: Any) -> None:
        if not isinstance(mesh, Mesh):
            raise TypeError(f"NamedSharding: mesh must be a Mesh, got {mesh!r}")
        self.mesh, self.spec = mesh, as_spec(spec, "NamedSharding", "spec")
        check_names(self.spec, mesh, "NamedSharding", "spec")
        self._hash = hash((mesh, _trim(self.spec)))

    @property
    def device_list(self) -> tuple[Any, ...]:
        """The devices of the mesh, row by row."""
        return self.mesh.device_list

    @property
    def is_fully_replicated(self) -> bool:
        """Say whether every device has the whole array."""
        return self.mesh.size_of(self.spec.names) == 1

    def shard_shape(self, global_shape: Sequence[int]) -> tuple[int, ...]:
        """Return the shape of each device's part of an array.

        Args:
            global_shape: the shape of the array.

        Returns:
            The shape of a part.

        Raises:
            ValueError: an axis cannot be split so.
        """
        check_split(self, global_shape, "the array")
        counts = _parts(self, len(global_shape))
        return tuple([n // c for n, c in zip(global_shape, counts, strict=True)])

    def tiling(self, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Say into how many parts arrays are split, and which of them each device has.

        Args:
            ndim: the number of axes of the arrays.

        Returns:
            The number of parts along each axis; and for each device the number of its part, counted
            row by row.
        """
        return _tiling(self, ndim)

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, NamedSharding)
            and self._hash == other._hash
            and self.mesh == other.mesh
            and _trim(self.spec) == _trim(other.spec)
        )

    def __hash__(self) -> int:
        return self._hash

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedSharding, (self.mesh, self.spec)

    def __repr__(self) -> str:
        return f"NamedSharding({self.mesh!r}, {self.spec!r})"


def _trim(spec: PartitionSpec) -> tuple[Any, ...]:
    """Return the entries up to the last that splits anything."""
    parts = tuple(spec)
    while parts and parts[-1] is None:
        parts = parts[:-1]
    return parts


def _parts(sharding: NamedSharding, ndim: int) -> tuple[int, ...]:
    """Return the number of parts along each axis of an array."""
    counts = [sharding.mesh.size_of(axes_of(part)) for part in sharding.spec]
    return (*counts, *(1,) * (ndim - len(counts)))


@functools.lru_cache(1024)
def _indices(sharding: Sharding, shape: tuple[int, ...]) -> tuple[Index, ...]:
    counts, numbers = sharding.tiling(len(shape))
    sizes = sharding.shard_shape(shape)
    places = np.unravel_index(np.array(numbers), counts) if counts else ()
    starts = [
        [int(place[k]) * n for place, n in zip(places, sizes, strict=True)]
        for k in range(len(numbers))
    ]
    return tuple(
        [tuple([slice(i, i + n) for i, n in zip(start, sizes, strict=True)]) for start in starts]
    )


def can_split(sharding: NamedSharding, shape: tuple[int, ...]) -> bool:
    """Say whether an array of this shape can be split so; ``check_split`` says why not."""
    return _can_split(sharding.mesh, sharding.spec, shape)


@functools.lru_cache(1024)
def _can_split(mesh: Mesh, spec: PartitionSpec, shape: tuple[int, ...]) -> bool:
    counts = [mesh.size_of(axes_of(part)) for part in spec]
    return len(counts) <= len(shape) and not any(
        [n % c for n, c in zip(shape, counts, strict=False)]
    )


def check_split(sharding: NamedSharding, shape: Sequence[int], what: str) -> None:
    """Raise ``ValueError`` unless an array of this shape can be split so.

    ``what`` is what the message calls the array.
    """
    if can_split(sharding, tuple(shape)):
        return
    spec, mesh = sharding.spec, sharding.mesh
    if len(spec) > len(shape):
        raise ValueError(
            f"{what} has {len(shape)} axes, shape {tuple(shape)}, and its sharding has entries for "
            f"{len(spec)}: {spec}; leave the last of them out"
        )
    for axis, (part, size) in enumerate(zip(spec, shape, strict=False)):
        count = mesh.size_of(axes_of(part))
        if size % count:
            raise ValueError(
                f"{what} cannot be split evenly: axis {axis} of shape {tuple(shape)} has size "
                f"{size}, and {spec} splits it over {part!r} of {mesh}, {count} parts; pad it to "
                f"{-(-size // count) * count}, or leave that axis whole: None"
            )


@functools.lru_cache(1024)
def _tiling(sharding: NamedSharding, ndim: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
    mesh, counts = sharding.mesh, _parts(sharding, ndim)
    sizes: Mapping[Any, int] = mesh.shape
    places = dict(zip(mesh.axis_names, np.indices(mesh.devices.shape), strict=True))
    number = np.zeros(mesh.devices.shape, int)
    for axis in range(ndim):
        part = axes_of(sharding.spec[axis]) if axis < len(sharding.spec) else ()
        for name in part:
            number = number * sizes[name] + places[name]
    assert number.max(initial=0) < math.prod(counts)
    return counts, tuple(number.ravel().tolist())


def as_spec(spec: Any, caller: str, argument: str) -> PartitionSpec:
    """Return a specification; raises ``TypeError`` for anything else."""
    if isinstance(spec, PartitionSpec):
        return spec
    raise TypeError(
        f"{caller}: {argument} must be a PartitionSpec, such as P('data', None); got {spec!r}"
    )


def check_names(spec: PartitionSpec, mesh: Mesh, caller: str, argument: str) -> None:
    """Raise ``ValueError`` for a name that is not an axis of the mesh."""
    for name in spec.names:
        if name not in mesh.axis_names:
            raise ValueError(
                f"{caller}: {argument} {spec} names the axis {name!r}, and {mesh} has "
                f"{', '.join(map(repr, mesh.axis_names))}"
            )


class Placement(NamedTuple):
    """Say where the inputs and outputs of a program are, and the devices that it runs on.

    All shardings are on these devices, in this order. ``None`` for an output leaves its sharding to
    the compiler. ``mesh`` is one that the shardings are over, if any is over a mesh.
    """

    devices: tuple[Any, ...]
    mesh: Mesh | None
    ins: tuple[Sharding, ...]
    outs: tuple[Sharding | None, ...]


class _Entered(threading.local):
    """The blocks of meshes that this thread is in, the last one last."""

    def __init__(self) -> None:
        self.blocks: list[Any] = []


_entered = _Entered()


def enter(mesh: Mesh) -> Mesh:
    """Begin a block, of this thread, with this mesh in use."""
    block = config(mesh=mesh)
    block.__enter__()
    _entered.blocks.append(block)
    return mesh


def leave(mesh: Mesh, *error: object) -> None:
    """End the block that began last."""
    _entered.blocks.pop().__exit__(*error)


class set_mesh:  # in lower case, as a function is: it is called for what it does
    """Take a mesh into use: a ``PartitionSpec`` alone is then over it.

    Called alone it holds for all threads from there on; as a context manager, for the block, in
    this thread.

    Args:
        mesh: the mesh; None for none.

    Raises:
        ConfigError: it is not a mesh.

    >>> import stretto as st, stretto.numpy as snp
    >>> with st.sharding.set_mesh(st.make_mesh((1,), ("data",))):
    ...     st.device_put(snp.ones(2), st.P("data")).sharding.spec
    PartitionSpec('data')
    """

    def __init__(self, mesh: Mesh | None) -> None:
        self._before = config.mesh
        config.mesh = mesh
        self._mesh = mesh
        self._block: Any = None

    def __enter__(self) -> Mesh | None:
        config.mesh = self._before
        self._block = config(mesh=self._mesh)
        self._block.__enter__()
        return self._mesh

    def __exit__(self, *error: object) -> None:
        self._block.__exit__(*error)


def get_mesh() -> Mesh | None:
    """Return the mesh in use.

    Returns:
        The mesh; None if there is none.

    >>> import stretto as st
    >>> st.sharding.get_mesh() is None
    True
    """
    return config.mesh
