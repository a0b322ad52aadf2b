"""Reductions and running totals that leave out NaN."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axes, Axis, DTypeLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.layout import canonical_axes
from stretto._engine.ops.reducing.reduce import greatest_below, least_above
from stretto.numpy.arguments import refuse_out
from stretto.numpy.extrema import argmax, argmin, no_extremum
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import min as min_
from stretto.numpy.indexing import concrete_of
from stretto.numpy.logic import isnan, mask_of_where
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import cumprod, cumsum, masked, prod
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import mean, std, var

__all__ = ["nanargmax", "nanargmin", "nancumprod", "nancumsum", "nanmax", "nanmean",
           "nanmin", "nanprod", "nanstd", "nansum", "nanvar"]  # fmt: skip


def numbers_of(
    a: ArrayLike, caller: str, axis: Axes, out: None, where: ArrayLike | None = None
) -> tuple[Array, Array | None]:
    """Return the array, and a mask of what is not NaN; None where no element can be NaN.

    Arguments are checked here, so that messages name the caller and not an inner reduction.
    """
    x = as_value(a, caller, "a")
    refuse_out(caller, out)
    if axis is not None:
        canonical_axes(axis, x.ndim, caller)
    if where is not None:
        mask_of_where(where, caller)
    if not is_inexact(x.dtype):
        return x, None
    missing: Any = isnan(x)
    known = concrete_of(missing)
    if known is not None and not known.any():
        return x, None
    return x, ~missing


@described_like(sum_)
def nansum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Sum the elements over axes, without those that are NaN.

    Args:
        a: an array, or a number.

    As NumPy's ``nansum``.

    >>> import stretto.numpy as snp
    >>> snp.nansum(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    x, numbers = numbers_of(a, "nansum", axis, out, where)
    x = x if numbers is None else masked("nansum", x, numbers, 0)
    return sum_(x, axis, dtype, out, keepdims, initial, where)


@described_like(prod)
def nanprod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Multiply the elements over axes, without those that are NaN.

    Args:
        a: an array, or a number.

    As NumPy's ``nanprod``.

    >>> import stretto.numpy as snp
    >>> snp.nanprod(snp.array([2.0, snp.nan]))
    Array(2., dtype=float32)
    """
    x, numbers = numbers_of(a, "nanprod", axis, out, where)
    x = x if numbers is None else masked("nanprod", x, numbers, 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


def _both(numbers: Array | None, where: ArrayLike | None, caller: str) -> ArrayLike | None:
    if numbers is None or where is None:
        return where if numbers is None else numbers
    return numbers & mask_of_where(where, caller)


@described_like(mean)
def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Average the elements over axes, without those that are NaN.

    Returns:
        The means, of the shape of ``a`` without the axes; NaN where there is no number.

    As NumPy's ``nanmean``.

    >>> import stretto.numpy as snp
    >>> snp.nanmean(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    x, numbers = numbers_of(a, "nanmean", axis, out, where)
    return mean(x, axis, dtype, out, keepdims, where=_both(numbers, where, "nanmean"))


@described_like(var)
def nanvar(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Average the squared distances from the mean, without elements that are NaN.

    Returns:
        An array of the shape of ``a`` without the axes; NaN where n is not above ``ddof``.

    As NumPy's ``nanvar``.

    >>> import stretto.numpy as snp
    >>> snp.nanvar(snp.array([1.0, snp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    x, numbers = numbers_of(a, "nanvar", axis, out, where)
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


@described_like(nanvar)
def nanstd(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Take the square root of the variance, without elements that are NaN.

    As NumPy's ``nanstd``.

    >>> import stretto.numpy as snp
    >>> snp.nanstd(snp.array([1.0, snp.nan, 3.0]))
    Array(1., dtype=float32)
    """
    x, numbers = numbers_of(a, "nanstd", axis, out, where)
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


@described_like(cumsum)
def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum the elements up to each one along an axis, with zero in place of NaN.

    As NumPy's ``nancumsum``.

    >>> import stretto.numpy as snp
    >>> snp.nancumsum(snp.array([1.0, snp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    x, numbers = numbers_of(a, "nancumsum", axis, out)
    return cumsum(x if numbers is None else masked("nancumsum", x, numbers, 0), axis, dtype, out)


@described_like(cumprod)
def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Multiply the elements up to each one along an axis, with one in place of NaN.

    As NumPy's ``nancumprod``.

    >>> import stretto.numpy as snp
    >>> snp.nancumprod(snp.array([2.0, snp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    x, numbers = numbers_of(a, "nancumprod", axis, out)
    return cumprod(x if numbers is None else masked("nancumprod", x, numbers, 1), axis, dtype, out)


# The greatest and the least of what is not NaN, and where they are.


def _nan_extremum(
    caller: str,
    a: ArrayLike,
    axis: Axes,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    if out is initial is where is None:
        x = as_value(a, caller, "a")
        axes = canonical_axes(axis, x.ndim, caller)
        search = _nanmax if caller == "nanmax" else _nanmin
        return search(x, axis=axes, keepdims=bool(keepdims))
    return _masked_extremum(caller, a, axis, out, keepdims, initial, where)


# NumPy's fmax and fmin take the other number where one is NaN.


@eager(np.fmax.reduce, FLOAT)
def _nanmax(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return _masked_extremum("nanmax", x, axis, None, keepdims, None, None)


@eager(np.fmin.reduce, FLOAT)
def _nanmin(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return _masked_extremum("nanmin", x, axis, None, keepdims, None, None)


def _refuse_empty(caller: str, x: Array, axis: Axes) -> None:
    count = math.prod([x.shape[d] for d in canonical_axes(axis, x.ndim, caller)])
    if without_elements(count, caller):
        raise no_extremum(caller, x, axis)


def _masked_extremum(
    caller: str,
    a: ArrayLike,
    axis: Axes,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    extremum, worst = (max_, greatest_below) if caller == "nanmax" else (min_, least_above)
    x, numbers = numbers_of(a, caller, axis, out, where)
    if initial is None:
        _refuse_empty(caller, x, axis)
    if where is not None and initial is None:
        raise ValueError(f"{caller}: where= may leave no element, so initial= must be given")
    if numbers is None:
        return extremum(x, axis, out, keepdims, initial, where)
    x = masked(caller, x, numbers, worst(x.dtype))
    result = extremum(x, axis, out, keepdims, initial, where)
    if initial is not None:
        return result
    some = any_(numbers, axis, keepdims=keepdims, where=where)
    return choose(some, result, full_like(result, math.nan))


@described_like(max_)
def nanmax(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the greatest element over axes, without those that are NaN.

    Args:
        a: an array, or a number.
        axis: the axes to search over; all by default.

    Returns:
        The greatest elements, of the shape of ``a`` without the axes; NaN where there is no number.

    As NumPy's ``nanmax``.

    >>> import stretto.numpy as snp
    >>> snp.nanmax(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmax", a, axis, out, keepdims, initial, where)


@described_like(nanmax)
def nanmin(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the least element over axes, without those that are NaN.

    Args:
        initial: the result where no element is less; ``where`` needs it.

    Returns:
        The least elements, of the shape of ``a`` without the axes; NaN where there is no number.

    As NumPy's ``nanmin``.

    >>> import stretto.numpy as snp
    >>> snp.nanmin(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", a, axis, out, keepdims, initial, where)


def _nan_arg_extremum(caller: str, a: ArrayLike, axis: Axis, out: None, keepdims: bool) -> Array:
    x, numbers = numbers_of(a, caller, axis, out)
    _refuse_empty(caller, x, axis)
    find, worst = (argmax, greatest_below) if caller == "nanargmax" else (argmin, least_above)
    if numbers is None:
        return find(x, axis, out, keepdims)
    at = find(masked(caller, x, numbers, worst(x.dtype)), axis, out, keepdims)
    return choose(all_(~numbers, axis, keepdims=keepdims), full_like(at, -1), at)


@described_like(argmax)
def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Find the index of the greatest element along an axis, without those that are NaN.

    Returns:
        The indices, of the default integer; -1 where there is no number.

    As NumPy's ``nanargmax``.

    >>> import stretto.numpy as snp
    >>> snp.nanargmax(snp.array([snp.nan, 1.0, 3.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg_extremum("nanargmax", a, axis, out, keepdims)


@described_like(nanargmax)
def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Find the index of the least element along an axis, without those that are NaN.

    As NumPy's ``nanargmin``.

    >>> import stretto.numpy as snp
    >>> snp.nanargmin(snp.array([snp.nan, 1.0, 3.0]))
    Array(1, dtype=int32)
    """
    return _nan_arg_extremum("nanargmin", a, axis, out, keepdims)
