"""NumPy's other products: ``tensordot``, ``vdot``, ``inner`` and ``outer``."""

from __future__ import annotations

from typing import Any

from stretto._engine.core.errors import ContractionError
from stretto._engine.core.integers import entries_of, integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.ops.arithmetic import multiply
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.contract import contracted, dot
from stretto._engine.ops.layout import reshape


def tensordot(
    x: Any, y: Any, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Sum products over ``axes``: a pair of axis lists, or how many last of ``x``, first of ``y``.

    Raises ``ValueError`` where paired sizes differ.

    >>> import stretto.numpy as snp
    >>> snp.tensordot(snp.ones((2, 3, 4)), snp.ones((3, 4, 5))).shape
    (2, 5)
    """
    x, y = promote_dtypes("tensordot", x, y)
    pair = entries_of(axes)
    if len(pair) > 1 or pair is axes:
        if len(pair) != 2:
            raise ValueError(f"tensordot: axes must be a number or two lists of axes, got {axes!r}")
        summed = tuple([tuple(entries_of(a)) for a in pair])
    else:
        n = integer(axes, "tensordot", "axes")
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: {x.type} and {y.type} do not both have {n} axes to sum")
        summed = (tuple(range(x.ndim - n, x.ndim)), tuple(range(n)))
    numbers = (summed, ((), ()))
    return contracted("tensordot", x, y, numbers, precision, preferred_element_type)


def vdot(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of ``conj(x) * y`` over all elements, in row-major order.

    >>> import stretto.numpy as snp
    >>> snp.vdot(snp.array([1j, 2.0]), snp.array([1j, 3.0]))
    Array(7.+0.j, dtype=complex64)
    """
    x, y = as_value(x, "vdot", "x"), as_value(y, "vdot", "y")
    if x.size != y.size:
        raise ContractionError(
            f"vdot: sizes differ, {x.size} (x: {x.type}) and {y.size} (y: {y.type})"
        )
    flat_x, flat_y = reshape(conj(x), (x.size,)), reshape(y, (y.size,))
    return dot(flat_x, flat_y, precision, preferred_element_type)


def inner(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """The sum of products over the last axes of both; scalars multiply.

    >>> import stretto.numpy as snp
    >>> snp.inner(snp.ones((2, 3)), snp.ones((4, 3))).shape
    (2, 4)
    """
    x, y = promote_dtypes("inner", x, y)
    if not (x.ndim and y.ndim):
        return multiply(x, y)
    numbers = (((x.ndim - 1,), (y.ndim - 1,)), ((), ()))
    return contracted("inner", x, y, numbers, precision, preferred_element_type)


def outer(x: Any, y: Any) -> Any:
    """Every product of an element of ``x`` and one of ``y``, both flattened.

    >>> import stretto.numpy as snp
    >>> snp.outer(snp.array([1, 2]), snp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x, y = as_value(x, "outer", "x"), as_value(y, "outer", "y")
    return multiply(reshape(x, (x.size, 1)), reshape(y, (1, y.size)))
