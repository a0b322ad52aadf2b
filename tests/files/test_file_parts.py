"""The index of several files: back as it was, or refused in words; and what removing leaves.

Boxes of arrays in parts: the right bytes, and hardly more read than these.
"""

import json
import os

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from stretto.files import file_parts
from stretto.files.file_parts import (
    BLOCK,
    Grid,
    Index,
    Part,
    aligned,
    box_of,
    data_name,
    folder_of,
    index_text,
    parse_index,
    remove,
    remove_parts,
)
from stretto.files.names import Damaged

ONE, TWO = data_name("0" * 16, 0), data_name("0" * 16, 1)
INDEX = Index(
    {ONE: 100, TWO: 64},
    {
        "w": ("F32", Grid((4, 2), (2, 2), [Part(ONE, 80, ("ab",)), Part(TWO, 48, ("cd", "ef"))])),
        "s": ("BOOL", Grid((), (), [Part(ONE, 99, ("00",))])),
        "empty": ("I8", Grid((0, 8), (0, 1), [])),
    },
)


def test_back_as_it_was():
    assert parse_index(index_text(INDEX)) == INDEX


def changed(**entries):
    return json.dumps({**json.loads(index_text(INDEX)), **entries})


def array(**entries):
    said = json.loads(index_text(INDEX))["arrays"]
    return changed(arrays={**said, "w": {**said["w"], **entries}})


DAMAGED = {
    "text": ("{", "is damaged"),
    "list": ("[]", "is damaged"),
    "version": (changed(version=9), "is of version 9 with blocks of 1048576"),
    "block": (changed(block=5), "blocks of 5 bytes, and this Stretto knows 1"),
    "elsewhere": (changed(files=[["../secret", 3]]), "names a file '../secret'"),
    "absolute": (changed(files=[["/etc/passwd", 3]]), "names a file '/etc/passwd'"),
    "size": (changed(files=[[ONE, -3]]), "-3 is not a size"),
    "missing": (array(parts=[[0, 80, ["ab"]]]), r"has 2 parts of shape \(2, 2\), and 1 are listed"),
    "too many": (array(parts=[[0, 80, ["ab"]]] * 3), "and 3 are listed"),
    "uneven": (array(part=[3, 2]), r"w of shape \(4, 2\) has parts of shape \(3, 2\)"),
    "axes": (array(part=[2]), "has parts of shape"),
    "nothing": (array(part=[0, 2]), "has parts of shape"),
    "no file": (array(parts=[[0, 80, []], [2, 80, []]]), "index out of range"),
    "offset": (array(parts=[[0, 1.5, []], [0, 80, []]]), "1.5 is not a size"),
    "shape": (array(shape=[True, 2]), "True is not a size"),
    "arrays": (changed(arrays=[]), "is damaged"),
    "nested": ("[" * 100_000, "is damaged"),
}


@pytest.mark.parametrize("case", DAMAGED)
def test_what_is_refused(case):
    text, words = DAMAGED[case]
    with pytest.raises(Damaged, match=f"its index .*{words}"):
        parse_index(text)


def test_what_is_removed_is_ours(tmp_path):
    path = tmp_path / "model"
    folder = folder_of(str(path))
    os.mkdir(folder)
    keep = data_name("f" * 16, 0)
    for name in (ONE, TWO, keep, "next", "notes.txt"):
        (tmp_path / "model.parts" / name).write_bytes(b"")
    remove_parts(folder, but="f" * 16)
    assert sorted(os.listdir(folder)) == [keep, "notes.txt"]
    os.unlink(os.path.join(folder, "notes.txt"))
    path.write_bytes(b"")
    remove(str(path))
    assert os.listdir(tmp_path) == []
    remove(str(path))
    remove_parts(folder)


def test_a_link_leads_to_the_folder_of_its_file(tmp_path):
    (tmp_path / "link").symlink_to(tmp_path / "model")
    assert folder_of(str(tmp_path / "link")) == str(tmp_path / "model.parts")


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
    before = file_parts._GAP, file_parts._SPAN
    file_parts._GAP, file_parts._SPAN = gap, span
    try:
        np.testing.assert_array_equal(disk.box(box), disk.x[box])
        if gap == 0:  # nothing but what was asked for
            assert sum(disk.reads) == disk.x[box].nbytes
        np.testing.assert_array_equal(disk.box(None), disk.x)
    finally:
        file_parts._GAP, file_parts._SPAN = before


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
    monkeypatch.setattr(file_parts, "_SPAN", 1 << 14)
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
    assert BLOCK <= file_parts._SPAN
