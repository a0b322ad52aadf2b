"""The Cholesky factorisation.

Layer 2 (ops). Next, read ``linalg_lu``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.types import ArrayType, array_type, is_complex
from stretto.ops import linalg_reference
from stretto.ops.comparison import zeros_like
from stretto.ops.complex_parts import complex_, imag, real
from stretto.ops.contract import matmul
from stretto.ops.linalg_family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
)
from stretto.ops.linalg_triangular import TriangularSolve
from stretto.ops.matrix_parts import adjoint, keep_diagonal, lower_part

__all__ = ["Cholesky", "cholesky", "hermitian_from_lower", "symmetrized"]

_FROM_LEFT = TriangularSolve(True, True, "N", False)
_FROM_RIGHT = TriangularSolve(False, True, "C", False)


class Cholesky(MatrixOperation):
    """The lower triangular ``l`` of ``l l^H = x``; only the lower triangle of ``x`` is read."""

    def infer(self, x: ArrayType) -> ArrayType:
        """The operand's type."""
        return array_type(check_matrix("cholesky", x, square=True), x.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """LAPACK ``potrf``."""
        return linalg_reference.potrf(x)

    def lower(self, b: Any, x: Any) -> Any:
        """LAPACK ``potrf``."""
        if not x.type.size:
            return x
        outs = (x.type, info_type(x.type))
        out, info = lapack(b, "potrf", (x,), outs, {"uplo": "L"}, {0: 0})
        return b.inline(lower_part, nan_where(b, info, out))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Murray, Differentiation of the Cholesky decomposition (2016), in forward mode."""
        # da = dl l^H + l dl^H, so l^-1 da l^-H = p + p^H with p = l^-1 dl lower triangular:
        # p is the lower triangle, with half of the diagonal.
        out = self(*primals)
        da = hermitian_from_lower(tangents[0])
        both = _FROM_RIGHT(out, _FROM_LEFT(out, da))
        return out, matmul(out, lower_part(both) - keep_diagonal(both) * 0.5)


def hermitian_from_lower(x: Any) -> Any:
    """The Hermitian matrix that LAPACK reads from a lower triangle."""
    strict, diagonal = lower_part(x, -1), keep_diagonal(x)
    if is_complex(x.dtype):
        diagonal = complex_(real(diagonal), zeros_like(imag(diagonal)))
    return strict + adjoint(strict) + diagonal


def symmetrized(x: Any) -> Any:
    """``(x + x^H) / 2``."""
    return (x + adjoint(x)) * 0.5


def cholesky(x: Any, *, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``l`` with ``l l^H = x``, for Hermitian positive definite matrices.

    ``x`` is ``[..., n, n]``, and first replaced by ``(x + x^H) / 2``; unless ``symmetrize_input``,
    only its lower triangle is read. The lower triangle of the result is NaN for each matrix that is
    not positive definite. Raises ``TypeError`` for dtypes other than float32, float64, complex64
    and complex128, ``ValueError`` for matrices that are not square.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    x = as_matrices("cholesky", x, square=True)
    return Cholesky()(symmetrized(x) if symmetrize_input else x)
