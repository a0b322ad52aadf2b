"""What a compiled program holds in memory at its peak, by the user's line.

Layer 6 (runtime). XLA's assignment of buffers and its compiled module come as serialized protocol
buffers. Only a handful of fields is read, by number, so no library for the format is needed; what a
version of XLA leaves out is not reported. Source: XLA's ``hlo.proto`` and ``xla_data.proto``. Next,
read ``pjrt``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from stretto._engine.runtime.pjrt import Executable

__all__ = ["Temporary", "temporaries_at_peak"]


class Temporary(NamedTuple):
    """An intermediate result that has memory when the program has most in use."""

    bytes: int
    file: str
    """The user's source file; empty if it is not known."""
    line: int


def temporaries_at_peak(executable: Executable) -> list[Temporary]:
    """The intermediate results that are alive at the peak, largest first; empty if not known."""
    stats = executable.memory_analysis()
    assignment = getattr(stats, "serialized_buffer_assignment_proto", b"")
    defined: dict[int, tuple[int, int]] = {}  # logical buffer: size, instruction
    temporary: set[int] = set()
    at_peak: dict[int, list[int]] = {}
    for number, value in _fields(assignment):
        if number == 1:  # LogicalBufferProto: id, size, defined_at {instruction_id}
            buffer = dict(_fields(value))
            at = dict(_fields(buffer.get(3, b""))).get(4, 0)
            defined[buffer.get(1, 0)] = buffer.get(2, 0), at  # zeros are left out
        elif number == 3:  # BufferAllocationProto; 5, 7, 12: argument, result, constant
            allocation = dict(_fields(value))
            if not any([allocation.get(flag) for flag in (5, 7, 12)]):
                temporary.add(allocation.get(1, 0))
        elif number == 5:  # the buffers alive at an allocation's peak: index, packed ids
            peak = dict(_fields(value))
            at_peak[peak.get(1, 0)] = [*_numbers(peak.get(2, b""))]
    places = _places(executable)
    found = []
    for index in temporary:
        for buffer in at_peak.get(index, ()):
            size, instruction = defined.get(buffer, (0, -1))
            found.append(Temporary(size, *places.get(instruction, ("", 0))))
    return sorted(found, key=lambda t: -t.bytes)


def _places(executable: Executable) -> dict[int, tuple[str, int]]:
    """The source file and line of each instruction that has them."""
    places = {}
    for module in executable.loaded.hlo_modules():
        for number, computation in _fields(module.as_serialized_hlo_module_proto()):
            if number != 3:
                continue
            for part, value in _fields(computation):
                if part == 2:  # HloInstructionProto: 7 metadata {3 file, 4 line}, 35 id
                    instruction = dict(_fields(value))
                    metadata = dict(_fields(instruction.get(7, b"")))
                    file = bytes(metadata.get(3, b"")).decode(errors="replace")
                    if file not in ("", "-"):  # "-" is the text itself
                        places[instruction.get(35, 0)] = file, metadata.get(4, 0)
    return places


def _fields(message: Any) -> Iterator[tuple[int, Any]]:
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


def _numbers(packed: Any) -> Iterator[int]:
    """Integers packed one after another; a single one comes as itself."""
    if isinstance(packed, int):
        yield packed
        return
    at = 0
    while at < len(packed):
        value, at = _number(packed, at)
        yield value


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
