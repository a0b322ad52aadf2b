"""What a compiled program sends between devices: its collectives, with bytes and the user's line.

They are read from XLA's optimized module, in which also those are that the partitioner put in.
Source: XLA's ``hlo.proto`` and ``xla_data.proto``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

from stretto._engine.xla.instructions import Instruction, instructions_of
from stretto._engine.xla.messages import fields, numbers
from stretto._engine.xla.pjrt import Executable

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
    """As XLA names it, such as ``all-reduce``."""
    bytes: int
    """The size of its result on each device."""
    file: str
    """The user's source file; empty if it is not known."""
    line: int
    argument: int | None
    """The number of the program's input whose parts it puts together, if it is of one alone."""


def has_collectives(executable: Executable) -> bool:
    """Say whether a program sends anything between devices."""
    return any([_kind(i) in _KINDS for i in instructions_of(executable)])


def _kind(instruction: Instruction) -> str:
    return instruction.opcode.removesuffix("-start")


def transfers_of(executable: Executable) -> list[Transfer]:
    """The collectives of a program, in the order of its text; each once, also in a loop."""
    by_number = {i.number: i for i in instructions_of(executable)}
    readers: dict[int, list[Instruction]] = {}
    for instruction in by_number.values():
        for operand in instruction.operands:
            readers.setdefault(operand, []).append(instruction)
    found = []
    for instruction in by_number.values():
        kind = _kind(instruction)
        if kind in _KINDS:
            size = size_of(instruction.shape, last=instruction.opcode != kind)
            argument = _argument(instruction, by_number) if instruction.is_main else None
            place = _place(instruction, readers)
            found.append(Transfer(kind, size, place.file, place.line, argument))
    return found


def _place(instruction: Instruction, readers: dict[int, list[Instruction]]) -> Instruction:
    """The instruction itself, or the first that reads its result and has a line.

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
    """The input that the operand is, if it is one."""
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
    """The bytes of an array; of a tuple of arrays, or of the last of one."""
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
