"""Matrices by their diagonals and triangles.

Next, read ``arithmetic``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value, state
from stretto._engine.ops.broadcast import reshape
from stretto._engine.ops.convert import convert
from stretto._engine.ops.linalg.matrix_parts import (
    below,
    diagonal_of,
    lower_part,
    on_diagonal,
    upper_part,
)
from stretto._engine.ops.shape import pad
from stretto._engine.runtime.eager import EAGER
from stretto.numpy.arguments import integer_or_traced, refuse_device
from stretto.numpy.creation import shape_of, zeros
from stretto.numpy.directly import BOOL, NUMERIC, directly
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.quick import array_of

__all__ = ["diag", "diagflat", "eye", "identity", "tri", "tril", "triu"]


def tri(N: int, M: int | None = None, k: Any = 0, dtype: Any = float) -> Any:
    """Ones on and below the diagonal ``k`` above the main one, zeros elsewhere.

    ``k`` may be traced, here and in ``eye``, ``tril`` and ``triu``.

    >>> import stretto.numpy as snp
    >>> snp.tri(2, 3)
    Array([[1., 0., 0.],
           [1., 1., 0.]], dtype=float32)
    """
    shape = shape_of((N, N if M is None else M), "tri")
    k = integer_or_traced(k, "tri", "k")
    return convert(below(shape, k), as_dtype(float if dtype is None else dtype))


def _matrices(m: Any, who: str) -> Any:
    x = as_value(m, who, "m")
    if x.ndim < 2:
        raise ValueError(f"{who}: expected an array of rank 2 or more, got {x.type}")
    return x


def tril(m: Any, k: Any = 0) -> Any:
    """The matrices ``m`` with zeros above the diagonal ``k``.

    >>> import stretto.numpy as snp
    >>> snp.tril(snp.ones((2, 2)))
    Array([[1., 0.],
           [1., 1.]], dtype=float32)
    """
    x, k = _matrices(m, "tril"), integer_or_traced(k, "tril", "k")
    found = directly(np.tril, BOOL + NUMERIC, x, k=k)
    return lower_part(x, k) if found is None else found


def triu(m: Any, k: Any = 0) -> Any:
    """The matrices ``m`` with zeros below the diagonal ``k``.

    >>> import stretto.numpy as snp
    >>> snp.triu(snp.ones((2, 2)))
    Array([[1., 1.],
           [0., 1.]], dtype=float32)
    """
    x, k = _matrices(m, "triu"), integer_or_traced(k, "triu", "k")
    found = directly(np.triu, BOOL + NUMERIC, x, k=k)
    return upper_part(x, k) if found is None else found


def eye(N: int, M: int | None = None, k: Any = 0, dtype: Any = float, *, device: Any = None) -> Any:
    """Ones on the diagonal ``k`` above the main one, zeros elsewhere.

    >>> import stretto.numpy as snp
    >>> snp.eye(2)
    Array([[1., 0.],
           [0., 1.]], dtype=float32)
    """
    refuse_device("eye", device)
    shape = shape_of((N, N if M is None else M), "eye")
    wanted = as_dtype(float if dtype is None else dtype)
    k = integer_or_traced(k, "eye", "k")
    if state.interpreter is EAGER:
        rows, columns = shape
        return array_of(np.eye(rows, columns, k, wanted), wanted)
    return convert(on_diagonal(shape, k), wanted)


def identity(n: int, dtype: Any = float) -> Any:
    """The ``n`` by ``n`` matrix with ones on the diagonal."""
    return eye(n, dtype=dtype)


def diag(v: Any, k: int = 0) -> Any:
    """The matrix with ``v`` on its diagonal ``k``; of a matrix, that diagonal.

    >>> import stretto.numpy as snp
    >>> snp.diag(snp.array([1, 2]))
    Array([[1, 0],
           [0, 2]], dtype=int32)
    """
    x, k = as_value(v, "diag", "v"), integer(k, "diag", "k")  # the shape depends on it
    found = directly(np.diag, BOOL + NUMERIC, x, k=k)
    if found is not None:
        return found
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


def diagflat(v: Any, k: int = 0) -> Any:
    """The matrix with the elements of ``v``, in row-major order, on its diagonal ``k``."""
    return diag(reshape(as_value(v, "diagflat", "v"), (-1,)), k)
