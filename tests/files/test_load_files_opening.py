"""Opened files; see ``test_load_files`` for damaged ones, and ``test_many_writers`` for several."""

import os

import numpy as np
import pytest

import stretto as st
from stretto.files import load_files
from stretto.files.file_parts import (
    CHECKSUM,
    INDEX,
    Grid,
    Index,
    Part,
    checksum,
    data_name,
    folder_of,
    header,
    index_text,
)
from stretto.files.load_files import File, bytes_at, check, contents_of, open_file
from stretto.files.names import Damaged
from stretto.files.save_files import write

W = np.arange(12, dtype=np.float32).reshape(3, 4)


@pytest.fixture
def path(tmp_path):
    return tmp_path / "model.safetensors"


def test_contents_and_boxes(path):
    st.save(path, {"w": W, "n": 3}, {"note": "x"})
    with open_file(path, "load") as file:
        contents = contents_of(file)
        assert contents.described and contents.metadata == {"note": "x"}
        entry = contents.entries["w"]
        assert str(entry.type) == "float32[3,4]" and entry.kind == "numpy" and entry.itemsize == 4
        assert file.read("w", entry).tobytes() == W.tobytes()
        box = slice(1, 3), slice(2, 4)
        assert file.read("w", entry, box).tobytes() == W[box].tobytes()
        assert file.size() == os.path.getsize(path)
    assert file.raw.closed


def test_a_file_that_is_replaced_while_it_is_opened_is_opened_again(path, monkeypatch):
    st.save(path, 1)
    opened = []

    class Slow(File):
        def _check(self):
            if not opened:
                st.save(path, 2)
            opened.append(self)
            super()._check()

    monkeypatch.setattr(load_files, "File", Slow)
    assert st.load(path) == 2
    assert len(opened) == 2 and opened[0].raw.closed


@pytest.mark.parametrize("piece", [5, 1 << 24])
def test_checksums_are_computed_piece_by_piece(path, monkeypatch, piece):
    monkeypatch.setattr(load_files, "_PIECE", piece)
    write(path, {"w": W}, None, with_checksum=True)
    with open_file(path, "load") as file:
        check(file)
    data = bytearray(path.read_bytes())
    data[-1] ^= 1
    path.write_bytes(data)
    with open_file(path, "load") as file, pytest.raises(Damaged, match="its checksum is not that"):
        check(file)


@pytest.mark.parametrize(
    ("shape", "offset", "sums"),
    [((1 << 50,), 0, ("",)), ((2,), 96, ("",)), ((2,), 0, ()), ((2,), 0, ("", ""))],
    ids=["huge", "outside", "unchecked", "too many"],
)
def test_an_index_of_parts_that_cannot_be(path, shape, offset, sums):
    """No memory is asked for."""
    name = data_name("0" * 16, 0)
    os.mkdir(folder_of(path))
    with open(os.path.join(folder_of(path), name), "wb") as file:
        file.write(bytes(100))
    grid = Grid(shape, shape, (Part(name, offset, sums),))
    words = {INDEX: index_text(Index({name: 100}, {"w": ("F32", grid)}))}
    words[CHECKSUM] = checksum({}, words, lambda name: ())
    path.write_bytes(header({}, words))
    with pytest.raises(ValueError, match=r"its index is damaged: a part of w takes .* bytes, with"):
        st.load(path)


def test_the_end_of_a_file(path):
    st.save(path, {"w": W})
    with open_file(path, "load") as file:
        size = file.size()
        assert bytes_at(file.raw, size - 4, 4).ctypes.data % 64 == 0
        with pytest.raises(Damaged, match=f"it ended while it was read, at byte {size}"):
            bytes_at(file.raw, size - 4, 8)
