"""Cutting signals into overlapping segments, and putting them together again; windows."""

from __future__ import annotations

import warnings
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.position import user_stack_level
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import move_axis, reshape
from stretto._engine.ops.shape import pad, slice_in_dim

__all__ = ["Window", "overlap_of", "overlapped", "rate_of", "segments", "window_of"]

_windows = LazyModule("scipy.signal.windows")

Window: TypeAlias = str | tuple[Any, ...] | Value | np.ndarray
"""A name or a tuple for SciPy's ``get_window``, or the weights."""


def window_of(
    caller: str,
    window: Window,
    nperseg: int | None,
    length: int | None,
    default: int,
    dtype: np.dtype,
) -> tuple[Array, int]:
    """The weights of a window, and the number of points in a segment.

    ``length`` is the signal's, which no segment exceeds.
    """
    size = None if nperseg is None else integer(nperseg, caller, "nperseg")
    if size is not None and size < 1:
        raise ValueError(f"{caller}: nperseg must be positive, got {nperseg}")
    if isinstance(window, (str, tuple)):
        size = default if size is None else size
        if length is not None and size > length:
            if nperseg is not None:
                warnings.warn(
                    f"{caller}: nperseg is {size}, but the signal has {length} points; using "
                    f"{length}",
                    stacklevel=user_stack_level(),
                )
            size = length
        return as_value(_windows.get_window(window, size).astype(dtype)), size
    if not isinstance(window, (Value, np.ndarray)) or window.ndim != 1 or not window.size:
        raise ValueError(
            f"{caller}: window must be a name, a tuple, or an array of rank 1; got {window!r}"
        )
    weights = convert(as_value(window, caller, "window"), dtype)
    if length is not None and weights.size > length:
        raise ValueError(
            f"{caller}: the window has {weights.size} elements, more than the signal's {length}"
        )
    if size not in (None, weights.size):
        raise ValueError(f"{caller}: nperseg {size} is not the window's size {weights.size}")
    return weights, weights.size


def rate_of(caller: str, fs: ArrayLike) -> ArrayLike:
    """``fs``, the number of points in a unit of time; raises unless it is one number."""
    rate = as_value(fs, caller, "fs")
    if rate.ndim:
        raise TypeError(f"{caller}: fs must be a number, got {rate.type}")
    return fs


def overlap_of(caller: str, noverlap: int | None, nperseg: int) -> int:
    """How many points neighbours share, by default half; raises unless it is less than all."""
    overlap = nperseg // 2 if noverlap is None else integer(noverlap, caller, "noverlap")
    if not 0 <= overlap < nperseg:
        raise ValueError(f"{caller}: noverlap must be from 0 to nperseg - 1, got {noverlap}")
    return overlap


def segments(x: Array, size: int, step: int) -> Array:
    """``[..., n]`` to ``[..., segments, size]``: each begins ``step`` after the one before it."""
    count = (x.shape[-1] - size) // step + 1
    outer, wide = x.shape[:-1], -(-size // step)
    # Blocks of one step, copied to as many rows as a segment has blocks. Joined, and cut again
    # into rows that are one block longer, each row starts one block later than the one before it.
    blocks = count + wide - 1
    x = _to_length(x, blocks * step)
    rows = reshape(x, (*outer, blocks, step))
    rows = broadcast_in_dim(
        rows,
        (*outer, wide, blocks, step),
        (*range(len(outer)), len(outer) + 1, len(outer) + 2),
    )
    flat = reshape(rows, (*outer, wide * blocks * step))
    flat = _to_length(flat, wide * (blocks + 1) * step)
    skewed = reshape(flat, (*outer, wide, blocks + 1, step))
    columns = slice_in_dim(skewed, 0, count, axis=len(outer) + 1)
    columns = move_axis(columns, len(outer), len(outer) + 1)
    joined = reshape(columns, (*outer, count, wide * step))
    return slice_in_dim(joined, 0, size, axis=-1)


def overlapped(x: Array, step: int) -> Array:
    """``[..., segments, size]`` to ``[..., n]``: the sum of the segments, each where it was cut."""
    outer, (count, size) = x.shape[:-2], x.shape[-2:]
    wide = -(-size // step)
    # The steps of ``segments`` in reverse.
    blocks = count + wide - 1
    x = _to_length(x, wide * step)
    rows = move_axis(reshape(x, (*outer, count, wide, step)), len(outer) + 1, len(outer))
    config = [(0, 0, 0)] * rows.ndim
    config[-2] = (0, blocks + 1 - count, 0)
    flat = reshape(pad(rows, 0, config), (*outer, wide * (blocks + 1) * step))
    skewed = reshape(_to_length(flat, wide * blocks * step), (*outer, wide, blocks * step))
    return _to_length(reduce_sum(skewed, (len(outer),)), (count - 1) * step + size)


def _to_length(x: Array, n: int) -> Array:
    """Truncated, or padded with zeros, at the end of the last axis."""
    return pad(x, 0, [*[(0, 0, 0)] * (x.ndim - 1), (0, n - x.shape[-1], 0)])
