"""Arrays over devices: where they are put, and functions that run on each device's part."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.api.sharding import shard_map, placement

exports(__name__)
