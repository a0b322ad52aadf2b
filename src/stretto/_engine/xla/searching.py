"""Where NaN and infinity in a program's results come from: it is run once more, step by step.

Each value is kept with the fault that its wrong elements come from: that of the first operation
that made some from operands without, or of the argument they came in with. What a ``select`` does
not choose is left behind on the way. Loops are run step by step, branches as they are taken.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.faults import Fault, fault_of, operand, wrong
from stretto._engine.core.interpreter import constant, splat, state
from stretto._engine.core.position import Position
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record, standing
from stretto._engine.higher_order.call import Call
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.custom_vmap import CustomVmap
from stretto._engine.higher_order.family import ControlFlow, split
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.example import Example
from stretto._engine.xla.eager import EAGER


class Known(NamedTuple):
    """An array, and where its wrong elements come from."""

    value: Any
    fault: Fault | None = None
    """None where it has none, or they were written down as a constant."""
    parts: Sequence[Fault | None] = ()
    """The same for each step of a loop that stacked it."""
    fresh: bool = False
    """Whether the fault is of the operation that made this very value."""


def marks_of(x: Any) -> np.ndarray | None:
    """Return which elements of an array are what the settings look for; None where none is."""
    if x.type.kind not in ("float", "complex"):
        return None
    return wrong(x.to_host(), x.type, config.debug_nans, config.debug_infs)


class Search:
    """Runs programs operation by operation, and keeps the faults in the order of their making."""

    def __init__(self) -> None:
        self._order: dict[int, int] = {}
        self._steps: list[tuple[str, int]] = []

    def order(self, fault: Fault) -> tuple[bool, int]:
        """Sorts faults: operations before what came in, then the earliest."""
        return fault.operation is None, self._order[id(fault)]

    def came(self, source: str, x: Any) -> Fault | None:
        """Return the fault of a value from outside."""
        marks = marks_of(x)
        if marks is None:
            return None
        return self._noted(fault_of(None, x.to_host(), x.type, marks, None, (), source))

    def unfound(self, name: str, x: Any) -> Fault:
        """Return the fault of a result that is wrong only where the program is compiled."""
        marks = marks_of(x)
        assert marks is not None
        fault = fault_of(None, x.to_host(), x.type, marks, None)
        fault.function = name
        fault.note = (
            "run operation by operation the program makes none: the compiled one computes in "
            "another order, so look for what is near the limits of its dtype"
        )
        return fault

    def _noted(self, fault: Fault) -> Fault:
        self._order[id(fault)] = len(self._order)
        fault.steps = tuple(self._steps)
        return fault

    def run(
        self, program: Program, args: Sequence[Known], around: Position | None = None
    ) -> list[Known]:
        """Return the outputs of a program. ``around`` stands for lines that it does not know."""
        known: dict[Atom, Known] = dict(zip(program.inputs, args, strict=True))

        def read(atom: Atom) -> Known:
            if isinstance(atom, Literal):
                return Known(splat(atom.value, atom.type))
            return known[atom]

        for equation in program.equations:
            if equation.outputs:  # what has an effect alone has had it
                inputs = [read(a) for a in equation.inputs]
                outs = self._equation(equation, inputs, equation.position or around)
                known.update(zip(equation.outputs, outs, strict=True))
        return [read(a) for a in program.outputs]

    def _equation(
        self, equation: Equation, args: Sequence[Known], position: Position | None
    ) -> Sequence[Known]:
        primitive: Any = equation.primitive
        if primitive.holds_programs:
            return self._control(primitive, args, position)
        if isinstance(primitive, Example):
            return [self._example(primitive, args[0])]
        out = EAGER.process(primitive, [k.value for k in args])
        return self._judged(primitive, args, out if primitive.multiple else [out], position)

    def apply(
        self,
        primitive: Any,
        args: Sequence[Known],
        results: Sequence[Any],
        position: Position | None,
    ) -> Sequence[Known]:
        """Return the results of an operation, which are known, with their faults."""
        if primitive.holds_programs:
            return self._control(primitive, args, position)
        return self._judged(primitive, args, results, position)

    # Operations

    def _judged(
        self,
        primitive: Any,
        args: Sequence[Known],
        results: Sequence[Any],
        position: Position | None,
    ) -> list[Known]:
        """Return the results, with the faults that operands had, or the one of this operation."""
        outs = []
        before = None
        for x in results:
            marks = marks_of(x)
            if marks is None:
                outs.append(Known(x))
                continue
            before = _reaching(primitive, args) if before is None else before
            if before and not _new(primitive, marks, before):
                faults = [k.fault for k, _ in before if k.fault is not None]
                outs.append(Known(x, min(faults, key=self.order) if faults else None))
                continue
            operands = [operand(k.value.to_host(), k.value.type) for k in args]
            fault = fault_of(primitive.name, x.to_host(), x.type, marks, position, operands)
            if position is not None and position.scope:
                fault.within_scope(position.scope)
            outs.append(Known(x, self._noted(fault), fresh=True))
        return outs

    def _example(self, primitive: Example, x: Known) -> Known:
        """Return the same value.

        A new fault in it is one of the example in which it is first found.
        """
        if x.fault is not None and (x.fresh or not x.fault.examples):
            marks = marks_of(x.value)
            if marks is not None and x.fault.operation is not None:
                x.fault.in_example(marks, primitive.axis)
        return x

    # Operations that hold programs

    def _control(
        self, primitive: Any, args: Sequence[Known], position: Position | None
    ) -> Sequence[Known]:
        if isinstance(primitive, Scan):
            return self._scan(primitive, args, position)
        if isinstance(primitive, While):
            return self._while(primitive, args, position)
        if isinstance(primitive, Cond) and primitive.size is None:
            index, *rest = args
            return self.run(primitive.branches[int(index.value)], rest, position)
        program = _alone(primitive)
        if program is None:
            types = [k.value.type for k in args]

            def meaning(*xs: Any) -> Any:
                with standing(state.interpreter.recorder, position):
                    return primitive.interpret(*xs), None

            program, _, captured = record(meaning, types)
            args = [*args, *map(Known, captured)]
        return self.run(program, args, position)

    def _scan(
        self, loop: Scan, args: Sequence[Known], position: Position | None
    ) -> Sequence[Known]:
        consts, carry, xs = split(args, loop.consts, loop.carry)
        stacked = [x.value.to_host() for x in xs]
        types = loop.body.out_types[loop.carry :]
        outs = [np.empty((loop.length, *t.shape), t.dtype) for t in types]
        faults: list[list[Fault | None]] = [[None] * loop.length for _ in types]
        order = range(loop.length)
        for i in reversed(order) if loop.reverse else order:
            here = [_slice(x, s, i) for x, s in zip(xs, stacked, strict=True)]
            results = self._step("scan", i, loop.body, [*consts, *carry, *here], position)
            carry, ys = list(results[: loop.carry]), results[loop.carry :]
            for out, found, y in zip(outs, faults, ys, strict=True):
                out[i], found[i] = y.value.to_host(), y.fault
        made = []
        for out, found, t in zip(outs, faults, types, strict=True):
            some = [f for f in found if f is not None]
            first = min(some, key=self.order) if some else None
            made.append(Known(constant(out, t.weak_type), first, found))
        return [*carry, *made]

    def _while(
        self, loop: While, args: Sequence[Known], position: Position | None
    ) -> Sequence[Known]:
        cond_consts, body_consts, carry = split(args, loop.cond_consts, loop.body_consts)
        i = 0
        while bool(self.run(loop.cond, [*cond_consts, *carry], position)[0].value):
            step = self._step("while_loop", i, loop.body, [*body_consts, *carry], position)
            carry, i = list(step), i + 1
        return carry

    def _step(
        self,
        name: str,
        number: int,
        body: Program,
        args: Sequence[Known],
        position: Position | None,
    ) -> list[Known]:
        self._steps.append((name, number))
        try:
            return self.run(body, args, position)
        finally:
            self._steps.pop()


def _alone(primitive: ControlFlow) -> Program | None:
    """Return the program that applying the operation to its operands means, if there is one."""
    program = primitive.inlined()
    if program is None and isinstance(primitive, (Call, CustomVmap)):
        program = primitive.program
    return program


def _slice(x: Known, stacked: np.ndarray, i: int) -> Known:
    value = constant(stacked[i, ...], x.value.type.weak_type)
    fault = x.parts[i] if x.parts else x.fault
    return Known(value, None if fault is None or marks_of(value) is None else fault)


def _reaching(primitive: Any, args: Sequence[Known]) -> list[tuple[Known, np.ndarray]]:
    """Return the operands with wrong elements, and which these are, but for those not selected."""
    found = []
    for i, k in enumerate(args):
        marks = marks_of(k.value)
        if marks is not None and isinstance(primitive, Select):
            chosen = args[0].value.to_host()
            marks = marks & (chosen if i == 1 else ~chosen)
            marks = marks if marks.any() else None
        if marks is not None:
            found.append((k, marks))
    return found


def _new(primitive: Any, marks: np.ndarray, before: Sequence[tuple[Known, np.ndarray]]) -> bool:
    """Say whether an element is wrong that was so in no operand, which element-wise work shows."""
    if not isinstance(primitive, Elementwise):
        return False
    return bool((marks & ~np.logical_or.reduce([m for _, m in before])).any())
