"""Linearisation: a function's value, and its derivative there as a linear program.

Layer 3 (transforms). The jvp rules run once. What they compute from primals alone is computed at
once; what involves tangents is recorded, with the primal values it needs as captured inputs (the
residuals). Next, read ``transpose``.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.config import settings
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.position import Place, place
from stretto._engine.core.program import Atom, Program, literal
from stretto._engine.core.recorder import Recorder, Traced
from stretto._engine.core.scope import scope, scopes
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import full
from stretto._engine.transforms.closed import record_closed
from stretto._engine.transforms.evaluate import evaluate
from stretto._engine.transforms.jvp import Differentiator
from stretto._engine.transforms.simplify import remembered

__all__ = [
    "LinearMap",
    "Linearized",
    "apply_linear",
    "linearize_flat",
    "linearize_program",
    "taken_as_linear",
]


def _scope_alone() -> Place | None:
    """Nowhere, but for a named scope: running these equations backwards gives those lowered."""
    return place() if scopes.entered and scope.path else None


class _LinearRecorder(Recorder):
    """Records what involves tangents; hands on the rest to the interpreter around it."""

    __slots__ = ("parent",)

    def __init__(self, types: Sequence[ArrayType]) -> None:
        super().__init__(types)
        self.parent = state.interpreter
        self.locate = _scope_alone

    @property
    def recorder(self) -> Any:
        """That of what it hands on."""
        return self.parent.recorder

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Record if any argument is linear, else hand on."""
        for a in args:
            if a.__class__ is Traced and a.interpreter is self:
                if primitive.holds_programs:
                    return self._in_parts(primitive, args)
                return self.record(primitive, args)
        return self.parent.process(primitive, args)

    record = Recorder.process
    """Record as it stands an operation that is linear as a whole."""

    def _in_parts(self, primitive: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Outputs of an operation that a rule applied to values and tangents together.

        f(x, t), linear in t: what does not depend on t is f(x, 0); the rest is the derivative of f
        at (x, 0) along t.
        """
        is_linear = [type(a) is Traced and a.interpreter is self for a in args]
        primals = [
            full(a.type.shape, 0, a.type.dtype, a.type.weak_type) if m else a
            for a, m in zip(args, is_linear, strict=True)
        ]
        tangents = [a if m else None for a, m in zip(args, is_linear, strict=True)]
        rule = primitive.linear_parts
        outs, moving = holding(state, "interpreter", self, rule, primals, tangents)
        return tuple([o if t is None else t for o, t in zip(outs, moving, strict=True)])


def apply_linear(primitive: Any, *args: Any) -> Any:
    """Apply a primitive that is linear as a whole in the tangents among its arguments.

    For the ``linearize`` rules of operations that hold programs.
    """
    interpreter = state.interpreter
    if type(interpreter) is _LinearRecorder:
        return interpreter.record(primitive, args)
    return primitive(*args)


class LinearMap(NamedTuple):
    """A linear program, with the values of its inputs after the tangents."""

    program: Program
    residuals: list[Value]
    active_in: tuple[bool, ...]
    active_out: tuple[bool, ...]


def linearize_flat(
    fun: Callable[..., Sequence[Value]],
    primals: Sequence[Value],
    active: Sequence[bool],
    linear: bool = False,
) -> tuple[list[Value], LinearMap]:
    """Outputs, and the linear map from tangents of the active inputs to those of active outputs.

    ``linear`` says that the function is linear in the active inputs.
    """
    types = [p.type for p, a in zip(primals, active, strict=True) if a]
    recorder = _LinearRecorder(types)
    interpreter = Differentiator(recorder, linear)
    interpreter.begin(fun)
    tangents = iter(recorder.inputs)
    duals = [
        interpreter.wrap(p, Traced(recorder, next(tangents))) if a else p
        for p, a in zip(primals, active, strict=True)
    ]
    try:
        outs, douts = interpreter.run(fun, duals)
    finally:
        recorder.ended = True
    # Only what was recorded is linear in the tangents; a constant is a known zero.
    atoms = [t.atom if t.__class__ is Traced and t.interpreter is recorder else None for t in douts]
    program = Program(
        [*recorder.inputs, *recorder.captured_vars.values()],
        recorder.equations,
        [a for a in atoms if a is not None],
        "linear",
    )
    mask = tuple([a is not None for a in atoms])
    residuals = list(recorder.captured.values())
    return outs, LinearMap(program, residuals, tuple(active), mask)


def taken_as_linear(program: Program) -> Program:
    """The program, of which it is known that it is linear in whatever it is linearized by."""

    def marked(program: Program) -> Program:
        made = Program(program.inputs, program.equations, program.outputs, program.name)
        made.cache["linear"] = True
        return made

    return remembered(program, "taken as linear", marked)


class Linearized(NamedTuple):
    """A program split in two."""

    primal: Program
    """Gives the program's outputs, then the residuals."""
    linear: Program
    """From the tangents of the active inputs, then the residuals, to those of active outputs."""
    active_out: tuple[bool, ...]

    @property
    def residual_types(self) -> tuple[ArrayType, ...]:
        """The types of the residuals."""
        return self.primal.out_types[len(self.active_out) :]


def linearize_program(
    program: Program, active: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> Linearized:
    """The program split into values with residuals, and the linear map of tangents.

    ``force`` marks outputs whose tangent must be given even where it is zero.
    """
    key = ("linearize", active, force, settings.key)
    if key not in program.cache:

        def fun(*primals: Any) -> Any:
            known = program.cache.get("linear", False)
            outs, linear = linearize_flat(lambda *xs: evaluate(program, xs), primals, active, known)
            return [*outs, *linear.residuals], linear

        made, linear = record_closed(fun, program.in_types, program.name)
        mask, outputs = linear.active_out, iter(linear.program.outputs)
        must = force or (False,) * len(mask)
        atoms: list[Atom] = []
        for given, forced, out in zip(mask, must, program.outputs, strict=True):
            if given:
                atoms.append(next(outputs))
            elif forced:
                atoms.append(literal(0, out.type))
        linear_program = Program(
            linear.program.inputs, linear.program.equations, atoms, f"linear_{program.name}"
        )
        active_out = tuple(g or f for g, f in zip(mask, must, strict=True))
        program.cache[key] = Linearized(made, linear_program, active_out)
    return program.cache[key]
