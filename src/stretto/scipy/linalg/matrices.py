"""Structured matrices: of given elements in a fixed pattern, and named ones of a given size.

The named ones are Fourier's, Hadamard's, Helmert's, Hilbert's and Pascal's.
"""

from __future__ import annotations

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import default_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bilinear import promote_dtypes, promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import NUMERIC, broadcast_shapes, check_kind
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.shape import concatenate, pad, rev, slice_in_dim
from stretto.numpy.creation import asarray
from stretto.numpy.linalg.factorizations import floats

__all__ = ["block_diag", "circulant", "companion", "convolution_matrix", "dft", "fiedler",
           "fiedler_companion", "hadamard", "hankel", "helmert", "hilbert", "invhilbert",
           "invpascal", "leslie", "pascal", "toeplitz"]  # fmt: skip


def _vector(caller: str, x: ArrayLike, argument: str) -> Array:
    """Return the value; a number becomes a vector of one element."""
    value = as_value(x, caller, argument)
    return value if value.ndim else reshape(value, (1,))


def _at(x: Array, positions: np.ndarray) -> Array:
    """Return the elements at these positions along the last axis."""
    return x[..., positions]


def block_diag(*arrs: ArrayLike) -> Array:
    """Make a matrix with others along its diagonal, and zeros elsewhere.

    Args:
        *arrs: matrices, numbers, or vectors, which count as rows; leading axes broadcast.

    Returns:
        The matrix; without any, of the shape ``(1, 0)``.

    Raises:
        ValueError: leading axes cannot be broadcast together.

    As SciPy's ``block_diag``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.block_diag(snp.array([[1, 2]]), 3)
    Array([[1, 2, 0],
           [0, 0, 3]], dtype=int32)
    """
    if not arrs:
        return full((1, 0), 0, default_dtype("float"))
    values = [as_value(x, "block_diag", f"array {i}") for i, x in enumerate(arrs)]
    dtype = promote_dtypes_of(*values)
    blocks = [convert(x if x.ndim > 1 else reshape(x, (1, x.size)), dtype) for x in values]
    batch: tuple[int, ...] = ()
    for x in blocks:
        batch = broadcast_shapes("block_diag", batch, x.shape[:-2])
    total = sum(x.shape[-1] for x in blocks)
    zero, before, rows = full((), 0, dtype), 0, []
    for x in blocks:
        after = total - before - x.shape[-1]
        widths = [(0, 0, 0)] * (len(batch) + 1) + [(before, after, 0)]
        rows.append(pad(broadcast_to(x, (*batch, *x.shape[-2:])), zero, widths))
        before += x.shape[-1]
    return concatenate(rows, len(batch))


def toeplitz(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make a matrix with constant diagonals from its first column and row.

    Args:
        c: the first column, ``[..., n]``.
        r: the first row, ``[..., m]``, whose first element is not read; by default the conjugate of
            ``c``.

    Returns:
        The matrix, ``[..., n, m]``.

    Raises:
        ValueError: leading axes cannot be broadcast together.

    As SciPy's ``toeplitz``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.toeplitz(snp.array([1, 2]), snp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    first_column = _vector("toeplitz", c, "c")
    first_row = (
        (conj(first_column) if is_complex(first_column.dtype) else first_column)
        if r is None
        else _vector("toeplitz", r, "r")
    )
    first_column, first_row = _alike("toeplitz", first_column, first_row)
    n, m = first_column.shape[-1], first_row.shape[-1]
    values = concatenate(
        [rev(first_column, (first_column.ndim - 1,)), first_row], first_column.ndim - 1
    )
    row, column = np.indices((n, m))
    return _at(values, np.where(row >= column, n - 1 - row + column, n + column - row))


@described_like(toeplitz)
def hankel(c: ArrayLike, r: ArrayLike | None = None) -> Array:
    """Make a matrix with constant antidiagonals from its first column and last row.

    Args:
        r: the last row, ``[..., m]``, whose first element is not read; by default zeros.

    As SciPy's ``hankel``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.hankel(snp.array([1, 2]), snp.array([7, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    first_column = _vector("hankel", c, "c")
    last_row = zeros_like(first_column) if r is None else _vector("hankel", r, "r")
    first_column, last_row = _alike("hankel", first_column, last_row)
    n, m = first_column.shape[-1], last_row.shape[-1]
    row, column = np.indices((n, m))
    position = row + column  # in c, then in r without its first element
    values = concatenate([first_column, last_row], first_column.ndim - 1)
    return _at(values, position + (position >= n))


def _alike(caller: str, c: Array, r: Array) -> tuple[Array, Array]:
    """Return both with one dtype and one shape of the leading axes."""
    c, r = promote_dtypes(caller, c, r)
    batch = broadcast_shapes(caller, c.shape[:-1], r.shape[:-1])
    return broadcast_to(c, (*batch, c.shape[-1])), broadcast_to(r, (*batch, r.shape[-1]))


def circulant(c: ArrayLike) -> Array:
    """Make a matrix whose columns are one vector, each shifted down by one more.

    Args:
        c: the first column, ``[..., n]``.

    Returns:
        The matrix, ``[..., n, n]``; elements shifted past the end reappear at the top.

    As SciPy's ``circulant``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.circulant(snp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    line = _vector("circulant", c, "c")
    n = line.shape[-1]
    row, column = np.indices((n, n))
    return _at(line, (row - column) % max(n, 1))


def fiedler(a: ArrayLike) -> Array:
    """Make the matrix of the distances ``abs(a[i] - a[j])``.

    Args:
        a: numbers, ``[..., n]``.

    Returns:
        The matrix, ``[..., n, n]``.

    Raises:
        TypeError: the elements are booleans.

    As SciPy's ``fiedler``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.fiedler(snp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    line = _vector("fiedler", a, "a")
    check_kind("fiedler", NUMERIC, line.type)
    return absolute(expand_dims(line, line.ndim) - expand_dims(line, line.ndim - 1))


def leslie(f: ArrayLike, s: ArrayLike) -> Array:
    """Make a matrix with a given first row, and a given diagonal below the main one.

    Args:
        f: the first row, ``[..., n]`` with ``n > 1``.
        s: the diagonal below, ``[..., n - 1]``; leading axes broadcast.

    Returns:
        The matrix, ``[..., n, n]``.

    Raises:
        ValueError: ``f`` has fewer than two elements, or ``s`` does not have one fewer than ``f``.

    As SciPy's ``leslie``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.leslie(snp.array([1, 2, 3]), snp.array([4, 5]))
    Array([[1, 2, 3],
           [4, 0, 0],
           [0, 5, 0]], dtype=int32)
    """
    first_row, below = _vector("leslie", f, "f"), _vector("leslie", s, "s")
    first_row, below = _alike("leslie", first_row, below)
    n = first_row.shape[-1]
    if n < 2 or below.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: expected f of two or more elements and s of one fewer, got "
            f"{first_row.type} and {below.type}"
        )
    positions = np.full((n, n), 2 * n - 1)
    positions[0], positions[np.arange(1, n), np.arange(n - 1)] = (
        np.arange(n),
        np.arange(n, 2 * n - 1),
    )
    zero = zeros_like(slice_in_dim(first_row, 0, 1, 1, first_row.ndim - 1))
    return _at(concatenate([first_row, below, zero], first_row.ndim - 1), positions)


def _quotients(caller: str, a: ArrayLike) -> Array:
    """``-a[1:] / a[0]``, then 0 and 1."""
    x = floats(caller, _vector(caller, a, "a"))
    last = x.ndim - 1
    first = slice_in_dim(x, 0, 1, 1, last)
    rest = slice_in_dim(x, 1, x.shape[-1], 1, last)
    one = full(first.shape, 1, x.dtype)
    return concatenate([-(rest / first), zeros_like(one), one], last)


def companion(a: ArrayLike) -> Array:
    """Make a matrix whose eigenvalues are the roots of a polynomial.

    Args:
        a: the coefficients, that of the highest power first, ``[..., n]`` with ``n > 1``.

    Returns:
        The matrix, ``[..., n - 1, n - 1]``: its first row is ``-a[1:] / a[0]``, and ones are below
            the diagonal.

    Raises:
        ValueError: there are fewer than two coefficients.

    As SciPy's ``companion``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.companion(snp.array([2.0, 4.0, 6.0]))
    Array([[-2., -3.],
           [ 1.,  0.]], dtype=float32)
    """
    values = _quotients("companion", a)
    n = values.shape[-1] - 2
    if n < 1:
        raise ValueError(f"companion: expected two coefficients or more, got {n + 1}")
    positions = np.full((n, n), n)
    positions[0], positions[np.arange(1, n), np.arange(n - 1)] = np.arange(n), n + 1
    return _at(values, positions)


def fiedler_companion(a: ArrayLike) -> Array:
    """Make a matrix of five diagonals whose eigenvalues are the roots of a polynomial.

    Args:
        a: the coefficients, that of the highest power first, ``[..., n]`` with ``n > 0``.

    Returns:
        The matrix, ``[..., n - 1, n - 1]``.

    Raises:
        ValueError: there are no coefficients.

    As SciPy's ``fiedler_companion``. Source: Fiedler, A note on companion matrices (2003).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.fiedler_companion(snp.array([1.0, 2.0, 3.0, 4.0]))
    Array([[-2., -3.,  1.],
           [ 1.,  0.,  0.],
           [ 0., -4.,  0.]], dtype=float32)
    """
    line = _vector("fiedler_companion", a, "a")
    n = line.shape[-1] - 1
    if n < 0:
        raise ValueError("fiedler_companion: expected one coefficient or more, got none")
    values = _quotients("fiedler_companion", line)
    row, column = np.indices((n, n))
    even, offset = row % 2 == 0, column - row
    positions = np.full((n, n), n)
    positions[even & (offset == 1)] = np.arange(1, n, 2)
    positions[even & (offset == -1)] = np.arange(2, n, 2)
    positions[(even & (offset == 2)) | (~even & (offset == -2))] = n + 1
    if n:
        positions[1:2, 0], positions[0, 0] = n + 1, 0
    return _at(values, positions)


def convolution_matrix(a: ArrayLike, n: int, mode: str = "full") -> Array:
    """Make the matrix whose product with a vector is its convolution with ``a``.

    Args:
        a: the other vector, ``[..., m]``.
        n: the number of elements of the vector.
        mode: ``"full"``, ``"same"`` or ``"valid"``.

    Returns:
        The matrix, of ``m + n - 1``, ``max(m, n)`` or ``max(m, n) - min(m, n) + 1`` rows.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``a`` or ``n`` is empty, or there is no such mode.

    As SciPy's ``convolution_matrix``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.convolution_matrix(snp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    kernel, n = _vector("convolution_matrix", a, "a"), integer(n, "convolution_matrix", "n")
    m = kernel.shape[-1]
    if m < 1 or n < 1:
        raise ValueError(
            f"convolution_matrix: expected elements in a and n > 0, got {kernel.type}, {n}"
        )
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"convolution_matrix: mode must be 'full', 'same' or 'valid'; got {mode!r}"
        )
    edge = min(m, n) - 1  # the elements at each end where the vectors overlap only in part
    first = {"full": 0, "same": edge // 2, "valid": edge}[mode]
    rows = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - edge}[mode]
    row, column = np.indices((rows, n))
    position = row + first - column
    zero = zeros_like(slice_in_dim(kernel, 0, 1, 1, kernel.ndim - 1))
    values = concatenate([kernel, zero], kernel.ndim - 1)
    return _at(values, np.where((position >= 0) & (position < m), position, m))


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
    return _round_once(scipy_linalg.invhilbert(n, exact=True))


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
    return _round_once(scipy_linalg.pascal(_size("pascal", n), _kind("pascal", kind)))


@described_like(pascal)
def invpascal(n: int, kind: str | None = None) -> Array:
    """Make the inverse of ``pascal(n, kind)``.

    As SciPy's ``invpascal``.

    >>> import stretto as st
    >>> st.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _round_once(scipy_linalg.invpascal(_size("invpascal", n), _kind("invpascal", kind)))


def _round_once(exact: np.ndarray) -> Array:
    """Return integers of arbitrary size as default floats."""
    with np.errstate(over="ignore"):
        return asarray(exact.astype(default_dtype("float")))
