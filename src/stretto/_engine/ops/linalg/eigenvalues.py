"""Eigenvalues and eigenvectors, of Hermitian and other matrices; the Schur and Hessenberg forms."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_EXPORTED, Refused
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import linalg
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ge, gt, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import reference as linalg_reference
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
from stretto._engine.ops.linalg.lu import solve
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    diagonal_of,
    identity,
    matrix_transpose,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import hermitian_from_lower, symmetrize
from stretto._engine.ops.reducing.reduce import argmax, reduce_max
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

    def onnx(self, b: Any, x: Any) -> list[Any]:
        """Write rotations of pairs of rows and columns as a loop."""
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        return linalg.written_out.eigh(b, x)[-len(outs) :]

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
        """Differentiate by first-order perturbation theory; vectors keep their phase."""
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
        """Return ``v f p``."""
        last = self.batch + 1
        f = slice_in_dim(inverse_differences(self.values), start, stop, 1, last)
        return matmul(self.sides["v"], slice_in_dim(self.p, start, stop, 1, last) * f)

    def recombined(self, left: str, right: str, h: Any, slope: Any) -> Any:
        """Return ``v (q p) v^H``."""
        v = self.sides["v"]
        q = convert(quotients(self.values, h, slope), v.dtype)
        return matmul(matmul(v, q * self.p), adjoint(v))


def inverse_differences(w: Any, same: Any = None) -> Any:
    """Return ``1 / (w[j] - w[i])`` at [i, j]; 0 on the diagonal, and where ``same`` holds."""
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
        value = symmetrize(value)
    elif not lower:
        value = adjoint(value)
    v, w = Eigh()(value)
    if subset_by_index is None:
        return v, w
    start, end = subset_of("eigh", subset_by_index, w.shape[-1])
    return slice_in_dim(v, start, end, 1, v.ndim - 1), slice_in_dim(w, start, end, 1, w.ndim - 1)


class EigImplementation(enum.Enum):
    """Say which library finds eigenvalues: here, only LAPACK.

    >>> import stretto as st
    >>> st.lax.linalg.EigImplementation("lapack").name
    'LAPACK'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(MatrixOperation):
    """Eigenvalues, and the left and right eigenvectors that are requested; all complex.

    Vectors have norm 1 and a real element of greatest magnitude. Their derivatives are given only
    if ``differentiable``.
    """

    onnx = NOT_EXPORTED
    left: bool
    right: bool
    differentiable: bool = False
    multiple = True
    not_padded = (
        "LAPACK may put the eigenvalues of a larger one into another order: give it matrices of a "
        "fixed size; for Hermitian ones there is eigh"
    )

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("eig", x, square=True)[-1]
        dtype = np.result_type(x.dtype, np.complex64)
        return result_types(x, ((n,), dtype), *[((n, n), dtype)] * (self.left + self.right))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.eig(x, self.left, self.right)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        values = outs[0]
        vectors = array_type(x.type.shape, values.dtype)
        config = {
            "compute_left": "V" if self.left else "N",
            "compute_right": "V" if self.right else "N",
        }
        parts = array_type(values.shape, real_dtype(values.dtype))
        types = [values] if is_complex(x.type.dtype) else [parts, parts]
        *w, vl, vr, info = lapack(
            b, "geev", (x,), (*types, vectors, vectors, info_type(x.type)), config
        )
        whole = w[0] if len(w) == 1 else b.emit("complex", *w, out=values)
        results = [whole, *[vl] * self.left, *[vr] * self.right]
        return [nan_where(b, info, o) for o in results]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Differentiate by first-order perturbation theory, the vectors normalized as above."""
        # With p = v^-1 dx v: dw = diag p.
        if (self.left or self.right) and not self.differentiable:
            raise MissingRuleError(
                "eig has no jvp rule where eigenvectors are computed: their phases are LAPACK's "
                "choice, which a derivative would depend on. For eigenvalues use linalg.eigvals; "
                "if no phase matters, lax.linalg.eig(..., enable_eigvec_derivs=True)"
            )
        (x,), (dx,) = primals, tangents
        w, *vectors, v = Eig(self.left, True, True)(x)
        dx = convert(dx, w.dtype)
        p = solve(v, matmul(dx, v))
        outs, changes = [w, *vectors], [diagonal_of(p)]
        for u in vectors:  # the left ones: right vectors of x^H, of values conj(w)
            changes.append(_change(u, conj(w), solve(u, matmul(adjoint(dx), u))))
        if self.right:
            outs.append(v)
            changes.append(_change(v, w, p))
        return tuple(outs), tuple(changes)


def _change(v: Any, w: Any, p: Any) -> Any:
    """Change vectors by v f p with f[i,j] = 1 / (w[j] - w[i]), plus multiples of themselves.

    The multiples keep each vector's norm, and its element of greatest magnitude real.
    """
    dv = matmul(v, p * inverse_differences(w))
    rows = v.ndim - 2
    if not v.size:
        return dv
    norm = reduce_sum(real(conj(v) * dv), (rows,))
    place = expand_dims(argmax(absolute(v), rows, np.int32), rows)
    turn = imag(take_along_axis(dv, place, rows)) / real(take_along_axis(v, place, rows))
    return dv - v * complex_(expand_dims(norm, rows), turn)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Compute the eigenvalues and eigenvectors of square matrices.

    Eigenvalues have derivatives where they differ.

    Args:
        x: square matrices, ``[..., n, n]``.
        compute_left_eigenvectors: whether to return ``vl``.
        compute_right_eigenvectors: whether to return ``vr``.
        enable_eigvec_derivs: whether eigenvectors have derivatives.
        implementation: LAPACK's, or None.
        use_magma: has no effect; it concerns GPUs.

    Returns:
        ``[w, vl, vr]``, complex, the values in no particular order. The columns of ``vr`` have
            ``x v = w v``, those of ``vl`` ``v^H x = w v^H``, norm 1, and a real element of
            greatest magnitude. NaN for each matrix with which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.
        NotImplementedError: ``implementation`` is not LAPACK's.
        MissingRuleError: a derivative is not enabled.

    Source: LAPACK, ``geev``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> w, vr = st.lax.linalg.eig(
    ...     snp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False
    ... )
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise NotImplementedError(
            f"eig: implementation must be EigImplementation.LAPACK or None, got {implementation}"
        )
    op = Eig(
        bool(compute_left_eigenvectors),
        bool(compute_right_eigenvectors),
        bool(enable_eigvec_derivs),
    )
    return list(op(as_matrices("eig", x)))


# Sylvester's equation for triangular matrices.
#
# It is solved a column at a time, and linear in the right-hand side, its own derivative and its own
# transpose.


_INT32 = np.dtype(np.int32)
_OTHER = {"all": "all", "lower": "upper", "upper": "lower"}


class TriangularSylvester(MatrixOperation):
    """The solution ``y`` of ``r y + y s = f``, for upper triangles ``r`` and ``s``.

    With a ``part`` other than ``all``, it is a square ``y`` that is zero outside its strictly
    ``lower`` (or ``upper``) part, and solves the equations there. If elements of the diagonals add
    up to zero, there are infinities and NaN.
    """

    onnx = NOT_EXPORTED
    part: str
    in_blocks = True

    def infer(self, r: ArrayType, s: ArrayType, f: ArrayType) -> ArrayType:
        batch, m = check_matrix("sylvester", r, square=True)[:-2], r.shape[-1]
        n = check_matrix("sylvester", s, square=True)[-1]
        if s.shape[:-2] != batch or f.shape != (*batch, m, n) or not r.dtype == s.dtype == f.dtype:
            raise ValueError(
                f"sylvester: expected one dtype, equal leading axes and sizes that fit, got {r}, "
                f"{s} and {f}"
            )
        return array_type(f.shape, f.dtype)

    def reference(self, r: np.ndarray, s: np.ndarray, f: np.ndarray) -> np.ndarray:
        y = np.zeros_like(f)
        row = np.arange(f.shape[-2])
        diagonal = np.eye(len(row), dtype=bool)
        for j in range(f.shape[-1] if f.size else 0):
            unknown = {"all": row >= 0, "lower": row > j, "upper": row < j}[self.part]
            right = f[..., j] - np.matmul(y, s[..., j, None])[..., 0]
            shifted = r + diagonal * s[..., j, j][..., None, None]
            shifted = np.where(diagonal & ~unknown, r.dtype.type(1), shifted)
            right = np.where(unknown, right, r.dtype.type(0))
            column = linalg_reference.trsm(shifted, right[..., None], True, False, "N", False)
            y[..., j] = np.where(unknown, column[..., 0], r.dtype.type(0))
        return y

    def lower(self, b: Any, r: Any, s: Any, f: Any) -> Any:
        type = b.outs[0]
        if not type.size:
            return f
        one = array_type((*type.shape[:-1], 1), type.dtype)
        config = {"side": "L", "uplo": "U", "trans_x": "N", "diag": "N"}

        def unfinished(j: Any, *_: Any) -> list[Any]:
            return [b.compare("LT", j, b.scalar(type.shape[-1], _INT32))]

        def step(j: Any, y: Any, r: Any, s: Any, f: Any) -> list[Any]:
            shifted, right = b.inline_many(self._system, j, y, r, s, f)
            (column,) = lapack(b, "trsm", (shifted, right), (one,), config, {0: 1})
            y = b.inline(self._put_column, j, y, column)
            return [b.emit("add", j, b.scalar(1, _INT32), out=j.type), y, r, s, f]

        start = (b.scalar(0, _INT32), b.splat(0, type), r, s, f)
        return b.while_loop(unfinished, step, start)[1]

    def _unknown(self, j: Any, shape: tuple[int, ...]) -> Any:
        """Say which rows of column ``j`` are to be found."""
        row = broadcasted_iota(_INT32, shape, len(shape) - 2)
        if self.part == "all":
            return ge(row, zeros_like(row))
        return gt(row, j) if self.part == "lower" else lt(row, j)

    def _system(self, j: Any, y: Any, r: Any, s: Any, f: Any) -> list[Any]:
        """Return the triangle and the right-hand side for column ``j``."""
        rows, columns = f.ndim - 2, f.ndim - 1
        moving, right = (dynamic_slice_in_dim(x, j, 1, columns) for x in (s, f))
        right = right - matmul(y, moving)
        unknown = self._unknown(j, right.shape)
        shift = dynamic_slice_in_dim(moving, j, 1, rows)
        diagonal = broadcast_to(on_diagonal(r.shape[-2:]), r.shape)
        moved = select(broadcast_to(unknown, r.shape), r + shift, full_like(r, 1))
        return [select(diagonal, moved, r), select(unknown, right, zeros_like(right))]

    def _put_column(self, j: Any, y: Any, column: Any) -> Any:
        """Return ``y`` with this for its column ``j``, where that is to be found."""
        column = select(self._unknown(j, column.shape), column, zeros_like(column))
        return dynamic_update_slice_in_dim(y, column, j, y.ndim - 1)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Give the solution of r dy + dy s = df - dr y - y ds, with the triangles that are read."""
        (r, s, f), (dr, ds, df) = primals, tangents
        y = self(r, s, f)
        change = df
        terms = [
            *([] if dr is None else [matmul(upper_part(dr), y)]),
            *([] if ds is None else [matmul(y, upper_part(ds))]),
        ]
        for term in terms:
            change = -term if change is None else change - term
        return y, self(r, s, change)

    def transpose(self, ct: Any, r: Any, s: Any, f: Linear) -> tuple[Any, ...]:
        """Return the solution g of r^T g + g s^T = ct: transposed, s g^T + g^T r = ct^T."""
        solution = TriangularSylvester(_OTHER[self.part])(s, r, matrix_transpose(ct))
        return None, None, matrix_transpose(solution)


# The Schur and the Hessenberg form of square matrices.


_NO_DERIVATIVE: Any = Refused(
    "reflections are an intermediate result; differentiate what is computed with them, as eigvals, "
    "solve or scipy.linalg.sqrtm"
)


class Schur(MatrixOperation):
    """``t``, and the unitary ``z`` if ``vectors``, of ``z t z^H = x``.

    ``t`` is upper triangular; for a real ``x`` it has blocks of two rows on the diagonal, for pairs
    of complex eigenvalues. Complex ones have derivatives if ``differentiable``, for functions whose
    results do not depend on the phases of ``z``.
    """

    onnx = NOT_EXPORTED
    vectors: bool
    differentiable: bool = False
    multiple = True
    not_padded = (
        "LAPACK may put the eigenvalues of a larger one into another order: give it matrices of a "
        "fixed size; for Hermitian ones there is eigh"
    )

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("schur", x, square=True)[-1]
        return result_types(x, *[((n, n), x.dtype)] * (1 + self.vectors))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.gees(x, self.vectors)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        values = array_type(x.type.shape[:-1], x.type.dtype)
        count = info_type(x.type)
        eigenvalues = [values] if is_complex(x.type.dtype) else [values, values]
        types = (x.type, x.type, *eigenvalues, count, count)
        config = {"mode": "V" if self.vectors else "N", "sort": "N"}
        t, z, *_, info = lapack(b, "gees", (x,), types, config, {0: 0})
        return [nan_where(b, info, o) for o in (t, z)[: len(outs)]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Use the skew-Hermitian w = z^H dz that keeps t triangular."""
        # With p = z^H dx z: dt = p + t w - w t. Strictly below the diagonal that is 0, and w's
        # upper part has no effect there: so its strictly lower part l solves t l - l t = -p.
        (x,), (dx,) = primals, tangents
        if not (self.differentiable and is_complex(x.dtype)):
            raise MissingRuleError(
                "schur has no jvp rule: phases and the order of eigenvalues are LAPACK's choice, "
                "which a derivative would depend on. Differentiate what is computed with it, as "
                "eigvals, or sqrtm, funm and solve_sylvester of scipy.linalg"
            )
        t, z = Schur(True, True)(x)
        p = matmul(adjoint(z), matmul(dx, z))
        lower = TriangularSylvester("lower")(t, -t, -p)
        w = lower - adjoint(lower)
        dt = upper_part(p + matmul(t, w) - matmul(w, t))
        return ((t, z), (dt, matmul(z, w))) if self.vectors else ((t,), (dt,))


class Hessenberg(MatrixOperation):
    """``h``, zero below the first subdiagonal, with reflections there; and their factors."""

    onnx = NOT_EXPORTED
    multiple = True
    in_blocks = True
    jvp = _NO_DERIVATIVE

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("hessenberg", x, square=True)[-1]
        return result_types(x, ((n, n), x.dtype), ((max(n - 1, 0),), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.gehrd(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        config = {"low": 1, "high": x.type.shape[-1]}
        *results, info = lapack(b, "gehrd", (x,), (*outs, info_type(x.type)), config, {0: 0})
        return [nan_where(b, info, o) for o in results]


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> list[Array]:
    """Compute the Schur form of square matrices: ``z t z^H = x``.

    Args:
        x: square matrices, ``[..., n, n]``.
        compute_schur_vectors: whether to return ``z`` too.
        sort_eig_vals: must be False.
        select_callable: must be None.

    Returns:
        ``[t, z]`` or ``[t]``: ``z`` unitary, ``t`` upper triangular; of real matrices it is real,
            with a block of two rows for each pair of complex eigenvalues. NaN for each matrix with
            which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.
        NotImplementedError: eigenvalues are to be sorted.

    Source: LAPACK, ``gees``. There are no derivatives, since phases and order are LAPACK's choice.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> t, z = st.lax.linalg.schur(snp.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> t
    Array([[2., 1.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues cannot be sorted; leave out sort_eig_vals and select_callable"
        )
    return list(Schur(bool(compute_schur_vectors))(as_matrices("schur", x)))


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Compute the Hessenberg form of square matrices, with its reflections.

    Args:
        a: square matrices, ``[..., n, n]``.

    Returns:
        An array of that shape, with the form in its upper triangle and first subdiagonal, and below
            these the vectors of the reflections ``1 - tau v v^H``; and the ``tau``, ``[..., n -
            1]``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.

    Source: LAPACK, ``gehrd``. There are no derivatives.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.hessenberg(snp.array([[2.0, 1.0], [4.0, 3.0]]))
    (Array([[2., 1.],
           [4., 3.]], dtype=float32), Array([0.], dtype=float32))
    """
    return Hessenberg()(as_matrices("hessenberg", a))
