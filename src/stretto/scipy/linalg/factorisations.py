"""Factorisations with SciPy's arguments and results.

``overwrite_a``, ``check_finite`` and ``lwork`` are taken, as SciPy takes them, and have no effect.
Next, read ``systems``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.types import real_dtype
from stretto._engine.ops.broadcast import expand_dims, squeeze
from stretto._engine.ops.comparison import eq, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.linalg.cholesky import Cholesky, symmetrized
from stretto._engine.ops.linalg.lu import Lu
from stretto._engine.ops.linalg.lu import lu as lax_lu
from stretto._engine.ops.linalg.matrix_parts import adjoint, identity, lower_part, upper_part
from stretto._engine.ops.linalg.qr import qr as lax_qr
from stretto._engine.ops.linalg.svd import SvdAlgorithm
from stretto._engine.ops.linalg.svd import svd as lax_svd
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort
from stretto.lax.polar import polar_factor
from stretto.numpy.linalg.arguments import matrices, same_floats

__all__ = ["cho_factor", "cholesky", "lu", "lu_factor", "polar", "qr", "qr_multiply", "svd"]

_DRIVERS = {"gesdd": SvdAlgorithm.DIVIDE_AND_CONQUER, "gesvd": SvdAlgorithm.QR}


def cholesky(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> Any:
    """The upper triangular ``u`` with ``u^H u = a``; or, if ``lower``, ``l`` with ``l l^H = a``.

    ``a`` is ``[..., n, n]``, Hermitian and positive definite; only its upper (or lower) triangle is
    read. The triangle of the result is NaN for each matrix that is not positive definite. Raises
    ``TypeError`` for float16 and narrower, ``ValueError`` for matrices that are not square.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 1.],
           [0., 2.]], dtype=float32)
    """
    x = matrices("cholesky", a, square=True)
    return Cholesky()(x) if lower else adjoint(Cholesky()(adjoint(x)))


def cho_factor(
    a: Any, lower: bool = False, overwrite_a: bool = False, check_finite: bool = True
) -> tuple[Any, bool]:
    """The Cholesky factor of ``a``, upper or ``lower``, and which, for ``cho_solve``.

    As ``cholesky``; the other triangle is zero. Source: SciPy, ``cho_factor``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cho_factor(snp.array([[4.0, 2.0], [2.0, 5.0]]), lower=True)[0]
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    return cholesky(a, lower), bool(lower)


def lu_factor(a: Any, overwrite_a: bool = False, check_finite: bool = True) -> tuple[Any, Any]:
    """Both triangles of the LU factorisation in one array, and its pivots, for ``lu_solve``.

    ``a`` is ``[..., m, n]``; the int32 pivots ``[..., min(m, n)]`` name the row that each row was
    exchanged with, in turn. Source: SciPy, ``lu_factor``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.lu_factor(snp.array([[1.0, 2.0], [4.0, 4.0]]))
    (Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32), Array([1, 1], dtype=int32))
    """
    return Lu()(matrices("lu_factor", a))


def lu(
    a: Any,
    permute_l: bool = False,
    overwrite_a: bool = False,
    check_finite: bool = True,
    p_indices: bool = False,
) -> tuple[Any, ...]:
    """``(p, l, u)`` with ``a = p l u``: a permutation matrix and two triangles.

    ``a`` is ``[..., m, n]``, ``l`` ``[..., m, min(m, n)]`` with ones on its diagonal. If
    ``permute_l``, the pair ``(p l, u)``; if ``p_indices``, ``p`` is an index vector with
    ``a = l[p] u``. Source: SciPy, ``lu``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.lu(snp.array([[1.0, 2.0], [4.0, 4.0]]))[0]
    Array([[0., 1.],
           [1., 0.]], dtype=float32)
    """
    x = matrices("lu", a)
    *outer, m, n = x.shape
    k = min(m, n)
    both, _, order = lax_lu(x)
    lower = lower_part(slice_in_dim(both, 0, k, 1, x.ndim - 1), -1)
    lower = lower + identity(lower.shape, x.dtype)
    upper = upper_part(slice_in_dim(both, 0, k, 1, x.ndim - 2))
    if p_indices and not permute_l:
        return argsort(order, -1), lower, upper
    row = broadcasted_iota(np.dtype(np.int32), (*outer, m, m), x.ndim - 2)
    p = convert(eq(row, expand_dims(order, x.ndim - 2)), real_dtype(x.dtype))
    return (matmul(p, lower), upper) if permute_l else (p, lower, upper)


def qr(
    a: Any,
    overwrite_a: bool = False,
    lwork: Any = None,
    mode: str = "full",
    pivoting: bool = False,
    check_finite: bool = True,
) -> tuple[Any, ...]:
    """``(q, r)`` with ``q r = a``, ``q`` of orthonormal columns and ``r`` upper triangular.

    ``a`` is ``[..., m, n]``. ``mode``: ``"full"``, ``q`` is square; ``"economic"``, it has
    ``min(m, n)`` columns; ``"r"``, the tuple ``(r,)``, of as many rows as ``a``. If ``pivoting``,
    the order ``p`` of columns is added: ``q r = a[:, p]``, where the magnitudes on the diagonal of
    ``r`` fall. The full ``q`` has no derivative where ``m > n``.

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
    a: Any,
    c: Any,
    mode: str = "right",
    pivoting: bool = False,
    conjugate: bool = False,
    overwrite_a: bool = False,
    overwrite_c: bool = False,
) -> tuple[Any, ...]:
    """``(c q, r)`` for ``q r = a``; ``(q c, r)`` in mode ``"left"``.

    ``a`` is ``[..., m, n]``, and ``q`` has ``k = min(m, n)`` columns; ``c`` is ``[..., p, m]``, in
    mode ``"left"`` ``[..., k, p]``, or a vector, which gives a vector. ``conjugate`` puts
    ``conj(q)`` for ``q``; ``pivoting`` adds the order of columns, as in ``qr``. Derivatives by
    both. To multiply by the square ``q``, without forming it, see ``lax.linalg.ormqr``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.qr_multiply(snp.array([[3.0], [4.0]]), snp.array([3.0, 4.0]))[0]
    Array([-5.], dtype=float32)
    """
    a, c = same_floats("qr_multiply", a, c)
    matrices("qr_multiply", a)
    if mode not in ("left", "right"):
        raise ValueError(f"qr_multiply: mode must be 'left' or 'right'; got {mode!r}")
    left = mode == "left"
    vector = c.ndim == 1
    columns = expand_dims(c, 1 if left else 0) if vector else c
    size = min(a.shape[-2:]) if left else a.shape[-2]
    if columns.ndim < 2 or columns.shape[-2 if left else -1] != size:
        raise ValueError(
            f"qr_multiply: c must have size {size} along axis {-2 if left else -1} in mode "
            f"{mode!r}; got a: {a.type} and c: {c.type}"
        )
    q, r, *order = lax_qr(a, pivoting=pivoting, full_matrices=False)
    q = conj(q) if conjugate else q
    out = matmul(q, columns) if left else matmul(columns, q)
    return (squeeze(out, -1 if left else -2) if vector else out, r, *order)


def svd(
    a: Any,
    full_matrices: bool = True,
    compute_uv: bool = True,
    overwrite_a: bool = False,
    check_finite: bool = True,
    lapack_driver: str = "gesdd",
) -> Any:
    """``(u, s, vh)`` with ``a = u s vh``; or the singular values ``s`` unless ``compute_uv``.

    ``a`` is ``[..., m, n]``; as ``numpy.linalg.svd``, with a choice of LAPACK's routines: ``gesdd``
    or ``gesvd``.

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
    a: Any,
    side: str = "right",
    *,
    method: str = "qdwh",
    eps: float | None = None,
    max_iterations: int | None = None,
) -> tuple[Any, Any]:
    """``(u, p)`` with ``a = u p``, or ``a = p u`` of ``side="left"``: a rotation and a stretch.

    ``a`` is ``[..., m, n]``; ``u``, of that shape, has orthonormal columns, or rows if these are
    fewer; ``p`` is Hermitian and positive semidefinite. By Halley's iteration
    (``method="qdwh"``; see ``lax.linalg.qdwh`` for ``eps`` and ``max_iterations``), or by singular
    values (``"svd"``). The derivative is infinite or NaN where ``a`` has not full rank.

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
    return u, symmetrized(product)
