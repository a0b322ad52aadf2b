"""What a loop's body computes from constants alone, taken in front of the loop.

Layer 4 (control). Next, read ``scan``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from stretto._engine.core.effects import observable
from stretto._engine.core.program import Equation, Literal, Program, Var

__all__ = ["hoisted", "no_larger"]


def no_larger(equation: Equation) -> bool:
    """Whether the outputs take no more memory than the inputs, so that keeping them costs none."""
    before = sum(a.type.size for a in equation.inputs if type(a) is Var)
    return sum(v.type.size for v in equation.outputs) <= before


def hoisted(
    body: Program, consts: int, wanted: Callable[[Equation], bool]
) -> tuple[Program, Program]:
    """The body in two: a program of its first ``consts`` inputs, and the rest of it.

    The rest takes the outputs of the first as its constants: those that it still reads, and what is
    hoisted, which depends on constants alone, cannot be seen from outside, and is ``wanted``.
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
