"""Linear systems with triangular and tridiagonal matrices, and Hermitian ones made tridiagonal.

Systems with a triangular matrix are linear in the right-hand side, their own derivative and their
own transpose; the other factorizations' rules are written with them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Refused
from stretto._engine.core.sizes import is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes, promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import lt, select, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
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
    lower_part,
    matrix_transpose,
    upper_part,
)
from stretto._engine.ops.shape import concatenate, slice_in_dim
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
        shape, side = check_matrix("triangular_solve", a, square=True), -2 if self.left else -1
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


_INT32 = np.dtype(np.int32)
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
    x = as_matrices("tridiagonal", a, square=True)
    return TridiagonalReduction(bool(lower))(x)
