"""The QR factorization, and the Householder reflections that it is made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import NOT_EXPORTED, Refused
from stretto._engine.core.sizes import greater, lesser
from stretto._engine.core.types import ArrayType, array_type, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import linalg
from stretto._engine.ops.bilinear import promote_dtypes, promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.ops.complex_parts import complex_, conj, imag
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.linalg import reference as linalg_reference
from stretto._engine.ops.linalg.family import (
    MatrixOperation,
    as_matrices,
    check_matrix,
    dependent_columns,
    lapack,
    result_types,
    with_unit_columns,
    without_columns,
)
from stretto._engine.ops.linalg.matrix_parts import (
    adjoint,
    identity,
    keep_diagonal,
    lower_part,
    upper_part,
)
from stretto._engine.ops.linalg.triangular import TriangularSolve
from stretto._engine.ops.shape import concatenate, slice_in_dim

_INT32 = np.dtype(np.int32)
_USE_QR: Any = Refused("reflections are an intermediate result; use qr, which has derivatives")


class Geqrf(MatrixOperation):
    """``r`` in the upper triangle, the reflections ``1 - tau v v^H`` below it, and the ``tau``."""

    multiple = True
    with_zeros = True
    jvp = _USE_QR

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        """Return the operand's type; a number for each column, or row if these are fewer."""
        shape = check_matrix("geqrf", x)
        return result_types(x, (shape[-2:], x.dtype), ((lesser(*shape[-2:]),), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.geqrf(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        if not x.type.size:
            return [x, b.splat(0, b.outs[1])]
        return lapack(b, "geqrf", (x,), b.outs, None, {0: 0})

    def onnx(self, b: Any, x: Any) -> list[Any]:
        """Write reflections as a loop over columns."""
        return linalg.written_out.reflections(b, x) if x.type.size else [x, b.splat(0, b.outs[1])]


class Geqp3(MatrixOperation):
    """Factor as ``Geqrf``, and give the order of columns, chosen so that ``r``'s diagonal falls."""

    onnx = NOT_EXPORTED
    multiple = True
    with_zeros = True
    jvp = _USE_QR

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        return (*Geqrf().infer(x), *result_types(x, ((x.shape[-1],), _INT32)))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        return linalg_reference.geqp3(x)

    def lower(self, b: Any, x: Any) -> list[Any]:
        """Call LAPACK ``geqp3``, which counts columns from 1, and takes 0 for free ones."""
        both, taus, order = b.outs
        if not x.type.size:
            return [x, b.splat(0, taus), b.iota(order.ndim - 1, order)]
        free = b.splat(0, order)
        types = (both, order, taus)
        both, order_from_one, taus = lapack(b, "geqp3", (x, free), types, None, {0: 0, 1: 1})
        return [both, taus, b.emit("subtract", order_from_one, b.splat(1, order), out=order)]


class HouseholderProduct(MatrixOperation):
    """The first columns of the product of the reflections below the diagonal of ``x``."""

    with_zeros = True
    jvp = _USE_QR

    def infer(self, x: ArrayType, taus: ArrayType) -> ArrayType:
        *batch, m, n = check_matrix("householder_product", x)
        fits = taus.ndim and taus.shape[:-1] == tuple(batch) and taus.shape[-1] <= n <= m
        if not fits or taus.dtype != x.dtype:
            raise ValueError(
                f"householder_product: expected a of no more columns than rows, and at most as "
                f"many taus as columns, with equal leading axes and one dtype; got {x} and {taus}"
            )
        return array_type(x.shape, x.dtype)

    def reference(self, x: np.ndarray, taus: np.ndarray) -> np.ndarray:
        return linalg_reference.householder_product(x, taus)

    def lower(self, b: Any, x: Any, taus: Any) -> Any:
        if not x.type.size:
            return x
        routine = "ungqr" if is_complex(x.type.dtype) else "orgqr"
        return lapack(b, routine, (x, taus), (x.type,), None, {0: 0})[0]

    def onnx(self, b: Any, x: Any, taus: Any) -> Any:
        """Write the product as a loop over reflections."""
        return linalg.written_out.product_of_reflections(b, x, taus) if x.type.size else x


class Ormqr(MatrixOperation):
    """``q c``, or ``c q`` unless ``left``, for the product ``q`` of reflections, or its adjoint.

    Linear in ``c``.
    """

    left: bool
    adjoint: bool
    with_zeros = True

    def infer(self, x: ArrayType, taus: ArrayType, c: ArrayType) -> ArrayType:
        *batch, m, n = check_matrix("ormqr", x)
        check_matrix("ormqr", c)
        size = c.shape[-2 if self.left else -1]
        fits = taus.shape[:-1] == c.shape[:-2] == tuple(batch) and taus.shape[-1] <= lesser(m, n)
        if not (fits and x.dtype == taus.dtype == c.dtype and size == m):
            raise ValueError(
                f"ormqr: expected reflections a with {size} rows, to match c, no more taus than a "
                f"has rows or columns, equal leading axes and one dtype; got {x}, {taus} and c: {c}"
            )
        return array_type(c.shape, c.dtype)

    def reference(self, x: np.ndarray, taus: np.ndarray, c: np.ndarray) -> np.ndarray:
        form = ("C" if x.dtype.kind == "c" else "T") if self.adjoint else "N"
        return linalg_reference.multiply_by_reflections(x, taus, c, self.left, form)

    def lower(self, b: Any, x: Any, taus: Any, c: Any) -> Any:
        if not (c.type.size and taus.type.size):
            return c
        routine = "unmqr" if is_complex(x.type.dtype) else "ormqr"
        count = taus.type.shape[-1]
        if count < x.type.shape[-1]:
            x = b.inline(lambda x: slice_in_dim(x, 0, count, 1, x.ndim - 1), x)
        config = {"left": self.left, "transpose": self.adjoint}
        return lapack(b, routine, (x, taus, c), (c.type,), config, {0: 2})[0]

    def onnx(self, b: Any, x: Any, taus: Any, c: Any) -> Any:
        """Write the product as a loop over reflections; from the right, of the adjoint."""
        if not (c.type.size and taus.type.size):
            return c
        if self.left:
            return linalg.written_out.apply_reflections(b, x, taus, c, self.adjoint)
        turned = b.inline(adjoint, c)
        out = linalg.written_out.apply_reflections(b, x, taus, turned, not self.adjoint)
        return b.inline(adjoint, out)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Differentiate by ``c`` alone."""
        x, taus, c = primals
        if tangents[0] is not None or tangents[1] is not None:
            raise MissingRuleError(
                "ormqr has no jvp rule by reflections, which are an intermediate result; use qr, "
                "which has derivatives, and a product"
            )
        return self(x, taus, c), self(x, taus, tangents[2])

    def transpose(self, ct: Any, x: Any, taus: Any, c: Linear) -> tuple[Any, ...]:
        """q^T ct = conj(q^H conj(ct)); from the right likewise."""
        back = Ormqr(self.left, not self.adjoint)
        if not is_complex(x.dtype):
            return None, None, back(x, taus, ct)
        return None, None, conj(back(x, taus, conj(ct)))


class Qr(MatrixOperation):
    """``q r = x`` with ``q`` of orthonormal columns: square if ``full``, else no more than rows."""

    full: bool
    multiple = True
    with_zeros = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        *_, m, n = check_matrix("qr", x)
        k = m if self.full else lesser(m, n)
        return result_types(x, ((m, k), x.dtype), ((k, n), x.dtype))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        both, taus = linalg_reference.geqrf(x)
        return _host_factors(both, taus, self.full)

    def lower(self, b: Any, x: Any) -> list[Any]:
        return b.inline_many(self.factors, x)

    def factors(self, x: Any) -> list[Any]:
        """Return the factors, by the reflections."""
        both, taus = Geqrf()(x)
        return _factors(both, taus, self.full)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Use the skew-Hermitian and the triangular part of q^H dx r^-1."""
        q, r = self(*primals)
        return (q, r), _changes(q, r, tangents[0], self.full)


class PivotedQr(MatrixOperation):
    """``q``, ``r``, and the order ``p`` of columns for which ``q r = x[:, p]``; as ``Qr``."""

    full: bool
    multiple = True
    with_zeros = True

    def infer(self, x: ArrayType) -> tuple[ArrayType, ...]:
        return (*Qr(self.full).infer(x), *result_types(x, ((x.shape[-1],), _INT32)))

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, ...]:
        both, taus, order = linalg_reference.geqp3(x)
        return (*_host_factors(both, taus, self.full), order)

    def lower(self, b: Any, x: Any) -> list[Any]:
        return b.inline_many(self.factors, x)

    def factors(self, x: Any) -> list[Any]:
        """Return the factors and the order, by the reflections."""
        both, taus, order = Geqp3()(x)
        return [*_factors(both, taus, self.full), order]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Differentiate ``Qr`` with columns in this order, which stays as it is."""
        q, r, order = self(*primals)
        place = expand_dims(order, order.ndim - 1)
        dx = take_along_axis(
            tangents[0], place, order.ndim, "promise_in_bounds", wrap_negative=False
        )
        return (q, r, order), (*_changes(q, r, dx, self.full), None)


def _host_factors(both: np.ndarray, taus: np.ndarray, full: bool) -> tuple[np.ndarray, np.ndarray]:
    """Do as ``_factors``, for NumPy arrays."""
    *_, m, n = both.shape
    k = m if full else min(m, n)
    start = np.zeros((*both.shape[:-1], k), both.dtype)
    start[..., : min(k, n)] = both[..., :k]
    if not both.size:
        start += np.eye(m, k, dtype=both.dtype)
        return start, np.triu(both[..., :k, :])
    return linalg_reference.householder_product(start, taus), np.triu(both[..., :k, :])


def _factors(both: Any, taus: Any, full: bool) -> list[Any]:
    """Return ``q`` and ``r``, from reflections."""
    *_, m, n = both.shape
    k = m if full else min(m, n)
    rows, columns = both.ndim - 2, both.ndim - 1
    r = upper_part(slice_in_dim(both, 0, k, 1, rows))
    if k < n:
        both = slice_in_dim(both, 0, k, 1, columns)
    elif k > n:
        rest = zeros_like(identity((*both.shape[:-1], k - n), both.dtype))
        both = concatenate([both, rest], -1)
    return [HouseholderProduct()(both, taus), r]


def _changes(q: Any, r: Any, dx: Any, full: bool) -> tuple[Any, Any]:
    """Return the tangents of ``q`` and ``r``."""
    # q^H dx = w r + dr, with w = q^H dq skew-Hermitian. With x_1 and
    # r_1 as many first columns as make r_1 square, c = q^H dx_1 r_1^-1 is w plus an upper triangle
    # with a real diagonal. That gives w, dr = q^H dx - w r, and dq = dx_1 r_1^-1 + q (w - c), or
    # q w where q is square. A column k of x that depends on those before it has r_kk = 0, and
    # does not turn q: c_k = 0.
    *_, m, n = dx.shape
    if full and m > n:
        raise MissingRuleError(
            f"qr has no jvp rule for the full factors of {dx.type}: the columns of q beyond "
            f"those of x are not determined by it; use mode='reduced' (full_matrices=False)"
        )
    k, last = lesser(m, n), dx.ndim - 1
    first = slice_in_dim(r, 0, k, 1, last)
    dependent = dependent_columns(first, greater(m, n))
    moved = without_columns(slice_in_dim(dx, 0, k, 1, last), dependent)
    moved = TriangularSolve(False, False, "N", False)(with_unit_columns(first, dependent), moved)
    c = matmul(adjoint(q), moved)
    strict = lower_part(c, -1)
    w = strict - adjoint(strict)
    if is_complex(dx.dtype):
        turn = imag(keep_diagonal(c))
        w = w + complex_(zeros_like(turn), turn)
    dr = matmul(adjoint(q), dx) - matmul(w, r)
    dq = matmul(q, w) if m <= n else moved + matmul(q, w - c)
    return dq, upper_part(dr)


# Functions


def geqrf(a: ArrayLike) -> tuple[Array, Array]:
    """Compute the Householder reflections of the QR factorization.

    Args:
        a: matrices, ``[..., m, n]``.

    Returns:
        An array of that shape, with ``r`` in its upper triangle and below it the vectors ``v`` of
            the reflections ``1 - tau v v^H``, without their first elements, 1; and the factors
            ``tau``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.

    Source: LAPACK, ``geqrf``.

    >>> import stretto.numpy as snp
    >>> geqrf(snp.array([[3.0], [4.0]]))
    (Array([[-5. ],
           [ 0.5]], dtype=float32), Array([1.6], dtype=float32))
    """
    return Geqrf()(as_matrices("geqrf", a))


def householder_product(a: ArrayLike, taus: ArrayLike) -> Array:
    """Multiply out the reflections that ``geqrf`` returns.

    Args:
        a: the reflections, ``[..., m, n]`` with ``m >= n``.
        taus: their factors, ``[..., k]`` with ``k <= n``.

    Returns:
        The first columns of the product, of the shape of ``a``.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: LAPACK, ``orgqr``.

    >>> import stretto.numpy as snp
    >>> householder_product(*geqrf(snp.array([[3.0], [4.0]])))
    Array([[-0.6],
           [-0.8]], dtype=float32)
    """
    matrix, factors = promote_dtypes(
        "householder_product", as_matrices("householder_product", a), taus
    )
    return HouseholderProduct()(matrix, factors)


def ormqr(
    a: ArrayLike, taus: ArrayLike, c: ArrayLike, *, left: bool = True, transpose: bool = False
) -> Array:
    """Multiply by the product ``q`` of reflections, without forming it.

    Args:
        a: the reflections, as ``geqrf`` returns them, ``[..., m, n]``.
        taus: their factors, ``[..., k]`` with ``k <= min(m, n)``.
        c: matrices; leading axes broadcast.
        left: whether to compute ``q c``, instead of ``c q``.
        transpose: whether to take the adjoint of ``q``.

    Returns:
        The product, of the shape of ``c``; with derivatives by ``c`` alone.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.
        ValueError: the shapes do not fit.

    Source: LAPACK, ``ormqr``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a, taus = st.lax.linalg.geqrf(snp.array([[3.0], [4.0]]))
    >>> st.lax.linalg.ormqr(a, taus, snp.array([[3.0], [4.0]]), transpose=True)
    Array([[-5.],
           [ 0.]], dtype=float32)
    """
    names = zip(("a", "taus", "c"), (a, taus, c), strict=True)
    values = [as_value(v, "ormqr", name) for name, v in names]
    dtype = promote_dtypes_of(*values)
    matrix, factors, other = [convert(v, dtype) for v in values]
    if not factors.ndim:
        raise ValueError(f"ormqr: taus must have rank 1 or more, got {factors.type}")
    batch = broadcast_shapes("ormqr", matrix.shape[:-2], other.shape[:-2])
    batch = broadcast_shapes("ormqr", batch, factors.shape[:-1])
    matrix, other = (broadcast_to(v, (*batch, *v.shape[-2:])) for v in (matrix, other))
    return Ormqr(bool(left), bool(transpose))(
        matrix, broadcast_to(factors, (*batch, factors.shape[-1])), other
    )


def qr(
    x: ArrayLike,
    *,
    pivoting: bool = False,
    full_matrices: bool = True,
    use_magma: bool | None = None,
) -> tuple[Array, ...]:
    """Factor matrices into orthonormal columns and an upper triangle: ``q r = x``.

    A column that depends on those before it has no direction of its own, and its diagonal element
    of ``r`` is 0, or at most ``10 max(m, n) eps`` of the column. In derivatives it counts as 0, and
    does not turn ``q``: so they are finite, and those of ``sum(abs(r)**2)`` are ``2 x``.

    Args:
        x: matrices, ``[..., m, n]``.
        pivoting: whether to choose an order ``p`` of the columns, ``q r = x[:, p]``, so that the
            magnitudes on the diagonal of ``r`` fall.
        full_matrices: whether ``q`` is square; with more rows than columns, it has no derivative.
        use_magma: has no effect; it concerns GPUs.

    Returns:
        ``(q, r)``, or ``(q, r, p)`` with int32 ``p``, ``[..., n]``; the diagonal of ``r`` is real.

    Raises:
        TypeError: the dtype is not float32, float64, complex64 or complex128.

    Source: LAPACK, ``geqrf`` and ``geqp3``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.linalg.qr(snp.array([[3.0], [4.0]]), full_matrices=False)
    (Array([[-0.6],
           [-0.8]], dtype=float32), Array([[-5.]], dtype=float32))
    """
    factor = PivotedQr if pivoting else Qr
    return factor(bool(full_matrices))(as_matrices("qr", x))
