"""``stretto.scipy.sparse.linalg``: linear systems solved by products with their matrix.

Each method works on all elements of the right-hand side as one vector, inside one
``custom_linear_solve``: derivatives are solutions of such systems again, and the iterations
are not differentiated.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias

import ml_dtypes
import numpy as np

from stretto._engine.api.autodiff.linear_functions import linear_transpose
from stretto._engine.core import tree
from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value, as_value
from stretto._engine.core.lazy import exports
from stretto._engine.core.types import as_dtype, inexact_dtype, is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Tree
from stretto._engine.higher_order.implicit import custom_linear_solve
from stretto._engine.higher_order.loops import fori_loop
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.bilinear import promote_dtypes_of
from stretto._engine.ops.comparison import eq, full, where, zeros_like
from stretto._engine.ops.complex_parts import conj, real
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.exponential import sqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.index.dynamic import dynamic_index_in_dim, dynamic_update_index_in_dim
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.linalg.svd import Pinv
from stretto._engine.ops.shape import concatenate, slice_in_dim

__all__ = ["bicgstab", "cg", "gmres"]

_INT32 = np.dtype(np.int32)

Product: TypeAlias = Callable[[Tree], Tree]
"""Multiplies a vector by a matrix; a user's, a tree."""


class SupportsMatmul(Protocol):
    """An object that multiplies an array by ``@``."""

    def __matmul__(self, other: Array, /) -> Array:
        """Return the product."""
        ...


Matrix: TypeAlias = Array | np.ndarray | SupportsMatmul | Product
"""A matrix as users give it."""
Solution: TypeAlias = tuple[Array, Array, Array]
"""x, the number of steps, and the norm of the residual."""
Method: TypeAlias = Callable[[Product, Array, Array, Product, Array, int], Solution]
"""Called with the matrix, b, x0, M, the residual to reach, and the largest number of steps."""


# The methods, for vectors


def _dot(x: Array, y: Array) -> Array:
    return matmul(conj(x) if is_complex(x.dtype) else x, y)


def _norm(x: Array) -> Array:
    square = _dot(x, x)
    return sqrt(real(square) if is_complex(x.dtype) else square)


def _by_cg(a: Product, b: Array, x0: Array, m: Product, limit: Array, steps: int) -> Solution:
    """Iterate as Hestenes and Stiefel (1952)."""

    def unfinished(state: tuple[Array, ...]) -> Array:
        _, r, *_, k = state
        return (_norm(r) > limit) & (k < steps)

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, p, gamma, k = state
        ap = a(p)
        alpha = gamma / _dot(p, ap)
        x, r = x + alpha * p, r - alpha * ap
        z = m(r)
        next_gamma = _dot(r, z)
        return x, r, z + (next_gamma / gamma) * p, next_gamma, k + 1

    r = b - a(x0)
    z = m(r)
    start = (x0, r, z, _dot(r, z), full((), 0, _INT32))
    x, r, _, _, k = while_loop(unfinished, step, start)
    return x, k, _norm(r)


def _by_bicgstab(a: Product, b: Array, x0: Array, m: Product, limit: Array, steps: int) -> Solution:
    """Iterate as Van der Vorst (1992); ends early where a divisor is zero."""

    def unfinished(state: tuple[Array, ...]) -> Array:
        _, r, *_, broken, k = state
        return (_norm(r) > limit) & (k < steps) & ~broken

    def step(state: tuple[Array, ...]) -> tuple[Array, ...]:
        x, r, p, q, rho, alpha, omega, _, k = state
        next_rho = _dot(shadow, r)
        p = r + (next_rho / rho) * (alpha / omega) * (p - omega * q)
        step_p = m(p)
        q = a(step_p)
        alpha = next_rho / _dot(shadow, q)
        half = r - alpha * q
        done = _norm(half) <= limit
        step_s = m(half)
        t = a(step_s)
        omega = where(done, 0, _dot(t, half) / where(done, 1, _dot(t, t)))
        x = x + alpha * step_p + omega * step_s
        broken = eq(next_rho, 0) | eq(alpha, 0) | (eq(omega, 0) & ~done)
        return x, half - omega * t, p, q, next_rho, alpha, omega, broken, k + 1

    r = shadow = b - a(x0)
    one = full((), 1, b.dtype)
    zero = zeros_like(b)
    start = (x0, r, zero, zero, one, one, one, full((), False, np.dtype(bool)), full((), 0, _INT32))
    x, r, *_, k = while_loop(unfinished, step, start)
    return x, k, _norm(r)


def _by_gmres(restart: int) -> Method:
    """Iterate as Saad and Schultz (1986), preconditioned from the right, with restarts.

    The basis is orthogonalized twice; least squares are solved by a pseudo-inverse, so that a basis
    that ends early does no harm.
    """

    def method(a: Product, b: Array, x0: Array, m: Product, limit: Array, steps: int) -> Solution:
        n = b.shape[0]
        size = min(restart, n)
        eps = float(ml_dtypes.finfo(real_dtype(b.dtype)).eps)

        def arnoldi(j: Array, state: tuple[Array, ...]) -> tuple[Array, ...]:
            basis, projected = state
            w = a(m(dynamic_index_in_dim(basis, j, 0, keepdims=False)))
            before = _norm(w)
            h = full((size + 1,), 0, b.dtype)
            for _ in range(2):
                part = matmul(conj(basis) if is_complex(b.dtype) else basis, w)
                w, h = w - matmul(part, basis), h + part
            rest = _norm(w)
            is_exhausted = rest <= eps * before
            w = where(is_exhausted, 0, w / convert(where(is_exhausted, 1, rest), b.dtype))
            h = dynamic_update_index_in_dim(
                h, convert(where(is_exhausted, 0, rest), b.dtype), j + 1, 0
            )
            basis = dynamic_update_index_in_dim(basis, w, j + 1, 0)
            return basis, dynamic_update_index_in_dim(projected, h, j, 1)

        def unfinished(state: tuple[Array, ...]) -> Array:
            _, r, k = state
            return (_norm(r) > limit) & (k < steps)

        def cycle(state: tuple[Array, ...]) -> tuple[Array, ...]:
            x, r, k = state
            beta = _norm(r)
            first = expand_dims(r / convert(beta, b.dtype), 0)
            basis = concatenate([first, full((size, n), 0, b.dtype)], 0)
            projected = full((size + 1, size), 0, b.dtype)
            basis, projected = fori_loop(0, size, arnoldi, (basis, projected))
            inverse = Pinv(False)(projected, full((), eps, real_dtype(b.dtype)))
            y = inverse[:, 0] * convert(beta, b.dtype)
            x = x + m(matmul(y, slice_in_dim(basis, 0, size, 1, 0)))
            return x, b - a(x), k + 1

        start = (x0, b - a(x0), full((), 0, _INT32))
        x, r, k = while_loop(unfinished, cycle, start)
        return x, k, _norm(r)

    return method


# What the three share


def _product(caller: str, argument: str, matrix: Matrix) -> Product:
    """Return the function that multiplies by a matrix."""
    x: Any = matrix
    if callable(x):
        return x
    if isinstance(x, (list, tuple)) or not hasattr(x, "__matmul__"):
        raise TypeError(
            f"{caller}: {argument} must be a function, a square matrix of floating-point numbers, "
            f"or an object with __matmul__; got {type(x).__name__}"
        )
    shape = getattr(x, "shape", None)
    if shape is not None and (len(shape) != 2 or shape[0] != shape[1]):
        raise ValueError(f"{caller}: {argument} must be a square matrix, got shape {tuple(shape)}")
    return lambda v: x @ v


def _elements(caller: str, A: Matrix) -> list[Array]:
    """Return what the matrix adds to the dtype: itself, or an element of its ``dtype``, if any."""
    if isinstance(A, (Value, np.ndarray)):
        return [as_value(A, caller, "A")]
    dtype = None if callable(A) else getattr(A, "dtype", None)
    return [] if dtype is None else [full((), 0, as_dtype(dtype))]


def _solve(
    caller: str,
    method: Method,
    A: Matrix,
    b: Tree,
    x0: Tree | None,
    tol: ArrayLike,
    atol: ArrayLike,
    maxiter: int | None,
    M: Matrix | None,
    symmetric: bool,
) -> tuple[Tree, Array]:
    leaves, structure = tree.flatten(b)
    leaves = [as_value(v, caller, "a leaf of b") for v in leaves]
    matrix = _product(caller, "A", A)
    dtypes = [*leaves, *_elements(caller, A)]
    dtype = inexact_dtype(promote_dtypes_of(*dtypes)) if dtypes else np.dtype(np.float32)
    if any(is_complex(v.dtype) != is_complex(dtype) for v in leaves) and len(leaves) > 1:
        raise TypeError(f"{caller}: the leaves of b must be all real or all complex")
    kinds = [dtype if len(leaves) == 1 else inexact_dtype(v.dtype) for v in leaves]
    leaves = [convert(v, t) for v, t in zip(leaves, kinds, strict=True)]
    size = sum(v.size for v in leaves)
    if isinstance(A, (Value, np.ndarray)) and [v.shape for v in leaves] != [(A.shape[0],)]:
        shapes = ", ".join(str(v.type) for v in leaves)
        raise ValueError(f"{caller}: b must be a vector of {A.shape[0]} elements, got {shapes}")
    steps = 10 * size if maxiter is None else integer(maxiter, caller, "maxiter", 0)

    def vector(x: Tree, what: str) -> Array:
        values, other = tree.flatten(x)
        values = [as_value(v, caller, what) for v in values]
        if other != structure or any(
            v.shape != w.shape for v, w in zip(values, leaves, strict=True)
        ):
            raise ValueError(
                f"{caller}: {what} must have the structure and shapes of b; got "
                f"{[str(v.type) for v in values]}, expected {[str(v.type) for v in leaves]}"
            )
        parts = [convert(reshape(v, (v.size,)), dtype) for v in values]
        return concatenate(parts, 0) if len(parts) != 1 else parts[0]

    def unravel(x: Array) -> Tree:
        parts, start = [], 0
        for v in leaves:
            part = slice_in_dim(x, start, start + v.size, 1, 0)
            parts.append(convert(reshape(part, v.shape), v.dtype))
            start += v.size
        return tree.unflatten(structure, parts)

    def flat(fun: Product, what: str) -> Product:
        return lambda x: vector(fun(unravel(x)), what)

    def solver(
        first: Tree | None, conditioner: Product
    ) -> Callable[[Product, Tree], tuple[Tree, Array]]:
        def solve(matvec: Product, b: Tree) -> tuple[Tree, Array]:
            right = vector(b, "b")
            length = _norm(right)
            limit = maximum(convert(as_value(tol, caller, "tol"), length.dtype) * length, atol)
            begin = zeros_like(right) if first is None else vector(first, "x0")
            x, k, residual = method(
                flat(matvec, "A(x)"), right, begin, flat(conditioner, "M(x)"), limit, steps
            )
            return unravel(x), where(residual <= limit, 0, maximum(k, 1))

        return solve

    start = None if x0 is None else tree.map(stop_gradient, x0)
    conditioner = (lambda x: x) if M is None else _product(caller, "M", M)

    def transposed_conditioner(r: Tree) -> Tree:
        return linear_transpose(conditioner, r)(r)[0]

    real_symmetric = symmetric and not is_complex(dtype)
    if not size:
        return tree.unflatten(structure, leaves), full((), 0, _INT32)
    return custom_linear_solve(
        matrix,
        tree.unflatten(structure, leaves),
        solver(start, conditioner),
        solver(None, conditioner if M is None or real_symmetric else transposed_conditioner),
        symmetric=real_symmetric,
        has_aux=True,
    )


@rounded_once
def cg(
    A: Matrix,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Tree, Array]:
    """Solve ``A x = b`` by conjugate gradients, for Hermitian positive definite ``A``.

    Args:
        A: a square matrix, a function that multiplies by one, or an object that does so by ``@``.
        b: an array, or a tree of arrays.
        x0: where to start, a tree like ``b``; by default zero.
        tol: the search ends when the norm of ``b - A x`` is at most ``max(tol * norm(b), atol)``.
        atol: see ``tol``.
        maxiter: the largest number of steps; by default ten for each element of ``b``.
        M: a preconditioner, of the same kinds as ``A``: an approximate inverse of ``A``, Hermitian
            and positive definite; by default none.

    Returns:
        ``(x, info)``: a tree like ``b``, and an int32, 0 where the search converged, else the
            number of steps.

    Raises:
        TypeError: ``A`` is none of these, or returns something unlike ``b``.
        ValueError: the shapes do not match.

    As SciPy's ``cg``. Derivatives, forward and reverse, are solutions by the same method.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[4.0, 1.0], [1.0, 3.0]])
    >>> x, info = st.scipy.sparse.linalg.cg(a, snp.array([5.0, 4.0]))
    >>> x.round(4), int(info)
    (Array([1., 1.], dtype=float32), 0)
    """
    return _solve("cg", _by_cg, A, b, x0, tol, atol, maxiter, M, True)


@rounded_once
@described_like(cg)
def bicgstab(
    A: Matrix,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    maxiter: int | None = None,
    M: Matrix | None = None,
) -> tuple[Tree, Array]:
    """Solve ``A x = b`` by stabilised biconjugate gradients, for any square ``A``.

    Args:
        M: a preconditioner, of the same kinds as ``A``: an approximate inverse of ``A``; by default
            none.

    Returns:
        ``(x, info)``, as for ``cg``; the search also ends where a divisor is zero, with ``info``
            the number of steps.

    As SciPy's ``bicgstab``. Derivatives, forward and reverse, are solutions by the same method.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[4.0, 1.0], [0.0, 3.0]])
    >>> st.scipy.sparse.linalg.bicgstab(a, snp.array([5.0, 3.0]))[0].round(4)
    Array([1., 1.], dtype=float32)
    """
    return _solve("bicgstab", _by_bicgstab, A, b, x0, tol, atol, maxiter, M, False)


@described_like(bicgstab)
def gmres(
    A: Matrix,
    b: Tree,
    x0: Tree | None = None,
    *,
    tol: ArrayLike = 1e-5,
    atol: ArrayLike = 0.0,
    restart: int = 20,
    maxiter: int | None = None,
    M: Matrix | None = None,
    solve_method: str = "batched",
) -> tuple[Tree, Array]:
    """Solve ``A x = b`` by generalized minimal residuals, for any square ``A``.

    Args:
        restart: how many products with ``A`` span the space that each cycle searches.
        maxiter: the largest number of cycles; by default ten for each element of ``b``.
        solve_method: ``"batched"`` or ``"incremental"``; has no effect.

    Returns:
        ``(x, info)``, as for ``cg``, with ``info`` a number of cycles.

    Raises:
        TypeError: ``A`` is none of these, or returns something unlike ``b``.
        ValueError: the shapes do not match, ``restart`` is not positive, or there is no such
            method.

    As SciPy's ``gmres``. Derivatives, forward and reverse, are solutions by the same method.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> a = snp.array([[4.0, 1.0], [0.0, 3.0]])
    >>> st.scipy.sparse.linalg.gmres(a, snp.array([5.0, 3.0]))[0].round(4)
    Array([1., 1.], dtype=float32)
    """
    if solve_method not in ("batched", "incremental"):
        raise ValueError(
            f"gmres: solve_method must be 'batched' or 'incremental', got {solve_method!r}"
        )
    restart = integer(restart, "gmres", "restart")
    if restart < 1:
        raise ValueError(f"gmres: restart must be 1 or more, got {restart}")
    return _solve("gmres", _by_gmres(restart), A, b, x0, tol, atol, maxiter, M, False)


exports(__name__)
