"""Sorting, searching, and choice by value: ``where``, ``nonzero``, ``extract``.

The length of ``nonzero``'s result depends on values: while tracing it needs ``size``. Next, read
``unique`` and ``sets``.
"""

from __future__ import annotations

import contextlib
import math
from typing import Any

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.types import array_type, default_dtype, is_inexact
from stretto._engine.ops import sort as ops
from stretto._engine.ops.broadcast import broadcast_to, canonical_axis, reshape
from stretto._engine.ops.comparison import full, full_like, ge, lt, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.contract import promote_dtypes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index import along_axis
from stretto._engine.ops.iota import iota
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.runtime.array import Array
from stretto.numpy.directly import BOOL, INTEGER, NUMERIC, REAL, host_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.indexing import At
from stretto.numpy.joining import take
from stretto.numpy.logic import isnan, less, truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.quick import array_of, at_rest, element_of, same_dtype, splat
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_

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


def concrete(x: Any, who: str) -> np.ndarray:
    """The NumPy array beneath a value; raises where it is traced and its elements are unknown."""
    if not isinstance(x, Tracer):
        return x.to_host()
    if x.interpreter.ended:
        x.escaped()
    known = x.concrete()
    if known is None:
        raise TracedValueError(
            f"{who}: the shape of the result depends on values, but this {x.type} is traced: "
            f"{x.origin()}. Give the length of the result with size=, or mask with the "
            f"three-argument where"
        )
    return np.asarray(known)


def index_array(host: np.ndarray) -> Array:
    """NumPy's indices, in the default integer."""
    dtype = default_dtype("int")
    return Array(host.astype(dtype), array_type(host.shape, dtype))


# Sorting


def one_axis(a: Any, axis: Any, who: str) -> tuple[Any, int]:
    x = as_value(a, who, "a")
    return (ravel(x), 0) if axis is None else (x, canonical_axis(axis, x.ndim, who))


def sort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
) -> Any:
    """The elements in rising order along ``axis``, falling if ``descending``; NaN comes last.

    >>> import stretto.numpy as snp
    >>> snp.sort(snp.array([3, 1, 2]), descending=True)
    Array([3, 2, 1], dtype=int32)
    """
    refuse_order("sort", order)
    check_kind("sort", kind)
    x, axis = one_axis(a, axis, "sort")
    return ops.sort(x, axis, descending=descending, stable=bool(stable))


def argsort(
    a: Any,
    axis: int | None = -1,
    kind: str | None = None,
    order: None = None,
    *,
    stable: bool | None = True,
    descending: bool = False,
    dtype: Any = None,
) -> Any:
    """The indices that sort the elements along ``axis``; equal ones stay in order.

    They are of ``dtype``, by default the default integer.

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


def check_kind(who: str, kind: Any) -> None:
    """Refuses a ``kind`` that NumPy has not; of those that it has, all give the same here."""
    if kind not in _KINDS:
        raise ValueError(f"{who}: kind must be one of {_KINDS}, got {kind!r}")


def refuse_order(who: str, order: Any) -> None:
    if order is not None:
        raise NotImplementedError(f"{who}: arrays have no fields, so order= means nothing")


def lexsort(keys: Any, axis: int = -1) -> Any:
    """The indices that sort by the last key, among equals by the one before, and so on.

    >>> import stretto.numpy as snp
    >>> snp.lexsort([snp.array([2, 1, 3]), snp.array([1, 1, 0])])
    Array([2, 1, 0], dtype=int32)
    """
    values = [as_value(k, "lexsort", f"key {i}") for i, k in enumerate(keys)]
    if not values:
        raise ValueError("lexsort: expected at least one key, got none")
    axis = canonical_axis(axis, values[0].ndim, "lexsort")
    shape = values[0].shape
    places = tuple(n if d == axis else 1 for d, n in enumerate(shape))
    index = broadcast_to(reshape(iota(_INT32, shape[axis]), places), shape)
    out = ops.sort_operands([*values[::-1], index], axis, num_keys=len(values))
    return convert(out[-1], default_dtype("int"))


def take_along_axis(
    arr: Any,
    indices: Any,
    axis: int | None = -1,
    mode: str | None = None,
    fill_value: Any = None,
    *,
    wrap_negative_indices: bool | None = None,
) -> Any:
    """The elements at ``indices`` along ``axis``, each line of both apart.

    Out of bounds the nearest element is read; ``mode="fill"`` gives ``fill_value`` (NaN), and is
    the mode where there is a ``fill_value`` and none is named. Negative indices count from the end,
    unless ``wrap_negative_indices`` is false: then they are out of bounds.

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
        with contextlib.suppress(IndexError, ValueError):  # the general way tells, or clamps
            return array_of(np.take_along_axis(*hosts, axis), x.dtype)
    return along_axis.take_along_axis(x, indices, axis, mode, fill_value, wrap)


_METHODS = ("scan", "scan_unrolled", "sort", "compare_all")


def searchsorted(
    a: Any, v: Any, side: str = "left", sorter: Any = None, *, method: str = "scan"
) -> Any:
    """The place of each element of ``v`` in the sorted ``a``, before equals or after (``"right"``).

    ``sorter`` holds the indices that sort ``a``, if it is not sorted. NaN comes last. ``method`` is
    how a traced search is done: ``"compare_all"`` compares all pairs, the others halve ``a``.

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
    return less(x, y) | (isnan(y) & ~isnan(x)) if is_inexact(x.dtype) else less(x, y)


# Choosing by value


def where(
    condition: Any, x: Any = None, y: Any = None, /, *, size: int | None = None,
    fill_value: Any = None,
) -> Any:  # fmt: skip
    """``x`` where ``condition`` holds, else ``y``; with ``condition`` alone, ``nonzero`` of it.

    The derivative of a choice not taken is zero, even where it is NaN.

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
        except ValueError:  # the shapes do not fit: to be said in words
            return None
        return array_of(chosen, type.dtype, type.weak_type)
    choices = [c if isinstance(c, Value) else splat(c, type) for c in choices]
    if condition.type.shape == choices[0].type.shape == choices[1].type.shape:
        return select(condition, *choices)
    return None


def nonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> tuple[Any, ...]:
    """The indices of the elements that are not zero, one array an axis, in row-major order.

    While tracing ``size`` must be given: the first ``size`` are taken, and what is missing is
    ``fill_value`` (0; or one for each axis).

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


def flatnonzero(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices, in row-major order, of the elements that are not zero; ``size`` as ``nonzero``.

    >>> import stretto.numpy as snp
    >>> snp.flatnonzero(snp.array([[0, 5], [7, 0]]))
    Array([1, 2], dtype=int32)
    """
    return nonzero(ravel(as_value(a, "flatnonzero", "a")), size=size, fill_value=fill_value)[0]


def argwhere(a: Any, *, size: int | None = None, fill_value: Any = None) -> Any:
    """The indices of the elements that are not zero, one row each; ``size`` as ``nonzero``.

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


def extract(condition: Any, arr: Any, *, size: int | None = None, fill_value: Any = 0) -> Any:
    """The elements for which ``condition`` holds, in row-major order; ``size`` as ``nonzero``.

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
