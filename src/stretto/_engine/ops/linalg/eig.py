"""Eigenvalues and eigenvectors of square matrices of any kind."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.types import ArrayType, array_type, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.complex_parts import complex_, conj, imag, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.index.along_axis import take_along_axis
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.eigh import inverse_differences
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    info_type,
    lapack,
    nan_where,
    result_types,
)
from stretto._engine.ops.linalg.lu import solve
from stretto._engine.ops.linalg.matrix_parts import adjoint, diagonal_of
from stretto._engine.ops.reducing.argminmax import argmax


class EigImplementation(enum.Enum):
    """Say which library finds eigenvalues: here, only LAPACK.

    >>> import stretto as st
    >>> st.lax.linalg.EigImplementation("lapack").name
    'LAPACK'
    """

    CUSOLVER = "cusolver"
    MAGMA = "magma"
    LAPACK = "lapack"


class Eig(MatrixOperation):
    """Eigenvalues, and the left and right eigenvectors that are requested; all complex.

    Vectors have norm 1 and a real element of greatest magnitude. Their derivatives are given only
    if ``differentiable``.
    """

    left: bool
    right: bool
    differentiable: bool = False
    multiple = True
    not_padded = (
        "LAPACK may put the eigenvalues of a larger one into another order: give it matrices of a "
        "fixed size; for Hermitian ones there is eigh"
    )

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        n = check_matrix("eig", x, square=True)[-1]
        dtype = np.result_type(x.dtype, np.complex64)
        return result_types(x, ((n,), dtype), *[((n, n), dtype)] * (self.left + self.right))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.eig(x, self.left, self.right)

    def lower(self, b: Any, x: Any) -> list[Any]:
        outs = b.outs
        if not x.type.size:
            return [b.splat(0, t) for t in outs]
        values = outs[0]
        vectors = array_type(x.type.shape, values.dtype)
        config = {
            "compute_left": "V" if self.left else "N",
            "compute_right": "V" if self.right else "N",
        }
        parts = array_type(values.shape, real_dtype(values.dtype))
        types = [values] if is_complex(x.type.dtype) else [parts, parts]
        *w, vl, vr, info = lapack(
            b, "geev", (x,), (*types, vectors, vectors, info_type(x.type)), config
        )
        whole = w[0] if len(w) == 1 else b.emit("complex", *w, out=values)
        results = [whole, *[vl] * self.left, *[vr] * self.right]
        return [nan_where(b, info, o) for o in results]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """First-order perturbation theory, with the vectors normalized as above."""
        # With p = v^-1 dx v: dw = diag p.
        if (self.left or self.right) and not self.differentiable:
            raise MissingRuleError(
                "eig has no jvp rule where eigenvectors are computed: their phases are LAPACK's "
                "choice, which a derivative would depend on. For eigenvalues use linalg.eigvals; "
                "if no phase matters, lax.linalg.eig(..., enable_eigvec_derivs=True)"
            )
        (x,), (dx,) = primals, tangents
        w, *vectors, v = Eig(self.left, True, True)(x)
        dx = convert(dx, w.dtype)
        p = solve(v, matmul(dx, v))
        outs, changes = [w, *vectors], [diagonal_of(p)]
        for u in vectors:  # the left ones: right vectors of x^H, of values conj(w)
            changes.append(_change(u, conj(w), solve(u, matmul(adjoint(dx), u))))
        if self.right:
            outs.append(v)
            changes.append(_change(v, w, p))
        return tuple(outs), tuple(changes)


def _change(v: Any, w: Any, p: Any) -> Any:
    """Change vectors by v f p with f[i,j] = 1 / (w[j] - w[i]), plus multiples of themselves.

    The multiples keep each vector's norm, and its element of greatest magnitude real.
    """
    dv = matmul(v, p * inverse_differences(w))
    rows = v.ndim - 2
    if not v.size:
        return dv
    norm = reduce_sum(real(conj(v) * dv), (rows,))
    place = expand_dims(argmax(absolute(v), rows, np.int32), rows)
    turn = imag(take_along_axis(dv, place, rows)) / real(take_along_axis(v, place, rows))
    return dv - v * complex_(expand_dims(norm, rows), turn)


def eig(
    x: ArrayLike,
    *,
    compute_left_eigenvectors: bool = True,
    compute_right_eigenvectors: bool = True,
    enable_eigvec_derivs: bool = False,
    implementation: EigImplementation | None = None,
    use_magma: bool | None = None,
) -> list[Array]:
    """Compute the eigenvalues and eigenvectors of square matrices.

    Eigenvalues have derivatives where they differ.

    Args:
        x: square matrices, ``[..., n, n]``.
        compute_left_eigenvectors: whether to return ``vl``.
        compute_right_eigenvectors: whether to return ``vr``.
        enable_eigvec_derivs: whether eigenvectors have derivatives.
        implementation: LAPACK's, or None.
        use_magma: has no effect; it concerns GPUs.

    Returns:
        ``[w, vl, vr]``, complex, the values in no particular order. The columns of ``vr`` have
            ``x v = w v``, those of ``vl`` ``v^H x = w v^H``, norm 1, and a real element of
            greatest magnitude. NaN for each matrix with which LAPACK fails.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the matrices are not square.
        NotImplementedError: ``implementation`` is not LAPACK's.
        MissingRuleError: a derivative is not enabled.

    Source: LAPACK, ``geev``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> w, vr = st.lax.linalg.eig(
    ...     snp.array([[0.0, 1.0], [-1.0, 0.0]]), compute_left_eigenvectors=False
    ... )
    >>> w
    Array([0.+1.j, 0.-1.j], dtype=complex64)
    """
    if implementation not in (None, EigImplementation.LAPACK):
        raise NotImplementedError(
            f"eig: implementation must be EigImplementation.LAPACK or None, got {implementation}"
        )
    op = Eig(
        bool(compute_left_eigenvectors),
        bool(compute_right_eigenvectors),
        bool(enable_eigvec_derivs),
    )
    return list(op(as_matrices("eig", x, square=True)))
