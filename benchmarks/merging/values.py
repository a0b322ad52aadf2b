"""How far the tensors of two models are apart, in units in the last place."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from stretto.merge import Checkpoint
from stretto.merge.streams import Source, whole

__all__ = ["Apart", "apart", "units"]


class Apart(NamedTuple):
    """How two models differ."""

    most: int
    """The most units between two elements."""
    share: float
    """The share of elements that differ."""
    largest: float
    """The largest difference, in parts of the largest element of its tensor."""


def units(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Return how many floats are between the elements of two arrays of one dtype.

    >>> units(np.float32([1.0, -0.0]), np.nextafter(np.float32([1.0, 0.0]), np.float32(2)))
    array([1, 1])
    """
    kind = np.dtype(f"i{a.dtype.itemsize}")

    def place(x: np.ndarray) -> np.ndarray:
        bits = x.view(kind).astype(np.int64)
        return np.where(bits < 0, np.iinfo(kind).min - bits, bits)

    return np.abs(place(a) - place(b))


def apart(first: str, second: str) -> Apart:
    """Compare two models on disk; raises ``ValueError`` where tensors are missing or of others."""
    with Checkpoint(first) as a, Checkpoint(second) as b:
        if a.stored.keys() != b.stored.keys():
            raise ValueError(f"{first} and {second} have other tensors")
        most = count = total = 0
        largest = 0.0
        for name in a:
            x, y = whole(Source(a, name)), whole(Source(b, name))
            if x.shape != y.shape or x.dtype != y.dtype:
                raise ValueError(f"{name}: {x.dtype}{x.shape} and {y.dtype}{y.shape}")
            difference = size = 0.0
            for k in range(0, x.size, 1 << 22):
                own, other = (z.reshape(-1)[k : k + (1 << 22)] for z in (x, y))
                between = units(own, other)
                most = max(most, int(between.max()))
                count += int(np.count_nonzero(between))
                own, other = own.astype(np.float64), other.astype(np.float64)
                difference = max(difference, float(np.max(abs(own - other))))
                size = max(size, float(np.max(abs(own))))
            largest = max(largest, difference / max(size, 1e-300))
            total += x.size
        return Apart(most, count / max(total, 1), largest)
