"""Users' derivative rules as programs: traced to the order that is asked for, refused beyond.

A rule of ``custom_jvp``, ``custom_vjp`` or ``linear_call`` is a Python function, which no file
holds. So it is traced, for all arguments that may have a derivative, and the operation gets in its
place an object that runs the program. What such a rule computes may be differentiated once more,
and the rules of the operations in it are traced one time less: beyond the order that was asked for
there is a rule that refuses. Rules of ``vmap`` depend on the number of examples, and are refused.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.core.errors import ExportError, MissingRuleError, PerturbationError
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.rewriting import with_equations
from stretto._engine.core.types import ArrayType, is_inexact
from stretto._engine.higher_order.custom_derivatives import CustomJvp, CustomVjp
from stretto._engine.higher_order.custom_vmap import CustomVmap
from stretto._engine.higher_order.family import Call, or_zeros
from stretto._engine.higher_order.linear_call import LinearCall
from stretto._engine.higher_order.user_primitive import UserPrimitive


@dataclasses.dataclass(frozen=True, eq=False)
class RefusedRule:
    """A rule that a file does not have; ``words`` say why, and the way out."""

    words: str

    def __call__(self, *_: Any) -> Any:
        """Refuse."""
        raise MissingRuleError(self.words)


@dataclasses.dataclass(frozen=True, eq=False)
class JvpRule:
    """A rule of ``custom_jvp``: its program maps values and tangents to outputs and tangents.

    ``moving`` says which arguments have a tangent, ``varying`` which outputs.
    """

    name: str
    program: Program
    moving: tuple[bool, ...]
    varying: tuple[bool, ...]

    def __call__(self, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return outputs, and tangents or None."""
        _check_moving(self, tangents)
        given = _filled(primals, tangents, self.moving)
        outs = evaluate(self.program, [*primals, *given])
        douts = iter(outs[len(self.varying) :])
        return outs[: len(self.varying)], [next(douts) if v else None for v in self.varying]


@dataclasses.dataclass(frozen=True, eq=False)
class VjpRule:
    """A rule of ``custom_vjp``: one program for outputs and residuals, one for cotangents.

    The latter takes the residuals, and the cotangents of those of ``outs`` that are floating;
    ``given`` says which arguments it gives one for.
    """

    name: str
    forward: Program
    backward: Program
    moving: tuple[bool, ...]
    outs: tuple[ArrayType, ...]
    given: tuple[bool, ...]

    def __call__(self, primals: Sequence[Any], perturbed: Sequence[bool]) -> Any:
        """Return outputs, residuals, and the function of residuals and cotangents."""
        _check_moving(self, [True if p else None for p in perturbed])
        results = evaluate(self.forward, primals)
        floating = [is_inexact(t.dtype) for t in self.outs]

        def back(residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            filled = _filled(results, cts, floating)
            found = iter(evaluate(self.backward, [*residuals, *filled]))
            return [next(found) if g else None for g in self.given]

        return results[: len(self.outs)], results[len(self.outs) :], back


@dataclasses.dataclass(frozen=True, eq=False)
class BackwardRule:
    """The transpose of ``linear_call``: a program of residuals and the cotangents of ``outs``."""

    program: Program
    outs: tuple[ArrayType, ...]
    given: tuple[bool, ...]

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        """Return the cotangents of the linear operands, or None."""
        filled = [or_zeros(ct, t) for ct, t in zip(cts, self.outs, strict=True)]
        found = iter(evaluate(self.program, [*residuals, *filled]))
        return [next(found) if g else None for g in self.given]


RULES: tuple[type[Any], ...] = (RefusedRule, JvpRule, VjpRule, BackwardRule)
"""The rules that a file may have."""


def _filled(values: Sequence[Any], given: Sequence[Any], wanted: Sequence[bool]) -> list[Any]:
    """Return what is wanted of tangents or cotangents, with zeros like the values for None."""
    rows = zip(values, given, wanted, strict=False)
    return [or_zeros(t, x.type) for x, t, is_wanted in rows if is_wanted]


def _check_moving(rule: JvpRule | VjpRule, tangents: Sequence[Any]) -> None:
    for t, m in zip(tangents, rule.moving, strict=True):
        if t is not None and not m:
            raise PerturbationError(
                f"{rule.name} is differentiated by a value that it takes from outside, or that is "
                f"no number with a derivative, and its rule gives none by that"
            )


# Tracing


def with_rules(program: Program, order: int, caller: str) -> Program:
    """Return the program without Python functions: its rules are traced for so many derivatives.

    Raises ``ExportError`` for an operation of the user's own that cannot do without its functions.
    """
    return _Tracing(caller).program(program, order)


class _Tracing:
    """Replaces rules; each program is gone through once."""

    def __init__(self, caller: str) -> None:
        self._caller = caller
        self._known: dict[tuple[Program, int], Program] = {}

    def program(self, program: Program, order: int) -> Program:
        key = program, order
        if key not in self._known:
            self._known[key] = with_equations(
                program, [self._equation(e, order) for e in program.equations]
            )
        return self._known[key]

    def _equation(self, e: Equation, order: int) -> Equation:
        operation: Any = e.primitive
        if not operation.holds_programs:
            return e
        changed = self._operation(operation, [a.type for a in e.inputs], order)
        return Equation(changed, e.inputs, e.outputs, e.place)

    def _operation(self, operation: Any, types: Sequence[ArrayType], order: int) -> Any:
        if isinstance(operation, UserPrimitive):
            operation = self._of_users(operation)
        parameters = {name: getattr(operation, name) for name in operation._parameters}
        changed = {name: self._changed(x, order) for name, x in parameters.items()}
        if isinstance(operation, CustomJvp):
            changed["rule"] = self._rule(operation, operation.rule, order, self._jvp, types)
        elif isinstance(operation, CustomVjp):
            changed["rule"] = self._rule(operation, operation.rule, order, self._vjp, types)
        elif isinstance(operation, CustomVmap):
            changed["rule"] = operation.rule
            if not isinstance(operation.rule, RULES):
                changed["rule"] = RefusedRule(
                    f"{operation.program.name} has a rule of its own for vmap, which depends on "
                    f"the number of examples, so that no file has it: export the mapped function"
                )
        elif isinstance(operation, LinearCall):
            rule = operation.backward
            changed["backward"] = self._rule(operation, rule, order, self._backward, types)
        return operation if changed == parameters else type(operation)(**changed)

    def _changed(self, value: Any, order: int) -> Any:
        if isinstance(value, Program):
            return self.program(value, order)
        if isinstance(value, tuple) and value and isinstance(value[0], Program):
            return tuple([self.program(p, order) for p in value])
        return value

    def _of_users(self, operation: UserPrimitive) -> Any:
        """Return an operation of one's own as a call, with the jvp rule that it was given."""
        given = {"vmap", "transpose"} & operation.rules.given.keys()
        if given:
            raise ExportError(
                f"{self._caller}: {operation.rules.name} has a rule for {sorted(given)[0]} that is "
                f"a Python function, which no file has: export the function that it computes"
            )
        program = operation.traced()
        if operation.rules.derives("jvp"):
            return Call(program)
        return CustomJvp(program, operation.jvp)

    def _rule(
        self,
        operation: Any,
        rule: Any,
        order: int,
        trace: Callable[[Any, Sequence[ArrayType], int], Any],
        types: Sequence[ArrayType],
    ) -> Any:
        if isinstance(rule, RULES):  # of a file
            return rule
        name = operation.of if isinstance(operation, LinearCall) else operation.program.name
        if order == 0:
            return RefusedRule(
                f"{name} has derivative rules of its own, and was exported with fewer derivatives "
                f"than are taken: export it with a greater number, derivatives=2"
            )
        try:
            return trace(operation, types, order - 1)
        except Exception as error:
            return RefusedRule(
                f"{name} has a derivative rule of its own that could not be traced when it was "
                f"exported: {error}"
            )

    def _jvp(self, operation: CustomJvp, types: Sequence[ArrayType], order: int) -> JvpRule:
        count, name = len(types), operation.program.name

        def record(moving: Sequence[bool]) -> Any:
            def both(*xs: Any) -> Any:
                each = iter(xs[count:])
                tangents = [next(each) if m else None for m in moving]
                outs, douts = operation.rule(xs[:count], tangents)
                varying = tuple([d is not None for d in douts])
                return [*outs, *[d for d in douts if d is not None]], varying

            every = [*types, *[t for t, m in zip(types, moving, strict=True) if m]]
            return record_closed(both, every, name)

        (program, varying), moving = _with_moving(record, types)
        return JvpRule(name, self.program(program, order), moving, varying)

    def _vjp(self, operation: CustomVjp, types: Sequence[ArrayType], order: int) -> VjpRule:
        name = operation.program.name

        def record(moving: Sequence[bool]) -> Any:
            def both(*xs: Any) -> Any:
                outs, residuals, back = operation.rule(xs, moving)
                return [*outs, *residuals], back

            return record_closed(both, types, name)

        (forward, back), moving = _with_moving(record, types)
        count = len(operation.program.outputs)
        outs, residuals = forward.out_types[:count], forward.out_types[count:]
        floating = [is_inexact(t.dtype) for t in outs]

        def backward(*xs: Any) -> Any:
            each = iter(xs[len(residuals) :])
            cts = [next(each) if f else None for f in floating]
            return _those_given(back(xs[: len(residuals)], cts))

        every = [*residuals, *[t for t, f in zip(outs, floating, strict=True) if f]]
        program, given = record_closed(backward, every, f"backward_{name}")
        forward, program = self.program(forward, order), self.program(program, order)
        return VjpRule(name, forward, program, moving, outs, given)

    def _backward(
        self, operation: LinearCall, types: Sequence[ArrayType], order: int
    ) -> BackwardRule:
        residuals = types[operation.linear :]

        def backward(*xs: Any) -> Any:
            return _those_given(operation.backward(xs[: len(residuals)], xs[len(residuals) :]))

        program, given = record_closed(backward, [*residuals, *operation.outs], operation.of)
        return BackwardRule(self.program(program, order), operation.outs, given)


def _those_given(values: Sequence[Any]) -> tuple[list[Any], tuple[bool, ...]]:
    given = [v for v in values if v is not None]
    return given, tuple([v is not None for v in values])


def _with_moving(
    record: Callable[[Sequence[bool]], Any], types: Sequence[ArrayType]
) -> tuple[Any, tuple[bool, ...]]:
    """Return what is recorded for all arguments with derivatives, but those taken from outside."""
    moving = tuple([is_inexact(t.dtype) for t in types])
    try:
        return record(moving), moving
    except PerturbationError:
        moving = tuple([m and _moves(record, i, len(types)) for i, m in enumerate(moving)])
        return record(moving), moving


def _moves(record: Callable[[Sequence[bool]], Any], i: int, count: int) -> bool:
    try:
        record([k == i for k in range(count)])
    except PerturbationError:
        return False
    return True
