"""Layer 2: the first-order operations, each primitive in one class beside its function.

Read ``elementwise`` for the pattern, then ``broadcast``, where an operation meets its transpose.

``stretto._engine.ops`` gives users the functions of ``segments``, as ``jax.ops`` does.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import names_on_demand

if TYPE_CHECKING:
    from stretto._engine.ops.index.segments import segment_max, segment_min, segment_prod, segment_sum
else:
    __getattr__, __dir__ = names_on_demand(
        __name__, {"stretto._engine.ops.index.segments": "segment_max segment_min segment_prod segment_sum"}
    )

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
