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

__all__ = ["backward", "transpose_program"]


def backward(
    program: Program, linear: Sequence[bool], known: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """The cotangents of the ``linear`` inputs (``None``: zero).

    ``known`` holds the values of the other inputs, in order; ``cotangents`` has one for each
    output, ``None`` for zero.
    """
    recorder = state.interpreter.recorder
    if recorder is None:
        return _backward(program, linear, known, cotangents, None)
    with standing(recorder) as here:
        return _backward(program, linear, known, cotangents, here)


def _backward(
    program: Program,
    linear: Sequence[bool],
    known: Sequence[Any],
    cotangents: Sequence[Any],
    here: standing | None,
) -> list[Any]:
    values, varying, pending = _known(program, linear, known, here)
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
        args = [ct]
        for a in equation.inputs:
            args.append(Linear(a.type) if a in varying else _read(values, a))
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
    return [sums.get(v) for v, is_linear in zip(program.inputs, linear, strict=True) if is_linear]


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
    return values, varying, pending


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
) -> tuple[Program, tuple[bool, ...]]:
    """The program that runs this one backwards.

    Its inputs are those of the program that are not ``linear``, then the cotangents of the
    ``active`` outputs. Its outputs are the cotangents of those linear inputs that get one or that
    ``force`` marks; the second result says which.
    """
    key = ("transpose", linear, active, force, settings.key)
    if key not in program.cache:
        fixed = [t for t, is_linear in zip(program.in_types, linear, strict=True) if not is_linear]
        varying = [t for t, is_linear in zip(program.in_types, linear, strict=True) if is_linear]
        outs = [t for t, a in zip(program.out_types, active, strict=True) if a]

        def fun(*values: Any) -> Any:
            known, nonzero = values[: len(fixed)], iter(values[len(fixed) :])
            cts = [next(nonzero) if a else None for a in active]
            back = backward(program, linear, known, cts)
            for i, t in enumerate(varying):
                if back[i] is None and force and force[i]:
                    back[i] = full(t.shape, 0, t.dtype)
            return [ct for ct in back if ct is not None], tuple(ct is not None for ct in back)

        program.cache[key] = record_closed(fun, [*fixed, *outs], f"transpose_{program.name}")
    return program.cache[key]
