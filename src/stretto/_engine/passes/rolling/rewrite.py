"""Choose which of the repeated stretches become loops, and write these: a ``Scan`` for the copies.

Stretches are tried in order, the one that repeats most first. Each must form a loop by what its
copies are applied to (``operands``), and pay given the other loops (``profit``). If it does not,
what repeats inside it is tried instead.

Every variable that is read outside of a loop stays the same object. Outputs that another loop reads
copy by copy stay in one array, of which that loop takes slices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Equation, Literal, Program, Var, literal
from stretto._engine.core.rewriting import drop_dead
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.iota import Constant, Held
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.shape import Concatenate, Pad, Rev, Slice
from stretto._engine.passes.rolling.operands import (
    Carried,
    Counted,
    Given,
    Homes,
    Loop,
    Made,
    Source,
    Step,
    Still,
    loop_in,
    wired,
)
from stretto._engine.passes.rolling.profit import (
    Exchange,
    Gathered,
    Kept,
    Use,
    copies_per_iteration,
    exchange,
    gain,
    runs_as_fast,
    sources_of,
)
from stretto._engine.passes.rolling.roll_loops import LEAST_COPIES, Stretch

_MOST_TRIED = 4
"""So many other periods are tried if the first one does not give a loop."""


def with_loops(
    program: Program,
    candidates: Sequence[Stretch],
    tokens: np.ndarray,
    always: bool,
    inner: Callable[[Program, bool], Program],
) -> Program:
    """Return the program with loops made of these stretches.

    ``inner`` rolls loops in their bodies.
    """
    equations = program.equations
    homes: Homes = {v: (i, o) for i, e in enumerate(equations) for o, v in enumerate(e.outputs)}
    refused: set[tuple[int, int]] = set()
    read: dict[tuple[int, int, int], list[Loop]] = {}
    while True:
        loops: list[Loop] = []
        free = [True] * len(equations)
        for stretch in candidates:
            low, high = _clipped(stretch, free)
            if not all(free[low:high]):
                continue
            key = (low, high, stretch.period)
            if key not in read:
                read[key] = _loops(equations, *key, homes, tokens)
            for loop in read[key]:
                if (loop.start, loop.period) not in refused:
                    loops.append(loop)
                    free[loop.start : loop.end] = [False] * (loop.end - loop.start)
        if not loops:
            return program
        loops.sort(key=lambda loop: loop.start)
        exchanged = exchange(program, loops, homes)
        worse = [] if always else _worse(loops, exchanged, homes)
        if not worse:
            return write_loops(program, loops, exchanged, lambda body: inner(body, always))
        refused.update([(loop.start, loop.period) for loop in worse])


def _worse(loops: Sequence[Loop], exchanged: Exchange, homes: Homes) -> list[Loop]:
    """Return the loops that are not worth it.

    Gains of linked loops are added up: without one of them, the others would have to take their
    stacks apart.
    """
    group = {id(loop): id(loop) for loop in loops}

    def root(loop: Loop) -> int:
        at = id(loop)
        while group[at] != at:
            at = group[at]
        return at

    for loop in loops:
        for link in exchanged.uses[id(loop)].links.values():
            group[root(loop)] = root(link.loop)
    gains: dict[int, float] = {}
    for loop in loops:
        gains[root(loop)] = gains.get(root(loop), 0.0) + gain(loop, exchanged.uses[id(loop)])
    slow = [loop for loop in loops if not runs_as_fast(loop, exchanged.uses[id(loop)], homes)]
    return slow or [loop for loop in loops if gains[root(loop)] < 0]


def _loops(
    equations: Sequence[Equation],
    low: int,
    high: int,
    period: int,
    homes: Homes,
    tokens: np.ndarray,
) -> list[Loop]:
    """Return the loops from ``low`` to ``high``, if need be with a period found by ``wired``."""
    if high - low < LEAST_COPIES * period:
        return []
    loop = loop_in(equations, low, high, period, homes)
    if loop is None:
        for start, other, length in wired(equations, low, high, tokens, homes)[:_MOST_TRIED]:
            loop = loop or loop_in(equations, start, start + length, other, homes)
    if loop is None:
        return []
    before = _loops(equations, low, loop.start, period, homes, tokens)
    after = _loops(equations, loop.end, high, period, homes, tokens)
    return [*before, loop, *after]


def _clipped(stretch: Stretch, free: Sequence[bool]) -> tuple[int, int]:
    """Return the bounds of a stretch, without equations at its ends that other loops have taken."""
    low, high = stretch.start, stretch.start + stretch.length
    while low < high and not free[low]:
        low += 1
    while low < high and not free[high - 1]:
        high -= 1
    return low, high


_INDEX = array_type((), np.dtype(np.int32))


def write_loops(
    program: Program,
    loops: Sequence[Loop],
    exchanged: Exchange,
    inner: Callable[[Program], Program],
) -> Program:
    """Return the program with these loops, sorted by position.

    ``inner`` rolls loops in their bodies.
    """
    equations: list[Equation] = []
    stacks: dict[tuple[int, Kept], Var] = {}

    def copied(start: int, stop: int) -> None:
        for e in program.equations[start:stop]:
            parts = exchanged.gathered.get(id(e))
            equations.extend([e] if parts is None else _gathered(e, parts, stacks))

    done = 0
    for loop in loops:
        copied(done, loop.start)
        use = exchanged.uses[id(loop)]
        if use.live:
            equations += _Writer(program, loop, use, stacks).equations(inner)
        done = loop.end
    copied(done, len(program.equations))
    return drop_dead(Program(program.inputs, equations, program.outputs, program.name))


def _gathered(
    equation: Equation, parts: Sequence[Atom | Gathered], stacks: dict[tuple[int, Kept], Var]
) -> list[Equation]:
    """Make of a loop's outputs, joined, its stack, with the stacked axis merged into another."""
    equations: list[Equation] = []

    def emit(primitive: Any, *inputs: Atom) -> Var:
        (type,) = primitive.out_types(tuple([a.type for a in inputs]))
        equations.append(Equation(primitive, inputs, [Var(type)], equation.place))
        return equations[-1].outputs[0]

    axis = equation.primitive.axis  # type: ignore[attr-defined]
    operands: list[Atom] = []
    for part in parts:
        if not isinstance(part, Gathered):
            operands.append(part)
            continue
        stack: Atom = stacks[id(part.link.loop), part.link.kept]
        first, last = min(part.link.copies), max(part.link.copies) + 1
        count, rest = last - first, stack.type.shape[1:]
        if count < stack.type.shape[0]:
            ones = (1,) * (1 + len(rest))
            stack = emit(Slice((first, *[0] * len(rest)), (last, *rest), ones), stack)
        if part.link.copies[0] != first:
            stack = emit(Rev((0,)), stack)
        shape = part.shape
        if rest != shape:
            stack = emit(Reshape((count, *shape)), stack)
        if axis:
            order = [*range(1, axis + 1), 0, *range(axis + 1, len(shape) + 1)]
            stack = emit(Transpose(tuple(order)), stack)
        together = (*shape[:axis], count * shape[axis], *shape[axis + 1 :])
        operands.append(emit(Reshape(together), stack))
    if len(operands) > 1:
        return [
            *equations,
            Equation(equation.primitive, operands, equation.outputs, equation.place),
        ]
    only = equations.pop()
    return [*equations, Equation(only.primitive, only.inputs, equation.outputs, only.place)]


class _Writer:
    """Writes one loop, and enters in ``stacks`` what it stacks for others."""

    def __init__(
        self, program: Program, loop: Loop, use: Use, stacks: dict[tuple[int, Kept], Var]
    ) -> None:
        self.program, self.loop, self.use, self.stacks = program, loop, use, stacks
        self.place = program.equations[loop.start].place
        self.before: list[Equation] = []
        self.body: list[Equation] = []
        self.after: list[Equation] = []
        # For each value from outside, the variable of the body that stands for it.
        self.consts: dict[Atom, Var] = {}
        self.stacked: dict[Any, tuple[Var, Var]] = {}
        self.carries: dict[Kept, Var] = {}
        self.read_before: dict[Source, Atom] = {}
        self.delivered: set[Atom] = set()
        self.made = [[Var(v.type) for v in step.equation.outputs] for step in loop.steps]

    def equations(self, inner: Callable[[Program], Program]) -> list[Equation]:
        """Return the equations in front of the loop, the loop, and those after it."""
        loop = self.loop
        merged = _added_pads(loop, self.use)
        for n, step in enumerate(loop.steps):
            if n in merged:
                self.add_in_place(loop.steps[merged[n]], step, self.made[n])
            elif n not in merged.values():
                inputs = [self.read(s) for s in step.sources]
                self.body.append(
                    Equation(step.primitive, inputs, self.made[n], step.equation.place)
                )
        kept = self.kept()
        carried = [self.next(key) for key in self.carries]
        finals = [self.final(key) for key in self.carries]
        stacks = [self.stack(key) for key in kept]
        body = Program(
            [*self.consts.values(), *self.carries.values(), *(v for _, v in self.stacked.values())],
            self.body,
            [*carried, *map(self.here, kept)],
            self.program.name,
        )
        scan = Scan(
            inner(body),
            loop.copies,
            len(self.consts),
            len(carried),
            False,
            copies_per_iteration(loop),
        )
        operands = [
            *self.consts,
            *(first[0] for *_, first in self.carries),
            *(outer for outer, _ in self.stacked.values()),
        ]
        return [*self.before, Equation(scan, operands, [*finals, *stacks], self.place), *self.after]

    def read(self, source: Source) -> Atom:
        """Return the atom that stands for the operand in the body."""
        if isinstance(source, Made):
            return self.made[source.step][source.output]
        atom = self.read_before.get(source)
        if atom is None:
            atom = self.read_before[source] = self.read_new(source)
        return atom

    def read_new(self, source: Source) -> Atom:
        """Return a new atom that stands for an operand from outside of the copy."""
        if isinstance(source, Still):
            if isinstance(source.atom, Literal):
                return source.atom
            return self.consts.setdefault(source.atom, Var(source.atom.type))
        if isinstance(source, Carried):
            return self.carry((source.step, source.output, source.first))
        if isinstance(source, Counted):
            return self.counted(source.values, source.type)
        assert isinstance(source, Given)
        link = self.use.links.get(source)
        if link is None:
            return self.given(source.atoms)
        stack = self.read(Still(self.stacks[id(link.loop), link.kept]))
        shape = source.atoms[0].type.shape
        at = [self.counted(link.copies, _INDEX), *[literal(0, _INDEX)] * len(shape)]
        part = self.emit(DynamicSlice((1, *shape)), [stack, *at])
        return self.emit(Reshape(shape), [part])

    def emit(self, primitive: Any, inputs: Sequence[Atom], to: Var | None = None) -> Var:
        """Append an equation to the body; return its output."""
        if to is None:
            (type,) = primitive.out_types(tuple([a.type for a in inputs]))
            to = Var(type)
        self.body.append(Equation(primitive, inputs, [to], self.place))
        return to

    def carry(self, key: Kept) -> Var:
        """Return the variable for an output of an earlier copy; one for each copy in between."""
        step, output, first = key
        if key not in self.carries:
            self.carries[key] = Var(self.made[step][output].type)
            if len(first) > 1:
                self.carry((step, output, first[1:]))
        return self.carries[key]

    def here(self, key: Kept) -> Atom:
        """Return the atom of the body for what the copy computes or receives."""
        step, output, first = key
        return self.carry(key) if first else self.made[step][output]

    def next(self, key: Kept) -> Atom:
        """Return the atom of the body that a carried variable is in the next copy."""
        step, output, first = key
        return self.here((step, output, first[1:]))

    def counted(self, values: Sequence[Any], type: ArrayType) -> Atom:
        """Return the element of this copy, everywhere in an array of this type."""
        elements = np.array(values, type.dtype)
        scalar = type.with_shape(())
        key = (elements.tobytes(), scalar)
        if key not in self.stacked:
            outer = Var(type.with_shape((len(elements),)))
            constant = Constant(Held(elements, outer.type))
            self.before.append(Equation(constant, (), (outer,), self.place))
            self.stacked[key] = outer, Var(scalar)
        element = self.stacked[key][1]
        return element if not type.shape else self.emit(BroadcastInDim(type.shape, ()), [element])

    def given(self, atoms: Sequence[Var]) -> Atom:
        """Return the array of this copy."""
        type = atoms[0].type
        rows = [Var(type.with_shape((1, *type.shape))) for _ in atoms]
        outer = Var(type.with_shape((len(atoms), *type.shape)))
        reshape = Reshape((1, *type.shape))
        for atom, row in zip(atoms, rows, strict=True):
            self.before.append(Equation(reshape, (atom,), (row,), self.place))
        self.before.append(Equation(Concatenate(0), rows, (outer,), self.place))
        _, here = self.stacked[tuple(atoms)] = outer, Var(type)
        return here

    def kept(self) -> list[Kept]:
        """Return what is to be stacked; outputs only read of the last copy are carried instead."""
        stacked, last = list(self.use.asked), self.loop.copies - 1
        for (step, output), copies in self.use.outs.items():
            available = set()
            for key in (*self.carries, *stacked):
                if key[:2] == (step, output):
                    available.update(self.covered(key, key in stacked))
            if not available.issuperset(copies):
                if copies == [last]:
                    self.carry((step, output, (literal(0, self.made[step][output].type),)))
                else:
                    stacked.append((step, output, ()))
        return sorted(stacked, key=lambda key: (key[:2], len(key[2])))

    def covered(self, key: Kept, stacked: bool) -> range:
        """Return the copies whose output can be read from what is stacked or carried."""
        copies, delay = self.loop.copies, len(key[2])
        return range(copies - delay) if stacked else range(copies - delay, copies - delay + 1)

    def original(self, step: int, output: int, copy: int) -> tuple[Var, Any]:
        """Return the program's variable for an output of a copy, and the place of its equation."""
        at = self.loop.start + copy * self.loop.period + step - self.loop.views
        equation = self.program.equations[at]
        return equation.outputs[output], equation.place

    def final(self, key: Kept) -> Var:
        """Return the variable for the final value of a carried variable."""
        step, output, first = key
        v, _ = self.original(step, output, self.loop.copies - len(first))
        return self.deliver(v)

    def deliver(self, v: Var) -> Var:
        """Return the variable; if it has been delivered already, a new one that nobody reads."""
        if v in self.delivered:
            return Var(v.type)
        self.delivered.add(v)
        return v

    def stack(self, key: Kept) -> Var:
        """Return the stacked variable.

        Outputs of single copies that are read are sliced out of it.
        """
        step, output, first = key
        type = self.made[step][output].type
        stack = self.stacks[id(self.loop), key] = Var(
            type.with_shape((self.loop.copies, *type.shape))
        )
        rest, ones = (0,) * len(type.shape), (1,) * (1 + len(type.shape))
        covered = self.covered(key, True)
        for copy in self.use.outs.get((step, output), ()):
            v, place = self.original(step, output, copy)
            if copy in covered and v not in self.delivered:
                self.delivered.add(v)
                part = Var(type.with_shape((1, *type.shape)))
                at = copy + len(first)
                cut = Slice((at, *rest), (at + 1, *type.shape), ones)
                self.after.append(Equation(cut, (stack,), (part,), place))
                self.after.append(Equation(Reshape(type.shape), (part,), (v,), place))
        return stack

    def add_in_place(self, pad: Step, add: Step, outputs: Sequence[Var]) -> None:
        """Return ``x + pad(part)``, by adding the part to a slice of ``x``."""
        _, part, *starts = [self.read(s) for s in pad.sources]
        first, second = add.sources
        before = not (isinstance(first, Made) and self.loop.steps[first.step] is pad)
        x = self.read(first if before else second)
        here = self.emit(DynamicSlice(part.type.shape), [x, *starts])
        total = self.emit(add.primitive, [here, part])
        self.emit(DynamicUpdateSlice(), [x, total, *starts], outputs[0])


def _added_pads(loop: Loop, use: Use) -> dict[int, int]:
    """Return sums with a part padded with zeros that nothing else reads: {sum: pad}."""
    read: dict[int, int] = {}
    for source in sources_of(loop):
        if isinstance(source, Made | Carried):
            read[source.step] = read.get(source.step, 0) + 1
    for step, *_ in (*use.outs, *use.asked):
        read[step] = read.get(step, 0) + 1
    pads = {}
    for n, step in enumerate(loop.steps):
        if not isinstance(step.primitive, Add):
            continue
        for source in step.sources:
            if isinstance(source, Made) and read[source.step] == 1:
                pad = loop.steps[source.step]
                around = pad.sources[0] if pad.sources else None
                zeros = (
                    isinstance(pad.equation.primitive, Pad)
                    and isinstance(pad.primitive, DynamicUpdateSlice)
                    and isinstance(around, Still)
                    and isinstance(around.atom, Literal)
                    and around.atom.value == 0
                )
                if zeros:  # of two the last
                    pads[n] = source.step
    return pads
