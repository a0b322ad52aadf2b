"""Products that sum over axes.

Layer 7 (numpy). Those of ``ops.contract``, and the array API's ``vecdot``. Next, read ``methods``.
"""

from __future__ import annotations

from typing import Any

from stretto.core.interpreter import as_value
from stretto.ops.arithmetic import conj
from stretto.ops.broadcast import canonical_axis, expand_dims, move_axis, squeeze
from stretto.ops.contract import dot, inner, matmul, outer, tensordot, vdot

__all__ = ["dot", "inner", "matmul", "outer", "tensordot", "vdot", "vecdot"]


def vecdot(x1: Any, x2: Any, /, *, axis: int = -1) -> Any:
    """The sum of ``conj(x1) * x2`` along ``axis``, the arrays broadcast along the others.

    Raises ``ValueError`` where the sizes along ``axis`` differ.

    >>> import stretto.numpy as snp
    >>> snp.vecdot(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = as_value(x1, "vecdot", "x1"), as_value(x2, "vecdot", "x2")
    x = move_axis(x, canonical_axis(axis, x.ndim, "vecdot"), x.ndim - 1)
    y = move_axis(y, canonical_axis(axis, y.ndim, "vecdot"), y.ndim - 1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"vecdot: sizes along axis {axis} differ, {x.type} and {y.type}")
    row, column = expand_dims(conj(x), x.ndim - 1), expand_dims(y, y.ndim)
    return squeeze(matmul(row, column), (-2, -1))
