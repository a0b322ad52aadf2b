"""Checkpoints: a call whose derivative computes values again instead of keeping them.

A reverse derivative needs values from the forward pass. An ordinary call keeps them; a checkpoint
keeps its arguments and what its policy allows, and computes the rest again, in the same operation
as the backward pass.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.core.config import settings
from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.call import Call
from stretto._engine.higher_order.policies import Policy


class Checkpoint(Call):
    """Apply a program; derivatives keep only those values that ``policy`` allows (None: none).

    ``again`` marks the program of a derivative, which begins by computing values again. With
    ``prevent_cse`` the compiler must leave that a call of its own, which starts when all operands
    are there, including the cotangents. Otherwise it would notice that the forward pass has
    computed these values already, and keep them; or, behind a mere barrier, compute them again too
    early.
    """

    policy: Policy | None = None
    prevent_cse: bool = True
    again: bool = False

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Interpret: unlike ``jit``, a checkpoint does not ask to be compiled."""
        return False

    def of(self, program: Program) -> Checkpoint:
        """Return a checkpoint of another program."""
        return Checkpoint(program, self.policy, self.prevent_cse, self.again)

    def inlined(self) -> Program | None:
        """Return the program; None if it begins by computing again what must stay separate."""
        return None if self.again else self.program

    def parameters(self) -> list[tuple[str, Any]]:
        """Return the parameters, with the policy's name in place of the policy."""
        parameters = dict(super().parameters())
        if self.policy is not None:
            parameters["policy"] = getattr(self.policy, "__name__", type(self.policy).__name__)
        return list(parameters.items())

    def lower(self, b: Any, *operands: Any) -> Any:
        """Write the program in place, or as a call that the compiler must not inline."""
        if self.again and self.prevent_cse:
            return b.call(self.program, operands, apart=True)
        return b.program(self.program, operands)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the values with what is kept, and an operation for the rest and the tangents.

        y = f(x), dy = J(r(x)) dx, with residuals r, becomes y, s = f'(x), dy = J(r'(x, s)) dx
        where s is what is kept. Run backwards that is a checkpoint, too: x' = J(r'(x, s))ᵀ y'.
        """
        parts = _in_two(self.program, self.policy, tuple(t is not None for t in tangents))
        outs = self.of(parts.forward)(*primals)
        count = len(parts.active_out)
        douts = iter(())
        if any(parts.active_out):
            known = [(primals if own else outs)[i] for own, i in parts.known]
            again = Checkpoint(parts.linear, self.policy, self.prevent_cse, parts.again)
            douts = iter(apply_linear(again, *known, *(t for t in tangents if t is not None)))
        return outs[:count], [next(douts) if m else None for m in parts.active_out]


class _Parts(NamedTuple):
    """A program split at what is kept."""

    forward: Program
    """Computes the program's outputs, then what else is kept."""
    linear: Program
    """From known values, then the tangents of active inputs, to those of active outputs."""
    known: tuple[tuple[bool, int], ...]
    """Where to find each known value: among the inputs of ``forward`` (True) or its outputs, and at
    which position."""
    again: bool
    """True if ``linear`` computes anything again."""
    active_out: tuple[bool, ...]


def _in_two(program: Program, policy: Policy | None, active: tuple[bool, ...]) -> _Parts:
    """Split the program at what the policy allows to keep, for tangents of the active inputs."""
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

    saved = [v for e in primal.equations for v in e.outputs if v in kept and v in needed]
    outputs = list(primal.outputs[:count])
    outputs += [v for v in saved if v not in outputs]
    forward = drop_dead(Program(primal.inputs, primal.equations, outputs, program.name))
    positions = {v: (False, outputs.index(v)) for v in saved}
    positions |= {v: (True, i) for i, v in enumerate(primal.inputs) if v in needed}
    residual_program = Program(positions, reversed(again), residuals)

    def linear(*values: Any) -> Any:
        known, moving = values[: len(positions)], values[len(positions) :]
        return evaluate(parts.linear, [*moving, *evaluate(residual_program, known)]), None

    moving = parts.linear.in_types[: sum(active)]
    types = [*(v.type for v in positions), *moving]
    linear_program, _ = record_closed(linear, types, parts.linear.name)
    return _Parts(forward, linear_program, tuple(positions.values()), bool(again), parts.active_out)


def _keep(policy: Policy | None, equation: Equation) -> bool:
    """Say if all outputs of the equation are kept.

    Operations with an observable effect must not run twice, so their results always are. Those
    without operands cost nothing to compute again, so their results never are.
    """
    if observable(equation.primitive.effects):
        return True
    if policy is None or not equation.inputs:
        return False
    return bool(policy(equation.primitive, *[a.type for a in equation.inputs]))


def _without_calls(program: Program) -> Program:
    """Return the program with its calls inlined."""
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
