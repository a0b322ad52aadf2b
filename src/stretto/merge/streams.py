"""Tensors of any size as streams of blocks: read ahead into reused memory, computed one at a time.

Flat blocks have one of three lengths, so that a method is compiled at most three times for a dtype;
the tail of a tensor is filled with zeros. Methods that look at rows get blocks of whole rows, and
those that look at matrices get the tensor. While a block is computed, the next is read by another
thread.

Nothing that is computed depends on how long blocks are: sums are of runs of ``UNIT`` elements
first, and random numbers go by the number of such a run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import NamedTuple

import numpy as np

from stretto.files.file_parts import aligned
from stretto.merge.checkpoints import Checkpoint, Stored, elements

LENGTHS = (1 << 12, 1 << 16, 1 << 19)
"""The lengths of flat blocks. Of 2^18 an average of three models took 6.7 seconds, of 2^19 and 2^20
6.3, and 20 MiB more of memory with 2^20."""

_OF_ROWS = 1 << 18
"""About how many elements are in a block of whole rows, which take more memory, as for sorting."""

UNIT = LENGTHS[0]
"""Elements whose sums are computed at once, and that have random numbers of one key."""


class Source(NamedTuple):
    """A tensor of a checkpoint."""

    checkpoint: Checkpoint
    name: str

    @property
    def stored(self) -> Stored:
        """Return type and place of the tensor."""
        return self.checkpoint.stored[self.name]

    def __str__(self) -> str:
        return f"{self.name} of {self.checkpoint.path}"


class Block(NamedTuple):
    """A piece of each tensor of a stream, at the same place."""

    start: int
    """The number of its first element."""
    size: int
    """How many elements are the tensors' own; those behind are zeros."""
    arrays: tuple[np.ndarray, ...]


class Stream:
    """Tensors of one shape, block by block, as often as is asked.

    Args:
        sources: the tensors.
        most: the most bytes that the buffers of all may take.
        rows: whether blocks are whole rows, of shape (rows, length of a row).
        every: 1 for all blocks, k for each k-th alone.
    """

    def __init__(
        self, sources: Sequence[Source], most: int, *, rows: bool = False, every: int = 1
    ) -> None:
        self.sources = tuple(sources)
        self.shape = self.sources[0].stored.shape
        self.size = elements(self.sources[0].stored)
        self._dtypes = [s.stored.dtype for s in self.sources]
        each = 2 * sum(dtype.itemsize for dtype in self._dtypes)  # two sets of buffers
        self._rows, self._every = rows, every
        self.row = (self.shape[-1] if self.shape else 1) if rows else 1
        self.lengths = _lengths(self.size, most // each, self.row)

    def __iter__(self) -> Iterator[Block]:
        """Give the blocks; a block's arrays are valid until the next but one is asked for."""
        pieces = list(self._pieces())[:: self._every]
        buffers = [
            [aligned(max(self.lengths) * dtype.itemsize) for dtype in self._dtypes]
            for _ in range(min(2, len(pieces)))
        ]
        if len(pieces) < 2:  # as of small tensors, for which a thread would take longer
            yield from (self._read(*piece, buffers[0]) for piece in pieces)
            return
        with ThreadPoolExecutor(1, "stretto-read") as pool:
            coming = pool.submit(self._read, *pieces[0], buffers[0])
            for i in range(len(pieces)):
                block = coming.result()
                if i + 1 < len(pieces):
                    coming = pool.submit(self._read, *pieces[i + 1], buffers[(i + 1) % 2])
                yield block

    def _pieces(self) -> Iterator[tuple[int, int, int]]:
        """Give start, size and length with its filling of each block."""
        start = 0
        while start < self.size:
            left = self.size - start
            below = [n for n in self.lengths if n <= left]
            length = next((n for n in self.lengths if n >= left), self.lengths[-1])
            if below and length > 2 * left:  # shorter blocks rather than zeros for the most part
                length = below[-1]
            size = min(left, length)
            yield start, size, length
            start += size

    def _read(self, start: int, size: int, length: int, buffers: Sequence[np.ndarray]) -> Block:
        arrays = []
        for source, dtype, buffer in zip(self.sources, self._dtypes, buffers, strict=True):
            raw = buffer[: length * dtype.itemsize]
            end = size * dtype.itemsize
            source.checkpoint.read_into(source.name, start * dtype.itemsize, raw[:end].data)
            raw[end:] = 0
            array = raw.view(dtype)
            arrays.append(array.reshape(-1, self.row) if self._rows else array)
        return Block(start, size, tuple(arrays))


def _lengths(size: int, most: int, row: int) -> tuple[int, ...]:
    """Return the lengths of blocks: of whole rows, where a row has several elements."""
    if row == 1:
        fitting = tuple(n for n in LENGTHS if n <= most)
        return fitting or LENGTHS[:1]
    count = size // row if row else 0
    rows = max(1, min(count, _OF_ROWS // max(row, 1)))
    return (rows * row,)


def whole(source: Source) -> np.ndarray:
    """Return all of a tensor."""
    stored = source.stored
    raw = aligned(stored.nbytes)
    source.checkpoint.read_into(source.name, 0, raw.data)
    return raw.view(stored.dtype).reshape(stored.shape)


# What is measured


_SAMPLED = 16
"""Of how many blocks one is looked at, to know about where the n-th largest is."""


def kth_largest(
    values: Callable[[int], Iterator[np.ndarray]], size: int, counts: Sequence[int], most: int
) -> list[float]:
    """Return the n-th largest of many float32 that are 0 or more, for each n of ``counts``.

    What fits into memory is partitioned. Of more, a sample says between which numbers the n-th
    largest should be, and only what is between them is kept; where it was elsewhere, or too much is
    there, the numbers are counted.

    Args:
        values: ``values(1)`` gives all of them, in arrays, as often as is asked, and ``values(k)``
            each k-th of the arrays; NaN counts as the largest.
        size: how many there are.
        counts: from 1 to ``size``.
        most: the most bytes to take for it.
    """
    room = max(most // 4, 1)
    if size <= room:  # 0.7 ns an element with 512-bit vectors
        found = _partitioned(_joined(values(1), size), counts)
    else:
        found = _bracketed(values, size, counts, room // 2 + 1)
        missing = sorted(set(counts) - found.keys())
        if missing:
            found |= _counted(values, missing)
    return [float(np.uint32(found[n]).view(np.float32)) for n in counts]


# Floats that are 0 or more are in the order of their bits, as which they are counted and compared.


def _joined(arrays: Iterator[np.ndarray], size: int) -> np.ndarray:
    """Return the numbers of several arrays, which are ``size`` at most, as one."""
    flat = np.empty(size, np.float32)
    done = 0
    for array in arrays:
        flat[done : done + len(array)] = array
        done += len(array)
    return flat[:done]


def _partitioned(flat: np.ndarray, counts: Sequence[int]) -> dict[int, int]:
    """Return the bits of the n-th largest of what is in memory, and leave it in another order."""
    # From the smallest n on, since each leaves what is below it sorted out.
    found = {}
    end = flat.size
    for n in sorted(set(counts)):
        place = flat.size - n
        flat[:end].partition(place)
        found[n] = int(flat[place : place + 1].view(np.uint32)[0])
        end = place
    return found


def _bracketed(
    values: Callable[[int], Iterator[np.ndarray]], size: int, counts: Sequence[int], room: int
) -> dict[int, int]:
    """Return the bits of the n-th largest, for those n of which a sample says where they are."""
    step = -(-size // (_SAMPLED * room))
    sample = np.concatenate([x[::step].copy() for x in values(_SAMPLED)])
    sample.sort()
    wanted = sorted(set(counts))
    own = max(room // len(wanted), 1)
    margin = min(0.05 * size, 0.4 * own)
    brackets = [
        _Bracket(sample.view(np.uint32), (n - margin) / size, (n + margin) / size, own)
        for n in wanted
    ]
    for array in values(1):
        for bracket in brackets:
            bracket.take(array.view(np.uint32))
    found = {n: bracket.found(n) for n, bracket in zip(wanted, brackets, strict=True)}
    return {n: bits for n, bits in found.items() if bits is not None}


class _Bracket:
    """Two numbers, how many are above each, and those that are between them."""

    def __init__(self, sample: np.ndarray, above_high: float, above_low: float, room: int) -> None:
        """Take them from a sorted sample, by the shares of the numbers that are larger."""
        last = len(sample) - 1
        self.high = int(sample[round((1 - above_high) * last)]) if above_high > 0 else 0xFFFFFFFF
        self.low = int(sample[round((1 - above_low) * last)]) if above_low < 1 else 0
        self.over_high = self.from_high = self.over_low = self.from_low = 0
        self.kept = np.empty(room, np.uint32)

    def take(self, bits: np.ndarray) -> None:
        """Count some numbers, and keep those between if there is room."""
        over_low, from_high = bits > self.low, bits >= self.high
        begin = self.over_low - self.from_high
        self.over_high += int(np.count_nonzero(bits > self.high))
        self.from_high += int(np.count_nonzero(from_high))
        self.over_low += int(np.count_nonzero(over_low))
        self.from_low += int(np.count_nonzero(bits >= self.low))
        end = self.over_low - self.from_high
        if 0 <= begin <= end <= len(self.kept):
            np.compress(over_low & ~from_high, bits, out=self.kept[begin:end])

    def found(self, n: int) -> int | None:
        """Return the n-th largest, if it is here."""
        if self.over_high < n <= self.from_high:
            return self.high
        if self.over_low < n <= self.from_low:
            return self.low
        between = self.over_low - self.from_high
        if not self.from_high < n <= self.over_low or between > len(self.kept):
            return None
        n -= self.from_high
        return _partitioned(self.kept[:between].view(np.float32), [n])[n]


def _counted(
    values: Callable[[int], Iterator[np.ndarray]], counts: Sequence[int]
) -> dict[int, int]:
    """Return the bits of the n-th largest: first their upper half, then the lower."""
    upper = np.zeros(1 << 16, np.int64)
    for array in values(1):
        upper += np.bincount(array.view(np.uint32) >> 16, minlength=1 << 16)
    above = np.concatenate([np.cumsum(upper[::-1])[::-1], [0]])  # how many are in this bin or above
    bins = {n: int(np.searchsorted(-above, -n, side="right")) - 1 for n in counts}
    lower = {b: np.zeros(1 << 16, np.int64) for b in bins.values()}
    for array in values(1):
        bits = array.view(np.uint32)
        top = bits >> 16
        for b, tally in lower.items():
            tally += np.bincount(bits[top == b] & 0xFFFF, minlength=1 << 16)
    found = {}
    for n in counts:
        b = bins[n]
        within = n - int(above[b + 1])
        place = int(np.searchsorted(-np.cumsum(lower[b][::-1])[::-1], -within, side="right")) - 1
        found[n] = b << 16 | place
    return found
