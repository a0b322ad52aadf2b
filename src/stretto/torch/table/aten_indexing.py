"""Shapes, and elements by index: views, parts, repetition, padding; gathers, scatters, masks.

Tensors of known numbers are here, too.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import Tracer
from stretto._engine.core.sizes import at_least, is_size
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto.nn import functional as F
from stretto.torch.slopes import power_norm, written


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
    """Return at most so many parts, all of one size but for the last."""
    n = x.shape[dim]
    return _split(x, -(-n // chunks), dim) if n else [x] * chunks


def _split_with_sizes(x: Any, split_sizes: Sequence[int], dim: int = 0) -> list[Any]:
    ends = [sum(split_sizes[: k + 1]) for k in range(len(split_sizes))]
    return [_slice(x, dim, end - n, end) for n, end in zip(split_sizes, ends, strict=True)]


def _unbind(x: Any, dim: int = 0) -> list[Any]:
    return [_select(x, dim, k) for k in range(x.shape[dim])]


def _cat(tensors: Sequence[Any], dim: int = 0) -> Any:
    """Join arrays without the empty vectors that PyTorch lets stand beside anything."""
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
    """Return windows along an axis, each along a new last one."""
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


def readable(x: Any, axis: int, index: Any) -> tuple[Any, Any]:
    """Return ``x`` and indices along an axis that may be empty, with a row of zeros at its end.

    Without elements nothing may be read, and whether there are any is known only later.
    """
    n = x.shape[axis]
    if not is_size(n) or at_least(n) > 0:
        return x, index
    shape = [1 if k == axis % x.ndim else m for k, m in enumerate(x.shape)]
    longer = snp.concatenate([x, snp.zeros(shape, x.dtype)], axis)
    return longer, snp.where(index < 0, index + snp.asarray(n), index)


def _index(x: Any, indices: Sequence[Any]) -> Any:
    if not any([i is not None and i.dtype.kind == "b" for i in indices]):
        read = []
        for axis, index in enumerate(indices):
            if index is not None:
                x, index = readable(x, axis, index)
            read.append(index)
        indices = read
    return x[tuple([slice(None) if i is None else i for i in indices])]


def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    given = [k for k, i in enumerate(indices) if i is not None]
    masks = [k for k in given if indices[k].dtype.kind == "b"]
    if masks:
        if len(given) > 1:
            raise NotImplementedError(
                "index_put: a mask beside other indices, x[mask, index] = y, is not supported: "
                "use torch.where"
            )
        return _put_by_mask(x, masks[0], indices[masks[0]], values, accumulate)
    places = x.at[tuple([slice(None) if i is None else i for i in indices])]
    return places.add(values) if accumulate else places.set(values)


def _put_by_mask(x: Any, axis: int, mask: Any, values: Any, accumulate: bool) -> Any:
    """Return ``x`` with values where a mask of its axes from this one on is True.

    Values have a row for each true element, or one that is for all.
    """
    after = x.ndim - axis - mask.ndim
    of_mask = range(axis, axis + mask.ndim)
    moved = snp.moveaxis(x, of_mask, range(mask.ndim))
    place = values.ndim - after - 1  # the axis of rows, if they have one
    if place >= 0 and values.shape[place] != 1:
        rows = snp.moveaxis(values, place, 0)
        # A row of zeros in front, which is read where the mask is not: there may be no other.
        rows = snp.concatenate([snp.zeros((1, *rows.shape[1:]), rows.dtype), rows])
        row = snp.where(mask.reshape(-1), snp.cumsum(mask.reshape(-1)), 0)
        lead = (1,) * (axis + after + 1 - rows.ndim)
        values = snp.take(rows, row, 0, mode="clip")
        values = values.reshape((*mask.shape, *lead, *rows.shape[1:]))
    elif place >= 0:
        values = snp.squeeze(values, place)
    new = moved + values if accumulate else values
    here = mask.reshape((*mask.shape, *(1,) * (axis + after)))
    out = snp.where(here, new, moved).astype(x.dtype)
    return snp.moveaxis(out, range(mask.ndim), of_mask)


def _masked_place(x: Any, mask: Any, source: Any) -> Any:
    """Return the elements of ``source``, in order, where the mask is True."""
    x, mask = snp.broadcast_arrays(x, mask)
    chosen = mask.reshape(-1)
    order = snp.maximum(snp.cumsum(chosen) - 1, 0)
    return snp.where(chosen, snp.take(source.reshape(-1), order), x.reshape(-1)).reshape(x.shape)


def _at_least_1d(*arrays: Any) -> list[Any]:
    return [x.reshape(1) if not x.ndim else x for x in arrays]


def _gather(x: Any, dim: int, index: Any, *, sparse_grad: bool = False) -> Any:
    if not index.size:
        return snp.zeros(index.shape, x.dtype)
    values, places = _at_least_1d(x, index)
    values, places = readable(values, dim, places)
    return snp.asarray(values[_grid(values, dim, places)]).reshape(index.shape)


def _grid(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """Return for each element of ``index`` its own place, with the element along an axis."""
    ranks = range(x.ndim)
    shape = index.shape
    own = [snp.arange(shape[k]).reshape([-1 if axis == k else 1 for axis in ranks]) for k in ranks]
    own[dim % x.ndim] = index
    return tuple(own)


def _scatter(x: Any, dim: int, index: Any, src: Any, how: str = "set") -> Any:
    if not index.size:
        return x
    values, places = _at_least_1d(x, index)
    source = src
    if hasattr(src, "ndim") and src.ndim:
        source = src[tuple([slice(n) for n in places.shape])]
    updated = getattr(values.at[_grid(values, dim, places)], how)(source)
    return updated.reshape(x.shape)


_HOW = {"sum": "add", "add": "add", "prod": "multiply", "multiply": "multiply"}
_HOW |= {"amax": "max", "amin": "min"}


def _scatter_reduced(
    x: Any, dim: int, index: Any, src: Any, reduce: str, *, include_self: bool = True
) -> Any:
    if reduce == "mean":
        ones = _scatter(snp.zeros_like(x), dim, index, snp.ones_like(src), "add")
        start = x if include_self else snp.where(ones > 0, 0, x)
        total = _scatter(start, dim, index, src, "add")
        count = snp.maximum(ones + include_self, 1)
        whole = snp.issubdtype(x.dtype, snp.integer)
        return snp.floor_divide(total, count) if whole else total / count
    if not include_self:
        touched = _scatter(snp.zeros(x.shape, bool), dim, index, True)
        x = snp.where(touched, _neutral(reduce, x.dtype), x)
    return _scatter(x, dim, index, src, _HOW[reduce])


def _neutral(reduce: str, dtype: Any) -> Any:
    if reduce in ("amax", "amin"):
        least = reduce == "amax"
        if snp.issubdtype(dtype, snp.bool_):
            return not least
        if snp.issubdtype(dtype, snp.floating):
            return -snp.inf if least else snp.inf
        bounds = snp.iinfo(dtype)
        return bounds.min if least else bounds.max
    return 1 if reduce == "prod" else 0


def _index_reduced(
    x: Any, dim: int, index: Any, source: Any, reduce: str, *, include_self: bool = True
) -> Any:
    return _scatter_reduced(
        x, dim, _whole_rows(x, dim, index, source), source, reduce, include_self=include_self
    )


def _whole_rows(x: Any, dim: int, index: Any, source: Any) -> Any:
    """Return an index of slices along an axis as one of elements."""
    axis = dim % max(x.ndim, 1)
    shape = [-1 if k == axis else 1 for k in range(max(source.ndim, 1))]
    return snp.broadcast_to(index.reshape(shape), source.shape or (1,))


def _index_add(x: Any, dim: int, index: Any, source: Any, *, alpha: Any = 1) -> Any:
    return _scatter(x, dim, _whole_rows(x, dim, index, source), alpha * source, "add")


def _index_copy(x: Any, dim: int, index: Any, source: Any) -> Any:
    return _scatter(x, dim, _whole_rows(x, dim, index, source), source)


def _index_fill(x: Any, dim: int, index: Any, value: Any) -> Any:
    if not x.ndim:
        return snp.broadcast_to(value, ()).astype(x.dtype)
    return x.at[(slice(None),) * (dim % x.ndim) + (index,)].set(value)


def _index_select(x: Any, dim: int, index: Any) -> Any:
    if not x.ndim:
        return x
    x, index = readable(x, dim, index.reshape(-1))
    return snp.take(x, index, dim)


def _part_set(x: Any, source: Any, dim: int, part: Any) -> Any:
    return x.at[(slice(None),) * (dim % x.ndim) + (part,)].set(source)


def _slice_scatter(
    x: Any,
    source: Any,
    dim: int = 0,
    start: int | None = None,
    end: int | None = None,
    step: int = 1,
) -> Any:
    return _part_set(x, source, dim, slice(start, end, step))


def _diagonal_scatter(x: Any, source: Any, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Any:
    moved = snp.moveaxis(x, (dim1, dim2), (-2, -1))
    k = snp.arange(source.shape[-1])
    changed = moved.at[..., k + max(-offset, 0), k + max(offset, 0)].set(source)
    return snp.moveaxis(changed, (-2, -1), (dim1, dim2))


def _embedding(
    weight: Any,
    indices: Any,
    padding_idx: int = -1,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Any:
    """A ``padding_idx`` of -1 stands for none."""
    rows = F.embedding(indices, weight, None if padding_idx < 0 else padding_idx)
    if not scale_grad_by_freq:
        return rows
    counts = snp.zeros(weight.shape[0], weight.dtype).at[indices].add(1)[indices]
    return _with_shares(rows, counts[..., None])


@custom_jvp
def _with_shares(rows: Any, counts: Any) -> Any:
    return rows


# PyTorch divides what a row of the table gets by how often the row was looked up.
_with_shares.defjvps(lambda drows, out, rows, counts: drows / counts, None)


def _renormalize(weight: Any, indices: Any, max_norm: float, norm_type: float) -> Any:
    """Return the table with rows that are looked up shortened to a norm of ``max_norm`` at most.

    PyTorch writes the rows without recording it, so gradients pass as if nothing had been written.
    """
    indices, still = indices.reshape(-1), lax.stop_gradient(weight)
    rows = still[indices]
    norm = power_norm(snp.abs(rows), norm_type, -1, keepdims=True)
    short = snp.where(norm > max_norm, rows * (max_norm / (norm + 1e-7)), rows)
    return written(weight, still.at[indices].set(short))


def _one_hot(x: Any, num_classes: int = -1) -> Any:
    if num_classes < 0:
        raise NotImplementedError(
            "one_hot without num_classes has a shape that depends on values: give it num_classes"
        )
    return (x[..., None] == snp.arange(num_classes)).astype(snp.int32)


def _take(x: Any, index: Any) -> Any:
    return snp.take(x.reshape(-1), index)


def _repeats(repeats: Any, *, output_size: int | None = None) -> Any:
    """Give for each of so many rows which one it repeats.

    Compiled code gives indices past the end if there are others in all.
    """
    if output_size is None:
        raise NotImplementedError(
            "repeat_interleave without output_size has a size that depends on values: give it "
            "output_size"
        )
    ends, n = snp.cumsum(repeats), repeats.shape[0]
    same = snp.sum(repeats) == output_size
    if not isinstance(same, Tracer) and not same:
        raise ValueError(
            f"repeat_interleave: the repeats add up to {int(snp.sum(repeats))}, and output_size is "
            f"{output_size}"
        )
    return snp.where(same, snp.searchsorted(ends, snp.arange(output_size), side="right"), n)


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    places = x.reshape(-1).at[index.reshape(-1)]
    values = source.reshape(-1)
    return (places.add(values) if accumulate else places.set(values)).reshape(x.shape)


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
    "aten.diagonal_scatter.default": _diagonal_scatter,
    "aten.embedding.default": _embedding,
    "aten.embedding_renorm.default": _renormalize,
    "aten.gather.default": _gather,
    "aten.index.Tensor": _index,
    "aten._unsafe_index.Tensor": _index,
    "aten.index_add.default": _index_add,
    "aten.index_copy.default": _index_copy,
    "aten.index_fill.int_Scalar": _index_fill,
    "aten.index_fill.int_Tensor": _index_fill,
    "aten.index_put.default": _index_put,
    "aten._unsafe_index_put.default": _index_put,
    "aten.index_reduce.default": _index_reduced,
    "aten.index_select.default": _index_select,
    "aten.masked_fill.Scalar": lambda x, mask, value: snp.where(mask, value, x),
    "aten.masked_fill.Tensor": lambda x, mask, value: snp.where(mask, value, x),
    "aten.masked_scatter.default": _masked_place,
    "aten.one_hot.default": _one_hot,
    "aten.put.default": _put,
    "aten.repeat_interleave.Tensor": _repeats,
    "stretto.repeated.default": lambda x, dim, index: snp.take(x, index, dim, mode="fill"),
    "aten.scatter.reduce": lambda x, dim, index, src, *, reduce: _scatter(
        x, dim, index, src, _HOW[reduce]
    ),
    "aten.scatter.src": _scatter,
    "aten.scatter.value": _scatter,
    "aten.scatter.value_reduce": lambda x, dim, index, src, *, reduce: _scatter(
        x, dim, index, src, _HOW[reduce]
    ),
    "aten.scatter_add.default": lambda x, dim, index, src: _scatter(x, dim, index, src, "add"),
    "aten.scatter_reduce.two": _scatter_reduced,
    "aten.select_scatter.default": _part_set,
    "aten.slice_scatter.default": _slice_scatter,
    "aten.take.default": _take,
    "aten.where.self": snp.where,
    "aten.where.Scalar": snp.where,
    "aten.where.ScalarOther": snp.where,
    "aten.where.ScalarSelf": snp.where,
}
