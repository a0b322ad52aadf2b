"""Eigenvalues of Hermitian matrices, and the Schur and Hessenberg forms, with SciPy's arguments."""

from __future__ import annotations

from typing import Literal, overload

from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike, Key
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, zeros_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.linalg.eigenvalues import Eigh, Hessenberg, Schur
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_matrix, identity, upper_part
from stretto._engine.ops.linalg.qr import HouseholderProduct
from stretto._engine.ops.linalg.triangular import (
    Cholesky,
    hermitian_from_lower,
    symmetrize,
    triangular_solve,
)
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto.numpy.linalg.factorizations import as_complex, matrices, same_floats, values_of
from stretto.numpy.searching import flatnonzero

__all__ = ["eigh", "eigh_tridiagonal", "hessenberg", "rsf2csf", "schur"]


@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: Literal[False] = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> tuple[Array, Array]: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    *,
    eigvals_only: Literal[True],
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array: ...
@overload
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]: ...
def eigh(
    a: ArrayLike,
    b: ArrayLike | None = None,
    lower: bool = True,
    eigvals_only: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    turbo: bool = True,
    eigvals: None = None,
    type: int = 1,
    check_finite: bool = True,
) -> Array | tuple[Array, Array]:
    """Compute the eigenvalues of Hermitian matrices, also generalized: ``a v = w b v``.

    Args:
        a: Hermitian matrices, ``[..., n, n]``.
        b: Hermitian positive definite matrices, ``[..., n, n]``; by default the identity.
        lower: whether to read the lower triangles, instead of the upper.
        eigvals_only: whether to return ``w`` alone.
        overwrite_a: has no effect.
        overwrite_b: has no effect.
        turbo: has no effect.
        eigvals: must be None.
        type: 1 for ``a v = w b v``, 2 for ``a b v = w v``, 3 for ``b a v = w v``.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        ``(w, v)``: the eigenvalues, in ascending order, and the vectors, with ``v^H b v = 1``, for
            type 3 ``v^H b^-1 v = 1``; NaN where ``b`` is not positive definite.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such type.
        NotImplementedError: ``eigvals`` is not None: slice the result, or see ``lax.linalg.eigh``.

    As SciPy's ``eigh``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a, b = snp.array([[2.0, 1.0], [1.0, 2.0]]), snp.array([[4.0, 0.0], [0.0, 4.0]])
    >>> st.scipy.linalg.eigh(a, b, eigvals_only=True)
    Array([0.25, 0.75], dtype=float32)
    """
    if eigvals is not None:
        raise NotImplementedError(
            "eigh: eigvals must be None; slice the result, or use lax.linalg.eigh with "
            "subset_by_index"
        )
    if type not in (1, 2, 3):
        raise ValueError(f"eigh: type must be 1, 2 or 3; got {type!r}")
    triangle = (lambda x: x) if lower else adjoint
    if b is None:
        *vectors, w = Eigh(not eigvals_only)(triangle(matrices("eigh", a, square=True)))
        return w if eigvals_only else (w, vectors[0])
    matrix, metric = same_floats("eigh", *values_of("eigh", a=a, b=b))
    matrices("eigh", matrix, square=True)
    if matrices("eigh", metric, "b", square=True).shape[-1] != matrix.shape[-1]:
        raise ValueError(
            f"eigh: a and b must have the same size, got {matrix.type} and {metric.type}"
        )
    batch = broadcast_shapes("eigh", matrix.shape[:-2], metric.shape[:-2])
    matrix, metric = (triangle(broadcast_to(x, (*batch, *x.shape[-2:]))) for x in (matrix, metric))
    factor = Cholesky()(metric)
    reduced = hermitian_from_lower(matrix)
    if type == 1:  # l^-1 a l^-H y = w y, with v = l^-H y
        reduced = triangular_solve(factor, reduced, left_side=True, lower=True)
        reduced = triangular_solve(factor, reduced, lower=True, transpose_a=True, conjugate_a=True)
    else:  # l^H a l y = w y, with v = l^-H y or l y
        reduced = matmul(adjoint(factor), matmul(reduced, factor))
    *vectors, w = Eigh(not eigvals_only)(symmetrize(reduced))
    if eigvals_only:
        return w
    if type == 3:
        return w, matmul(factor, vectors[0])
    options = {"left_side": True, "lower": True, "transpose_a": True, "conjugate_a": True}
    return w, triangular_solve(factor, vectors[0], **options)


@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[False] = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Key | None = None,
) -> tuple[Array, Array]: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: Literal[True],
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Key | None = None,
) -> Array: ...
@overload
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Key | None = None,
) -> Array | tuple[Array, Array]: ...
def eigh_tridiagonal(
    d: ArrayLike,
    e: ArrayLike,
    *,
    eigvals_only: bool = False,
    select: str = "a",
    select_range: tuple[float, float] | None = None,
    tol: float | None = None,
    key: Key | None = None,
) -> Array | tuple[Array, Array]:
    """Compute the eigenvalues of real symmetric tridiagonal matrices.

    Args:
        d: the diagonals, ``[..., n]``.
        e: the diagonals next to them, ``[..., n - 1]``.
        eigvals_only: whether to return ``w`` alone.
        select: ``"a"`` for all; ``"i"`` for those at given positions; ``"v"`` for those in an
            interval, for one matrix and not under ``jit``.
        select_range: the first and last position, both included; or the interval, open on the left.
        tol: has no effect.
        key: has no effect.

    Returns:
        ``(w, v)``: the eigenvalues, in ascending order, and the vectors.

    Raises:
        TypeError: the numbers are complex, or float16 or narrower.
        ValueError: the sizes or the selection do not match.

    As SciPy's ``eigh_tridiagonal``. The full matrix is formed; the eigenvalues are accurate to
    rounding.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> d, e = snp.array([2.0, 2.0, 2.0]), snp.array([1.0, 1.0])
    >>> st.scipy.linalg.eigh_tridiagonal(d, e, eigvals_only=True).round(4)
    Array([0.5858, 2.    , 3.4142], dtype=float32)
    """
    caller = "eigh_tridiagonal"
    main, off = same_floats(caller, *values_of(caller, d=d, e=e))
    if is_complex(main.dtype):
        raise TypeError(f"{caller}: d and e must be real, got {main.type} and {off.type}")
    if main.ndim < 1 or off.ndim < 1 or off.shape[-1] != max(main.shape[-1] - 1, 0):
        raise ValueError(
            f"{caller}: e must have one element fewer than d, got {main.type} and {off.type}"
        )
    if select not in ("a", "i", "v"):
        raise ValueError(f"{caller}: select must be 'a', 'i' or 'v'; got {select!r}")
    if select != "a" and select_range is None:
        raise ValueError(f"{caller}: select={select!r} needs select_range=(first, last)")
    low, high = (0, 0) if select_range is None else select_range
    n = main.shape[-1]
    batch = broadcast_shapes(caller, main.shape[:-1], off.shape[:-1])
    matrix = diagonal_matrix(broadcast_to(main, (*batch, n)))
    if n > 1:  # only the lower triangle is read
        below = diagonal_matrix(broadcast_to(off, (*batch, n - 1)))
        widths = [(0, 0, 0)] * len(batch)
        matrix = matrix + pad(below, full((), 0, off.dtype), [*widths, (1, 0, 0), (0, 1, 0)])
    matrices(caller, matrix, "d")
    *vectors, w = Eigh(not eigvals_only)(matrix)
    results = [w, *vectors]
    if select == "i":
        if not 0 <= low <= high < n:
            raise ValueError(
                f"{caller}: select_range must be (first, last) with 0 <= first <= last < {n}, got "
                f"{select_range}"
            )
        first, last = int(low), int(high) + 1
        results = [slice_in_dim(x, first, last, 1, x.ndim - 1) for x in results]
    elif select == "v":
        if w.ndim > 1:
            raise ValueError(f"{caller}: select='v' is for one matrix, got {main.type}")
        inside = flatnonzero((w > low) & (w <= high))
        results = [x[..., inside] for x in results]
    return results[0] if eigvals_only else (results[0], results[1])


def schur(a: ArrayLike, output: str = "real") -> tuple[Array, Array]:
    """Compute the Schur form of square matrices: ``z t z^H = a``.

    Args:
        a: square matrices, ``[..., n, n]``.
        output: ``"real"``, where the ``t`` of real matrices has a 2 by 2 block for each pair of
            complex eigenvalues; or ``"complex"``.

    Returns:
        ``(t, z)``: ``t`` upper triangular, ``z`` unitary.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square, or there is no such output.

    As SciPy's ``schur``. There are no derivatives, since phases and the order of eigenvalues are
    LAPACK's choice.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.schur(snp.array([[2.0, 1.0], [0.0, 3.0]]))[0]
    Array([[2., 1.],
           [0., 3.]], dtype=float32)
    """
    if output not in ("real", "complex"):
        raise ValueError(f"schur: output must be 'real' or 'complex'; got {output!r}")
    x = matrices("schur", a, square=True)
    t, z = Schur(True)(as_complex(x) if output == "complex" else x)
    return t, z


def rsf2csf(T: ArrayLike, Z: ArrayLike, check_finite: bool = True) -> tuple[Array, Array]:
    """Compute the complex Schur form of matrices from a real one: ``z t z^H = Z T Z^H``.

    Args:
        T: the real form, ``[..., n, n]``.
        Z: its vectors, ``[..., n, n]``; leading axes broadcast.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        ``(t, z)``, complex; the order of the eigenvalues may differ.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match.

    As SciPy's ``rsf2csf``. There are no derivatives.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> t, z = st.scipy.linalg.rsf2csf(snp.array([[0.0, 1.0], [-1.0, 0.0]]), snp.eye(2))
    >>> snp.round(snp.sort(snp.imag(snp.diagonal(t))), 4)
    Array([-1.,  1.], dtype=float32)
    """
    t, z = same_floats("rsf2csf", *values_of("rsf2csf", T=T, Z=Z))
    matrices("rsf2csf", t, "T", square=True)
    if matrices("rsf2csf", z, "Z", square=True).shape[-1] != t.shape[-1]:
        raise ValueError(f"rsf2csf: T and Z must have the same size, got {t.type} and {z.type}")
    batch = broadcast_shapes("rsf2csf", t.shape[:-2], z.shape[:-2])
    t, z = (as_complex(broadcast_to(x, (*batch, *x.shape[-2:]))) for x in (t, z))
    triangle, inner = Schur(True)(t)
    return triangle, matmul(convert(z, inner.dtype), inner)


@overload
def hessenberg(
    a: ArrayLike,
    *,
    calc_q: Literal[False] = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
) -> Array: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: Literal[True], overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]: ...
@overload
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]: ...
def hessenberg(
    a: ArrayLike, *, calc_q: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the Hessenberg form of square matrices: ``q h q^H = a``.

    Args:
        a: square matrices, ``[..., n, n]``.
        calc_q: whether to return ``q`` too.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        ``h``, zero below the first subdiagonal; or ``(h, q)``, with ``q`` unitary.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As SciPy's ``hessenberg``. There are no derivatives.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0], [4.0, 2.0, 2.0]])
    >>> st.scipy.linalg.hessenberg(a)[:, 0]
    Array([ 1., -5.,  0.], dtype=float32)
    """
    x = matrices("hessenberg", a, square=True)
    packed, taus = Hessenberg()(x)
    h = upper_part(packed, -1)
    if not calc_q:
        return h
    n = x.shape[-1]
    if n < 2:
        return h, identity(x.shape, x.dtype)
    rows, columns = x.ndim - 2, x.ndim - 1
    below = slice_in_dim(slice_in_dim(packed, 1, n, 1, rows), 0, n - 1, 1, columns)
    inner = HouseholderProduct()(below, taus)
    one = identity((*x.shape[:-2], 1, n), x.dtype)
    edge = zeros_like(slice_in_dim(inner, 0, 1, 1, columns))
    return h, concatenate([one, concatenate([edge, inner], columns)], rows)
