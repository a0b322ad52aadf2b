"""Sums, products, extrema, truth, running totals over axes.

Numbers narrower than float32 are summed in float32. Next, read ``statistics``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import ArrayType, default_dtype, is_complex, kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axes, DTypeLike
from stretto._engine.ops.arithmetic import imag, real
from stretto._engine.ops.broadcast import ReduceSum, broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, ne, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import Reshape, canonical_axes, canonical_axis, expand_dims, reshape
from stretto._engine.ops.reducing import cumulative, places, reduce
from stretto._engine.ops.shape import pad
from stretto._engine.runtime.eager import quiet
from stretto.numpy.arguments import refuse_out
from stretto.numpy.creation import listed
from stretto.numpy.directly import BOOL, NUMERIC, REAL, directly
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import equal, isclose, isnan, mask_of_where, truth
from stretto.numpy.quick import array_of, at_rest

__all__ = [
    "all",
    "allclose",
    "amax",
    "amin",
    "any",
    "argmax",
    "argmin",
    "array_equal",
    "array_equiv",
    "count_nonzero",
    "cumprod",
    "cumsum",
    "cumulative_prod",
    "cumulative_sum",
    "max",
    "min",
    "prod",
    "ptp",
    "sum",
]

_BOOL, _FLOAT32 = np.dtype(bool), np.dtype(np.float32)
_ADD_UP: Any = np.add.reduce
_FIND_MAX: Any = np.maximum.reduce
_FIND_MIN: Any = np.minimum.reduce
_FIND_TRUE: Any = np.logical_or.reduce
_FIND_FALSE: Any = np.logical_and.reduce


def total_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype of a sum or product: integers and booleans widen to the default integer."""
    kind = kind_of(dtype)
    if kind == "bool":
        return default_dtype("int")
    if kind in ("int", "uint"):
        wide = default_dtype("int")
        if dtype.itemsize < wide.itemsize:
            return wide if kind == "int" else np.dtype(f"u{wide.itemsize}")
    return dtype


def _sum_dtype(own: np.dtype, asked: Any, promote_integers: bool) -> np.dtype:
    if asked is not None:
        return as_dtype(asked)
    return own if not promote_integers and kind_of(own) != "bool" else total_dtype(own)


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """The dtype to add up in: at least float32 for floats."""
    return _FLOAT32 if kind_of(dtype) == "float" and dtype.itemsize < 4 else dtype


def masked(caller: str, x: Any, where: Any, element: Any) -> Any:
    """``x`` with ``element`` where the mask does not hold."""
    mask = mask_of_where(where, caller)
    shape = broadcast_shapes(caller, x.shape, mask.shape)
    x = broadcast_to(x, shape)
    return choose(mask, x, full_like(x, element))


def keep(out: Any, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Any:
    """The result with the reduced axes kept, at size 1, if asked."""
    if not keepdims:
        return out
    return Reshape(tuple([1 if d in axes else n for d, n in enumerate(shape)]))(out)


def _adds_up(type: ArrayType, wanted: np.dtype) -> bool:
    """Whether NumPy adds this up as XLA would: in a dtype wide enough, which takes the elements."""
    takes = type.dtype is wanted or type.kind in ("bool", "int", "uint")
    return takes and wanted.kind in "fiuc" and wanted.itemsize >= 4


def sum(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Sum the elements over axes.

    Narrow floats are added up in float32. In ``bool`` a sum says whether any element is true.

    Args:
        a: an array, or a number; booleans count as integers.
        axis: the axes to add over; all by default.
        dtype: the dtype of the sum; by default that of ``a``, at least 32 bits for integers.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: a number that is added to the sum.
        where: a mask of the elements that count; all by default.
        promote_integers: whether narrow integers widen to the default integer.

    Returns:
        The sums, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's and the array API standard's ``sum``.

    >>> import stretto.numpy as snp
    >>> snp.sum(snp.array([[1.0, 2.0], [3.0, 4.0]]), axis=0)
    Array([4., 6.], dtype=float32)
    """
    x = a if isinstance(a, Value) else as_value(a, "sum", "a")
    refuse_out("sum", out)
    wanted = _sum_dtype(x.type.dtype, dtype, promote_integers)
    if where is not None:
        x = masked("sum", x, where, 0)
    axes = canonical_axes(axis, x.type.ndim, "sum")
    if initial is None and _adds_up(x.type, wanted) and at_rest(x):
        total = quiet.run(_ADD_UP, x.to_host(), axes, wanted, None, bool(keepdims))
        return array_of(total, wanted)
    x = convert(x, wide_dtype(wanted))
    if wanted is _BOOL:
        total = reduce.reduce_or(x, axes)
    else:
        total = ReduceSum(axes if len(axes) < 2 else tuple(sorted(axes)))(x) if axes else x
    total = convert(total, wanted)
    if initial is not None:
        total = total + convert(as_value(initial, "sum", "initial"), wanted)
    return keep(total, x.type.shape, axes, keepdims)


def prod(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
    promote_integers: bool = True,
) -> Array:
    """Multiply the elements over axes.

    In ``bool`` a product says whether all elements are true.

    Args:
        a: an array, or a number; booleans count as integers.
        axis: the axes to multiply over; all by default.
        dtype: the dtype of the product; by default that of ``a``, at least 32 bits for integers.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: a number that the product is multiplied by.
        where: a mask of the elements that count; all by default.
        promote_integers: whether narrow integers widen to the default integer.

    Returns:
        The products, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's and the array API standard's ``prod``.

    >>> import stretto.numpy as snp
    >>> snp.prod(snp.array([1, 2, 3]))
    Array(6, dtype=int32)
    """
    x = as_value(a, "prod", "a")
    refuse_out("prod", out)
    wanted = _sum_dtype(x.dtype, dtype, promote_integers)
    if where is not None:
        x = masked("prod", x, where, 1)
    axes = canonical_axes(axis, x.ndim, "prod")
    x = convert(x, wide_dtype(wanted))
    reduced = reduce.reduce_and if wanted is _BOOL else reduce.reduce_prod
    total = convert(reduced(x, axes), wanted)
    if initial is not None:
        total = total * convert(as_value(initial, "prod", "initial"), wanted)
    return keep(total, x.shape, axes, keepdims)


def _extremum(
    caller: str, a: Any, axis: Any, out: Any, keepdims: bool, initial: Any, where: Any
) -> Any:
    x = a if isinstance(a, Value) else as_value(a, caller, "a")
    refuse_out(caller, out)
    greatest = caller == "max"
    if where is not None:
        if initial is None:
            raise ValueError(f"{caller}: where= may leave no element, so initial= must be given")
        worst = reduce.greatest_below if greatest else reduce.least_above
        x = masked(caller, x, where, worst(x.dtype))
    axes = canonical_axes(axis, x.type.ndim, caller)
    if initial is None and not math.prod([x.type.shape[d] for d in axes]):
        raise ValueError(
            f"{caller}: {caller} of an empty array is undefined, {x.type} over axis {axis}"
        )
    if is_complex(x.dtype):
        found = _complex_extremum(x, axes, greatest)
    elif initial is None and x.dtype.kind in "fiu" and at_rest(x):
        find = _FIND_MAX if greatest else _FIND_MIN
        return array_of(quiet.run(find, x.to_host(), axes, None, None, bool(keepdims)), x.dtype)
    else:
        found = (reduce.reduce_max if greatest else reduce.reduce_min)(x, axes)
    found = convert(found, x.type.dtype)
    if initial is not None:
        first = as_value(initial, caller, "initial")
        beyond = found > first if greatest else found < first
        found = choose(beyond | ne(found, found), found, first)  # NaN stays
    return keep(found, x.type.shape, axes, keepdims)


def _complex_extremum(x: Any, axes: tuple[int, ...], greatest: bool) -> Any:
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
    """Find the greatest element over axes; NaN where there is one.

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


def min(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    initial: ArrayLike | None = None,
    where: ArrayLike | None = None,
) -> Array:
    """Find the least element over axes; NaN where there is one.

    Args:
        a: an array, or a number; complex numbers are ordered by real, then imaginary part.
        axis: the axes to search; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        initial: the result where no element is less; ``where`` needs it.
        where: a mask of the elements that count; all by default.

    Returns:
        The least elements, of the dtype of ``a`` and its shape without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice; or there is no element, or
            ``where`` is given without ``initial``.

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


def all(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Say whether all elements over axes are true (not zero); True for an empty axis.

    Args:
        a: an array, or a number.
        axis: the axes to test; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.

    Returns:
        Booleans, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's and the array API standard's ``all``.

    >>> import stretto.numpy as snp
    >>> snp.all(snp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    refuse_out("all", out)
    if where is None:
        options = {"axis": axis, "keepdims": bool(keepdims)}
        found = directly(_FIND_FALSE, BOOL + NUMERIC, a, out=_BOOL, **options)
        if found is not None:
            return found
    x = truth(a, "all", "a")
    if where is not None:
        x = masked("all", x, where, True)
    axes = canonical_axes(axis, x.ndim, "all")
    return keep(reduce.reduce_and(x, axes), x.shape, axes, keepdims)


def any(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Say whether any element over axes is true (not zero); False for an empty axis.

    Args:
        a: an array, or a number.
        axis: the axes to test; all by default.
        out: must be None: arrays are immutable.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.

    Returns:
        Booleans, of the shape of ``a`` without the axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's and the array API standard's ``any``.

    >>> import stretto.numpy as snp
    >>> snp.any(snp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    refuse_out("any", out)
    if where is None:
        options = {"axis": axis, "keepdims": bool(keepdims)}
        found = directly(_FIND_TRUE, BOOL + NUMERIC, a, out=_BOOL, **options)
        if found is not None:
            return found
    x = truth(a, "any", "a")
    if where is not None:
        x = masked("any", x, where, False)
    axes = canonical_axes(axis, x.ndim, "any")
    return keep(reduce.reduce_or(x, axes), x.shape, axes, keepdims)


def count_nonzero(a: ArrayLike, axis: Axes = None, keepdims: bool = False) -> Array:
    """Count the elements over axes that are not zero.

    Args:
        a: an array, or a number.
        axis: the axes to count over; all by default.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The counts, of the default integer, of the shape of ``a`` without the axes.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's and the array API standard's ``count_nonzero``.

    >>> import stretto.numpy as snp
    >>> snp.count_nonzero(snp.array([0, 3, 4]))
    Array(2, dtype=int32)
    """
    options = {"axis": axis, "keepdims": bool(keepdims)}
    found = directly(np.count_nonzero, BOOL + NUMERIC, a, out=default_dtype("int"), **options)
    if found is not None:
        return found
    return sum(truth(a, "count_nonzero", "a"), axis, keepdims=keepdims)


def _arg_extremum(caller: str, a: Any, axis: Any, out: Any, keepdims: Any) -> Any:
    refuse_out(caller, out)
    search: Any = np.ndarray.argmax if caller == "argmax" else np.ndarray.argmin
    integer = default_dtype("int")
    options = {"axis": axis, "keepdims": bool(keepdims)}
    found = directly(search, BOOL + REAL, a, out=integer, **options)
    if found is not None:
        return found
    x = as_value(a, caller, "a")
    shape, axes = x.shape, canonical_axes(axis, x.ndim, caller)
    if axis is None:
        x, place = reshape(x, (-1,) if x.size else (0,)), 0
    else:
        place = canonical_axis(axis, x.ndim, caller)
    if not x.shape[place]:
        raise ValueError(
            f"{caller}: {caller} of an empty array is undefined, {x.type} over axis {axis}"
        )
    find = places.argmax if caller == "argmax" else places.argmin
    return keep(find(x, place, integer), shape, axes, bool(keepdims))


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


def argmin(
    a: ArrayLike, axis: int | None = None, out: None = None, keepdims: bool | None = None
) -> Array:
    """Find the index of the least element along an axis, the first of equals; NaN is least.

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

    As NumPy's and the array API standard's ``argmin``.

    >>> import stretto.numpy as snp
    >>> snp.argmin(snp.array([[3, 1], [0, 2]]), axis=0)
    Array([1, 0], dtype=int32)
    """
    return _arg_extremum("argmin", a, axis, out, keepdims)


# Running totals


def _running(caller: str, a: Any, axis: Any, dtype: Any, out: Any) -> Any:
    x = as_value(a, caller, "a")
    refuse_out(caller, out)
    if dtype is not None:
        wanted = as_dtype(dtype)
    else:
        wanted = default_dtype("int") if kind_of(x.dtype) == "bool" else x.dtype
    if axis is None:
        x, axis = reshape(x, (x.size,)), 0
    if wanted is _BOOL:  # true from the first true one on, or until the first false one
        operation = cumulative.cummax if caller == "cumsum" else cumulative.cummin
    else:
        operation = cumulative.cumsum if caller == "cumsum" else cumulative.cumprod
    return convert(operation(convert(x, wide_dtype(wanted)), axis), wanted)


def cumsum(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Sum the elements up to each one along an axis.

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

    As NumPy's ``cumsum``.

    >>> import stretto.numpy as snp
    >>> snp.cumsum(snp.array([1, 2, 3]))
    Array([1, 3, 6], dtype=int32)
    """
    return _running("cumsum", a, axis, dtype, out)


def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Multiply the elements up to each one along an axis.

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

    As NumPy's ``cumprod``.

    >>> import stretto.numpy as snp
    >>> snp.cumprod(snp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", a, axis, dtype, out)


def _cumulative(caller: str, x: Any, axis: Any, dtype: Any, include_initial: bool) -> Any:
    x = as_value(x, caller)
    if axis is None and x.ndim != 1:
        raise ValueError(
            f"{caller}: axis must be given for an array of rank other than 1, {x.type}"
        )
    place = canonical_axis(0 if axis is None else axis, x.ndim, caller)
    wanted = total_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    short = "cumsum" if caller == "cumulative_sum" else "cumprod"
    out = _running(short, convert(x, wanted), place, wanted, None)
    if not include_initial:
        return out
    config = [(int(d == place), 0, 0) for d in range(x.ndim)]
    return pad(out, 0 if short == "cumsum" else 1, config)


def cumulative_sum(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Sum the elements up to each one along an axis, if asked with a leading zero.

    Args:
        x: an array; ``axis`` may be left out only if it has rank 1.
        axis: the axis to run along.
        dtype: the dtype of the sums; by default that of ``x``, at least 32 bits for integers.
        include_initial: whether to begin with a zero, which makes the axis longer by one.

    Returns:
        The running sums, of the shape of ``x`` but for ``include_initial``.

    Raises:
        ValueError: ``axis`` is out of bounds, or is missing for a rank other than 1.

    As the array API standard's ``cumulative_sum``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_sum(snp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)


def cumulative_prod(
    x: ArrayLike,
    /,
    *,
    axis: int | None = None,
    dtype: DTypeLike | None = None,
    include_initial: bool = False,
) -> Array:
    """Multiply the elements up to each one along an axis, if asked with a leading one.

    Args:
        x: an array; ``axis`` may be left out only if it has rank 1.
        axis: the axis to run along.
        dtype: the dtype of the products; by default that of ``x``, at least 32 bits for integers.
        include_initial: whether to begin with a one, which makes the axis longer by one.

    Returns:
        The running products, of the shape of ``x`` but for ``include_initial``.

    Raises:
        ValueError: ``axis`` is out of bounds, or is missing for a rank other than 1.

    As the array API standard's ``cumulative_prod``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_prod(snp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)


# Equality of whole arrays


def allclose(
    a: ArrayLike,
    b: ArrayLike,
    rtol: ArrayLike = 1e-05,
    atol: ArrayLike = 1e-08,
    equal_nan: bool = False,
) -> Array:
    """Say whether all elements of two arrays are close, as ``isclose`` has it.

    Args:
        a: an array, or a number.
        b: the array to compare with; both broadcast.
        rtol: the tolerance relative to ``b``.
        atol: the absolute tolerance.
        equal_nan: whether NaN is close to NaN.

    Returns:
        A boolean of rank 0.

    Raises:
        ValueError: the shapes do not broadcast.

    As NumPy's ``allclose``.

    >>> import stretto.numpy as snp
    >>> bool(snp.allclose(snp.array([1.0]), 1.000001))
    True
    """
    return all(isclose(a, b, rtol, atol, equal_nan))


def array_equal(
    a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any], equal_nan: bool = False
) -> Array:
    """Say whether two arrays have the same shape and equal elements.

    Args:
        a1: an array, or nested lists of numbers.
        a2: the array to compare with.
        equal_nan: whether NaN equals NaN.

    Returns:
        A boolean of rank 0.

    As NumPy's ``array_equal``.

    >>> import stretto.numpy as snp
    >>> bool(snp.array_equal(snp.array([1, 2]), snp.array([1, 3])))
    False
    """
    found = directly(np.array_equal, NUMERIC, a1, a2, out=_BOOL, equal_nan=bool(equal_nan))
    if found is not None:
        return found
    x, y = listed(a1, "array_equal", "a1"), listed(a2, "array_equal", "a2")
    if x.shape != y.shape:
        return full((), False, np.dtype(bool))
    same: Any = equal(x, y)
    if not equal_nan:
        return all(same)
    missing: Any = isnan(x)
    return all(same | (missing & isnan(y)))


def array_equiv(a1: ArrayLike | Sequence[Any], a2: ArrayLike | Sequence[Any]) -> Array:
    """Say whether two arrays broadcast to one shape and have equal elements there.

    Args:
        a1: an array, or nested lists of numbers.
        a2: the array to compare with.

    Returns:
        A boolean of rank 0; False where the shapes do not broadcast.

    As NumPy's ``array_equiv``.

    >>> import stretto.numpy as snp
    >>> bool(snp.array_equiv(snp.array([1, 2]), snp.array([[1, 2], [1, 2]])))
    True
    """
    x, y = listed(a1, "array_equiv", "a1"), listed(a2, "array_equiv", "a2")
    try:
        broadcast_shapes("array_equiv", x.shape, y.shape)
    except ValueError:
        return full((), False, np.dtype(bool))
    return all(equal(x, y))
