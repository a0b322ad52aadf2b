"""Arrays made, repeated, reshaped, ordered, read and replaced at places, as in ``jax.lax``.

Each is written with operations of the engine. ``approx_max_k`` and ``approx_min_k``, for which an
approximate search would do, find their elements exactly.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, sizes_of
from stretto._engine.core.interpreter import as_value, type_of
from stretto._engine.core.types import as_dtype, is_inexact, kind_of
from stretto._engine.core.typing import (
    Array,
    ArrayLike,
    DTypeLike,
    ShapeLike,
    ShardingLike,
    SupportsDType,
)
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops import comparison, elementwise
from stretto._engine.ops.arithmetic import negative
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import full as full_of_type
from stretto._engine.ops.comparison import lt, ne, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.gather_scatter import gather, gathered, scattered
from stretto._engine.ops.index.geometry import (
    GatherDimensionNumbers,
    GatherScatterMode,
    ScatterDimensionNumbers,
    check_numbers,
)
from stretto._engine.ops.index.primitives import ScatterSet, take_along_axis
from stretto._engine.ops.layout import (
    canonical_axes,
    canonical_axis,
    expand_dims,
    laid_out,
    reshape,
)
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import sort_operands, top_k


def dtype(x: ArrayLike | DTypeLike) -> np.dtype:
    """Say the dtype of an array or a number, or the one that a type or a name stands for.

    Args:
        x: an array, a number, a type, or a name such as ``"int8"``.

    Returns:
        The dtype.

    Raises:
        TypeError: ``x`` is anything else.

    >>> import stretto as st
    >>> st.lax.dtype(1.0), st.lax.dtype("int8")
    (dtype('float32'), dtype('int8'))
    """
    if isinstance(x, (str, type, np.dtype)):
        return as_dtype(x)
    return type_of(x, "dtype").dtype


def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    sharding: ShardingLike | None = None,
) -> Array:
    """Make an array whose elements all are one value.

    Args:
        shape: the sizes of the axes.
        fill_value: a scalar.
        dtype: the dtype; by default that of the value.
        sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over the
            mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: ``fill_value`` is not a scalar.
        ValueError: the result cannot be split as ``sharding`` says.

    >>> import stretto as st
    >>> st.lax.full((2,), 3.0, "bfloat16")
    Array([3, 3], dtype=bfloat16)
    """
    if sharding is not None:
        return laid_out(full(shape, fill_value, dtype), sharding, "full", "sharding")
    return _filled("full", shape, fill_value, dtype)


def _filled(caller: str, shape: ShapeLike, fill_value: ArrayLike, dtype: DTypeLike | None) -> Array:
    value = as_value(fill_value, caller, "fill_value")
    if value.ndim:
        raise TypeError(f"{caller}: fill_value must be a scalar, got {value.type}")
    weak = dtype is None and value.weak_type
    value = convert(value, value.dtype if dtype is None else as_dtype(dtype), weak)
    return broadcast_to(value, sizes_of(shape, caller), caller)


@described_like(full)
def full_like(
    x: ArrayLike | SupportsDType,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of one value, of the shape and dtype of another.

    Args:
        x: an array, or what has a shape and a dtype.
        dtype: another dtype.
        shape: another shape.

    >>> import stretto as st
    >>> st.lax.full_like(st.numpy.ones(2), 7)
    Array([7., 7.], dtype=float32)
    """
    like = type_of(x, "full_like")
    own_dtype = like.dtype if dtype is None else dtype
    sizes = like.shape if shape is None else shape
    if sharding is not None:
        return laid_out(full_like(x, fill_value, dtype, shape), sharding, "full_like", "sharding")
    return _filled("full_like", sizes, fill_value, own_dtype)


def empty(shape: ShapeLike, dtype: DTypeLike, *, out_sharding: ShardingLike | None = None) -> Array:
    """Make an array whose elements may be anything; here they are zeros.

    Args:
        shape: the sizes of the axes.
        dtype: the dtype.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the result cannot be split as ``out_sharding`` says.

    >>> import stretto as st
    >>> st.lax.empty((2,), float)
    Array([0., 0.], dtype=float32)
    """
    return laid_out(_filled("empty", shape, 0, dtype), out_sharding, "empty")


def shape_as_value(shape: Sequence[int]) -> Array:
    """Make an array of the sizes of a shape.

    Args:
        shape: the sizes of the axes.

    Returns:
        The sizes, int32.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is negative.

    >>> import stretto as st
    >>> st.lax.shape_as_value((2, 3))
    Array([2, 3], dtype=int32)
    """
    return as_value(
        np.asarray(sizes_of(shape, "shape_as_value"), np.int32), "shape_as_value", "shape"
    )


def stage(x: ArrayLike, /) -> Array:
    """Make an array of this package of a number or of NumPy's array.

    Args:
        x: an array or a number.

    Returns:
        The array; one of this package as it is.

    Raises:
        TypeError: ``x`` is neither.

    >>> import stretto as st
    >>> st.lax.stage(1.0)
    Array(1., dtype=float32, weak_type=True)
    """
    return as_value(x, "stage")


# Repeated and reshaped


def broadcast(
    operand: ArrayLike, sizes: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Repeat an array along new first axes.

    Args:
        operand: an array.
        sizes: the sizes of the new axes.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array, of the shape ``(*sizes, *operand.shape)``.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> import stretto as st
    >>> st.lax.broadcast(st.numpy.array([1, 2]), (2,))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = as_value(operand, "broadcast", "operand")
    first = sizes_of(sizes, "broadcast")
    dims = range(len(first), len(first) + x.ndim)
    return broadcast_in_dim(x, (*first, *x.shape), dims, out_sharding=out_sharding)


def broadcast_like(arr: ArrayLike, like_arr: ArrayLike) -> Array:
    """Repeat an array to the shape of another, by NumPy's rule.

    Args:
        arr: an array.
        like_arr: the array whose shape to reach.

    Returns:
        The array, of that shape.

    Raises:
        ValueError: the shapes do not fit.

    >>> import stretto as st
    >>> st.lax.broadcast_like(1.0, st.numpy.array([1, 2]))
    Array([1., 1.], dtype=float32, weak_type=True)
    """
    like = as_value(like_arr, "broadcast_like", "like_arr")
    return broadcast_to(as_value(arr, "broadcast_like", "arr"), like.shape, "broadcast_like")


def broadcast_shapes(*shapes: Sequence[int]) -> tuple[int, ...]:
    """Say the shape that arrays of these shapes broadcast to.

    Args:
        *shapes: shapes.

    Returns:
        The common shape.

    Raises:
        TypeError: a size is not an integer.
        ValueError: there is none.

    >>> import stretto as st
    >>> st.lax.broadcast_shapes((2, 1), (3,))
    (2, 3)
    """
    if not shapes:
        return ()
    return elementwise.broadcast_shapes(
        "broadcast_shapes", *[sizes_of(s, "broadcast_shapes") for s in shapes]
    )


def broadcast_to_rank(x: ArrayLike, rank: int) -> Array:
    """Insert first axes of size 1, up to a number of axes.

    Args:
        x: an array.
        rank: the number of axes to reach.

    Returns:
        The array, of ``rank`` axes.

    Raises:
        TypeError: ``rank`` is not an integer.
        ValueError: ``x`` has more axes.

    >>> import stretto as st
    >>> st.lax.broadcast_to_rank(st.numpy.ones(3), 3).shape
    (1, 1, 3)
    """
    value = as_value(x, "broadcast_to_rank")
    more = integer(rank, "broadcast_to_rank", "rank") - value.ndim
    if more < 0:
        raise ValueError(f"broadcast_to_rank: {value.type} has more axes than rank {rank}")
    return reshape(value, (*(1,) * more, *value.shape))


def collapse(operand: ArrayLike, start_dimension: int, stop_dimension: int | None = None) -> Array:
    """Join a range of axes into one.

    Args:
        operand: an array.
        start_dimension: the first axis of the range.
        stop_dimension: the axis to stop before; by default after the last.

    Returns:
        The array, with one axis in the place of the range; an empty range gives one of size 1.

    Raises:
        ValueError: the range ends before it starts.

    >>> import stretto as st
    >>> st.lax.collapse(st.numpy.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_value(operand, "collapse", "operand")
    start, stop, _ = slice(start_dimension, stop_dimension).indices(x.ndim)
    if stop < start:
        raise ValueError(
            f"collapse: stop_dimension {stop_dimension} of {x.type} is before start_dimension "
            f"{start_dimension}"
        )
    joined = math.prod(x.shape[start:stop])
    return reshape(x, (*x.shape[:start], joined, *x.shape[stop:]))


def tile(operand: ArrayLike, reps: Sequence[int]) -> Array:
    """Repeat an array as a whole along each of its axes.

    Args:
        operand: an array.
        reps: how often to repeat along each axis; ``numpy.tile`` takes any number of them.

    Returns:
        The repetitions.

    Raises:
        TypeError: a number in ``reps`` is not an integer.
        ValueError: there is not one number, 0 or more, for each axis.

    >>> import stretto as st
    >>> st.lax.tile(st.numpy.array([1, 2]), (2,))
    Array([1, 2, 1, 2], dtype=int32)
    """
    x = as_value(operand, "tile", "operand")
    counts = sizes_of(reps, "tile")
    if len(counts) != x.ndim or any(n < 0 for n in counts):
        raise ValueError(
            f"tile: reps must have a number, 0 or more, for each axis of {x.type}; got {counts}"
        )
    pairs = tuple(n for pair in zip(counts, x.shape, strict=True) for n in pair)
    repeated = broadcast_in_dim(x, pairs, range(1, 2 * x.ndim, 2))
    return reshape(repeated, tuple(c * n for c, n in zip(counts, x.shape, strict=True)))


def stack(operands: Sequence[ArrayLike], axis: int = 0) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
        operands: the arrays, which are promoted to one dtype.
        axis: the place of the new axis in the result, negative from the end.

    Returns:
        The joined array.

    Raises:
        ValueError: there are no arrays, shapes differ, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.stack([st.numpy.zeros(2), st.numpy.ones(2)], axis=1)
    Array([[0., 1.],
           [0., 1.]], dtype=float32)
    """
    values = [as_value(x, "stack", f"operand {i}") for i, x in enumerate(operands)]
    if not values:
        raise ValueError("stack: expected at least one operand, got none")
    for i, x in enumerate(values):
        if x.shape != values[0].shape:
            raise ValueError(
                f"stack: operands must have one shape, got {values[0].type} (operand 0) and "
                f"{x.type} (operand {i})"
            )
    place = canonical_axis(axis, values[0].ndim + 1, "stack")
    return concatenate([expand_dims(x, place) for x in values], place)


def unstack(x: ArrayLike, axis: int = 0) -> tuple[Array, ...]:
    """Divide an array into its parts along an axis.

    Args:
        x: an array.
        axis: the axis, negative from the end.

    Returns:
        The parts, each without that axis.

    Raises:
        ValueError: the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.unstack(st.numpy.array([1, 2]))
    (Array(1, dtype=int32), Array(2, dtype=int32))
    """
    value = as_value(x, "unstack")
    place = canonical_axis(axis, value.ndim, "unstack")
    return tuple(index_in_dim(value, i, place, keepdims=False) for i in range(value.shape[place]))


# Read


def index_in_dim(operand: ArrayLike, index: int, axis: int = 0, keepdims: bool = True) -> Array:
    """Take the part at a static index along an axis.

    Args:
        operand: an array.
        index: the index, negative from the end.
        axis: the axis, negative from the end.
        keepdims: whether to keep the axis, with size 1.

    Returns:
        The part.

    Raises:
        TypeError: ``index`` is not an integer.
        IndexError: the index is out of bounds.
        ValueError: the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.index_in_dim(st.numpy.array([5, 6, 7]), -1, keepdims=False)
    Array(7, dtype=int32)
    """
    x = as_value(operand, "index_in_dim", "operand")
    place, i = canonical_axis(axis, x.ndim, "index_in_dim"), integer(index, "index_in_dim", "index")
    n = x.shape[place]
    if not -n <= i < n:
        raise IndexError(f"index_in_dim: index {i} is out of bounds for axis {place} of {x.type}")
    part = slice_in_dim(x, i % n, i % n + 1, axis=place)
    return part if keepdims else reshape(part, (*x.shape[:place], *x.shape[place + 1 :]))


def index_take(
    src: ArrayLike, idxs: ArrayLike | tuple[ArrayLike, ...] | list[Any], axes: Sequence[int]
) -> Array:
    """Take the parts of an array at index vectors.

    Args:
        src: an array.
        idxs: for each of the axes, an array of integers ``[n]``; indices count modulo the size, so
            that negative ones count from the end.
        axes: the axes that the indices are for.

    Returns:
        The ``n`` parts along a first axis, without the axes indexed.

    Raises:
        TypeError: the indices are not integer vectors.
        ValueError: there is not one array of indices for each axis, their lengths differ, or an
            axis is out of bounds or named twice.

    >>> import stretto as st, stretto.numpy as snp
    >>> x = snp.reshape(snp.arange(6), (2, 3))
    >>> st.lax.index_take(x, (snp.array([0, 1]), snp.array([2, 0])), (0, 1))
    Array([2, 3], dtype=int32)
    """
    x = as_value(src, "index_take", "src")
    indexed = canonical_axes(tuple(axes), x.ndim, "index_take")
    if isinstance(idxs, (tuple, list)):
        arrays = idxs
    else:
        rows = as_value(idxs, "index_take", "idxs")
        arrays = unstack(rows) if rows.ndim else (rows,)
    if len(arrays) != len(indexed):
        raise ValueError(
            f"index_take: expected an array of indices for each of the axes {indexed}, got "
            f"{len(arrays)}"
        )
    columns = []
    for i, (index, axis) in enumerate(zip(arrays, indexed, strict=True)):
        at = as_value(index, "index_take", f"idxs[{i}]")
        if at.ndim != 1 or kind_of(at.dtype) not in ("int", "uint"):
            raise TypeError(f"index_take: idxs[{i}] must be integers of rank 1, got {at.type}")
        columns.append(at % x.shape[axis])
    if len({at.shape for at in columns}) > 1:
        types = ", ".join(str(at.type) for at in columns)
        raise ValueError(f"index_take: idxs must have one length, got {types}")
    vectors = stack(columns, 1)
    kept = [d for d in range(x.ndim) if d not in indexed]
    numbers = GatherDimensionNumbers(
        tuple(range(1, 1 + len(kept))), tuple(sorted(indexed)), indexed
    )
    sizes = tuple(n if d in kept else 1 for d, n in enumerate(x.shape))
    return gather(x, vectors, numbers, sizes, mode="clip")


def select_n(which: ArrayLike, *cases: ArrayLike) -> Array:
    """Choose among several arrays, element by element.

    Args:
        which: the numbers of the cases, integers (moved into bounds), or booleans for one or two
            cases; a scalar or of the shape of the cases.
        *cases: arrays of one shape and dtype.

    Returns:
        The elements of ``cases[which]``.

    Raises:
        TypeError: the cases are not of one type, or ``which`` does not fit them.
        ValueError: there are no cases.

    >>> import stretto as st, stretto.numpy as snp
    >>> a, b, c = (snp.array([i, i, i]) for i in (10, 20, 30))
    >>> st.lax.select_n(snp.array([2, 0, 1]), a, b, c)
    Array([30, 10, 20], dtype=int32)
    """
    index = as_value(which, "select_n", "which")
    values = [as_value(x, "select_n", f"case {i}") for i, x in enumerate(cases)]
    if not values:
        raise ValueError("select_n: expected at least one case, got none")
    kind = kind_of(index.dtype)
    if is_inexact(index.dtype) or (kind == "bool" and len(values) > 2):
        raise TypeError(
            f"select_n: which must be an integer, or boolean for two cases; got {index.type} for "
            f"{len(values)}"
        )
    for i, x in enumerate(values):
        if x.shape != values[0].shape or x.dtype != values[0].dtype:
            raise TypeError(
                f"select_n: cases must be of one type, got {values[0].type} (case 0) and {x.type} "
                f"(case {i})"
            )
    if index.shape not in ((), values[0].shape):
        raise TypeError(
            f"select_n: which must be a scalar or of the cases' shape, got {index.type} for "
            f"{values[0].type}"
        )
    if len(values) == 1:
        return values[0]
    if kind == "bool":
        return select(index, values[1], values[0])
    return _chosen(index, values, 0)


def _chosen(index: Array, values: Sequence[Array], first: int) -> Array:
    """Choose by halves, so that the depth is logarithmic."""
    if len(values) == 1:
        return values[0]
    half = len(values) // 2
    low, high = _chosen(index, values[:half], first), _chosen(index, values[half:], first + half)
    return select(lt(index, full_of_type((), first + half, index.dtype)), low, high)


def sort_key_val(
    keys: ArrayLike, values: ArrayLike, dimension: int = -1, is_stable: bool = True
) -> tuple[Array, Array]:
    """Sort keys along an axis, and put values in the same order.

    Args:
        keys: an array.
        values: an array of the same shape.
        dimension: the axis, negative from the end.
        is_stable: whether equal keys stay in their order.

    Returns:
        The sorted keys, and the values in that order.

    Raises:
        ValueError: the shapes differ, or the axis is out of bounds.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.sort_key_val(snp.array([3, 1, 2]), snp.array([1.0, 2.0, 3.0]))
    (Array([1, 2, 3], dtype=int32), Array([2., 3., 1.], dtype=float32))
    """
    caller = "sort_key_val"
    operands = as_value(keys, caller, "keys"), as_value(values, caller, "values")
    if operands[0].shape != operands[1].shape:
        raise ValueError(
            f"{caller}: keys and values must have one shape, got {operands[0].type} and "
            f"{operands[1].type}"
        )
    canonical_axis(dimension, operands[0].ndim, caller)
    out = sort_operands(operands, dimension, is_stable, 1)
    return out[0], out[1]


def scatter_apply(
    operand: ArrayLike,
    scatter_indices: ArrayLike,
    func: Callable[[Array], Array],
    dimension_numbers: ScatterDimensionNumbers,
    *,
    update_shape: Sequence[int] = (),
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    mode: str | GatherScatterMode | None = None,
) -> Array:
    """Replace windows of an array by a function of them.

    A window named several times is mapped as often, one after another; with ``unique_indices`` all
    are mapped at once.

    Args:
        operand: an array.
        scatter_indices: integers; the index vectors lie along the last axis.
        func: a function of arrays that works element by element.
        dimension_numbers: which axes belong together.
        update_shape: the shape that updates would have, which says the sizes of the windows.
        indices_are_sorted: a promise that the vectors rise.
        unique_indices: a promise that no element is named twice.
        mode: what to do with windows out of bounds: dropped by default; ``"clip"`` moves them
            inside.

    Returns:
        The array with the windows replaced.

    Raises:
        TypeError: ``func`` returns another type.
        ValueError: axes or shapes do not fit.

    >>> import stretto as st, stretto.numpy as snp
    >>> numbers = st.lax.ScatterDimensionNumbers((), (0,), (0,))
    >>> places = snp.array([[1], [2], [2]])
    >>> x = snp.array([1.0, 1.0, 1.0])
    >>> st.lax.scatter_apply(x, places, lambda v: 2 * v, numbers, update_shape=(3,))
    Array([1., 2., 4.], dtype=float32)
    """
    caller = "scatter_apply"
    x = as_value(operand, caller, "operand")
    places = as_value(scatter_indices, caller, "scatter_indices")
    numbers = dimension_numbers
    check_numbers(caller, numbers, ScatterDimensionNumbers)
    shape = tuple(map(int, update_shape))
    windowed = numbers.update_window_dims
    if len(shape) != places.ndim - 1 + len(windowed):
        raise ValueError(
            f"{caller}: update_shape must have {places.ndim - 1 + len(windowed)} sizes, for "
            f"indices {places.type} and windows of {len(windowed)} axes; got {shape}"
        )
    places_in = (*numbers.inserted_window_dims, *numbers.scatter_dims_to_operand_dims)
    if not all(0 <= d < x.ndim for d in places_in):
        raise ValueError(f"{caller}: {numbers} names axes that operand {x.type} does not have")
    sizes = iter([shape[d] for d in windowed])
    left_out = (*numbers.inserted_window_dims, *numbers.operand_batching_dims)
    window = tuple(1 if d in left_out else next(sizes) for d in range(x.ndim))
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}

    def once(x: Array, places: Array, numbers: ScatterDimensionNumbers, **promises: bool) -> Array:
        read = numbers.gather()
        parts = gathered(caller, x, places, read, window, mode="clip", **promises)
        new = func(parts)
        return scattered(caller, ScatterSet, x, places, new, numbers, mode=mode, **promises)

    count = math.prod(places.shape[:-1])
    if unique_indices or count < 2 or numbers.operand_batching_dims:
        return once(x, places, numbers, **promises)
    # One index vector a step; its window's axes are then all that updates have.
    each = ScatterDimensionNumbers(
        tuple(range(len(windowed))),
        numbers.inserted_window_dims,
        numbers.scatter_dims_to_operand_dims,
    )
    rows = reshape(places, (count, places.shape[-1]))
    return scan(lambda x, place: (once(x, place, each), None), x, rows)[0]


def _check_arguments(
    caller: str, operand: ArrayLike, k: int, dimension: int, recall_target: float, override: int
) -> tuple[Array, int]:
    x = as_value(operand, caller, "operand")
    if kind_of(x.dtype) != "float":
        raise TypeError(f"{caller}: operand must be of real floats, got {x.type}")
    if not 0 < recall_target <= 1:
        raise ValueError(
            f"{caller}: recall_target must be above 0 and at most 1, got {recall_target}"
        )
    axis = canonical_axis(dimension, x.ndim, caller)
    if override != -1 and override < x.shape[axis]:
        raise ValueError(
            f"{caller}: reduction_input_size_override must be -1 or at least the size of axis "
            f"{axis} of {x.type}, got {override}"
        )
    if not 0 <= integer(k, caller, "k") <= x.shape[axis]:
        raise ValueError(
            f"{caller}: k must be from 0 to the size of axis {axis} of {x.type}, got {k}"
        )
    return x, axis


def approx_max_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the greatest elements along an axis, or most of them.

    Here all are found, which meets every ``recall_target``; the last two arguments have no
    effect.

    Args:
        operand: an array of real floats.
        k: how many.
        reduction_dimension: the axis, negative from the end.
        recall_target: the share of them that must be found, above 0 and at most 1.
        reduction_input_size_override: the size of the whole that ``operand`` is a part of, or -1.
        aggregate_to_topk: whether no more than ``k`` may be returned.

    Returns:
        The elements, falling, and their int32 indices; NaN counts as greatest.

    Raises:
        TypeError: ``operand`` is not of real floats.
        ValueError: ``k`` is more than the size of the axis, or a target or size has no meaning.

    Source: Chern et al., "TPU-KNN: K nearest neighbor search at peak FLOP/s", NeurIPS 2022.

    >>> import stretto as st
    >>> st.lax.approx_max_k(st.numpy.array([3.0, 1.0, 2.0]), 2)
    (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    caller = "approx_max_k"
    x, axis = _check_arguments(
        caller, operand, k, reduction_dimension, recall_target, reduction_input_size_override
    )
    return top_k(x, k, axis=axis)


@described_like(approx_max_k)
def approx_min_k(
    operand: ArrayLike,
    k: int,
    reduction_dimension: int = -1,
    recall_target: float = 0.95,
    reduction_input_size_override: int = -1,
    aggregate_to_topk: bool = True,
) -> tuple[Array, Array]:
    """Find the least elements along an axis, or most of them.

    Here all are found, which meets every ``recall_target``; the last two arguments have no
    effect.

    Returns:
        The elements, rising, and their int32 indices; NaN comes last.

    Source: Chern et al., "TPU-KNN: K nearest neighbor search at peak FLOP/s", NeurIPS 2022.

    >>> import stretto as st
    >>> st.lax.approx_min_k(st.numpy.array([3.0, 1.0, 2.0]), 2)
    (Array([1., 2.], dtype=float32), Array([1, 2], dtype=int32))
    """
    caller = "approx_min_k"
    x, axis = _check_arguments(
        caller, operand, k, reduction_dimension, recall_target, reduction_input_size_override
    )
    key = select(ne(x, x), comparison.full_like(x, float("inf")), x)
    _, order = top_k(negative(key), k, axis=axis)
    return take_along_axis(x, order, axis, "promise_in_bounds", wrap_negative=False), order
