"""How long XLA takes to compile a copy of an operation.

Times are in milliseconds, measured on the CPU, and rough. Further copies of most operations are
cheap, since equal kernels are compiled once. A slice at another index in each copy makes a kernel
of its own each time, and so does a sum, because what computes its operand is fused into it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Equation, Program
from stretto._engine.passes.rolling.stretches import Stretch, placed

LOOP = 50.0
"""A loop without its body; a quarter more than measured, so that the gain must be clear."""

PLACE = 4.0
"""A slice in a loop, at an index that depends on the iteration."""

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
    """The time to compile one copy; ``moving`` says that each copy has another index."""
    if primitive.holds_programs:
        return 2 * OPERATION * sum(map(count, primitive.programs()))
    if moving:
        return _PLACED
    return _COPY[primitive.kernel or (Kernel.ONE if primitive.light else Kernel.WRITTEN)]


def may_pay(equations: Sequence[Equation], stretch: Stretch) -> bool:
    """Whether the repeated equations may take longer to compile than a loop."""
    start, period, length = stretch
    copy = equations[start : start + period]
    each = sum([compiling(e.primitive, placed(e.primitive)) for e in copy])
    return (length // period - 1) * each > LOOP


def count(program: Program) -> int:
    """The number of equations, including those of the programs that operations hold."""
    total = program.cache.get("count")
    if total is None:
        total = len(program.equations)
        for equation in program.equations:
            primitive: Any = equation.primitive
            if primitive.holds_programs:
                total += sum(map(count, primitive.programs()))
        program.cache["count"] = total
    return total
