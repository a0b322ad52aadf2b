"""Run a program on values, operation by operation, under the current interpreter.

Layer 3 (transforms). The plainest thing to do with a program: whatever interpreter is current
decides what each operation means.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto.core.interpreter import constant
from stretto.core.program import Literal, Program, Var

__all__ = ["evaluate"]


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """The program's outputs for these arguments."""
    known: dict[Var, Any] = dict(zip(program.inputs, args, strict=True))

    def read(atom: Any) -> Any:
        if type(atom) is Literal:
            return constant(atom.array(), atom.type.weak_type)
        return known[atom]

    for equation in program.equations:
        result = equation.primitive(*[read(a) for a in equation.inputs])
        if equation.primitive.multiple:
            known.update(zip(equation.outputs, result, strict=True))
        else:
            known[equation.outputs[0]] = result
    return [read(a) for a in program.outputs]
