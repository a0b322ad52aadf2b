"""Joining, splitting and repeating arrays, and taking parts of them.

Next, read ``padding``.
"""

from __future__ import annotations

import contextlib
import itertools
import math
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import promote
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
from stretto.numpy.directly import BOOL, INTEGER, NUMERIC, host_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import getitem
from stretto.numpy.manipulation import atleast_1d, atleast_2d, atleast_3d, ravel
from stretto.numpy.quick import array_of, at_rest
from stretto.numpy.reductions import cumsum
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


def _several(arrays: Any, who: str, dtype: Any = None) -> list[Any]:
    """The arrays of a sequence (or along the first axis of one), promoted to one dtype."""
    if isinstance(arrays, (Value, np.ndarray)):
        whole = as_value(arrays, who, "arrays")
        if not whole.ndim:
            raise TypeError(f"{who}: expected a sequence of arrays, got {whole.type}")
        arrays = [getitem(whole, i) for i in range(whole.shape[0])]
    values = [as_value(x, who, f"array {i}") for i, x in enumerate(arrays)]
    if not values:
        raise ValueError(f"{who}: expected at least one array, got none")
    if dtype is not None:
        wanted, weak = as_dtype(dtype), False
    else:
        wanted, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], who)
    return [convert(v, wanted, weak) for v in values]


# Joining


def concatenate(arrays: Any, axis: int | None = 0, dtype: Any = None) -> Any:
    """The arrays one after another along ``axis``, promoted; flattened first where it is ``None``.

    Raises ``ValueError`` where they differ in another axis.

    >>> import stretto.numpy as snp
    >>> snp.concatenate([snp.array([1, 2]), snp.array([3])])
    Array([1, 2, 3], dtype=int32)
    """
    values = _several(arrays, "concatenate", dtype)
    if axis is None:
        values, axis = [ravel(v) for v in values], 0
    if not values[0].ndim:
        raise ValueError("concatenate: arrays of rank 0 have no axis to join along; use stack")
    return _join(values, canonical_axis(axis, values[0].ndim, "concatenate"))


def _join(values: list[Any], axis: int) -> Any:
    """One after another, by NumPy where nothing is traced."""
    if not at_rest(*values):
        return ops.concatenate(values, axis)
    try:
        joined = np.concatenate([v.to_host() for v in values], axis)
    except ValueError:  # the shapes do not fit: to be said in words
        return ops.concatenate(values, axis)
    return array_of(joined, values[0].dtype, values[0].weak_type)


def concat(arrays: Any, /, *, axis: int | None = 0) -> Any:
    """``concatenate`` under the array API's name."""
    return concatenate(arrays, axis)


def stack(arrays: Any, axis: int = 0, out: None = None, dtype: Any = None) -> Any:
    """The arrays, all of one shape, along a new axis.

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
    if at_rest(*values):
        stacked = np.stack([v.to_host() for v in values], place)
        return array_of(stacked, values[0].dtype, values[0].weak_type)
    row = Reshape((*shape[:place], 1, *shape[place:]))
    return ops.concatenate([row(v) for v in values], place)


def unstack(x: Any, /, *, axis: int = 0) -> tuple[Any, ...]:
    """The parts along ``axis``, each without it.

    >>> import stretto.numpy as snp
    >>> snp.unstack(snp.array([[1, 2], [3, 4]]))
    (Array([1, 2], dtype=int32), Array([3, 4], dtype=int32))
    """
    x = as_value(x, "unstack")
    place = canonical_axis(axis, x.ndim, "unstack")
    lead = (slice(None),) * place
    return tuple(getitem(x, (*lead, i)) for i in range(x.shape[place]))


def vstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays, vectors as rows, one after another along the first axis.

    >>> import stretto.numpy as snp
    >>> snp.vstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    """
    return _join([atleast_2d(v) for v in _several(tup, "vstack", dtype)], 0)


row_stack = vstack


def hstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays one after another along the second axis; vectors along their only one.

    >>> import stretto.numpy as snp
    >>> snp.hstack([snp.array([1, 2]), snp.array([3, 4])])
    Array([1, 2, 3, 4], dtype=int32)
    """
    values = [atleast_1d(v) for v in _several(tup, "hstack", dtype)]
    return _join(values, min(values[0].ndim - 1, 1))


def dstack(tup: Any, dtype: Any = None) -> Any:
    """The arrays, with at least three axes, one after another along the third."""
    return _join([atleast_3d(v) for v in _several(tup, "dstack", dtype)], 2)


def column_stack(tup: Any) -> Any:
    """The arrays, vectors as columns, side by side.

    >>> import stretto.numpy as snp
    >>> snp.column_stack([snp.array([1, 2]), snp.array([3, 4])])
    Array([[1, 3],
           [2, 4]], dtype=int32)
    """
    values = _several(tup, "column_stack")
    columns = [v if v.ndim > 1 else reshape(v, (v.size, 1)) for v in values]
    return _join(columns, 1)


def append(arr: Any, values: Any, axis: int | None = None) -> Any:
    """``values`` after ``arr`` along ``axis``; both flattened where it is ``None``.

    >>> import stretto.numpy as snp
    >>> snp.append(snp.array([1, 2]), 3)
    Array([1, 2, 3], dtype=int32)
    """
    return concatenate([as_value(arr, "append"), as_value(values, "append", "values")], axis)


def block(arrays: Any) -> Any:
    """An array from nested lists of blocks: the innermost lists join along the last axis.

    Raises ``ValueError`` for an empty list, and where blocks are in lists of different depths.

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


def array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The array cut along ``axis`` at these places, or into so many parts of nearly one size.

    >>> import stretto.numpy as snp
    >>> snp.array_split(snp.arange(3), 2)
    [Array([0, 1], dtype=int32), Array([2], dtype=int32)]
    """
    return _split("array_split", ary, indices_or_sections, axis)


def split(ary: Any, indices_or_sections: Any, axis: int = 0) -> list[Any]:
    """The array cut along ``axis`` at these places, or into so many parts of one size.

    Raises ``ValueError`` where the size does not divide.

    >>> import stretto.numpy as snp
    >>> snp.split(snp.arange(4), 2)
    [Array([0, 1], dtype=int32), Array([2, 3], dtype=int32)]
    """
    return _split("split", ary, indices_or_sections, axis)


def _split(who: str, ary: Any, at: Any, axis: int) -> list[Any]:
    x = as_value(ary, who, "ary")
    place = canonical_axis(axis, x.ndim, who)
    n = x.shape[place]
    if np.ndim(at):
        places = integers(at, who, "indices_or_sections")
        bounds = [0, *(min(max(i + n if i < 0 else i, 0), n) for i in places), n]
    else:
        parts = integer(at, who, "indices_or_sections")
        if parts < 1 or (who == "split" and n % parts):
            raise ValueError(
                f"{who}: axis {axis} of {x.type} does not divide into {parts} equal parts"
            )
        size, more = divmod(n, parts)
        bounds = [i * size + min(i, more) for i in range(parts + 1)]
    pairs = itertools.pairwise(bounds)
    if at_rest(x):
        host, before = x.to_host(), (slice(None),) * place
        parts = [host[(*before, slice(a, max(a, b)))] for a, b in pairs]
        return [array_of(part, x.dtype, x.weak_type) for part in parts]
    return [ops.slice_in_dim(x, a, max(a, b), 1, place) for a, b in pairs]


def hsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the second axis; of a vector, its only one."""
    return split(ary, indices_or_sections, 0 if as_value(ary, "hsplit").ndim == 1 else 1)


def vsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the first axis."""
    return split(ary, indices_or_sections, 0)


def dsplit(ary: Any, indices_or_sections: Any) -> list[Any]:
    """``split`` along the third axis."""
    return split(ary, indices_or_sections, 2)


# Repeating


def tile(A: Any, reps: Any) -> Any:
    """The array laid side by side with itself, ``reps`` times along each axis.

    >>> import stretto.numpy as snp
    >>> snp.tile(snp.array([1, 2]), (2, 2))
    Array([[1, 2, 1, 2],
           [1, 2, 1, 2]], dtype=int32)
    """
    x = as_value(A, "tile", "A")
    counts = integers(reps if isinstance(reps, (tuple, list)) else (reps,), "tile", "reps", 0)
    rank = max(len(counts), x.ndim)
    counts = (1,) * (rank - len(counts)) + counts
    sizes = (1,) * (rank - x.ndim) + x.shape
    if at_rest(x) and min(counts, default=0) >= 0:
        return array_of(np.tile(x.to_host(), counts), x.dtype, x.weak_type)
    wide = tuple(n for pair in zip(counts, sizes, strict=True) for n in pair)
    x = broadcast_in_dim(reshape(x, sizes), wide, range(1, 2 * rank, 2))
    return reshape(x, tuple(c * n for c, n in zip(counts, sizes, strict=True)))


def repeat(
    a: Any,
    repeats: Any,
    axis: int | None = None,
    *,
    total_repeat_length: int | None = None,
    out_sharding: None = None,
) -> Any:
    """Each element, or part along ``axis``, ``repeats`` times in a row.

    ``repeats`` is a number, or one for each part. If it is traced, ``total_repeat_length`` must say
    how long the result is: what is too long is cut off, what is too short ends in the last part.

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
        if at_rest(x) and times >= 0:
            return array_of(np.repeat(x.to_host(), times, place), x.dtype, x.weak_type)
        wide = (*x.shape[: place + 1], times, *x.shape[place + 1 :])
        dims = [d for d in range(x.ndim + 1) if d != place + 1]
        x = broadcast_in_dim(x, wide, dims)
        return reshape(x, (*wide[:place], n * times, *wide[place + 2 :]))
    if total_repeat_length is None:
        each = integers(counts, "repeat", "repeats", 0)
        if len(each) != n:
            raise ValueError(f"repeat: {len(each)} repeats for {n} parts along axis {axis}")
        return take(x, np.repeat(np.arange(n, dtype=np.int32), each), place)
    ends = cumsum(broadcast_to(as_value(counts, "repeat", "repeats"), (n,)))
    position = iota(ends.dtype, integer(total_repeat_length, "repeat", "total_repeat_length", 0))
    # A part holds the positions below its end and not below the ends before.
    before = ge(expand_dims(position, 1), expand_dims(ends, 0))
    return take(x, sum_(before, 1), place, mode="clip")


def resize(a: Any, new_shape: Any) -> Any:
    """The elements in row-major order, over and over, in another shape; of none, zeros.

    Raises ``ValueError`` for a negative size.

    >>> import stretto.numpy as snp
    >>> snp.resize(snp.array([1, 2, 3]), (2, 2))
    Array([[1, 2],
           [3, 1]], dtype=int32)
    """
    x = ravel(as_value(a, "resize", "a"))
    shape = shape_of(new_shape, "resize")
    if not x.size:
        return full(shape, 0, x.dtype, x.weak_type)
    if at_rest(x):
        return array_of(np.resize(x.to_host(), shape), x.dtype, x.weak_type)
    size, times = math.prod(shape), -(-math.prod(shape) // x.size)
    return reshape(ops.slice_in_dim(tile(x, times), 0, size), shape)


# Choosing parts


def take(
    a: Any,
    indices: Any,
    axis: int | None = None,
    out: None = None,
    mode: str | None = None,
    unique_indices: bool = False,
    indices_are_sorted: bool = False,
    fill_value: Any = None,
) -> Any:
    """The parts at ``indices`` along ``axis``; without it, elements in row-major order.

    Negative indices count from the end, and out of bounds the nearest part is read. Other modes:
    ``"fill"`` gives ``fill_value`` (NaN) there, and is the mode where there is a ``fill_value`` and
    none is named, ``"wrap"`` counts round and round, ``"raise"``
    raises ``IndexError``, ``"clip"`` takes negative indices for 0.

    >>> import stretto.numpy as snp
    >>> snp.take(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]), axis=1)
    Array([[2, 2],
           [4, 4]], dtype=int32)
    """
    refuse_out("take", out)
    x, indices = as_value(a, "take", "a"), as_value(indices, "take", "indices")
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis(axis, x.ndim, "take")
    mode = reading_mode(mode, fill_value)
    if mode is None:
        hosts = host_of(x, BOOL + NUMERIC), host_of(indices, INTEGER)
        if hosts[0] is not None and hosts[1] is not None:
            with contextlib.suppress(IndexError, TypeError):  # out of bounds; or uint64
                return array_of(np.take(*hosts, place), x.dtype)
    if mode == "wrap":
        indices, mode = remainder(indices, x.shape[place]), "promise_in_bounds"
    elif mode == "clip" and indices.type.kind == "int":
        indices = maximum(indices, full_like(indices, 0))
    return getitem(
        x,
        (*(slice(None),) * place, indices),
        mode,
        fill_value,
        indices_are_sorted=indices_are_sorted,
        unique_indices=unique_indices,
    )
