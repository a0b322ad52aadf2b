"""An estimate of the memory that a program takes, and how many members fit in a budget at a time.

The estimate is the largest total size of values that are alive at the same time. It assumes that
element-wise operations reuse the memory of an operand, and that nothing is fused.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.config import config
from stretto._engine.core.program import Program, Var
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.elementwise import Elementwise


def peak_bytes(program: Program) -> int:
    """The most bytes of values that are alive at the same time, not counting the inputs."""
    last: dict[Var, int] = {}
    for i, equation in enumerate(program.equations):
        for atom in equation.inputs:
            if isinstance(atom, Var):
                last[atom] = i
    for atom in program.outputs:
        if isinstance(atom, Var):
            last[atom] = len(program.equations)
    own = set(program.inputs)
    dying: dict[int, list[Var]] = {}
    for v, i in last.items():
        if v not in own:
            dying.setdefault(i, []).append(v)
    alive = most = 0
    for i, equation in enumerate(program.equations):
        ends = sum(bytes_of(v.type) for v in dying.get(i, ()))
        begins = sum(bytes_of(v.type) for v in equation.outputs)
        if isinstance(equation.primitive, Elementwise):  # it can reuse the memory of an operand
            begins, ends = max(0, begins - ends), max(0, ends - begins)
        alive += begins
        inner = 0
        primitive: Any = equation.primitive
        if primitive.holds_programs:
            inner = max((peak_bytes(p) for p in primitive.programs()), default=0)
        most = max(most, alive + inner)
        alive -= ends
        alive -= sum(bytes_of(v.type) for v in equation.outputs if v not in last)
    return most


def chunk_within(program: Program, moving: int, size: int) -> int:
    """How many of ``size`` members of this program fit in the budget at a time: at least one.

    The first ``moving`` inputs are each member's own. A divisor of the size is preferred, since it
    needs no second program for left-over members.
    """
    each = peak_bytes(program) + sum(bytes_of(t) for t in program.in_types[:moving])
    most = max(1, min(size, budget() // max(each, 1)))
    even = max(d for d in range(1, most + 1) if size % d == 0)
    return even if 2 * even > most else most


def budget() -> int:
    """The most bytes for ``chunk_size="auto"``: the setting, or half of the free memory."""
    return config.memory_budget or _free() // 2


def _free() -> int:
    try:
        with open("/proc/meminfo") as lines:
            for line in lines:
                if line.startswith("MemAvailable:"):
                    return int(line.split()[1]) << 10
    except OSError:
        pass
    return 4 << 30
