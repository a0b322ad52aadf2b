"""Meshes of the devices that there are."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.boundary import boundary
from stretto._engine.core.integers import integers
from stretto._engine.core.mesh import Mesh
from stretto._engine.xla.device import Device
from stretto._engine.xla.device import devices as all_devices


def make_mesh(
    axis_shapes: Sequence[int],
    axis_names: Sequence[Any],
    *,
    devices: Sequence[Device] | None = None,
) -> Mesh:
    """Make a mesh of devices.

    Args:
        axis_shapes: the number of devices along each axis.
        axis_names: the name of each axis.
        devices: the devices, row by row; by default as many of all devices as are needed, in the
            order of their ids.

    Returns:
        The mesh.

    Raises:
        TypeError: a size is not an integer.
        ValueError: there are not as many names as axes, or not as many devices.

    >>> import stretto as st
    >>> st.make_mesh((1, 1), ("members", "data"))
    Mesh('members': 1, 'data': 1)
    """
    with boundary:
        sizes = integers(axis_shapes, "make_mesh", "axis_shapes")
        names = tuple(axis_names) if isinstance(axis_names, (tuple, list)) else (axis_names,)
        if len(sizes) != len(names) or min(sizes, default=1) < 1:
            raise ValueError(
                f"make_mesh: axis_shapes must have a size of at least 1 for each of the names "
                f"{names!r}; got {tuple(sizes)}"
            )
        count = math.prod(sizes)
        there = all_devices() if devices is None else list(devices)
        if len(there) < count or (devices is not None and len(there) > count):
            way = (
                "; set config.num_cpu_devices, or STRETTO_NUM_CPU_DEVICES, before anything is "
                "compiled, to have more for trying things out"
            )
            raise ValueError(
                f"make_mesh: axis_shapes {tuple(sizes)} needs {count} devices, and there are "
                f"{len(there)}{way if devices is None else ''}"
            )
        array = np.empty(count, object)
        array[:] = there[:count]
        return Mesh(array.reshape(sizes), names)
