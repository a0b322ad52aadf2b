"""``jax.interpreters.xla``."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto.numpy import asarray

__all__ = ["apply_primitive", "canonicalize_dtype_handlers"]

canonicalize_dtype_handlers: dict[type, Any] = {np.ndarray: asarray}
"""By class: the function that makes an array of one.

Kept for libraries that add classes; Stretto's functions take whatever has ``__array__``.
"""


def apply_primitive(prim: Any, *args: Any, **params: Any) -> Any:
    """Apply a primitive."""
    return prim.bind(*args, **params)
