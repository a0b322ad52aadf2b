"""Choose how many members to compute at a time: all, or some in each iteration of a loop.

All at once means few operations. A few at a time means that intermediate results stay in the cache,
and are so small that the allocator need not get new memory from the system at each call, which for
some 30 MB takes longer than computing with them. The estimate counts the bytes of operands and
results of each operation of the member's program.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stretto._engine.core.config import config
from stretto._engine.core.cost import Machine
from stretto._engine.core.program import Program, Var
from stretto._engine.core.types import bytes_of
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.elementwise import Elementwise
from stretto._engine.passes.formulations.convolutions import convolution_fraction


def peak_bytes(program: Program) -> int:
    """Return the most bytes of values that are alive at the same time, not counting the inputs."""
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
    """Return how many of ``size`` members fit in the budget at a time, at least one.

    The first ``moving`` inputs are each member's own. A divisor of the size is preferred, since it
    needs no second program for left-over members.
    """
    each = peak_bytes(program) + sum(bytes_of(t) for t in program.in_types[:moving])
    most = max(1, min(size, budget() // max(each, 1)))
    even = max(d for d in range(1, most + 1) if size % d == 0)
    return even if 2 * even > most else most


def budget() -> int:
    """Return the most bytes for ``chunk_size="auto"``: the setting, or half of the free memory."""
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


# Time


CHOICES = (DotGeneral, ConvGeneralDilated)
"""The operations that have several formulations."""


_WRITTEN = 0.6
"""The fraction of the estimated memory that is alive at a time if members are written out."""

_FUSED = 0.4
"""The fraction of operands and results of element-wise operations that passes through memory."""

_WORTH = 0.92
"""A loop must be estimated to take at most this fraction of the time, as the estimate is rough."""


class Work(NamedTuple):
    """Hold what one member's program does."""

    touched: list[tuple[float, float]]
    """(weight, bytes) of each array that an operation reads or writes."""
    products: list[tuple[float, float]]
    """(multiply-adds, fraction of the best rate) of each product and convolution."""
    moved: float
    """The bytes of a member's own inputs, and of its outputs."""
    outputs: float
    """The bytes of its outputs."""
    kernels: int
    """The number of kernels."""
    alive: float
    """The most bytes of intermediate results and outputs that are alive at the same time."""


def work_of(program: Program, over: Sequence[bool], machine: Machine) -> Work:
    """Return the work of one member."""
    program_inputs = set(program.inputs)
    own = [v.type for v, m in zip(program.inputs, over, strict=True) if m]
    outs = sum(map(bytes_of, program.out_types))
    moved = sum(map(bytes_of, own)) + outs
    touched, products, kernels, convolutions = [], [], 0.0, False
    for primitive, inputs, outputs in operations(program):
        arrays = [
            v.type for v in (*inputs, *outputs) if isinstance(v, Var) and v not in program_inputs
        ]
        choice = isinstance(primitive, CHOICES)
        touched += [(1.0 if choice else _FUSED, bytes_of(t)) for t in arrays]
        kernels += 1 if choice else _FUSED
        if choice:
            types = [v.type for v in inputs]
            work = primitive.work(types, [v.type for v in outputs])
            if isinstance(primitive, DotGeneral):
                products.append((work, machine.fraction(work)))
            else:
                products.append((work, convolution_fraction(primitive, *types)))
                convolutions = True
    # Members that are written out are computed one after the other, so fewer values are alive.
    alive = peak_bytes(program) * (_WRITTEN if convolutions else 1.0)
    return Work(touched, products, moved, outs, round(kernels), alive)


def time_at_once(work: Work, count: int, machine: Machine) -> float:
    """Return the time to compute so many members at once, in microseconds."""
    time = work.kernels * machine.kernel + machine.fresh_memory(count * work.alive)
    time += sum(w * machine.passing(count * b) for w, b in work.touched)
    for products, fraction in work.products:
        time += machine.product(count * products, fraction) + count * machine.item
    return time


def best_chunk(work: Work, size: int, machine: Machine) -> tuple[int, dict[int, float]]:
    """Return how many members to compute at a time, and the estimated times of all candidates."""
    times = {size: time_at_once(work, size, machine)}
    for count in range(1, size):
        if size % count == 0:
            turns = size // count
            inside = turns * (time_at_once(work, count, machine) + machine.turn)
            outside = machine.moving(size * work.moved) + machine.fresh_memory(size * work.outputs)
            times[count] = inside + outside
    least = min(times.values())
    if least >= _WORTH * times[size]:
        return size, times
    return min(n for n, t in times.items() if t <= 1.01 * least), times


def operations(program: Program) -> Iterator[tuple[Any, Sequence[Any], Sequence[Any]]]:
    """Yield all operations of the program, with calls replaced by what they call."""
    for equation in program.equations:
        primitive: Any = equation.primitive
        inner = primitive.inlined() if primitive.holds_programs else None
        if inner is None:
            yield primitive, equation.inputs, equation.outputs
        else:
            yield from operations(inner)
