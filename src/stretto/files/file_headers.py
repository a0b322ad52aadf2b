"""Headers of files in the safetensors format, and checksums of what the files hold.

How a file in the safetensors format begins: names, types and places of its arrays, as JSON.

Checksums: of all that a file holds, kept in the file itself, and of blocks of a part.

The first is of names, types, metadata and elements, and not of how the header is written.
Checkpoints have one; files that others may edit have none. Arrays in several files have one for
each block, so that what is read can be checked, and nothing else is read for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

from stretto._engine.core.lazy import LazyModule
from stretto.files.file_elements import code_of
from stretto.files.file_parts import BLOCK
from stretto.files.slabs import Elements

hashlib = LazyModule("hashlib")
json = LazyModule("json")


Bytes: TypeAlias = bytes | memoryview

CHECKSUM = "stretto.checksum"
"""The entry of the metadata that holds it."""


def checksum(
    types: Mapping[str, tuple[str, tuple[int, ...]]],
    words: Mapping[str, str],
    pieces_of: Callable[[str], Iterable[Bytes]],
) -> str:
    """The SHA-256 of arrays, by name of these codes and shapes, and of the metadata.

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
    """The checksum of each block of bytes.

    >>> block_checksums(b"")
    []
    """
    whole = memoryview(data)
    return [_of_block(whole[i : i + BLOCK]) for i in range(0, len(whole), BLOCK)]


def _of_block(data: Bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:16]


_ALIGNMENT = 8
_LONGEST = 100_000_000  # bytes of a header, which no reader of the format goes beyond


def in_order(arrays: Mapping[str, Elements]) -> dict[str, Elements]:
    """The arrays in the format's order, the widest types first, so that all are aligned."""
    names = sorted(arrays, key=lambda name: (-arrays[name].itemsize, name))
    return {name: arrays[name] for name in names}


def header(arrays: Mapping[str, Elements], words: Mapping[str, str]) -> bytes:
    """The file up to its first element: the length of what follows, and that, as JSON."""
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
    text += b" " * (-len(text) % _ALIGNMENT)
    if len(text) > _LONGEST:
        raise ValueError(
            f"save: the names, shapes and metadata take {len(text)} bytes, and the format has room "
            f"for {_LONGEST}; keep large data in arrays"
        )
    return len(text).to_bytes(8, "little") + text
