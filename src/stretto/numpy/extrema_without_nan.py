"""The greatest and the least of what is not NaN, and where they are."""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.typing import Array, ArrayLike, Axes, Axis
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.reducing.reduce import greatest_below, least_above
from stretto.numpy.extrema import argmax, argmin, no_extremum
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import min as min_
from stretto.numpy.reductions import all as all_
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import masked
from stretto.numpy.without_nan import numbers_of

__all__ = ["nanargmax", "nanargmin", "nanmax", "nanmin"]


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


def _nan_arg_extremum(caller: str, a: ArrayLike, axis: Axis, out: None, keepdims: bool) -> Array:
    x, numbers = numbers_of(a, caller, axis, out)
    _refuse_empty(caller, x, axis)
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
