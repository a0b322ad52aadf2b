"""Loops found in straight-line code: many copies of the same equations become one ``Scan``.

A Python loop in a traced function leaves a copy of its body for each iteration, and XLA compiles
every one. Where the copies are the iterations of one loop, and that compiles faster and runs no
slower by estimate (``profit``), the loop takes their place; the text of the lowered function,
``jit(f).lower(x).as_text()``, then has a ``stablehlo.while``. The operations are the same, in the
same order. ``passes/prepare`` calls this.
"""

from __future__ import annotations

from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import changed_inside, remembered
from stretto._engine.passes import rolling


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

    return remembered(program, ("rolled", always), derive)


def roll_all_loops(program: Program) -> Program:
    """Return the program with all loops that there are, also those that do not pay, for tests."""
    return roll_loops(program, always=True)


def _rolled(program: Program, always: bool) -> Program:
    """Return the program with loops in place of its own equations."""
    equations = program.equations
    tokens = rolling.stretches.tokens_of(equations, always)
    if tokens is None:
        return program
    repeated = rolling.stretches.stretches(tokens)
    if not (always and repeated) and not any(
        [rolling.profit.may_pay(equations, s) for s in repeated]
    ):
        return program
    return rolling.selection.with_loops(program, repeated, tokens, always, roll_loops)
