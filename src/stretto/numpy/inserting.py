"""Parts of arrays inserted and deleted.

Known indices may be anything that NumPy takes. Of traced ones only the number is known: sorting and
counting them tells what each part of the result is.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import SizeError, TracedValueError
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.typing import Array, ArrayLike, Axis
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort, sort
from stretto.numpy.creation import broadcast_argument
from stretto.numpy.index_updates import At
from stretto.numpy.indexing import concrete_of
from stretto.numpy.manipulation import moveaxis, ravel
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take


def delete(
    arr: ArrayLike,
    obj: ArrayLike | slice | Sequence[int],
    axis: Axis = None,
    *,
    assume_unique_indices: bool = False,
) -> Array:
    """Delete parts of an array along an axis.

    Args:
        arr: an array.
        obj: which parts: an index, a slice, indices or a mask. A single index may be traced, and
            with ``assume_unique_indices`` several.
        axis: the axis; by default elements are deleted from ``arr`` in row-major order.
        assume_unique_indices: a promise that no two indices name one part.

    Returns:
        The rest, of the dtype of ``arr``.

    Raises:
        TracedValueError: ``obj`` is traced, and how many parts are left is unknown.
        IndexError: ``obj`` is something else, or out of bounds.
        ValueError: ``axis`` is out of bounds.
        TypeError: ``arr`` is not an array or a number.

    As NumPy's ``delete``.

    >>> import stretto.numpy as snp
    >>> snp.delete(snp.array([1, 2, 3]), 1)
    Array([1, 3], dtype=int32)
    """
    x = as_value(arr, "delete", "arr")
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis(axis, x.ndim, "delete")
    n = x.shape[place]
    places = _places("delete", obj, n)
    if is_size(n) and isinstance(places, np.ndarray):
        places = _of_any_size("delete", np.unique(places))
        assume_unique_indices = True
    if isinstance(places, Value):
        if places.ndim and not assume_unique_indices:
            raise TracedValueError(
                f"delete: how many parts are left depends on obj, a traced {places.type}: promise "
                f"assume_unique_indices=True where no two indices name one part, or name the "
                f"argument in static_argnums"
            )
        # A stable sort brings the parts that stay to the front, in order.
        leaves = At(full((n,), False, np.dtype(bool)))[places].set(True)
        stays = slice_in_dim(argsort(leaves, 0), 0, max(n - places.size, 0))
        return take(x, stays, place)
    return _delete(x, obj=places, axis=place)


@eager(np.delete, ANY)
def _delete(x: Array, *, obj: np.ndarray, axis: int) -> Array:
    n = x.shape[axis]
    _check_bounds("delete", obj, n, n - 1)
    return take(x, np.delete(np.arange(n, dtype=np.int32), obj), axis)


def _of_any_size(caller: str, places: np.ndarray) -> Value:
    """Indices along an axis whose size varies, as values."""
    if places.size and places.min() < 0 <= places.max():
        raise SizeError(
            f"{caller}: which of the indices {places.tolist()} are equal depends on a size that is "
            f"known only while the program runs: count all from the start, or all from the end"
        )
    return as_value(places.astype(np.int32))


def _check_bounds(caller: str, obj: np.ndarray, n: int, last: int) -> None:
    """Raise unless all indices are from -n to the last one."""
    beyond = obj[(obj < -n) | (obj > last)]
    if beyond.size:
        raise IndexError(
            f"{caller}: index {beyond.flat[0]} in obj is out of bounds for an axis of size {n}"
        )


def insert(
    arr: ArrayLike, obj: ArrayLike | slice | Sequence[int], values: ArrayLike, axis: Axis = None
) -> Array:
    """Insert values into an array along an axis.

    Args:
        arr: an array.
        obj: the parts before which to insert: an index, a slice, indices or a mask. Indices may be
            traced, and are then clamped to the array; a mask may not.
        values: an array that broadcasts, or a number. All go before a single index, one after
            another; otherwise one goes before each part.
        axis: the axis; by default values go into ``arr`` in row-major order.

    Returns:
        The longer array, of the dtype of ``arr``.

    Raises:
        TracedValueError: ``obj`` is a mask that is traced.
        IndexError: ``obj`` is something else, or out of bounds.
        ValueError: the values do not broadcast, or ``axis`` is out of bounds.
        TypeError: ``arr`` or ``values`` is not an array or a number.

    As NumPy's ``insert``.

    >>> import stretto.numpy as snp
    >>> snp.insert(snp.array([1, 2, 3]), 1, 9)
    Array([1, 9, 2, 3], dtype=int32)
    >>> snp.insert(snp.array([1, 2, 3]), slice(0, 2), snp.array([8, 9]))
    Array([8, 1, 9, 2, 3], dtype=int32)
    """
    x, new = as_value(arr, "insert", "arr"), as_value(values, "insert", "values")
    if axis is None:
        x, axis = ravel(x), 0
    place = canonical_axis(axis, x.ndim, "insert")
    n = x.shape[place]
    at = _places("insert", obj, n)
    if is_size(n) and isinstance(at, np.ndarray):
        at = _of_any_size("insert", at)
    if new.ndim < x.ndim:
        new = reshape(new, (1,) * (x.ndim - new.ndim) + new.shape)
    if at.ndim == 0:
        new = moveaxis(new, 0, place)
    count = new.shape[place] if at.size == 1 else at.size
    room = tuple([count if d == place else m for d, m in enumerate(x.shape)])
    new = broadcast_argument(new, room, "insert", "values")
    new = convert(new, x.dtype, x.weak_type)
    if isinstance(at, Value):
        return take(concatenate([x, new], place), _order(at, n, count), place)
    return _insert(x, new, obj=at.reshape(-1), axis=place)


def _insert_hosts(x: np.ndarray, new: np.ndarray, *, obj: np.ndarray, axis: int) -> np.ndarray:
    return np.insert(x, obj, new, axis)


@eager(_insert_hosts, ANY)
def _insert(x: Array, new: Array, *, obj: np.ndarray, axis: int) -> Array:
    n, count = x.shape[axis], new.shape[axis]
    _check_bounds("insert", obj, n, n)
    order = np.insert(np.arange(n), obj, np.arange(n, n + count)).astype(np.int32)
    return take(concatenate([x, new], axis), order, axis)


def _places(caller: str, obj: ArrayLike | slice | Sequence[int], n: int) -> Value | np.ndarray:
    """The indices that ``obj`` stands for: NumPy's where they are known, else traced ones."""
    if isinstance(obj, slice):
        if is_size(n):
            raise SizeError(
                f"{caller}: the parts that the slice {obj} names depend on a size that is known "
                f"only while the program runs, {n}: give indices, or concatenate what is to stay"
            )
        return np.arange(n)[obj]
    at: Any = concrete_of(obj) if isinstance(obj, Value) else obj
    if at is None and isinstance(obj, Value):
        if obj.type.kind == "bool":
            raise TracedValueError(
                f"{caller}: the shape of the result depends on obj, a traced mask, {obj.type}: "
                f"{obj.origin()}. Name the argument in static_argnums, or give indices"
            )
        at = obj
    elif isinstance(at, (list, tuple)):
        at = np.asarray(at, None if len(at) else np.intp)
    elif not isinstance(at, np.ndarray):
        at = np.asarray(at)
    if at.dtype.kind == "b" and at.ndim == 1 and (at.size == n or caller == "insert"):
        return np.flatnonzero(at)
    if at.dtype.kind not in "iu" or (at.ndim > 1 and caller == "insert"):
        got = at.type if isinstance(at, Value) else f"{at.dtype.name}{list(at.shape)}"
        raise IndexError(
            f"{caller}: obj must be an integer, a slice, integers, or a mask of the axis's size, "
            f"{n}; got {got}"
        )
    return at if isinstance(at, Value) else at.astype(np.intp)


def _order(at: Value, n: int, count: int) -> Array:
    """For each part of the result its number among the old parts followed by the new ones."""
    index = np.dtype(np.int32)
    at = convert(at, index)
    at = where(lt(at, 0), at + n, at)
    at = broadcast_to(minimum(maximum(at, full_like(at, 0)), full_like(at, n)), (count,))
    # The i-th new part, in the order of the places, has i new parts before it.
    first = sort(at, 0) + iota(index, count)
    position = iota(index, n + count)
    table = expand_dims(position, (1,)), expand_dims(first, (0,))
    before = sum_(lt(table[1], table[0]), 1, index)
    fresh = reduce_or(eq(table[1], table[0]), (1,))
    sorted_ = take(argsort(at, 0), before, mode="clip")
    return where(fresh, convert(sorted_, index) + n, position - before)
