"""The pseudo-inverse.

A primitive, because its derivative needs no differences of singular values: it exists where some of
them are equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType, array_type, real_dtype
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import full_like, select, zeros_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.cholesky import hermitian_from_lower
from stretto._engine.ops.linalg.eigh import Eigh
from stretto._engine.ops.linalg.family import MatrixOperation, check_matrix
from stretto._engine.ops.linalg.matrix_parts import adjoint
from stretto._engine.ops.linalg.svd import Svd
from stretto._engine.ops.reducing.reduce import reduce_max


class Pinv(MatrixOperation):
    """The pseudo-inverse, with singular values up to a fraction of the greatest taken as zero.

    The fraction is the second operand. If ``hermitian``, by eigenvalues of the lower triangle.
    """

    hermitian: bool
    with_zeros = True

    def infer(self, x: ArrayType, rtol: ArrayType) -> ArrayType:
        *batch, m, n = check_matrix("pinv", x, self.hermitian)
        if rtol != array_type(tuple(batch), real_dtype(x.dtype)):
            raise ValueError(
                f"pinv: rtol must be a real number for each matrix of {x}, of its precision; got "
                f"{rtol}"
            )
        return array_type((*batch, n, m), x.dtype)

    def reference(self, x: np.ndarray, rtol: np.ndarray) -> np.ndarray:
        if not x.size:
            return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
        if self.hermitian:
            u, s = linalg_reference.eigh(x, True)
            vh = np.conj(np.swapaxes(u, -1, -2))
        else:
            u, s, vh = linalg_reference.svd(x, False, True)
        size = np.abs(s)
        keep = ~(size <= rtol[..., None] * np.max(size, -1, keepdims=True))  # NaN stays
        inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
        v, uh = (np.conj(np.swapaxes(m, -1, -2)) for m in (vh, u))
        return np.matmul(v * inverse[..., None, :], uh)

    def lower(self, b: Any, x: Any, rtol: Any) -> Any:
        out = b.outs[0]
        return b.inline(self.composed, x, rtol) if x.type.size else b.splat(0, out)

    def composed(self, x: Any, rtol: Any) -> Any:
        """v s^-1 u^H."""
        if self.hermitian:
            u, s = Eigh()(x)
            v = u
        else:
            u, s, vh = Svd(False, True)(x)
            v = adjoint(vh)
        size = absolute(s)
        last = s.ndim - 1
        least = expand_dims(rtol * reduce_max(size, (last,)), last)
        drop = size <= least
        inverse = select(drop, zeros_like(s), 1 / select(drop, full_like(s, 1), s))
        return matmul(v * convert(expand_dims(inverse, last), x.dtype), adjoint(u))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Golub and Pereyra, The differentiation of pseudo-inverses (1973), for a constant rank."""
        # dp = -p dx p + p p^H dx^H (1 - x p) + (1 - p x) dx^H p^H p
        (x, rtol), (dx, _) = primals, tangents
        p = self(x, rtol)
        if dx is None:
            return p, None
        if self.hermitian:
            x, dx = hermitian_from_lower(x), hermitian_from_lower(dx)
        ph, dxh = adjoint(p), adjoint(dx)
        rows = matmul(matmul(p, ph), dxh)
        columns = matmul(dxh, matmul(ph, p))
        dp = rows - matmul(matmul(rows, x), p) + columns - matmul(p, matmul(x, columns))
        return p, dp - matmul(matmul(p, dx), p)
