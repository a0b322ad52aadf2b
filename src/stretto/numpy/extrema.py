"""The greatest and the least element, and where they are."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import default_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike, Axes, Axis
from stretto._engine.eager.twins import BOOL, INDEX, REAL, eager
from stretto._engine.ops.broadcast import canonical_axes, reshape
from stretto._engine.ops.comparison import eq, full_like, ne, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis, expand_dims
from stretto._engine.ops.reducing import reduce
from stretto.numpy.arguments import refuse_out
from stretto.numpy.reductions import keep, masked

__all__ = ["amax", "amin", "argmax", "argmin", "max", "min", "ptp"]


def no_extremum(caller: str, x: Array, axis: Axes) -> ValueError:
    """The error for an extremum over axes without elements."""
    return ValueError(
        f"{caller}: {caller} of an empty array is undefined, {x.type} over axis {axis}"
    )


def _extremum(
    caller: str,
    a: ArrayLike,
    axis: Axes,
    out: None,
    keepdims: bool,
    initial: ArrayLike | None,
    where: ArrayLike | None,
) -> Array:
    x: Any = a if isinstance(a, Value) else as_value(a, caller, "a")
    refuse_out(caller, out)
    greatest = caller == "max"
    if where is not None:
        if initial is None:
            raise ValueError(f"{caller}: where= may leave no element, so initial= must be given")
        worst = reduce.greatest_below if greatest else reduce.least_above
        x = masked(caller, x, where, worst(x.dtype))
    axes = canonical_axes(axis, x.type.ndim, caller)
    if initial is None and without_elements(math.prod([x.type.shape[d] for d in axes]), caller):
        raise no_extremum(caller, x, axis)
    if is_complex(x.dtype):
        result = keep(_complex_extremum(x, axes, greatest), x.type.shape, axes, keepdims)
    else:
        result = (_greatest if greatest else _least)(x, axis=axes, keepdims=bool(keepdims))
    if initial is not None:
        first = as_value(initial, caller, "initial")
        beyond = result > first if greatest else result < first
        result = choose(beyond | ne(result, result), result, first)  # NaN stays
    return result


@eager(np.maximum.reduce, REAL)
def _greatest(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    result = convert(reduce.reduce_max(x, axis), x.type.dtype)
    return keep(result, x.type.shape, axis, keepdims)


@eager(np.minimum.reduce, REAL)
def _least(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    result = convert(reduce.reduce_min(x, axis), x.type.dtype)
    return keep(result, x.type.shape, axis, keepdims)


def _complex_extremum(x: Array, axes: tuple[int, ...], greatest: bool) -> Array:
    """By real part, then imaginary part, as NumPy orders complex numbers."""
    extremum = reduce.reduce_max if greatest else reduce.reduce_min
    outside = -np.inf if greatest else np.inf
    re, im = real(x), imag(x)
    best = extremum(re, axes)
    tied = eq(re, expand_dims(best, axes))
    second = extremum(select(tied, im, full_like(im, outside)), axes)
    return convert(best, x.dtype) + convert(second, x.dtype) * full_like(best, 1j, x.dtype)


def max(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the greatest element over axes; NaN where any element is NaN.

    Args:
        a: an array, or a number; complex numbers are ordered by real, then imaginary part.
        axis: the axes to search; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: the result where no element is greater; ``where`` needs it.
        where: a mask of the elements that count; all by default.

    Returns:
        The greatest elements, of the dtype of ``a`` and its shape without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice; or there is no element, or
            ``where`` is given without ``initial``.

    As NumPy's and the array API standard's ``max``.

    >>> import stretto.numpy as snp
    >>> snp.max(snp.array([[1, 5], [7, 3]]), axis=1)
    Array([5, 7], dtype=int32)
    """
    return _extremum("max", a, axis, out, keepdims, initial, where)


@described_like(max)
def min(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the least element over axes; NaN where any element is NaN.

    Args:
        initial: the result where no element is less; ``where`` needs it.

    Returns:
        The least elements, of the dtype of ``a`` and its shape without the axes.

    As NumPy's and the array API standard's ``min``.

    >>> import stretto.numpy as snp
    >>> snp.min(snp.array([[1, 5], [7, 3]]), axis=1)
    Array([1, 3], dtype=int32)
    """
    return _extremum("min", a, axis, out, keepdims, initial, where)


amax, amin = max, min


def ptp(a: ArrayLike, axis: Axes = None, out: None = None, keepdims: bool = False) -> Array:
    """Subtract the least element over axes from the greatest.

    Args:
        a: an array, or a number.
        axis: the axes to search; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The ranges, of the dtype of ``a`` and its shape without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: an axis is out of bounds, or is named twice; or there is no element.

    As NumPy's ``ptp``.

    >>> import stretto.numpy as snp
    >>> snp.ptp(snp.array([2, 9, 4]))
    Array(7, dtype=int32)
    """
    return max(a, axis, out, keepdims) - min(a, axis, out, keepdims)


def _arg_extremum(caller: str, a: ArrayLike, axis: Axis, out: None, keepdims: bool | None) -> Array:
    refuse_out(caller, out)
    x = as_value(a, caller, "a")
    place = None if axis is None else canonical_axis(axis, x.ndim, caller)
    if without_elements(x.size if place is None else x.shape[place], caller):
        raise no_extremum(caller, x, axis)
    search = _place_of_greatest if caller == "argmax" else _place_of_least
    return search(x, axis=place, keepdims=bool(keepdims))


@eager(np.ndarray.argmax, BOOL + REAL, INDEX)
def _place_of_greatest(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    return _place(reduce.argmax, x, axis, keepdims)


@eager(np.ndarray.argmin, BOOL + REAL, INDEX)
def _place_of_least(x: Array, *, axis: int | None, keepdims: bool) -> Array:
    return _place(reduce.argmin, x, axis, keepdims)


def _place(search: Callable[..., Any], x: Array, axis: int | None, keepdims: bool) -> Array:
    line = reshape(x, (x.size,)) if axis is None else x
    axes = tuple(range(x.ndim)) if axis is None else (axis,)
    return keep(search(line, axis or 0, default_dtype("int")), x.shape, axes, keepdims)


def argmax(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Find the index of the greatest element along an axis, the first of equals; NaN is greatest.

    Args:
        a: an array, or a number.
        axis: the axis to search; by default all elements, in row-major order.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The indices, of the default integer, of the shape of ``a`` without the axis.

    Raises:
        NotImplementedError: ``out`` is given.
        ValueError: ``axis`` is out of bounds, or has no element.

    As NumPy's and the array API standard's ``argmax``.

    >>> import stretto.numpy as snp
    >>> snp.argmax(snp.array([1.0, 5.0, 5.0]))
    Array(1, dtype=int32)
    """
    return _arg_extremum("argmax", a, axis, out, keepdims)


@described_like(argmax)
def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Find the index of the least element along an axis, the first of equals; NaN is least.

    As NumPy's and the array API standard's ``argmin``.

    >>> import stretto.numpy as snp
    >>> snp.argmin(snp.array([[3, 1], [0, 2]]), axis=0)
    Array([1, 0], dtype=int32)
    """
    return _arg_extremum("argmin", a, axis, out, keepdims)
