"""``stretto.scipy.ndimage``: interpolation between the elements of arrays."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute, sign
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.rounding import floor

__all__ = ["map_coordinates"]


def _mirror(i: Array, n: int) -> Array:
    """0 1 ... n-1 n-2 ... 1, repeated: each end occurs once."""
    last = max(n - 1, 1)
    return snp.minimum(absolute((i + last) % (2 * last) - last), n - 1)


# Where the element at index i is read, of n along an axis. For "constant", those outside are
# replaced afterwards.
_INDICES: dict[str, Callable[[Array, int], Array]] = {
    "constant": lambda i, n: snp.clip(i, 0, n - 1),
    "nearest": lambda i, n: snp.clip(i, 0, n - 1),
    "wrap": lambda i, n: i % n,
    "mirror": _mirror,
    # 0 0 1 1 ... n-1 n-1 n-1 n-1 ...: each end occurs twice.
    "reflect": lambda i, n: _mirror(2 * i + 1, 2 * n + 1) // 2,
}


def _round(x: Array) -> Array:
    """Return the nearest integer; halves are rounded away from zero."""
    return sign(x) * floor(absolute(x) + 0.5)


@rounded_once
def map_coordinates(
    input: ArrayLike,
    coordinates: Sequence[ArrayLike],
    order: int,
    mode: str = "constant",
    cval: ArrayLike = 0.0,
) -> Array:
    """Read an array at coordinates between its elements.

    Args:
        input: an array.
        coordinates: for each axis an array of coordinates; they broadcast.
        order: 0 for the nearest element, 1 to interpolate linearly.
        mode: what lies outside: ``"constant"`` for ``cval``, ``"nearest"`` for the nearest element,
            ``"wrap"`` for the elements repeated, ``"mirror"`` for their mirror image about the
            centre of the last one, ``"reflect"`` for that about its edge. SciPy calls the first and
            the third ``"grid-constant"`` and ``"grid-wrap"``.
        cval: a scalar.

    Returns:
        The values, of the shape of the coordinates and the dtype of ``input``; integers are
            rounded.

    Raises:
        TypeError: ``cval`` is not a scalar.
        ValueError: there are not as many coordinates as axes, or ``input`` is empty.
        NotImplementedError: ``order`` is neither 0 nor 1, or there is no such mode.

    As SciPy's ``map_coordinates``.

    >>> import stretto as st
    >>> x = st.numpy.array([[1.0, 2.0], [3.0, 4.0]])
    >>> st.scipy.ndimage.map_coordinates(x, [st.numpy.array([0.5]), st.numpy.array([0.0])], 1)
    Array([2.], dtype=float32)
    """
    caller = "map_coordinates"
    x = as_value(input, caller, "input")
    if mode not in _INDICES:
        raise NotImplementedError(
            f"{caller}: mode must be one of {', '.join(_INDICES)}; got {mode!r}"
        )
    if order not in (0, 1):
        raise NotImplementedError(f"{caller}: order must be 0 or 1; got {order!r}")
    if len(coordinates) != x.ndim or not x.ndim:
        raise ValueError(
            f"{caller}: expected coordinates for each axis of {x.type}, got {len(coordinates)}"
        )
    if not x.size:
        raise ValueError(f"{caller}: expected elements to read, got {x.type}")
    points = promote_values(caller, *coordinates)
    outside = as_value(cval, caller, "cval")
    if outside.ndim:
        raise TypeError(f"{caller}: cval must be a scalar, got {outside.type}")
    value = convert(outside, x.dtype)
    total: Any = None
    for corner in itertools.product(*(_along(p, order) for p in points)):
        part = _read(x, [index for index, _ in corner], mode, value)
        for _, weight in corner:
            part = part if weight is None else part * weight
        total = part if total is None else total + part
    if not is_inexact(x.dtype) and is_inexact(total.dtype):
        total = _round(total)
    return convert(snp.broadcast_to(total, points[0].shape), x.dtype)


def _along(point: Array, order: int) -> list[tuple[Array, Array | None]]:
    """Return the indices to read along one axis, and their weights."""
    if not is_inexact(point.dtype):
        return [(point, None)]
    if order == 0:
        return [(convert(_round(point), _INT), None)]
    low = floor(point)
    fraction = point - low
    index = convert(low, _INT)
    return [(index, 1 - fraction), (index + 1, fraction)]


_INT = np.dtype(np.int32)


def _read(x: Array, indices: Sequence[Array], mode: str, value: Array) -> Array:
    """Return the elements at these indices; ``value`` outside, in mode ``"constant"``."""
    at = tuple([_INDICES[mode](i, n) for i, n in zip(indices, x.shape, strict=True)])
    out = x.at[at].get(mode="promise_in_bounds")
    if mode != "constant":
        return out
    inside: Any = True
    for i, n in zip(indices, x.shape, strict=True):
        inside = (i >= 0) & (i < n) & inside
    return snp.where(inside, out, value)


exports(__name__)
