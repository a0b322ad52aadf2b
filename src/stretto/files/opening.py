"""Files as they are opened to be read: checked headers, and the bytes of any box of an array.

The safetensors library checks the header. Where the arrays are in data files beside it, these are
opened as they are needed.
"""

from __future__ import annotations

import io
import math
import os
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
import safetensors

from stretto._engine.core.files import checked_path, opened
from stretto._engine.core.shardings import Index as Box
from stretto.files.file_elements import Type, item_size, true_type
from stretto.files.file_headers import CHECKSUM, block_checksums, checksum
from stretto.files.file_parts import (
    BLOCK,
    INDEX,
    Grid,
    Index,
    Part,
    aligned,
    box_of,
    folder_of,
    parse_index,
)
from stretto.files.names import DESCRIPTION, Damaged, parse, refuse_twice

_ZIP = b"PK\x03\x04"
_PIECE = 1 << 24  # bytes of which a checksum is computed at once


class Entry(NamedTuple):
    """An array in the file."""

    type: Type
    kind: str | None
    grid: Grid
    """Where its elements are, in the form in which they are stored."""
    itemsize: int
    """The bytes of one of these."""


class Contents(NamedTuple):
    """All that a file's header says."""

    entries: dict[str, Entry]
    node: Any
    metadata: dict[str, str]

    @property
    def described(self) -> bool:
        """Whether the file says what tree it is."""
        return self.node is not _NO_NODE


_NO_NODE = object()


class Replaced(Exception):
    """The file was replaced while it was read, and its data files are gone."""


class File:
    """An open file with what its header says, as the safetensors library read and checked it."""

    def __init__(self, path: str, caller: str) -> None:
        self._path, self._caller = path, caller
        self._data: dict[str, io.FileIO] = {}
        self.raw = opened(path, caller)
        try:
            self._check()
        except BaseException:
            self.raw.close()
            raise

    def _check(self) -> None:
        try:
            with safetensors.safe_open(self._path, "np") as file:
                names = file.offset_keys()
                slices = [file.get_slice(name) for name in names]
                self.metadata: dict[str, str] = dict(file.metadata() or {})
        except safetensors.SafetensorError as error:
            raise Damaged(_what_is_wrong(self.raw, error)) from None
        # The library takes the last of several arrays of a name, and others may take the first.
        header = bytes_at(self.raw, 8, int.from_bytes(bytes_at(self.raw, 0, 8), "little"))
        refuse_twice(header.tobytes())
        stated = [(s.get_dtype(), tuple(s.get_shape())) for s in slices]
        self.stated: dict[str, tuple[str, tuple[int, ...]]] = dict(zip(names, stated, strict=True))
        # The path may lead to another file by now; the library opened it between these two.
        self.is_current = self._is_there()

    def _is_there(self) -> bool:
        return os.path.samestat(os.stat(self._path), os.fstat(self.raw.fileno()))

    def __enter__(self) -> File:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def close(self) -> None:
        """Close it, and the data files that were opened."""
        for file in (*self._data.values(), self.raw):
            file.close()

    def check_data(self, index: Index) -> None:
        """Raise ``Damaged`` unless the data files are there, with the sizes that they had."""
        folder = folder_of(self._path)
        for name, size in index.files.items():
            try:
                there = os.stat(os.path.join(folder, name)).st_size
            except FileNotFoundError:
                raise self._missing(name) from None
            if there != size:
                raise Damaged(
                    f"its data file {os.path.join(folder, name)} is "
                    f"{'truncated' if there < size else 'damaged'}: it has {there} bytes, and had "
                    f"{size}"
                )

    def _missing(self, name: str) -> Exception:
        if not self._is_there():
            return Replaced()
        return Damaged(
            f"its data file {os.path.join(folder_of(self._path), name)} is missing: the file and "
            f"the folder beside it belong together, and are copied and renamed together"
        )

    def size(self) -> int:
        """The bytes of the file."""
        return os.fstat(self.raw.fileno()).st_size

    def places(self) -> dict[str, tuple[int, int]]:
        """Of each array of its own the first byte in the file, and how many there are."""
        # The format leaves no holes: each array begins where the one before it ends.
        offset = 8 + int.from_bytes(bytes_at(self.raw, 0, 8), "little")
        places = {}
        for name, (code, shape) in self.stated.items():
            size = item_size(name, code) * math.prod(shape)
            places[name] = offset, size
            offset += size
        return places

    def read(self, name: str, entry: Entry, box: Box | None = None) -> np.ndarray:
        """The bytes of an array, or of a box of it, in aligned memory of their own.

        The box is one of what is stored. Raises ``Damaged`` where a checksum is another.
        """

        def fetch(part: Part, size: int, begin: int, end: int) -> np.ndarray:
            return self._bytes_of(name, part, size, begin, end)

        return box_of(entry.grid, box, entry.itemsize, fetch)

    def _bytes_of(self, name: str, part: Part, size: int, begin: int, end: int) -> np.ndarray:
        if part.file is None:
            return bytes_at(self.raw, part.offset + begin, end - begin)
        first, last = begin // BLOCK * BLOCK, min(-(-end // BLOCK) * BLOCK, size)
        raw = bytes_at(self._opened(part.file), part.offset + first, last - first)
        written = part.checksums[first // BLOCK : -(-last // BLOCK)]
        if block_checksums(raw.data) != list(written):
            raise Damaged(
                f"its data file {os.path.join(folder_of(self._path), part.file)} is damaged: a "
                f"part of {name} has other checksums than it was written with"
            )
        return raw[begin - first : end - first]

    def _opened(self, name: str) -> io.FileIO:
        if name not in self._data:
            try:
                self._data[name] = opened(os.path.join(folder_of(self._path), name), self._caller)
            except FileNotFoundError:
                raise self._missing(name) from None
        return self._data[name]


def open_file(path: str | os.PathLike[str], caller: str) -> File:
    """The file that is there, also while others replace it."""
    text = checked_path(path, caller)
    while True:
        file = File(text, caller)
        if file.is_current:
            return file
        file.close()


def contents_of(file: File, *, data: bool = True) -> Contents:
    """The arrays with their places, and the description; whether they are there, with ``data``."""
    metadata = dict(file.metadata)
    kinds: dict[str, str] = {}
    dtypes: dict[str, str] = {}
    node = _NO_NODE
    if INDEX in metadata:
        _check_index(file)
        index = parse_index(metadata.pop(INDEX))
        _check_extents(index)
        if data:
            file.check_data(index)
        places = index.arrays
    else:
        places = _in_one_file(file)
    metadata.pop(CHECKSUM, None)
    if DESCRIPTION in metadata:
        node, kinds, dtypes = parse(metadata.pop(DESCRIPTION))
    entries = {}
    for name, (code, grid) in places.items():
        type = true_type(name, code, grid.shape, dtypes.get(name))
        entries[name] = Entry(type, kinds.get(name), grid, item_size(name, code))
    return Contents(entries, node, metadata)


def _in_one_file(file: File) -> dict[str, tuple[str, Grid]]:
    places = file.places()
    return {
        name: (code, Grid(shape, shape, (Part(None, places[name][0]),)))
        for name, (code, shape) in file.stated.items()
    }


def _check_index(file: File) -> None:
    if file.stated or file.metadata.get(CHECKSUM) != checksum({}, file.metadata, lambda name: ()):
        raise Damaged("it is damaged: it is the index of several files, and its checksum is wrong")


def _check_extents(index: Index) -> None:
    """Raise ``Damaged`` unless all parts are within their files."""
    for name, (code, grid) in index.arrays.items():
        size = math.prod(grid.part_shape) * item_size(name, code)
        for part in grid.parts:
            room = index.files[part.file or ""]
            if part.offset + size > room or len(part.checksums) != -(-size // BLOCK):
                raise Damaged(
                    f"its index is damaged: a part of {name} takes {size} bytes, with "
                    f"{len(part.checksums)} checksums, from byte {part.offset} of a file of {room}"
                )


def check(file: File) -> None:
    """Raise ``Damaged`` unless the file holds what it was written with.

    Data files are checked as they are read.
    """
    written = file.metadata.get(CHECKSUM)
    if written is None:
        raise Damaged("it has no checksum")
    places = file.places()

    def pieces(name: str) -> Iterator[memoryview]:
        offset, size = places[name]
        for done in range(0, size, _PIECE):
            yield bytes_at(file.raw, offset + done, min(_PIECE, size - done)).data

    if written != checksum(file.stated, file.metadata, pieces):
        raise Damaged("it is damaged: its checksum is not that of what is in it")


def _what_is_wrong(file: io.FileIO, error: object) -> str:
    size = os.fstat(file.fileno()).st_size
    begins = bytes_at(file, 0, min(size, 8)).tobytes()
    if begins[:4] == _ZIP:
        return "it is a zip archive (as PyTorch's .pt and NumPy's .npz are), not a safetensors file"
    if size < 8:
        return f"it has {size} bytes, and a safetensors file has 8 before its header"
    length = int.from_bytes(begins, "little")
    if length > size - 8:
        return (
            f"it is truncated, or not a safetensors file: it has {size} bytes, and its first 8 "
            f"say that its header takes {length}"
        )
    return f"it is damaged, or not a safetensors file: {error} (it has {size} bytes)"


def bytes_at(file: io.FileIO, offset: int, size: int) -> np.ndarray:
    """These bytes of a file, in aligned memory of their own. Raises ``Damaged`` at its end."""
    raw = aligned(size)
    view = raw.data
    file.seek(offset)
    done = 0
    while done < size:
        count = file.readinto(view[done:])
        if not count:
            raise Damaged(f"it ended while it was read, at byte {offset + done}")
        done += count
    return raw
