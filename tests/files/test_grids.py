"""Boxes of arrays in parts: the right bytes, and hardly more read than these."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stretto.files import grids
from stretto.files.grids import BLOCK, Grid, Part, aligned, box_of


class Disk:
    """An array in equal parts, one behind the other; counts what is read."""

    def __init__(self, x, counts, checksums=()):
        sizes = tuple(n // c for n, c in zip(x.shape, counts, strict=True))
        self.data, parts = b"", []
        for place in np.ndindex(*counts):
            index = tuple(slice(k * n, k * n + n) for k, n in zip(place, sizes, strict=True))
            parts.append(Part(None, len(self.data), checksums))
            self.data += np.ascontiguousarray(x[index]).tobytes()
        self.x, self.grid = x, Grid(x.shape, sizes, parts)
        self.reads = []

    def fetch(self, part, size, begin, end):
        assert 0 <= begin < end <= size
        self.reads.append(end - begin)
        found = aligned(end - begin)
        found[:] = np.frombuffer(self.data, np.uint8)[part.offset + begin : part.offset + end]
        return found

    def box(self, box):
        raw = box_of(self.grid, box, self.x.itemsize, self.fetch)
        assert not raw.size or raw.ctypes.data % 64 == 0
        shape = self.x.shape if box is None else [s.stop - s.start for s in box]
        return raw.view(self.x.dtype).reshape(shape)


@some.composite
def boxes(draw):
    counts = draw(some.lists(some.integers(1, 3), max_size=4))
    shape = [c * draw(some.integers(1, 3)) for c in counts]
    ends = [sorted(draw(some.tuples(some.integers(0, n), some.integers(0, n)))) for n in shape]
    return counts, shape, tuple(slice(a, b) for a, b in ends)


@settings(max_examples=200)
@given(boxes(), some.sampled_from([0, 2, 8, 1 << 16]), some.sampled_from([8, 1 << 24]))
def test_any_box_of_any_parts(case, gap, span):
    counts, shape, box = case
    disk = Disk(np.arange(int(np.prod(shape)), dtype=np.int16).reshape(shape), counts)
    before = grids._GAP, grids._SPAN
    grids._GAP, grids._SPAN = gap, span
    try:
        np.testing.assert_array_equal(disk.box(box), disk.x[box])
        if gap == 0:  # nothing but what was asked for
            assert sum(disk.reads) == disk.x[box].nbytes
        np.testing.assert_array_equal(disk.box(None), disk.x)
    finally:
        grids._GAP, grids._SPAN = before


def test_rows_are_read_alone_and_at_once():
    disk = Disk(np.arange(1 << 16, dtype=np.float32).reshape(256, 256), (2, 1))
    rows = slice(32, 64), slice(0, 256)
    np.testing.assert_array_equal(disk.box(rows), disk.x[rows])
    assert disk.reads == [32 * 256 * 4]


def test_columns_leave_out_wide_gaps_and_read_narrow_ones():
    wide = Disk(np.zeros((8, 1 << 16), np.float32), (1, 1))
    columns = slice(0, 8), slice(0, 1 << 13)
    assert wide.box(columns).shape == (8, 1 << 13)
    assert wide.reads == [1 << 15] * 8  # an eighth
    narrow = Disk(np.zeros((1 << 10, 64), np.float32), (1, 1))
    narrow.box((slice(0, 1 << 10), slice(0, 8)))
    assert len(narrow.reads) == 1


def test_reads_with_gaps_are_of_bounded_size(monkeypatch):
    monkeypatch.setattr(grids, "_SPAN", 1 << 14)
    disk = Disk(np.zeros((1 << 10, 64), np.float32), (1, 1))
    disk.box((slice(0, 1 << 10), slice(0, 8)))
    assert 16 <= len(disk.reads) <= 20 and max(disk.reads) <= 1 << 14


@pytest.mark.parametrize("shape", [(), (0,), (3, 0, 2)], ids=str)
def test_scalars_and_nothing(shape):
    disk = Disk(np.ones(shape, np.float32), (1,) * len(shape))
    if disk.x.size:
        assert disk.box(None) == 1 and disk.box(()) == 1
    else:
        grid = Grid(shape, shape, ())
        assert not len(box_of(grid, None, 4, disk.fetch)) and disk.reads == []


def test_a_block_is_no_more_than_what_is_read_at_once():
    assert BLOCK <= grids._SPAN
