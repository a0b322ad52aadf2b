"""Eigenvalues and eigenvectors of Hermitian matrices."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.types import ArrayType, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, select, zeros_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.cholesky import hermitian_from_lower, symmetrized
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
    quotients,
    result_types,
    subset_of,
)
from stretto._engine.ops.linalg.invariants import Along, Columns, Decomposition
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_of, identity, on_diagonal
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.shape import slice_in_dim


class EighImplementation(enum.Enum):
    """Say which algorithm finds eigenvalues: here, only LAPACK's, ``QR``.

    >>> import stretto as st
    >>> st.lax.linalg.EighImplementation("qr").name
    'QR'
    """

    QR = "qr"
    JACOBI = "jacobi"
    QDWH = "qdwh"


class Eigh(MatrixOperation):
    """Eigenvectors, unless only eigenvalues are requested, and eigenvalues, in ascending order.

    Only the lower triangle is read.
    """

    vectors: bool = True
    multiple = True
    has_factors = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("eigh", x, square=True)[-1]
        values = ((n,), real_dtype(x.dtype))
        return result_types(x, *([((n, n), x.dtype)] if self.vectors else []), values)

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.eigh(x, self.vectors)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        routine = "heevd" if is_complex(x.type.dtype) else "syevd"
        config = {"mode": "V" if self.vectors else "N", "uplo": "L"}
        types = (x.type, outs[-1], info_type(x.type))
        *results, info = lapack(b, routine, (x,), types, config, {0: 0})
        return [nan_where(b, info, o) for o in results[-len(outs) :]]

    def beside(self, at: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Return a multiple of the identity whose eigenvalue comes after all others.

        No eigenvalue is greater than the greatest sum of magnitudes in a row.
        """
        (x,), (type,) = args, at.types
        inside = at.inside(type.shape, (type.ndim - 2, type.ndim - 1))
        x = select(inside, x, zeros_like(x))
        sums = reduce_sum(absolute(hermitian_from_lower(x)), (x.ndim - 1,))
        greatest = reduce_max(sums, (x.ndim - 2,))
        beyond = select(eq(greatest, zeros_like(greatest)), full_like(greatest, 1), greatest * 2)
        spread = convert(broadcast_in_dim(beyond, x.shape, range(beyond.ndim)), x.dtype)
        return (select(inside, x, spread * identity(x.shape, x.dtype)),)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """First-order perturbation theory; vectors keep their phase."""
        v, w = Eigh()(*primals)
        pairs = Spectrum(v, w, tangents[0])
        if not self.vectors:
            return (pairs.values,), (pairs.dvalues(),)
        dv = pairs.dvectors("v", 0, pairs.count)
        return (pairs.sides["v"], pairs.values), (dv, pairs.dvalues())

    def factored(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return vectors and values; see ``Spectrum``."""
        v, w = Eigh()(*primals)
        pairs = Spectrum(v, w, tangents[0])
        w, n = pairs.values, pairs.count
        along = Along(pairs, w, full_like(w, 1), None, w.ndim - 1, frozenset(), 0, n)
        if not self.vectors:
            return (w,), (along,)
        return (pairs.sides["v"], w), (Columns(pairs, "v", None, False, False, 0, n), along)


class Spectrum(Decomposition):
    """Eigenvectors and eigenvalues, and how they change with the matrix."""

    def __init__(self, v: Any, w: Any, dx: Any) -> None:
        super().__init__(w, {"v": v})
        self.p = matmul(matmul(adjoint(v), hermitian_from_lower(dx)), v)

    # With p = v^H dx v: dw = diag p, and v^H dv = f p, f[i,j] = 1 / (w[j] - w[i]) for i != j.
    # So v h(w) v^H changes by v (q p) v^H, q[i,j] = (h[j] - h[i]) / (w[j] - w[i]).

    def dvalues(self) -> Any:
        """Return the diagonal of ``p``."""
        dw = diagonal_of(self.p)
        return real(dw) if is_complex(dw.dtype) else dw

    def dvectors(self, side: str, start: int, stop: int) -> Any:
        """``v f p``."""
        last = self.batch + 1
        f = slice_in_dim(inverse_differences(self.values), start, stop, 1, last)
        return matmul(self.sides["v"], slice_in_dim(self.p, start, stop, 1, last) * f)

    def recombined(self, left: str, right: str, h: Any, slope: Any) -> Any:
        """``v (q p) v^H``."""
        v = self.sides["v"]
        q = convert(quotients(self.values, h, slope), v.dtype)
        return matmul(matmul(v, q * self.p), adjoint(v))


def inverse_differences(w: Any, same: Any = None) -> Any:
    """``1 / (w[j] - w[i])`` in row i and column j; 0 on the diagonal, and where ``same`` holds."""
    shape = (*w.shape, w.shape[-1])
    last = w.ndim
    column = broadcast_in_dim(w, shape, (*range(last - 1), last))
    row = broadcast_in_dim(w, shape, tuple(range(last)))
    excluded = broadcast_to(on_diagonal(shape[-2:]), shape)
    excluded = excluded if same is None else excluded | same
    difference = select(excluded, full_like(column, 1), column - row)
    inverse = 1 / difference
    if settings.key.debugged:  # so that NaN is found here, and not behind 0 times infinity
        inverse = inverse + zeros_like(difference) / difference
    return select(excluded, zeros_like(column), inverse)


def eigh(
    x: ArrayLike,
    *,
    lower: bool = True,
    symmetrize_input: bool = True,
    sort_eigenvalues: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    implementation: EighImplementation | None = None,
) -> tuple[Array, Array]:
    """Compute the eigenvalues and eigenvectors of Hermitian matrices.

    Where eigenvalues are equal, the derivatives of the vectors, and second derivatives of the
    values, are infinite or NaN. Functions that use equal values' vectors alike have derivatives of
    the first order there: what is written as ``(v * f(w)) @ v.T``, with some of the vectors as well
    (docs/decisions/0066-functions-of-eigenvectors-keep-their-form.md).

    Args:
        x: Hermitian matrices, ``[..., n, n]``.
        lower: whether to read the lower triangle, unless ``symmetrize_input``.
        symmetrize_input: whether to take ``(x + x^H) / 2`` first.
        sort_eigenvalues: has no effect; they are always sorted.
        subset_by_index: the places ``(start, end)`` of the pairs to return, ``start`` included; by
            default all.
        implementation: ``QR``, or None.

    Returns:
        ``(v, w)``: orthonormal vectors, the columns of ``v``, and the values, ascending. NaN for
            each matrix with which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square, or the subset does not fit.
        NotImplementedError: ``implementation`` is not LAPACK's.

    Source: LAPACK, ``syevd`` and ``heevd``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> x = snp.array([[2.0, 1.0], [1.0, 2.0]])
    >>> st.lax.linalg.eigh(x)[1]
    Array([1., 3.], dtype=float32)
    >>> st.lax.linalg.eigh(x, subset_by_index=(1, 2))[1]
    Array([3.], dtype=float32)
    >>> def square(x):
    ...     v, w = st.lax.linalg.eigh(x)
    ...     return snp.sum((v * w**2) @ v.T)
    >>> st.grad(square)(snp.eye(2))
    Array([[2., 2.],
           [2., 2.]], dtype=float32)
    """
    if implementation not in (None, EighImplementation.QR):
        raise NotImplementedError(
            f"eigh: implementation must be EighImplementation.QR or None, got {implementation}"
        )
    value = as_matrices("eigh", x, square=True)
    if symmetrize_input:
        value = symmetrized(value)
    elif not lower:
        value = adjoint(value)
    v, w = Eigh()(value)
    if subset_by_index is None:
        return v, w
    start, end = subset_of("eigh", subset_by_index, w.shape[-1])
    return slice_in_dim(v, start, end, 1, v.ndim - 1), slice_in_dim(w, start, end, 1, w.ndim - 1)
