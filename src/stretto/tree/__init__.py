"""``stretto.tree``: trees of arrays, and arithmetic on them.

The structure functions come from ``core.tree``; here is what computes. ``reducing`` leaves to one
value · ``members``: a list of trees, and one stacked tree · ``sums`` with weights, in one pass ·
``arithmetic``: trees as vectors.

To type checkers the result of a function of trees is of its argument's type: the structure is the
same, though leaves that were numbers, or NumPy's arrays, have become ``Array``.
"""

from typing import TYPE_CHECKING

from stretto._engine.core.lazy import exports

if TYPE_CHECKING:
    from stretto._engine.core.nodes import (
        DictKey as DictKey, FlattenedIndexKey as FlattenedIndexKey, GetAttrKey as GetAttrKey,
        SequenceKey as SequenceKey, keystr as keystr,
    )  # fmt: skip
    from stretto._engine.core.tree import (
        flatten as flatten, flatten_with_path as flatten_with_path, leaves as leaves, map as map,
        register_dataclass as register_dataclass, register_pytree_node as register_pytree_node,
        register_pytree_node_class as register_pytree_node_class,
        register_pytree_with_keys as register_pytree_with_keys,
        register_pytree_with_keys_class as register_pytree_with_keys_class,
        register_static as register_static, structure as structure, unflatten as unflatten,
    )  # fmt: skip
    from stretto.tree.arithmetic import *
    from stretto.tree.members import (
        concat as concat, stack as stack, take as take, unstack as unstack,
    )  # fmt: skip
    from stretto.tree.sums import (
        axpy as axpy, lerp as lerp, mean as mean, weighted_sum as weighted_sum,
    )  # fmt: skip

exports(
    __name__,
    """
    stretto._engine.core.nodes: DictKey FlattenedIndexKey GetAttrKey SequenceKey keystr
    stretto._engine.core.tree: flatten flatten_with_path leaves map register_dataclass
        register_pytree_node register_pytree_node_class register_pytree_with_keys
        register_pytree_with_keys_class register_static structure unflatten
    .arithmetic: Partial Unravel all broadcast cast dot leaves_with_path map_with_path norm ravel
        reduce reduce_associative slerp static transpose
    .members: concat stack take unstack
    .sums: axpy lerp mean weighted_sum
    """,
)
