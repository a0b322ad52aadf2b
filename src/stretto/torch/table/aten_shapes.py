"""Shapes: views, permutations, parts, repetition, padding; and tensors of known numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import lax
from stretto.nn import functional as F


def _view(x: Any, size: Sequence[int]) -> Any:
    return snp.reshape(x, tuple(size))


def _expand(x: Any, size: Sequence[int], *, implicit: bool = False) -> Any:
    """-1 keeps the size of an axis."""
    kept = (*(1,) * (len(size) - x.ndim), *x.shape)
    return snp.broadcast_to(x, [n if n != -1 else m for n, m in zip(size, kept, strict=True)])


def _slice(
    x: Any, dim: int = 0, start: int | None = None, end: int | None = None, step: int = 1
) -> Any:
    return x[_along(x, dim, slice(start, end, step))]


def _along(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    return (slice(None),) * (dim % x.ndim) + (index,)


def _select(x: Any, dim: int, index: int) -> Any:
    return x[_along(x, dim, index)]


def _squeeze(x: Any, dim: int | Sequence[int] | None = None) -> Any:
    """Axes of other sizes than 1 stay."""
    axes = range(x.ndim) if dim is None else [dim] if isinstance(dim, int) else dim
    ones = tuple([axis for axis in axes if x.ndim and x.shape[axis] == 1])
    return snp.squeeze(x, ones)


def _repeat(x: Any, repeats: Sequence[int]) -> Any:
    return snp.tile(x, tuple(repeats)) if repeats else x


def _flip(x: Any, dims: Sequence[int]) -> Any:
    return snp.flip(x, tuple(dims)) if dims and x.ndim else x


def _roll(x: Any, shifts: Sequence[int], dims: Sequence[int] = ()) -> Any:
    shifts = [shifts] if isinstance(shifts, int) else list(shifts)
    if not x.ndim:
        return x
    return snp.roll(x, shifts, tuple(dims)) if dims else snp.roll(x, shifts[0])


def _split(x: Any, size: int, dim: int = 0) -> list[Any]:
    n = x.shape[dim]
    return [_slice(x, dim, k, min(k + size, n)) for k in range(0, max(n, 1), size or 1)]


def _chunk(x: Any, chunks: int, dim: int = 0) -> list[Any]:
    """At most so many parts, all of one size but for the last."""
    n = x.shape[dim]
    return _split(x, -(-n // chunks), dim) if n else [x] * chunks


def _split_with_sizes(x: Any, split_sizes: Sequence[int], dim: int = 0) -> list[Any]:
    ends = [sum(split_sizes[: k + 1]) for k in range(len(split_sizes))]
    return [_slice(x, dim, end - n, end) for n, end in zip(split_sizes, ends, strict=True)]


def _unbind(x: Any, dim: int = 0) -> list[Any]:
    return [_select(x, dim, k) for k in range(x.shape[dim])]


def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Without the empty vectors that PyTorch lets stand beside anything."""
    taken = [x for x in tensors if x.shape != (0,)] or list(tensors[:1])
    return snp.concatenate(taken, dim)


def _diagonal(x: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    return snp.diagonal(x, offset, dim1, dim2)


def _diag_embed(x: Any, offset: int = 0, dim1: int = -2, dim2: int = -1) -> Any:
    n = x.shape[-1] + abs(offset)
    rows = snp.arange(x.shape[-1]) + max(-offset, 0)
    columns = snp.arange(x.shape[-1]) + max(offset, 0)
    out = snp.zeros((*x.shape[:-1], n, n), x.dtype).at[..., rows, columns].set(x)
    return snp.moveaxis(out, (-2, -1), (dim1, dim2))


def _unfold(x: Any, dimension: int, size: int, step: int) -> Any:
    """Windows along an axis, each along a new last one."""
    if not x.ndim:
        return snp.broadcast_to(x, (size,))
    count = (x.shape[dimension] - size) // step + 1
    index = step * snp.arange(count)[:, None] + snp.arange(size)
    axis = dimension % x.ndim
    windows = snp.take(x, index.reshape(-1), axis)
    windows = windows.reshape((*x.shape[:axis], count, size, *x.shape[axis + 1 :]))
    return snp.moveaxis(windows, axis + 1, -1)


def _pad(x: Any, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Any:
    return F.pad(x, tuple(pad), mode, 0.0 if value is None and mode == "constant" else value or 0)


def _triangle(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, diagonal=0: function(x, diagonal)


def _view_dtype(x: Any, dtype: Any) -> Any:
    ratio = x.dtype.itemsize / snp.dtype(dtype).itemsize
    if ratio >= 1:
        out = lax.bitcast_convert_type(x, dtype)
        return out if ratio == 1 else out.reshape((*x.shape[:-1], -1))
    count = round(1 / ratio)
    return lax.bitcast_convert_type(x.reshape((*x.shape[:-1], -1, count)), dtype)


def _movedim(x: Any, source: Sequence[int], destination: Sequence[int]) -> Any:
    return snp.moveaxis(x, source, destination)


def _full(size: Sequence[int], fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return snp.full(tuple(size), fill_value, dtype)


def _full_like(x: Any, fill_value: Any, *, dtype: Any = None, **_: Any) -> Any:
    return snp.full(x.shape, fill_value, x.dtype if dtype is None else dtype)


def _of(value: int) -> Callable[..., Any]:
    return lambda size, *, dtype=None, **_: snp.full(tuple(size), value, dtype)


def _like(value: int) -> Callable[..., Any]:
    return lambda x, *, dtype=None, **_: _full_like(x, value, dtype=dtype)


def _new(value: int) -> Callable[..., Any]:
    return lambda x, size, *, dtype=None, **_: snp.full(
        tuple(size), value, x.dtype if dtype is None else dtype
    )


def _whole(dtype: Any) -> bool:
    return dtype is not None and snp.issubdtype(dtype, snp.integer)


def _arange(*bounds: Any, dtype: Any = None, **_: Any) -> Any:
    """Bounds that are no integers are truncated where the result is of integers."""
    return snp.arange(*(map(int, bounds) if _whole(dtype) else bounds), dtype=dtype)


def _linspace(start: Any, end: Any, steps: int, *, dtype: Any = None, **_: Any) -> Any:
    """Integers are floats between integers, truncated."""
    if _whole(dtype):
        start, end, dtype = int(start), int(end), None
    return snp.linspace(start, end, steps, dtype=dtype)


def _logspace(
    start: Any, end: Any, steps: int, base: float = 10.0, *, dtype: Any = None, **_: Any
) -> Any:
    if _whole(dtype):
        start, end, dtype = int(start), int(end), None
    return snp.logspace(start, end, steps, base=base, dtype=dtype)


def _triangle_indices(offset_of: Callable[..., Any]) -> Callable[..., Any]:
    def indices(row: int, col: int, offset: int = 0, *, dtype: Any = None, **_: Any) -> Any:
        return snp.stack(offset_of(row, offset, col))

    return indices


TABLE: dict[str, Callable[..., Any]] = {
    "aten.cat.default": _cat,
    "aten.constant_pad_nd.default": lambda x, pad, value=0: _pad(x, pad, "constant", value),
    "aten.diag_embed.default": _diag_embed,
    "aten.diagonal.default": _diagonal,
    "aten.diagonal_copy.default": _diagonal,
    "aten.expand.default": _expand,
    "aten.flip.default": _flip,
    "aten.movedim.int": _movedim,
    "aten.movedim.intlist": _movedim,
    "aten.pad.default": _pad,
    "aten.permute.default": lambda x, dims: snp.transpose(x, tuple(dims)),
    "aten.pixel_shuffle.default": F.pixel_shuffle,
    "aten.pixel_unshuffle.default": F.pixel_unshuffle,
    "aten.channel_shuffle.default": F.channel_shuffle,
    **{
        f"aten.{kind}_pad{n}d.default": lambda x, padding, mode=mode: _pad(x, padding, mode)
        for kind, mode in (("reflection", "reflect"), ("replication", "replicate"))
        for n in (1, 2, 3)
    },
    "aten.repeat.default": _repeat,
    "aten.roll.default": _roll,
    "aten.rot90.default": lambda x, k=1, dims=(0, 1): snp.rot90(x, k, tuple(dims)),
    "aten.select.int": _select,
    "aten.slice.Tensor": _slice,
    "aten.chunk.default": _chunk,
    "aten.contiguous.default": lambda x, **_: x,
    "aten.split.Tensor": _split,
    "aten.split_with_sizes.default": _split_with_sizes,
    "aten.split_with_sizes_copy.default": _split_with_sizes,
    "aten.squeeze.default": _squeeze,
    "aten.squeeze.dim": _squeeze,
    "aten.squeeze.dims": _squeeze,
    "aten.stack.default": lambda tensors, dim=0: snp.stack(tensors, dim),
    "aten.t.default": lambda x: x.T,
    "aten.transpose.int": lambda x, dim0, dim1: snp.swapaxes(x, dim0, dim1) if x.ndim else x,
    "aten.tril.default": _triangle(snp.tril),
    "aten.triu.default": _triangle(snp.triu),
    "aten.unbind.int": _unbind,
    "aten.unfold.default": _unfold,
    "aten.unsqueeze.default": snp.expand_dims,
    "aten.view.default": _view,
    "aten.view.dtype": _view_dtype,
    "aten.view_copy.default": _view,
    "aten._unsafe_view.default": _view,
    "aten.reshape.default": _view,
    "aten.flatten.using_ints": F.flatten,
    "aten.unflatten.int": F.unflatten,
    "aten.numel.default": lambda x: math.prod(x.shape),
    "aten.arange.default": _arange,
    "aten.arange.start": _arange,
    "aten.arange.start_step": _arange,
    "aten.empty.memory_format": _of(0),
    "aten.empty_like.default": _like(0),
    "aten.empty_permuted.default": lambda size, physical_layout, *, dtype=None, **_: snp.zeros(
        tuple(size), dtype
    ),
    "aten.empty_strided.default": lambda size, stride, *, dtype=None, **_: snp.zeros(
        tuple(size), dtype
    ),
    "aten.eye.default": lambda n, *, dtype=None, **_: snp.eye(n, dtype=dtype),
    "aten.eye.m": lambda n, m, *, dtype=None, **_: snp.eye(n, m, dtype=dtype),
    "aten.full.default": _full,
    "aten.full_like.default": _full_like,
    "aten.linspace.default": _linspace,
    "aten.logspace.default": _logspace,
    "aten.new_empty.default": _new(0),
    "aten.new_full.default": lambda x, size, value, *, dtype=None, **_: snp.full(
        tuple(size), value, x.dtype if dtype is None else dtype
    ),
    "aten.new_ones.default": _new(1),
    "aten.new_zeros.default": _new(0),
    "aten.ones.default": _of(1),
    "aten.ones_like.default": _like(1),
    "aten.scalar_tensor.default": lambda value, *, dtype=None, **_: snp.asarray(value, dtype),
    "aten.tril_indices.default": _triangle_indices(snp.tril_indices),
    "aten.triu_indices.default": _triangle_indices(snp.triu_indices),
    "aten.zeros.default": _of(0),
    "aten.zeros_like.default": _like(0),
}
