"""The greatest and least: of an array and where they are, of two arrays, and as bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import default_dtype, is_complex, is_inexact
from stretto._engine.core.typing import ArrayLike, Axes, Axis
from stretto._engine.eager.twins import BOOL, FLOAT, INDEX, REAL, binary_function, eager
from stretto._engine.ops import complex_parts as ops
from stretto._engine.ops.broadcast import canonical_axes, reshape
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.extrema import MAX, MIN, complex_extremum, complex_greater
from stretto._engine.ops.layout import canonical_axis, expand_dims
from stretto._engine.ops.reducing import reduce
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import refuse_out
from stretto.numpy.reductions import keep, masked

__all__ = ["amax", "amin", "argmax", "argmin", "clip", "fmax", "fmin", "max",
           "maximum", "min", "minimum", "nan_to_num", "ptp"]  # fmt: skip


def no_extremum(caller: str, x: Array, axis: Axes) -> ValueError:
    """Return the error for an extremum over axes without elements."""
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
    """Compare by real part, then imaginary part, as NumPy orders complex numbers."""
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


def _greater_of(caller: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Return the greater of two, for the function of this name."""

    def greater(x: ArrayLike, y: ArrayLike) -> Array:
        value, other = promote_values(caller, x, y)
        if is_complex(value.dtype):
            return complex_extremum(value, other, True)
        return MAX(value, other)

    return binary_function(MAX, greater, caller=caller)


def _lesser_of(caller: str) -> Callable[[ArrayLike, ArrayLike], Array]:
    """Return the lesser of two, for the function of this name."""

    def lesser(x: ArrayLike, y: ArrayLike) -> Array:
        value, other = promote_values(caller, x, y)
        if is_complex(value.dtype):
            return complex_extremum(value, other, False)
        return MIN(value, other)

    return binary_function(MIN, lesser, caller=caller)


_maximum, _minimum = _greater_of("maximum"), _lesser_of("minimum")
_at_least, _at_most = _greater_of("clip"), _lesser_of("clip")


def maximum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Take the greater of two elements; NaN where either is NaN.

    Args:
        x: an array, or a number.
        y: as ``x``; the two broadcast.

    Returns:
        The greater ones, of the promoted dtype and the broadcast shape.

    Raises:
        TypeError: an argument is not an array or a number.
        ValueError: the shapes do not broadcast.

    As NumPy's ``maximum``.

    >>> import stretto.numpy as snp
    >>> snp.maximum(snp.array([1.0, -2.0]), 0)
    Array([1., 0.], dtype=float32)
    """
    return _maximum(x, y)


@described_like(maximum)
def minimum(x: ArrayLike, y: ArrayLike, /) -> Array:
    """Take the lesser of two elements; NaN where either is NaN.

    Returns:
        The lesser ones, of the promoted dtype and the broadcast shape.

    As NumPy's ``minimum``.

    >>> import stretto.numpy as snp
    >>> snp.minimum(snp.array([1.0, -2.0]), 0)
    Array([ 0., -2.], dtype=float32)
    """
    return _minimum(x, y)


@eager(np.fmax, REAL)
@described_like(maximum)
def fmax(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the greater of two elements; where one is NaN, the other.

    Args:
        x1: an array, or a number.
        x2: as ``x1``; the two broadcast.

    As NumPy's ``fmax``.

    >>> import stretto.numpy as snp
    >>> snp.fmax(snp.array([1.0, snp.nan]), 0)
    Array([1., 0.], dtype=float32)
    """
    x, y = promote_values("fmax", x1, x2)
    first = complex_greater(x, y) if is_complex(x.dtype) else gt(x, y)
    return choose(first | ne(y, y), x, y)


@eager(np.fmin, REAL)
@described_like(fmax)
def fmin(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Take the lesser of two elements; where one is NaN, the other.

    Returns:
        The lesser ones, of the promoted dtype and the broadcast shape.

    As NumPy's ``fmin``.

    >>> import stretto.numpy as snp
    >>> snp.fmin(snp.array([1.0, snp.nan]), 0)
    Array([0., 0.], dtype=float32)
    """
    x, y = promote_values("fmin", x1, x2)
    first = complex_greater(y, x) if is_complex(x.dtype) else lt(x, y)
    return choose(first | ne(y, y), x, y)


def clip(
    a: ArrayLike,
    /,
    a_min: ArrayLike | None = None,
    a_max: ArrayLike | None = None,
    *,
    min: ArrayLike | None = None,
    max: ArrayLike | None = None,
) -> Array:
    """Limit each element to a range.

    Args:
        a: a real array, or a number.
        a_min: the older name of ``min``.
        a_max: the older name of ``max``.
        min: the lower bound, an array that broadcasts or a number; by default there is none.
        max: the upper bound, likewise.

    Returns:
        The limited elements, of the promoted dtype and the broadcast shape.

    Raises:
        ValueError: ``a`` is complex, or the shapes do not broadcast.
        TypeError: an argument is not an array or a number.

    As NumPy's ``clip``.

    >>> import stretto.numpy as snp
    >>> snp.clip(snp.array([-1.0, 0.5, 2.0]), 0, 1)
    Array([0. , 0.5, 1. ], dtype=float32)
    """
    x = as_value(a, "clip", "a")
    if is_complex(x.dtype):
        raise ValueError(f"clip: complex numbers have no order; got {x.type}")
    low = _bound(a_min if min is None else min, "min")
    high = _bound(a_max if max is None else max, "max")
    return _clip(x, low, high)


def _bound(x: ArrayLike | None, argument: str) -> ArrayLike | None:
    """Return a bound of ``clip``: None, a Python number, or a value."""
    if x is None or x.__class__ in (int, float):
        return x
    return as_value(x, "clip", argument)


def _clip_between_numbers(
    x: np.ndarray, low: np.ndarray | float | None, high: np.ndarray | float | None
) -> np.ndarray | None:
    """Call NumPy's ``clip`` if the bounds are numbers; None where signs of zeros may differ."""
    if low.__class__ is np.ndarray or high.__class__ is np.ndarray:
        return None
    least: Any = low
    greatest: Any = high
    at_zero = x.dtype.kind == "f" and 0 in (least, greatest)
    if at_zero and (greatest == 0 or np.signbit(least)):
        return None
    result = x.clip(least, greatest)
    return np.add(result, 0, out=np.asarray(result)) if at_zero else result  # -0 is below the bound


@eager(_clip_between_numbers, REAL)
def _clip(x: Array, low: ArrayLike | None, high: ArrayLike | None) -> Array:
    if low is not None:
        x = _at_least(x, low)
    return x if high is None else _at_most(x, high)


def nan_to_num(
    x: ArrayLike,
    copy: bool = True,
    nan: ArrayLike = 0.0,
    posinf: ArrayLike | None = None,
    neginf: ArrayLike | None = None,
) -> Array:
    """Replace NaN and infinities by numbers.

    Args:
        x: an array, or a number; integers and booleans stay as they are.
        copy: ignored: arrays are immutable.
        nan: what replaces NaN.
        posinf: what replaces infinity; by default the greatest number of the dtype.
        neginf: what replaces minus infinity; by default the least number of the dtype.

    Returns:
        The numbers, of the shape and dtype of ``x``.

    Raises:
        TypeError: ``x`` or a replacement is not an array or a number.

    As NumPy's ``nan_to_num``.

    >>> import stretto.numpy as snp
    >>> snp.nan_to_num(snp.array([snp.nan, snp.inf]), posinf=9)
    Array([0., 9.], dtype=float32)
    """
    del copy  # arrays are immutable: the argument never changes
    value = as_value(x, "nan_to_num")
    if is_complex(value.dtype):
        parts = (
            nan_to_num(p, True, nan, posinf, neginf) for p in (ops.real(value), ops.imag(value))
        )
        return ops.complex_(*parts)
    if not is_inexact(value.dtype):
        return value
    return _nan_to_num(value, nan=nan, posinf=posinf, neginf=neginf)


def _nan_to_numbers(x: np.ndarray, **replacements: Any) -> np.ndarray | None:
    """Call NumPy's ``nan_to_num`` if the replacements are Python numbers."""
    for value in replacements.values():
        if value is not None and value.__class__ not in (int, float):
            return None
    return np.nan_to_num(x, **replacements)


@eager(_nan_to_numbers, FLOAT)
def _nan_to_num(
    x: Array, *, nan: ArrayLike, posinf: ArrayLike | None, neginf: ArrayLike | None
) -> Array:
    limits, dtype = ml_dtypes.finfo(x.dtype), x.dtype
    high = float(limits.max) if posinf is None else posinf
    low = float(limits.min) if neginf is None else neginf

    def replacement(value: ArrayLike, argument: str) -> Array:
        return convert(as_value(value, "nan_to_num", argument), dtype)

    x = choose(ne(x, x), replacement(nan, "nan"), x)
    x = choose(eq(x, full_like(x, np.inf)), replacement(high, "posinf"), x)
    return choose(eq(x, full_like(x, -np.inf)), replacement(low, "neginf"), x)
