"""``jax.experimental.mesh_utils``."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

import stretto

__all__ = ["create_device_mesh"]


def create_device_mesh(
    mesh_shape: Sequence[int], devices: Sequence[Any] | None = None, **options: Any
) -> np.ndarray:
    """An array of devices of this shape."""
    del options
    given = list(stretto.devices() if devices is None else devices)
    if len(given) != math.prod(mesh_shape):
        raise ValueError(
            f"create_device_mesh: a mesh of shape {tuple(mesh_shape)} needs "
            f"{math.prod(mesh_shape)} devices, got {len(given)}"
        )
    made = np.empty(len(given), object)
    made[:] = given
    return made.reshape(tuple(mesh_shape))
