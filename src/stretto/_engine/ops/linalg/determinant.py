"""Determinants and inverses, from the LU factorization."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.ops.arithmetic import absolute, sign
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.linalg.family import MatrixOperation, as_matrices, check_matrix
from stretto._engine.ops.linalg.lu import Lu, LuSolve, PivotsToPermutation, rows, solve
from stretto._engine.ops.linalg.matrix_parts import (
    diagonal_of,
    identity,
    matrix_transpose,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve
from stretto._engine.ops.reducing.reduce import reduce_max, reduce_prod
from stretto._engine.ops.shape import slice_in_dim

_INT32 = np.dtype(np.int32)


def _parity(pivots: Any, dtype: np.dtype) -> Any:
    """1 for an even number of exchanges, -1 for an odd one."""
    moved = ne(pivots, broadcasted_iota(_INT32, pivots.shape, pivots.ndim - 1))
    odd = reduce_sum(convert(moved, _INT32), (pivots.ndim - 1,)) & 1
    return convert(1 - 2 * odd, dtype)


def _parity_reference(pivots: np.ndarray, dtype: np.dtype) -> Any:
    moved = pivots != np.arange(pivots.shape[-1])
    return (1 - 2 * (np.count_nonzero(moved, axis=-1) & 1)).astype(dtype)


class Factored(MatrixOperation, abstract=True):
    """A result that follows from the diagonal of the factors."""

    in_blocks = True

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Never compile: NumPy takes all matrices at once."""
        return False


class Determinant(Factored):
    """The determinant, from the factors and pivots, which are treated as constant."""

    def infer(self, x: ArrayType, both: ArrayType, pivots: ArrayType) -> ArrayType:
        return array_type(check_matrix("det", x, square=True)[:-2], x.dtype)

    def reference(self, x: np.ndarray, both: np.ndarray, pivots: np.ndarray) -> np.ndarray:
        product = np.prod(np.diagonal(both, 0, -2, -1), -1)
        return product * _parity_reference(pivots, both.dtype)

    def lower(self, b: Any, x: Any, both: Any, pivots: Any) -> Any:
        def product(both: Any, pivots: Any) -> Any:
            diagonal = diagonal_of(both)
            return reduce_prod(diagonal, (diagonal.ndim - 1,)) * _parity(pivots, both.dtype)

        return b.inline(product, both, pivots)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """d det x = tr(adj(x) dx)."""
        return self(*primals), _pair(_adjugate(primals[0]), tangents[0])


class LogDeterminant(Factored):
    """Sign and logarithm of the magnitude of the determinant, from factors and pivots."""

    multiple = True

    def infer(self, x: ArrayType, both: ArrayType, pivots: ArrayType) -> tuple[ArrayType, ...]:
        batch = check_matrix("slogdet", x, square=True)[:-2]
        return array_type(batch, x.dtype), array_type(batch, real_dtype(x.dtype))

    def reference(
        self, x: np.ndarray, both: np.ndarray, pivots: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        diagonal = np.diagonal(both, 0, -2, -1)
        signs = np.prod(np.sign(diagonal), -1) * _parity_reference(pivots, both.dtype)
        return signs, np.sum(np.log(np.abs(diagonal)), -1)

    def lower(self, b: Any, x: Any, both: Any, pivots: Any) -> list[Any]:
        def parts(both: Any, pivots: Any) -> list[Any]:
            diagonal, last = diagonal_of(both), both.ndim - 2
            signs = reduce_prod(sign(diagonal), (last,)) * _parity(pivots, both.dtype)
            return [signs, reduce_sum(log(absolute(diagonal)), (last,))]

        return b.inline_many(parts, both, pivots)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """With t = tr(x^-1 dx), which is d log det x: dl = Re t, and ds = i s Im t."""
        x, both, pivots = primals
        signs, logarithm = self(*primals)
        order = PivotsToPermutation(x.shape[-1])(pivots)
        inverse = LuSolve("N")(x, identity(x.shape, x.dtype), both, order)
        t = _pair(inverse, tangents[0])
        if not is_complex(x.dtype):
            return (signs, logarithm), (None, t)
        turn = imag(t)
        return (signs, logarithm), (signs * complex_(turn * 0, turn), real(t))


def _pair(x: Any, y: Any) -> Any:
    """tr(x y)."""
    return reduce_sum(matrix_transpose(x) * y, (y.ndim - 2, y.ndim - 1))


def _adjugate(x: Any) -> Any:
    """det(x) x^-1, without a division by the last pivot, nor by one that is zero."""
    # For u = [[v, w], [0, d]] with det(v) = e: adj(u) (y, z) = (v^-1 (d e y - w e z), e z), which
    # is the solution of [[v, w], [0, 1]] for (d e y, e z). It is a polynomial of the elements: with
    # eps of the greatest in place of a pivot of v that is zero it is off by about as much.
    both, pivots = Lu()(x)
    shape, axis = both.shape, both.ndim - 2
    n = shape[-1]
    spread = lambda m: broadcast_in_dim(m, shape, tuple(range(axis)))
    bottom, right = (eq(broadcasted_iota(_INT32, shape, axis + i), n - 1) for i in (0, 1))
    size = reduce_max(absolute(upper_part(both)), (axis, axis + 1))
    is_zero = eq(size, zeros_like(size))
    least = select(is_zero, full_like(size, 1), size) * float(ml_dtypes.finfo(size.dtype).eps)
    zero = broadcast_to(on_diagonal(shape[-2:]), shape) & eq(both, zeros_like(both)) & ~bottom
    both = select(zero, convert(spread(least), both.dtype), both)
    pivot = diagonal_of(both)
    end = greater(n - 1, 0)
    before = reduce_prod(slice_in_dim(pivot, 0, end, 1, axis), (axis,))
    before = before * _parity(pivots, x.dtype)
    last = reduce_prod(slice_in_dim(pivot, end, n, 1, axis), (axis,))
    plain = TriangularSolve(True, True, "N", True)(
        both, rows(identity(shape, x.dtype), PivotsToPermutation(n)(pivots))
    )
    scaled = plain * select(bottom, spread(before), spread(before * last))
    out = TriangularSolve(True, False, "N", False)(
        select(bottom & right, full_like(both, 1), both), scaled
    )
    return select(spread(is_zero), zeros_like(out), out)


# Functions


def det(x: Any) -> Any:
    """Return the determinant of the square matrices in the last two axes.

    For sizes up to 3 by the formula, else from the LU factorization, with a derivative that holds
    for singular matrices too. Raises ``TypeError`` for dtypes other than float32, float64,
    complex64 and complex128, ``ValueError`` for matrices that are not square.

    >>> import stretto.numpy as snp
    >>> det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = as_matrices("det", x, square=True)
    n = x.shape[-1]
    if not is_size(n) and 1 <= n <= 3:
        return _by_minors(x, tuple(range(n)), tuple(range(n)))
    return Determinant()(x, *Lu(True)(x))


def _by_minors(x: Any, rows: tuple[int, ...], columns: tuple[int, ...]) -> Any:
    """Return the determinant of some rows and columns, expanded along the first row."""
    total = None
    for i, column in enumerate(columns):
        element = x[..., rows[0], column]
        if len(rows) == 1:
            return element
        part = element * _by_minors(x, rows[1:], columns[:i] + columns[i + 1 :])
        total = part if total is None else total - part if i % 2 else total + part
    return total


def slogdet(x: Any) -> tuple[Any, Any]:
    """Sign of the determinant, and the natural logarithm of its magnitude.

    The sign is a number of magnitude 1; or 0, with the logarithm minus infinity, where a pivot is
    zero. Raises as ``det`` does.

    >>> import stretto.numpy as snp
    >>> slogdet(snp.array([[0.0, 2.0], [2.0, 0.0]]))
    (Array(-1., dtype=float32), Array(1.3862944, dtype=float32))
    """
    x = as_matrices("slogdet", x, square=True)
    return LogDeterminant()(x, *Lu(True)(x))


def inv(x: Any) -> Any:
    """Invert the square matrices in the last two axes; infinite or NaN where they are singular.

    Raises as ``det`` does.

    >>> import stretto.numpy as snp
    >>> inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = as_matrices("inv", x, square=True)
    return solve(x, identity(x.shape, x.dtype))
