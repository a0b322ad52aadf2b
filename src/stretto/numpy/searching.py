"""Searching, and choice by value, number or condition: ``where``, ``nonzero``, ``select``.

The length of ``nonzero``'s result depends on values: while tracing it needs ``size``.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from typing import Any, Literal, overload

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import array_type, default_dtype, is_inexact, promote
from stretto._engine.core.typing import ArrayLike, Axes, Axis
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
from stretto._engine.ops import shape as ops
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like, ge, lt
from stretto._engine.ops.comparison import select as select_by
from stretto._engine.ops.comparison import where as choose_by
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.index import primitives
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axes, canonical_axis, expand_dims, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import remainder
from stretto.numpy.extrema import clip
from stretto.numpy.indexing import concrete_of
from stretto.numpy.logic import isnan, less, truth
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take
from stretto.numpy.updating import At

__all__ = ["argwhere", "choose", "compress", "extract", "flatnonzero", "nonzero",
           "searchsorted", "select", "take_along_axis", "trim_zeros", "where"]  # fmt: skip

_INT32 = np.dtype(np.int32)


def concrete(x: Array, caller: str) -> np.ndarray:
    """Return the NumPy array of a value; raise ``TracedValueError`` if its elements are unknown."""
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
    """Return NumPy's indices, in the default integer."""
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
    """Return the arguments if none needs promotion: arrays of one dtype, numbers that take it."""
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


def _all_of(caller: str, arrays: Sequence[ArrayLike] | ArrayLike, what: str) -> list[Array]:
    """Return the arrays of a sequence, or along the first axis of one."""
    if isinstance(arrays, (Value, np.ndarray)) and arrays.ndim == 0:
        raise TypeError(f"{caller}: {what} must be a sequence of arrays, got one of rank 0")
    if not isinstance(arrays, Iterable):
        raise TypeError(f"{caller}: {what} must be a sequence of arrays, got {arrays!r}")
    return [as_value(x, caller, f"{what}[{i}]") for i, x in enumerate(arrays)]


def _promoted(caller: str, values: Sequence[Array]) -> list[Array]:
    dtype, weak = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)
    return [convert(v, dtype, weak) for v in values]


def choose(
    a: ArrayLike, choices: Sequence[ArrayLike] | ArrayLike, out: None = None, mode: str = "raise"
) -> Array:
    """Choose each element among arrays by number.

    Args:
        a: integers, the numbers of the arrays.
        choices: a sequence of arrays, or an array of them along its first axis; they broadcast with
            ``a``.
        out: must be ``None``: arrays are immutable.
        mode: for numbers out of bounds: ``"raise"``, which is not for a traced ``a``; ``"wrap"``,
            which wraps around; ``"clip"``, which takes the nearest.

    Returns:
        The chosen elements, of the promoted dtype of the choices and the broadcast shape.

    Raises:
        TypeError: ``a`` does not hold integers, or ``choices`` is not a sequence of arrays.
        ValueError: a number is out of bounds, or traced, with ``mode="raise"``; there is no such
            mode; or the shapes do not broadcast.
        NotImplementedError: ``out`` is given.

    As NumPy's ``choose``.

    >>> import stretto.numpy as snp
    >>> snp.choose(snp.array([1, 0]), [snp.array([1, 2]), snp.array([10, 20])])
    Array([10,  2], dtype=int32)
    """
    refuse_out("choose", out)
    x = as_value(a, "choose", "a")
    if x.type.kind not in ("int", "uint", "bool"):
        raise TypeError(f"choose: a must hold integers, got {x.type}")
    arrays = _all_of("choose", choices, "choices")
    if not arrays:
        raise ValueError("choose: expected at least one array in choices, got none")
    values = _promoted("choose", arrays)
    n = len(values)
    if mode == "wrap":
        x = remainder(x, n)
    elif mode == "clip":
        x = clip(convert(x, _INT32), 0, n - 1)
    elif mode == "raise":
        known = concrete_of(x)
        if known is None:
            raise ValueError(
                f"choose: a is traced, {x.type}, so whether it is out of bounds is unknown; "
                f"pass mode='clip' or mode='wrap'"
            )
        if known.size and not 0 <= known.min() <= known.max() < n:
            raise ValueError(f"choose: the numbers must be from 0 to {n - 1}; got {known}")
    else:
        raise ValueError(f"choose: mode must be 'raise', 'wrap' or 'clip', got {mode!r}")
    shape = broadcast_shapes("choose", x.shape, *[v.shape for v in values])
    every = concatenate([expand_dims(broadcast_to(v, shape), 0) for v in values], 0)
    number = expand_dims(broadcast_to(convert(x, _INT32), shape), 0)
    return reshape(primitives.take_along_axis(every, number, 0), shape)


def select(
    condlist: Sequence[ArrayLike] | ArrayLike,
    choicelist: Sequence[ArrayLike] | ArrayLike,
    default: ArrayLike = 0,
) -> Array:
    """Choose each element by the first condition that holds there.

    Args:
        condlist: a sequence of boolean arrays.
        choicelist: as many arrays as there are conditions; all broadcast.
        default: the elements where no condition holds.

    Returns:
        The chosen elements, of the promoted dtype of the choices and the broadcast shape.

    Raises:
        ValueError: the numbers of choices and conditions differ, or are zero; or the shapes do not
            broadcast.
        TypeError: a condition is not boolean, or an argument is not a sequence of arrays.

    As NumPy's ``select``.

    >>> import stretto.numpy as snp
    >>> x = snp.arange(5)
    >>> snp.select([x < 2, x > 2], [-x, x * x], 42)
    Array([ 0, -1, 42,  9, 16], dtype=int32)
    """
    conditions = _all_of("select", condlist, "condlist")
    choices = _all_of("select", choicelist, "choicelist")
    if len(conditions) != len(choices) or not choices:
        raise ValueError(
            f"select: expected as many conditions as choices, and at least one; got "
            f"{len(conditions)} and {len(choices)}"
        )
    for i, condition in enumerate(conditions):
        if condition.type.kind != "bool":
            raise TypeError(f"select: condlist[{i}] must be boolean, got {condition.type}")
    *values, result = _promoted("select", [*choices, as_value(default, "select", "default")])
    for condition, value in zip(conditions[::-1], values[::-1], strict=True):
        result = choose_by(condition, value, result)
    return result


def compress(
    condition: ArrayLike,
    a: ArrayLike,
    axis: Axis = None,
    out: None = None,
    *,
    size: int | None = None,
    fill_value: ArrayLike = 0,
) -> Array:
    """Keep the parts of an array along an axis for which a condition holds.

    Args:
        condition: booleans, of rank 1; parts past its end are left out.
        a: an array.
        axis: the axis; by default the elements of ``a`` in row-major order.
        out: must be ``None``: arrays are immutable.
        size: the number of parts in the result, filled up with ``fill_value`` where fewer are
            kept; needed while ``condition`` is traced.
        fill_value: see ``size``.

    Returns:
        The parts, of the dtype of ``a``.

    Raises:
        ValueError: ``condition`` is not of rank 1, or ``axis`` is out of bounds.
        IndexError: the condition holds past the end of the axis.
        TracedValueError: ``condition`` is traced, without ``size``.
        NotImplementedError: ``out`` is given.

    As NumPy's ``compress``.

    >>> import stretto.numpy as snp
    >>> snp.compress(snp.array([False, True]), snp.array([[1, 2], [3, 4]]), axis=0)
    Array([[3, 4]], dtype=int32)
    """
    refuse_out("compress", out)
    x, mask = as_value(a, "compress", "a"), truth(condition, "compress", "condition")
    if mask.ndim != 1:
        raise ValueError(f"compress: condition must be of rank 1, got {mask.type}")
    if axis is None:
        x, axis = ravel(x), 0
    along = canonical_axis(axis, x.ndim, "compress")
    n = x.shape[along]
    known = concrete_of(mask)
    if mask.size > n and known is not None and known[n:].any():
        raise IndexError(f"compress: the condition holds past the {n} parts of {x.type}")
    if size is None and known is not None:
        return _compress(x, condition=np.asarray(known), axis=along)
    mask = ops.slice_in_dim(mask, 0, min(mask.size, n))
    if size is None:
        raise TracedValueError(
            f"compress: how many parts are kept depends on condition, a traced {mask.type}: "
            f"{mask.origin()}. Pass size="
        )
    at = flatnonzero(mask, size=size, fill_value=n)
    parts = take(x, at, along, mode="clip")
    inside = reshape(lt(at, n), tuple([at.size if d == along else 1 for d in range(x.ndim)]))
    filling = as_value(fill_value, "compress", "fill_value")
    return choose_by(inside, parts, convert(filling, x.dtype))


def _compress_host(x: np.ndarray, *, condition: np.ndarray, axis: int) -> np.ndarray:
    return np.compress(condition, x, axis)


@eager(_compress_host, ANY)
def _compress(x: Array, *, condition: np.ndarray, axis: int) -> Array:
    return take(x, np.flatnonzero(condition).astype(np.int32), axis, mode="clip")


def trim_zeros(filt: ArrayLike, trim: str = "fb", axis: Axes = None) -> Array:
    """Trim the zeros at the front and the back of an array.

    Args:
        filt: an array; not a traced one, since the shape of the result depends on its values.
        trim: which ends to trim, ``"f"``, ``"b"`` or both.
        axis: the axes to trim along, all by default.

    Returns:
        The part between the zeros, of the dtype of ``filt``.

    Raises:
        ValueError: ``trim`` is something else, or an axis is out of bounds.
        TracedValueError: ``filt`` is traced.

    As NumPy's ``trim_zeros``.

    >>> import stretto.numpy as snp
    >>> snp.trim_zeros(snp.array([0, 0, 1, 2, 0]))
    Array([1, 2], dtype=int32)
    """
    ends = trim.lower() if isinstance(trim, str) else ""
    if not ends or set(ends) - {"f", "b"}:
        raise ValueError(f"trim_zeros: trim must be 'f', 'b' or 'fb', got {trim!r}")
    x = as_value(filt, "trim_zeros", "filt")
    known = concrete_of(x)
    if known is None:
        raise TracedValueError(
            f"trim_zeros: the shape of the result depends on values, but this {x.type} is traced: "
            f"{x.origin()}. Trim outside, or slice with bounds that are known"
        )
    places = np.argwhere(known)
    for d in canonical_axes(axis, x.ndim, "trim_zeros"):
        if not len(places):
            x = ops.slice_in_dim(x, 0, 0, axis=d)
            continue
        first = int(places[:, d].min()) if "f" in ends else 0
        last = int(places[:, d].max()) + 1 if "b" in ends else None
        x = ops.slice_in_dim(x, first, last, axis=d)
    return x
