"""Padding of the last axes: with a constant, reflected, replicated or circular.

Name, meanings and defaults are those of ``torch.nn.functional.pad``.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.linear_call import with_transpose
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto._engine.ops.shape import pad as pad_values


def pad(
    input: ArrayLike, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Array:
    """Add elements before and after, along the last axes.

    Args:
        input: an array of any shape.
        pad: (before, after) of the last axis, then of the one before it, and so on; negative
            numbers take elements away.
        mode: ``"constant"``, ``"reflect"`` (without the end element itself), ``"replicate"`` (the
            end element) or ``"circular"`` (from the other end).
        value: the constant, 0 by default.

    Returns:
        The padded array, of the dtype of ``input``.

    Raises:
        TypeError: ``pad`` is not of integers.
        ValueError: ``pad`` does not come in pairs, has more of them than there are axes, asks for
            more elements than an axis has, or ``mode`` is unknown.

    As PyTorch's ``nn.functional.pad``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.pad(snp.array([[1.0, 2.0, 3.0]]), (1, 2), mode="reflect")
    Array([[2., 1., 2., 3., 2., 1.]], dtype=float32)
    """
    x = as_value(input, "pad", "input")
    ends = list(integers(pad, "pad", "pad"))
    if len(ends) % 2 or len(ends) > 2 * x.ndim:
        raise ValueError(
            f"pad: pad must be pairs (before, after), at most one for each axis of {x.type}, the "
            f"last axis first; got {tuple(ends)}"
        )
    pairs = [(0, 0)] * (x.ndim - len(ends) // 2) + [*zip(ends[::2], ends[1::2])][::-1]
    for axis, (low, high) in enumerate(pairs):
        if x.shape[axis] + low + high < 0:
            raise ValueError(f"pad: {(low, high)} takes away more than axis {axis} of {x.type} has")
    if mode == "constant":
        fill = 0 if value is None else value
        return pad_values(x, fill, [(low, high, 0) for low, high in pairs])
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(
            f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}"
        )
    if value is not None and value != 0:
        raise ValueError(f"pad: value is for mode 'constant', got mode {mode!r}")
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            x = _beyond(x, axis, low, high, mode)
    return x


def _beyond(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Return ``x`` with its own elements before and after along an axis."""
    crop = max(-low, 0), max(-high, 0)
    if mode == "circular":  # elements taken away are not repeated
        x = slice_in_dim(x, crop[0], x.shape[axis] - crop[1], 1, axis)
        crop = 0, 0
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n}.get(mode, max(low, high) if n else 0)
    if max(low, high) > max(most, 0):
        raise ValueError(
            f"pad: mode {mode!r} can add at most {max(most, 0)} elements to axis {axis} of "
            f"{x.type}, got {(low, high)}"
        )
    low, high = max(low, 0), max(high, 0)
    if low or high:
        x = _extend(x, axis, low, high, mode)
    return slice_in_dim(x, crop[0], x.shape[axis] - crop[1], 1, axis)


def _extend(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    n = x.shape[axis]

    def extend(x: Array) -> Array:
        parts = [x]
        if low:
            before = {"reflect": 1, "circular": n - low}.get(mode, 0)
            parts.insert(0, _copy(x, axis, before, low, mode))
        if high:
            after = {"reflect": n - 1 - high, "circular": 0}.get(mode, n - 1)
            parts.append(_copy(x, axis, after, high, mode))
        return concatenate(parts, axis)

    return with_transpose(extend, lambda ct: _fold_back(ct, axis, low, high, mode), x)


def _copy(x: Array, axis: int, start: int, count: int, mode: str) -> Array:
    if mode == "replicate":
        shape = tuple(count if d == axis else size for d, size in enumerate(x.shape))
        return broadcast_to(slice_in_dim(x, start, start + 1, 1, axis), shape)
    part = slice_in_dim(x, start, start + count, 1, axis)
    return rev(part, (axis,)) if mode == "reflect" else part


def _fold_back(ct: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Return the transpose: each element's own cotangent, and those of its copies.

    One concatenation, of the stretches in which the same copies are added: sums of padded arrays
    would store one of the whole size for each copy.
    """
    n = ct.shape[axis] - low - high
    copies = [(0, 0, low), (0, low + n, high)]  # where the copy goes, and where its cotangents are
    pieces = [slice_in_dim(ct, start, start + size, 1, axis) for _, start, size in copies]
    if mode == "replicate":
        pieces = [expand_dims(reduce_sum(piece, (axis,)), (axis,)) for piece in pieces]
    if mode == "reflect":
        pieces = [rev(piece, (axis,)) for piece in pieces]
    first = {"reflect": 1, "replicate": 0, "circular": n - low}[mode]
    last = {"reflect": n - 1 - high, "replicate": n - 1, "circular": 0}[mode]
    added = [(at, piece) for at, piece in zip((first, last), pieces) if piece.shape[axis]]
    ends = {end for at, piece in added for end in (at, at + piece.shape[axis])}
    out = []
    for start, stop in pairwise(sorted({0, n, *ends})):
        part = slice_in_dim(ct, low + start, low + stop, 1, axis)
        for at, piece in added:
            if at <= start and stop <= at + piece.shape[axis]:
                part = part + slice_in_dim(piece, start - at, stop - at, 1, axis)
        out.append(part)
    return concatenate(out, axis)
