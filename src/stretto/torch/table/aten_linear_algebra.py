"""Factorizations, solutions of equations, and Fourier transforms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import lax
from stretto._engine.api.autodiff.derivatives import jvp
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto.scipy.linalg import expm
from stretto.torch.slopes import written


def _cholesky(a: Any, *, upper: bool = False, check_errors: bool = False) -> tuple[Any, Any]:
    factor = snp.linalg.cholesky(a, upper=upper)
    return factor, snp.zeros(a.shape[:-2], snp.int32)


def _solved(a: Any, b: Any, *, left: bool = True, check_errors: bool = False) -> Any:
    """Return the solution, the factors, pivots and LAPACK's report."""
    vector = b.ndim == a.ndim - 1
    right = b[..., None] if vector else b
    if left:
        x = snp.linalg.solve(a, right)
    else:
        x = snp.swapaxes(
            snp.linalg.solve(snp.swapaxes(a, -1, -2), snp.swapaxes(right, -1, -2)), -1, -2
        )
    return x[..., 0] if vector else x, *_factored(a)


def _factored(a: Any, *, pivot: bool = True, check_errors: bool = False) -> tuple[Any, Any, Any]:
    """Return the factors, pivots from one, and LAPACK's report."""
    lu, pivots, _ = lax.linalg.lu(a)
    return lu, pivots + 1, snp.zeros(a.shape[:-2], snp.int32)


def _solved_by_factor(b: Any, factor: Any, upper: bool = False) -> Any:
    half = snp.swapaxes(factor.conj(), -1, -2) if upper else factor
    first = lax.linalg.triangular_solve(half, b, left_side=True, lower=True)
    return lax.linalg.triangular_solve(
        half, first, left_side=True, lower=True, transpose_a=True, conjugate_a=True
    )


def _inverse_by_factor(factor: Any, upper: bool = False) -> Any:
    one = snp.broadcast_to(snp.eye(factor.shape[-1], dtype=factor.dtype), factor.shape)
    return _solved_by_factor(one, factor, upper)


def _triangle_solved(
    a: Any, b: Any, *, upper: bool, left: bool = True, unitriangular: bool = False
) -> Any:
    return lax.linalg.triangular_solve(
        a, b, left_side=left, lower=not upper, unit_diagonal=unitriangular
    )


def _inverse(a: Any, *, check_errors: bool = False) -> tuple[Any, Any]:
    return snp.linalg.inv(a), snp.zeros(a.shape[:-2], snp.int32)


def _determinant(a: Any) -> tuple[Any, Any, Any]:
    lu, pivots, _ = lax.linalg.lu(a)
    return snp.linalg.det(a), lu, pivots + 1


def _log_determinant(a: Any) -> tuple[Any, Any, Any, Any]:
    sign, logarithm = snp.linalg.slogdet(a)
    lu, pivots, _ = lax.linalg.lu(a)
    return sign, logarithm, lu, pivots + 1


def _hermitian(a: Any, upper: bool = False) -> Any:
    """Read one triangle, as PyTorch does; the slope is that of any matrix, as there."""
    half = snp.triu(a, 1) if upper else snp.tril(a, -1)
    diagonal = snp.eye(a.shape[-1], dtype=a.dtype) * snp.real(a)
    return written(a, half + diagonal + snp.swapaxes(half.conj(), -1, -2))


def _symmetric_eigen(a: Any, UPLO: str = "L", compute_v: bool = True) -> tuple[Any, ...]:
    a = _hermitian(a, UPLO == "U")
    if not compute_v:
        return snp.linalg.eigvalsh(a), snp.zeros(0, a.dtype)
    return tuple(snp.linalg.eigh(a))


def _eigen(a: Any) -> tuple[Any, ...]:
    """Return values and vectors, with slopes for what does not depend on the vectors' phases."""
    values, vectors = lax.linalg.eig(a, compute_left_eigenvectors=False, enable_eigvec_derivs=True)
    return values, vectors


def _singular(
    a: Any, full_matrices: bool = False, compute_uv: bool = True, *, driver: str | None = None
) -> tuple[Any, ...]:
    if not compute_uv:
        empty = snp.zeros(0, a.dtype)
        return empty, snp.linalg.svdvals(a), empty
    if full_matrices and a.shape[-2] != a.shape[-1]:
        return _fully_singular(a)
    return tuple(snp.linalg.svd(a, full_matrices=False))


@custom_jvp
def _fully_singular(a: Any) -> tuple[Any, ...]:
    return tuple(snp.linalg.svd(a, full_matrices=True))


@_fully_singular.defjvp
def _(primals: tuple[Any], tangents: tuple[Any]) -> tuple[Any, Any]:
    """Give slopes to as many vectors as there are values; further ones have none, as in PyTorch.

    The vectors are those of the smaller factors but for their phases.
    """
    u, s, vh = _fully_singular(*primals)
    (small, _, _), (du, ds, dvh) = jvp(lambda a: snp.linalg.svd(a, False), primals, tangents)
    k = s.shape[-1]
    turns = snp.sum(small.conj() * u[..., :k], -2, keepdims=True)
    du = du * turns
    dvh = dvh * snp.swapaxes(turns, -1, -2).conj()
    missing = [(0, 0)] * (u.ndim - 2)
    du = snp.pad(du, [*missing, (0, 0), (0, u.shape[-1] - k)])
    dvh = snp.pad(dvh, [*missing, (0, vh.shape[-2] - k), (0, 0)])
    return (u, s, vh), (du, ds, dvh)


def _pseudo_inverse(a: Any, *, atol: Any = None, rtol: Any = None, hermitian: bool = False) -> Any:
    """Singular values count as 0 up to ``atol``, or up to ``rtol`` times the greatest."""
    if hermitian:
        a = _hermitian(a)
    if rtol is None:
        none = 0.0 if atol is None else snp.asarray(atol) > 0
        rtol = max(a.shape[-2:]) * snp.finfo(a.dtype).eps * (1 - snp.asarray(none))
    if atol is not None and a.size:
        greatest = snp.max(lax.stop_gradient(snp.linalg.svdvals(a)), -1)
        rtol = snp.maximum(rtol, atol / snp.where(greatest == 0, 1, greatest))
    return snp.linalg.pinv(a, rtol)


def _least_squares(
    a: Any, b: Any, rcond: float | None = None, *, driver: str | None = None
) -> tuple[Any, Any, Any, Any]:
    """Return the solution, and the residuals, rank and singular values that the driver gives.

    Residuals are NaN where the rank is not full: PyTorch gives none there.
    """
    rows, columns = a.shape[-2:]
    vector = b.ndim == a.ndim - 1
    right = b[..., None] if vector else b
    rtol = max(rows, columns) * snp.finfo(a.dtype).eps if rcond is None else rcond
    x = snp.linalg.pinv(a, rtol) @ right
    still = lax.stop_gradient(a)
    values = snp.linalg.svdvals(still)
    rank = snp.sum(values > rtol * snp.max(values, -1, keepdims=True, initial=0), -1)
    empty = snp.zeros(0, a.dtype)
    residuals = empty
    if rows > columns and driver in ("gels", "gelsd", "gelss"):
        squares = snp.sum(snp.square(snp.abs(right - a @ x)), -2)
        residuals = snp.where((rank == columns)[..., None], squares, snp.nan)
    if driver == "gels":
        rank = snp.zeros(0, snp.int32)
    given = values if driver in ("gelsd", "gelss") else empty
    return x[..., 0] if vector else x, residuals, rank, given


def _reflections(a: Any, taus: Any) -> Any:
    """Return the first columns of the product of reflections I - t v vᴴ; ``a`` has v below 1s."""
    rows, columns = a.shape[-2:]
    count = taus.shape[-1]
    one = snp.eye(rows, columns, dtype=a.dtype)
    vectors = snp.tril(a, -1)[..., :count] + one[:, :count]

    def reflected(q: Any, step: tuple[Any, Any]) -> tuple[Any, None]:
        v, t = step
        return q - t[..., None, None] * v[..., None] * (v.conj()[..., None, :] @ q), None

    steps = snp.moveaxis(vectors, -1, 0), snp.moveaxis(taus, -1, 0)
    return lax.scan(reflected, snp.broadcast_to(one, a.shape), steps, reverse=True)[0]


def _qr(a: Any, mode: str = "reduced") -> tuple[Any, ...]:
    if mode == "r":
        return snp.zeros(0, a.dtype), snp.linalg.qr(a, "r")
    return tuple(snp.linalg.qr(a, mode))


_SCALES: tuple[Callable[[int], float], ...] = (lambda n: 1.0, lambda n: n**-0.5, lambda n: 1.0 / n)
"""PyTorch's numbers for the normalization of a Fourier transform."""


def _points(x: Any, dim: Sequence[int]) -> int:
    count = 1
    for axis in dim:
        count *= x.shape[axis]
    return count


def _complex(x: Any, dim: Sequence[int], normalization: int, forward: bool) -> Any:
    n = _points(x, dim)
    transform = snp.fft.fftn if forward else snp.fft.ifftn
    return transform(x, axes=tuple(dim)) * (_SCALES[normalization](n) * (1 if forward else n))


def _of_real(x: Any, dim: Sequence[int], normalization: int, onesided: bool) -> Any:
    transform = snp.fft.rfftn if onesided else snp.fft.fftn
    return transform(x, axes=tuple(dim)) * _SCALES[normalization](_points(x, dim))


def _to_real(x: Any, dim: Sequence[int], normalization: int, last_dim_size: int) -> Any:
    others = dim[:-1]
    sizes = [*[x.shape[axis] for axis in others], last_dim_size]
    n = _points(x, others) * last_dim_size
    return snp.fft.irfftn(x, sizes, tuple(dim)) * (_SCALES[normalization](n) * n)


TABLE: dict[str, Callable[..., Any]] = {
    "aten._fft_c2c.default": _complex,
    "aten._fft_c2r.default": _to_real,
    "aten._fft_r2c.default": _of_real,
    "aten._linalg_det.default": _determinant,
    "aten._linalg_eigh.default": _symmetric_eigen,
    "aten._linalg_slogdet.default": _log_determinant,
    "aten._linalg_solve_ex.default": _solved,
    "aten._linalg_svd.default": _singular,
    "aten.cholesky_inverse.default": _inverse_by_factor,
    "aten.cholesky_solve.default": _solved_by_factor,
    "aten.linalg_cholesky_ex.default": _cholesky,
    "aten.linalg_eig.default": _eigen,
    "aten.linalg_lu_factor_ex.default": _factored,
    "aten.linalg_matrix_exp.default": expm,
    "aten.linalg_cross.default": lambda x, y, *, dim=-1: snp.cross(x, y, axis=dim),
    "aten.linalg_householder_product.default": _reflections,
    "aten.linalg_inv_ex.default": _inverse,
    "aten.linalg_lstsq.default": _least_squares,
    "aten.linalg_pinv.atol_rtol_tensor": _pseudo_inverse,
    "aten.linalg_qr.default": _qr,
    "aten.linalg_solve_triangular.default": _triangle_solved,
}
