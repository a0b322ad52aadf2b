"""Reductions and running totals that pass over NaN.

Next, read ``covariance``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.reducing.reduce import greatest_below, least_above
from stretto._engine.runtime.eager import quiet
from stretto.numpy.directly import COMPLEX, FLOAT, host_of
from stretto.numpy.logic import isnan, mask_of_where
from stretto.numpy.quick import array_of
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import argmax, argmin, cumprod, cumsum, masked, prod
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import min as min_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import mean, std, var

__all__ = [
    "nanargmax",
    "nanargmin",
    "nancumprod",
    "nancumsum",
    "nanmax",
    "nanmean",
    "nanmin",
    "nanprod",
    "nanstd",
    "nansum",
    "nanvar",
]


def _numbers(a: Any, who: str) -> tuple[Any, Any]:
    """The array and where it is a number; ``None`` where it always is."""
    x = as_value(a, who, "a")
    host = host_of(x, FLOAT + COMPLEX)
    if host is not None and not np.isnan(host).any():
        return x, None
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
    """``prod`` without the elements that are NaN.

    >>> import stretto.numpy as snp
    >>> snp.nanprod(snp.array([2.0, snp.nan]))
    Array(2., dtype=float32)
    """
    x, numbers = _numbers(a, "nanprod")
    x = x if numbers is None else masked("nanprod", x, numbers, 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


def _both(numbers: Any, where: Any, who: str) -> Any:
    if numbers is None or where is None:
        return where if numbers is None else numbers
    return numbers & mask_of_where(where, who)


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
    return mean(x, axis, dtype, out, keepdims, where=_both(numbers, where, "nanmean"))


def nanvar(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """``var`` without the elements that are NaN.

    >>> import stretto.numpy as snp
    >>> snp.nanvar(snp.array([1.0, snp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    x, numbers = _numbers(a, "nanvar")
    clean = x if numbers is None else masked("nanvar", x, numbers, 0)
    return var(
        clean,
        axis,
        dtype,
        out,
        ddof,
        keepdims,
        where=_both(numbers, where, "nanvar"),
        mean=mean,
        correction=correction,
    )


def nanstd(
    a: Any, axis: Any = None, dtype: Any = None, out: None = None, ddof: Any = 0,
    keepdims: bool = False, where: Any = None, mean: Any = None, correction: Any = None,
) -> Any:  # fmt: skip
    """``std`` without the elements that are NaN.

    >>> import stretto.numpy as snp
    >>> snp.nanstd(snp.array([1.0, snp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    x, numbers = _numbers(a, "nanstd")
    clean = x if numbers is None else masked("nanstd", x, numbers, 0)
    return std(
        clean,
        axis,
        dtype,
        out,
        ddof,
        keepdims,
        where=_both(numbers, where, "nanstd"),
        mean=mean,
        correction=correction,
    )


def _nan_extremum(
    who: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    extremum, worst = (max_, greatest_below) if who == "nanmax" else (min_, least_above)
    host = host_of(a, FLOAT)
    if host is not None and host.size and out is initial is where is None:
        # NumPy's fmax and fmin take the other one where one is NaN
        find: Any = np.fmax if who == "nanmax" else np.fmin
        axes = canonical_axes(axis, host.ndim, who)
        return array_of(quiet.run(find.reduce, host, axes, None, None, bool(keepdims)), host.dtype)
    x, numbers = _numbers(a, who)
    if numbers is None:
        return extremum(x, axis, out, keepdims, initial, where)
    x = masked(who, x, numbers, worst(x.dtype))
    found = extremum(x, axis, out, keepdims, initial, where)
    if initial is not None:
        return found
    some = any_(numbers, axis, keepdims=keepdims, where=where)
    return choose(some, found, full_like(found, math.nan))


def nanmax(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Any:  # fmt: skip
    """``max`` without the elements that are NaN; NaN where there is no other.

    >>> import stretto.numpy as snp
    >>> snp.nanmax(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmax", a, axis, out, keepdims, initial, where)


def nanmin(
    a: Any, axis: Any = None, out: None = None, keepdims: bool = False, initial: Any = None,
    where: Any = None,
) -> Any:  # fmt: skip
    """``min`` without the elements that are NaN; NaN where there is no other.

    >>> import stretto.numpy as snp
    >>> snp.nanmin(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", a, axis, out, keepdims, initial, where)


def _nan_arg_extremum(who: str, a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    x, numbers = _numbers(a, who)
    find, worst = (argmax, greatest_below) if who == "nanargmax" else (argmin, least_above)
    if numbers is None:
        return find(x, axis, out, keepdims)
    at = find(masked(who, x, numbers, worst(x.dtype)), axis, out, keepdims)
    return choose(all_(~numbers, axis, keepdims=keepdims), full_like(at, -1), at)


def nanargmax(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
    """``argmax`` of the elements that are not NaN; -1 where there is none.

    >>> import stretto.numpy as snp
    >>> snp.nanargmax(snp.array([snp.nan, 1.0, 3.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg_extremum("nanargmax", a, axis, out, keepdims)


def nanargmin(a: Any, axis: int | None = None, out: None = None, keepdims: bool = False) -> Any:
    """``argmin`` of the elements that are not NaN; -1 where there is none.

    >>> import stretto.numpy as snp
    >>> snp.nanargmin(snp.array([snp.nan, 1.0, 3.0]))
    Array(1, dtype=int32)
    """
    return _nan_arg_extremum("nanargmin", a, axis, out, keepdims)


def nancumsum(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """``cumsum`` with zero in the place of NaN.

    >>> import stretto.numpy as snp
    >>> snp.nancumsum(snp.array([1.0, snp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    x, numbers = _numbers(a, "nancumsum")
    return cumsum(x if numbers is None else masked("nancumsum", x, numbers, 0), axis, dtype, out)


def nancumprod(a: Any, axis: int | None = None, dtype: Any = None, out: None = None) -> Any:
    """``cumprod`` with one in the place of NaN.

    >>> import stretto.numpy as snp
    >>> snp.nancumprod(snp.array([2.0, snp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    x, numbers = _numbers(a, "nancumprod")
    return cumprod(x if numbers is None else masked("nancumprod", x, numbers, 1), axis, dtype, out)
