"""Checksums: of all that a file holds, kept in the file itself, and of blocks of a part.

The first is of names, types, metadata and elements, and not of how the header is written.
Checkpoints have one; files that others may edit have none. Arrays in several files have one for
each block, so that what is read can be checked, and nothing else is read for it. Read ``writing``
and ``reading`` before.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from stretto._engine.core.lazy import LazyModule
from stretto.files.grids import BLOCK

hashlib = LazyModule("hashlib")
json = LazyModule("json")

__all__ = ["CHECKSUM", "block_checksums", "checksum"]

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
