"""Many elements to one: over axes, along them, in windows. Begin with ``reduce``."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.ops.reducing import cumulative, running

exports(__name__)
