"""``jax.numpy``: ``stretto.numpy``, whose functions that move elements take typed keys too."""

from __future__ import annotations

from typing import Any

from stretto.as_jax.keys import TAKING_KEYS
from stretto.as_jax.naming import names_of
from stretto.as_jax.types import Array

__all__: list[str]

ndarray = Array
_get, __dir__ = names_of("stretto.numpy")


def __getattr__(name: str) -> Any:
    if name == "__all__":
        return [n for n in __dir__() if not n.startswith("_")]
    return TAKING_KEYS[name] if name in TAKING_KEYS else _get(name)
