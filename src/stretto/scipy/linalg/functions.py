"""Functions of matrices: the exponential, the square root, and arbitrary ones."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Literal, overload

import ml_dtypes
import numpy as np

from stretto._engine.api.autodiff.derivatives import jvp
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.functions import described_like
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.higher_order.implicit import custom_linear_solve
from stretto._engine.higher_order.loops import fori_loop
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bilinear import promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import eq, full, full_like, lt, ne, select, where, zeros_like
from stretto._engine.ops.complex_parts import conj, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import exp2, log, sqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.index.dynamic import dynamic_slice_in_dim
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.linalg.eigenvalues import Schur, TriangularSylvester
from stretto._engine.ops.linalg.lu import solve
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    diagonal_matrix,
    diagonal_of,
    identity,
    matrix_transpose,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve
from stretto._engine.ops.reducing.reduce import reduce_max, reduce_min
from stretto._engine.ops.rounding import ceil
from stretto.numpy.linalg.factorizations import as_complex, floats, matrices, same_floats, values_of
from stretto.scipy.linalg.eigenvalues import rsf2csf

__all__ = ["expm", "expm_frechet", "funm", "solve_sylvester", "sqrtm"]

# Sylvester's equation.


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

    def mask(x: Array) -> Array:
        x = x if is_complex(dtype) else real(x)
        return select(
            broadcast_to(expand_dims(solvable, axes), x.shape), x, full_like(x, float("nan"))
        )

    def solve(_: object, c: Array) -> Array:
        f = matmul(adjoint(z), matmul(as_complex(c), w))
        return mask(matmul(z, matmul(solve_triangles(r, s, f), adjoint(w))))

    def solve_transposed(_: object, c: Array) -> Array:
        """Solve a^T x + x b^T = c, where a^T = conj(z) r^T z^T."""
        f = matmul(matrix_transpose(z), matmul(as_complex(c), conj(w)))
        y = matrix_transpose(solve_triangles(s, r, matrix_transpose(f)))
        return mask(matmul(conj(z), matmul(y, matrix_transpose(w))))

    product = lambda x: matmul(a, x) + matmul(x, b)
    return custom_linear_solve(product, c, solve, solve_transposed)


# Functions of matrices: the exponential, the square root, and arbitrary ones.


_INT32 = np.dtype(np.int32)
_UPPER = TriangularSolve(True, False, "N", False)

# Higham (2005), table 2.3: the degree for an item size, and the norm up to which it is accurate.
_DEGREES = {4: (7, 3.925724783138660), 8: (13, 5.371920351148152)}


def expm(A: ArrayLike, *, upper_triangular: bool = False, max_squarings: int = 16) -> Array:
    """Compute the exponential of square matrices.

    Args:
        A: square matrices, ``[..., n, n]``.
        upper_triangular: whether to read only the upper triangle.
        max_squarings: how many times a matrix may be halved to make its 1-norm small.

    Returns:
        The exponentials; NaN for each matrix whose norm is above about ``4 * 2**max_squarings``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As SciPy's ``expm``. Source: Higham, The scaling and squaring method for the matrix exponential
    revisited (2005).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.expm(snp.array([[0.0, 1.0], [0.0, 0.0]]))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x = matrices("expm", A, "A", square=True)
    if not x.size:
        return x
    x = upper_part(x) if upper_triangular else x
    part = real_dtype(x.dtype)
    degree, limit = _DEGREES[part.itemsize]
    last = x.ndim - 2
    norm = reduce_max(reduce_sum(absolute(x), (last,)), (last,))
    halvings = maximum(ceil(log(norm / limit) / math.log(2)), 0)

    def to_matrix(v: Array) -> Array:
        return broadcast_in_dim(v, x.shape, tuple(range(v.ndim)))

    scaled = x * to_matrix(convert(exp2(-halvings), x.dtype))
    approximant = _pade(scaled, degree, _UPPER if upper_triangular else solve)

    def square(i: Array, r: Array) -> Array:
        return select(to_matrix(lt(convert(i, part), halvings)), matmul(r, r), r)

    squared = fori_loop(0, max_squarings, square, approximant)
    beyond = to_matrix(lt(full_like(halvings, max_squarings), halvings))
    return select(beyond, full_like(squared, np.nan), squared)


def _pade(x: Array, m: int, solve: Callable[[Array, Array], Array]) -> Array:
    """Return the diagonal Padé approximant of degree m: (v - u)^-1 (v + u)."""
    # v and u are the even and the odd part of the sum over k of
    # (2m - k)! m! / ((2m)! k! (m - k)!) x^k.
    weights = [
        math.factorial(2 * m - k) * math.factorial(m)
        / (math.factorial(2 * m) * math.factorial(k) * math.factorial(m - k))
        for k in range(m + 1)
    ]  # fmt: skip
    square = matmul(x, x)
    power = identity(x.shape, x.dtype)
    even, odd = power * weights[0], power * weights[1]
    for k in range(2, m + 1, 2):
        power = matmul(power, square) if k > 2 else square
        even = even + power * weights[k]
        odd = odd + power * weights[k + 1]
    odd = matmul(x, odd)
    return solve(even - odd, even + odd)


@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[True] = True
) -> tuple[Array, Array]: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: Literal[False]
) -> Array: ...
@overload
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]: ...
def expm_frechet(
    A: ArrayLike, E: ArrayLike, *, method: str | None = None, compute_expm: bool = True
) -> Array | tuple[Array, Array]:
    """Compute the exponential of matrices, and its derivative in a direction.

    Args:
        A: square matrices, ``[..., n, n]``.
        E: the direction, of the same shape.
        method: has no effect.
        compute_expm: whether to return the exponential too.

    Returns:
        ``(expm(A), d)``, or the derivative ``d`` alone.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the shapes differ, or the matrices are not square.

    As SciPy's ``expm_frechet``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.expm_frechet(snp.zeros((2, 2)), snp.eye(2), compute_expm=False)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    x, direction = same_floats("expm_frechet", *values_of("expm_frechet", A=A, E=E))
    matrices("expm_frechet", x, "A", square=True)
    if x.shape != direction.shape:
        raise ValueError(
            f"expm_frechet: A and E must have the same shape, got {x.type} and {direction.type}"
        )
    out, change = jvp(expm, (x,), (direction,))
    return (out, change) if compute_expm else change


def _columns(start: Array, system: Callable[[Array, Array], tuple[Array, Array, Array]]) -> Array:
    """Compute an upper triangle with a known diagonal column by column from ``start``.

    Column ``j`` above the diagonal solves a triangular system: ``system(j, triangle)`` returns
    matrices, whose part above the diagonal is used, the diagonal to put in them, and the right-hand
    sides. Where that diagonal is zero, the right-hand side must be zero too; else the result is
    NaN.
    """
    *outer, n, _ = start.shape
    row = broadcasted_iota(_INT32, (*outer, n), start.ndim - 2)
    diagonal = broadcast_to(on_diagonal((n, n)), start.shape)
    column = broadcasted_iota(_INT32, start.shape, start.ndim - 1)

    def step(j: Array, triangle: Array) -> Array:
        matrix, divisors, right = system(j, triangle)
        above = lt(row, j)
        zero = eq(divisors, zeros_like(divisors))
        divisors = where(above & ~zero, divisors, 1)
        right = select(above, right, zeros_like(right))
        right = where(above & zero & ne(right, zeros_like(right)), float("nan"), right)
        divisors = expand_dims(divisors, divisors.ndim)
        matrix = select(diagonal, broadcast_to(divisors, matrix.shape), upper_part(matrix))
        solution = _UPPER(matrix, expand_dims(right, right.ndim))
        in_column = eq(column, j) & expand_dims(above, above.ndim)
        return select(in_column, broadcast_to(solution, triangle.shape), triangle)

    return fori_loop(1, n, step, start)


def _at(x: Array, j: Array) -> Array:
    """Return element ``j`` along the last axis, which is kept with size 1."""
    return dynamic_slice_in_dim(x, j, 1, x.ndim - 1)


@custom_jvp
def _square_root(x: Array) -> Array:
    """Return the principal square root of matrices."""
    # Björck and Hammarling (1983): r r = t for triangles, so (r_ii + r_jj) r_ij is t_ij minus the
    # sum of r_ik r_kj over i < k < j. The real Schur form comes first, so that real eigenvalues
    # stay real; the roots of negative ones then lie on the positive imaginary axis.
    t, z = Schur(True)(x)
    t, z = (t, z) if is_complex(x.dtype) else rsf2csf(t, z)
    roots = sqrt(diagonal_of(t))

    def system(j: Array, triangle: Array) -> tuple[Array, Array, Array]:
        return triangle, roots + _at(roots, j), _at(t, j)[..., 0]

    r = _columns(diagonal_matrix(roots), system)
    return matmul(z, matmul(r, adjoint(z)))


@_square_root.defjvp
def _square_root_jvp(primals: Sequence[Array], tangents: Sequence[Array]) -> tuple[Array, Array]:
    """R r = x, so r dr + dr r = dx."""
    r = _square_root(*primals)
    return r, solve_sylvester(r, r, as_complex(tangents[0]), tol=0.0)


@described_like(expm)
def sqrtm(A: ArrayLike, blocksize: int = 1) -> Array:
    """Compute the principal square root of square matrices: ``r r = A``.

    Args:
        blocksize: has no effect.

    Returns:
        The roots, complex, whose eigenvalues have no negative real part; NaN for each matrix
            without a root, such as ``[[0, 1], [0, 0]]``.

    As SciPy's ``sqrtm``; the derivative is NaN where an eigenvalue is zero. Source: Björck and
    Hammarling, A Schur method for the square root of a matrix (1983).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.sqrtm(snp.array([[4.0, 0.0], [0.0, 9.0]]))
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    x = matrices("sqrtm", A, "A", square=True)
    return _square_root(x) if x.size else as_complex(x)


@overload
def funm(A: ArrayLike, func: Callable[[Array], ArrayLike], disp: Literal[True] = True) -> Array: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], ArrayLike], disp: Literal[False]
) -> tuple[Array, Array]: ...
@overload
def funm(
    A: ArrayLike, func: Callable[[Array], ArrayLike], disp: bool = True
) -> Array | tuple[Array, Array]: ...
def funm(
    A: ArrayLike, func: Callable[[Array], ArrayLike], disp: bool = True
) -> Array | tuple[Array, Array]:
    """Apply a function of complex numbers to square matrices, by their eigenvalues.

    Args:
        A: square matrices, ``[..., n, n]``.
        func: a function of a complex scalar.
        disp: whether to leave out the estimate of the error.

    Returns:
        The results, complex; unless ``disp`` a pair, with an estimate of the relative error of the
            1-norm, which is large where eigenvalues lie close together.

    Raises:
        TypeError: the dtype is float16 or narrower, or ``func`` is not a function.
        ValueError: the matrices are not square.

    As SciPy's ``funm``, by Parlett's recurrence on the Schur form. With repeated eigenvalues it is
    right only where the matrix is diagonalizable; derivatives exist where eigenvalues differ.
    Source: Golub and Van Loan, Matrix Computations, 9.1.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> snp.round(st.scipy.linalg.funm(snp.array([[4.0, 0.0], [0.0, 9.0]]), snp.sqrt), 4)
    Array([[2.+0.j, 0.+0.j],
           [0.+0.j, 3.+0.j]], dtype=complex64)
    """
    x = as_complex(matrices("funm", A, "A", square=True))
    if not callable(func):
        raise TypeError(f"funm: func must be a function, got {type(func).__name__}")
    n = x.shape[-1]
    if not x.size:
        return x if disp else (x, full(x.shape[:-2], 0, real_dtype(x.dtype)))
    # f t = t f for triangles, so (t_ii - t_jj) f_ij is f_ii t_ij - t_ij f_jj
    # plus the sum of f_ik t_kj - t_ik f_kj over i < k < j.
    t, z = Schur(True, True)(x)
    values = diagonal_of(t)
    mapped = convert(reshape(vmap(func)(reshape(values, (-1,))), values.shape), x.dtype)

    def system(j: Array, triangle: Array) -> tuple[Array, Array, Array]:
        column = _at(t, j)
        above = lt(broadcasted_iota(_INT32, column.shape, column.ndim - 2), j)
        column = select(above, column, zeros_like(column))
        right = matmul(triangle, column) - column * expand_dims(_at(mapped, j), column.ndim - 2)
        return t, values - _at(values, j), right[..., 0]

    out = _columns(diagonal_matrix(mapped), system)
    out = matmul(z, matmul(out, adjoint(z)))
    if disp:
        return out
    part = real_dtype(x.dtype)
    eps = float(ml_dtypes.finfo(part).eps)
    gaps = absolute(expand_dims(values, x.ndim - 1) - expand_dims(values, x.ndim - 2))
    gaps = where(broadcast_to(on_diagonal((n, n)), gaps.shape), float("inf"), gaps)
    axes = (x.ndim - 2, x.ndim - 1)
    smallest = reduce_min(gaps, axes)
    smallest = where(eq(smallest, 0), eps, smallest)
    size = reduce_max(reduce_sum(absolute(upper_part(t, 1)), (x.ndim - 2,)), (x.ndim - 2,))
    return out, maximum(eps, eps / smallest * size)
