"""XLA's optimized program, read: its instructions, with the user's lines and what comes of them.

That is what they send between devices, what has memory at the peak, and their names in profiles.
XLA gives the program as serialized protocol buffers, of which a handful of fields is read by
number, so no library for the format is needed; what a version of XLA leaves out is not reported.
Sources: XLA's ``hlo.proto`` and ``xla_data.proto``, and the encoding of protocol buffers.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator
from typing import Any, NamedTuple

from stretto._engine.xla import pjrt
from stretto._engine.xla.pjrt import Executable

_SMALL_CALL = b"xla_cpu_small_call"


class Instruction(NamedTuple):
    """An instruction of XLA's optimized module."""

    number: int
    name: str
    opcode: str
    shape: Any
    """A message."""
    operands: tuple[int, ...]
    """The numbers of the instructions that give them."""
    parameter: int
    """The number of the function's input that it is, if it is a parameter."""
    is_main: bool
    """Says whether it is in the function that is called, and not in a loop or the like."""
    file: str
    """The user's source file; empty if it is not known."""
    line: int
    is_loop: bool
    """Says whether it is a call of a loop that is one kernel."""
    operation: str
    """The names of the user's scopes and of the operation that it comes of; empty if unknown."""


def instructions_of(executable: Executable) -> Iterator[Instruction]:
    """Yield the instructions of all functions of a compiled program."""
    for module in executable.loaded.hlo_modules():
        yield from instructions_in(module)


def instructions_in(module: Any) -> Iterator[Instruction]:
    """Yield the instructions of all functions of one of XLA's modules."""
    # HloModuleProto: 3 computations, 6 entry_computation_id, 17 stack_frame_index
    content = list(fields(module.as_serialized_hlo_module_proto()))
    single = dict(content)
    frames = _frames(single.get(17, b""))
    for number, computation in content:
        if number == 3:  # HloComputationProto: 2 instructions, 5 id
            parts = list(fields(computation))
            is_main = dict(parts).get(5, 0) == single.get(6, 0)
            for part, value in parts:
                if part == 2:
                    yield _instruction(value, is_main, frames)


def _instruction(value: Any, is_main: bool, frames: list[tuple[str, int]]) -> Instruction:
    # HloInstructionProto: 1 name, 2 opcode, 3 shape, 7 metadata, 9 parameter_number, 35 id,
    # 36 operands, 68 frontend_attributes
    operands: list[int] = []
    single: dict[int, Any] = {}
    for number, part in fields(value):
        if number == 36:
            operands += numbers(part)
        else:
            single[number] = part
    metadata = dict(fields(single.get(7, b"")))
    # OpMetadata: 2 op_name, 3 source_file, 4 source_line, 15 stack_frame_id
    file, line = _text(metadata.get(3, b"")), metadata.get(4, 0)
    frame = metadata.get(15, 0)
    if not file and 0 < frame <= len(frames):
        file, line = frames[frame - 1]
    if file == "-":  # the text itself
        file, line = "", 0
    return Instruction(
        single.get(35, 0),
        _text(single.get(1, b"")),
        _text(single.get(2, b"")),
        single.get(3, b""),
        tuple(operands),
        single.get(9, 0),
        is_main,
        file,
        line,
        _SMALL_CALL in bytes(single.get(68, b"")),
        _text(metadata.get(2, b"")),
    )


def _frames(index: Any) -> list[tuple[str, int]]:
    """Return the file and line of each stack frame, which are counted from 1."""
    # StackFrameIndexProto: 1 file_names, 3 file_locations {1 file, 3 line}, 4 frames {1 location}
    files: list[str] = []
    locations: list[tuple[int, int]] = []
    frames: list[int] = []
    for number, value in fields(index):
        if number == 1:
            files.append(_text(value))
        elif number == 3:
            location = dict(fields(value))
            locations.append((location.get(1, 0), location.get(3, 0)))
        elif number == 4:
            frames.append(dict(fields(value)).get(1, 0))
    found = []
    for location in frames:
        file, line = locations[location - 1] if 0 < location <= len(locations) else (0, 0)
        found.append((files[file - 1] if 0 < file <= len(files) else "", line))
    return found


def _text(value: Any) -> str:
    return bytes(value).decode(errors="replace")


# Transfers


_KINDS = (
    "all-gather",
    "all-reduce",
    "all-to-all",
    "collective-broadcast",
    "collective-permute",
    "reduce-scatter",
)
_MOVED = ("bitcast", "convert", "copy", "reshape", "transpose")
"""Operations whose result is the operand, all of it."""

# By XLA's number of a type: the bytes of an element. Types of other numbers take one, or less.
_BYTES = {3: 2, 4: 4, 5: 8, 7: 2, 8: 4, 9: 8, 10: 2, 11: 4, 12: 8, 15: 8, 16: 2, 18: 16}


class Transfer(NamedTuple):
    """A collective of a compiled program."""

    kind: str
    """XLA's name for it, such as ``all-reduce``."""
    bytes: int
    """The size of its result on each device."""
    file: str
    """The user's source file; empty if it is not known."""
    line: int
    argument: int | None
    """The number of the program's input whose parts it puts together, if it is of one alone."""


def has_collectives(executable: Executable) -> bool:
    """Say whether a program sends anything between devices."""
    return any(map(_is_collective, _opcodes(executable)))


def _opcodes(executable: Executable) -> Iterator[str]:
    """Yield the operation of each instruction, which is read of it alone.

    To read 3,000 instructions takes 0.2 s, and their operations a third of that.
    """
    for module in executable.loaded.hlo_modules():
        for number, computation in fields(module.as_serialized_hlo_module_proto()):
            if number == 3:  # the numbers are those of ``instructions_in``
                for part, instruction in fields(computation):
                    if part == 2:
                        yield _text(next((v for n, v in fields(instruction) if n == 2), b""))


def _is_collective(opcode: str) -> bool:
    return opcode.removesuffix("-start") in _KINDS


def transfers_of(executable: Executable) -> list[Transfer]:
    """Return the collectives of a program, in the order of its text; each once, also in a loop."""
    by_number = {i.number: i for i in instructions_of(executable)}
    readers: dict[int, list[Instruction]] = {}
    for instruction in by_number.values():
        for operand in instruction.operands:
            readers.setdefault(operand, []).append(instruction)
    found = []
    for instruction in by_number.values():
        if _is_collective(instruction.opcode):
            kind = instruction.opcode.removesuffix("-start")
            size = size_of(instruction.shape, last=instruction.opcode != kind)
            argument = _argument(instruction, by_number) if instruction.is_main else None
            reader = _with_line(instruction, readers)
            found.append(Transfer(kind, size, reader.file, reader.line, argument))
    return found


def _with_line(instruction: Instruction, readers: dict[int, list[Instruction]]) -> Instruction:
    """Return the instruction itself, or the first that reads its result and has a line.

    From jaxlib 0.12 on, what the partitioner puts in has the name of what it moves, and no line.
    """
    waiting, seen = [instruction], {instruction.number}
    for one in waiting:
        if one.file:
            return one
        for reader in readers.get(one.number, ()):
            if reader.number not in seen:
                seen.add(reader.number)
                waiting.append(reader)
    return instruction


def _argument(instruction: Instruction, by_number: dict[int, Instruction]) -> int | None:
    """Return the input that the operand is, if it is one."""
    while len(instruction.operands) == 1:
        before = by_number.get(instruction.operands[0])
        if before is None:
            return None
        if before.opcode == "parameter":
            return before.parameter
        if before.opcode not in _MOVED:
            return None
        instruction = before
    return None


def size_of(shape: Any, last: bool = False) -> int:
    """Return the bytes of an array; of a tuple of arrays, or of the last of one."""
    kind, dimensions, parts = 0, [], []
    for number, value in fields(shape):  # ShapeProto: 2 element_type, 3 dimensions, 4 tuple_shapes
        if number == 2:
            kind = value
        elif number == 3:
            dimensions += numbers(value)
        elif number == 4:
            parts.append(value)
    if parts:
        sizes = [size_of(part, last) for part in parts]
        return sizes[-1] if last else sum(sizes)
    return _BYTES.get(kind, 1) * math.prod(dimensions)


# Memory at the peak


class Temporary(NamedTuple):
    """An intermediate result that has memory when the program has most in use."""

    bytes: int
    file: str
    """The user's source file; empty if it is not known."""
    line: int


def temporaries_at_peak(executable: Executable) -> list[Temporary]:
    """Return the intermediate results that are alive at the peak, largest first.

    It is empty if not known.
    """
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
    lines = {i.number: (i.file, i.line) for i in instructions_of(executable)}
    found = []
    for index in temporary:
        for buffer in at_peak.get(index, ()):
            size, instruction = defined.get(buffer, (0, -1))
            found.append(Temporary(size, *lines.get(instruction, ("", 0))))
    return sorted(found, key=lambda t: -t.bytes)


# Names in profiles


def op_names(modules: Collection[str]) -> dict[tuple[str, str], str]:
    """Return the ``op_name`` of each instruction of compiled programs, by module and instruction.

    Instructions on which programs of the same name disagree are left out.
    """
    names: dict[tuple[str, str], str] = {}
    ambiguous = set()
    for loaded in pjrt.live_executables():
        for module in loaded.hlo_modules():
            if module.name in modules:
                for instruction in instructions_in(module):
                    key, name = (module.name, instruction.name), instruction.operation
                    if name and names.setdefault(key, name) != name:
                        ambiguous.add(key)
    return {key: name for key, name in names.items() if key not in ambiguous}


# Protocol buffers


def fields(message: Any) -> Iterator[tuple[int, Any]]:
    """Yield the fields of a message as (number, value): integers, or bytes."""
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
    """Yield integers packed one after another; a single one comes as itself."""
    if isinstance(packed, int):
        yield packed
        return
    at = 0
    while at < len(packed):
        value, at = _number(packed, at)
        yield value


def _number(message: Any, at: int) -> tuple[int, int]:
    """Return the integer of variable length that begins here, and where the next thing begins."""
    value = shift = 0
    while True:
        byte = message[at]
        at += 1
        value |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return value, at
