"""Linear systems, inverses and determinants with SciPy's arguments.

``overwrite_a``, ``overwrite_b``, ``debug`` and ``check_finite`` are accepted, as in SciPy, and have
no effect.
"""

from __future__ import annotations

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import squeeze
from stretto._engine.ops.linalg import determinant as linalg_determinant
from stretto._engine.ops.linalg.cholesky import hermitian_from_lower
from stretto._engine.ops.linalg.lu import PivotsToPermutation, solve_factored
from stretto._engine.ops.linalg.lu import solve as solve_matrices
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    keep_diagonal,
    lower_part,
    matrix_transpose,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve, solve_triangles
from stretto.numpy.linalg.factorizations import matrices, systems, values_of
from stretto.scipy.linalg.factorizations import cho_factor

__all__ = ["cho_solve", "det", "inv", "lu_solve", "solve", "solve_triangular"]

_FORMS = {0: "N", 1: "T", 2: "C", "N": "N", "T": "T", "C": "C"}
_KINDS = {
    "gen": "gen",
    "general": "gen",
    "sym": "sym",
    "symmetric": "sym",
    "her": "her",
    "hermitian": "her",
    "pos": "pos",
    "positive definite": "pos",
    "upper triangular": "upper",
    "lower triangular": "lower",
}


def _form(caller: str, trans: int | str) -> str:
    """``N``, ``T`` or ``C``: the matrix itself, its transpose, its adjoint."""
    if trans not in _FORMS:
        raise ValueError(f"{caller}: trans must be 0, 1, 2, 'N', 'T' or 'C'; got {trans!r}")
    return _FORMS[trans]


def solve(
    a: ArrayLike,
    b: ArrayLike,
    lower: bool = False,
    overwrite_a: bool = False,
    overwrite_b: bool = False,
    debug: bool = False,
    check_finite: bool = True,
    assume_a: str = "gen",
) -> Array:
    """Solve ``a x = b``, for matrices whose structure may be known.

    Args:
        a: square matrices, ``[..., n, n]``.
        b: a vector ``[n]``, or matrices ``[..., n, k]``; leading axes broadcast.
        lower: whether to read the lower triangle of a symmetric or Hermitian matrix.
        overwrite_a: has no effect.
        overwrite_b: has no effect.
        debug: has no effect.
        check_finite: has no effect; NaN is not checked for.
        assume_a: ``"gen"`` for nothing; ``"sym"``, ``"her"`` or ``"pos"`` for symmetric, Hermitian,
            or Hermitian positive definite matrices, of which one triangle is read; ``"upper
            triangular"`` or ``"lower triangular"``.

    Returns:
        The solution, of the shape of ``b``; infinite or NaN where ``a`` is singular, NaN where it
            is not positive definite as assumed.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such assumption.

    As SciPy's ``solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[4.0, 2.0], [2.0, 5.0]])
    >>> st.scipy.linalg.solve(a, snp.array([6.0, 7.0]), assume_a="pos")
    Array([1., 1.], dtype=float32)
    """
    if assume_a not in _KINDS:
        raise ValueError(f"solve: assume_a must be one of {', '.join(_KINDS)}; got {assume_a!r}")
    kind = _KINDS[assume_a]
    matrix, right, vector = systems("solve", *values_of("solve", a=a, b=b))
    if kind == "pos":
        return cho_solve(cho_factor(a, lower), b)
    if kind in ("upper", "lower"):
        return solve_triangular(a, b, 0, kind == "lower")
    if kind != "gen":
        hermitian = kind == "her" and is_complex(matrix.dtype)
        matrix = matrix if lower else (adjoint(matrix) if hermitian else matrix_transpose(matrix))
        matrix = hermitian_from_lower(matrix) if hermitian else _symmetric_from_lower(matrix)
    x = solve_matrices(matrix, right)
    return squeeze(x, -1) if vector else x


def _symmetric_from_lower(x: Array) -> Array:
    strict = lower_part(x, -1)
    return strict + matrix_transpose(strict) + keep_diagonal(x)


def lu_solve(
    lu_and_piv: tuple[ArrayLike, ArrayLike],
    b: ArrayLike,
    trans: int = 0,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) x = b`` from what ``lu_factor(a)`` returns.

    Args:
        lu_and_piv: the triangles and the pivots.
        b: a vector ``[n]``, or matrices ``[..., n, k]``; leading axes broadcast.
        trans: 0 for ``a`` itself, 1 for its transpose, 2 for its adjoint.
        overwrite_b: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The solution, of the shape of ``b``.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match, or there is no such ``trans``.

    As SciPy's ``lu_solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> factors = st.linalg.lu_factor(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    >>> st.linalg.lu_solve(factors, snp.array([1.0, 1.0]))
    Array([0.5 , 0.25], dtype=float32)
    """
    form = _form("lu_solve", trans)
    packed, right, vector = systems("lu_solve", *values_of("lu_solve", lu=lu_and_piv[0], b=b))
    order = PivotsToPermutation(packed.shape[-1])(as_value(lu_and_piv[1], "lu_solve", "piv"))
    if packed.ndim > 2 or right.ndim > 2:
        batch = broadcast_shapes("lu_solve", packed.shape[:-2], right.shape[:-2])
        packed, right = (broadcast_to(m, (*batch, *m.shape[-2:])) for m in (packed, right))
        order = broadcast_to(order, (*batch, order.shape[-1]))
    x = solve_factored(packed, order, right, form)
    return squeeze(x, -1) if vector else x


@described_like(lu_solve)
def solve_triangular(
    a: ArrayLike,
    b: ArrayLike,
    trans: int | str = 0,
    lower: bool = False,
    unit_diagonal: bool = False,
    overwrite_b: bool = False,
    debug: bool | None = None,
    check_finite: bool = True,
) -> Array:
    """Solve ``op(a) x = b`` for triangular matrices.

    Args:
        a: triangular matrices, ``[..., n, n]``; only that triangle is read.
        trans: 0 or ``"N"`` for ``a`` itself, 1 or ``"T"`` for its transpose, 2 or ``"C"`` for its
            adjoint.
        lower: whether the lower triangle is read, instead of the upper.
        unit_diagonal: whether the diagonal counts as ones.
        debug: has no effect.

    As SciPy's ``solve_triangular``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.solve_triangular(
    ...     snp.array([[2.0, 0.0], [1.0, 4.0]]), snp.array([2.0, 9.0]), lower=True
    ... )
    Array([1., 2.], dtype=float32)
    """
    form = _form("solve_triangular", trans)
    matrix, right, vector = systems("solve_triangular", *values_of("solve_triangular", a=a, b=b))
    step = TriangularSolve(True, bool(lower), form, bool(unit_diagonal))
    x = solve_triangles("solve_triangular", step, matrix, right)
    return squeeze(x, -1) if vector else x


@described_like(lu_solve)
def cho_solve(
    c_and_lower: tuple[ArrayLike, bool],
    b: ArrayLike,
    overwrite_b: bool = False,
    check_finite: bool = True,
) -> Array:
    """Solve ``a x = b`` from what ``cho_factor(a)`` returns.

    Args:
        c_and_lower: the factor, and whether it is the lower triangle.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the sizes do not match.

    As SciPy's ``cho_solve``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> factor = st.linalg.cho_factor(snp.array([[4.0, 0.0], [0.0, 16.0]]))
    >>> st.linalg.cho_solve(factor, snp.array([4.0, 4.0]))
    Array([1.  , 0.25], dtype=float32)
    """
    c, lower = c_and_lower
    c, x, vector = systems("cho_solve", *values_of("cho_solve", c=c, b=b))
    for form in "NC" if lower else "CN":
        x = solve_triangles("cho_solve", TriangularSolve(True, bool(lower), form, False), c, x)
    return squeeze(x, -1) if vector else x


def inv(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Invert square matrices.

    Args:
        a: square matrices, ``[..., n, n]``.
        overwrite_a: has no effect.
        check_finite: has no effect; NaN is not checked for.

    Returns:
        The inverses; infinite or NaN where a matrix is singular.

    Raises:
        TypeError: the dtype is float16 or narrower.
        ValueError: the matrices are not square.

    As SciPy's ``inv``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.inv(snp.array([[2.0, 0.0], [0.0, 4.0]]))
    Array([[0.5 , 0.  ],
           [0.  , 0.25]], dtype=float32)
    """
    return linalg_determinant.inv(matrices("inv", a, square=True))


@described_like(inv)
def det(a: ArrayLike, overwrite_a: bool = False, check_finite: bool = True) -> Array:
    """Compute the determinants of square matrices.

    Returns:
        The determinants, ``[...]``.

    As SciPy's ``det``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.det(snp.array([[1.0, 2.0], [3.0, 4.0]]))
    Array(-2., dtype=float32)
    """
    return linalg_determinant.det(matrices("det", a, square=True))
