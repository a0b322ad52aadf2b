"""Functions that move values across the examples of a named axis: ``all_gather``, ``ppermute`` ….

Also an example's index along the axis, and the size of the axis. Names and results follow
``jax.lax``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core import tree
from stretto._engine.core.integers import integers
from stretto._engine.core.typing import Array
from stretto._engine.ops.collective.named_axes import Axes, entry, groups_of, sequence_of
from stretto._engine.ops.collective.primitives import (
    AllToAll,
    PPermute,
    PSumScatter,
    sources_of,
    take_rows,
)
from stretto._engine.ops.collective.reductions import leaf_value, over_examples, sum_of
from stretto._engine.ops.elementwise import NUMERIC
from stretto._engine.ops.layout import canonical_axis, move_axis, move_to_front, reshape


@over_examples
def ppermute(x: Any, axis_name: Any, perm: Sequence[tuple[int, int]]) -> Any:
    """Send the leaves of a tree from examples of a mapped axis to others.

    Args:
        perm: pairs (source, destination) of indices.

    Returns:
        What each example receives; zeros where nothing is sent.

    Raises:
        TypeError: a leaf is not an array, or an index is not an integer.
        ValueError: an index is out of range, or is a source or a destination twice.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> shift = lambda x: st.lax.ppermute(x, "i", [(0, 1), (1, 2)])
    >>> st.vmap(shift, axis_name="i")(snp.array([5, 6, 7]))
    Array([0, 5, 6], dtype=int32)
    """
    axes = Axes(axis_name, "ppermute")
    expected = "(source, destination) pairs"
    pairs: list[tuple[int, int]] = []
    for part in sequence_of(perm, "ppermute", "perm", expected):
        pair = integers(part, "ppermute", "perm")
        if len(pair) != 2:
            raise ValueError(f"ppermute: perm must be a sequence of {expected}, got {perm}")
        pairs.append(pair)
    for places in zip(*pairs, strict=True):
        if len(set(places)) < len(places) or not all(0 <= i < axes.size for i in places):
            raise ValueError(
                f"ppermute: perm must have each of the {axes.size} indices at most once as a "
                f"source and at most once as a destination; got {pairs}"
            )
    if len(axes.names) == 1:
        permute = PPermute(axes.names[0], axes.size, tuple(pairs))
        return tree.map(lambda leaf: permute(leaf_value(leaf, "ppermute")), x)
    sources = sources_of(pairs, axes.size)

    def permuted(leaf: Any) -> Any:
        rows = take_rows(axes.whole(leaf_value(leaf, "ppermute")), sources, 0)
        return entry(rows, axes.index(), 0)

    return tree.map(permuted, x)


@over_examples
def pshuffle(x: Any, axis_name: Any, perm: Sequence[int]) -> Any:
    """Permute the examples of a mapped axis.

    Args:
        perm: the index of the example whose values each one receives.

    Returns:
        What example ``perm[i]`` has, in example ``i``.

    Raises:
        TypeError: ``perm`` is not a sequence of integers.
        ValueError: ``perm`` does not have each index once.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pshuffle(x, "i", [2, 0, 1]), axis_name="i")(snp.array([5, 6, 7]))
    Array([7, 5, 6], dtype=int32)
    """
    size = Axes(axis_name, "pshuffle").size
    sources = integers(perm, "pshuffle", "perm")
    if sorted(sources) != list(range(size)):
        raise ValueError(f"pshuffle: perm must have each of the {size} indices once, got {perm}")
    return ppermute(x, axis_name, [(source, i) for i, source in enumerate(sources)])


@over_examples
def all_gather(
    x: Any,
    axis_name: Any,
    *,
    axis_index_groups: Any = None,
    axis: int = 0,
    tiled: bool = False,
    to: str = "varying",
) -> Any:
    """Collect the leaves of all examples of a mapped axis.

    Args:
        axis: the place of the new axis.
        tiled: whether to join along the axis that is there, instead of a new one.
        to: ``"varying"`` or ``"reduced"``, which make no difference here; in JAX they choose the
            type of the result.

    Returns:
        The leaves of all examples of a group, in order.

    Raises:
        TypeError: a leaf is not an array.
        ValueError: sizes or axes do not fit, or the groups are not of one size, each index in one
            of them.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x - st.lax.all_gather(x, "i"), axis_name="i")(snp.array([1, 3]))
    Array([[ 0, -2],
           [ 2,  0]], dtype=int32)
    """
    if to not in ("varying", "reduced"):
        raise ValueError(f"all_gather: to must be 'varying' or 'reduced', got {to!r}")
    axes = Axes(axis_name, "all_gather")
    groups = groups_of(axes, axis_index_groups, equal=True)

    def gathered(leaf: Any) -> Any:
        value = leaf_value(leaf, "all_gather")
        rows = axes.whole(value) if groups is None else groups.of_own(groups.rows(value, None))
        return _move_rows(rows, axis, tiled, "all_gather")

    return tree.map(gathered, x)


def _move_rows(rows: Any, axis: int, tiled: bool, caller: str) -> Any:
    """Move axis 0 to ``axis`` of the result, or join it with the one that is there."""
    at = canonical_axis(axis, rows.ndim - tiled, caller)
    moved = move_axis(rows, 0, at)
    if not tiled:
        return moved
    shape = moved.shape
    return reshape(moved, (*shape[:at], shape[at] * shape[at + 1], *shape[at + 2 :]))


def _split_rows(x: Any, axis: int, count: int, tiled: bool, caller: str, argument: str) -> Any:
    """Return the entries along ``axis`` for each of ``count`` examples, along axis 0."""
    at = canonical_axis(axis, x.ndim, caller)
    n = x.shape[at]
    if tiled and count and not n % count:
        parts = reshape(x, (*x.shape[:at], count, n // count, *x.shape[at + 1 :]))
        return move_to_front(parts, at)
    if tiled or n != count:
        expected = f"a multiple of {count}" if tiled else f"{count}"
        raise ValueError(
            f"{caller}: {argument} {axis} of {x.type} has size {n}; expected {expected}, an entry "
            f"for each example"
        )
    return move_to_front(x, at)


@over_examples
def all_to_all(
    x: Any,
    axis_name: Any,
    split_axis: int,
    concat_axis: int,
    *,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Deal out an axis of each example to the examples, and stack what each receives.

    Args:
        split_axis: the axis to deal out, of the size of the named one.
        concat_axis: the place of the new axis in the result.
        tiled: whether to cut the split axis into as many parts, and to join along ``concat_axis``.

    Returns:
        In example ``i``, the entries ``i`` of all examples of its group, in order.

    Raises:
        TypeError: a leaf is not an array.
        ValueError: sizes or axes do not fit, or the groups are not of one size, each index in one
            of them.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> exchange = lambda x: st.lax.all_to_all(x, "i", 0, 0)
    >>> st.vmap(exchange, axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    places = (split_axis, concat_axis)
    return _exchanged("all_to_all", "split_axis", x, axis_name, places, axis_index_groups, tiled)


def _exchanged(
    caller: str,
    argument: str,
    x: Any,
    axis_name: Any,
    places: tuple[int, int],
    axis_index_groups: Any,
    tiled: bool,
) -> Any:
    """Return what ``all_to_all`` gives; errors name the caller and its argument."""
    split_axis, concat_axis = places
    axes = Axes(axis_name, caller)
    groups = groups_of(axes, axis_index_groups, equal=True)
    count = axes.size if groups is None else groups.size

    def exchanged(leaf: Any) -> Any:
        value = leaf_value(leaf, caller)
        rows = _split_rows(value, split_axis, count, tiled, caller, argument)
        if groups is not None:
            rows = entry(groups.of_own(groups.rows(rows, None)), groups.own(groups.rank), 1)
        else:
            parts = axes.parts(rows)
            for k, (name, size) in enumerate(axes.pairs):
                parts = move_axis(AllToAll(name, size)(move_axis(parts, k, 0)), 0, k)
            rows = reshape(parts, rows.shape)
        return _move_rows(rows, concat_axis, tiled, caller)

    return tree.map(exchanged, x)


@over_examples
def pswapaxes(x: Any, axis_name: Any, axis: int, *, axis_index_groups: Any = None) -> Any:
    """Exchange the named axis with an axis of the arrays.

    Args:
        axis: the axis of the arrays, of the size of the named one.

    Returns:
        The tree with the axes exchanged.

    Raises:
        ValueError: sizes or axes do not fit, or the groups are not of one size, each index in one
            of them.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.pswapaxes(x, "i", 0), axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    return _exchanged("pswapaxes", "axis", x, axis_name, (axis, axis), axis_index_groups, False)


@over_examples
def psum_scatter(
    x: Any,
    axis_name: Any,
    *,
    scatter_dimension: int = 0,
    axis_index_groups: Any = None,
    tiled: bool = False,
) -> Any:
    """Sum over the examples of a mapped axis, and give each its own entry of the sum.

    Args:
        scatter_dimension: the axis that is dealt out, of the size of the named one.
        tiled: whether each example receives a part of that axis, instead of one entry without it.

    Returns:
        The entries of the sum.

    Raises:
        TypeError: a leaf is not an array of numbers, or it is boolean.
        ValueError: sizes or axes do not fit, or the groups are not of one size, each index in one
            of them.
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: st.lax.psum_scatter(x, "i"), axis_name="i")(snp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    axes = Axes(axis_name, "psum_scatter")
    groups = groups_of(axes, axis_index_groups, equal=True)
    count = axes.size if groups is None else groups.size

    def scattered(leaf: Any) -> Any:
        value = leaf_value(leaf, "psum_scatter", NUMERIC)
        caller, argument = "psum_scatter", "scatter_dimension"
        rows = _split_rows(value, scatter_dimension, count, tiled, caller, argument)
        if groups is not None:
            rows = entry(sum_of(rows, axes, groups), groups.own(groups.rank), 0)
        else:
            rows = axes.parts(rows)
            for name, size in axes.pairs:
                rows = PSumScatter(name, size)(rows)
        return rows

    return tree.map(scattered, x)


@over_examples
def axis_index(axis_name: Any) -> Array:
    """Return the index of the example along a mapped axis.

    Returns:
        An int32; for a tuple of names, the index among all their examples.

    Raises:
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x * st.lax.axis_index("i"), axis_name="i")(snp.array([7, 7, 7]))
    Array([ 0,  7, 14], dtype=int32)
    """
    return Axes(axis_name, "axis_index").index()


@over_examples
def axis_size(axis_name: Any) -> int:
    """Return the size of a mapped axis.

    Returns:
        A Python integer; for a tuple of names, the product.

    Raises:
        UnboundAxisError: no ``vmap`` around the call has that axis; it is a ``NameError``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.vmap(lambda x: x / st.lax.axis_size("i"), axis_name="i")(snp.array([2.0, 4.0]))
    Array([1., 2.], dtype=float32)
    """
    return Axes(axis_name, "axis_size").size
