"""What a copy of an operation costs XLA's compiler.

Layer 5 (rolling). Times are in milliseconds, by measurement on the CPU, and rough. Most operations
are cheap again and again: equal kernels are compiled once. What has a place of its own, as a slice
at another index in each copy, makes a kernel of its own, and so do sums, into which what goes
before is fused anew. Next, read ``profit``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.program import Equation, Program
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum, Reshape
from stretto._engine.ops.reducing.reduce import Reduction
from stretto._engine.ops.shape import Slice
from stretto._engine.rolling.stretches import Stretch, placed

__all__ = ["LOOP", "OPERATION", "PLACE", "compiling", "count", "may_pay", "transcendental"]

LOOP = 50.0
"""A loop, beside its body; a quarter more than it takes, so that it must gain clearly."""

PLACE = 4.0
"""A slice in a loop, at a place that its turn decides."""

OPERATION = 0.2
_VIEW = 0.1
_TRANSCENDENTAL = 1.0
_PLACED = 10.0
_REDUCED = 15.0
_WRITTEN = 5.0
"""What is not done by a kernel or two, but by a library, or by many operations."""

# fmt: off
_DEAR = frozenset((
    "acos", "acosh", "asin", "asinh", "atan", "atan2", "atanh", "cbrt", "cosh", "erf", "erf_inv",
    "erfc", "expm1", "log", "log1p", "logistic", "pow", "rem", "sinh", "tan", "tanh",
))
_ONCE = frozenset((
    "bitcast_convert_type", "conv_general_dilated", "cumlogsumexp", "cummax", "cummin", "cumprod",
    "cumsum", "dynamic_slice", "dynamic_update_slice", "gather", "optimization_barrier", "pad",
))
# fmt: on
"""Operations that are not light, but whose kernels are compiled once."""


def compiling(primitive: Any, moving: bool) -> float:
    """The time for one copy; ``moving``: its place is another in each."""
    if primitive.holds_programs:
        return 2 * OPERATION * sum(map(count, primitive.programs()))
    if moving:
        return _PLACED
    if isinstance(primitive, ReduceSum | Reduction):
        return _REDUCED
    if isinstance(primitive, Reshape | BroadcastInDim | Slice):
        return _VIEW
    if transcendental(primitive):
        return _TRANSCENDENTAL
    if primitive.light or primitive.name in _ONCE:
        return OPERATION
    return _WRITTEN


def transcendental(primitive: Any) -> bool:
    """Whether an element takes tens of instructions."""
    return primitive.name in _DEAR


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
