"""The distinct elements of an array, or parts along an axis.

How many there are depends on values: while tracing ``size`` must be given.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal, NamedTuple, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import exceeds, lesser
from stretto._engine.core.types import default_dtype, is_inexact
from stretto._engine.core.typing import ArrayLike
from stretto._engine.eager.interpreter import array_of
from stretto._engine.ops.comparison import full, full_like, ge, ne
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, move_axis, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.xla.array import Array
from stretto.numpy.logic import isnan
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import cumsum
from stretto.numpy.searching import concrete, flatnonzero, index_array
from stretto.numpy.sorting import lexsort
from stretto.numpy.taking import take
from stretto.numpy.updating import At

__all__ = ["unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"]

_BOOL = np.dtype(bool)


class UniqueAllResult(NamedTuple):
    """Hold what ``unique_all`` returns.

    Fields: ``values``, ``indices`` of first occurrences, ``inverse_indices`` and ``counts``.
    """

    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Hold what ``unique_counts`` returns.

    Fields: ``values`` and ``counts``.
    """

    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Hold what ``unique_inverse`` returns.

    Fields: ``values`` and ``inverse_indices``.
    """

    values: Array
    inverse_indices: Array


@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[False] = False,
    return_inverse: Literal[False] = False,
    return_counts: Literal[False] = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: Literal[True],
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    *,
    return_inverse: Literal[True],
    return_counts: bool = False,
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    *,
    return_counts: Literal[True],
    axis: int | None = None,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> tuple[Array, ...]: ...
@overload
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]: ...
def unique(
    ar: ArrayLike,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
    size: int | None = None,
    fill_value: ArrayLike | None = None,
    sorted: bool = True,
) -> Array | tuple[Array, ...]:
    """List the distinct elements, or the distinct parts along an axis, in order.

    Args:
        ar: an array.
        return_index: whether to return the indices of first occurrences too.
        return_inverse: whether to return for each element of ``ar`` its index in the result too.
        return_counts: whether to return how often each occurs too.
        axis: the axis of the parts; by default all elements, in row-major order.
        equal_nan: whether NaN equals NaN.
        size: how many to take, which must be given while tracing; all by default.
        fill_value: what stands for missing elements; by default the least element.
        sorted: has no effect: the elements are in order.

    Returns:
        An array, or a tuple of it and what else is asked for, in the order of the arguments.

    Raises:
        TypeError: ``size`` is not an integer.
        TracedValueError: ``ar`` is traced, and ``size`` is not given.
        ValueError: ``axis`` is out of bounds; or ``size`` is negative, or an empty array is to be
            filled up without ``fill_value``.

    As NumPy's ``unique``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.unique(snp.array([3, 1, 3]), return_counts=True)
    (Array([1, 3], dtype=int32), Array([1, 2], dtype=int32))
    >>> snp.unique(snp.array([3, 1, 3]), size=3, fill_value=0)
    Array([1, 3, 0], dtype=int32)
    """
    x = as_value(ar, "unique", "ar")
    requested = (True, return_index, return_inverse, return_counts)
    if size is not None:
        results: Any = _unique_sized(
            x, axis, integer(size, "unique", "size", 0), fill_value, equal_nan
        )
    else:
        host = concrete(x, "unique")
        wide: Any = host.astype(np.float32) if host.dtype.kind == "V" else host
        wanted = (return_index or x.__class__ is not Array, *requested[2:])
        unique: Any = np.unique
        outs = unique(wide, *map(bool, wanted), axis, equal_nan=equal_nan)
        if not any(wanted):
            return array_of(outs.astype(x.dtype, copy=False), x.dtype)
        others = iter(outs[1:])
        places = [index_array(next(others)) if w else None for w in wanted]
        results = (_values(x, axis, (outs[0], places[0])), *places)
    out = tuple(value for value, wanted in zip(results, requested, strict=True) if wanted)
    return out[0] if len(out) == 1 else out


def _values(x: Array, axis: int | None, outs: Sequence[Any]) -> Array:
    """Return the distinct elements; under a derivative taken from where they first occur."""
    if x.__class__ is Array:
        return array_of(outs[0].astype(x.dtype), x.dtype)
    first = outs[1]
    return take(x, first) if axis is None else take(x, first, axis)


def starts_of_runs(line: Array, equal_nan: bool) -> Array:
    """Say where a part along the first axis differs from the one before it; the first one does."""
    left, right = slice_in_dim(line, 0, -1), slice_in_dim(line, 1, None)
    differs = ne(left, right)
    if equal_nan and is_inexact(line.dtype):
        both: Any = isnan(left)
        differs = differs & ~(both & isnan(right))
    differs = any_(differs, tuple(range(1, line.ndim)))
    return concatenate([full((lesser(line.shape[0], 1),), True, _BOOL), differs], 0)


def _unique_sized(
    x: Array, axis: int | None, size: int, fill_value: ArrayLike | None, equal_nan: bool
) -> tuple[Array, ...]:
    """Return values, first occurrences, inverse, counts, at a static size."""
    place = 0 if axis is None else canonical_axis(axis, x.ndim, "unique")
    parts = reshape(x, (x.size,)) if axis is None else move_axis(x, place, 0)
    n, shape, dtype = parts.shape[0], parts.shape[1:], default_dtype("int")
    if fill_value is None and size and without_elements(n, "unique"):
        raise ValueError(
            f"unique: {x.type} has no elements to fill {size} places with; give fill_value="
        )
    if not n:
        none = full((size,), 0, dtype)
        filled = full((size, *shape), 0, x.dtype)
        values = filled if fill_value is None else full_like(filled, fill_value)
        inverse = full(x.shape if axis is None else (0,), 0, dtype)
        return move_axis(values, 0, place), none, inverse, none
    width = math.prod(shape)
    rows = reshape(parts, (n, width))
    columns = [reshape(slice_in_dim(rows, k, k + 1, 1, 1), (n,)) for k in reversed(range(width))]
    order = lexsort(columns) if columns else iota(dtype, n)
    line = take(parts, order, 0)
    begins = starts_of_runs(line, equal_nan)
    starts = flatnonzero(begins, size=size, fill_value=n)
    missing = ge(starts, n)
    mode = "clip" if exceeds(n, 0) else "fill"
    values = take(line, starts, 0, mode=mode)
    fill = slice_in_dim(line, 0, 1) if fill_value is None else as_value(fill_value)
    absent = reshape(missing, (size,) + (1,) * len(shape))
    values = choose(absent, convert(fill, x.dtype), values)
    inverse = At(full_like(order, 0))[order].set(cumsum(convert(begins, dtype)) - 1)
    inverse = reshape(inverse, x.shape) if axis is None else inverse
    ends = flatnonzero(begins, size=size + 1, fill_value=n)[1:]
    first = take(order, np.zeros(1, int), mode=mode, fill_value=0)
    index = choose(missing, first, take(order, starts, mode=mode, fill_value=0))
    return move_axis(values, 0, place), index, inverse, ends - starts


def unique_all(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueAllResult:
    """List the distinct elements with all that ``unique`` finds; each NaN counts separately.

    Args:
        x: an array.
        size: how many to take, which must be given while tracing; all by default.
        fill_value: what stands for missing elements; by default the least element.

    Returns:
        ``UniqueAllResult``: values, indices of first occurrences, inverse indices, and counts.

    Raises:
        TracedValueError: ``x`` is traced, and ``size`` is not given.
        ValueError: ``size`` is negative.

    As the array API standard's ``unique_all``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.unique_all(snp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    out = unique(x, True, True, True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueAllResult(*out)


@described_like(unique_all)
def unique_counts(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueCountsResult:
    """List the distinct elements and how often each occurs; each NaN counts separately.

    Returns:
        ``UniqueCountsResult``: values and counts.

    As the array API standard's ``unique_counts``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.unique_counts(snp.array([3, 1, 3])).counts
    Array([1, 2], dtype=int32)
    """
    out = unique(x, return_counts=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueCountsResult(*out)


@described_like(unique_all)
def unique_inverse(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> UniqueInverseResult:
    """List the distinct elements, and for each element its index among them.

    Returns:
        ``UniqueInverseResult``: values, and inverse indices of the shape of ``x``.

    As the array API standard's ``unique_inverse``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.unique_inverse(snp.array([3, 1, 3])).inverse_indices
    Array([1, 0, 1], dtype=int32)
    """
    out = unique(x, return_inverse=True, equal_nan=False, size=size, fill_value=fill_value)
    return UniqueInverseResult(*out)


@described_like(unique_all)
def unique_values(
    x: ArrayLike, /, *, size: int | None = None, fill_value: ArrayLike | None = None
) -> Array:
    """List the distinct elements; each NaN counts separately.

    Returns:
        An array of rank 1.

    As the array API standard's ``unique_values``; ``size`` and ``fill_value`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.unique_values(snp.array([3, 1, 3]))
    Array([1, 3], dtype=int32)
    """
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)
