"""Quantiles, percentiles and medians, by each of NumPy's methods; also without NaN.

The elements are sorted. A method gives a place among them; where that is not a whole number the
result lies between two elements. Source of the methods: Hyndman and Fan, "Sample quantiles in
statistical packages", 1996.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import inexact_dtype, is_complex, kind_of
from stretto._engine.core.typing import Array, ArrayLike, Axes, ShardingLike, Tree
from stretto._engine.eager.twins import AS_GIVEN, REAL, eager
from stretto._engine.ops.broadcast import broadcast_to, of_rank
from stretto._engine.ops.comparison import gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import canonical_axes, laid_out, move_axis, reshape, transpose
from stretto._engine.ops.rounding import ceil, floor, round_
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import argsort, sort
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import remainder
from stretto.numpy.extrema import maximum, minimum
from stretto.numpy.indexing import concrete_of
from stretto.numpy.logic import isnan
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import cumsum, wide_dtype
from stretto.numpy.reductions import sum as sum_
from stretto.numpy.statistics import along_axes
from stretto.numpy.taking import take

__all__ = ["median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"]

_INT32 = np.dtype(np.int32)
_FLOAT64 = np.dtype(np.float64)

# The place of the quantile q of n elements is n q + a + q (1 - a - b) - 1.
_CONTINUOUS = {
    "linear": (1.0, 1.0),
    "interpolated_inverted_cdf": (0.0, 1.0),
    "hazen": (0.5, 0.5),
    "weibull": (0.0, 0.0),
    "median_unbiased": (1 / 3, 1 / 3),
    "normal_unbiased": (3 / 8, 3 / 8),
}
_METHODS = (
    "inverted_cdf",
    "averaged_inverted_cdf",
    "closest_observation",
    *_CONTINUOUS,
    "lower",
    "higher",
    "midpoint",
    "nearest",
)


def _places(f: Tree, n: Tree, q: Tree, method: str) -> tuple[Array, Array, Array]:
    """Return the elements on either side, counted from 0, and how far on to the second it is.

    ``f`` has the functions ``floor ceil round where remainder``, of NumPy or of values.
    """
    if method in _CONTINUOUS:
        a, b = _CONTINUOUS[method]
        place = (n - 1) * q if a == b == 1 else n * q + (a + q * (1 - a - b)) - 1
        low = f.floor(place)
        return low, low + 1, place - low
    if method in ("lower", "higher", "nearest"):
        round_place = {"lower": f.floor, "higher": f.ceil, "nearest": f.round}[method]
        at = round_place((n - 1) * q)
        return at, at, at * 0
    if method == "midpoint":
        low, high = f.floor((n - 1) * q), f.ceil((n - 1) * q)
        return low, high, (high - low) * 0.5
    # n q is compared and rounded as it is, since compilers do n q - 1 in one rounding
    rank = n * q
    if method == "closest_observation":
        below = f.floor(rank)
        low = f.where(rank >= below + 0.5, below - 1, below - 2)
        at = f.where((rank == below + 0.5) & (f.remainder(low, 2) == 1), low, low + 1)
        return at, at, at * 0
    high = f.ceil(rank)
    if method == "inverted_cdf":
        return high - 1, high - 1, high * 0
    whole = rank == high  # averaged_inverted_cdf
    return high - 1, f.where(whole, high, high - 1), f.where(whole, high * 0 + 0.5, high * 0)


class _OfValues:
    """The functions that ``_places`` needs, of values."""

    floor = staticmethod(floor)
    ceil = staticmethod(ceil)
    round = staticmethod(round_)
    where = staticmethod(choose)
    remainder = staticmethod(remainder)


def _fractions(caller: str, q: ArrayLike, per: int) -> Array | np.ndarray:
    """Return the fractions: in NumPy in their own precision where they are known, else traced."""
    if not isinstance(q, (Value, np.ndarray, np.generic, int, float)):
        as_value(q, caller, "q")  # to refuse it in words
    known: Any = None if isinstance(q, Tracer) else concrete_of(q)
    if known is None:
        value = as_value(q, caller, "q")
        value = convert(value, inexact_dtype(value.dtype))
        return value / per if per != 1 else value
    kind = kind_of(known.dtype)
    if kind == "complex":
        raise TypeError(f"{caller}: q must be real, got {known.dtype.name}")
    if kind != "float" or known.dtype.itemsize < 4:
        known = known.astype(_FLOAT64)
    known = known / per
    if not np.all((known >= 0) & (known <= 1)):
        raise ValueError(f"{caller}: q must be between 0 and {per}, got {np.asarray(known * per)}")
    return np.asarray(known)


def _lines(x: Array, axes: tuple[int, ...]) -> Array:
    """Return the array with the axes joined into a last one."""
    kept = [d for d in range(x.ndim) if d not in axes]
    shape = (*(x.shape[d] for d in kept), math.prod([x.shape[d] for d in axes]))
    return reshape(transpose(x, (*kept, *axes)), shape)


def quantile_of(
    caller: str,
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes,
    out: None,
    method: str,
    keepdims: bool,
    weights: ArrayLike | None,
    per: int = 1,
) -> Array:
    """Return the quantiles for fractions ``q`` out of ``per``; errors name the caller."""
    refuse_out(caller, out)
    x = as_value(a, caller, "a")
    if method not in _METHODS:
        raise ValueError(f"{caller}: method must be one of {', '.join(_METHODS)}; got {method!r}")
    if is_complex(x.dtype):
        raise TypeError(f"{caller}: complex numbers have no order, {x.type}; take a real part")
    fractions: Any = _fractions(caller, q, per)
    wanted, axes = inexact_dtype(x.dtype), canonical_axes(axis, x.ndim, caller)
    wide = wide_dtype(wanted)
    lines = _lines(x, axes)
    if without_elements(lines.shape[-1], caller):
        raise ValueError(
            f"{caller}: a quantile of an empty array is undefined, {x.type} over axis {axis}"
        )
    if isinstance(fractions, Value):
        fractions = convert(fractions, wide)
    flat = fractions.reshape(-1)
    skip = caller.startswith("nan")
    if weights is None:
        result = _of_lines(lines, q=flat, method=method, skip=skip, wide=wide)
    else:
        if method != "inverted_cdf":
            raise ValueError(f"{caller}: weights need method='inverted_cdf', got method={method!r}")
        w = broadcast_to(along_axes(caller, weights, x, axis), x.shape)
        known = concrete_of(w)
        if known is not None and np.any(known < 0):
            raise ValueError(f"{caller}: weights must not be negative")
        line_weights = _lines(convert(w, wide), axes)
        result = _of_weighted(convert(lines, wide), line_weights, flat, skip)
    result = move_axis(convert(result, wanted), result.ndim - 1, 0)
    rest = result.shape[1:]
    if keepdims:
        rest = tuple(1 if d in axes else n for d, n in enumerate(x.shape))
    return reshape(result, (*fractions.shape, *rest))


def _of_host(
    lines: np.ndarray, *, q: np.ndarray | Array, method: str, skip: bool, wide: np.dtype
) -> np.ndarray | None:
    """Return what NumPy gives, with only the requested elements partitioned into place."""
    floats = lines.dtype.kind == "f"
    skip = skip and floats
    if isinstance(q, Value) or (skip and lines.size != lines.shape[-1]):
        return None
    missing = np.isnan(lines).any(-1, keepdims=True) if floats else np.zeros((), bool)
    if skip and missing.any():  # there is one line
        shape, numbers = (*lines.shape[:-1], -1), lines[~np.isnan(lines)]
        if not numbers.size:
            return np.full((*lines.shape[:-1], q.size), np.nan, lines.dtype)
        lines, missing = numbers.reshape(shape), np.zeros((), bool)
    n = lines.shape[-1]
    low, high, part = _places(np, n, q, method)
    low, high = (_within(at, n).astype(np.int64) for at in (low, high))
    lines = np.partition(lines, np.unique([low, high]), -1)
    first, second = (lines[..., at].astype(wide, copy=False) for at in (low, high))
    part = part.astype(wide)
    between = first * (1 - part) + second * part
    out = np.where((part == 0) | (low == high), first, between)
    return np.where(missing, np.nan, out)


@eager(_of_host, REAL, AS_GIVEN)
def _of_lines(
    lines: Array, *, q: np.ndarray | Array, method: str, skip: bool, wide: np.dtype
) -> Array:
    """Return the quantiles of each line, over its last axis."""
    lines = convert(lines, wide)
    missing: Any = isnan(lines)
    lines = sort(lines, -1)  # NaN comes last
    n: Any = lines.shape[-1]
    if is_size(n):
        n, q = (convert(as_value(v), lines.dtype) for v in (n, q))
    if skip:  # each line has a number of its own
        q = convert(as_value(q), lines.dtype)
        n = convert(sum_(~missing, -1, keepdims=True), lines.dtype)
        n = choose(gt(n, 0), n, 1)
        q = of_rank(q, lines.ndim)
    is_known = not isinstance(q, Value)
    low, high, part = _places(np if is_known else _OfValues, n, q, method)
    low, high = _within(low, n), _within(high, n)
    is_exact = (part == 0) | (low == high)
    if is_known:
        low, high = low.astype(_INT32), high.astype(_INT32)
        part = convert(as_value(part), lines.dtype)
    else:
        low, high = convert(low, _INT32), convert(high, _INT32)
    if skip:
        first, second = (take_along_axis(lines, at, -1, mode="clip") for at in (low, high))
    else:
        first, second = (take(lines, at, -1, mode="clip") for at in (low, high))
    part = of_rank(part, first.ndim)
    out = choose(is_exact, first, first * (1 - part) + second * part)
    return out if skip else choose(any_(missing, -1, keepdims=True), math.nan, out)


def _within(at: Tree, n: Tree) -> Tree:
    """Return a place clipped to those of the first and the last element."""
    if isinstance(at, Value):
        return minimum(maximum(at, 0), n - 1)
    return np.minimum(np.maximum(at, 0), n - 1)


def _of_weighted(lines: Array, weights: Array, q: np.ndarray | Array, skip: bool) -> Array:
    """Find the first element of each line at which the running weight reaches a fraction of all."""
    missing = isnan(lines)
    if skip:
        weights = choose(missing, 0, weights)
    order = argsort(lines, -1)
    lines, weights = (take_along_axis(v, order, -1, mode="clip") for v in (lines, weights))
    n = lines.shape[-1]
    running = cumsum(weights, -1)
    part = running / slice_in_dim(running, n - 1, n, 1, -1)
    part = reshape(part, (*part.shape, 1))
    q = of_rank(convert(as_value(q), lines.dtype), part.ndim)
    at = sum_((part < q) | (part == 0), -2)  # an element of weight 0 is never the first
    out = take_along_axis(lines, minimum(at, n - 1), -1, mode="clip")
    return out if skip else choose(any_(missing, -1, keepdims=True), math.nan, out)


def quantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Find the values below which fractions of the elements over axes lie.

    Methods: ``inverted_cdf`` and ``closest_observation`` give an element, ``averaged_inverted_cdf``
    an element or the mean of two; ``interpolated_inverted_cdf``, ``hazen``, ``weibull``,
    ``linear``, ``median_unbiased`` and ``normal_unbiased`` interpolate; ``lower``, ``higher``,
    ``midpoint`` and ``nearest`` are at or between the two elements of ``linear``.

    Args:
        a: an array of real numbers.
        q: fractions from 0 to 1, of any shape; may be traced.
        axis: the axes to take quantiles over; all by default.
        out: must be None: arrays are immutable.
        overwrite_input: has no effect: arrays are immutable.
        method: how a place between two elements is treated, as above.
        keepdims: whether the axes stay, with size 1.
        weights: one for each element, or for each place along the axes; for ``inverted_cdf`` alone.

    Returns:
        The quantiles, in the float dtype of ``a``: first the axes of ``q``, then those of ``a``
        that are left; NaN where there is one.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` or ``q`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or ``q`` is out of range,
            ``method`` is another, there is no element, or ``weights`` are negative, of another
            shape, or given with another method.

    As NumPy's ``quantile``. Methods: Hyndman and Fan, Sample quantiles in statistical packages,
    1996.

    >>> import stretto.numpy as snp
    >>> snp.quantile(snp.array([1.0, 2.0, 4.0]), snp.array([0.25, 0.5]))
    Array([1.5, 2. ], dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("quantile", a, q, axis, out, method, keepdims, weights)


@described_like(quantile)
def percentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Find the values below which percentages of the elements over axes lie.

    Args:
        q: percentages from 0 to 100, of any shape; may be traced.
        method: how a place between two elements is treated, as for ``quantile``.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` or ``q`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or ``q`` is out of range,
            ``method`` is another, there is no element, or ``weights`` are negative, of another
            shape, or given with another method; or the result cannot be split as ``out_sharding``
            says.

    As NumPy's ``percentile``.

    >>> import stretto.numpy as snp
    >>> snp.percentile(snp.array([1.0, 2.0, 4.0]), 50)
    Array(2., dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    if out_sharding is not None:
        result = percentile(a, q, axis, out, method=method, keepdims=keepdims, weights=weights)
        return laid_out(result, out_sharding, "percentile")
    return quantile_of("percentile", a, q, axis, out, method, keepdims, weights, 100)


@described_like(quantile)
def nanquantile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Find quantiles over axes, without the elements that are NaN.

    Args:
        method: how a place between two elements is treated, as for ``quantile``.

    Returns:
        The quantiles, in the float dtype of ``a``: first the axes of ``q``, then those of ``a``
        that are left; NaN where there is no number.

    As NumPy's ``nanquantile``.

    >>> import stretto.numpy as snp
    >>> snp.nanquantile(snp.array([1.0, snp.nan, 2.0]), 0.25)
    Array(1.25, dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("nanquantile", a, q, axis, out, method, keepdims, weights)


@described_like(nanquantile)
def nanpercentile(
    a: ArrayLike,
    q: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    method: str = "linear",
    keepdims: bool = False,
    *,
    weights: ArrayLike | None = None,
) -> Array:
    """Find percentiles over axes, without the elements that are NaN.

    Args:
        q: percentages from 0 to 100, of any shape; may be traced.

    As NumPy's ``nanpercentile``.

    >>> import stretto.numpy as snp
    >>> snp.nanpercentile(snp.array([1.0, snp.nan, 2.0]), 25)
    Array(1.25, dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("nanpercentile", a, q, axis, out, method, keepdims, weights, 100)


def median(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Find the middle value over axes, or the mean of the middle two.

    Args:
        a: an array of real numbers.
        axis: the axes to search over; all by default.
        out: must be None: arrays are immutable.
        overwrite_input: has no effect: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The medians, in the float dtype of ``a``, of its shape without the axes; NaN where there is
        one.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or there is no element.

    As NumPy's ``median``.

    >>> import stretto.numpy as snp
    >>> snp.median(snp.array([5, 1, 2, 4]))
    Array(3., dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("median", a, 0.5, axis, out, "linear", keepdims, None)


@described_like(median)
def nanmedian(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Find the middle value over axes, without the elements that are NaN.

    Returns:
        The medians, in the float dtype of ``a``, of its shape without the axes; NaN where there is
        no number.

    As NumPy's ``nanmedian``.

    >>> import stretto.numpy as snp
    >>> snp.nanmedian(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("nanmedian", a, 0.5, axis, out, "linear", keepdims, None)
