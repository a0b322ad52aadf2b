"""Compiled programs, kept in memory: of a program by itself, of one operation by its types.

Layer 6 (runtime).
"""

from __future__ import annotations

import functools
import threading
from collections.abc import Sequence
from typing import Any

from stretto.core.program import Equation, Program, Var
from stretto.core.types import ArrayType
from stretto.lower.stablehlo import lower
from stretto.runtime.array import Array
from stretto.runtime.pjrt import Executable, compile_text

__all__ = ["clear", "executable", "run_primitive", "run_program"]

_lock = threading.RLock()


def executable(program: Program) -> Executable:
    """The compiled form of a program, made once."""
    found = program.cache.get("executable")
    if found is None:
        with _lock:
            found = program.cache.get("executable")
            if found is None:
                found = compile_text(lower(program), program.out_types)
                program.cache["executable"] = found
    return found


def run_program(program: Program, args: Sequence[Array]) -> list[Array]:
    """Run a program, compiled, on arrays."""
    buffers = executable(program)([a.to_device() for a in args])
    return [Array(None, v.type, b) for v, b in zip(program.outputs, buffers, strict=True)]


@functools.lru_cache(4096)
def _one_operation(
    primitive: Any, types: tuple[ArrayType, ...], out_types: tuple[ArrayType, ...]
) -> Program:
    inputs = [Var(t) for t in types]
    outputs = [Var(t) for t in out_types]
    return Program(inputs, [Equation(primitive, inputs, outputs)], outputs, primitive.name)


def run_primitive(
    primitive: Any,
    types: tuple[ArrayType, ...],
    out_types: tuple[ArrayType, ...],
    args: Sequence[Array],
) -> list[Array]:
    """Run the program of one operation."""
    return run_program(_one_operation(primitive, types, out_types), args)


def clear() -> None:
    """Forget the compiled programs of single operations."""
    _one_operation.cache_clear()
