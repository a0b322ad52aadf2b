"""The instructions of a compiled program, each with the user's line that it comes of.

Source: XLA's ``hlo.proto`` and ``xla_data.proto``.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

from stretto._engine.xla.messages import fields, numbers
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
    """Of a parameter, which of the function's inputs it is."""
    is_main: bool
    """Whether it is in the function that is called, and not in a loop or the like."""
    file: str
    """The user's source file; empty if it is not known."""
    line: int
    is_loop: bool
    """Whether it is a call of a loop that is one kernel."""
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
    """The file and line of each stack frame, which are counted from 1."""
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
