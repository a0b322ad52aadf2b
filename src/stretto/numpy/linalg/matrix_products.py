"""Products of vectors and matrices: the array API's, and chains and powers of matrices."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.layout import canonical_axis, expand_dims, squeeze
from stretto._engine.ops.linalg.matrix_parts import identity
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.numpy.linalg.systems import inv
from stretto.numpy.manipulation import diagonal as diagonal_along
from stretto.numpy.manipulation import matrix_transpose
from stretto.numpy.manipulation import trace as trace_along
from stretto.numpy.products import matmul, tensordot, vecdot
from stretto.numpy.products import outer as outer_of

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["cross", "diagonal", "matmul", "matrix_power", "matrix_transpose",
           "multi_dot", "outer", "tensordot", "trace", "vecdot"]  # fmt: skip


def outer(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply every element of one vector with every element of another.

    Args:
        x1: an array ``[m]``.
        x2: an array ``[n]``.

    Returns:
        The products ``[m, n]``.

    Raises:
        ValueError: an array has another rank than 1.

    As the array API standard's ``linalg.outer``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.outer(snp.array([1, 2]), snp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x, y = as_value(x1, "outer", "x1"), as_value(x2, "outer", "x2")
    if x.ndim != 1 or y.ndim != 1:
        raise ValueError(
            f"outer: expected arrays of rank 1, got {x.type} and {y.type}; stretto.numpy.outer "
            f"flattens"
        )
    return outer_of(x, y)


@rounded_once
def cross(x1: ArrayLike, x2: ArrayLike, /, *, axis: int = -1) -> Array:
    """Multiply vectors of 3 elements crosswise.

    Args:
        x1: an array of size 3 along ``axis``.
        x2: an array of size 3 along ``axis``; the other axes broadcast.
        axis: the axis of the vectors.

    Returns:
        The cross products, of the shape that the two broadcast to.

    Raises:
        ValueError: ``axis`` is out of bounds; or a size along ``axis`` is not 3, or the shapes do
            not broadcast.

    As the array API standard's ``linalg.cross``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.cross(snp.array([1, 0, 0]), snp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    x, y = promote_values("cross", x1, x2)
    axis = canonical_axis(axis, x.ndim, "cross")
    sizes = [as_value(v, "cross").shape for v in (x1, x2)]
    if any(s[axis - x.ndim] != 3 if len(s) >= x.ndim - axis else True for s in sizes):
        raise ValueError(
            f"cross: both must have size 3 along axis {axis}, got shapes {sizes[0]} and {sizes[1]}"
        )

    def rotated(v: Array, by: int) -> Array:
        parts = slice_in_dim(v, by, 3, 1, axis), slice_in_dim(v, 0, by, 1, axis)
        return concatenate(parts, axis)

    return rotated(x, 1) * rotated(y, 2) - rotated(x, 2) * rotated(y, 1)


def diagonal(x: ArrayLike, /, *, offset: int = 0) -> Array:
    """Take the diagonals of the matrices in the last two axes.

    Args:
        x: matrices ``[..., m, n]``.
        offset: how far above the main diagonal, below for negative numbers.

    Returns:
        The diagonals, along a last axis.

    Raises:
        TypeError: ``offset`` is not an integer.
        ValueError: the rank is below 2.

    As the array API standard's ``linalg.diagonal``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.diagonal(snp.ones((4, 2, 3))).shape
    (4, 2)
    """
    return diagonal_along(x, offset, -2, -1)


def trace(x: ArrayLike, /, *, offset: int = 0, dtype: DTypeLike | None = None) -> Array:
    """Sum the diagonals of the matrices in the last two axes.

    Args:
        x: matrices ``[..., m, n]``.
        offset: how far above the main diagonal, below for negative numbers.
        dtype: the dtype of the sum; by default that of ``x``, at least 32 bits for integers.

    Returns:
        The sums ``[...]``.

    Raises:
        TypeError: ``offset`` is not an integer.
        ValueError: the rank is below 2.

    As the array API standard's ``linalg.trace``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.trace(snp.array([[1, 2], [3, 4]]))
    Array(5, dtype=int32)
    """
    return trace_along(x, offset, -2, -1, dtype)


def matrix_power(a: ArrayLike, n: int) -> Array:
    """Raise square matrices to an integer power, by squaring.

    Args:
        a: matrices ``[..., n, n]``.
        n: the power; negative ones are of the inverses.

    Returns:
        Matrices ``[..., n, n]``.

    Raises:
        TypeError: ``n`` is not an integer.
        ValueError: the matrices are not square.

    As NumPy's ``linalg.matrix_power``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.matrix_power(snp.array([[1, 1], [0, 1]]), 5)
    Array([[1, 5],
           [0, 1]], dtype=int32)
    """
    x, n = as_value(a, "matrix_power", "a"), integer(n, "matrix_power", "n")
    if x.ndim < 2 or x.shape[-1] != x.shape[-2]:
        raise ValueError(f"matrix_power: expected square matrices, got {x.type}")
    if n == 0:
        return identity(x.shape, x.dtype)
    x, n = (inv(x), -n) if n < 0 else (x, n)
    out: Any = None
    while True:
        if n & 1:
            out = x if out is None else matmul(out, x)
        n >>= 1
        if not n:
            return out
        x = matmul(x, x)


def multi_dot(arrays: Sequence[ArrayLike], *, precision: PrecisionLike = None) -> Array:
    """Multiply two or more matrices in the order that takes least work.

    Args:
        arrays: matrices of rank 2; the first and the last may be vectors.
        precision: that of ``lax.dot``.

    Returns:
        The product; of rank 2, less one for each vector.

    Raises:
        ValueError: there are fewer than two arrays, one has another rank, or sizes do not match.

    As NumPy's ``linalg.multi_dot``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.linalg.multi_dot([snp.ones((2, 9)), snp.ones((9, 9)), snp.ones(9)])
    Array([81., 81.], dtype=float32)
    """
    values = [as_value(x, "multi_dot", f"array {i}") for i, x in enumerate(arrays)]
    last = len(values) - 1
    if last < 1:
        raise ValueError(f"multi_dot: expected two arrays or more, got {len(values)}")
    for i, x in enumerate(values):
        if not (x.ndim == 2 or (x.ndim == 1 and i in (0, last))):
            raise ValueError(f"multi_dot: expected matrices, array {i} is {x.type}")
    squeezed = [place for i, place in ((0, -2), (last, -1)) if values[i].ndim == 1]
    if values[0].ndim == 1:
        values[0] = expand_dims(values[0], 0)
    if values[last].ndim == 1:
        values[last] = expand_dims(values[last], 1)
    for i, (x, y) in enumerate(itertools.pairwise(values)):
        if x.shape[1] != y.shape[0]:
            raise ValueError(
                f"multi_dot: arrays {i} and {i + 1} do not match: {x.type} and {y.type}"
            )
    order = _cheapest([values[0].shape[0], *[x.shape[1] for x in values]])

    def product(i: int, j: int) -> Array:
        if i == j:
            return values[i]
        k = order[i, j]
        return matmul(product(i, k), product(k + 1, j), precision=precision)

    return squeeze(product(0, last), tuple(squeezed))


def _cheapest(sizes: Sequence[int]) -> dict[tuple[int, int], int]:
    """Find after which matrix to split each stretch of a chain of them."""
    n = len(sizes) - 1
    work = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            work[i, j], split[i, j] = min(
                (work[i, k] + work[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k)
                for k in range(i, j)
            )
    return split
