"""Array methods that concern devices: those of JAX and of the array API standard."""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING

from stretto._engine import api, core, xla
from stretto._engine.core.interpreter import Tracer
from stretto._engine.xla.array import SHARDED, Array
from stretto._engine.xla.device import default_device
from stretto.numpy.inspection import VERSIONS

if TYPE_CHECKING:
    from types import ModuleType

    from stretto._engine.core.shardings import Sharding
    from stretto._engine.xla.device import Device
    from stretto._engine.xla.sharded import Shard


def sharding(self: Array) -> Sharding | None:
    """Say where the array is.

    Args:
        self: the array.

    Returns:
        A sharding; None for a traced value.
    """
    if isinstance(self, Tracer):
        return None
    return (
        xla.sharded.sharding_of(self)
        if self.__class__ in SHARDED
        else core.shardings.SingleDeviceSharding(default_device())
    )


def device(self: Array) -> Device | Sharding:
    """Say which device the array is on.

    Args:
        self: the array.

    Returns:
        A device; a sharding where there are several.
    """
    if self.__class__ not in SHARDED:
        return default_device()
    where = xla.sharded.sharding_of(self)
    return where.device_list[0] if where.num_devices == 1 else where


def is_fully_addressable(self: Array) -> bool:
    """Say whether no part of the array is on a device of another process.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ not in SHARDED or xla.sharded.sharding_of(self).is_fully_addressable


def is_fully_replicated(self: Array) -> bool:
    """Say whether every device of the array has all of its elements.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ not in SHARDED or xla.sharded.sharding_of(self).is_fully_replicated


def committed(self: Array) -> bool:
    """Say whether the array was put on its devices, and what is computed from it stays there.

    Args:
        self: the array.

    Returns:
        A Python boolean.
    """
    return self.__class__ in SHARDED


def addressable_shards(self: Array) -> list[Shard]:
    """List the parts of the array on devices of this process.

    Args:
        self: the array.

    Returns:
        A list of shards: ``device``, ``index``, ``replica_id`` and ``data``.
    """
    if self.__class__ in SHARDED:
        return xla.sharded.shards_of(self)
    return [xla.sharded.Shard(default_device(), tuple([slice(0, n) for n in self.shape]), 0, self)]


def devices(self: Array) -> set[Device]:
    """List the devices that the array is on.

    Args:
        self: the array.

    Returns:
        A set of devices.

    As JAX's ``Array.devices``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).devices()
    {CpuDevice(id=0)}
    """
    return (
        xla.sharded.sharding_of(self).device_set
        if self.__class__ in SHARDED
        else {default_device()}
    )


def addressable_data(self: Array, index: int = 0) -> Array:
    """Give the part of the array on one of the devices of this process that it is on.

    Args:
        self: the array.
        index: which of these devices, in the order of the sharding.

    Returns:
        The part; of an array on one device, the array itself.

    Raises:
        IndexError: there are not as many devices.

    As JAX's ``Array.addressable_data``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).addressable_data(0)
    Array([1., 1.], dtype=float32)
    """
    shards = addressable_shards(self)
    place = operator.index(index)
    if not -len(shards) <= place < len(shards):
        count = f"{len(shards)} devices" if len(shards) > 1 else "one device, 0"
        raise IndexError(f"addressable_data: the array is on {count}; got {index}")
    return shards[place].data


def copy_to_host_async(self: Array) -> None:
    """Do nothing: the elements are in the host's memory.

    Args:
        self: the array.

    As JAX's ``Array.copy_to_host_async``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).copy_to_host_async()
    """


def namespace(self: Array, /, *, api_version: str | None = None) -> ModuleType:
    """The module of functions that takes these arrays, for the array API standard."""
    if api_version is not None and api_version not in VERSIONS:
        raise ValueError(
            f"__array_namespace__: api_version must be None or one of {', '.join(VERSIONS)}; got "
            f"{api_version!r}"
        )
    return importlib.import_module("stretto.numpy")


def to_device(
    self: Array, device: Device | Sharding | str | None, /, *, stream: None = None
) -> Array:
    """Move the array to a device; return itself if it is there.

    Args:
        self: the array.
        device: the device, its name, a sharding, or None for where it is.
        stream: must be None.

    Returns:
        The array there.

    Raises:
        ValueError: ``device`` is not there, or ``stream`` is given.

    As the array API standard's ``to_device``.

    >>> import stretto.numpy as snp
    >>> x = snp.ones(2)
    >>> x.to_device(x.device) is x
    True
    """
    if stream is not None:
        raise ValueError(f"to_device: stream must be None; got {stream!r}")
    return api.sharding.placement.device_put(self, device)
