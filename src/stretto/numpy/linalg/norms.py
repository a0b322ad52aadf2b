"""Norms of vectors and matrices, condition numbers and ranks.

Next, read ``products``.
"""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import default_dtype, is_complex, real_dtype
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.broadcast import canonical_axes, expand_dims, of_rank, reshape
from stretto._engine.ops.comparison import bitwise_not, eq, full_like, ne, select, where
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import power, root_of_squares
from stretto.numpy.directly import FLOAT
from stretto.numpy.linalg.arguments import floats, matrices
from stretto.numpy.linalg.factorisations import eigvalsh, svdvals
from stretto.numpy.linalg.systems import inv
from stretto.numpy.logic import isnan
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.quick import array_of, at_rest
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import min as min_
from stretto.numpy.reductions import sum as sum_

__all__ = ["cond", "matrix_norm", "matrix_rank", "norm", "vector_norm"]


def _squares(x: Any) -> Any:
    """|x|^2, with a derivative at 0."""
    return square(real(x)) + square(imag(x)) if is_complex(x.dtype) else square(x)


def _vector_norm(x: Any, axes: tuple[int, ...], ord: Any, keepdims: bool, who: str) -> Any:
    if ord is None or ord == 2:
        if len(axes) == x.ndim and not keepdims and at_rest(x) and x.dtype.char in FLOAT:
            line = np.ravel(x.to_host())
            return array_of(np.sqrt(np.dot(line, line)), x.dtype)
        return root_of_squares(sum_(_squares(x), axes, keepdims=keepdims))
    if isinstance(ord, str):
        raise ValueError(f"{who}: ord={ord!r} is for matrices; for vectors give a number")
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


def _power(size: Any, exponent: float) -> Any:
    """A power of magnitudes, with a derivative of 0 at 0."""
    none = eq(size, 0)
    at_zero = full_like(size, 0 if exponent > 0 else np.inf)
    return select(none, at_zero, power(select(none, full_like(size, 1), size), exponent))


_SUMS = {1: (max_, -2), -1: (min_, -2), np.inf: (max_, -1), -np.inf: (min_, -1)}


def _matrix_norm(x: Any, axes: tuple[int, int], ord: Any, keepdims: bool, who: str) -> Any:
    if (ord is None or ord == "fro") and x.ndim == 2:
        return _vector_norm(x, axes, 2, keepdims, who)
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
            f"{who}: ord must be 'fro', 'nuc', 1, -1, 2, -2, inf or -inf for matrices; got {ord!r}"
        )
    return expand_dims(out, axes) if keepdims else out


def norm(x: Any, ord: Any = None, axis: Any = None, keepdims: bool = False) -> Any:
    """The norm of vectors along one axis, or of matrices in two.

    Without ``axis`` and ``ord`` the 2-norm of all elements; with ``ord`` alone, ``x`` must be a
    vector or a matrix. ``ord`` is as in ``vector_norm`` and ``matrix_norm``. The derivative of a
    vector's norm, and of ``"fro"``, at 0 is 0, the least of the slopes there. Source: NumPy,
    ``linalg.norm``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.norm(snp.array([3.0, 4.0]))
    Array(5., dtype=float32)
    """
    x = floats("norm", x, "x")
    if axis is None and ord is None:
        return _vector_norm(x, tuple(range(x.ndim)), 2, keepdims, "norm")
    axes = tuple(range(x.ndim)) if axis is None else canonical_axes(axis, x.ndim, "norm")
    if len(axes) == 1:
        return _vector_norm(x, axes, ord, keepdims, "norm")
    if len(axes) == 2:
        return _matrix_norm(x, (axes[0], axes[1]), ord, keepdims, "norm")
    raise ValueError(
        f"norm: expected one axis (vectors) or two (matrices), got axis={axis!r} for {x.type}; "
        f"name the axes, or use vector_norm"
    )


def vector_norm(x: Any, /, *, axis: Any = None, keepdims: bool = False, ord: Any = 2) -> Any:
    """The norm of vectors along ``axis``, one or several, all by default.

    ``ord``: 2; 1; ``inf`` and ``-inf`` for the greatest and least magnitude; 0 for the number of
    elements that are not zero; p for the p-th root of the sum of p-th powers of magnitudes. Source:
    the array API standard.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.vector_norm(snp.array([[3.0, 4.0], [0.0, 1.0]]), axis=1)
    Array([5., 1.], dtype=float32)
    """
    x = floats("vector_norm", x, "x")
    axes = tuple(range(x.ndim)) if axis is None else canonical_axes(axis, x.ndim, "vector_norm")
    return _vector_norm(x, axes, ord, keepdims, "vector_norm")


def matrix_norm(x: Any, /, *, keepdims: bool = False, ord: Any = "fro") -> Any:
    """The norm of the matrices in the last two axes.

    ``ord``: ``"fro"``, the root of the sum of squares; ``"nuc"``, the sum of singular values; 2 and
    -2, the greatest and least of these; 1 and -1, the greatest and least sum of magnitudes of a
    column; ``inf`` and ``-inf``, of a row. Source: the array API standard.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.matrix_norm(snp.array([[1.0, 2.0], [3.0, 4.0]]), ord=1)
    Array(6., dtype=float32)
    """
    x = floats("matrix_norm", x, "x")
    if x.ndim < 2:
        raise ValueError(f"matrix_norm: expected an array of rank 2 or more, got {x.type}")
    return _matrix_norm(x, (x.ndim - 2, x.ndim - 1), ord, keepdims, "matrix_norm")


def cond(x: Any, p: Any = None) -> Any:
    """The condition numbers of matrices: the norm ``p`` of each times that of its inverse.

    By default, and for 2 and -2, the ratio of the greatest and the least singular value, or its
    inverse, for which the matrices need not be square. Infinite where a matrix is singular. Raises
    ``ValueError`` for matrices without elements.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cond(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array(2., dtype=float32)
    """
    x = matrices("cond", x, "x", square=p not in (None, 2, -2))
    if 0 in x.shape[-2:]:
        raise ValueError(f"cond: expected matrices with elements, got {x.type}")
    if p in (None, 2, -2):
        s = svdvals(x)
        out = s[..., -1] / s[..., 0] if p == -2 else s[..., 0] / s[..., -1]
    else:
        out = matrix_norm(x, ord=p) * matrix_norm(inv(x), ord=p)
    fine = bitwise_not(isnan(out)) | any_(isnan(x), (-2, -1))
    return where(fine, out, np.inf)


def matrix_rank(M: Any, rtol: Any = None, *, hermitian: bool = False, tol: Any = None) -> Any:
    """The number of singular values above ``rtol`` times the greatest, a default integer.

    ``rtol`` is a number, or one for each matrix, by default ``max(m, n) eps``; ``tol``, in its
    place, is what the values themselves must be above. If ``hermitian``, by eigenvalues, which is
    faster. Of an array of rank below 2: 1 where an element is not zero. Raises ``ValueError`` where
    both are given. Source: NumPy, ``linalg.matrix_rank``, but for ``rtol`` as second argument.

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
        rtol = as_value(rtol, "matrix_rank", "rtol")
        greatest = max_(s, -1, keepdims=True, initial=0)
        least = greatest * of_rank(reshape(rtol, (*rtol.shape, 1)), s.ndim)
    return sum_(convert(s > least, integer), -1, dtype=integer)
