"""``jax._src.xla_bridge``."""

from stretto._engine.xla.device import default_backend, process_index
from stretto.compat.jax.calls import device_count, devices, local_devices
from stretto.compat.jax.host_devices import STARTED as _backends  # noqa: F401 (a name of JAX's)
from stretto.compat.jax.presented.extend.backend import backends, get_backend

__all__ = [
    "backends",
    "default_backend",
    "device_count",
    "devices",
    "get_backend",
    "local_devices",
    "process_index",
]
