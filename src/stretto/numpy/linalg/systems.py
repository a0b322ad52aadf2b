"""Linear systems, inverses, determinants and least squares; norms, condition numbers and ranks."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.eager.twins import AS_GIVEN, COMPLEX, FLOAT, eager
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.bits import bitwise_not
from stretto._engine.ops.broadcast import broadcast_to, of_rank
from stretto._engine.ops.comparison import eq, full_like, ne, select, where
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import power, root_of_squares
from stretto._engine.ops.layout import canonical_axes, expand_dims, reshape, squeeze
from stretto._engine.ops.linalg import lu
from stretto._engine.ops.linalg.lu import solve as solve_matrices
from stretto._engine.ops.linalg.svd import Pinv, Svd
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import min as min_
from stretto.numpy.linalg.factorizations import (
    eigvalsh,
    floats,
    matrices,
    same_floats,
    svdvals,
    systems,
)
from stretto.numpy.logic import isnan
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import sum as sum_

__all__ = ["cond", "det", "inv", "lstsq", "matrix_norm", "matrix_rank", "norm", "pinv", "slogdet",
           "solve", "tensorinv", "tensorsolve", "vector_norm"]  # fmt: skip


def _squares(x: Array) -> Array:
    """Compute |x|^2, with a derivative at 0."""
    return square(real(x)) + square(imag(x)) if is_complex(x.dtype) else square(x)


def _root_of_product(x: np.ndarray) -> np.ndarray:
    line = x.ravel()
    return np.sqrt(np.dot(line, line))


@eager(_root_of_product, FLOAT)
def _length(x: Array) -> Array:
    """Return the 2-norm of all elements."""
    return root_of_squares(sum_(_squares(x)))


def _vector_norm(
    x: Array, axes: tuple[int, ...], ord: float | str | None, keepdims: bool, caller: str
) -> Array:
    if ord is None or ord == 2:
        if len(axes) == x.ndim and not keepdims:
            return _length(x)
        return root_of_squares(sum_(_squares(x), axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"{caller}: ord={ord!r} is for matrices; for vectors give a number")
    size = absolute(x)
    if ord == np.inf:
        return max_(size, axes, keepdims=keepdims, initial=0)
    if ord == -np.inf:
        return min_(size, axes, keepdims=keepdims)
    if ord == 0:
        return sum_(convert(ne(x, 0), size.dtype), axes, keepdims=keepdims)
    if ord == 1:
        return sum_(size, axes, keepdims=keepdims)
    return _power(sum_(_power(size, ord), axes, keepdims=keepdims), 1 / ord)


def _power(size: Array, exponent: float) -> Array:
    """Return a power of magnitudes, with a derivative of 0 at 0."""
    none = eq(size, 0)
    at_zero = full_like(size, 0 if exponent > 0 else np.inf)
    return select(none, at_zero, power(select(none, full_like(size, 1), size), exponent))


_SUMS = {1: (max_, -2), -1: (min_, -2), np.inf: (max_, -1), -np.inf: (min_, -1)}


def _matrix_norm(
    x: Array, axes: tuple[int, int], ord: float | str | None, keepdims: bool, caller: str
) -> Array:
    if (ord is None or ord == "fro") and x.ndim == 2:
        return _vector_norm(x, axes, 2, keepdims, caller)
    if ord is None or ord == "fro":
        return root_of_squares(sum_(_squares(x), axes, keepdims=keepdims))
    x = moveaxis(x, axes, (-2, -1))
    if ord in _SUMS:  # of columns, or of rows
        choose, axis = _SUMS[ord]
        out = choose(sum_(absolute(x), axis), -1)
    elif ord == "nuc":
        out = sum_(svdvals(x), -1)
    elif ord in (2, -2):
        out = (max_ if ord == 2 else min_)(svdvals(x), -1)
    else:
        raise ValueError(
            f"{caller}: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices; got "
            f"{ord!r}"
        )
    return expand_dims(out, axes) if keepdims else out


@rounded_once
def norm(
    x: ArrayLike, ord: float | str | None = None, axis: Axes = None, keepdims: bool = False
) -> Array:
    """Measure vectors along one axis, or matrices in two.

    The derivative of a vector's norm, and of ``"fro"``, at 0 is 0, the least of the slopes there.

    Args:
        x: an array; of rank 1 or 2 if ``ord`` is given without ``axis``.
        ord: which norm, as for ``vector_norm`` and ``matrix_norm``; by default the root of the sum
            of squares.
        axis: the axis of vectors, or the two axes of matrices; all by default.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The norms, real, of the shape of ``x`` without the axes.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or ``ord`` is another, or there are
            neither one nor two axes.

    As NumPy's ``linalg.norm``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.norm(snp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    value = floats("norm", x, "x")
    if axis is None and ord is None:
        return _vector_norm(value, tuple(range(value.ndim)), 2, keepdims, "norm")
    axes = tuple(range(value.ndim)) if axis is None else canonical_axes(axis, value.ndim, "norm")
    if len(axes) == 1:
        return _vector_norm(value, axes, ord, keepdims, "norm")
    if len(axes) == 2:
        return _matrix_norm(value, (axes[0], axes[1]), ord, keepdims, "norm")
    raise ValueError(
        f"norm: expected one axis (vectors) or two (matrices), got axis={axis!r} for {value.type}; "
        f"name the axes, or use vector_norm"
    )


@rounded_once
def vector_norm(
    x: ArrayLike, /, *, axis: Axes = None, keepdims: bool = False, ord: float = 2
) -> Array:
    """Measure vectors along axes.

    Args:
        x: an array, or a number.
        axis: the axes of each vector; all by default.
        keepdims: whether the axes stay, with size 1.
        ord: 2; 1; ``inf`` or ``-inf``, the greatest or least magnitude; 0, the number of elements
            that are not zero; or p, for the p-th root of the sum of p-th powers of magnitudes.

    Returns:
        The norms, real, of the shape of ``x`` without the axes.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or ``ord`` is a string.

    As the array API standard's ``linalg.vector_norm``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.vector_norm(snp.array([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    Array([5., 1.], dtype=float32)
    """
    value = floats("vector_norm", x, "x")
    axes = (
        tuple(range(value.ndim))
        if axis is None
        else canonical_axes(axis, value.ndim, "vector_norm")
    )
    return _vector_norm(value, axes, ord, keepdims, "vector_norm")


@rounded_once
def matrix_norm(
    x: ArrayLike, /, *, keepdims: bool = False, ord: float | str | None = "fro"
) -> Array:
    """Measure the matrices in the last two axes.

    Args:
        x: matrices ``[..., m, n]``.
        keepdims: whether the axes stay, with size 1.
        ord: ``"fro"``, the root of the sum of squares; ``"nuc"``, the sum of singular values; 2 or
            -2, the greatest or least of them; 1 or -1, the greatest or least sum of magnitudes of a
            column; ``inf`` or ``-inf``, of a row.

    Returns:
        The norms, real, of the shape of ``x`` without the last two axes.

    Raises:
        ValueError: the rank is below 2, or ``ord`` is another.

    As the array API standard's ``linalg.matrix_norm``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.matrix_norm(snp.array([[1.0, 2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    value = floats("matrix_norm", x, "x")
    if value.ndim < 2:
        raise ValueError(f"matrix_norm: expected an array of rank 2 or more, got {value.type}")
    return _matrix_norm(value, (value.ndim - 2, value.ndim - 1), ord, keepdims, "matrix_norm")


def cond(x: ArrayLike, p: float | str | None = None) -> Array:
    """Find the condition numbers of matrices: the norm of each times that of its inverse.

    Args:
        x: matrices ``[..., m, n]``, square unless ``p`` is None, 2 or -2.
        p: the norm, as for ``matrix_norm``; None and 2 give the ratio of the greatest to the least
            singular value, -2 its inverse.

    Returns:
        The condition numbers ``[...]``, real; infinite where a matrix is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are empty or not square, or ``p`` is another.

    As NumPy's ``linalg.cond``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cond(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., dtype=float32)
    """
    value = matrices("cond", x, "x", square=p not in (None, 2, -2))
    if 0 in value.shape[-2:]:
        raise ValueError(f"cond: expected matrices with elements, got {value.type}")
    if p in (None, 2, -2):
        s = svdvals(value)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        out = matrix_norm(value, ord=p) * matrix_norm(inv(value), ord=p)
    fine = bitwise_not(isnan(out)) | any_(isnan(value), (-2, -1))
    return where(fine, out, np.inf)


def matrix_rank(
    M: ArrayLike,
    rtol: ArrayLike | None = None,
    *,
    hermitian: bool = False,
    tol: ArrayLike | None = None,
) -> Array:
    """Count the singular values of matrices that are not negligible.

    Args:
        M: matrices ``[..., m, n]``; of a lower rank the result is 1 where an element is not zero.
        rtol: what the values must be above, relative to the greatest: a number, or one for each
            matrix; by default ``max(m, n) eps``.
        hermitian: whether the matrices are Hermitian, which is faster: their eigenvalues serve.
        tol: instead of ``rtol``, what the values themselves must exceed.

    Returns:
        The ranks ``[...]``, of the default integer.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: ``rtol`` and ``tol`` are both given.

    As NumPy's ``linalg.matrix_rank``, except that ``rtol`` is the second argument.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.matrix_rank(snp.ones((3, 3)))
    Array(1, dtype=int32)
    """
    if rtol is not None and tol is not None:
        raise ValueError("matrix_rank: give rtol or tol, not both")
    x, integer = floats("matrix_rank", M, "M"), default_dtype("int")
    if x.ndim < 2:
        return convert(any_(ne(x, 0)), integer)
    s = absolute(eigvalsh(x)) if hermitian else svdvals(x)
    if tol is not None:
        least = as_value(tol, "matrix_rank", "tol")
        least = reshape(least, (*least.shape, 1))
    else:
        if rtol is None:
            rtol = max(x.shape[-2:]) * float(ml_dtypes.finfo(real_dtype(x.dtype)).eps)
        part = as_value(rtol, "matrix_rank", "rtol")
        greatest = max_(s, -1, keepdims=True, initial=0)
        least = greatest * of_rank(reshape(part, (*part.shape, 1)), s.ndim)
    return sum_(convert(s > least, integer), -1, dtype=integer)


class SlogdetResult(NamedTuple):
    """The sign of a determinant, and the natural logarithm of its magnitude.

    Fields: ``sign`` and ``logabsdet``.
    """

    sign: Array
    logabsdet: Array


def solve(a: ArrayLike, b: ArrayLike) -> Array:
    """Solve linear systems: ``x`` of ``a x = b``.

    The LU factorization is found once for a value and all its derivatives.

    Args:
        a: matrices ``[..., n, n]``.
        b: a vector ``[n]``, or matrices ``[..., n, k]``; leading axes broadcast.

    Returns:
        ``x``, of the shape of ``b``, broadcast; infinite or NaN where ``a`` is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square, or sizes do not match.

    As NumPy 2's ``linalg.solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.solve(snp.array([[2.0, 0.0], [0.0, 4.0]]), snp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    matrix, right, vector = systems("solve", a, b)
    x = (_solve_stack if matrix.ndim > 2 else solve_matrices)(matrix, right)
    return squeeze(x, -1) if vector else x


@eager(np.linalg.solve, FLOAT + COMPLEX)
def _solve_stack(matrix: Array, right: Array) -> Array:
    return solve_matrices(matrix, right)


def inv(a: ArrayLike) -> Array:
    """Invert square matrices.

    Args:
        a: matrices ``[..., n, n]``.

    Returns:
        The inverses ``[..., n, n]``; infinite or NaN where a matrix is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As NumPy's and the array API standard's ``linalg.inv``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrices("inv", a, square=True)
    return (_inv_of_stack if x.ndim > 2 else lu.inv)(x)


@eager(np.linalg.inv, FLOAT + COMPLEX)
def _inv_of_stack(x: Array) -> Array:
    return lu.inv(x)


@described_like(inv)
def det(a: ArrayLike) -> Array:
    """Find the determinants of square matrices.

    Of sizes up to 3 by the formula, with all derivatives; else from the LU factorization, with a
    gradient that holds for singular matrices as well.

    Returns:
        The determinants ``[...]``.

    As NumPy's and the array API standard's ``linalg.det``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = matrices("det", a, square=True)
    return (_det_of_stack if x.ndim > 2 else lu.det)(x)


@eager(np.linalg.det, FLOAT + COMPLEX)
def _det_of_stack(x: Array) -> Array:
    return lu.det(x)


def slogdet(a: ArrayLike, *, method: str | None = None) -> SlogdetResult:
    """Find the signs of determinants, and the natural logarithms of their magnitudes.

    Args:
        a: matrices ``[..., n, n]``.
        method: None, ``"lu"`` or ``"qr"``; the LU factorization is used whatever it says.

    Returns:
        ``SlogdetResult``: ``sign`` and ``logabsdet``, ``[...]``; 0 and minus infinity where a
        matrix is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square, or ``method`` is another.

    As NumPy's ``linalg.slogdet``; ``method`` as JAX's.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.slogdet(snp.array([[0.0, 2.0], [2.0, 0.0]])).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr'; got {method!r}")
    x = matrices("slogdet", a, square=True)
    return SlogdetResult(*(_slogdet_of_stack if x.ndim > 2 else lu.slogdet)(x))


def _slogdet(x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return tuple(np.linalg.slogdet(x))


@eager(_slogdet, FLOAT + COMPLEX, AS_GIVEN)
def _slogdet_of_stack(x: Array) -> tuple[Array, Array]:
    return lu.slogdet(x)


def pinv(
    a: ArrayLike,
    rtol: ArrayLike | None = None,
    hermitian: bool = False,
    *,
    rcond: ArrayLike | None = None,
) -> Array:
    """Find the pseudo-inverses of matrices.

    The derivative is that of a constant rank.

    Args:
        a: matrices ``[..., m, n]``.
        rtol: up to what, relative to the greatest, singular values count as zero: a number, or one
            for each matrix; by default ``10 max(m, n) eps``.
        hermitian: whether the matrices are Hermitian, which is faster: the lower triangle is read.
        rcond: another name for ``rtol``.

    Returns:
        The pseudo-inverses ``[..., n, m]``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: ``rtol`` and ``rcond`` are both given, or ``hermitian`` matrices are not square.

    As NumPy's ``linalg.pinv``, with JAX's default of ``rtol``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.pinv(snp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: give rtol or rcond, not both")
    tolerance = rcond if rtol is None else rtol
    x = matrices("pinv", a, square=hermitian)
    dtype = real_dtype(x.dtype)
    if tolerance is None:
        tolerance = 10 * max(x.shape[-2:]) * float(ml_dtypes.finfo(dtype).eps)
    tolerance = convert(as_value(tolerance, "pinv", "rtol"), dtype)
    return Pinv(bool(hermitian))(x, broadcast_to(tolerance, x.shape[:-2]))


def lstsq(
    a: ArrayLike, b: ArrayLike, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Array, Array, Array, Array]:
    """Find the ``x`` of least norm that makes the norm of ``a x - b`` least.

    Args:
        a: a matrix ``[m, n]``.
        b: a vector ``[m]``, or a matrix ``[m, k]``.
        rcond: up to what, relative to the greatest, singular values count as zero; by default
            ``max(m, n) eps``, for a negative number ``eps``.
        numpy_resid: whether the residuals are empty where NumPy's are, for which ``a`` must be
            concrete.

    Returns:
        ``x``; the sums of squared residuals, ``[1]`` or ``[k]``; the rank of ``a``, int32; and its
        singular values.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: ranks are others, or ``a`` and ``b`` differ in rows.

    As NumPy's ``linalg.lstsq``; ``numpy_resid`` as JAX's.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> x, residuals, rank, s = st.linalg.lstsq(snp.array([[1.0], [0.0]]), snp.array([2.0, 3.0]))
    >>> x, residuals, int(rank)
    (Array([2.], dtype=float32), Array([9.], dtype=float32), 1)
    """
    matrix, right = same_floats("lstsq", a, b)
    if matrix.ndim != 2 or right.ndim not in (1, 2) or right.shape[0] != matrix.shape[0]:
        raise ValueError(
            f"lstsq: expected a of rank 2 and b of rank 1 or 2, with as many rows; got "
            f"{matrix.type} and {right.type}; use vmap for more"
        )
    eps = float(ml_dtypes.finfo(real_dtype(matrix.dtype)).eps)
    if rcond is None:
        cutoff: Any = max(matrix.shape) * eps
    else:
        cutoff = where(as_value(rcond, "lstsq", "rcond") < 0, eps, rcond)
    (s,) = Svd(False, False)(matrices("lstsq", matrix))
    rank = sum_(convert(s > cutoff * max_(s, initial=0), np.dtype(np.int32)), dtype=np.int32)
    columns = right if right.ndim == 2 else expand_dims(right, 1)
    x = matmul(pinv(matrix, cutoff), columns)
    residuals = sum_(square(absolute(columns - matmul(matrix, x))), 0)
    if numpy_resid and (matrix.shape[0] <= matrix.shape[1] or int(rank) < matrix.shape[1]):
        residuals = residuals[:0]
    return x if right.ndim == 2 else squeeze(x, 1), residuals, rank, s


def tensorsolve(a: ArrayLike, b: ArrayLike, axes: tuple[int, ...] | None = None) -> Array:
    """Solve the tensor equation ``tensordot(a, x, x.ndim) = b``.

    Args:
        a: an array of the shape of ``b`` followed by that of ``x``, with as many elements in both.
        b: an array.
        axes: the axes of ``a`` to move to the end first.

    Returns:
        ``x``, of the shape of the axes of ``a`` after those of ``b``.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or the axes of ``a`` for ``x`` and
            ``b`` differ in the number of elements.

    As NumPy's ``linalg.tensorsolve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.reshape(snp.eye(6) * 2, (6, 2, 3))
    >>> st.linalg.tensorsolve(a, snp.ones(6)).shape
    (2, 3)
    """
    matrix, right = same_floats("tensorsolve", a, b)
    if axes is not None:
        matrix = moveaxis(matrix, axes, tuple(range(matrix.ndim - len(axes), matrix.ndim)))
    shape = matrix.shape[right.ndim :]
    n = math.prod(shape)
    if n != right.size or matrix.size != n * n:
        raise ValueError(
            f"tensorsolve: the axes of a after the first {right.ndim} must have as many elements "
            f"as b: got a: {matrix.type} and b: {right.type}"
        )
    return reshape(solve(reshape(matrix, (n, n)), reshape(right, (n,))), shape)


def tensorinv(a: ArrayLike, ind: int = 2) -> Array:
    """Invert an array with respect to ``tensordot(a, x, ind)``.

    Args:
        a: an array whose first ``ind`` axes have as many elements as the others.
        ind: how many axes come first.

    Returns:
        The inverse, in which the first ``ind`` axes of ``a`` come last.

    Raises:
        ValueError: ``ind`` is not positive, or the groups of axes differ in the number of elements.

    As NumPy's ``linalg.tensorinv``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.tensorinv(snp.reshape(snp.eye(6), (6, 2, 3)), ind=1).shape
    (2, 3, 6)
    """
    x = as_value(a, "tensorinv", "a")
    first, last = x.shape[:ind], x.shape[ind:]
    n = math.prod(first)
    if ind <= 0 or n != math.prod(last):
        raise ValueError(
            f"tensorinv: the first ind={ind} axes and the others must have as many elements: got "
            f"{x.type}"
        )
    return reshape(inv(reshape(x, (n, n))), (*last, *first))
