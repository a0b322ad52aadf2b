"""Arrays from numbers, sequences and other arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.integers import shown, sizes_of
from stretto._engine.core.interpreter import (
    ARRAY_METHODS,
    Tracer,
    Value,
    as_value,
    gives_array,
    refuse_masked,
    state,
)
from stretto._engine.core.types import ArrayType, array_type, kind_of, promote, scalar_dtype
from stretto._engine.core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike, Tree
from stretto._engine.eager.interpreter import EAGER, at_home
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import convert, value_in
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.shape import concatenate
from stretto._engine.xla.array import Array, import_dlpack
from stretto.numpy.arguments import put_result
from stretto.numpy.dtypes import as_dtype

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["array", "asanyarray", "asarray", "ascontiguousarray", "copy"]

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
