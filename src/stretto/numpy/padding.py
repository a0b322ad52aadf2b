"""Padding: more elements around an array."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.api.vectorize import vmap
from stretto._engine.core.integers import pairs_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import fixed
from stretto._engine.core.types import is_inexact
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.eager.twins import ANY, eager
from stretto._engine.ops import shape as ops
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis, reshape
from stretto.numpy.arithmetic import round as round_
from stretto.numpy.creation import linspace
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import min as min_
from stretto.numpy.joining import concatenate
from stretto.numpy.manipulation import flip, moveaxis
from stretto.numpy.quantiles import median
from stretto.numpy.statistics import mean
from stretto.numpy.taking import take

__all__ = ["pad"]

PadLike: TypeAlias = int | Sequence[Any] | np.ndarray | dict[int, Any]
"""One width, a pair, a pair for each axis, or these by axis."""

_BY_PLACE = ("edge", "wrap", "reflect", "symmetric")
_STATISTICS = {"maximum": max_, "minimum": min_, "mean": mean, "median": median}
_OPTIONS = {
    "constant": {"constant_values"},
    "empty": set(),
    "edge": set(),
    "wrap": set(),
    "linear_ramp": {"end_values"},
    "reflect": {"reflect_type"},
    "symmetric": {"reflect_type"},
    **{name: {"stat_length"} for name in _STATISTICS},
}


def pad(
    array: ArrayLike, pad_width: PadLike, mode: str | Callable[..., Any] = "constant", **kwargs: Any
) -> Array:
    """Add elements before and after those of an array, along each axis.

    Modes, and their options: ``constant`` (``constant_values=``, 0); ``edge``; ``wrap``;
    ``reflect`` and ``symmetric`` (``reflect_type=``, "even" or "odd"); ``linear_ramp``
    (``end_values=``, 0); ``maximum``, ``minimum``, ``mean`` and ``median`` (``stat_length=``, the
    number of elements at either end that count); ``empty``, which gives zeros here.

    Args:
        array: an array, or a number.
        pad_width: a number, (before, after), one such pair for each axis, or a dictionary of axes.
        mode: one of the names above, or a function of a padded vector, its pair of widths, its axis
            and the options, which returns the vector to use.
        **kwargs: the options of the mode.

    Returns:
        An array of the dtype of ``array``.

    Raises:
        TypeError: a width is not an integer, or the mode does not take an option.
        ValueError: a width is negative, ``mode`` or an option is another, or the mode needs
            elements where there are none.

    As NumPy's ``pad``, except that functions return the vector.

    >>> import stretto.numpy as snp
    >>> snp.pad(snp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)
    >>> snp.pad(snp.array([1, 2, 3]), 2, mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    >>> snp.pad(snp.array([1, 2, 3]), 2, mode="maximum", stat_length=2)
    Array([2, 2, 1, 2, 3, 3, 3], dtype=int32)
    """
    x = as_value(array, "pad", "array")
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad: widths must not be negative, got {pad_width}")
    if callable(mode):
        return _pad_by_function(x, widths, mode, kwargs)
    _check_mode(mode, kwargs)
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.get("constant_values", 0))
    ends = _values(kwargs.get("end_values", 0), x.ndim, "end_values")
    lengths = kwargs.get("stat_length")
    counts = [(None, None)] * x.ndim if lengths is None else _pairs(lengths, x.ndim, "stat_length")
    odd = kwargs.get("reflect_type") == "odd"
    for axis, pair in enumerate(widths):
        if pair != (0, 0) and not x.shape[axis]:
            raise ValueError(
                f"pad: axis {axis} of {x.type} is empty, so {mode!r} has nothing to repeat"
            )
    if mode in _BY_PLACE and not odd:
        return _pad_by_place(x, pad_width=widths, mode=mode)
    for axis, pair in enumerate(widths):
        if pair == (0, 0):
            continue
        if mode == "linear_ramp":
            x = _pad_ramp(x, axis, pair, ends[axis])
        elif mode in _STATISTICS:
            x = _pad_statistic(x, axis, pair, _STATISTICS[mode], counts[axis])
        elif odd and x.shape[axis] > 1:
            x = _pad_odd(x, axis, pair, mode == "symmetric")
        else:
            x = _pad_axis_by_place(x, axis, pair, mode)
    return x


@eager(np.pad, ANY)
def _pad_by_place(x: Array, *, pad_width: list[tuple[int, int]], mode: str) -> Array:
    """Pad with elements from other places of the array."""
    for axis, pair in enumerate(pad_width):
        if pair != (0, 0):
            x = _pad_axis_by_place(x, axis, pair, mode)
    return x


def _pad_axis_by_place(x: Array, axis: int, pair: tuple[int, int], mode: str) -> Array:
    way_out = "pad with a constant, or concatenate what is to go before and after"
    n = fixed(x.shape[axis], "pad", f"the size of an axis padded with mode {mode!r}", way_out)
    places: Any = np.arange(n, dtype=np.int32)
    name: Any = mode
    return take(x, np.pad(places, pair, name), axis)


def _check_mode(mode: str, options: dict[str, Any]) -> None:
    """Refuse unknown modes, and options that the mode does not take."""
    if mode not in _OPTIONS:
        known = ", ".join(map(repr, _OPTIONS))
        raise ValueError(f"pad: mode must be a function or one of {known}; got {mode!r}")
    if foreign := options.keys() - _OPTIONS[mode]:
        raise TypeError(f"pad: mode {mode!r} takes no {', '.join(foreign)}")
    if (kind := options.get("reflect_type", "even")) not in ("even", "odd"):
        raise ValueError(f"pad: reflect_type must be 'even' or 'odd', got {kind!r}")


def _pairs(argument: Tree, rank: int, what: str) -> list[tuple[int, int]]:
    """Return (before, after) for each axis, as integers."""
    if argument.__class__ is int:
        return [(argument, argument)] * rank
    return list(pairs_of(_values(argument, rank, what), "pad", what))


def _values(argument: Tree, rank: int, what: str) -> list[tuple[Any, Any]]:
    """Return (before, after) for each axis."""
    if isinstance(argument, dict):
        wanted = {canonical_axis(d, rank, "pad"): pair for d, pair in argument.items()}
        rows = [wanted.get(d, 0) for d in range(rank)]
        return [_values(row, 1, what)[0] for row in rows]
    try:
        pairs = np.broadcast_to(np.asarray(argument), (rank, 2))
    except ValueError:
        raise ValueError(
            f"pad: {what} must be a number, a pair, or a pair for each of {rank} axes; got "
            f"{argument}"
        ) from None
    return [(a, b) for a, b in pairs]


def _pad_constant(x: Array, widths: list[tuple[int, int]], value: Tree) -> Array:
    if isinstance(value, (tuple, list, dict)):
        for d, (pair, values) in enumerate(
            zip(widths, _values(value, x.ndim, "constant_values"), strict=True)
        ):
            for element, width in zip(values, ((pair[0], 0), (0, pair[1])), strict=True):
                config = [(*width, 0) if axis == d else (0, 0, 0) for axis in range(x.ndim)]
                x = ops.pad(x, convert(as_value(element), x.dtype), config)
        return x
    return _surround(x, widths=widths, value=value)


def _surrounded(
    x: np.ndarray, *, widths: list[tuple[int, int]], value: ArrayLike
) -> np.ndarray | None:
    """Call NumPy's ``pad`` by a constant, with less overhead in Python."""
    if value.__class__ not in (int, float):
        return None
    sizes = x.shape
    out = np.empty([n + a + b for n, (a, b) in zip(sizes, widths, strict=True)], x.dtype)
    out[tuple([slice(a, a + n) for n, (a, _) in zip(sizes, widths, strict=True)])] = x
    for axis, (n, (before, after)) in enumerate(zip(sizes, widths, strict=True)):
        front = (slice(None),) * axis
        if before:
            out[(*front, slice(0, before))] = value
        if after:
            out[(*front, slice(before + n, None))] = value
    return out


@eager(_surrounded, ANY)
def _surround(x: Array, *, widths: list[tuple[int, int]], value: ArrayLike) -> Array:
    element = convert(as_value(value, "pad", "constant_values"), x.dtype, x.weak_type)
    return ops.pad(x, element, [(*pair, 0) for pair in widths])


def _joined(parts: list[Array], axis: int) -> Array:
    return concatenate([p for p in parts if p.shape[axis]], axis)


def _pad_ramp(
    x: Array, axis: int, pair: tuple[int, int], ends: tuple[ArrayLike, ArrayLike]
) -> Array:
    """Pad with equal steps from the end values to the elements at the edges."""

    def ramp(place: int, width: int, end: ArrayLike) -> Array:
        edge = ops.slice_in_dim(x, place, place + 1, axis=axis)
        edge = reshape(edge, (*x.shape[:axis], *x.shape[axis + 1 :]))
        first = convert(as_value(end, "pad", "end_values"), x.dtype)
        return linspace(first, edge, width, endpoint=False, dtype=x.dtype, axis=axis)

    n = x.shape[axis]
    return _joined([ramp(0, pair[0], ends[0]), x, flip(ramp(n - 1, pair[1], ends[1]), axis)], axis)


def _pad_statistic(
    x: Array,
    axis: int,
    pair: tuple[int, int],
    statistic: Callable,
    counts: tuple[int | None, int | None],
) -> Array:
    """Pad with a statistic of the first, and of the last, ``counts`` elements."""
    n = x.shape[axis]

    def part(first: int, last: int, width: int) -> Array:
        out = statistic(ops.slice_in_dim(x, first, last, axis=axis), axis, keepdims=True)
        if not is_inexact(x.dtype):
            out = round_(out)
        shape = (*x.shape[:axis], width, *x.shape[axis + 1 :])
        return broadcast_to(convert(out, x.dtype), shape)

    before, after = (n if count is None else min(count, n) for count in counts)
    if not before or not after:
        raise ValueError(f"pad: stat_length must be positive, got {counts} for axis {axis}")
    return _joined([part(0, before, pair[0]), x, part(n - after, n, pair[1])], axis)


def _pad_odd(x: Array, axis: int, pair: tuple[int, int], symmetric: bool) -> Array:
    """Pad by reflection through the point at the edge: f(-i) = 2 f(0) - f(i)."""
    skip = 0 if symmetric else 1
    for side, width in enumerate(pair):
        x = flip(x, axis) if side else x
        while width:
            chunk = min(width, x.shape[axis] - skip)
            edge = ops.slice_in_dim(x, 0, 1, axis=axis)
            mirrored = flip(ops.slice_in_dim(x, skip, skip + chunk, axis=axis), axis)
            x = concatenate([2 * edge - mirrored, x], axis)
            width -= chunk
        x = flip(x, axis) if side else x
    return x


def _pad_by_function(
    x: Array, widths: list[tuple[int, int]], fun: Callable, options: dict[str, Any]
) -> Array:
    """Pad by calling the function on every vector along each axis in turn."""
    x = _pad_constant(x, widths, 0)
    for axis, pair in enumerate(widths):
        last = moveaxis(x, axis, -1)
        rows = reshape(last, (-1, last.shape[-1]))
        out = vmap(lambda row, axis=axis, pair=pair: fun(row, pair, axis, options))(rows)
        if out is None or out.shape != rows.shape:
            raise ValueError(
                f"pad: the function must return the vector, of shape {rows.shape[1:]}, since "
                f"arrays are immutable; got {'None' if out is None else out.shape[1:]}"
            )
        x = moveaxis(reshape(convert(out, x.dtype), last.shape), -1, axis)
    return x
