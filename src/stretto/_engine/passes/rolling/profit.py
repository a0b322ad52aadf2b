"""Judge whether a loop is worth it, by the compile time that it saves and what it costs to run.

By estimate, a loop must compile clearly faster than its copies, and may take no longer to run: the
time to copy what it carries, stacks and takes apart must be small beside its work, and work that
could run in parallel must not be serialized.
"""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

from stretto._engine.core.cost import CPU
from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Reshape
from stretto._engine.passes.rolling.liveness import Use, sources_of
from stretto._engine.passes.rolling.operands import Carried, Counted, Given, Loop, Made, Step
from stretto._engine.passes.rolling.stretches import Stretch, has_index

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
    moved = sum(map(CPU.copying, (copied, stacked, parted))) + arrays * CPU.kernel
    time = loop.copies * sum(map(_running, loop.steps[loop.views :]))
    fast = moved <= max(_NOISE, _MORE * time)
    return fast and stacked + kept <= max(_SMALL, state)


def _running(step: Step) -> float:
    """Return the least time that an operation takes, in microseconds."""
    if isinstance(step.primitive, Elementwise):
        size = step.equation.outputs[0].type.size
        return size / (2e3 if step.primitive.kernel is Kernel.LONG else 2e4)
    return CPU.kernel / 2 + CPU.product(_work(step), CPU.batched)


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
