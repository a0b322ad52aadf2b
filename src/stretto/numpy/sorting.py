"""Sorted and partitioned arrays, and the indices that sort them."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, inexact_dtype, is_complex
from stretto._engine.core.typing import ArrayLike, DTypeLike
from stretto._engine.eager.twins import AS_GIVEN, INDEX, REAL, eager
from stretto._engine.ops import sort as ops
from stretto._engine.ops.broadcast import broadcast_to, reshape
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.shape import concatenate, rev, split
from stretto._engine.xla.array import Array
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.searching import one_axis

__all__ = ["argpartition", "argsort", "lexsort", "partition", "sort", "sort_complex"]

_INT32 = np.dtype(np.int32)


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


@described_like(sort)
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
        dtype: the dtype of the indices; the default integer by default.

    Returns:
        The indices, of the shape of ``a``.

    As NumPy's and the array API standard's ``argsort``.

    >>> import stretto.numpy as snp
    >>> snp.argsort(snp.array([3, 1, 2]))
    Array([1, 2, 0], dtype=int32)
    """
    refuse_order("argsort", order)
    check_kind("argsort", kind)
    x, axis = one_axis(a, axis, "argsort")
    wanted = default_dtype("int") if dtype is None else as_dtype(dtype)
    return _argsort(x, axis=axis, descending=bool(descending), stable=bool(stable), dtype=wanted)


def _order(
    x: np.ndarray, *, axis: int, descending: bool, stable: bool, dtype: np.dtype
) -> np.ndarray:
    """Return the indices that sort; if descending, the reversed order of the reversed array."""
    del stable  # it always is
    if not descending:
        return ops.stable_order([x], axis).astype(dtype)
    order = np.flip(ops.stable_order([np.flip(x, axis)], axis), axis)
    return (x.shape[axis] - 1 - order).astype(dtype)


@eager(_order, REAL, AS_GIVEN)
def _argsort(x: Array, *, axis: int, descending: bool, stable: bool, dtype: np.dtype) -> Array:
    return convert(ops.argsort(x, axis, descending=descending, stable=stable), dtype)


_KINDS = (None, "quicksort", "mergesort", "heapsort", "stable")


def check_kind(caller: str, kind: object) -> None:
    """Refuse a ``kind`` that NumPy does not have; all that it has give the same result here."""
    if kind not in _KINDS:
        raise ValueError(f"{caller}: kind must be one of {_KINDS}, got {kind!r}")


def refuse_order(caller: str, order: object) -> None:
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


_MANY = 1 << 12
"""NumPy's partition at rest takes a fifth of the time of a sort from so many elements on."""


def _places(kth: int | Sequence[int], n: int, caller: str) -> list[int]:
    """Return the places, counted from the front."""
    wanted: Any = kth
    try:
        places = [
            operator.index(k) for k in (wanted if isinstance(kth, (tuple, list)) else [wanted])
        ]
    except TypeError:
        raise TypeError(
            f"{caller}: kth must be an integer or a sequence of them; got {kth!r}"
        ) from None
    for k in places:
        if not -n <= k < n:
            raise ValueError(f"{caller}: kth {k} is out of bounds for an axis of {n} elements")
    return [k % n for k in places]


def partition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> Array:
    """Partition the elements along an axis about the one that belongs at a place.

    Those before it are in rising order, those after it in falling order; for several ``kth`` all
    are in rising order. Outside of ``jit``, from 4096 elements on, the parts are in NumPy's order,
    which does not sort them. NaN comes last.

    Args:
        a: an array.
        kth: the place, or several; negative ones from the end.
        axis: the axis to partition along, the last by default; None flattens first.
        kind: has no effect.
        order: must be None: arrays have no fields.

    Returns:
        An array of the dtype of ``a``.

    Raises:
        NotImplementedError: ``order`` is given.
        TypeError: ``kth`` is not of integers.
        ValueError: ``axis`` is out of bounds; or ``kth`` is out of bounds.

    As NumPy's ``partition``.

    >>> import stretto.numpy as snp
    >>> snp.partition(snp.array([6, 2, 5, 1, 4]), 1)
    Array([1, 2, 6, 5, 4], dtype=int32)
    """
    refuse_order("partition", order)
    x, axis = one_axis(a, axis, "partition")
    places = _places(kth, x.shape[axis], "partition")
    return _partition(x, kth=places, axis=axis)


def _of_many(partition: Callable[..., Any]) -> Callable[..., Any]:
    """Call NumPy's function, for arrays so large that it is faster than a sort."""

    def twin(x: np.ndarray, *, kth: Sequence[int], axis: int) -> np.ndarray | None:
        return partition(x, kth, axis) if x.size >= _MANY else None

    return twin


@eager(_of_many(np.partition), REAL)
def _partition(x: Array, *, kth: Sequence[int], axis: int) -> Array:
    line = ops.sort(x, axis)
    if len(kth) != 1:
        return line
    front, rest = split(line, (kth[0] + 1, line.shape[axis] - kth[0] - 1), axis)
    return concatenate([front, rev(rest, (axis,))], axis)


@described_like(partition)
def argpartition(
    a: ArrayLike,
    kth: int | Sequence[int],
    axis: int | None = -1,
    kind: str = "introselect",
    order: None = None,
) -> Array:
    """Find the indices that partition the elements along an axis about a place.

    Those of elements before it are in the elements' order, those after it in their own; for many
    elements as for ``partition``.

    Returns:
        The indices, of the default integer and the shape of ``a``.

    As NumPy's ``argpartition``.

    >>> import stretto.numpy as snp
    >>> snp.argpartition(snp.array([6, 2, 5, 1, 4]), 1)
    Array([3, 1, 0, 2, 4], dtype=int32)
    """
    refuse_order("argpartition", order)
    x, axis = one_axis(a, axis, "argpartition")
    places = _places(kth, x.shape[axis], "argpartition")
    return _argpartition(x, kth=places, axis=axis)


@eager(_of_many(np.argpartition), REAL, INDEX)
def _argpartition(x: Array, *, kth: Sequence[int], axis: int) -> Array:
    index = ops.argsort(x, axis)
    if len(kth) != 1:
        return index
    front, rest = split(index, (kth[0] + 1, index.shape[axis] - kth[0] - 1), axis)
    return concatenate([front, ops.sort(rest, axis)], axis)


def sort_complex(a: ArrayLike) -> Array:
    """Sort the elements as complex numbers, by real, then imaginary part, along the last axis.

    Args:
        a: an array of rank 1 or more.

    Returns:
        A complex array, of complex128 for float64 and complex128.

    Raises:
        ValueError: the rank is 0.

    As NumPy's ``sort_complex``.

    >>> import stretto.numpy as snp
    >>> snp.sort_complex(snp.array([3.0, 1.0]))
    Array([1.+0.j, 3.+0.j], dtype=complex64)
    """
    x = as_value(a, "sort_complex", "a")
    if not is_complex(x.dtype):
        wide = inexact_dtype(x.dtype) == np.float64
        x = convert(x, np.dtype(np.complex128 if wide else np.complex64))
    return ops.sort(x, -1)
