"""The Schur and the Hessenberg form of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import Refused
from stretto._engine.core.types import ArrayType, array_type, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like, ge, gt, lt, select, zeros_like
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
    result_types,
)
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    matrix_transpose,
    on_diagonal,
    upper_part,
)

# Sylvester's equation for triangular matrices.
#
# Solved a column at a time; linear in the right-hand side, its own derivative and its own
# transpose.


_INT32 = np.dtype(np.int32)
_OTHER = {"all": "all", "lower": "upper", "upper": "lower"}


class TriangularSylvester(MatrixOperation):
    """The solution ``y`` of ``r y + y s = f``, for upper triangles ``r`` and ``s``.

    With a ``part`` other than ``all``, it is a square ``y`` that is zero outside its strictly
    ``lower`` (or ``upper``) part, and solves the equations there. If elements of the diagonals add
    up to zero, there are infinities and NaN.
    """

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
            right = f[..., j] - np.matmul(y, s[..., j : j + 1])[..., 0]
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
            y = b.inline(self._placed, j, y, column)
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

    def _placed(self, j: Any, y: Any, column: Any) -> Any:
        """``y`` with this for its column ``j``, where that is to be found."""
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


# Functions


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
    return list(Schur(bool(compute_schur_vectors))(as_matrices("schur", x, square=True)))


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
    return Hessenberg()(as_matrices("hessenberg", a, square=True))
