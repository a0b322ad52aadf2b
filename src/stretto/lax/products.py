"""Products other than ``dot_general``: of matrices, of ragged groups of rows, with scales."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypeAlias

import ml_dtypes
import numpy as np

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import as_dtype, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.bilinear import DotAlgorithm, DotAlgorithmPreset, Precision, promote_dtypes
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import gt, le, where
from stretto._engine.ops.contract import contracted
from stretto._engine.ops.convert import convert
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import (
    canonical_axes,
    canonical_axis,
    expand_dims,
    laid_out,
    move_axis,
    reshape,
    transpose,
)
from stretto._engine.ops.reducing.cumulative import cumsum

__all__ = ["DotDimensionNumbers", "PrecisionLike", "RaggedDotDimensionNumbers",
           "batch_matmul", "dot", "ragged_dot", "ragged_dot_general", "scaled_dot"]  # fmt: skip

DotDimensionNumbers: TypeAlias = tuple[
    tuple[Sequence[int], Sequence[int]], tuple[Sequence[int], Sequence[int]]
]
"""The axes contracted of two operands, and the axes shared."""

PrecisionLike: TypeAlias = (
    str | Precision | tuple[str, str] | tuple[Precision, Precision] | DotAlgorithm
    | DotAlgorithmPreset | None
)  # fmt: skip
"""The forms of ``precision`` in products and convolutions."""


def dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    dimension_numbers: DotDimensionNumbers | None = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply matrices and vectors.

    Args:
        lhs: a matrix or a vector; any array with ``dimension_numbers``.
        rhs: another; both are promoted to one dtype.
        dimension_numbers: the axes summed and shared, as in ``dot_general``; by default the last of
            ``lhs`` is summed with the first of ``rhs``.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The product.

    Raises:
        ValueError: summed sizes differ, or without ``dimension_numbers`` an operand is neither a
            matrix nor a vector; or the result cannot be split as ``out_sharding`` says.

    >>> import stretto as st
    >>> st.lax.dot(st.numpy.ones((2, 3)), st.numpy.ones(3))
    Array([3., 3.], dtype=float32)
    """
    x, y = promote_dtypes("dot", lhs, rhs)
    if dimension_numbers is None:
        if not (0 < x.ndim <= 2 and 0 < y.ndim <= 2):
            raise ValueError(
                f"dot: without dimension_numbers the operands must be matrices or vectors, got "
                f"{x.type} and {y.type}; use dot_general or numpy.matmul"
            )
        dimension_numbers = (((x.ndim - 1,), (0,)), ((), ()))
    result = contracted("dot", x, y, dimension_numbers, precision, preferred_element_type)
    return laid_out(result, out_sharding, "dot")


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: PrecisionLike = None) -> Array:
    """Multiply the matrices in the last two axes; the axes before are shared.

    Args:
        lhs: an array, ``[..., m, k]``.
        rhs: an array of the same rank, ``[..., k, n]``.
        precision: as in ``dot_general``.

    Returns:
        The products, ``[..., m, n]``.

    Raises:
        ValueError: the ranks differ or are below 2, or sizes differ.

    >>> import stretto as st
    >>> st.lax.batch_matmul(st.numpy.ones((5, 2, 3)), st.numpy.ones((5, 3, 4))).shape
    (5, 2, 4)
    """
    x, y = promote_dtypes("batch_matmul", lhs, rhs)
    if x.ndim != y.ndim or x.ndim < 2:
        raise ValueError(
            f"batch_matmul: expected operands of one rank, 2 or more, got {x.type} and {y.type}"
        )
    shared = tuple(range(x.ndim - 2))
    numbers = (((x.ndim - 1,), (x.ndim - 2,)), (shared, shared))
    return contracted("batch_matmul", x, y, numbers, precision)


# Ragged groups


class RaggedDotDimensionNumbers(NamedTuple):
    """Names the axes that a product with groups relates: ``dot_general``'s, and the groups'.

    Args:
        dot_dimension_numbers: the axes summed and shared, as in ``dot_general``.
        lhs_ragged_dimensions: the one axis of ``lhs`` that is made of groups.
        rhs_group_dimensions: the axis of ``rhs`` that numbers the groups, or none.
    """

    dot_dimension_numbers: DotDimensionNumbers
    lhs_ragged_dimensions: Sequence[int]
    rhs_group_dimensions: Sequence[int]


def ragged_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply rows by groups, each group by a matrix of its own.

    The first ``group_sizes[0]`` rows are multiplied by ``rhs[0]``, and so on.

    Args:
        lhs: the rows, ``[m, k]``.
        rhs: the matrices, ``[g, k, n]``.
        group_sizes: how many rows each group has, ``[g]``, integers.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        group_offset: must be None.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The products, ``[m, n]``; zeros for rows after the last group.

    Raises:
        TypeError: ``group_sizes`` are not integers.
        ValueError: shapes do not fit; or the result cannot be split as ``out_sharding`` says.
        NotImplementedError: ``group_offset`` is not None.

    >>> import stretto as st, stretto.numpy as snp
    >>> two = snp.array([[[1.0]], [[10.0]]])
    >>> snp.ravel(st.lax.ragged_dot(snp.ones((4, 1)), two, snp.array([1, 2])))
    Array([ 1., 10., 10.,  0.], dtype=float32)
    """
    numbers = RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    product = _ragged(
        "ragged_dot",
        lhs,
        rhs,
        group_sizes,
        numbers,
        precision,
        preferred_element_type,
        group_offset,
    )
    return laid_out(product, out_sharding, "ragged_dot")


def ragged_dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
    group_offset: None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply two arrays as ``dot_general`` does, with one axis of ``lhs`` made of groups.

    - That axis free: each group meets its own part of ``rhs`` along its group axis; elements after
      the last group give zeros.
    - That axis contracted: each group is summed by itself, along a new first axis of the output.
    - That axis shared: the product is that of ``dot_general``.

    Computed with a mask, in ``g`` times the work of one group.

    Args:
        lhs: an array.
        rhs: an array; both are promoted to one dtype.
        group_sizes: the sizes of the groups, integers, ``[g]``; or with axes before, the shared
            ones and those of the ragged axis' kind (free or contracted) that come before it.
        ragged_dot_dimension_numbers: which axes are summed, shared and ragged.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        group_offset: must be None.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The products.

    Raises:
        TypeError: ``group_sizes`` are not integers.
        ValueError: axes or shapes do not fit; or the result cannot be split as ``out_sharding``
            says.
        NotImplementedError: ``group_offset`` is not None.

    >>> import stretto as st, stretto.numpy as snp
    >>> numbers = st.lax.RaggedDotDimensionNumbers((((0,), (0,)), ((), ())), (0,), ())
    >>> st.lax.ragged_dot_general(snp.ones(5), snp.ones(5), snp.array([2, 3]), numbers)
    Array([2., 3.], dtype=float32)
    """
    product = _ragged(
        "ragged_dot_general",
        lhs,
        rhs,
        group_sizes,
        ragged_dot_dimension_numbers,
        precision,
        preferred_element_type,
        group_offset,
    )
    return laid_out(product, out_sharding, "ragged_dot_general")


def _ragged(
    caller: str,
    lhs: ArrayLike,
    rhs: ArrayLike,
    group_sizes: ArrayLike,
    ragged_dot_dimension_numbers: RaggedDotDimensionNumbers,
    precision: PrecisionLike,
    preferred_element_type: DTypeLike | None,
    group_offset: None,
) -> Array:
    if group_offset is not None:
        raise NotImplementedError(
            f"{caller}: group_offset must be None; slice rhs and group_sizes for some groups only"
        )
    x, y = promote_dtypes(caller, lhs, rhs)
    sizes = as_value(group_sizes, caller, "group_sizes")
    if kind_of(sizes.dtype) not in ("int", "uint"):
        raise TypeError(f"{caller}: group_sizes must be integers, got {sizes.type}")
    ((summed_x, summed_y), (shared_x, shared_y)), ragged_axes, group_axes = (
        ragged_dot_dimension_numbers
    )
    summed = canonical_axes(tuple(summed_x), x.ndim, caller)
    other = canonical_axes(tuple(summed_y), y.ndim, caller)
    shared = canonical_axes(tuple(shared_x), x.ndim, caller)
    (ragged,) = _one(caller, "lhs_ragged_dimensions", ragged_axes, x.ndim, 1)
    free = tuple(d for d in range(x.ndim) if d not in (*summed, *shared))
    groups = _one(caller, "rhs_group_dimensions", group_axes, y.ndim, int(ragged in free))
    batch = (shared, canonical_axes(tuple(shared_y), y.ndim, caller))

    def product(x: Array, summed: Sequence[int], other: Sequence[int]) -> Array:
        numbers = ((summed, other), batch)
        return contracted(caller, x, y, numbers, precision, preferred_element_type)

    if ragged in shared:
        return product(x, summed, other)
    kind = free if ragged in free else summed
    outer = (*shared, *kind[: kind.index(ragged)])
    parted = _split_groups(caller, x, sizes, ragged, outer)
    if ragged in free:
        return product(parted, (*summed, x.ndim), (*other, *groups))
    return move_axis(product(parted, summed, other), len(shared) + len(free), 0)


def _one(caller: str, name: str, axes: Sequence[int], ndim: int, count: int) -> tuple[int, ...]:
    places = tuple(canonical_axis(a, ndim, caller) for a in axes)
    if len(places) != count:
        raise ValueError(
            f"{caller}: {name} must have {count} axis for these lhs_ragged_dimensions, got {places}"
        )
    return places


def _split_groups(
    caller: str, x: Array, sizes: Array, ragged: int, outer: tuple[int, ...]
) -> Array:
    """Return ``x`` with a last axis of the groups: what is in each of them, zero elsewhere."""
    before = tuple(x.shape[d] for d in outer)
    if sizes.ndim not in (1, 1 + len(outer)) or sizes.shape[:-1] not in ((), before):
        raise ValueError(
            f"{caller}: group_sizes must have shape [g] or {[*before, 'g']} for lhs: {x.type}, got "
            f"{sizes.type}"
        )
    g, n = sizes.shape[-1], x.shape[ragged]
    sizes = broadcast_to(convert(sizes, np.dtype(np.int32)), (*before, g))
    ends = expand_dims(cumsum(sizes, len(before)), len(before))
    starts = ends - expand_dims(sizes, len(before))
    place = broadcasted_iota(np.int32, (*before, n, g), len(before))
    wide = place.shape
    inside = bitwise_and(
        le(broadcast_to(starts, wide), place), gt(broadcast_to(ends, wide), place)
    )  # [outer..., ragged, g]
    axes = (*outer, ragged)
    order = sorted(range(len(axes)), key=axes.__getitem__)
    inside = transpose(inside, (*order, len(axes)))
    whole = (*x.shape, g)
    mask = broadcast_in_dim(inside, whole, (*sorted(axes), x.ndim))
    return where(mask, broadcast_in_dim(x, whole, range(x.ndim)), 0)


# With scales


def scaled_dot(
    lhs: ArrayLike,
    rhs: ArrayLike,
    *,
    lhs_scale: ArrayLike | None = None,
    rhs_scale: ArrayLike | None = None,
    dimension_numbers: DotDimensionNumbers | None = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Multiply operands with scales, each for a number of elements along an axis.

    Args:
        lhs: a matrix, or a stack of them along a first axis.
        rhs: another.
        lhs_scale: the scales of ``lhs``: of its shape, except for contracted axes, where the size
            divides that of ``lhs``; none by default.
        rhs_scale: those of ``rhs``, likewise.
        dimension_numbers: the axes summed and shared, as in ``dot_general``, for other operands.
        preferred_element_type: the dtype to multiply in; by default bfloat16.

    Returns:
        The product of the operands times their scales, of that dtype.

    Raises:
        TypeError: an axis in ``dimension_numbers`` is not an integer.
        ValueError: shapes do not fit.

    >>> import stretto as st, stretto.numpy as snp
    >>> x, scale = snp.ones((1, 4)), snp.array([[1.0, 10.0]])
    >>> st.lax.scaled_dot(x, snp.ones((4, 1)), lhs_scale=scale)
    Array([[22]], dtype=bfloat16)
    """
    caller = "scaled_dot"
    x, y = as_value(lhs, caller, "lhs"), as_value(rhs, caller, "rhs")
    if dimension_numbers is None:
        if x.ndim != y.ndim or x.ndim not in (2, 3):
            raise ValueError(
                f"{caller}: give dimension_numbers for operands other than matrices and stacks of "
                f"them, got {x.type} and {y.type}"
            )
        shared = tuple(range(x.ndim - 2))
        dimension_numbers = (((x.ndim - 1,), (x.ndim - 2,)), (shared, shared))
    preferred = preferred_element_type
    dtype = np.dtype(ml_dtypes.bfloat16) if preferred is None else as_dtype(preferred)
    summed = dimension_numbers[0]
    x = _apply_scales(caller, "lhs", convert(x, dtype), lhs_scale, summed[0])
    y = _apply_scales(caller, "rhs", convert(y, dtype), rhs_scale, summed[1])
    return contracted(caller, x, y, dimension_numbers)


def _apply_scales(
    caller: str, name: str, x: Array, scale: ArrayLike | None, summed: Sequence[int]
) -> Array:
    """Return the operand times its scales, each repeated for the elements that it is for."""
    if scale is None:
        return x
    s = as_value(scale, caller, f"{name}_scale")
    axes = canonical_axes(integers(summed, caller, "dimension_numbers"), x.ndim, caller)
    fits = s.ndim == x.ndim and all(
        m == n or (d in axes and m and n % m == 0)
        for d, (n, m) in enumerate(zip(x.shape, s.shape, strict=True))
    )
    if not fits:
        raise ValueError(
            f"{caller}: {name}_scale must have the shape of {name}: {x.type}, except along "
            f"contracted axes {axes}, where sizes divide its; got {s.type}"
        )
    pairs = [(m, n // m) if m else (0, 1) for n, m in zip(x.shape, s.shape, strict=True)]
    split = tuple(k for pair in pairs for k in pair)
    repeated = broadcast_in_dim(s, split, range(0, 2 * x.ndim, 2))
    return x * convert(reshape(repeated, x.shape), x.dtype)
