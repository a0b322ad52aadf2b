"""Write products of one term, and of a matrix and a vector, as element-wise work along rows.

A layer of one input multiplies a column by a row, one of one output sums each row's products with a
vector, and their derivatives do the other. Between them stand activations. So all of such a network
is work along rows, which ``fuse_rows`` has done in one call, if what is computed behind the sums is
as large as the rows; else they stay products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from stretto._engine.core.program import Atom, Equation, Literal, Program
from stretto._engine.core.recorder import record
from stretto._engine.core.sizes import is_size
from stretto._engine.kernels import DTYPES
from stretto._engine.ops.arithmetic import add, multiply
from stretto._engine.ops.broadcast import BroadcastInDim, ReduceSum
from stretto._engine.ops.comparison import le, select, zeros_like
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.fused_product import FusedProduct
from stretto._engine.ops.layout import Reshape, Transpose
from stretto._engine.ops.product_strides import WORTH
from stretto._engine.ops.row_program import Space


def product_of(e: Equation) -> DotGeneral | None:
    """Return the product that an equation is, alone or with what follows it."""
    primitive = e.primitive
    found = primitive.product if isinstance(primitive, FusedProduct) else primitive
    return found if isinstance(found, DotGeneral) else None


def matrix_of(e: Equation) -> Atom | None:
    """Return the matrix whose rows an equation multiplies by a vector and sums, if it does."""
    matrix = _matrix(e)
    return None if matrix is None else e.inputs[matrix]


def space_of(e: Equation) -> Space | None:
    """Return the rows of that matrix."""
    matrix = matrix_of(e)
    return None if matrix is None else Space(matrix.type.shape, 1, matrix.type.dtype)


def as_rows(e: Equation, shapes: Iterable[tuple[int, ...]]) -> tuple[Program, int] | None:
    """Return a product as operations on rows of one of these shapes, and the place of the largest.

    None if it is not a thin one. Results differ in the order of sums.
    """
    matrix = _matrix(e)
    if matrix is not None and e.inputs[matrix].type.shape in shapes:
        run = lambda *xs: ([_with_rest(e, _summed(e, matrix, *xs[:2]), xs[2:])], None)
    elif _is_outer(e) and e.outputs[0].type.shape in shapes:
        run = lambda *xs: ([_with_rest(e, _outer(e, *xs[:2]), xs[2:])], None)
    else:
        return None
    program = record(run, [a.type for a in e.inputs])[0]
    size = lambda n: program.equations[n].outputs[0].type.size
    computing = [
        n
        for n, one in enumerate(program.equations)
        if not isinstance(one.primitive, (BroadcastInDim, Reshape, Transpose))
    ]
    return program, max(computing, key=size)


def _is_plain(e: Equation) -> bool:
    product = product_of(e)
    if product is None or product.precision is not None or any(map(_is_literal, e.inputs)):
        return False
    types = [a.type for a in (*e.inputs, *e.outputs)]
    same = types[0].dtype in DTYPES and all([t.dtype == types[0].dtype for t in types])
    return same and not any([is_size(n) for t in types for n in t.shape])


def _is_literal(a: Any) -> bool:
    return isinstance(a, Literal)


def _axes(e: Equation) -> list[tuple[Any, Any]]:
    """Return which axes of the operands each axis of the result is; None for one that has none."""
    product: Any = product_of(e)
    free = product.free_of(*[a.type.ndim for a in e.inputs[:2]])
    axes = [
        *zip(*product.shared, strict=True),
        *[(a, None) for a in free[0]],
        *[(None, a) for a in free[1]],
    ]
    fused: Any = e.primitive
    return [axes[k] for k in fused.order] if isinstance(fused, FusedProduct) else axes


def _matrix(e: Equation) -> int | None:
    """Return which operand is a matrix whose rows are multiplied by a vector and summed.

    Its rows lie behind each other, and in the order of the result.
    """
    if not _is_plain(e):
        return None
    product: Any = product_of(e)
    if len(product.summed[0]) != 1:
        return None
    axes = _axes(e)
    free = product.free_of(*[a.type.ndim for a in e.inputs[:2]])
    for k in (0, 1):
        shape, vector = e.inputs[k].type.shape, e.inputs[1 - k].type.shape
        rows = math.prod([shape[a] for a in free[k]])
        if product.summed[k] != (len(shape) - 1,) or rows * shape[-1] < WORTH:
            continue
        own = [pair[k] for pair in axes if pair[k] is not None and shape[pair[k]] != 1]
        if own == sorted(own) and all([vector[a] == 1 for a in free[1 - k]]):
            return k
    return None


def _is_outer(e: Equation) -> bool:
    """Say whether a product has one term."""
    product = product_of(e)
    if product is None or not _is_plain(e):
        return False
    return all([e.inputs[0].type.shape[a] == 1 for a in product.summed[0]])


def _placed(x: Any, places: dict[int, int], shape: tuple[int, ...]) -> Any:
    """Return an array with these axes at places of a shape; its others have one element."""
    kept = [a for a in range(x.ndim) if a in places]
    sizes = tuple([x.shape[a] for a in kept])
    x = x if sizes == x.shape else Reshape(sizes)(x)
    dims = [places[a] for a in kept]
    order = tuple(sorted(range(len(dims)), key=dims.__getitem__))
    x = x if dims == sorted(dims) else Transpose(order)(x)
    return BroadcastInDim(shape, tuple(sorted(dims)))(x)


def _outer(e: Equation, x: Any, y: Any) -> Any:
    shape = e.outputs[0].type.shape
    axes = _axes(e)
    first = {a: place for place, (a, _) in enumerate(axes) if a is not None}
    second = {b: place for place, (_, b) in enumerate(axes) if b is not None}
    return multiply(_placed(x, first, shape), _placed(y, second, shape))


def _summed(e: Equation, matrix: int, x: Any, y: Any) -> Any:
    product: Any = product_of(e)
    rows, vector = (x, y) if matrix == 0 else (y, x)
    pairs = zip(
        (*product.shared[1 - matrix], *product.summed[1 - matrix]),
        (*product.shared[matrix], *product.summed[matrix]),
        strict=True,
    )
    last = rows.ndim - 1
    total = ReduceSum((last,))(multiply(rows, _placed(vector, dict(pairs), rows.shape)))
    shape = e.outputs[0].type.shape
    return total if total.shape == shape else Reshape(shape)(total)


def _with_rest(e: Equation, out: Any, added: Iterable[Any]) -> Any:
    """Return a product with what follows it in one operation."""
    for value in added:
        out = add(out, value)
    if isinstance(e.primitive, FusedProduct) and e.primitive.relu:
        out = select(le(out, zeros_like(out)), zeros_like(out), out)
    return out
