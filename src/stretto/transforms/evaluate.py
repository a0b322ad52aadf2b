"""Run a program on values, operation by operation, under the current interpreter.

Layer 3 (transforms). The plainest thing to do with a program: whatever interpreter is current
decides what each operation means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.core.interpreter import constant
from stretto.core.program import Atom, Literal, Program

__all__ = ["evaluate"]


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """The program's outputs for these arguments."""
    known: dict[Atom, Any] = dict(_literals(program))
    known.update(zip(program.inputs, args, strict=True))
    for equation in program.equations:
        result = equation.primitive(*[known[a] for a in equation.inputs])
        if equation.primitive.multiple:
            known.update(zip(equation.outputs, result, strict=True))
        else:
            known[equation.outputs[0]] = result
    return [known[a] for a in program.outputs]


def _literals(program: Program) -> Any:
    """The value of each literal in the program; made once, for loops that run it many times."""
    found = program.cache.get("literals")
    if found is None:
        atoms = [a for e in program.equations for a in e.inputs]
        found = {
            a: constant(a.array(), a.type.weak_type)
            for a in (*atoms, *program.outputs)
            if type(a) is Literal
        }
        program.cache["literals"] = found
    return found
