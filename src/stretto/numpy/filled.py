"""Arrays filled with one value, and matrices by their diagonals and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value, gives_array, state, type_of
from stretto._engine.core.types import array_type, scalar_dtype
from stretto._engine.core.typing import ArrayLike, DTypeLike, ShapeLike, ShardingLike, SupportsDType
from stretto._engine.eager.interpreter import EAGER, array_of
from stretto._engine.eager.twins import BOOL, NUMERIC, eager, splat
from stretto._engine.ops.convert import convert, value_in
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.linalg.matrix_parts import (
    below,
    diagonal_of,
    lower_part,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.shape import pad
from stretto._engine.xla.array import SHARDED, Array
from stretto.numpy.arguments import integer_or_traced, put_result
from stretto.numpy.creation import PYTHON, broadcast_argument, cast, shape_of
from stretto.numpy.dtypes import as_dtype

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["diag", "diagflat", "empty", "empty_like", "eye", "full", "full_like",
           "identity", "ones", "ones_like", "tri", "tril", "triu", "zeros",
           "zeros_like"]  # fmt: skip

_ZERO = np.int8(0)


def _filled(
    shape: tuple[int, ...],
    element: np.ndarray | np.generic | float,
    dtype: np.dtype,
    weak: bool,
    device: object,
    out_sharding: object,
    caller: str,
) -> Array:
    """Fill an array with one element; at rest in memory of its own, which is faster to read."""
    if state.interpreter is not EAGER:
        x = splat(np.asarray(element).astype(dtype), array_type(shape, dtype, weak))
        return put_result(x, device, out_sharding, caller)
    if device is not None or out_sharding is not None:
        # Of one element, so that no device has more than its part.
        one = Array(
            np.broadcast_to(np.asarray(element, dtype), shape), array_type(shape, dtype, weak)
        )
        x = put_result(one, device, out_sharding, caller)
        if x is not one:
            return x
    host = np.zeros(shape, dtype) if element is _ZERO else np.full(shape, element, dtype)
    return Array(host, array_type(shape, dtype, weak))


def zeros(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of a shape, filled with 0.

    Args:
        shape: an integer, or a sequence of them.
        dtype: the dtype, by default the default float.
        device: the device, its name, or a sharding; by default the first device.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array.

    Raises:
        TypeError: the shape is not integers, or is traced.
        ValueError: the shape has a negative size, or there is no such device; or the result cannot
            be split as ``out_sharding`` says.

    As NumPy's ``zeros``.

    >>> import stretto.numpy as snp
    >>> snp.zeros((2, 2))
    Array([[0., 0.],
           [0., 0.]], dtype=float32)
    """
    sizes, wanted = shape_of(shape, "zeros"), as_dtype(float if dtype is None else dtype)
    return _filled(sizes, _ZERO, wanted, False, device, out_sharding, "zeros")


@described_like(zeros)
def ones(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of a shape, filled with 1.

    As NumPy's ``ones``.

    >>> import stretto.numpy as snp
    >>> snp.ones(2, dtype=int)
    Array([1, 1], dtype=int32)
    """
    sizes, wanted = shape_of(shape, "ones"), as_dtype(float if dtype is None else dtype)
    return _filled(sizes, 1, wanted, False, device, out_sharding, "ones")


@described_like(zeros)
def empty(
    shape: ShapeLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of a shape whose elements do not matter; they are 0.

    As NumPy's ``empty``.

    >>> import stretto.numpy as snp
    >>> snp.empty(2).shape
    (2,)
    """
    sizes, wanted = shape_of(shape, "empty"), as_dtype(float if dtype is None else dtype)
    return _filled(sizes, _ZERO, wanted, False, device, out_sharding, "empty")


@described_like(zeros)
def full(
    shape: ShapeLike,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of a shape, filled with a value.

    Args:
        fill_value: a number, or an array that broadcasts to the shape.
        dtype: the dtype, by default that of ``fill_value``.

    Raises:
        TypeError: the shape is not integers, or ``fill_value`` is not an array or a number.
        ValueError: ``fill_value`` does not broadcast to the shape, a size is negative, or there is
            no such device; or the result cannot be split as ``out_sharding`` says.
        OverflowError: ``fill_value`` does not fit in the dtype.

    As NumPy's ``full``.

    >>> import stretto.numpy as snp
    >>> snp.full((2,), snp.float32(0.5))
    Array([0.5, 0.5], dtype=float32)
    """
    sizes = shape_of(shape, "full")
    wanted = None if dtype is None else as_dtype(dtype)
    if type(fill_value) in PYTHON:
        weak = wanted is None and type(fill_value) is not bool
        wanted = scalar_dtype(type(fill_value)) if wanted is None else wanted
        element = cast(fill_value, wanted, "full")[()]
        return _filled(sizes, element, wanted, weak, device, out_sharding, "full")
    if wanted is None:
        x = as_value(fill_value, "full", "fill_value")
    else:
        x = value_in(fill_value, wanted, "full", "fill_value")
    x = broadcast_argument(x, sizes, "full", "fill_value")
    return put_result(x, device, out_sharding, "full")


def _beside(
    a: object,
    sizes: tuple[int, ...],
    device: Device | ShardingLike | str | None,
    out_sharding: object,
) -> Device | ShardingLike | str | None:
    """Say where an array like ``a`` is to be: beside it, unless something else is asked for."""
    if not SHARDED or device is not None or out_sharding is not None:
        return device
    array = as_value(a, "full_like") if gives_array(a) else a
    if isinstance(array, Array) and array.__class__ in SHARDED and array.shape == sizes:
        return array.sharding if state.interpreter.at_rest else None
    return None


def _like(
    a: ArrayLike | SupportsDType,
    element: np.generic | float,
    dtype: DTypeLike | None,
    shape: ShapeLike | None,
    device: Device | ShardingLike | str | None,
    out_sharding: object,
    caller: str,
    argument: str = "a",
) -> Array:
    type = type_of(a, caller, argument)
    weak = dtype is None and type.weak_type
    wanted = type.dtype if dtype is None else as_dtype(dtype)
    sizes = type.shape if shape is None else shape_of(shape, caller)
    device = _beside(a, sizes, device, out_sharding)
    return _filled(sizes, element, wanted, weak, device, out_sharding, caller)


@described_like(zeros)
def zeros_like(
    a: ArrayLike | SupportsDType,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of zeros like another.

    Args:
        a: an array, a number, or a ``ShapeDtypeStruct``: only the shape and dtype matter.
        dtype: the dtype, by default that of ``a``.
        shape: the shape, by default that of ``a``.
        device: the device, its name, or a sharding; by default where the other is, if it was put
            somewhere and has this shape.

    Raises:
        TypeError: ``a`` has no shape and dtype, or the shape is not integers.
        ValueError: the shape has a negative size, or there is no such device; or the result cannot
            be split as ``out_sharding`` says.

    As NumPy's ``zeros_like``.

    >>> import stretto.numpy as snp
    >>> snp.zeros_like(snp.array([1.0, 2.0]))
    Array([0., 0.], dtype=float32)
    """
    return _like(a, _ZERO, dtype, shape, device, out_sharding, "zeros_like")


@described_like(zeros_like)
def ones_like(
    a: ArrayLike | SupportsDType,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array of ones like another.

    As NumPy's ``ones_like``.

    >>> import stretto.numpy as snp
    >>> snp.ones_like(snp.array([1, 2]))
    Array([1, 1], dtype=int32)
    """
    return _like(a, 1, dtype, shape, device, out_sharding, "ones_like")


@described_like(zeros_like)
def empty_like(
    prototype: ArrayLike | SupportsDType,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """Make an array of zeros like another.

    Args:
        prototype: an array, a number, or a ``ShapeDtypeStruct``: only the shape and dtype matter.
        dtype: the dtype, by default that of ``prototype``.
        shape: the shape, by default that of ``prototype``.

    Raises:
        TypeError: ``prototype`` has no shape and dtype, or the shape is not integers.
        ValueError: the shape has a negative size, or there is no such device.

    As NumPy's ``empty_like``.

    >>> import stretto.numpy as snp
    >>> snp.empty_like(snp.array([1, 2])).shape
    (2,)
    """
    return _like(prototype, _ZERO, dtype, shape, device, None, "empty_like", "prototype")


@described_like(zeros_like)
def full_like(
    a: ArrayLike | SupportsDType,
    fill_value: ArrayLike,
    dtype: DTypeLike | None = None,
    shape: ShapeLike | None = None,
    *,
    device: Device | ShardingLike | str | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array like another, filled with a value.

    Args:
        fill_value: a number, or an array that broadcasts to the shape.

    Raises:
        TypeError: ``a`` has no shape and dtype, or ``fill_value`` is not an array or a number.
        ValueError: ``fill_value`` does not broadcast to the shape, a size is negative, or there is
            no such device; or the result cannot be split as ``out_sharding`` says.
        OverflowError: ``fill_value`` does not fit in the dtype.

    As NumPy's ``full_like``.

    >>> import stretto.numpy as snp
    >>> snp.full_like(snp.array([1, 2]), 7)
    Array([7, 7], dtype=int32)
    """
    like = type_of(a, "full_like", "a")
    weak = dtype is None and like.weak_type
    wanted = like.dtype if dtype is None else as_dtype(dtype)
    sizes = like.shape if shape is None else shape_of(shape, "full_like")
    device = _beside(a, sizes, device, out_sharding)
    if type(fill_value) in PYTHON:
        element = cast(fill_value, wanted, "full_like")[()]
        return _filled(sizes, element, wanted, weak, device, out_sharding, "full_like")
    value = convert(value_in(fill_value, wanted, "full_like", "fill_value"), wanted, weak)
    value = broadcast_argument(value, sizes, "full_like", "fill_value")
    return put_result(value, device, out_sharding, "full_like")


def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = float) -> Array:
    """Make a matrix of ones on and below a diagonal, and zeros above.

    Args:
        N: the number of rows.
        M: the number of columns; by default ``N``.
        k: the diagonal, counted upwards from the main one; may be traced.
        dtype: the dtype of the result.

    Returns:
        A matrix ``[N, M]``.

    Raises:
        TypeError: ``N``, ``M`` or ``k`` is not an integer.
        ValueError: a size is negative.

    As NumPy's ``tri``.

    >>> import stretto.numpy as snp
    >>> snp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    shape = shape_of((N, N if M is None else M), "tri")
    diagonal = integer_or_traced(k, "tri", "k")
    return convert(below(shape, diagonal), as_dtype(float if dtype is None else dtype))


def _matrices(m: ArrayLike, caller: str) -> Array:
    x = as_value(m, caller, "m")
    if x.ndim < 2:
        raise ValueError(f"{caller}: expected an array of rank 2 or more, got {x.type}")
    return x


@eager(np.tril, BOOL + NUMERIC)
def _tril(x: Array, *, k: int | Array) -> Array:
    return lower_part(x, k)


@eager(np.triu, BOOL + NUMERIC)
def _triu(x: Array, *, k: int | Array) -> Array:
    return upper_part(x, k)


def tril(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Set the elements above a diagonal to zero.

    Args:
        m: matrices ``[..., m, n]``.
        k: the diagonal, counted upwards from the main one; may be traced.

    Returns:
        Matrices ``[..., m, n]``.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the rank is below 2.

    As NumPy's and the array API standard's ``tril``.

    >>> import stretto.numpy as snp
    >>> snp.tril(snp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    return _tril(_matrices(m, "tril"), k=integer_or_traced(k, "tril", "k"))


@described_like(tril)
def triu(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Set the elements below a diagonal to zero.

    As NumPy's and the array API standard's ``triu``.

    >>> import stretto.numpy as snp
    >>> snp.triu(snp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    return _triu(_matrices(m, "triu"), k=integer_or_traced(k, "triu", "k"))


@described_like(tri)
def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = float,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """Make a matrix of ones on a diagonal, and zeros elsewhere.

    Args:
        device: the device, its name, or a sharding; by default the first device.

    Raises:
        TypeError: ``N``, ``M`` or ``k`` is not an integer.
        ValueError: ``device`` is not there; or a size is negative.

    As NumPy's and the array API standard's ``eye``.

    >>> import stretto.numpy as snp
    >>> snp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if device is not None:
        return put_result(eye(N, M, k, dtype), device, None, "eye")
    shape = shape_of((N, N if M is None else M), "eye")
    wanted = as_dtype(float if dtype is None else dtype)
    diagonal = integer_or_traced(k, "eye", "k")
    if state.interpreter is EAGER:
        rows, columns = shape
        known: Any = diagonal
        return array_of(np.eye(rows, columns, known, wanted), wanted)
    return convert(on_diagonal(shape, diagonal), wanted)


def identity(n: int, dtype: DTypeLike | None = float) -> Array:
    """Make a square matrix of ones on the main diagonal, and zeros elsewhere.

    Args:
        n: the number of rows and columns.
        dtype: the dtype of the result.

    Returns:
        A matrix ``[n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative.

    As NumPy's ``identity``.

    >>> import stretto.numpy as snp
    >>> snp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with a vector on a diagonal, or take the diagonal of a matrix.

    Args:
        v: a vector, or a matrix.
        k: the diagonal, counted upwards from the main one.

    Returns:
        A square matrix for a vector; a vector for a matrix.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the rank is neither 1 nor 2.

    As NumPy's ``diag``.

    >>> import stretto.numpy as snp
    >>> snp.diag(snp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    # The shape depends on ``k``.
    return _diag(as_value(v, "diag", "v"), k=integer(k, "diag", "k"))


@eager(np.diag, BOOL + NUMERIC)
def _diag(x: Array, *, k: int) -> Array:
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
    flat = pad(x, 0, [(first, n * n - 1 - last, n)])
    return reshape(flat, (n, n))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with all elements of an array on a diagonal.

    Args:
        v: an array, flattened in row-major order.
        k: the diagonal, counted upwards from the main one.

    Returns:
        A square matrix.

    Raises:
        TypeError: ``k`` is not an integer.

    As NumPy's ``diagflat``.

    >>> import stretto.numpy as snp
    >>> snp.diagflat(snp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return diag(reshape(as_value(v, "diagflat", "v"), (-1,)), k)
