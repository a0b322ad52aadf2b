"""Operations across the examples of a named axis, in ``functions``, and their primitives."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.ops.collective import functions

exports(__name__)
