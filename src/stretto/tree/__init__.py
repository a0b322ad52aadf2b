"""``stretto.tree``: trees of arrays, and arithmetic on them.

The structure functions come from ``core.tree``; here is what computes. ``reducing`` leaves to one
value · ``members``: a list of trees, and one stacked tree · ``sums`` with weights, in one pass ·
``arithmetic``: trees as vectors.

To type checkers the result of a function of trees is of its argument's type: the structure is the
same, though leaves that were numbers, or NumPy's arrays, have become ``Array``.
"""

from stretto._engine.core.lazy import imports_on_demand

with imports_on_demand(__name__):
    from stretto._engine.core.tree import (
        flatten as flatten,
        flatten_with_path as flatten_with_path,
        leaves as leaves,
        map as map,
        register_dataclass as register_dataclass,
        register_pytree_node as register_pytree_node,
        register_pytree_node_class as register_pytree_node_class,
        structure as structure,
        unflatten as unflatten,
    )
    from stretto.tree.arithmetic import cast as cast, dot as dot, norm as norm, slerp as slerp
    from stretto.tree.members import (
        concat as concat,
        stack as stack,
        take as take,
        unstack as unstack,
    )
    from stretto.tree.reducing import (
        all as all,
        broadcast as broadcast,
        leaves_with_path as leaves_with_path,
        map_with_path as map_with_path,
        reduce as reduce,
        reduce_associative as reduce_associative,
        static as static,
        transpose as transpose,
    )
    from stretto.tree.sums import (
        axpy as axpy,
        lerp as lerp,
        mean as mean,
        weighted_sum as weighted_sum,
    )
