"""Sums over devices that can be taken at once are one collective.

``psum`` of a tree is a sum for each leaf, and the derivative of what all devices share is one for
each array. Each would be a message between all devices. Those of one dtype, along the same axes, of
which none needs another one's result, become one; and sums along one axis after another become one
along all of these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.program import Atom, Equation, Program
from stretto._engine.core.rewriting import changed_inside, remembered, with_equations
from stretto._engine.ops.collective.primitives import Total, TotalsTogether


def merge_all_reduces(program: Program) -> Program:
    """Return the program with its sums over devices taken together.

    The values are the same, but for rounding.
    """
    return remembered(program, "merge_all_reduces", _merge_all_reduces)


def _merge_all_reduces(program: Program) -> Program:
    program = changed_inside(program, merge_all_reduces)
    if sum([isinstance(e.primitive, Total) for e in program.equations]) < 2:
        return program
    sums = _chained(program)
    # Sums are taken in turns: those of a turn need the results of turns before it alone.
    turns: dict[Atom, int] = {}
    order: list[tuple[float, Equation]] = []
    alike: dict[tuple[int, tuple[Any, ...], np.dtype], list[Equation]] = {}
    for e in program.equations:
        if id(e) in sums and sums[id(e)] is None:
            continue  # part of a later one
        e = sums.get(id(e)) or e
        turn = max([turns.get(a, 0) for a in e.inputs], default=0)
        if isinstance(e.primitive, TotalsTogether):
            alike.setdefault((turn, e.primitive.axes, e.inputs[0].type.dtype), []).append(e)
            turn += 1
        else:
            order.append((turn, e))
        turns.update(dict.fromkeys(e.outputs, turn))
    for (turn, axes, _), those in alike.items():
        inputs = [a for e in those for a in e.inputs]
        outputs = [v for e in those for v in e.outputs]
        joined = Equation(TotalsTogether(axes), inputs, outputs, those[0].place)
        order.append((turn + 0.5, joined))
    order.sort(key=lambda pair: pair[0])  # stable: otherwise in the order of the program
    return with_equations(program, [e for _, e in order])


def _chained(program: Program) -> dict[int, Equation | None]:
    """Return the sums by number: each along all axes of its chain.

    It is None for one that is in a later one.
    """
    uses: dict[Atom, int] = {}
    for atom in [*program.outputs, *[a for e in program.equations for a in e.inputs]]:
        uses[atom] = uses.get(atom, 0) + 1
    made: dict[Atom, Equation] = {}
    found: dict[int, Equation | None] = {}
    for e in program.equations:
        primitive: Any = e.primitive
        if not isinstance(primitive, Total):
            continue
        (x,), axes = e.inputs, ((primitive.axis, primitive.size),)
        before = made.get(x)
        if before is not None and uses[x] == 1:
            inner: Any = found[id(before)]
            found[id(before)] = None
            (x,), axes = inner.inputs, tuple(sorted((*inner.primitive.axes, *axes), key=str))
        found[id(e)] = Equation(TotalsTogether(axes), [x], e.outputs, e.place)
        made[e.outputs[0]] = e
    return found
