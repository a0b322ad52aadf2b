"""Functions across the examples of a named axis: ``psum``, ``all_gather``, ``ppermute`` and more.

Layer 2 (ops). Inside ``vmap(..., axis_name="i")`` they combine what the examples have. Names, and
what the results are, follow ``jax.lax``. A tuple of names stands for all their examples together,
the last name counting fastest.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.ops.broadcast import (
    canonical_axis,
    move_axis,
    move_to_front,
    reduce_sum,
    reshape,
)
from stretto._engine.ops.collective.named_axes import Axes, Groups, entry, groups_of
from stretto._engine.ops.collective.primitives import (
    AllToAll,
    PPermute,
    PSum,
    PSumScatter,
    take_rows,
)
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import COMPARABLE, NUMERIC
from stretto._engine.ops.reducing.reduce import greatest_below, least_above, reduce_max, reduce_min

__all__ = [
    "all_gather",
    "all_to_all",
    "axis_index",
    "axis_size",
    "pmax",
    "pmean",
    "pmin",
    "ppermute",
    "pshuffle",
    "psum",
    "psum_scatter",
    "pswapaxes",
]


def _value(x: Any, who: str, kinds: frozenset[str] | None = None) -> Any:
    """A leaf as a value, of one of these kinds."""
    x = as_value(x, who, "a leaf of x")
    if kinds is not None and kind_of(x.dtype) not in kinds:
        raise TypeError(f"{who}: expected {' or '.join(sorted(kinds))}, got {x.type}")
    return x


def _sum(x: Any, axes: Axes, groups: Groups | None) -> Any:
    """The sum of a value over all examples, or those of the group."""
    if groups is not None:
        return groups.of_own(reduce_sum(groups.rows(x, 0), (1,)))
    for name, size in axes.pairs:
        x = PSum(name, size)(x)
    return x


def _total(x: Any, axes: Axes, groups: Groups | None) -> Any:
    """The sum of each leaf of a tree; Python numbers stay such where the count is one."""

    def one(leaf: Any) -> Any:
        if type(leaf) in (int, float, complex) and (groups is None or groups.equal):
            return leaf * (axes.size if groups is None else groups.size)
        value = _value(leaf, axes.who, NUMERIC | {"bool"})
        if kind_of(value.dtype) == "bool":
            value = convert(value, np.dtype(np.int32))
        return _sum(value, axes, groups)

    return tree.map(one, x)


def psum(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The sum of each leaf of ``x`` over the examples of the axis: the same for all of them.

    ``axis_name`` is that of a ``vmap`` around the call, or a tuple of such; ``axis_index_groups``
    lists groups of indices along the axis, each of which adds up its own. A Python number is
    counted so many times and stays one: ``psum(1, "i")`` is the size of the axis. Booleans are
    added as int32.

    Raises ``UnboundAxisError``, which is a ``NameError``, where no ``vmap`` has that name, and
    ``ValueError`` for groups that do not have each index once.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x / st.lax.psum(x, "i"), axis_name="i")(snp.array([1.0, 3.0]))
    Array([0.25, 0.75], dtype=float32)
    """
    axes = Axes(axis_name, "psum")
    return _total(x, axes, groups_of(axes, axis_index_groups))


def pmean(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The mean of each leaf of ``x`` over the examples of the axis: the same for all of them.

    Parameters and errors are those of ``psum``. Batch normalisation, written for one example:

    >>> import stretto as st, stretto.numpy as snp
    >>> def normalised(x):
    ...     mean = st.lax.pmean(x, "batch")
    ...     variance = st.lax.pmean((x - mean) ** 2, "batch")
    ...     return (x - mean) / snp.sqrt(variance + 1e-5)
    >>> st.vmap(normalised, axis_name="batch")(snp.array([[1.0, 4.0], [3.0, 4.0]]))
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
    who: str,
    reduction: Callable[..., Any],
    identity: Callable[[np.dtype], Any],
    x: Any,
    axis_name: Any,
    groups: Any,
) -> Any:
    axes = Axes(axis_name, who)
    grouped = groups_of(axes, groups)

    def one(leaf: Any) -> Any:
        value = _value(leaf, who, COMPARABLE | {"bool"})
        if grouped is None:
            return reduction(axes.whole(value), (0,))
        rows = grouped.rows(value, identity(value.dtype))
        return grouped.of_own(reduction(rows, (1,)))

    return tree.map(one, x)


def pmax(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The greatest of each element of ``x`` over the examples of the axis: the same for all.

    Parameters and errors are those of ``psum``. NaN where an example has it; the derivative is
    shared equally among examples that tie.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pmax(x, "i") - x, axis_name="i")(snp.array([1, 5, 2]))
    Array([4, 0, 3], dtype=int32)
    """
    return _extreme("pmax", reduce_max, greatest_below, x, axis_name, axis_index_groups)


def pmin(x: Any, axis_name: Any, *, axis_index_groups: Any = None) -> Any:
    """The least of each element of ``x`` over the examples of the axis: the same for all.

    Parameters and errors are those of ``psum``. NaN where an example has it; the derivative is
    shared equally among examples that tie.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pmin(x, "i"), axis_name="i", out_axes=None)(snp.array([3, 2]))
    Array(2, dtype=int32)
    """
    return _extreme("pmin", reduce_min, least_above, x, axis_name, axis_index_groups)


def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """The leaves of ``x`` that another example has, by pairs (source, destination).

    An example to which none is sent gets zeros. Raises ``ValueError`` where an index is out of
    range, or is twice a source or a destination; ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> shift = lambda x: st.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> st.vmap(shift, axis_name="i")(snp.array([5, 6, 7]))
    Array([0, 5, 6], dtype=int32)
    """
    axes = Axes(axis_name, "ppermute")
    pairs = tuple([integers(pair, "ppermute", "perm") for pair in perm])
    for places in zip(*pairs, strict=True):
        if len(set(places)) < len(places) or not all(0 <= i < axes.size for i in places):
            raise ValueError(
                f"ppermute: perm must have each of the {axes.size} indices at most once as a "
                f"source, and once as a destination; got {list(pairs)}"
            )
    if len(axes.names) == 1:
        permute = PPermute(axes.names[0], axes.size, pairs)
        return tree.map(lambda leaf: permute(_value(leaf, "ppermute")), x)
    sources = np.full(axes.size, axes.size, np.int32)
    for source, destination in pairs:
        sources[destination] = source

    def one(leaf: Any) -> Any:
        rows = take_rows(axes.whole(_value(leaf, "ppermute")), sources, 0)
        return entry(rows, axes.index(), 0)

    return tree.map(one, x)


def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """The leaves of ``x`` that example ``perm[i]`` has, in example ``i``.

    Raises ``ValueError`` unless ``perm`` has each index of the axis once; ``UnboundAxisError`` as
    ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(snp.array([5, 6, 7]))
    Array([7, 5, 6], dtype=int32)
    """
    size = Axes(axis_name, "pshuffle").size
    if sorted(perm) != list(range(size)):
        raise ValueError(f"pshuffle: perm must have each of the {size} indices once, got {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(perm)])


def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """The leaves of ``x`` of all examples, along a new axis at ``axis``: the same for all.

    With ``tiled`` they are joined along the axis that is there. With ``axis_index_groups``, which
    must be of one size, each example gets those of its group. ``to`` says how JAX types the result
    where arrays are split over devices: "varying" or "reduced", one and the same here.

    Raises ``ValueError`` where the axis is out of bounds or groups do not fit, and
    ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x - st.lax.all_gather(x, "i"), axis_name="i")(snp.array([1, 3]))
    Array([[ 0, -2],
           [ 2,  0]], dtype=int32)
    """
    if to not in ("varying", "reduced"):
        raise ValueError(f"all_gather: to must be 'varying' or 'reduced', got {to!r}")
    axes = Axes(axis_name, "all_gather")
    groups = groups_of(axes, axis_index_groups, equal=True)

    def one(leaf: Any) -> Any:
        value = _value(leaf, "all_gather")
        rows = axes.whole(value) if groups is None else groups.of_own(groups.rows(value, None))
        return _placed(rows, axis, tiled, "all_gather")

    return tree.map(one, x)


def _placed(rows: Any, axis: int, tiled: bool, who: str) -> Any:
    """Axis 0 moved to ``axis`` of the result, or joined with the one that is there."""
    at = canonical_axis(axis, rows.ndim - tiled, who)
    moved = move_axis(rows, 0, at)
    if not tiled:
        return moved
    shape = moved.shape
    return reshape(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def _taken(x: Any, axis: int, count: int, tiled: bool, who: str, argument: str) -> Any:
    """The entries along ``axis`` for each of ``count`` examples, along axis 0."""
    at = canonical_axis(axis, x.ndim, who)
    n = x.shape[at]
    if tiled and count and not n % count:
        parted = reshape(x, (*x.shape[:at], count, n // count, *x.shape[at + 1 :]))
        return move_to_front(parted, at)
    if tiled or n != count:
        expected = f"a multiple of {count}" if tiled else f"{count}"
        raise ValueError(
            f"{who}: {argument} {axis} of {x.type} has size {n}; expected {expected}, an entry for "
            f"each example"
        )
    return move_to_front(x, at)


def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Each example's ``split_axis`` dealt out to the examples, and what each gets stacked.

    Example ``i`` gets the entry ``i`` of all, in order, along a new axis at ``concat_axis`` of the
    result; ``split_axis``, of the size of the named axis, goes away. With ``tiled`` the split axis
    is cut into as many parts, and what comes is joined along ``concat_axis``. With
    ``axis_index_groups``, which must be of one size, each group keeps to itself.

    Raises ``ValueError`` where sizes or axes do not fit, and ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> exchange = lambda x: st.lax.all_to_all(x, "i", 0, 0)
    >>> st.vmap(exchange, axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    axes = Axes(axis_name, "all_to_all")
    groups = groups_of(axes, axis_index_groups, equal=True)
    count = axes.size if groups is None else groups.size

    def one(leaf: Any) -> Any:
        value = _value(leaf, "all_to_all")
        rows = _taken(value, split_axis, count, tiled, "all_to_all", "split_axis")
        if groups is not None:
            rows = entry(groups.of_own(groups.rows(rows, None)), groups.own(groups.rank), 1)
        else:
            parts = axes.parts(rows)
            for k, (name, size) in enumerate(axes.pairs):
                parts = move_axis(AllToAll(name, size)(move_axis(parts, k, 0)), 0, k)
            rows = reshape(parts, rows.shape)
        return _placed(rows, concat_axis, tiled, "all_to_all")

    return tree.map(one, x)


def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """The named axis and the array axis ``axis``, of one size, change places.

    Parameters and errors are those of ``all_to_all``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pswapaxes(x, "i", 0), axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return all_to_all(x, axis_name, axis, axis, axis_index_groups=axis_index_groups)


def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """The sum over the examples, of which each gets its own entry along ``scatter_dimension``.

    That axis, of the size of the named one, goes away; with ``tiled`` each gets a part of it. With
    ``axis_index_groups``, which must be of one size, each group keeps to itself.

    Raises ``ValueError`` where sizes or axes do not fit, and ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.psum_scatter(x, "i"), axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    axes = Axes(axis_name, "psum_scatter")
    groups = groups_of(axes, axis_index_groups, equal=True)
    count = axes.size if groups is None else groups.size

    def one(leaf: Any) -> Any:
        value = _value(leaf, "psum_scatter", NUMERIC)
        who, argument = "psum_scatter", "scatter_dimension"
        rows = _taken(value, scatter_dimension, count, tiled, who, argument)
        if groups is not None:
            rows = entry(_sum(rows, axes, groups), groups.own(groups.rank), 0)
        else:
            rows = axes.parts(rows)
            for name, size in axes.pairs:
                rows = PSumScatter(name, size)(rows)
        return rows

    return tree.map(one, x)


def axis_index(axis_name: Any) -> Any:
    """The place of the example along the axis, an int32; of a tuple of names, among all of them.

    Raises ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x * st.lax.axis_index("i"), axis_name="i")(snp.array([7, 7, 7]))
    Array([ 0,  7, 14], dtype=int32)
    """
    return Axes(axis_name, "axis_index").index()


def axis_size(axis_name: Any) -> int:
    """The size of the axis, a Python integer; of a tuple of names, the product.

    Raises ``UnboundAxisError`` as ``psum`` does.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x / st.lax.axis_size("i"), axis_name="i")(snp.array([2.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    return Axes(axis_name, "axis_size").size
