"""Norms of vectors and matrices, condition numbers and ranks."""

from __future__ import annotations

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.bitwise import bitwise_not
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.comparison import eq, full_like, ne, select, where
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import power, root_of_squares
from stretto._engine.ops.layout import canonical_axes, expand_dims, reshape
from stretto.numpy.extrema import max as max_
from stretto.numpy.extrema import min as min_
from stretto.numpy.linalg.factorizations import eigvalsh, floats, matrices, svdvals
from stretto.numpy.linalg.systems import inv
from stretto.numpy.logic import isnan
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import sum as sum_

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


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
