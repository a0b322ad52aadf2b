"""Products that one kernel would compute again and again are kept apart.

YNNPACK makes one kernel of a product, of element-wise work on it, and of a second product. Where
the second matrix is square, it takes the loops over both products' columns for one, and computes
the first product anew for each block of 128. A barrier between them prevents it. ``prepare`` calls
this; decision 22 has the measurements.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.primitive import Kernel
from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import changed_inside, remembered, with_equations
from stretto._engine.ops.barrier import OPTIMIZATION_BARRIER
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.elementwise import Elementwise

_BLOCKS = 256
"""The columns from which on it matters: two blocks, which take a tenth longer than one."""


def split_chained_products(program: Program) -> Program:
    """The program with barriers in front of such products; the same values.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, w = snp.ones((8, 512)), snp.ones((512, 512))
    >>> program = split_chained_products(st.make_graph(lambda x, w: snp.tanh(x @ w) @ w)(x, w))
    >>> [e.primitive.name for e in program.equations]
    ['dot_general', 'tanh', 'optimization_barrier', 'dot_general']
    """
    return remembered(program, "split_chained_products", _split_chained_products)


def _split_chained_products(program: Program) -> Program:
    program = changed_inside(program, split_chained_products)
    if sum([e.primitive.__class__ is DotGeneral for e in program.equations]) < 2:
        return program
    products: set[Atom] = set()
    equations: list[Equation] = []
    for e in program.equations:
        primitive: Any = e.primitive
        if isinstance(primitive, DotGeneral):
            left = e.inputs[0]
            if left in products and _square(primitive, e.inputs[1]):
                apart = Var(left.type)
                equations.append(Equation(OPTIMIZATION_BARRIER, [left], [apart], e.place))
                e = Equation(primitive, [apart, e.inputs[1]], e.outputs, e.place)
            products.update(e.outputs)
        elif not products.isdisjoint(e.inputs) and (
            isinstance(primitive, Elementwise) or primitive.kernel is Kernel.VIEW
        ):
            products.update(e.outputs)
        equations.append(e)
    return with_equations(program, equations)


def _square(primitive: DotGeneral, right: Atom) -> bool:
    """Whether the second matrix has as many columns as rows, and enough of them."""
    (_, summed), (_, shared) = primitive.summed, primitive.shared
    shape = right.type.shape
    rows = math.prod([shape[a] for a in summed])
    columns = math.prod([n for a, n in enumerate(shape) if a not in (*summed, *shared)])
    return rows == columns >= _BLOCKS and right.type.dtype.itemsize == 4
