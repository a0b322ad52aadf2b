"""Factorisations, eigenvalues and singular values, with NumPy's arguments and results.

Next, read ``systems``.
"""

from __future__ import annotations

from typing import Any, NamedTuple

from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import expand_dims
from stretto._engine.ops.comparison import lt, where
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.linalg.cholesky import cholesky as lax_cholesky
from stretto._engine.ops.linalg.cholesky import symmetrized
from stretto._engine.ops.linalg.eig import Eig
from stretto._engine.ops.linalg.eigh import Eigh
from stretto._engine.ops.linalg.matrix_parts import adjoint, matrix_transpose
from stretto._engine.ops.linalg.qr import Qr, geqrf
from stretto._engine.ops.linalg.svd import svd as lax_svd
from stretto._engine.ops.sort import argsort
from stretto.numpy.linalg.arguments import matrices

__all__ = [
    "cholesky",
    "eig",
    "eigh",
    "eigvals",
    "eigvalsh",
    "qr",
    "svd",
    "svdvals",
]


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class EighResult(NamedTuple):
    """Eigenvalues, rising, and orthonormal eigenvectors as columns."""

    eigenvalues: Any
    eigenvectors: Any


class QRResult(NamedTuple):
    """The factors ``Q`` and ``R``."""

    Q: Any
    R: Any


class SVDResult(NamedTuple):
    """The factors ``U``, ``S`` and ``Vh``."""

    U: Any
    S: Any
    Vh: Any


def cholesky(a: Any, *, upper: bool = False, symmetrize_input: bool = True) -> Any:
    """The lower triangular ``l`` with ``l l^H = a``; or, if ``upper``, its adjoint.

    ``a`` is ``[..., n, n]``, Hermitian and positive definite, and first replaced by
    ``(a + a^H) / 2``; unless ``symmetrize_input`` only one triangle is read, the lower one, or if
    ``upper`` the upper one. The triangle is NaN for each matrix that is not positive definite.

    Raises ``TypeError`` for float16 and narrower, ``ValueError`` for matrices that are not square.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]), upper=True)
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    if not upper:
        return lax_cholesky(x, symmetrize_input=symmetrize_input)
    out = lax_cholesky(x if symmetrize_input else adjoint(x), symmetrize_input=symmetrize_input)
    return adjoint(out)


def qr(a: Any, mode: str = "reduced") -> Any:
    """``(Q, R)`` with ``Q R = a``, ``Q`` of orthonormal columns and ``R`` upper triangular.

    ``a`` is ``[..., m, n]``. ``mode``: ``"reduced"``, ``Q`` of ``min(m, n)`` columns;
    ``"complete"``, of ``m``; ``"r"``, ``R`` alone; ``"raw"``, the reflections and their factors as
    NumPy gives them, ``[..., n, m]`` and ``[..., min(m, n)]``. Signs are LAPACK's. No derivative
    exists in mode ``"complete"`` where ``m > n``, nor in mode ``"raw"``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.qr(snp.array([[3.0], [4.0]])).R
    Array([[-5.]], dtype=float32)
    """
    x = matrices("qr", a)
    if mode == "raw":
        both, taus = geqrf(x)
        return matrix_transpose(both), taus
    if mode not in ("reduced", "complete", "r"):
        raise ValueError(f"qr: mode must be 'reduced', 'complete', 'r' or 'raw'; got {mode!r}")
    q, r = Qr(mode == "complete")(x)
    return r if mode == "r" else QRResult(q, r)


def _hermitian(who: str, a: Any, UPLO: str | None, symmetrize_input: bool) -> Any:
    x = matrices(who, a, square=True)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"{who}: UPLO must be 'L' or 'U', got {UPLO!r}")
    if symmetrize_input:
        return symmetrized(x)
    return adjoint(x) if UPLO == "U" else x


def eigh(a: Any, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Eigenvalues, rising, and orthonormal eigenvectors of Hermitian matrices.

    ``a`` is ``[..., n, n]``, and first replaced by ``(a + a^H) / 2``; unless ``symmetrize_input``,
    only the triangle ``UPLO`` is read, the lower one by default. Where eigenvalues are equal the
    derivatives of the vectors are infinite or NaN.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigh(snp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    v, w = Eigh()(_hermitian("eigh", a, UPLO, symmetrize_input))
    return EighResult(w, v)


def eigvalsh(a: Any, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Any:
    """The eigenvalues of Hermitian matrices, rising; arguments as of ``eigh``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigvalsh(snp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return Eigh(False)(_hermitian("eigvalsh", a, UPLO, symmetrize_input))[0]


def eig(a: Any) -> EigResult:
    """Eigenvalues and right eigenvectors, as columns of norm 1, of square matrices.

    Both are complex, in no certain order. To differentiate use ``eigvals``, or
    ``lax.linalg.eig(..., enable_eigvec_derivs=True)``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eig(snp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*Eig(False, True)(matrices("eig", a, square=True)))


def eigvals(a: Any) -> Any:
    """The eigenvalues of square matrices, complex, in no certain order.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigvals(snp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return Eig(False, False)(matrices("eigvals", a, square=True))[0]


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Any:
    """``(U, S, Vh)`` with ``a = U S Vh``; or the singular values ``S`` unless ``compute_uv``.

    ``a`` is ``[..., m, n]``; ``S``, falling, ``[..., min(m, n)]``; ``U`` and ``Vh`` are square if
    ``full_matrices``, else of ``min(m, n)`` columns and rows. With
    ``subset_by_index=(start, end)`` only the values and vectors of these places are given. If
    ``hermitian``, the matrices are taken to be that, and their eigenvalues serve, which is faster.
    Where singular values are equal the derivatives of the vectors are infinite or NaN; those of the
    full factors of matrices that are not square do not exist.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.svd(snp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    x = matrices("svd", a, square=hermitian)
    if not hermitian:
        found = lax_svd(
            x,
            full_matrices=full_matrices,
            compute_uv=compute_uv,
            subset_by_index=subset_by_index,
        )
        return SVDResult(*found) if compute_uv else found
    if subset_by_index is not None:
        raise NotImplementedError(
            "svd: subset_by_index cannot be given for hermitian matrices; slice the result"
        )
    return _hermitian_svd(x, compute_uv)


def _hermitian_svd(x: Any, compute_uv: bool) -> Any:
    """x = v w v^H = v |w| (v sign(w))^H, in falling order of |w|."""
    *vectors, w = Eigh(compute_uv)(symmetrized(x))
    s, last = absolute(w), w.ndim - 1
    order = argsort(s, last, descending=True)
    s = take_along_axis(s, order, last)
    if not compute_uv:
        return s
    columns = expand_dims(order, last)
    v = take_along_axis(vectors[0], columns, last + 1)
    negative = lt(take_along_axis(w, order, last), 0)
    signed = where(expand_dims(negative, last), -v, v)
    return SVDResult(v, s, adjoint(signed))


def svdvals(x: Any, /) -> Any:
    """The singular values of matrices, falling.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.svdvals(snp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)
