"""Parts of an array taken at indices, and repeated."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import entries_of, integer, integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, ShapeLike, ShardingLike
from stretto._engine.eager.twins import ANY, BOOL, INTEGER, NUMERIC, eager
from stretto._engine.ops import shape as ops
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reshape
from stretto._engine.ops.comparison import full, full_like, ge
from stretto._engine.ops.index.geometry import reading_mode
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, expand_dims, laid_out
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import remainder
from stretto.numpy.creation import shape_of
from stretto.numpy.extrema import maximum
from stretto.numpy.indexing import getitem
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_

__all__ = ["repeat", "resize", "take", "tile"]


def tile(A: ArrayLike, reps: int | Sequence[int]) -> Array:
    """Repeat an array along its axes.

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
    counts = integers(entries_of(reps), "tile", "reps", 0)
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    return _tile(x, reps=counts)


@eager(np.tile, ANY)
def _tile(x: Array, *, reps: tuple[int, ...]) -> Array:
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
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Repeat each element, or each part along an axis, in its place.

    Where ``total_repeat_length`` is less than the sum of ``repeats``, the end is cut off; where it
    is more, the last part is repeated.

    Args:
        a: an array, or a number.
        repeats: an integer, or one for each part; may be traced with ``total_repeat_length``.
        axis: the axis of the parts; by default all elements, in row-major order.
        total_repeat_length: the length of the result, needed if ``repeats`` is traced.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of the dtype of ``a``.

    Raises:
        TypeError: ``repeats`` is not of integers.
        ValueError: ``axis`` is out of bounds; or a number is negative, or there is not one for each
            part; or the result cannot be split as ``out_sharding`` says.

    As NumPy's ``repeat``; ``total_repeat_length`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.repeat(snp.array([1, 2]), 2), snp.repeat(snp.array([1, 2]), snp.array([0, 2]))
    (Array([1, 1, 2, 2], dtype=int32), Array([2, 2], dtype=int32))
    """
    if out_sharding is not None:
        result = repeat(a, repeats, axis, total_repeat_length=total_repeat_length)
        return laid_out(result, out_sharding, "repeat")
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
    # A part is at the positions below its end, and not below the end of the part before.
    before = ge(expand_dims(position, 1), expand_dims(ends, 0))
    return take(x, sum_(before, 1), place, mode="clip")


@eager(np.repeat, ANY)
def _repeat(x: Array, *, repeats: int | tuple[int, ...], axis: int) -> Array:
    n = x.shape[axis]
    if isinstance(repeats, tuple):
        return take(x, np.repeat(np.arange(n, dtype=np.int32), repeats), axis)
    wide = (*x.shape[: axis + 1], repeats, *x.shape[axis + 1 :])
    x = broadcast_in_dim(x, wide, [d for d in range(x.ndim + 1) if d != axis + 1])
    return reshape(x, (*wide[:axis], n * repeats, *wide[axis + 2 :]))


def resize(a: ArrayLike, new_shape: ShapeLike) -> Array:
    """Fill another shape with the elements in row-major order, repeated as needed.

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
def _resize(x: Array, *, new_shape: tuple[int, ...]) -> Array:
    size = math.prod(new_shape)
    return reshape(ops.slice_in_dim(tile(x, -(-size // x.size)), 0, size), new_shape)


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
    one; ``"wrap"`` wraps around; ``"raise"`` raises ``IndexError``; ``"clip"`` takes
    negative indices for 0.

    Args:
        a: an array.
        indices: an array of integers, of any shape.
        axis: the axis to take along; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        mode: what happens out of bounds, as above.
        unique_indices: a promise that no index occurs twice.
        indices_are_sorted: a promise that the indices rise.
        fill_value: what mode ``"fill"`` gives; NaN by default.

    Returns:
        An array with the axes of ``indices`` in place of ``axis``.

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
    if places.type.kind not in ("int", "uint"):
        raise TypeError(f"take: indices must be integers, got {places.type}")
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


def _take_of_host(
    x: np.ndarray, indices: np.ndarray, *, axis: int, promises: dict[str, Any]
) -> np.ndarray:
    del promises
    return np.take(x, indices, axis)  # refuses indices out of bounds, and uint64


@eager(_take_of_host, (BOOL + NUMERIC, INTEGER))
def _take(x: Array, indices: Array, *, axis: int, promises: dict[str, Any]) -> Array:
    return getitem(x, (*(slice(None),) * axis, indices), **promises)
