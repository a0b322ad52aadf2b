"""Matrices of a certain structure.

Those of given elements hold them in a pattern, known beforehand, of places.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.lazy import LazyModule
from stretto._engine.core.types import default_dtype, is_complex
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.bilinear import promote_dtypes, promote_dtypes_of
from stretto._engine.ops.broadcast import broadcast_to, expand_dims, reshape
from stretto._engine.ops.comparison import full, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.shape import concatenate, pad, rev, slice_in_dim
from stretto.numpy.creation import asarray
from stretto.numpy.linalg.arguments import floats

__all__ = [
    "block_diag",
    "circulant",
    "companion",
    "convolution_matrix",
    "dft",
    "fiedler",
    "fiedler_companion",
    "hadamard",
    "hankel",
    "helmert",
    "hilbert",
    "invhilbert",
    "invpascal",
    "leslie",
    "pascal",
    "toeplitz",
]

scipy_linalg = LazyModule("scipy.linalg")


def _line(who: str, x: Any, argument: str) -> Any:
    """The value, a number as one element."""
    x = as_value(x, who, argument)
    return x if x.ndim else reshape(x, (1,))


def _patterned(x: Any, places: np.ndarray) -> Any:
    """The elements of the last axis at these places."""
    return x[..., places]


def block_diag(*arrs: Any) -> Any:
    """The matrix with these along its diagonal, and zeros elsewhere.

    Each is a number, a vector, which is taken as a row, or a matrix; leading axes broadcast.
    Without any the shape is ``(1, 0)``.

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


def toeplitz(c: Any, r: Any = None) -> Any:
    """The matrix of equal diagonals whose first column is ``c`` and first row ``r``.

    ``c`` is ``[..., n]``, ``r`` ``[..., m]``, by default the conjugate of ``c``; its first element
    is not read; leading axes broadcast; the result is ``[..., n, m]``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.toeplitz(snp.array([1, 2]), snp.array([1, 5, 6]))
    Array([[1, 5, 6],
           [2, 1, 5]], dtype=int32)
    """
    c = _line("toeplitz", c, "c")
    r = (conj(c) if is_complex(c.dtype) else c) if r is None else _line("toeplitz", r, "r")
    c, r = _of_one_batch("toeplitz", c, r)
    n, m = c.shape[-1], r.shape[-1]
    values = concatenate([rev(c, (c.ndim - 1,)), r], c.ndim - 1)
    row, column = np.indices((n, m))
    return _patterned(values, np.where(row >= column, n - 1 - row + column, n + column - row))


def hankel(c: Any, r: Any = None) -> Any:
    """The matrix of equal antidiagonals whose first column is ``c`` and last row ``r``.

    ``c`` is ``[..., n]``, ``r`` ``[..., m]``, by default zeros like ``c``; its first element is not
    read; leading axes broadcast; the result is ``[..., n, m]``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.hankel(snp.array([1, 2]), snp.array([7, 5, 6]))
    Array([[1, 2, 5],
           [2, 5, 6]], dtype=int32)
    """
    c = _line("hankel", c, "c")
    r = zeros_like(c) if r is None else _line("hankel", r, "r")
    c, r = _of_one_batch("hankel", c, r)
    n, m = c.shape[-1], r.shape[-1]
    row, column = np.indices((n, m))
    place = row + column  # in c, then in r without its first
    values = concatenate([c, r], c.ndim - 1)
    return _patterned(values, place + (place >= n))


def _of_one_batch(who: str, c: Any, r: Any) -> tuple[Any, Any]:
    c, r = promote_dtypes(who, c, r)
    batch = broadcast_shapes(who, c.shape[:-1], r.shape[:-1])
    return broadcast_to(c, (*batch, c.shape[-1])), broadcast_to(r, (*batch, r.shape[-1]))


def circulant(c: Any) -> Any:
    """The matrix whose columns are ``c``, each moved down by one more, around the end.

    ``c`` is ``[..., n]``, the result ``[..., n, n]``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.circulant(snp.array([1, 2, 3]))
    Array([[1, 3, 2],
           [2, 1, 3],
           [3, 2, 1]], dtype=int32)
    """
    c = _line("circulant", c, "c")
    n = c.shape[-1]
    row, column = np.indices((n, n))
    return _patterned(c, (row - column) % max(n, 1))


def fiedler(a: Any) -> Any:
    """The distances ``|a[i] - a[j]|``.

    ``a`` is ``[..., n]``, the result ``[..., n, n]``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.fiedler(snp.array([1, 4]))
    Array([[0, 3],
           [3, 0]], dtype=int32)
    """
    a = _line("fiedler", a, "a")
    return absolute(expand_dims(a, a.ndim) - expand_dims(a, a.ndim - 1))


def leslie(f: Any, s: Any) -> Any:
    """The matrix with ``f`` for its first row and ``s`` below its diagonal.

    ``f`` is ``[..., n]`` with ``n > 1``, ``s`` ``[..., n - 1]``, the result ``[..., n, n]``;
    leading axes broadcast. Raises ``ValueError`` for other sizes.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.leslie(snp.array([1, 2, 3]), snp.array([4, 5]))
    Array([[1, 2, 3],
           [4, 0, 0],
           [0, 5, 0]], dtype=int32)
    """
    f, s = _line("leslie", f, "f"), _line("leslie", s, "s")
    f, s = _of_one_batch("leslie", f, s)
    n = f.shape[-1]
    if n < 2 or s.shape[-1] != n - 1:
        raise ValueError(
            f"leslie: expected f of two or more elements and s of one less, got {f.type} and "
            f"{s.type}"
        )
    places = np.full((n, n), 2 * n - 1)
    places[0], places[np.arange(1, n), np.arange(n - 1)] = np.arange(n), np.arange(n, 2 * n - 1)
    zero = zeros_like(slice_in_dim(f, 0, 1, 1, f.ndim - 1))
    return _patterned(concatenate([f, s, zero], f.ndim - 1), places)


def _quotients(who: str, a: Any) -> Any:
    """``-a[1:] / a[0]``, then 0 and 1."""
    a = floats(who, _line(who, a, "a"))
    last = a.ndim - 1
    first = slice_in_dim(a, 0, 1, 1, last)
    rest = slice_in_dim(a, 1, a.shape[-1], 1, last)
    one = full(first.shape, 1, a.dtype)
    return concatenate([-(rest / first), zeros_like(one), one], last)


def companion(a: Any) -> Any:
    """The matrix whose eigenvalues are the roots of a polynomial.

    ``a`` is ``[..., n]`` with ``n > 1``, the coefficients, that of the highest power first; the
    result ``[..., n - 1, n - 1]`` has ``-a[1:] / a[0]`` for its first row, and ones below the
    diagonal. Raises ``ValueError`` for fewer coefficients.

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
    places = np.full((n, n), n)
    places[0], places[np.arange(1, n), np.arange(n - 1)] = np.arange(n), n + 1
    return _patterned(values, places)


def fiedler_companion(a: Any) -> Any:
    """A matrix of five diagonals whose eigenvalues are the roots of a polynomial.

    ``a`` is ``[..., n]`` with ``n > 0``, the coefficients, that of the highest power first; the
    result is ``[..., n - 1, n - 1]``. Source: Fiedler, A note on companion matrices (2003).

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.fiedler_companion(snp.array([1.0, 2.0, 3.0, 4.0]))
    Array([[-2., -3.,  1.],
           [ 1.,  0.,  0.],
           [ 0., -4.,  0.]], dtype=float32)
    """
    line = _line("fiedler_companion", a, "a")
    n = line.shape[-1] - 1
    if n < 0:
        raise ValueError("fiedler_companion: expected one coefficient or more, got none")
    values = _quotients("fiedler_companion", line)
    row, column = np.indices((n, n))
    even, offset = row % 2 == 0, column - row
    places = np.full((n, n), n)
    places[even & (offset == 1)] = np.arange(1, n, 2)
    places[even & (offset == -1)] = np.arange(2, n, 2)
    places[(even & (offset == 2)) | (~even & (offset == -2))] = n + 1
    places[1:2, 0], places[:1, 0] = n + 1, 0
    return _patterned(values, places)


def convolution_matrix(a: Any, n: int, mode: str = "full") -> Any:
    """The matrix whose product with a vector of ``n`` elements is its convolution with ``a``.

    ``a`` is ``[..., m]``; the result has ``m + n - 1`` rows, in mode ``"same"`` ``max(m, n)``, in
    mode ``"valid"`` ``max(m, n) - min(m, n) + 1``. Raises ``ValueError`` for an empty ``a`` or
    ``n``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.scipy.linalg.convolution_matrix(snp.array([1, 2]), 2)
    Array([[1, 0],
           [2, 1],
           [0, 2]], dtype=int32)
    """
    a, n = _line("convolution_matrix", a, "a"), integer(n, "convolution_matrix", "n")
    m = a.shape[-1]
    if m < 1 or n < 1:
        raise ValueError(f"convolution_matrix: expected elements in a and n > 0, got {a.type}, {n}")
    if mode not in ("full", "same", "valid"):
        raise ValueError(
            f"convolution_matrix: mode must be 'full', 'same' or 'valid'; got {mode!r}"
        )
    less = min(m, n) - 1
    first = {"full": 0, "same": less // 2, "valid": less}[mode]
    rows = {"full": m + n - 1, "same": max(m, n), "valid": max(m, n) - less}[mode]
    row, column = np.indices((rows, n))
    place = row + first - column
    zero = zeros_like(slice_in_dim(a, 0, 1, 1, a.ndim - 1))
    values = concatenate([a, zero], a.ndim - 1)
    return _patterned(values, np.where((place >= 0) & (place < m), place, m))


# Of a given size


def _size(who: str, n: Any, least: int = 0) -> int:
    n = integer(n, who, "n")
    if n < least:
        raise ValueError(f"{who}: n must be {least} or more, got {n}")
    return n


def _kind(who: str, kind: str | None) -> str:
    if kind not in (None, "symmetric", "lower", "upper"):
        raise ValueError(f"{who}: kind must be 'symmetric', 'lower' or 'upper'; got {kind!r}")
    return kind or "symmetric"


def dft(n: int, scale: str | None = None, *, dtype: Any = None) -> Any:
    """The matrix of the discrete Fourier transform of ``n`` elements: ``exp(-2 pi i j k / n)``.

    ``scale``: ``None``; ``"sqrtn"``, divided by the root of ``n``, so that it is unitary; ``"n"``,
    divided by ``n``. ``dtype`` is by default the default complex one.

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


def hadamard(n: int, dtype: Any = int) -> Any:
    """The matrix of Hadamard, of Sylvester's construction: orthogonal rows of ones, signed.

    Raises ``ValueError`` unless ``n`` is a power of 2.

    >>> import stretto as st
    >>> st.scipy.linalg.hadamard(2)
    Array([[ 1,  1],
           [ 1, -1]], dtype=int32)
    """
    n = _size("hadamard", n, 1)
    if n & (n - 1):
        raise ValueError(f"hadamard: n must be a power of 2, got {n}")
    return asarray(scipy_linalg.hadamard(n, np.int8), dtype)


def helmert(n: int, full: bool = False) -> Any:
    """Orthonormal contrasts: the rows of Helmert's matrix, with the first, constant, if ``full``.

    >>> import stretto as st
    >>> st.scipy.linalg.helmert(2).round(4)
    Array([[ 0.7071, -0.7071]], dtype=float32)
    """
    return asarray(scipy_linalg.helmert(_size("helmert", n, 1), full), default_dtype("float"))


def hilbert(n: int) -> Any:
    """Hilbert's matrix, ``1 / (i + j + 1)``.

    >>> import stretto as st
    >>> st.scipy.linalg.hilbert(2).round(4)
    Array([[1.    , 0.5   ],
           [0.5   , 0.3333]], dtype=float32)
    """
    return asarray(scipy_linalg.hilbert(_size("hilbert", n)), default_dtype("float"))


def invhilbert(n: int) -> Any:
    """The inverse of Hilbert's matrix: integers, as floats, rounded once.

    >>> import stretto as st
    >>> st.scipy.linalg.invhilbert(2)
    Array([[ 4., -6.],
           [-6., 12.]], dtype=float32)
    """
    n = _size("invhilbert", n)
    return _rounded_once(scipy_linalg.invhilbert(n, exact=True))


def pascal(n: int, kind: str | None = None) -> Any:
    """Pascal's triangle: ``"symmetric"``, by default, ``"lower"`` or ``"upper"``.

    The elements are integers, as floats, rounded once.

    >>> import stretto as st
    >>> st.scipy.linalg.pascal(3)
    Array([[1., 1., 1.],
           [1., 2., 3.],
           [1., 3., 6.]], dtype=float32)
    """
    return _rounded_once(scipy_linalg.pascal(_size("pascal", n), _kind("pascal", kind)))


def invpascal(n: int, kind: str | None = None) -> Any:
    """The inverse of ``pascal(n, kind)``: integers, as floats, rounded once.

    >>> import stretto as st
    >>> st.scipy.linalg.invpascal(2)
    Array([[ 2., -1.],
           [-1.,  1.]], dtype=float32)
    """
    return _rounded_once(scipy_linalg.invpascal(_size("invpascal", n), _kind("invpascal", kind)))


def _rounded_once(exact: np.ndarray) -> Any:
    """Integers, of any number of digits, as default floats."""
    with np.errstate(over="ignore"):
        return asarray(exact.astype(default_dtype("float")))
