"""A few of an array's elements, to draw or print it by, without a copy of all.

On the CPU the parts of an array are read where they lie.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.types import bytes_of
from stretto._engine.xla.array import SHARDED, Array

_MOST = 4096
"""The most elements of a sample."""

_FETCHED = 1 << 24
"""The most bytes that are fetched from another device than the CPU."""


class Sample(NamedTuple):
    """Elements of an array at places that are evenly spread along each axis."""

    values: np.ndarray
    """As float64; moduli of complex numbers."""
    known: np.ndarray
    """Which of them are in this process."""
    whole: bool
    """Whether they are all elements."""


def sample_of(x: Array) -> Sample | None:
    """A sample of an array that was not donated; None where it would have to be fetched."""
    found = taken(x, _places(x.type.shape))
    if found is None:
        return None
    values, known = found
    return Sample(_as_float(values), known, values.size == x.type.size and bool(known.all()))


def taken(x: Array, places: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """The elements at these places along each axis, and which of them are in this process.

    None where too much would have to be fetched from another device.
    """
    values = np.zeros([len(p) for p in places], x.type.dtype)
    known = np.zeros(values.shape, bool)
    parts = _parts(x)
    if parts is None:
        return None
    for part, index in parts:
        bounds = zip(places, index, x.type.shape, strict=True)
        inside = [_within(p, one, n) for p, one, n in bounds]
        at = np.ix_(*[np.flatnonzero(here) for here, _ in inside])
        values[at] = part[np.ix_(*[where for _, where in inside])]
        known[at] = True
    return values, known


def _places(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Which places along each axis: all of short axes, and evenly spread ones of others."""
    room, taken = float(_MOST), {}
    for left, axis in zip(range(len(shape), 0, -1), np.argsort(shape, kind="stable")):
        taken[axis] = min(shape[axis], max(1, int(room ** (1 / left) + 1e-9)))
        room /= max(1, taken[axis])
    # The middles of as many stretches of equal length.
    return [
        (np.arange(taken[axis]) * 2 + 1) * n // (2 * taken[axis]) if n else np.arange(0)
        for axis, n in enumerate(shape)
    ]


def _within(places: np.ndarray, bounds: slice, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Which of the places are within bounds, and where those are, counted from its start."""
    start, stop, _ = bounds.indices(size)
    here = (start <= places) & (places < stop)
    return here, places[here] - start


def sharding_if_any(x: Any) -> Any:
    """The sharding of an array, if it has one of its own.

    As ``sharded`` says, which takes some time to load, and is loaded once there is such an array.
    """
    return x._sharding if x.__class__ in SHARDED else None


def _parts(x: Array) -> Iterator[tuple[np.ndarray, Any]] | None:
    """The parts in this process, and which part of the whole each is, a slice for each axis."""
    sharding, everything = sharding_if_any(x), (slice(None),) * x.type.ndim
    if sharding is None or x._host is not None:
        return iter([(x.to_host(), everything)])
    is_far = any([d.platform != "cpu" for d in sharding.device_list])
    if is_far and bytes_of(x.type) > _FETCHED:
        return None
    indices = zip(sharding.device_list, sharding.indices(x.type.shape), strict=True)
    return zip(x.parts(), [index for d, index in indices if d.is_local], strict=True)  # type: ignore[attr-defined]


def _as_float(values: np.ndarray) -> np.ndarray:
    """The values as float64: moduli of complex numbers."""
    if values.dtype.kind == "c":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.abs(values).astype(np.float64)
    return values.astype(np.float64)
