"""The walk over the program of one member: each operation in the form that suits it best.

For products and convolutions a formulation is chosen. Other operations keep the form that their
operands have, whole or in parts, so that members that are written out stay separate from one
convolution to the next.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from stretto._engine import higher_order
from stretto._engine.autodiff.evaluate import record_closed, standing_at
from stretto._engine.core.cost import CPU, Machine
from stretto._engine.core.interpreter import constant, state
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.layout import Transpose, reshape
from stretto._engine.passes.formulations.chunk_size import best_chunk, work_of
from stretto._engine.passes.formulations.convolutions import MOST_WRITTEN, of_convolution
from stretto._engine.passes.formulations.forms import Choice, Parts, Plan, Shared, Whole
from stretto._engine.passes.formulations.products import of_product

_MOST_EQUATIONS = 20_000
"""The most equations that written-out members may have together."""

_SMALL_PART = 1 << 14
"""Parts of fewer bytes are stacked before anything else is done with them."""


class Decision(NamedTuple):
    """Hold what was chosen for an operation, and all choices as (name, estimated time)."""

    operation: str
    position: str
    chosen: str
    choices: tuple[tuple[str, float], ...]
    all_in_all: bool = False
    """Whether the times are those of the whole program, including what is chosen inside."""


class _Walk:
    """One walk: the number of members, the plan, and the decisions made so far."""

    def __init__(self, size: int, plan: Plan, machine: Machine) -> None:
        self.size, self.plan, self.machine = size, plan, machine
        self.decisions: list[Decision] = []
        self.written = 0

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """Apply a program to values in any form; return its outputs."""
        known: dict[Atom, Any] = dict(zip(program.inputs, args, strict=True))
        program = _without_transposes(program)

        def read(atom: Atom) -> Any:
            if isinstance(atom, Literal):
                return Shared(constant(atom.array(), atom.type.weak_type))
            return known[atom]

        for equation in program.equations:
            values = [read(a) for a in equation.inputs]
            outs = standing_at(state.interpreter, equation, self.apply, equation, values)
            known.update(zip(equation.outputs, outs, strict=True))
        return [read(a) for a in program.outputs]

    def apply(self, equation: Equation, values: list[Any]) -> list[Any]:
        """Apply the operation of an equation; return its outputs."""
        primitive: Any = equation.primitive
        if all(isinstance(v, Shared) for v in values):
            outs = primitive(*[v.value for v in values])
            return [Shared(o) for o in (outs if primitive.multiple else (outs,))]
        if primitive.holds_programs and primitive.inlined() is not None:
            return self.run(primitive.inlined(), values)
        if isinstance(primitive, DotGeneral):
            x, y = values
            return [self.choose(equation, of_product(primitive, x, y, self.size, self.machine))]
        if isinstance(primitive, ConvGeneralDilated):
            x, y = values
            return [self.choose(equation, of_convolution(primitive, x, y, self.size, self.machine))]
        if self.in_parts(primitive, values, equation):
            rows = [primitive(*[v.member(i) for v in values]) for i in range(self.size)]
            self.written += self.size
            if primitive.multiple:
                return [Parts(column) for column in zip(*rows, strict=True)]
            return [Parts(rows)]
        axes = [None if isinstance(v, Shared) else v.axis for v in values]
        out, axis = primitive.vmap(self.size, [v.value for v in values], axes)
        pairs = zip(out, axis, strict=True) if primitive.multiple else [(out, axis)]
        return [Shared(o) if a is None else Whole(o, a) for o, a in pairs]

    def in_parts(self, primitive: Any, values: Sequence[Any], equation: Equation) -> bool:
        """Say whether an operation without formulations is done member by member."""
        if primitive.holds_programs or primitive.effects:
            return False
        if self.plan is Plan.WRITTEN_OUT:
            return True
        if not any(isinstance(v, Parts) for v in values) or self.written > _MOST_EQUATIONS:
            return False
        handled = [*[v for v in values if isinstance(v, Parts)], *equation.outputs]
        return max(bytes_of(v.type) for v in handled) >= _SMALL_PART

    def choose(self, equation: Equation, choices: list[Choice]) -> Any:
        """Run the formulation that the plan asks for, or else the fastest by estimate."""
        best = min(choices, key=lambda c: c.microseconds)
        best = next((c for c in choices if self.plan.asks_for(c.form)), best)
        self.decisions.append(
            Decision(
                f"{equation.primitive.name} {' '.join(a.type.short() for a in equation.inputs)}",
                str(equation.position or ""),
                best.form.value,
                tuple(sorted([(c.form.value, c.microseconds) for c in choices], key=itemgetter(1))),
            )
        )
        return best.run()


def _without_transposes(program: Program) -> Program:
    """Make products of transposed matrices products of the matrices themselves.

    Then the operands of products show how the axes lie in memory.
    """
    if "untransposed" not in program.cache:
        turned: dict[Atom, tuple[Atom, tuple[int, ...]]] = {}
        equations = []
        for equation in program.equations:
            primitive: Any = equation.primitive
            if isinstance(primitive, Transpose):
                turned[equation.outputs[0]] = equation.inputs[0], primitive.permutation
            elif isinstance(primitive, DotGeneral):
                for side in (0, 1):
                    equation = _seen_through(equation, side, turned)
            equations.append(equation)
        program.cache["untransposed"] = drop_dead(
            Program(program.inputs, equations, program.outputs, program.name)
        )
    return program.cache["untransposed"]


def _seen_through(
    equation: Equation, side: int, turned: dict[Atom, tuple[Atom, tuple[int, ...]]]
) -> Equation:
    """Replace the product's operand on this side by what it is the transpose of, if any."""
    transpose = turned.get(equation.inputs[side])
    if transpose is None:
        return equation
    op: Any = equation.primitive
    source, permutation = transpose
    summed, shared = list(op.summed), list(op.shared)
    free = [permutation[a] for a in range(len(permutation)) if a not in summed[side] + shared[side]]
    if free != sorted(free):
        return equation  # the output's axes would be in another order
    summed[side] = tuple(permutation[a] for a in summed[side])
    shared[side] = tuple(permutation[a] for a in shared[side])
    inputs = list(equation.inputs)
    inputs[side] = source
    operation = dataclasses.replace(op, summed=tuple(summed), shared=tuple(shared))
    return Equation(operation, inputs, equation.outputs, equation.position)


def plan_members(
    program: Program, size: int, over: Sequence[bool], plan: Plan, machine: Machine = CPU
) -> tuple[Program, list[Decision]]:
    """Return the program for all members, with these along axis 0 of mapped inputs and all outputs.

    The second result are the decisions that were made.
    """
    if plan is Plan.WRITTEN_OUT and size > MOST_WRITTEN:
        plan = Plan.AUTO
    types = [
        t.with_shape((size, *t.shape)) if m else t
        for t, m in zip(program.in_types, over, strict=True)
    ]
    if plan is Plan.IN_TURN:
        return _in_chunks(program, size, 1, over, types), []
    if plan is Plan.AUTO:
        work = work_of(_without_transposes(program), over, machine)
        count, times = best_chunk(work, size, machine)
        if count < size:
            body, decisions = program, []
            if count > 1:
                body, decisions = plan_members(program, count, over, Plan.AT_ONCE, machine)
            return _in_chunks(body, size, count, over, types), [
                _chunk_decision(program, size, count, times),
                *decisions,
            ]
    walk = _Walk(size, plan, machine)

    def all_members(*xs: Any) -> Any:
        values = [Whole(x, 0) if m else Shared(x) for x, m in zip(xs, over, strict=True)]
        outs = walk.run(program, values)
        in_front = [
            broadcast_to(o.value, (size, *o.value.shape)) if isinstance(o, Shared) else o.front()
            for o in outs
        ]
        return in_front, None

    result, _ = record_closed(all_members, types, f"vmap_{program.name}")
    return result, walk.decisions


def _in_chunks(
    program: Program, size: int, count: int, over: Sequence[bool], types: Sequence[ArrayType]
) -> Program:
    """Return a loop over members, ``count`` of them in each iteration.

    ``program`` is for so many.
    """
    moving = [v for v, m in zip(program.inputs, over, strict=True) if m]
    still = [v for v, m in zip(program.inputs, over, strict=True) if not m]
    body = Program([*still, *moving], program.equations, program.outputs, program.name)
    loop = higher_order.scan.Scan(body, size // count, len(still), 0)

    def run(*xs: Any) -> Any:
        held = [x for x, m in zip(xs, over, strict=True) if not m]
        own = [x for x, m in zip(xs, over, strict=True) if m]
        if count > 1:
            own = [reshape(x, (size // count, count, *x.shape[1:])) for x in own]
        outs = loop(*held, *own)
        if count > 1:
            outs = [reshape(o, (size, *o.shape[2:])) for o in outs]
        return outs, None

    return record_closed(run, types, f"vmap_{program.name}")[0]


def _chunk_decision(program: Program, size: int, count: int, times: dict[int, float]) -> Decision:
    def name(n: int) -> str:
        return "all members at once" if n == size else f"{n} of {size} members a turn"

    listed = sorted([(name(n), t) for n, t in times.items()], key=itemgetter(1))
    return Decision(f"the whole of {program.name}", "", name(count), tuple(listed), True)
