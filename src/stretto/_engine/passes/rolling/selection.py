"""Choose which of the repeated stretches become loops.

Stretches are tried in order, the one that repeats most first. Each must form a loop by what its
copies are applied to (``operands``), and pay given the other loops (``profit``). If it does not,
what repeats inside it is tried instead.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from stretto._engine.core.program import Equation, Program
from stretto._engine.passes.rolling.liveness import Exchange, exchange
from stretto._engine.passes.rolling.operands import Homes, Loop, loop_in, wired
from stretto._engine.passes.rolling.profit import gain, runs_as_fast
from stretto._engine.passes.rolling.rewrite import write_loops
from stretto._engine.passes.rolling.stretches import LEAST_COPIES, Stretch

_MOST_TRIED = 4
"""So many other periods are tried if the first one does not give a loop."""


def with_loops(
    program: Program,
    candidates: Sequence[Stretch],
    tokens: np.ndarray,
    always: bool,
    inner: Callable[[Program, bool], Program],
) -> Program:
    """Return the program with loops made of these stretches.

    ``inner`` rolls loops in their bodies.
    """
    equations = program.equations
    homes: Homes = {v: (i, o) for i, e in enumerate(equations) for o, v in enumerate(e.outputs)}
    refused: set[tuple[int, int]] = set()
    read: dict[tuple[int, int, int], list[Loop]] = {}
    while True:
        loops: list[Loop] = []
        free = [True] * len(equations)
        for stretch in candidates:
            low, high = _clipped(stretch, free)
            if not all(free[low:high]):
                continue
            key = (low, high, stretch.period)
            if key not in read:
                read[key] = _loops(equations, *key, homes, tokens)
            for loop in read[key]:
                if (loop.start, loop.period) not in refused:
                    loops.append(loop)
                    free[loop.start : loop.end] = [False] * (loop.end - loop.start)
        if not loops:
            return program
        loops.sort(key=lambda loop: loop.start)
        exchanged = exchange(program, loops, homes)
        worse = [] if always else _worse(loops, exchanged, homes)
        if not worse:
            return write_loops(program, loops, exchanged, lambda body: inner(body, always))
        refused.update([(loop.start, loop.period) for loop in worse])


def _worse(loops: Sequence[Loop], exchanged: Exchange, homes: Homes) -> list[Loop]:
    """Return the loops that are not worth it.

    Gains of linked loops are added up: without one of them, the others would have to take their
    stacks apart.
    """
    group = {id(loop): id(loop) for loop in loops}

    def root(loop: Loop) -> int:
        at = id(loop)
        while group[at] != at:
            at = group[at]
        return at

    for loop in loops:
        for link in exchanged.uses[id(loop)].links.values():
            group[root(loop)] = root(link.loop)
    gains: dict[int, float] = {}
    for loop in loops:
        gains[root(loop)] = gains.get(root(loop), 0.0) + gain(loop, exchanged.uses[id(loop)])
    slow = [loop for loop in loops if not runs_as_fast(loop, exchanged.uses[id(loop)], homes)]
    return slow or [loop for loop in loops if gains[root(loop)] < 0]


def _loops(
    equations: Sequence[Equation],
    low: int,
    high: int,
    period: int,
    homes: Homes,
    tokens: np.ndarray,
) -> list[Loop]:
    """Return the loops from ``low`` to ``high``, if need be with a period found by ``wired``."""
    if high - low < LEAST_COPIES * period:
        return []
    loop = loop_in(equations, low, high, period, homes)
    if loop is None:
        for start, other, length in wired(equations, low, high, tokens, homes)[:_MOST_TRIED]:
            loop = loop or loop_in(equations, start, start + length, other, homes)
    if loop is None:
        return []
    before = _loops(equations, low, loop.start, period, homes, tokens)
    after = _loops(equations, loop.end, high, period, homes, tokens)
    return [*before, loop, *after]


def _clipped(stretch: Stretch, free: Sequence[bool]) -> tuple[int, int]:
    """Return the bounds of a stretch, without equations at its ends that other loops have taken."""
    low, high = stretch.start, stretch.start + stretch.length
    while low < high and not free[low]:
        low += 1
    while low < high and not free[high - 1]:
        high -= 1
    return low, high
