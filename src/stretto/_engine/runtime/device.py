"""The devices that arrays are on, and the processes that own them. There is one of each.

Layer 6 (runtime). All questions about devices are answered here. Next, read ``dlpack``.
"""

from __future__ import annotations

from typing import Any

__all__ = [
    "CPU",
    "Device",
    "as_device",
    "default_backend",
    "device_count",
    "devices",
    "local_device_count",
    "local_devices",
    "process_count",
    "process_index",
    "process_indices",
]


class Device:
    """A place where arrays are stored and programs run; ``x.device`` is one.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).device
    CpuDevice(id=0)
    >>> str(snp.ones(2).device)
    'cpu:0'
    """

    __slots__ = ("id", "platform")

    def __init__(self, platform: str, id: int) -> None:
        self.platform = platform
        self.id = id

    @property
    def device_kind(self) -> str:
        """Which model of its platform it is; that of a CPU is ``"cpu"``."""
        return self.platform

    @property
    def process_index(self) -> int:
        """The process that it belongs to."""
        return 0

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Device) and str(self) == str(other)

    def __hash__(self) -> int:
        return hash(str(self))

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.platform, self.id)


CPU = Device("cpu", 0)


def as_device(device: Any, caller: str, argument: str = "device") -> Device:
    """The device asked for: ``None``, a ``Device``, or its name.

    Raises ``ValueError`` if there is no such device.
    """
    if device is None or device == CPU or device in ("cpu", "cpu:0"):
        return CPU
    raise ValueError(
        f"{caller}: {argument} must be None or {CPU!r} (also 'cpu'), the only device there is; got "
        f"{device!r}"
    )


_DEVICES = (CPU,)


def devices(backend: str | None = None) -> list[Device]:
    """List all devices of a platform, in the order of their ids.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        The devices.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.devices()
    [CpuDevice(id=0)]
    """
    if backend is None:
        return list(_DEVICES)
    matching = [device for device in _DEVICES if device.platform == backend]
    if not matching:
        known = ", ".join(sorted({repr(device.platform) for device in _DEVICES}))
        raise RuntimeError(f"there is no backend {backend!r}; there is {known}")
    return matching


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """List the devices of one process.

    Args:
        process_index: the process; by default this one.
        backend: the platform; by default the one that there is.

    Returns:
        The devices.

    Raises:
        RuntimeError: there is no such platform.
        ValueError: there is no such process.

    >>> import stretto as st
    >>> st.local_devices()
    [CpuDevice(id=0)]
    """
    if process_index is not None and process_index not in process_indices(backend):
        raise ValueError(
            f"local_devices: process_index must be one of {process_indices(backend)}; got "
            f"{process_index!r}"
        )
    return devices(backend)


def device_count(backend: str | None = None) -> int:
    """Count the devices of all processes.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.device_count()
    1
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Count the devices of this process.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.local_device_count()
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """Name the platform that programs run on.

    Returns:
        Its name, in lower case.

    >>> import stretto as st
    >>> st.default_backend()
    'cpu'
    """
    return _DEVICES[0].platform


def process_index(backend: str | None = None) -> int:
    """Say which of the processes that share a computation this one is.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        Its number, counted from 0.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.process_index()
    0
    """
    devices(backend)
    return 0


def process_count(backend: str | None = None) -> int:
    """Count the processes that share a computation.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.process_count()
    1
    """
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """List the processes that have devices.

    Args:
        backend: the platform; by default the one that there is.

    Returns:
        Their numbers, in order.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.process_indices()
    [0]
    """
    return sorted({device.process_index for device in devices(backend)})
