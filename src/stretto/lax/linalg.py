"""``stretto.lax.linalg``: factorizations of matrices, under their ``jax.lax.linalg`` names.

Each works on the matrices in the last two axes, by LAPACK; ``stretto.linalg`` has NumPy's and
SciPy's functions, written with these. ``qdwh`` is an iteration of products and factorizations;
its derivative is that of the polar decomposition, whatever the iteration does.
"""

from __future__ import annotations

import ml_dtypes
import numpy as np

from stretto._engine.core.lazy import exports
from stretto._engine.core.types import float0, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.bits import bitwise_not
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full, full_like, select, zeros_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import cbrt, sqrt
from stretto._engine.ops.extrema import minimum
from stretto._engine.ops.layout import expand_dims, squeeze
from stretto._engine.ops.linalg.eigenvalues import (
    Eigh,
    EighImplementation,
    EigImplementation,
    eig,
    eigh,
    hessenberg,
    schur,
)
from stretto._engine.ops.linalg.family import as_matrices
from stretto._engine.ops.linalg.lu import lu, lu_pivots_to_permutation
from stretto._engine.ops.linalg.matrix_parts import adjoint, identity
from stretto._engine.ops.linalg.qr import Qr, geqrf, householder_product, ormqr, qr
from stretto._engine.ops.linalg.svd import Svd, SvdAlgorithm, svd
from stretto._engine.ops.linalg.triangular import (
    cholesky,
    cholesky_update,
    symmetric_product,
    symmetrize,
    triangular_solve,
    tridiagonal,
    tridiagonal_solve,
)
from stretto._engine.ops.reducing.reduce import reduce_max, reduce_or
from stretto._engine.ops.shape import concatenate, slice_in_dim

__all__ = ["EigImplementation", "EighImplementation", "SvdAlgorithm", "cholesky",
           "cholesky_update", "eig", "eigh", "geqrf", "hessenberg",
           "householder_product", "lu", "lu_pivots_to_permutation", "ormqr", "qdwh",
           "qr", "schur", "svd", "symmetric_product", "triangular_solve",
           "tridiagonal", "tridiagonal_solve"]  # fmt: skip


_INT32 = np.dtype(np.int32)


def _norm(x: Array) -> Array:
    """Return the root of the sum of squares of each matrix, as a matrix of one element."""
    axes = (x.ndim - 2, x.ndim - 1)
    return expand_dims(sqrt(reduce_sum(square(absolute(x)), axes)), axes)


def _by_halley(
    x: Array, eps: float | None, max_iterations: int | None
) -> tuple[Array, Array, Array]:
    """Return the unitary factor, the number of steps, and whether each matrix has converged."""
    # Nakatsukasa, Bai and Gygi (2010), (3.4) and (3.10): with l a lower bound of the least
    # singular value, which each step moves to l (a + b l^2) / (1 + c l^2), and
    # [sqrt(c) x; 1] = [p; q] r:  x' = b/c x + (a - b/c) / sqrt(c) p q^H.
    *_, m, n = x.shape
    part = real_dtype(x.dtype)
    small = float(ml_dtypes.finfo(part).eps) if eps is None else eps
    most = 10 if max_iterations is None else max_iterations
    rows, columns = x.ndim - 2, x.ndim - 1
    below = identity((*x.shape[:-2], n, n), x.dtype)
    size = absolute(x)
    bound = sqrt(
        reduce_max(reduce_sum(size, (columns,)), (rows,))
        * reduce_max(reduce_sum(size, (rows,)), (rows,))
    )  # of the 2-norm
    bound = expand_dims(select(bound > 0, bound, full_like(bound, 1)), (rows, columns))
    one = full_like(bound, 1)

    def moving(u: Array, last: Array, least: Array) -> Array:
        near = _norm(u - last) <= _norm(u) * (4 * small) ** (1 / 3)
        return bitwise_not(near & (absolute(least - 1) <= 10 * small))

    def unfinished(carry: tuple[Array, ...]) -> Array:
        u, last, least, step = carry
        return reduce_or(moving(u, last, least)) & (step < most)

    def improved(carry: tuple[Array, ...]) -> tuple[Array, ...]:
        u, _, least, step = carry
        l2 = square(least)
        d = cbrt(4 * (1 - l2) / square(l2))
        a = sqrt(1 + d) + 0.5 * sqrt(8 - 4 * d + 8 * (2 - l2) / (l2 * sqrt(1 + d)))
        b = square(a - 1) / 4
        c = a + b - 1
        root, ratio = (convert(v, x.dtype) for v in (sqrt(c), b / c))
        rest = convert((a - b / c) / sqrt(c), x.dtype)
        q, _ = Qr(False)(concatenate([u * root, below], rows))
        first, second = slice_in_dim(q, 0, m, 1, rows), slice_in_dim(q, m, m + n, 1, rows)
        product = matmul(first, adjoint(second))
        following = u * ratio + product * rest
        return following, u, minimum(least * (a + b * l2) / (1 + c * l2), one), step + 1

    start = (
        x / convert(bound, x.dtype),
        zeros_like(x),
        full_like(bound, small),
        full((), 0, _INT32),
    )
    u, last, least, steps = while_loop(unfinished, improved, start)
    return u, steps, squeeze(bitwise_not(moving(u, last, least)), (rows, columns))


def _factor(
    x: Array, method: str, eps: float | None, max_iterations: int | None
) -> tuple[Array, Array, Array]:
    """Return ``u`` of ``x = u h``, for matrices of no fewer rows than columns; see ``qdwh``."""
    if method == "qdwh" and x.size:
        return _by_halley(x, eps, max_iterations)
    u, _, vh = Svd(False, True)(x)
    return matmul(u, vh), full((), 0, _INT32), full(x.shape[:-2], True, np.dtype(bool))


polar_factor = custom_jvp(_factor, nondiff_argnums=(1, 2, 3))


@polar_factor.defjvp
def _factor_jvp(
    method: str,
    eps: float | None,
    max_iterations: int | None,
    primals: tuple[Array, ...],
    tangents: tuple[Array, ...],
) -> tuple[tuple[Array, ...], tuple[Array | np.ndarray, ...]]:
    """Return the part along ``u``, skew-Hermitian, and the part across it."""
    # x = u h, and dx = du h + u dh with du = u w + (1 - u u^H) dx h^-1, w skew-Hermitian:
    # w h + h w = u^H dx - dx^H u, solved by the eigenvalues of h.
    (x,), (dx,) = primals, tangents
    u, steps, converged = polar_factor(x, method, eps, max_iterations)
    v, s = Eigh()(symmetrize(matmul(adjoint(u), x)))
    p = matmul(adjoint(u), dx)
    row, column = expand_dims(s, s.ndim), expand_dims(s, s.ndim - 1)
    inner = matmul(adjoint(v), matmul(p - adjoint(p), v)) / convert(row + column, p.dtype)
    du = matmul(u, matmul(v, matmul(inner, adjoint(v))))
    if x.shape[-2] > x.shape[-1]:
        across = matmul(dx - matmul(u, p), v) / convert(column, p.dtype)
        du = du + matmul(across, adjoint(v))
    nothing = [np.zeros(o.shape, float0) for o in (steps, converged)]
    return (u, steps, converged), (du, *nothing)


def qdwh(
    x: ArrayLike,
    *,
    is_hermitian: bool = False,
    max_iterations: int | None = None,
    eps: float | None = None,
    dynamic_shape: tuple[int, int] | None = None,
) -> tuple[Array, Array, Array, Array]:
    """Compute the polar decomposition ``x = u h``, by Halley's iteration with weights.

    Derivatives are those of the decomposition; for a matrix of less than full rank they are
    infinite or NaN.

    Args:
        x: matrices, ``[..., m, n]`` with ``m >= n``.
        is_hermitian: has no effect.
        max_iterations: the greatest number of steps; by default 10.
        eps: the precision; by default that of the dtype. The iteration ends when a step changes
            ``u`` by less than ``(4 eps)**(1/3)`` of its norm.
        dynamic_shape: must be None.

    Returns:
        ``(u, h, steps, converged)``: ``u`` of orthonormal columns, ``h`` Hermitian and positive
            semidefinite, an int32 for all matrices, and a boolean for each.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: ``m < n``.
        NotImplementedError: ``dynamic_shape`` is not None.

    Source: Nakatsukasa, Bai and Gygi, Optimizing Halley's iteration for computing the matrix polar
    decomposition (2010).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> u, h, steps, converged = st.lax.linalg.qdwh(snp.array([[0.0, -2.0], [2.0, 0.0]]))
    >>> h.round(4) + 0.0, bool(converged)
    (Array([[2., 0.],
           [0., 2.]], dtype=float32), True)
    """
    value = as_matrices("qdwh", x)
    if dynamic_shape is not None:
        raise NotImplementedError(
            "qdwh: matrices have the shape they have; slice x instead of giving dynamic_shape"
        )
    if value.shape[-2] < value.shape[-1]:
        raise ValueError(
            f"qdwh: expected no fewer rows than columns, got {value.type}; give the adjoint, for "
            f"x^H = u h is x = h u^H"
        )
    u, steps, converged = polar_factor(value, "qdwh", eps, max_iterations)
    return u, symmetrize(matmul(adjoint(u), value)), steps, converged


exports(__name__)
