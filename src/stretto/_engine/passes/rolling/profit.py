"""Judge whether a loop is worth it: what is read of its outputs, and what it saves and costs.

The program is walked from its end, as when dead work is dropped, to see which outputs of which
copies are read, and by what. Outputs that another loop reads copy by copy, or that a concatenation
puts together, stay in the array in which the loop stacks them.

By estimate, a loop must compile clearly faster than its copies, and may take no longer to run: the
time to copy what it carries, stacks and takes apart must be small beside its work, and work that
could run in parallel must not be serialized.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Container, Iterable, Sequence
from typing import Any, NamedTuple, TypeAlias

from stretto._engine.core import cost
from stretto._engine.core.primitive import Kernel, observable
from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Reshape
from stretto._engine.ops.shape import Concatenate
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
)
from stretto._engine.passes.rolling.roll_loops import LEAST_COPIES, Stretch, has_index

Kept: TypeAlias = tuple[int, int, tuple[Atom, ...]]
"""A value that a loop stacks: (step, output, first).

If ``first`` is empty it is the output as each copy computes it; otherwise it is the carried value
as each copy receives it, and ``first`` is ``Carried.first``.
"""


class Link(NamedTuple):
    """Arrays that are the outputs of some copies of a loop."""

    loop: Loop
    kept: Kept
    copies: tuple[int, ...]


class Gathered(NamedTuple):
    """Consecutive operands of a concatenation, from neighbouring copies, each reshaped first."""

    link: Link
    shape: tuple[int, ...]


@dataclasses.dataclass(slots=True)
class Use:
    """Hold what is used of a loop's outputs, and which operands are outputs of other loops."""

    outs: dict[tuple[int, int], list[int]]
    """Maps (step, output) to the copies whose output is read outside of loops."""
    asked: dict[Kept, None]
    """Holds what is read of many copies, in the order in which it was found."""
    links: dict[Given, Link]
    """The operands that are outputs of another loop."""

    @property
    def live(self) -> bool:
        """True if any of its outputs is used."""
        return bool(self.outs or self.asked)


class Exchange(NamedTuple):
    """The uses of all loops, and the concatenations of their outputs."""

    uses: dict[int, Use]
    """The use of each loop, by its ``id``."""
    gathered: dict[int, list[Atom | Gathered]]
    """The operands of concatenations that gather outputs of a loop, by the equation's ``id``."""


class _Output(NamedTuple):
    """A step's output in a copy of a loop, which is a variable."""

    loop: Loop
    copy: int
    step: int
    output: int

    def like(self, other: _Output) -> bool:
        """Say whether the two differ in nothing but the copy."""
        return self.loop is other.loop and self[2:] == other[2:]


def exchange(program: Program, loops: Sequence[Loop], homes: Homes) -> Exchange:
    """Return what is read of the outputs of these loops, if all of them are made."""
    reader = _Reader(program, loops, homes)
    ends = {loop.end: loop for loop in loops}
    i = len(program.equations)
    while i:
        loop = ends.get(i)
        if loop is None:
            i -= 1
            reader.equation(program.equations[i])
        else:
            i = loop.start
            reader.loop(loop)
    return reader.result


class _Reader:
    """Walks a program from its end, and notes what is needed."""

    def __init__(self, program: Program, loops: Sequence[Loop], homes: Homes) -> None:
        self.equations, self.homes = program.equations, homes
        self.owners: list[Loop | None] = [None] * len(program.equations)
        for loop in loops:
            self.owners[loop.start : loop.end] = [loop] * (loop.end - loop.start)
        self.result = Exchange({id(loop): Use({}, {}, {}) for loop in loops}, {})
        self.needed: set[Atom] = set()
        self.need(program.outputs)

    def output_of(self, atom: Atom) -> _Output | None:
        """Return where a loop computes the atom; ``None`` if no loop does."""
        home = self.homes.get(atom)
        loop = None if home is None else self.owners[home[0]]
        if home is None or loop is None:
            return None
        copy, j = divmod(home[0] - loop.start, loop.period)
        return _Output(loop, copy, loop.views + j, home[1])

    def need(self, atoms: Iterable[Atom]) -> None:
        """Note that these are read outside of loops, or where a loop begins."""
        for atom in atoms:
            if atom not in self.needed:
                self.needed.add(atom)
                one = self.output_of(atom)
                if one is not None:
                    outs = self.result.uses[id(one.loop)].outs
                    outs.setdefault((one.step, one.output), []).append(one.copy)

    def equation(self, e: Equation) -> None:
        """Visit an equation outside of loops."""
        if self.needed.isdisjoint(e.outputs) and not observable(e.primitive.effects):
            return
        parts = self.parts(e)
        for part in parts:
            if isinstance(part, Gathered):
                self.ask(part.link)
                self.result.gathered[id(e)] = parts
            else:
                self.need([part])

    def loop(self, loop: Loop) -> None:
        """Visit a loop, after everything that follows it."""
        use = self.result.uses[id(loop)]
        use.outs = {key: sorted(copies) for key, copies in sorted(use.outs.items())}
        if not use.live:
            return
        for source in sources_of(loop):
            if isinstance(source, Still):
                self.need([source.atom])
            elif isinstance(source, Carried):
                self.need(source.first)
            elif isinstance(source, Given):
                link = self.link(source)
                if link is None:
                    self.need(source.atoms)
                else:
                    use.links[source] = link
                    self.ask(link)

    def ask(self, link: Link) -> None:
        """Note that many copies of an output are read."""
        self.result.uses[id(link.loop)].asked[link.kept] = None

    def link(self, given: Given) -> Link | None:
        """Return the link to the loop that all arrays are from, if there is one such loop.

        One of the arrays may be the initial value of what the loop carries, and the others what
        the copies compute of it.
        """
        found = [self.output_of(v) for v in given.atoms]
        inside = [one for one in found if one is not None]
        if len(inside) < len(found) - 1 or not inside:
            return None
        loop, _, step, output = inside[0]
        if any([not one.like(inside[0]) for one in inside]):
            return None
        if len(inside) == len(found):
            return Link(loop, (step, output, ()), tuple([one.copy for one in inside]))
        begin = given.atoms[found.index(None)]
        if Carried(step, output, (begin,)) not in sources_of(loop):
            return None
        copies = [0 if one is None else one.copy + 1 for one in found]
        if max(copies) == loop.copies:
            return None
        return Link(loop, (step, output, (begin,)), tuple(copies))

    def parts(self, equation: Equation) -> list[Atom | Gathered]:
        """Return the operands.

        In a concatenation, those from consecutive copies of a loop count as one.
        """
        if not isinstance(equation.primitive, Concatenate) or len(equation.inputs) < LEAST_COPIES:
            return list(equation.inputs)
        parts: list[Any] = []
        run: list[tuple[Atom, _Output]] = []

        def end() -> None:
            if len(run) < LEAST_COPIES:
                parts.extend([atom for atom, _ in run])
            else:
                atom, (loop, _, step, output) = run[0]
                copies = tuple([home.copy for _, home in run])
                parts.append(Gathered(Link(loop, (step, output, ()), copies), atom.type.shape))
            run.clear()

        for atom in equation.inputs:
            at = self.homes.get(atom)
            maker = None if at is None else self.equations[at[0]]
            reshaped = maker is not None and isinstance(maker.primitive, Reshape)
            home = self.output_of(maker.inputs[0] if maker is not None and reshaped else atom)
            if not _follows(run, atom, home):
                end()
            if home is None:
                parts.append(atom)
            else:
                run.append((atom, home))
        end()
        return parts


def sources_of(loop: Loop) -> Iterable[Source]:
    """Return the sources of all operands."""
    return (source for step in loop.steps for source in step.sources)


def _follows(run: Sequence[tuple[Atom, _Output]], atom: Atom, home: _Output | None) -> bool:
    """Say whether the atom continues the run, from the next copy or the one before."""
    if not run or home is None:
        return False
    last, one = run[-1]
    step = home.copy - one.copy
    steady = len(run) < 2 or step == one.copy - run[-2][1].copy
    return home.like(one) and atom.type is last.type and steady and abs(step) == 1


_FUSED = 8
"""An iteration should have so many element-wise operations if it has nothing else.

On 4 to 10⁶ numbers this took less time than a thousand operations in one kernel, and one operation
an iteration up to five times as much."""

# The limits for running.
_NOISE = 1.0
"""Extra microseconds that a call may take in any case."""
_MORE = 0.03
"""The extra fraction of its time that a call may take."""
_APART = 4e5
"""The work from which an operation is worth its own thread; see ``Primitive.work``."""
_SMALL = 1 << 16
"""Extra bytes that a loop may need in any case."""


def copies_per_iteration(loop: Loop) -> int:
    """Return how many copies of the body an iteration of the loop has.

    Element-wise operations of one iteration are fused, so carried values pass through memory once
    in each iteration. Some eight operations an iteration are fast for arrays of every size: faster
    than hundreds, for which there are not enough registers.
    """
    if not _fused(loop):
        return 1
    operations = sum(isinstance(s.primitive, Elementwise) for s in loop.steps)
    least = min(-(-_FUSED // operations), max(1, loop.copies // 4))
    even = [n for n in range(least, 2 * least) if loop.copies % n == 0]
    return even[0] if even else least


def _fused(loop: Loop) -> bool:
    """Say whether there are only element-wise operations, which are all fused."""
    elementwise = [isinstance(s.primitive, Elementwise) for s in loop.steps]
    steps = zip(loop.steps, elementwise, strict=True)
    return any(elementwise) and all([e or _seen_through(s) for s, e in steps])


def _seen_through(step: Step) -> bool:
    """Say whether element-wise operations can read the step's result without computing it first."""
    if isinstance(step.primitive, BroadcastInDim | Reshape | ConvertElementType):
        return True
    still = not any([isinstance(s, Made | Carried) for s in step.sources])
    return has_index(step.equation.primitive) and still


def gain(loop: Loop, use: Use) -> float:
    """Return the milliseconds by which the loop compiles faster than its copies."""
    if not use.live:
        return 0.0  # dead work: neither is compiled
    moving = [
        has_index(s.equation.primitive) and any([isinstance(o, Counted) for o in s.sources])
        for s in loop.steps
    ]
    apart = not _fused(loop)  # if all is fused, no copy has a kernel of its own
    each = sum(
        compile_time(s.primitive, m and apart) for s, m in zip(loop.steps, moving, strict=True)
    )
    written = copies_per_iteration(loop) + loop.copies % copies_per_iteration(loop)
    stacked = [g for g in _given(loop) if g not in use.links]
    arrays = len(stacked) * loop.copies + sum(map(len, use.outs.values()))
    placing = SLICE * written * (sum(moving) + len(use.links))
    return (loop.copies - written) * each - LOOP - placing - OPERATION * arrays


def runs_as_fast(loop: Loop, use: Use, computed: Container[Atom]) -> bool:
    """Say whether the loop takes no longer than its copies, by estimate, and no more memory.

    ``computed`` holds the variables that equations of the program compute; a loop may overwrite
    those in place, while inputs must be copied.
    """
    return not use.live or (_in_a_row(loop) and _copies_little(loop, use, computed))


def _given(loop: Loop) -> set[Given]:
    return {s for s in sources_of(loop) if isinstance(s, Given)}


def _in_a_row(loop: Loop) -> bool:
    """Say whether long operations form one chain through the copies, so none could run in parallel.

    XLA runs independent operations in parallel in straight-line code, but not in a short loop body.
    """
    works = [_work(step) for step in loop.steps]
    long = [w if w >= _APART else 0.0 for w in works]
    if not any(long):
        return True
    before: list[float | None] = []
    for step, work in zip(loop.steps, long, strict=True):
        reached = [
            0.0 if isinstance(s, Carried) else before[s.step]
            for s in step.sources
            if isinstance(s, Carried | Made)
        ]
        most = max([r for r in reached if r is not None], default=None)
        before.append(None if most is None else most + work)
    carried = {s.step for s in sources_of(loop) if isinstance(s, Carried)}
    chain = max([before[j] or 0.0 for j in carried], default=0.0)
    return chain >= (1 - _MORE) * sum(long)


def _work(step: Step) -> float:
    e = step.equation
    if has_index(e.primitive):  # it touches only a part of a large array
        return 4 * min(e.inputs[0].type.size, e.outputs[0].type.size)
    return e.primitive.work([a.type for a in e.inputs], [v.type for v in e.outputs])


def _copies_little(loop: Loop, use: Use, computed: Container[Atom]) -> bool:
    """Say whether the loop's copying takes little time beside its work, and little memory."""
    carried = {(s.step, s.output, s.first) for s in sources_of(loop) if isinstance(s, Carried)}
    begin = [a for *_, first in carried for a in first]
    state = sum(bytes_of(a.type) for a in begin)
    copied = sum(bytes_of(a.type) for a in begin if a not in computed)
    own = _given(loop) - use.links.keys()
    stacked = loop.copies * sum(bytes_of(g.atoms[0].type) for g in own)
    arrays = loop.copies * len(own)
    parted = kept = 0.0
    for (step, output), copies in use.outs.items():
        size = bytes_of(loop.steps[step].equation.outputs[output].type)
        if copies == [loop.copies - 1]:
            continue
        parted += size * len(copies)
        if not any([key[:2] == (step, output) for key in use.asked]):
            kept += size * (loop.copies - len(copies))
            arrays += len(copies)
    machine = cost.current()
    moved = sum(map(machine.copying, (copied, stacked, parted))) + arrays * machine.kernel
    time = loop.copies * sum(map(_running, loop.steps[loop.views :]))
    fast = moved <= max(_NOISE, _MORE * time)
    return fast and stacked + kept <= max(_SMALL, state)


def _running(step: Step) -> float:
    """Return the least time that an operation takes, in microseconds."""
    if isinstance(step.primitive, Elementwise):
        size = step.equation.outputs[0].type.size
        rate = 2e3 if step.primitive.kernel is Kernel.LONG else 2e4
        return cost.CPU.vectors * size / rate
    machine = cost.current()
    return machine.kernel / 2 + machine.product(_work(step), machine.batched)


# The time that XLA takes to compile a copy of an operation


LOOP = 50.0
"""A loop without its body; a quarter more than measured, so that the gain must be clear."""

SLICE = 4.0
"""A slice in a loop, at an index that depends on the iteration."""

OPERATION = 0.2
_SLICED = 10.0
_COPY = {
    Kernel.VIEW: 0.1,
    Kernel.ONE: OPERATION,
    Kernel.LONG: 1.0,
    Kernel.SUM: 15.0,
    Kernel.WRITTEN: 5.0,
}


def compile_time(primitive: Any, moving: bool) -> float:
    """Return the time to compile one copy; ``moving`` says that each copy has another index."""
    if primitive.holds_programs:
        return 2 * OPERATION * sum(map(count, primitive.programs()))
    if moving:
        return _SLICED
    return _COPY[primitive.kernel or (Kernel.ONE if primitive.light else Kernel.WRITTEN)]


def may_pay(equations: Sequence[Equation], stretch: Stretch) -> bool:
    """Say whether the repeated equations may take longer to compile than a loop."""
    start, period, length = stretch
    copy = equations[start : start + period]
    each = sum([compile_time(e.primitive, has_index(e.primitive)) for e in copy])
    return (length // period - 1) * each > LOOP


def count(program: Program) -> int:
    """Return the number of equations, including those of the programs that operations hold."""
    total = program.cache.get("count")
    if total is None:
        total = len(program.equations)
        for equation in program.equations:
            primitive: Any = equation.primitive
            if primitive.holds_programs:
                total += sum(map(count, primitive.programs()))
        program.cache["count"] = total
    return total
