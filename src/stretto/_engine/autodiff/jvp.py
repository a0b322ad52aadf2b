"""Forward differentiation: each value travels with its tangent.

A ``Dual`` pairs a value with its tangent, and the jvp rule of each primitive maps duals to duals. A
value that does not depend on the variables has no tangent and is not wrapped, so the operations on
it are handed on and done once.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate, record_closed
from stretto._engine.autodiff.masked import (
    Masked,
    push_forward,
    put_together,
    take_apart,
    with_conditions,
    with_zeros,
)
from stretto._engine.core.config import settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.interpreter import Form, Interpreter, Tracer, Value, state
from stretto._engine.core.position import join_scopes, scope
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import standing
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.comparison import zeros_like


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
        """Say where the primal value comes from."""
        if isinstance(self.primal, Tracer):
            return self.primal.origin()
        return "a value being differentiated"

    def concrete(self) -> Any:
        """Return the primal value if it is concrete: Python may branch on it."""
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
        primals, tangents, active, factored, masked = [], [], False, False, False
        for a in args:
            if a.__class__ is Dual and a.interpreter is self:
                active = True
                factored = factored or a.made is not None
                primals.append(a.primal)
                tangents.append(a.tangent)
                masked = masked or a.tangent.__class__ is Masked
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
            rule = primitive.jvp
            if masked or primitive.holds_programs or primitive.has_factors or primitive.chooses:
                rule, tangents = self._rule(primitive, tangents, masked)
            elif settings.key.debugged:
                rule = _in_scope(primitive.name, rule)
            # Operations that hold programs may call functions of the user's, so their equations do
            # not share one place.
            placed = not primitive.holds_programs
            out, tangent = (
                self._placed(rule, primals, tangents) if placed else rule(primals, tangents)
            )
        except NonFiniteError as error:
            error.fault.within_rule(primitive.name)
            raise
        finally:
            state.interpreter = outer
        if primitive.multiple:
            return tuple([self.wrap(o, t) for o, t in zip(out, tangent, strict=True)])
        return self.wrap(out, tangent, form)

    def _factors(self, primitive: Any, primals: Sequence[Any], tangents: Sequence[Any]) -> Any:
        """Return the factors of a matrix, whose tangents are computed when they are asked for."""
        outs, forms = primitive.factored(primals, tangents)
        return outs, [_Pending(form) for form in forms]

    def _placed(self, rule: Callable[..., Any], *args: Any) -> Any:
        """Return what the rule gives; what it records has one source place."""
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
                tangents = [with_zeros(t) for t in tangents]
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
        """Return the value with its tangent, and no form."""
        if value.__class__ is not Dual or value.interpreter is not self or value.made is None:
            return value
        if value.tangent.__class__ is _Pending:
            outer = state.interpreter
            try:
                state.interpreter = self.rules
                tangent = value.made.tangent
                if settings.key.debugged:
                    path = join_scopes(scope.path, f"jvp({value.made.described})")
                    tangent = functools.partial(holding, scope, "path", path, tangent)
                value.tangent = self._placed(tangent)
            finally:
                state.interpreter = outer
        return self.wrap(value.primal, value.tangent)

    def _rule(
        self, primitive: Any, tangents: list[Any], masked: bool
    ) -> tuple[Callable[..., Any], list[Any]]:
        """Return the rule for this primitive, and the tangents that it takes."""
        if primitive.holds_programs:  # only these have their own rule for linearization
            if masked and not (primitive.pushes_masked and self.rule == "jvp"):
                tangents = [with_zeros(t) for t in tangents]
            return getattr(primitive, self.rule), tangents
        rule = functools.partial(push_forward, primitive)
        if primitive.multiple:
            rule, tangents = primitive.jvp, [with_zeros(t) for t in tangents]
        if primitive.has_factors:
            return functools.partial(self._factors, primitive), tangents
        return (_in_scope(primitive.name, rule) if settings.key.debugged else rule), tangents

    def run(self, fun: Callable[..., Any], duals: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        """Return the values that ``fun`` gives for these under this interpreter, and tangents."""
        try:
            return holding(state, "interpreter", self, self._unwrapped, fun, duals)
        finally:
            self.ended = True

    def _unwrapped(self, fun: Callable[..., Any], duals: Sequence[Any]) -> Any:
        outs, douts = [], []
        for o in fun(*duals):
            primal, tangent = self.unwrap(o)
            outs.append(primal)
            if tangent.__class__ is Masked and self.rules is not self.parent:
                tangent = holding(state, "interpreter", self.rules, tangent.with_zeros)
            douts.append(tangent)
        return outs, douts

    def wrap(self, primal: Any, tangent: Any, form: Any = None) -> Any:
        """Return a dual; the value alone if the tangent is zero, or the dtype has no derivative."""
        if tangent is None or primal.type.kind not in ("float", "complex"):
            return primal
        return Dual(self, primal, tangent, form)

    def unwrap(self, value: Any) -> tuple[Any, Any]:
        """Return a value and its tangent, ``None`` for zero."""
        if type(value) is Dual and value.interpreter is self:
            if value.made is not None:
                plain = self._plain(value)
                return (plain.primal, plain.tangent) if plain.__class__ is Dual else (plain, None)
            return value.primal, value.tangent
        return value, None


def _in_scope(name: str, jvp: Callable[..., Any]) -> Callable[..., Any]:
    """Return the jvp rule of a primitive, recorded in a scope of its name, for finding faults."""
    path = join_scopes(scope.path, f"jvp({name})")
    return functools.partial(holding, scope, "path", path, jvp)


def jvp_flat(
    fun: Callable[..., Sequence[Value]], primals: Sequence[Value], tangents: Sequence[Any]
) -> tuple[list[Value], list[Any]]:
    """Return the outputs of ``fun``, and their tangents (``None``: zero); all lists are flat."""
    outs, douts = _push(fun, primals, tangents)
    return outs, [with_zeros(t) for t in douts]


def _push(
    fun: Callable[..., Sequence[Value]], primals: Sequence[Value], tangents: Sequence[Any]
) -> tuple[list[Value], list[Any]]:
    """Return the same with tangents that may be masked."""
    interpreter = Differentiator()
    interpreter.begin(fun)
    duals = [interpreter.wrap(p, t) for p, t in zip(primals, tangents, strict=True)]
    return interpreter.run(fun, duals)


def jvp_program(
    program: Program, active: tuple[bool, ...], force: tuple[bool, ...] | None = None
) -> tuple[Program, tuple[bool, ...]]:
    """Return the program that computes the outputs, then the tangents of those that have one.

    Its inputs are those of ``program``, then the tangents of the ``active`` ones. ``force`` marks
    outputs whose tangent must be there even if it is zero. The second result says which outputs
    have a tangent.
    """
    return _jvp_program(program, active, force, (), (), False)[:2]


def _jvp_program(
    program: Program,
    active: tuple[bool, ...],
    force: tuple[bool, ...] | None,
    form: tuple[Any, ...],
    types: tuple[ArrayType, ...],
    open: bool,
) -> tuple[Program, tuple[bool, ...], list[Any]]:
    """Return the same for tangents of this form, whose conditions' arrays are the last inputs.

    If ``open``, tangents of outputs may be masked. The third result is their form, with
    places among the inputs that are not tangents, and then among the outputs after them.
    """
    key = ("jvp", active, force, form, types, open, settings.key)
    if key not in program.cache:
        own = program.in_types
        extra = [t for t, a in zip(own, active, strict=True) if a]

        def fun(*values: Any) -> Any:
            primals, given = values[: len(own)], values[len(own) :]
            given, arrays = given[: len(extra)], given[len(extra) :]
            nonzero = iter(put_together(form, given, arrays) if form else given)
            tangents = [next(nonzero) if a else None for a in active]
            outs, douts = _push(lambda *xs: evaluate(program, xs), primals, tangents)
            douts = instantiate(outs, [t if open else with_zeros(t) for t in douts], force)
            mask = tuple(t is not None for t in douts)
            more: list[Any] = []
            kept = [with_conditions(t, [*primals, *arrays], more) for t in douts if t is not None]
            return [*outs, *(t for t, _ in kept), *more], (mask, [how for _, how in kept])

        whole, extras = record_closed(fun, [*own, *extra, *types], f"jvp_{program.name}")
        program.cache[key] = whole, *extras
    return program.cache[key]


def jvp_call(
    program: Program,
    primals: Sequence[Any],
    tangents: Sequence[Any],
    run: Callable[..., Sequence[Any]],
    over: Sequence[bool] | None = None,
) -> tuple[Sequence[Any], list[Any]]:
    """Return what a program gives for these, and its tangents; they may be masked.

    ``run(program, values)`` calls the program of values and tangents. With ``over`` the program is
    for one row, ``over`` says which primals have a first axis of rows, and ``run`` gets the same
    for its values.
    """
    given = take_apart(tangents, over is not None)
    active = tuple([t is not None for t in tangents])
    form = given.form if given.arrays else ()
    whole, mask, forms = _jvp_program(program, active, None, form, given.types, True)
    values = [*primals, *given.values, *given.arrays]
    if over is None:
        outs, rows = run(whole, values), None
    else:
        outs = run(whole, values, [*over, *(True,) * len(given.values), *given.rows])
        rows = [*over, *given.rows]
    end = len(mask) + len(forms)
    more = outs[end:]
    rows = rows and [*rows, *(True,) * len(more)]
    arrays = [*primals, *given.arrays, *more]
    nonzero = iter(put_together(forms, outs[len(mask) : end], arrays, rows))
    return outs[: len(mask)], [next(nonzero) if m else None for m in mask]


def instantiate(
    values: Sequence[Any], tangents: Sequence[Any], force: Sequence[bool] | None
) -> list[Any]:
    """Return the tangents, with zeros in place of ``None`` where ``force`` asks for an array."""
    must = force or (False,) * len(tangents)
    return [
        zeros_like(v) if t is None and f else t
        for v, t, f in zip(values, tangents, must, strict=True)
    ]
