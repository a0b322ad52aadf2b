"""Gather and scatter in NumPy: whole index arrays by broadcasting, no loop over indices.

The reference rules of ``primitives``. Gathers and scatters share one geometry, which ``locate``
works out: which elements of the operand the windows cover, in what order of axes.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.types import kind_of

_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Located(NamedTuple):
    """Say where the windows lie.

    ``indexed`` axes of the operand are reached by the integer arrays ``at``, which broadcast to
    the batch axes followed by the axes of partial windows; the ``full`` axes are taken whole.
    ``permutation`` brings (batch, partial, full) to the axes of the output.
    """

    indexed: tuple[int, ...]
    full: tuple[int, ...]
    at: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    permutation: tuple[int, ...]


def starts_of(
    shape: Sequence[int], indices: np.ndarray, numbers: Any, sizes: Sequence[int], clip: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Give the start indices as int64, in bounds where ``clip``; else which windows lie in bounds.

    The second result is ``None`` where all do.
    """
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.int64)
    last = np.asarray([shape[d] - sizes[d] for d in numbers.start_index_map], np.int64)
    if indices.size and indices.min() >= 0:
        ends = indices.reshape(-1, len(last)).max(0) if len(last) > 1 else indices.max()
        if np.all(ends <= last):
            return indices, None
    if clip:
        return np.minimum(np.maximum(indices, 0), last), None
    inside = np.asarray(((indices >= 0) & (indices <= last)).all(axis=-1))
    return indices, None if inside.all() else inside


def locate(shape: Sequence[int], starts: np.ndarray, numbers: Any, sizes: Sequence[int]) -> Located:
    """Return the geometry of windows of these ``sizes`` at ``starts``."""
    batch = starts.shape[:-1]
    window = [
        d
        for d in range(len(shape))
        if d not in numbers.collapsed_slice_dims and d not in numbers.operand_batching_dims
    ]
    full = tuple(d for d in window if sizes[d] == shape[d])
    partial = tuple(d for d in window if sizes[d] != shape[d])
    indexed = tuple(d for d in range(len(shape)) if d not in full)
    ndim = len(batch) + len(partial)

    def along(axis: int, n: int) -> np.ndarray:
        return np.arange(n).reshape([n if i == axis else 1 for i in range(ndim)])

    at = []
    for d in indexed:
        position = np.zeros((1,) * ndim, np.int64)
        if d in numbers.start_index_map:
            start = starts[..., numbers.start_index_map.index(d)]
            position = start.reshape(batch + (1,) * len(partial))
        elif d in numbers.operand_batching_dims:
            place = numbers.operand_batching_dims.index(d)
            position = along(numbers.start_indices_batching_dims[place], shape[d])
        if d in partial:
            position = position + along(len(batch) + partial.index(d), sizes[d])
        at.append(position)
    covered = (*batch, *(sizes[d] for d in partial), *(shape[d] for d in full))
    axis_of = {d: len(batch) + i for i, d in enumerate((*partial, *full))}
    window_axes = dict(zip(numbers.offset_dims, window, strict=True))
    batch_axes = iter(range(len(batch)))
    permutation = tuple(
        axis_of[window_axes[o]] if o in window_axes else next(batch_axes)
        for o in range(len(covered))
    )
    return Located(indexed, full, tuple(at), covered, permutation)


def _slices(
    starts: np.ndarray, sizes: Sequence[int], ndim: int, index_map: Sequence[int]
) -> tuple[slice, ...]:
    """Return the only window as slices."""
    first = [0] * ndim
    for d, start in zip(index_map, starts.reshape(-1).tolist(), strict=True):
        first[d] = start
    return tuple(slice(a, a + n) for a, n in zip(first, sizes, strict=True))


def gather(
    operand: np.ndarray,
    indices: np.ndarray,
    numbers: Any,
    sizes: Sequence[int],
    *,
    out_shape: tuple[int, ...],
    fill: Any = None,
) -> np.ndarray:
    """Return windows of the operand.

    Those out of bounds hold ``fill``, or are clamped for ``None``.
    """
    if not math.prod(out_shape):
        return np.zeros(out_shape, operand.dtype)
    starts, inside = starts_of(operand.shape, indices, numbers, sizes, fill is None)
    if inside is not None:
        starts = np.where(inside[..., None], starts, 0)
    if math.prod(starts.shape[:-1]) == 1:
        windows = operand[_slices(starts, sizes, operand.ndim, numbers.start_index_map)]
        out = windows.reshape(out_shape)
    else:
        where = locate(operand.shape, starts, numbers, sizes)
        windows = operand.transpose(where.indexed + where.full)
        if len(where.at) == 1:
            windows = windows.take(where.at[0], axis=0)
        elif where.at:
            windows = windows[where.at]
        out = np.broadcast_to(windows, where.shape).transpose(where.permutation)
    if inside is None:
        return out
    mask_shape = [1 if o in numbers.offset_dims else n for o, n in enumerate(out_shape)]
    return np.where(inside.reshape(mask_shape), out, fill)


def scatter(
    update: str,
    operand: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    numbers: Any,
    *,
    sizes: Sequence[int],
    clip: bool,
) -> np.ndarray:
    """Return the operand with windows updated, in the order of the indices.

    Those outside are dropped.
    """
    dtype = operand.dtype
    if update != "set":
        wide = _wide(dtype)
        operand, updates = operand.astype(wide, order="C"), updates.astype(wide, copy=False)
    else:
        operand = operand.copy(order="C")
    if updates.size:
        starts, inside = starts_of(operand.shape, indices, numbers, sizes, clip)
        if inside is None and math.prod(starts.shape[:-1]) == 1:
            first = _slices(starts, sizes, operand.ndim, numbers.start_index_map)
            _write_one(_UFUNCS.get(update), operand[(*first, ...)], updates)
        elif inside is None or inside.any():
            places = locate(operand.shape, starts, numbers, sizes)
            _write(_UFUNCS.get(update), operand, updates, places, inside)
    return operand.astype(dtype, copy=False)


def _wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype that updates accumulate in."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    if kind in ("int", "uint") and dtype.kind not in "iu":
        return np.dtype(np.int32)
    return dtype


def _write_one(ufunc: np.ufunc | None, view: np.ndarray, updates: np.ndarray) -> None:
    """Update the only window, a view of the target."""
    updates = updates.reshape(view.shape)
    view[...] = updates if ufunc is None else ufunc(view, updates)


def _positions(
    target: np.ndarray, updates: np.ndarray, where: Located, at: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the place of each update in the target's row-major order."""
    stride = [math.prod(target.shape[d + 1 :]) for d in range(target.ndim)]
    flat: Any = np.zeros(updates.shape, np.int64)
    head = flat.ndim - len(where.full)
    for d, a in zip(where.indexed, at, strict=True):
        flat += (a * stride[d]).reshape(a.shape + (1,) * len(where.full))
    for i, d in enumerate(where.full):
        steps = np.arange(target.shape[d]) * stride[d]
        flat += steps.reshape([-1 if j == head + i else 1 for j in range(flat.ndim)])
    return flat


def _write(
    ufunc: np.ufunc | None,
    target: np.ndarray,
    updates: np.ndarray,
    where: Located,
    inside: np.ndarray | None,
) -> None:
    """Update the target in place; a ufunc of ``None`` sets."""
    inverse = sorted(range(updates.ndim), key=where.permutation.__getitem__)
    updates = updates.transpose(inverse)  # to (batch, partial, full)
    axes = where.indexed + where.full
    ndim = len(where.shape) - len(where.full)
    at = [np.broadcast_to(a, where.shape[:ndim]) for a in where.at]
    if inside is not None:
        at = [a[inside] for a in at]
        updates = updates[inside]
    if ufunc is None and at:
        # NumPy follows the order of index arrays of one axis: of equal indices the last wins.
        rows = updates.reshape(-1, *(target.shape[d] for d in where.full))
        target.transpose(axes)[tuple(a.reshape(-1) for a in at)] = rows
        return
    # Positions in row-major order: ufunc.at is fast on arrays of one axis.
    flat = at[0] if target.ndim == len(at) == 1 else _positions(target, updates, where, at)
    line = target.reshape(-1)
    if ufunc is None:
        line[flat.reshape(-1)] = updates.reshape(-1)
    else:
        ufunc.at(line, flat.reshape(-1), updates.reshape(-1))
