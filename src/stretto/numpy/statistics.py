"""Means, variances, quantiles, and reductions that pass over NaN.

Layer 7 (numpy). Next, read ``manipulation``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto.core.interpreter import as_value
from stretto.core.types import inexact_dtype, is_complex, is_inexact, real_dtype
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import multiply, subtract, true_divide
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import isnan, truth
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import argmax, argmin, keep, masked, prod, wide_dtype
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import min as min_
from stretto.numpy.reductions import sum as sum_
from stretto.ops.along_axis import take_along_axis
from stretto.ops.arithmetic import ceil, conj, floor, real, round_
from stretto.ops.broadcast import broadcast_to, canonical_axes, canonical_axis, reshape, transpose
from stretto.ops.comparison import full_like, gt
from stretto.ops.comparison import where as choose
from stretto.ops.convert import convert
from stretto.ops.elementwise import promote_values
from stretto.ops.exponential import sqrt
from stretto.ops.reduce import greatest_below, least_above
from stretto.ops.sort import sort

__all__ = [
    "average",
    "mean",
    "median",
    "nanargmax",
    "nanargmin",
    "nanmax",
    "nanmean",
    "nanmedian",
    "nanmin",
    "nanprod",
    "nanquantile",
    "nanstd",
    "nansum",
    "nanvar",
    "percentile",
    "quantile",
    "std",
    "var",
]


def _count(x: Any, axes: tuple[int, ...], where: Any, who: str) -> Any:
    """The number of elements over the axes: static, or by a mask."""
    if where is None:
        return math.prod([x.shape[d] for d in axes])
    mask = broadcast_to(truth(where, who, "where"), x.shape)
    return sum_(mask, axes)


def _over(total: Any, count: Any) -> Any:
    """The total over the count, which may be zero."""
    if isinstance(count, (int, float)):
        return true_divide(total, count)
    return true_divide(total, convert(count, total.dtype))


def _mean(x: Any, axes: tuple[int, ...], where: Any, who: str) -> Any:
    return _over(sum_(x, axes, where=where), _count(x, axes, where, who))


def mean(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: Any = None,
) -> Any:
    """The mean over ``axis``, one or several, all by default; of those elements ``where`` holds.

    Integers give the default float; types below float32 are added up in float32; NaN of none.

    >>> import stretto.numpy as snp
    >>> snp.mean(snp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    x = as_value(a, "mean", "a")
    refuse_out("mean", out)
    wanted = inexact_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    axes = canonical_axes(axis, x.ndim, "mean")
    x = convert(x, wide_dtype(inexact_dtype(wanted)))
    return keep(convert(_mean(x, axes, where, "mean"), wanted), x.shape, axes, keepdims)


def _variance(
    who: str, a: Any, axis: Any, dtype: Any, out: Any, ddof: Any, where: Any, correction: Any
) -> tuple[Any, np.dtype, tuple[int, ...], tuple[int, ...]]:
    """The variance in a wide dtype, the dtype wanted, the shape and the axes."""
    x = as_value(a, who, "a")
    refuse_out(who, out)
    if correction is not None:
        if ddof:
            raise ValueError(f"{who}: give ddof= or correction=, which mean the same, not both")
        ddof = correction
    axes = canonical_axes(axis, x.ndim, who)
    x = convert(x, wide_dtype(inexact_dtype(x.dtype)))
    centre = keep(_mean(x, axes, where, who), x.shape, axes, True)
    away = subtract(x, centre)
    squares = real(away * conj(away)) if is_complex(x.dtype) else multiply(away, away)
    count = _count(x, axes, where, who)
    total = sum_(squares, axes, where=where)
    if isinstance(count, int):
        spread = _over(total, count - ddof) if count > ddof else full_like(total, math.nan)
    else:
        enough = gt(count, ddof)
        freedom = choose(enough, count - ddof, 1)
        spread = choose(enough, _over(total, freedom), math.nan)
    if dtype is not None:
        return spread, as_dtype(dtype), x.shape, axes
    return spread, real_result(a), x.shape, axes


def real_result(a: Any) -> np.dtype:
    """The dtype of a variance: the real float of the argument."""
    return real_dtype(inexact_dtype(as_value(a).dtype))


def var(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Any:
    """The mean squared distance from the mean over ``axis``; of n elements, over ``n - ddof``.

    NaN where ``n <= ddof``. ``correction`` is the array API's name for ``ddof``.

    >>> import stretto.numpy as snp
    >>> snp.var(snp.array([1.0, 2.0, 3.0]), ddof=1)
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance("var", a, axis, dtype, out, ddof, where, correction)
    return keep(convert(spread, wanted), shape, axes, keepdims)


def std(
    a: Any,
    axis: Any = None,
    dtype: Any = None,
    out: None = None,
    ddof: Any = 0,
    keepdims: bool = False,
    *,
    where: Any = None,
    correction: Any = None,
) -> Any:
    """The square root of the variance; arguments as for ``var``.

    >>> import stretto.numpy as snp
    >>> snp.std(snp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance("std", a, axis, dtype, out, ddof, where, correction)
    return keep(convert(sqrt(spread), wanted), shape, axes, keepdims)


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over ``axis``, each element by its weight; with the weights' sum if ``returned``.

    Weights have the shape of ``a``, or are one for each place along the one ``axis``.

    >>> import stretto.numpy as snp
    >>> snp.average(snp.array([1.0, 2.0]), weights=snp.array([1.0, 3.0]))
    Array(1.75, dtype=float32)
    """
    x = as_value(a, "average", "a")
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        count = _count(x, canonical_axes(axis, x.ndim, "average"), None, "average")
        return (out, full_like(out, count)) if returned else out
    w = as_value(weights, "average", "weights")
    if w.shape != x.shape:
        one = None if axis is None else canonical_axis(axis, x.ndim, "average")
        if one is None or w.shape != (x.shape[one],):
            raise ValueError(
                f"average: weights must have the shape of a, {x.type}, or be one for each place "
                f"along axis {axis}; got {w.type}"
            )
        w = reshape(w, tuple(n if d == one else 1 for d, n in enumerate(x.shape)))
    x, w = promote_values("average", x, w, inexact=True)
    total = sum_(w, axis, keepdims=keepdims)
    out = sum_(x * w, axis, keepdims=keepdims) / total
    return (out, total) if returned else out


# Quantiles


def _lines(x: Any, axis: Any, who: str) -> tuple[Any, tuple[int, ...]]:
    """The array with the axes joined into a last one, and the axes."""
    axes = canonical_axes(axis, x.ndim, who)
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = (*(x.shape[d] for d in kept), math.prod([x.shape[d] for d in axes]))
    return reshape(transpose(x, (*kept, *axes)), shape), axes


_METHODS = ("linear", "lower", "higher", "midpoint", "nearest")


def _quantile(
    who: str, a: Any, q: Any, axis: Any, out: Any, method: str, keepdims: bool, skip_nan: bool
) -> Any:
    x, q = as_value(a, who, "a"), as_value(q, who, "q")
    refuse_out(who, out)
    if method not in _METHODS:
        raise ValueError(f"{who}: method must be one of {', '.join(_METHODS)}; got {method!r}")
    if q.ndim > 1 or is_complex(x.dtype):
        raise ValueError(
            f"{who}: expected real numbers and q of rank 0 or 1, got {x.type}, {q.type}"
        )
    shape, wanted = x.shape, inexact_dtype(x.dtype)
    lines, axes = _lines(convert(x, wide_dtype(wanted)), axis, who)
    size = lines.shape[-1]
    if not size:
        raise ValueError(f"{who}: there is no quantile of no elements, {x.type} over axis {axis}")
    missing = isnan(lines)
    lines = sort(lines, -1)  # NaN goes last
    fraction = reshape(convert(q, lines.dtype), (1,) * (lines.ndim - 1) + (q.size,))
    if skip_nan:
        present = convert(sum_(~missing, -1, keepdims=True), lines.dtype)
        place = fraction * choose(gt(present, 0), present - 1, 0)
    else:
        place = fraction * (size - 1)
    low, high = floor(place), ceil(place)
    if method == "nearest":
        low = high = round_(place)
    elif method == "lower":
        high = low
    elif method == "higher":
        low = high
    index = np.dtype(np.int32)
    low_value, high_value = (
        take_along_axis(lines, convert(at, index), -1, mode="clip") for at in (low, high)
    )
    part = full_like(place, 0.5) if method == "midpoint" else place - low
    result = choose(place == low, low_value, low_value * (1 - part) + high_value * part)
    if not skip_nan:
        result = choose(any_(missing, -1, keepdims=True), math.nan, result)
    result = convert(result, wanted)  # the axis of q is last
    rank = result.ndim
    result = transpose(result, (rank - 1, *range(rank - 1)))
    if keepdims:
        kept = tuple(1 if d in axes else n for d, n in enumerate(shape))
        result = reshape(result, (q.size, *kept))
    return reshape(result, q.shape + result.shape[1:])


def quantile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """The value below which the fraction ``q`` of the elements over ``axis`` lies.

    Between two elements ``method`` decides: ``linear``, ``lower``, ``higher``, ``midpoint``,
    ``nearest``. Of several ``q`` the results lie along a first axis. NaN where there is one.

    >>> import stretto.numpy as snp
    >>> snp.quantile(snp.array([1.0, 2.0, 4.0]), snp.array([0.25, 0.5]))
    Array([1.5, 2. ], dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return _quantile("quantile", a, q, axis, out, method, keepdims, False)


def percentile(
    a: Any,
    q: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
) -> Any:
    """``quantile`` with ``q`` in percent.

    >>> import stretto.numpy as snp
    >>> snp.percentile(snp.array([1.0, 2.0, 4.0]), 50)
    Array(2., dtype=float32)
    """
    del overwrite_input
    return _quantile("percentile", a, as_value(q) / 100, axis, out, method, keepdims, False)


def median(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """The middle value over ``axis``; of an even number of elements, the mean of the middle two.

    >>> import stretto.numpy as snp
    >>> snp.median(snp.array([5, 1, 2, 4]))
    Array(3., dtype=float32)
    """
    del overwrite_input
    return _quantile("median", a, 0.5, axis, out, "linear", keepdims, False)


# Without NaN


def _numbers(a: Any, who: str) -> tuple[Any, Any]:
    """The array and where it is a number; ``None`` where it always is."""
    x = as_value(a, who, "a")
    return x, (~isnan(x) if is_inexact(x.dtype) else None)


def nansum(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
           initial: Any = None, where: Any = None) -> Any:  # fmt: skip
    """``sum`` without the elements that are NaN.

    >>> import stretto.numpy as snp
    >>> snp.nansum(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    x, numbers = _numbers(a, "nansum")
    x = x if numbers is None else masked("nansum", x, numbers, 0)
    return sum_(x, axis, dtype, out, keepdims, initial, where)


def nanprod(a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
            initial: Any = None, where: Any = None) -> Any:  # fmt: skip
    """``prod`` without the elements that are NaN."""
    x, numbers = _numbers(a, "nanprod")
    x = x if numbers is None else masked("nanprod", x, numbers, 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


def _both(numbers: Any, where: Any) -> Any:
    if numbers is None or where is None:
        return where if numbers is None else numbers
    return numbers & truth(where, "where")


def nanmean(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, keepdims: bool = False,
    where: Any = None,
) -> Any:  # fmt: skip
    """``mean`` without the elements that are NaN; NaN where there is no other.

    >>> import stretto.numpy as snp
    >>> snp.nanmean(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    x, numbers = _numbers(a, "nanmean")
    return mean(x, axis, dtype, out, keepdims, where=_both(numbers, where))


def nanvar(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
           keepdims: bool = False, where: Any = None) -> Any:  # fmt: skip
    """``var`` without the elements that are NaN."""
    x, numbers = _numbers(a, "nanvar")
    clean = x if numbers is None else masked("nanvar", x, numbers, 0)
    return var(clean, axis, dtype, out, ddof, keepdims, where=_both(numbers, where))


def nanstd(a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
           keepdims: bool = False, where: Any = None) -> Any:  # fmt: skip
    """``std`` without the elements that are NaN."""
    x, numbers = _numbers(a, "nanstd")
    clean = x if numbers is None else masked("nanstd", x, numbers, 0)
    return std(clean, axis, dtype, out, ddof, keepdims, where=_both(numbers, where))


def _nan_extremum(who: str, a: Any, axis: Any, keepdims: bool, out: Any) -> Any:
    x, numbers = _numbers(a, who)
    extremum, worst = (max_, greatest_below) if who == "nanmax" else (min_, least_above)
    if numbers is None:
        return extremum(x, axis, out, keepdims)
    found = extremum(masked(who, x, numbers, worst(x.dtype)), axis, out, keepdims)
    return choose(any_(numbers, axis, keepdims=keepdims), found, full_like(found, math.nan))


def nanmax(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """``max`` without the elements that are NaN; NaN where there is no other.

    >>> import stretto.numpy as snp
    >>> snp.nanmax(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmax", a, axis, keepdims, out)


def nanmin(a: Any, axis: Any = None, out: None = None, keepdims: bool = False) -> Any:
    """``min`` without the elements that are NaN; NaN where there is no other."""
    return _nan_extremum("nanmin", a, axis, keepdims, out)


def _nan_arg_extremum(who: str, a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    x, numbers = _numbers(a, who)
    find, worst = (argmax, greatest_below) if who == "nanargmax" else (argmin, least_above)
    if numbers is None:
        return find(x, axis, out, keepdims)
    at = find(masked(who, x, numbers, worst(x.dtype)), axis, out, keepdims)
    return choose(all_(~numbers, axis, keepdims=keepdims), full_like(at, -1), at)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
    """``argmax`` of the elements that are not NaN; -1 where there is none."""
    return _nan_arg_extremum("nanargmax", a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
    """``argmin`` of the elements that are not NaN; -1 where there is none."""
    return _nan_arg_extremum("nanargmin", a, axis, out, keepdims)


def nanmedian(
    a: Any,
    axis: Any = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Any:
    """``median`` without the elements that are NaN.

    >>> import stretto.numpy as snp
    >>> snp.nanmedian(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    del overwrite_input
    return _quantile("nanmedian", a, 0.5, axis, out, "linear", keepdims, True)


def nanquantile(a: Any, q: Any, axis: Any = None, out: None = None, overwrite_input: bool = False,
                method: str = "linear", keepdims: bool = False) -> Any:  # fmt: skip
    """``quantile`` without the elements that are NaN."""
    del overwrite_input
    return _quantile("nanquantile", a, q, axis, out, method, keepdims, True)
