"""Padding of the last axes: with a constant, reflected, replicated or circular.

Name, meanings and defaults are those of ``torch.nn.functional.pad``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto._engine.ops.shape import pad as pad_values

__all__ = ["pad"]


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
    """``x`` with its own elements before and after along an axis."""
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
    parts = [x]
    if low > 0:
        before = {"reflect": 1, "circular": n - low}.get(mode, 0)
        parts.insert(0, _copied(x, axis, before, low, mode))
    if high > 0:
        after = {"reflect": n - 1 - high, "circular": 0}.get(mode, n - 1)
        parts.append(_copied(x, axis, after, high, mode))
    out = concatenate(parts, axis) if len(parts) > 1 else x
    return slice_in_dim(out, crop[0], out.shape[axis] - crop[1], 1, axis)


def _copied(x: Array, axis: int, start: int, count: int, mode: str) -> Array:
    if mode == "replicate":
        shape = tuple(count if d == axis else size for d, size in enumerate(x.shape))
        return broadcast_to(slice_in_dim(x, start, start + 1, 1, axis), shape)
    part = slice_in_dim(x, start, start + count, 1, axis)
    return rev(part, (axis,)) if mode == "reflect" else part
