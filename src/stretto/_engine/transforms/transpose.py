"""Transposition: run a linear program backwards.

Layer 3 (transforms). Cotangents of the outputs flow back through the transpose rule of each
equation, and are added where a variable is used more than once. After ``linearize`` this is reverse
differentiation; ``api/derivatives`` puts the two together. Next, read ``vmap``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.config import settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.holding import holding
from stretto._engine.core.interpreter import Linear, splat, state
from stretto._engine.core.position import Place
from stretto._engine.core.program import Equation, Program
from stretto._engine.core.recorder import standing
from stretto._engine.core.scope import joined, scope
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.comparison import full
from stretto._engine.transforms.closed import record_closed

__all__ = ["accumulated", "backward", "parts_read", "transpose_program"]


def backward(
    program: Program,
    linear: Sequence[bool],
    known: Sequence[Any],
    cotangents: Sequence[Any],
    totals: Sequence[Any] = (),
) -> list[Any]:
    """The cotangents of the ``linear`` inputs (``None``: zero).

    ``known`` holds the values of the other inputs, in order; ``cotangents`` has one for each
    output, ``None`` for zero. ``totals``, if given, has for each linear input what its cotangent
    is added to, or ``None``.
    """
    recorder = state.interpreter.recorder
    if recorder is None:
        return _backward(program, linear, known, cotangents, totals, None)
    with standing(recorder) as here:
        return _backward(program, linear, known, cotangents, totals, here)


def _backward(
    program: Program,
    linear: Sequence[bool],
    known: Sequence[Any],
    cotangents: Sequence[Any],
    totals: Sequence[Any],
    here: standing | None,
) -> list[Any]:
    values, varying, pending = _known(program, linear, known, here)
    inputs = [v for v, is_linear in zip(program.inputs, linear, strict=True) if is_linear]
    starts = {v: t for v, t in zip(inputs, totals, strict=bool(totals)) if t is not None}
    sums: dict[Any, Any] = {}
    for atom, ct in zip(program.outputs, cotangents, strict=True):
        _accumulate(sums, varying, (atom,), (ct,))
    always = _at_zero(program, cotangents, pending)
    for equation in reversed(pending):
        primitive, place = equation.primitive, equation.place
        if primitive.multiple:
            ct = [sums.pop(v, None) for v in equation.outputs]
            is_zero = all([part is None for part in ct])
        else:
            ct = sums.pop(equation.outputs[0], None)
            is_zero = ct is None
        if is_zero and id(equation) not in always:
            continue
        args: list[Any] = [ct]
        for a in equation.inputs:
            args.append(Linear(a.type) if a in varying else _read(values, a))
        summed = [i for i in primitive.accumulates if equation.inputs[i] in varying]
        for i in summed:
            args[i + 1].so_far = _so_far(sums, starts, equation.inputs[i])
        try:
            if place is not None and (place[2] or settings.key.debugged):
                path = joined(scope.path, f"transpose({place[2]})")
                rule = primitive.transpose
                back = holding(scope, "path", path, _run, primitive, rule, args, here, place)
            else:
                back = _run(primitive, primitive.transpose, args, here, place)
        except NonFiniteError as error:
            error.fault.going_back(place)
            raise
        _accumulate(sums, varying, equation.inputs, back)
    return [_so_far(sums, starts, v) for v in inputs]


def _so_far(sums: dict[Any, Any], starts: dict[Any, Any], atom: Any) -> Any:
    """The sum of an atom's cotangents, with what it is added to; no longer in the tables."""
    start, ct = starts.pop(atom, None), sums.pop(atom, None)
    return ct if start is None else start if ct is None else ADD(start, ct)


def _at_zero(
    program: Program, cotangents: Sequence[Any], pending: Sequence[Equation]
) -> frozenset[int]:
    """The ``id`` of each equation that is transposed even if its cotangents are zero.

    The outputs depend on it, those that have a cotangent.
    """
    if not any([equation.primitive.backward_at_zero for equation in pending]):
        return frozenset()
    reached = {a for a, ct in zip(program.outputs, cotangents, strict=True) if ct is not None}
    found = []
    for equation in reversed(pending):
        if not reached.isdisjoint(equation.outputs):
            reached.update(equation.inputs)
            if equation.primitive.backward_at_zero:
                found.append(id(equation))
    return frozenset(found)


def _accumulate(
    sums: dict[Any, Any], varying: set[Any], atoms: Sequence[Any], cts: Sequence[Any]
) -> None:
    """Add these cotangents to the sums of those atoms that depend on a linear input."""
    for atom, ct in zip(atoms, cts, strict=True):
        if ct is not None and atom in varying:
            sum_so_far = sums.get(atom)
            sums[atom] = ct if sum_so_far is None else ADD(sum_so_far, ct)


def _known(
    program: Program, linear: Sequence[bool], known: Sequence[Any], here: standing | None
) -> tuple[dict[Any, Any], set[Any], list[Equation]]:
    """The values that depend on no linear input, the variables that do, and their equations."""
    values: dict[Any, Any] = {}
    varying: set[Any] = set()
    known_values = iter(known)
    for v, is_linear in zip(program.inputs, linear, strict=True):
        if is_linear:
            varying.add(v)
        else:
            values[v] = next(known_values)
    pending = []
    for equation in program.equations:
        if varying.isdisjoint(equation.inputs):
            primitive = equation.primitive
            args = [_read(values, a) for a in equation.inputs]
            result = _run(primitive, primitive, args, here, equation.place)
            outs = result if primitive.multiple else (result,)
            values.update(zip(equation.outputs, outs, strict=True))
        else:
            varying.update(equation.outputs)
            pending.append(equation)
    return values, varying, _early(pending, varying)


def _early(pending: list[Equation], varying: set[Any]) -> list[Equation]:
    """The equations, with each that accumulates as soon as what it reads is there.

    Backwards its turn then comes when the other readers of its operand have given their parts.
    """
    if not any([e.primitive.accumulates for e in pending]):
        return pending
    made: dict[Any, int] = {}
    order = []
    for i, e in enumerate(pending):
        at = i
        if e.primitive.accumulates:
            at = max([made.get(a, -1) for a in e.inputs if a in varying])
        made.update(dict.fromkeys(e.outputs, at))
        order.append((at, i))
    return [pending[i] for _, i in sorted(order)]


def _read(values: dict[Any, Any], atom: Any) -> Any:
    """The value of an atom; that of a literal is made when it is first read."""
    value = values.get(atom)
    if value is None:
        value = values[atom] = splat(atom.value, atom.type)
    return value


def _run(
    primitive: Any, rule: Any, args: Sequence[Any], here: standing | None, place: Place | None
) -> Any:
    """Apply a rule of the primitive.

    Its equations share the place ``here``, unless the rule may run a function of the user's; while
    faults are looked for, that of the equation.
    """
    if here is None or not primitive.holds_programs:
        if here is not None and place is not None and settings.key.debugged:
            with here.at(place):
                return rule(*args)
        return rule(*args)
    with here.apart():
        return rule(*args)


def transpose_program(
    program: Program,
    linear: tuple[bool, ...],
    active: tuple[bool, ...],
    force: tuple[bool, ...] | None = None,
    onto: tuple[bool, ...] | None = None,
) -> tuple[Program, tuple[bool, ...]]:
    """The program that runs this one backwards.

    Its inputs are those of the program that are not ``linear``, then the cotangents of the
    ``active`` outputs, then sums for those linear inputs that ``onto`` marks, to which it adds
    their cotangents. Its outputs are the cotangents of those linear inputs that get one or that
    ``force`` marks; the second result says which.
    """
    key = ("transpose", linear, active, force, onto, settings.key)
    if key not in program.cache:
        fixed = [t for t, is_linear in zip(program.in_types, linear, strict=True) if not is_linear]
        varying = [t for t, is_linear in zip(program.in_types, linear, strict=True) if is_linear]
        outs = [t for t, a in zip(program.out_types, active, strict=True) if a]
        added = onto or (False,) * len(varying)
        onto_types = [t for t, m in zip(varying, added, strict=True) if m]

        def fun(*values: Any) -> Any:
            known, rest = values[: len(fixed)], iter(values[len(fixed) :])
            cts = [next(rest) if a else None for a in active]
            totals = [next(rest) if m else None for m in added]
            back = backward(program, linear, known, cts, totals)
            for i, t in enumerate(varying):
                if back[i] is None and force and force[i]:
                    back[i] = full(t.shape, 0, t.dtype)
            return [ct for ct in back if ct is not None], tuple(ct is not None for ct in back)

        program.cache[key] = record_closed(
            fun, [*fixed, *outs, *onto_types], f"transpose_{program.name}"
        )
    return program.cache[key]


def parts_read(program: Program) -> tuple[bool, ...]:
    """Which inputs some equation reads a part of; looked up once."""
    found = program.cache.get("parts")
    if found is None:
        atoms = {e.inputs[i] for e in program.equations for i in e.primitive.accumulates}
        found = program.cache["parts"] = tuple([v in atoms for v in program.inputs])
    return found


def accumulated(arg: Linear, ct: Any) -> Any:
    """The sum so far of an argument's cotangents, with this one added."""
    so_far = arg.so_far
    return ct if so_far is None else so_far if ct is None else ADD(so_far, ct)
