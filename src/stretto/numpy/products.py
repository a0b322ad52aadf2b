"""Products that sum over axes.

Layer 7 (numpy). They are the operations of ``ops.contract`` under NumPy's names.
"""

from stretto.ops.contract import dot, inner, matmul, outer, tensordot, vdot

__all__ = ["dot", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]
