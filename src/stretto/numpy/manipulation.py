"""Arrays rearranged: their dtypes and shapes, the order of axes and of elements, diagonals."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import entries_of, integer, integers
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import kind_of, scalar_dtype
from stretto._engine.core.typing import (
    Array,
    ArrayLike,
    Axes,
    DTypeLike,
    ShapeLike,
    ShardingLike,
    Tree,
)
from stretto._engine.eager.twins import BOOL, COMPLEX, FLOAT, NUMERIC, eager
from stretto._engine.ops import broadcast, elementwise, layout
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.convert import value_in
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, laid_out
from stretto._engine.ops.linalg.matrix_parts import diagonal_of, on_diagonal
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto.numpy.arguments import integer_or_traced, put_result
from stretto.numpy.arithmetic import remainder
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.reductions import sum as sum_

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device

__all__ = ["astype", "atleast_1d", "atleast_2d", "atleast_3d", "broadcast_arrays",
           "broadcast_shapes", "broadcast_to", "diagonal", "expand_dims", "flip",
           "fliplr", "flipud", "matrix_transpose", "moveaxis", "permute_dims", "ravel",
           "reshape", "roll", "rollaxis", "rot90", "squeeze", "swapaxes", "trace",
           "transpose"]  # fmt: skip

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


def transpose(a: ArrayLike, axes: Sequence[int] | None = None) -> Array:
    """Reorder the axes.

    Args:
        a: an array, or a number.
        axes: for each axis of the result, that of ``a``; reversed by default.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: ``axes`` does not name each axis once.

    As NumPy's ``transpose``.

    >>> import stretto.numpy as snp
    >>> snp.transpose(snp.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return layout.transpose(a, axes)


@described_like(transpose)
def permute_dims(a: ArrayLike, /, axes: Sequence[int]) -> Array:
    """Reorder the axes, as ``transpose`` does.

    Args:
        axes: for each axis of the result, that of ``a``.

    As the array API standard's ``permute_dims``.

    >>> import stretto.numpy as snp
    >>> snp.permute_dims(snp.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return layout.transpose(a, axes)


def matrix_transpose(x: ArrayLike, /) -> Array:
    """Exchange the last two axes.

    Args:
        x: an array of rank 2 or more.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: the rank is below 2.

    As the array API standard's ``matrix_transpose``.

    >>> import stretto.numpy as snp
    >>> snp.matrix_transpose(snp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    value = as_value(x, "matrix_transpose")
    if value.ndim < 2:
        raise ValueError(f"matrix_transpose: expected an array of rank 2 or more, got {value.type}")
    return swapaxes(value, -1, -2)


def swapaxes(a: ArrayLike, axis1: int, axis2: int) -> Array:
    """Exchange two axes.

    Args:
        a: an array.
        axis1: the one axis.
        axis2: the other axis.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: an axis is out of bounds.

    As NumPy's ``swapaxes``.

    >>> import stretto.numpy as snp
    >>> snp.swapaxes(snp.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    x = as_value(a, "swapaxes", "a")
    first, second = (canonical_axis(d, x.ndim, "swapaxes") for d in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return layout.transpose(x, order)


def moveaxis(a: ArrayLike, source: int | Sequence[int], destination: int | Sequence[int]) -> Array:
    """Move axes to other places; the others keep their order.

    Args:
        a: an array.
        source: the axes to move.
        destination: their places in the result.

    Returns:
        An array of the same elements.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or ``source`` and ``destination``
            differ in number.

    As NumPy's ``moveaxis``.

    >>> import stretto.numpy as snp
    >>> snp.moveaxis(snp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_value(a, "moveaxis", "a")
    sources = canonical_axes(source, x.ndim, "moveaxis")
    places = canonical_axes(destination, x.ndim, "moveaxis")
    if len(sources) != len(places):
        raise ValueError(
            f"moveaxis: source {source} and destination {destination} must name the same number "
            "of axes"
        )
    order = [d for d in range(x.ndim) if d not in sources]
    for place, d in sorted(zip(places, sources, strict=True)):
        order.insert(place, d)
    return layout.transpose(x, order)


def rollaxis(a: ArrayLike, axis: int, start: int = 0) -> Array:
    """Move an axis back until it lies before another.

    Args:
        a: an array.
        axis: the axis to move.
        start: the axis that it comes before.

    Returns:
        An array of the same elements.

    Raises:
        TypeError: ``start`` is not an integer.
        ValueError: ``axis`` is out of bounds.

    As NumPy's ``rollaxis``; ``moveaxis`` is clearer.

    >>> import stretto.numpy as snp
    >>> snp.rollaxis(snp.ones((2, 3, 4)), 2).shape
    (4, 2, 3)
    """
    x = as_value(a, "rollaxis", "a")
    axis = canonical_axis(axis, x.ndim, "rollaxis")
    start = integer(start, "rollaxis", "start") + (x.ndim if start < 0 else 0)
    return moveaxis(x, axis, start - 1 if axis < start else start)


def flip(m: ArrayLike, axis: Axes = None) -> Array:
    """Reverse the order of the elements along axes.

    Args:
        m: an array.
        axis: the axes to reverse along; all by default.

    Returns:
        An array of the shape of ``m``.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``flip``.

    >>> import stretto.numpy as snp
    >>> snp.flip(snp.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    x = as_value(m, "flip", "m")
    return rev(x, canonical_axes(axis, x.ndim, "flip"))


def flipud(m: ArrayLike) -> Array:
    """Reverse the order of the elements along the first axis.

    Args:
        m: an array of rank 1 or more.

    Returns:
        An array of the shape of ``m``.

    Raises:
        ValueError: the rank is 0.

    As NumPy's ``flipud``.

    >>> import stretto.numpy as snp
    >>> snp.flipud(snp.array([[1, 2], [3, 4]]))
    Array([[3, 4],
           [1, 2]], dtype=int32)
    """
    return flip(m, 0)


def fliplr(m: ArrayLike) -> Array:
    """Reverse the order of the elements along the second axis.

    Args:
        m: an array of rank 2 or more.

    Returns:
        An array of the shape of ``m``.

    Raises:
        ValueError: the rank is below 2.

    As NumPy's ``fliplr``.

    >>> import stretto.numpy as snp
    >>> snp.fliplr(snp.array([[1, 2], [3, 4]]))
    Array([[2, 1],
           [4, 3]], dtype=int32)
    """
    return flip(m, 1)


def rot90(m: ArrayLike, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Array:
    """Rotate by right angles in the plane of two axes.

    Args:
        m: an array of rank 2 or more.
        k: the number of right angles, from the first of ``axes`` towards the second.
        axes: the two axes of the plane.

    Returns:
        An array of the same elements.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: an axis is out of bounds, or is named twice.

    As NumPy's ``rot90``.

    >>> import stretto.numpy as snp
    >>> snp.rot90(snp.array([[1, 2], [3, 4]]))
    Array([[2, 4],
           [1, 3]], dtype=int32)
    """
    x = as_value(m, "rot90", "m")
    first, second = canonical_axes(tuple(axes), x.ndim, "rot90")
    turns = integer(k, "rot90", "k") % 4
    if turns == 0:
        return x
    if turns == 2:
        return flip(x, (first, second))
    if turns == 1:
        return swapaxes(flip(x, second), first, second)
    return flip(swapaxes(x, first, second), second)


def roll(a: ArrayLike, shift: ArrayLike | Sequence[int], axis: Axes = None) -> Array:
    """Move the elements along axes; those that fall off at the end come in at the start.

    Args:
        a: an array.
        shift: the integer number of places, or one for each axis; may be traced.
        axis: the axes to move along; by default all elements, in row-major order.

    Returns:
        An array of the shape of ``a``.

    Raises:
        TypeError: ``shift`` is not of integers.
        ValueError: ``axis`` is out of bounds; or ``shift`` and ``axis`` differ in number.

    As NumPy's ``roll``.

    >>> import stretto.numpy as snp
    >>> snp.roll(snp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    return _roll(as_value(a, "roll", "a"), shift=_shifts(shift), axis=axis)


@eager(np.roll, BOOL + NUMERIC)
def _roll(x: Array, *, shift: ArrayLike | tuple[ArrayLike, ...], axis: Axes) -> Array:
    if axis is None:
        return broadcast.reshape(_roll(ravel(x), shift=shift, axis=0), x.shape)
    axes = [canonical_axis(d, x.ndim, "roll") for d in entries_of(axis)]
    if isinstance(shift, (Value, np.ndarray)) and shift.ndim:
        shift = tuple(shift[i] for i in range(shift.shape[0]))
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift {shift} and axis {axis} must have equal lengths")
    for by, d in zip(shifts, axes, strict=True):
        x = _roll_one(x, by, d)
    return x


def _shifts(shift: Tree) -> Tree:
    """Return the shift, or a tuple of them, as integers, traced or not."""
    if isinstance(shift, (tuple, list, range)):
        return tuple([_shifts(s) for s in shift])
    if not isinstance(shift, (Value, np.ndarray)):
        return integer(shift, "roll", "shift")
    if kind_of(shift.dtype) not in ("int", "uint", "bool"):
        raise TypeError(f"roll: shift must be of integers, got an array of dtype {shift.dtype}")
    return shift


def _roll_one(x: Array, shift: ArrayLike, axis: int) -> Array:
    n = x.shape[axis]
    if n == 0:
        return x
    if isinstance(shift, Value):
        place = broadcasted_iota(shift.dtype, (n,), 0) - shift
        place = broadcast.reshape(remainder(place, n), tuple(n if d == axis else 1 for d in
                                                             range(x.ndim)))  # fmt: skip
        return take_along_axis(x, place, axis, "promise_in_bounds", wrap_negative=False)
    if is_size(n):
        return _roll_one(x, as_value(shift, "roll", "shift"), axis)
    by = integer(shift, "roll", "shift") % n
    if by == 0:
        return x
    tail = slice_in_dim(x, n - by, n, 1, axis)
    return concatenate([tail, slice_in_dim(x, 0, n - by, 1, axis)], axis)
