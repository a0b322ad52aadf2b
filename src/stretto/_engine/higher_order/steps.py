"""How many steps a loop takes at most, where its condition says so.

Solvers write ``(error > tolerance) & (count < 100)``: such a loop ends soon, whatever the data, and
so may run in the thread of its caller (``passes/run_on_xla_thread``).
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.program import Atom, Equation, Literal, Program, Var
from stretto._engine.ops.arithmetic import Add
from stretto._engine.ops.bitwise import And
from stretto._engine.ops.comparison import Ge, Gt, Le, Lt


def most_steps(
    cond: Program, cond_consts: int, body: Program, body_consts: int, carry: Sequence[Atom]
) -> float | None:
    """The most steps of a loop of these programs, which take so many constants, then the carry.

    Known are loops whose condition asks, perhaps beside other things, for a count to be below a
    constant, where the count begins with a constant and each step adds one.

    Returns:
        The number; None if nobody knows.
    """
    counts = []
    for k, limit in _limits(cond, cond_consts):
        step = _step(body, body_consts, k)
        first = carry[k]
        if step is not None and step > 0 and isinstance(first, Literal):
            counts.append(max((limit - float(first.value)) / step, 0.0) + 1)
    return min(counts, default=None)


def _limits(cond: Program, consts: int) -> list[tuple[int, float]]:
    """Which numbers of the carry are below which constants where the condition holds."""
    made: dict[Atom, Equation] = {v: e for e in cond.equations for v in e.outputs}
    carry = cond.inputs[consts:]
    asked: list[Atom] = [cond.outputs[0]]
    limits = []
    while asked:
        e = made.get(asked.pop())
        if e is None:
            continue
        operation = e.primitive
        if isinstance(operation, And):
            asked += e.inputs
        elif isinstance(operation, (Lt, Le, Gt, Ge)):
            low, high = e.inputs if isinstance(operation, (Lt, Le)) else e.inputs[::-1]
            if isinstance(low, Var) and low in carry and isinstance(high, Literal):
                limits.append((carry.index(low), float(high.value)))
    return limits


def _step(body: Program, consts: int, k: int) -> float | None:
    """The constant that each step adds to the k-th number of the carry, if it does that."""
    before, after = body.inputs[consts + k], body.outputs[k]
    for e in body.equations:
        if after in e.outputs and isinstance(e.primitive, Add) and before in e.inputs:
            added = e.inputs[1 - list(e.inputs).index(before)]
            return float(added.value) if isinstance(added, Literal) else None
    return None
