"""Show arrays: their text and their cards, by a few elements, which are read without a copy of all.

A card has the type, where the array is, and a small picture of its values; large arrays are drawn
by a sample.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.cards import (
    MOST_LINES,
    Card,
    Item,
    bars,
    curve,
    line,
    matrix,
    number,
    size,
    sketch,
)
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.xla.array import SHARDED, Array

_USUAL = {"threshold": 1000, "edgeitems": 3}
"""NumPy's settings of how much is printed, until somebody changes them."""


def text_of(
    host: np.ndarray,
    type: ArrayType,
    width: int | None = None,
    precision: int | None = None,
    suppress_small: bool | None = None,
    edge: int | None = None,
) -> str:
    """Return the text of an array: elements and type, in lines of this width, with so many digits.

    With ``edge``, so many elements at both ends of each axis.
    """
    settings = (width, precision, suppress_small, ", ", "Array(")
    threshold = None if edge is None else 0
    body = "[]"
    if host.size:
        body = np.array2string(host, *settings, threshold=threshold, edgeitems=edge)
    is_cut = edge is not None or host.size > np.get_printoptions()["threshold"]
    is_told = is_cut or (not host.size and type.shape != (0,))
    shape = f", shape={type.shape}" if is_told else ""
    return f"Array({body}{shape}, {_dtype(type)})"


def _dtype(type: ArrayType) -> str:
    return f"dtype={type.dtype.name}{', weak_type=True' if type.weak_type else ''}"


def brief_text(x: Array) -> str:
    """Return the ``repr``, in few lines unless NumPy's settings of printing were changed."""
    if x.is_deleted():
        return deleted_text(x)
    settings = np.get_printoptions()
    if any([settings[name] != usual for name, usual in _USUAL.items()]):
        return text_of(x.to_host(), x.type)
    is_large = x.type.size > _USUAL["threshold"]
    host = _corners(x) if is_large else x.to_host()
    for edge in (3, 2, 1) if is_large else (None, 3, 2, 1):
        if _rows(x.type.shape, edge or 3) <= MOST_LINES:
            text = text_of(host, x.type, edge=edge)
            if text.count("\n") < MOST_LINES:
                return text
    ends = host.flat[:3], host.flat[-3:]
    first, last = [np.array2string(part, separator=", ")[1:-1] for part in ends]
    return f"Array({first}, ..., {last}, shape={x.type.shape}, {_dtype(x.type)})"


def _corners(x: Array) -> np.ndarray:
    """Return three elements at both ends of each axis, and one between: NumPy prints the ends."""
    indices = [np.r_[0:3, n // 2, n - 3 : n] if n > 7 else np.arange(n) for n in x.type.shape]
    found = elements_at(x, indices)
    return x.to_host() if found is None else found[0]


def _rows(shape: tuple[int, ...], edge: int) -> int:
    """Return how many rows the elements take, with so many at both ends of each axis."""
    total = 1
    for n in shape[:-1]:
        total *= min(n, 2 * edge + 1)
    return total


def deleted_text(x: Array) -> str:
    """Return the ``repr`` of an array that was deleted or donated."""
    return f"<Array {x.type}, {_fate(x)}>"


def _fate(x: Array) -> str:
    function = x._buffer.function
    return "deleted" if function is None else f"donated to {function}"


# Samples: a few elements, read where they lie on the CPU


_MOST = 4096
"""The most elements of a sample."""

_FETCHED = 1 << 24
"""The most bytes that are fetched from another device than the CPU."""


class Sample(NamedTuple):
    """Elements of an array at indices that are evenly spread along each axis."""

    values: np.ndarray
    """The elements as float64; moduli of complex numbers."""
    known: np.ndarray
    """Marks those that are in this process."""
    whole: bool
    """Says whether they are all elements."""


def sample_of(x: Array) -> Sample | None:
    """Return a sample of an array that was not donated; None where it would have to be fetched."""
    found = elements_at(x, _indices(x.type.shape))
    if found is None:
        return None
    values, known = found
    return Sample(_as_float(values), known, values.size == x.type.size and bool(known.all()))


def elements_at(x: Array, indices: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray] | None:
    """Return the elements at these indices along each axis, and which of them are in this process.

    None where too much would have to be fetched from another device.
    """
    values = np.zeros([len(p) for p in indices], x.type.dtype)
    known = np.zeros(values.shape, bool)
    parts = _parts(x)
    if parts is None:
        return None
    for part, index in parts:
        bounds = zip(indices, index, x.type.shape, strict=True)
        inside = [_within(p, one, n) for p, one, n in bounds]
        at = np.ix_(*[np.flatnonzero(here) for here, _ in inside])
        values[at] = part[np.ix_(*[where for _, where in inside])]
        known[at] = True
    return values, known


def _indices(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Return which indices along each axis: all of short axes, and evenly spread ones of others."""
    room, taken = float(_MOST), {}
    for left, axis in zip(range(len(shape), 0, -1), np.argsort(shape, kind="stable")):
        taken[axis] = min(shape[axis], max(1, int(room ** (1 / left) + 1e-9)))
        room /= max(1, taken[axis])
    # The middles of as many stretches of equal length.
    return [
        (np.arange(taken[axis]) * 2 + 1) * n // (2 * taken[axis]) if n else np.arange(0)
        for axis, n in enumerate(shape)
    ]


def _within(indices: np.ndarray, bounds: slice, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Return which of the indices are within bounds, and those, counted from their start."""
    start, stop, _ = bounds.indices(size)
    here = (start <= indices) & (indices < stop)
    return here, indices[here] - start


def sharding_if_any(x: Any) -> Any:
    """Return the sharding of an array, if it has one of its own.

    As ``sharded`` says, which takes some time to load, and is loaded once there is such an array.
    """
    return x._sharding if x.__class__ in SHARDED else None


def _parts(x: Array) -> Iterator[tuple[np.ndarray, Any]] | None:
    """Return the parts in this process, and which slices of the whole they are."""
    sharding, everything = sharding_if_any(x), (slice(None),) * x.type.ndim
    if sharding is None or x._host is not None:
        return iter([(x.to_host(), everything)])
    is_far = any([d.platform != "cpu" for d in sharding.device_list])
    if is_far and bytes_of(x.type) > _FETCHED:
        return None
    indices = zip(sharding.device_list, sharding.indices(x.type.shape), strict=True)
    return zip(x.parts(), [index for d, index in indices if d.is_local], strict=True)  # type: ignore[attr-defined]


def _as_float(values: np.ndarray) -> np.ndarray:
    """Return the values as float64: moduli of complex numbers."""
    if values.dtype.kind == "c":
        with np.errstate(over="ignore", invalid="ignore"):
            return np.abs(values).astype(np.float64)
    return values.astype(np.float64)


# Cards

_CURVE = 400
"""The longest row of values that is drawn one by one."""


def card_of(x: Array) -> Card:
    """Show type, place and values of an array."""
    type = x.type
    facts = [f"{type!r}{', weak' if type.weak_type else ''}"]
    if x.is_deleted():
        return Card("Array", (*facts, _fate(x)))
    facts.append(size(bytes_of(type)))
    sharding = sharding_if_any(x)
    if sharding is not None:
        facts.append(str(sharding))
    if not type.size:
        return Card("Array", (*facts, "no elements"))
    if type.size == 1 and (sharding is None or sharding.is_fully_addressable):
        return Card("Array", tuple(facts), (line(str(x.to_host().reshape(())[()])),))
    sample = sample_of(x)
    if sample is None:
        return Card("Array", (*facts, "values not fetched"))
    body: list[Item] = [line(_statistics(sample, type.kind), "quiet")]
    picture = _picture(sample)
    if type.ndim and (sharding is None or sharding.is_fully_addressable) and sample.whole:
        text = tuple([line(row) for row in brief_text(x).split("\n")])
        body.append(Card("values", (), text, open=False))
    values = sample.values[sample.known]
    return Card("Array", tuple(facts), tuple(body), picture=picture, sketch=sketch(values))


def _picture(sample: Sample) -> str:
    """Return a curve of a row of values, colours of a matrix, and bars of anything else."""
    long = sample.values.reshape([n for n in sample.values.shape if n > 1])
    if long.ndim == 2:
        return matrix(long)
    if long.ndim == 1 and sample.whole and len(long) <= _CURVE:
        return curve(long)
    return bars(sample.values[sample.known])


def _statistics(sample: Sample, kind: str) -> str:
    """Say the least, mean and greatest, and how many are not finite."""
    values = sample.values[sample.known]
    finite = values[np.isfinite(values)]
    words = []
    if len(finite):
        scale = np.abs(finite).max() or 1.0
        mean = number(float((finite / scale).mean() * scale))
        what = "modulus, " if kind == "complex" else ""
        words.append(
            f"{what}least {number(finite.min())}, mean {mean}, greatest {number(finite.max())}"
        )
    for name, count in (("NaN", np.isnan(values).sum()), ("infinite", np.isinf(values).sum())):
        if count:
            words.append(f"{count:,} {name}")
    if not sample.whole:
        words.append(f"of a sample of {len(values):,}")
    return ", ".join(words)
