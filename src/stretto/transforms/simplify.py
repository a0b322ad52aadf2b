"""Simplification: drop the equations whose results nobody uses, or that are only to be seen.

Layer 3 (transforms).
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stretto.core.effects import observable
from stretto.core.program import Equation, Program, Var

__all__ = ["drop_dead", "silenced", "used_inputs"]


def drop_dead(program: Program) -> Program:
    """The program without equations that no output depends on and nobody would miss.

    Operations that hold programs are asked to give no more than what is needed of them.
    """
    needed: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
    kept = []
    for equation in reversed(program.equations):
        mask = [v in needed for v in equation.outputs]
        primitive: Any = equation.primitive
        if any(mask) or observable(primitive.effects):
            if primitive.holds_programs and not all(mask):
                equation = primitive.trimmed(equation, mask)
            kept.append(equation)
            needed.update([a for a in equation.inputs if type(a) is Var])
    kept.reverse()
    if kept == list(program.equations):
        return program
    return Program(program.inputs, kept, program.outputs, program.name)


def used_inputs(program: Program) -> tuple[bool, ...]:
    """Which inputs an equation or an output reads."""
    needed = {a for e in program.equations for a in e.inputs}
    needed.update(program.outputs)
    return tuple(v in needed for v in program.inputs)


def silenced(program: Program) -> Program:
    """The program for running once more: without operations that are there for their effect alone.

    Those with results stay, and what holds programs holds silenced ones.
    """
    if not observable(program.effects):
        return program

    def quiet(value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple([quiet(v) for v in value])
        return silenced(value) if isinstance(value, Program) else value

    kept = []
    for e in program.equations:
        primitive = e.primitive
        if primitive.holds_programs:
            names = [field.name for field in dataclasses.fields(primitive)]
            fields = {name: quiet(getattr(primitive, name)) for name in names}
            primitive = dataclasses.replace(primitive, **fields)
        if primitive.holds_programs or e.outputs or not observable(primitive.effects):
            kept.append(Equation(primitive, e.inputs, e.outputs, e.position))
    return Program(program.inputs, kept, program.outputs, program.name)
