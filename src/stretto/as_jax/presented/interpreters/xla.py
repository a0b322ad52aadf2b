"""``jax.interpreters.xla``."""

from __future__ import annotations

from typing import Any

__all__ = ["apply_primitive"]


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive."""
    return prim.bind(*args, **params)
