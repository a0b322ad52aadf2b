"""``Mapped``: a call of the program of one member for all members, whose form is not yet chosen.

Layer 5 (plan). A ``vmap`` in a trace leaves it where the program has products or convolutions worth
a choice. Derivatives with respect to what is each member's own are mapped calls again; else it is
taken for a call of the program that ``vmap`` rules make. Only its lowering plans. Next, read
``members``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from stretto._engine.control.call import Call
from stretto._engine.control.chunks import map_chunks, record_example
from stretto._engine.control.family import ControlFlow, cut
from stretto._engine.core.config import config, settings
from stretto._engine.core.interpreter import Linear, Value, state
from stretto._engine.core.program import Equation, Program, Var
from stretto._engine.core.recorder import Recorder
from stretto._engine.core.types import ArrayType
from stretto._engine.plan.measured import fastest, fingerprint
from stretto._engine.plan.members import Decision, planned
from stretto._engine.plan.memory import chunk_within
from stretto._engine.plan.turns import CHOICES, operations
from stretto._engine.transforms.evaluate import evaluate, replay
from stretto._engine.transforms.jvp import Differentiator, jvp_program
from stretto._engine.transforms.linearize import apply_linear, linearize_program
from stretto._engine.transforms.simplify import drop_dead, restricted, used_inputs, with_inputs
from stretto._engine.transforms.transpose import transpose_program
from stretto._engine.transforms.vmap import AxisSize, vmap_flat, vmap_program

__all__ = ["Mapped", "map_members"]

_WORTH = 1 << 14
"""The number of products, of all members, from which on a choice is worth a second trace."""


_MOST_TRIED = 2_000
"""The number of equations up to which members are written out to be measured."""


class Mapped(ControlFlow):
    """Apply the program of one member to all, along axis 0 of the inputs that are ``over`` them."""

    member: Program
    size: int
    over: tuple[bool, ...]
    form: str
    """What ``config.plan`` was where it was traced."""
    only_compiled = True  # what it is for is the choice of how
    rollable = False  # the planner lays out what it holds

    def whole(self) -> Program:
        """The program for all members that the rules of ``vmap`` make."""
        every = (True,) * len(self.member.outputs)
        return vmap_program(self.member, self.size, self.over, every)[0]

    def plan(self) -> tuple[Program, list[Decision]]:
        """The program for all members in the form chosen, and the choices."""
        key = ("planned", self.size, self.over, self.form, settings.key)
        if key not in self.member.cache:
            name = self._measured() if self.form == "measure" else self.form
            self.member.cache[key] = planned(self.member, self.size, self.over, name)
        return self.member.cache[key]

    def _measured(self) -> str:
        """The plan that takes the least time, tried out unless that was done before."""
        names = ["auto", "batched", "in turn"]
        if self.size * len(self.member.equations) <= _MOST_TRIED:
            names.append("written out")
        candidates = {
            name: lambda name=name: planned(self.member, self.size, self.over, name)[0]
            for name in names
        }
        return fastest(fingerprint(self.member, f"{self.size} {self.over}"), candidates)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """The member's output types, with the axis of the members in front."""
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
        """Compiled, as products are that are worth a choice."""
        return not config.disable_jit

    def inlined(self) -> Program | None:
        """The program for all members."""
        return self.whole()

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """That of all members."""
        return self.size * self.member.work

    def trimmed(self, equation: Equation, needed: Sequence[bool]) -> Equation:
        """The same of the program of these outputs, with the operands that this reads."""
        member = restricted(self.member, needed)
        used = used_inputs(member)
        if not any([u and m for u, m in zip(used, self.over, strict=True)]):
            used = (True,) * len(used)  # one at least must have an axis of members
        if member is self.member and all(used):
            return equation
        over = [m for m, u in zip(self.over, used, strict=True) if u]
        return cut(equation, self._of(with_inputs(member, used), over), used, needed)

    def lower(self, b: Any, *operands: Any) -> Any:
        """The operations of the plan, written here."""
        return b.program(self.plan()[0], operands)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The same of the program of values and tangents."""
        if self._shares(t is not None for t in tangents):
            return Call(self.whole()).jvp(primals, tangents)
        program, mask = jvp_program(self.member, tuple(t is not None for t in tangents))
        moving = [t for t in tangents if t is not None]
        outs = self._of(program, (*self.over, *[True] * len(moving)))(*primals, *moving)
        given = iter(outs[len(mask) :])
        return outs[: len(mask)], [next(given) if m else None for m in mask]

    def linearize(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """The same of the values and residuals; a linear one for the tangents."""
        if self._shares(t is not None for t in tangents):
            return Call(self.whole()).linearize(primals, tangents)
        split = linearize_program(self.member, tuple(t is not None for t in tangents))
        count = len(split.active_out)
        primal = split.primal
        varying = _varying(primal, self.over)
        own = [i < count or v for i, v in enumerate(varying)]
        outs = iter(self._of(restricted(primal, own), self.over)(*primals))
        once = iter(evaluate(restricted(primal, [not o for o in own]), primals))
        results = [next(outs) if o else next(once) for o in own]
        given = iter(())
        if any(split.active_out):
            moving = [t for t in tangents if t is not None]
            linear = self._of(split.linear, (*[True] * len(moving), *own[count:]))
            given = iter(apply_linear(linear, *moving, *results[count:]))
        return results[:count], [next(given) if m else None for m in split.active_out]

    def transpose(self, cts: Any, *args: Any) -> Sequence[Any]:
        """The same of the transposed program."""
        linear = tuple(isinstance(a, Linear) for a in args)
        if self._shares(linear):
            return Call(self.whole()).transpose(cts, *args)
        active = tuple(ct is not None for ct in cts)
        program, mask = transpose_program(self.member, linear, active)
        known = [(a, m) for a, m, lin in zip(args, self.over, linear, strict=True) if not lin]
        given = [ct for ct in cts if ct is not None]
        over = (*[m for _, m in known], *[True] * len(given))
        outs = iter(self._of(program, over)(*[a for a, _ in known], *given))
        back = iter([next(outs) if m else None for m in mask])
        return [next(back) if is_linear else None for is_linear in linear]

    def _of(self, program: Program, over: Sequence[bool]) -> Mapped:
        return Mapped(program, self.size, tuple(over), self.form)

    def _shares(self, active: Iterable[bool]) -> bool:
        """Whether one of the inputs marked is the same for all members.

        Its tangent's cotangent is a sum over them, best taken inside the products.
        """
        return any(a and not m for a, m in zip(active, self.over, strict=True))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """That of a call of the program for all members."""
        return Call(self.whole()).vmap(size, args, axes)


def _varying(program: Program, over: Sequence[bool]) -> list[bool]:
    """Which outputs depend on the inputs that are marked."""
    moving: set[Any] = {v for v, m in zip(program.inputs, over, strict=True) if m}
    for equation in program.equations:
        if any([a in moving for a in equation.inputs]):
            moving.update(equation.outputs)
    return [a in moving for a in program.outputs]


def map_members(
    fun: Callable[..., Sequence[Value]],
    size: int,
    chunk: int | str,
    args: Sequence[Value],
    axes: Sequence[int | None],
    names: Sequence[str],
) -> tuple[list[Any], list[int | None]]:
    """As ``map_chunks``, but leaves what is worth a choice to the planner, where it is traced.

    A chunk that is ``"auto"`` holds as many members as the budget of memory.
    """
    if chunk == "auto":
        example = record_example(fun, args, axes, names, fun.__name__)
        chunk = chunk_within(example.program, len(example.xs), size)
    assert isinstance(chunk, int)
    recorder = _recorder()
    if recorder is None or not chunk >= size > 1 or isinstance(size, AxisSize):
        return map_chunks(fun, size, chunk, args, axes, names, _chunk)
    example = record_example(fun, args, axes, names, fun.__name__)
    program = drop_dead(example.program)
    mapped = (*[True] * len(example.xs), *[False] * len(example.held))
    values = [*example.xs, *example.held]
    if _worth(program, size):
        outs = Mapped(program, int(size), mapped, config.plan)(*values)
        return example.results([(o, 0) for o in outs])
    places = [0 if m else None for m in mapped]
    outs, found = vmap_flat(lambda *xs: replay(program, xs, recorder), size, values, places)
    return example.results(zip(outs, found, strict=True))


def _chunk(
    program: Program, size: int, mapped: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """As ``vmap_program``, with a mapped call in the program where that is worth it."""
    if not _worth(program, size):
        return vmap_program(program, size, mapped, force)
    operation = Mapped(program, size, mapped, config.plan)
    types = [
        t.with_shape((size, *t.shape)) if m else t
        for t, m in zip(program.in_types, mapped, strict=True)
    ]
    inputs = [Var(t) for t in types]
    outputs = [Var(t) for t in operation.infer(*types)]
    equation = Equation(operation, inputs, outputs)
    return Program(inputs, [equation], outputs, program.name), (True,) * len(outputs)


def _worth(program: Program, size: int) -> bool:
    """Whether there is a choice for this program of a member, and enough to gain by it."""
    asked = config.plan != "auto" or size * _choices(program) >= _WORTH
    return asked and size > 1 and bool(program.outputs) and not program.effects


def _recorder() -> Recorder | None:
    """The recorder that operations go to from here, at once or through derivatives."""
    interpreter = state.interpreter
    while isinstance(interpreter, Differentiator):
        interpreter = interpreter.parent
    return interpreter if type(interpreter) is Recorder else None


def _choices(program: Program) -> float:
    """The products of one member in operations that there is a choice for."""
    return sum(
        primitive.work([a.type for a in inputs], [v.type for v in outputs])
        for primitive, inputs, outputs in operations(program)
        if isinstance(primitive, CHOICES)
    )
