"""The singular value decomposition."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.sizes import greater, is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import ArrayLike
from stretto._engine.ops import linalg
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full_like, le, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import family
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.eigenvalues import Eigh, inverse_differences
from stretto._engine.ops.linalg.invariants import Along, Columns, Decomposition
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_of, identity, keep_diagonal
from stretto._engine.ops.linalg.qr import Qr
from stretto._engine.ops.linalg.triangular import hermitian_from_lower
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.shape import slice_in_dim


class SvdAlgorithm(enum.Enum):
    """Say which algorithm finds singular values.

    ``QR`` is LAPACK's ``gesvd``; ``DEFAULT`` and ``DIVIDE_AND_CONQUER`` are its ``gesdd``, which is
    faster. There are no others here.

    >>> import stretto as st
    >>> st.lax.linalg.SvdAlgorithm("default").name
    'DEFAULT'
    """

    DEFAULT = "default"
    QR = "QR"
    JACOBI = "Jacobi"
    POLAR = "polar"
    DIVIDE_AND_CONQUER = "divide_and_conquer"


_ROUTINES = {
    None: "gesdd",
    SvdAlgorithm.DEFAULT: "gesdd",
    SvdAlgorithm.DIVIDE_AND_CONQUER: "gesdd",
    SvdAlgorithm.QR: "gesvd",
}


class Svd(family.MatrixOperation):
    """``u s v^H = x``: singular values, descending; and ``u`` and ``v^H`` if ``vectors``.

    Their sizes are those of ``x`` if ``full``, else the smaller of the two.
    """

    full: bool
    vectors: bool
    routine: str = "gesdd"
    multiple = True
    has_factors = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        *_, m, n = family.check_matrix("svd", x)
        k = lesser(m, n)
        values = ((k,), real_dtype(x.dtype))
        if not self.vectors:
            return family.result_types(x, values)
        sizes = (m, n) if self.full else (k, k)
        return family.result_types(x, ((m, sizes[0]), x.dtype), values, ((sizes[1], n), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.svd(x, self.full, self.vectors, self.routine)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            eye = lambda t: b.inline(lambda: identity(t.shape, t.dtype))
            return [b.splat(0, t) if t.ndim < x.type.ndim else eye(t) for t in outs]
        if b.platform == "gpu":
            return self._on_gpu(b, x)
        left, values, right = Svd(self.full, True).infer(x.type)
        config = {"mode": ("A" if self.full else "S") if self.vectors else "N"}
        types = (x.type, values, left, right, family.info_type(x.type))
        _, s, u, vh, info = family.lapack(b, self.routine, (x,), types, config, {0: 0})
        return [family.nan_where(b, info, o) for o in ((u, s, vh) if self.vectors else (s,))]

    def onnx(self, b: Any, x: Any) -> list[Any]:
        """Write rotations of pairs of columns as a loop."""
        if not x.type.size:
            return self.lower(b, x)
        u, s, vh = linalg.written_out.svd(b, x, self.full)
        return [u, s, vh] if self.vectors else [s]

    def _on_gpu(self, b: Any, x: Any) -> list[Any]:
        """Call cuSOLVER's ``gesvd``, for matrices with as many rows as columns or more."""
        *_, m, n = x.type.shape
        if m < n:
            x = b.inline(adjoint, x)
        left, values, right = Svd(self.full, True).infer(x.type)
        config = {"full_matrices": self.full, "compute_uv": self.vectors, "transposed": False}
        types = (x.type, values, left, right, family.info_type(x.type))
        _, s, u, vh, info = family.lapack(b, "gesvd", (x,), types, config, {0: 0})
        u, s, vh = [family.nan_where(b, info, o) for o in (u, s, vh)]
        if not self.vectors:
            return [s]
        return [b.inline(adjoint, vh), s, b.inline(adjoint, u)] if m < n else [u, s, vh]

    def padded(self, at: Any, x: Any) -> Any:
        """Decompose the triangle of a QR factorization, if rows or columns vary, which are few."""
        # Of x = q r with zeros below x, q has zeros there. So it has for vectors of values that
        # are zero, whose place below is open otherwise.
        (type,), op = at.types, at.static(self)
        rows, columns = map(is_size, type.shape[-2:])
        if not (rows or columns):
            return op(x)
        if (rows and columns) or (self.vectors and self.full):
            raise MissingRuleError(
                f"svd takes no matrices whose rows and columns both vary, and gives no full "
                f"factors where either does, {type}: use full_matrices=False, or eigh of x.T @ x"
            )
        x = at.filled(x, type, 0)
        q, r = Qr(False)(x if rows else adjoint(x))
        if not self.vectors:
            return op(r)
        u, s, vh = Svd(False, True, self.routine)(r)
        u = matmul(q, u)
        return (u, s, vh) if rows else (adjoint(vh), s, adjoint(u))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Follow Townsend, Differentiating the singular value decomposition (2016)."""
        pairs = self._pairs(primals, tangents)
        if not self.vectors:
            return (pairs.values,), (pairs.dvalues(),)
        du, dv = (pairs.dvectors(side, 0, pairs.count) for side in "uv")
        return (pairs.u, pairs.values, pairs.vh), (du, pairs.dvalues(), adjoint(dv))

    def factored(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return vectors and values; see ``SingularPairs``."""
        pairs = self._pairs(primals, tangents)
        s, k = pairs.values, pairs.count
        along = Along(pairs, s, full_like(s, 1), None, s.ndim - 1, frozenset(), 0, k)
        if not self.vectors:
            return (s,), (along,)
        left = Columns(pairs, "u", None, False, False, 0, k)
        right = Columns(pairs, "v", None, True, True, 0, k)
        return (pairs.u, s, pairs.vh), (left, along, right)

    def _pairs(self, primals: Sequence[Any], tangents: Sequence[Any]) -> SingularPairs:
        (x,), (dx,) = primals, tangents
        *_, m, n = x.shape
        if self.vectors and self.full and m != n:
            raise MissingRuleError(
                f"svd has no jvp rule for the full factors of {x.type}: the further vectors are "
                f"not determined by it; use full_matrices=False"
            )
        u, s, vh = Svd(self.vectors and self.full, True, self.routine)(x)
        return SingularPairs(u, s, vh, dx)


class SingularPairs(Decomposition):
    """Singular vectors and values, and how they change with the matrix."""

    # p = u^H dx v = a s + ds - s c, with a = u^H du and c = v^H dv skew-Hermitian. So
    # ds = Re diag p, a (s_j^2 - s_i^2) = p s + s p^H, and c (s_j^2 - s_i^2) = s p + p^H s.
    # Of the diagonals only s (a - c) = i Im diag p is determined: c has none. The vectors of
    # values that are zero, up to rounding, do not turn: 1 / s counts as 0 for these, and
    # 1 / (s_j^2 - s_i^2) for two of them.

    def __init__(self, u: Any, s: Any, vh: Any, dx: Any) -> None:
        v = adjoint(vh)
        super().__init__(s, {"u": u, "v": v})
        self.u, self.v, self.vh, self.dx = u, v, vh, dx
        self.moved = matmul(dx, v)
        self.p = matmul(adjoint(u), self.moved)
        self.rows, self.columns = dx.shape[-2:]
        self.zero = _zeros(s, greater(self.rows, self.columns))

    def dvalues(self) -> Any:
        """Return the real part of the diagonal of ``p``."""
        ds = diagonal_of(self.p)
        return real(ds) if is_complex(ds.dtype) else ds

    def dvectors(self, side: str, start: int, stop: int) -> Any:
        """Return ``u a``, or ``v c``, and what is outside of the space of the vectors."""
        s, p, ph = self.values, self.p, adjoint(self.p)
        last = s.ndim
        row, column = expand_dims(s, last), expand_dims(s, last - 1)
        both = expand_dims(self.zero, last) & expand_dims(self.zero, last - 1)
        part = lambda x: slice_in_dim(x, start, stop, 1, last)
        f = inverse_differences(s * s, both)
        if side == "v":
            dv = matmul(self.v, part(f * (row * p + ph * column)))
            return dv + part(self._outside(side)) if self.columns > self.rows else dv
        a = f * (p * column + row * ph)
        if is_complex(p.dtype):
            turn = imag(keep_diagonal(p)) * self._inverse()
            a = a + complex_(zeros_like(turn), turn)
        du = matmul(self.u, part(a))
        return du + part(self._outside(side)) if self.rows > self.columns else du

    def _inverse(self) -> Any:
        """Return ``1 / s`` as a row, 0 where ``s`` is zero."""
        s, zero = self.values, self.zero
        inverse = select(zero, zeros_like(s), 1 / select(zero, full_like(s, 1), s))
        return expand_dims(inverse, s.ndim - 1)

    def _leaving(self, side: str) -> Any:
        """Return what of ``dx v``, or ``dx^H u``, lies outside of the space of ``side``."""
        if side == "u":
            return self.moved - matmul(self.u, self.p)
        return matmul(adjoint(self.dx), self.u) - matmul(self.v, adjoint(self.p))

    def _outside(self, side: str) -> Any:
        return self._leaving(side) * self._inverse()

    # With q[i,j] = (h_j - h_i) / (s_j - s_i), and the Hermitian and skew parts of p:
    # u^H d(u h v^H) v = q herm p + (h_i + h_j) / (s_i + s_j) skew p, and
    # u^H d(u h u^H) u = q / (s_i + s_j) (p s + s p^H).

    def recombined(self, left: str, right: str, h: Any, slope: Any) -> Any:
        """Differentiate in the vectors' space by quotients, and outside of it by ``h / s``."""
        if (left, right) == ("v", "u"):
            return adjoint(self.recombined("u", "v", h, slope))
        s, p, ph = self.values, self.p, adjoint(self.p)
        last = s.ndim
        row, column = expand_dims(s, last), expand_dims(s, last - 1)
        q = family.quotients(s, h, slope)
        total = row + column
        none = expand_dims(self.zero, last) & expand_dims(self.zero, last - 1)
        as_row = lambda x: convert(expand_dims(x, last - 1), p.dtype)
        if left == right:
            side, turned = (p, ph) if left == "u" else (ph, p)
            q = select(none & eq(q, zeros_like(q)), zeros_like(q), q / total)
            x = self.sides[left]
            out = matmul(matmul(x, q * (side * column + row * turned)), adjoint(x))
            if (self.rows > self.columns) if left == "u" else (self.columns > self.rows):
                beside = matmul(self._outside(left) * as_row(h), adjoint(x))
                out = out + beside + adjoint(beside)
            return out
        hi, hj = expand_dims(h, last), expand_dims(h, last - 1)
        odd = none & eq(absolute(hi) + absolute(hj), zeros_like(total))
        means = (expand_dims(slope, last) + expand_dims(slope, last - 1)) * 0.5
        sums = select(odd, means, (hi + hj) / select(odd, full_like(total, 1), total))
        inside = q * ((p + ph) * 0.5) + sums * ((p - ph) * 0.5)
        out = matmul(matmul(self.u, inside), self.vh)
        ratio = select(self.zero, slope, h / select(self.zero, full_like(s, 1), s))
        if self.rows > self.columns:
            out = out + matmul(self._leaving("u") * as_row(ratio), self.vh)
        if self.columns > self.rows:
            out = out + matmul(self.u, adjoint(self._leaving("v") * as_row(ratio)))
        return out


def _zeros(s: Any, size: int) -> Any:
    """Say which singular values are zero up to rounding: at most ``size eps`` times the first."""
    least = slice_in_dim(s, 0, 1, 1, s.ndim - 1) * (size * float(ml_dtypes.finfo(s.dtype).eps))
    return le(s, broadcast_to(least, s.shape))


def svd(
    x: ArrayLike,
    *,
    full_matrices: bool = True,
    compute_uv: bool = True,
    subset_by_index: tuple[int, int] | None = None,
    algorithm: SvdAlgorithm | None = None,
) -> Any:
    """Factor matrices by singular values: ``x = u s vh``.

    Where singular values are equal, the derivatives of the vectors, and second derivatives of the
    values, are infinite or NaN; but vectors of values that are zero, up to ``max(m, n) eps`` of the
    greatest, count as constant, so that what is computed with the others has derivatives. Functions
    that use equal values' vectors alike have derivatives of the first order: what is written as
    ``(u * f(s)) @ vh``, ``(u * f(s)) @ u.T`` or ``(vh.T * f(s)) @ vh``, with some of the vectors as
    well (docs/decisions/0066-functions-of-eigenvectors-keep-their-form.md).

    Args:
        x: matrices, ``[..., m, n]``.
        full_matrices: whether ``u`` and ``vh`` are square; for matrices that are not, they have no
            derivative.
        compute_uv: whether to return more than ``s``.
        subset_by_index: the places ``(start, end)`` of the values to return, ``start`` included; by
            default all.
        algorithm: LAPACK's routine; None for its default.

    Returns:
        ``(u, s, vh)``, or ``s`` alone, ``[..., min(m, n)]``, descending. NaN for each matrix with
            which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the subset does not fit, or is of full matrices.
        NotImplementedError: LAPACK does not have the ``algorithm``.

    Source: LAPACK, ``gesdd`` and ``gesvd``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.svd(snp.array([[3.0, 0.0], [0.0, 4.0]]), compute_uv=False)
    Array([4., 3.], dtype=float32)
    """
    if algorithm not in _ROUTINES:
        raise NotImplementedError(
            f"svd: algorithm must be SvdAlgorithm.QR, DIVIDE_AND_CONQUER, DEFAULT or None, got "
            f"{algorithm}"
        )
    value = family.as_matrices("svd", x)
    full = bool(full_matrices and compute_uv)
    parts = Svd(full, bool(compute_uv), _ROUTINES[algorithm])(value)
    if subset_by_index is not None:
        if full:
            raise ValueError("svd: subset_by_index needs full_matrices=False")
        start, end = family.subset_of("svd", subset_by_index, min(value.shape[-2:]))
        last = value.ndim - 1
        axes = (last, last - 1, last - 1) if compute_uv else (last - 1,)
        parts = [slice_in_dim(o, start, end, 1, d) for o, d in zip(parts, axes, strict=True)]
    return tuple(parts) if compute_uv else parts[0]


# The pseudo-inverse.
#
# A primitive, because its derivative needs no differences of singular values: it exists where some
# of them are equal.


class Pinv(family.MatrixOperation):
    """The pseudo-inverse, with singular values up to a fraction of the greatest taken as zero.

    The fraction is the second operand. If ``hermitian``, by eigenvalues of the lower triangle.
    """

    hermitian: bool
    with_zeros = True

    def infer(self, x: ArrayType, rtol: ArrayType) -> ArrayType:
        *batch, m, n = family.check_matrix("pinv", x, self.hermitian)
        if rtol != array_type(tuple(batch), real_dtype(x.dtype)):
            raise ValueError(
                f"pinv: rtol must be a real number for each matrix of {x}, of its precision; got "
                f"{rtol}"
            )
        return array_type((*batch, n, m), x.dtype)

    def reference(self, x: np.ndarray, rtol: np.ndarray) -> np.ndarray:
        if not x.size:
            return np.zeros((*x.shape[:-2], x.shape[-1], x.shape[-2]), x.dtype)
        if self.hermitian:
            u, s = linalg_reference.eigh(x, True)
            vh = np.conj(np.swapaxes(u, -1, -2))
        else:
            u, s, vh = linalg_reference.svd(x, False, True)
        size = np.abs(s)
        keep = ~(size <= rtol[..., None] * np.max(size, -1, keepdims=True))  # NaN stays
        inverse = np.where(keep, 1 / np.where(keep, s, 1), 0).astype(s.dtype)
        v, uh = (np.conj(np.swapaxes(m, -1, -2)) for m in (vh, u))
        return np.matmul(v * inverse[..., None, :], uh)

    def lower(self, b: Any, x: Any, rtol: Any) -> Any:
        out = b.outs[0]
        return b.inline(self.composed, x, rtol) if x.type.size else b.splat(0, out)

    def composed(self, x: Any, rtol: Any) -> Any:
        """Return v s^-1 u^H."""
        if self.hermitian:
            u, s = Eigh()(x)
            v = u
        else:
            u, s, vh = Svd(False, True)(x)
            v = adjoint(vh)
        size = absolute(s)
        last = s.ndim - 1
        least = expand_dims(rtol * reduce_max(size, (last,)), last)
        drop = size <= least
        inverse = select(drop, zeros_like(s), 1 / select(drop, full_like(s, 1), s))
        return matmul(v * convert(expand_dims(inverse, last), x.dtype), adjoint(u))

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Follow Golub and Pereyra, The differentiation of pseudo-inverses (1973); rank stays."""
        # dp = -p dx p + p p^H dx^H (1 - x p) + (1 - p x) dx^H p^H p
        (x, rtol), (dx, _) = primals, tangents
        p = self(x, rtol)
        if dx is None:
            return p, None
        if self.hermitian:
            x, dx = hermitian_from_lower(x), hermitian_from_lower(dx)
        ph, dxh = adjoint(p), adjoint(dx)
        rows = matmul(matmul(p, ph), dxh)
        columns = matmul(dxh, matmul(ph, p))
        dp = rows - matmul(matmul(rows, x), p) + columns - matmul(p, matmul(x, columns))
        return p, dp - matmul(matmul(p, dx), p)
