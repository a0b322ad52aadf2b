"""Sums, products and extrema of the parts of an array that belong together.

Each is one scatter into an array filled with the reduction's identity. Names and arguments are
those of ``jax.ops``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, Protocol

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value
from stretto._engine.core.types import is_complex, kind_of
from stretto._engine.core.typing import Array, ArrayLike, ShardingLike
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full, full_like
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index.gather_scatter import (
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from stretto._engine.ops.index.geometry import ScatterDimensionNumbers, access_mode
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.reducing.reduce import (
    greatest_below,
    least_above,
    reduce_max,
    reduce_min,
    reduce_prod,
    widened,
)
from stretto._engine.ops.shape import concatenate


def _count(caller: str, ids: Any) -> int:
    concrete = ids.concrete() if isinstance(ids, Tracer) else ids
    if concrete is None:
        raise TracedValueError(
            f"{caller}: how many segments there are depends on segment_ids, a traced {ids.type}: "
            f"{ids.origin()}. Give num_segments="
        )
    host = np.asarray(concrete)
    return max(int(host.max()) + 1, 0) if host.size else 0


class Kind(NamedTuple):
    """A reduction: as a scatter, over an axis, and its identity in a dtype."""

    scatter: Callable[..., Any]
    reduce: Callable[..., Any]
    identity: Callable[[np.dtype], Any]


_SUM = Kind(scatter_add, reduce_sum, lambda _: 0)
_PROD = Kind(scatter_mul, reduce_prod, lambda _: 1)
_MAX = Kind(scatter_max, reduce_max, greatest_below)
_MIN = Kind(scatter_min, reduce_min, least_above)


def _reduced(
    caller: str,
    kind: Kind,
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    bucket_size: int | None,
    out_sharding: ShardingLike | None,
    **options: Any,
) -> Any:
    if out_sharding is not None:
        result = _reduced(
            caller, kind, data, segment_ids, num_segments, bucket_size, None, **options
        )
        return laid_out(result, out_sharding, caller)
    x, ids = as_value(data, caller, "data"), as_value(segment_ids, caller, "segment_ids")
    if kind_of(ids.dtype) not in ("int", "uint"):
        raise TypeError(f"{caller}: segment_ids must be integers, got {ids.type}")
    if kind is _SUM and kind_of(x.dtype) == "bool":
        raise TypeError(
            f"{caller}: expected numbers, got {x.type}; convert them, or use segment_max"
        )
    if kind in (_MIN, _MAX) and is_complex(x.dtype):
        raise TypeError(f"{caller}: expected real numbers or booleans, got {x.type}")
    options["mode"] = access_mode(caller, options["mode"], "drop")
    if not ids.ndim or x.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"{caller}: expected a segment for each part of data along its first axes; got data of "
            f"type {x.type} and segment_ids of type {ids.type}"
        )
    count = (
        _count(caller, ids)
        if num_segments is None
        else integer(num_segments, caller, "num_segments")
    )
    if count < 0:
        raise ValueError(f"{caller}: num_segments must not be negative, got {count}")
    size = ids.size if bucket_size is None else integer(bucket_size, caller, "bucket_size")
    if bucket_size is not None and size < 1:
        raise ValueError(f"{caller}: bucket_size must be positive, got {bucket_size}")
    rest = x.shape[ids.ndim :]
    identity = kind.identity(x.dtype)
    if not x.size or not count:
        return full((count, *rest), identity, x.dtype)
    lines, parts = reshape(ids, (ids.size, 1)), reshape(x, (ids.size, *rest))
    windows = tuple(range(1, 1 + len(rest)))
    if size >= ids.size:
        numbers = ScatterDimensionNumbers(windows, (0,), (0,))
        return kind.scatter(
            full((count, *rest), identity, x.dtype), lines, parts, numbers, **options
        )
    buckets = np.arange(ids.size)[:, None] // size
    places = concatenate([as_value(buckets.astype(np.int32)), _in_32_bits(lines, count)], 1)
    target = full((int(buckets[-1, 0]) + 1, count, *rest), identity, x.dtype)
    numbers = ScatterDimensionNumbers(windows, (0, 1), (0, 1))
    each = kind.scatter(target, places, parts, numbers, **options)
    return convert(kind.reduce(convert(each, widened(x.dtype)), (0,)), x.dtype)


def _in_32_bits(ids: Any, count: int) -> Any:
    """Return the segment ids as int32; those out of range stay out of range."""
    if ids.dtype.itemsize >= 4:
        ids = minimum(ids, full_like(ids, count))
        if kind_of(ids.dtype) == "int":
            ids = maximum(ids, full_like(ids, -1))
    return convert(ids, np.dtype(np.int32))


class Segments(Protocol):
    """A function that combines the parts of an array that belong to each segment."""

    __name__: str

    def __call__(
        self,
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: str | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        """Return the array with one combined part for each segment."""
        ...


_DOC = """{summary}

    Args:
        data: an array.
        segment_ids: integers, the segment of each part along the first axes of ``data``.
        num_segments: the number of segments; by default as many as the ids need, which must be
            known: while tracing, give it.
        indices_are_sorted: a promise that the ids are in ascending order, which may save work.
        unique_indices: a promise that no id occurs twice, which may save work.
        bucket_size: how many parts to combine before combining their results: a sum of many parts
            then loses fewer digits, but takes the memory of a result for each bucket.
        mode: what to do with ids out of range: dropped by default; ``"clip"`` gives them to the
            nearest segment.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        {returns} for a segment without parts.

    Raises:
        TypeError: ``segment_ids`` are not integers{refused}.
        ValueError: there is not an id for each part, a number is negative, or the mode is unknown;
            or the result cannot be split as ``out_sharding`` says.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.lax.{name}(snp.array([1.0, 2.0, 4.0]), snp.array([0, 2, 0]))
    Array([{example}], dtype=float32)
    """


def _segments(
    name: str, kind: Kind, summary: str, returns: str, example: str, refused: str = ""
) -> Segments:
    """Make the function of a reduction, with its name and documentation."""

    def segments(
        data: ArrayLike,
        segment_ids: ArrayLike,
        num_segments: int | None = None,
        indices_are_sorted: bool = False,
        unique_indices: bool = False,
        bucket_size: int | None = None,
        mode: str | None = None,
        out_sharding: ShardingLike | None = None,
    ) -> Array:
        return _reduced(
            name,
            kind,
            data,
            segment_ids,
            num_segments,
            bucket_size,
            out_sharding,
            indices_are_sorted=indices_are_sorted,
            unique_indices=unique_indices,
            mode=mode,
        )

    segments.__name__ = segments.__qualname__ = name
    segments.__doc__ = _DOC.format(
        summary=summary, returns=returns, refused=refused, name=name, example=example
    )
    return segments


segment_sum = _segments(
    "segment_sum",
    _SUM,
    "Sum the parts of an array that belong to each segment.",
    "The sums; 0",
    "5., 0., 2.",
    ", or ``data`` is boolean",
)
segment_prod = rounded_once(
    _segments(
        "segment_prod",
        _PROD,
        "Multiply the parts of an array that belong to each segment.",
        "The products; 1",
        "4., 1., 2.",
    )
)
segment_max = _segments(
    "segment_max",
    _MAX,
    "Take the greatest of the parts that belong to each segment.",
    "The greatest parts; the least number of the dtype",
    "  4., -inf,   2.",
    ", or ``data`` is complex",
)
segment_min = _segments(
    "segment_min",
    _MIN,
    "Take the least of the parts that belong to each segment.",
    "The least parts; the greatest number of the dtype",
    " 1., inf,  2.",
    ", or ``data`` is complex",
)
