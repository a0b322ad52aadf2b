"""How a file in the safetensors format begins: names, types and places of its arrays, as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stretto._engine.core.lazy import LazyModule
from stretto.files.elements import code_of
from stretto.files.slabs import Elements

json = LazyModule("json")

__all__ = ["header", "in_order"]

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
        entries[name] = {
            "dtype": code_of(x.dtype),
            "shape": x.shape,
            "data_offsets": (begin, end),
        }
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
