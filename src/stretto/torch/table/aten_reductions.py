"""Sums and other reductions, sorting; products of matrices, convolutions, attention."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto import lax
from stretto._engine.core.interpreter import Tracer
from stretto.nn import functional as F
from stretto.random.streams import next_key
from stretto.scipy.special import logsumexp
from stretto.torch.slopes import every_greatest, power_norm, root, running_log_of_sum, shared

_Dims = int | Sequence[int] | None


def _axes(dim: _Dims) -> Any:
    """Return the axes in NumPy's form: no axes at all are all of them."""
    if dim is None or isinstance(dim, int):
        return dim
    return tuple(dim) or None


def _over(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a reduction of PyTorch's form, over axes and with a dtype to compute in."""

    def reduced(x: Any, dim: _Dims = None, keepdim: bool = False, *, dtype: Any = None) -> Any:
        x = x if dtype is None else x.astype(dtype)
        return function(x, axis=_axes(dim) if x.ndim else None, keepdims=keepdim and x.ndim > 0)

    return reduced


def _variance(
    x: Any, dim: _Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> Any:
    correction = 1 if correction is None else correction
    axis = _axes(dim) if x.ndim else None
    if _count_along(x, axis) > correction:
        return snp.var(x, axis, correction=correction, keepdims=keepdim)
    mean = lax.stop_gradient(snp.mean(x, axis, keepdims=True))
    squares = snp.square(snp.abs(x - mean))
    return snp.sum(squares, axis, keepdims=keepdim) / 0  # NaN or infinite, as is the slope


def _count_along(x: Any, axis: Any) -> int:
    axes = range(x.ndim) if axis is None else [axis] if isinstance(axis, int) else axis
    return math.prod([x.shape[k] for k in axes])


def _unbiased(x: Any, dim: _Dims = None, unbiased: bool = True, keepdim: bool = False) -> Any:
    return _variance(x, dim, correction=int(unbiased), keepdim=keepdim)


def _variance_and_mean(
    x: Any, dim: _Dims = None, *, correction: float | None = None, keepdim: bool = False
) -> tuple[Any, Any]:
    mean = snp.mean(x, _axes(dim) if x.ndim else None, keepdims=keepdim)
    return _variance(x, dim, correction=correction, keepdim=keepdim), mean


def _deviation_and_mean(x: Any, dim: _Dims = None, **how: Any) -> tuple[Any, Any]:
    variance, mean = _variance_and_mean(x, dim, **how)
    return root(variance), mean


def _place(function: Callable[..., Any]) -> Callable[..., Any]:
    def reduced(x: Any, dim: int | None = None, keepdim: bool = False) -> Any:
        if not x.ndim:
            return snp.zeros((), snp.int32)
        return function(x, axis=dim, keepdims=keepdim)

    return reduced


def _extreme(values: Callable[..., Any], places: Callable[..., Any]) -> Callable[..., Any]:
    """Return the extreme elements along an axis, and where they are."""

    def reduced(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, Any]:
        if not x.ndim:
            return x, snp.zeros((), snp.int32)
        place = places(x, axis=dim, keepdims=True)
        value = snp.take_along_axis(x, place, dim)
        return (value, place) if keepdim else (snp.squeeze(value, dim), snp.squeeze(place, dim))

    return reduced


def _norm(
    x: Any, ord: float = 2, dim: _Dims = None, keepdim: bool = False, *, dtype: Any = None
) -> Any:
    x = x if dtype is None else x.astype(dtype)
    size, axis = snp.abs(x), _axes(dim) if x.ndim else None
    over = {"axis": axis, "keepdims": keepdim and x.ndim > 0}
    if ord == 0:
        return snp.sum(size != 0, **over)
    if ord == math.inf:
        return snp.max(size, **over)
    if ord == -math.inf:
        return snp.min(size, **over)
    if ord == 1:
        return snp.sum(size, **over)
    if ord == 2:
        return root(snp.sum(size * size, **over))
    return power_norm(size, ord, **over)


def _two(p: float | None) -> float:
    return 2 if p is None else p


def _running(function: Callable[..., Any]) -> Callable[..., Any]:
    def along(x: Any, dim: int, *, dtype: Any = None) -> Any:
        x = x if dtype is None else x.astype(dtype)
        return function(x, axis=dim) if x.ndim else x

    return along


def _running_extreme(function: Callable[..., Any]) -> Callable[..., Any]:
    """Return the extreme so far, and the last place at which it was met, whose slope it has."""

    def along(x: Any, dim: int) -> tuple[Any, Any]:
        if not x.ndim:
            return x, snp.zeros((), snp.int32)
        axis = dim % x.ndim
        values = function(lax.stop_gradient(x), axis=axis)
        met = (x == values) | (snp.isnan(x) if x.dtype.kind == "f" else False)
        shape = [-1 if k == axis else 1 for k in range(x.ndim)]
        places = snp.arange(x.shape[axis]).reshape(shape)
        last = lax.cummax(snp.where(met, places, 0), axis=axis)
        return snp.take_along_axis(x, last, axis), last

    return along


def _sorted(
    x: Any, dim: int = -1, descending: bool = False, *, stable: bool | None = None
) -> tuple[Any, Any]:
    if not x.ndim:
        return x, snp.zeros((), snp.int32)
    order = snp.argsort(x, dim, descending=descending)
    return snp.take_along_axis(x, order, dim), order


def _sorted_stably(
    x: Any, *, stable: bool | None = None, dim: int = -1, descending: bool = False
) -> tuple[Any, Any]:
    return _sorted(x, dim, descending)


def _top(
    x: Any, k: int, dim: int = -1, largest: bool = True, sorted: bool = True
) -> tuple[Any, Any]:
    if largest and x.ndim:
        return lax.top_k(x, k, axis=dim)
    values, order = _sorted(x, dim)
    if not x.ndim:
        return values, order
    return lax.slice_in_dim(values, 0, k, axis=dim), lax.slice_in_dim(order, 0, k, axis=dim)


def _kth(x: Any, k: int, dim: int = -1, keepdim: bool = False) -> tuple[Any, ...]:
    values, order = _sorted(x, dim)
    if not x.ndim:
        return values, order
    parts = [lax.slice_in_dim(part, k - 1, k, axis=dim) for part in (values, order)]
    return tuple(parts if keepdim else [snp.squeeze(part, dim) for part in parts])


def _median_along(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, ...]:
    """Return the lower of the two in the middle; NaN if there is one."""
    if not x.ndim:
        return x, snp.zeros((), snp.int32)
    values, places = _kth(x, (x.shape[dim] + 1) // 2, dim, True)
    if x.dtype.kind == "f":
        missing = snp.isnan(x)
        first = snp.argmax(missing, axis=dim, keepdims=True)
        any_ = snp.any(missing, axis=dim, keepdims=True)
        values = snp.where(any_, snp.nan, values)
        places = snp.where(any_, first, places)
    parts = values, places
    return parts if keepdim else tuple([snp.squeeze(part, dim) for part in parts])


def _median_of_numbers(x: Any, dim: int, keepdim: bool = False) -> tuple[Any, ...]:
    """Return the lower of the two in the middle of what is not NaN; of all where all is."""
    if not x.ndim:
        return x, snp.zeros((), snp.int32)
    values, order = _sorted(x, dim)
    count = snp.sum(~snp.isnan(x), dim, keepdims=True)
    middle = (snp.where(count == 0, x.shape[dim], count) - 1) // 2
    parts = [snp.take_along_axis(part, middle, dim) for part in (values, order)]
    return tuple(parts if keepdim else [snp.squeeze(part, dim) for part in parts])


def _mode(x: Any, dim: int = -1, keepdim: bool = False) -> tuple[Any, ...]:
    """Return the least of the most frequent elements, and the last place at which it is."""
    if not x.ndim:
        return x, snp.zeros((), snp.int32)
    axis = dim % x.ndim
    values, order = _sorted(x, axis)
    before = lax.slice_in_dim(values, 0, x.shape[axis] - 1, axis=axis)
    after = lax.slice_in_dim(values, 1, None, axis=axis)
    first = lax.slice_in_dim(values, 0, 1, axis=axis)
    new = snp.concatenate([snp.ones(first.shape, bool), before != after], axis)
    places = snp.arange(x.shape[axis]).reshape([-1 if k == axis else 1 for k in range(x.ndim)])
    run = places - lax.cummax(snp.where(new, places, 0), axis=axis)
    end = snp.argmax(run, axis, keepdims=True)
    parts = [snp.take_along_axis(part, end, axis) for part in (values, order)]
    return tuple(parts if keepdim else [snp.squeeze(part, axis) for part in parts])


def _count(x: Any, dim: _Dims = None) -> Any:
    return snp.sum(x != 0, _axes(dim) if x.ndim else None)


def _counts(x: Any, weights: Any = None, minlength: int = 0) -> Any:
    """Return how often each number below ``minlength`` occurs, or the sums of the weights.

    Raises:
        ValueError: an element is greater, where that is known.
    """
    if not minlength:
        raise NotImplementedError(
            "bincount without minlength has a shape that depends on values: give it minlength"
        )
    greater = snp.any(x >= minlength)
    if not isinstance(greater, Tracer) and greater:
        raise ValueError(
            f"bincount: an element is not below minlength, {minlength}, which is the number of "
            f"counts of an imported module: give a greater one"
        )
    counts = snp.bincount(x, weights, length=minlength)
    lost = -1 if weights is None else snp.nan
    return snp.where(greater, lost, counts)


def _histogram(x: Any, bins: int = 100, min: float = 0, max: float = 0) -> Any:
    """Return counts of equal bins; with both bounds 0, from the least to the greatest element."""
    low, high = (snp.min(x), snp.max(x)) if min == max == 0 else (min, max)
    same = snp.equal(low, high)
    low, high = snp.where(same, low - 1, low), snp.where(same, high + 1, high)
    place = snp.floor((x - low) * bins / (high - low)).astype(snp.int32)
    place = snp.where(x == high, bins - 1, place)
    inside = (x >= low) & (x <= high)
    counts = snp.zeros(bins, snp.int32).at[snp.where(inside, place, 0)]
    return counts.add(inside.astype(snp.int32))


def _bucketize(x: Any, boundaries: Any, *, out_int32: bool = False, right: bool = False) -> Any:
    return snp.searchsorted(boundaries, x, side="right" if right else "left")


def _searchsorted(
    sequence: Any,
    x: Any,
    *,
    out_int32: bool = False,
    right: bool = False,
    side: str | None = None,
    sorter: Any = None,
) -> Any:
    if sorter is not None:
        sequence = snp.take_along_axis(sequence, sorter, -1)
    side = side or ("right" if right else "left")
    if sequence.ndim == 1:
        return snp.searchsorted(sequence, x, side=side)
    below = snp.less_equal if side == "right" else snp.less
    return snp.sum(below(sequence[..., None, :], x[..., None]), -1)


def _families(names: str, function: Callable[..., Any]) -> dict[str, Callable[..., Any]]:
    return {f"aten.{name}": function for name in names.split()}


_CONVOLUTIONS = (F.conv1d, F.conv2d, F.conv3d)
_TRANSPOSED = (F.conv_transpose1d, F.conv_transpose2d, F.conv_transpose3d)


def _added(x: Any, product: Any, beta: Any, alpha: Any) -> Any:
    """Return ``beta * x + alpha * product``; with a ``beta`` of 0, ``x`` does not count."""
    if snp.issubdtype(product.dtype, snp.integer):
        beta, alpha = int(beta), int(alpha)
    product = product if alpha == 1 else alpha * product
    if beta == 0:
        return product
    return (x if beta == 1 else beta * x) + product


def _sum_of_products(function: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, a, b, *, beta=1, alpha=1: _added(x, function(a, b), beta, alpha)


def _convolution(
    x: Any,
    weight: Any,
    bias: Any,
    stride: Sequence[int],
    padding: Sequence[int],
    dilation: Sequence[int],
    transposed: bool,
    output_padding: Sequence[int],
    groups: int,
) -> Any:
    """Return the operation that all of PyTorch's convolutions are made of."""
    n = weight.ndim - 2
    stride, padding, dilation, more = [
        tuple(sizes) * n if len(sizes) == 1 else tuple(sizes)
        for sizes in (stride, padding, dilation, output_padding)
    ]
    if not transposed:
        return _CONVOLUTIONS[n - 1](x, weight, bias, stride, padding, dilation, groups)
    return _TRANSPOSED[n - 1](x, weight, bias, stride, padding, more, groups, dilation)


def _attention(
    query: Any,
    key: Any,
    value: Any,
    attn_mask: Any = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    *,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Any:
    drawn = next_key("scaled_dot_product_attention") if dropout_p else None
    return F.scaled_dot_product_attention(
        query, key, value, attn_mask, dropout_p, is_causal, scale, enable_gqa, dropout_key=drawn
    )


def _cdist(x: Any, y: Any, p: float = 2.0, compute_mode: int | None = None) -> Any:
    return _distance(x[..., :, None, :] - y[..., None, :, :], p)


def _pdist(x: Any, p: float = 2.0) -> Any:
    """Return the distances of rows: of the first to all after it, of the second, and so on."""
    first, second = np.triu_indices(x.shape[0], 1)
    return _distance(x[first] - x[second], p)


def _distance(x: Any, p: float) -> Any:
    difference = snp.abs(x)
    if p == 0:
        return snp.sum(difference != 0, -1).astype(x.dtype)
    if p == float("inf"):
        return every_greatest(difference)
    return power_norm(difference, p, -1)


def _grouped(
    x: Any, weights: Any, offs: Any = None, bias: Any = None, out_dtype: Any = None
) -> Any:
    """Return the rows of each group, which end at ``offs``, by the matrix of their group."""
    if x.ndim == 3 and weights.ndim == 3:
        return x @ weights
    group = snp.sum(snp.arange(x.shape[0])[:, None] >= offs[None, :], -1)
    return _by_group(x, weights, group)


def _by_group(x: Any, weights: Any, group: Any) -> Any:
    """Return each group's product of all rows, and of it the group's own."""
    out = 0
    for k in range(weights.shape[0]):
        own = snp.where((group == k)[:, None], x, 0)
        out = out + own @ weights[k]
    return out


TABLE: dict[str, Callable[..., Any]] = {
    **_families("all.default all.dim all.dims", _over(snp.all)),
    "aten.amax.default": _over(snp.max),
    "aten.amin.default": _over(snp.min),
    **_families("any.default any.dim any.dims", _over(snp.any)),
    "aten.argmax.default": _place(snp.argmax),
    "aten.argmin.default": _place(snp.argmin),
    "aten.argsort.default": lambda x, dim=-1, descending=False: _sorted(x, dim, descending)[1],
    "aten.aminmax.default": lambda x, *, dim=None, keepdim=False: (
        _over(snp.min)(x, dim, keepdim),
        _over(snp.max)(x, dim, keepdim),
    ),
    "aten.bucketize.Tensor": _bucketize,
    "aten.bincount.default": _counts,
    **_families("count_nonzero.default count_nonzero.dim_IntList", _count),
    "aten.cummax.default": _running_extreme(lax.cummax),
    "aten.cummin.default": _running_extreme(lax.cummin),
    "aten.cumprod.default": _running(snp.cumprod),
    "aten.cumsum.default": _running(snp.cumsum),
    "aten.histc.default": _histogram,
    "aten.kthvalue.default": _kth,
    "aten.linalg_vector_norm.default": _norm,
    "aten.logcumsumexp.default": _running(running_log_of_sum),
    "aten.logsumexp.default": _over(logsumexp),
    "aten.max.default": snp.max,
    "aten.max.dim": _extreme(snp.max, snp.argmax),
    **_families("mean.default mean.dim", _over(snp.mean)),
    "aten.median.default": lambda x: shared(x, _median_along(x.reshape(-1), 0)[0]),
    "aten.median.dim": _median_along,
    "aten.min.default": snp.min,
    "aten.min.dim": _extreme(snp.min, snp.argmin),
    "aten.mode.default": _mode,
    "aten.nanmedian.default": lambda x: shared(x, _median_of_numbers(x.reshape(-1), 0)[0]),
    "aten.nanmedian.dim": _median_of_numbers,
    "aten.nansum.default": _over(snp.nansum),
    "aten.norm.ScalarOpt_dim": lambda x, p, dim, keepdim=False: _norm(x, _two(p), dim, keepdim),
    "aten.norm.Scalar": lambda x, p=2: _norm(x, _two(p)),
    "aten.dist.default": lambda x, y, p=2: _norm(x - y, p),
    "aten.isin.Tensor_Tensor": lambda x, among, *, assume_unique=False, invert=False: snp.isin(
        x, among, invert=invert
    ),
    **_families("prod.default prod.dim_int", _over(snp.prod)),
    **_families("searchsorted.Tensor searchsorted.Scalar", _searchsorted),
    "aten.sort.default": _sorted,
    "aten.sort.stable": _sorted_stably,
    "aten.std.correction": lambda x, dim=None, **how: root(_variance(x, dim, **how)),
    "aten.std.dim": lambda *args, **how: root(_unbiased(*args, **how)),
    "aten.std_mean.correction": _deviation_and_mean,
    **_families("sum.default sum.dim_IntList", _over(snp.sum)),
    "aten.topk.default": _top,
    "aten.trace.default": snp.trace,
    "aten.var.correction": _variance,
    "aten.var.dim": _unbiased,
    "aten.var_mean.correction": _variance_and_mean,
    "aten.addbmm.default": _sum_of_products(lambda a, b: snp.sum(a @ b, 0)),
    "aten.addmm.default": _sum_of_products(snp.matmul),
    "aten.addmv.default": _sum_of_products(snp.matmul),
    "aten.addr.default": _sum_of_products(snp.outer),
    "aten.baddbmm.default": _sum_of_products(snp.matmul),
    "aten.bilinear.default": F.bilinear,
    "aten.bmm.default": snp.matmul,
    "aten.cdist.default": _cdist,
    "aten._cdist_forward.default": _cdist,
    "stretto.cdist.default": _cdist,
    "aten._pdist_forward.default": _pdist,
    "aten.convolution.default": _convolution,
    **{f"aten.conv{n + 1}d.default": f for n, f in enumerate(_CONVOLUTIONS)},
    **{f"aten.conv{n + 1}d.padding": f for n, f in enumerate(_CONVOLUTIONS)},
    "aten.conv_transpose1d.default": F.conv_transpose1d,
    "aten.conv_transpose2d.input": F.conv_transpose2d,
    "aten.conv_transpose3d.input": F.conv_transpose3d,
    "aten.dot.default": snp.dot,
    "aten.einsum.default": lambda equation, operands, path=None: snp.einsum(equation, *operands),
    "aten._grouped_mm.default": _grouped,
    "aten.linear.default": F.linear,
    "aten.matmul.default": snp.matmul,
    "aten.mm.default": snp.matmul,
    "aten.mv.default": snp.matmul,
    "aten.outer.default": snp.outer,
    "aten.scaled_dot_product_attention.default": _attention,
    "aten.vdot.default": snp.vdot,
    "transformers.grouped_mm_fallback.default": _grouped,
}
