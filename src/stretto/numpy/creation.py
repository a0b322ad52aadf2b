"""Arrays from numbers, sequences, shapes and ranges.

Next, read ``ranges``.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import shown, sizes_of
from stretto._engine.core.interpreter import (
    Tracer,
    Value,
    as_value,
    refuse_masked,
    state,
    type_of,
)
from stretto._engine.core.types import array_type, kind_of, promote, scalar_dtype
from stretto._engine.ops.broadcast import broadcast_to, reshape
from stretto._engine.ops.convert import convert
from stretto._engine.ops.shape import concatenate
from stretto._engine.runtime.array import Array
from stretto._engine.runtime.dlpack import take
from stretto._engine.runtime.eager import EAGER
from stretto.numpy.arguments import refuse_device
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.quick import splat

__all__ = [
    "array",
    "asanyarray",
    "asarray",
    "ascontiguousarray",
    "copy",
    "empty",
    "empty_like",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "zeros",
    "zeros_like",
]

PYTHON = (bool, int, float, complex)
_ZERO = np.int8(0)


# From numbers and sequences


def array(
    object: Any,
    dtype: Any = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Any = None,
    out_sharding: None = None,
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
    refuse_device("array", device, out_sharding)
    if order not in (None, "C", "K", "A"):
        raise NotImplementedError(f"array: order must be 'C' or 'K'; got {order!r}")
    x = _make(object, dtype, "array")
    if copy and x is object:
        x = _copied(x)
    return reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x


def asarray(
    a: Any,
    dtype: Any = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Any = None,
    out_sharding: None = None,
) -> Any:
    """As ``array``, but an array that already is as asked is given back itself.

    Takes whatever has ``__array__``, ``__dlpack__`` or Python's buffer protocol too, and, as
    ``array`` does, ranges and other sequences.

    A NumPy array's memory is copied, since others can write it. Raises ``ValueError`` where
    ``copy=False`` and a copy is needed.

    >>> import stretto.numpy as snp
    >>> x = snp.asarray([1.0, 2.0])
    >>> snp.asarray(x) is x
    True
    """
    refuse_device("asarray", device, out_sharding)
    x = _make(a, dtype, "asarray")
    if x is a:
        return _copied(x) if copy else x
    if copy is False and not isinstance(a, PYTHON):
        raise ValueError(f"asarray: {type(a).__name__} to {x.type} needs a copy, and copy=False")
    return x


asanyarray = asarray


def ascontiguousarray(a: Any, dtype: Any = None) -> Any:
    """As ``asarray``, with at least one axis; all arrays are contiguous.

    >>> import stretto.numpy as snp
    >>> snp.ascontiguousarray(3.0).shape
    (1,)
    """
    return array(a, dtype, copy=False, ndmin=1)


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
    if type(x) not in PYTHON and not isinstance(x, (np.ndarray, np.generic)):
        x = _shared(x)
        if _is_sequence(type(x)):
            return _from_sequence(_lists(x), wanted, who)
    if wanted is None:
        return as_value(x, who, "object")
    if type(x) in PYTHON:
        return Array(cast(x, wanted, who), array_type((), wanted))
    if isinstance(x, (np.ndarray, np.generic)):
        if x.__class__ is not np.ndarray:
            refuse_masked(x, who, "object")
        kind_of(x.dtype)
        host = np.array(x, order="C", copy=True, subok=False)
        if host.dtype == wanted:
            return Array(host, array_type(host.shape, wanted))
        return _converted(Array(host, array_type(host.shape, host.dtype)), wanted)
    return _converted(as_value(x, who, "object"), wanted)


def listed(x: Any, who: str, argument: str) -> Any:
    """As ``as_value``, for functions that take nested lists too, as NumPy's and JAX's do."""
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, None, who)
    return as_value(x, who, argument)


def _shared(x: Any) -> Any:
    """NumPy's array of what has DLPack or the buffer protocol alone; anything else as it is."""
    if hasattr(x, "__array__") or hasattr(x, "__stretto_array__"):
        return x
    if hasattr(x, "__dlpack__"):
        return take(x, True)
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        return x


def _converted(x: Any, dtype: np.dtype) -> Any:
    return convert(x, dtype, x.weak_type and dtype == x.dtype)


def cast(x: Any, dtype: np.dtype, who: str) -> np.ndarray:
    """NumPy's array of numbers in this dtype; truncates floats, refuses integers out of range."""
    try:
        if kind_of(dtype) in ("int", "uint") and dtype.kind not in "iu":  # int4 and int2
            return np.asarray(x, np.int64).astype(dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(x, dtype)
    except OverflowError as error:
        what = str(error)
        if isinstance(x, int):
            what = f"the Python integer {shown(x)} does not fit in {dtype.name}"
        raise OverflowError(f"{who}: {what}") from None
    except TypeError:
        return np.real(x).astype(dtype)  # complex numbers to real ones, as XLA does


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
    if classes.issubset(PYTHON):
        return _from_numbers(x, classes, wanted, who)
    if any(map(_is_sequence, classes)):
        return _from_sequence(_lists(x), wanted, who)
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
    return stacked(_rebuilt(x, pending), who)


def _is_sequence(cls: type) -> bool:
    """Whether its instances are sequences, such as ranges, that NumPy reads as it reads lists."""
    if issubclass(cls, (Value, np.ndarray, np.generic, str, bytes, Mapping)):
        return False
    own = ("__array__", "__stretto_array__", "__dlpack__")
    return all(hasattr(cls, name) for name in ("__len__", "__getitem__")) and not any(
        hasattr(cls, name) for name in own
    )


def _lists(x: Any) -> Any:
    """Nested sequences of any classes as lists."""
    if isinstance(x, (list, tuple)) or _is_sequence(type(x)):
        return [_lists(element) for element in x]
    return x


def _leaf(x: Any, who: str) -> Any:
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "OSUMmV":
        kind_of(x.dtype)  # refuses what is not numeric
    return as_value(x, who, "an element")


def _rebuilt(x: Any, leaves: Iterator[Any]) -> Any:
    """The nested sequences with other leaves."""
    if isinstance(x, (list, tuple)):
        return [_rebuilt(element, leaves) for element in x]
    return next(leaves)


def stacked(x: Any, who: str) -> Any:
    if not isinstance(x, list):
        return x
    parts = [stacked(element, who) for element in x]
    if len({p.shape for p in parts}) > 1:
        raise _ragged(who)
    return concatenate([reshape(p, (1, *p.shape)) for p in parts], 0)


def _ragged(who: str) -> ValueError:
    return ValueError(f"{who}: the sequences differ in length, so they are no array; pad them")


def _from_numbers(x: Any, classes: set[type], wanted: np.dtype | None, who: str) -> Any:
    """The array of nested sequences of Python numbers."""
    if wanted is None:
        widest = max(classes, key=PYTHON.index) if classes else float
        wanted = scalar_dtype(widest)
    try:
        host = cast(x, wanted, who)
    except ValueError:
        raise _ragged(who) from None
    return Array(host, array_type(host.shape, wanted))


# Of one element


def shape_of(shape: Any, who: str) -> tuple[int, ...]:
    """A shape given as an integer or a sequence of them; traced ones are refused in words."""
    if shape.__class__ is int:
        shape = (shape,)
    given: Any = shape if shape.__class__ is tuple or np.ndim(shape) else (shape,)
    return sizes_of(given, who)


def _filled(shape: tuple[int, ...], element: Any, dtype: np.dtype, weak: bool = False) -> Any:
    """The array that is one element; at rest in memory of its own, which is quicker to use."""
    if state.interpreter is EAGER:
        host = np.zeros(shape, dtype) if element is _ZERO else np.full(shape, element, dtype)
        return Array(host, array_type(shape, dtype, weak))
    return splat(np.asarray(element).astype(dtype), array_type(shape, dtype, weak))


def zeros(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: None = None) -> Any:
    """An array of this shape filled with 0.

    >>> import stretto.numpy as snp
    >>> snp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    refuse_device("zeros", device, out_sharding)
    return _filled(shape_of(shape, "zeros"), _ZERO, as_dtype(float if dtype is None else dtype))


def ones(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: None = None) -> Any:
    """An array of this shape filled with 1.

    >>> import stretto.numpy as snp
    >>> snp.ones(2, dtype=int)
    Array([1, 1], dtype=int32)
    """
    refuse_device("ones", device, out_sharding)
    return _filled(shape_of(shape, "ones"), 1, as_dtype(float if dtype is None else dtype))


def empty(shape: Any, dtype: Any = None, *, device: Any = None, out_sharding: None = None) -> Any:
    """An array of this shape; its elements are 0."""
    refuse_device("empty", device, out_sharding)
    return _filled(shape_of(shape, "empty"), _ZERO, as_dtype(float if dtype is None else dtype))


def full(
    shape: Any,
    fill_value: Any,
    dtype: Any = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Any:
    """An array of this shape, ``fill_value`` broadcast to it.

    >>> import stretto.numpy as snp
    >>> snp.full((2,), snp.float32(0.5))
    Array([0.5, 0.5], dtype=float32)
    """
    refuse_device("full", device, out_sharding)
    sizes = shape_of(shape, "full")
    wanted = None if dtype is None else as_dtype(dtype)
    if type(fill_value) in PYTHON:
        weak = wanted is None and type(fill_value) is not bool
        wanted = scalar_dtype(type(fill_value)) if wanted is None else wanted
        return _filled(sizes, cast(fill_value, wanted, "full")[()], wanted, weak)
    x = as_value(fill_value, "full", "fill_value")
    return broadcast_to(x if wanted is None else convert(x, wanted), sizes)


def _like(a: Any, element: Any, dtype: Any, shape: Any, who: str, argument: str = "a") -> Any:
    type = type_of(a, who, argument)
    weak = dtype is None and type.weak_type
    wanted = type.dtype if dtype is None else as_dtype(dtype)
    sizes = type.shape if shape is None else shape_of(shape, who)
    return _filled(sizes, element, wanted, weak)


def zeros_like(
    a: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Any:
    """Zeros of the shape and dtype of ``a``, unless others are given.

    Of ``a`` only these matter, here and in the functions like it: it may be a ``ShapeDtypeStruct``.

    >>> import stretto.numpy as snp
    >>> snp.zeros_like(snp.array([1.0, 2.0]))
    Array([0., 0.], dtype=float32)
    """
    refuse_device("zeros_like", device, out_sharding)
    return _like(a, _ZERO, dtype, shape, "zeros_like")


def ones_like(
    a: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Any:
    """Ones of the shape and dtype of ``a``, unless others are given."""
    refuse_device("ones_like", device, out_sharding)
    return _like(a, 1, dtype, shape, "ones_like")


def empty_like(prototype: Any, dtype: Any = None, shape: Any = None, *, device: Any = None) -> Any:
    """Zeros of the shape and dtype of ``prototype``, unless others are given."""
    refuse_device("empty_like", device)
    return _like(prototype, _ZERO, dtype, shape, "empty_like", "prototype")


def full_like(
    a: Any,
    fill_value: Any,
    dtype: Any = None,
    shape: Any = None,
    *,
    device: Any = None,
    out_sharding: None = None,
) -> Any:
    """``fill_value`` in the shape and dtype of ``a``, unless others are given.

    >>> import stretto.numpy as snp
    >>> snp.full_like(snp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    refuse_device("full_like", device, out_sharding)
    like = type_of(a, "full_like", "a")
    weak = dtype is None and like.weak_type
    wanted = like.dtype if dtype is None else as_dtype(dtype)
    sizes = like.shape if shape is None else shape_of(shape, "full_like")
    if type(fill_value) in PYTHON:
        element = cast(fill_value, wanted, "full_like")[()]
        return _filled(sizes, element, wanted, weak)
    value = as_value(fill_value, "full_like", "fill_value")
    return broadcast_to(convert(value, wanted, weak), sizes)
