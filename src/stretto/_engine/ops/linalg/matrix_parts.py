"""Triangles, diagonals and adjoints of the matrices in the last two axes.

The rules of linear algebra are written with these.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Value
from stretto._engine.core.sizes import greater, is_size, lesser
from stretto._engine.core.types import is_complex
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import eq, full, full_like, ge, gt, select, zeros_like
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import concatenate, slice_

_INT32 = np.dtype(np.int32)
_FAR = 1 << 30


def _places(shape: tuple[int, ...], k: Any) -> tuple[Any, Any]:
    """Return for each element the column where its row meets the diagonal ``k``, and its own."""
    row, column = (broadcasted_iota(_INT32, shape, i) for i in (0, 1))
    return row + _near(k, shape), column


def _near(k: Any, shape: tuple[int, ...]) -> Any:
    """Return a diagonal's number, perhaps traced, as int32, clamped to the corners."""
    rows, columns = shape
    if not isinstance(k, Value):
        number = integer(k, "a diagonal", "k")
        rows, columns = (_FAR if is_size(n) else n for n in shape)  # past any corner
        return min(max(number, -rows), columns)
    if k.type.dtype.itemsize < 4:
        k = convert(k, _INT32)
    if k.type.kind == "int":
        k = maximum(k, full_like(k, -rows))
    return convert(minimum(k, full_like(k, columns)), _INT32)


def below(shape: tuple[int, ...], k: Any) -> Any:
    """Say which elements of a matrix lie on or below the diagonal ``k`` above the main one."""
    return ge(*_places(shape, k))


def on_diagonal(shape: tuple[int, ...], k: Any = 0) -> Any:
    """Say whether each element of a matrix lies on the diagonal ``k`` above the main one."""
    return eq(*_places(shape, k))


def lower_part(x: Any, k: Any = 0) -> Any:
    """Return the matrices with zeros above the diagonal ``k``."""
    return select(broadcast_to(below(x.shape[-2:], k), x.shape), x, zeros_like(x))


def upper_part(x: Any, k: Any = 0) -> Any:
    """Return the matrices with zeros below the diagonal ``k``."""
    under = gt(*_places(x.shape[-2:], k))
    return select(broadcast_to(under, x.shape), zeros_like(x), x)


def keep_diagonal(x: Any) -> Any:
    """Return the matrices with zeros outside the diagonal."""
    return select(broadcast_to(on_diagonal(x.shape[-2:]), x.shape), x, zeros_like(x))


def identity(shape: tuple[int, ...], dtype: np.dtype) -> Any:
    """Return matrices of this shape with ones on the diagonal."""
    return broadcast_to(convert(on_diagonal(shape[-2:]), dtype), shape)


def diagonal_of(x: Any, k: int = 0) -> Any:
    """Return the diagonal ``k`` of the matrices in the last two axes, along a last axis."""
    *outer, n, m = x.shape
    size = greater(lesser(n + min(k, 0), m - max(k, 0)), 0)
    if is_size(n) or is_size(m):
        first, axes = broadcasted_iota(_INT32, (size, 1), 0), (len(outer), len(outer) + 1)
        places = concatenate([first - min(k, 0), first + max(k, 0)], 1)
        numbers = GatherDimensionNumbers(tuple(range(len(outer))), axes, axes)
        return Gather(numbers, (*outer, 1, 1), "promise_in_bounds")(x, places)
    if size == 0:
        return full((*outer, size), 0, x.dtype)
    # In row-major order the diagonal's elements are m + 1 apart.
    first = max(k, -k * m)
    flat = reshape(x, (*outer, n * m))
    stop = first + (size - 1) * (m + 1) + 1
    lead = (0,) * len(outer)
    return slice_(flat, (*lead, first), (*outer, stop), (*(1 for _ in outer), m + 1))


def diagonal_matrix(v: Any) -> Any:
    """Return the square matrices with ``v`` on their diagonal."""
    *outer, n = v.shape
    dims = tuple(d for d in range(v.ndim + 1) if d != v.ndim)
    return keep_diagonal(broadcast_in_dim(v, (*outer, n, n), dims))


def matrix_transpose(x: Any) -> Any:
    """Exchange the last two axes."""
    return transpose(x, (*range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def adjoint(x: Any) -> Any:
    """Return the conjugate transpose."""
    return matrix_transpose(conj(x) if is_complex(x.dtype) else x)
