"""How many members to work on at a time: all at once, or some in each turn of a loop.

Layer 5 (plan). All at once begins few operations, but what the members make on their way passes
through memory; a few at a time it stays in the cache. The estimate counts, for each operation of
the member's program, the bytes of its operands and results.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

from stretto.core.program import Program, Var
from stretto.core.types import ArrayType
from stretto.ops.contract import DotGeneral
from stretto.ops.convolution import ConvGeneralDilated
from stretto.plan.cost import Machine

__all__ = ["Work", "best_turn", "time_at_once", "work_of"]

_FUSED = 0.4
"""What part of the operands and results of element-wise operations passes through memory."""


_WORTH = 0.85
"""Turns must be estimated to take so much less, since the estimate of them is a rough one."""


class Work(NamedTuple):
    """What one member's program does."""

    touched: list[tuple[float, float]]
    """(weight, bytes) of each array that an operation reads or writes."""
    products: list[tuple[float, float]]
    """(products with additions, fraction of the best rate) of each product and convolution."""
    moved: float
    """The bytes of a member's own inputs, and of its outputs."""
    kernels: int
    """How many operations begin."""


def work_of(program: Program, over: Sequence[bool], machine: Machine) -> Work:
    """The work of one member."""
    own = {v for v, m in zip(program.inputs, over, strict=True) if m}
    still = {v for v, m in zip(program.inputs, over, strict=True) if not m}
    moved = sum(map(_bytes, [v.type for v in own])) + sum(map(_bytes, program.out_types))
    touched, products, kernels = [], [], 0.0
    for primitive, inputs, outputs in _operations(program):
        arrays = [v.type for v in (*inputs, *outputs) if isinstance(v, Var) and v not in still]
        choice = isinstance(primitive, (DotGeneral, ConvGeneralDilated))
        touched += [(1.0 if choice else _FUSED, _bytes(t)) for t in arrays]
        kernels += 1 if choice else _FUSED
        if choice:
            types = [v.type for v in inputs]
            work = primitive.work(types, [v.type for v in outputs])
            products.append((work, _fraction(primitive, types, machine)))
    return Work(touched, products, moved, round(kernels))


def time_at_once(work: Work, count: int, machine: Machine) -> float:
    """The time of so many members as one, in microseconds."""
    time = work.kernels * machine.kernel
    time += sum(w * count * b / machine.rate(count * b) for w, b in work.touched)
    for products, fraction in work.products:
        rate = fraction if count == 1 else min(fraction, _batched(products, machine))
        time += machine.product(count * products, rate) + count * machine.item
    return time


def best_turn(work: Work, size: int, machine: Machine) -> tuple[int, dict[int, float]]:
    """How many members a turn, ``size`` being all at once; and the times of what there is."""
    times = {size: time_at_once(work, size, machine)}
    for count in range(1, size):
        if size % count == 0:
            turns = size // count
            inside = turns * (time_at_once(work, count, machine) + machine.turn)
            times[count] = inside + machine.copying(size * work.moved)
    best = min(times, key=times.__getitem__)
    return (best if times[best] < _WORTH * times[size] else size), times


def _operations(program: Program) -> Iterator[tuple[Any, Sequence[Any], Sequence[Any]]]:
    """Every operation, those of programs that stand in a call's place as well."""
    for equation in program.equations:
        primitive: Any = equation.primitive
        inner = primitive.inlined() if primitive.holds_programs else None
        if inner is None:
            yield primitive, equation.inputs, equation.outputs
        else:
            yield from _operations(inner)


def _fraction(primitive: Any, types: Sequence[ArrayType], machine: Machine) -> float:
    """The rate of one member's product or convolution by itself."""
    if isinstance(primitive, DotGeneral):
        return machine.wide
    features = types[1].shape[primitive.dims.rhs_spec[1]]
    return min(0.45, 0.03 * max(1, features))


def _batched(products: float, machine: Machine) -> float:
    return machine.batched if products < 8e6 else (machine.batched + machine.wide) / 2


def _bytes(type: ArrayType) -> int:
    return type.size * type.dtype.itemsize
