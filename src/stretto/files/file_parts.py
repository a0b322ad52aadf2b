"""Headers and checksums of files in the safetensors format, and arrays that lie in files in parts.

A header says as JSON the names, types and places of the arrays. A checksum of all that a file holds
is kept in the file itself; it is of names, types, metadata and elements, and not of how the header
is written. Checkpoints have one; files that others may edit have none. Arrays in several files have
a checksum for each block, so that what is read can be checked, and nothing else is read for it.

The index of a tree that several processes wrote says which part of which array is in which file.
The file at the path itself holds no array then, and has the index, as JSON, among its metadata; the
data files are in a folder beside it (docs/decisions/0046-files-of-several-processes.md).

Of arrays that lie in equal parts, in one file or several, any box is read by its runs. This is pure
geometry: ``load_files`` has the files. An array in one piece is one of a single part.
"""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.core import shardings, system
from stretto._engine.core.files import remove_abandoned
from stretto._engine.core.lazy import LazyModule
from stretto.files.file_elements import Elements, code_of
from stretto.files.names import Damaged

hashlib = LazyModule("hashlib")
json = LazyModule("json")


Bytes: TypeAlias = bytes | memoryview

CHECKSUM = "stretto.checksum"
"""The entry of the metadata that holds the checksum."""


def checksum(
    types: Mapping[str, tuple[str, tuple[int, ...]]],
    words: Mapping[str, str],
    pieces_of: Callable[[str], Iterable[Bytes]],
) -> str:
    """Return the SHA-256 of arrays, by name of these codes and shapes, and of the metadata.

    >>> checksum({"w": ("U8", (2,))}, {"epoch": "7"}, lambda name: [b"a", b"b"])[:8]
    '...'
    """
    described = [
        sorted((name, word) for name, word in words.items() if name != CHECKSUM),
        sorted((name, code, list(shape)) for name, (code, shape) in types.items()),
    ]
    digest = hashlib.sha256(json.dumps(described).encode())
    for name in sorted(types):
        for piece in pieces_of(name):
            digest.update(piece)
    return digest.hexdigest()


def block_checksums(data: Bytes) -> list[str]:
    """Return the checksum of each block of bytes.

    >>> block_checksums(b"")
    []
    """
    whole = memoryview(data)
    return [_of_block(whole[i : i + BLOCK]) for i in range(0, len(whole), BLOCK)]


def _of_block(data: Bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


_HEADER_ALIGNMENT = 8
_LONGEST = 100_000_000  # bytes of a header, which no reader of the format goes beyond


def in_order(arrays: Mapping[str, Elements]) -> dict[str, Elements]:
    """Return the arrays in the format's order, the widest types first, so that all are aligned."""
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    return {name: arrays[name] for name in names}


def header(arrays: Mapping[str, Elements], words: Mapping[str, str]) -> bytes:
    """Return the file up to its first element: the length of what follows, and that, as JSON."""
    entries: dict[str, Any] = {"__metadata__": words}
    end = 0
    for name, x in arrays.items():
        begin, end = end, end + x.nbytes
        entries[name] = {"dtype": code_of(x.dtype), "shape": x.shape, "data_offsets": (begin, end)}
    try:
        text = json.dumps(entries, separators=(",", ":"), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise ValueError(
            f"save: the names and the metadata must be text, and {error.object[error.start]!r} is "
            f"half a character"
        ) from None
    text += b" " * (-len(text) % _HEADER_ALIGNMENT)
    if len(text) > _LONGEST:
        raise ValueError(
            f"save: the names, shapes and metadata take {len(text)} bytes, and the format has room "
            f"for {_LONGEST}; keep large data in arrays"
        )
    return len(text).to_bytes(8, "little") + text


BLOCK = 1 << 20
"""Bytes that have a checksum of their own, of a part that has any."""

_ALIGNMENT = 64  # bytes; compiled programs use such memory where it lies
_GAP = 1 << 16  # bytes that are read, and not used, rather than passed over
_SPAN = 1 << 24  # bytes that are read at once, of which not all are used


class Part(NamedTuple):
    """The place of a part of an array."""

    file: str | None
    """The name of a data file; ``None`` for the file that says so."""
    offset: int
    """The offset of its first byte."""
    checksums: tuple[str, ...] = ()
    """The checksum of each block; empty where there are none."""


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
    """Make so many bytes of new memory."""
    room = np.empty(size + _ALIGNMENT, np.uint8)
    start = -room.ctypes.data % _ALIGNMENT
    return room[start : start + size]


Fetch = Callable[[Part, int, int, int], np.ndarray]
"""Given a part, its size, and two places in it: the bytes between them, aligned from its first."""


def box_of(grid: Grid, box: shardings.Index | None, itemsize: int, fetch: Fetch) -> np.ndarray:
    """Return the bytes of a box of an array, all of it where that is ``None``, in the order of C.

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
    """Return bytes in memory that programs use as it is."""
    if raw.ctypes.data % _ALIGNMENT == 0:
        return raw
    made = aligned(len(raw))
    made[:] = raw
    return made


def _within(box: shardings.Index, sizes: Sequence[int], place: Sequence[int]) -> shardings.Index:
    """Return the overlap of a box with the part at this place, counted from its beginning."""
    return tuple(
        [
            slice(max(part.start - k * n, 0), min(part.stop - k * n, n))
            for part, n, k in zip(box, sizes, place, strict=True)
        ]
    )


def _strides(shape: Sequence[int], itemsize: int) -> list[int]:
    return [math.prod(shape[axis + 1 :]) * itemsize for axis in range(len(shape))]


def _ends(shape: Sequence[int], box: shardings.Index, itemsize: int) -> tuple[int, int]:
    """Return the first byte of a box of a part, and the one after its last."""
    strides = _strides(shape, itemsize)
    begin = sum([part.start * s for part, s in zip(box, strides, strict=True)])
    last = sum([(part.stop - 1) * s for part, s in zip(box, strides, strict=True)])
    return begin, last + itemsize


def _spans(
    shape: Sequence[int], box: shardings.Index, itemsize: int, gap: int
) -> Iterator[shardings.Index]:
    """Cut a box of a part into pieces that are each read at once, without larger gaps than that."""
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


def _cut(box: shardings.Index, span: int) -> Iterator[shardings.Index]:
    """Yield a box in pieces of bounded spans, along the first axis that has any length."""
    axis = next((k for k, part in enumerate(box) if part.stop - part.start > 1), None)
    if span <= _SPAN or axis is None:
        yield box
        return
    part = box[axis]
    count = part.stop - part.start
    step = max(1, count * _SPAN // span)
    for i in range(part.start, part.stop, step):
        yield (*box[:axis], slice(i, min(i + step, part.stop)), *box[axis + 1 :])


INDEX = "stretto.parts"
"""The entry of the metadata that holds the index."""

_VERSION = 1
_FOLDER = ".parts"
_NAME = re.compile(r"([0-9a-f]{16})-\d{5,}\.safetensors")
ANNOUNCED = "next"
"""The name of the file that says which files are being written."""


class Index(NamedTuple):
    """The contents of the index."""

    files: dict[str, int]
    """The sizes of the data files in bytes, by name."""
    arrays: dict[str, tuple[str, Grid]]
    """The format's code and the parts of each array, by name."""


def folder_of(path: str) -> str:
    """Return the folder of the data files of a path, beside the file that this leads to."""
    return os.path.realpath(path) + _FOLDER


def data_name(save: str, process: int) -> str:
    """Return the name of a process's data file; ``save`` is the 16 hexadecimal digits of a save."""
    return f"{save}-{process:05}.safetensors"


def index_text(index: Index) -> str:
    """Return the index as text."""
    numbers = {name: i for i, name in enumerate(index.files)}
    arrays = {
        name: {
            "dtype": code,
            "shape": grid.shape,
            "part": grid.part_shape,
            "parts": [[numbers[p.file or ""], p.offset, p.checksums] for p in grid.parts],
        }
        for name, (code, grid) in index.arrays.items()
    }
    record = {"version": _VERSION, "block": BLOCK, "files": list(index.files.items())}
    return json.dumps({**record, "arrays": arrays}, separators=(",", ":"))


def parse_index(text: str) -> Index:
    """Return the index that a text says. Raises ``Damaged``."""
    try:
        record = json.loads(text)
        if (record["version"], record["block"]) != (_VERSION, BLOCK):
            raise Damaged(
                f"its index is of version {record['version']!r} with blocks of "
                f"{record['block']!r} bytes, and this Stretto knows {_VERSION} with {BLOCK}"
            )
        files = [(str(name), _size(size)) for name, size in record["files"]]
        for name, _ in files:
            if not _NAME.fullmatch(name):
                raise Damaged(f"its index names a file {name!r}, which is none of ours")
        arrays = {name: _array(name, said, files) for name, said in record["arrays"].items()}
    except (KeyError, TypeError, AttributeError, IndexError, RecursionError) as error:
        raise Damaged(f"its index is damaged: {error}") from None
    except Damaged:
        raise
    except ValueError as error:
        raise Damaged(f"its index is damaged: {error}") from None
    return Index(dict(files), arrays)


def _array(name: str, said: Mapping[str, Any], files: list[tuple[str, int]]) -> tuple[str, Grid]:
    shape, part = tuple(map(_size, said["shape"])), tuple(map(_size, said["part"]))
    parts = [
        Part(files[_size(number)][0], _size(offset), tuple(map(str, sums)))
        for number, offset, sums in said["parts"]
    ]
    grid = Grid(shape, part, parts)
    fits = len(shape) == len(part) and all(
        [n == p or (p > 0 and n % p == 0) for n, p in zip(shape, part, strict=True)]
    )
    if not fits:
        raise Damaged(f"its index is damaged: {name} of shape {shape} has parts of shape {part}")
    expected = math.prod(grid.counts) if math.prod(shape) else 0
    if len(parts) != expected:
        raise Damaged(
            f"its index is damaged: {name} of shape {shape} has {expected} parts of shape {part}, "
            f"and {len(parts)} are listed"
        )
    return str(said["dtype"]), grid


def _size(x: object) -> int:
    if type(x) is not int or x < 0:
        raise TypeError(f"{x!r} is not a size")
    return x


# Removing


def remove_parts(folder: str, but: str | None = None) -> None:
    """Remove the data files in a folder, but those of one save, and the folder if it is empty."""
    try:
        names = os.listdir(folder)
    except OSError:
        return  # there is none
    for name in names:
        match = _NAME.fullmatch(name)
        if name == ANNOUNCED or (match and match[1] != but):
            _unlink(os.path.join(folder, name))
    remove_abandoned(folder)
    _remove_if_empty(folder)


def discard(folder: str, name: str) -> None:
    """Remove a data file of a save that failed, and the folder if it is empty."""
    _unlink(os.path.join(folder, name))
    _unlink(os.path.join(folder, ANNOUNCED))
    _remove_if_empty(folder)


def _remove_if_empty(folder: str) -> None:
    with contextlib.suppress(OSError):  # something is left
        os.rmdir(folder)


def _unlink(path: str) -> None:
    with contextlib.suppress(OSError):  # it is gone, or the next save removes it
        os.unlink(path)


def remove(path: str) -> None:
    """Remove what ``save`` wrote, the data files last: what is left is never half a tree.

    Raises ``IsADirectoryError`` where there is a folder.
    """
    folder = folder_of(path)
    with contextlib.suppress(FileNotFoundError):
        system.remove(path)
    remove_parts(folder)
