"""Arrays, devices and compiled programs; only ``clients`` and ``pjrt`` import jaxlib.

Read ``pjrt`` (jaxlib), ``array``, ``cache`` and ``disk`` (compiled programs, kept), then
``callbacks``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.xla import (
        background,
        disk,
        ending,
        environment,
        kernels,
        memory,
        partitions,
        plugins,
        printing,
        sharded,
        store,
    )

exports(__name__)
