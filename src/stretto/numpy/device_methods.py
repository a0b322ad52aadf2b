"""Array methods that concern devices: those of JAX and of the array API standard.

Next, read ``methods``.
"""

from __future__ import annotations

import importlib
import operator
from typing import TYPE_CHECKING

from stretto._engine.runtime.array import Array
from stretto._engine.runtime.device import CPU, as_device
from stretto.numpy.inspection import VERSIONS

if TYPE_CHECKING:
    from types import ModuleType

    from stretto._engine.runtime.device import Device

__all__ = ["addressable_data", "copy_to_host_async", "devices", "namespace", "to_device"]


def devices(self: Array) -> set[Device]:
    """List the devices that the array is on: the one there is.

    Args:
        self: the array.

    Returns:
        A set of devices.

    As JAX's ``Array.devices``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).devices()
    {CpuDevice(id=0)}
    """
    return {CPU}


def addressable_data(self: Array, index: int = 0) -> Array:
    """Give the part of the array on a device that it is on: there is one, with all of it.

    Args:
        self: the array.
        index: which of these devices; 0.

    Returns:
        The array itself.

    Raises:
        IndexError: ``index`` is another.

    As JAX's ``Array.addressable_data``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).addressable_data(0)
    Array([1., 1.], dtype=float32)
    """
    if operator.index(index) not in (0, -1):
        raise IndexError(f"addressable_data: the array is on one device, 0; got {index}")
    return self


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


def to_device(self: Array, device: Device | str | None, /, *, stream: None = None) -> Array:
    """Move the array to a device: since there is one, return itself.

    Args:
        self: the array.
        device: the device that there is.
        stream: must be None.

    Returns:
        The array itself.

    Raises:
        ValueError: ``device`` is another, or ``stream`` is given.

    As the array API standard's ``to_device``.

    >>> import stretto.numpy as snp
    >>> x = snp.ones(2)
    >>> x.to_device(x.device) is x
    True
    """
    as_device(device, "to_device")
    if stream is not None:
        raise ValueError(f"to_device: stream must be None on the CPU; got {stream!r}")
    return self
