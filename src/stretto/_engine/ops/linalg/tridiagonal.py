"""Tridiagonal matrices: systems with them, and the reduction of Hermitian matrices to them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Refused
from stretto._engine.core.sizes import is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import lt, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import expand_dims
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
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.thresholds import MATRICES

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
        """The perturbed ones, so that pivots are moved the same way."""
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
        """Equations ``x[i] = 0`` below, apart from those above: the last of ``du`` is not read."""
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


# Functions


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
