"""The devices that arrays are on, and the processes that own them.

All questions about devices are answered here. A process has as many CPU devices as
``config.num_cpu_devices`` says; they share the processors, and are for trying out programs that are
split over several. Those of processes that work together are numbered through, process by process.
GPUs are those of this process alone, and are looked for when they are first asked for by name.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.config import config
from stretto._engine.core.errors import ConfigError
from stretto._engine.xla.clients import ALONE, Job, accelerator, has_runtime, job_of_now


class Device:
    """A place where arrays are stored and programs run; ``x.device`` is one.

    >>> import stretto.numpy as snp
    >>> snp.ones(2).device
    CpuDevice(id=0)
    >>> str(snp.ones(2).device)
    'cpu:0'
    """

    __slots__ = ("id", "job", "platform", "process_index")

    def __init__(
        self, platform: str, id: int, process_index: int = 0, job: Job | None = None
    ) -> None:
        self.platform = platform
        self.id = id
        self.process_index = process_index
        self.job = job or job_of_now()

    @property
    def device_kind(self) -> str:
        """The model of its platform; that of a CPU is ``"cpu"``."""
        return self.platform if self.platform == "cpu" else accelerator().kinds()[self.id]

    def memory_stats(self) -> dict[str, int] | None:
        """Say how much of the device's memory is in use.

        Returns:
            XLA's figures in bytes and counts, such as ``bytes_in_use``, ``peak_bytes_in_use`` and
            ``bytes_limit``; None for a CPU, whose memory is the system's.
        """
        if self.platform == "cpu":
            return None
        return dict(accelerator().device_of(self).memory_stats())

    @property
    def is_local(self) -> bool:
        """Say whether it belongs to this process."""
        return self.process_index == self.job.index

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        return (
            isinstance(other, Device)
            and self.id == other.id
            and self.platform == other.platform
            and self.job is other.job
        )

    def __hash__(self) -> int:
        return hash((self.platform, self.id))

    def __str__(self) -> str:
        return f"{self.platform}:{self.id}"

    def __repr__(self) -> str:
        return f"{self.platform.capitalize()}Device(id={self.id})"

    def __reduce__(self) -> tuple[Any, ...]:
        return Device, (self.platform, self.id, self.process_index)


_alone = [Device("cpu", 0, job=ALONE)]
"""The devices of this process alone; more are added as the setting asks for them."""

_gpus: list[Device] = []
"""The GPUs of this process, once they were asked for."""

_GPU = ("gpu", "cuda")
"""The names of the platform of GPUs: ours, and the one that users know them by."""

_together: list[Device] = []
"""The devices of the job of now, if it has several processes."""


def _devices() -> list[Device]:
    """Return all devices."""
    job = job_of_now()
    if job is ALONE:
        count = config.num_cpu_devices
        while len(_alone) < count:
            _alone.append(Device("cpu", len(_alone), job=ALONE))
        return _alone[:count]
    if not _together or _together[0].job is not job:
        owners = [index for index, count in enumerate(job.counts) for _ in range(count)]
        _together[:] = [Device("cpu", id, owner, job) for id, owner in enumerate(owners)]
    return [*_together]


def _accelerators() -> list[Device]:
    """Return the GPUs; raises ``RuntimeError`` if there are none."""
    if not _gpus:
        count = len(accelerator().kinds())
        _gpus[:] = [Device("gpu", id, job=ALONE) for id in range(count)]
    return [*_gpus]


def default_device() -> Device:
    """Return the device of arrays that were not put anywhere: the first of this process."""
    job = job_of_now()
    return _alone[0] if job is ALONE else _devices()[sum(job.counts[: job.index])]


def check_device_count(count: int) -> None:
    """Raise ``ConfigError`` unless the runtime can still be started with so many devices."""
    if count < 1:
        raise ConfigError(f"config.num_cpu_devices must be an int, 1 or more; got {count}")
    if has_runtime():
        raise ConfigError(
            f"config.num_cpu_devices comes too late: a program was compiled, for "
            f"{config.num_cpu_devices}. Set it before anything is compiled or put on a device, or "
            f"set STRETTO_NUM_CPU_DEVICES={count} in the environment"
        )


def as_device(device: Any, caller: str, argument: str = "device") -> Device:
    """Return the device for ``None``, a ``Device``, or a name such as ``"cpu"`` or ``"cpu:1"``.

    Raises ``ValueError`` if there is no such device.
    """
    first = default_device()
    if device is None or device in (first, "cpu"):
        return first
    for one in _devices():
        if device == one or device == str(one):
            return one
    platform, _, number = device.partition(":") if isinstance(device, str) else ("", "", "")
    if platform in _GPU and (number or "0").isdecimal():
        try:
            return _accelerators()[int(number or 0)]
        except (RuntimeError, IndexError) as error:
            raise ValueError(f"{caller}: {argument} {device!r} is not there: {error}") from None
    if isinstance(device, Device) and device in _gpus:
        return device
    count = len(_devices())
    there_are = f"{first!r} (also 'cpu'), the only device there is"
    if count > 1:
        there_are = f"one of the {count} devices in stretto.devices(), or its name ('cpu:1')"
    raise ValueError(f"{caller}: {argument} must be None or {there_are}; got {device!r}")


def devices(backend: str | None = None) -> list[Device]:
    """List all devices of a platform, in the order of their ids.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        The devices.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.devices()
    [CpuDevice(id=0)]

    The GPUs of this machine are ``st.devices("gpu")``, which needs XLA's plugin for them: see
    ``docs/devices.md``.
    """
    backend = backend or default_backend()
    if backend == "cpu":
        return _devices()
    if backend in _GPU:
        return _accelerators()
    raise RuntimeError(f"there is no backend {backend!r}; there are 'cpu' and, on some, 'gpu'")


def local_devices(process_index: int | None = None, backend: str | None = None) -> list[Device]:
    """List the devices of one process.

    Args:
        process_index: the process; by default this one.
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        The devices.

    Raises:
        RuntimeError: there is no such platform.
        ValueError: there is no such process.

    >>> import stretto as st
    >>> st.distributed.local_devices()
    [CpuDevice(id=0)]
    """
    if process_index is not None and process_index not in process_indices(backend):
        raise ValueError(
            f"local_devices: process_index must be one of {process_indices(backend)}; got "
            f"{process_index!r}"
        )
    owner = job_of_now().index if process_index is None else process_index
    return [device for device in devices(backend) if device.process_index == owner]


def device_count(backend: str | None = None) -> int:
    """Count the devices of all processes.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> len(st.devices())
    1
    """
    return len(devices(backend))


def local_device_count(backend: str | None = None) -> int:
    """Count the devices of this process.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.distributed.local_device_count()
    1
    """
    return len(local_devices(backend=backend))


def default_backend() -> str:
    """Name the platform that programs run on, unless they are given arrays of another one.

    Returns:
        Its name, ``"cpu"``, or ``"gpu"`` where ``config.default_device`` names one.

    Raises:
        ValueError: the device is no longer there.

    >>> default_backend()
    'cpu'
    """
    name = config.default_device
    return "cpu" if name is None else as_device(name, "default_backend").platform


def process_index(backend: str | None = None) -> int:
    """Say which of the processes that share a computation this one is.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        Its number, counted from 0.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.distributed.process_index()
    0
    """
    if backend is not None:
        devices(backend)
    return job_of_now().index


def process_count(backend: str | None = None) -> int:
    """Count the processes that share a computation.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        Their number.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.distributed.process_count()
    1
    """
    return len(process_indices(backend))


def process_indices(backend: str | None = None) -> list[int]:
    """List the processes that have devices.

    Args:
        backend: the platform, ``"cpu"`` or ``"gpu"``; by default that of ``default_backend()``.

    Returns:
        Their numbers, in order.

    Raises:
        RuntimeError: there is no such platform.

    >>> import stretto as st
    >>> st.distributed.process_indices()
    [0]
    """
    return sorted({device.process_index for device in devices(backend)})
