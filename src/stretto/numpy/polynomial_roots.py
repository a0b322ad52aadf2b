"""Roots of polynomials, and polynomials of roots."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.errors import TracedValueError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.scan import scan
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.fft import complex_dtype
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto.numpy.filled import zeros
from stretto.numpy.indices import concrete_of
from stretto.numpy.linalg.factorizations import eigvals
from stretto.numpy.manipulation import atleast_1d
from stretto.numpy.polynomials import coefficients_of, inexact_of

__all__ = ["poly", "roots"]


@rounded_once
def poly(seq_of_zeros: ArrayLike) -> Array:
    """Find the coefficients of a polynomial from its roots, or from the eigenvalues of a matrix.

    Complex where the roots are, even if they come in conjugate pairs, since that depends on values.

    Args:
        seq_of_zeros: the roots ``[n]``, or a square matrix ``[n, n]``.

    Returns:
        The coefficients ``[n + 1]``, that of the highest power first.

    Raises:
        ValueError: the array is neither of rank 1 nor a square matrix.

    As NumPy's ``poly``.

    >>> import stretto.numpy as snp
    >>> snp.poly(snp.array([1.0, 2.0]))
    Array([ 1., -3.,  2.], dtype=float32)
    """
    x = inexact_of(atleast_1d(as_value(seq_of_zeros, "poly", "seq_of_zeros")))
    if x.ndim == 2 and x.shape[0] == x.shape[1] and x.shape[0]:
        # Those of a real matrix come in conjugate pairs, so that the coefficients are real.
        coefficients = poly(eigvals(x))
        return coefficients if is_complex(x.dtype) else real(coefficients)
    if x.ndim != 1:
        raise ValueError(f"poly: expected an array of rank 1 or a square matrix, got {x.type}")
    n = x.size
    start = pad(full_like(x, 1)[:1] if n else full_like(zeros(1, x.dtype), 1), 0, [(0, n, 0)])

    def step(a: Array, zero: Array) -> tuple[Array, None]:
        # a(z) (z - zero), with the coefficients from the left
        return a - zero * pad(slice_in_dim(a, 0, n), 0, [(1, 0, 0)]), None

    return scan(step, start, x)[0]


def roots(p: ArrayLike, *, strip_zeros: bool = True) -> Array:
    """Find the roots of a polynomial: the eigenvalues of its companion matrix.

    Args:
        p: coefficients, that of the highest power first.
        strip_zeros: whether to leave out leading zeros, and to count trailing ones as roots at
            zero. While tracing it must be False, and leading zeros give NaN.

    Returns:
        The roots, complex.

    Raises:
        TracedValueError: ``p`` is traced with ``strip_zeros``.
        ValueError: ``p`` is of rank 2 or more.

    As NumPy's ``roots``; ``strip_zeros`` as JAX's.

    >>> import stretto.numpy as snp
    >>> snp.roots(snp.array([1.0, -3.0, 2.0])).real.sort()
    Array([1., 2.], dtype=float32)
    """
    x = inexact_of(coefficients_of(p, "roots", "p"))
    if not strip_zeros:
        return _eigenvalues(x)
    known = concrete_of(x)
    if known is None:
        raise TracedValueError(
            f"roots: how many zeros there are at the ends must be known, but this {x.type} is "
            f"traced: {x.origin()}. If there are none in front, pass strip_zeros=False"
        )
    nonzero_places = np.flatnonzero(known)
    if not nonzero_places.size:
        return _eigenvalues(slice_in_dim(x, 0, 0))
    first, last = int(nonzero_places[0]), int(nonzero_places[-1]) + 1
    return pad(_eigenvalues(slice_in_dim(x, first, last)), 0, [(0, x.size - last, 0)])


def _eigenvalues(x: Array) -> Array:
    """The eigenvalues of the companion matrix, whose first row holds the coefficients."""
    n = x.size - 1
    if n < 1:
        return zeros(0, complex_dtype(x.dtype))
    first = expand_dims(slice_in_dim(x, 1, None) / -x[0], 0)
    below = as_value(np.eye(n - 1, n, dtype=x.dtype))
    return eigvals(concatenate([first, below], 0))
