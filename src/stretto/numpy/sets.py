"""Arrays as sets of their elements: union, intersection, differences, membership.

Each sorts the elements of both once, those of the first before equal ones of the second, and takes
some of them. How many depends on values: while tracing ``size`` must be given.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.eager.twins import INTEGER, REAL, eager
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import full, full_like, ge, lt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.contract import promote_dtypes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.cumulative import cummax
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto._engine.ops.sort import argsort, sort
from stretto.numpy.joining import concatenate
from stretto.numpy.logic import equal, isnan
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import any as any_
from stretto.numpy.searching import flatnonzero, searchsorted
from stretto.numpy.taking import take
from stretto.numpy.unique import starts_of_runs, unique

__all__ = ["intersect1d", "isin", "setdiff1d", "setxor1d", "union1d"]

_BOOL = np.dtype(bool)
_FEW = 16
_METHODS = ("auto", "compare_all", "binary_search", "sort")


def _take_some(
    keep: Array, line: Array, size: int | None, fill: ArrayLike | None
) -> tuple[Array, Array]:
    """Take the elements for which ``keep`` holds, and their places; ``fill`` where no more are."""
    n = line.shape[0]
    at = flatnonzero(keep, size=size, fill_value=n)
    if not n:
        return (
            line if size is None else full((size,), 0 if fill is None else fill, line.dtype)
        ), at
    elements = take(line, at, mode="clip")
    if size is None:
        return elements, at
    if fill is None:  # the first of them, or zero where there is none
        first = slice_in_dim(elements, 0, min(size, 1))
        fill = choose(slice_in_dim(lt(at, n), 0, min(size, 1)), first, full_like(first, 0))
    return choose(lt(at, n), elements, convert(as_value(fill), line.dtype)), at


def _lines(caller: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array]:
    return ravel(as_value(ar1, caller, "ar1")), ravel(as_value(ar2, caller, "ar2"))


def _ranked(caller: str, ar1: ArrayLike, ar2: ArrayLike) -> tuple[Array, Array, int]:
    """Order the elements of both; say where each comes from, and how many are from the first."""
    x, y = promote_dtypes(
        caller, *(ravel(as_value(a, caller, n)) for a, n in ((ar1, "ar1"), (ar2, "ar2")))
    )
    both = concatenate([x, y])
    order = argsort(both)
    return take(both, order), order, x.shape[0]


def union1d(
    ar1: ArrayLike, ar2: ArrayLike, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """List the distinct elements of two arrays, in order.

    Args:
        ar1: an array, flattened.
        ar2: an array, flattened.
        size: how many to take, which must be given while tracing; all by default.
        fill_value: what stands for missing elements; by default the least element.

    Returns:
        An array of rank 1.

    Raises:
        TracedValueError: an array is traced, and ``size`` is not given.

    As NumPy's ``union1d``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.union1d(snp.array([3, 1]), snp.array([1, 2]))
    Array([1, 2, 3], dtype=int32)
    """
    x, y = _lines("union1d", ar1, ar2)
    if size is None:
        return _union1d(x, y)
    return unique(concatenate([x, y]), size=size, fill_value=fill_value)


@eager(np.union1d, REAL)
def _union1d(x: Array, y: Array) -> Array:
    return unique(concatenate([x, y]))


@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: Literal[False] = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    return_indices: Literal[True],
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> tuple[Array, Array, Array]: ...
@overload
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]: ...
@described_like(union1d)
def intersect1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    return_indices: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array | tuple[Array, Array, Array]:
    """List the distinct elements that are in both arrays, in order.

    Args:
        assume_unique: a promise that no array has an element twice.
        return_indices: whether to return the indices of first occurrences in both arrays too.
        fill_value: what stands for missing elements, by default the first of them; their indices
            are the arrays' lengths.

    Returns:
        An array of rank 1, or a tuple of it and two arrays of indices.

    As NumPy's ``intersect1d``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.intersect1d(snp.array([3, 1, 2]), snp.array([1, 3, 9]), return_indices=True)
    (Array([1, 3], dtype=int32), Array([1, 0], dtype=int32), Array([0, 1], dtype=int32))
    """
    if size is None and not return_indices:
        return _intersect1d(*_lines("intersect1d", ar1, ar2))
    return _intersection(ar1, ar2, return_indices, size, fill_value)


@eager(np.intersect1d, INTEGER)
def _intersect1d(x: Array, y: Array) -> Array:
    return _intersection(x, y, False, None, None)


def _intersection(
    ar1: ArrayLike, ar2: ArrayLike, return_indices: bool, size: int | None, fill: ArrayLike | None
) -> Tree:
    line, order, n = _ranked("intersect1d", ar1, ar2)
    begins = starts_of_runs(line, False)
    # Among equal elements the first of the second array follows the last of the first array.
    second = ge(order, n)
    before = pad(
        slice_in_dim(second, 0, max(line.shape[0] - 1, 0)), True, [(min(line.shape[0], 1), 0, 0)]
    )
    values, at = _take_some(~begins & second & ~before, line, size, fill)
    if not return_indices:
        return values
    m = line.shape[0] - n
    if not line.shape[0]:
        return values, at, at
    start = cummax(choose(begins, iota(order.dtype, line.shape[0]), 0))
    missing = ge(at, line.shape[0])
    first = take(order, take(start, at, mode="clip"))
    last = take(order, at, mode="clip") - n
    return values, choose(missing, n, first), choose(missing, m, last)


@described_like(union1d)
def setdiff1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """List the distinct elements of one array that are not in another, in order.

    Args:
        ar2: the array of elements to leave out.
        assume_unique: a promise that no array has an element twice; the elements stay in the order
            of ``ar1``.
        fill_value: what stands for missing elements; zero by default.

    As NumPy's ``setdiff1d``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.setdiff1d(snp.array([3, 1, 3, 2]), snp.array([1, 9]))
    Array([2, 3], dtype=int32)
    """
    x, y = _lines("setdiff1d", ar1, ar2)
    return _setdiff1d(x, y, assume_unique=bool(assume_unique), size=size, fill_value=fill_value)


def _difference(
    x: np.ndarray,
    y: np.ndarray,
    *,
    assume_unique: bool,
    size: int | None,
    fill_value: ArrayLike | None,
) -> np.ndarray | None:
    del fill_value
    return np.setdiff1d(x, y, assume_unique) if size is None else None


@eager(_difference, INTEGER)
def _setdiff1d(
    line: Array,
    other: ArrayLike,
    *,
    assume_unique: bool,
    size: int | None,
    fill_value: ArrayLike | None,
) -> Array:
    keep = full(line.shape, True, _BOOL)
    if not assume_unique:
        line = sort(line)
        keep = starts_of_runs(line, True)
    keep = keep & isin(line, other, invert=True)
    return _take_some(keep, line, size, 0 if fill_value is None else fill_value)[0]


@described_like(union1d)
def setxor1d(
    ar1: ArrayLike,
    ar2: ArrayLike,
    assume_unique: bool = False,
    *,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
) -> Array:
    """List the distinct elements that are in exactly one of two arrays, in order.

    Args:
        assume_unique: a promise that no array has an element twice; one that has is left out, as in
            NumPy.
        fill_value: what stands for missing elements; by default the first of them.

    As NumPy's ``setxor1d``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.setxor1d(snp.array([3, 1, 3]), snp.array([1, 2]))
    Array([2, 3], dtype=int32)
    """
    line, order, n = _ranked("setxor1d", ar1, ar2)
    if not line.shape[0]:
        return _take_some(full((0,), True, _BOOL), line, size, fill_value)[0]
    second, one = ge(order, n), slice_in_dim
    begins = starts_of_runs(line, True)
    if is_inexact(line.dtype):  # NaN of one array is not NaN of the other
        turns = pad(equal(one(second, 1, None), one(second, 0, -1)), True, [(1, 0, 0)])
        begins = begins | (isnan(line) if assume_unique else isnan(line) & ~turns)
    ends = pad(one(begins, 1, None), True, [(0, 1, 0)])
    if assume_unique:
        return _take_some(begins & ends, line, size, fill_value)[0]
    start = cummax(choose(begins, iota(order.dtype, line.shape[0]), 0))
    return _take_some(ends & equal(second, take(second, start)), line, size, fill_value)[0]


def isin(
    element: ArrayLike,
    test_elements: ArrayLike,
    assume_unique: bool = False,
    invert: bool = False,
    *,
    method: str = "auto",
) -> Array:
    """Say whether each element is among others; NaN never is.

    Args:
        element: an array, or a number.
        test_elements: the elements to look among.
        assume_unique: a promise that changes nothing.
        invert: whether to say the opposite.
        method: how, with the same results: ``"compare_all"`` compares all pairs, which ``"auto"``
            does for few ``test_elements``; ``"binary_search"`` and ``"sort"`` sort these and
            search.

    Returns:
        Booleans, of the shape of ``element``.

    Raises:
        ValueError: ``method`` is another.

    As NumPy's ``isin``; ``method`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.isin(snp.array([[1, 2], [3, 4]]), snp.array([4, 1]))
    Array([[ True, False],
           [False,  True]], dtype=bool)
    """
    if method not in _METHODS:
        raise ValueError(f"isin: method must be one of {', '.join(_METHODS)}; got {method!r}")
    x, tests = (
        as_value(element, "isin", "element"),
        as_value(test_elements, "isin", "test_elements"),
    )
    return _isin(x, tests, invert=bool(invert), method=method)


def _among(x: np.ndarray, tests: np.ndarray, *, invert: bool, method: str) -> np.ndarray:
    del method
    return np.isin(x, tests, invert=invert)


@eager(_among, REAL, _BOOL)
def _isin(x: Array, tests: Array, *, invert: bool, method: str) -> Array:
    x, tests = promote_dtypes("isin", x, ravel(tests))
    if method == "compare_all" or (method == "auto" and tests.size <= _FEW):
        inside = any_(equal(reshape(x, (*x.shape, 1)), of_rank(tests, x.ndim + 1)), -1)
    elif not tests.size:
        inside = full(x.shape, False, _BOOL)
    else:
        tests = sort(tests)
        inside = equal(take(tests, searchsorted(tests, x), mode="clip"), x)
    return ~inside if invert else inside
