"""Functions across the examples of a named axis, with the names and results of ``jax.lax``.

First the named axes as collectives see them, which ``vmap`` binds while its function runs: which
are bound, an example's index, groups of examples. Then sums, means and extrema over the examples;
functions that move values across them, ``all_gather``, ``ppermute`` and others; an example's index
and the size of the axis. A tuple of names stands for all their examples together, the last name
varying fastest.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core import tree
from stretto._engine.core.config import settings
from stretto._engine.core.errors import UnboundAxisError
from stretto._engine.core.functions import described
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.collective import primitives
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import COMPARABLE, NUMERIC
from stretto._engine.ops.index.dynamic import dynamic_index_in_dim
from stretto._engine.ops.layout import canonical_axis, move_axis, move_to_front, reshape
from stretto._engine.ops.reducing.reduce import greatest_below, least_above, reduce_max, reduce_min


class Axes:
    """The axes that a call names, and the caller, whom messages name."""

    def __init__(self, axis_name: Any, caller: str) -> None:
        try:
            is_name = axis_name in settings.axes
        except TypeError:  # not hashable
            is_name = False
        is_sequence = not is_name and isinstance(axis_name, (tuple, list))
        self.caller = caller
        self.names = tuple(axis_name) if is_sequence else (axis_name,)
        try:
            self.sizes = tuple([settings.axes[name] for name in self.names])
        except (KeyError, TypeError):
            bound = list(settings.axes)
            missing = next(name for name in self.names if name not in bound)
            raise UnboundAxisError(
                f"{caller}: unbound axis name {missing!r}; bound here are: "
                f"{', '.join(map(repr, bound)) or 'none'}. Name the axis in the vmap that maps "
                f"over it: vmap(fun, axis_name={missing!r})"
            ) from None
        if len(set(self.names)) != len(self.names):
            raise ValueError(f"{caller}: axis_name {axis_name!r} names an axis twice")
        self.size = math.prod(self.sizes)

    @property
    def pairs(self) -> list[tuple[Any, int]]:
        """Each name with its size."""
        return list(zip(self.names, self.sizes, strict=True))

    def index(self) -> Any:
        """Return the example's index among all, an int32."""
        index = as_value(np.int32(0))
        for k, (name, size) in enumerate(self.pairs):
            here = primitives.AxisIndex(name, size)()
            index = index * size + here if k else here
        return index

    def whole(self, x: Any) -> Any:
        """Return all examples along a new axis 0."""
        shape = x.shape
        for name, size in reversed(self.pairs):
            x = primitives.AllGather(name, size)(x)
        return reshape(x, (self.size, *shape))

    def parts(self, x: Any) -> Any:
        """Return axis 0, an entry for each example, as an axis for each name."""
        return reshape(x, (*self.sizes, *x.shape[1:]))


class Groups(NamedTuple):
    """The examples in groups that do not mix."""

    axes: Axes
    members: np.ndarray
    """Hold for each group the indices of its examples, padded with one past the end."""
    sizes: np.ndarray
    of: np.ndarray
    """Hold for each example the number of its group."""
    rank: np.ndarray
    """Hold for each example its place in its group."""

    @property
    def equal(self) -> bool:
        """Say whether all groups have one size."""
        return len(set(self.sizes)) <= 1

    @property
    def size(self) -> int:
        """The size of the largest group."""
        return self.members.shape[1]

    def own(self, table: np.ndarray) -> Any:
        """Return the example's entry of a table."""
        return entry(as_value(table.astype(np.int32)), self.axes.index(), 0)

    def rows(self, x: Any, fill: Any) -> Any:
        """Return the values of all examples along two new axes, group and member."""
        return primitives.take_rows(self.axes.whole(x), self.members, fill)

    def of_own(self, x: Any) -> Any:
        """Return the entry along axis 0 for the example's group."""
        return entry(x, self.own(self.of), 0)


def entry(x: Any, index: Any, axis: int) -> Any:
    """Return the entry of number ``index`` along ``axis``, which goes away."""
    return dynamic_index_in_dim(x, index, axis, keepdims=False)


def groups_of(axes: Axes, index_groups: Any, *, equal: bool = False) -> Groups | None:
    """Return the groups with these indices, or None for None; ``equal`` refuses unequal sizes.

    Raises ``TypeError`` for what is not lists of integers, ``ValueError`` unless each index is in
    exactly one of them.
    """
    if index_groups is None:
        return None
    lists = sequence_of(index_groups, axes.caller, "axis_index_groups", "lists of indices")
    groups = [list(integers(group, axes.caller, "axis_index_groups")) for group in lists]
    if sorted(i for group in groups for i in group) != list(range(axes.size)):
        raise ValueError(
            f"{axes.caller}: axis_index_groups must have each of the {axes.size} indices once, got "
            f"{index_groups}"
        )
    sizes = np.array([len(group) for group in groups], np.int32)
    members = np.full((len(groups), max(sizes, default=0)), axes.size, np.int32)
    of, rank = np.zeros(axes.size, np.int32), np.zeros(axes.size, np.int32)
    for k, group in enumerate(groups):
        members[k, : len(group)] = group
        of[group], rank[group] = k, range(len(group))
    result = Groups(axes, members, sizes, of, rank)
    if equal and not result.equal:
        raise ValueError(
            f"{axes.caller}: groups in axis_index_groups must have one size, got sizes "
            f"{sizes.tolist()}"
        )
    return result


def sequence_of(values: Any, caller: str, argument: str, elements: str) -> list[Any]:
    """Return the elements of a sequence; raises ``TypeError``, which says what they must be."""
    try:
        return list(values)
    except TypeError:
        message = f"{caller}: {argument} must be a sequence of {elements}, got {values!r}"
        raise TypeError(message) from None


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
        x = primitives.PSum(name, size)(x)
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
        permute = primitives.PPermute(axes.names[0], axes.size, tuple(pairs))
        return tree.map(lambda leaf: permute(leaf_value(leaf, "ppermute")), x)
    sources = primitives.sources_of(pairs, axes.size)

    def permuted(leaf: Any) -> Any:
        rows = primitives.take_rows(axes.whole(leaf_value(leaf, "ppermute")), sources, 0)
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
    return _exchange("all_to_all", "split_axis", x, axis_name, places, axis_index_groups, tiled)


def _exchange(
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
                parts = move_axis(primitives.AllToAll(name, size)(move_axis(parts, k, 0)), 0, k)
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
    return _exchange("pswapaxes", "axis", x, axis_name, (axis, axis), axis_index_groups, False)


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
                rows = primitives.PSumScatter(name, size)(rows)
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
