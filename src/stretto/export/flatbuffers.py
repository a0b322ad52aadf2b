"""FlatBuffers, written and read: tables of numbered fields, in which offsets lead to further ones.

Whoever writes gives values: ``Record``, ``Number``, ``Numbers``, text, bytes, and lists of records
or texts. Whoever reads asks a ``Table`` for fields by number. Each offset, length and text is
checked against the bytes there are, and the tables read are counted, since offsets may lead to one
from many places: what is not right is a ``Damaged``.

Source: the specification of FlatBuffers' binary format, https://flatbuffers.dev/internals/.

>>> content = written(Record(Number("H", 3), "name", None, [Record(Number("b", 1))]))
>>> table = read(content)
>>> table.number(0, "H"), table.text(1), table.text(2), table.tables(3)[0].number(0, "b")
(3, 'name', '', 1)
"""

from __future__ import annotations

import struct
from typing import Any, NamedTuple, TypeAlias

from stretto.files.names import Damaged


class Number(NamedTuple):
    """A number in a table.

    Args:
        format: the letter of its kind, as in Python's module ``struct``.
        value: the number.
    """

    format: str
    value: int


class Numbers(NamedTuple):
    """A vector of numbers.

    Args:
        format: the letter of their kind, as in Python's module ``struct``.
        values: the numbers.
    """

    format: str
    values: tuple[int, ...]


class Record:
    """A table to be written.

    Args:
        *fields: its fields in order; None where one is left out.
    """

    def __init__(self, *fields: Any) -> None:
        self.fields = fields


Written: TypeAlias = "Record | Numbers | str | bytes | list[Any]"
"""What an offset leads to: a table, numbers, text, bytes, or a list of tables or texts."""


def written(root: Record) -> bytes:
    """Write a table, and all that it leads to.

    Args:
        root: the table.

    Returns:
        The bytes.
    """
    out = bytearray(4)
    _point(out, 0, _write(out, root))
    return bytes(out)


def _pad(out: bytearray, to: int, before: int = 0) -> None:
    """Append zeros until what follows, ``before`` bytes later, is at a multiple of ``to``."""
    out.extend(bytes(-(len(out) + before) % to))


def _point(out: bytearray, at: int, target: int) -> None:
    struct.pack_into("<I", out, at, target - at)


def _write(out: bytearray, value: Written) -> int:
    """Append a value that offsets lead to; return where it is."""
    if isinstance(value, Record):
        return _write_table(out, value)
    if isinstance(value, list):
        _pad(out, 4)
        start = len(out)
        out += struct.pack("<I", len(value)) + bytes(4 * len(value))
        for k, one in enumerate(value):
            _point(out, start + 4 + 4 * k, _write(out, one))
        return start
    if isinstance(value, Numbers):
        _pad(out, max(4, struct.calcsize(value.format)), 4)
        start = len(out)
        out += struct.pack(f"<I{len(value.values)}{value.format}", len(value.values), *value.values)
        return start
    content = value.encode() if isinstance(value, str) else value
    _pad(out, 16, 4)  # the runtime reads modules where they lie
    start = len(out)
    out += struct.pack("<I", len(content)) + content
    if isinstance(value, str):
        out += b"\0"
    return start


def _write_table(out: bytearray, record: Record) -> int:
    places, size = [], 4
    for field in record.fields:
        width = struct.calcsize(field.format) if isinstance(field, Number) else 4
        size += -size % width if field is not None else 0
        places.append(0 if field is None else size)
        size += 0 if field is None else width
    _pad(out, 2)
    layout = len(out)
    out += struct.pack(f"<{len(places) + 2}H", 4 + 2 * len(places), size, *places)
    _pad(out, 8)
    start = len(out)
    out += bytes(size)
    struct.pack_into("<i", out, start, start - layout)
    for place, field in zip(places, record.fields, strict=True):
        if isinstance(field, Number):
            struct.pack_into(f"<{field.format}", out, start + place, field.value)
        elif field is not None:
            _point(out, start + place, _write(out, field))
    return start


class _Buffer:
    """The bytes of a file, and how many tables may still be read of it."""

    def __init__(self, content: bytes) -> None:
        self.content = content
        self.left = len(content) // 4

    def unpack(self, format: str, at: int) -> tuple[Any, ...]:
        """Return the numbers at a place; ``Damaged`` if it is not in the file."""
        if at < 0 or at + struct.calcsize(f"<{format}") > len(self.content):
            raise Damaged(f"an offset leads to byte {at} of {len(self.content)}")
        return struct.unpack_from(f"<{format}", self.content, at)


def read(content: bytes) -> Table:
    """Read the table that a file begins with.

    Args:
        content: the file.

    Returns:
        The table.

    Raises:
        Damaged: there is none.
    """
    buffer = _Buffer(content)
    return Table(buffer, *buffer.unpack("I", 0))


class Table:
    """A table of a file that is read.

    Args:
        buffer: the file.
        start: where the table begins.

    Raises:
        Damaged: there is no table.
    """

    def __init__(self, buffer: _Buffer, start: int) -> None:
        self._buffer, self._start = buffer, start
        if buffer.left <= 0:
            raise Damaged("tables are led to more often than there is room for")
        buffer.left -= 1
        layout = start - buffer.unpack("i", start)[0]
        size, self._size = buffer.unpack("HH", layout)
        if size < 4 or size % 2:
            raise Damaged(f"the layout of a table has {size} bytes")
        self._places = buffer.unpack(f"{size // 2 - 2}H", layout + 4)

    def number(self, field: int, format: str, default: int = 0) -> int:
        """Read a number.

        Args:
            field: the number of the field.
            format: the letter of its kind, as in Python's module ``struct``.
            default: what it is where it is left out.

        Returns:
            The number.
        """
        place = self._place(field, struct.calcsize(format))
        return self._buffer.unpack(format, place)[0] if place is not None else default

    def text(self, field: int) -> str:
        """Read a text.

        Args:
            field: the number of the field.

        Returns:
            The text; empty where it is left out.
        """
        return _decoded(self.bytes(field))

    def bytes(self, field: int) -> bytes:
        """Read bytes.

        Args:
            field: the number of the field.

        Returns:
            The bytes; none where they are left out.
        """
        at, length = self._vector(field, 1)
        return self._buffer.content[at : at + length]

    def numbers(self, field: int, format: str) -> tuple[int, ...]:
        """Read a vector of numbers.

        Args:
            field: the number of the field.
            format: the letter of their kind, as in Python's module ``struct``.

        Returns:
            The numbers; none where they are left out.
        """
        at, length = self._vector(field, struct.calcsize(format))
        return self._buffer.unpack(f"{length}{format}", at) if length else ()

    def table(self, field: int) -> Table | None:
        """Read a table.

        Args:
            field: the number of the field.

        Returns:
            The table; None where it is left out.
        """
        place = self._place(field, 4)
        return None if place is None else Table(self._buffer, self._target(place))

    def tables(self, field: int) -> list[Table]:
        """Read a vector of tables.

        Args:
            field: the number of the field.

        Returns:
            The tables; none where they are left out.
        """
        at, length = self._vector(field, 4)
        return [Table(self._buffer, self._target(at + 4 * k)) for k in range(length)]

    def texts(self, field: int) -> tuple[str, ...]:
        """Read a vector of texts.

        Args:
            field: the number of the field.

        Returns:
            The texts; none where they are left out.
        """
        at, length = self._vector(field, 4)
        found = []
        for k in range(length):
            start, size = self._counted(self._target(at + 4 * k), 1)
            self._buffer.left -= 1
            if self._buffer.left < 0:
                raise Damaged("texts are led to more often than there is room for")
            found.append(_decoded(self._buffer.content[start : start + size]))
        return tuple(found)

    def _place(self, field: int, width: int) -> int | None:
        place = self._places[field] if field < len(self._places) else 0
        if not place:
            return None
        if not 4 <= place <= self._size - width:
            raise Damaged(f"field {field} of a table lies outside of it")
        return self._start + place

    def _target(self, at: int) -> int:
        return at + self._buffer.unpack("I", at)[0]

    def _counted(self, at: int, width: int) -> tuple[int, int]:
        """Return where the elements of a vector begin, and how many there are."""
        (length,) = self._buffer.unpack("I", at)
        if at + 4 + length * width > len(self._buffer.content):
            raise Damaged(f"a vector of {length} elements is longer than the file")
        return at + 4, length

    def _vector(self, field: int, width: int) -> tuple[int, int]:
        place = self._place(field, 4)
        return (0, 0) if place is None else self._counted(self._target(place), width)


def _decoded(content: bytes) -> str:
    try:
        return content.decode()
    except UnicodeDecodeError:
        raise Damaged("a text is not in UTF-8") from None
