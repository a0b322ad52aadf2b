"""Which programs run in NumPy, operation by operation, and are not compiled.

Compiling takes at least some ten milliseconds, and starting a compiled program some five
microseconds, in which NumPy can do a few small operations.
"""

from __future__ import annotations

from stretto._engine.core.program import Program

MOST_EQUATIONS = 8
"""Each operation takes NumPy 0.3 to 2 µs, plus 0.2 µs for the step."""

MOST_ELEMENTS = 1024
"""The largest array: adding two of 1,024 elements takes NumPy 0.1 µs more than two of 4."""

MOST_WORK = 200_000.0
"""The most work of all operations, by ``Primitive.work``: some 10 µs."""


def interpretable(program: Program) -> bool:
    """Whether the program is so small that it is not worth compiling.

    At most 8 operations, each ``light`` (NumPy's own kind of function: arithmetic, comparisons,
    sums, products, shapes), on arrays of at most 1,024 elements. It depends on the program alone,
    so that equal calls give equal bits whether they are the first or the last.
    """
    equations = program.equations
    if len(equations) > MOST_EQUATIONS:
        return False
    if any([v.type.size > MOST_ELEMENTS for v in program.inputs]):
        return False
    work = 0.0
    for e in equations:
        primitive = e.primitive
        types = tuple([a.type for a in e.inputs])
        if not primitive.light or primitive.multiple or primitive.compiled(types):
            return False
        outs = [v.type for v in e.outputs]
        if any([t.size > MOST_ELEMENTS for t in outs]):
            return False
        work += primitive.work(types, outs)
    return work <= MOST_WORK
