"""Hoisting: what a loop's body computes from constants alone is moved in front of the loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto._engine.core.effects import observable
from stretto._engine.core.program import Equation, Literal, Program, Var


def no_larger(equation: Equation) -> bool:
    """Whether the outputs have no more elements than the inputs, so that keeping them is free."""
    before = sum(a.type.size for a in equation.inputs if type(a) is Var)
    return sum(v.type.size for v in equation.outputs) <= before


def hoisted(
    body: Program, consts: int, wanted: Callable[[Equation], bool]
) -> tuple[Program, Program]:
    """Split the body into a program of its first ``consts`` inputs, the constants, and the rest.

    An equation is hoisted into the first if it depends on constants alone, has no observable effect
    and is ``wanted``. The outputs of the first are the constants of the second: those of the body
    that it still reads, and the hoisted results.
    """
    fixed: set[Any] = set(body.inputs[:consts])
    before, after = [], []
    for equation in body.equations:
        still = all([a in fixed or type(a) is Literal for a in equation.inputs])
        if still and wanted(equation) and not observable(equation.primitive.effects):
            before.append(equation)
            fixed.update(equation.outputs)
        else:
            after.append(equation)
    read = {a for e in after for a in e.inputs if type(a) is Var}
    read.update([a for a in body.outputs if type(a) is Var])
    computed = [v for e in before for v in e.outputs]
    handed_on = [v for v in (*body.inputs[:consts], *computed) if v in read]
    first = Program(body.inputs[:consts], before, handed_on, f"constants_of_{body.name}")
    inputs = [*handed_on, *body.inputs[consts:]]
    return first, Program(inputs, after, body.outputs, body.name)
