"""Sums, products and extrema of the parts of an array that belong together.

Layer 2 (ops). Each is one scatter into an array of what the reduction of nothing is; names and
arguments are those of ``jax.ops``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from stretto.core.errors import TracedValueError
from stretto.core.integers import integer
from stretto.core.interpreter import Tracer, as_value
from stretto.core.types import kind_of
from stretto.ops.broadcast import reshape
from stretto.ops.comparison import full
from stretto.ops.index import (
    ScatterDimensionNumbers,
    scatter_add,
    scatter_max,
    scatter_min,
    scatter_mul,
)
from stretto.ops.reduce import greatest_below, least_above

__all__ = ["segment_max", "segment_min", "segment_prod", "segment_sum"]


def _count(who: str, ids: Any) -> int:
    known = ids.concrete() if isinstance(ids, Tracer) else ids
    if known is None:
        raise TracedValueError(
            f"{who}: how many segments there are depends on segment_ids, a traced {ids.type}: "
            f"{ids.origin()}. Give num_segments="
        )
    host = np.asarray(known)
    return max(int(host.max()) + 1, 0) if host.size else 0


def _reduced(
    who: str,
    scatter: Callable[..., Any],
    nothing: Callable[[np.dtype], Any],
    data: Any,
    segment_ids: Any,
    num_segments: int | None,
    promises: dict[str, bool],
    mode: str | None,
) -> Any:
    x, ids = as_value(data, who, "data"), as_value(segment_ids, who, "segment_ids")
    if kind_of(ids.dtype) not in ("int", "uint"):
        raise TypeError(f"{who}: segment_ids must be integers, got {ids.type}")
    if scatter is scatter_add and kind_of(x.dtype) == "bool":
        raise TypeError(f"{who}: booleans have no sum, {x.type}; convert them, or use segment_max")
    if not ids.ndim or x.shape[: ids.ndim] != ids.shape:
        raise ValueError(
            f"{who}: expected a segment for each part of data along its first axes; got data of "
            f"type {x.type} and segment_ids of type {ids.type}"
        )
    count = _count(who, ids) if num_segments is None else integer(num_segments, who, "num_segments")
    if count < 0:
        raise ValueError(f"{who}: num_segments must not be negative, got {count}")
    rest = x.shape[ids.ndim :]
    target = full((count, *rest), nothing(x.dtype), x.dtype)
    if not x.size or not count:
        return target
    lines = reshape(ids, (ids.size, 1))
    numbers = ScatterDimensionNumbers(tuple(range(1, 1 + len(rest))), (0,), (0,))
    return scatter(target, lines, reshape(x, (ids.size, *rest)), numbers, mode=mode, **promises)


def segment_sum(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    *,
    mode: str | None = None,
) -> Any:
    """The sum of the parts of ``data`` of each segment: 0, 1, … ``num_segments - 1``.

    ``segment_ids`` says of which segment each part along the first axes is; parts of others are
    dropped, or with ``mode="clip"`` belong to the nearest. By default there are as many segments as
    the ids need, which must then be known: while tracing give ``num_segments``.
    ``indices_are_sorted`` and ``unique_indices`` are promises that may save work.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ops.segment_sum(snp.array([1.0, 2.0, 4.0]), snp.array([0, 2, 0]))
    Array([5., 0., 2.], dtype=float32)
    """
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _reduced(
        "segment_sum", scatter_add, lambda _: 0, data, segment_ids, num_segments, promises, mode
    )


def segment_prod(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    *,
    mode: str | None = None,
) -> Any:
    """The product of the parts of each segment, 1 of none; arguments as for ``segment_sum``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ops.segment_prod(snp.array([1.0, 2.0, 4.0]), snp.array([0, 2, 0]))
    Array([4., 1., 2.], dtype=float32)
    """
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _reduced(
        "segment_prod", scatter_mul, lambda _: 1, data, segment_ids, num_segments, promises, mode
    )


def segment_max(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    *,
    mode: str | None = None,
) -> Any:
    """The greatest part of each segment, the least number of none; arguments as ``segment_sum``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ops.segment_max(snp.array([1.0, 2.0, 4.0]), snp.array([0, 2, 0]))
    Array([  4., -inf,   2.], dtype=float32)
    """
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _reduced(
        "segment_max", scatter_max, greatest_below, data, segment_ids, num_segments, promises, mode
    )


def segment_min(
    data: Any,
    segment_ids: Any,
    num_segments: int | None = None,
    indices_are_sorted: bool = False,
    unique_indices: bool = False,
    *,
    mode: str | None = None,
) -> Any:
    """The least part of each segment, the greatest number of none; arguments as ``segment_sum``.

    >>> import stretto as st, stretto.numpy as snp
    >>> st.ops.segment_min(snp.array([1.0, 2.0, 4.0]), snp.array([0, 2, 0]))
    Array([ 1., inf,  2.], dtype=float32)
    """
    promises = {"indices_are_sorted": indices_are_sorted, "unique_indices": unique_indices}
    return _reduced(
        "segment_min", scatter_min, least_above, data, segment_ids, num_segments, promises, mode
    )
