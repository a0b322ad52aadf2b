"""Compute once what is compared with an element chosen from it.

XLA computes a value again in each kernel that reads it, and each kernel rounds in its own way:
where a product and a sum stand in one loop they become one operation, and where the product was
moved out of the loop they do not. Then no element equals the maximum: its place is out of range,
its gradient is 0 / 0, and a threshold taken from a sorted array leaves out the element that it came
from. A barrier behind the value keeps it to one kernel.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from stretto._engine.core.primitive import Kernel, Primitive
from stretto._engine.core.program import Atom, Program, Var
from stretto._engine.core.rewriting import changed_inside, remembered
from stretto._engine.core.types import is_inexact
from stretto._engine.ops.barrier import OptimizationBarrier, with_barriers
from stretto._engine.ops.comparison import Comparison, Select
from stretto._engine.ops.index.combine import ScatterExtremum
from stretto._engine.ops.index.dynamic import DynamicSlice
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.joining import Concatenate
from stretto._engine.ops.reducing.argminmax import Place
from stretto._engine.ops.reducing.cumulative import RunningChooser
from stretto._engine.ops.reducing.reduce import Chooser
from stretto._engine.ops.reducing.window import WindowChooser
from stretto._engine.ops.sort import Sort, TopK

_CHOOSING = (Chooser, RunningChooser, WindowChooser, ScatterExtremum, Sort, TopK)
"""Each element of a result is one of an operand's."""

_MOVING = (Gather, DynamicSlice, Select, Concatenate, OptimizationBarrier)
"""So it is here, and the kernels that do it leave the bits as they are."""


def barrier_before_choices(program: Program) -> Program:
    """Return the program with barriers behind what is compared with its own elements.

    >>> from stretto._engine.api.graph import make_graph
    >>> import stretto.numpy as snp
    >>> program = make_graph(lambda x: snp.argmax(x * 2 + 1, 0))(snp.ones((3, 2)))
    >>> print(barrier_before_choices(program))
    { function(a:f32[3,2])
      b:f32[3,2] = mul a 2.0:f32[3,2]
      c:f32[3,2] = add b 1.0:f32[3,2]
      d:f32[3,2] = optimization_barrier c
      e:i32[2] = argmax d [axis=0, index_dtype=int32]
      return e }
    """
    return remembered(program, "barrier before choices", lambda p: _with_barriers(p, p.inputs))


def _inside(program: Program) -> Program:
    # The compiler writes such a program in place of its call: its arguments may be computed again.
    return remembered(program, "barrier before choices, inside", lambda p: _with_barriers(p, ()))


def _with_barriers(program: Program, stored: Iterable[Atom]) -> Program:
    program = changed_inside(program, _inside)
    compared = _compared(program)
    if not compared:
        return program
    barred = _barred(program, compared, set(stored))
    return with_barriers(program, barred) if barred else program


def _compared(program: Program) -> set[Atom]:
    """Find the values that are compared with what was chosen from them."""
    roots: dict[Atom, Atom] = {}  # of a view, the value that it is a view of
    origins: dict[Atom, frozenset[Atom]] = {}  # the values that elements were chosen from
    compared: set[Atom] = set()
    nothing: frozenset[Atom] = frozenset()
    for e in program.equations:
        primitive = e.primitive
        read = [roots.get(a, a) for a in e.inputs if a.__class__ is Var]
        chosen = nothing.union(*[origins.get(a, nothing) for a in e.inputs])
        if isinstance(primitive, Place):
            compared.update(read)
        elif isinstance(primitive, Comparison):
            compared.update(chosen.intersection(read))
        elif primitive.holds_programs:
            # What is chosen or compared inside may be compared or chosen outside.
            compared.update(chosen.intersection(read))
            if _chooses(primitive):
                origins.update(dict.fromkeys(e.outputs, chosen.union(read)))
        elif isinstance(primitive, _CHOOSING):
            origins.update(dict.fromkeys(e.outputs, chosen.union(read)))
        elif chosen and (_is_view(primitive) or isinstance(primitive, _MOVING)):
            origins.update(dict.fromkeys(e.outputs, chosen))
        elif len(e.inputs) == len(read) == 1 and _is_view(primitive):
            roots.update(dict.fromkeys(e.outputs, read[0]))
    return compared


def _is_view(primitive: Primitive) -> bool:
    return primitive.kernel is Kernel.VIEW or primitive.rearranges


def _chooses(primitive: Primitive) -> bool:
    """Tell whether the operation, or what it holds, chooses among elements."""
    if not primitive.holds_programs:
        return isinstance(primitive, _CHOOSING)
    holder: Any = primitive
    return any(_chooses(e.primitive) for p in holder.programs() for e in p.equations)


def _barred(program: Program, compared: set[Atom], stored: set[Atom]) -> set[Atom]:
    """Keep those values that kernels might compute again, and not to the last bit alike."""
    made: dict[Atom, Primitive] = {v: e.primitive for e in program.equations for v in e.outputs}

    def may_differ(value: Atom) -> bool:
        if value in stored or not is_inexact(value.type.dtype):
            return False
        # Results in narrow floats are computed wider, and XLA may leave the rounding out.
        return value not in made or value.type.dtype.itemsize < 4 or _in_kernels(made[value])

    return {value for value in compared if may_differ(value)}


def _in_kernels(primitive: Primitive) -> bool:
    """Tell whether the operation may be part of the kernels that read its result."""
    if primitive.kernel is None:
        return primitive.light or primitive.holds_programs
    return primitive.kernel is not Kernel.WRITTEN
