"""The walk over the program of one member: each operation in the form that suits it best.

For products and convolutions a formulation is chosen. Other operations keep the form that their
operands have, whole or in parts, so that members that are written out stay separate from one
convolution to the next.

It is chosen, too, how many members to compute at a time: all, or some in each iteration of a loop.
All at once means few operations. A few at a time means that intermediate results stay in the cache,
and are so small that the allocator need not get new memory from the system at each call, which for
some 30 MB takes longer than computing with them. The estimate counts the bytes of operands and
results of each operation of the member's program.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from operator import itemgetter
from typing import Any, NamedTuple

from stretto._engine import higher_order
from stretto._engine.autodiff.evaluate import record_closed, standing_at
from stretto._engine.core import cost
from stretto._engine.core.config import config
from stretto._engine.core.cost import Machine
from stretto._engine.core.interpreter import constant, state
from stretto._engine.core.machine import cores, memory
from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.core.rewriting import drop_dead, used_inputs
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Transpose
from stretto._engine.passes.formulations.forms import (
    MOST_WRITTEN,
    Choice,
    Parts,
    Plan,
    Shared,
    Whole,
    convolution_fraction,
    of_convolution,
    of_product,
)
from stretto._engine.passes.formulations.in_turn import by_kernels, halves, in_turns

_MOST_EQUATIONS = 20_000
"""The most equations that written-out members may have together."""

_SMALL_PART = 1 << 14
"""Parts of fewer bytes are stacked before anything else is done with them."""


class Decision(NamedTuple):
    """The choice for an operation, and all choices as (name, estimated time)."""

    operation: str
    position: str
    chosen: str
    choices: tuple[tuple[str, float], ...]
    all_in_all: bool = False
    """True if the times are those of the whole program, including what is chosen inside."""


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

    def of_all(self, program: Program, over: Sequence[bool], args: Sequence[Any]) -> list[Any]:
        """Apply it to arrays with members along axis 0 where ``over`` says so, as all results."""
        values = [Whole(x, 0) if m else Shared(x) for x, m in zip(args, over, strict=True)]
        return [
            broadcast_to(o.value, (self.size, *o.value.shape))
            if isinstance(o, Shared)
            else o.front()
            for o in self.run(program, values)
        ]

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
    program: Program,
    size: int,
    over: Sequence[bool],
    plan: Plan,
    machine: Machine | None = None,
) -> tuple[Program, list[Decision]]:
    """Return the program for all members, with these along axis 0 of mapped inputs and all outputs.

    The second result are the decisions that were made, by the costs of ``machine``, or of this one.
    """
    machine = machine or cost.current()
    if plan is Plan.WRITTEN_OUT and size > MOST_WRITTEN:
        plan = Plan.AUTO
    if plan is Plan.IN_TURN:
        return plan_in_turn(program, size, 1, over, machine)
    if plan is Plan.AUTO:
        count, times = best_chunk(work_of(program, over, machine), size, machine)
        if count < size:
            looped, decisions = plan_in_turn(program, size, count, over, machine)
            return looped, [_chunk_decision(program, size, count, times), *decisions]
    walk = _Walk(size, plan, machine)

    def all_members(*xs: Any) -> Any:
        return walk.of_all(program, over, xs), None

    result, _ = record_closed(all_members, _types(program, size, over), f"vmap_{program.name}")
    return result, walk.decisions


def _types(program: Program, size: int, over: Sequence[bool]) -> list[ArrayType]:
    """Return the types of all members' inputs."""
    return [
        t.with_shape((size, *t.shape)) if m else t
        for t, m in zip(program.in_types, over, strict=True)
    ]


def plan_in_turn(
    program: Program, size: int, count: int, over: Sequence[bool], machine: Machine
) -> tuple[Program, list[Decision]]:
    """Return the program in a loop over members, so many in each iteration, and the decisions."""
    parts = None if count == 1 and by_kernels(program) else halves(program, over)
    inside = program if parts is None else parts.loop
    types = _types(program, size, over)
    decisions: list[Decision] = []
    if count > 1:
        inside, decisions = plan_members(inside, count, over, Plan.AT_ONCE, machine)
    if parts is None:
        return in_turns(inside, size, count, over, types), decisions
    last = parts.behind
    own = (*over, *[True] * len(parts.loop.outputs))
    walk = _Walk(size, Plan.AT_ONCE, machine)
    behind = lambda *xs: walk.of_all(last, own, xs)
    return in_turns(inside, size, count, over, types, behind), decisions


def _chunk_decision(program: Program, size: int, count: int, times: dict[int, float]) -> Decision:
    def name(n: int) -> str:
        return "all members at once" if n == size else f"{n} of {size} members a turn"

    listed = sorted([(name(n), t) for n, t in times.items()], key=itemgetter(1))
    return Decision(f"the whole of {program.name}", "", name(count), tuple(listed), True)


# The number of members at a time: what memory and time each takes


def peak_bytes(program: Program) -> int:
    """Return the most bytes of values that are alive at the same time, not counting the inputs."""
    last: dict[Var, int] = {}
    for i, equation in enumerate(program.equations):
        for atom in equation.inputs:
            if isinstance(atom, Var):
                last[atom] = i
    for atom in program.outputs:
        if isinstance(atom, Var):
            last[atom] = len(program.equations)
    own = set(program.inputs)
    dying: dict[int, list[Var]] = {}
    for v, i in last.items():
        if v not in own:
            dying.setdefault(i, []).append(v)
    alive = most = 0
    for i, equation in enumerate(program.equations):
        ends = sum(bytes_of(v.type) for v in dying.get(i, ()))
        begins = sum(bytes_of(v.type) for v in equation.outputs)
        if isinstance(equation.primitive, Elementwise):  # it can reuse the memory of an operand
            begins, ends = max(0, begins - ends), max(0, ends - begins)
        alive += begins
        inner = 0
        primitive: Any = equation.primitive
        if primitive.holds_programs:
            inner = max((peak_bytes(p) for p in primitive.programs()), default=0)
        most = max(most, alive + inner)
        alive -= ends
        alive -= sum(bytes_of(v.type) for v in equation.outputs if v not in last)
    return most


def stored_bytes(program: Program) -> int:
    """Return the most bytes of stored values that are alive at once, but for inputs and outputs.

    XLA computes operations by element within what reads them, so their results are stored where
    others read them: products, sums, kernels. What is not stored keeps alive what it is made of.
    Outputs are not kept: updates read them at once, and are in place.
    """
    stored: set[Any] = set()
    last: dict[Any, int] = {}
    for i, e in enumerate(program.equations):
        if not _by_element(e.primitive):
            stored.update(e.outputs)
            stored.update(e.inputs)
        last.update(dict.fromkeys(e.inputs, i))
    for e in reversed(program.equations):
        if stored.isdisjoint(e.outputs):
            until = max([last.get(v, -1) for v in e.outputs])
            last.update({a: max(last.get(a, -1), until) for a in e.inputs})
    stored.difference_update(program.inputs)
    alive = most = 0
    dying: dict[int, int] = {}
    for i, e in enumerate(program.equations):
        primitive: Any = e.primitive
        for v in e.outputs:
            if v in stored:
                size, until = bytes_of(v.type), last.get(v, i)
                alive += size
                dying[until] = dying.get(until, 0) + size
        inner = [stored_bytes(p) for p in primitive.programs()] if primitive.holds_programs else ()
        most = max(most, alive + max(inner, default=0))
        alive -= dying.get(i, 0)
    return most


def _by_element(primitive: Any) -> bool:
    return primitive.light and primitive.splat


def chunk_within(program: Program, moving: int, size: int) -> int:
    """Return how many of ``size`` members fit in the budget at a time, at least one.

    The first ``moving`` inputs are each member's own. A divisor of the size is preferred, since it
    needs no second program for left-over members.
    """
    each = peak_bytes(program) + sum(bytes_of(t) for t in program.in_types[:moving])
    most = max(1, min(size, budget() // max(each, 1)))
    even = max(d for d in range(1, most + 1) if size % d == 0)
    return even if 2 * even > most else most


def budget() -> int:
    """Return the most bytes for ``chunk_size="auto"``: the setting, or half of the free memory."""
    return config.memory_budget or _free() // 2


def _free() -> int:
    return memory().free or 4 << 30


CHOICES = (DotGeneral, ConvGeneralDilated)
"""The operations that have several formulations."""

_FUSED = 0.4
"""The fraction of operands and results of element-wise operations that passes through memory."""

_WORTH = 0.97
"""A loop must be estimated to take at most this fraction of the time, as the estimate is rough."""


_ALONE, _LARGE = 1 << 19, 1 << 24
"""The multiply-adds of a product up to which one thread computes it, about, and from which on
threads share it without loss."""


class Work(NamedTuple):
    """The work of one member's program."""

    touched: list[tuple[float, float]]
    """(weight, bytes) of each array that an operation reads or writes."""
    products: list[tuple[float, float]]
    """(multiply-adds, fraction of the best rate) of each product and convolution."""
    moved: float
    """The bytes of a member's own inputs, and of its outputs."""
    outputs: float
    """The bytes of its outputs."""
    kernels: int
    """The number of kernels."""
    alive: float
    """The most bytes of stored intermediate results that are alive at the same time."""
    joint: int = 0
    """The number of products that threads share, at a loss, where there are few members."""
    in_place: bool = False
    """Says whether kernels read and write where the arrays of all members are, one at a time."""


def work_of(program: Program, over: Sequence[bool], machine: Machine) -> Work:
    """Return the work of one member."""
    parts = halves(program, over)
    inside = program if parts is None else parts.loop
    reads = (
        over if parts is None else [o and u for o, u in zip(over, used_inputs(inside), strict=True)]
    )
    own = [v.type for v, m in zip(program.inputs, reads, strict=True) if m]
    outs = sum(map(bytes_of, inside.out_types))
    alive = stored_bytes(_without_transposes(inside))
    program = _without_transposes(program)
    outside = {*program.inputs, *program.outputs}
    moved = sum(map(bytes_of, own)) + outs
    touched, products, kernels, joint = [], [], 0.0, 0
    for primitive, inputs, outputs, times in operations(program):
        arrays = [v.type for v in (*inputs, *outputs) if isinstance(v, Var) and v not in outside]
        if times > 1:  # of what a step reads, much is the same for all
            arrays = [v.type for v in (*outputs, *outputs)]
        choice = isinstance(primitive, CHOICES)
        touched += [(times * (1.0 if choice else _FUSED), bytes_of(t)) for t in arrays]
        kernels += times * (1 if choice else _FUSED)
        if choice:
            x, y = [v.type for v in inputs]
            work = primitive.work((x, y), [v.type for v in outputs])
            fraction = (
                machine.fraction(work)
                if isinstance(primitive, DotGeneral)
                else convolution_fraction(primitive, x, y, machine)
            )
            products.append((times * work, fraction))
            joint += times * (isinstance(primitive, DotGeneral) and _ALONE < work < _LARGE)
    in_place = by_kernels(program)
    return Work(touched, products, moved, outs, round(kernels), alive, joint, in_place)


def time_at_once(work: Work, count: int, machine: Machine) -> float:
    """Return the microseconds that so many members at once take, in memory that is not fresh."""
    time = work.kernels * machine.kernel
    time += sum(w * machine.passing(count * b) for w, b in work.touched)
    for products, fraction in work.products:
        time += machine.product(count * products, fraction) + count * machine.item
    alone = count < 2 * cores()  # else each thread has whole products
    return time + (work.joint * machine.joint if alone else 0)


def best_chunk(work: Work, size: int, machine: Machine) -> tuple[int, dict[int, float]]:
    """Return how many members to compute at a time, and the estimated times of all candidates."""
    times = {size: time_at_once(work, size, machine) + machine.fresh_memory(size * work.alive)}
    for count in range(1, size):
        if size % count == 0:
            turns = size // count
            inside = turns * (time_at_once(work, count, machine) + machine.turn)
            each = 0 if work.in_place else size  # of what is moved
            fresh = machine.fresh_memory(count * work.alive + each * work.outputs)
            times[count] = inside + fresh + machine.moving(each * work.moved)
    least = min(times.values())
    if least >= _WORTH * times[size]:
        return size, times
    return min(n for n, t in times.items() if t <= 1.01 * least), times


def operations(
    program: Program, times: int = 1
) -> Iterator[tuple[Any, Sequence[Any], Sequence[Any], int]]:
    """Yield all operations of the program, with calls replaced by what they call.

    With each comes how often it is done: once for each step of a loop that it is in.
    """
    for equation in program.equations:
        primitive: Any = equation.primitive
        inner = primitive.inlined() if primitive.holds_programs else None
        if inner is not None:
            yield from operations(inner, times)
        elif isinstance(primitive, higher_order.scan.Scan) and not is_size(primitive.length):
            yield from operations(primitive.body, times * primitive.length)
        else:
            yield primitive, equation.inputs, equation.outputs, times
