"""Operations across the examples of a named axis. Begin with ``named_axes``."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.ops.collective import functions, reductions

exports(__name__)
