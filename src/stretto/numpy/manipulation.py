"""Shapes and axes: reshape, transpose, broadcast, flip, roll, diagonals.

Next, read ``joining``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value, type_of
from stretto._engine.core.types import ArrayType, kind_of, scalar_dtype
from stretto._engine.ops import broadcast, elementwise
from stretto._engine.ops.broadcast import canonical_axes, canonical_axis
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.linalg.matrix_parts import diagonal_of, on_diagonal
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto._engine.ops.sharding import refuse_sharding
from stretto.numpy.arguments import integer_or_traced, refuse_device
from stretto.numpy.creation import listed
from stretto.numpy.directly import BOOL, COMPLEX, FLOAT, NUMERIC, directly
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.remainders import remainder

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
    "flip",
    "fliplr",
    "flipud",
    "iscomplexobj",
    "isrealobj",
    "isscalar",
    "iterable",
    "matrix_transpose",
    "moveaxis",
    "ndim",
    "permute_dims",
    "ravel",
    "reshape",
    "roll",
    "rollaxis",
    "rot90",
    "shape",
    "size",
    "squeeze",
    "swapaxes",
    "trace",
    "transpose",
]


# What it is


def _type_of(x: Any, who: str, argument: str) -> ArrayType:
    return type_of(listed(x, who, argument) if isinstance(x, (list, tuple)) else x, who, argument)


def shape(a: Any) -> tuple[int, ...]:
    """The sizes of the axes of an array, a ``ShapeDtypeStruct``, or nested lists of numbers.

    >>> import stretto.numpy as snp
    >>> snp.shape(snp.ones((2, 3)))
    (2, 3)
    """
    return _type_of(a, "shape", "a").shape


def ndim(a: Any) -> int:
    """The number of axes; arguments as for ``shape``."""
    return _type_of(a, "ndim", "a").ndim


def size(a: Any, axis: int | Sequence[int] | None = None) -> int:
    """The number of elements, or those along ``axis``, one or several; arguments as for ``shape``.

    >>> import stretto.numpy as snp
    >>> snp.size(snp.ones((2, 3))), snp.size(snp.ones((2, 3)), 1)
    (6, 3)
    """
    shape = _type_of(a, "size", "a").shape
    return math.prod([shape[d] for d in canonical_axes(axis, len(shape), "size")])


def isscalar(element: Any) -> bool:
    """Whether it is a number or an array of rank 0.

    >>> import stretto.numpy as snp
    >>> snp.isscalar(3), snp.isscalar(snp.ones(1))
    (True, False)
    """
    if isinstance(element, (Value, np.ndarray)):
        return element.ndim == 0
    return np.isscalar(element)


def iterable(y: Any) -> bool:
    """Whether it has elements to iterate over, as all arrays but those of rank 0.

    >>> import stretto.numpy as snp
    >>> snp.iterable(snp.ones(2)), snp.iterable(snp.array(1.0)), snp.iterable([])
    (True, False, True)
    """
    try:
        iter(y)
    except TypeError:
        return False
    return True


def iscomplexobj(x: Any) -> bool:
    """Whether the dtype is complex."""
    return _type_of(x, "iscomplexobj", "x").kind == "complex"


def isrealobj(x: Any) -> bool:
    """Whether the dtype is not complex."""
    return not iscomplexobj(x)


def astype(x: Any, dtype: Any, /, *, copy: bool = False, device: Any = None) -> Any:
    """The elements in another dtype; floats to integers lose their fraction.

    >>> import stretto.numpy as snp
    >>> snp.array([1.7, -1.7]).astype(int)
    Array([ 1, -1], dtype=int32)
    """
    del copy  # arrays are immutable
    refuse_device("astype", device)
    x = as_value(x, "astype")
    return convert(x, scalar_dtype(float) if dtype is None else as_dtype(dtype))


# Shape


def reshape(
    a: Any,
    shape: Any,
    order: str = "C",
    *,
    copy: bool | None = None,
    out_sharding: None = None,
) -> Any:
    """The elements in another shape, in row-major order, or column-major (``order="F"``).

    One size may be -1. Raises ``ValueError`` where the sizes do not multiply to that of ``a``.

    >>> import stretto.numpy as snp
    >>> snp.reshape(snp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    del copy  # arrays are immutable
    refuse_sharding("reshape", out_sharding=out_sharding)
    x = a if isinstance(a, Value) else as_value(a, "reshape", "a")
    if order in ("C", "A"):
        return broadcast.reshape(x, shape)
    if order != "F":
        raise ValueError(f"reshape: order must be 'C' or 'F'; got {order!r}")
    sizes = tuple(shape) if isinstance(shape, (tuple, list)) else (shape,)
    return broadcast.transpose(broadcast.reshape(broadcast.transpose(x), sizes[::-1]))


def ravel(a: Any, order: str = "C", *, out_sharding: None = None) -> Any:
    """All elements along one axis.

    >>> import stretto.numpy as snp
    >>> snp.ravel(snp.array([[1, 2], [3, 4]]))
    Array([1, 2, 3, 4], dtype=int32)
    """
    refuse_sharding("ravel", out_sharding=out_sharding)
    x = as_value(a, "ravel", "a")
    return reshape(x, (x.size,), order)


def squeeze(a: Any, axis: Any = None) -> Any:
    """The array without its axes of size 1, all or those named.

    >>> import stretto.numpy as snp
    >>> snp.squeeze(snp.ones((1, 3, 1))).shape
    (3,)
    """
    return broadcast.squeeze(a, axis)


def expand_dims(a: Any, axis: Any) -> Any:
    """New axes of size 1 at the places ``axis`` of the result.

    >>> import stretto.numpy as snp
    >>> snp.expand_dims(snp.ones(3), (0, 2)).shape
    (1, 3, 1)
    """
    return broadcast.expand_dims(a, axis)


def _atleast(who: str, arrays: Sequence[Any], reshaped: Any) -> Any:
    values = [reshaped(as_value(x, who, f"array {i}")) for i, x in enumerate(arrays)]
    return values[0] if len(values) == 1 else values


def atleast_1d(*arys: Any) -> Any:
    """The arrays with at least one axis; one array alone, several in a list.

    >>> import stretto.numpy as snp
    >>> snp.atleast_1d(snp.array(3.0)).shape
    (1,)
    """
    return _atleast("atleast_1d", arys, lambda x: x if x.ndim else expand_dims(x, 0))


def atleast_2d(*arys: Any) -> Any:
    """The arrays with at least two axes, new ones first; one array alone, several in a list."""
    return _atleast(
        "atleast_2d", arys, lambda x: broadcast.reshape(x, (1,) * (2 - x.ndim) + x.shape)
    )


def atleast_3d(*arys: Any) -> Any:
    """The arrays with at least three axes; a vector goes in the middle, a matrix first."""
    shapes = {0: lambda s: (1, 1, 1), 1: lambda s: (1, *s, 1), 2: lambda s: (*s, 1)}
    return _atleast(
        "atleast_3d",
        arys,
        lambda x: broadcast.reshape(x, shapes[x.ndim](x.shape)) if x.ndim < 3 else x,
    )


# Broadcasting


def broadcast_to(array: Any, shape: Any, *, out_sharding: None = None) -> Any:
    """The array repeated to ``shape``: axes align from the last, and size 1 stretches.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_to(snp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    refuse_sharding("broadcast_to", out_sharding=out_sharding)
    return broadcast.broadcast_to(array, shape)


def broadcast_shapes(*shapes: Any) -> tuple[int, ...]:
    """The shape that arrays of these shapes broadcast to.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_shapes((3, 1), (4,))
    (3, 4)
    """
    several = [(s,) if isinstance(s, int) else tuple(s) for s in shapes]
    return elementwise.broadcast_shapes("broadcast_shapes", *several) if several else ()


def broadcast_arrays(*args: Any) -> list[Any]:
    """The arrays, each repeated to the shape that they have together.

    >>> import stretto.numpy as snp
    >>> [x.shape for x in snp.broadcast_arrays(snp.ones((3, 1)), snp.ones(4))]
    [(3, 4), (3, 4)]
    """
    values = [as_value(x, "broadcast_arrays", f"array {i}") for i, x in enumerate(args)]
    shape = broadcast_shapes(*(v.shape for v in values))
    return [broadcast.broadcast_to(v, shape) for v in values]


# Order of axes


def transpose(a: Any, axes: Sequence[int] | None = None) -> Any:
    """The axes in the order ``axes``, reversed by default.

    >>> import stretto.numpy as snp
    >>> snp.transpose(snp.ones((2, 3, 4)), (0, 2, 1)).shape
    (2, 4, 3)
    """
    return broadcast.transpose(a, axes)


def permute_dims(a: Any, /, axes: Sequence[int]) -> Any:
    """``transpose`` under the array API's name."""
    return broadcast.transpose(a, axes)


def matrix_transpose(x: Any, /) -> Any:
    """The last two axes exchanged.

    >>> import stretto.numpy as snp
    >>> snp.matrix_transpose(snp.ones((2, 3, 4))).shape
    (2, 4, 3)
    """
    x = as_value(x, "matrix_transpose")
    if x.ndim < 2:
        raise ValueError(f"matrix_transpose: expected an array of rank 2 or more, got {x.type}")
    return swapaxes(x, -1, -2)


def swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    """Two axes exchanged.

    >>> import stretto.numpy as snp
    >>> snp.swapaxes(snp.ones((2, 3)), 0, 1).shape
    (3, 2)
    """
    x = as_value(a, "swapaxes", "a")
    first, second = (canonical_axis(d, x.ndim, "swapaxes") for d in (axis1, axis2))
    order = list(range(x.ndim))
    order[first], order[second] = second, first
    return broadcast.transpose(x, order)


def moveaxis(a: Any, source: Any, destination: Any) -> Any:
    """The axes ``source``, one or several, moved to ``destination``; the others keep their order.

    >>> import stretto.numpy as snp
    >>> snp.moveaxis(snp.ones((2, 3, 4)), 0, -1).shape
    (3, 4, 2)
    """
    x = as_value(a, "moveaxis", "a")
    sources = canonical_axes(source, x.ndim, "moveaxis")
    places = canonical_axes(destination, x.ndim, "moveaxis")
    if len(sources) != len(places):
        raise ValueError(
            f"moveaxis: source {source} and destination {destination} must name as many axes"
        )
    order = [d for d in range(x.ndim) if d not in sources]
    for place, d in sorted(zip(places, sources, strict=True)):
        order.insert(place, d)
    return broadcast.transpose(x, order)


def rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    """The axis moved back until it lies before the axis ``start``."""
    x = as_value(a, "rollaxis", "a")
    axis = canonical_axis(axis, x.ndim, "rollaxis")
    start = integer(start, "rollaxis", "start") + (x.ndim if start < 0 else 0)
    return moveaxis(x, axis, start - 1 if axis < start else start)


# Order of elements


def flip(m: Any, axis: Any = None) -> Any:
    """The order of the elements reversed along ``axis``, all by default.

    >>> import stretto.numpy as snp
    >>> snp.flip(snp.array([1, 2, 3]))
    Array([3, 2, 1], dtype=int32)
    """
    x = as_value(m, "flip", "m")
    return rev(x, canonical_axes(axis, x.ndim, "flip"))


def flipud(m: Any) -> Any:
    """The order reversed along the first axis."""
    return flip(m, 0)


def fliplr(m: Any) -> Any:
    """The order reversed along the second axis."""
    return flip(m, 1)


def rot90(m: Any, k: int = 1, axes: tuple[int, int] = (0, 1)) -> Any:
    """The array turned by ``k`` right angles, from the first of ``axes`` towards the second.

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


def roll(a: Any, shift: Any, axis: Any = None) -> Any:
    """The elements moved ``shift`` places on along ``axis``; those that fall off come in again.

    Without ``axis`` in row-major order. ``shift`` may be traced.

    >>> import stretto.numpy as snp
    >>> snp.roll(snp.arange(4), 1)
    Array([3, 0, 1, 2], dtype=int32)
    """
    x = as_value(a, "roll", "a")
    shift = _shifts(shift)
    if not isinstance(shift, Value):
        found = directly(lambda v: np.roll(v, shift, axis), BOOL + NUMERIC, x)
        if found is not None:
            return found
    if axis is None:
        return broadcast.reshape(roll(ravel(x), shift, 0), x.shape)
    axes = [canonical_axis(d, x.ndim, "roll") for d in
            (axis if isinstance(axis, (tuple, list)) else (axis,))]  # fmt: skip
    if isinstance(shift, (Value, np.ndarray)) and shift.ndim:
        shift = tuple(shift[i] for i in range(shift.shape[0]))
    shifts = tuple(shift) if isinstance(shift, (tuple, list)) else (shift,) * len(axes)
    if len(shifts) != len(axes):
        axes = axes * len(shifts) if len(axes) == 1 else axes
    if len(shifts) != len(axes):
        raise ValueError(f"roll: shift {shift} and axis {axis} must be as many")
    for by, d in zip(shifts, axes, strict=True):
        x = _roll_one(x, by, d)
    return x


def _shifts(shift: Any) -> Any:
    """The shift, or several, as integers; traced or not."""
    if isinstance(shift, (tuple, list)):
        return tuple([_shifts(s) for s in shift])
    if not isinstance(shift, (Value, np.ndarray)):
        return integer(shift, "roll", "shift")
    if kind_of(shift.dtype) not in ("int", "uint", "bool"):
        raise TypeError(f"roll: shift must be of integers, got an array of dtype {shift.dtype}")
    return shift


def _roll_one(x: Any, shift: Any, axis: int) -> Any:
    n = x.shape[axis]
    if n == 0:
        return x
    if isinstance(shift, Value):
        place = broadcasted_iota(shift.dtype, (n,), 0) - shift
        place = broadcast.reshape(remainder(place, n), tuple(n if d == axis else 1 for d in
                                                             range(x.ndim)))  # fmt: skip
        return take_along_axis(x, place, axis, "promise_in_bounds", wrap_negative=False)
    by = integer(shift, "roll", "shift") % n
    if by == 0:
        return x
    tail = slice_in_dim(x, n - by, n, 1, axis)
    return concatenate([tail, slice_in_dim(x, 0, n - by, 1, axis)], axis)


# Diagonals


def diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """The diagonal ``offset`` above the main one of the matrices in two axes, along a last axis.

    >>> import stretto.numpy as snp
    >>> snp.diagonal(snp.array([[1, 2], [3, 4]]))
    Array([1, 4], dtype=int32)
    """
    x = as_value(a, "diagonal", "a")
    if x.ndim < 2:
        raise ValueError(f"diagonal: expected an array of rank 2 or more, got {x.type}")
    return diagonal_of(moveaxis(x, (axis1, axis2), (-2, -1)), integer(offset, "diagonal", "offset"))


def trace(
    a: Any, offset: Any = 0, axis1: int = 0, axis2: int = 1, dtype: Any = None, out: None = None
) -> Any:
    """The sum of the diagonal ``offset`` above the main one, which may be traced.

    >>> import stretto.numpy as snp
    >>> snp.trace(snp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    offset = integer_or_traced(offset, "trace", "offset")
    if dtype is out is None:
        places = {"offset": offset, "axis1": axis1, "axis2": axis2}
        found = directly(np.trace, FLOAT + COMPLEX, a, **places)
        if found is not None:
            return found
    if not isinstance(offset, Value):
        return sum_(diagonal(a, offset, axis1, axis2), -1, dtype, out)
    x = as_value(a, "trace", "a")
    if x.ndim < 2:
        raise ValueError(f"trace: expected an array of rank 2 or more, got {x.type}")
    x = moveaxis(x, (axis1, axis2), (-2, -1))
    return sum_(x, (-2, -1), dtype, out, where=on_diagonal(x.shape[-2:], offset))
