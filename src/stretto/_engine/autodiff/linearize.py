"""Linearization: a function's value at a point, and its derivative there as a linear program.

The jvp rules run once, under an interpreter that sorts their operations. What depends on primals
alone is computed immediately; what involves tangents is recorded, and the primal values that it
needs become captured inputs, the residuals. For reverse differentiation the recorded program is
then run backwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.jvp import Differentiator
from stretto._engine.core.config import settings
from stretto._engine.core.interpreter import Value, state
from stretto._engine.core.position import Place, place, scope, scopes
from stretto._engine.core.program import Atom, Program, literal
from stretto._engine.core.recorder import Recorder, Traced
from stretto._engine.core.rewriting import remember
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import full


def _scope_alone() -> Place | None:
    """Return no place, except inside a named scope.

    Looking for the place takes time, and nobody reads these: the equations that get lowered are
    recorded when the linear program is evaluated or run backwards. Only the scope must be kept.
    """
    return place() if scopes.entered and scope.path else None


class _LinearRecorder(Recorder):
    """Records what involves tangents; hands the rest to the interpreter around it."""

    __slots__ = ()
    borrows = False
    maps = "differentiated"

    def __init__(self, types: Sequence[ArrayType]) -> None:
        super().__init__(types)
        self.locate = self._place if settings.key.debugged else _scope_alone

    def _place(self) -> Place | None:
        """Return the place of what the operation is the derivative of, for finding faults."""
        recorder = self.parent.recorder
        return place() if recorder is None else recorder.locate()

    @property
    def recorder(self) -> Any:
        """The recorder that the operations handed on end up in, if any."""
        return self.parent.recorder

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Record the operation if any argument is linear; otherwise hand it on."""
        for a in args:
            if a.__class__ is Traced and a.interpreter is self:
                if primitive.holds_programs:
                    return self._in_parts(primitive, args)
                return self.record(primitive, args)
        return self.parent.process(primitive, args)

    record = Recorder.process
    """Record an operation that is linear as a whole, as it is."""

    def _in_parts(self, primitive: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Give the outputs of an operation that holds programs, which a rule applied to tangents.

        For f(x, t), linear in t: the outputs that do not depend on t are those of f(x, 0); the
        others are the derivative of f at (x, 0) along t.
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
    """Apply a primitive that, as a whole, is linear in the tangents among its arguments.

    The ``linearize`` rules of operations that hold programs call this, so that the operation is
    recorded as it is instead of being split again.
    """
    interpreter = state.interpreter
    if type(interpreter) is _LinearRecorder:
        return interpreter.record(primitive, args)
    return primitive(*args)


class LinearMap(NamedTuple):
    """A linear program, with the values of those inputs that come after the tangents."""

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
    """Return the outputs, and the linear map from active inputs' tangents to active outputs'.

    ``linear`` promises that the function is linear in the active inputs.
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
    # A tangent that was not recorded does not depend on the input tangents, so it is zero.
    atoms = [t.atom if t.__class__ is Traced and t.interpreter is recorder else None for t in douts]
    program = Program(
        [*recorder.inputs, *recorder.captured_vars.values()],
        recorder.equations,
        [a for a in atoms if a is not None],
        "linear",
    )
    mask = tuple([a is not None for a in atoms])
    residuals = list(recorder.captured.values())
    if state.residuals is not None:
        state.residuals += residuals
    return outs, LinearMap(program, residuals, tuple(active), mask)


def taken_as_linear(program: Program) -> Program:
    """Mark the program as linear in whichever inputs it will be linearized with respect to."""

    def marked(program: Program) -> Program:
        copy = Program(program.inputs, program.equations, program.outputs, program.name)
        copy.cache["linear"] = True
        return copy

    return remember(program, "taken as linear", marked)


class Linearized(NamedTuple):
    """A program split into a primal and a linear half."""

    primal: Program
    """Computes the program's outputs, then the residuals."""
    linear: Program
    """Maps the tangents of active inputs, then the residuals, to the tangents of active outputs."""
    active_out: tuple[bool, ...]

    @property
    def residual_types(self) -> tuple[ArrayType, ...]:
        """The types of the residuals."""
        return self.primal.out_types[len(self.active_out) :]


def linearize_program(
    program: Program, active: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> Linearized:
    """Return the program split into one for values and residuals, and a linear one for tangents.

    ``active`` marks the inputs that have tangents; ``force`` marks outputs whose tangent must be
    there even if it is zero.
    """
    key = ("linearize", active, force, settings.key)
    if key not in program.cache:

        def fun(*primals: Any) -> Any:
            known = program.cache.get("linear", False)
            outs, linear = linearize_flat(lambda *xs: evaluate(program, xs), primals, active, known)
            return [*outs, *linear.residuals], linear

        primal, linear = record_closed(fun, program.in_types, program.name)
        mask, outputs = linear.active_out, iter(linear.program.outputs)
        must = force or (False,) * len(mask)
        atoms: list[Atom] = []
        for has_tangent, forced, out in zip(mask, must, program.outputs, strict=True):
            if has_tangent:
                atoms.append(next(outputs))
            elif forced:
                atoms.append(literal(0, out.type))
        linear_program = Program(
            linear.program.inputs, linear.program.equations, atoms, f"linear_{program.name}"
        )
        active_out = tuple(m or f for m, f in zip(mask, must, strict=True))
        program.cache[key] = Linearized(primal, linear_program, active_out)
    return program.cache[key]
