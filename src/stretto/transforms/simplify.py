"""Simplification: drop the equations whose results nobody uses.

Layer 3 (transforms).
"""

from __future__ import annotations

from stretto.core.effects import observable
from stretto.core.program import Program, Var

__all__ = ["drop_dead", "used_inputs"]


def drop_dead(program: Program) -> Program:
    """The program without equations that no output depends on and nobody would miss."""
    needed: set[Var] = {a for a in program.outputs if isinstance(a, Var)}
    kept = []
    for equation in reversed(program.equations):
        if any([v in needed for v in equation.outputs]) or observable(equation.primitive.effects):
            kept.append(equation)
            needed.update([a for a in equation.inputs if type(a) is Var])
    if len(kept) == len(program.equations):
        return program
    return Program(program.inputs, reversed(kept), program.outputs, program.name)


def used_inputs(program: Program) -> tuple[bool, ...]:
    """Which inputs an equation or an output reads."""
    needed = {a for e in program.equations for a in e.inputs}
    needed.update(program.outputs)
    return tuple(v in needed for v in program.inputs)
