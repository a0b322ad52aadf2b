"""Compiled programs, kept in memory: a program's by itself and its text, an operation's by types.

Layer 6 (runtime). A function traced anew, as the body of an eager loop is at each call, gives the
same text, and is not compiled again.
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

_CAPACITY = 1024
_lock = threading.Lock()
_by_text: dict[str, Any] = {}
"""Executables, least lately used first; a lock where one is being compiled."""


def executable(program: Program) -> Executable:
    """The compiled form of a program, made once, whichever thread comes first."""
    found = program.cache.get("executable")
    if found is None:
        found = program.cache["executable"] = _compiled(lower(program), program)
    return found


def _compiled(text: str, program: Program) -> Executable:
    """The compiled form of this text. Threads wait for each other over the same text only."""
    with _lock:
        found = _by_text.pop(text, None) or threading.Lock()
        _by_text[text] = found
        while len(_by_text) > _CAPACITY:
            del _by_text[next(iter(_by_text))]
    if isinstance(found, Executable):
        return found
    with found:
        known = _by_text.get(text)
        if not isinstance(known, Executable):
            known = _by_text[text] = compile_text(text, program.out_types)
        return known


def run_program(program: Program, args: Sequence[Array]) -> list[Array]:
    """Run a program, compiled, on arrays."""
    buffers = executable(program)([a.to_device() for a in args])
    return [Array(None, v.type, b) for v, b in zip(program.outputs, buffers, strict=True)]


def _one_operation(
    primitive: Any, types: tuple[ArrayType, ...], out_types: tuple[ArrayType, ...]
) -> Program:
    inputs = [Var(t) for t in types]
    outputs = [Var(t) for t in out_types]
    return Program(inputs, [Equation(primitive, inputs, outputs)], outputs, primitive.name)


_kept_operation = functools.lru_cache(4096)(_one_operation)


def run_primitive(
    primitive: Any,
    types: tuple[ArrayType, ...],
    out_types: tuple[ArrayType, ...],
    args: Sequence[Array],
) -> list[Array]:
    """Run the program of one operation."""
    if not primitive.holds_programs:
        return run_program(_kept_operation(primitive, types, out_types), args)
    kept = vars(primitive).setdefault("_alone", {})  # let go with the programs that it holds
    if types not in kept:
        kept[types] = _one_operation(primitive, types, out_types)
    return run_program(kept[types], args)


def clear() -> None:
    """Forget what was compiled."""
    _kept_operation.cache_clear()
    _by_text.clear()
