"""Calls whose sizes vary are written in place, before all that makes programs faster.

Derivatives and mapped forms are made of the program of true sizes; when a program is lowered there
are no more of them to come.
"""

from __future__ import annotations

from stretto._engine.core.program import Program
from stretto._engine.core.rewriting import changed_inside, remembered, written_out
from stretto._engine.higher_order.sized import SizedCall


def inline_sized_calls(program: Program) -> Program:
    """The program with the operations of such calls, for the sizes of their buckets, in place.

    >>> import stretto as st, stretto.numpy as snp
    >>> words = st.ragged([snp.ones(2), snp.ones(3)])
    >>> sums = st.make_graph(st.vmap(snp.sum))(words)
    >>> [e.primitive.name for e in sums.equations][-1]
    'sized_call'
    >>> [e.primitive.name for e in inline_sized_calls(sums).equations][-1]
    'reduce_sum'
    """
    return remembered(program, "inline_sized_calls", _inline_sized_calls)


def _inline_sized_calls(program: Program) -> Program:
    program = changed_inside(program, inline_sized_calls)
    if not any([isinstance(e.primitive, SizedCall) for e in program.equations]):
        return program
    return written_out(
        program,
        lambda e: (
            inline_sized_calls(e.primitive.fixed()) if isinstance(e.primitive, SizedCall) else None
        ),
    )
