"""Joining, splitting and repeating arrays, and taking parts of them.

Next, read ``padding``.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import promote
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShapeLike
from stretto._engine.ops import shape as ops
from stretto._engine.ops.broadcast import (
    Reshape,
    broadcast_in_dim,
    broadcast_to,
    canonical_axis,
    expand_dims,
    reshape,
)
from stretto._engine.ops.comparison import full, full_like, ge
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.geometry import reading_mode
from stretto._engine.ops.iota import iota
from stretto._engine.ops.sharding import refuse_sharding
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import maximum
from stretto.numpy.creation import shape_of
from stretto.numpy.cumulative import cumsum
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.eager import ANY, BOOL, INTEGER, NUMERIC, eager
from stretto.numpy.indexing import getitem
from stretto.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, ravel
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.remainders import remainder

__all__ = [
    "append",
    "array_split",
    "block",
    "column_stack",
    "concat",
    "concatenate",
    "dsplit",
    "dstack",
    "hsplit",
    "hstack",
    "repeat",
    "resize",
    "row_stack",
    "split",
    "stack",
    "take",
    "tile",
    "unstack",
    "vsplit",
    "vstack",
]


def _several(arrays: Any, caller: str, dtype: Any = None) -> list[Any]:
    """The arrays of a sequence (or along the first axis of one), promoted to one dtype."""
    if isinstance(arrays, (Value, np.ndarray)):
        whole = as_value(arrays, caller, "arrays")
        if not whole.ndim:
            raise TypeError(f"{caller}: expected a sequence of arrays, got {whole.type}")
        arrays = [getitem(whole, i) for i in range(whole.shape[0])]
    values = [as_value(x, caller, f"array {i}") for i, x in enumerate(arrays)]
    if not values:
        raise ValueError(f"{caller}: expected at least one array, got none")
    if dtype is not None:
        wanted, weak = as_dtype(dtype), False
    else:
        wanted, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return [convert(v, wanted, weak) for v in values]


# Joining


def concatenate(
    arrays: ArrayLike | Sequence[ArrayLike], axis: int | None = 0, dtype: DTypeLike | None = None
) -> Array:
    """Join arrays along an axis that they have.

    Args:
        arrays: a sequence of arrays, equal in the other axes, or one array of them; dtypes are
            promoted.
        axis: the axis to join along; None flattens the arrays first.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array, as long along the axis as all together.

    Raises:
        TypeError: ``arrays`` is an array of rank 0.
        ValueError: there is no array, ``axis`` is out of bounds, or the arrays differ in rank or in
            another axis.

    As NumPy's ``concatenate``.

    >>> import stretto.numpy as snp
    >>> snp.concatenate([snp.array([1, 2]), snp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    values = _several(arrays, "concatenate", dtype)
    if axis is None:
        values, axis = [ravel(v) for v in values], 0
    if not values[0].ndim:
        raise ValueError("concatenate: arrays of rank 0 have no axis to join along; use stack")
    return _concatenate(*values, axis=canonical_axis(axis, values[0].ndim, "concatenate"))


def _concatenate_hosts(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.concatenate(arrays, axis)


@eager(_concatenate_hosts, ANY)
def _concatenate(*arrays: Any, axis: int) -> Any:
    return ops.concatenate(arrays, axis)


def concat(arrays: ArrayLike | Sequence[ArrayLike], /, *, axis: int | None = 0) -> Array:
    """Join arrays along an axis that they have, as ``concatenate`` does.

    Args:
        arrays: a sequence of arrays, equal in the other axes; dtypes are promoted.
        axis: the axis to join along; None flattens the arrays first.

    Returns:
        One array, as long along the axis as all together.

    Raises:
        TypeError: ``arrays`` is an array of rank 0.
        ValueError: there is no array, ``axis`` is out of bounds, or the arrays differ in rank or in
            another axis.

    As the array API standard's ``concat``.

    >>> import stretto.numpy as snp
    >>> snp.concat([snp.array([1, 2]), snp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate(arrays, axis)


def stack(
    arrays: ArrayLike | Sequence[ArrayLike],
    axis: int = 0,
    out: None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Join arrays of one shape along a new axis.

    Args:
        arrays: a sequence of arrays, or one array of them; dtypes are promoted.
        axis: the place of the new axis in the result.
        out: must be None: arrays are immutable.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array, of a rank greater by one.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``arrays`` is an array of rank 0.
        ValueError: there is no array, the shapes differ, or ``axis`` is out of bounds.

    As NumPy's ``stack``.

    >>> import stretto.numpy as snp
    >>> snp.stack([snp.array([1, 2]), snp.array([3, 4])], axis=1)
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    refuse_out("stack", out)
    values = _several(arrays, "stack", dtype)
    if len({v.shape for v in values}) > 1:
        raise ValueError(
            f"stack: the arrays must have one shape, got {', '.join(str(v.type) for v in values)}"
        )
    shape = values[0].shape
    place = canonical_axis(axis, len(shape) + 1, "stack")
    return _stack(*values, axis=place)


def _stack_hosts(*arrays: np.ndarray, axis: int) -> np.ndarray:
    return np.stack(arrays, axis)


@eager(_stack_hosts, ANY)
def _stack(*arrays: Any, axis: int) -> Any:
    shape = arrays[0].shape
    row = Reshape((*shape[:axis], 1, *shape[axis:]))
    return ops.concatenate([row(x) for x in arrays], axis)


def unstack(x: ArrayLike, /, *, axis: int = 0) -> tuple[Array, ...]:
    """Split an array into its parts along an axis, each without it.

    Args:
        x: an array of rank 1 or more.
        axis: the axis to split.

    Returns:
        A tuple of arrays, one for each place along the axis.

    Raises:
        ValueError: ``axis`` is out of bounds.

    As the array API standard's ``unstack``.

    >>> import stretto.numpy as snp
    >>> snp.unstack(snp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    value = as_value(x, "unstack")
    place = canonical_axis(axis, value.ndim, "unstack")
    lead = (slice(None),) * place
    return tuple(getitem(value, (*lead, i)) for i in range(value.shape[place]))


def vstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the first axis, vectors as rows.

    Args:
        tup: a sequence of arrays, or one array of them; dtypes are promoted.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array of rank 2 or more.

    Raises:
        TypeError: ``tup`` is an array of rank 0.
        ValueError: there is no array, or they differ in another axis.

    As NumPy's ``vstack``.

    >>> import stretto.numpy as snp
    >>> snp.vstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return _concatenate(*[atleast_2d(v) for v in _several(tup, "vstack", dtype)], axis=0)


row_stack = vstack


def hstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the second axis, vectors along their only one.

    Args:
        tup: a sequence of arrays, or one array of them; dtypes are promoted.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array of rank 1 or more.

    Raises:
        TypeError: ``tup`` is an array of rank 0.
        ValueError: there is no array, or they differ in another axis.

    As NumPy's ``hstack``.

    >>> import stretto.numpy as snp
    >>> snp.hstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([1, 2, 3, 4], dtype=int32)
    """
    values = [atleast_1d(v) for v in _several(tup, "hstack", dtype)]
    return _concatenate(*values, axis=min(values[0].ndim - 1, 1))


def dstack(tup: ArrayLike | Sequence[ArrayLike], dtype: DTypeLike | None = None) -> Array:
    """Join arrays along the third axis, each with at least three as ``atleast_3d`` gives them.

    Args:
        tup: a sequence of arrays, or one array of them; dtypes are promoted.
        dtype: the dtype of the result; by default the one that the dtypes promote to.

    Returns:
        One array of rank 3 or more.

    Raises:
        TypeError: ``tup`` is an array of rank 0.
        ValueError: there is no array, or they differ in another axis.

    As NumPy's ``dstack``.

    >>> import stretto.numpy as snp
    >>> snp.dstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[[1, 3],
            [2, 4]]], dtype=int32)
    """
    return _concatenate(*[atleast_3d(v) for v in _several(tup, "dstack", dtype)], axis=2)


def column_stack(tup: ArrayLike | Sequence[ArrayLike]) -> Array:
    """Join arrays side by side, vectors as columns.

    Args:
        tup: a sequence of arrays, or one array of them; dtypes are promoted.

    Returns:
        One array of rank 2 or more.

    Raises:
        TypeError: ``tup`` is an array of rank 0.
        ValueError: there is no array, or they differ in another axis.

    As NumPy's ``column_stack``.

    >>> import stretto.numpy as snp
    >>> snp.column_stack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    values = _several(tup, "column_stack")
    columns = [v if v.ndim > 1 else reshape(v, (v.size, 1)) for v in values]
    return _concatenate(*columns, axis=1)


def append(arr: ArrayLike, values: ArrayLike, axis: int | None = None) -> Array:
    """Join values to the end of an array.

    Args:
        arr: an array, or a number.
        values: what comes after it, of the same rank if there is an axis.
        axis: the axis to join along; by default both are flattened.

    Returns:
        A new array.

    Raises:
        ValueError: ``axis`` is out of bounds, or the arrays differ in rank or in another axis.

    As NumPy's ``append``.

    >>> import stretto.numpy as snp
    >>> snp.append(snp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([as_value(arr, "append"), as_value(values, "append", "values")], axis)


def block(arrays: Any) -> Array:
    """Assemble an array from nested lists of blocks.

    Args:
        arrays: lists of lists of arrays: the innermost lists join along the last axis.

    Returns:
        One array.

    Raises:
        ValueError: a list is empty, the depths of lists differ, or blocks differ in another axis.

    As NumPy's ``block``.

    >>> import stretto.numpy as snp
    >>> snp.block([[snp.ones((1, 1)), snp.zeros((1, 2))]])
    Array([[1., 0., 0.]], dtype=float32)
    """

    def depth(x: Any) -> int:
        if not isinstance(x, list):
            return 0
        depths = sorted({depth(part) for part in x})
        if len(depths) != 1:
            found = f"some {depths[0]} deep, some {depths[-1]}" if depths else "an empty list"
            raise ValueError(f"block: all blocks must be in lists of one depth; got {found}")
        return 1 + depths[0]

    def joined(x: Any, level: int) -> Any:
        if not isinstance(x, list):
            v = as_value(x, "block", "a block")
            return reshape(v, (1,) * (rank - v.ndim) + v.shape)
        return concatenate([joined(part, level - 1) for part in x], -level)

    def ranks(x: Any) -> int:
        return max(map(ranks, x)) if isinstance(x, list) else as_value(x, "block").ndim

    levels = depth(arrays)
    rank = max(levels, ranks(arrays))
    return joined(arrays, levels)


# Splitting


def array_split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along an axis into parts of nearly one size, or at given places.

    Args:
        ary: an array of rank 1 or more.
        indices_or_sections: the number of parts, or the places to cut at.
        axis: the axis to split along.

    Returns:
        A list of arrays; the first ones are longer by one where the size does not divide.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: ``axis`` is out of bounds; or there are less than 1 parts.

    As NumPy's ``array_split``.

    >>> import stretto.numpy as snp
    >>> snp.array_split(snp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def split(
    ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike, axis: int = 0
) -> list[Array]:
    """Split an array along an axis into parts of one size, or at given places.

    Args:
        ary: an array of rank 1 or more.
        indices_or_sections: the number of parts, or the places to cut at.
        axis: the axis to split along.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: ``axis`` is out of bounds; or the size does not divide into so many parts.

    As NumPy's ``split``.

    >>> import stretto.numpy as snp
    >>> snp.split(snp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def _split(caller: str, ary: Any, at: Any, axis: int) -> list[Any]:
    x = as_value(ary, caller, "ary")
    place = canonical_axis(axis, x.ndim, caller)
    n = x.shape[place]
    if np.ndim(at):
        places = integers(at, caller, "indices_or_sections")
        bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in places), n]
    else:
        parts = integer(at, caller, "indices_or_sections")
        if parts < 1 or (caller == "split" and n % parts):
            raise ValueError(
                f"{caller}: axis {axis} of {x.type} does not divide into {parts} equal parts"
            )
        size, more = divmod(n, parts)
        bounds = [i * size + min(i, more) for i in range(parts + 1)]
    pairs = [(a, max(a, b)) for a, b in itertools.pairwise(bounds)]
    return _parts(x, bounds=pairs, axis=place)


def _parts_of_host(
    x: np.ndarray, *, bounds: Sequence[tuple[int, int]], axis: int
) -> list[np.ndarray]:
    before = (slice(None),) * axis
    return [x[(*before, slice(a, b))] for a, b in bounds]


@eager(_parts_of_host, ANY)
def _parts(x: Any, *, bounds: Sequence[tuple[int, int]], axis: int) -> Any:
    """The parts of an array between bounds along an axis."""
    return [ops.slice_in_dim(x, a, b, 1, axis) for a, b in bounds]


def hsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the second axis, a vector along its only one.

    Args:
        ary: an array of rank 1 or more.
        indices_or_sections: the number of parts, or the places to cut at.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: the size does not divide into so many parts.

    As NumPy's ``hsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.hsplit(snp.ones((2, 4)), 2)]
    [(2, 2), (2, 2)]
    """
    return split(ary, indices_or_sections, 0 if as_value(ary, "hsplit").ndim == 1 else 1)


def vsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the first axis.

    Args:
        ary: an array of rank 1 or more.
        indices_or_sections: the number of parts, or the places to cut at.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: the size does not divide into so many parts.

    As NumPy's ``vsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.vsplit(snp.ones((3, 4)), [1])]
    [(1, 4), (2, 4)]
    """
    return split(ary, indices_or_sections, 0)


def dsplit(ary: ArrayLike, indices_or_sections: int | Sequence[int] | ArrayLike) -> list[Array]:
    """Split an array along the third axis.

    Args:
        ary: an array of rank 3 or more.
        indices_or_sections: the number of parts, or the places to cut at.

    Returns:
        A list of arrays.

    Raises:
        TypeError: ``indices_or_sections`` is not of integers.
        ValueError: the rank is below 3, or the size does not divide into so many parts.

    As NumPy's ``dsplit``.

    >>> import stretto.numpy as snp
    >>> [part.shape for part in snp.dsplit(snp.ones((2, 2, 2)), 2)]
    [(2, 2, 1), (2, 2, 1)]
    """
    return split(ary, indices_or_sections, 2)


# Repeating


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Lay an array side by side with itself.

    Args:
        A: an array, or a number.
        reps: how often along each axis, from the last; one number is for the last axis.

    Returns:
        An array whose sizes are multiples of those of ``A``.

    Raises:
        TypeError: ``reps`` is not of integers.
        ValueError: a number of repetitions is negative.

    As NumPy's ``tile``.

    >>> import stretto.numpy as snp
    >>> snp.tile(snp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = as_value(A, "tile", "A")
    counts = integers(reps if isinstance(reps, (tuple, list)) else (reps,), "tile", "reps", 0)
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    return _tile(x, reps=counts)


@eager(np.tile, ANY)
def _tile(x: Any, *, reps: tuple[int, ...]) -> Any:
    rank = len(reps)
    sizes = (1,) * (rank - x.ndim) + x.shape
    wide = tuple(n for pair in zip(reps, sizes, strict=True) for n in pair)
    x = broadcast_in_dim(reshape(x, sizes), wide, range(1, 2 * rank, 2))
    return reshape(x, tuple(c * n for c, n in zip(reps, sizes, strict=True)))


def repeat(
    a: ArrayLike,
    repeats: ArrayLike | Sequence[int],
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: None = None,
) -> Array:
    """Repeat each element, or each part along an axis, in its place.

    Where ``total_repeat_length`` is less than there are, the end is cut off; where it is more, the
    last part fills it up.

    Args:
        a: an array, or a number.
        repeats: an integer, or one for each part; may be traced with ``total_repeat_length``.
        axis: the axis of the parts; by default all elements, in row-major order.
        total_repeat_length: the length of the result, needed if ``repeats`` is traced.
        out_sharding: must be None: arrays are not split over devices.

    Returns:
        An array of the dtype of ``a``.

    Raises:
        NotImplementedError: ``out_sharding`` is given.
        TypeError: ``repeats`` is not of integers.
        ValueError: ``axis`` is out of bounds; or a number is negative, or there is not one for each
            part.

    As NumPy's ``repeat``; ``total_repeat_length`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.repeat(snp.array([1, 2]), 2), snp.repeat(snp.array([1, 2]), snp.array([0, 2]))
    (Array([1, 1, 2, 2], dtype=int32), Array([2, 2], dtype=int32))
    """
    refuse_sharding("repeat", out_sharding=out_sharding)
    x = as_value(a, "repeat", "a")
    if axis is None or not x.ndim:  # of rank 0 one part, as in NumPy
        x, axis = ravel(x), axis or 0
    place = canonical_axis(axis, x.ndim, "repeat")
    n = x.shape[place]
    counts: Any = np.array(repeats) if isinstance(repeats, (tuple, list)) else repeats
    if total_repeat_length is None and np.size(counts) == 1:
        times = integer(counts.reshape(()) if np.ndim(counts) else counts, "repeat", "repeats", 0)
        return _repeat(x, repeats=times, axis=place)
    if total_repeat_length is None:
        each = integers(counts, "repeat", "repeats", 0)
        if len(each) != n:
            raise ValueError(f"repeat: {len(each)} repeats for {n} parts along axis {axis}")
        return _repeat(x, repeats=each, axis=place)
    ends = cumsum(broadcast_to(as_value(counts, "repeat", "repeats"), (n,)))
    position = iota(ends.dtype, integer(total_repeat_length, "repeat", "total_repeat_length", 0))
    # A part holds the positions below its end and not below the ends before.
    before = ge(expand_dims(position, 1), expand_dims(ends, 0))
    return take(x, sum_(before, 1), place, mode="clip")


@eager(np.repeat, ANY)
def _repeat(x: Any, *, repeats: int | tuple[int, ...], axis: int) -> Any:
    n = x.shape[axis]
    if isinstance(repeats, tuple):
        return take(x, np.repeat(np.arange(n, dtype=np.int32), repeats), axis)
    wide = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    x = broadcast_in_dim(x, wide, [d for d in range(x.ndim + 1) if d != axis + 1])
    return reshape(x, (*wide[:axis], n * repeats, *wide[axis + 2 :]))


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Fill another shape with the elements in row-major order, over and over.

    Args:
        a: an array, or a number.
        new_shape: the sizes of the result.

    Returns:
        An array of that shape; zeros if ``a`` has no element.

    Raises:
        ValueError: a size is negative.

    As NumPy's ``resize``.

    >>> import stretto.numpy as snp
    >>> snp.resize(snp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    x = ravel(as_value(a, "resize", "a"))
    shape = shape_of(new_shape, "resize")
    if not x.size:
        return full(shape, 0, x.dtype, x.weak_type)
    return _resize(x, new_shape=shape)


@eager(np.resize, ANY)
def _resize(x: Any, *, new_shape: tuple[int, ...]) -> Any:
    size = math.prod(new_shape)
    return reshape(ops.slice_in_dim(tile(x, -(-size // x.size)), 0, size), new_shape)


# Choosing parts


def take(
    a: ArrayLike,
    indices: ArrayLike,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: ArrayLike | None = None,
) -> Array:
    """Take elements, or parts along an axis, at indices.

    Negative indices count from the end, and out of bounds the nearest part is read. Other modes:
    ``"fill"`` gives ``fill_value`` there, and is the mode where ``fill_value`` is given without
    one; ``"wrap"`` counts round and round; ``"raise"`` raises ``IndexError``; ``"clip"`` takes
    negative indices for 0.

    Args:
        a: an array.
        indices: an array of integers, of any shape.
        axis: the axis to take along; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        mode: what happens out of bounds, as above.
        unique_indices: a promise that no index comes twice.
        indices_are_sorted: a promise that the indices rise.
        fill_value: what mode ``"fill"`` gives; NaN by default.

    Returns:
        An array with the axes of ``indices`` in the place of ``axis``.

    Raises:
        IndexError: an index is out of bounds in mode ``"raise"``.
        NotImplementedError: ``out`` is given.
        TypeError: ``indices`` is not of integers.
        ValueError: ``axis`` is out of bounds; or ``mode`` is another.

    As NumPy's ``take``; the modes as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.take(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]), axis=1)
    Array([[2, 2],
           [4, 4]], dtype=int32)
    """
    refuse_out("take", out)
    x, places = as_value(a, "take", "a"), as_value(indices, "take", "indices")
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis(axis, x.ndim, "take")
    mode = reading_mode(mode, fill_value)
    if mode == "wrap":
        places, mode = remainder(places, x.shape[place]), "promise_in_bounds"
    elif mode == "clip" and places.type.kind == "int":
        places = maximum(places, full_like(places, 0))
    promises: dict[str, Any] = {
        "indices_are_sorted": indices_are_sorted,
        "unique_indices": unique_indices,
    }
    if mode is None:
        return _take(x, places, axis=place, promises=promises)
    return getitem(x, (*(slice(None),) * place, places), mode, fill_value, **promises)


def _take_of_host(x: np.ndarray, indices: np.ndarray, *, axis: int, promises: Any) -> Any:
    del promises
    return np.take(x, indices, axis)  # refuses indices out of bounds, and uint64


@eager(_take_of_host, (BOOL + NUMERIC, INTEGER))
def _take(x: Any, indices: Any, *, axis: int, promises: dict[str, Any]) -> Any:
    return getitem(x, (*(slice(None),) * axis, indices), **promises)
