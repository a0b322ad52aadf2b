"""The QR factorisation, and the Householder reflections that it is made of.

Layer 2 (ops). Next, read ``linalg_eigh``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.errors import MissingRuleError
from stretto.core.primitive import Refused
from stretto.core.types import ArrayType, array_type, is_complex
from stretto.ops import linalg_reference
from stretto.ops.bilinear import promote_dtypes
from stretto.ops.comparison import zeros_like
from stretto.ops.complex_parts import complex_, imag
from stretto.ops.contract import matmul
from stretto.ops.linalg_family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    lapack,
    result_types,
)
from stretto.ops.linalg_triangular import TriangularSolve
from stretto.ops.matrix_parts import adjoint, identity, keep_diagonal, lower_part, upper_part
from stretto.ops.shape import concatenate, slice_in_dim

__all__ = ["Geqrf", "HouseholderProduct", "Qr", "geqrf", "householder_product", "qr"]

_USE_QR: Any = Refused("reflections are an intermediate result; use qr, which has derivatives")


class Geqrf(MatrixOperation):
    """``r`` in the upper triangle, below it the reflections ``1 - tau v v^H``, and the ``tau``."""

    multiple = True
    jvp = _USE_QR

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        """The operand's type; a number for each column, or row if these are fewer."""
        shape = check_matrix("geqrf", x)
        return result_types(x, (shape[-2:], x.dtype), ((min(shape[-2:]),), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """LAPACK ``geqrf``."""
        return linalg_reference.geqrf(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        """LAPACK ``geqrf``."""
        if not x.type.size:
            return [x, b.splat(0, b.outs[1])]
        return lapack(b, "geqrf", (x,), b.outs, None, {0: 0})


class HouseholderProduct(MatrixOperation):
    """The first columns of the product of the reflections below the diagonal of ``x``."""

    jvp = _USE_QR

    def infer(self, x: ArrayType, taus: ArrayType) -> ArrayType:
        """The first operand's type."""
        *batch, m, n = check_matrix("householder_product", x)
        if n > m or taus.dtype != x.dtype or taus.shape[:-1] != tuple(batch) or taus.shape[-1] > n:
            raise ValueError(
                f"householder_product: expected a of no more columns than rows, and at most as "
                f"many taus as columns, with equal leading axes and one dtype; got {x} and {taus}"
            )
        return array_type(x.shape, x.dtype)

    def reference(self, x: np.ndarray, taus: np.ndarray) -> np.ndarray:
        """LAPACK ``orgqr``, for complex numbers ``ungqr``."""
        return linalg_reference.householder_product(x, taus)

    def lower(self, b: Any, x: Any, taus: Any) -> Any:
        """LAPACK ``orgqr``, for complex numbers ``ungqr``."""
        if not x.type.size:
            return x
        routine = "ungqr" if is_complex(x.type.dtype) else "orgqr"
        return lapack(b, routine, (x, taus), (x.type,), None, {0: 0})[0]


class Qr(MatrixOperation):
    """``q r = x`` with ``q`` of orthonormal columns: square if ``full``, else no more than rows."""

    full: bool
    multiple = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        """The factors' types."""
        *_, m, n = check_matrix("qr", x)
        k = m if self.full else min(m, n)
        return result_types(x, ((m, k), x.dtype), ((k, n), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        """By reflections."""
        *_, m, n = x.shape
        k = m if self.full else min(m, n)
        both, taus = linalg_reference.geqrf(x)
        start = np.zeros((*x.shape[:-1], k), x.dtype)
        start[..., : min(k, n)] = both[..., :k]
        if not x.size:
            start += np.eye(m, k, dtype=x.dtype)
            return start, np.triu(both[..., :k, :])
        return linalg_reference.householder_product(start, taus), np.triu(both[..., :k, :])

    def lower(self, b: Any, x: Any) -> list[Any]:
        """By reflections."""
        return b.inline_many(self.factors, x)

    def factors(self, x: Any) -> list[Any]:
        """The factors, by the reflections."""
        *_, m, n = x.shape
        k = m if self.full else min(m, n)
        rows, columns = x.ndim - 2, x.ndim - 1
        both, taus = Geqrf()(x)
        r = upper_part(slice_in_dim(both, 0, k, 1, rows))
        if k < n:
            both = slice_in_dim(both, 0, k, 1, columns)
        elif k > n:
            both = concatenate([both, zeros_like(identity((*x.shape[:-1], k - n), x.dtype))], -1)
        return [HouseholderProduct()(both, taus), r]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """By the skew-Hermitian and the triangular part of q^H dx r^-1."""
        # q^H dx = w r + dr, with w = q^H dq skew-Hermitian. Of the first columns of x and r, so
        # many that r_1 is square: c = q^H dx_1 r_1^-1 is w plus an upper triangle of real diagonal.
        # That gives w, dr = q^H dx - w r, and dq = dx_1 r_1^-1 + q (w - c).
        (x,), (dx,) = primals, tangents
        q, r = self(x)
        *_, m, n = x.shape
        if self.full and m > n:
            raise MissingRuleError(
                f"qr has no jvp rule for the full factors of {x.type}: the columns of q beyond "
                f"those of x are not determined by it; use mode='reduced' (full_matrices=False)"
            )
        k, last = min(m, n), x.ndim - 1
        first = slice_in_dim(r, 0, k, 1, last)
        moved = TriangularSolve(False, False, "N", False)(first, slice_in_dim(dx, 0, k, 1, last))
        c = matmul(adjoint(q), moved)
        strict = lower_part(c, -1)
        w = strict - adjoint(strict)
        if is_complex(x.dtype):
            turn = imag(keep_diagonal(c))
            w = w + complex_(zeros_like(turn), turn)
        dr = matmul(adjoint(q), dx) - matmul(w, r)
        return (q, r), (moved + matmul(q, w - c), upper_part(dr))


# Functions


def geqrf(a: Any) -> tuple[Any, Any]:
    """The Householder reflections of the QR factorisation, and their factors ``tau``.

    ``a`` is ``[..., m, n]``. The first result, of that shape, has ``r`` in its upper triangle and
    below it the vectors ``v`` of the reflections ``1 - tau v v^H``, whose first elements, 1, are
    left out. Raises ``TypeError`` for dtypes other than float32, float64, complex64 and complex128.
    Source: LAPACK, ``geqrf``.

    >>> import stretto.numpy as snp
    >>> geqrf(snp.array([[3.0], [4.0]]))
    (Array([[-5. ],
           [ 0.5]], dtype=float32), Array([1.6], dtype=float32))
    """
    return Geqrf()(as_matrices("geqrf", a))


def householder_product(a: Any, taus: Any) -> Any:
    """The first columns of the product of the reflections that ``geqrf`` gives.

    ``a`` is ``[..., m, n]`` with ``m >= n``, ``taus`` ``[..., k]`` with ``k <= n``; the result has
    the shape of ``a``. Raises ``ValueError`` for other shapes. Source: LAPACK, ``orgqr``.

    >>> import stretto.numpy as snp
    >>> householder_product(*geqrf(snp.array([[3.0], [4.0]])))
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    a, taus = promote_dtypes("householder_product", as_matrices("householder_product", a), taus)
    return HouseholderProduct()(a, taus)


def qr(x: Any, *, full_matrices: bool = True) -> tuple[Any, Any]:
    """``(q, r)`` with ``q r = x``, ``q`` of orthonormal columns and ``r`` upper triangular.

    ``x`` is ``[..., m, n]``; ``q`` is ``[..., m, m]`` if ``full_matrices``, else
    ``[..., m, min(m, n)]``. Signs are LAPACK's: the diagonal of ``r`` is real. The full factors of
    matrices with more rows than columns have no derivative (``MissingRuleError``). Raises
    ``TypeError`` for dtypes other than float32, float64, complex64 and complex128.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.qr(snp.array([[3.0], [4.0]]), full_matrices=False)
    (Array([[-0.6],
           [-0.8]], dtype=float32), Array([[-5.]], dtype=float32))
    """
    return Qr(bool(full_matrices))(as_matrices("qr", x))
