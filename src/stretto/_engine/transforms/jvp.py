"""Forward differentiation: each value travels with its tangent.

Layer 3 (transforms). A ``Dual`` pairs a value with its tangent, and the jvp rule of each primitive
maps duals to duals. A value that does not depend on the variables has no tangent and is not
wrapped, so the operations on it are handed on and done once. Next, read ``linearize``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.core.config import settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Form, Interpreter, Tracer, Value, state
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import standing
from stretto._engine.core.scope import joined, scope
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.transforms.closed import record_closed
from stretto._engine.transforms.evaluate import evaluate

__all__ = ["Differentiator", "Dual", "instantiate", "jvp_flat", "jvp_program"]


class _Pending:
    """A tangent that is computed when it is asked for, by the form in which the value was made."""

    __slots__ = ("form",)

    def __init__(self, form: Any) -> None:
        self.form = form


class Dual(Tracer):
    """A value and its tangent, which has the same shape and dtype.

    ``made`` is how a value was made of the factors of a matrix, if it was; its tangent is then
    computed when it is asked for (``ops/linalg/invariants``).
    """

    __slots__ = ("_form", "made", "primal", "tangent")

    def __init__(
        self, interpreter: Differentiator, primal: Value, tangent: Any, form: Any = None
    ) -> None:
        self._form = form
        self.interpreter = interpreter
        self.primal = primal
        self.tangent = tangent
        self.type = primal.type
        self.made = tangent.form if tangent.__class__ is _Pending else None

    position = None  # type: ignore[assignment]

    def origin(self) -> str:
        """Where the primal value comes from."""
        if isinstance(self.primal, Tracer):
            return self.primal.origin()
        return "a value being differentiated"

    def concrete(self) -> Any:
        """The primal value if it is concrete: Python may branch on it."""
        return self.primal.concrete() if isinstance(self.primal, Tracer) else self.primal


class Differentiator(Interpreter):
    """Applies jvp rules; ``rules`` is the interpreter under which they run.

    For ``jvp`` that is the interpreter that the transformation was called under. For ``linearize``
    it is one that hands on what depends on primals alone and records what depends on tangents. If
    the function is known to be ``linear``, the user's own forward rules are not called.
    """

    __slots__ = ("ended", "parent", "recorder", "rule", "rules")
    maps = "differentiated"
    instead = (
        "write stretto.lax.stop_gradient of it, or make the reference inside of the function and "
        "return its value"
    )

    def __init__(self, rules: Interpreter | None = None, linear: bool = False) -> None:
        self.parent = state.interpreter
        self.rules = self.parent if rules is None else rules
        self.recorder = self.parent.recorder
        self.rule = "jvp" if rules is None else "linear_parts" if linear else "linearize"
        self.ended = False

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Apply the jvp rule if any argument is a dual; otherwise hand the operation on."""
        primals, tangents, active, factored = [], [], False, False
        for a in args:
            if a.__class__ is Dual and a.interpreter is self:
                active = True
                factored = factored or a.made is not None
                primals.append(a.primal)
                tangents.append(a.tangent)
            else:
                primals.append(a)
                tangents.append(None)
        if not active:
            return self.parent.process(primitive, args)
        if factored:
            return self._of_factors(primitive, args)
        rule = primitive.formed
        form = rule(*args) if rule is not None and settings.key.stable else None
        if form is not None and form.__class__ is not Form:
            return form
        outer = state.interpreter
        try:
            state.interpreter = self.rules
            # Only operations that hold programs have their own rule for linearization. They may
            # also call functions of the user's, so their equations do not share one place.
            if primitive.holds_programs:
                out, tangent = getattr(primitive, self.rule)(primals, tangents)
            elif primitive.has_factors:
                out, tangent = self._factors(primitive, primals, tangents)
            else:
                jvp = _scoped(primitive) if settings.key.debugged else primitive.jvp
                out, tangent = self._placed(jvp, primals, tangents)
        except NonFiniteError as error:
            error.fault.within_rule(primitive.name)
            raise
        finally:
            state.interpreter = outer
        if primitive.multiple:
            return tuple([self.wrap(o, t) for o, t in zip(out, tangent, strict=True)])
        return self.wrap(out, tangent, form)

    def _factors(self, primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """The factors of a matrix, whose tangents are computed when they are asked for."""
        outs, forms = self._placed(primitive.factored, primals, tangents)
        return outs, [_Pending(form) for form in forms]

    def _placed(self, rule: Callable[..., Any], *args: Any) -> Any:
        """What the rule gives; what it records has one place."""
        if self.recorder is None:
            return rule(*args)
        with standing(self.recorder):
            return rule(*args)

    def _of_factors(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Apply an operation to values made of factors: by their forms, or by their tangents."""
        forms: list[Any] = []
        primals: list[Any] = []
        tangents: list[Any] = []
        for a in args:
            own = a.__class__ is Dual and a.interpreter is self
            primals.append(a.primal if own else a)
            forms.append(a.made if own else None)
            tangents.append(a.tangent if own else None)
        first = next(form for form in forms if form is not None)
        if not primitive.multiple:
            outer = state.interpreter
            try:
                state.interpreter = self.rules
                made = self._placed(first.through, primitive, primals, forms, tangents)
            finally:
                state.interpreter = outer
            if made is not None:
                primal, form, tangent = made
                if form is not None:  # also of what has no tangent, such as a comparison
                    return Dual(self, primal, _Pending(form))
                return self.wrap(primal, tangent)
        return self.process(primitive, [self._plain(a) for a in args])

    def _plain(self, value: Any) -> Any:
        """The value with its tangent, and no form."""
        if value.__class__ is not Dual or value.interpreter is not self or value.made is None:
            return value
        if value.tangent.__class__ is _Pending:
            outer = state.interpreter
            try:
                state.interpreter = self.rules
                tangent = value.made.tangent
                if settings.key.debugged:
                    path = joined(scope.path, f"jvp({value.made.described})")
                    tangent = functools.partial(holding, scope, "path", path, tangent)
                value.tangent = self._placed(tangent)
            finally:
                state.interpreter = outer
        return self.wrap(value.primal, value.tangent)

    def run(self, fun: Callable[..., Any], duals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """The values that ``fun`` returns for these under this interpreter, and their tangents."""
        try:
            return holding(state, "interpreter", self, self._unwrapped, fun, duals)
        finally:
            self.ended = True

    def _unwrapped(self, fun: Callable[..., Any], duals: Sequence[Any]) -> Any:
        outs, douts = [], []
        for o in fun(*duals):
            primal, tangent = self.unwrap(o)
            outs.append(primal)
            douts.append(tangent)
        return outs, douts

    def wrap(self, primal: Any, tangent: Any, form: Any = None) -> Any:
        """A dual; the value alone if the tangent is zero, or the dtype has no derivative."""
        if tangent is None or primal.type.kind not in ("float", "complex"):
            return primal
        return Dual(self, primal, tangent, form)

    def unwrap(self, value: Any) -> tuple[Any, Any]:
        """A value and its tangent, ``None`` for zero."""
        if type(value) is Dual and value.interpreter is self:
            if value.made is not None:
                plain = self._plain(value)
                return (plain.primal, plain.tangent) if plain.__class__ is Dual else (plain, None)
            return value.primal, value.tangent
        return value, None


def _scoped(primitive: Any) -> Callable[..., Any]:
    """The jvp rule, recorded in a scope of its name, for finding faults."""
    path = joined(scope.path, f"jvp({primitive.name})")
    return functools.partial(holding, scope, "path", path, primitive.jvp)


def jvp_flat(
    fun: Callable[..., Sequence[Value]], primals: Sequence[Value], tangents: Sequence[Any]
) -> tuple[list[Value], list[Any]]:
    """The outputs of ``fun``, and their tangents (``None``: zero); all lists are flat."""
    interpreter = Differentiator()
    interpreter.begin(fun)
    duals = [interpreter.wrap(p, t) for p, t in zip(primals, tangents, strict=True)]
    return interpreter.run(fun, duals)


def jvp_program(
    program: Program, active: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """The program that computes the outputs, then the tangents of those that have one.

    Its inputs are those of ``program``, then the tangents of the ``active`` ones. ``force`` marks
    outputs whose tangent must be there even if it is zero. The second result says which outputs
    have a tangent.
    """
    key = ("jvp", active, force, settings.key)
    if key not in program.cache:

        def fun(*values: Any) -> Any:
            primals, nonzero = values[: len(active)], iter(values[len(active) :])
            tangents = [next(nonzero) if a else None for a in active]
            outs, douts = jvp_flat(lambda *xs: evaluate(program, xs), primals, tangents)
            douts = instantiate(outs, douts, force)
            mask = tuple(t is not None for t in douts)
            return [*outs, *(t for t in douts if t is not None)], mask

        types = program.in_types
        extra = [t for t, a in zip(types, active, strict=True) if a]
        program.cache[key] = record_closed(fun, [*types, *extra], f"jvp_{program.name}")
    return program.cache[key]


def instantiate(
    values: Sequence[Any], tangents: Sequence[Any], force: Sequence[bool] | None
) -> list[Any]:
    """The tangents, with ``None`` replaced by an array of zeros where ``force`` asks for one."""
    must = force or (False,) * len(tangents)
    return [
        zeros_like(v) if t is None and f else t
        for v, t, f in zip(values, tangents, must, strict=True)
    ]
