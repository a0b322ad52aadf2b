"""Reductions and running totals that leave out NaN.

Next, read ``covariance``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.layout import canonical_axes
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


def _numbers(a: Any, caller: str) -> tuple[Any, Any]:
    """The array and where it is a number; ``None`` where it always is."""
    x = as_value(a, caller, "a")
    host = host_of(x, FLOAT + COMPLEX)
    if host is not None and not np.isnan(host).any():
        return x, None
    if not is_inexact(x.dtype):
        return x, None
    missing: Any = isnan(x)
    return x, ~missing


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
        axis: the axes to add over; all by default.
        dtype: the dtype of the sum; by default that of ``a``, at least 32 bits for integers.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: a number that is added to the sum.
        where: a mask of the elements that count; all by default.

    Returns:
        The sums, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``nansum``.

    >>> import stretto.numpy as snp
    >>> snp.nansum(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    x, numbers = _numbers(a, "nansum")
    x = x if numbers is None else masked("nansum", x, numbers, 0)
    return sum_(x, axis, dtype, out, keepdims, initial, where)


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
        axis: the axes to multiply over; all by default.
        dtype: the dtype of the product; by default that of ``a``, at least 32 bits for integers.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: a number that the product is multiplied by.
        where: a mask of the elements that count; all by default.

    Returns:
        The products, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``nanprod``.

    >>> import stretto.numpy as snp
    >>> snp.nanprod(snp.array([2.0, snp.nan]))
    Array(2., dtype=float32)
    """
    x, numbers = _numbers(a, "nanprod")
    x = x if numbers is None else masked("nanprod", x, numbers, 1)
    return prod(x, axis, dtype, out, keepdims, initial, where)


def _both(numbers: Any, where: Any, caller: str) -> Any:
    if numbers is None or where is None:
        return where if numbers is None else numbers
    return numbers & mask_of_where(where, caller)


def nanmean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    where: ArrayLike | None = None,
) -> Array:
    """Average the elements over axes, without those that are NaN.

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        dtype: the dtype of the result; by default that of ``a``, for integers the default float.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.

    Returns:
        The means, of the shape of ``a`` without the axes; NaN where there is no number.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``nanmean``.

    >>> import stretto.numpy as snp
    >>> snp.nanmean(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    x, numbers = _numbers(a, "nanmean")
    return mean(x, axis, dtype, out, keepdims, where=_both(numbers, where, "nanmean"))


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

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        dtype: the dtype of the result, a float; by default the real one of ``a``.
        out: must be None: arrays are immutable.
        ddof: what is taken off the number of elements n before dividing; may be traced.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.
        mean: the mean, with the axes kept, where it is known already.
        correction: the array API standard's name for ``ddof``.

    Returns:
        An array of the shape of ``a`` without the axes; NaN where n is not above ``ddof``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean; or ``dtype`` is neither float nor complex.
        ValueError: an axis is out of bounds, or is named twice; or ``ddof`` and ``correction`` are
            both given.

    As NumPy's ``nanvar``.

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

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        dtype: the dtype of the result, a float; by default the real one of ``a``.
        out: must be None: arrays are immutable.
        ddof: what is taken off the number of elements n before dividing; may be traced.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.
        mean: the mean, with the axes kept, where it is known already.
        correction: the array API standard's name for ``ddof``.

    Returns:
        An array of the shape of ``a`` without the axes; NaN where n is not above ``ddof``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean; or ``dtype`` is neither float nor complex.
        ValueError: an axis is out of bounds, or is named twice; or ``ddof`` and ``correction`` are
            both given.

    As NumPy's ``nanstd``.

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
    caller: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    extremum, worst = (max_, greatest_below) if caller == "nanmax" else (min_, least_above)
    host = host_of(a, FLOAT)
    if host is not None and host.size and out is initial is where is None:
        # NumPy's fmax and fmin take the other one where one is NaN
        find: Any = np.fmax if caller == "nanmax" else np.fmin
        axes = canonical_axes(axis, host.ndim, caller)
        return array_of(quiet.run(find.reduce, host, axes, None, None, bool(keepdims)), host.dtype)
    x, numbers = _numbers(a, caller)
    if numbers is None:
        return extremum(x, axis, out, keepdims, initial, where)
    x = masked(caller, x, numbers, worst(x.dtype))
    found = extremum(x, axis, out, keepdims, initial, where)
    if initial is not None:
        return found
    some = any_(numbers, axis, keepdims=keepdims, where=where)
    return choose(some, found, full_like(found, math.nan))


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
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: the result where no element is greater; ``where`` needs it.
        where: a mask of the elements that count; all by default.

    Returns:
        The greatest elements, of the shape of ``a`` without the axes; NaN where there is no number.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice; or there is no element, or
            ``where`` is given without ``initial``.

    As NumPy's ``nanmax``.

    >>> import stretto.numpy as snp
    >>> snp.nanmax(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmax", a, axis, out, keepdims, initial, where)


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
        a: an array, or a number.
        axis: the axes to search over; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: the result where no element is less; ``where`` needs it.
        where: a mask of the elements that count; all by default.

    Returns:
        The least elements, of the shape of ``a`` without the axes; NaN where there is no number.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice; or there is no element, or
            ``where`` is given without ``initial``.

    As NumPy's ``nanmin``.

    >>> import stretto.numpy as snp
    >>> snp.nanmin(snp.array([1.0, snp.nan]))
    Array(1., dtype=float32)
    """
    return _nan_extremum("nanmin", a, axis, out, keepdims, initial, where)


def _nan_arg_extremum(caller: str, a: Any, axis: Any, out: Any, keepdims: bool) -> Any:
    x, numbers = _numbers(a, caller)
    find, worst = (argmax, greatest_below) if caller == "nanargmax" else (argmin, least_above)
    if numbers is None:
        return find(x, axis, out, keepdims)
    at = find(masked(caller, x, numbers, worst(x.dtype)), axis, out, keepdims)
    return choose(all_(~numbers, axis, keepdims=keepdims), full_like(at, -1), at)


def nanargmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Find the index of the greatest element along an axis, without those that are NaN.

    Args:
        a: an array, or a number.
        axis: the axis to search; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The indices, of the default integer; -1 where there is no number.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds, or has no element.

    As NumPy's ``nanargmax``.

    >>> import stretto.numpy as snp
    >>> snp.nanargmax(snp.array([snp.nan, 1.0, 3.0]))
    Array(2, dtype=int32)
    """
    return _nan_arg_extremum("nanargmax", a, axis, out, keepdims)


def nanargmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool = False
) -> Array:
    """Find the index of the least element along an axis, without those that are NaN.

    Args:
        a: an array, or a number.
        axis: the axis to search; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The indices, of the default integer; -1 where there is no number.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds, or has no element.

    As NumPy's ``nanargmin``.

    >>> import stretto.numpy as snp
    >>> snp.nanargmin(snp.array([snp.nan, 1.0, 3.0]))
    Array(1, dtype=int32)
    """
    return _nan_arg_extremum("nanargmin", a, axis, out, keepdims)


def nancumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum the elements up to each one along an axis, with zero in the place of NaN.

    Args:
        a: an array, or a number.
        axis: the axis to run along; by default all elements, in row-major order.
        dtype: the dtype of the sums; by default that of ``a``, the default integer for booleans.
        out: must be None: arrays are immutable.

    Returns:
        The running sums, of the shape of ``a``, or of one axis without ``axis``.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``nancumsum``.

    >>> import stretto.numpy as snp
    >>> snp.nancumsum(snp.array([1.0, snp.nan, 2.0]))
    Array([1., 1., 3.], dtype=float32)
    """
    x, numbers = _numbers(a, "nancumsum")
    return cumsum(x if numbers is None else masked("nancumsum", x, numbers, 0), axis, dtype, out)


def nancumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Multiply the elements up to each one along an axis, with one in the place of NaN.

    Args:
        a: an array, or a number.
        axis: the axis to run along; by default all elements, in row-major order.
        dtype: the dtype of the products; by default that of ``a``, the default integer for
            booleans.
        out: must be None: arrays are immutable.

    Returns:
        The running products, of the shape of ``a``, or of one axis without ``axis``.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``nancumprod``.

    >>> import stretto.numpy as snp
    >>> snp.nancumprod(snp.array([2.0, snp.nan, 3.0]))
    Array([2., 2., 6.], dtype=float32)
    """
    x, numbers = _numbers(a, "nancumprod")
    return cumprod(x if numbers is None else masked("nancumprod", x, numbers, 1), axis, dtype, out)
