"""Run a program on values, operation by operation, under the current interpreter.

The current interpreter decides what happens: at rest the program is executed, under a recorder it
is written into another program, under a differentiator it is differentiated. That is how
transformations apply to programs.

``record_closed`` records a program that needs nothing from outside. What is derived from a program,
such as its derivative, is cached with it, so it must not depend on the call that first needed it.
The transformations of whole programs (``jvp_program``, ``transpose_program``, ...) record their
results so.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core.cells import refusing_cells
from stretto._engine.core.config import settings
from stretto._engine.core.errors import EscapedTracerError
from stretto._engine.core.interpreter import Tracer, constant, splat, state
from stretto._engine.core.position import join_scopes, scope
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import Recorder, record, standing, take_as_own
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.iota import Constant, Held


def standing_at(recorder: Recorder, equation: Equation, fun: Callable[..., Any], *args: Any) -> Any:
    """Return ``fun(*args)``; what it records gets the source place and scope of this equation."""
    place = equation.place
    path = join_scopes(scope.path, place[2] if place else "")
    with standing(recorder, place):
        return holding(scope, "path", path, fun, *args)


def replay(program: Program, args: Sequence[Any], recorder: Recorder) -> list[Any]:
    """Evaluate; what ``recorder`` records keeps the source places of the equations."""
    known = _literals(program)
    known.update(zip(program.inputs, args, strict=True))
    for equation in program.equations:
        values = [known[a] for a in equation.inputs]
        result = standing_at(recorder, equation, equation.primitive, *values)
        outs = result if equation.primitive.multiple else (result,)
        known.update(zip(equation.outputs, outs, strict=True))
    return [known[a] for a in program.outputs]


def evaluate(program: Program, args: Sequence[Any]) -> list[Any]:
    """Return the program's outputs for these arguments.

    Each operation runs in the named scope of its equation, inside that of the caller. While faults
    are looked for, what is recorded has the source places of the equations, too.
    """
    recorder = state.interpreter.recorder
    if recorder is not None:
        recorder.noted += program.cache.get("noted", ())
        if settings.key.debugged:
            return replay(program, args, recorder)
    known, (_, _, has_scopes) = _literals(program), _prepare(program)
    known.update(zip(program.inputs, args, strict=True))
    for equation in program.equations:
        primitive, place = equation.primitive, equation.place
        if has_scopes and place is not None and place[2]:
            path = join_scopes(scope.path, place[2])
            result = holding(scope, "path", path, primitive, *[known[a] for a in equation.inputs])
        else:
            result = primitive(*[known[a] for a in equation.inputs])
        if primitive.multiple:
            known.update(zip(equation.outputs, result, strict=True))
        else:
            known[equation.outputs[0]] = result
    return [known[a] for a in program.outputs]


def _literals(program: Program) -> dict[Atom, Any]:
    """Return the value of each literal in the program."""
    literals, varying, _ = _prepare(program)
    take_as_own(literals.values())
    known: dict[Atom, Any] = dict(literals)
    for a in varying:
        known[a] = splat(a.value, a.type)
    return known


def _prepare(program: Program) -> tuple[dict[Atom, Any], list[Literal], bool]:
    """Return the literals' values, those whose size varies, and whether an equation has a scope.

    Computed once, since a loop may run the program many times. The literals whose size varies are
    constants of the program that is being recorded, and so made each time.
    """
    prepared = program.cache.get("prepared")
    if prepared is None:
        atoms = [a for e in program.equations for a in e.inputs]
        literals = [a for a in (*atoms, *program.outputs) if type(a) is Literal]
        varying = [a for a in literals if a.type.varies]
        fixed: dict[Atom, Any] = {
            a: constant(a.array(), a.type.weak_type) for a in literals if not a.type.varies
        }
        has_scopes = any([e.place is not None and e.place[2] for e in program.equations])
        prepared = program.cache["prepared"] = fixed, varying, has_scopes
    return prepared


class Values(dict[Atom, Any]):
    """The values of a program's atoms while a changed version of it is recorded.

    Whoever changes it applies the equations one by one, those that stay by ``apply``.
    """

    def of(self, atom: Atom) -> Any:
        """Return the value of a variable, or that of a literal."""
        return splat(atom.value, atom.type) if isinstance(atom, Literal) else self[atom]

    def apply(self, equation: Equation) -> None:
        """Record the equation as it is, on the values of its operands."""
        args = [self.of(a) for a in equation.inputs]
        result = self.at(equation, lambda: equation.primitive(*args))
        outs = result if equation.primitive.multiple else (result,)
        self.update(zip(equation.outputs, outs, strict=True))

    def at(self, equation: Equation, fun: Callable[[], Any]) -> Any:
        """Call ``fun``, and have what it does recorded at the source place of the equation."""
        recorder = state.interpreter.recorder
        assert recorder is not None
        return standing_at(recorder, equation, fun)


def record_closed(
    fun: Callable[..., Any], types: Sequence[ArrayType], name: str, names: Sequence[str] = ()
) -> tuple[Program, Any]:
    """Trace ``fun`` as ``record`` does; captured arrays become constants, and dead work is dropped.

    ``names`` are what messages call the arguments.

    Raises ``EscapedTracerError`` if a traced value was captured.
    """
    program, extra, captured = record(refusing_cells(fun, name), types, names, name)
    if not captured:
        return drop_dead(program), extra
    constants = []
    for v, value in zip(program.inputs[len(types) :], captured, strict=True):
        if isinstance(value, Tracer):
            raise EscapedTracerError(
                f"{name}: a traced value from outside is used ({value.origin()}); pass "
                f"it to the function as an argument"
            )
        constants.append(Equation(Constant(Held(value.to_host(), value.type)), (), (v,)))
    inputs = program.inputs[: len(types)]
    whole = Program(inputs, [*constants, *program.equations], program.outputs, name)
    return drop_dead(whole), extra
