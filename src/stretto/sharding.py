"""Meshes of devices, and shardings: which part of an array is on which device.

``NamedSharding`` puts a ``Mesh`` and a ``PartitionSpec`` together. ``stretto.device_put`` puts
arrays where a sharding says; ``stretto.jit`` follows the shardings of its arguments.
"""

from stretto._engine.api.sharding.shardings import (
    make_array_from_callback as make_array_from_callback,
    make_array_from_process_local_data as make_array_from_process_local_data,
    make_array_from_single_device_arrays as make_array_from_single_device_arrays,
)  # fmt: skip
from stretto._engine.core.lazy import exports
from stretto._engine.core.mesh import Mesh as Mesh, PartitionSpec as PartitionSpec
from stretto._engine.core.shardings import (
    NamedSharding as NamedSharding, Sharding as Sharding,
    SingleDeviceSharding as SingleDeviceSharding, get_mesh as get_mesh, set_mesh as set_mesh,
)  # fmt: skip

exports(__name__)
