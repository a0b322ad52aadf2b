"""The transformations as users call them, on functions of trees."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.api import exported, sharding, varying_sizes

exports(__name__)
