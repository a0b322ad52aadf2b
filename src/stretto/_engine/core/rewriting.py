"""Dead work: drop equations whose results nobody uses, and restrict programs to what is needed.

What is derived from a program here is cached with it (``remember``).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from stretto._engine.core.primitive import observable
from stretto._engine.core.program import Equation, Literal, Program, Var
from stretto._engine.core.types import ArrayType


def drop_dead(program: Program) -> Program:
    """Return the program without equations that have no effect and on which no output depends.

    Operations that hold programs are trimmed to the outputs that are needed and to the inputs that
    those need. Applying this twice changes nothing more.
    """
    needed: set[Any] = set(program.outputs)
    kept = []
    for equation in reversed(program.equations):
        primitive: Any = equation.primitive
        outputs = equation.outputs
        if primitive.holds_programs:
            mask = [v in needed for v in outputs]
            if not any(mask) and not observable(primitive.effects):
                continue
            equation = primitive.trimmed(equation, mask)
        elif len(outputs) == 1:
            if outputs[0] not in needed and not observable(primitive.effects):
                continue
        elif needed.isdisjoint(outputs) and not observable(primitive.effects):
            continue
        kept.append(equation)
        needed.update(equation.inputs)
    kept.reverse()
    return with_equations(program, kept)


def with_equations(program: Program, equations: Sequence[Equation]) -> Program:
    """Return the program with these equations; the same one if they are its own."""
    if list(equations) == list(program.equations):
        return program
    changed = Program(program.inputs, equations, program.outputs, program.name)
    if "noted" in program.cache:
        changed.cache["noted"] = program.cache["noted"]
    return changed


def holds_programs(program: Program) -> bool:
    """Say whether any of its operations holds a program; looked up once."""
    found = program.cache.get("holds")
    if found is None:
        found = any([e.primitive.holds_programs for e in program.equations])
        program.cache["holds"] = found
    return found


def written_out(program: Program, opened: Callable[[Equation], Program | None]) -> Program:
    """Return the program with the programs that ``opened`` gives for equations in their place."""
    known: dict[Any, Any] = {}
    equations: list[Equation] = []
    for e in program.equations:
        inner = opened(e)
        inputs = [known.get(a, a) for a in e.inputs] if known else e.inputs
        if inner is None:
            equations.append(Equation(e.primitive, inputs, e.outputs, e.place))
            continue
        own: dict[Any, Any] = dict(zip(inner.inputs, inputs, strict=True))
        for one in inner.equations:
            outputs = [Var(v.type) for v in one.outputs]
            reads = [own.get(a, a) for a in one.inputs]
            equations.append(Equation(one.primitive, reads, outputs, one.place))
            own.update(zip(one.outputs, outputs, strict=True))
        known.update({v: own.get(a, a) for v, a in zip(e.outputs, inner.outputs, strict=True)})
    outs = [known.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outs, program.name)


def types_made(program: Program) -> set[ArrayType]:
    """Return the types of what its operations give, which are few; looked up once."""
    types = program.cache.get("types")
    if types is None:
        types = program.cache["types"] = {v.type for e in program.equations for v in e.outputs}
    return types


def changed_inside(program: Program, change: Callable[[Program], Program]) -> Program:
    """Return the program with those changed that its ``rollable`` operations hold."""
    if not holds_programs(program):
        return program
    equations = []
    for e in program.equations:
        primitive: Any = e.primitive
        if primitive.holds_programs and primitive.rollable:
            inner = primitive.with_programs(change)
            if inner is not primitive:
                e = Equation(inner, e.inputs, e.outputs, e.place)
        equations.append(e)
    return with_equations(program, equations)


def in_order(program: Program, calls: Mapping[int, Equation]) -> list[Equation]:
    """Return the equations with calls in place of those at these places.

    Each comes after what it needs.
    """
    equations = program.equations
    maker: dict[Any, Equation] = {}
    for place, e in enumerate(equations):
        for v in e.outputs:
            maker[v] = calls.get(place, e)
    maker.update({v: call for call in calls.values() for v in call.outputs})
    written: dict[int, Equation] = {}  # by identity, in order

    def write(e: Equation) -> None:
        stack = [(e, iter(e.inputs))]
        while stack:
            top, inputs = stack[-1]
            for a in inputs:
                other = None if isinstance(a, Literal) else maker.get(a)
                if other is not None and id(other) not in written:
                    stack.append((other, iter(other.inputs)))
                    break
            else:
                stack.pop()
                written.setdefault(id(top), top)

    for place, e in enumerate(equations):
        call = calls.get(place, e)
        if id(call) not in written:
            write(call)
    return list(written.values())


def remember(program: Program, key: Any, derive: Callable[[Program], Program]) -> Program:
    """Return ``derive(program)``, computed once and cached with the program."""
    if key not in program.cache:
        derived = derive(program)
        # None stands for the program itself: holding itself, it would be freed by the garbage
        # collector only.
        program.cache[key] = None if derived is program else derived
    cached = program.cache[key]
    return program if cached is None else cached


def live(program: Program) -> Program:
    """Return the program without dead work; see ``drop_dead``."""
    result = remember(program, "live", drop_dead)
    result.cache["live"] = None  # it is its own live program: nothing is left to drop
    return result


def restrict(program: Program, wanted: Sequence[bool]) -> Program:
    """Return the program of the wanted outputs, and of what they need; its inputs are the same."""
    if all(wanted):
        return live(program)

    def without_others(program: Program) -> Program:
        outputs = [a for a, w in zip(program.outputs, wanted, strict=True) if w]
        return drop_dead(Program(program.inputs, program.equations, outputs, program.name))

    return remember(program, ("part", *wanted), without_others)


def with_inputs(program: Program, kept: Sequence[bool]) -> Program:
    """Return the program with only the ``kept`` inputs; it must not read the others."""
    if all(kept):
        return program

    def without_others(program: Program) -> Program:
        inputs = [v for v, k in zip(program.inputs, kept, strict=True) if k]
        return Program(inputs, program.equations, program.outputs, program.name)

    return remember(program, ("inputs", *kept), without_others)


def used_inputs(program: Program) -> tuple[bool, ...]:
    """Say which inputs an equation or an output reads."""
    used = program.cache.get("used")
    if used is None:
        needed = {a for e in program.equations for a in e.inputs}
        needed.update(program.outputs)
        used = program.cache["used"] = tuple([v in needed for v in program.inputs])
    return used


def depending(program: Program, inputs: Sequence[bool]) -> list[bool]:
    """Say which outputs depend on any of these inputs."""
    varying: set[Any] = {v for v, m in zip(program.inputs, inputs, strict=True) if m}
    for equation in program.equations:
        if not varying.isdisjoint(equation.inputs):
            varying.update(equation.outputs)
    return [a in varying for a in program.outputs]


def silence_effects(program: Program) -> Program:
    """Return the program for computing its values again, without what only has an effect.

    Operations with results stay, and those that hold programs hold silenced ones.
    """
    if not observable(program.effects):
        return program
    kept = []
    for e in program.equations:
        primitive: Any = e.primitive
        if primitive.holds_programs:
            primitive = primitive.with_programs(silence_effects)
        if primitive.holds_programs or e.outputs or not observable(primitive.effects):
            kept.append(Equation(primitive, e.inputs, e.outputs, e.place))
    return Program(program.inputs, kept, program.outputs, program.name)
