"""Sums, means and extrema over the examples of a named axis.

Inside ``vmap(..., axis_name="i")`` they combine the values of the examples, with the names and
results of ``jax.lax``. A tuple of names stands for all their examples together, the last name
varying fastest.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.collective.named_axes import Axes, Groups, groups_of
from stretto._engine.ops.collective.primitives import PSum
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import COMPARABLE, NUMERIC
from stretto._engine.ops.reducing.reduce import greatest_below, least_above, reduce_max, reduce_min

over_examples = described(
    {
        "x": "a tree of arrays.",
        "axis_name": """the name of the axis of a ``vmap`` around the call, or a tuple of
        names.""",
        "axis_index_groups": """lists of indices along the axis, the groups to work within; by
        default all are one group.""",
    },
    raises="""ValueError: an index is not in exactly one group.
    UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.""",
)
"""Complete the docstring of a function that combines the examples of a named axis."""


def leaf_value(x: Any, caller: str, kinds: frozenset[str] | None = None) -> Any:
    """Return a leaf as a value, of one of these kinds."""
    x = as_value(x, caller, "a leaf of x")
    if kinds is not None and kind_of(x.dtype) not in kinds:
        raise TypeError(f"{caller}: expected {' or '.join(sorted(kinds))}, got {x.type}")
    return x


def sum_of(x: Any, axes: Axes, groups: Groups | None) -> Any:
    """Return the sum of a value over all examples, or those of the group."""
    if groups is not None:
        return groups.of_own(reduce_sum(groups.rows(x, 0), (1,)))
    for name, size in axes.pairs:
        x = PSum(name, size)(x)
    return x


def _total(x: Any, axes: Axes, groups: Groups | None) -> Any:
    """Return the sum of each leaf of a tree.

    A Python number stays one if all groups have one size.
    """

    def summed(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex) and (groups is None or groups.equal):
            return leaf * (axes.size if groups is None else groups.size)
        value = leaf_value(leaf, axes.caller, NUMERIC | {"bool"})
        if kind_of(value.dtype) == "bool":
            value = convert(value, np.dtype(np.int32))
        return sum_of(value, axes, groups)

    return tree.map(summed, x)


@over_examples
def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Sum each leaf over the examples of a mapped axis.

    Args:
        x: a tree of arrays; booleans count as int32.

    Returns:
        The sums, the same for all examples of a group. A Python number is multiplied and stays one:
            ``psum(1, "i")`` is the size of the axis.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x / st.lax.psum(x, "i"), axis_name="i")(snp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    axes = Axes(axis_name, "psum")
    return _total(x, axes, groups_of(axes, axis_index_groups))


@over_examples
def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Average each leaf over the examples of a mapped axis.

    With it, batch normalization can be written for one example.

    Returns:
        The means, the same for all examples of a group.

    >>> import stretto as st, stretto.numpy as snp
    >>> def normalized(x):
    ...     mean = st.lax.pmean(x, "batch")
    ...     variance = st.lax.pmean((x - mean) ** 2, "batch")
    ...     return (x - mean) / snp.sqrt(variance + 1e-5)
    >>> st.vmap(normalized, axis_name="batch")(snp.array([[1.0, 4.0], [3.0, 4.0]]))
    Array([[-0.999995,  0.      ],
           [ 0.999995,  0.      ]], dtype=float32)
    """
    axes = Axes(axis_name, "pmean")
    groups = groups_of(axes, axis_index_groups)
    if groups is None:
        count: Any = axes.size
    else:
        count = groups.size if groups.equal else groups.own(groups.sizes[groups.of])
    return tree.map(lambda leaf: leaf / count, _total(x, axes, groups))


def _extreme(
    caller: str,
    reduction: Callable[..., Any],
    identity: Callable[[np.dtype], Any],
    x: Any,
    axis_name: Any,
    groups: Any,
) -> Any:
    axes = Axes(axis_name, caller)
    grouped = groups_of(axes, groups)

    def reduced(leaf: Any) -> Any:
        value = leaf_value(leaf, caller, COMPARABLE | {"bool"})
        if grouped is None:
            return reduction(axes.whole(value), (0,))
        rows = grouped.rows(value, identity(value.dtype))
        return grouped.of_own(reduction(rows, (1,)))

    return tree.map(reduced, x)


@over_examples
def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Take the greatest of each element over the examples of a mapped axis.

    The derivative is shared equally among examples that tie.

    Returns:
        The greatest values, the same for all examples of a group; NaN where any is.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pmax(x, "i") - x, axis_name="i")(snp.array([1, 5, 2]))
    Array([4, 0, 3], dtype=int32)
    """
    return _extreme("pmax", reduce_max, greatest_below, x, axis_name, axis_index_groups)


@over_examples
def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """Take the least of each element over the examples of a mapped axis.

    The derivative is shared equally among examples that tie.

    Returns:
        The least values, the same for all examples of a group; NaN where any is.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pmin(x, "i"), axis_name="i", out_axes=None)(snp.array([3, 2]))
    Array(2, dtype=int32)
    """
    return _extreme("pmin", reduce_min, least_above, x, axis_name, axis_index_groups)
