"""A checksum of all that a file holds, kept in the file itself.

It is of names, types, metadata and elements, and not of how the header is written. Checkpoints have
one; files that others may edit have none. Read ``writing`` and ``reading`` before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from stretto._engine.core.lazy import LazyModule

if TYPE_CHECKING:  # loaded with the first checkpoint
    import hashlib
    import json
else:
    hashlib, json = LazyModule("hashlib"), LazyModule("json")

__all__ = ["CHECKSUM", "checksum"]

CHECKSUM = "stretto.checksum"
"""The entry of the metadata that holds it."""


def checksum(
    types: Mapping[str, tuple[str, tuple[int, ...]]],
    words: Mapping[str, str],
    bytes_of: Callable[[str], Any],
) -> str:
    """The SHA-256 of arrays, by name of these codes and shapes, and of the metadata.

    >>> checksum({"w": ("U8", (2,))}, {"epoch": "7"}, lambda name: b"ab")[:8]
    '...'
    """
    described = [
        sorted((name, word) for name, word in words.items() if name != CHECKSUM),
        sorted((name, code, list(shape)) for name, (code, shape) in types.items()),
    ]
    digest = hashlib.sha256(json.dumps(described).encode())
    for name in sorted(types):
        digest.update(bytes_of(name))
    return digest.hexdigest()
