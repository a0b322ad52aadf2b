"""Dtypes, shapes and diagonals: ``astype``, ``reshape``, ``broadcast_to``, ``diagonal``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import entries_of, integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.types import scalar_dtype
from stretto._engine.core.typing import (
    Array,
    ArrayLike,
    Axes,
    DTypeLike,
    ShapeLike,
    ShardingLike,
    Tree,
)
from stretto._engine.eager.twins import COMPLEX, FLOAT, eager
from stretto._engine.ops import broadcast, elementwise, layout
from stretto._engine.ops.convert import value_in
from stretto._engine.ops.linalg.matrix_parts import diagonal_of, on_diagonal
from stretto._engine.ops.sharding import laid_out
from stretto.numpy.arguments import integer_or_traced, put_result
from stretto.numpy.axis_order import moveaxis
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.reductions import sum as sum_

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = [
    "astype",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_arrays",
    "broadcast_shapes",
    "broadcast_to",
    "diagonal",
    "expand_dims",
    "ravel",
    "reshape",
    "squeeze",
    "trace",
]


# Dtype


def astype(
    x: ArrayLike,
    dtype: DTypeLike | None,
    /,
    *,
    copy: bool = False,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """Convert the elements to another dtype; floats lose their fraction as integers.

    Integers that do not fit in an integer dtype keep their low bits, as in C; ``asarray`` with a
    dtype refuses those of NumPy and Python.

    Args:
        x: an array, or a number.
        dtype: the dtype of the result; None is the default float.
        copy: has no effect: arrays are immutable.
        device: the device, its name, or a sharding; by default where ``x`` is.

    Returns:
        An array of the shape of ``x``.

    Raises:
        ValueError: ``device`` is not there.

    As the array API standard's ``astype``.

    >>> import stretto.numpy as snp
    >>> snp.array([1.7, -1.7]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    del copy  # arrays are immutable
    if device is not None:
        return put_result(astype(x, dtype), device, None, "astype")
    wanted = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    return value_in(x, wanted, "astype", wrap=True)


# Shape


def reshape(
    a: ArrayLike,
    shape: ShapeLike,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Give the elements another shape.

    Args:
        a: an array, or a number.
        shape: the sizes of the result; one may be -1, which takes what the others leave.
        order: ``"C"`` or ``"A"``, row-major, or ``"F"``, column-major.
        copy: has no effect: arrays are immutable.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of the dtype of ``a``.

    Raises:
        ValueError: the sizes do not multiply to that of ``a``, or ``order`` is another; or the
            result cannot be split as ``out_sharding`` says.

    As NumPy's ``reshape``.

    >>> import stretto.numpy as snp
    >>> snp.reshape(snp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    del copy  # arrays are immutable
    if out_sharding is not None:
        return laid_out(reshape(a, shape, order), out_sharding, "reshape")
    x = a if isinstance(a, Value) else as_value(a, "reshape", "a")
    if order in ("C", "A"):
        return layout.reshape(x, shape)
    if order != "F":
        raise ValueError(f"reshape: order must be 'C' or 'F'; got {order!r}")
    sizes = entries_of(shape)
    return layout.transpose(layout.reshape(layout.transpose(x), sizes[::-1]))


def ravel(a: ArrayLike, order: str = "C", *, out_sharding: ShardingLike | None = None) -> Array:
    """Lay all elements along one axis.

    Args:
        a: an array, or a number.
        order: ``"C"`` or ``"A"``, row-major, or ``"F"``, column-major.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of rank 1.

    Raises:
        ValueError: ``order`` is another; or the result cannot be split as ``out_sharding`` says.

    As NumPy's ``ravel``.

    >>> import stretto.numpy as snp
    >>> snp.ravel(snp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(ravel(a, order), out_sharding, "ravel")
    x = as_value(a, "ravel", "a")
    return reshape(x, (x.size,), order)


def squeeze(a: ArrayLike, axis: Axes = None) -> Array:
    """Remove axes of size 1.

    Args:
        a: an array, or a number.
        axis: the axes to remove; all of size 1 by default.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: an axis is out of bounds, is named twice, or has another size than 1.

    As NumPy's ``squeeze``.

    >>> import stretto.numpy as snp
    >>> snp.squeeze(snp.ones((1, 3, 1))).shape
    (3,)
    """
    return layout.squeeze(a, axis)


def expand_dims(a: ArrayLike, axis: int | Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args:
        a: an array, or a number.
        axis: the places of the new axes in the result.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``expand_dims``.

    >>> import stretto.numpy as snp
    >>> snp.expand_dims(snp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    return layout.expand_dims(a, axis)


def _atleast(
    caller: str, arrays: Sequence[ArrayLike], reshaped: Callable[[Array], Array]
) -> Array | list[Array]:
    values = [reshaped(as_value(x, caller, f"array {i}")) for i, x in enumerate(arrays)]
    return values[0] if len(values) == 1 else values


@overload
def atleast_1d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_1d(ary: ArrayLike, other: ArrayLike, /) -> list[Array]: ...
@overload
def atleast_1d(*arys: ArrayLike) -> Tree: ...
def atleast_1d(*arys: ArrayLike) -> Array | list[Array]:
    """Give arrays at least one axis.

    Args:
        *arys: arrays, or numbers.

    Returns:
        The array, or a list of them for several.

    As NumPy's ``atleast_1d``.

    >>> import stretto.numpy as snp
    >>> snp.atleast_1d(snp.array(3.0)).shape
    (1,)
    """
    return _atleast("atleast_1d", arys, lambda x: x if x.ndim else expand_dims(x, 0))


@overload
def atleast_2d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_2d(ary: ArrayLike, other: ArrayLike, /) -> list[Array]: ...
@overload
def atleast_2d(*arys: ArrayLike) -> Tree: ...
@described_like(atleast_1d)
def atleast_2d(*arys: ArrayLike) -> Array | list[Array]:
    """Give arrays at least two axes; new ones come first.

    As NumPy's ``atleast_2d``.

    >>> import stretto.numpy as snp
    >>> snp.atleast_2d(snp.ones(3)).shape
    (1, 3)
    """
    return _atleast("atleast_2d", arys, lambda x: layout.reshape(x, (1,) * (2 - x.ndim) + x.shape))


@overload
def atleast_3d(ary: ArrayLike, /) -> Array: ...
@overload
def atleast_3d(ary: ArrayLike, other: ArrayLike, /) -> list[Array]: ...
@overload
def atleast_3d(*arys: ArrayLike) -> Tree: ...
@described_like(atleast_1d)
def atleast_3d(*arys: ArrayLike) -> Array | list[Array]:
    """Give arrays at least three axes; a vector goes in the middle, a matrix first.

    As NumPy's ``atleast_3d``.

    >>> import stretto.numpy as snp
    >>> snp.atleast_3d(snp.ones(3)).shape
    (1, 3, 1)
    """
    shapes = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return _atleast(
        "atleast_3d",
        arys,
        lambda x: layout.reshape(x, shapes[x.ndim](x.shape)) if x.ndim < 3 else x,
    )


# Broadcasting


def broadcast_to(
    array: ArrayLike, shape: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Repeat an array to a shape: axes align from the last, and size 1 stretches.

    Args:
        array: an array, or a number.
        shape: the sizes of the result.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of that shape.

    Raises:
        ValueError: the array does not broadcast to the shape; or the result cannot be split as
            ``out_sharding`` says.

    As NumPy's ``broadcast_to``.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_to(snp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(broadcast_to(array, shape), out_sharding, "broadcast_to")
    return broadcast.broadcast_to(array, shape)


def broadcast_shapes(*shapes: ShapeLike) -> tuple[int, ...]:
    """Find the shape that arrays of these shapes broadcast to.

    Args:
        *shapes: shapes, or sizes of single axes.

    Returns:
        A tuple of Python integers.

    Raises:
        TypeError: a size is not an integer.
        ValueError: two sizes differ, and neither is 1.

    As NumPy's ``broadcast_shapes``.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    sizes = [integers(entries_of(s), "broadcast_shapes", "a shape") for s in shapes]
    return elementwise.broadcast_shapes("broadcast_shapes", *sizes) if sizes else ()


def broadcast_arrays(*args: ArrayLike) -> list[Array]:
    """Repeat arrays to the shape that they broadcast to.

    Args:
        *args: arrays, or numbers.

    Returns:
        A list of arrays of one shape.

    Raises:
        ValueError: two sizes differ, and neither is 1.

    As NumPy's ``broadcast_arrays``.

    >>> import stretto.numpy as snp
    >>> [x.shape for x in snp.broadcast_arrays(snp.ones((3, 1)), snp.ones(4))]
    [(3, 4), (3, 4)]
    """
    values = [as_value(x, "broadcast_arrays", f"array {i}") for i, x in enumerate(args)]
    shape = broadcast_shapes(*(v.shape for v in values))
    return [broadcast.broadcast_to(v, shape) for v in values]


# Diagonals


def diagonal(a: ArrayLike, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Array:
    """Take the diagonals of the matrices in two axes.

    Args:
        a: an array of rank 2 or more.
        offset: how far above the main diagonal, below for negative numbers.
        axis1: the axis of rows.
        axis2: the axis of columns.

    Returns:
        An array without the two axes, and with the diagonal along a last one.

    Raises:
        TypeError: ``offset`` is not an integer.
        ValueError: an axis is out of bounds, or is named twice; or the rank is below 2.

    As NumPy's ``diagonal``.

    >>> import stretto.numpy as snp
    >>> snp.diagonal(snp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = as_value(a, "diagonal", "a")
    if x.ndim < 2:
        raise ValueError(f"diagonal: expected an array of rank 2 or more, got {x.type}")
    return diagonal_of(moveaxis(x, (axis1, axis2), (-2, -1)), integer(offset, "diagonal", "offset"))


def trace(
    a: ArrayLike,
    offset: ArrayLike = 0,
    axis1: int = 0,
    axis2: int = 1,
    dtype: DTypeLike | None = None,
    out: None = None,
) -> Array:
    """Sum the diagonals of the matrices in two axes.

    Args:
        a: an array of rank 2 or more.
        offset: how far above the main diagonal, below for negative numbers; may be traced.
        axis1: the axis of rows.
        axis2: the axis of columns.
        dtype: the dtype of the sum; by default that of ``a``, at least 32 bits for integers.
        out: must be None: arrays are immutable.

    Returns:
        The sums, of the shape of ``a`` without the two axes.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``offset`` is not an integer.
        ValueError: an axis is out of bounds, or is named twice; or the rank is below 2.

    As NumPy's ``trace``.

    >>> import stretto.numpy as snp
    >>> snp.trace(snp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    above, x = integer_or_traced(offset, "trace", "offset"), as_value(a, "trace", "a")
    if x.ndim < 2:
        raise ValueError(f"trace: expected an array of rank 2 or more, got {x.type}")
    if dtype is out is None:
        return _trace(x, offset=above, axis1=axis1, axis2=axis2)
    return _sum_of_diagonal(x, above, axis1, axis2, dtype, out)


@eager(np.trace, FLOAT + COMPLEX)
def _trace(x: Array, *, offset: int | Array, axis1: int, axis2: int) -> Array:
    return _sum_of_diagonal(x, offset, axis1, axis2, None, None)


def _sum_of_diagonal(
    x: Array, offset: int | Array, axis1: int, axis2: int, dtype: DTypeLike | None, out: None
) -> Array:
    if not isinstance(offset, Value):
        return sum_(diagonal(x, offset, axis1, axis2), -1, dtype, out)
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    return sum_(x, (-2, -1), dtype, out, where=on_diagonal(x.shape[-2:], offset))
