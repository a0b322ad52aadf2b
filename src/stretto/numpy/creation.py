"""Arrays from numbers, sequences and other arrays; evenly spaced numbers, and grids of them."""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer, shown, sizes_of
from stretto._engine.core.interpreter import (
    ARRAY_METHODS,
    Tracer,
    Value,
    as_value,
    gives_array,
    refuse_masked,
    state,
)
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import (
    ArrayType,
    array_type,
    canonical_dtype,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto._engine.core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike, Tree
from stretto._engine.eager.interpreter import EAGER, at_home, at_rest
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import eq, full, select
from stretto._engine.ops.convert import convert, rounded_once, value_in
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, expand_dims, move_axis, reshape
from stretto._engine.ops.shape import concatenate
from stretto._engine.xla.array import Array, import_dlpack
from stretto.numpy.arguments import put_result
from stretto.numpy.dtypes import as_dtype

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["arange", "array", "asanyarray", "asarray", "ascontiguousarray", "copy", "geomspace",
           "indices", "linspace", "logspace", "meshgrid"]  # fmt: skip

PYTHON = (bool, int, float, complex)


# From numbers and sequences


def array(
    object: object,
    dtype: DTypeLike | None = None,
    *,
    copy: bool = True,
    order: str | None = "K",
    ndmin: int = 0,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of a number, an array, or nested sequences of them.

    Args:
        object: a number, an array of any library, or nested sequences of these, all of one length
            at each depth.
        dtype: the dtype; by default that of the arrays, promoted, and for numbers the default dtype
            of their kind, 32 bits unless ``enable_x64`` is set. Integers that do not fit are
            refused, NumPy's too; ``astype`` keeps their low bits.
        copy: whether an array is copied; memory that others can write always is.
        order: the order in memory; there is only one: ``"C"``, ``"K"``, ``"A"`` and ``None``
            all mean it.
        ndmin: the least rank; axes of size 1 are put in front.
        device: the device, its name, or a sharding; by default where ``object`` is.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array, of the shape of ``object``.

    Raises:
        ValueError: the sequences differ in length, or there is no such device; or the result cannot
            be split as ``out_sharding`` says.
        OverflowError: an integer does not fit in the dtype.
        TypeError: an element is not a number.
        NotImplementedError: ``order`` is another.

    As NumPy's ``array``.

    >>> import stretto.numpy as snp
    >>> snp.array([[1, 2], [3, 4]])
    Array([[1, 2],
           [3, 4]], dtype=int32)
    >>> snp.array([1, 2], dtype=snp.bfloat16)
    Array([1, 2], dtype=bfloat16)
    """
    if device is not None or out_sharding is not None:
        result = array(object, dtype, copy=copy, order=order, ndmin=ndmin)
        return put_result(result, device, out_sharding, "array")
    if order not in (None, "C", "K", "A"):
        raise NotImplementedError(f"array: order must be 'C' or 'K'; got {order!r}")
    x = _make(object, dtype, "array")
    if copy and x is object:
        x = _copied(x)
    x = reshape(x, (1,) * (ndmin - x.ndim) + x.shape) if x.ndim < ndmin else x
    return x if state.interpreter is EAGER else at_home(x)


def asarray(
    a: object,
    dtype: DTypeLike | None = None,
    order: str | None = None,
    *,
    copy: bool | None = None,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array; an array that already has the dtype is returned as it is.

    Args:
        a: as for ``array``; also whatever has ``__array__``, ``__dlpack__`` or Python's buffer
            protocol, and ranges and other sequences. A NumPy array's memory is copied, since others
            can write it.
        dtype: the dtype, by default as for ``array``.
        order: ignored: there is one order in memory.
        copy: ``True`` always copies, ``False`` never does; by default where needed.
        device: the device, its name, or a sharding; by default where ``a`` is.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array, of the shape of ``a``.

    Raises:
        ValueError: ``copy=False`` and a copy is needed, the sequences differ in length, or there is
            no such device; or the result cannot be split as ``out_sharding`` says.
        OverflowError: an integer does not fit in the dtype.
        TypeError: an element is not a number.

    As the array API standard's ``asarray``.

    >>> import stretto.numpy as snp
    >>> x = snp.asarray([1.0, 2.0])
    >>> snp.asarray(x) is x
    True
    """
    if device is not None or out_sharding is not None:
        return put_result(asarray(a, dtype, order, copy=copy), device, out_sharding, "asarray")
    x = _make(a, dtype, "asarray")
    if x is a:
        return _copied(x) if copy else x
    if copy is False and not isinstance(a, PYTHON):
        raise ValueError(f"asarray: {type(a).__name__} to {x.type} needs a copy, and copy=False")
    return x if state.interpreter is EAGER else at_home(x)


asanyarray = asarray


def ascontiguousarray(a: object, dtype: DTypeLike | None = None) -> Array:
    """Make an array with at least one axis; all arrays are contiguous.

    Args:
        a: as for ``asarray``.
        dtype: the dtype, by default as for ``array``.

    Returns:
        The array; of shape (1,) for a number.

    Raises:
        ValueError: the sequences differ in length.
        TypeError: an element is not a number.

    As NumPy's ``ascontiguousarray``.

    >>> import stretto.numpy as snp
    >>> snp.ascontiguousarray(3.0).shape
    (1,)
    """
    x = _make(a, dtype, "ascontiguousarray")
    return x if x.ndim else reshape(x, (1,))


def copy(a: ArrayLike, order: str | None = None) -> Array:
    """Copy an array into memory of its own.

    Args:
        a: an array, or a number.
        order: ignored: there is one order in memory.

    Returns:
        The copy, of the shape and dtype of ``a``.

    Raises:
        TypeError: ``a`` is not an array or a number.

    As NumPy's ``copy``.

    >>> import stretto.numpy as snp
    >>> snp.copy(snp.array([1, 2]))
    Array([1, 2], dtype=int32)
    """
    return _copied(as_value(a, "copy", "a"))


def _copied(x: Array) -> Array:
    if x.__class__ is Array:
        return Array(np.array(x.to_host()), x.type)
    return x if isinstance(x, Tracer) else x.__copy__()  # where it is


def made(host: np.ndarray, type: ArrayType) -> Array:
    """Return the array that holds this NumPy array, on the default device."""
    x = Array(host, type)
    return x if state.interpreter is EAGER else at_home(x)


def _make(x: Tree, dtype: DTypeLike | None, caller: str) -> Array:
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(x, Value):
        value: Any = x
        return value if wanted is None else convert(value, wanted)
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, wanted, caller)
    if type(x) not in PYTHON and not isinstance(x, (np.ndarray, np.generic)):
        x = _shared(x)
        if _is_sequence(type(x)):
            return _from_sequence(_lists(x), wanted, caller)
    if wanted is None:
        return as_value(x, caller, "object")
    if type(x) in PYTHON:
        return Array(cast(x, wanted, caller), array_type((), wanted))
    if isinstance(x, (np.ndarray, np.generic)):
        if x.__class__ is not np.ndarray:
            refuse_masked(x, caller, "object")
        kind_of(x.dtype)
        if x.dtype.kind in "iu" and x.dtype != wanted:
            return value_in(x, wanted, caller, "object")
        host = np.array(x, order="C", copy=True, subok=False)
        if host.dtype == wanted:
            return Array(host, array_type(host.shape, wanted))
        return convert(Array(host, array_type(host.shape, host.dtype)), wanted)
    return convert(as_value(x, caller, "object"), wanted)


def listed(x: ArrayLike | Sequence[Any], caller: str, argument: str) -> Array:
    """Do as ``as_value``, for functions that also take nested lists, as NumPy's and JAX's do."""
    if isinstance(x, (list, tuple)):
        return _from_sequence(x, None, caller)
    return as_value(x, caller, argument)


def _shared(x: Tree) -> Tree:
    """Return the NumPy array of what only has DLPack or a buffer; anything else as it is."""
    if hasattr(x, "__array__") or gives_array(x):
        return x
    if hasattr(x, "__dlpack__"):
        return import_dlpack(x, True)
    try:
        return np.asarray(memoryview(x))
    except TypeError:
        return x


def cast(x: Tree, dtype: np.dtype, caller: str) -> np.ndarray:
    """Make NumPy's array of this dtype; truncate floats, refuse integers out of range."""
    try:
        if kind_of(dtype) in ("int", "uint") and dtype.kind not in "iu":  # int4 and int2
            return np.asarray(x, np.int64).astype(dtype)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.array(x, dtype)
    except OverflowError as error:
        what = str(error)
        if isinstance(x, int):
            what = f"the Python integer {shown(x)} does not fit in {dtype.name}"
        raise OverflowError(f"{caller}: {what}") from None
    except TypeError:
        return np.asarray(np.real(x)).astype(dtype)  # complex numbers to real ones, as XLA does


def _leaves(x: Tree) -> Iterator[Any]:
    for element in x:
        if isinstance(element, (list, tuple)):
            yield from _leaves(element)
        else:
            yield element


def _from_sequence(x: Tree, wanted: np.dtype | None, caller: str) -> Array:
    """Return the array of nested sequences of numbers and arrays."""
    leaves = list(_leaves(x))
    classes = set(map(type, leaves))
    if classes.issubset(PYTHON):
        return _from_numbers(x, classes, wanted, caller)
    if any(map(_is_sequence, classes)):
        return _from_sequence(_lists(x), wanted, caller)
    values = [_leaf(leaf, wanted, caller) for leaf in leaves]
    if wanted is None:
        wanted = promote([(v.type.dtype, v.type.weak_type) for v in values], caller)[0]
    values = [convert(v, wanted) for v in values]
    if any(isinstance(v, Tracer) for v in values):
        return stacked(_rebuilt(x, iter(values)), caller)
    try:
        host = np.array(_rebuilt(x, iter([np.asarray(v.to_host()) for v in values])), wanted)
    except ValueError:
        raise _ragged(caller) from None
    return Array(host, array_type(host.shape, wanted))


def _is_sequence(cls: type) -> bool:
    """Say whether its instances are sequences, such as ranges, that NumPy reads like lists."""
    if issubclass(cls, (Value, np.ndarray, np.generic, str, bytes, Mapping)):
        return False
    own = ("__array__", "__dlpack__", *ARRAY_METHODS)
    # Not ``hasattr``, which finds methods of a class's class, too: those of enumerations.
    has = lambda name: any([name in vars(base) for base in cls.__mro__])
    return has("__len__") and has("__getitem__") and not any(map(has, own))


def _lists(x: Tree) -> Tree:
    """Return nested sequences of any classes as lists."""
    if isinstance(x, (list, tuple)) or _is_sequence(type(x)):
        return [_lists(element) for element in x]
    return x


def _leaf(x: object, wanted: np.dtype | None, caller: str) -> Array:
    if isinstance(x, (np.ndarray, np.generic)) and x.dtype.kind in "OSUMmV":
        kind_of(x.dtype)  # refuses what is not numeric
    if wanted is None:
        return as_value(x, caller, "an element")
    return value_in(x, wanted, caller, "an element")


def _rebuilt(x: Tree, leaves: Iterator[Any]) -> Tree:
    """Return the nested sequences with other leaves."""
    if isinstance(x, (list, tuple)):
        return [_rebuilt(element, leaves) for element in x]
    return next(leaves)


def stacked(x: Tree, caller: str) -> Array:
    """Return nested lists of arrays as one array."""
    if not isinstance(x, list):
        return x
    parts = [stacked(element, caller) for element in x]
    if len({p.shape for p in parts}) > 1:
        raise _ragged(caller)
    return concatenate([reshape(p, (1, *p.shape)) for p in parts], 0)


def _ragged(caller: str) -> ValueError:
    return ValueError(f"{caller}: the sequences differ in length and so make no array; pad them")


def _from_numbers(x: Tree, classes: set[type], wanted: np.dtype | None, caller: str) -> Array:
    """Return the array of nested sequences of Python numbers."""
    if wanted is None:
        widest = max(classes, key=PYTHON.index) if classes else float
        wanted = scalar_dtype(widest)
    try:
        host = cast(x, wanted, caller)
    except ValueError:
        raise _ragged(caller) from None
    return Array(host, array_type(host.shape, wanted))


# Shapes


def broadcast_argument(x: Array, shape: tuple[int, ...], caller: str, argument: str) -> Array:
    """Broadcast a value to a shape; errors are in the caller's name."""
    try:
        return broadcast_to(x, shape)
    except ValueError:
        raise ValueError(
            f"{caller}: {argument}, {x.type}, does not broadcast to shape {shape}"
        ) from None


def shape_of(shape: ShapeLike, caller: str) -> tuple[int, ...]:
    """Return the shape that an integer or a sequence of them means; refuse traced ones."""
    return sizes_of(shape, caller)


def _number(x: ArrayLike, argument: str) -> int | float | complex:
    """Return a static Python number; a traced one is refused."""
    number: Any = x
    if type(x) in PYTHON or is_size(x):
        return number
    if isinstance(x, Value):
        if x.ndim or x.type.kind == "complex":
            raise TypeError(f"arange: {argument} must be a real number, got {x.type}")
        return operator.index(number) if x.type.kind in ("int", "uint") else float(number)
    if isinstance(x, (np.generic, np.ndarray)) and x.size == 1 and x.dtype.kind in "biufc":
        return x.item()
    raise TypeError(
        f"arange: {argument} must be a number, got {as_value(x, 'arange', argument).type}"
    )


def arange(
    start: ArrayLike,
    stop: ArrayLike | None = None,
    step: ArrayLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """List the numbers from a start up to, not including, a stop.

    The bounds must be known while tracing, since the length depends on them.

    Args:
        start: the first number; given alone, it is ``stop``, and the start is 0.
        stop: the bound.
        step: the distance of numbers; 1 by default.
        dtype: the dtype of the result; by default the one that the arguments promote to.
        device: the device, its name, or a sharding; by default the first device.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of rank 1.

    Raises:
        OverflowError: a number does not fit in ``dtype``.
        TracedValueError: an argument is traced.
        TypeError: an argument is not a number.
        ValueError: ``device`` is not there; or ``step`` is zero; or the result
            cannot be split as ``out_sharding`` says.

    As NumPy's and the array API standard's ``arange``.

    >>> import stretto.numpy as snp
    >>> snp.arange(3), snp.arange(1, 2, 0.5)
    (Array([0, 1, 2], dtype=int32), Array([1. , 1.5], dtype=float32))
    """
    if device is not None or out_sharding is not None:
        return put_result(arange(start, stop, step, dtype), device, out_sharding, "arange")
    arguments = {"start": start, "stop": stop, "step": step}
    numbers: list[Any] = [None if x is None else _number(x, k) for k, x in arguments.items()]
    if start is None:
        raise TypeError("arange: start must be a number, got None")
    if dtype is None:
        types = [_type_of(x) for x in arguments.values() if x is not None]
        wanted = promote(types, "arange")[0]
    else:
        wanted = as_dtype(dtype)
    first, last, by = numbers
    if last is None:
        first, last = 0, first
    by = 1 if by is None else by
    if by == 0:
        raise ValueError("arange: step must not be zero")
    if any(map(is_size, numbers)):
        count = greater((last - first + by - (1 if by > 0 else -1)) // by, 0)
        line = broadcasted_iota(wanted, (count,), 0)
        return line if first == 0 and by == 1 else first + by * line
    whole = all(isinstance(n, int) for n in (first, last, by))
    if state.interpreter is not EAGER and whole and first == 0 and by == 1:
        return broadcasted_iota(wanted, (max(last, 0),), 0)
    if whole and wanted in _COUNTED and _all_fit(first, last - by, wanted):
        host: Any = np.arange(first, last, by, dtype=wanted)
        return made(host, array_type(host.shape, wanted))
    host = np.arange(first, last, by)
    if kind_of(wanted) in ("int", "uint") and wanted.kind in "iu" and host.size:
        cast([int(host[0]), int(host[-1])], wanted, "arange")
    return made(host.astype(wanted), array_type(host.shape, wanted))


_COUNTED = (np.dtype(np.int32), np.dtype(np.int64))


def _all_fit(first: int, last: int, dtype: np.dtype) -> bool:
    bounds = np.iinfo(dtype)
    return bounds.min <= min(first, last) and max(first, last) <= bounds.max


def _type_of(x: ArrayLike) -> tuple[np.dtype, bool]:
    if isinstance(x, Value):
        return x.type.dtype, x.type.weak_type
    if isinstance(x, (np.generic, np.ndarray)):
        return canonical_dtype(x.dtype), False
    return scalar_dtype(int if is_size(x) else type(x)), True


@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: Literal[False] = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    *,
    retstep: Literal[True],
    dtype: DTypeLike | None = None,
    axis: int = 0,
    device: Device | ShardingLike | str | None = None,
) -> tuple[Array, Array]: ...
@overload
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array | tuple[Array, Array]: ...
def linspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array | tuple[Array, Array]:
    """List evenly spaced numbers from a start to a stop.

    Args:
        start: the first numbers; may be traced.
        stop: the last numbers, or the bounds; both broadcast.
        num: how many.
        endpoint: whether ``stop`` is the last number.
        retstep: whether to return the spacing too.
        dtype: the dtype of the result; by default the float that the bounds promote to.
        axis: the place of the numbers in the result.
        device: the device, its name, or a sharding; by default the first device.

    Returns:
        An array with ``num`` numbers along ``axis``, or a tuple of it and the spacing.

    Raises:
        OverflowError: at rest, a number does not fit in an integer ``dtype``.
        TypeError: ``num`` is not an integer.
        ValueError: ``device`` is not there; or ``axis`` is out of bounds; or
            ``num`` is negative.

    As NumPy's and the array API standard's ``linspace``.

    >>> import stretto.numpy as snp
    >>> snp.linspace(0, 1, 5)
    Array([0.  , 0.25, 0.5 , 0.75, 1.  ], dtype=float32)
    """
    if device is not None:
        result: Any = linspace(start, stop, num, endpoint, retstep, dtype, axis)
        if retstep:
            numbers, step = result
            return put_result(numbers, device, None, "linspace"), step
        return put_result(result, device, None, "linspace")
    return _linspace("linspace", start, stop, num, endpoint, retstep, dtype, axis)


def _linspace(
    caller: str,
    start: ArrayLike,
    stop: ArrayLike,
    num: int,
    endpoint: bool,
    retstep: bool = False,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Tree:
    num = integer(num, caller, "num")
    if num < 0:
        raise ValueError(f"{caller}: num must not be negative, got {num}")
    gaps = num - 1 if endpoint else num
    low, high = promote_values(caller, start, stop, inexact=True)
    wanted = low.dtype if dtype is None else as_dtype(dtype)
    if type(start) in PYTHON and type(stop) in PYTHON:
        first: Any = start
        last: Any = stop
        host = np.linspace(first, last, num, endpoint)
        host = np.floor(host) if kind_of(wanted) in ("int", "uint") else host
        _check_range(host, wanted, caller)
        out = made(host.astype(wanted), array_type(host.shape, wanted))
    else:
        out = _spaced(low, high, num, gaps, endpoint)
        if kind_of(wanted) in ("int", "uint"):
            # the next integer where rounding fell short of it: (n - low) gaps <= (high - low) i
            places = reshape(arange(num, dtype=low.dtype), (num, *[1] * low.ndim))
            out = out // 1
            short = (out + 1 - low) * gaps <= (high - low) * places
            out = out + convert(short, out.dtype) if gaps else out
        out = _in_range(out, wanted, caller)
        out = move_axis(out, 0, canonical_axis(axis, out.ndim, caller))
    if not retstep:
        return out
    step = (high - low) / gaps if gaps else high * math.nan
    return out, convert(step, low.dtype)


def _in_range(x: Array, dtype: np.dtype, caller: str) -> Array:
    """Convert numbers to a dtype; at rest refuse those that do not fit in an integer dtype."""
    if at_rest(x):
        _check_range(x.to_host(), dtype, caller)
    return convert(x, dtype)


def _check_range(host: np.ndarray, dtype: np.dtype, caller: str) -> None:
    """Refuse floats that do not fit in an integer dtype, unless JAX's meaning is asked for."""
    if dtype.kind not in "iu" or not host.size or config.integer_overflow == "wrap":
        return
    info = np.iinfo(dtype)
    low, high = host.min(), host.max()
    # In float32 the greatest int32 is one more than it is.
    if low < float(info.min) or high > float(int(info.max) + 1):
        raise OverflowError(
            f"{caller}: numbers from {low:.6g} to {high:.6g} do not fit in {dtype.name}, from "
            f"{info.min} to {info.max}: ask for a wider dtype, or a float"
        )


def _spaced(low: Array, high: Array, num: int, gaps: int, endpoint: bool) -> Array:
    """Compute low + (high - low) i / gaps along a new first axis; the last one ``high`` itself."""
    shape = (num, *low.shape)
    index = broadcasted_iota(np.dtype(np.int32), shape, 0)
    part = convert(index, low.dtype) * (1 / gaps if gaps else 0.0)
    low, high = broadcast_to(low, shape), broadcast_to(high, shape)
    out = low * (1 - part) + high * part
    return select(eq(index, num - 1), high, out) if endpoint and num > 1 else out


@rounded_once
def logspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    base: ArrayLike = 10.0,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """List numbers evenly spaced on a logarithmic scale, between powers of a base.

    Args:
        start: the exponents of the first numbers; may be traced.
        stop: the exponents of the last numbers, or the bounds; both broadcast.
        num: how many.
        endpoint: whether the power of ``stop`` is the last number.
        base: the base of the powers.
        dtype: the dtype of the result; by default the float that the arguments promote to.
        axis: the place of the numbers in the result.

    Returns:
        An array with ``num`` numbers along ``axis``.

    Raises:
        OverflowError: at rest, a number does not fit in an integer ``dtype``.
        TypeError: ``num`` is not an integer.
        ValueError: ``axis`` is out of bounds; or ``num`` is negative.

    As NumPy's ``logspace``.

    >>> import stretto.numpy as snp
    >>> snp.logspace(0, 2, 3)
    Array([  1.,  10., 100.], dtype=float32)
    """
    out = as_value(base, "logspace", "base") ** _linspace(
        "logspace", start, stop, num, endpoint, axis=axis
    )
    return out if dtype is None else _in_range(out, as_dtype(dtype), "logspace")


@rounded_once
@described_like(logspace)
def geomspace(
    start: ArrayLike,
    stop: ArrayLike,
    num: int = 50,
    endpoint: bool = True,
    dtype: DTypeLike | None = None,
    axis: int = 0,
) -> Array:
    """List numbers spaced evenly on a logarithmic scale, between two bounds.

    Args:
        start: the first numbers; may be traced.
        stop: the last numbers, or the bounds; both broadcast.
        endpoint: whether ``stop`` is the last number.
        dtype: the dtype of the result; by default the float that the bounds promote to.

    As NumPy's ``geomspace``.

    >>> import stretto.numpy as snp
    >>> snp.geomspace(1, 8, 4).round(3)
    Array([1., 2., 4., 8.], dtype=float32)
    """
    low, high = promote_values("geomspace", start, stop, inexact=True)
    part = _linspace("geomspace", 0.0, 1.0, num, endpoint)
    part = reshape(part, (num, *(1,) * low.ndim))
    low, high = expand_dims(low, 0), expand_dims(high, 0)
    out = move_axis(low * (high / low) ** part, 0, canonical_axis(axis, low.ndim, "geomspace"))
    return _in_range(out, low.dtype if dtype is None else as_dtype(dtype), "geomspace")


@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: Literal[False] = False
) -> Array: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, *, sparse: Literal[True]
) -> tuple[Array, ...]: ...
@overload
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]: ...
def indices(
    dimensions: Sequence[int], dtype: DTypeLike | None = None, sparse: bool = False
) -> Array | tuple[Array, ...]:
    """List the indices of a grid along each axis.

    Args:
        dimensions: the sizes of the axes.
        dtype: the dtype of the indices; the default integer by default.
        sparse: whether to return one array for each axis, of size 1 along the others.

    Returns:
        An array of the grids along a first axis, or a tuple of arrays if ``sparse``.

    Raises:
        TypeError: a size is not an integer.
        ValueError: a size is negative.

    As NumPy's ``indices``.

    >>> import stretto.numpy as snp
    >>> snp.indices((2, 2))[0]
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    shape, wanted = shape_of(dimensions, "indices"), as_dtype(int if dtype is None else dtype)
    if sparse:
        places = [tuple(n if d == i else 1 for d, n in enumerate(shape)) for i in range(len(shape))]
        return tuple(broadcasted_iota(wanted, place, i) for i, place in enumerate(places))
    if not shape:
        return full((0,), 0, wanted)
    return stacked([broadcasted_iota(wanted, shape, i) for i in range(len(shape))], "indices")


def meshgrid(
    *xi: ArrayLike, copy: bool = True, sparse: bool = False, indexing: str = "xy"
) -> list[Array]:
    """Form grids of coordinates from vectors.

    Args:
        *xi: arrays of rank 1, or numbers.
        copy: has no effect: arrays are immutable.
        sparse: whether the grids have size 1 along the axes of other vectors.
        indexing: ``"xy"``, where the second vector goes along the first axis, or ``"ij"``, where
            the first does.

    Returns:
        A list of one grid for each vector.

    Raises:
        ValueError: a rank is above 1, or ``indexing`` is another.

    As NumPy's and the array API standard's ``meshgrid``.

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
