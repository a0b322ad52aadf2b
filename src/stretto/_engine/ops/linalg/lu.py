"""The LU factorization with partial pivoting: systems solved with it, determinants and inverses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import ZERO_DERIVATIVE
from stretto._engine.core.sizes import greater, is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import linalg
from stretto._engine.ops.arithmetic import absolute, sign
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ne, select, zeros_like
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import log
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, move_to_front
from stretto._engine.ops.linalg import family
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    diagonal_of,
    identity,
    lower_part,
    matrix_transpose,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve, as_columns
from stretto._engine.ops.reducing.reduce import reduce_max, reduce_prod
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto._engine.ops.sort import argsort

_INT32 = np.dtype(np.int32)
_MANY = 40
"""One step over more matrices than this costs less than one for each."""


class Lu(family.MatrixOperation):
    """Both triangles of ``p x = l u`` in one array, and the row that each row was exchanged with.

    If ``constant``, its derivative counts as zero, for the solver below, which has a rule of its
    own.
    """

    in_blocks = True
    constant: bool = False
    multiple = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        shape = family.check_matrix("lu", x)
        return family.result_types(x, (shape[-2:], x.dtype), ((min(shape[-2:]),), _INT32))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.getrf(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        """Call LAPACK ``getrf``, which counts rows from 1."""
        out, pivots = b.outs
        if not x.type.size:
            return [x, b.splat(0, pivots)]
        types = (out, pivots, family.info_type(x.type))
        both, pivots_from_one, _ = family.lapack(b, "getrf", (x,), types, None, {0: 0})
        return [both, b.emit("subtract", pivots_from_one, b.splat(1, pivots), out=pivots)]

    def onnx(self, b: Any, x: Any) -> list[Any]:
        """Write elimination as a loop over columns."""
        return linalg.written_out.lu(b, x) if x.type.size else [x, b.splat(0, b.outs[1])]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Solve p da = dl u + l du, with l and u made square by parts of the identity."""
        # m = l^-1 p da = s u + du, with s = l^-1 dl strictly lower: that of m u^-1. A column whose
        # pivot is 0, up to rounding, counts as 0 in s.
        both, pivots = self(*primals)
        if self.constant:
            return (both, pivots), (None, None)
        *_, m, n = both.shape
        row, column = both.ndim - 2, both.ndim - 1
        first = _beside_identity(slice_in_dim(both, 0, lesser(m, n), 1, column), m, column)
        second = upper_part(_beside_identity(slice_in_dim(both, 0, lesser(m, n), 1, row), n, row))
        inner = _UNIT_LOWER(first, rows(tangents[0], PivotsToPermutation(m)(pivots)))
        dependent = family.dependent_columns(second, greater(m, n))
        triangle = family.with_unit_columns(second, dependent)
        strict = lower_part(
            _UPPER_FROM_RIGHT(triangle, family.without_columns(inner, dependent)), -1
        )
        unit = lower_part(first, -1) + identity(first.shape, first.dtype)
        change = matmul(unit, strict) + upper_part(inner - matmul(strict, second))
        return (both, pivots), (change, None)


def _beside_identity(x: Any, size: int, axis: int) -> Any:
    """Extend ``x`` along the axis by the last columns or rows of the identity."""
    extra = size - x.shape[axis]
    if not extra:
        return x
    square = list(x.shape)
    square[axis] = size
    rest = slice_in_dim(identity(tuple(square), x.dtype), size - extra, size, 1, axis)
    return concatenate([x, rest], axis)


class PivotsToPermutation(family.MatrixOperation):
    """The rows in the order that exchanging row ``i`` with row ``pivots[i]``, in turn, gives."""

    rank = 1
    in_blocks = True
    size: int
    accepts = frozenset({"int"})
    jvp = ZERO_DERIVATIVE

    def infer(self, pivots: ArrayType) -> ArrayType:
        if not pivots.ndim or pivots.dtype != _INT32 or pivots.shape[-1] > self.size:
            raise ValueError(
                f"lu_pivots_to_permutation: expected int32 pivots of at most {self.size} rows, got "
                f"{pivots}"
            )
        return array_type((*pivots.shape[:-1], self.size), _INT32)

    def padded(self, at: Any, pivots: Any) -> Any:
        """Pivots of no matrix are 0, which is a row."""
        return super().padded(at, at.filled(pivots, at.types[0], 0))

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Never compile: NumPy takes all matrices at once."""
        return False

    def reference(self, pivots: np.ndarray) -> np.ndarray:
        """Make the exchanges one by one; each of all matrices at once where there are many."""
        *batch, count = pivots.shape
        order = np.broadcast_to(np.arange(self.size, dtype=np.int32), (*batch, self.size)).copy()
        lines = order.reshape(math.prod(batch), self.size)
        others = pivots.reshape(len(lines), count)
        if len(lines) > _MANY:
            places = np.arange(len(lines))
            for i, j in enumerate(others.T):
                lines[:, i], lines[places, j] = lines[places, j], lines[:, i].copy()
            return order
        for line, exchanges in zip(lines, others.tolist(), strict=True):
            moved = list(range(self.size))
            for i, j in enumerate(exchanges):
                moved[i], moved[j] = moved[j], moved[i]
            line[:] = moved
        return order

    def lower(self, b: Any, pivots: Any) -> Any:
        type = b.outs[0]
        start = b.iota(type.ndim - 1, type)
        if not (type.size and pivots.type.size):
            return start

        def unfinished(i: Any, order: Any, pivots: Any) -> list[Any]:
            return [b.compare("LT", i, b.scalar(pivots.type.shape[-1], _INT32))]

        def step(i: Any, order: Any, pivots: Any) -> list[Any]:
            order = b.inline(_exchange, i, order, pivots)
            return [b.emit("add", i, b.scalar(1, _INT32), out=i.type), order, pivots]

        return b.while_loop(unfinished, step, (b.scalar(0, _INT32), start, pivots))[1]


def _exchange(i: Any, order: Any, pivots: Any) -> Any:
    """Return the order with its element ``i`` and the one at ``pivots[i]`` exchanged."""
    last = order.ndim - 1

    def at(x: Any, place: Any) -> tuple[Any, Any]:
        index = broadcasted_iota(_INT32, x.shape, last)
        here = eq(index, broadcast_in_dim(place, x.shape, tuple(range(place.ndim))))
        return here, reduce_sum(select(here, x, zeros_like(x)), (last,))

    def spread(x: Any) -> Any:
        return broadcast_in_dim(x, order.shape, tuple(range(last)))

    _, j = at(pivots, i)
    here, mine = at(order, i)
    there, other = at(order, j)
    return select(there, spread(mine), select(here, spread(other), order))


class LuSolve(family.MatrixOperation):
    """The solution ``x`` of ``op(a) x = b``, from the factors of ``a`` and their permutation.

    Derivatives are by ``a``; the factors count as constant, so that they are computed once for a
    value and all its derivatives. ``form`` is ``N``, ``T`` or ``C``, as in ``TriangularSolve``.
    """

    in_blocks = True
    form: str

    def infer(self, a: ArrayType, b: ArrayType, both: ArrayType, order: ArrayType) -> ArrayType:
        family.check_matrix("solve", a, square=True)
        if b.dtype != a.dtype or b.shape[:-1] != a.shape[:-1]:
            raise ValueError(f"solve: a and b must have one dtype and equal sizes, got {a} and {b}")
        return array_type(b.shape, b.dtype)

    def reference(
        self, a: np.ndarray, b: np.ndarray, both: np.ndarray, order: np.ndarray
    ) -> np.ndarray:
        first, second = _STEPS[self.form]
        if self.form == "N":
            b = np.take_along_axis(b, order[..., None], -2)
        out = second.reference(both, first.reference(both, b))
        if self.form == "N":
            return out
        return np.take_along_axis(out, np.argsort(order, -1)[..., None], -2)

    def lower(self, b: Any, a: Any, y: Any, both: Any, order: Any) -> Any:
        return b.inline(
            lambda both, order, y: solve_factored(both, order, y, self.form), both, order, y
        )

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """op(a) x = b, so op(a) dx = db - op(da) x."""
        (a, b, both, order), (da, db, *_) = primals, tangents
        x = self(a, b, both, order)
        change = db
        if da is not None:
            da = {"N": lambda m: m, "T": matrix_transpose, "C": adjoint}[self.form](da)
            product = matmul(da, x)
            change = -product if db is None else db - product
        return x, None if change is None else self(a, change, both, order)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Make the right-hand sides of all examples more columns, where they have one matrix."""
        a, b, both, order = args
        if a.ndim > 2 or axes[0] is not None or axes[2] is not None:
            return super().vmap(size, args, axes)
        return as_columns(lambda wide: self(a, wide, both, order), move_to_front(b, axes[1]))

    def transpose(self, ct: Any, a: Any, b: Linear, both: Any, order: Any) -> tuple[Any, ...]:
        """b' of op(a)^T b' = ct."""
        if self.form == "C":  # its transpose is conj(a)
            x = LuSolve("N")(a, conj(ct), both, order)
            return None, conj(x), None, None
        form = "T" if self.form == "N" else "N"
        return None, LuSolve(form)(a, ct, both, order), None, None


_UNIT_LOWER = TriangularSolve(True, True, "N", True)
_UPPER = TriangularSolve(True, False, "N", False)
_UPPER_FROM_RIGHT = TriangularSolve(False, False, "N", False)
_STEPS = {
    "N": (_UNIT_LOWER, _UPPER),
    **{
        form: (TriangularSolve(True, False, form, False), TriangularSolve(True, True, form, True))
        for form in "TC"
    },
}
"""The steps that solve a = p^T l u: first l, then u; and a^T = u^T l^T p: first u^T, then l^T."""


# Functions


def lu(x: ArrayLike) -> tuple[Array, Array, Array]:
    """Factor matrices into two triangles, with partial pivoting.

    Where a column depends on those before it, its pivot is 0, or at most ``10 max(m, n) eps`` of
    that column of ``u``. In derivatives it counts as 0, and that column of ``l`` as constant.

    Args:
        x: matrices, ``[..., m, n]``.

    Returns:
        Both triangles in one array (``l`` without the ones on its diagonal); the pivots, int32,
            ``[..., min(m, n)]``: the row that each row was exchanged with, in turn; and the
            permutation, int32, ``[..., m]``, with ``x[permutation] = l u``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.

    Source: LAPACK, ``getrf``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> factors, pivots, permutation = st.lax.linalg.lu(snp.array([[1.0, 2.0], [4.0, 4.0]]))
    >>> factors
    Array([[4.  , 4.  ],
           [0.25, 1.  ]], dtype=float32)
    >>> permutation
    Array([1, 0], dtype=int32)
    """
    value = family.as_matrices("lu", x)
    both, pivots = Lu()(value)
    return both, pivots, PivotsToPermutation(value.shape[-2])(pivots)


def lu_pivots_to_permutation(pivots: ArrayLike, permutation_size: int) -> Array:
    """Turn the pivots of ``lu`` into a permutation of rows.

    Args:
        pivots: int32, ``[..., k]``: the row that each row is exchanged with, in turn.
        permutation_size: the number of rows.

    Returns:
        The permutation, int32, ``[..., permutation_size]``.

    Raises:
        TypeError: ``permutation_size`` is not an integer.
        ValueError: the shapes do not fit.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.lu_pivots_to_permutation(snp.array([2, 2, 2]), 3)
    Array([2, 0, 1], dtype=int32)
    """
    x = as_value(pivots, "lu_pivots_to_permutation", "pivots")
    return PivotsToPermutation(
        integer(permutation_size, "lu_pivots_to_permutation", "permutation_size")
    )(x)


def solve_factored(both: Any, order: Any, b: Any, form: str = "N") -> Any:
    """Solve as ``LuSolve``, from the factors and permutation of ``a``, with other operations."""
    first, second = _STEPS[form]
    if form == "N":
        b = rows(b, order)
    out = second(both, first(both, b))
    return out if form == "N" else rows(out, argsort(order, -1))


def rows(x: Any, order: Any) -> Any:
    """Return the rows of matrices in this order."""
    index = expand_dims(order, order.ndim)
    return take_along_axis(x, index, x.ndim - 2, "promise_in_bounds", wrap_negative=False)


def solve(a: Any, b: Any, form: str = "N") -> Any:
    """Solve ``op(a) x = b``, matrices of one dtype, with leading axes broadcast.

    Infinite or NaN where a matrix is singular. See ``LuSolve`` for ``form``.
    """
    a, b = convert(a, a.dtype), convert(b, b.dtype)
    both, pivots = Lu(True)(a)
    order = PivotsToPermutation(a.shape[-1])(pivots)
    if a.shape[:-2] != b.shape[:-2]:
        batch = broadcast_shapes("solve", a.shape[:-2], b.shape[:-2])
        a, b, both = (broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, both))
        order = broadcast_to(order, (*batch, order.shape[-1]))
    return LuSolve(form)(a, b, both, order)


# Determinants and inverses.


def _parity(pivots: Any, dtype: np.dtype) -> Any:
    """Return 1 for an even number of exchanges, -1 for an odd one."""
    moved = ne(pivots, broadcasted_iota(_INT32, pivots.shape, pivots.ndim - 1))
    odd = reduce_sum(convert(moved, _INT32), (pivots.ndim - 1,)) & 1
    return convert(1 - 2 * odd, dtype)


def _parity_reference(pivots: np.ndarray, dtype: np.dtype) -> Any:
    moved = pivots != np.arange(pivots.shape[-1])
    return (1 - 2 * (np.count_nonzero(moved, axis=-1) & 1)).astype(dtype)


class Factored(family.MatrixOperation, abstract=True):
    """A result that follows from the diagonal of the factors."""

    in_blocks = True

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Never compile: NumPy takes all matrices at once."""
        return False


class Determinant(Factored):
    """The determinant, from the factors and pivots, which are treated as constant."""

    def infer(self, x: ArrayType, both: ArrayType, pivots: ArrayType) -> ArrayType:
        return array_type(family.check_matrix("det", x, square=True)[:-2], x.dtype)

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
        batch = family.check_matrix("slogdet", x, square=True)[:-2]
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
        """Return dl = Re t and ds = i s Im t, where t = tr(x^-1 dx) = d log det x."""
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
    """Return tr(x y)."""
    return reduce_sum(matrix_transpose(x) * y, (y.ndim - 2, y.ndim - 1))


def _adjugate(x: Any) -> Any:
    """Return det(x) x^-1, without a division by the last pivot, nor by one that is zero."""
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


def det(x: Any) -> Any:
    """Return the determinant of the square matrices in the last two axes.

    For sizes up to 3 by the formula, else from the LU factorization, with a derivative that holds
    for singular matrices too. Raises ``TypeError`` for dtypes other than float32, float64,
    complex64 and complex128, ``ValueError`` for matrices that are not square.

    >>> import stretto.numpy as snp
    >>> det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = family.as_matrices("det", x, square=True)
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
    """Return the sign of the determinant, and the natural logarithm of its magnitude.

    The sign is a number of magnitude 1; or 0, with the logarithm minus infinity, where a pivot is
    zero. Raises as ``det`` does.

    >>> import stretto.numpy as snp
    >>> slogdet(snp.array([[0.0, 2.0], [2.0, 0.0]]))
    (Array(-1., dtype=float32), Array(1.3862944, dtype=float32))
    """
    x = family.as_matrices("slogdet", x)
    return LogDeterminant()(x, *Lu(True)(x))


def inv(x: Any) -> Any:
    """Invert the square matrices in the last two axes; infinite or NaN where they are singular.

    Raises as ``det`` does.

    >>> import stretto.numpy as snp
    >>> inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = family.as_matrices("inv", x, square=True)
    return solve(x, identity(x.shape, x.dtype))
