"""Factorizations, eigenvalues and singular values, with NumPy's arguments and results.

``floats`` and ``matrices`` turn arguments into arrays of floats, not weakly typed.
"""

from __future__ import annotations

from typing import Literal, NamedTuple, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.comparison import lt, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg.eigenvalues import Eig, Eigh
from stretto._engine.ops.linalg.family import check_matrix
from stretto._engine.ops.linalg.matrix_parts import adjoint, matrix_transpose
from stretto._engine.ops.linalg.qr import Qr, geqrf
from stretto._engine.ops.linalg.svd import svd as lax_svd
from stretto._engine.ops.linalg.triangular import cholesky as lax_cholesky
from stretto._engine.ops.linalg.triangular import symmetrize
from stretto._engine.ops.sort import argsort

__all__ = ["cholesky", "eig", "eigh", "eigvals", "eigvalsh", "qr", "svd", "svdvals"]


def floats(caller: str, x: ArrayLike, argument: str = "a") -> Array:
    """Return the value, with integers and booleans as the default float."""
    value = as_value(x, caller, argument)
    return convert(value, inexact_dtype(value.dtype))


def matrices(caller: str, x: ArrayLike, argument: str = "a", square: bool = False) -> Array:
    """Return the same for matrices, square if so asked; raise as ``check_matrix`` does."""
    value = floats(caller, x, argument)
    check_matrix(caller, value.type, square)
    return value


def same_floats(caller: str, x: ArrayLike, y: ArrayLike) -> tuple[Array, Array]:
    """Return two values of one floating dtype, each of its own shape."""
    value, other = promote_dtypes(caller, x, y)
    return floats(caller, value), floats(caller, other)


def systems(caller: str, a: ArrayLike, b: ArrayLike) -> tuple[Array, Array, bool]:
    """Return both in one dtype, a vector as a column; and whether it was a vector."""
    matrix, right = same_floats(caller, a, b)
    matrices(caller, matrix, square=True)
    is_vector = right.ndim == 1
    if not right.ndim or right.shape[0 if is_vector else -2] != matrix.shape[-1]:
        raise ValueError(
            f"{caller}: b must have {matrix.shape[-1]} rows, as a has: got a: {matrix.type} and "
            f"b: {right.type}"
        )
    return matrix, expand_dims(right, 1) if is_vector else right, is_vector


def values_of(caller: str, **arguments: ArrayLike) -> list[Array]:
    """Return the arguments as values; errors name the one that is not an array."""
    return [as_value(x, caller, name) for name, x in arguments.items()]


def as_complex(x: Array) -> Array:
    """Return floating-point numbers as complex ones of the same precision."""
    return convert(x, np.result_type(x.dtype, np.complex64))


class EigResult(NamedTuple):
    """Eigenvalues, and eigenvectors as columns.

    Fields: ``eigenvalues``, ``[..., n]``, and ``eigenvectors``, ``[..., n, n]``.
    """

    eigenvalues: Array
    eigenvectors: Array


class EighResult(NamedTuple):
    """Eigenvalues, rising, and orthonormal eigenvectors as columns.

    Fields: ``eigenvalues``, ``[..., n]``, and ``eigenvectors``, ``[..., n, n]``.
    """

    eigenvalues: Array
    eigenvectors: Array


class QRResult(NamedTuple):
    """The factors of a QR factorization.

    Fields: ``Q``, with orthonormal columns, and ``R``, upper triangular.
    """

    Q: Array
    R: Array


class SVDResult(NamedTuple):
    """The factors of a singular value decomposition.

    Fields: ``U``, the singular values ``S``, falling, and ``Vh``.
    """

    U: Array
    S: Array
    Vh: Array


def cholesky(a: ArrayLike, *, upper: bool = False, symmetrize_input: bool = True) -> Array:
    """Factorize Hermitian positive definite matrices: ``l l^H = a``, ``l`` lower triangular.

    Args:
        a: matrices ``[..., n, n]``, Hermitian and positive definite.
        upper: whether to return the adjoint of ``l``.
        symmetrize_input: whether to replace ``a`` by ``(a + a^H) / 2`` first; if not, only one
            triangle is read, the lower one, or the upper one if ``upper``.

    Returns:
        Triangular matrices ``[..., n, n]``; NaN for each matrix that is not positive definite.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As NumPy's and the array API standard's ``linalg.cholesky``.

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


@overload
def qr(a: ArrayLike, mode: Literal["reduced", "complete"] = "reduced") -> QRResult: ...
@overload
def qr(a: ArrayLike, mode: Literal["r"]) -> Array: ...
@overload
def qr(a: ArrayLike, mode: Literal["raw"]) -> tuple[Array, Array]: ...
@overload
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array | tuple[Array, Array]: ...
def qr(a: ArrayLike, mode: str = "reduced") -> QRResult | Array | tuple[Array, Array]:
    """Factorize matrices: ``Q R = a``, ``Q`` with orthonormal columns, ``R`` upper triangular.

    Signs are LAPACK's. No derivative exists in mode ``"complete"`` where ``m > n``, nor in mode
    ``"raw"``.

    Args:
        a: matrices ``[..., m, n]``.
        mode: ``"reduced"``, where ``Q`` has ``min(m, n)`` columns; ``"complete"``, where it has
            ``m``; ``"r"``, for ``R`` alone; or ``"raw"``, for the reflections and their factors.

    Returns:
        ``QRResult(Q, R)``; ``R`` alone in mode ``"r"``; ``[..., n, m]`` and ``[..., min(m, n)]`` in
        mode ``"raw"``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the rank is below 2, or ``mode`` is another.

    As NumPy's ``linalg.qr``.

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


def _hermitian(caller: str, a: ArrayLike, UPLO: str | None, symmetrize_input: bool) -> Array:
    x = matrices(caller, a, square=True)
    if UPLO not in (None, "L", "U"):
        raise ValueError(f"{caller}: UPLO must be 'L' or 'U', got {UPLO!r}")
    if symmetrize_input:
        return symmetrize(x)
    return adjoint(x) if UPLO == "U" else x


def eigh(a: ArrayLike, UPLO: str | None = None, symmetrize_input: bool = True) -> EighResult:
    """Find the eigenvalues, rising, and orthonormal eigenvectors of Hermitian matrices.

    Where eigenvalues are equal the derivatives of the vectors are infinite or NaN. Functions
    written as ``(v * f(w)) @ v.T``, with all vectors or some, have first derivatives there.

    Args:
        a: matrices ``[..., n, n]``, Hermitian.
        UPLO: the triangle to read unless ``symmetrize_input``: ``"L"``, the default, or ``"U"``.
        symmetrize_input: whether to replace ``a`` by ``(a + a^H) / 2`` first.

    Returns:
        ``EighResult``: eigenvalues ``[..., n]``, real, and eigenvectors ``[..., n, n]`` as columns.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square, or ``UPLO`` is another.

    As NumPy's and the array API standard's ``linalg.eigh``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigh(snp.array([[2.0, 1.0], [1.0, 2.0]])).eigenvalues
    Array([1., 3.], dtype=float32)
    """
    v, w = Eigh()(_hermitian("eigh", a, UPLO, symmetrize_input))
    return EighResult(w, v)


@described_like(eigh)
def eigvalsh(a: ArrayLike, UPLO: str | None = "L", *, symmetrize_input: bool = True) -> Array:
    """Find the eigenvalues, rising, of Hermitian matrices.

    Args:
        UPLO: the triangle to read unless ``symmetrize_input``: ``"L"`` or ``"U"``.

    Returns:
        The eigenvalues ``[..., n]``, real.

    As NumPy's and the array API standard's ``linalg.eigvalsh``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigvalsh(snp.array([[2.0, 1.0], [1.0, 2.0]]))
    Array([1., 3.], dtype=float32)
    """
    return Eigh(False)(_hermitian("eigvalsh", a, UPLO, symmetrize_input))[0]


def eig(a: ArrayLike) -> EigResult:
    """Find the eigenvalues and right eigenvectors of square matrices.

    To differentiate use ``eigvals``, or ``lax.linalg.eig(..., enable_eigvec_derivs=True)``.

    Args:
        a: matrices ``[..., n, n]``.

    Returns:
        ``EigResult``: eigenvalues ``[..., n]`` in no particular order, and eigenvectors ``[..., n,
        n]`` as columns of norm 1; both complex.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As NumPy's ``linalg.eig``, but complex whatever the values.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eig(snp.array([[0.0, 1.0], [-1.0, 0.0]])).eigenvalues
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return EigResult(*Eig(False, True)(matrices("eig", a, square=True)))


@described_like(eig)
def eigvals(a: ArrayLike) -> Array:
    """Find the eigenvalues of square matrices.

    Returns:
        The eigenvalues ``[..., n]``, complex, in no particular order.

    As NumPy's ``linalg.eigvals``, but complex whatever the values.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.eigvals(snp.array([[0.0, 1.0], [-1.0, 0.0]]))
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    return Eig(False, False)(matrices("eigvals", a, square=True))[0]


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    hermitian: bool = False,
    subset_by_index: tuple[int, int] | None = None,
) -> SVDResult | Array:
    """Decompose matrices into singular values and vectors: ``a = U S Vh``.

    Where singular values are equal the derivatives of the vectors are infinite or NaN; those of the
    full factors of matrices that are not square do not exist. Functions written as
    ``(U * f(S)) @ Vh``, with all vectors or some, have first derivatives there.

    Args:
        a: matrices ``[..., m, n]``.
        full_matrices: whether ``U`` and ``Vh`` are square; if not, they have ``min(m, n)`` columns
            and rows.
        compute_uv: whether to return ``U`` and ``Vh`` too.
        hermitian: whether the matrices are Hermitian, which is faster: their eigenvalues serve.
        subset_by_index: ``(start, end)``, the places of the only values and vectors to return.

    Returns:
        ``SVDResult(U, S, Vh)``, with ``S`` ``[..., min(m, n)]``, real and falling; or ``S`` alone.

    Raises:
        NotImplementedError: ``subset_by_index`` is given for ``hermitian`` matrices.
        TypeError: the dtype is float16 or narrower.
        ValueError: the rank is below 2, or ``hermitian`` matrices are not square.

    As NumPy's and the array API standard's ``linalg.svd``; ``subset_by_index`` as JAX's.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.svd(snp.array([[3.0, 0.0], [0.0, 4.0]])).S
    Array([4., 3.], dtype=float32)
    """
    x = matrices("svd", a, square=hermitian)
    if not hermitian:
        factors = lax_svd(
            x, full_matrices=full_matrices, compute_uv=compute_uv, subset_by_index=subset_by_index
        )
        return SVDResult(*factors) if compute_uv else factors
    if subset_by_index is not None:
        raise NotImplementedError(
            "svd: subset_by_index cannot be given for hermitian matrices; slice the result"
        )
    return _hermitian_svd(x, compute_uv)


def _hermitian_svd(x: Array, compute_uv: bool) -> SVDResult | Array:
    """Take x = v w v^H = v |w| (v sign(w))^H, in falling order of |w|."""
    *vectors, w = Eigh(compute_uv)(symmetrize(x))
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


def svdvals(x: ArrayLike, /) -> Array:
    """Find the singular values, falling, of matrices.

    Args:
        x: matrices ``[..., m, n]``.

    Returns:
        The singular values ``[..., min(m, n)]``, real.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the rank is below 2.

    As the array API standard's ``linalg.svdvals``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.svdvals(snp.array([[3.0, 0.0], [0.0, 4.0]]))
    Array([4., 3.], dtype=float32)
    """
    return svd(x, compute_uv=False)
