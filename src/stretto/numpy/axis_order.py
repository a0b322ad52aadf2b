"""The order of the axes."""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import layout
from stretto._engine.ops.broadcast import canonical_axes
from stretto._engine.ops.layout import canonical_axis

__all__ = ["matrix_transpose", "moveaxis", "permute_dims", "rollaxis", "swapaxes", "transpose"]


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
