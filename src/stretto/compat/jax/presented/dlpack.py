"""``jax.dlpack``."""

from __future__ import annotations

from typing import Any

from stretto import numpy as snp

__all__ = ["from_dlpack", "is_supported_dtype", "to_dlpack"]

from_dlpack = snp.from_dlpack


def to_dlpack(x: Any, stream: Any = None, **options: Any) -> Any:
    """The capsule for an array's memory."""
    del stream
    return x.__dlpack__(**options)


def is_supported_dtype(dtype: Any) -> bool:
    """Whether arrays of a dtype can be handed over."""
    return snp.dtype(dtype).kind in "biufc"
