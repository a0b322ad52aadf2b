"""Differences of neighbours: finite differences, gradients, unwrapped phases, trapezoids."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Literal

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import is_inexact, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import BOOL, FLOAT, NUMERIC, eager
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, gt, lt, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.contract import promote_dtypes
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import canonical_axes, canonical_axis, reshape
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto.numpy.arguments import inexact_values, refuse_complex, weakly_inexact
from stretto.numpy.arithmetic import absolute, remainder
from stretto.numpy.creation import broadcast_argument
from stretto.numpy.joining import concatenate
from stretto.numpy.logic import not_equal
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import cumsum
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.taking import take

__all__ = ["diff", "ediff1d", "gradient", "trapezoid", "unwrap"]


def _part(x: Array, start: int | None, stop: int | None, axis: int) -> Array:
    return slice_in_dim(x, start, stop, 1, axis)


def _one(x: Array, i: int, axis: int) -> Array:
    """Return the element at a place along an axis, which has it; as an axis of size 1."""
    n = x.shape[axis]
    start: Any = i if i >= 0 else n + i
    if exceeds(start, -1) and exceeds(n - start, 0):
        return _part(x, start, start + 1, axis)
    return take(x, reshape(as_value(start), (1,)), axis, mode="promise_in_bounds")


def diff(
    a: ArrayLike,
    n: int = 1,
    axis: int = -1,
    prepend: ArrayLike | None = None,
    append: ArrayLike | None = None,
) -> Array:
    """Take the differences of neighbours along an axis, ``n`` times over.

    Args:
        a: an array of rank 1 or more; of booleans the difference is ``!=``.
        n: how often.
        axis: the axis, by default the last.
        prepend: what to put before the elements first: a number, or an array of any length along
            ``axis``.
        append: what to put after them, likewise.

    Returns:
        The differences, ``n`` fewer along ``axis``, of the dtype of ``a``.

    Raises:
        ValueError: ``a`` is of rank 0, ``n`` is negative, or ``axis`` is out of bounds.
        TypeError: ``a`` is not an array, or ``n`` is not an integer.

    As NumPy's ``diff``.

    >>> import stretto.numpy as snp
    >>> snp.diff(snp.array([1, 2, 4, 7]))
    Array([1, 2, 3], dtype=int32)
    """
    x = as_value(a, "diff", "a")
    n = integer(n, "diff", "n")
    if n < 0:
        raise ValueError(f"diff: n must not be negative, got {n}")
    if not x.ndim:
        raise ValueError(f"diff: expected an array of rank 1 or more, got {x.type}")
    if not n:
        return x
    axis = canonical_axis(axis, x.ndim, "diff")
    parts = [x]
    for end, name in ((prepend, "prepend"), (append, "append")):
        if end is not None:
            more = as_value(end, "diff", name)
            if not more.ndim:
                one = tuple(1 if d == axis else m for d, m in enumerate(x.shape))
                more = broadcast_to(more, one)
            parts = [more, *parts] if name == "prepend" else [*parts, more]
    return _diff(concatenate(parts, axis) if len(parts) > 1 else x, n=n, axis=axis)


@eager(np.diff, BOOL + NUMERIC)
def _diff(x: Array, *, n: int, axis: int) -> Array:
    for _ in range(n):
        after, before = _part(x, 1, None, axis), _part(x, 0, -1, axis)
        x = not_equal(after, before) if kind_of(x.dtype) == "bool" else after - before
    return x


def ediff1d(
    ary: ArrayLike, to_end: ArrayLike | None = None, to_begin: ArrayLike | None = None
) -> Array:
    """Take the differences of neighbours in row-major order.

    Args:
        ary: an array.
        to_end: what to put after the differences.
        to_begin: what to put before them.

    Returns:
        The differences, of rank 1 and the dtype of ``ary``.

    Raises:
        TypeError: an argument is not an array or a number.

    As NumPy's ``ediff1d``.

    >>> import stretto.numpy as snp
    >>> snp.ediff1d(snp.array([1, 2, 4]), to_begin=0)
    Array([0, 1, 2], dtype=int32)
    """
    steps = _ediff1d(as_value(ary, "ediff1d", "ary"))
    parts = [steps]
    if to_begin is not None:
        parts.insert(0, convert(ravel(as_value(to_begin, "ediff1d", "to_begin")), steps.dtype))
    if to_end is not None:
        parts.append(convert(ravel(as_value(to_end, "ediff1d", "to_end")), steps.dtype))
    return concatenate(parts) if len(parts) > 1 else steps


@eager(np.ediff1d, NUMERIC)
def _ediff1d(x: Array) -> Array:
    if kind_of(x.dtype) == "bool":
        raise TypeError(f"ediff1d: booleans have no difference, got {x.type}; use .astype(int)")
    x = ravel(x)
    return _part(x, 1, None, 0) - _part(x, 0, -1, 0)


# Gradients


def _spacings(
    varargs: Sequence[ArrayLike], axes: Sequence[int], shape: tuple[int, ...]
) -> list[Array]:
    """Return a distance for each axis, or the coordinates along it."""
    if len(varargs) not in (0, 1, len(axes)):
        raise TypeError(
            f"gradient: expected no spacing, one for all, or one for each of {len(axes)} axes; got "
            f"{len(varargs)}"
        )
    spacings = [as_value(v, "gradient", "a spacing") for v in varargs]
    if len(spacings) != len(axes):
        if spacings[0].ndim and len(axes) > 1:
            raise ValueError(
                "gradient: coordinates need one array for each axis; got one for all axes"
            )
        spacings = spacings * len(axes)
    for x, axis in zip(spacings, axes, strict=True):
        if x.ndim and x.shape != (shape[axis],):
            raise ValueError(
                f"gradient: expected a distance, or {shape[axis]} coordinates along axis {axis}; "
                f"got {x.type}"
            )
    return spacings


@rounded_once
def gradient(
    f: ArrayLike,
    *varargs: ArrayLike,
    axis: int | Sequence[int] | None = None,
    edge_order: int | None = None,
) -> Array | list[Array]:
    """Estimate the slope along each axis by second-order central differences.

    Args:
        f: samples of a function.
        *varargs: the distances between samples, or the samples' coordinates: one for all axes, or
            one for each; by default 1.
        axis: the axes, all by default.
        edge_order: the order of the one-sided differences at the edges, 1 (the default) or 2.

    Returns:
        The slopes, a float array of the shape of ``f``, or a list of one for each of several axes.

    Raises:
        ValueError: an axis has fewer than ``edge_order + 1`` samples or is out of bounds,
            ``edge_order`` is neither 1 nor 2, or the coordinates do not match the axis.
        TypeError: the number of ``varargs`` is not 0, 1, or the number of axes.

    As NumPy's ``gradient``.

    >>> import stretto.numpy as snp
    >>> snp.gradient(snp.array([1.0, 2.0, 4.0, 7.0]))
    Array([1. , 1.5, 2.5, 3. ], dtype=float32)
    """
    (x,) = inexact_values("gradient", f=f)
    axes = canonical_axes(axis, x.ndim, "gradient")
    edge_order = 1 if edge_order is None else edge_order
    if edge_order not in (1, 2):
        raise ValueError(f"gradient: edge_order must be 1 or 2, got {edge_order!r}")
    for d in axes:
        if x.shape[d] < edge_order + 1:
            raise ValueError(
                f"gradient: expected at least {edge_order + 1} samples along axis {d} for "
                f"edge_order={edge_order}; got {x.type}"
            )
    if varargs:
        spacings = _spacings(varargs, axes, x.shape)
        slopes = [_slope(x, h, d, edge_order) for d, h in zip(axes, spacings, strict=True)]
    else:
        slopes = _slopes(x, axes=axes, edge_order=edge_order)
    return slopes[0] if len(slopes) == 1 else slopes


def _slopes_of_host(
    x: np.ndarray, *, axes: tuple[int, ...], edge_order: Literal[1, 2]
) -> list[np.ndarray]:
    return [np.gradient(x, axis=d, edge_order=edge_order) for d in axes]


@eager(_slopes_of_host, FLOAT)
def _slopes(x: Array, *, axes: tuple[int, ...], edge_order: int) -> list[Array]:
    """Return the slope along each axis, of samples at a distance of 1."""
    return [_slope(x, 1.0, d, edge_order) for d in axes]


def _slope(x: Array, h: Array | float, axis: int, edge_order: int) -> Array:
    coordinates = bool(getattr(h, "ndim", 0))
    gaps: Any = h
    if coordinates:
        x, places = promote_dtypes("gradient", x, h)
        gaps = reshape(diff(places), tuple(-1 if d == axis else 1 for d in range(x.ndim)))
    left = right = first = second = last = before = gaps
    if coordinates:
        left, right = _part(gaps, 0, -1, axis), _part(gaps, 1, None, axis)
        nearest, next_ = (0, -1) if edge_order == 1 else (1, -2)
        first, second = (_one(gaps, i, axis) for i in (0, nearest))
        last, before = (_one(gaps, i, axis) for i in (-1, next_))

    def at(i: int) -> Array:
        return _one(x, i, axis)

    # f' = (l² f₊ + (r² - l²) f - r² f₋) / (l r (l + r)), l and r the distances to either side
    a, b, c = _part(x, 0, -2, axis), _part(x, 1, -1, axis), _part(x, 2, None, axis)
    if coordinates:
        weights = (-right / (left * (left + right)), (right - left) / (left * right),
                   left / (right * (left + right)))  # fmt: skip
        middle = weights[0] * a + weights[1] * b + weights[2] * c
    else:
        middle = (c - a) / (2 * h)
    if edge_order == 1:
        begin = (at(1) - at(0)) / first
        end = (at(-1) - at(-2)) / last
    else:  # the slope at the edge of the parabola through three samples
        begin = _edge(at(0), at(1), at(2), first, second)
        end = -_edge(at(-1), at(-2), at(-3), last, before)
    return concatenate([begin, middle, end], axis)


def _edge(x: Array, y: Array, z: Array, h: Array | float, k: Array | float) -> Array:
    """Return the slope at the first of three samples, at distances h and then k."""
    return -(2 * h + k) / (h * (h + k)) * x + (h + k) / (h * k) * y - h / (k * (h + k)) * z


# Phases and areas


@rounded_once
def unwrap(
    p: ArrayLike, discont: ArrayLike | None = None, axis: int = -1, period: ArrayLike = 2 * math.pi
) -> Array:
    """Add periods so that no step along an axis is more than half a period.

    Args:
        p: phases, in radians by default.
        discont: smaller steps are left as they are; by default half a period.
        axis: the axis, by default the last.
        period: the period, 2 pi by default.

    Returns:
        The phases, of the shape of ``p``; integers stay integers where ``period`` is one.

    Raises:
        ValueError: ``axis`` is out of bounds.
        TypeError: an argument is not an array or a number.

    As NumPy's ``unwrap``.

    >>> import stretto.numpy as snp
    >>> snp.unwrap(snp.array([0, 3, 6, 1]), period=7)
    Array([0, 3, 6, 8], dtype=int32)
    """
    refuse_complex("unwrap", p=p, period=period)
    x = as_value(p, "unwrap", "p")
    axis = canonical_axis(axis, x.ndim, "unwrap")
    cycle = as_value(period, "unwrap", "period")
    if is_inexact(cycle.dtype):
        x = weakly_inexact(x)
    x, cycle = promote_dtypes("unwrap", x, cycle)
    steps = diff(x, axis=axis)
    limit = None
    if discont is not None:
        refuse_complex("unwrap", discont=discont)
        _, limit = promote_dtypes("unwrap", steps, discont)
    for name, value in (("period", cycle), ("discont", limit)):
        if value is not None and value.ndim:
            broadcast_argument(value, steps.shape, "unwrap", name)
    whole = not is_inexact(x.dtype)
    high = cycle // 2 if whole else cycle / 2
    within = remainder(steps + high, cycle) - high
    # A step of exactly half a period keeps its sign.
    is_opposite = eq(within, -high) & gt(steps, zeros_like(steps))
    within = choose(
        is_opposite & eq(remainder(cycle, 2), 0) if whole else is_opposite, high, within
    )
    least = 2 * absolute(steps)
    away = lt(least, cycle if limit is None else 2 * limit)
    change = cumsum(choose(away, 0, within - steps), axis, dtype=x.dtype)
    config = [(int(d == axis), 0, 0) for d in range(x.ndim)]
    return x + _part(pad(change, 0, config), 0, x.shape[axis], axis)


@rounded_once
def trapezoid(
    y: ArrayLike, x: ArrayLike | None = None, dx: ArrayLike = 1.0, axis: int = -1
) -> Array:
    """Integrate along an axis by the trapezoidal rule.

    Args:
        y: samples of a function.
        x: where they lie: of rank 1, or of the shape of ``y``.
        dx: the distance between samples where ``x`` is not given.
        axis: the axis, by default the last.

    Returns:
        The integrals, a float array of the shape of ``y`` without ``axis``.

    Raises:
        ValueError: ``axis`` is out of bounds, or the shapes do not broadcast.
        TypeError: an argument is not an array or a number.

    As NumPy's ``trapezoid``.

    >>> import stretto.numpy as snp
    >>> snp.trapezoid(snp.array([1.0, 2.0, 4.0]), snp.array([0.0, 1.0, 3.0]))
    Array(7.5, dtype=float32)
    """
    samples = as_value(y, "trapezoid", "y")
    axis = canonical_axis(axis, samples.ndim, "trapezoid")
    if x is None:
        return _trapezoid_by_step(samples, dx=dx, axis=axis)
    return _trapezoid(samples, x, axis=axis)


@eager(np.trapezoid, FLOAT)
def _trapezoid(y: Array, x: ArrayLike, *, axis: int) -> Array:
    samples, places = inexact_values("trapezoid", y=y, x=x)
    if not places.ndim:
        raise ValueError(f"trapezoid: x must say where the samples lie, got {places.type}")
    step = diff(places, axis=axis if places.ndim == samples.ndim else -1)
    if places.ndim == 1:
        step = reshape(step, tuple(-1 if d == axis else 1 for d in range(samples.ndim)))
    return _areas(samples, step, axis)


def _trapezoid_by_number(y: np.ndarray, *, dx: ArrayLike, axis: int) -> np.ndarray | None:
    number: Any = dx
    return np.trapezoid(y, dx=number, axis=axis) if dx.__class__ in (int, float) else None


@eager(_trapezoid_by_number, FLOAT)
def _trapezoid_by_step(y: Array, *, dx: ArrayLike, axis: int) -> Array:
    samples, step = inexact_values("trapezoid", y=weakly_inexact(y), dx=dx)
    return _areas(samples, step, axis)


def _areas(samples: Array, step: Array, axis: int) -> Array:
    """Return the sum of the trapezoids between neighbours that are ``step`` apart."""
    sums = _part(samples, 1, None, axis) + _part(samples, 0, -1, axis)
    broadcast_shapes("trapezoid", step.shape, sums.shape)
    return sum_(step * sums * 0.5, axis)
