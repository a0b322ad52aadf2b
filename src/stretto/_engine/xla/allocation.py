"""What a compiled program holds in memory at its peak, by the user's line.

XLA's assignment of buffers and its compiled module come as serialized protocol buffers, read by
``messages``; what a version of XLA leaves out is not reported. Source: XLA's ``hlo.proto`` and
``xla_data.proto``.
"""

from __future__ import annotations

from typing import NamedTuple

from stretto._engine.xla.instructions import instructions_of
from stretto._engine.xla.messages import fields, numbers
from stretto._engine.xla.pjrt import Executable


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
    for number, value in fields(assignment):
        if number == 1:  # LogicalBufferProto: id, size, defined_at {instruction_id}
            buffer = dict(fields(value))
            at = dict(fields(buffer.get(3, b""))).get(4, 0)
            defined[buffer.get(1, 0)] = buffer.get(2, 0), at  # zeros are left out
        elif number == 3:  # BufferAllocationProto; 5, 7, 12: argument, result, constant
            allocation = dict(fields(value))
            if not any([allocation.get(flag) for flag in (5, 7, 12)]):
                temporary.add(allocation.get(1, 0))
        elif number == 5:  # the buffers alive at an allocation's peak: index, packed ids
            peak = dict(fields(value))
            at_peak[peak.get(1, 0)] = [*numbers(peak.get(2, b""))]
    places = {i.number: (i.file, i.line) for i in instructions_of(executable)}
    found = []
    for index in temporary:
        for buffer in at_peak.get(index, ()):
            size, instruction = defined.get(buffer, (0, -1))
            found.append(Temporary(size, *places.get(instruction, ("", 0))))
    return sorted(found, key=lambda t: -t.bytes)
