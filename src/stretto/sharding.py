"""Meshes of devices, and shardings: which part of an array is on which device.

``NamedSharding`` puts a ``Mesh`` and a ``PartitionSpec`` together. ``stretto.device_put`` puts
arrays where a sharding says; ``stretto.jit`` follows the shardings of its arguments.
"""

from stretto._engine.api.sharding.arrays_from_parts import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from stretto._engine.core.lazy import exports
from stretto._engine.core.mesh import Mesh, PartitionSpec
from stretto._engine.core.shardings import (
    NamedSharding,
    Sharding,
    SingleDeviceSharding,
    get_mesh,
    set_mesh,
)

__all__ = ["Mesh", "NamedSharding", "PartitionSpec", "Sharding", "SingleDeviceSharding",
           "get_mesh", "make_array_from_callback", "make_array_from_process_local_data",
           "make_array_from_single_device_arrays", "set_mesh"]  # fmt: skip

exports(__name__)
