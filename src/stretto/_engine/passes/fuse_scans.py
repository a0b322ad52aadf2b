"""Make one operation of loops as those of recurrent layers, for a kernel that runs all turns.

What is looked for is a ``scan`` whose body has nothing but products of rows by matrices that do not
change, element-wise operations on rows, and slices of their columns: LSTM, GRU and their like as
people write them, forward, and as derivatives run them backwards. Sums of products over the turns,
which are gradients of matrices, are taken out of the loop before, as products of all turns at once.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.program import Equation, Program
from stretto._engine.core.rewriting import remember, with_equations, written_out
from stretto._engine.core.sizes import is_size
from stretto._engine.higher_order.fused_scan import FusedScan
from stretto._engine.higher_order.scan import Scan
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.loop_program import instructions
from stretto._engine.passes.fuse_rows import short
from stretto._engine.passes.hoist_products import gathered

_WORTH = 1 << 12
"""The multiply-adds of a member's turn from which a loop is a call. Fewer are XLA's, which may make
one kernel of the loop: with 8 features and one row it takes 0.85 of the time."""


def fuse_scans(program: Program) -> Program:
    """Return the program with recurrent loops as operations of their own.

    >>> import stretto as st, stretto.numpy as snp
    >>> def run(w, xs):
    ...     return st.lax.scan(lambda h, x: (snp.tanh(x + h @ w), None), snp.ones((8, 64)), xs)[0]
    >>> graph = st.make_graph(run)(snp.ones((64, 64)), snp.ones((5, 8, 64)))
    >>> [e.primitive.name for e in fuse_scans(graph).equations]
    ['fused_scan']
    """
    return remember(program, "fused scans", _fused)


def _fused(program: Program) -> Program:
    if not any([e.primitive.__class__ is Scan for e in program.equations]):
        return program
    equations: list[Equation] = []
    for e in program.equations:
        equations += _called(e) if e.primitive.__class__ is Scan else (e,)
    return with_equations(program, equations)


def _called(e: Equation) -> list[Equation]:
    """Return the equation of a loop as a call and what is around it; itself if it is none."""
    loop: Any = e.primitive
    if is_size(loop.length) or not loop.carry or not loop.length:
        return [e]
    products = [one for one in loop.body.equations if one.primitive.__class__ is DotGeneral]
    if sum([_multiply_adds(one) for one in products]) < _WORTH:
        return [e]
    before, inner, behind = gathered(e, all_sums=True)
    loop = inner.primitive
    body = written_out(loop.body, short)
    told = instructions(body, loop.consts, loop.carry, loop.length, loop.reverse)
    if told is None:
        return [e]
    call = Equation(FusedScan(loop, told), inner.inputs, inner.outputs, e.place)
    return [*before, call, *behind]


def _multiply_adds(e: Equation) -> int:
    """Return the multiply-adds of a product, of one member."""
    product: Any = e.primitive
    x = e.inputs[0].type
    summed = math.prod([x.shape[axis] for axis in product.summed[0]])
    members = math.prod([x.shape[axis] for axis in product.shared[0]])
    return summed * math.prod(e.outputs[0].type.shape) // max(members, 1)
