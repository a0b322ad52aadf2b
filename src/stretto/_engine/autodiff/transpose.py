"""Transposition: run a linear program backwards.

Cotangents of the outputs flow back through the transpose rule of each equation, and are added where
a variable is used more than once. After ``linearize`` this is reverse differentiation;
``api/autodiff/derivatives`` puts the two together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.autodiff.masked import (
    Masked,
    add_masked,
    chosen,
    pass_back,
    put_together,
    shared_conditions,
    take_apart,
    under,
    with_conditions,
    with_zeros,
)
from stretto._engine.core.config import settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.interpreter import Linear, splat, state
from stretto._engine.core.position import Place, join_scopes, scope
from stretto._engine.core.program import Equation, Literal, Program
from stretto._engine.core.recorder import standing
from stretto._engine.core.threads import holding
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.comparison import full


def backward(
    program: Program, linear: Sequence[bool], known: Sequence[Any], cotangents: Sequence[Any]
) -> list[Any]:
    """Return the cotangents of the ``linear`` inputs (``None``: zero).

    ``known`` holds the values of the other inputs, in order; ``cotangents`` has one for each
    output, ``None`` for zero.
    """
    return masked_backward(program, linear, known, cotangents)


def masked_backward(
    program: Program,
    linear: Sequence[bool],
    known: Sequence[Any],
    cotangents: Sequence[Any],
    masked: Sequence[bool] = (),
    totals: Sequence[Any] = (),
) -> list[Any]:
    """Run backwards, with cotangents that may be ``Masked``.

    ``masked`` marks the linear inputs whose own may be; empty, it marks none. ``totals``, if given,
    has for each linear input what its cotangent is added to, or ``None``.
    """
    recorder = state.interpreter.recorder
    if recorder is None:
        return _backward(program, linear, known, cotangents, masked, totals, None)
    with standing(recorder) as here:
        return _backward(program, linear, known, cotangents, masked, totals, here)


def _backward(
    program: Program,
    linear: Sequence[bool],
    known: Sequence[Any],
    cotangents: Sequence[Any],
    masked: Sequence[bool],
    totals: Sequence[Any],
    here: standing | None,
) -> list[Any]:
    values, varying, pending = _split_known(program, linear, known, here)
    inputs = [v for v, is_linear in zip(program.inputs, linear, strict=True) if is_linear]
    starts = {v: t for v, t in zip(inputs, totals, strict=bool(totals)) if t is not None}
    last = {v for v, m in zip(inputs, masked or (False,) * len(inputs), strict=True) if not m}
    sums: dict[Any, Any] = {}
    for atom, ct in zip(program.outputs, cotangents, strict=True):
        _accumulate(sums, varying, (atom,), (ct,))
    always = _at_zero(program, cotangents, pending)
    for equation in reversed(pending):
        primitive = equation.primitive
        if primitive.multiple:
            ct = [sums.pop(v, None) for v in equation.outputs]
            is_zero = all([part is None for part in ct])
        else:
            ct = sums.pop(equation.outputs[0], None)
            is_zero = ct is None
        if is_zero and id(equation) not in always:
            continue
        takes = primitive.takes_masked
        args: list[Any] = [
            Linear(a.type, None, takes and a not in last) if a in varying else _read(values, a)
            for a in equation.inputs
        ]
        for i in primitive.accumulates:
            if equation.inputs[i] in varying:
                so_far = with_zeros(_so_far(sums, starts, equation.inputs[i]))
                args[i] = Linear(args[i].type, so_far)
        back = _transpose(equation, varying, args, here, ct)
        _accumulate(sums, varying, equation.inputs, back)
    out = [_so_far(sums, starts, v) for v in inputs]
    return [with_zeros(ct) if v in last else ct for v, ct in zip(inputs, out, strict=True)]


def _so_far(sums: dict[Any, Any], starts: dict[Any, Any], atom: Any) -> Any:
    """Return the sum of an atom's cotangents, with what it is added to; no longer in the tables."""
    start, ct = starts.pop(atom, None), sums.pop(atom, None)
    return ct if start is None else start if ct is None else ADD(start, with_zeros(ct))


def _transpose(
    equation: Equation, varying: set[Any], args: Sequence[Any], here: standing | None, ct: Any
) -> Sequence[Any]:
    """Return the arguments' cotangents, some masked, from that of the output, or those of all."""
    primitive: Any = equation.primitive
    if primitive.picks:
        parts = zip(args, primitive.picks, strict=True)
        return [chosen(ct, args[0], p) if a.__class__ is Linear else None for a, p in parts]
    summed = [a.__class__ is Linear and a.so_far is not None for a in args]
    if ct.__class__ is Masked and any(summed):  # the sum so far is under no condition
        ct = with_zeros(ct)
    if ct.__class__ is Masked and not primitive.hands_on:
        rule = functools.partial(_back, equation, args, here)
        return pass_back(
            primitive, rule, ct, args, primitive.keeps_zeros or _scales(equation, varying)
        )
    if not primitive.multiple:
        return _back(equation, args, here, ct)
    if primitive.keeps_zeros:  # the outputs are the operands, one by one
        parts = take_apart(ct)
        values = iter(parts.values)
        back = _back(equation, args, here, [None if part is None else next(values) for part in ct])
        again = iter(put_together(parts.form, [v for v in back if v is not None], parts.arrays))
        return [None if v is None else next(again) for v in back]
    takes = primitive.takes_masked
    conditions = shared_conditions(ct)
    back = _back(equation, args, here, ct if takes else [with_zeros(part) for part in ct])
    if not conditions:
        return back
    plain = [
        v is not None and v.__class__ is not Masked and not s
        for v, s in zip(back, summed, strict=True)
    ]
    return [under(v, conditions, takes) if p else v for v, p in zip(back, plain, strict=True)]


def _back(equation: Equation, args: Sequence[Any], here: standing | None, ct: Any) -> Sequence[Any]:
    """Return the cotangents of the arguments, from that of the output, a value."""
    primitive, place = equation.primitive, equation.place
    rule, args = primitive.transpose, [ct, *args]
    try:
        if place is not None and (place[2] or settings.key.debugged):
            path = join_scopes(scope.path, f"transpose({place[2]})")
            return holding(scope, "path", path, _run, primitive, rule, args, here, place)
        return _run(primitive, rule, args, here, place)
    except NonFiniteError as error:
        error.fault.going_back(place)
        raise


def _scales(equation: Equation, varying: set[Any]) -> bool:
    """Say if all that its other operands hold is finite numbers other than 0."""
    known: list[Any] = [a for a in equation.inputs if a not in varying]
    return all([a.__class__ is Literal and a.value and np.isfinite(a.value) for a in known])


def _at_zero(
    program: Program, cotangents: Sequence[Any], pending: Sequence[Equation]
) -> frozenset[int]:
    """Return the ``id`` of each equation that is transposed even if its cotangents are zero.

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
            sums[atom] = ct if sum_so_far is None else add_masked(sum_so_far, ct)


def _split_known(
    program: Program, linear: Sequence[bool], known: Sequence[Any], here: standing | None
) -> tuple[dict[Any, Any], set[Any], list[Equation]]:
    """Return the values that depend on no linear input, the variables that do, their equations."""
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
    """Return the equations, with each that accumulates as soon as what it reads is there.

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
    """Return the value of an atom; that of a literal is made when it is first read."""
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
    """Return the program that runs this one backwards.

    Its inputs are those of the program that are not ``linear``, then the cotangents of the
    ``active`` outputs, then sums for those linear inputs that ``onto`` marks, to which it adds
    their cotangents. Its outputs are the cotangents of those linear inputs that get one or that
    ``force`` marks; the second result says which.
    """
    back, mask, _ = masked_transpose(program, linear, active, force, onto)
    return back, mask


class Masks(NamedTuple):
    """The conditions that a program which is run backwards meets at its ends."""

    given: tuple[Any, ...] = ()
    """The form of the cotangents given; see ``Apart``."""
    types: tuple[ArrayType, ...] = ()
    """The types of the arrays of their conditions."""
    open: tuple[bool, ...] = ()
    """The linear inputs whose cotangents may be masked."""
    more: bool = False
    """True if arrays of conditions that the program makes itself are outputs, after the others."""


_NO_MASKS = Masks()


def masked_transpose(
    program: Program,
    linear: tuple[bool, ...],
    active: tuple[bool, ...],
    force: tuple[bool, ...] | None = None,
    onto: tuple[bool, ...] | None = None,
    masks: Masks = _NO_MASKS,
) -> tuple[Program, tuple[bool, ...], list[Any]]:
    """Transpose a program, with inputs for the arrays of conditions after all others.

    The third result has, for each cotangent, its form, with places among the inputs that are not
    cotangents, and then among the outputs that are not.
    """
    key = ("transpose", linear, active, force, onto, masks, settings.key)
    if key not in program.cache:
        fixed = [t for t, is_linear in zip(program.in_types, linear, strict=True) if not is_linear]
        varying = [t for t, is_linear in zip(program.in_types, linear, strict=True) if is_linear]
        outs = [t for t, a in zip(program.out_types, active, strict=True) if a]
        added = onto or (False,) * len(varying)
        onto_types = [t for t, m in zip(varying, added, strict=True) if m]

        def fun(*values: Any) -> Any:
            sizes = len(fixed), len(outs), len(onto_types)
            known, given, sums, arrays = _split(values, *sizes)
            form = masks.given or ((True, ()),) * len(outs)
            nonzero, start = iter(put_together(form, given, arrays)), iter(sums)
            cts = [next(nonzero) if a else None for a in active]
            totals = [next(start) if m else None for m in added]
            back = masked_backward(program, linear, known, cts, masks.open, totals)
            for i, t in enumerate(varying):
                if back[i] is None and force and force[i]:
                    back[i] = full(t.shape, 0, t.dtype)
            own: list[Any] = []
            more = own if masks.more else None
            kept = [with_conditions(ct, [*known, *arrays], more) for ct in back if ct is not None]
            mask = tuple(ct is not None for ct in back)
            return [*(ct for ct, _ in kept), *own], (mask, [how for _, how in kept])

        types = [*fixed, *outs, *onto_types, *masks.types]
        back, extra = record_closed(fun, types, f"transpose_{program.name}")
        program.cache[key] = back, *extra
    return program.cache[key]


def open_cotangents(
    programs: Sequence[Program], linear: tuple[bool, ...], active: tuple[bool, ...], masks: Masks
) -> tuple[Masks, list[Any]]:
    """Return the cotangents that may be masked where one of several programs is run, and forms.

    Only those that one program alone gives are: where it is not run they are zero.
    """
    each = []
    for program in programs:
        _, mask, forms = masked_transpose(program, linear, active, None, None, masks)
        found = iter(forms)
        each.append([next(found) if m else None for m in mask])
    out, is_open = [], []
    for forms, asked in zip(zip(*each, strict=True), masks.open, strict=True):
        own = [form for form in forms if form is not None]
        is_open.append(asked and len(own) == 1)
        out.append(own[0] if is_open[-1] else (True, ()))
    if not masks.types and not any(is_open):
        return _NO_MASKS, out
    return masks._replace(open=tuple(is_open)), out


def transpose_call(
    program: Program,
    cts: Sequence[Any],
    args: Sequence[Any],
    run: Callable[..., Sequence[Any]],
    over: Sequence[bool] | None = None,
) -> list[Any]:
    """Return the cotangents of the arguments that this program is called with.

    Those of its outputs, and of arguments that allow it, may be masked. ``run(program, values)``
    calls the program that runs it backwards. With ``over`` the program is for one row, ``over``
    says which arguments have a first axis of rows, and ``run`` gets the same for its values.
    """
    linear = tuple([a.__class__ is Linear for a in args])
    known = [a for a in args if a.__class__ is not Linear]
    given = take_apart(cts, over is not None)
    asked = tuple([a.masked for a in args if a.__class__ is Linear])
    masks = Masks(given.form, given.types, asked, any(asked))
    if not given.arrays and not masks.more:
        masks = _NO_MASKS
    active = tuple([ct is not None for ct in cts])
    totals = [a.so_far for a in args if a.__class__ is Linear]
    onto = tuple([t is not None for t in totals])
    back, mask, moved = masked_transpose(program, linear, active, None, onto, masks)
    moving = [*given.values, *[t for t in totals if t is not None]]
    values, rows = [*known, *moving, *given.arrays], None
    if over is None:
        outs = run(back, values)
    else:
        mine = [o for o, is_linear in zip(over, linear, strict=True) if not is_linear]
        rows = [*mine, *given.rows]
        outs = run(back, values, [*mine, *(True,) * len(moving), *given.rows])
    more = outs[len(moved) :]
    rows = rows and [*rows, *(True,) * len(more)]
    found = iter(put_together(moved, outs[: len(moved)], [*known, *given.arrays, *more], rows))
    each = iter([next(found) if m else None for m in mask])
    return [next(each) if is_linear else None for is_linear in linear]


def _split(values: Sequence[Any], *sizes: int) -> list[Sequence[Any]]:
    """Return consecutive parts with these sizes, then the rest."""
    parts, start = [], 0
    for size in sizes:
        parts.append(values[start : start + size])
        start += size
    return [*parts, values[start:]]


def parts_read(program: Program) -> tuple[bool, ...]:
    """Find the inputs that some equation reads a part of; looked up once."""
    found = program.cache.get("parts")
    if found is None:
        atoms = {e.inputs[i] for e in program.equations for i in e.primitive.accumulates}
        found = program.cache["parts"] = tuple([v in atoms for v in program.inputs])
    return found
