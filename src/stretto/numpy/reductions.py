"""Sums, products and truth over axes, of all elements or of those so far.

Numbers narrower than float32 are summed in float32.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import default_dtype, is_complex, kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axes, Axis, DTypeLike
from stretto._engine.eager.twins import AS_GIVEN, BOOL, INDEX, NUMERIC, eager
from stretto._engine.ops.broadcast import ReduceSum, broadcast_to, reshape
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import Reshape, canonical_axes, canonical_axis
from stretto._engine.ops.reducing import cumulative, reduce
from stretto._engine.ops.shape import pad
from stretto.numpy.arguments import refuse_out
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import mask_of_where, truth

__all__ = ["all", "any", "count_nonzero", "cumprod", "cumsum", "cumulative_prod",
           "cumulative_sum", "prod", "sum"]  # fmt: skip

_BOOL, _FLOAT32 = np.dtype(bool), np.dtype(np.float32)


def total_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype of a sum or product: integers and booleans widen to the default integer."""
    kind = kind_of(dtype)
    if kind == "bool":
        return default_dtype("int")
    if kind in ("int", "uint"):
        wide = default_dtype("int")
        if dtype.itemsize < wide.itemsize:
            return wide if kind == "int" else np.dtype(f"u{wide.itemsize}")
    return dtype


def _sum_dtype(own: np.dtype, asked: DTypeLike | None, promote_integers: bool) -> np.dtype:
    if asked is not None:
        return as_dtype(asked)
    return own if not promote_integers and kind_of(own) != "bool" else total_dtype(own)


def wide_dtype(dtype: np.dtype) -> np.dtype:
    """Return the dtype to add up in: at least float32 for floats."""
    return _FLOAT32 if kind_of(dtype) == "float" and dtype.itemsize < 4 else dtype


def masked(caller: str, x: Array, where: ArrayLike, element: ArrayLike) -> Array:
    """Put ``element`` where the mask does not hold."""
    mask = mask_of_where(where, caller)
    shape = broadcast_shapes(caller, x.shape, mask.shape)
    x = broadcast_to(x, shape)
    return choose(mask, x, full_like(x, element))


def keep(result: Array, shape: tuple[int, ...], axes: tuple[int, ...], keepdims: bool) -> Array:
    """Return the result with the reduced axes kept, at size 1, if asked."""
    if not keepdims:
        return result
    return Reshape(tuple([1 if d in axes else n for d, n in enumerate(shape)]))(result)


@eager(np.add.reduce, BOOL + NUMERIC, AS_GIVEN)
def _add_up(x: Array, *, axis: tuple[int, ...], dtype: np.dtype, keepdims: bool) -> Array:
    shape, x = x.type.shape, convert(x, dtype)
    if dtype is _BOOL:
        total = reduce.reduce_or(x, axis)
    else:
        total = ReduceSum(axis if len(axis) < 2 else tuple(sorted(axis)))(x) if axis else x
    return keep(total, shape, axis, keepdims)


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
    x: Any = a if isinstance(a, Value) else as_value(a, "sum", "a")
    if out is not None:
        refuse_out("sum", out)
    type = x.type
    if dtype is None and type.kind in ("float", "complex"):
        wanted = type.dtype
    else:
        wanted = _sum_dtype(type.dtype, dtype, promote_integers)
        if type.kind == "complex" and not is_complex(wanted):
            x = convert(x, wide_dtype(wanted))  # NumPy would warn
    if where is not None:
        x = masked("sum", x, where, 0)
    axes = canonical_axes(axis, x.type.ndim, "sum")
    wide = wanted if wanted.itemsize >= 4 else wide_dtype(wanted)
    total = _add_up(x, axis=axes, dtype=wide, keepdims=bool(keepdims))
    if wide is not wanted:
        total = convert(total, wanted)
    return (
        total if initial is None else total + convert(as_value(initial, "sum", "initial"), wanted)
    )


@described_like(sum)
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
        axis: the axes to multiply over; all by default.
        dtype: the dtype of the product; by default that of ``a``, at least 32 bits for integers.
        initial: a number that the product is multiplied by.

    Returns:
        The products, of the shape of ``a`` without the axes.

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


@described_like(sum)
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

    Returns:
        Booleans, of the shape of ``a`` without the axes.

    As NumPy's and the array API standard's ``all``.

    >>> import stretto.numpy as snp
    >>> snp.all(snp.array([[True, False], [True, True]]), axis=1)
    Array([False,  True], dtype=bool)
    """
    return _of_truths("all", _every, True, a, axis, out, keepdims, where)


@eager(np.logical_and.reduce, BOOL + NUMERIC, _BOOL)
def _every(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return keep(reduce.reduce_and(truth(x, "all", "a"), axis), x.shape, axis, keepdims)


@described_like(all)
def any(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Say whether any element over axes is true (not zero); False for an empty axis.

    As NumPy's and the array API standard's ``any``.

    >>> import stretto.numpy as snp
    >>> snp.any(snp.array([[True, False], [False, False]]), axis=1)
    Array([ True, False], dtype=bool)
    """
    return _of_truths("any", _some, False, a, axis, out, keepdims, where)


def _of_truths(
    caller: str,
    reduced: Callable[..., Array],
    of_none: bool,
    a: ArrayLike,
    axis: Axes,
    out: None,
    keepdims: bool,
    where: ArrayLike | None,
) -> Array:
    """Reduce truth values by a function that has a twin; those left out are as of no elements."""
    refuse_out(caller, out)
    x = as_value(a, caller, "a")
    if where is not None:
        x = masked(caller, truth(x, caller, "a"), where, of_none)
    return reduced(x, axis=canonical_axes(axis, x.ndim, caller), keepdims=bool(keepdims))


@eager(np.logical_or.reduce, BOOL + NUMERIC, _BOOL)
def _some(x: Array, *, axis: tuple[int, ...], keepdims: bool) -> Array:
    return keep(reduce.reduce_or(truth(x, "any", "a"), axis), x.shape, axis, keepdims)


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
    x = as_value(a, "count_nonzero", "a")
    axes = None if axis is None else canonical_axes(axis, x.ndim, "count_nonzero")
    return _count_nonzero(x, axis=axes, keepdims=bool(keepdims))


@eager(np.count_nonzero, BOOL + NUMERIC, INDEX)
def _count_nonzero(x: Array, *, axis: tuple[int, ...] | None, keepdims: bool) -> Array:
    return sum(truth(x, "count_nonzero", "a"), axis, keepdims=keepdims)


def _running(caller: str, a: ArrayLike, axis: Axis, dtype: DTypeLike | None, out: None) -> Array:
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


@described_like(cumsum)
def cumprod(
    a: ArrayLike, axis: int | None = None, dtype: DTypeLike | None = None, out: None = None
) -> Array:
    """Multiply the elements up to each one along an axis.

    Args:
        dtype: the dtype of the products; by default that of ``a``, the default integer for
            booleans.

    Returns:
        The running products, of the shape of ``a``, or of one axis without ``axis``.

    As NumPy's ``cumprod``.

    >>> import stretto.numpy as snp
    >>> snp.cumprod(snp.array([1, 2, 3]))
    Array([1, 2, 6], dtype=int32)
    """
    return _running("cumprod", a, axis, dtype, out)


def _cumulative(
    caller: str, x: ArrayLike, axis: Axis, dtype: DTypeLike | None, include_initial: bool
) -> Array:
    value = as_value(x, caller)
    if axis is None and value.ndim != 1:
        raise ValueError(
            f"{caller}: axis must be given for an array of rank other than 1, {value.type}"
        )
    place = canonical_axis(0 if axis is None else axis, value.ndim, caller)
    wanted = total_dtype(value.dtype) if dtype is None else as_dtype(dtype)
    short = "cumsum" if caller == "cumulative_sum" else "cumprod"
    out = _running(short, convert(value, wanted), place, wanted, None)
    if not include_initial:
        return out
    config = [(int(d == place), 0, 0) for d in range(value.ndim)]
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
        The running sums, of the shape of ``x``, with one more if ``include_initial``.

    Raises:
        ValueError: ``axis`` is out of bounds, or is missing for a rank other than 1.

    As the array API standard's ``cumulative_sum``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_sum(snp.array([1, 2, 3]), include_initial=True)
    Array([0, 1, 3, 6], dtype=int32)
    """
    return _cumulative("cumulative_sum", x, axis, dtype, include_initial)


@described_like(cumulative_sum)
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
        dtype: the dtype of the products; by default that of ``x``, at least 32 bits for integers.
        include_initial: whether to begin with a one, which makes the axis longer by one.

    Returns:
        The running products, of the shape of ``x``, with one more if ``include_initial``.

    As the array API standard's ``cumulative_prod``.

    >>> import stretto.numpy as snp
    >>> snp.cumulative_prod(snp.array([1, 2, 3]), include_initial=True)
    Array([1, 1, 2, 6], dtype=int32)
    """
    return _cumulative("cumulative_prod", x, axis, dtype, include_initial)
