"""Sylvester's equation."""

from __future__ import annotations

from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.implicit import custom_linear_solve
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bilinear import promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like, select
from stretto._engine.ops.complex_parts import conj, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_of, matrix_transpose
from stretto._engine.ops.linalg.schur import Schur
from stretto._engine.ops.linalg.sylvester import TriangularSylvester
from stretto._engine.ops.reducing.reduce import reduce_min
from stretto.numpy.linalg.arguments import floats, matrices, same_floats
from stretto.scipy.linalg.arguments import as_complex, values_of

__all__ = ["solve_sylvester"]


def solve_sylvester(
    A: ArrayLike, B: ArrayLike, C: ArrayLike, *, method: str = "schur", tol: float = 1e-8
) -> Array:
    """Solve Sylvester's equation ``A x + x B = C`` for ``x``.

    Args:
        A: square matrices, ``[..., m, m]``.
        B: square matrices, ``[..., n, n]``.
        C: matrices, ``[..., m, n]``; leading axes broadcast.
        method: ``"schur"`` or ``"eigen"``; has no effect.
        tol: the sum of an eigenvalue of ``A`` and one of ``B`` must be greater in magnitude.

    Returns:
        The solutions, ``[..., m, n]``; NaN for each system where a sum is not.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such method.

    By the Schur forms of ``A`` and ``B``. Source: Bartels and Stewart, Solution of the matrix
    equation AX + XB = C (1972).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a, b, c = snp.array([[1.0]]), snp.array([[2.0]]), snp.array([[6.0]])
    >>> st.scipy.linalg.solve_sylvester(a, b, c)
    Array([[2.]], dtype=float32)
    """
    caller = "solve_sylvester"
    if method not in ("schur", "eigen"):
        raise ValueError(f"{caller}: method must be 'schur' or 'eigen'; got {method!r}")
    a, b = same_floats(caller, *values_of(caller, A=A, B=B))
    c = floats(caller, C, "C")
    dtype = promote_dtypes_of(a, b, c)
    a, b, c = (convert(x, dtype) for x in (a, b, c))
    m, n = (matrices(caller, x, name, square=True).shape[-1] for x, name in ((a, "A"), (b, "B")))
    if c.shape[-2:] != (m, n):
        raise ValueError(f"{caller}: C must have shape [..., {m}, {n}], got {c.type}")
    batch = broadcast_shapes(caller, a.shape[:-2], b.shape[:-2])
    batch = broadcast_shapes(caller, batch, c.shape[:-2])
    a, b, c = (broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b, c))
    if not c.size:
        return c
    # With a = z r z^H and b = w s w^H: r y + y s = z^H c w, and x = z y w^H.
    (r, z), (s, w) = (Schur(True)(as_complex(stop_gradient(x))) for x in (a, b))
    sums = expand_dims(diagonal_of(r), r.ndim - 1) + expand_dims(diagonal_of(s), r.ndim - 2)
    axes = (r.ndim - 2, r.ndim - 1)
    solvable = reduce_min(absolute(sums), axes) > tol
    solve_triangles = TriangularSylvester("all")

    def masked(x: Array) -> Array:
        x = x if is_complex(dtype) else real(x)
        return select(
            broadcast_to(expand_dims(solvable, axes), x.shape), x, full_like(x, float("nan"))
        )

    def solve(_: object, c: Array) -> Array:
        f = matmul(adjoint(z), matmul(as_complex(c), w))
        return masked(matmul(z, matmul(solve_triangles(r, s, f), adjoint(w))))

    def solve_transposed(_: object, c: Array) -> Array:
        """For a^T x + x b^T = c, where a^T = conj(z) r^T z^T."""
        f = matmul(matrix_transpose(z), matmul(as_complex(c), conj(w)))
        y = matrix_transpose(solve_triangles(s, r, matrix_transpose(f)))
        return masked(matmul(conj(z), matmul(y, matrix_transpose(w))))

    product = lambda x: matmul(a, x) + matmul(x, b)
    return custom_linear_solve(product, c, solve, solve_transposed)
