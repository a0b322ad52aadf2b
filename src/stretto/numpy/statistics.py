"""Means, variances and weighted means.

Next, read ``quantiles`` and ``without_nan``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, real_dtype
from stretto._engine.ops.arithmetic import conj, real
from stretto._engine.ops.broadcast import broadcast_to, canonical_axes, reshape, transpose
from stretto._engine.ops.comparison import full_like, gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.exponential import root_of_squares
from stretto._engine.runtime.eager import quiet
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import multiply, subtract, true_divide
from stretto.numpy.directly import FLOAT, host_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import mask_of_where
from stretto.numpy.quick import array_of
from stretto.numpy.reductions import keep, masked, wide_dtype
from stretto.numpy.reductions import sum as sum_

__all__ = [
    "average",
    "mean",
    "std",
    "var",
]


def _count(x: Any, axes: tuple[int, ...], where: Any, who: str) -> Any:
    """The number of elements over the axes: static, or by a mask."""
    if where is None:
        return math.prod([x.shape[d] for d in axes])
    mask = broadcast_to(mask_of_where(where, who), x.shape)
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

    Integers give the default float; types below float32 are added up in float32; NaN of none. In a
    ``dtype`` of integers or booleans, what is added up is converted first, and the mean last.

    >>> import stretto.numpy as snp
    >>> snp.mean(snp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    x = as_value(a, "mean", "a")
    refuse_out("mean", out)
    wanted = inexact_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    axes = canonical_axes(axis, x.ndim, "mean")
    inexact = inexact_dtype(wanted)
    if inexact is wanted:
        found = _mean(convert(x, wide_dtype(wanted)), axes, where, "mean")
    else:
        total = convert(sum_(x, axes, wanted, where=where), inexact)
        found = _over(total, _count(x, axes, where, "mean"))
    return keep(convert(found, wanted), x.shape, axes, keepdims)


def _variance(
    who: str,
    a: Any,
    axis: Any,
    dtype: Any,
    out: Any,
    ddof: Any,
    where: Any,
    mean: Any,
    correction: Any,
) -> tuple[Any, np.dtype, tuple[int, ...], tuple[int, ...]]:
    """The variance in a wide dtype, the dtype wanted, the shape and the axes."""
    x = as_value(a, who, "a")
    refuse_out(who, out)
    wanted = real_result(x) if dtype is None else as_dtype(dtype)
    if not is_inexact(wanted):
        raise TypeError(
            f"{who}: dtype must be a float or complex dtype, got {wanted.name}; leave it out, and "
            f"convert the result with .astype({wanted.name!r})"
        )
    if correction is not None:
        if isinstance(ddof, Value) or ddof:
            raise ValueError(f"{who}: give ddof= or correction=, which mean the same, not both")
        ddof = correction
    axes = canonical_axes(axis, x.ndim, who)
    x = convert(x, wide_dtype(inexact_dtype(x.dtype)))
    if where is not None:
        x = masked(who, x, where, 0)  # not read, nor squared
    if mean is None:
        centre = keep(_mean(x, axes, where, who), x.shape, axes, True)
    else:
        centre = convert(as_value(mean, who, "mean"), x.dtype)
    squares = _squares(x, centre)
    count = _count(x, axes, where, who)
    total = sum_(squares, axes, where=where)
    if isinstance(count, int) and not isinstance(ddof, Tracer):
        spread = _over(total, count - ddof) if count > ddof else full_like(total, math.nan)
    else:
        enough = gt(count, ddof)
        freedom = choose(enough, count - ddof, 1)
        spread = choose(enough, _over(total, freedom), math.nan)
    return spread, wanted, x.shape, axes


def _squares(x: Any, centre: Any) -> Any:
    """The squared distance of each element from the centre; at rest in one piece of memory."""
    host, middle = host_of(x, FLOAT), host_of(centre, FLOAT)
    if host is not None and middle is not None:
        away = np.asarray(quiet.run(np.subtract, host, middle))
        quiet.run(np.square, away, away)
        return array_of(away, x.dtype)
    away = subtract(x, centre)
    return real(away * conj(away)) if is_complex(x.dtype) else multiply(away, away)


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
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The mean squared distance from the mean over ``axis``; of n elements, over ``n - ddof``.

    NaN where ``n <= ddof``, which may be traced. ``mean`` is the mean, with the axes kept, where it
    is known already. ``correction`` is the array API's name for ``ddof``. Raises ``TypeError`` for
    a ``dtype`` that is no float or complex one.

    >>> import stretto.numpy as snp
    >>> snp.var(snp.array([1.0, 2.0, 3.0]), ddof=1)
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance(
        "var", a, axis, dtype, out, ddof, where, mean, correction
    )
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
    mean: Any = None,
    correction: Any = None,
) -> Any:
    """The square root of the variance; arguments as for ``var``. Its derivative at 0 is 0.

    >>> import stretto.numpy as snp
    >>> snp.std(snp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance(
        "std", a, axis, dtype, out, ddof, where, mean, correction
    )
    return keep(convert(root_of_squares(spread), wanted), shape, axes, keepdims)


def average(
    a: Any, axis: Any = None, weights: Any = None, returned: bool = False, keepdims: bool = False
) -> Any:
    """The mean over ``axis``, each element by its weight; with the weights' sum if ``returned``.

    Weights have the shape of ``a``, or that of the axes which are averaged over, in their order.

    >>> import stretto.numpy as snp
    >>> snp.average(snp.array([1.0, 2.0]), weights=snp.array([1.0, 3.0]))
    Array(1.75, dtype=float32)
    """
    x = as_value(a, "average", "a")
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        count = _count(x, canonical_axes(axis, x.ndim, "average"), None, "average")
        return (out, full_like(out, count)) if returned else out
    w = along_axes("average", weights, x, axis)
    x, w = promote_values("average", x, w, inexact=True)
    total = sum_(w, axis, keepdims=keepdims)
    out = sum_(x * w, axis, keepdims=keepdims) / total
    return (out, total) if returned else out


def along_axes(who: str, weights: Any, x: Any, axis: Any) -> Any:
    """Weights of the shape of ``x``, or of its axes here, so that they broadcast with it."""
    w = as_value(weights, who, "weights")
    if w.shape == x.shape:
        return w
    axes = canonical_axes(axis, x.ndim, who)
    if w.shape != tuple(x.shape[d] for d in axes):
        raise ValueError(
            f"{who}: weights must have the shape of a, {x.type}, or be one for each place along "
            f"axis {axis}; got {w.type}"
        )
    w = transpose(w, sorted(range(len(axes)), key=axes.__getitem__))
    return reshape(w, tuple(n if d in axes else 1 for d, n in enumerate(x.shape)))
