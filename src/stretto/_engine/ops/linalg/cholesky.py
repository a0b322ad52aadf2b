"""The Cholesky factorization, its update by a vector, and a matrix times its own transpose."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import ArrayType, array_type, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
)
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    keep_diagonal,
    lower_part,
    matrix_transpose,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve
from stretto._engine.ops.shape import slice_in_dim

_INT32 = np.dtype(np.int32)

_FROM_LEFT = TriangularSolve(True, True, "N", False)
_FROM_RIGHT = TriangularSolve(False, True, "C", False)


class Cholesky(MatrixOperation):
    """The lower triangular ``l`` of ``l l^H = x``; only the lower triangle of ``x`` is read."""

    in_blocks = True

    def infer(self, x: ArrayType) -> ArrayType:
        return array_type(check_matrix("cholesky", x, square=True), x.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return linalg_reference.potrf(x)

    def lower(self, b: Any, x: Any) -> Any:
        """Call LAPACK ``potrf``; on GPUs XLA's own, which is cuSOLVER's."""
        if not x.type.size:
            return x
        if b.platform == "gpu":
            factor = b.emit("cholesky", x, attributes="lower = true", out=x.type)
            return b.inline(_factor_or_nan, factor)
        outs = (x.type, info_type(x.type))
        out, info = lapack(b, "potrf", (x,), outs, {"uplo": "L"}, {0: 0})
        return b.inline(_factor_or_nan, nan_where(b, info, out))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Follow Murray, Differentiation of the Cholesky decomposition (2016), in forward mode."""
        out = self(*primals)
        return out, _change(out, hermitian_from_lower(tangents[0]))


def _factor_or_nan(x: Any) -> Any:
    """Return the lower part; all NaN where the last element is, which depends on all others.

    Some kernels neither report nor spread a NaN.
    """
    n, rows, columns = x.shape[-1], x.ndim - 2, x.ndim - 1
    last = slice_in_dim(slice_in_dim(x, n - 1, n, 1, rows), n - 1, n, 1, columns)
    return lower_part(select(broadcast_to(eq(last, last), x.shape), x, full_like(x, np.nan)))


class CholeskyUpdate(MatrixOperation):
    """The upper triangular ``u`` with ``u^H u = r^H r + w w^H``, for an upper triangle ``r``."""

    in_blocks = True

    def infer(self, r: ArrayType, w: ArrayType) -> ArrayType:
        shape = check_matrix("cholesky_update", r, square=True)
        if w.shape != shape[:-1] or w.dtype != r.dtype:
            raise ValueError(
                f"cholesky_update: expected r_matrix and w_vector of one dtype and with as many "
                f"rows, got {r} and {w}"
            )
        return array_type(shape, r.dtype)

    def reference(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        u, below = np.triu(r), np.conj(w)
        with np.errstate(all="ignore"):
            for k in range(r.shape[-1]):
                row = u[..., k, :].copy()
                pair = np.stack([row[..., k], below[..., k]], -1)
                norm = np.sqrt(np.sum(np.real(pair) ** 2 + np.imag(pair) ** 2, -1))
                safe = np.where(norm == 0, norm.dtype.type(1), norm)[..., None]
                c, s = pair[..., :1] / safe, pair[..., 1:] / safe
                c = np.where(norm[..., None] == 0, c.dtype.type(1), c)
                u[..., k, :] = np.conj(c) * row + np.conj(s) * below
                below = c * below - s * row
        return np.triu(u)

    def lower(self, b: Any, r: Any, w: Any) -> Any:
        if not r.type.size:
            return r
        n = r.type.shape[-1]

        def unfinished(k: Any, *_: Any) -> list[Any]:
            return [b.compare("LT", k, b.scalar(n, _INT32))]

        def step(k: Any, u: Any, below: Any) -> list[Any]:
            u, below = b.inline_many(_rotate, k, u, below)
            return [b.emit("add", k, b.scalar(1, _INT32), out=k.type), u, below]

        start = (b.scalar(0, _INT32), b.inline(upper_part, r), b.inline(_row, w))
        return b.inline(upper_part, b.while_loop(unfinished, step, start)[1])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the derivative of the Cholesky factor of the sum."""
        (r, w), (dr, dw) = primals, tangents
        out = self(r, w)
        half = None
        if dr is not None:
            half = matmul(adjoint(upper_part(r)), upper_part(dr))
        if dw is not None:
            product = matmul(expand_dims(w, w.ndim), adjoint(expand_dims(dw, w.ndim)))
            half = product if half is None else half + product
        return out, adjoint(_change(adjoint(out), half + adjoint(half)))


def _row(w: Any) -> Any:
    """Return ``w^H``, as matrices of one row."""
    return expand_dims(conj(w) if is_complex(w.dtype) else w, w.ndim - 1)


def _rotate(k: Any, u: Any, below: Any) -> list[Any]:
    """Rotate row ``k`` of ``u`` and the row ``below`` so that the latter is 0 in column ``k``."""
    # (c^* s^*; -s c) with c = u_kk / norm, s = below_k / norm.
    rows, columns = u.ndim - 2, u.ndim - 1
    row = dynamic_slice_in_dim(u, k, 1, rows)
    first, second = (dynamic_slice_in_dim(x, k, 1, columns) for x in (row, below))
    norm = sqrt(square(absolute(first)) + square(absolute(second)))
    is_zero = eq(norm, zeros_like(norm))
    safe = convert(select(is_zero, full_like(norm, 1), norm), u.dtype)
    c, s = select(is_zero, full_like(first, 1), first / safe), second / safe
    rotated = conj(c) * row + conj(s) * below if is_complex(u.dtype) else c * row + s * below
    return [dynamic_update_slice_in_dim(u, rotated, k, rows), c * below - s * row]


def _change(factor: Any, da: Any) -> Any:
    """Return the tangent of a ``factor`` l, given that of the matrix."""
    # da = dl l^H + l dl^H, so l^-1 da l^-H = p + p^H with p = l^-1 dl lower triangular:
    # p is the lower triangle, with half of the diagonal.
    both = _FROM_RIGHT(factor, _FROM_LEFT(factor, da))
    return matmul(factor, lower_part(both) - keep_diagonal(both) * 0.5)


def hermitian_from_lower(x: Any) -> Any:
    """Return the Hermitian matrix that LAPACK reads from a lower triangle."""
    strict, diagonal = lower_part(x, -1), keep_diagonal(x)
    if is_complex(x.dtype):
        diagonal = complex_(real(diagonal), zeros_like(imag(diagonal)))
    return strict + adjoint(strict) + diagonal


def symmetrize(x: Any) -> Any:
    """Return ``(x + x^H) / 2``."""
    return (x + adjoint(x)) * 0.5


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Factor Hermitian positive definite matrices: ``l l^H = x``.

    Args:
        x: the matrices, ``[..., n, n]``.
        symmetrize_input: whether to take ``(x + x^H) / 2`` first, instead of reading the lower
            triangle.

    Returns:
        The lower triangular ``l``; NaN in the triangle of each matrix that is not positive
            definite.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.

    Source: LAPACK, ``potrf``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    value = as_matrices("cholesky", x, square=True)
    return Cholesky()(symmetrize(value) if symmetrize_input else value)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update a Cholesky factor: find ``u`` with ``u^H u = r^H r + w w^H``.

    Args:
        r_matrix: the factor, ``[..., n, n]``; only its upper triangle is read.
        w_vector: the vector, ``[..., n]``; leading axes broadcast.

    Returns:
        The upper triangular ``u``, whose diagonal is not negative, in about ``n^2`` operations.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: Golub and Van Loan, Matrix Computations, 6.5.4, by rotations.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.cholesky_update(snp.array([[3.0, 0.0], [0.0, 2.0]]), snp.array([4.0, 0.0]))
    Array([[5., 0.],
           [0., 2.]], dtype=float32)
    """
    r, w = promote_dtypes("cholesky_update", r_matrix, w_vector)
    r, w = convert(r, r.dtype), convert(w, w.dtype)  # not weak
    check_matrix("cholesky_update", r.type, square=True)
    if w.ndim < 1 or w.shape[-1] != r.shape[-1]:
        raise ValueError(
            f"cholesky_update: w_vector must have {r.shape[-1]} elements, as r_matrix has rows; "
            f"got {r.type} and {w.type}"
        )
    batch = broadcast_shapes("cholesky_update", r.shape[:-2], w.shape[:-1])
    r, w = broadcast_to(r, (*batch, *r.shape[-2:])), broadcast_to(w, (*batch, w.shape[-1]))
    return CholeskyUpdate()(r, w)


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute ``alpha a a^T + beta c``, for a symmetric ``c``.

    Args:
        a_matrix: matrices, ``[..., m, n]``; complex numbers are not conjugated.
        c_matrix: symmetric matrices, ``[..., m, m]``; leading axes broadcast.
        alpha: a number.
        beta: a number.
        symmetrize_output: whether to copy the lower triangle to the upper one.

    Returns:
        The matrices, ``[..., m, m]``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or ``alpha`` or
            ``beta`` is not a number.
        ValueError: the shapes do not fit.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[1.0, 2.0], [0.0, 1.0]])
    >>> st.lax.linalg.symmetric_product(a, snp.eye(2), alpha=2.0, beta=1.0)
    Array([[11.,  4.],
           [ 4.,  3.]], dtype=float32)
    """
    a, c = promote_dtypes("symmetric_product", a_matrix, c_matrix)
    a, c = convert(a, a.dtype), convert(c, c.dtype)  # not weak
    m = check_matrix("symmetric_product", a.type)[-2]
    if check_matrix("symmetric_product", c.type, square=True)[-1] != m:
        raise ValueError(
            f"symmetric_product: c_matrix must have {m} rows, as a_matrix has; got {a.type} and "
            f"{c.type}"
        )
    for name, number in (("alpha", alpha), ("beta", beta)):
        factor = as_value(number, "symmetric_product", name)
        if factor.ndim:
            raise TypeError(f"symmetric_product: {name} must be a number, got {factor.type}")
    out = matmul(a, matrix_transpose(a)) * alpha + c * beta
    if symmetrize_output:
        out = lower_part(out) + matrix_transpose(lower_part(out, -1))
    return out
