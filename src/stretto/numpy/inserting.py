"""Copies with parts inserted, deleted or replaced: by place, by mask, along an axis.

Known indices may be anything that NumPy takes. Of traced ones only the number is known: sorting and
counting them tells what each part of the result is.

NumPy's ``put``, ``place`` and the like change their argument. Arrays are immutable, so here
``inplace=False`` is required, and the copy is returned; ``x.at[index].set(y)`` is shorter.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import SizeError, TracedValueError
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import fixed, is_size, lesser
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axis
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.iota import broadcasted_iota, iota
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort, sort
from stretto.numpy.arguments import refuse_inplace
from stretto.numpy.arithmetic import remainder
from stretto.numpy.creation import broadcast_argument
from stretto.numpy.extrema import clip
from stretto.numpy.indexing import concrete_of
from stretto.numpy.logic import truth
from stretto.numpy.manipulation import moveaxis, ravel
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import resize, take
from stretto.numpy.updating import At

__all__ = ["delete", "fill_diagonal", "insert", "place", "put", "put_along_axis", "putmask"]


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
    """Return indices along an axis whose size varies, as values."""
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
    """Return the indices that ``obj`` stands for: NumPy's where they are known, else traced."""
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
    """Number each part of the result among the old parts followed by the new ones."""
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


def put(
    a: ArrayLike, ind: ArrayLike, v: ArrayLike, mode: str | None = None, *, inplace: bool = True
) -> Array:
    """Copy an array with values put at places in row-major order.

    Args:
        a: an array.
        ind: the places, integers; negative ones count from the end.
        v: the values, repeated as needed.
        mode: what happens out of bounds: nothing is put by default; ``"clip"`` puts at the nearest
            place, ``"wrap"`` wraps around, ``"raise"`` raises.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        IndexError: a place is out of bounds in mode ``"raise"``.
        ValueError: ``inplace`` is not False; or there are places but no values.

    As NumPy's ``put``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> snp.put(snp.zeros(3), snp.array([0, 2]), 5, inplace=False)
    Array([5., 0., 5.], dtype=float32)
    """
    refuse_inplace("put", inplace)
    x, places = as_value(a, "put", "a"), as_value(ind, "put", "ind")
    values = as_value(v, "put", "v")
    if not places.size:
        return x
    if not values.size:
        raise ValueError(f"put: there is nothing to put, {values.type}, at {places.size} places")
    places = reshape(places, (places.size,))
    if mode == "clip":
        places, mode = clip(places, 0, x.size - 1), None
    elif mode == "wrap":
        places, mode = remainder(places, x.size), None
    values = resize(values, places.size)
    updated = At(reshape(x, (x.size,)))[places].set(convert(values, x.dtype), mode=mode)
    return reshape(updated, x.shape)


def put_along_axis(
    arr: ArrayLike,
    indices: ArrayLike,
    values: ArrayLike,
    axis: int | None,
    inplace: bool = True,
    *,
    mode: str | None = None,
) -> Array:
    """Copy an array with values put at indices along an axis, each line by itself.

    Args:
        arr: an array.
        indices: integers of the rank of ``arr``; the other axes broadcast.
        values: what to put; broadcasts with ``indices``.
        axis: the axis to put along; None takes the elements in row-major order.
        inplace: must be False: a copy is returned.
        mode: what happens out of bounds, as for ``x.at[...].set``.

    Returns:
        A copy of ``arr``.

    Raises:
        ValueError: ``inplace`` is not False; or ``axis`` is out of bounds; or ``indices`` is not of
            integers, or of another rank.

    As NumPy's ``put_along_axis``, which changes its argument; the inverse of ``take_along_axis``.

    >>> import stretto.numpy as snp
    >>> x, at = snp.zeros((2, 3)), snp.array([[1], [2]])
    >>> snp.put_along_axis(x, at, 5, axis=1, inplace=False)
    Array([[0., 5., 0.],
           [0., 0., 5.]], dtype=float32)
    """
    caller = "put_along_axis"
    refuse_inplace(caller, inplace)
    x, at = as_value(arr, caller, "arr"), as_value(indices, caller, "indices")
    new = as_value(values, caller, "values")
    if axis is None:
        flat = put_along_axis(reshape(x, (x.size,)), at, new, 0, False, mode=mode)
        return reshape(flat, x.shape)
    along = canonical_axis(axis, x.ndim, caller)
    if at.ndim != x.ndim or at.type.kind not in ("int", "uint"):
        raise ValueError(
            f"{caller}: indices must be integers of the rank of {x.type}, got {at.type}"
        )
    others = tuple([1 if d == along else n for d, n in enumerate(x.shape)])
    own = tuple([1 if d == along else n for d, n in enumerate(at.shape)])
    shape = list(broadcast_shapes(caller, others, own))
    shape[along] = at.shape[along]
    at = broadcast_to(at, tuple(shape))
    index = [
        at if d == along else broadcasted_iota(default_dtype("int"), tuple(shape), d)
        for d in range(x.ndim)
    ]
    new = broadcast_to(convert(new, x.dtype), tuple(shape))
    return At(x)[tuple(index)].set(new, mode=mode)


def place(arr: ArrayLike, mask: ArrayLike, vals: ArrayLike, *, inplace: bool = True) -> Array:
    """Copy an array with values put where a mask holds.

    Args:
        arr: an array.
        mask: an array of the same size; elements that are not zero hold.
        vals: the values, repeated as needed.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``arr``.

    Raises:
        ValueError: ``inplace`` is not False; or ``mask`` has another size, or ``vals`` is empty.

    As NumPy's ``place``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(4)
    >>> snp.place(x, x > 1, snp.array([7, 8]), inplace=False)
    Array([0, 1, 7, 8], dtype=int32)
    """
    refuse_inplace("place", inplace)
    x, holds = as_value(arr, "place", "arr"), truth(mask, "place", "mask")
    values = as_value(vals, "place", "vals")
    if x.size != holds.size:
        raise ValueError(f"place: the mask must have the size of {x.type}, got {holds.type}")
    if not values.size:
        if x.size:
            raise ValueError("place: there is nothing to put, vals is empty")
        return x
    holds = reshape(holds, (x.size,))
    # The n-th place where the mask holds takes the n-th value, starting over after the last.
    rank = cumsum(convert(holds, default_dtype("int"))) - 1
    new = take(reshape(values, (values.size,)), remainder(rank, values.size), 0, mode="clip")
    return reshape(where(holds, convert(new, x.dtype), reshape(x, (x.size,))), x.shape)


def putmask(a: ArrayLike, mask: ArrayLike, values: ArrayLike, *, inplace: bool = True) -> Array:
    """Copy an array with elements of another put where a mask holds.

    Args:
        a: an array.
        mask: an array of the same size; elements that are not zero hold.
        values: what to put, element for element; of another size it is repeated as needed.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        ValueError: ``inplace`` is not False; or ``mask`` has another size.

    As NumPy's ``putmask``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(4)
    >>> snp.putmask(x, x > 1, snp.array([5, 6, 7, 8]), inplace=False)
    Array([0, 1, 7, 8], dtype=int32)
    """
    refuse_inplace("putmask", inplace)
    x, holds = as_value(a, "putmask", "a"), truth(mask, "putmask", "mask")
    new = as_value(values, "putmask", "values")
    if x.size != holds.size:
        raise ValueError(f"putmask: the mask must have the size of {x.type}, got {holds.type}")
    if not new.size or not x.size:
        return x
    new = convert(resize(new, x.shape), x.dtype)
    return where(reshape(holds, x.shape), new, x)


def fill_diagonal(
    a: ArrayLike, val: ArrayLike, wrap: bool = False, *, inplace: bool = True
) -> Array:
    """Copy an array with values put on its main diagonal.

    Args:
        a: an array of rank 2, or of a higher rank with axes of one size.
        val: the values, repeated as needed.
        wrap: whether to go on below the end of a tall matrix, after one free row each time.
        inplace: must be False: a copy is returned.

    Returns:
        A copy of ``a``.

    Raises:
        ValueError: ``inplace`` is not False; or the rank is below 2, or more than two axes differ
            in size.

    As NumPy's ``fill_diagonal``, which changes its argument.

    >>> import stretto.numpy as snp
    >>> snp.fill_diagonal(snp.zeros((2, 3)), snp.array([1, 2]), inplace=False)
    Array([[1., 0., 0.],
           [0., 2., 0.]], dtype=float32)
    """
    refuse_inplace("fill_diagonal", inplace)
    x, values = as_value(a, "fill_diagonal", "a"), as_value(val, "fill_diagonal", "val")
    if x.ndim < 2:
        raise ValueError(f"fill_diagonal: expected two axes or more, got {x.type}")
    if x.ndim > 2 and len(set(x.shape)) > 1:
        raise ValueError(f"fill_diagonal: more than two axes must have one size, got {x.type}")
    step = 1 + x.shape[1] if x.ndim == 2 else sum(x.shape[0] ** d for d in range(x.ndim))
    end = x.size if wrap or x.ndim > 2 else lesser(x.shape[1] ** 2, x.size)
    where = "fill_diagonal", "the places on the diagonal", "use snp.where with snp.eye"
    places = np.arange(0, fixed(end, *where), fixed(step, *where), dtype=np.int32)
    return put(x, places, values, inplace=False)
