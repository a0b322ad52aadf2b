"""Products that sum over axes: ``dot_general``, and ``matmul`` and ``dot``, written with it.

One primitive serves matrix products of every kind, its own derivative and its own transpose.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.errors import ContractionError
from stretto._engine.core.integers import entries_of, integer
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.types import ArrayType, array_type, has_rows
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.arithmetic import multiply
from stretto._engine.ops.bilinear import (
    ALGORITHMS,
    Bilinear,
    accumulated,
    accumulator,
    algorithm_name,
    cotangent_and_known,
    precision_config,
    precision_name,
    promote_dtypes,
)
from stretto._engine.ops.complex_parts import conj
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.layout import canonical_axes, laid_out, reshape, squeeze, transpose
from stretto._engine.ops.thresholds import INTEGER_PRODUCTS, NARROW

AxisPairs: TypeAlias = tuple[tuple[int, ...], tuple[int, ...]]

_NONE: AxisPairs = ((), ())


class DotGeneral(Bilinear):
    """Products of ``x`` and ``y``, summed over some pairs of axes, and sharing other pairs.

    The axes of the output are the shared pairs, then the rest of ``x``, then the rest of ``y``.
    """

    light = True
    summed: AxisPairs
    shared: AxisPairs = _NONE
    precision: str | tuple[str, str] | None = None
    preferred: np.dtype | None = None

    @functools.cached_property
    def plain(self) -> int:
        """Return the rank of ``x`` that makes this ``x @ y``, for ``y`` of rank 1 or 2; else -1."""
        axes_x, axes_y = self.summed
        is_matrix_product = len(axes_x) == 1 and not self.shared[0]
        return axes_x[0] + 1 if is_matrix_product and axes_y == (0,) and axes_x[0] < 2 else -1

    def free(self, x: Any, y: Any) -> AxisPairs:
        """Return the axes of each operand that are neither summed nor shared, in order."""
        return self.free_of(x.ndim, y.ndim)

    def free_of(self, ndim_x: int, ndim_y: int) -> AxisPairs:
        """Return the same for operands of these ranks."""
        used_x, used_y = (*self.summed[0], *self.shared[0]), (*self.summed[1], *self.shared[1])
        return (
            tuple([a for a in range(ndim_x) if a not in used_x]),
            tuple([a for a in range(ndim_y) if a not in used_y]),
        )

    def infer(self, x: ArrayType, y: ArrayType) -> ArrayType:
        """Return sizes of shared, free and free axes; refuses axes that do not pair up."""
        if x.dtype != y.dtype:
            raise TypeError(f"dot_general: operands must have one dtype, got {x} and {y}")
        for type, summed, shared, name in zip((x, y), self.summed, self.shared, "xy", strict=True):
            if len({*summed, *shared}) != len(summed) + len(shared):
                raise ValueError(
                    f"dot_general: axes {summed} (contracted) and {shared} (shared) of {name}: "
                    f"{type} name an axis twice"
                )
        for axes_x, axes_y, what in ((*self.summed, "contracted"), (*self.shared, "shared")):
            _check_pairs(x, y, axes_x, axes_y, what)
        free_x, free_y = self.free(x, y)
        shape = (*[x.shape[a] for a in (*self.shared[0], *free_x)], *[y.shape[a] for a in free_y])
        weak = self.preferred is None and x.weak_type and y.weak_type
        return array_type(shape, self.preferred or x.dtype, weak)

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's products; narrow floats add up in float32, integers in float64 if exact."""
        out = self.preferred or x.dtype
        wide = accumulator(out)
        if x.dtype is not wide and x.dtype != wide:
            x, y = x.astype(wide), y.astype(wide)
        multiply = _exact if x.dtype.kind in "iu" else None
        # np.dot gives 0 for a factor of one element that is 0, also times NaN and infinity.
        plain = multiply or (np.matmul if x.size == 1 or y.size == 1 else np.dot)
        if x.ndim == self.plain and y.ndim <= 2:
            return plain(x, y)
        if x.ndim == y.ndim == 2 and len(self.summed[0]) == 1 and not self.shared[0]:
            left, right = x if self.summed[0][0] else x.T, y.T if self.summed[1][0] else y
            return plain(left, right)
        free_x, free_y = self.free(x, y)
        batch = [x.shape[a] for a in self.shared[0]]
        rows, columns = [x.shape[a] for a in free_x], [y.shape[a] for a in free_y]
        depth = math.prod([x.shape[a] for a in self.summed[0]])
        # Stacks of matrices: [shared..., rows, depth] and [shared..., depth, columns]
        left = x.transpose((*self.shared[0], *free_x, *self.summed[0]))
        right = y.transpose((*self.shared[1], *self.summed[1], *free_y))
        product = (multiply or np.matmul)(
            left.reshape((*batch, math.prod(rows), depth)),
            right.reshape((*batch, depth, math.prod(columns))),
        )
        return product.reshape((*batch, *rows, *columns)).astype(out, copy=False)

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return outs[0].size * math.prod([types[0].shape[a] for a in self.summed[0]])

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for large products of integers that are not multiplied as floats."""
        x, y = types
        if x.size < NARROW or x.dtype.kind not in "iu":
            return False
        work = self.work(types, self.out_types(types))
        as_floats = x.dtype.itemsize <= 4 and _worth_converting(work, x, y)
        return work >= INTEGER_PRODUCTS and not as_floats

    def lower(self, b: Any, x: Any, y: Any) -> Any:
        config = precision_config(self.precision, b.platform)
        return b.dot_general(x, y, self.summed, self.shared, config)

    def onnx(self, b: Any, x: Any, y: Any) -> Any:
        """Write ``MatMul`` of stacks of matrices."""
        return b.dot(x, y, self.summed, self.shared, b.outs[0])

    def transpose(self, ct: Any, x: Any, y: Any) -> tuple[Any, Any]:
        # z[s,f,g] = sum_k x[s,f,k] y[s,k,g], so x'[s,f,k] = sum_g z'[s,f,g] y[s,k,g]
        #                                     and y'[s,k,g] = sum_f x[s,f,k] z'[s,f,g].
        by_x = x.__class__ is Linear
        linear, known = (x, y) if by_x else (y, x)
        if not by_x and not self.free_of(x.type.ndim, y.type.ndim)[1]:
            return self.swapped().transpose(ct, y, x)[::-1]  # its axes lie as those of ``ct``
        product, order = _transposed(self, x.type.ndim, y.type.ndim, by_x)
        ct, known = cotangent_and_known(ct, known)
        out = product(ct, known) if by_x else product(known, ct)
        if order is not None:
            out = transpose(out, order)
        out = convert(out, linear.type.dtype, linear.type.weak_type)
        return (out, None) if by_x else (None, out)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Share one more pair where both are mapped; where one is, it has one more free axis."""
        (x, y), (axis_x, axis_y) = args, axes
        op, axis = self.mapped(x.ndim, y.ndim, axis_x, axis_y)
        return op(x, y), axis

    def swapped(self) -> DotGeneral:
        """Return the product of ``y`` and ``x``; the same if one of them has no free axes."""
        pair = isinstance(self.precision, tuple)
        precision = self.precision[::-1] if pair else self.precision  # type: ignore[index]
        return DotGeneral(self.summed[::-1], self.shared[::-1], precision, self.preferred)

    def mapped(
        self, ndim_x: int, ndim_y: int, axis_x: int | None, axis_y: int | None
    ) -> tuple[DotGeneral, int]:
        """Return the product of operands of these ranks with a mapped axis, and the result's.

        If both are mapped, it gives a product for each pair of examples.
        """
        summed = _step(self.summed[0], axis_x), _step(self.summed[1], axis_y)
        shared = _step(self.shared[0], axis_x), _step(self.shared[1], axis_y)
        if axis_x is not None and axis_y is not None:
            shared = (axis_x, *shared[0]), (axis_y, *shared[1])
        op = DotGeneral(summed, shared, self.precision, self.preferred)
        if axis_x is not None and axis_y is not None:
            return op, 0
        free_x, free_y = op.free_of(ndim_x, ndim_y)
        if axis_x is not None:
            return op, len(shared[0]) + free_x.index(axis_x)
        assert axis_y is not None
        return op, len(shared[0]) + len(free_x) + free_y.index(axis_y)

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        x, y = map(has_rows, types)
        if x and y:
            return self.shared[0][:1] == self.shared[1][:1] == (0,)
        return x and not self.shared[0] and 0 not in self.summed[0]

    def sums_rows(self, types: Sequence[ArrayType]) -> bool:
        return (0, 0) in zip(*self.summed, strict=True) and all(map(has_rows, types))

    def padded(self, at: Any, x: Any, y: Any) -> Any:
        """Padding counts as 0 in both operands, so that no infinity meets it."""
        pairs = zip((x, y), at.types, self.summed, strict=True)
        return self(*[at.filled(v, type, 0, axes) for v, type, axes in pairs])


@functools.lru_cache(8192)
def _transposed(
    product: DotGeneral, ndim_x: int, ndim_y: int, by_x: bool
) -> tuple[DotGeneral, tuple[int, ...] | None]:
    """Return the product of a cotangent and an operand, and the order to put its axes in, if any.

    ``by_x``: whether it gives the cotangent of the first operand.
    """
    free_x, free_y = product.free_of(ndim_x, ndim_y)
    summed, shared, precision = product.summed, product.shared, product.precision
    n, f = len(shared[0]), len(free_x)
    ct_shared = tuple(range(n))
    ct_x, ct_y = tuple(range(n, n + f)), tuple(range(n + f, n + f + len(free_y)))
    # `places`: the axis of the linear operand that each axis of the result is.
    if by_x:
        result = DotGeneral((ct_y, free_y), (ct_shared, shared[1]), precision)
        order = sorted(range(len(summed[1])), key=summed[1].__getitem__)
        places = (*shared[0], *free_x, *[summed[0][i] for i in order])
    else:
        result = DotGeneral((free_x, ct_x), (shared[0], ct_shared), precision)
        order = sorted(range(len(summed[0])), key=summed[0].__getitem__)
        places = (*shared[1], *[summed[1][i] for i in order], *free_y)
    axes = tuple(sorted(range(len(places)), key=places.__getitem__))
    return result, None if axes == tuple(range(len(axes))) else axes


def _worth_converting(work: float, x: Any, y: Any) -> bool:
    """Say whether there are enough products to repay converting both operands."""
    return work >= max(1 << 15, 4 * (x.size + y.size))


def _exact(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Multiply matrices of integers as floats, which NumPy does ten times as fast.

    Sums below 2^24 are exact in float32, and sums below 2^53 in float64. Beyond that halves are
    multiplied, x = 2^16 x' + x'': modulo 2^32, x y = x'' y'' + 2^16 (x' y'' + x'' y').
    """
    depth, columns = x.shape[-1], y.shape[-1] if y.ndim > 1 else 1
    if x.dtype.itemsize > 4 or depth >= 1 << 20 or not _worth_converting(x.size * columns, x, y):
        return np.matmul(x, y)
    magnitudes = [max(int(v.max()), -int(v.min())) for v in (x, y)]
    greatest = magnitudes[0] * magnitudes[1] * depth
    if greatest >= 1 << 24 and x.ndim > 2 and x.shape[-2] * depth * columns <= 1 << 10:
        return np.matmul(x, y)  # small matrices, which are no faster in float64
    if greatest < 1 << 53:
        wide = np.float32 if greatest < 1 << 24 else np.float64
        return np.matmul(x.astype(wide), y.astype(wide)).astype(np.int64).astype(x.dtype)
    high_x, high_y = ((v >> 16).astype(float) for v in (x, y))
    low_x, low_y = ((v & 0xFFFF).astype(float) for v in (x, y))
    out = np.matmul(high_x, low_y).astype(np.int64)
    out += np.matmul(low_x, high_y).astype(np.int64)
    out <<= 16
    out += np.matmul(low_x, low_y).astype(np.int64)
    return out.astype(x.dtype)


_MATMUL = {(n, m): DotGeneral(((n - 1,), (max(m - 2, 0),))) for n in (1, 2) for m in (1, 2)}


@functools.lru_cache(8192)
def _step(axes: tuple[int, ...], mapped: int | None) -> tuple[int, ...]:
    """Return axes of one example as axes of the mapped operand."""
    return axes if mapped is None else tuple([a + (a >= mapped) for a in axes])


def _check_pairs(
    x: ArrayType,
    y: ArrayType,
    axes_x: tuple[int, ...],
    axes_y: tuple[int, ...],
    what: str,
    caller: str = "dot_general",
) -> None:
    if len(axes_x) != len(axes_y):
        raise ValueError(
            f"{caller}: {what} axes come in pairs, got {axes_x} of x: {x} and {axes_y} of y: {y}"
        )
    for a, c in zip(axes_x, axes_y, strict=True):
        if not (0 <= a < x.ndim and 0 <= c < y.ndim):
            raise ValueError(f"{caller}: there is no {what} axis {a} of x: {x} or {c} of y: {y}")
        if x.shape[a] != y.shape[c]:
            raise ContractionError(
                f"{caller}: {what} sizes differ, {x.shape[a]} (axis {a} of x: {x}) and "
                f"{y.shape[c]} (axis {c} of y: {y})"
            )


# Functions


def dot_general(
    lhs: ArrayLike,
    rhs: ArrayLike,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Multiply two arrays, with any axes summed and any shared.

    Args:
        lhs: an array.
        rhs: an array; both are promoted to one dtype, two floats of 8 bits to the preferred one.
        dimension_numbers: ``((summed axes of lhs, of rhs), (shared axes of lhs, of rhs))``.
        precision: a ``Precision`` or its name, a pair of these, or a ``DotAlgorithm`` or its
            preset. On a CPU only an algorithm with factors narrower than the operands makes a
            difference. None stands for ``config.default_matmul_precision``.
        preferred_element_type: the dtype of the result, in which the products are added up where it
            is wider; by default that of the operands. Floats narrower than 32 bits are added up in
            float32.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The products: the shared axes, the rest of ``lhs``, the rest of ``rhs``.

    Raises:
        TypeError: ``dimension_numbers`` are not two pairs of axes, or the preferred dtype is of
            another kind than the operands'.
        ValueError: paired sizes differ, an axis is out of bounds or named twice, or CPUs do not
            have the algorithm; or the result cannot be split as ``out_sharding`` says.

    Source: StableHLO, ``dot_general``.

    >>> import stretto as st
    >>> x, y = st.numpy.ones((4, 2, 3)), st.numpy.ones((4, 3, 5))
    >>> st.lax.dot_general(x, y, (((2,), (1,)), ((0,), (0,)))).shape
    (4, 2, 5)
    """
    left, right = promote_dtypes("dot_general", lhs, rhs, preferred_element_type)
    result = contracted(
        "dot_general", left, right, dimension_numbers, precision, preferred_element_type
    )
    return laid_out(result, out_sharding, "dot_general")


def _axis_pairs(dimension_numbers: Any, caller: str) -> tuple[Any, Any]:
    """Return the summed axes of both operands, and the shared ones, each as tuples."""
    try:
        (summed_x, summed_y), (shared_x, shared_y) = dimension_numbers
        return (tuple(summed_x), tuple(summed_y)), (tuple(shared_x), tuple(shared_y))
    except (TypeError, ValueError):
        raise TypeError(
            f"{caller}: dimension_numbers must be ((summed axes of lhs, of rhs), (shared axes of "
            f"lhs, of rhs)), such as (((1,), (0,)), ((), ())); got {dimension_numbers!r}"
        ) from None


def contracted(
    caller: str,
    left: Any,
    right: Any,
    dimension_numbers: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Return what ``dot_general`` gives for two values of one dtype; errors name the caller."""
    summed, shared = (
        (canonical_axes(axes_x, left.ndim, caller), canonical_axes(axes_y, right.ndim, caller))
        for axes_x, axes_y in _axis_pairs(dimension_numbers, caller)
    )
    if caller != "dot_general":  # the name that the primitive's own errors give
        _check_pairs(left.type, right.type, *shared, "shared", caller)
        _check_pairs(left.type, right.type, *summed, "contracted", caller)
    algorithm = algorithm_name(precision, caller)
    if algorithm is not None:
        operands, total, _ = ALGORITHMS[algorithm]
        out_dtype = left.dtype
        if preferred_element_type is not None:
            out_dtype = dtype_argument(preferred_element_type, caller, "preferred_element_type")
        factor = left.dtype if left.dtype in operands else operands[0]
        preferred = None if total == factor else total
        product = DotGeneral(summed, shared, algorithm, preferred)
        return convert(product(convert(left, factor), convert(right, factor)), out_dtype)
    name = precision_name(precision, caller)
    return accumulated(
        caller,
        left,
        right,
        preferred_element_type,
        lambda x, y, dtype: DotGeneral(summed, shared, name, dtype)(x, y),
    )


def matmul(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Multiply matrices in the last two axes, the others broadcast; vectors as in NumPy.

    Raises ``ValueError`` for operands of rank 0, and where sizes do not fit.

    >>> import stretto.numpy as snp
    >>> snp.matmul(snp.array([[1, 2], [3, 4]]), snp.array([1, 1]))
    Array([3, 7], dtype=int32)
    """
    x, y = promote_dtypes("matmul", x, y)
    tx, ty = x.type, y.type
    plain = _MATMUL.get((tx.ndim, ty.ndim))
    if plain is not None and precision is preferred_element_type is settings.key.precision is None:
        if tx.shape[-1] != ty.shape[0]:
            _refuse_matmul(tx, ty)
        return plain(x, y)
    if not (tx.ndim and ty.ndim):
        raise ValueError(
            f"matmul: expected operands of rank 1 or more, got {tx} and {ty}; use multiply (*)"
        )
    if tx.shape[-1] != ty.shape[-min(ty.ndim, 2)]:
        _refuse_matmul(tx, ty)
    name = precision_name(precision, "matmul")
    return accumulated(
        "matmul", x, y, preferred_element_type, lambda x, y, dtype: _matmul(x, y, (name, dtype))
    )


def _refuse_matmul(x: ArrayType, y: ArrayType) -> None:
    place = max(y.ndim - 2, 0)
    raise ContractionError(
        f"matmul: contracted sizes differ, {x.shape[-1]} (axis {x.ndim - 1} of x: {x}) and "
        f"{y.shape[place]} (axis {place} of y: {y})"
    )


def _matmul(x: Any, y: Any, settings: tuple[Any, Any]) -> Any:
    """Share leading axes that both have; those that one side lacks stay free on the other."""
    rows, columns = min(x.ndim - 1, 1), min(y.ndim - 1, 1)
    batch_x, batch_y = x.shape[: x.ndim - 1 - rows], y.shape[: y.ndim - 1 - columns]
    batch = broadcast_shapes("matmul", batch_x, batch_y)
    n = len(batch)
    shared: list[tuple[int, int]] = []
    squeezed_x, squeezed_y = [], []
    # Where each leading axis of the result comes from: both, x or y; by its place there.
    source: list[str] = []
    for d in range(n):
        i, j = d - (n - len(batch_x)), d - (n - len(batch_y))
        one_x, one_y = i < 0 or batch_x[i] != batch[d], j < 0 or batch_y[j] != batch[d]
        if i >= 0 and (one_x or (batch[d] == 1 and j >= 0)):
            squeezed_x.append(i)
        if j >= 0 and one_y:
            squeezed_y.append(j)
        if i in squeezed_x or i < 0:
            source.append("y")
        elif one_y:
            source.append("x")
        else:
            source.append("both")
            shared.append((i, j))
    kept_x = [a for a in range(x.ndim) if a not in squeezed_x]
    kept_y = [a for a in range(y.ndim) if a not in squeezed_y]
    op = DotGeneral(
        ((len(kept_x) - 1,), (len(kept_y) - 1 - columns,)),
        (tuple([kept_x.index(i) for i, _ in shared]), tuple([kept_y.index(j) for _, j in shared])),
        *settings,
    )
    out = op(squeeze(x, tuple(squeezed_x)), squeeze(y, tuple(squeezed_y)))
    # The output's axes: shared, free of x, row, free of y, column.
    only_x = source.count("x")
    row = len(shared) + only_x
    place = {"both": 0, "x": len(shared), "y": row + rows}
    order = []
    for s in source:
        order.append(place[s])
        place[s] += 1
    order += [row] * rows + [out.ndim - 1] * columns
    return transpose(out, tuple(order))


def dot(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Sum over the last axis of ``x`` and the last but one of ``y``, as NumPy's ``dot``.

    Raises ``ContractionError`` where the sizes differ.

    >>> import stretto.numpy as snp
    >>> snp.dot(snp.array([1.0, 2.0]), snp.array([3.0, 4.0]))
    Array(11., dtype=float32)
    """
    x, y = promote_dtypes("dot", x, y)
    if not (x.ndim and y.ndim):
        return multiply(x, y)
    place = max(y.ndim - 2, 0)
    if x.shape[-1] != y.shape[place]:
        raise ContractionError(
            f"dot: contracted sizes differ, {x.shape[-1]} (axis {x.ndim - 1} of x: {x.type}) and "
            f"{y.shape[place]} (axis {place} of y: {y.type})"
        )
    plain = _MATMUL.get((x.ndim, y.ndim))
    if plain is not None and precision is preferred_element_type is settings.key.precision is None:
        return plain(x, y)
    numbers = (((x.ndim - 1,), (place,)), _NONE)
    return contracted("dot", x, y, numbers, precision, preferred_element_type)


# NumPy's other products: ``tensordot``, ``vdot``, ``inner`` and ``outer``.


def tensordot(
    x: Any, y: Any, axes: Any = 2, precision: Any = None, preferred_element_type: Any = None
) -> Any:
    """Sum products over ``axes``: a pair of axis lists, or how many last of ``x``, first of ``y``.

    Raises ``ValueError`` where paired sizes differ.

    >>> import stretto.numpy as snp
    >>> snp.tensordot(snp.ones((2, 3, 4)), snp.ones((3, 4, 5))).shape
    (2, 5)
    """
    x, y = promote_dtypes("tensordot", x, y)
    pair = entries_of(axes)
    if len(pair) > 1 or pair is axes:
        if len(pair) != 2:
            raise ValueError(f"tensordot: axes must be a number or two lists of axes, got {axes!r}")
        summed = tuple([tuple(entries_of(a)) for a in pair])
    else:
        n = integer(axes, "tensordot", "axes")
        if not 0 <= n <= min(x.ndim, y.ndim):
            raise ValueError(f"tensordot: {x.type} and {y.type} do not both have {n} axes to sum")
        summed = (tuple(range(x.ndim - n, x.ndim)), tuple(range(n)))
    numbers = (summed, ((), ()))
    return contracted("tensordot", x, y, numbers, precision, preferred_element_type)


def vdot(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the sum of ``conj(x) * y`` over all elements, in row-major order.

    >>> import stretto.numpy as snp
    >>> snp.vdot(snp.array([1j, 2.0]), snp.array([1j, 3.0]))
    Array(7.+0.j, dtype=complex64)
    """
    x, y = as_value(x, "vdot", "x"), as_value(y, "vdot", "y")
    if x.size != y.size:
        raise ContractionError(
            f"vdot: sizes differ, {x.size} (x: {x.type}) and {y.size} (y: {y.type})"
        )
    flat_x, flat_y = reshape(conj(x), (x.size,)), reshape(y, (y.size,))
    return dot(flat_x, flat_y, precision, preferred_element_type)


def inner(x: Any, y: Any, precision: Any = None, preferred_element_type: Any = None) -> Any:
    """Return the sum of products over the last axes of both; scalars multiply.

    >>> import stretto.numpy as snp
    >>> snp.inner(snp.ones((2, 3)), snp.ones((4, 3))).shape
    (2, 4)
    """
    x, y = promote_dtypes("inner", x, y)
    if not (x.ndim and y.ndim):
        return multiply(x, y)
    numbers = (((x.ndim - 1,), (y.ndim - 1,)), ((), ()))
    return contracted("inner", x, y, numbers, precision, preferred_element_type)


def outer(x: Any, y: Any) -> Any:
    """Multiply every element of ``x`` by every one of ``y``, both flattened.

    >>> import stretto.numpy as snp
    >>> snp.outer(snp.array([1, 2]), snp.array([3, 4]))
    Array([[3, 4],
           [6, 8]], dtype=int32)
    """
    x, y = as_value(x, "outer", "x"), as_value(y, "outer", "y")
    return multiply(reshape(x, (x.size, 1)), reshape(y, (1, y.size)))
