"""Serialized protocol buffers, read and written field by field.

Of what XLA says about a compiled program a handful of fields is read, by number, and of its options
one is written, so no library for the format is needed. Source: the encoding of protocol buffers.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any


def fields(message: Any) -> Iterator[tuple[int, Any]]:
    """The fields of a message as (number, value): integers, or bytes."""
    message, at = memoryview(message), 0
    while at < len(message):
        key, at = _number(message, at)
        number, kind = key >> 3, key & 7
        if kind == 0:
            value, at = _number(message, at)
        else:
            size, at = _number(message, at) if kind == 2 else ({1: 8, 5: 4}[kind], at)
            value, at = message[at : at + size], at + size
        yield number, value


def numbers(packed: Any) -> Iterator[int]:
    """Integers packed one after another; a single one comes as itself."""
    if isinstance(packed, int):
        yield packed
        return
    at = 0
    while at < len(packed):
        value, at = _number(packed, at)
        yield value


def field(number: int, content: bytes) -> bytes:
    """A field of bytes, as it is written."""
    return _written(number << 3 | 2) + _written(len(content)) + content


def _written(value: int) -> bytes:
    """An integer of variable length: seven bits a byte, the lowest first."""
    result = bytearray()
    while value > 127:
        result.append(value & 127 | 128)
        value >>= 7
    return bytes([*result, value])


def _number(message: Any, at: int) -> tuple[int, int]:
    """The integer of variable length that begins here, and where the next thing begins."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
