"""Named matrices of a given size: Fourier's, Hadamard's, Helmert's, Hilbert's and Pascal's."""

from __future__ import annotations

import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import default_dtype
from stretto._engine.core.typing import Array, DTypeLike
from stretto.numpy.creation import asarray

__all__ = ["dft", "hadamard", "helmert", "hilbert", "invhilbert", "invpascal", "pascal"]


scipy_linalg = LazyModule("scipy.linalg")


def _size(caller: str, n: int, least: int = 0) -> int:
    n = integer(n, caller, "n")
    if n < least:
        raise ValueError(f"{caller}: n must be {least} or more, got {n}")
    return n


def _kind(caller: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"{caller}: kind must be 'symmetric', 'lower' or 'upper'; got {kind!r}")
    return kind or "symmetric"


def dft(n: int, scale: str | None = None, *, dtype: DTypeLike | None = None) -> Array:
    """Make the matrix of the discrete Fourier transform: ``exp(-2 pi i j k / n)``.

    Args:
        n: the number of rows.
        scale: None; ``"sqrtn"`` to divide by the root of ``n``, so that the matrix is unitary; or
            ``"n"`` to divide by ``n``.
        dtype: the dtype; by default the default complex one.

    Returns:
        The matrix, ``[n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative, or there is no such scale.

    As SciPy's ``dft``.

    >>> import stretto as st
    >>> st.scipy.linalg.dft(2).real
    Array([[ 1.,  1.],
           [ 1., -1.]], dtype=float32)
    """
    n = _size("dft", n)
    if scale not in (None, "sqrtn", "n"):
        raise ValueError(f"dft: scale must be None, 'sqrtn' or 'n'; got {scale!r}")
    turns = np.outer(np.arange(n), np.arange(n)) % max(n, 1) / max(n, 1)
    divisor = {None: 1.0, "sqrtn": max(n, 1) ** 0.5, "n": max(n, 1)}[scale]
    return asarray(
        np.exp(-2j * np.pi * turns) / divisor, default_dtype("complex") if dtype is None else dtype
    )


def hadamard(n: int, dtype: DTypeLike = int) -> Array:
    """Make Hadamard's matrix by Sylvester's construction: orthogonal rows of 1 and -1.

    Args:
        n: the number of rows, a power of 2.
        dtype: the dtype; by default the default integer.

    Returns:
        The matrix, ``[n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is not a power of 2.

    As SciPy's ``hadamard``.

    >>> import stretto as st
    >>> st.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _size("hadamard", n, 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}")
    return asarray(scipy_linalg.hadamard(n, np.int8), dtype)


def helmert(n: int, full: bool = False) -> Array:
    """Make orthonormal contrasts: the rows of Helmert's matrix.

    Args:
        n: the number of columns.
        full: whether to include the first row, which is constant.

    Returns:
        The matrix, ``[n - 1, n]``, or ``[n, n]`` if ``full``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is not positive.

    As SciPy's ``helmert``.

    >>> import stretto as st
    >>> st.scipy.linalg.helmert(2).round(4)
    Array([[ 0.7071, -0.7071]], dtype=float32)
    """
    return asarray(scipy_linalg.helmert(_size("helmert", n, 1), full), default_dtype("float"))


def hilbert(n: int) -> Array:
    """Make Hilbert's matrix, ``1 / (i + j + 1)``.

    Args:
        n: the number of rows.

    Returns:
        The matrix, ``[n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative.

    As SciPy's ``hilbert``.

    >>> import stretto as st
    >>> st.scipy.linalg.hilbert(2).round(4)
    Array([[1.    , 0.5   ],
           [0.5   , 0.3333]], dtype=float32)
    """
    return asarray(scipy_linalg.hilbert(_size("hilbert", n)), default_dtype("float"))


@described_like(hilbert)
def invhilbert(n: int) -> Array:
    """Make the inverse of Hilbert's matrix.

    Returns:
        The matrix, ``[n, n]``: integers, as floats, rounded once.

    As SciPy's ``invhilbert``.

    >>> import stretto as st
    >>> st.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    return _rounded_once(scipy_linalg.invhilbert(n, exact=True))


def pascal(n: int, kind: str | None = None) -> Array:
    """Make Pascal's triangle as a matrix.

    Args:
        n: the number of rows.
        kind: ``"symmetric"``, the default, ``"lower"`` or ``"upper"``.

    Returns:
        The matrix, ``[n, n]``: integers, as floats, rounded once.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative, or there is no such kind.

    As SciPy's ``pascal``.

    >>> import stretto as st
    >>> st.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    return _rounded_once(scipy_linalg.pascal(_size("pascal", n), _kind("pascal", kind)))


@described_like(pascal)
def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse of ``pascal(n, kind)``.

    As SciPy's ``invpascal``.

    >>> import stretto as st
    >>> st.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _rounded_once(scipy_linalg.invpascal(_size("invpascal", n), _kind("invpascal", kind)))


def _rounded_once(exact: np.ndarray) -> Array:
    """Integers of arbitrary size, as default floats."""
    with np.errstate(over="ignore"):
        return asarray(exact.astype(default_dtype("float")))
