"""Counts of integers, and of numbers in bins of one or several dimensions.

A bin holds its left edge and not its right one; the last bin holds both. Numbers outside all bins,
and NaN, are not counted.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds, is_size
from stretto._engine.core.types import default_dtype, inexact_dtype, is_complex, kind_of, promote
from stretto._engine.core.typing import Array, ArrayLike, ShardingLike
from stretto._engine.eager.twins import AS_GIVEN, FLOAT, INDEX, INTEGER, eager
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, ge, lt, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.reducing.reduce import greatest_below, least_above
from stretto._engine.ops.shape import rev, slice_in_dim
from stretto.numpy.arguments import inexact_values, refuse_complex
from stretto.numpy.creation import linspace
from stretto.numpy.differences import diff
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import maximum
from stretto.numpy.extrema import min as min_
from stretto.numpy.indexing import concrete_of
from stretto.numpy.joining import stack
from stretto.numpy.manipulation import ravel
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.searching import concrete, searchsorted
from stretto.numpy.updating import At

__all__ = ["bincount", "digitize", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"]


def bincount(
    x: ArrayLike,
    weights: ArrayLike | None = None,
    minlength: int = 0,
    *,
    length: int | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Count how often each of 0, 1, 2, … occurs.

    Args:
        x: integers, of rank 1; negative ones count as 0.
        weights: how much each element counts, of the shape of ``x``; by default 1.
        minlength: the least number of counts.
        length: the number of counts; greater elements are not counted. Needed while ``x`` is
            traced. By default as many as the greatest element needs.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The counts, integers, or the sums of the weights in their dtype.

    Raises:
        TypeError: ``x`` does not hold integers, or is not of rank 1.
        ValueError: the weights are of another shape, or a length is negative; or the result cannot
            be split as ``out_sharding`` says.
        TracedValueError: ``x`` is traced, without ``length``.

    As NumPy's ``bincount``.

    >>> import stretto.numpy as snp
    >>> snp.bincount(snp.array([0, 3, 3]))
    Array([1, 0, 0, 2], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(bincount(x, weights, minlength, length=length), out_sharding, "bincount")
    value = as_value(x, "bincount", "x")
    type = value.type
    if type.kind not in ("bool", "int", "uint") or type.ndim != 1:
        raise TypeError(f"bincount: expected integers, of rank 1, in x; got {type}")
    w = None if weights is None else as_value(weights, "bincount", "weights")
    if w is not None and w.type.shape != type.shape:
        raise ValueError(f"bincount: weights and x must have one shape; got {w.type} and {type}")
    if length is not None:
        return add_up((integer(length, "bincount", "length", 0),), _not_negative(value), w)
    least = integer(minlength, "bincount", "minlength", 0)
    if w is None:
        return _bincount(value, minlength=least)
    return _bincount_of_weights(value, w, minlength=least)


def _not_negative(x: Array) -> Array:
    return maximum(convert(x, default_dtype("int")) if kind_of(x.dtype) == "bool" else x, 0)


@eager(np.bincount, INTEGER, INDEX)
def _bincount(x: Array, *, minlength: int) -> Array:
    return _as_many_as_needed(x, None, minlength)


def _bincount_in_float64(x: np.ndarray, weights: np.ndarray, *, minlength: int) -> np.ndarray:
    return np.bincount(x, weights, minlength).astype(weights.dtype)


@eager(_bincount_in_float64, (INTEGER, FLOAT), AS_GIVEN)
def _bincount_of_weights(x: Array, weights: Array, *, minlength: int) -> Array:
    return _as_many_as_needed(x, weights, minlength)


def _as_many_as_needed(x: Array, weights: Array | None, minlength: int) -> Array:
    at = _not_negative(x)
    host = concrete(at, "bincount")
    length = max(int(host.max()) + 1 if host.size else 0, minlength)
    return add_up((length,), at, weights)


def add_up(shape: tuple[int, ...], at: Array, weights: Array | None) -> Array:
    """Count each flat index, or sum its weights; greater indices are dropped."""
    if weights is None:
        counts = At(full((math.prod(shape),), 0, default_dtype("int")))[at].add(1, mode="drop")
    else:
        terms: Any = weights
        if kind_of(terms.dtype) == "bool":
            terms = convert(terms, default_dtype("int"))
        counts = At(full((math.prod(shape),), 0, terms.dtype))[at].add(terms, mode="drop")
    return reshape(counts, shape)


def digitize(
    x: ArrayLike, bins: ArrayLike, right: bool = False, *, method: str | None = None
) -> Array:
    """Find the bin of each element.

    Args:
        x: a real array, or a number.
        bins: the edges, of rank 1, rising or falling.
        right: whether each bin holds its right edge rather than its left one.
        method: as for ``searchsorted``.

    Returns:
        The bins as integers, of the shape of ``x``: ``i`` where ``bins[i-1] <= x < bins[i]``, or
        ``bins[i-1] > x >= bins[i]`` where the edges fall.

    Raises:
        ValueError: ``bins`` is not of rank 1, or there is no such method.
        TypeError: an argument is complex, or not an array.

    As NumPy's ``digitize``.

    >>> import stretto.numpy as snp
    >>> snp.digitize(snp.array([0.2, 6.4, 3.0]), snp.array([0.0, 1.0, 2.5, 4.0]))
    Array([1, 4, 3], dtype=int32)
    """
    edges = as_value(bins, "digitize", "bins")
    if edges.ndim != 1:
        raise ValueError(f"digitize: expected bins of rank 1, got {edges.type}")
    value = as_value(x, "digitize", "x")
    refuse_complex("digitize", x=value, bins=edges)
    n = edges.shape[0]
    if not n:
        return full(value.shape, 0, default_dtype("int"))
    falls = lt(slice_in_dim(edges, n - 1, n), slice_in_dim(edges, 0, 1))
    edges = select(broadcast_to(falls, (n,)), rev(edges, (0,)), edges)
    edges, value = promote_dtypes("digitize", edges, value)
    place = searchsorted(edges, value, "left" if right else "right", method=method or "scan")
    return choose(reshape(falls, ()), n - place, place)


def _edges(
    caller: str,
    x: Array,
    bins: ArrayLike | str,
    range: Sequence[ArrayLike] | None,
    weights: ArrayLike | None,
) -> Array:
    """Return the bins' edges, from edges, a number of bins, or the name of one of NumPy's rules."""
    if isinstance(bins, str):
        if weights is not None:
            raise TypeError(
                f"{caller}: bins={bins!r} cannot take weights into account; give a number"
            )
        numbers: Any = range
        ends = None if range is None else (float(numbers[0]), float(numbers[1]))
        host = np.asarray(concrete(x, f"{caller}: bins={bins!r}"), np.float64)
        try:
            edges = np.histogram_bin_edges(host, bins, ends)
        except ValueError as error:
            raise ValueError(f"{caller}: {error}") from None
        return convert(as_value(edges), inexact_dtype(x.dtype))
    asked = as_value(bins, caller, "bins")
    if asked.ndim > 1 or (not asked.ndim and kind_of(asked.dtype) not in ("int", "uint")):
        raise ValueError(
            f"{caller}: bins must be a number of bins, their edges, or the name of a rule; got "
            f"{asked.type}"
        )
    if asked.ndim:
        if not asked.size:
            raise ValueError(f"{caller}: expected at least one edge in bins, got {asked.type}")
        return asked
    count = integer(bins, caller, "bins")
    if count < 1:
        raise ValueError(f"{caller}: expected at least one bin, got bins={count}")
    low, high = _ends(caller, x, range)
    return linspace(low, high, count + 1)


def _ends(caller: str, x: Array, range: Sequence[ArrayLike] | None) -> tuple[Array, Array]:
    """Return the least and greatest number to count; half a unit below and above if equal."""
    if range is not None:
        low, high = range
    elif is_size(x.size) and not exceeds(x.size, 0):
        nothing = eq(as_value(x.size), 0)
        low = choose(nothing, 0, min_(x, initial=least_above(x.dtype)))
        high = choose(nothing, 1, max_(x, initial=greatest_below(x.dtype)))
    elif x.size:
        low, high = min_(x), max_(x)
    else:
        low, high = 0, 1
    low, high, _ = inexact_values(caller, low=low, high=high, a=x)
    known = [concrete_of(end) for end in (low, high)]
    if all(end is not None for end in known):
        first, last = (float(np.asarray(end)) for end in known)
        if not (math.isfinite(first) and math.isfinite(last)) or first > last:
            raise ValueError(
                f"{caller}: expected a finite range whose first end is not the greater one; got "
                f"({first}, {last})"
            )
    width = choose(eq(low, high), full_like(low, 0.5), full_like(low, 0))
    return low - width, high + width


def _bin_of(x: Array, edges: Array) -> Array:
    """Return the bin of each number; outside all bins -1, or the number of bins."""
    n = edges.shape[0] - 1
    x, edges = promote_dtypes("histogram", x, edges)
    place = searchsorted(edges, x, "right") - 1
    return choose(eq(x, slice_in_dim(edges, n, n + 1)), n - 1, place)


_BLOCK = 1 << 16


def _places_among(x: np.ndarray, edges: np.ndarray, counted: bool) -> np.ndarray | None:
    """Return the bin of each number, counted from 1, by the bins' width; None if widths differ.

    0 stands for none. If ``counted``, how many are in each instead. Rounding errors are corrected,
    and memory is reused, block by block.
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
        if not (part.min() >= edges[0] and part.max() <= edges[-1]):  # also where one is NaN
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


def _bin_hosts(weights: np.ndarray | None, *arrays: np.ndarray) -> np.ndarray | None:
    """Return the counts in bins of one width; None where widths differ, or bins are too many.

    ``arrays``: the numbers of each dimension, then the edges of its bins.
    """
    rank = len(arrays) // 2
    shape = tuple([len(edges) - 1 for edges in arrays[rank:]])
    size = math.prod(shape)
    if size >= 1 << 31:
        return None
    counted = rank == 1 and weights is None
    flat: Any = None
    for x, edges, n in zip(arrays[:rank], arrays[rank:], shape, strict=True):
        place = _places_among(x, edges, counted)
        if place is None:
            return None
        if flat is None:
            flat = place
        else:
            flat = ((flat - 1) * n + place) * ((flat > 0) & (place > 0))
    sums = flat if counted else np.bincount(flat, weights, size + 1)
    return sums[1:].reshape(shape)


@eager(lambda *arrays: _bin_hosts(None, *arrays), FLOAT, INDEX)
def _bin(*arrays: Any) -> Array:
    """Count in the bins the numbers of each dimension, given with the edges of its bins."""
    return _bin_one_by_one(None, *arrays)


@eager(_bin_hosts, FLOAT)
def _bin_weights(weights: Array, *arrays: Any) -> Array:
    """Return the sums of the weights in the bins."""
    return _bin_one_by_one(weights, *arrays)


def _bin_one_by_one(weights: Array | None, *arrays: Any) -> Array:
    rank = len(arrays) // 2
    shape = tuple([edges.shape[0] - 1 for edges in arrays[rank:]])
    flat: Any = 0
    inside: Any = True
    for x, edges, n in zip(arrays[:rank], arrays[rank:], shape, strict=True):
        place = _bin_of(x, edges)
        inside = inside & ge(place, 0) & lt(place, n)
        flat = flat * n + place
    return add_up(shape, choose(inside, flat, math.prod(shape)), weights)


def histogram_bin_edges(
    a: ArrayLike,
    bins: ArrayLike | str = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
) -> Array:
    """Compute the edges of the bins into which ``histogram`` sorts.

    Args:
        a: a real array.
        bins: how many bins; their edges, in rising order; or, for known values, one of NumPy's
            rules, ``"auto"``, ``"fd"``, ``"doane"``, ``"scott"``, ``"stone"``, ``"rice"``,
            ``"sturges"`` or ``"sqrt"``.
        range: the least and the greatest number to count, by default those of ``a``.
        weights: ignored; a rule refuses them, as it cannot take them into account.

    Returns:
        The edges; there is one more than there are bins.

    Raises:
        ValueError: ``bins`` is something else or less than 1, or the range is not finite or falls.
        TypeError: ``a`` is complex; or ``bins`` is the name of a rule, and there are weights.
        TracedValueError: ``bins`` is the name of a rule, and ``a`` is traced.

    As NumPy's ``histogram_bin_edges``.

    >>> import stretto.numpy as snp
    >>> snp.histogram_bin_edges(snp.array([1, 2, 5]), bins=2)
    Array([1., 3., 5.], dtype=float32)
    """
    x = ravel(as_value(a, "histogram_bin_edges", "a"))
    refuse_complex("histogram_bin_edges", a=x)
    return _edges("histogram_bin_edges", x, bins, range, weights)


def histogram(
    a: ArrayLike,
    bins: ArrayLike | str = 10,
    range: Sequence[ArrayLike] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array]:
    """Count how many elements lie in each bin.

    Args:
        a: a real array.
        bins: as for ``histogram_bin_edges``.
        range: the least and the greatest number to count, by default those of ``a``.
        weights: how much each element counts, of the shape of ``a``; by default 1.
        density: whether to divide by the sum and by the bins' widths.

    Returns:
        The counts, or the sums of the weights, and the edges of the bins, of which
        there is one more.

    Raises:
        ValueError: the weights are of another shape, ``bins`` is something else or less than 1, or
            the range is not finite or falls.
        TypeError: ``a`` is complex; or ``bins`` is the name of a rule, and there are weights.
        TracedValueError: ``bins`` is the name of a rule, and ``a`` is traced.

    As NumPy's ``histogram``.

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


def _count(
    xs: list[Array], edges: list[Array], weights: Array | None, density: bool
) -> tuple[Array, list[Array]]:
    """Return the counts in the bins between the edges of each dimension."""
    rank = len(xs)
    counts = _bin(*xs, *edges) if weights is None else _bin_weights(weights, *xs, *edges)
    if density:
        total = sum_(counts)
        (counts,) = inexact_values("histogram", counts=counts)
        for d, edge in enumerate(edges):
            along = tuple(-1 if i == d else 1 for i in np.arange(rank))
            counts = counts / reshape(convert(diff(edge), counts.dtype), along)
        counts = counts / convert(total, counts.dtype)
    return counts, edges


def _has_parts(bins: object) -> bool:
    return isinstance(bins, (list, tuple)) or bool(getattr(bins, "ndim", 0))


def histogram2d(
    x: ArrayLike,
    y: ArrayLike,
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, Array, Array]:
    """Count how many points (x, y) lie in each bin.

    Args:
        x: the first coordinates, a real array of rank 1.
        y: the second coordinates, as many.
        bins: how many bins along both axes, or their edges; or a list with a number or edges for
            each axis.
        range: two ends for each axis, or ``None`` for those of the points.
        weights: how much each point counts; by default 1.
        density: whether to divide by the sum and by the bins' areas.

    Returns:
        The counts, of rank 2, and the edges along both axes.

    Raises:
        TypeError: an argument is not made of real numbers.
        ValueError: the arrays or the weights are of another shape, ``bins`` is something else or
            less than 1, or the range is not finite or falls.

    As NumPy's ``histogram2d``.

    >>> import stretto.numpy as snp
    >>> x, y = snp.array([1.0, 2.0, 2.0]), snp.array([1.0, 2.0, 3.0])
    >>> snp.histogram2d(x, y, bins=2)[0]
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    parts: Any = bins
    if _has_parts(parts) and len(parts) not in (1, 2):
        parts = [parts, parts]
    points = [as_value(x, "histogram2d", "x"), as_value(y, "histogram2d", "y")]
    counts, edges = _count_points("histogram2d", points, parts, range, weights, density)
    return counts, edges[0], edges[1]


def histogramdd(
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[ArrayLike] = 10,
    range: Sequence[Sequence[ArrayLike] | None] | None = None,
    weights: ArrayLike | None = None,
    density: bool | None = None,
) -> tuple[Array, list[Array]]:
    """Count how many points lie in each bin of several dimensions.

    Args:
        sample: the points: an array with a row for each, or a list with an array for each
            dimension.
        bins: how many bins, or a list with a number or edges for each dimension.
        range: two ends for each dimension, or ``None`` for those of the points.
        weights: how much each point counts; by default 1.
        density: whether to divide by the sum and by the bins' volumes.

    Returns:
        The counts, with an axis for each dimension, and the edges along each.

    Raises:
        TypeError: ``bins`` is the name of a rule, and weights are given.
        ValueError: ``sample`` is complex or not of rank 2, the weights are of another shape,
            ``bins`` or ``range`` do not have one part for each dimension, or a range is not finite
            or falls.

    As NumPy's ``histogramdd``.

    >>> import stretto.numpy as snp
    >>> counts, edges = snp.histogramdd(snp.array([[1.0, 1.0], [2.0, 2.0], [2.0, 3.0]]), bins=2)
    >>> counts
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return _count_points("histogramdd", sample, bins, range, weights, density)


def _count_points(
    caller: str,
    sample: ArrayLike | Sequence[ArrayLike],
    bins: ArrayLike | Sequence[ArrayLike],
    range: Sequence[Sequence[ArrayLike] | None] | None,
    weights: ArrayLike | None,
    density: bool | None,
) -> tuple[Array, list[Array]]:
    if isinstance(sample, (list, tuple)):
        columns = [as_value(x, caller, "sample") for x in sample]
        if {x.ndim for x in columns} != {1} or len({x.shape for x in columns}) > 1:
            raise ValueError(
                f"{caller}: expected arrays of rank 1 and of one length, one for each dimension; "
                f"got {', '.join([str(x.type) for x in columns]) or 'none'}"
            )
        promote([(x.dtype, x.weak_type) for x in columns], caller)
        points = stack(columns, 1)
    else:
        points = as_value(sample, caller, "sample")
    if points.ndim != 2 or is_complex(points.dtype):
        raise ValueError(
            f"{caller}: expected real points, a row each, in sample; got {points.type}"
        )
    count, rank = points.shape
    w = None if weights is None else as_value(weights, caller, "weights")
    if w is not None and w.shape != (count,):
        raise ValueError(f"{caller}: expected a weight for each of {count} points, got {w.type}")
    parts: Any = bins
    bins_of_axes = list(parts) if _has_parts(parts) else [parts] * rank
    ends: Any = [None] * rank if range is None else list(range)
    if len(bins_of_axes) != rank or len(ends) != rank:
        raise ValueError(
            f"{caller}: bins and range must have one part for each of {rank} dimensions; got "
            f"{len(bins_of_axes)} and {len(ends)}"
        )
    # The argument `range` shadows the built-in function.
    xs = [reshape(slice_in_dim(points, d, d + 1, 1, 1), (count,)) for d in np.arange(rank).tolist()]
    edges = [_edges(caller, x, b, r, w) for x, b, r in zip(xs, bins_of_axes, ends, strict=True)]
    return _count(xs, edges, w, bool(density))
