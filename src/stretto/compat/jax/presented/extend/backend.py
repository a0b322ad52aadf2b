"""``jax.extend.backend``."""

from __future__ import annotations

from stretto import clear_caches
from stretto._engine.xla.device import default_backend
from stretto.compat.jax.host_devices import Backend

__all__ = ["backends", "clear_backends", "get_backend"]

clear_backends = clear_caches


def get_backend(platform: str | None = None) -> Backend:
    """The kind of devices of this name, or the default."""
    return Backend(platform or default_backend())


def backends() -> dict[str, Backend]:
    """All kinds of devices, by name."""
    return {default_backend(): get_backend()}
