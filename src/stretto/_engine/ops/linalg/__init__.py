"""Factorizations of matrices, and systems solved with them. Begin with ``family``."""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.ops.linalg import lu, written_out

exports(__name__)
