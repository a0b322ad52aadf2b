"""Arrays from numbers, sequences, shapes and ranges.

Layer 7 (numpy). Next, read ``arithmetic``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from stretto.core.interpreter import Tracer, Value, as_value, state
from stretto.core.types import (
    array_type,
    canonical_dtype,
    default_dtype,
    is_complex,
    is_inexact,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.quick import splat
from stretto.ops.broadcast import broadcast_in_dim, broadcast_to, canonical_axis, move_axis, reshape
from stretto.ops.comparison import eq, ge, select, zeros_like as zeros_of
from stretto.ops.convert import convert
from stretto.ops.elementwise import broadcast_shapes, promote_values
from stretto.ops.shape import broadcasted_iota, concatenate, pad, slice_
from stretto.runtime.array import Array
from stretto.runtime.eager import EAGER

__all__ = [
    "arange",
    "array",
    "asarray",
    "copy",
    "diag",
    "diagflat",
    "empty",
    "empty_like",
    "eye",
    "full",
    "full_like",
    "geomspace",
    "identity",
    "indices",
    "linspace",
    "logspace",
    "meshgrid",
    "ones",
    "ones_like",
    "tri",
    "tril",
    "triu",
    "zeros",
    "zeros_like",
]

_PYTHON = (bool, int, float, complex)


# From numbers and sequences


def array(
    object: Any, dtype: Any = None, copy: bool = True, order: str | None = None, ndmin: int = 0
) -> Any:
    """An array of a number, an array, or nested sequences of them, in ``dtype``.

    Without ``dtype``, numbers get the default dtype of their kind (32 bits unless ``enable_x64``);
    arrays among them promote. Memory that others can write is copied. Raises ``ValueError`` for
    sequences of unequal length, ``OverflowError`` for integers that do not fit.

    >>> import stretto.numpy as snp
    >>> snp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> snp.array([1, 2], dtype=snp.bfloat16)
    Array([1, 2], dtype=bfloat16)
    """
    if order not in (None, "C", "K", "A"):
        raise NotImplementedError(f"array: order must be 'C' or 'K'; got {order!r}")
    x = _make(object, dtype, "array")
    if copy and x is object:
        x = _copied(x)
    return reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def asarray(a: Any, dtype: Any = None, order: str | None = None, *, copy: bool | None = None) -> Any:
    """As ``array``, but an array that already is as asked is given back itself.

    A NumPy array's memory is copied, since others can write it. Raises ``ValueError`` where
    ``copy=False`` and a copy is needed.

    >>> import stretto.numpy as snp
    >>> x = snp.asarray([1.0, 2.0])
    >>> snp.asarray(x) is x
    True
    """
    x = _make(a, dtype, "asarray")
    if x is a:
        return _copied(x) if copy else x
    if copy is False and not isinstance(a, _PYTHON):
        raise ValueError(f"asarray: {type(a).__name__} to {x.type} needs a copy, and copy=False")
    return x


def copy(a: Any, order: str | None = None) -> Any:
    """An array of its own with the elements of ``a``.

    >>> import stretto.numpy as snp
    >>> snp.copy(snp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return _copied(as_value(a, "copy", "a"))


def _copied(x: Any) -> Any:
    return x if isinstance(x, Tracer) else Array(np.array(x.to_host()), x.type)


def _make(x: Any, dtype: Any, who: str) -> Any:
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(x, Value):
        return x if wanted is None else _converted(x, wanted)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, wanted, who)
    if wanted is None:
        return as_value(x, who, "object")
    if type(x) in _PYTHON:
        return Array(_cast(x, wanted, who), array_type((), wanted))
    if isinstance(x, (np.ndarray, np.generic)):
        kind_of(x.dtype)
        host = np.array(x, order="C", copy=True, subok=False)
        if host.dtype == wanted:
            return Array(host, array_type(host.shape, wanted))
        return _converted(Array(host, array_type(host.shape, host.dtype)), wanted)
    return _converted(as_value(x, who, "object"), wanted)


def _converted(x: Any, dtype: np.dtype) -> Any:
    return convert(x, dtype, x.weak_type and dtype == x.dtype)


def _cast(x: Any, dtype: np.dtype, who: str) -> np.ndarray:
    """NumPy's array of numbers in this dtype; truncates floats, refuses integers out of range."""
    try:
        if kind_of(dtype) in ("int", "uint") and dtype.kind not in "iu":  # int4 and int2
            return np.asarray(x, np.int64).astype(dtype)
        return np.array(x, dtype)
    except OverflowError as error:
        raise OverflowError(f"{who}: {error}") from None
    except TypeError:
        return np.asarray(x).astype(dtype)  # complex numbers to real ones, as XLA does


def _leaves(x: Any) -> Iterator[Any]:
    for element in x:
        if isinstance(element, (list, tuple)):
            yield from _leaves(element)
        else:
            yield element


def _from_sequence(x: Sequence[Any], wanted: np.dtype | None, who: str) -> Any:
    """The array of nested sequences of numbers and arrays."""
    leaves = list(_leaves(x))
    classes = set(map(type, leaves))
    if classes.issubset(_PYTHON):
        return _from_numbers(x, classes, wanted, who)
    values = [_leaf(leaf, who) for leaf in leaves]
    if wanted is None:
        wanted = promote([(v.type.dtype, v.type.weak_type) for v in values], who)[0]
    if not any(isinstance(v, Tracer) for v in values):
        try:
            hosts = iter([np.asarray(convert(v, wanted).to_host()) for v in values])
            host = np.array(_rebuilt(x, hosts), wanted)
        except ValueError:
            raise _ragged(who) from None
        return Array(host, array_type(host.shape, wanted))
    pending = iter([convert(v, wanted) for v in values])
    return _stacked(_rebuilt(x, pending), who)


def _leaf(x: Any, who: str) -> Any:
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "OSUMmV":
        kind_of(x.dtype)  # refuses what is not numeric
    return as_value(x, who, "an element")


def _rebuilt(x: Any, leaves: Iterator[Any]) -> Any:
    """The nested sequences with other leaves."""
    if isinstance(x, (list, tuple)):
        return [_rebuilt(element, leaves) for element in x]
    return next(leaves)


def _stacked(x: Any, who: str) -> Any:
    if not isinstance(x, list):
        return x
    parts = [_stacked(element, who) for element in x]
    if len({p.shape for p in parts}) > 1:
        raise _ragged(who)
    return concatenate([reshape(p, (1, *p.shape)) for p in parts], 0)


def _ragged(who: str) -> ValueError:
    return ValueError(f"{who}: the sequences differ in length, so they are no array; pad them")


def _from_numbers(x: Any, classes: set[type], wanted: np.dtype | None, who: str) -> Any:
    """The array of nested sequences of Python numbers."""
    if wanted is None:
        widest = max(classes, key=_PYTHON.index) if classes else float
        wanted = scalar_dtype(widest)
    try:
        host = _cast(x, wanted, who)
    except ValueError:
        raise _ragged(who) from None
    return Array(host, array_type(host.shape, wanted))


# Of one element


def shape_of(shape: Any, who: str) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of them; traced ones are refused in words."""
    if isinstance(shape, (np.ndarray, Value)) and shape.ndim:
        shape = tuple(shape)
    given = shape if isinstance(shape, (tuple, list)) else (shape,)
    sizes = tuple([operator.index(n) for n in given])
    if any(n < 0 for n in sizes):
        raise ValueError(f"{who}: sizes must not be negative, got {sizes}")
    return sizes


def _filled(shape: tuple[int, ...], element: Any, dtype: np.dtype, weak: bool = False) -> Any:
    """The array that is one element; where nothing is traced in memory of its own, which is quick."""
    if state.interpreter is EAGER:
        host = np.zeros(shape, dtype) if element == 0 else np.full(shape, element, dtype)
        return Array(host, array_type(shape, dtype, weak))
    return splat(np.asarray(element).astype(dtype), array_type(shape, dtype, weak))


def zeros(shape: Any, dtype: Any = float) -> Any:
    """An array of this shape filled with 0.

    >>> import stretto.numpy as snp
    >>> snp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    return _filled(shape_of(shape, "zeros"), 0, as_dtype(float if dtype is None else dtype))


def ones(shape: Any, dtype: Any = float) -> Any:
    """An array of this shape filled with 1.

    >>> import stretto.numpy as snp
    >>> snp.ones(2, dtype=int)
    Array([1, 1], dtype=int32)
    """
    return _filled(shape_of(shape, "ones"), 1, as_dtype(float if dtype is None else dtype))


def empty(shape: Any, dtype: Any = float) -> Any:
    """An array of this shape; its elements are 0."""
    return _filled(shape_of(shape, "empty"), 0, as_dtype(float if dtype is None else dtype))


def full(shape: Any, fill_value: Any, dtype: Any = None) -> Any:
    """An array of this shape, ``fill_value`` broadcast to it.

    >>> import stretto.numpy as snp
    >>> snp.full((2,), snp.array(0.5))
    Array([0.5, 0.5], dtype=float32)
    """
    sizes = shape_of(shape, "full")
    wanted = None if dtype is None else as_dtype(dtype)
    if type(fill_value) in _PYTHON:
        weak = wanted is None and type(fill_value) is not bool
        wanted = scalar_dtype(type(fill_value)) if wanted is None else wanted
        return _filled(sizes, _cast(fill_value, wanted, "full")[()], wanted, weak)
    x = as_value(fill_value, "full", "fill_value")
    return broadcast_to(x if wanted is None else convert(x, wanted), sizes)


def _like(a: Any, element: Any, dtype: Any, shape: Any, who: str) -> Any:
    x = as_value(a, who, "a")
    weak = dtype is None and x.weak_type
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    sizes = x.shape if shape is None else shape_of(shape, who)
    return _filled(sizes, element, wanted, weak)


def zeros_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Zeros of the shape and dtype of ``a``, unless others are given.

    >>> import stretto.numpy as snp
    >>> snp.zeros_like(snp.array([1.0, 2.0]))
    Array([0., 0.], dtype=float32)
    """
    return _like(a, 0, dtype, shape, "zeros_like")


def ones_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """Ones of the shape and dtype of ``a``, unless others are given."""
    return _like(a, 1, dtype, shape, "ones_like")


def empty_like(a: Any, dtype: Any = None, shape: Any = None) -> Any:
    """An array of the shape and dtype of ``a``, unless others are given; its elements are 0."""
    return _like(a, 0, dtype, shape, "empty_like")


def full_like(a: Any, fill_value: Any, dtype: Any = None, shape: Any = None) -> Any:
    """``fill_value`` in the shape and dtype of ``a``, unless others are given.

    >>> import stretto.numpy as snp
    >>> snp.full_like(snp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    x = as_value(a, "full_like", "a")
    wanted = x.dtype if dtype is None else as_dtype(dtype)
    sizes = x.shape if shape is None else shape_of(shape, "full_like")
    if type(fill_value) in _PYTHON:
        element = _cast(fill_value, wanted, "full_like")[()]
        return _filled(sizes, element, wanted, dtype is None and x.weak_type)
    value = as_value(fill_value, "full_like", "fill_value")
    return broadcast_to(convert(value, wanted, dtype is None and x.weak_type), sizes)


# Ranges


def _number(x: Any, who: str) -> Any:
    """A static Python number; a traced one is refused, with the way out."""
    if isinstance(x, Value):
        return operator.index(x) if x.type.kind in ("int", "uint") else float(x)
    return x.item() if isinstance(x, (np.generic, np.ndarray)) else x


def arange(start: Any, stop: Any = None, step: Any = None, dtype: Any = None) -> Any:
    """The numbers from ``start`` (0) up to, not including, ``stop``, ``step`` (1) apart.

    The bounds must be known while tracing, since the length depends on them.

    >>> import stretto.numpy as snp
    >>> snp.arange(3), snp.arange(1, 2, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    given = (start, stop, step)
    numbers = [None if x is None else _number(x, "arange") for x in given]
    if dtype is None:
        wanted = promote([_type_of(x) for x in given if x is not None], "arange")[0]
    else:
        wanted = as_dtype(dtype)
    first, last, by = numbers
    if last is None:
        first, last = 0, first
    by = 1 if by is None else by
    if by == 0:
        raise ValueError("arange: step must not be zero")
    whole = all(isinstance(n, int) for n in (first, last, by))
    if state.interpreter is not EAGER and whole and first == 0 and by == 1:
        return broadcasted_iota(wanted, (max(last, 0),), 0)
    host = np.arange(first, last, by)
    if kind_of(wanted) in ("int", "uint") and wanted.kind in "iu" and host.size:
        _cast([int(host[0]), int(host[-1])], wanted, "arange")
    return Array(host.astype(wanted), array_type(host.shape, wanted))


def _type_of(x: Any) -> tuple[np.dtype, bool]:
    if isinstance(x, Value):
        return x.type.dtype, x.type.weak_type
    if isinstance(x, (np.generic, np.ndarray)):
        return canonical_dtype(x.dtype), False
    return scalar_dtype(type(x)), True


def linspace(
    start: Any,
    stop: Any,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: Any = None,
    axis: int = 0,
) -> Any:
    """``num`` evenly spaced numbers from ``start`` to ``stop``, which is among them if ``endpoint``.

    ``start`` and ``stop`` may be arrays, and traced: the numbers lie along ``axis``. With
    ``retstep`` a tuple of the array and the spacing.

    >>> import stretto.numpy as snp
    >>> snp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    num = operator.index(num)
    if num < 0:
        raise ValueError(f"linspace: num must not be negative, got {num}")
    gaps = num - 1 if endpoint else num
    low, high = promote_values("linspace", start, stop, inexact=True)
    wanted = low.dtype if dtype is None else as_dtype(dtype)
    if type(start) in _PYTHON and type(stop) in _PYTHON:
        host = np.linspace(start, stop, num, endpoint)
        host = np.floor(host) if kind_of(wanted) in ("int", "uint") else host
        out = Array(host.astype(wanted), array_type(host.shape, wanted))
    else:
        out = _spaced(low, high, num, gaps, endpoint)
        if kind_of(wanted) in ("int", "uint"):
            out = out // 1
        out = move_axis(convert(out, wanted), 0, canonical_axis(axis, out.ndim, "linspace"))
    if not retstep:
        return out
    step = (high - low) / gaps if gaps else high * math.nan
    return out, convert(step, low.dtype)


def _spaced(low: Any, high: Any, num: int, gaps: int, endpoint: bool) -> Any:
    """low + (high - low) i / gaps along a new first axis; the last one ``high`` itself."""
    shape = (num, *low.shape)
    index = broadcasted_iota(np.dtype(np.int32), shape, 0)
    part = convert(index, low.dtype) * (1 / gaps if gaps else 0.0)
    low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    out = low * (1 - part) + high * part
    return select(eq(index, num - 1), high, out) if endpoint and num > 1 else out


def logspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, base: Any = 10.0,
    dtype: Any = None, axis: int = 0,
) -> Any:  # fmt: skip
    """``base`` to the power of ``num`` evenly spaced numbers.

    >>> import stretto.numpy as snp
    >>> snp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    out = as_value(base, "logspace", "base") ** linspace(start, stop, num, endpoint, axis=axis)
    return out if dtype is None else convert(out, as_dtype(dtype))


def geomspace(
    start: Any, stop: Any, num: int = 50, endpoint: bool = True, dtype: Any = None, axis: int = 0
) -> Any:
    """``num`` numbers from ``start`` to ``stop``, each the same multiple of the one before.

    >>> import stretto.numpy as snp
    >>> snp.geomspace(1, 8, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    low, high = promote_values("geomspace", start, stop, inexact=True)
    part = linspace(0.0, 1.0, num, endpoint)
    part = reshape(part, (num, *(1,) * low.ndim))
    out = move_axis(low * (high / low) ** part, 0, canonical_axis(axis, low.ndim + 1, "geomspace"))
    return convert(out, low.dtype if dtype is None else as_dtype(dtype))


def indices(dimensions: Sequence[int], dtype: Any = int, sparse: bool = False) -> Any:
    """For each axis of a grid, the index along it, stacked; in open form a tuple if ``sparse``.

    >>> import stretto.numpy as snp
    >>> snp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    shape, wanted = shape_of(dimensions, "indices"), as_dtype(dtype)
    if sparse:
        places = [tuple(n if d == i else 1 for d, n in enumerate(shape)) for i in range(len(shape))]
        return tuple(broadcasted_iota(wanted, place, i) for i, place in enumerate(places))
    if not shape:
        return zeros((0,), wanted)
    return _stacked([broadcasted_iota(wanted, shape, i) for i in range(len(shape))], "indices")


def meshgrid(
    *xi: Any, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Any]:
    """Grids of coordinates of rank-1 arrays, one grid an array; ``"ij"`` puts the first axis first.

    >>> import stretto.numpy as snp
    >>> snp.meshgrid(snp.array([1, 2]), snp.array([3, 4]))[0]
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    del copy  # arrays are immutable
    if indexing not in ("xy", "ij"):
        raise ValueError(f"meshgrid: indexing must be 'xy' or 'ij'; got {indexing!r}")
    values = [as_value(x, "meshgrid", f"array {i}") for i, x in enumerate(xi)]
    if any(v.ndim > 1 for v in values):
        raise ValueError(f"meshgrid: expected arrays of rank 1, got {[v.type for v in values]}")
    places = list(range(len(values)))
    if indexing == "xy" and len(values) > 1:
        places[:2] = [1, 0]
    shape = [1] * len(values)
    for place, v in zip(places, values, strict=True):
        shape[place] = v.size
    out = []
    for place, v in zip(places, values, strict=True):
        size = [1 if sparse and d != place else n for d, n in enumerate(shape)]
        out.append(broadcast_in_dim(reshape(v, (v.size,)), size, (place,)))
    return out


# Matrices


def _below(shape: tuple[int, ...], k: int) -> Any:
    """Whether each element of a matrix lies on or below the diagonal ``k`` above the main one."""
    row, column = (broadcasted_iota(np.dtype(np.int32), shape, i) for i in (0, 1))
    return ge(row + operator.index(k), column)


def tri(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803
    """Ones on and below the diagonal ``k`` above the main one, zeros elsewhere.

    >>> import stretto.numpy as snp
    >>> snp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    shape = shape_of((N, N if M is None else M), "tri")
    return convert(_below(shape, k), as_dtype(float if dtype is None else dtype))


def _matrices(m: Any, who: str) -> Any:
    x = as_value(m, who, "m")
    if x.ndim < 2:
        raise ValueError(f"{who}: expected an array of rank 2 or more, got {x.type}")
    return x


def tril(m: Any, k: int = 0) -> Any:
    """The matrices ``m`` with zeros above the diagonal ``k``.

    >>> import stretto.numpy as snp
    >>> snp.tril(snp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    x = _matrices(m, "tril")
    return select(broadcast_to(_below(x.shape[-2:], k), x.shape), x, zeros_of(x))


def triu(m: Any, k: int = 0) -> Any:
    """The matrices ``m`` with zeros below the diagonal ``k``.

    >>> import stretto.numpy as snp
    >>> snp.triu(snp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = _matrices(m, "triu")
    return select(broadcast_to(_below(x.shape[-2:], k - 1), x.shape), zeros_of(x), x)


def eye(N: int, M: int | None = None, k: int = 0, dtype: Any = float) -> Any:  # noqa: N803
    """Ones on the diagonal ``k`` above the main one, zeros elsewhere.

    >>> import stretto.numpy as snp
    >>> snp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    shape = shape_of((N, N if M is None else M), "eye")
    row, column = (broadcasted_iota(np.dtype(np.int32), shape, i) for i in (0, 1))
    return convert(eq(row + operator.index(k), column), as_dtype(float if dtype is None else dtype))


def identity(n: int, dtype: Any = float) -> Any:
    """The ``n`` by ``n`` matrix with ones on the diagonal."""
    return eye(n, dtype=dtype)


def diag(v: Any, k: int = 0) -> Any:
    """The matrix with ``v`` on its diagonal ``k``; of a matrix, that diagonal.

    >>> import stretto.numpy as snp
    >>> snp.diag(snp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x = as_value(v, "diag", "v")
    if x.ndim == 2:
        return diagonal_of(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: expected an array of rank 1 or 2, got {x.type}")
    n = x.size + abs(k)
    if x.size == 0:
        return zeros((n, n), x.dtype)
    # In row-major order the diagonal's elements are n + 1 apart.
    first = k if k >= 0 else -k * n
    last = first + (x.size - 1) * (n + 1)
    flat = pad(x, zeros_of(x[0]), [(first, n * n - 1 - last, n)])
    return reshape(flat, (n, n))


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the elements of ``v``, in row-major order, on its diagonal ``k``."""
    return diag(reshape(as_value(v, "diagflat", "v"), (-1,)), k)


def diagonal_of(x: Any, k: int) -> Any:
    """The diagonal ``k`` of the matrices in the last two axes, along a last axis."""
    *outer, n, m = x.shape
    size = max(0, min(n, m - k) if k >= 0 else min(n + k, m))
    if size == 0 or x.size == 0:
        return zeros((*outer, size), x.dtype)
    # In row-major order the diagonal's elements are m + 1 apart.
    first = k if k >= 0 else -k * m
    flat = reshape(x, (*outer, n * m))
    stop = first + (size - 1) * (m + 1) + 1
    lead = (0,) * len(outer)
    return slice_(flat, (*lead, first), (*outer, stop), (*(1 for _ in outer), m + 1))
