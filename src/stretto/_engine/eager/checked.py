"""NaN and infinity: an interpreter at rest that looks for them, and their origin in results.

``config.debug_nans`` and ``config.debug_infs`` put ``Checked`` in the place of ``EAGER``. Short
ways for arrays at rest ask whether the current interpreter is that one, so all of them leave what
is done under this one to it, and cost nothing while it is not there.

A program whose results are wrong is run once more, step by step (``Search``). Each value is kept
with the fault that its wrong elements come from: that of the first operation that made some from
operands without, or of the argument they came in with. What a ``select`` does not choose is left
behind on the way. Loops are run step by step, branches as they are taken.

A ``Fault`` says in words which operation made NaN or infinity, where, and from what. The example of
a ``vmap`` or the rule of a derivative, known only further out, is added on the way.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.config import config, settings
from stretto._engine.core.errors import NonFiniteError
from stretto._engine.core.interpreter import Interpreter, _State, constant, splat, state
from stretto._engine.core.position import Position, scopes, user_position
from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record, standing
from stretto._engine.core.types import ArrayType
from stretto._engine.eager.interpreter import EAGER
from stretto._engine.higher_order.cond import Cond
from stretto._engine.higher_order.custom_vmap import CustomVmap
from stretto._engine.higher_order.family import Call, ControlFlow, split
from stretto._engine.higher_order.scan import Scan
from stretto._engine.higher_order.while_loop import While
from stretto._engine.ops.comparison import Select
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.identities import Example
from stretto._engine.xla.array import Array

_INEXACT = ("float", "complex")
_RULE = re.compile(r"(jvp|transpose)\(")
_OF = re.compile(r"jvp\(([\w, ]+)\)")


def wrong(array: np.ndarray, type: ArrayType, nans: bool, infs: bool) -> np.ndarray | None:
    """Say which elements are what is looked for; None where none is."""
    if type.kind not in _INEXACT or not array.size or not (nans or infs):
        return None
    if nans and infs:
        marks = ~np.isfinite(array)
    else:
        marks = np.isnan(array) if nans else np.isinf(array)
    return np.asarray(marks) if marks.any() else None


@dataclasses.dataclass(frozen=True)
class Operand:
    """Hold what an operation was applied to: a type, and the range of the elements."""

    type: str
    least: float | None
    """The least element that is not NaN; None where there is none, or elements have no order."""
    greatest: float | None
    nans: int
    """The number of elements that are NaN."""

    def __str__(self) -> str:
        of = "" if self.least is None else f" from {self.least:g} to {self.greatest:g}"
        return f"{self.type}{of}, {self.nans or 'no'} NaN"


def operand(array: np.ndarray, type: ArrayType) -> Operand:
    """Return the range of an operand."""
    if type.kind == "bool" or not array.size or array.dtype.kind not in "iufcVb":
        return Operand(repr(type), None, None, 0)
    with np.errstate(all="ignore"):
        nans = np.isnan(array) if type.kind in _INEXACT else np.zeros(array.shape, bool)
        rest = array[~nans]
        if type.kind == "complex":
            rest = np.abs(rest)
        least, greatest = (float(rest.min()), float(rest.max())) if rest.size else (None, None)
    return Operand(repr(type), least, greatest, int(nans.sum()))


@dataclasses.dataclass
class Fault:
    """An operation that made NaN or infinity from operands without, or a value that came with it.

    Printed, it is the message of a ``NonFiniteError``.
    """

    operation: str | None
    """The operation; None where it came in from outside, or was not found."""
    source: str | None
    """The source that it came in with: an argument and the path in it, or a captured array."""
    kind: str
    """``"NaN"`` or ``"infinity"``."""
    position: Position | None
    """The user's line."""
    result: str
    """The type of the result."""
    count: int
    """The number of elements of the result that have it."""
    index: tuple[int, ...]
    """The index of the first of them."""
    operands: tuple[Operand, ...] = ()
    steps: tuple[tuple[str, int], ...] = ()
    """The loops that it happened in, outermost first, and their steps, from 0."""
    examples: tuple[int, ...] = ()
    """The numbers of the example in each ``vmap`` around it, outermost first."""
    backward: bool = False
    """Says whether it was in the backward pass of a derivative."""
    derivative_of: str | None = None
    """The operation whose derivative it belongs to."""
    function: str | None = None
    """The jitted function in whose results it was found."""
    note: str = ""
    """Further words."""
    innermost: Position | None = dataclasses.field(default=None, repr=False)
    """The place of the innermost equation gone back through, once that is known."""

    def within_rule(self, name: str) -> None:
        """Note that it happened in the derivative rule of this operation, unless in its value."""
        if self.derivative_of is None and name != self.operation:
            self.derivative_of = name

    def going_back(self, place: Any) -> None:
        """Note that it happened in the backward pass, for the operation at this place."""
        if self.innermost is None and place is not None:
            self.position = self.innermost = Position(*place)
            self.within_scope(place[2])
        self.backward = True

    def within_scope(self, scope: str) -> None:
        """Note what the scope of an equation tells of the rules that it comes from."""
        rules = _RULE.findall(scope)
        self.backward = self.backward or "transpose" in rules
        if rules and self.derivative_of is None:
            of = _OF.findall(scope)
            self.derivative_of = of[-1] if of and of[-1] != self.operation else None

    def in_example(self, marks: np.ndarray, axis: int) -> None:
        """Note the example of the first marked element, along this axis."""
        self.examples = (*self.examples, first_of(marks)[axis])

    def where(self) -> list[str]:
        """Return the parts of where it happened, in words."""
        parts = [f"example {i} of vmap" for i in self.examples]
        parts += [f"step {i} of {name}" for name, i in self.steps]
        if self.backward:
            of = f" of {self.derivative_of}" if self.derivative_of else ""
            parts.append(f"the backward pass{of}")
        elif self.derivative_of:
            parts.append(f"the derivative of {self.derivative_of}")
        if self.function:
            parts.append(f"{self.function}, jitted")
        return parts

    def __str__(self) -> str:
        first = f", the first at {list(self.index)}" if self.index else ""
        result = f"in {self.count} elements of {self.result}{first}"
        at = f" at {self.position}" if self.position else ""
        if self.operation is not None:
            lines = [f"{self.operation} made {self.kind}{at}, {result}"]
        elif self.source is not None:
            lines = [f"{self.kind} came in with {self.source}, {result}"]
        else:
            lines = [f"there is {self.kind} {result}"]
        where = self.where()
        if where:
            lines.append(f"  in {', in '.join(where)}")
        lines += [f"  operand {i}: {x}" for i, x in enumerate(self.operands)]
        return "\n".join([*lines, *([f"  {self.note}"] if self.note else [])])


def first_of(marks: np.ndarray) -> tuple[int, ...]:
    """Say where the first marked element is."""
    return tuple([int(i) for i in np.unravel_index(int(np.argmax(marks)), marks.shape)])


def _kind(values: np.ndarray) -> str:
    """Return what these elements are."""
    return "NaN" if bool(np.isnan(values).any()) else "infinity"


def fault_of(
    operation: str | None,
    array: np.ndarray,
    type: ArrayType,
    marks: np.ndarray,
    position: Position | None,
    operands: Sequence[Operand] = (),
    source: str | None = None,
) -> Fault:
    """Return the fault of a result with these elements marked."""
    return Fault(
        operation,
        source,
        _kind(array[marks]),
        position,
        repr(type),
        int(marks.sum()),
        first_of(marks),
        tuple(operands),
    )


class Known(NamedTuple):
    """An array, and where its wrong elements come from."""

    value: Any
    fault: Fault | None = None
    """None where it has none, or they were written down as a constant."""
    parts: Sequence[Fault | None] = ()
    """The same for each step of a loop that stacked it."""
    fresh: bool = False
    """Says whether the fault is of the operation that made this very value."""


def marks_of(x: Any) -> np.ndarray | None:
    """Find the elements of an array that the settings look for; None where there are none."""
    if x.type.kind not in ("float", "complex"):
        return None
    return wrong(x.to_host(), x.type, config.debug_nans, config.debug_infs)


class Search:
    """Runs programs operation by operation, and keeps the faults in the order of their making."""

    def __init__(self) -> None:
        self._order: dict[int, int] = {}
        self._steps: list[tuple[str, int]] = []

    def order(self, fault: Fault) -> tuple[bool, int]:
        """Give the key that sorts faults: operations before what came in, then the earliest."""
        return fault.operation is None, self._order[id(fault)]

    def came(self, source: str, x: Any) -> Fault | None:
        """Note the fault of a value from outside."""
        marks = marks_of(x)
        if marks is None:
            return None
        return self._noted(fault_of(None, x.to_host(), x.type, marks, None, (), source))

    def unfound(self, name: str, x: Any) -> Fault:
        """Make the fault of a result that is wrong only where the program is compiled."""
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
        """Run a program. ``around`` stands for lines that it does not know."""
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
        """Give the results of an operation, which are known, with their faults."""
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
        """Give the results with the faults that operands had, or the one of this operation."""
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
        """Give the value back; a new fault in it is of the example in which it is first found."""
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
    """Give the program that the operation on its operands means, if there is one."""
    program = primitive.inlined()
    if program is None and isinstance(primitive, (Call, CustomVmap)):
        program = primitive.program
    return program


def _slice(x: Known, stacked: np.ndarray, i: int) -> Known:
    value = constant(stacked[i, ...], x.value.type.weak_type)
    fault = x.parts[i] if x.parts else x.fault
    return Known(value, None if fault is None or marks_of(value) is None else fault)


def _reaching(primitive: Any, args: Sequence[Known]) -> list[tuple[Known, np.ndarray]]:
    """Find the operands with wrong elements, and which these are, but for those not selected."""
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
    """Say whether an element is wrong that was so in no operand, as element-wise work shows."""
    if not isinstance(primitive, Elementwise):
        return False
    return bool((marks & ~np.logical_or.reduce([m for _, m in before])).any())


class Checked(Interpreter):
    """Evaluates operations on arrays, and raises where one makes NaN or infinity."""

    __slots__ = ()

    ended = False
    at_rest = True

    def process(self, primitive: Any, args: Sequence[Any]) -> Any:
        """Run it; NaN that operands had is not its fault."""
        if not settings.key.debugged:  # another thread has changed the setting of all
            follow(False)
            return EAGER.process(primitive, args)
        outs = EAGER.process(primitive, args)
        results = outs if primitive.multiple else (outs,)
        if any([marks_of(x) is not None for x in results]):
            search = Search()
            known = [Known(x, search.came("an operand", x)) for x in args]
            made = search.apply(primitive, known, results, user_position())
            for k in made:
                if k.fault is not None and k.fault.operation is not None:
                    raise NonFiniteError(k.fault)
        return outs


CHECKED = Checked()
scopes.entered = True  # equations then keep which rules of derivatives made them


def check_results(
    program: Any, args: Sequence[Array], names: Sequence[str], results: Sequence[Any]
) -> None:
    """Raise ``NonFiniteError`` if the results of a compiled program have NaN or infinity.

    The program is run again operation by operation to find where that comes from. What is written
    down in it as a constant is meant, and what is returned as it came is nobody's fault.

    Args:
        program: as it was traced.
        args: what it was run on.
        names: what messages call these.
        results: what the compiled program gave.
    """
    given = {*program.inputs}
    own = [k for k, a in enumerate(program.outputs) if a not in given]
    bad = [k for k in own if marks_of(results[k]) is not None]
    if not bad:
        return
    search = Search()
    known = [Known(x, search.came(name, x)) for x, name in zip(args, names, strict=True)]
    outs = search.run(program, known)
    faults = [outs[k].fault for k in bad]
    found = [f for f in faults if f is not None]
    if found:
        fault = min(found, key=search.order)
        fault.function = program.name
        raise NonFiniteError(fault)
    for k in bad:
        if marks_of(outs[k].value) is None:
            raise NonFiniteError(search.unfound(program.name, results[k]))


def follow(everywhere: bool) -> None:
    """Put the interpreter in place that the settings ask for, if nothing is being traced.

    Args:
        everywhere: whether the settings of all threads have changed, not those of this one alone.
    """
    if everywhere and _State.interpreter in (CHECKED, EAGER):
        values = config._values
        debugged = values["debug_nans"] or values["debug_infs"]
        _State.interpreter = CHECKED if debugged else EAGER
    if state.interpreter in (CHECKED, EAGER):
        state.interpreter = CHECKED if settings.key.debugged else EAGER
