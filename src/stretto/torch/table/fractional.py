"""Maxima over windows at places that are drawn: fractional pooling."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp

__all__ = ["TABLE"]


def _starts(sample: Any, size: int, count: int, window: int, dtype: Any) -> Any:
    """Where along an axis the windows begin, for numbers from 0 to 1 of one window's place.

    Window k begins at floor((k + u) s) - floor(u s), s = (size - window) / (count - 1), and the
    last at the end (Graham, Fractional Max-Pooling, 2014). Of numbers below 0, which PyTorch takes
    as well, it rounds the products towards 0.
    """
    last = snp.full((*sample.shape, 1), size - window, snp.int32)
    if count == 1:
        return last
    step = snp.asarray(size - window, dtype) / snp.asarray(count - 1, dtype)
    k = snp.arange(count - 1).astype(dtype)
    places = snp.trunc((k + sample[..., None]) * step) - snp.trunc(sample * step)[..., None]
    return snp.concatenate([places.astype(snp.int32), last], -1)


def _pooled(rank: int) -> Callable[..., Any]:
    def pooled(
        x: Any, kernel_size: Sequence[int], output_size: Sequence[int], samples: Any
    ) -> tuple[Any, ...]:
        """The maxima, and where in their plane they are; samples are of the last axis first."""
        windows = tuple(kernel_size) * (rank if len(kernel_size) == 1 else 1)
        planes = x if x.ndim == rank + 2 else x[None]
        batch, channels, *sizes = planes.shape
        own = samples[:batch]
        order = range(rank)[::-1] if rank == 2 else range(rank)
        at: list[Any] = [
            snp.arange(batch).reshape((-1,) + (1,) * (2 * rank + 1)),
            snp.arange(channels).reshape((-1,) + (1,) * (2 * rank)),
        ]
        places: Any = 0
        for axis, drawn in zip(range(rank), order, strict=True):
            n, m, k = sizes[axis], output_size[axis], windows[axis]
            starts = _starts(own[..., drawn], n, m, k, x.dtype)
            index = starts[..., None] + snp.arange(k)
            shape = [batch, channels] + [1] * (2 * rank)
            shape[2 + axis], shape[2 + rank + axis] = m, k
            at.append(index.reshape(shape))
            places = places * n + at[-1]
        found = planes[tuple(at)]
        flat = (*found.shape[: 2 + rank], math.prod(windows))
        places = snp.broadcast_to(places, found.shape).reshape(flat)
        found = found.reshape(flat)
        best = snp.argmax(found, -1, keepdims=True)
        parts = [snp.take_along_axis(part, best, -1)[..., 0] for part in (found, places)]
        return tuple(parts if x.ndim == rank + 2 else [part[0] for part in parts])

    return pooled


TABLE: dict[str, Callable[..., Any]] = {
    "aten.fractional_max_pool2d.default": _pooled(2),
    "aten.fractional_max_pool3d.default": _pooled(3),
}
