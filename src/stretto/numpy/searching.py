"""Sorting, searching, and choice by value: ``where``, ``nonzero``, ``extract``.

The length of ``nonzero``'s result depends on values: while tracing it needs ``size``. Next, read
``unique`` and ``sets``.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Sequence
from typing import Any, overload

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.types import array_type, default_dtype, is_inexact
from stretto._engine.core.typing import ArrayLike, DTypeLike
from stretto._engine.ops import sort as ops
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to, canonical_axis, reshape
from stretto._engine.ops.comparison import full, full_like, ge, lt, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index import along_axis
from stretto._engine.ops.iota import iota
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.runtime.array import Array
from stretto.numpy.cumulative import cumsum
from stretto.numpy.directly import BOOL, INTEGER, NUMERIC, REAL, host_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import At
from stretto.numpy.logic import isnan, less, truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.quick import array_of, at_rest, element_of, same_dtype, splat
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take

__all__ = [
    "argsort",
    "argwhere",
    "extract",
    "flatnonzero",
    "lexsort",
    "nonzero",
    "searchsorted",
    "sort",
    "take_along_axis",
    "where",
]

_INT32 = np.dtype(np.int32)


def concrete(x: Any, caller: str) -> np.ndarray:
    """The NumPy array beneath a value; raises where it is traced and its elements are unknown."""
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


# Sorting


def one_axis(a: Any, axis: Any, caller: str) -> tuple[Any, int]:
    x = as_value(a, caller, "a")
    return (ravel(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim, caller))


def sort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Array:
    """Sort the elements along an axis; NaN comes last.

    Args:
        a: an array.
        axis: the axis to sort along, the last by default; None flattens first.
        kind: one of NumPy's names of algorithms, which all give the same here.
        order: must be None: arrays have no fields.
        stable: whether equal elements stay in order.
        descending: whether the order falls.

    Returns:
        An array of the dtype of ``a``.

    Raises:
        NotImplementedError: ``order`` is given.
        ValueError: ``axis`` is out of bounds; or ``kind`` is none of NumPy's.

    As NumPy's and the array API standard's ``sort``.

    >>> import stretto.numpy as snp
    >>> snp.sort(snp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    refuse_order("sort", order)
    check_kind("sort", kind)
    x, axis = one_axis(a, axis, "sort")
    return ops.sort(x, axis, descending=descending, stable=bool(stable))


def argsort(
    a: ArrayLike,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
    dtype: DTypeLike | None = None,
) -> Array:
    """Find the indices that sort the elements along an axis; equal ones stay in order.

    Args:
        a: an array.
        axis: the axis to sort along, the last by default; None flattens first.
        kind: one of NumPy's names of algorithms, which all give the same here.
        order: must be None: arrays have no fields.
        stable: whether equal elements stay in order.
        descending: whether the order falls.
        dtype: the dtype of the indices; the default integer by default.

    Returns:
        The indices, of the shape of ``a``.

    Raises:
        NotImplementedError: ``order`` is given.
        ValueError: ``axis`` is out of bounds; or ``kind`` is none of NumPy's.

    As NumPy's and the array API standard's ``argsort``.

    >>> import stretto.numpy as snp
    >>> snp.argsort(snp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    refuse_order("argsort", order)
    check_kind("argsort", kind)
    x, axis = one_axis(a, axis, "argsort")
    host = host_of(x, REAL)
    if host is not None:
        return _order(host, axis, bool(descending), dtype)
    found = ops.argsort(x, axis, descending=descending, stable=bool(stable))
    return found if dtype is None else convert(found, as_dtype(dtype))


def _order(host: np.ndarray, axis: int, descending: bool, dtype: Any) -> Array:
    """The indices that sort; falling, those of the reversed order, reversed."""
    if not descending:
        order = ops.stable_order([host], axis)
    else:
        order = np.flip(ops.stable_order([np.flip(host, axis)], axis), axis)
        order = host.shape[axis] - 1 - order
    wanted = default_dtype("int") if dtype is None else as_dtype(dtype)
    return array_of(order.astype(wanted), wanted)


_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def check_kind(caller: str, kind: Any) -> None:
    """Refuse a ``kind`` that NumPy does not have; those that it has all give the same here."""
    if kind not in _KINDS:
        raise ValueError(f"{caller}: kind must be one of {_KINDS}, got {kind!r}")


def refuse_order(caller: str, order: Any) -> None:
    if order is not None:
        raise NotImplementedError(f"{caller}: arrays have no fields, so order= has no meaning")


def lexsort(keys: ArrayLike | Sequence[ArrayLike], axis: int = -1) -> Array:
    """Find the indices that sort by several keys, the last key first.

    Args:
        keys: a sequence of arrays of one shape, or one array of them along its first axis.
        axis: the axis to sort along.

    Returns:
        The indices, of the default integer and the shape of one key.

    Raises:
        ValueError: there is no key, the shapes differ, or ``axis`` is out of bounds.

    As NumPy's ``lexsort``.

    >>> import stretto.numpy as snp
    >>> snp.lexsort([snp.array([2, 1, 3]), snp.array([1, 1, 0])])
    Array([2, 1, 0], dtype=int32)
    """
    lines: Any = keys
    values = [as_value(k, "lexsort", f"key {i}") for i, k in enumerate(lines)]
    if not values:
        raise ValueError("lexsort: expected at least one key, got none")
    axis = canonical_axis(axis, values[0].ndim, "lexsort")
    shape = values[0].shape
    places = tuple(n if d == axis else 1 for d, n in enumerate(shape))
    index = broadcast_to(reshape(iota(_INT32, shape[axis]), places), shape)
    out = ops.sort_operands([*values[::-1], index], axis, num_keys=len(values))
    return convert(out[-1], default_dtype("int"))


def take_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: ArrayLike | None = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Array:
    """Take elements at indices along an axis, for each line of both arrays apart.

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
    hosts = host_of(x, BOOL + NUMERIC), host_of(indices, INTEGER)
    plain = mode is None and fill_value is None and wrap
    if hosts[0] is not None and hosts[1] is not None and plain:
        with contextlib.suppress(IndexError, ValueError):  # the general way reports it, or clamps
            return array_of(np.take_along_axis(*hosts, axis), x.dtype)
    return along_axis.take_along_axis(x, indices, axis, mode, fill_value, wrap)


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
    n, shape = x.size, wanted.shape
    if at_rest(x, wanted):
        hosts = [h.astype(np.float32) if h.dtype.kind == "V" else h
                 for h in (x.to_host(), wanted.to_host())]  # fmt: skip
        return index_array(np.asarray(np.searchsorted(*hosts, side=side)))

    def beyond(element: Any, wanted: Any) -> Any:
        """Whether the place is after this element of ``a``."""
        return _before(element, wanted) if side == "left" else ~_before(wanted, element)

    if method == "compare_all":
        return sum_(beyond(x, reshape(wanted, (*shape, 1))), -1)
    # Halve the interval [below, above) in which the place lies, until it is one.
    below, above = (full(shape, k, _INT32) for k in (0, n))
    for _ in range(math.ceil(math.log2(n + 1))):
        middle = (below + above) >> 1
        further = beyond(take(x, middle, mode="clip"), wanted) & lt(below, above)
        below, above = select(further, middle + 1, below), select(further, above, middle)
    return convert(below, default_dtype("int"))


def _before(x: Any, y: Any) -> Any:
    """Whether ``x`` comes before ``y``, NaN after all numbers."""
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
) -> Any:
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
    quickly = _choose_quickly(condition, x, y)
    return choose(condition, x, y) if quickly is None else quickly


def _choose_quickly(condition: Any, x: Any, y: Any) -> Any:
    """The choice between an array and one of its dtype, or a number that takes it; else None."""
    type = x.type if isinstance(x, Value) else y.type if isinstance(y, Value) else None
    if type is None or not isinstance(condition, Value) or condition.type.kind != "bool":
        return None
    choices = [c if isinstance(c, Value) else element_of(c, type) for c in (x, y)]
    for c in choices:
        if c is None or (isinstance(c, Value) and not same_dtype(c.type, type)):
            return None
    if at_rest(condition, *(c for c in choices if isinstance(c, Value))):
        hosts: list[Any] = [c.to_host() if c.__class__ is Array else c for c in choices]
        try:
            chosen = np.where(condition.to_host(), *hosts)
        except ValueError:  # the shapes do not fit: the caller says so in words
            return None
        return array_of(chosen, type.dtype, type.weak_type)
    choices = [c if isinstance(c, Value) else splat(c, type) for c in choices]
    if condition.type.shape == choices[0].type.shape == choices[1].type.shape:
        return select(condition, *choices)
    return None


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
    place = select(flat, rank - 1, full_like(rank, size))
    place = choose(lt(place, size), place, size)
    at = At(full((size,), 0, dtype))[place].set(iota(dtype, flat.size), mode="drop")
    missing = ge(iota(dtype, size), sum_(flat))
    out = []
    for n, fill in reversed(list(zip(x.shape, fills, strict=True))):
        at, index = (at // max(n, 1), at % max(n, 1))
        out.append(choose(missing, convert(as_value(0 if fill is None else fill), dtype), index))
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
    found = nonzero(x if x.ndim else ravel(x), size=size, fill_value=fill_value)
    columns = [reshape(i, (i.size, 1)) for i in found]
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
    hosts = host_of(x, BOOL + NUMERIC), host_of(mask, BOOL)
    if size is None and hosts[0] is not None and hosts[1] is not None and mask.size == x.size:
        return array_of(np.extract(hosts[1], hosts[0]), x.dtype)
    at = flatnonzero(mask, size=size, fill_value=x.size)
    found = take(x, at, mode="clip")
    return found if size is None else choose(lt(at, x.size), found, fill_value)
