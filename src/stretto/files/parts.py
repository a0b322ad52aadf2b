"""The index of a tree that several processes wrote: which part of which array is in which file.

The file at the path itself holds no array then, and says, as JSON among its metadata, what is in
the data files, which are in a folder beside it (docs/decisions/0046-files-of-several-processes.md).
"""

from __future__ import annotations

import contextlib
import math
import os
import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from stretto._engine.core.files import remove_abandoned
from stretto._engine.core.lazy import LazyModule
from stretto.files.grids import BLOCK, Grid, Part
from stretto.files.names import Damaged

json = LazyModule("json")

__all__ = [
    "ANNOUNCED",
    "INDEX",
    "Index",
    "data_name",
    "discard",
    "folder_of",
    "index_text",
    "parse_index",
    "remove",
    "remove_parts",
]

INDEX = "stretto.parts"
"""The entry of the metadata that holds the index."""

_VERSION = 1
_FOLDER = ".parts"
_NAME = re.compile(r"([0-9a-f]{16})-\d{5,}\.safetensors")
ANNOUNCED = "next"
"""The name of the file that says which files are being written."""


class Index(NamedTuple):
    """What the index says."""

    files: dict[str, int]
    """The sizes of the data files in bytes, by name."""
    arrays: dict[str, tuple[str, Grid]]
    """The format's code and the parts of each array, by name."""


def folder_of(path: str) -> str:
    """The folder of the data files of a path, beside the file that this leads to."""
    return os.path.realpath(path) + _FOLDER


def data_name(save: str, process: int) -> str:
    """The name of the data file of a process; ``save`` is the 16 hexadecimal digits of a save."""
    return f"{save}-{process:05}.safetensors"


def index_text(index: Index) -> str:
    """The index as text."""
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
    """The index that a text says. Raises ``Damaged``."""
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
        os.unlink(path)
    remove_parts(folder)
