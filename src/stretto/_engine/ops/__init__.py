"""The first-order operations, each primitive in one class beside its function.

Read ``elementwise`` for the pattern, then ``broadcast``, where an operation meets its transpose.
Element-wise families and operations on axes lie here; ``linalg convolution index reducing special
collective`` are folders.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:  # loaded when first used
    from stretto._engine.ops import sharding_constraint, sort_lowering

exports(__name__)
