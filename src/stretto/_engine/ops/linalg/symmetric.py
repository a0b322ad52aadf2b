"""The product of a matrix and its own transpose.

It is written with ``matmul``.
"""

from __future__ import annotations

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.linalg.family import check_matrix
from stretto._engine.ops.linalg.matrix_parts import lower_part, matrix_transpose


def symmetric_product(
    a_matrix: ArrayLike,
    c_matrix: ArrayLike,
    *,
    alpha: float = 1.0,
    beta: float = 0.0,
    symmetrize_output: bool = False,
) -> Array:
    """Compute ``alpha a a^T + beta c``, for a symmetric ``c``.

    Args:
        a_matrix: matrices, ``[..., m, n]``; complex numbers are not conjugated.
        c_matrix: symmetric matrices, ``[..., m, m]``; leading axes broadcast.
        alpha: a number.
        beta: a number.
        symmetrize_output: whether to copy the lower triangle to the upper one.

    Returns:
        The matrices, ``[..., m, m]``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128, or ``alpha`` or
            ``beta`` is not a number.
        ValueError: the shapes do not fit.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[1.0, 2.0], [0.0, 1.0]])
    >>> st.lax.linalg.symmetric_product(a, snp.eye(2), alpha=2.0, beta=1.0)
    Array([[11.,  4.],
           [ 4.,  3.]], dtype=float32)
    """
    a, c = promote_dtypes("symmetric_product", a_matrix, c_matrix)
    a, c = convert(a, a.dtype), convert(c, c.dtype)  # not weak
    m = check_matrix("symmetric_product", a.type)[-2]
    if check_matrix("symmetric_product", c.type, square=True)[-1] != m:
        raise ValueError(
            f"symmetric_product: c_matrix must have {m} rows, as a_matrix has; got {a.type} and "
            f"{c.type}"
        )
    for name, number in (("alpha", alpha), ("beta", beta)):
        factor = as_value(number, "symmetric_product", name)
        if factor.ndim:
            raise TypeError(f"symmetric_product: {name} must be a number, got {factor.type}")
    out = matmul(a, matrix_transpose(a)) * alpha + c * beta
    if symmetrize_output:
        out = lower_part(out) + matrix_transpose(lower_part(out, -1))
    return out
