"""On GPUs, what is compared with its own extremum is computed once.

Layer 5 (plan). XLA computes a value again in each kernel that reads it. On GPUs the compiler joins
products and sums there as it sees fit, so the last bit may differ from kernel to kernel: then no
element equals the maximum, its place is out of range, and its gradient is 0 / 0. A barrier behind
the value keeps it to one kernel. Next, read ``stored``.
"""

from __future__ import annotations

from stretto._engine.core.position import Place
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.ops.barrier import OPTIMIZATION_BARRIER
from stretto._engine.ops.reducing import places
from stretto._engine.ops.reducing.reduce import Chooser
from stretto._engine.transforms.simplify import changed_inside, remembered, with_equations

__all__ = ["settled"]


def settled(program: Program) -> Program:
    """The program with barriers behind what extrema are taken of; the same values.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> print(settled(make_graph(lambda x: (x * 2).max(0))(snp.ones((3, 2)))))
    { function(a:f32[3,2])
      b:f32[3,2] = mul a 2.0:f32[3,2]
      c:f32[3,2] = optimization_barrier b
      d:f32[2] = reduce_max c [axes=(0,)]
      return d }
    """
    return remembered(program, "settled", _settled)


def _settled(program: Program) -> Program:
    program = changed_inside(program, settled)
    compared = {e.inputs[0] for e in program.equations if _compares(e.primitive)}
    if not compared:
        return program
    renamed: dict[Atom, Var] = {}
    result: list[Equation] = []

    def keep(value: Atom, place: Place | None) -> None:
        copy = renamed[value] = Var(value.type)
        result.append(Equation(OPTIMIZATION_BARRIER, [value], [copy], place))

    for e in program.equations:
        for value in e.inputs[:1] if _compares(e.primitive) else ():
            if value.__class__ is Var and value not in renamed:  # an input of the program
                keep(value, e.place)
        inputs = [renamed.get(a, a) for a in e.inputs]
        result.append(Equation(e.primitive, inputs, e.outputs, e.place))
        for value in e.outputs:
            if value in compared:
                keep(value, e.place)
    return with_equations(program, result)


def _compares(primitive: Primitive) -> bool:
    return isinstance(primitive, (Chooser, places.Place))
