"""Searching, and choice by value: ``where``, ``nonzero``, ``extract``.

The length of ``nonzero``'s result depends on values: while tracing it needs ``size``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, overload

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import array_type, default_dtype, is_inexact
from stretto._engine.core.typing import ArrayLike, Axis
from stretto._engine.eager.twins import (
    ANY,
    AS_GIVEN,
    BOOL,
    INDEX,
    INTEGER,
    NUMERIC,
    eager,
    element_of,
    same_dtype,
    splat,
)
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.comparison import full, full_like, ge, lt
from stretto._engine.ops.comparison import select as select_by
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index import primitives
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.xla.array import Array
from stretto.numpy.logic import isnan, less, truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take
from stretto.numpy.updating import At

__all__ = [
    "argwhere",
    "extract",
    "flatnonzero",
    "nonzero",
    "searchsorted",
    "take_along_axis",
    "where",
]

_INT32 = np.dtype(np.int32)


def concrete(x: Array, caller: str) -> np.ndarray:
    """The NumPy array of a value; raises ``TracedValueError`` if its elements are unknown."""
    if not isinstance(x, Tracer):
        return x.to_host()
    if x.interpreter.ended:
        x.escaped()
    known = x.concrete()
    if known is None:
        raise TracedValueError(
            f"{caller}: the shape of the result depends on values, but this {x.type} is traced: "
            f"{x.origin()}. Give the length of the result with size=, or mask with the "
            f"three-argument where"
        )
    return np.asarray(known)


def index_array(host: np.ndarray) -> Array:
    """NumPy's indices, in the default integer."""
    dtype = default_dtype("int")
    return Array(host.astype(dtype), array_type(host.shape, dtype))


def one_axis(a: ArrayLike, axis: Axis, caller: str) -> tuple[Array, int]:
    x = as_value(a, caller, "a")
    return (ravel(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim, caller))


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take elements at indices along an axis, for each pair of lines separately.

    Out of bounds the nearest element is read, unless ``mode`` says otherwise.

    Args:
        arr: an array.
        indices: an array of integers of the same rank; the other axes broadcast.
        axis: the axis to take along, the last by default; None flattens first.
        mode: ``"fill"`` gives ``fill_value`` out of bounds; other modes are those of
            ``x.at[...].get``.
        fill_value: what mode ``"fill"`` gives, NaN by default; given alone, it sets this mode.
        wrap_negative_indices: whether negative indices count from the end; if not, they are out of
            bounds.

    Returns:
        An array of the dtype of ``arr`` and the shape of ``indices``, broadcast.

    Raises:
        TypeError: ``indices`` is not of integers.
        ValueError: ``axis`` is out of bounds; or the ranks differ, or ``mode`` is another.

    As NumPy's ``take_along_axis``; the modes as JAX's.

    >>> import stretto.numpy as snp
    >>> x = snp.array([[3, 1, 2], [6, 5, 4]])
    >>> snp.take_along_axis(x, snp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    x, axis = one_axis(arr, axis, "take_along_axis")
    wrap = wrap_negative_indices is not False
    if mode is None and fill_value is None and wrap:
        return _take_along_axis(x, indices, axis=axis)
    return primitives.take_along_axis(x, indices, axis, mode, fill_value, wrap)


@eager(np.take_along_axis, (BOOL + NUMERIC, INTEGER))
def _take_along_axis(x: Array, indices: ArrayLike, *, axis: int) -> Array:
    return primitives.take_along_axis(x, indices, axis, None, None, True)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def searchsorted(
    a: ArrayLike,
    v: ArrayLike,
    side: str = "left",
    sorter: ArrayLike | None = None,
    *,
    method: str = "scan",
) -> Array:
    """Find where elements would go into a sorted array; NaN comes last.

    Args:
        a: an array of rank 1, in rising order unless ``sorter`` is given.
        v: the elements to place, of any shape.
        side: ``"left"``, before elements that are equal, or ``"right"``, after them.
        sorter: the indices that sort ``a``.
        method: how a traced search is done: ``"compare_all"`` compares all pairs; ``"scan"``,
            ``"scan_unrolled"`` and ``"sort"`` halve ``a``.

    Returns:
        The places, of the default integer and the shape of ``v``.

    Raises:
        ValueError: ``side`` or ``method`` is another, or ``a`` is not of rank 1.

    As NumPy's ``searchsorted``; ``method`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.searchsorted(snp.array([1, 3, 5]), snp.array([0, 3, 9]))
    Array([0, 1, 3], dtype=int32)
    """
    if side not in ("left", "right"):
        raise ValueError(f"searchsorted: side must be 'left' or 'right'; got {side!r}")
    if method not in _METHODS:
        raise ValueError(
            f"searchsorted: method must be one of {', '.join(_METHODS)}; got {method!r}"
        )
    x = as_value(a, "searchsorted", "a")
    if x.ndim != 1:
        raise ValueError(f"searchsorted: expected a of rank 1, got {x.type}")
    if sorter is not None:
        x = take(x, sorter)
    x, wanted = promote_dtypes("searchsorted", x, v)
    return _places_in(x, wanted, side=side, method=method)


def _searched(
    x: np.ndarray, wanted: np.ndarray, *, side: Literal["left", "right"], method: str
) -> np.ndarray:
    del method
    if x.dtype.kind == "V":
        x, wanted = x.astype(np.float32), wanted.astype(np.float32)
    return np.searchsorted(x, wanted, side)


@eager(_searched, ANY, INDEX)
def _places_in(x: Array, wanted: Array, *, side: str, method: str) -> Array:
    n, shape = x.size, wanted.shape

    def beyond(element: Array, wanted: Array) -> Array:
        """Say whether the place is after this element of ``a``."""
        return _before(element, wanted) if side == "left" else ~_before(wanted, element)

    if method == "compare_all":
        return sum_(beyond(x, reshape(wanted, (*shape, 1))), -1)
    # Halve the interval [below, above) in which the place lies, until it is one.
    below, above = (full(shape, k, _INT32) for k in (0, n))
    mode = "promise_in_bounds" if is_size(n) else "clip"  # of no elements what is read is not taken
    for _ in range(32 if is_size(n) else math.ceil(math.log2(n + 1))):
        middle = (below + above) >> 1
        further = beyond(take(x, middle, mode=mode), wanted) & lt(below, above)
        below, above = select_by(further, middle + 1, below), select_by(further, above, middle)
    return convert(below, default_dtype("int"))


def _before(x: Array, y: Array) -> Array:
    """Say whether ``x`` comes before ``y``, NaN after all numbers."""
    earlier: Any = less(x, y)
    if not is_inexact(x.dtype):
        return earlier
    missing: Any = isnan(x)
    return earlier | (~missing & isnan(y))


# Choosing by value


@overload
def where(
    condition: ArrayLike,
    x: None = None,
    y: None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | Sequence[Any] | None = None,
) -> tuple[Array, ...]: ...
@overload
def where(condition: ArrayLike, x: ArrayLike, y: ArrayLike, /) -> Array: ...
def where(
    condition: ArrayLike,
    x: ArrayLike | None = None,
    y: ArrayLike | None = None,
    /,
    *,
    size: int | None = None,
    fill_value: ArrayLike | Sequence[Any] | None = None,
) -> Array | tuple[Array, ...]:
    """Choose between two arrays by a condition; with the condition alone, find where it holds.

    The derivative of a choice not taken is zero, even where it is NaN.

    Args:
        condition: an array; elements that are not zero hold.
        x: what to take where the condition holds; broadcasts with it.
        y: what to take elsewhere; broadcasts with both.
        size: how many indices to find with the condition alone, as for ``nonzero``.
        fill_value: what stands for missing indices, as for ``nonzero``.

    Returns:
        The choices, in the dtype that ``x`` and ``y`` promote to; or the indices, as ``nonzero``
        gives them.

    Raises:
        TracedValueError: without ``x`` and ``y`` and ``size``, the condition is traced.
        ValueError: one of ``x`` and ``y`` is missing, or the shapes do not broadcast.

    As NumPy's ``where``.

    >>> import stretto.numpy as snp
    >>> snp.where(snp.array([True, False]), 1.0, snp.array([5.0, 6.0]))
    Array([1., 6.], dtype=float32)
    """
    if x is None and y is None:
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise ValueError("where: expected a condition alone, or with both x and y; got one of them")
    of_one_dtype = _of_one_dtype(condition, x, y)
    return choose_by(condition, x, y) if of_one_dtype is None else _where(*of_one_dtype)


def _of_one_dtype(condition: ArrayLike, x: ArrayLike, y: ArrayLike) -> tuple[Any, Any, Any] | None:
    """The arguments where no promotion is due: arrays of one dtype, or a number that takes it."""
    type = x.type if isinstance(x, Value) else y.type if isinstance(y, Value) else None
    if type is None or not isinstance(condition, Value) or condition.type.kind != "bool":
        return None
    choices = []
    for c in (x, y):
        if not isinstance(c, Value):
            c = element_of(c, type)
            if c is None:
                return None
            c = splat(c, type)
        elif not same_dtype(c.type, type):
            return None
        choices.append(c)
    return condition, choices[0], choices[1]


@eager(np.where, (BOOL, BOOL + NUMERIC, BOOL + NUMERIC), AS_GIVEN)
def _where(condition: Array, x: Array, y: Array) -> Array:
    if condition.type.shape == x.type.shape == y.type.shape:
        return select_by(condition, x, y)
    return choose_by(condition, x, y)


def nonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | Sequence[Any] | None = None
) -> tuple[Array, ...]:
    """Find the indices of the elements that are not zero, in row-major order.

    Args:
        a: an array of rank 1 or more.
        size: how many to find, which must be given while tracing; all by default.
        fill_value: what stands for missing indices, 0 by default; a sequence has one for each axis.

    Returns:
        An array of the default integer for each axis.

    Raises:
        TypeError: ``size`` is not an integer.
        TracedValueError: ``a`` is traced, and ``size`` is not given.
        ValueError: ``a`` is of rank 0, or ``size`` is negative.

    As NumPy's ``nonzero``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.nonzero(snp.array([0, 5, 0, 7]))
    (Array([1, 3], dtype=int32),)
    >>> snp.nonzero(snp.array([0, 5, 0, 7]), size=3, fill_value=-1)
    (Array([ 1,  3, -1], dtype=int32),)
    """
    x = truth(a, "nonzero", "a")
    if size is None:
        host = np.atleast_1d(concrete(x, "nonzero")) if x.ndim else concrete(x, "nonzero")
        if not x.ndim:
            raise ValueError("nonzero: an array of rank 0 has no axis to count along; use ravel")
        return tuple(index_array(i) for i in np.nonzero(host))
    size, dtype = integer(size, "nonzero", "size", 0), default_dtype("int")
    fills = fill_value if isinstance(fill_value, (tuple, list)) else (fill_value,) * x.ndim
    flat = ravel(x)
    rank = cumsum(convert(flat, dtype))
    # Each element that is not zero goes to the place of its rank; the others nowhere.
    place = select_by(flat, rank - 1, full_like(rank, size))
    place = choose_by(lt(place, size), place, size)
    at = At(full((size,), 0, dtype))[place].set(iota(dtype, flat.size), mode="drop")
    missing = ge(iota(dtype, size), sum_(flat))
    out = []
    for n, fill in reversed(list(zip(x.shape, fills, strict=True))):
        most = greater(n, 1)
        at, index = (at // most, at % most)
        out.append(choose_by(missing, convert(as_value(0 if fill is None else fill), dtype), index))
    return tuple(out[::-1])


def flatnonzero(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """Find the places, in row-major order, of the elements that are not zero.

    Args:
        a: an array.
        size: how many to find, which must be given while tracing; all by default.
        fill_value: what stands for missing places, 0 by default.

    Returns:
        An array of rank 1 of the default integer.

    Raises:
        TracedValueError: ``a`` is traced, and ``size`` is not given.
        ValueError: ``size`` is negative.

    As NumPy's ``flatnonzero``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.flatnonzero(snp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(as_value(a, "flatnonzero", "a")), size=size, fill_value=fill_value)[0]


def argwhere(
    a: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | Sequence[Any] | None = None
) -> Array:
    """Find the indices of the elements that are not zero, one row for each.

    Args:
        a: an array.
        size: how many to find, which must be given while tracing; all by default.
        fill_value: what stands for missing indices, 0 by default; a sequence has one for each axis.

    Returns:
        An array of rank 2 of the default integer, with a column for each axis.

    Raises:
        TracedValueError: ``a`` is traced, and ``size`` is not given.
        ValueError: ``size`` is negative.

    As NumPy's ``argwhere``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.argwhere(snp.array([[0, 5], [7, 0]]))
    Array([[0, 1],
           [1, 0]], dtype=int32)
    """
    x = as_value(a, "argwhere", "a")
    places = nonzero(x if x.ndim else ravel(x), size=size, fill_value=fill_value)
    columns = [reshape(i, (i.size, 1)) for i in places]
    out = concatenate(columns, 1)
    return out if x.ndim else slice_in_dim(out, 0, 0, 1, 1)


def extract(
    condition: ArrayLike, arr: ArrayLike, *, size: int | None = None, fill_value: ArrayLike = 0
) -> Array:
    """Take the elements for which a condition holds, in row-major order.

    Args:
        condition: an array; elements that are not zero hold.
        arr: the array to take from.
        size: how many to take, which must be given while tracing; all by default.
        fill_value: what stands for missing elements.

    Returns:
        An array of rank 1.

    Raises:
        TracedValueError: ``condition`` is traced, and ``size`` is not given.
        ValueError: ``size`` is negative.

    As NumPy's ``extract``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.extract(snp.array([True, False, True]), snp.array([1, 2, 3]))
    Array([1, 3], dtype=int32)
    """
    x, mask = ravel(as_value(arr, "extract", "arr")), truth(condition, "extract", "condition")
    if size is None:
        return _extract(x, mask)
    at = flatnonzero(mask, size=size, fill_value=x.size)
    return choose_by(lt(at, x.size), take(x, at, mode="clip"), fill_value)


def _extracted(x: np.ndarray, mask: np.ndarray) -> np.ndarray | None:
    return np.extract(mask, x) if mask.size == x.size else None


@eager(_extracted, (BOOL + NUMERIC, BOOL))
def _extract(x: Array, mask: Array) -> Array:
    return take(x, flatnonzero(mask), mode="clip")
