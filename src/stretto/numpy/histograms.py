"""Counts: of integers, of numbers in bins, and in bins of several dimensions.

A bin holds its left edge and not its right one; the last bin holds both. Numbers outside all bins,
and NaN, are not counted. Next, read ``interpolation``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, inexact_dtype, is_complex, kind_of
from stretto._engine.ops.broadcast import broadcast_to, reshape
from stretto._engine.ops.comparison import eq, full, full_like, ge, lt, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.contract import promote_dtypes
from stretto._engine.ops.convert import convert
from stretto._engine.ops.shape import rev, slice_in_dim
from stretto._engine.ops.sharding import refuse_sharding
from stretto._engine.runtime.eager import quiet
from stretto.numpy.arguments import inexact_values, refuse_complex
from stretto.numpy.arithmetic import maximum
from stretto.numpy.differences import diff
from stretto.numpy.directly import FLOAT, INTEGER, directly, host_of
from stretto.numpy.indexing import At
from stretto.numpy.indices import concrete_of
from stretto.numpy.joining import stack
from stretto.numpy.manipulation import ravel
from stretto.numpy.quick import array_of
from stretto.numpy.ranges import linspace
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import min as min_
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import concrete, searchsorted

__all__ = [
    "bincount",
    "digitize",
    "histogram",
    "histogram2d",
    "histogram_bin_edges",
    "histogramdd",
]


def bincount(
    x: Any,
    weights: Any = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: None = None,
) -> Any:
    """How often each of 0, 1, 2, … is in ``x``; with ``weights``, their sum at each.

    There are ``length`` counts, and what is greater is not counted; by default as many as the
    greatest element needs, and at least ``minlength``, which must be known: while tracing give
    ``length``. Negative numbers count as 0. Raises ``TypeError`` for ``x`` of floats.

    >>> import stretto.numpy as snp
    >>> snp.bincount(snp.array([0, 3, 3]))
    Array([1, 0, 0, 2], dtype=int32)
    """
    refuse_sharding("bincount", out_sharding=out_sharding)
    x = as_value(x, "bincount", "x")
    if kind_of(x.dtype) not in ("bool", "int", "uint") or x.ndim != 1:
        raise TypeError(f"bincount: expected integers, of rank 1, in x; got {x.type}")
    if length is None and x.type.kind != "bool":
        found = _bincount_directly(x, weights, minlength)
        if found is not None:
            return found
    at = maximum(convert(x, default_dtype("int")) if kind_of(x.dtype) == "bool" else x, 0)
    if length is None:
        host = concrete(at, "bincount")
        length = max(
            int(host.max()) + 1 if host.size else 0, integer(minlength, "bincount", "minlength", 0)
        )
    if weights is None:
        return _add_up((integer(length, "bincount", "length", 0),), at, None)
    w = as_value(weights, "bincount", "weights")
    if w.shape != x.shape:
        raise ValueError(f"bincount: weights and x must have one shape; got {w.type} and {x.type}")
    return _add_up((integer(length, "bincount", "length", 0),), at, w)


def _bincount_directly(x: Any, weights: Any, minlength: Any) -> Any:
    """By NumPy, which adds up in float64; None where it refuses, or integers are to be added up."""
    options, counted = {"minlength": minlength}, host_of(x, INTEGER)
    if weights is None:
        return directly(np.bincount, INTEGER, x, out=default_dtype("int"), **options)
    weighed = host_of(weights, FLOAT)
    if counted is None or weighed is None or counted.dtype.itemsize > 4:
        return None
    try:
        sums = np.bincount(counted, weighed, **options)
        return array_of(sums.astype(weighed.dtype), weighed.dtype)
    except (ValueError, TypeError):
        return None


def _add_up(shape: tuple[int, ...], at: Any, weights: Any) -> Any:
    """How often each flat index occurs, or the weights there; those too great are dropped."""
    if weights is None:
        counts = At(full((math.prod(shape),), 0, default_dtype("int")))[at].add(1, mode="drop")
    else:
        if kind_of(weights.dtype) == "bool":
            weights = convert(weights, default_dtype("int"))
        counts = At(full((math.prod(shape),), 0, weights.dtype))[at].add(weights, mode="drop")
    return reshape(counts, shape)


def digitize(x: Any, bins: Any, right: bool = False, *, method: str | None = None) -> Any:
    """The bin of each element: ``i`` where ``bins[i-1] <= x < bins[i]``.

    Bins rise, or fall: then it is ``bins[i-1] > x >= bins[i]``. With ``right`` the other edge
    belongs to each bin. ``method`` as for ``searchsorted``.

    >>> import stretto.numpy as snp
    >>> snp.digitize(snp.array([0.2, 6.4, 3.0]), snp.array([0.0, 1.0, 2.5, 4.0]))
    Array([1, 4, 3], dtype=int32)
    """
    edges = as_value(bins, "digitize", "bins")
    if edges.ndim != 1:
        raise ValueError(f"digitize: expected bins of rank 1, got {edges.type}")
    x = as_value(x, "digitize", "x")
    refuse_complex("digitize", x=x, bins=edges)
    n = edges.shape[0]
    if not n:
        return full(x.shape, 0, default_dtype("int"))
    falls = lt(slice_in_dim(edges, n - 1, n), slice_in_dim(edges, 0, 1))
    edges = select(broadcast_to(falls, (n,)), rev(edges, (0,)), edges)
    place = searchsorted(edges, x, "left" if right else "right", method=method or "scan")
    return choose(reshape(falls, ()), n - place, place)


# Bins


def _edges(who: str, x: Any, bins: Any, range: Any, weights: Any) -> Any:
    """The edges of bins: given, so many of one width, or by a rule of NumPy's for known values."""
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError(f"{who}: bins={bins!r} cannot take weights into account; give a number")
        ends = None if range is None else (float(range[0]), float(range[1]))
        host = np.asarray(concrete(x, f"{who}: bins={bins!r}"), np.float64)
        edges = np.histogram_bin_edges(host, bins, ends)
        return convert(as_value(edges), inexact_dtype(x.dtype))
    given = as_value(bins, who, "bins")
    if given.ndim > 1 or (not given.ndim and kind_of(given.dtype) not in ("int", "uint")):
        raise ValueError(
            f"{who}: bins must be a number of bins, their edges, or the name of a rule; got "
            f"{given.type}"
        )
    if given.ndim:
        return given
    count = integer(bins, who, "bins")
    if count < 1:
        raise ValueError(f"{who}: expected at least one bin, got bins={count}")
    low, high = _ends(who, x, range)
    return linspace(low, high, count + 1)


def _ends(who: str, x: Any, range: Any) -> tuple[Any, Any]:
    """The least and greatest number to count, half a unit apart from one that is both."""
    if range is not None:
        low, high = range
    elif x.size:
        low, high = min_(x), max_(x)
    else:
        low, high = 0, 1
    low, high, _ = inexact_values(who, low=low, high=high, a=x)
    known = [concrete_of(end) for end in (low, high)]
    if all(end is not None for end in known):
        first, last = (float(np.asarray(end)) for end in known)
        if not (math.isfinite(first) and math.isfinite(last)) or first > last:
            raise ValueError(
                f"{who}: expected a finite range whose first end is not the greater one; got "
                f"({first}, {last})"
            )
    width = choose(eq(low, high), full_like(low, 0.5), full_like(low, 0))
    return low - width, high + width


def _bin_of(x: Any, edges: Any) -> Any:
    """The bin of each number; as many as there are bins, or -1, where it is in none."""
    n = edges.shape[0] - 1
    x, edges = promote_dtypes("histogram", x, edges)
    place = searchsorted(edges, x, "right") - 1
    return choose(eq(x, slice_in_dim(edges, n, n + 1)), n - 1, place)


_BLOCK = 1 << 16


def _places_among(x: np.ndarray, edges: np.ndarray, counted: bool) -> np.ndarray | None:
    """The bin of each number, counted from 1, by the bins' width; None if they do not have one.

    0 stands for none. If ``counted``, how many are in each instead. Rounding is set right, and
    memory used again, block by block.
    """
    n = len(edges) - 1
    first, last = float(edges[0]), float(edges[-1])
    if not 1 <= n < 1 << 16 or not np.isfinite([first, last]).all() or not first < last:
        return None
    even = np.linspace(first, last, n + 1)
    if np.abs(edges - even).max() > 0.25 * (last - first) / n:
        return None
    size = min(len(x), _BLOCK)
    counts, places = np.zeros(n + 1, np.intp), np.empty(size if counted else len(x), np.intp)
    scale = x.dtype.type(n / (last - first))
    lower, upper = edges[:-1], np.append(edges[1:-1], edges.dtype.type(np.inf))
    ends = np.empty(size, x.dtype)
    for start in range(0, len(x), _BLOCK):
        part = x[start : start + _BLOCK]
        end, at = ends[: len(part)], places[0 if counted else start :][: len(part)]
        np.subtract(part, edges[0], out=end)
        end *= scale
        within: Any = None
        if not (part.min() >= edges[0] and part.max() <= edges[-1]):  # nor where one is NaN
            within = (part >= edges[0]) & (part <= edges[-1])
            end[~within] = 0
        np.copyto(at, np.minimum(end, n - 1, out=end), casting="unsafe")
        if (below := part < lower.take(at, out=end, mode="clip")).any():
            at -= below
        if (above := part >= upper.take(at, out=end, mode="clip")).any():
            at += above
        at += 1
        if within is not None:
            at *= within
        if counted:
            counts += np.bincount(at, minlength=n + 1)
    return counts if counted else places


def _count_directly(
    xs: Sequence[Any], edges: Sequence[Any], shape: tuple[int, ...], weights: Any
) -> Any:
    """The counts by NumPy, in bins of one width; None where that is not for it."""
    flat: Any = None
    if math.prod(shape) >= 1 << 31:
        return None
    for x, edge, n in zip(xs, edges, shape, strict=True):
        points, ends = host_of(x, FLOAT), host_of(edge, FLOAT)
        if points is None or ends is None or points.dtype != ends.dtype:
            return None
        counted = len(xs) == 1 and weights is None
        place = quiet.run(_places_among, points, ends, counted)
        if place is None:
            return None
        if counted:
            wanted = default_dtype("int")
            return array_of(place[1:].astype(wanted), wanted)
        if flat is None:
            flat = place
        else:
            flat = ((flat - 1) * n + place) * ((flat > 0) & (place > 0))
    size = math.prod(shape)
    if weights is None:
        sums = np.bincount(flat, minlength=size + 1)
        wanted = default_dtype("int")
    elif (weighed := host_of(weights, FLOAT)) is not None:
        sums, wanted = np.bincount(flat, weighed, size + 1), weighed.dtype
    else:
        return None
    return array_of(sums[1:].astype(wanted).reshape(shape), wanted)


def histogram_bin_edges(
    a: Any, bins: Any = 10, range: Sequence[Any] | None = None, weights: Any = None
) -> Any:
    """The edges of the bins into which ``histogram`` sorts ``a``.

    ``bins`` is their number, over ``range`` (by default that of ``a``); the edges, in rising order;
    or a rule for both, where the elements are known: ``"auto"``, ``"fd"``, ``"doane"``,
    ``"scott"``, ``"stone"``, ``"rice"``, ``"sturges"``, ``"sqrt"``, as in NumPy.

    >>> import stretto.numpy as snp
    >>> snp.histogram_bin_edges(snp.array([1, 2, 5]), bins=2)
    Array([1., 3., 5.], dtype=float32)
    """
    x = ravel(as_value(a, "histogram_bin_edges", "a"))
    return _edges("histogram_bin_edges", x, bins, range, weights)


def histogram(
    a: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Any, Any]:
    """How many elements lie in each bin, and the edges of the bins (see ``histogram_bin_edges``).

    With ``weights``, one for each element, their sum in each bin; with ``density``, divided by the
    whole and by the bins' widths.

    >>> import stretto.numpy as snp
    >>> snp.histogram(snp.array([1, 2, 2, 5]), bins=2)
    (Array([3, 1], dtype=int32), Array([1., 3., 5.], dtype=float32))
    """
    x = as_value(a, "histogram", "a")
    w = None if weights is None else as_value(weights, "histogram", "weights")
    if is_complex(x.dtype):
        raise TypeError(f"histogram: complex numbers have no order, {x.type}; take a real part")
    if w is not None and w.shape != x.shape:
        raise ValueError(f"histogram: weights and a must have one shape; got {w.type} and {x.type}")
    x, w = ravel(x), None if w is None else ravel(w)
    edges = _edges("histogram", x, bins, range, w)
    counts, _ = _count([x], [edges], w, bool(density))
    return counts, edges


def _count(xs: list[Any], edges: list[Any], weights: Any, density: bool) -> tuple[Any, list[Any]]:
    """The counts in the bins between the edges of each dimension."""
    shape = tuple(e.shape[0] - 1 for e in edges)
    counts = _count_directly(xs, edges, shape, weights)
    if counts is None:
        flat: Any = 0
        inside: Any = True
        for x, edge, n in zip(xs, edges, shape, strict=True):
            place = _bin_of(x, edge)
            inside = inside & ge(place, 0) & lt(place, n)
            flat = flat * n + place
        counts = _add_up(shape, choose(inside, flat, math.prod(shape)), weights)
    if density:
        total = sum_(counts)
        (counts,) = inexact_values("histogram", counts=counts)
        for d, edge in enumerate(edges):
            along = tuple(-1 if i == d else 1 for i in np.arange(len(shape)))
            counts = counts / reshape(convert(diff(edge), counts.dtype), along)
        counts = counts / convert(total, counts.dtype)
    return counts, edges


def _several(bins: Any) -> bool:
    return isinstance(bins, (list, tuple)) or bool(getattr(bins, "ndim", 0))


def histogram2d(
    x: Any,
    y: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Any, Any, Any]:
    """How many points (x, y) lie in each bin, and the edges along both axes; see ``histogramdd``.

    Edges in one array serve for both axes.

    >>> import stretto.numpy as snp
    >>> x, y = snp.array([1.0, 2.0, 2.0]), snp.array([1.0, 2.0, 3.0])
    >>> snp.histogram2d(x, y, bins=2)[0]
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    if _several(bins) and len(bins) not in (1, 2):
        bins = [bins, bins]
    points = [as_value(x, "histogram2d", "x"), as_value(y, "histogram2d", "y")]
    counts, edges = histogramdd(points, bins, range, weights, density)
    return counts, *edges


def histogramdd(
    sample: Any,
    bins: Any = 10,
    range: Sequence[Any] | None = None,
    weights: Any = None,
    density: bool | None = None,
) -> tuple[Any, list[Any]]:
    """How many points lie in each bin of several dimensions, and the edges along each axis.

    ``sample`` has a row for each point, or is a list of arrays, one for each dimension. ``bins`` is
    a number of bins or a list with a number or edges for each dimension, ``range`` a list with two
    ends or ``None`` for each. ``weights`` and ``density`` as for ``histogram``.

    >>> import stretto.numpy as snp
    >>> counts, edges = snp.histogramdd(snp.array([[1.0, 1.0], [2.0, 2.0], [2.0, 3.0]]), bins=2)
    >>> counts
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    who = "histogramdd"
    if isinstance(sample, (list, tuple)):
        points = stack([as_value(x, who, "sample") for x in sample], 1)
    else:
        points = as_value(sample, who, "sample")
    if points.ndim != 2 or is_complex(points.dtype):
        raise ValueError(f"{who}: expected real points, a row each, in sample; got {points.type}")
    count, rank = points.shape
    w = None if weights is None else as_value(weights, who, "weights")
    if w is not None and w.shape != (count,):
        raise ValueError(f"{who}: expected a weight for each of {count} points, got {w.type}")
    every = list(bins) if _several(bins) else [bins] * rank
    ends = [None] * rank if range is None else list(range)
    if len(every) != rank or len(ends) != rank:
        raise ValueError(
            f"{who}: bins and range must have one part for each of {rank} dimensions; got "
            f"{len(every)} and {len(ends)}"
        )
    xs = [reshape(slice_in_dim(points, d, d + 1, 1, 1), (count,)) for d in np.arange(rank)]
    edges = [_edges(who, x, b, r, w) for x, b, r in zip(xs, every, ends, strict=True)]
    return _count(xs, edges, w, bool(density))
