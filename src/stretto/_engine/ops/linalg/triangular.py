"""Linear systems with a triangular matrix.

Linear in the right-hand side, its own derivative and its own transpose; the other factorizations'
rules are written with it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear
from stretto._engine.core.types import ArrayType, array_type, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import move_to_front, reshape, squeeze, transpose
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.family import MatrixOperation, check_matrix, lapack
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    lower_part,
    matrix_transpose,
    upper_part,
)


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
        """BLAS ``trsm``: on CPUs XLA's own is several times as slow."""
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
        """With one matrix for all examples, their right-hand sides become more columns."""
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
    """``step(a, b)`` for matrices of one dtype, with leading axes broadcast."""
    a, b = convert(a, a.dtype), convert(b, b.dtype)  # not weak
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes(caller, a.shape[:-2], b.shape[:-2])
        a, b = (broadcast_to(m, (*batch, *m.shape[-2:])) for m in (a, b))
    return step(a, b)
