"""Arrays that lie in a file, or in several, in equal parts; and any box of one, read by its runs.

Pure geometry: ``opening`` has the files. An array in one piece is one of a single part.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import numpy as np

from stretto._engine.core.shardings import Index

__all__ = ["BLOCK", "Grid", "Part", "aligned", "box_of"]

BLOCK = 1 << 20
"""Bytes that have a checksum of their own, of a part that has any."""

_ALIGNMENT = 64  # bytes; compiled programs use such memory where it lies
_GAP = 1 << 16  # bytes that are read, and not used, rather than passed over
_SPAN = 1 << 24  # bytes that are read at once, of which not all are used


class Part(NamedTuple):
    """Where a part of an array is."""

    file: str | None
    """The name of a data file; ``None`` for the file that says so."""
    offset: int
    """Of its first byte."""
    checksums: tuple[str, ...] = ()
    """Of each block; empty where there are none."""


class Grid(NamedTuple):
    """An array of parts of equal shapes, row by row."""

    shape: tuple[int, ...]
    part_shape: tuple[int, ...]
    parts: Sequence[Part]

    @property
    def counts(self) -> tuple[int, ...]:
        """The number of parts along each axis of an array that has elements."""
        return tuple([n // p for n, p in zip(self.shape, self.part_shape, strict=True)])


def aligned(size: int) -> np.ndarray:
    """So many bytes of new memory."""
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + size]


Fetch = Callable[[Part, int, int, int], np.ndarray]
"""Given a part, its size, and two places in it: the bytes between them, aligned from its first."""


def box_of(grid: Grid, box: Index | None, itemsize: int, fetch: Fetch) -> np.ndarray:
    """The bytes of a box of an array, all of it where that is ``None``, in the order of C.

    What ``fetch`` is asked for beyond these is bounded: gaps of a block, and none where the box is
    all of some part's rows.
    """
    size = math.prod(grid.part_shape) * itemsize
    if box is None and len(grid.parts) == 1:
        return fetch(grid.parts[0], size, 0, size)
    if box is None:
        box = tuple([slice(0, n) for n in grid.shape])
    extents = [part.stop - part.start for part in box]
    if not math.prod(extents):
        return aligned(0)
    touched = [
        range(part.start // n, -(-part.stop // n))
        for part, n in zip(box, grid.part_shape, strict=True)
    ]
    places = list(itertools.product(*touched))
    numbers = np.arange(len(grid.parts)).reshape(grid.counts)
    if len(places) == 1:  # what lies together is used where it was read
        inside = _within(box, grid.part_shape, places[0])
        pieces = list(_spans(grid.part_shape, inside, itemsize, _GAP))
        begin, end = _ends(grid.part_shape, inside, itemsize)
        if len(pieces) == 1 and end - begin == math.prod(extents) * itemsize:
            return _kept(fetch(grid.parts[numbers[places[0]]], size, begin, end))
    raw = aligned(math.prod(extents) * itemsize)
    unit = np.dtype(f"u{itemsize}")
    made = raw.view(unit).reshape(extents)
    strides = _strides(grid.part_shape, itemsize)
    for place in places:
        part = grid.parts[numbers[place]]
        gap = BLOCK if part.checksums else _GAP
        for piece in _spans(grid.part_shape, _within(box, grid.part_shape, place), itemsize, gap):
            begin, end = _ends(grid.part_shape, piece, itemsize)
            found = fetch(part, size, begin, end)
            sizes = [s.stop - s.start for s in piece]
            target = tuple(
                [
                    slice(s.start + k * n - whole.start, s.stop + k * n - whole.start)
                    for s, k, n, whole in zip(piece, place, grid.part_shape, box, strict=True)
                ]
            )
            made[target] = np.ndarray(sizes, unit, found.data, 0, strides)
    return raw


def _kept(raw: np.ndarray) -> np.ndarray:
    """Bytes in memory that programs use as it is."""
    if raw.ctypes.data % _ALIGNMENT == 0:
        return raw
    made = aligned(len(raw))
    made[:] = raw
    return made


def _within(box: Index, sizes: Sequence[int], place: Sequence[int]) -> Index:
    """What a box has of the part at this place, counted from where that begins."""
    return tuple(
        [
            slice(max(part.start - k * n, 0), min(part.stop - k * n, n))
            for part, n, k in zip(box, sizes, place, strict=True)
        ]
    )


def _strides(shape: Sequence[int], itemsize: int) -> list[int]:
    return [math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))]


def _ends(shape: Sequence[int], box: Index, itemsize: int) -> tuple[int, int]:
    """The first byte of a box of a part, and the one after its last."""
    strides = _strides(shape, itemsize)
    begin = sum([part.start * s for part, s in zip(box, strides, strict=True)])
    last = sum([(part.stop - 1) * s for part, s in zip(box, strides, strict=True)])
    return begin, last + itemsize


def _spans(shape: Sequence[int], box: Index, itemsize: int, gap: int) -> Iterator[Index]:
    """A box of a part in pieces of which each is read at once, without gaps of more than that."""
    begin, end = _ends(shape, box, itemsize)
    if end - begin == math.prod([part.stop - part.start for part in box]) * itemsize:
        yield from _cut(box, end - begin)
        return
    axis = next(k for k, part in enumerate(box) if part.stop - part.start > 1)
    one = (*box[:axis], slice(box[axis].start, box[axis].start + 1), *box[axis + 1 :])
    first, last = _ends(shape, one, itemsize)
    whole = len(list(itertools.islice(_spans(shape, one, itemsize, gap), 2))) == 1
    if whole and _strides(shape, itemsize)[axis] - (last - first) <= gap:
        yield from _cut(box, end - begin)
        return
    for i in range(box[axis].start, box[axis].stop):
        yield from _spans(shape, (*box[:axis], slice(i, i + 1), *box[axis + 1 :]), itemsize, gap)


def _cut(box: Index, span: int) -> Iterator[Index]:
    """A box in pieces of bounded spans, along the first axis that has any length."""
    axis = next((k for k, part in enumerate(box) if part.stop - part.start > 1), None)
    if span <= _SPAN or axis is None:
        yield box
        return
    part = box[axis]
    count = part.stop - part.start
    step = max(1, count * _SPAN // span)
    for i in range(part.start, part.stop, step):
        yield (*box[:axis], slice(i, min(i + step, part.stop)), *box[axis + 1 :])
