"""Programs whose loops do not start where a flag is false.

Where examples go different ways, and all are computed for all of them, a loop may meet arguments
that it was not meant for, and never end: one branch multiplies until the number is small, and the
others' numbers do not get smaller. So a program that is run for an example that does not want its
result is told so.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import record
from stretto._engine.core.types import array_type
from stretto._engine.higher_order.call import Call
from stretto._engine.higher_order.family import ControlFlow, has_open_loop
from stretto._engine.ops.bitwise import And

_BOOL = array_type((), np.dtype(bool))


def only_where(program: Program, keep_rules: bool = False) -> Program:
    """Give the program with one more input in front, a boolean: where it is false, no loop starts.

    Then the outputs are anything, and they are there soon. Only loops of which data decide how many
    steps they take are changed.

    Args:
        program: what is to be run.
        keep_rules: whether derivatives are still to be taken: then loops inside of operations that
            have rules of their own are left as they are.

    Returns:
        The program; the same one if it holds no such loop, but for its input.
    """
    key = ("only where", keep_rules)
    changed = program.cache.get(key)
    if changed is None:
        live = Var(_BOOL)
        equations = [_where(e, live, keep_rules) for e in program.equations]
        changed = Program([live, *program.inputs], equations, program.outputs, program.name)
        program.cache[key] = changed
    return changed


def holding_where(cond: Program, keep_rules: bool) -> Program:
    """Do the same for the condition of a loop, which then does not hold where the flag is false."""
    changed = only_where(cond, keep_rules)
    live, holds = changed.inputs[0], Var(_BOOL)
    both = Equation(And(), [live, changed.outputs[0]], [holds])
    return Program(changed.inputs, [*changed.equations, both], [holds], changed.name)


def _where(equation: Equation, live: Var, keep_rules: bool) -> Equation:
    operation = equation.primitive
    if not isinstance(operation, ControlFlow) or not operation.open_loop:
        return equation
    changed = operation.where(equation, live, keep_rules)
    if changed is not None:
        return changed
    program = operation.called() if keep_rules else _run(operation, equation)
    if program is None or not has_open_loop(program):
        return equation
    inputs = [live, *equation.inputs]
    call = Call(only_where(program, keep_rules))
    return Equation(call, inputs, equation.outputs, equation.place)


def _run(operation: ControlFlow, equation: Equation) -> Program:
    """Return what the operation does, as a program."""

    def fun(*args: Any) -> tuple[Sequence[Any], None]:
        return operation.interpret(*args), None

    types = [a.type for a in equation.inputs]
    return operation.inlined() or record(fun, types, name=operation.name)[0]
