"""Cholesky factors, and linear systems with triangular and tridiagonal matrices.

Beside them are the update of a Cholesky factor by a vector, a matrix times its own transpose, and
Hermitian matrices made tridiagonal. Systems with a triangular matrix are linear in the right-hand
side, their own derivative and their own transpose; the factorizations' rules are written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import NOT_EXPORTED, Refused
from stretto._engine.core.sizes import is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import linalg
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.bilinear import promote_dtypes, promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full_like, lt, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim, dynamic_update_slice_in_dim
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, move_to_front, reshape, squeeze, transpose
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
    diagonal_matrix,
    keep_diagonal,
    lower_part,
    matrix_transpose,
    upper_part,
)
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto._engine.ops.thresholds import MATRICES


class TriangularSolve(MatrixOperation):
    """The ``x`` of ``op(a) x = b``, or of ``x op(a) = b`` unless ``left``, for a triangle ``a``.

    Only that triangle is read, without its diagonal if that counts as ones. ``form`` is ``N``
    for ``a`` itself, ``T`` for its transpose, ``C`` for its adjoint.
    """

    in_blocks = True
    left: bool
    lower_triangle: bool
    form: str
    unit_diagonal: bool

    def infer(self, a: ArrayType, b: ArrayType) -> ArrayType:
        shape, side = (
            check_matrix("triangular_solve", a, square=True),
            -2 if self.left else -1,
        )
        if b.dtype != a.dtype or b.ndim != a.ndim or b.shape[:-2] != shape[:-2]:
            raise ValueError(
                f"triangular_solve: a and b must have one dtype and equal leading axes, got {a} "
                f"and {b}"
            )
        if b.shape[side] != shape[-1]:
            raise ValueError(
                f"triangular_solve: axis {side} of b must have size {shape[-1]}, as a has: got a: "
                f"{a} and b: {b}"
            )
        return array_type(b.shape, b.dtype)

    def reference(self, a: np.ndarray, b: np.ndarray) -> np.ndarray:
        return linalg_reference.trsm(
            a, b, self.left, self.lower_triangle, self.form, self.unit_diagonal
        )

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        """Call BLAS ``trsm``: on CPUs XLA's own is several times as slow."""
        if not y.type.size:
            return y
        if b.platform == "gpu":
            form = {"N": "NO_TRANSPOSE", "T": "TRANSPOSE", "C": "ADJOINT"}[self.form]
            settings = {
                "left_side": str(self.left).lower(),
                "lower": str(self.lower_triangle).lower(),
                "unit_diagonal": str(self.unit_diagonal).lower(),
                "transpose_a": f"#stablehlo<transpose {form}>",
            }
            written = ", ".join([f"{name} = {value}" for name, value in settings.items()])
            return b.emit("triangular_solve", x, y, attributes=written, out=y.type)
        config = {
            "side": "L" if self.left else "R",
            "uplo": "L" if self.lower_triangle else "U",
            "trans_x": self.form,
            "diag": "U" if self.unit_diagonal else "N",
        }
        return lapack(b, "trsm", (x, y), (y.type,), config, {0: 1})[0]

    def onnx(self, b: Any, x: Any, y: Any) -> Any:
        """Write substitution as a loop over rows."""
        if not y.type.size:
            return y
        flags = self.left, self.lower_triangle, self.unit_diagonal, self.form
        return linalg.written_out.triangular(b, x, y, *flags)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """op(a) x = b, so op(a) dx = db - op(da) x, with the triangle of da that is read."""
        (a, b), (da, db) = primals, tangents
        x = self(a, b)
        change = db
        if da is not None:
            part = lower_part if self.lower_triangle else upper_part
            step = -1 if self.lower_triangle else 1
            da = part(da, step if self.unit_diagonal else 0)
            da = {"N": lambda m: m, "T": matrix_transpose, "C": adjoint}[self.form](da)
            product = matmul(da, x) if self.left else matmul(x, da)
            change = -product if db is None else db - product
        return x, self(a, change)

    def transpose(self, ct: Any, a: Any, b: Linear) -> tuple[Any, Any]:
        """b' of op(a)^T b' = ct."""
        # op(a) = a^T has transpose a; a^H has conj(a).
        a = conj(a) if self.form == "C" else a
        form = "T" if self.form == "N" else "N"
        return None, TriangularSolve(self.left, self.lower_triangle, form, self.unit_diagonal)(
            a, ct
        )

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Make the right-hand sides of all examples more columns, where they have one matrix."""
        (a, b), (axis_a, axis_b) = args, axes
        if axis_a is not None or a.ndim > 2:
            return super().vmap(size, args, axes)
        b = move_to_front(b, axis_b)
        if self.left:
            return as_columns(lambda wide: self(a, wide), b)
        _, rows, columns = b.shape
        return reshape(self(a, reshape(b, (size * rows, columns))), (size, rows, columns)), 0


def as_columns(solve: Callable[[Any], Any], b: Any) -> tuple[Any, int]:
    """Return what ``solve`` gives for matrices ``[size, n, k]`` of ``b`` side by side; the axis."""
    size, n, k = b.shape
    wide = reshape(transpose(b, (1, 0, 2)), (n, size * k))
    return reshape(solve(wide), (n, size, k)), 1


def triangular_solve(
    a: ArrayLike,
    b: ArrayLike,
    *,
    left_side: bool = False,
    lower: bool = False,
    transpose_a: bool = False,
    conjugate_a: bool = False,
    unit_diagonal: bool = False,
) -> Array:
    """Solve ``op(a) x = b`` or ``x op(a) = b`` for triangular matrices ``a``.

    Args:
        a: triangular matrices, ``[..., n, n]``; only that triangle is read.
        b: ``[..., n, k]``, or ``[..., k, n]`` unless ``left_side``; or a vector, of one axis fewer
            than ``a``. Leading axes broadcast.
        left_side: whether ``a`` stands on the left of ``x``.
        lower: whether the lower triangle is read, instead of the upper.
        transpose_a: whether ``op`` transposes.
        conjugate_a: whether ``op`` conjugates.
        unit_diagonal: whether the diagonal counts as ones.

    Returns:
        The solution, of the shape of ``b``; a zero on the diagonal gives infinities and NaN.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: BLAS, ``trsm``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a, b = snp.array([[2.0, 0.0], [1.0, 4.0]]), snp.array([[2.0], [9.0]])
    >>> st.lax.linalg.triangular_solve(a, b, left_side=True, lower=True)
    Array([[1.],
           [2.]], dtype=float32)
    """
    matrix, right = promote_dtypes("triangular_solve", a, b)
    n = check_matrix("triangular_solve", matrix.type, square=True)[-1]
    vector = right.ndim == matrix.ndim - 1
    if vector:
        right = reshape(
            right, (*right.shape, 1) if left_side else (*right.shape[:-1], 1, *right.shape[-1:])
        )
    if right.ndim < 2 or right.shape[-2 if left_side else -1] != n:
        raise ValueError(
            f"triangular_solve: b must have size {n} along its axis {-2 if left_side else -1}, as "
            f"a has: got a: {matrix.type} and b: {right.type}"
        )
    if conjugate_a and not transpose_a and is_complex(matrix.dtype):
        matrix = conj(matrix)
    form = ("C" if conjugate_a and is_complex(matrix.dtype) else "T") if transpose_a else "N"
    step = TriangularSolve(bool(left_side), bool(lower), form, bool(unit_diagonal))
    x = solve_triangles("triangular_solve", step, matrix, right)
    return squeeze(x, -1 if left_side else -2) if vector else x


def solve_triangles(caller: str, step: TriangularSolve, a: Any, b: Any) -> Any:
    """Return ``step(a, b)`` for matrices of one dtype, with leading axes broadcast."""
    a, b = convert(a, a.dtype), convert(b, b.dtype)  # not weak
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes(caller, a.shape[:-2], b.shape[:-2])
        a, b = (broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b))
    return step(a, b)


# Tridiagonal matrices.


_USE_EIGH: Any = Refused("reflections are an intermediate result; use eigh, which has derivatives")


class TridiagonalSolve(MatrixOperation):
    """The solution ``x`` of ``a x = b``, for ``a`` with diagonals ``dl``, ``d`` and ``du``.

    ``dl[i]`` and ``du[i]`` stand beside ``d[i]``; ``dl[0]`` and ``du[-1]`` are not read. If
    ``perturb``, pivots near zero are moved away from it.
    """

    perturb: bool
    rank = 1

    def infer(self, dl: ArrayType, d: ArrayType, du: ArrayType, b: ArrayType) -> ArrayType:
        check_matrix("tridiagonal_solve", b)
        if any(t.shape != b.shape[:-1] or t.dtype != b.dtype for t in (dl, d, du)):
            raise ValueError(
                f"tridiagonal_solve: expected dl, d and du of the dtype and shape of a column of "
                f"b, got {dl}, {d}, {du} and b: {b}"
            )
        return array_type(b.shape, b.dtype)

    @property
    def only_compiled(self) -> bool:  # type: ignore[override]
        """Compile perturbed ones only, so that pivots are moved the same way."""
        return self.perturb

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for many systems, and the perturbed ones."""
        return self.perturb or types[0].size >= MATRICES * max(1, types[0].shape[-1])

    def reference(self, dl: np.ndarray, d: np.ndarray, du: np.ndarray, b: np.ndarray) -> np.ndarray:
        return linalg_reference.gtsv(dl, d, du, b)

    def lower(self, b: Any, dl: Any, d: Any, du: Any, y: Any) -> Any:
        """Call LAPACK ``gtsv``, or a routine of XLA's package for perturbed pivots."""
        if not y.type.size:
            return y
        operands = (dl, d, du, y)
        if self.perturb:
            return lapack(b, "", operands, b.outs, target="tridiagonal_solve_perturbed_ffi")[0]
        outs = [x.type for x in operands]
        *_, out, info = lapack(
            b, "gtsv", operands, (*outs, info_type(y.type)), None, {i: i for i in range(4)}
        )
        return nan_where(b, info, out)

    def onnx(self, b: Any, dl: Any, d: Any, du: Any, y: Any) -> Any:
        """Solve with the whole matrix; perturbed pivots are refused."""
        if self.perturb:
            b.refuse("perturbed pivots are not written out: use perturb_singular=False")
        if not y.type.size:
            return y
        matrix = b.inline(_whole_matrix, dl, d, du)
        both, pivots = linalg.written_out.lu(b, matrix)
        order = linalg.lu.PivotsToPermutation(d.type.shape[-1])
        return b.inline(
            lambda both, pivots, y: linalg.lu.solve_factored(both, order(pivots), y, "N"),
            both,
            pivots,
            y,
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """a x = b, so a dx = db - da x."""
        dl, d, du, b = primals
        *da, db = tangents
        x = self(dl, d, du, b)
        change = db
        for diagonal, offset in zip(da, (-1, 0, 1), strict=True):
            if diagonal is not None:
                product = expand_dims(diagonal, diagonal.ndim) * _neighbors(x, offset)
                change = -product if change is None else change - product
        return x, self(dl, d, du, change)

    def transpose(self, ct: Any, dl: Any, d: Any, du: Any, b: Linear) -> tuple[Any, ...]:
        """b' of a^T b' = ct: the outer diagonals change places, each moved by one."""
        lower, upper = (_neighbors(expand_dims(x, x.ndim), k) for x, k in ((du, -1), (dl, 1)))
        out = self(lower[..., 0], d, upper[..., 0], ct)
        return None, None, None, out

    def beside(self, at: Any, args: Sequence[Any]) -> tuple[Any, ...]:
        """Add equations ``x[i] = 0`` below, apart from the others: ``du[-1]`` is not read."""
        dl, d, du, b = [at.filled(x, t, 0) for x, t in zip(args, at.types, strict=True)]
        (shape, axis) = at.types[1].shape, d.ndim - 1
        if not is_size(shape[axis]):
            return dl, d, du, b
        index = broadcasted_iota(_INT32, d.shape, axis)
        before_last = lt(index, broadcast_to(at.size(shape[axis] - 1), d.shape))
        d = at.filled(d, at.types[1], 1, (axis,))
        return dl, d, select(before_last, du, zeros_like(du)), b


def _neighbors(x: Any, offset: int) -> Any:
    """Return in each row the row ``offset`` below it, zero beyond the ends."""
    if not offset:
        return x
    axis, n = x.ndim - 2, x.shape[-2]
    zero = zeros_like(slice_in_dim(x, 0, lesser(n, 1), 1, axis))
    if offset < 0:
        return concatenate([zero, slice_in_dim(x, 0, max(n - 1, 0), 1, axis)], axis)
    return concatenate([slice_in_dim(x, lesser(n, 1), n, 1, axis), zero], axis)


class TridiagonalReduction(MatrixOperation):
    """A Hermitian matrix reduced to tridiagonal form by reflections.

    The form in the diagonals, the reflections' vectors beside them; the main diagonal, the one
    next to it, and the reflections' factors. Only one triangle is read.
    """

    onnx = NOT_EXPORTED
    lower_triangle: bool
    multiple = True
    in_blocks = True
    jvp = _USE_EIGH

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("tridiagonal", x, square=True)[-1]
        part, beside = real_dtype(x.dtype), (max(n - 1, 0),)
        return result_types(x, ((n, n), x.dtype), ((n,), part), (beside, part), (beside, x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.sytrd(x, self.lower_triangle)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        routine = "hetrd" if is_complex(x.type.dtype) else "sytrd"
        config = {"uplo": "L" if self.lower_triangle else "U"}
        *results, info = lapack(b, routine, (x,), (*outs, info_type(x.type)), config, {0: 0})
        return [nan_where(b, info, o) for o in results]


def _whole_matrix(dl: Any, d: Any, du: Any) -> Any:
    """Return the matrices with these diagonals below, on and above the main one."""
    total = diagonal_matrix(d)
    last = d.ndim - 1
    for diagonal, low in ((dl, 1), (du, -1)):
        wide = diagonal_matrix(diagonal)
        config = [(0, 0, 0)] * last + [(0, 0, 0), (-low, low, 0)]
        total = total + pad(wide, 0, config)
    return total


def tridiagonal_solve(
    dl: ArrayLike, d: ArrayLike, du: ArrayLike, b: ArrayLike, *, perturb_singular: bool = False
) -> Array:
    """Solve ``a x = b`` for tridiagonal matrices, by elimination with partial pivoting.

    Args:
        dl: ``a[i, i - 1]``, ``[..., n]``; the first is not read.
        d: ``a[i, i]``, ``[..., n]``.
        du: ``a[i, i + 1]``, ``[..., n]``; the last is not read.
        b: ``[..., n, k]``; leading axes broadcast.
        perturb_singular: whether to move pivots near zero away from it, by about the precision of
            the greatest element, so that the result is finite.

    Returns:
        The solution, ``[..., n, k]``; NaN for each system in which a pivot is zero. Derivatives
            exist by all four.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: LAPACK, ``gtsv``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> beside, d = snp.array([1.0, 1.0, 1.0]), snp.array([2.0, 2.0, 2.0])
    >>> st.lax.linalg.tridiagonal_solve(beside, d, beside, snp.array([[3.0], [4.0], [3.0]]))
    Array([[1.],
           [1.],
           [1.]], dtype=float32)
    """
    names = zip(("dl", "d", "du", "b"), (dl, d, du, b), strict=True)
    values = [as_value(v, "tridiagonal_solve", name) for name, v in names]
    dtype = promote_dtypes_of(*values)
    *diagonals, right = [convert(v, dtype) for v in values]
    shape = check_matrix("tridiagonal_solve", right.type)
    if any(v.ndim < 1 or v.shape[-1] != shape[-2] for v in diagonals):
        raise ValueError(
            f"tridiagonal_solve: the diagonals must have {shape[-2]} elements, as b has rows; got "
            f"{', '.join(str(v.type) for v in diagonals)} and b: {right.type}"
        )
    batch = shape[:-2]
    for v in diagonals:
        batch = broadcast_shapes("tridiagonal_solve", batch, v.shape[:-1])
    diagonals = [broadcast_to(v, (*batch, v.shape[-1])) for v in diagonals]
    right = broadcast_to(right, (*batch, *shape[-2:]))
    return TridiagonalSolve(bool(perturb_singular))(*diagonals, right)


def tridiagonal(a: ArrayLike, *, lower: bool = True) -> tuple[Array, Array, Array, Array]:
    """Reduce Hermitian matrices to tridiagonal form by reflections.

    Args:
        a: Hermitian matrices, ``[..., n, n]``.
        lower: whether to read the lower triangle, instead of the upper.

    Returns:
        ``(a, d, e, taus)``: the form and beyond it the vectors of the reflections
            ``1 - tau v v^H``; its main diagonal, ``[..., n]``; the one below or above,
            ``[..., n - 1]``; and the factors.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.

    Source: LAPACK, ``sytrd``. There are no derivatives.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> _, d, e, _ = st.lax.linalg.tridiagonal(snp.array([[2.0, 3.0], [3.0, 1.0]]))
    >>> d, e
    (Array([2., 1.], dtype=float32), Array([3.], dtype=float32))
    """
    x = as_matrices("tridiagonal", a)
    return TridiagonalReduction(bool(lower))(x)


_INT32 = np.dtype(np.int32)

_FROM_LEFT = TriangularSolve(True, True, "N", False)
_FROM_RIGHT = TriangularSolve(False, True, "C", False)


class Cholesky(MatrixOperation):
    """The lower triangular ``l`` of ``l l^H = x``; only the lower triangle of ``x`` is read."""

    in_blocks = True

    def infer(self, x: ArrayType) -> ArrayType:
        return array_type(check_matrix("cholesky", x, square=True), x.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        return linalg_reference.potrf(x)

    def lower(self, b: Any, x: Any) -> Any:
        """Call LAPACK ``potrf``; on GPUs XLA's own, which is cuSOLVER's."""
        if not x.type.size:
            return x
        if b.platform == "gpu":
            factor = b.emit("cholesky", x, attributes="lower = true", out=x.type)
            return b.inline(_factor_or_nan, factor)
        outs = (x.type, info_type(x.type))
        out, info = lapack(b, "potrf", (x,), outs, {"uplo": "L"}, {0: 0})
        return b.inline(_factor_or_nan, nan_where(b, info, out))

    def onnx(self, b: Any, x: Any) -> Any:
        """Write elimination as a loop over columns."""
        return b.inline(_factor_or_nan, linalg.written_out.cholesky(b, x)) if x.type.size else x

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Follow Murray, Differentiation of the Cholesky decomposition (2016), in forward mode."""
        out = self(*primals)
        return out, _change(out, hermitian_from_lower(tangents[0]))


def _factor_or_nan(x: Any) -> Any:
    """Return the lower part; all NaN where the last element is, which depends on all others.

    Some kernels neither report nor spread a NaN.
    """
    n, rows, columns = x.shape[-1], x.ndim - 2, x.ndim - 1
    last = slice_in_dim(slice_in_dim(x, n - 1, n, 1, rows), n - 1, n, 1, columns)
    return lower_part(select(broadcast_to(eq(last, last), x.shape), x, full_like(x, np.nan)))


class CholeskyUpdate(MatrixOperation):
    """The upper triangular ``u`` with ``u^H u = r^H r + w w^H``, for an upper triangle ``r``."""

    in_blocks = True

    def infer(self, r: ArrayType, w: ArrayType) -> ArrayType:
        shape = check_matrix("cholesky_update", r, square=True)
        if w.shape != shape[:-1] or w.dtype != r.dtype:
            raise ValueError(
                f"cholesky_update: expected r_matrix and w_vector of one dtype and with as many "
                f"rows, got {r} and {w}"
            )
        return array_type(shape, r.dtype)

    def reference(self, r: np.ndarray, w: np.ndarray) -> np.ndarray:
        u, below = np.triu(r), np.conj(w)
        with np.errstate(all="ignore"):
            for k in range(r.shape[-1]):
                row = u[..., k, :].copy()
                pair = np.stack([row[..., k], below[..., k]], -1)
                norm = np.sqrt(np.sum(np.real(pair) ** 2 + np.imag(pair) ** 2, -1))
                safe = np.where(norm == 0, norm.dtype.type(1), norm)[..., None]
                c, s = pair[..., :1] / safe, pair[..., 1:] / safe
                c = np.where(norm[..., None] == 0, c.dtype.type(1), c)
                u[..., k, :] = np.conj(c) * row + np.conj(s) * below
                below = c * below - s * row
        return np.triu(u)

    def lower(self, b: Any, r: Any, w: Any) -> Any:
        if not r.type.size:
            return r
        n = r.type.shape[-1]

        def unfinished(k: Any, *_: Any) -> list[Any]:
            return [b.compare("LT", k, b.scalar(n, _INT32))]

        def step(k: Any, u: Any, below: Any) -> list[Any]:
            u, below = b.inline_many(_rotate, k, u, below)
            return [b.emit("add", k, b.scalar(1, _INT32), out=k.type), u, below]

        start = (b.scalar(0, _INT32), b.inline(upper_part, r), b.inline(_row, w))
        return b.inline(upper_part, b.while_loop(unfinished, step, start)[1])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Return the derivative of the Cholesky factor of the sum."""
        (r, w), (dr, dw) = primals, tangents
        out = self(r, w)
        half = None
        if dr is not None:
            half = matmul(adjoint(upper_part(r)), upper_part(dr))
        if dw is not None:
            product = matmul(expand_dims(w, w.ndim), adjoint(expand_dims(dw, w.ndim)))
            half = product if half is None else half + product
        return out, adjoint(_change(adjoint(out), half + adjoint(half)))


def _row(w: Any) -> Any:
    """Return ``w^H``, as matrices of one row."""
    return expand_dims(conj(w) if is_complex(w.dtype) else w, w.ndim - 1)


def _rotate(k: Any, u: Any, below: Any) -> list[Any]:
    """Rotate row ``k`` of ``u`` and the row ``below`` so that the latter is 0 in column ``k``."""
    # (c^* s^*; -s c) with c = u_kk / norm, s = below_k / norm.
    rows, columns = u.ndim - 2, u.ndim - 1
    row = dynamic_slice_in_dim(u, k, 1, rows)
    first, second = (dynamic_slice_in_dim(x, k, 1, columns) for x in (row, below))
    norm = sqrt(square(absolute(first)) + square(absolute(second)))
    is_zero = eq(norm, zeros_like(norm))
    safe = convert(select(is_zero, full_like(norm, 1), norm), u.dtype)
    c, s = select(is_zero, full_like(first, 1), first / safe), second / safe
    rotated = conj(c) * row + conj(s) * below if is_complex(u.dtype) else c * row + s * below
    return [dynamic_update_slice_in_dim(u, rotated, k, rows), c * below - s * row]


def _change(factor: Any, da: Any) -> Any:
    """Return the tangent of a ``factor`` l, given that of the matrix."""
    # da = dl l^H + l dl^H, so l^-1 da l^-H = p + p^H with p = l^-1 dl lower triangular:
    # p is the lower triangle, with half of the diagonal.
    both = _FROM_RIGHT(factor, _FROM_LEFT(factor, da))
    return matmul(factor, lower_part(both) - keep_diagonal(both) * 0.5)


def hermitian_from_lower(x: Any) -> Any:
    """Return the Hermitian matrix that LAPACK reads from a lower triangle."""
    strict, diagonal = lower_part(x, -1), keep_diagonal(x)
    if is_complex(x.dtype):
        diagonal = complex_(real(diagonal), zeros_like(imag(diagonal)))
    return strict + adjoint(strict) + diagonal


def symmetrize(x: Any) -> Any:
    """Return ``(x + x^H) / 2``."""
    return (x + adjoint(x)) * 0.5


def cholesky(x: ArrayLike, *, symmetrize_input: bool = True) -> Array:
    """Factor Hermitian positive definite matrices: ``l l^H = x``.

    Args:
        x: the matrices, ``[..., n, n]``.
        symmetrize_input: whether to take ``(x + x^H) / 2`` first, instead of reading the lower
            triangle.

    Returns:
        The lower triangular ``l``; NaN in the triangle of each matrix that is not positive
            definite.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.

    Source: LAPACK, ``potrf``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.cholesky(snp.array([[4.0, 2.0], [2.0, 5.0]]))
    Array([[2., 0.],
           [1., 2.]], dtype=float32)
    """
    value = as_matrices("cholesky", x, square=True)
    return Cholesky()(symmetrize(value) if symmetrize_input else value)


def cholesky_update(r_matrix: ArrayLike, w_vector: ArrayLike) -> Array:
    """Update a Cholesky factor: find ``u`` with ``u^H u = r^H r + w w^H``.

    Args:
        r_matrix: the factor, ``[..., n, n]``; only its upper triangle is read.
        w_vector: the vector, ``[..., n]``; leading axes broadcast.

    Returns:
        The upper triangular ``u``, whose diagonal is not negative, in about ``n^2`` operations.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: Golub and Van Loan, Matrix Computations, 6.5.4, by rotations.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.cholesky_update(snp.array([[3.0, 0.0], [0.0, 2.0]]), snp.array([4.0, 0.0]))
    Array([[5., 0.],
           [0., 2.]], dtype=float32)
    """
    r, w = promote_dtypes("cholesky_update", r_matrix, w_vector)
    r, w = convert(r, r.dtype), convert(w, w.dtype)  # not weak
    check_matrix("cholesky_update", r.type)
    if w.ndim < 1 or w.shape[-1] != r.shape[-1]:
        raise ValueError(
            f"cholesky_update: w_vector must have {r.shape[-1]} elements, as r_matrix has rows; "
            f"got {r.type} and {w.type}"
        )
    batch = broadcast_shapes("cholesky_update", r.shape[:-2], w.shape[:-1])
    r, w = broadcast_to(r, (*batch, *r.shape[-2:])), broadcast_to(w, (*batch, w.shape[-1]))
    return CholeskyUpdate()(r, w)


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute ``alpha a a^T + beta c``, for a symmetric ``c``.

    Args:
        a_matrix: matrices, ``[..., m, n]``; complex numbers are not conjugated.
        c_matrix: symmetric matrices, ``[..., m, m]``; leading axes broadcast.
        alpha: a number.
        beta: a number.
        symmetrize_output: whether to copy the lower triangle to the upper one.

    Returns:
        The matrices, ``[..., m, m]``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or ``alpha`` or
            ``beta`` is not a number.
        ValueError: the shapes do not fit.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[1.0, 2.0], [0.0, 1.0]])
    >>> st.lax.linalg.symmetric_product(a, snp.eye(2), alpha=2.0, beta=1.0)
    Array([[11.,  4.],
           [ 4.,  3.]], dtype=float32)
    """
    a, c = promote_dtypes("symmetric_product", a_matrix, c_matrix)
    a, c = convert(a, a.dtype), convert(c, c.dtype)  # not weak
    m = check_matrix("symmetric_product", a.type)[-2]
    if check_matrix("symmetric_product", c.type, square=True)[-1] != m:
        raise ValueError(
            f"symmetric_product: c_matrix must have {m} rows, as a_matrix has; got {a.type} and "
            f"{c.type}"
        )
    for name, number in (("alpha", alpha), ("beta", beta)):
        factor = as_value(number, "symmetric_product", name)
        if factor.ndim:
            raise TypeError(f"symmetric_product: {name} must be a number, got {factor.type}")
    out = matmul(a, matrix_transpose(a)) * alpha + c * beta
    if symmetrize_output:
        out = lower_part(out) + matrix_transpose(lower_part(out, -1))
    return out
