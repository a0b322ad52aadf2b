"""``stretto.ops``: sums, products and extrema of the parts of an array that belong together.

Under the names of ``jax.ops``.

>>> import stretto as st, stretto.numpy as snp
>>> st.ops.segment_sum(snp.array([1.0, 2.0, 4.0]), snp.array([0, 1, 0]), 2)
Array([5., 2.], dtype=float32)
"""

from stretto._engine.core.guarded import guard_module
from stretto._engine.ops.index.segments import (
    segment_max,
    segment_min,
    segment_prod,
    segment_sum,
)

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]

guard_module(__name__)
