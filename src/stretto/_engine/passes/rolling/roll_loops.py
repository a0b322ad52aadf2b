"""Loops found in straight-line code: many copies of the same equations become one ``Scan``.

A Python loop in a traced function leaves a copy of its body for each iteration, and XLA compiles
every one. Where the copies are the iterations of one loop, and that compiles faster and runs no
slower by estimate (``profit``), the loop takes their place; the text of the lowered function,
``jit(f).lower(x).as_text()``, then has a ``stablehlo.while``. The operations are the same, in the
same order.

Here is found where the operations of a program repeat: stretches of equations with a period. Each
equation becomes a token: its operation, and the type of its output. Within a stretch of period p,
every group of tokens was last seen p positions before; so stretches are runs of equal distances,
found for groups of 1, 2, 4, … tokens by sorting, in n log n. What the operations are applied to is
checked later (``operands``), and only within the stretches found.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.program import Equation, Program, operation_key
from stretto._engine.core.rewriting import changed_inside, remember
from stretto._engine.ops.shape import Pad, Slice
from stretto._engine.passes import rolling

LEAST_COPIES = 4
"""The fewest copies for which a stretch is considered."""

_LEAST_REPEATED = 24
"""The fewest equations that repeat earlier ones for which a program is considered."""

_MOST_STRETCHES = 64

_BASE = np.uint64(0x9E3779B97F4A7C15)


def roll_loops(program: Program, always: bool = False) -> Program:
    """Return the program with loops for what repeats in it; the same inputs and outputs.

    Programs that its operations hold are treated in the same way, if these are ``rollable``.
    ``always`` makes loops even where they do not pay, for tests.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> def power(x):
    ...     y = x
    ...     for _ in range(1000):
    ...         y = y * x
    ...     return y
    >>> print(roll_loops(make_graph(power)(snp.ones(4))))
    { power(a:f32[4])
      b:f32[4] = scan a a [length=1000, consts=1, carry=1, reverse=False, unroll=8]
        body:
          { power(a:f32[4], b:f32[4])
            c:f32[4] = mul b a
            return c }
      return b }
    """

    def derive(program: Program) -> Program:
        return _rolled(changed_inside(program, lambda p: roll_loops(p, always)), always)

    return remember(program, ("rolled", always), derive)


def roll_all_loops(program: Program) -> Program:
    """Return the program with all loops that there are, also those that do not pay, for tests.

    ``tests/property`` has it in the place of ``roll_loops``.
    """
    return roll_loops(program, always=True)


def _rolled(program: Program, always: bool) -> Program:
    """Return the program with loops in place of its own equations."""
    equations = program.equations
    tokens = tokens_of(equations, always)
    if tokens is None:
        return program
    repeated = stretches(tokens)
    if not (always and repeated) and not any(
        [rolling.profit.may_pay(equations, s) for s in repeated]
    ):
        return program
    return rolling.rewrite.with_loops(program, repeated, tokens, always, roll_loops)


class Stretch(NamedTuple):
    """Equations from ``start`` on, each like the one ``period`` positions before it."""

    start: int
    period: int
    length: int


def has_index(primitive: Any) -> bool:
    """Say whether the operation has an index that may be another in each copy."""
    return isinstance(primitive, Slice | Pad)


class _Kinds(dict[Any, Any]):
    """Maps an operation to what its token contains: all of it, or less if copies may differ."""

    def __init__(self) -> None:
        super().__init__()
        self.alone: set[Any] = set()
        """The operations of which no loop may be made."""
        self.programs = False

    def __missing__(self, primitive: Any) -> Any:
        kind = primitive
        if primitive.effects or not primitive.rollable:
            self.alone.add(primitive)
        elif primitive.holds_programs:
            self.programs = True
            kind = operation_key(primitive)
        elif has_index(primitive):
            kind = type(primitive)
        self[primitive] = kind
        return kind


def tokens_of(equations: Sequence[Equation], always: bool = False) -> np.ndarray | None:
    """Return the token of each equation.

    It is ``None`` if so few occur twice that there is nothing to gain.
    """
    kinds = _Kinds()
    tokens = [
        hash((kinds[e.primitive], e.outputs[0].type if e.outputs else None)) for e in equations
    ]
    least = LEAST_COPIES - 1 if always or kinds.programs else _LEAST_REPEATED
    if len(tokens) - len(set(tokens)) < least:
        return None
    if kinds.alone:
        alone = kinds.alone
        tokens = [
            hash((i, t)) if e.primitive in alone else t
            for i, (e, t) in enumerate(zip(equations, tokens, strict=True))
        ]
    return np.array(tokens, np.int64).view(np.uint64)


def stretches(tokens: np.ndarray) -> list[Stretch]:
    """Return stretches of at least ``LEAST_COPIES`` periods, the one that repeats most first."""
    ranges: set[tuple[int, int, int]] = set()
    group, width, factor = tokens, 1, _BASE
    with np.errstate(over="ignore"):
        while len(group) > 1:
            distance = _distances(group)
            if distance is None:
                break
            edges = np.flatnonzero(np.diff(distance)) + 1
            starts = np.concatenate(([0], edges))
            lengths = np.diff(np.concatenate((starts, [len(distance)])))
            periods = distance[starts]
            wholes = lengths + periods + (width - 1)
            fits = (periods > 0) & (wholes >= LEAST_COPIES * periods)
            ranges.update(
                zip(
                    (starts - periods)[fits].tolist(),
                    periods[fits].tolist(),
                    wholes[fits].tolist(),
                    strict=True,
                )
            )
            group = group[:-width] * factor + group[width:]
            width, factor = 2 * width, factor * factor
    ordered = sorted(ranges, key=lambda f: (f[1] - f[2], f))
    return [Stretch(*f) for f in ordered[:_MOST_STRETCHES]]


def _distances(group: np.ndarray) -> np.ndarray | None:
    """Return how far back each value last occurred, 0 if it did not.

    It is ``None`` if none occurs twice.
    """
    order = np.argsort(group, kind="stable")
    ordered = group[order]
    again = ordered[1:] == ordered[:-1]
    if not again.any():
        return None
    distance = np.zeros(len(group), np.int64)
    distance[order[1:]] = np.where(again, order[1:] - order[:-1], 0)
    return distance
