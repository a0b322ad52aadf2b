"""Matrices by their diagonals and triangles."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.eager.interpreter import EAGER, array_of
from stretto._engine.eager.twins import BOOL, NUMERIC, eager
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.linalg.matrix_parts import (
    below,
    diagonal_of,
    lower_part,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.shape import pad
from stretto.numpy.arguments import integer_or_traced, put_result
from stretto.numpy.creation import shape_of
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.filled import zeros

if TYPE_CHECKING:
    from stretto._engine.xla.device import Device


def tri(N: int, M: int | None = None, k: ArrayLike = 0, dtype: DTypeLike | None = float) -> Array:
    """Make a matrix of ones on and below a diagonal, and zeros above.

    Args:
        N: the number of rows.
        M: the number of columns; by default ``N``.
        k: the diagonal, counted upwards from the main one; may be traced.
        dtype: the dtype of the result.

    Returns:
        A matrix ``[N, M]``.

    Raises:
        TypeError: ``N``, ``M`` or ``k`` is not an integer.
        ValueError: a size is negative.

    As NumPy's ``tri``.

    >>> import stretto.numpy as snp
    >>> snp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    shape = shape_of((N, N if M is None else M), "tri")
    diagonal = integer_or_traced(k, "tri", "k")
    return convert(below(shape, diagonal), as_dtype(float if dtype is None else dtype))


def _matrices(m: ArrayLike, caller: str) -> Array:
    x = as_value(m, caller, "m")
    if x.ndim < 2:
        raise ValueError(f"{caller}: expected an array of rank 2 or more, got {x.type}")
    return x


def tril(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Set the elements above a diagonal to zero.

    Args:
        m: matrices ``[..., m, n]``.
        k: the diagonal, counted upwards from the main one; may be traced.

    Returns:
        Matrices ``[..., m, n]``.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the rank is below 2.

    As NumPy's and the array API standard's ``tril``.

    >>> import stretto.numpy as snp
    >>> snp.tril(snp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    x, diagonal = _matrices(m, "tril"), integer_or_traced(k, "tril", "k")
    return _tril(x, k=diagonal)


@eager(np.tril, BOOL + NUMERIC)
def _tril(x: Array, *, k: int | Array) -> Array:
    return lower_part(x, k)


@described_like(tril)
def triu(m: ArrayLike, k: ArrayLike = 0) -> Array:
    """Set the elements below a diagonal to zero.

    As NumPy's and the array API standard's ``triu``.

    >>> import stretto.numpy as snp
    >>> snp.triu(snp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x, diagonal = _matrices(m, "triu"), integer_or_traced(k, "triu", "k")
    return _triu(x, k=diagonal)


@eager(np.triu, BOOL + NUMERIC)
def _triu(x: Array, *, k: int | Array) -> Array:
    return upper_part(x, k)


@described_like(tri)
def eye(
    N: int,
    M: int | None = None,
    k: ArrayLike = 0,
    dtype: DTypeLike | None = float,
    *,
    device: Device | ShardingLike | str | None = None,
) -> Array:
    """Make a matrix of ones on a diagonal, and zeros elsewhere.

    Args:
        device: the device, its name, or a sharding; by default the first device.

    Raises:
        TypeError: ``N``, ``M`` or ``k`` is not an integer.
        ValueError: ``device`` is not there; or a size is negative.

    As NumPy's and the array API standard's ``eye``.

    >>> import stretto.numpy as snp
    >>> snp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    if device is not None:
        return put_result(eye(N, M, k, dtype), device, None, "eye")
    shape = shape_of((N, N if M is None else M), "eye")
    wanted = as_dtype(float if dtype is None else dtype)
    diagonal = integer_or_traced(k, "eye", "k")
    if state.interpreter is EAGER:
        rows, columns = shape
        known: Any = diagonal
        return array_of(np.eye(rows, columns, known, wanted), wanted)
    return convert(on_diagonal(shape, diagonal), wanted)


def identity(n: int, dtype: DTypeLike | None = float) -> Array:
    """Make a square matrix of ones on the main diagonal, and zeros elsewhere.

    Args:
        n: the number of rows and columns.
        dtype: the dtype of the result.

    Returns:
        A matrix ``[n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: ``n`` is negative.

    As NumPy's ``identity``.

    >>> import stretto.numpy as snp
    >>> snp.identity(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    return eye(n, dtype=dtype)


def diag(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with a vector on a diagonal, or take the diagonal of a matrix.

    Args:
        v: a vector, or a matrix.
        k: the diagonal, counted upwards from the main one.

    Returns:
        A square matrix for a vector; a vector for a matrix.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the rank is neither 1 nor 2.

    As NumPy's ``diag``.

    >>> import stretto.numpy as snp
    >>> snp.diag(snp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    # The shape depends on ``k``.
    return _diag(as_value(v, "diag", "v"), k=integer(k, "diag", "k"))


@eager(np.diag, BOOL + NUMERIC)
def _diag(x: Array, *, k: int) -> Array:
    if x.ndim == 2:
        return diagonal_of(x, k)
    if x.ndim != 1:
        raise ValueError(f"diag: expected an array of rank 1 or 2, got {x.type}")
    n = x.size + abs(k)
    if x.size == 0:
        return zeros((n, n), x.dtype)
    # In row-major order the diagonal's elements are n + 1 apart.
    first = k if k >= 0 else -k * n
    last = first + (x.size - 1) * (n + 1)
    flat = pad(x, 0, [(first, n * n - 1 - last, n)])
    return reshape(flat, (n, n))


def diagflat(v: ArrayLike, k: int = 0) -> Array:
    """Make a matrix with all elements of an array on a diagonal.

    Args:
        v: an array, flattened in row-major order.
        k: the diagonal, counted upwards from the main one.

    Returns:
        A square matrix.

    Raises:
        TypeError: ``k`` is not an integer.

    As NumPy's ``diagflat``.

    >>> import stretto.numpy as snp
    >>> snp.diagflat(snp.array([[1, 2]]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    return diag(reshape(as_value(v, "diagflat", "v"), (-1,)), k)
