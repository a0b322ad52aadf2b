"""What a copy of an operation costs XLA's compiler.

Layer 5 (rolling). Times are in milliseconds, by measurement on the CPU, and rough. Most operations
are cheap again and again: equal kernels are compiled once. What has a place of its own, as a slice
at another index in each copy, makes a kernel of its own, and so do sums, into which what goes
before is fused anew. Next, read ``profit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Equation, Program
from stretto._engine.rolling.stretches import Stretch, placed

__all__ = ["LOOP", "OPERATION", "PLACE", "compiling", "count", "may_pay"]

LOOP = 50.0
"""A loop, beside its body; a quarter more than it takes, so that it must gain clearly."""

PLACE = 4.0
"""A slice in a loop, at a place that its turn decides."""

OPERATION = 0.2
_PLACED = 10.0
_COPY = {
    Kernel.VIEW: 0.1,
    Kernel.ONE: OPERATION,
    Kernel.LONG: 1.0,
    Kernel.SUM: 15.0,
    Kernel.WRITTEN: 5.0,
}


def compiling(primitive: Any, moving: bool) -> float:
    """The time for one copy; ``moving``: its place is another in each."""
    if primitive.holds_programs:
        return 2 * OPERATION * sum(map(count, primitive.programs()))
    if moving:
        return _PLACED
    return _COPY[primitive.kernel or (Kernel.ONE if primitive.light else Kernel.WRITTEN)]


def may_pay(equations: Sequence[Equation], stretch: Stretch) -> bool:
    """Whether the equations that repeat may take longer to compile than a loop."""
    start, period, length = stretch
    copy = equations[start : start + period]
    each = sum([compiling(e.primitive, placed(e.primitive)) for e in copy])
    return (length // period - 1) * each > LOOP


def count(program: Program) -> int:
    """The number of equations, those of the programs that they hold with them."""
    found = program.cache.get("count")
    if found is None:
        found = len(program.equations)
        for equation in program.equations:
            primitive: Any = equation.primitive
            if primitive.holds_programs:
                found += sum(map(count, primitive.programs()))
        program.cache["count"] = found
    return found
