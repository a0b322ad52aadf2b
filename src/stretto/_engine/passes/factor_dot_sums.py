"""Sums of products over the axes that these share are contractions.

A gradient that is taken for each example and then added up is a product for each, written and read
again. It is one product that is summed over the examples, too. ``prepare`` calls this.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.program import Atom, Equation, Program, Var
from stretto._engine.core.rewriting import changed_inside, live, remembered, with_equations
from stretto._engine.core.types import is_inexact
from stretto._engine.ops.broadcast import ReduceSum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.layout import Transpose


def factor_dot_sums(program: Program) -> Program:
    """Return the program with such sums as products over more axes.

    >>> import stretto as st, stretto.numpy as snp
    >>> def slope(w, x):
    ...     return st.vmap(st.grad(lambda w, x: snp.sin(x @ w).sum()), (None, 0))(w, x).sum(0)
    >>> program = factor_dot_sums(st.make_graph(slope)(snp.ones((4, 3)), snp.ones((8, 4))))
    >>> [e.primitive.summed for e in program.equations if e.primitive.name == "dot_general"]
    [((1,), (0,)), ((0,), (0,))]
    """
    return remembered(program, "factor_dot_sums", _factor_dot_sums)


def _factor_dot_sums(program: Program) -> Program:
    program = changed_inside(program, factor_dot_sums)
    makers: dict[Atom, Equation] = {}
    """The products, and what turns products, whose results are read once."""
    once = _read_once(program)
    equations: list[Equation] = []
    for e in program.equations:
        primitive: Any = e.primitive
        maker = makers.get(e.inputs[0]) if e.inputs else None
        if isinstance(primitive, DotGeneral) or (isinstance(primitive, Transpose) and maker):
            if e.outputs[0] in once:
                makers[e.outputs[0]] = e
        elif isinstance(primitive, ReduceSum) and maker and is_inexact(e.inputs[0].type.dtype):
            made = _with_sum(e, maker, makers)
            if made is not None:
                equations += made
                continue
        equations.append(e)
    return live(with_equations(program, equations))


def _read_once(program: Program) -> set[Atom]:
    """Return what one operation reads, and nothing else."""
    uses: dict[Atom, int] = {}
    for a in [a for e in program.equations for a in e.inputs] + 2 * [*program.outputs]:
        uses[a] = uses.get(a, 0) + 1
    return {a for a, n in uses.items() if n == 1}


def _with_sum(
    total: Equation, maker: Equation, makers: dict[Atom, Equation]
) -> list[Equation] | None:
    """Return the operations for the sum of a product.

    It is None if it is over other axes than shared ones.
    """
    primitive: Any = total.primitive
    axes, order = primitive.axes, None
    if isinstance(maker.primitive, Transpose):
        turned: Any = maker.primitive
        axes = tuple([turned.permutation[a] for a in axes])
        order = [d for d in turned.permutation if d not in axes]
        maker = makers[maker.inputs[0]]
        if isinstance(maker.primitive, Transpose):
            return None
    product: Any = maker.primitive
    if not axes or max(axes) >= len(product.shared[0]):
        return None
    added, kept = [
        tuple([tuple([a for i, a in enumerate(pair) if (i in axes) is wanted])
               for pair in product.shared])
        for wanted in (True, False)
    ]  # fmt: skip
    summed = tuple([(*old, *new) for old, new in zip(product.summed, added, strict=True)])
    one = DotGeneral(summed, kept, product.precision, product.preferred)
    if order is None or order == sorted(order):
        return [Equation(one, maker.inputs, total.outputs, maker.place)]
    result = Var(one.infer(*[a.type for a in maker.inputs]))
    permutation = tuple([sorted(order).index(d) for d in order])
    return [
        Equation(one, maker.inputs, [result], maker.place),
        Equation(Transpose(permutation), [result], total.outputs, total.place),
    ]
