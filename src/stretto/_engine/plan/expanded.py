"""Calls whose sizes vary are written in place, before all that makes programs faster.

Layer 5 (plan). Derivatives and mapped forms are made of the program of true sizes; when a program
is lowered there are no more of them to come. Next, read ``control/sized``.
"""

from __future__ import annotations

from stretto._engine.control.sized import SizedCall
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.transforms.simplify import changed_inside, remembered

__all__ = ["expanded"]


def expanded(program: Program) -> Program:
    """The program with the operations of such calls, for the sizes of their buckets, in place.

    >>> import stretto as st, stretto.numpy as snp
    >>> words = st.ragged([snp.ones(2), snp.ones(3)])
    >>> sums = st.make_graph(st.vmap(snp.sum))(words)
    >>> [e.primitive.name for e in sums.equations][-1]
    'sized_call'
    >>> [e.primitive.name for e in expanded(sums).equations][-1]
    'reduce_sum'
    """
    return remembered(program, "expanded", _expanded)


def _expanded(program: Program) -> Program:
    program = changed_inside(program, expanded)
    if not any([isinstance(e.primitive, SizedCall) for e in program.equations]):
        return program
    known: dict[Atom, Atom] = {}
    equations: list[Equation] = []
    for e in program.equations:
        inputs = [known.get(a, a) for a in e.inputs]
        if not isinstance(e.primitive, SizedCall):
            equations.append(Equation(e.primitive, inputs, e.outputs, e.place))
            continue
        inner = expanded(e.primitive.fixed())
        own: dict[Atom, Atom] = dict(zip(inner.inputs, inputs, strict=True))
        for one in inner.equations:
            outputs = [Var(v.type) for v in one.outputs]
            reads = [own.get(a, a) for a in one.inputs]
            equations.append(Equation(one.primitive, reads, outputs, one.place))
            own.update(zip(one.outputs, outputs, strict=True))
        known.update({v: own.get(a, a) for v, a in zip(e.outputs, inner.outputs, strict=True)})
    outputs_of_all = [known.get(a, a) for a in program.outputs]
    return Program(program.inputs, equations, outputs_of_all, program.name)
