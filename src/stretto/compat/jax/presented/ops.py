"""``jax.ops``."""

from stretto._engine.ops.index.segments import (
    segment_max,
    segment_min,
    segment_prod,
    segment_sum,
)

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]
