"""``Mapped``: apply the program of one member to all members, in a form that is chosen later.

A ``vmap`` inside a trace records it, if the program has products or convolutions with enough work
that their formulation matters. Derivatives with respect to each member's own values are mapped
calls again; for shared values, and under another ``vmap``, it turns into a call of the vectorized
program. The form is chosen when it is lowered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate, replay
from stretto._engine.autodiff.jvp import Differentiator, jvp_call
from stretto._engine.autodiff.linearize import apply_linear, linearize_program
from stretto._engine.autodiff.transpose import transpose_call
from stretto._engine.autodiff.vmap import AxisSize, vmap_flat, vmap_program
from stretto._engine.core.config import config, settings
from stretto._engine.core.interpreter import Linear, Value, state
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import Recorder
from stretto._engine.core.rewriting import depending, drop_dead, restrict, used_inputs, with_inputs
from stretto._engine.core.sizes import at_least, is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import Call, ControlFlow, cut
from stretto._engine.higher_order.loops import map_chunks, record_example
from stretto._engine.passes.formulations.forms import Plan
from stretto._engine.passes.formulations.measured import fastest, fingerprint
from stretto._engine.passes.formulations.members import (
    CHOICES,
    Decision,
    chunk_within,
    operations,
    plan_members,
)
from stretto._engine.passes.prepare import finish_planned

_WORTH = 1 << 14
"""The least number of multiply-adds, of all members, for which planning is worth a second trace."""


_MOST_TRIED = 2_000
"""The most equations, of all members written out, for which that plan is measured."""


class Mapped(ControlFlow):
    """Apply the program of one member to all, along axis 0 of the inputs that are ``over`` them."""

    member: Program
    size: int
    over: tuple[bool, ...]
    takes_masked = True
    pushes_masked = True
    form: Plan
    """The value of ``config.plan`` when it was traced."""
    only_compiled = True  # it exists so that the planner chooses a compiled form
    rollable = False  # the planner decides about loops inside

    def whole(self) -> Program:
        """Return the program for all members, as the vmap rules make it."""
        every = (True,) * len(self.member.outputs)
        return vmap_program(self.member, self.size, self.over, every)[0]

    def plan(self) -> tuple[Program, list[Decision]]:
        """Return the program for all members in the chosen form, and the decisions."""
        key = ("planned", self.size, self.over, self.form, settings.key)
        if key not in self.member.cache:
            plan = self._measured() if self.form is Plan.MEASURE else self.form
            self.member.cache[key] = plan_members(self.member, self.size, self.over, plan)
        return self.member.cache[key]

    def _measured(self) -> Plan:
        """Return the fastest plan, measured unless that was done before."""
        plans = [Plan.AUTO, Plan.BATCHED, Plan.IN_TURN]
        if self.size * len(self.member.equations) <= _MOST_TRIED:
            plans.append(Plan.WRITTEN_OUT)
        candidates = {
            plan.value: lambda plan=plan: plan_members(self.member, self.size, self.over, plan)[0]
            for plan in plans
        }
        best = fastest(fingerprint(self.member, f"{self.size} {self.over}"), candidates)
        return Plan(best)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the member's output types, with the axis of the members in front."""
        for i, (got, want, m) in enumerate(
            zip(types, self.member.in_types, self.over, strict=True)
        ):
            shape = (self.size, *want.shape) if m else want.shape
            if got.shape != shape or got.dtype != want.dtype:
                raise TypeError(
                    f"{self.member.name}: input {i} is {got}, expected {want.with_shape(shape)}"
                )
        return tuple([t.with_shape((self.size, *t.shape)) for t in self.member.out_types])

    def interpret(self, *args: Any) -> Sequence[Any]:
        """Run the program for all members here."""
        return evaluate(self.whole(), args)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile it: it has enough work to be worth that."""
        return not config.disable_jit

    def inlined(self) -> Program | None:
        """Return the program for all members."""
        return self.whole()

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Return the work of all members."""
        return at_least(self.size) * self.member.work

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """Return the program restricted to these outputs, with the operands that it reads."""
        member = restrict(self.member, needed)
        used = used_inputs(member)
        if not any([u and m for u, m in zip(used, self.over, strict=True)]):
            used = (True,) * len(used)  # at least one must have an axis of members
        if member is self.member and all(used):
            return equation
        over = [m for m, u in zip(self.over, used, strict=True) if u]
        return cut(equation, self._of(with_inputs(member, used), over), used, needed)

    def lower(self, b: Any, *operands: Any) -> Any:
        """Return the operations of the plan, or of all members at once, written here."""
        return b.program(finish_planned(self.plan()[0]) if b.plans else self.whole(), operands)

    def onnx(self, b: Any, *operands: Any) -> Any:
        """Return the operations of all members at once: estimates for XLA do not hold there."""
        return b.program(self.whole(), operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a mapped call of the program of values and tangents."""
        if self._shares(t is not None for t in tangents):
            return Call(self.whole()).jvp(primals, tangents)
        run = lambda program, values, over: self._of(program, over)(*values)
        return jvp_call(self.member, primals, tangents, run, self.over)

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return a mapped call for the values and residuals, and a linear one for the tangents."""
        if self._shares(t is not None for t in tangents):
            return Call(self.whole()).linearize(primals, tangents)
        split = linearize_program(self.member, tuple(t is not None for t in tangents))
        count = len(split.active_out)
        primal = split.primal
        varying = depending(primal, self.over)
        own = [i < count or v for i, v in enumerate(varying)]
        outs = iter(self._of(restrict(primal, own), self.over)(*primals))
        once = iter(evaluate(restrict(primal, [not o for o in own]), primals))
        results = [next(outs) if o else next(once) for o in own]
        douts = iter(())
        if any(split.active_out):
            moving = [t for t in tangents if t is not None]
            linear = self._of(split.linear, (*[True] * len(moving), *own[count:]))
            douts = iter(apply_linear(linear, *moving, *results[count:]))
        return results[:count], [next(douts) if m else None for m in split.active_out]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """Return a mapped call of the transposed program."""
        linear = tuple(isinstance(a, Linear) for a in args)
        if self._shares(linear):
            return Call(self.whole()).transpose(cts, *args)
        run = lambda back, values, over: self._of(back, over)(*values)
        return transpose_call(self.member, cts, args, run, self.over)

    def _of(self, program: Program, over: Sequence[bool]) -> Mapped:
        return Mapped(program, self.size, tuple(over), self.form)

    def _shares(self, active: Iterable[bool]) -> bool:
        """Say whether one of the marked inputs is the same for all members.

        The cotangent of such an input is a sum over members, best done inside the products.
        """
        return any(a and not m for a, m in zip(active, self.over, strict=True))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Do what a call of the program for all members does."""
        return Call(self.whole()).vmap(size, args, axes)

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Return the members' program of fixed sizes, which are the same for all."""
        member, sizes = at.closed(self.member)
        over = (*[False] * len(sizes), *self.over)
        return Mapped(member, self.size, over, self.form)(*sizes, *args)


def map_members(
    fun: Callable[..., Sequence[Value]],
    size: int,
    chunk: int | str,
    args: Sequence[Value],
    axes: Sequence[int | None],
    names: Sequence[str],
) -> tuple[list[Any], list[int | None]]:
    """Do what ``map_chunks`` does, but while tracing leave what is worth planning to the planner.

    If ``chunk`` is ``"auto"``, it is as many members as fit in the memory budget.
    """
    if chunk == "auto":
        example = record_example(fun, args, axes, names, fun.__name__)
        chunk = chunk_within(example.program, len(example.xs), size)
    if is_size(size):
        return map_chunks(fun, size, size, args, axes, names, _chunk)
    assert isinstance(chunk, int)
    recorder = _recorder()
    if recorder is None or not chunk >= size > 1 or isinstance(size, AxisSize):
        return map_chunks(fun, size, chunk, args, axes, names, _chunk)
    example = record_example(fun, args, axes, names, fun.__name__)
    program = drop_dead(example.program)
    mapped = (*[True] * len(example.xs), *[False] * len(example.held))
    values = [*example.xs, *example.held]
    if _worth(program, size):
        outs = Mapped(program, int(size), mapped, Plan(config.plan))(*values)
        return example.results([(o, 0) for o in outs])
    in_axes = [0 if m else None for m in mapped]
    outs, out_axes = vmap_flat(lambda *xs: replay(program, xs, recorder), size, values, in_axes)
    return example.results(zip(outs, out_axes, strict=True))


def _chunk(
    program: Program, size: int, mapped: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """Do what ``vmap_program`` does, but make a mapped call of the program if that is worth it."""
    if not _worth(program, size):
        return vmap_program(program, size, mapped, force)
    operation = Mapped(program, size, mapped, Plan(config.plan))
    types = [
        t.with_shape((size, *t.shape)) if m else t
        for t, m in zip(program.in_types, mapped, strict=True)
    ]
    inputs = [Var(t) for t in types]
    outputs = [Var(t) for t in operation.infer(*types)]
    equation = Equation(operation, inputs, outputs)
    return Program(inputs, [equation], outputs, program.name), (True,) * len(outputs)


def _worth(program: Program, size: int) -> bool:
    """Say whether the formulation of a member's program can be chosen, and that is worth it."""
    enough = config.plan != "auto" or size * _choices(program) >= _WORTH
    return enough and size > 1 and bool(program.outputs) and not program.effects


def _recorder() -> Recorder | None:
    """Return the recorder that operations go to from here, directly or through derivatives."""
    interpreter = state.interpreter
    while isinstance(interpreter, Differentiator):
        interpreter = interpreter.parent
    return interpreter if type(interpreter) is Recorder else None


def _choices(program: Program) -> float:
    """Return the multiply-adds of one member in operations whose formulation can be chosen."""
    return sum(
        times * primitive.work([a.type.least for a in inputs], [v.type.least for v in outputs])
        for primitive, inputs, outputs, times in operations(program)
        if isinstance(primitive, CHOICES)
    )
