"""Arrays flipped, rotated and rolled."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from stretto._engine.core.integers import entries_of, integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axes, Tree
from stretto._engine.eager.twins import BOOL, NUMERIC, eager
from stretto._engine.ops import broadcast
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.shape import rev, slice_in_dim
from stretto.numpy.axis_order import swapaxes
from stretto.numpy.manipulation import ravel
from stretto.numpy.remainders import remainder

__all__ = ["flip", "fliplr", "flipud", "roll", "rot90"]


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
    """The shift, or a tuple of them, as integers, traced or not."""
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
