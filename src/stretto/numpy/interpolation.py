"""Interpolation along a line through given points."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.comparison import eq, full_like, gt, lt, ne
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import argsort
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute, remainder
from stretto.numpy.joining import concatenate
from stretto.numpy.searching import searchsorted
from stretto.numpy.taking import take

__all__ = ["interp"]


@rounded_once
def interp(
    x: ArrayLike,
    xp: ArrayLike,
    fp: ArrayLike,
    left: ArrayLike | str | None = None,
    right: ArrayLike | str | None = None,
    period: ArrayLike | None = None,
) -> Array:
    """Interpolate linearly between given points.

    Derivatives are those of the line's pieces; at a point, of the piece after it.

    Args:
        x: where to interpolate, a real array or a number.
        xp: the points' first coordinates, of rank 1 and rising, unless there is a ``period``.
        fp: their values, real or complex, as many.
        left: the value before the first point; by default the first of ``fp``. With
            ``"extrapolate"`` the line goes on.
        right: the value after the last point, likewise.
        period: the period with which the points repeat; ``left`` and ``right`` are then ignored.

    Returns:
        The values, float or complex, of the shape of ``x``.

    Raises:
        ValueError: ``xp`` and ``fp`` are not of one shape of rank 1, or are empty; or ``left`` or
            ``right`` is another text.
        TypeError: ``x`` or ``xp`` is complex, or an argument is not an array or a number.

    As NumPy's ``interp``.

    >>> import stretto.numpy as snp
    >>> snp.interp(snp.array([0.0, 1.5]), snp.array([1.0, 2.0]), snp.array([10.0, 20.0]))
    Array([10., 15.], dtype=float32)
    """
    (values,) = inexact_values("interp", fp=fp)
    places, points = inexact_values("interp", x=x, xp=xp)
    if points.ndim != 1 or values.shape != points.shape:
        raise ValueError(
            f"interp: xp and fp must have one shape of rank 1, not empty; got {points.type}, "
            f"{values.type}"
        )
    if without_elements(points.size, "interp"):
        raise ValueError(f"interp: xp and fp must not be empty, got {points.type}")
    if is_complex(places.dtype):
        raise TypeError(f"interp: x and xp must be real, got {places.type}")
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise ValueError(f"interp: {name} must be a number or 'extrapolate', got {end!r}")
    if period is not None:
        places, points, values = _repeated(places, points, values, period)
        left = right = None
    _, values = inexact_values("interp", x=places, fp=values)
    return _interp(places, points, values, left=left, right=right)


def _interp_of_hosts(
    x: np.ndarray,
    xp: np.ndarray,
    fp: np.ndarray,
    left: ArrayLike | str | None,
    right: ArrayLike | str | None,
) -> np.ndarray | None:
    """Call NumPy's ``interp``, but not for strings or arrays as ``left`` and ``right``."""
    ends: Any = (left, right)
    for end in ends:
        if isinstance(end, str) or np.ndim(end):
            return None
    return np.interp(x, xp, fp, *ends)


@eager(_interp_of_hosts, FLOAT)
def _interp(
    places: Array,
    points: Array,
    values: Array,
    *,
    left: ArrayLike | str | None,
    right: ArrayLike | str | None,
) -> Array:
    real = real_dtype(values.dtype)
    n = points.shape[0]
    first, last = (take(values, i) for i in (0, n - 1))
    if n == 1:
        out = full_like(places, 0, values.dtype) + first
    else:
        at = searchsorted(slice_in_dim(points, 1, -1), places, "right")  # the piece before each
        low, high = take(points, at, mode="clip"), take(points, at + 1, mode="clip")
        base, rise = take(values, at, mode="clip"), take(values, at + 1, mode="clip")
        width = high - low
        part = convert((places - low) / choose(eq(width, 0), full_like(width, 1), width), real)
        # Equal infinities have no difference, and are what is between them; one infinity is, too.
        flat = eq(width, 0) | eq(base, rise)
        between = base + part * (rise - base)
        lost = ne(between, between)
        near = choose(
            eq(part, 0), base, choose(eq(part, 1), rise, rise - (1 - part) * (rise - base))
        )
        out = choose(flat, base, choose(lost, near, between))
    for end, value, beyond in (
        (left, first, lt(places, take(points, 0))),
        (right, last, gt(places, take(points, n - 1))),
    ):
        if not isinstance(end, str):
            out = choose(beyond, value if end is None else end, out)
    return out


def _repeated(x: Array, xp: Array, fp: Array, period: ArrayLike) -> tuple[Array, Array, Array]:
    """Order the points of one period, with the last one before them and the first one after."""
    cycle = absolute(period)
    x, xp = remainder(x, cycle), remainder(xp, cycle)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concatenate([slice_in_dim(xp, -1, None) - cycle, xp, slice_in_dim(xp, 0, 1) + cycle])
    return x, xp, concatenate([slice_in_dim(fp, -1, None), fp, slice_in_dim(fp, 0, 1)])
