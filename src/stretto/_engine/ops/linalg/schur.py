"""The Schur and the Hessenberg form of square matrices."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.primitive import Refused
from stretto._engine.core.types import ArrayType, array_type, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
    result_types,
)
from stretto._engine.ops.linalg.matrix_parts import adjoint, upper_part
from stretto._engine.ops.linalg.sylvester import TriangularSylvester

_NO_DERIVATIVE: Any = Refused(
    "reflections are an intermediate result; differentiate what is computed with them, as eigvals, "
    "solve or scipy.linalg.sqrtm"
)


class Schur(MatrixOperation):
    """``t``, and the unitary ``z`` if ``vectors``, of ``z t z^H = x``.

    ``t`` is upper triangular; for a real ``x`` it has blocks of two rows on the diagonal, for pairs
    of complex eigenvalues. Complex ones have derivatives if ``differentiable``, for functions whose
    results do not depend on the phases of ``z``.
    """

    vectors: bool
    differentiable: bool = False
    multiple = True
    not_padded = (
        "LAPACK may put the eigenvalues of a larger one into another order: give it matrices of a "
        "fixed size; for Hermitian ones there is eigh"
    )

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("schur", x, square=True)[-1]
        return result_types(x, *[((n, n), x.dtype)] * (1 + self.vectors))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.gees(x, self.vectors)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        values = array_type(x.type.shape[:-1], x.type.dtype)
        count = info_type(x.type)
        eigenvalues = [values] if is_complex(x.type.dtype) else [values, values]
        types = (x.type, x.type, *eigenvalues, count, count)
        config = {"mode": "V" if self.vectors else "N", "sort": "N"}
        t, z, *_, info = lapack(b, "gees", (x,), types, config, {0: 0})
        return [nan_where(b, info, o) for o in (t, z)[: len(outs)]]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """By the skew-Hermitian w = z^H dz that keeps t triangular."""
        # With p = z^H dx z: dt = p + t w - w t. Strictly below the diagonal that is 0, and w's
        # upper part has no effect there: so its strictly lower part l solves t l - l t = -p.
        (x,), (dx,) = primals, tangents
        if not (self.differentiable and is_complex(x.dtype)):
            raise MissingRuleError(
                "schur has no jvp rule: phases and the order of eigenvalues are LAPACK's choice, "
                "which a derivative would depend on. Differentiate what is computed with it, as "
                "eigvals, or sqrtm, funm and solve_sylvester of scipy.linalg"
            )
        t, z = Schur(True, True)(x)
        p = matmul(adjoint(z), matmul(dx, z))
        lower = TriangularSylvester("lower")(t, -t, -p)
        w = lower - adjoint(lower)
        dt = upper_part(p + matmul(t, w) - matmul(w, t))
        return ((t, z), (dt, matmul(z, w))) if self.vectors else ((t,), (dt,))


class Hessenberg(MatrixOperation):
    """``h``, zero below the first subdiagonal, with reflections there; and their factors."""

    multiple = True
    in_blocks = True
    jvp = _NO_DERIVATIVE

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("hessenberg", x, square=True)[-1]
        return result_types(x, ((n, n), x.dtype), ((max(n - 1, 0),), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.gehrd(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        config = {"low": 1, "high": x.type.shape[-1]}
        *results, info = lapack(b, "gehrd", (x,), (*outs, info_type(x.type)), config, {0: 0})
        return [nan_where(b, info, o) for o in results]


# Functions


def schur(
    x: ArrayLike,
    *,
    compute_schur_vectors: bool = True,
    sort_eig_vals: bool = False,
    select_callable: Any = None,
) -> list[Array]:
    """Compute the Schur form of square matrices: ``z t z^H = x``.

    Args:
        x: square matrices, ``[..., n, n]``.
        compute_schur_vectors: whether to return ``z`` too.
        sort_eig_vals: must be False.
        select_callable: must be None.

    Returns:
        ``[t, z]`` or ``[t]``: ``z`` unitary, ``t`` upper triangular; of real matrices it is real,
            with a block of two rows for each pair of complex eigenvalues. NaN for each matrix with
            which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.
        NotImplementedError: eigenvalues are to be sorted.

    Source: LAPACK, ``gees``. There are no derivatives, since phases and order are LAPACK's choice.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> t, z = st.lax.linalg.schur(snp.array([[2.0, 1.0], [0.0, 3.0]]))
    >>> t
    Array([[2., 1.],
           [0., 3.]], dtype=float32)
    """
    if sort_eig_vals or select_callable is not None:
        raise NotImplementedError(
            "schur: eigenvalues cannot be sorted; leave out sort_eig_vals and select_callable"
        )
    return list(Schur(bool(compute_schur_vectors))(as_matrices("schur", x, square=True)))


def hessenberg(a: ArrayLike) -> tuple[Array, Array]:
    """Compute the Hessenberg form of square matrices, with its reflections.

    Args:
        a: square matrices, ``[..., n, n]``.

    Returns:
        An array of that shape, with the form in its upper triangle and first subdiagonal, and below
            these the vectors of the reflections ``1 - tau v v^H``; and the ``tau``, ``[..., n -
            1]``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.

    Source: LAPACK, ``gehrd``. There are no derivatives.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.hessenberg(snp.array([[2.0, 1.0], [4.0, 3.0]]))
    (Array([[2., 1.],
           [4., 3.]], dtype=float32), Array([0.], dtype=float32))
    """
    return Hessenberg()(as_matrices("hessenberg", a, square=True))
