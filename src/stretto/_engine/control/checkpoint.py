"""Checkpoints: a call whose derivative computes values again instead of keeping them.

Layer 4 (control). A derivative run backwards needs values of the way there. A call keeps them; a
checkpoint keeps its arguments and what its policy allows, and computes the rest again, in one
operation with the way back. Next, read ``policies``; ``api/checkpoint`` is what users call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.control.call import Call
from stretto._engine.control.policies import Policy
from stretto._engine.core.config import settings
from stretto._engine.core.effects import observable
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.types import ArrayType
from stretto._engine.transforms.closed import record_closed
from stretto._engine.transforms.evaluate import evaluate
from stretto._engine.transforms.linearize import apply_linear, linearize_program
from stretto._engine.transforms.simplify import drop_dead

__all__ = ["Checkpoint"]


class Checkpoint(Call):
    """Apply a program; in derivatives, keep no more of it than ``policy`` allows (None: nothing).

    ``again`` marks what a derivative made of it: a program that begins by computing values anew.
    With ``prevent_cse`` the compiler must leave it a call of its own, which starts when all
    operands are there, the cotangents among them. Else it would find that the way there has these
    values already, and keep them; or, behind a mere barrier, compute them anew, but early.
    """

    policy: Policy | None = None
    prevent_cse: bool = True
    again: bool = False

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Interpreted: nobody asked for a compiled form."""
        return False

    def of(self, program: Program) -> Checkpoint:
        """A checkpoint of another program."""
        return Checkpoint(program, self.policy, self.prevent_cse, self.again)

    def inlined(self) -> Program | None:
        """The program, but for one that begins by computing again, which stays apart."""
        return None if self.again else self.program

    def parameters(self) -> list[tuple[str, Any]]:
        """The policy goes by its name."""
        named = dict(super().parameters())
        if self.policy is not None:
            named["policy"] = getattr(self.policy, "__name__", type(self.policy).__name__)
        return list(named.items())

    def lower(self, b: Any, *operands: Any) -> Any:
        """The program in place, or as a call that the compiler must leave one."""
        if self.again and self.prevent_cse:
            return b.call(self.program, operands, apart=True)
        return b.program(self.program, operands)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The values with what is kept; and one operation that computes the rest, and tangents.

        y = f(x) and dy = J(r(x)) dx, with residuals r, becomes y, s = f'(x) and dy = J(r'(x, s)) dx
        with what is kept, s. Run backwards the second is again a checkpoint, x' = J(r'(x, s))ᵀ y'.
        """
        parts = _in_two(self.program, self.policy, tuple(t is not None for t in tangents))
        outs = self.of(parts.forward)(*primals)
        count = len(parts.active_out)
        given = iter(())
        if any(parts.active_out):
            known = [(primals if own else outs)[i] for own, i in parts.known]
            again = Checkpoint(parts.linear, self.policy, self.prevent_cse, parts.again)
            given = iter(apply_linear(again, *known, *(t for t in tangents if t is not None)))
        return outs[:count], [next(given) if m else None for m in parts.active_out]


class _Parts(NamedTuple):
    """A program split at what is kept."""

    forward: Program
    """Gives the program's outputs, then what is kept beside those."""
    linear: Program
    """From known values, then the tangents of active inputs, to those of active outputs."""
    known: tuple[tuple[bool, int], ...]
    """Where each known value is: an input (True) of ``forward``, or an output, and its number."""
    again: bool
    """Whether ``linear`` computes anything anew."""
    active_out: tuple[bool, ...]


def _in_two(program: Program, policy: Policy | None, active: tuple[bool, ...]) -> _Parts:
    """The program split, at what the policy allows to keep, for tangents of these inputs."""
    key = ("checkpoint", policy, active, settings.key)
    if key not in program.cache:
        program.cache[key] = _split(program, policy, active)
    return program.cache[key]


def _split(program: Program, policy: Policy | None, active: tuple[bool, ...]) -> _Parts:
    parts = linearize_program(program, active)
    primal, count = parts.primal, len(parts.active_out)
    if policy is not None or observable(primal.effects):
        primal = _without_calls(primal)
    residuals = primal.outputs[count:]
    kept = {v for e in primal.equations if _keep(policy, e) for v in e.outputs}

    needed = {a for a in residuals if type(a) is Var}
    again: list[Equation] = []
    for equation in reversed(primal.equations):
        if any([v in needed and v not in kept for v in equation.outputs]):
            again.append(equation)
            needed.update([a for a in equation.inputs if type(a) is Var])

    made = [v for e in primal.equations for v in e.outputs if v in kept and v in needed]
    outputs = list(primal.outputs[:count])
    outputs += [v for v in made if v not in outputs]
    forward = drop_dead(Program(primal.inputs, primal.equations, outputs, program.name))
    place = {v: (False, outputs.index(v)) for v in made}
    place |= {v: (True, i) for i, v in enumerate(primal.inputs) if v in needed}
    residual_program = Program(place, reversed(again), residuals)

    def linear(*values: Any) -> Any:
        known, moving = values[: len(place)], values[len(place) :]
        return evaluate(parts.linear, [*moving, *evaluate(residual_program, known)]), None

    moving = parts.linear.in_types[: sum(active)]
    types = [*(v.type for v in place), *moving]
    linear_program, _ = record_closed(linear, types, parts.linear.name)
    return _Parts(forward, linear_program, tuple(place.values()), bool(again), parts.active_out)


def _keep(policy: Policy | None, equation: Equation) -> bool:
    """Whether all outputs are kept.

    What is seen from outside is never done twice, and what has no operand costs nothing.
    """
    if observable(equation.primitive.effects):
        return True
    if policy is None or not equation.inputs:
        return False
    return bool(policy(equation.primitive, *[a.type for a in equation.inputs]))


def _without_calls(program: Program) -> Program:
    """The program with what its calls do written in their place."""
    if not any([type(e.primitive) is Call for e in program.equations]):
        return program
    equations: list[Equation] = []
    renamed: dict[Atom, Atom] = {}

    def write(equation: Equation, names: dict[Atom, Atom]) -> None:
        inputs = [names.get(a, a) for a in equation.inputs]
        primitive = equation.primitive
        if type(primitive) is Call:
            inner: dict[Atom, Atom] = dict(zip(primitive.program.inputs, inputs, strict=True))
            for e in primitive.program.equations:
                write(e, inner)
            outs = [inner.get(a, a) for a in primitive.program.outputs]
            names.update(zip(equation.outputs, outs, strict=True))
        else:
            outputs = [Var(v.type) for v in equation.outputs]
            names.update(zip(equation.outputs, outputs, strict=True))
            equations.append(Equation(primitive, inputs, outputs, equation.position))

    for equation in program.equations:
        write(equation, renamed)
    outputs = [renamed.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name)
