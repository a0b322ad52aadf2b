"""Products that sum over axes.

Those of ``ops.contract`` and ``ops.products`` under NumPy's names, the array API's ``vecdot``, and
the same for stacks of matrices and vectors.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import ArrayLike, DTypeLike, ShardingLike
from stretto._engine.eager.twins import COMPLEX, FLOAT, NUMERIC, eager
from stretto._engine.ops import contract
from stretto._engine.ops.arithmetic import multiply
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.layout import (
    canonical_axis,
    expand_dims,
    laid_out,
    move_axis,
    reshape,
    squeeze,
)
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto._engine.xla.array import Array
from stretto.numpy.arguments import refuse_out
from stretto.numpy.manipulation import moveaxis

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["cross", "dot", "inner", "kron", "matmul", "matvec", "outer", "tensordot",
           "vdot", "vecdot", "vecmat"]  # fmt: skip


def dot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply over the last axis of ``a`` and the last but one of ``b``; scalars multiply.

    Args:
        a: an array, or a number.
        b: an array, or a number; of a vector its only axis counts.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        An array of the other axes of ``a``, then those of ``b``.

    Raises:
        ValueError: the sizes differ; or the result cannot be split as ``out_sharding`` says.

    As NumPy's ``dot``.

    >>> import stretto.numpy as snp
    >>> snp.dot(snp.array([1.0, 2.0]), snp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    if out_sharding is not None:
        result = dot(a, b, precision=precision, preferred_element_type=preferred_element_type)
        return laid_out(result, out_sharding, "dot")
    return contract.dot(a, b, precision, preferred_element_type)


def matmul(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply matrices in the last two axes; the others broadcast.

    Args:
        a: an array of rank 1 or more; a vector is a row.
        b: an array of rank 1 or more; a vector is a column.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The products; without the axis of each vector.

    Raises:
        ValueError: an array is of rank 0, or sizes do not match; or the result cannot be split as
            ``out_sharding`` says.

    As NumPy's and the array API standard's ``matmul``.

    >>> import stretto.numpy as snp
    >>> snp.matmul(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    if out_sharding is not None:
        result = matmul(a, b, precision=precision, preferred_element_type=preferred_element_type)
        return laid_out(result, out_sharding, "matmul")
    if precision is None and preferred_element_type is None and _any_stack(a, b):
        return _matmul_stacks(a, b)
    return contract.matmul(a, b, precision, preferred_element_type)


@eager(np.matmul, FLOAT + COMPLEX)
def _matmul_stacks(a: ArrayLike, b: ArrayLike) -> Array:
    return contract.matmul(a, b, None, None)


def _any_stack(a: ArrayLike, b: ArrayLike) -> bool:
    """Say whether both are concrete arrays, and one has more than two axes."""
    x: Any = a
    y: Any = b
    return x.__class__ is y.__class__ is Array and (x.type.ndim > 2 or y.type.ndim > 2)


@described_like(dot)
def tensordot(
    a: ArrayLike,
    b: ArrayLike,
    axes: int | Sequence[Any] = 2,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply two arrays and sum over pairs of axes.

    Args:
        a: an array.
        b: an array.
        axes: a pair of axes, or of lists of axes; or how many last ones of ``a`` and first ones of
            ``b``.

    Raises:
        ValueError: paired sizes differ, or an axis is out of bounds; or the result cannot be split
            as ``out_sharding`` says.

    As NumPy's and the array API standard's ``tensordot``.

    >>> import stretto.numpy as snp
    >>> snp.tensordot(snp.ones((2, 3, 4)), snp.ones((3, 4, 5))).shape
    (2, 5)
    """
    if out_sharding is not None:
        result = tensordot(
            a, b, axes, precision=precision, preferred_element_type=preferred_element_type
        )
        return laid_out(result, out_sharding, "tensordot")
    return contract.tensordot(a, b, axes, precision, preferred_element_type)


def vdot(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum ``conj(a) * b`` over all elements, in row-major order.

    Args:
        a: an array, or a number.
        b: an array of as many elements.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        A number of the promoted dtype.

    Raises:
        ValueError: the numbers of elements differ.

    As NumPy's ``vdot``.

    >>> import stretto.numpy as snp
    >>> snp.vdot(snp.array([1j, 2.0]), snp.array([1j, 3.0]))
    Array(7.+0.j, dtype=complex64)
    """
    return contract.vdot(a, b, precision, preferred_element_type)


def inner(
    a: ArrayLike,
    b: ArrayLike,
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply two arrays and sum over the last axes of both; scalars multiply.

    Args:
        a: an array, or a number.
        b: an array, or a number.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        An array of the other axes of ``a``, then those of ``b``.

    Raises:
        ValueError: the sizes differ.

    As NumPy's ``inner``.

    >>> import stretto.numpy as snp
    >>> snp.inner(snp.ones((2, 3)), snp.ones((4, 3))).shape
    (2, 4)
    """
    return contract.inner(a, b, precision, preferred_element_type)


def outer(a: ArrayLike, b: ArrayLike, out: None = None) -> Array:
    """Multiply every element of one array with every element of another.

    Args:
        a: an array of m elements, flattened.
        b: an array of n elements, flattened.
        out: must be None: arrays are immutable.

    Returns:
        The products ``[m, n]``.

    Raises:
        NotImplementedError: ``out`` is given.

    As NumPy's ``outer``.

    >>> import stretto.numpy as snp
    >>> snp.outer(snp.array([1, 2]), snp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    refuse_out("outer", out)
    return _outer(a, b)


@eager(np.outer, NUMERIC)
def _outer(a: ArrayLike, b: ArrayLike) -> Array:
    return contract.outer(a, b)


# Of stacks


def vecdot(
    x1: ArrayLike,
    x2: ArrayLike,
    /,
    *,
    axis: int = -1,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Sum ``conj(x1) * x2`` along an axis.

    Args:
        x1: an array.
        x2: an array; the other axes broadcast.
        axis: the axis to sum along.
        precision: that of ``lax.dot``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        An array of the shape that the other axes broadcast to.

    Raises:
        ValueError: ``axis`` is out of bounds; or the sizes along ``axis`` differ.

    As NumPy's and the array API standard's ``vecdot``.

    >>> import stretto.numpy as snp
    >>> snp.vecdot(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = as_value(x1, "vecdot", "x1"), as_value(x2, "vecdot", "x2")
    x = move_axis(x, canonical_axis(axis, x.ndim, "vecdot"), x.ndim - 1)
    y = move_axis(y, canonical_axis(axis, y.ndim, "vecdot"), y.ndim - 1)
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"vecdot: sizes along axis {axis} differ, {x.type} and {y.type}")
    row, column = expand_dims(conj(x), x.ndim - 1), expand_dims(y, y.ndim)
    return squeeze(contract.matmul(row, column, precision, preferred_element_type), (-2, -1))


def _stacks(
    caller: str, x1: ArrayLike, x2: ArrayLike, ranks: tuple[int, int]
) -> tuple[Array, Array]:
    x, y = as_value(x1, caller, "x1"), as_value(x2, caller, "x2")
    if x.ndim < ranks[0] or y.ndim < ranks[1]:
        raise ValueError(
            f"{caller}: expected arrays of rank {ranks[0]} and {ranks[1]} or more, got {x.type} "
            f"and {y.type}"
        )
    return x, y


def matvec(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply matrices with vectors.

    Args:
        x1: matrices ``[..., m, n]``.
        x2: vectors ``[..., n]``; leading axes broadcast.

    Returns:
        Vectors ``[..., m]``.

    Raises:
        ValueError: a rank is too small, or sizes do not match.

    As NumPy's ``matvec``.

    >>> import stretto.numpy as snp
    >>> snp.matvec(snp.array([[1, 2], [3, 4]]), snp.array([[1, 1], [0, 1]]))
    Array([[3, 7],
           [2, 4]], dtype=int32)
    """
    x, y = _stacks("matvec", x1, x2, (2, 1))
    if x.shape[-1] != y.shape[-1]:
        raise ValueError(f"matvec: the sizes of the last axes differ, {x.type} and {y.type}")
    return squeeze(contract.matmul(x, expand_dims(y, y.ndim)), -1)


def vecmat(x1: ArrayLike, x2: ArrayLike, /) -> Array:
    """Multiply the conjugates of vectors with matrices.

    Args:
        x1: vectors ``[..., m]``.
        x2: matrices ``[..., m, n]``; leading axes broadcast.

    Returns:
        Vectors ``[..., n]``.

    Raises:
        ValueError: a rank is too small, or sizes do not match.

    As NumPy's ``vecmat``.

    >>> import stretto.numpy as snp
    >>> snp.vecmat(snp.array([1, 1]), snp.array([[1, 2], [3, 4]]))
    Array([4, 6], dtype=int32)
    """
    x, y = _stacks("vecmat", x1, x2, (1, 2))
    if x.shape[-1] != y.shape[-2]:
        raise ValueError(
            f"vecmat: the last axis of x1 and the last but one of x2 differ in size, {x.type} and "
            f"{y.type}"
        )
    return squeeze(contract.matmul(expand_dims(conj(x), x.ndim - 1), y), -2)


# Of other kinds


def kron(a: ArrayLike, b: ArrayLike) -> Array:
    """Form the Kronecker product: each element of ``a`` times all of ``b``, in its place.

    Args:
        a: an array, or a number.
        b: an array, or a number; axes align from the last.

    Returns:
        An array whose sizes are the products of those of ``a`` and ``b``.

    As NumPy's ``kron``.

    >>> import stretto.numpy as snp
    >>> snp.kron(snp.array([1, 10]), snp.array([1, 2]))
    Array([ 1,  2, 10, 20], dtype=int32)
    """
    x, y = promote_dtypes("kron", a, b)
    rank = max(x.ndim, y.ndim)
    outer_sizes = (1,) * (rank - x.ndim) + x.shape
    inner_sizes = (1,) * (rank - y.ndim) + y.shape
    spread = reshape(x, tuple([n for size in outer_sizes for n in (size, 1)]))
    within = reshape(y, tuple([n for size in inner_sizes for n in (1, size)]))
    sizes = [n * m for n, m in zip(outer_sizes, inner_sizes, strict=True)]
    return reshape(multiply(spread, within), tuple(sizes))


@rounded_once
def cross(
    a: ArrayLike,
    b: ArrayLike,
    axisa: int = -1,
    axisb: int = -1,
    axisc: int = -1,
    axis: int | None = None,
) -> Array:
    """Multiply vectors of 3 elements crosswise, or of 2 for those in the plane.

    A vector of 2 elements has 0 for its third; of two such vectors the result is that third element
    alone.

    Args:
        a: an array of size 2 or 3 along ``axisa``.
        b: an array of size 2 or 3 along ``axisb``; the other axes broadcast.
        axisa: the axis of the vectors of ``a``.
        axisb: the axis of the vectors of ``b``.
        axisc: the axis of the vectors of the result.
        axis: one axis instead of all three.

    Returns:
        The cross products, of the shape that the two broadcast to.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or vectors have other sizes, or the
            shapes do not broadcast.

    As NumPy's ``cross``.

    >>> import stretto.numpy as snp
    >>> snp.cross(snp.array([1, 0, 0]), snp.array([0, 1, 0]))
    Array([0, 0, 1], dtype=int32)
    """
    if axis is not None:
        axisa = axisb = axisc = axis
    x, y = as_value(a, "cross", "a"), as_value(b, "cross", "b")
    return _cross(x, y, axisa=axisa, axisb=axisb, axisc=axisc)


def _cross_of_three(
    x: np.ndarray, y: np.ndarray, *, axisa: int, axisb: int, axisc: int
) -> np.ndarray | None:
    """Call NumPy's ``cross``, which deprecates vectors of two elements."""
    if x.shape[axisa : axisa + 1 or None] == y.shape[axisb : axisb + 1 or None] == (3,):
        return np.cross(x, y, axisa, axisb, axisc)
    return None


@eager(_cross_of_three, NUMERIC)
def _cross(x: Array, y: Array, *, axisa: int, axisb: int, axisc: int) -> Array:
    x, y = moveaxis(x, axisa, -1), moveaxis(y, axisb, -1)
    if x.shape[-1] not in (2, 3) or y.shape[-1] not in (2, 3):
        raise ValueError(
            f"cross: vectors must have 2 or 3 elements, got {x.shape[-1]} in a and {y.shape[-1]} "
            f"in b"
        )
    flat = x.shape[-1] == y.shape[-1] == 2
    x, y = promote_values("cross", *[_three(v) for v in (x, y)])

    def rotated(v: Array, by: int) -> Array:
        parts = (slice_in_dim(v, k, n, axis=-1) for k, n in ((by, 3), (0, by)))
        return concatenate(tuple(parts), v.ndim - 1)

    if flat:
        (x0, x1), (y0, y1) = ([v[..., i] for i in (0, 1)] for v in (x, y))
        return x0 * y1 - x1 * y0
    return moveaxis(rotated(x, 1) * rotated(y, 2) - rotated(x, 2) * rotated(y, 1), -1, axisc)


def _three(v: Array) -> Array:
    """Add a third element of 0 where there is none."""
    if v.shape[-1] == 3:
        return v
    return pad(v, 0, [(0, int(d == v.ndim - 1), 0) for d in range(v.ndim)])
