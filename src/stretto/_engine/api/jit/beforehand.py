"""Captured arrays: equal ones are merged, and work on them alone is done once, before compiling.

A jitted function may compute with arrays from outside, or with counts, and no argument: a filter's
transform, a factor of a matrix, a table of positions. That is computed when a signature is first
run, and the results are passed to the program instead of the arrays. A NumPy array that is used
twice is captured twice, so equal ones are common.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any

from stretto._engine.autodiff.evaluate import evaluate
from stretto._engine.core.interpreter import state
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import used_inputs, with_inputs
from stretto._engine.core.threads import holding
from stretto._engine.core.types import bytes_of
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.elementwise import INTEGRAL, Elementwise
from stretto._engine.ops.iota import Constant
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.shape import Slice

_MOST_COMPARED = 1 << 20
"""The most bytes of an array that is compared with others."""

_MOST_BYTES = 1 << 22
"""The most bytes of a result that is larger than its operands."""

_MOST_KEPT = 1 << 26
"""The most bytes of all results together, which live as long as the signature."""

_VIEWS = (BroadcastInDim, Reshape, Slice, Transpose)
"""Operations that XLA does while reading, at no cost."""


def beforehand(program: Program, captured: Sequence[Any]) -> tuple[Program, Sequence[Any]]:
    """Give the program without work that depends on no argument, and the values of its last inputs.

    ``captured`` are the values of the last inputs of ``program``. The first inputs, the arguments,
    stay as they are.
    """
    if not captured and all([e.inputs for e in program.equations]):
        return program, captured
    steps = _worthwhile(_constant(program, len(captured)))
    if not steps:
        return program, captured
    done = set(steps)
    rest = [e for e in program.equations if e not in done]
    read = {a for e in rest for a in e.inputs}.union(program.outputs)
    results = [v for e in steps for v in e.outputs if v in read]
    if sum([bytes_of(v.type) for v in results]) > _MOST_KEPT:
        return program, captured
    own = len(program.inputs) - len(captured)
    outside = program.inputs[own:]
    first = Program(outside, steps, results, program.name)
    values = holding(state, "interpreter", EAGER, evaluate, first, captured)
    remaining = Program([*program.inputs, *results], rest, program.outputs, program.name)
    used = [*([True] * own), *used_inputs(remaining)[own:]]
    everything = [*captured, *values]
    kept = [x for x, u in zip(everything, used[own:], strict=True) if u]
    return with_inputs(remaining, used), kept


def with_equal_ones_merged(program: Program, captured: Sequence[Any]) -> Program:
    """Give the program, reading the first of equal captured arrays in place of all; same inputs."""
    outside = program.inputs[len(program.inputs) - len(captured) :]
    first: dict[Any, Var] = {}
    renamed: dict[Atom, Atom] = {}
    alike = Counter([v.type for v in outside])
    for v, value in zip(outside, captured, strict=True):
        if alike[v.type] > 1 and bytes_of(v.type) <= _MOST_COMPARED:
            same = first.setdefault((v.type, value.to_host().tobytes()), v)
            if same is not v:
                renamed[v] = same
    if not renamed:
        return program
    equations = [
        e
        if renamed.keys().isdisjoint(e.inputs)
        else Equation(e.primitive, [renamed.get(a, a) for a in e.inputs], e.outputs, e.place)
        for e in program.equations
    ]
    outputs = [renamed.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outputs, program.name)


def _constant(program: Program, captured: int) -> list[Equation]:
    """Return the equations that depend on no argument, with results small enough to keep."""
    known: set[Atom] = set(program.inputs[len(program.inputs) - captured :])
    constant = []
    for e in program.equations:
        if e.inputs and known.isdisjoint(e.inputs):
            continue
        if any([a not in known and type(a) is Var for a in e.inputs]):
            continue
        primitive: Any = e.primitive
        if primitive.effects or primitive.calls_python or primitive.holds_programs:
            continue
        if _size(e.outputs) <= max(_MOST_BYTES, _size(e.inputs)):
            known.update(e.outputs)
            constant.append(e)
    return constant


def _worthwhile(steps: Sequence[Equation]) -> list[Equation]:
    """Give the steps without final ones that are no slower than reading their results would be."""
    costs: dict[Atom, int] = {}  # bytes to read in order to compute each value while fused
    for e in steps:
        for v in e.outputs:
            fused = _fused(e) and not isinstance(e.primitive, Constant)
            inputs = [costs.get(a, bytes_of(a.type)) for a in set(e.inputs) if type(a) is Var]
            costs[v] = sum(inputs) if fused else bytes_of(v.type)
    read: set[Atom] = set()
    kept = []
    for e in reversed(steps):
        if read.isdisjoint(e.outputs) and _fused(e):
            (out,) = e.outputs
            if isinstance(e.primitive, (Constant, *_VIEWS)) or bytes_of(out.type) > costs[out]:
                continue
        read.update(e.inputs)
        kept.append(e)
    return kept[::-1]


def _fused(equation: Equation) -> bool:
    """Say if XLA fuses it into what reads the result."""
    primitive: Any = equation.primitive
    if not primitive.light or len(equation.outputs) != 1:
        return False
    if isinstance(primitive, Elementwise):
        return bool(primitive.accepts & INTEGRAL)
    types = [a.type for a in equation.inputs]
    outs = [v.type for v in equation.outputs]
    return primitive.work(types, outs) <= 4 * max([t.size for t in (*types, *outs)])


def _size(atoms: Iterable[Atom]) -> int:
    return sum([bytes_of(a.type) for a in atoms if type(a) is Var])
