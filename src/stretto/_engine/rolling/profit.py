"""Whether a loop is worth it: what it saves the compiler, and what it costs when it runs.

Layer 5 (rolling). A loop must take clearly less time to compile than its copies, and may take no
longer to run, by estimate: the copies of what it carries, stacks and takes apart are held against
the work, and work that could be done side by side must not be put in a row. Next, read ``rewrite``.
"""

from __future__ import annotations

from collections.abc import Container

from stretto._engine.core.cost import CPU
from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.broadcast import BroadcastInDim
from stretto._engine.ops.convert import ConvertElementType
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.ops.layout import Reshape
from stretto._engine.rolling.compiling import LOOP, OPERATION, PLACE, compiling
from stretto._engine.rolling.liveness import Use, sources_of
from stretto._engine.rolling.operands import Carried, Counted, Given, Loop, Made, Step
from stretto._engine.rolling.stretches import placed

__all__ = ["gain", "runs_as_fast", "turn_of"]

_FUSED = 8
"""How many element-wise operations a turn should have, where it has nothing else."""

# What running takes.
_NOISE = 1.0
"""Microseconds that a call may take more in any case."""
_MORE = 0.03
"""The part of its time that it may take more."""
_APART = 4e5
"""The work from which on an operation is worth a thread of its own; see ``Primitive.work``."""
_SMALL = 1 << 16
"""Bytes that a loop may hold more in any case."""


def turn_of(loop: Loop) -> int:
    """How many copies a turn of the loop has.

    Element-wise operations are done in one go, so that what is carried passes through memory once a
    turn. Some eight of them in a turn take little time for arrays of every size: less than hundreds
    in one go, which the registers do not suffice for.
    """
    if not _fused(loop):
        return 1
    operations = sum(isinstance(s.primitive, Elementwise) for s in loop.steps)
    least = min(-(-_FUSED // operations), max(1, loop.copies // 4))
    even = [n for n in range(least, 2 * least) if loop.copies % n == 0]
    return even[0] if even else least


def _fused(loop: Loop) -> bool:
    """Whether there is nothing but element-wise operations, which all are done in one go."""
    elementwise = [isinstance(s.primitive, Elementwise) for s in loop.steps]
    steps = zip(loop.steps, elementwise, strict=True)
    return any(elementwise) and all([e or _seen_through(s) for s, e in steps])


def _seen_through(step: Step) -> bool:
    """Whether element-wise operations read what the step gives without its being made."""
    if isinstance(step.primitive, BroadcastInDim | Reshape | ConvertElementType):
        return True
    still = not any([isinstance(s, Made | Carried) for s in step.sources])
    return placed(step.equation.primitive) and still


def gain(loop: Loop, use: Use) -> float:
    """The milliseconds that the compiler needs less for the loop than for its copies."""
    if not use.live:
        return 0.0  # nothing of it is left
    moving = [
        placed(s.equation.primitive) and any([isinstance(o, Counted) for o in s.sources])
        for s in loop.steps
    ]
    apart = not _fused(loop)  # else no copy has a kernel of its own
    each = sum(compiling(s.primitive, m and apart) for s, m in zip(loop.steps, moving, strict=True))
    written = turn_of(loop) + loop.copies % turn_of(loop)
    stacked = [g for g in _given(loop) if g not in use.links]
    arrays = len(stacked) * loop.copies + sum(map(len, use.outs.values()))
    placing = PLACE * written * (sum(moving) + len(use.links))
    return (loop.copies - written) * each - LOOP - placing - OPERATION * arrays


def runs_as_fast(loop: Loop, use: Use, made: Container[Atom]) -> bool:
    """Whether the loop takes no longer than its copies, by estimate, and no more memory.

    ``made`` has what equations of the program make, which a loop may carry on where it lies.
    """
    return not use.live or (_in_a_row(loop) and _copies_little(loop, use, made))


def _given(loop: Loop) -> set[Given]:
    return {s for s in sources_of(loop) if isinstance(s, Given)}


def _in_a_row(loop: Loop) -> bool:
    """Whether long operations form one chain through the copies, and so run one after another.

    In straight-line code XLA runs independent ones at the same time; in a short body it does not.
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
    if placed(e.primitive):  # of a large array it touches a part
        return 4 * min(e.inputs[0].type.size, e.outputs[0].type.size)
    return e.primitive.work([a.type for a in e.inputs], [v.type for v in e.outputs])


def _copies_little(loop: Loop, use: Use, made: Container[Atom]) -> bool:
    """Whether what the loop copies takes no time beside its work, and little memory."""
    carried = {(s.step, s.output, s.first) for s in sources_of(loop) if isinstance(s, Carried)}
    begin = [a for *_, first in carried for a in first]
    state = sum(bytes_of(a.type) for a in begin)
    copied = sum(bytes_of(a.type) for a in begin if a not in made)
    given = _given(loop) - use.links.keys()
    stacked = loop.copies * sum(bytes_of(g.atoms[0].type) for g in given)
    arrays = loop.copies * len(given)
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
    """The time of an operation at the least, in microseconds."""
    if isinstance(step.primitive, Elementwise):
        size = step.equation.outputs[0].type.size
        return size / (2e3 if step.primitive.kernel is Kernel.LONG else 2e4)
    return CPU.kernel / 2 + CPU.product(_work(step), CPU.batched)
