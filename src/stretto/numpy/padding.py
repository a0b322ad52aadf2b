"""More elements around an array.

Layer 7 (numpy). Next, read ``searching``.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from stretto.core.interpreter import as_value
from stretto.numpy.joining import take
from stretto.ops import shape as ops
from stretto.ops.broadcast import canonical_axis
from stretto.ops.convert import convert

__all__ = ["pad"]


def pad(array: Any, pad_width: Any, mode: Any = "constant", **kwargs: Any) -> Any:
    """The array with more elements before and after along each axis.

    ``pad_width`` is a number, (before, after), or one such pair an axis. ``mode``: ``constant``
    (``constant_values=``, 0), ``edge``, ``reflect``, ``symmetric``, ``wrap``, ``empty``.

    >>> import stretto.numpy as snp
    >>> snp.pad(snp.array([1, 2]), (1, 2))
    Array([0, 1, 2, 0, 0], dtype=int32)
    >>> snp.pad(snp.array([1, 2, 3]), 2, mode="reflect")
    Array([3, 2, 1, 2, 3, 2, 1], dtype=int32)
    """
    x = as_value(array, "pad", "array")
    widths = _pairs(pad_width, x.ndim, "pad_width")
    if any(w < 0 for pair in widths for w in pair):
        raise ValueError(f"pad: widths must not be negative, got {pad_width}")
    if mode in ("constant", "empty"):
        return _pad_constant(x, widths, kwargs.pop("constant_values", 0), kwargs)
    if mode not in ("edge", "reflect", "symmetric", "wrap"):
        raise NotImplementedError(
            f"pad: mode must be 'constant', 'edge', 'reflect', 'symmetric', 'wrap' or 'empty'; "
            f"got {mode!r}"
        )
    if kwargs.pop("reflect_type", "even") != "even" or kwargs:
        raise NotImplementedError(f"pad: mode {mode!r} takes no {', '.join(kwargs) or 'odd type'}")
    for d, (before, after) in enumerate(widths):
        if before or after:
            if not x.shape[d]:
                raise ValueError(f"pad: axis {d} of {x.type} is empty, so {mode!r} has nothing")
            places = np.arange(x.shape[d], dtype=np.int32)
            x = take(x, np.pad(places, (before, after), mode), d)  # type: ignore[call-overload]
    return x


def _pairs(given: Any, rank: int, what: str) -> list[tuple[int, int]]:
    """(before, after) for each axis."""
    if isinstance(given, dict):
        wanted = {canonical_axis(d, rank, "pad"): pair for d, pair in given.items()}
        rows = [wanted.get(d, 0) for d in range(rank)]
        return [_pairs(row, 1, what)[0] for row in rows]
    try:
        pairs = np.broadcast_to(np.asarray(given), (rank, 2))
    except ValueError:
        raise ValueError(
            f"pad: {what} must be a number, a pair, or a pair for each of {rank} axes; got {given}"
        ) from None
    return [(operator.index(a), operator.index(b)) for a, b in pairs]


def _pad_constant(x: Any, widths: list[tuple[int, int]], value: Any, others: Any) -> Any:
    if others:
        raise TypeError(f"pad: mode 'constant' takes no {', '.join(others)}")
    if isinstance(value, (tuple, list)):
        values = np.broadcast_to(np.asarray(value), (x.ndim, 2))
        for d, (before, after) in enumerate(widths):
            for element, pair in zip(values[d], ((before, 0), (0, after)), strict=True):
                config = [(*pair, 0) if axis == d else (0, 0, 0) for axis in range(x.ndim)]
                x = ops.pad(x, convert(as_value(element), x.dtype), config)
        return x
    value = convert(as_value(value, "pad", "constant_values"), x.dtype, x.weak_type)
    return ops.pad(x, value, [(*pair, 0) for pair in widths])
