"""Factorizations, linear systems, inverses and determinants, with SciPy's arguments and results.

``overwrite_a``, ``overwrite_b``, ``debug``, ``check_finite`` and ``lwork`` are accepted, as in
SciPy, and have no effect.
"""

from __future__ import annotations

from typing import Literal, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, squeeze
from stretto._engine.ops.linalg import lu as ops
from stretto._engine.ops.linalg.lu import Lu, PivotsToPermutation, solve_factored
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    identity,
    keep_diagonal,
    lower_part,
    matrix_transpose,
    upper_part,
)
from stretto._engine.ops.linalg.qr import qr as lax_qr
from stretto._engine.ops.linalg.svd import SvdAlgorithm
from stretto._engine.ops.linalg.svd import svd as lax_svd
from stretto._engine.ops.linalg.triangular import (
    Cholesky,
    TriangularSolve,
    hermitian_from_lower,
    solve_triangles,
    symmetrize,
)
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort
from stretto.lax.linalg import polar_factor
from stretto.numpy.linalg.factorizations import matrices, same_floats, systems, values_of

__all__ = ["cho_factor", "cho_solve", "cholesky", "det", "inv", "lu", "lu_factor", "lu_solve",
           "polar", "qr", "qr_multiply", "solve", "solve_triangular", "svd"]  # fmt: skip

_DRIVERS = {"gesdd": SvdAlgorithm.DIVIDE_AND_CONQUER, "gesvd": SvdAlgorithm.QR}


def cholesky(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Array:
    """Factor Hermitian positive definite matrices into a triangle and its adjoint.

    Args:
        a: Hermitian positive definite matrices, ``[..., n, n]``; only one triangle is read.
        lower: whether to read the lower triangle and return a lower one, instead of the upper.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The upper triangular ``u`` with ``u^H u = a``, or the lower ``l`` with ``l l^H = a``; NaN in
            the triangle of each matrix that is not positive definite.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As SciPy's ``cholesky``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    return Cholesky()(x) if lower else adjoint(Cholesky()(adjoint(x)))


@described_like(cholesky)
def cho_factor(
    a: ArrayLike, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, bool]:
    """Factor Hermitian positive definite matrices for ``cho_solve``.

    Returns:
        The triangle, with zeros in the other one, and whether it is the lower.

    As SciPy's ``cho_factor``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cho_factor(snp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)[0]
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky(matrices("cho_factor", a, "a", square=True), lower), bool(lower)


def lu_factor(
    a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Array, Array]:
    """Factor matrices into two triangles, with pivoting, for ``lu_solve``.

    Args:
        a: matrices, ``[..., m, n]``.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        Both triangles in one array, and the pivots, int32, ``[..., min(m, n)]``: the row that each
            row in turn was exchanged with.

    Raises:
        TypeError: the dtype is float16 or narrower.

    As SciPy's ``lu_factor``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.lu_factor(snp.array([[1.0, 2.0], [4.0, 4.0]]))
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    return Lu()(matrices("lu_factor", a))


@described_like(lu_factor)
def lu(
    a: ArrayLike,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Array, ...]:
    """Factor matrices into a permutation and two triangles: ``a = p l u``.

    Args:
        permute_l: whether to return the pair ``(p l, u)``.
        p_indices: whether to return ``p`` as indices, with ``a = l[p] u``.

    Returns:
        ``(p, l, u)``, where ``l`` is ``[..., m, min(m, n)]`` with ones on its diagonal.

    As SciPy's ``lu``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.lu(snp.array([[1.0, 2.0], [4.0, 4.0]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    x = matrices("lu", a)
    *outer, m, n = x.shape
    k = min(m, n)
    packed, _, order = ops.lu(x)
    lower = lower_part(slice_in_dim(packed, 0, k, 1, x.ndim - 1), -1)
    lower = lower + identity(lower.shape, x.dtype)
    upper = upper_part(slice_in_dim(packed, 0, k, 1, x.ndim - 2))
    if p_indices and not permute_l:
        return argsort(order, -1), lower, upper
    row = broadcasted_iota(np.dtype(np.int32), (*outer, m, m), x.ndim - 2)
    p = convert(eq(row, expand_dims(order, x.ndim - 2)), real_dtype(x.dtype))
    return (matmul(p, lower), upper) if permute_l else (p, lower, upper)


def qr(
    a: ArrayLike,
    overwrite_a: bool = False,
    lwork: int | None = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Array, ...]:
    """Factor matrices into orthonormal columns and an upper triangle: ``q r = a``.

    Args:
        a: matrices, ``[..., m, n]``.
        overwrite_a: has no effect.
        lwork: has no effect.
        mode: ``"full"`` for a square ``q``, which has no derivative where ``m > n``; ``"economic"``
            for ``min(m, n)`` columns; ``"r"`` for the tuple ``(r,)``.
        pivoting: whether to choose an order ``p`` of the columns, ``q r = a[:, p]``, so that the
            magnitudes on the diagonal of ``r`` decrease.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        ``(q, r)``, or ``(q, r, p)``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: there is no such mode.

    As SciPy's ``qr``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> q, r, p = st.scipy.linalg.qr(snp.array([[1.0, 3.0], [0.0, 4.0]]), pivoting=True)
    >>> p
    Array([1, 0], dtype=int32)
    """
    x = matrices("qr", a)
    if mode not in ("full", "economic", "r"):
        raise ValueError(f"qr: mode must be 'full', 'economic' or 'r'; got {mode!r}")
    q, r, *order = lax_qr(x, pivoting=pivoting, full_matrices=mode == "full")
    if mode != "r":
        return (q, r, *order)
    rest = x.shape[-2] - r.shape[-2]
    if rest:
        below = zeros_like(slice_in_dim(x, 0, rest, 1, x.ndim - 2))
        r = concatenate([r, below], x.ndim - 2)
    return (r, *order)


def qr_multiply(
    a: ArrayLike,
    c: ArrayLike,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Array, ...]:
    """Multiply by the ``q`` of ``q r = a``.

    Args:
        a: matrices, ``[..., m, n]``; ``q`` has ``k = min(m, n)`` columns.
        c: ``[..., p, m]``, or ``[..., k, p]`` in mode ``"left"``; or a vector.
        mode: ``"right"`` for ``c q``, ``"left"`` for ``q c``.
        pivoting: whether to choose an order of the columns, as in ``qr``.
        conjugate: whether to use ``conj(q)`` in place of ``q``.
        overwrite_a: has no effect.
        overwrite_c: has no effect.

    Returns:
        ``(c q, r)`` or ``(q c, r)``, with the order of the columns if ``pivoting``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such mode.

    As SciPy's ``qr_multiply``. To multiply by the square ``q`` see ``lax.linalg.ormqr``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.qr_multiply(snp.array([[3.0], [4.0]]), snp.array([3.0, 4.0]))[0]
    Array([-5.], dtype=float32)
    """
    matrix, other = same_floats("qr_multiply", *values_of("qr_multiply", a=a, c=c))
    matrices("qr_multiply", matrix)
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right'; got {mode!r}")
    left = mode == "left"
    vector = other.ndim == 1
    columns = expand_dims(other, 1 if left else 0) if vector else other
    size = min(matrix.shape[-2:]) if left else matrix.shape[-2]
    if columns.ndim < 2 or columns.shape[-2 if left else -1] != size:
        raise ValueError(
            f"qr_multiply: c must have size {size} along axis {-2 if left else -1} in mode "
            f"{mode!r}; got a: {matrix.type} and c: {other.type}"
        )
    q, r, *order = lax_qr(matrix, pivoting=pivoting, full_matrices=False)
    q = conj(q) if conjugate else q
    out = matmul(q, columns) if left else matmul(columns, q)
    return (squeeze(out, -1 if left else -2) if vector else out, r, *order)


@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: Literal[True] = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> tuple[Array, Array, Array]: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    *,
    compute_uv: Literal[False],
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array: ...
@overload
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]: ...
def svd(
    a: ArrayLike,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Array | tuple[Array, Array, Array]:
    """Factor matrices by singular values: ``a = u s vh``.

    Args:
        a: matrices, ``[..., m, n]``.
        full_matrices: whether ``u`` and ``vh`` are square.
        compute_uv: whether to return more than ``s``.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.
        lapack_driver: LAPACK's routine, ``gesdd`` or ``gesvd``.

    Returns:
        ``(u, s, vh)``, or ``s`` alone, in descending order.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: there is no such routine.

    As SciPy's ``svd``; derivatives as of ``numpy.linalg.svd``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.svd(snp.array([[3.0, 0.0], [0.0, 4.0]]))[1]
    Array([4., 3.], dtype=float32)
    """
    if lapack_driver not in _DRIVERS:
        raise ValueError(f"svd: lapack_driver must be 'gesdd' or 'gesvd', got {lapack_driver!r}")
    return lax_svd(
        matrices("svd", a),
        full_matrices=full_matrices,
        compute_uv=compute_uv,
        algorithm=_DRIVERS[lapack_driver],
    )


def polar(
    a: ArrayLike,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Array, Array]:
    """Factor matrices into a rotation and a stretch.

    Args:
        a: matrices, ``[..., m, n]``.
        side: ``"right"`` for ``a = u p``, ``"left"`` for ``a = p u``.
        method: ``"qdwh"`` for Halley's iteration, ``"svd"`` for singular values.
        eps: the precision, as in ``lax.linalg.qdwh``.
        max_iterations: the largest number of steps, likewise.

    Returns:
        ``u``, of the shape of ``a``, with orthonormal columns (or rows, if these are fewer),
            and ``p``, Hermitian and positive semidefinite.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: there is no such side or method.

    As SciPy's ``polar``. The derivative is infinite or NaN where ``a`` does not have full rank.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> u, p = st.scipy.linalg.polar(snp.array([[0.0, -2.0], [2.0, 0.0]]))
    >>> p.round(4) + 0.0
    Array([[2., 0.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("polar", a)
    if side not in ("left", "right"):
        raise ValueError(f"polar: side must be 'left' or 'right'; got {side!r}")
    if method not in ("qdwh", "svd"):
        raise ValueError(f"polar: method must be 'qdwh' or 'svd'; got {method!r}")
    wide = x.shape[-2] < x.shape[-1]
    u, _, _ = polar_factor(adjoint(x) if wide else x, method, eps, max_iterations)
    u = adjoint(u) if wide else u
    product = matmul(adjoint(u), x) if side == "right" else matmul(x, adjoint(u))
    return u, symmetrize(product)


_FORMS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
_KINDS = {
    "gen": "gen",
    "general": "gen",
    "sym": "sym",
    "symmetric": "sym",
    "her": "her",
    "hermitian": "her",
    "pos": "pos",
    "positive definite": "pos",
    "upper triangular": "upper",
    "lower triangular": "lower",
}


def _form(caller: str, trans: int | str) -> str:
    """Return ``N``, ``T`` or ``C``: the matrix itself, its transpose, its adjoint."""
    if trans not in _FORMS:
        raise ValueError(f"{caller}: trans must be 0, 1, 2, 'N', 'T' or 'C'; got {trans!r}")
    return _FORMS[trans]


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve ``a x = b``, for matrices whose structure may be known.

    Args:
        a: square matrices, ``[..., n, n]``.
        b: a vector ``[n]``, or matrices ``[..., n, k]``; leading axes broadcast.
        lower: whether to read the lower triangle of a symmetric or Hermitian matrix.
        overwrite_a: has no effect.
        overwrite_b: has no effect.
        debug: has no effect.
        check_finite: has no effect; NaN is not checked for.
        assume_a: ``"gen"`` for nothing; ``"sym"``, ``"her"`` or ``"pos"`` for symmetric, Hermitian,
            or Hermitian positive definite matrices, of which one triangle is read; ``"upper
            triangular"`` or ``"lower triangular"``.

    Returns:
        The solution, of the shape of ``b``; infinite or NaN where ``a`` is singular, NaN where it
            is not positive definite as assumed.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such assumption.

    As SciPy's ``solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> st.scipy.linalg.solve(a, snp.array([6.0, 7.0]), assume_a="pos")
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in _KINDS:
        raise ValueError(f"solve: assume_a must be one of {', '.join(_KINDS)}; got {assume_a!r}")
    kind = _KINDS[assume_a]
    matrix, right, vector = systems("solve", *values_of("solve", a=a, b=b))
    if kind == "pos":
        return cho_solve(cho_factor(a, lower), b)
    if kind in ("upper", "lower"):
        return solve_triangular(a, b, 0, kind == "lower")
    if kind != "gen":
        hermitian = kind == "her" and is_complex(matrix.dtype)
        matrix = matrix if lower else (adjoint(matrix) if hermitian else matrix_transpose(matrix))
        matrix = hermitian_from_lower(matrix) if hermitian else _symmetric_from_lower(matrix)
    x = ops.solve(matrix, right)
    return squeeze(x, -1) if vector else x


def _symmetric_from_lower(x: Array) -> Array:
    strict = lower_part(x, -1)
    return strict + matrix_transpose(strict) + keep_diagonal(x)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) x = b`` from what ``lu_factor(a)`` returns.

    Args:
        lu_and_piv: the triangles and the pivots.
        b: a vector ``[n]``, or matrices ``[..., n, k]``; leading axes broadcast.
        trans: 0 for ``a`` itself, 1 for its transpose, 2 for its adjoint.
        overwrite_b: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The solution, of the shape of ``b``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such ``trans``.

    As SciPy's ``lu_solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> factors = st.linalg.lu_factor(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> st.linalg.lu_solve(factors, snp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    form = _form("lu_solve", trans)
    packed, right, vector = systems("lu_solve", *values_of("lu_solve", lu=lu_and_piv[0], b=b))
    order = PivotsToPermutation(packed.shape[-1])(as_value(lu_and_piv[1], "lu_solve", "piv"))
    if packed.ndim > 2 or right.ndim > 2:
        batch = broadcast_shapes("lu_solve", packed.shape[:-2], right.shape[:-2])
        packed, right = (broadcast_to(m, (*batch, *m.shape[-2:])) for m in (packed, right))
        order = broadcast_to(order, (*batch, order.shape[-1]))
    x = solve_factored(packed, order, right, form)
    return squeeze(x, -1) if vector else x


@described_like(lu_solve)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) x = b`` for triangular matrices.

    Args:
        a: triangular matrices, ``[..., n, n]``; only that triangle is read.
        trans: 0 or ``"N"`` for ``a`` itself, 1 or ``"T"`` for its transpose, 2 or ``"C"`` for its
            adjoint.
        lower: whether the lower triangle is read, instead of the upper.
        unit_diagonal: whether the diagonal counts as ones.
        debug: has no effect.

    As SciPy's ``solve_triangular``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.solve_triangular(
    ...     snp.array([[2.0, 0.0], [1.0, 4.0]]), snp.array([2.0, 9.0]), lower=True
    ... )
    Array([1., 2.], dtype=float32)
    """
    form = _form("solve_triangular", trans)
    matrix, right, vector = systems("solve_triangular", *values_of("solve_triangular", a=a, b=b))
    step = TriangularSolve(True, bool(lower), form, bool(unit_diagonal))
    x = solve_triangles("solve_triangular", step, matrix, right)
    return squeeze(x, -1) if vector else x


@described_like(lu_solve)
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``a x = b`` from what ``cho_factor(a)`` returns.

    Args:
        c_and_lower: the factor, and whether it is the lower triangle.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match.

    As SciPy's ``cho_solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> factor = st.linalg.cho_factor(snp.array([[4.0, 0.0], [0.0, 16.0]]))
    >>> st.linalg.cho_solve(factor, snp.array([4.0, 4.0]))
    Array([1.  , 0.25], dtype=float32)
    """
    c, lower = c_and_lower
    c, x, vector = systems("cho_solve", *values_of("cho_solve", c=c, b=b))
    for form in "NC" if lower else "CN":
        x = solve_triangles("cho_solve", TriangularSolve(True, bool(lower), form, False), c, x)
    return squeeze(x, -1) if vector else x


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Invert square matrices.

    Args:
        a: square matrices, ``[..., n, n]``.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The inverses; infinite or NaN where a matrix is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As SciPy's ``inv``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return ops.inv(matrices("inv", a, square=True))


@described_like(inv)
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices.

    Returns:
        The determinants, ``[...]``.

    As SciPy's ``det``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return ops.det(matrices("det", a, square=True))
