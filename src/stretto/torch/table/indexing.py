"""Elements by index: gathers, scatters, lookups, masks."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import custom_jvp, lax
from stretto.nn import functional as F
from stretto.torch.slopes import power_norm, written

__all__ = ["TABLE"]


def _index(x: Any, indices: Sequence[Any]) -> Any:
    return x[tuple([slice(None) if i is None else i for i in indices])]


def _index_put(x: Any, indices: Sequence[Any], values: Any, accumulate: bool = False) -> Any:
    places = x.at[tuple([slice(None) if i is None else i for i in indices])]
    return places.add(values) if accumulate else places.set(values)


def _masked_place(x: Any, mask: Any, source: Any) -> Any:
    """The elements of ``source``, in order, where the mask is True."""
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
    return snp.asarray(values[_grid(values, dim, places)]).reshape(index.shape)


def _grid(x: Any, dim: int, index: Any) -> tuple[Any, ...]:
    """For each element of ``index`` its own place, with the element along an axis."""
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
    """An index of slices along an axis as one of elements."""
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
    return snp.take(x, index.reshape(-1), dim)


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
    """The table with its rows that are looked up shortened to a norm of at most ``max_norm``.

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


def _put(x: Any, index: Any, source: Any, accumulate: bool = False) -> Any:
    places = x.reshape(-1).at[index.reshape(-1)]
    values = source.reshape(-1)
    return (places.add(values) if accumulate else places.set(values)).reshape(x.shape)


TABLE: dict[str, Callable[..., Any]] = {
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
