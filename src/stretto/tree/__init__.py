"""``stretto.tree``: trees of arrays, and arithmetic on them.

The structure functions come from ``core.tree``; here is what computes. ``reducing`` leaves to one
value · ``members``: a list of trees, and one stacked tree · ``sums`` with weights, in one pass ·
``arithmetic``: trees as vectors.

To type checkers the result of a function of trees is of its argument's type: the structure is the
same, though leaves that were numbers, or NumPy's arrays, have become ``Array``.
"""

from stretto._engine.core.tree import (
    flatten,
    flatten_with_path,
    leaves,
    map,
    register_dataclass,
    register_pytree_node,
    register_pytree_node_class,
    structure,
    unflatten,
)
from stretto.tree.arithmetic import cast, dot, norm, slerp
from stretto.tree.members import concat, stack, take, unstack
from stretto.tree.reducing import (
    all,
    broadcast,
    leaves_with_path,
    map_with_path,
    reduce,
    reduce_associative,
    static,
    transpose,
)
from stretto.tree.sums import axpy, lerp, mean, weighted_sum

__all__ = [
    "all",
    "axpy",
    "broadcast",
    "cast",
    "concat",
    "dot",
    "flatten",
    "flatten_with_path",
    "leaves",
    "leaves_with_path",
    "lerp",
    "map",
    "map_with_path",
    "mean",
    "norm",
    "reduce",
    "reduce_associative",
    "register_dataclass",
    "register_pytree_node",
    "register_pytree_node_class",
    "slerp",
    "stack",
    "static",
    "structure",
    "take",
    "transpose",
    "unflatten",
    "unstack",
    "weighted_sum",
]
