"""Count integers, and find the bins that numbers are in."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, kind_of
from stretto._engine.core.typing import Array, ArrayLike, ShardingLike
from stretto._engine.eager.twins import AS_GIVEN, FLOAT, INDEX, INTEGER, eager
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, lt, select
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.shape import rev, slice_in_dim
from stretto.numpy.arguments import refuse_complex
from stretto.numpy.extrema import maximum
from stretto.numpy.searching import concrete, searchsorted
from stretto.numpy.updating import At


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
