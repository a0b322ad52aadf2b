"""Linear systems, inverses, determinants and least squares."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.eager.twins import AS_GIVEN, COMPLEX, FLOAT, eager
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import where
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, reshape, squeeze
from stretto._engine.ops.linalg import lu
from stretto._engine.ops.linalg.lu import solve as solve_matrices
from stretto._engine.ops.linalg.svd import Pinv, Svd
from stretto.numpy.extrema import max as max_
from stretto.numpy.linalg.factorizations import matrices, same_floats, systems
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.reductions import sum as sum_

__all__ = ["det", "inv", "lstsq", "pinv", "slogdet", "solve", "tensorinv", "tensorsolve"]


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
