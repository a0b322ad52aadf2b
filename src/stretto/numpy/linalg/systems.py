"""Linear systems, inverses, determinants and least squares.

Next, read ``norms``.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import real_dtype
from stretto._engine.ops.arithmetic import absolute, square
from stretto._engine.ops.broadcast import broadcast_to, expand_dims, reshape, squeeze
from stretto._engine.ops.comparison import where
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.linalg import determinant as linalg_determinant
from stretto._engine.ops.linalg.lu import solve as solve_matrices
from stretto._engine.ops.linalg.pinv import Pinv
from stretto._engine.ops.linalg.svd import Svd
from stretto.numpy.directly import COMPLEX, FLOAT, directly
from stretto.numpy.linalg.arguments import matrices, same_floats, systems
from stretto.numpy.manipulation import moveaxis
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import sum as sum_

__all__ = [
    "det",
    "inv",
    "lstsq",
    "pinv",
    "slogdet",
    "solve",
    "tensorinv",
    "tensorsolve",
]


class SlogdetResult(NamedTuple):
    """The sign of the determinant, and the natural logarithm of its magnitude."""

    sign: Any
    logabsdet: Any


def solve(a: Any, b: Any) -> Any:
    """``x`` of ``a x = b``.

    ``a`` is ``[..., n, n]``; ``b`` a vector ``[n]``, or matrices ``[..., n, k]``; leading axes
    broadcast. By the LU factorisation, found once for a value and all its
    derivatives. Infinite or NaN where ``a`` is singular. Raises ``TypeError`` for float16 and
    narrower, ``ValueError`` where sizes do not fit. Source: NumPy 2, ``linalg.solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.solve(snp.array([[2.0, 0.0], [0.0, 4.0]]), snp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    a, b, vector = systems("solve", a, b)
    x = directly(np.linalg.solve, FLOAT + COMPLEX, a, b) if a.ndim > 2 else None
    if x is None:
        x = solve_matrices(a, b)
    return squeeze(x, -1) if vector else x


def inv(a: Any) -> Any:
    """The inverses of square matrices; infinite or NaN where they are singular.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    x = matrices("inv", a, square=True)
    found = directly(np.linalg.inv, FLOAT + COMPLEX, x) if x.ndim > 2 else None
    return linalg_determinant.inv(x) if found is None else found


def det(a: Any) -> Any:
    """The determinants of square matrices.

    Of sizes up to 3 by the formula, with all derivatives; else from the LU factorisation, with a
    gradient that holds for singular matrices as well.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    x = matrices("det", a, square=True)
    found = directly(np.linalg.det, FLOAT + COMPLEX, x) if x.ndim > 2 else None
    return linalg_determinant.det(x) if found is None else found


def slogdet(a: Any, *, method: str | None = None) -> SlogdetResult:
    """The sign of the determinants of square matrices, and the logarithm of their magnitude.

    Of a singular matrix 0 and minus infinity. By the LU factorisation, whatever ``method`` says,
    ``"lu"`` or ``"qr"``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.slogdet(snp.array([[0.0, 2.0], [2.0, 0.0]])).sign
    Array(-1., dtype=float32)
    """
    if method not in (None, "lu", "qr"):
        raise ValueError(f"slogdet: method must be None, 'lu' or 'qr'; got {method!r}")
    x = matrices("slogdet", a, square=True)
    found = None
    if x.ndim > 2:
        parts = (None, real_dtype(x.dtype))
        found = directly(np.linalg.slogdet, FLOAT + COMPLEX, x, out=parts)
    return SlogdetResult(*(linalg_determinant.slogdet(x) if found is None else found))


def pinv(a: Any, rtol: Any = None, hermitian: bool = False, *, rcond: Any = None) -> Any:
    """The pseudo-inverses of matrices ``[..., m, n]``: ``[..., n, m]``.

    Singular values up to ``rtol`` times the greatest count as zero; ``rtol``, for which ``rcond``
    is another name, is a number, or one for each matrix, by default ``10 max(m, n) eps``. If
    ``hermitian``, the lower triangle is read, which is faster. Raises ``ValueError`` where both are
    given. Source: JAX, ``numpy.linalg.pinv``; the derivative is that of a constant rank.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.pinv(snp.array([[2.0, 0.0], [0.0, 0.0]]))
    Array([[0.5, 0. ],
           [0. , 0. ]], dtype=float32)
    """
    if rtol is not None and rcond is not None:
        raise ValueError("pinv: give rtol or rcond, not both")
    rtol = rcond if rtol is None else rtol
    x = matrices("pinv", a, square=hermitian)
    dtype = real_dtype(x.dtype)
    if rtol is None:
        rtol = 10 * max(x.shape[-2:]) * float(ml_dtypes.finfo(dtype).eps)
    rtol = convert(as_value(rtol, "pinv", "rtol"), dtype)
    return Pinv(bool(hermitian))(x, broadcast_to(rtol, x.shape[:-2]))


def lstsq(
    a: Any, b: Any, rcond: float | None = None, *, numpy_resid: bool = False
) -> tuple[Any, Any, Any, Any]:
    """The ``x`` of least norm that makes the norm of ``a x - b`` least.

    ``a`` is ``[m, n]``, ``b`` ``[m]`` or ``[m, k]``. Gives ``x``, the sums of squared residuals,
    ``[1]`` or ``[k]``, the rank of ``a`` as int32, and its singular values, of which those up to
    ``rcond`` times the greatest count as zero, by default ``max(m, n) eps``, of a negative number
    ``eps``. With ``numpy_resid`` the residuals are empty where NumPy's are, for which ``a`` must be
    concrete.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> x, residuals, rank, s = st.linalg.lstsq(snp.array([[1.0], [0.0]]), snp.array([2.0, 3.0]))
    >>> x, residuals, int(rank)
    (Array([2.], dtype=float32), Array([9.], dtype=float32), 1)
    """
    a, b = same_floats("lstsq", a, b)
    if a.ndim != 2 or b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(
            f"lstsq: expected a of rank 2 and b of rank 1 or 2, with as many rows; got {a.type} "
            f"and {b.type}; use vmap for more"
        )
    eps = float(ml_dtypes.finfo(real_dtype(a.dtype)).eps)
    rcond = max(a.shape) * eps if rcond is None else where(rcond < 0, eps, rcond)
    (s,) = Svd(False, False)(matrices("lstsq", a))
    rank = sum_(convert(s > rcond * max_(s, initial=0), np.dtype(np.int32)), dtype=np.int32)
    columns = b if b.ndim == 2 else expand_dims(b, 1)
    x = matmul(pinv(a, rcond), columns)
    residuals = sum_(square(absolute(columns - matmul(a, x))), 0)
    if numpy_resid and (a.shape[0] <= a.shape[1] or int(rank) < a.shape[1]):
        residuals = residuals[:0]
    return x if b.ndim == 2 else squeeze(x, 1), residuals, rank, s


def tensorsolve(a: Any, b: Any, axes: tuple[int, ...] | None = None) -> Any:
    """``x`` of ``tensordot(a, x, x.ndim) = b``, of the shape of the axes of ``a`` after ``b``'s.

    ``axes`` of ``a`` are moved to the end first. Raises ``ValueError`` unless the sizes of ``x``
    and ``b`` agree.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.reshape(snp.eye(6) * 2, (6, 2, 3))
    >>> st.linalg.tensorsolve(a, snp.ones(6)).shape
    (2, 3)
    """
    a, b = same_floats("tensorsolve", a, b)
    if axes is not None:
        a = moveaxis(a, axes, tuple(range(a.ndim - len(axes), a.ndim)))
    shape = a.shape[b.ndim :]
    n = math.prod(shape)
    if n != b.size or a.size != n * n:
        raise ValueError(
            f"tensorsolve: the axes of a after the first {b.ndim} must have as many elements as b: "
            f"got a: {a.type} and b: {b.type}"
        )
    return reshape(solve(reshape(a, (n, n)), reshape(b, (n,))), shape)


def tensorinv(a: Any, ind: int = 2) -> Any:
    """The inverse of ``a`` for ``tensordot(a, x, ind)``: its first ``ind`` axes go to the end.

    Raises ``ValueError`` unless both groups of axes have as many elements.

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
