"""``jax._src.xla_bridge``."""

from typing import Any

from stretto import default_backend, device_count, devices, local_devices, process_index
from stretto.as_jax.presented.extend.backend import backends, get_backend

__all__ = [
    "backends",
    "default_backend",
    "device_count",
    "devices",
    "get_backend",
    "local_devices",
    "process_index",
]

_backends: dict[str, Any] = {}
"""Those that were started; Stretto starts its own when they are first needed."""
