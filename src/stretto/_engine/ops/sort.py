"""Sorting along an axis, by one key or several; and the k greatest.

The order of elements: numbers ascend, NaN comes last whatever its sign, and the two zeros are
equal; complex numbers go by real part, then imaginary part.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine import ops
from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, Primitive
from stretto._engine.core.types import ArrayType, array_type, default_dtype, is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.bitcast import has_negative_zero
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import align_mapped
from stretto._engine.ops.index.primitives import take_along_axis
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, check_axes, move_axis, move_to_front
from stretto._engine.ops.reducing.along import called_top_k
from stretto._engine.ops.reducing.reduce import greatest_below, widened
from stretto._engine.ops.shape import rev, slice_, slice_in_dim
from stretto._engine.ops.thresholds import TOP_K

_INT32 = np.dtype(np.int32)


def _along(x: Any, indices: Any, axis: int) -> Any:
    """Return the elements of each line at the indices, which are no more than the elements."""
    if not indices.size:
        return slice_(x, (0,) * x.ndim, indices.shape)
    return take_along_axis(x, indices, axis, "promise_in_bounds", wrap_negative=False)


class Sort(Primitive):
    """Operands of one shape, put in the order of the first ``num_keys``, the first foremost."""

    dimension: int
    num_keys: int = 1
    is_stable: bool = True
    multiple = True
    transpose = NOT_LINEAR

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        check_axes("sort", types[0], (self.dimension,))
        if not 0 < self.num_keys <= len(types):
            raise ValueError(
                f"sort: expected 1 to {len(types)} keys for {len(types)} operands, got "
                f"{self.num_keys}"
            )
        for i, other in enumerate(types[1:], 1):
            if other.shape != types[0].shape:
                raise ValueError(
                    f"sort: operands must have one shape, got {types[0]} (operand 0) and {other} "
                    f"(operand {i})"
                )
        return types

    def reference(self, *arrays: np.ndarray) -> tuple[np.ndarray, ...]:
        x, axis = arrays[0], self.dimension
        if len(arrays) == 1 and not is_complex(x.dtype):
            return (_sort_array(x, axis),)
        order = stable_order(arrays[: self.num_keys], axis)
        return tuple(np.take_along_axis(v, order, axis) for v in arrays)

    def lower(self, b: Any, *operands: Any) -> list[Any]:
        """Write StableHLO ``sort``, over integer keys where possible."""
        if not operands[0].type.size:
            return list(operands)

        by_value = ops.sort_lowering.order_by_value
        if self.num_keys == 1 and (order := by_value(b, operands, self.dimension)):
            return [b.inline(lambda v, i: _along(v, i, self.dimension), x, order) for x in operands]
        return ops.sort_lowering.lower_sort(
            b, operands, self.dimension, self.num_keys, self.is_stable
        )

    def onnx(self, b: Any, *operands: Any) -> list[Any]:
        """Write ``TopK`` for each key, the last first: it keeps the order of equal ones."""
        if operands[0].type.shape[self.dimension] == 0:
            return list(operands)
        return b.sort(operands, self.dimension, self.num_keys)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Give the tangents in the order of the primals: an iota is sorted along, to gather by."""
        index = broadcasted_iota(_INT32, primals[0].shape, self.dimension)
        *outs, order = self(*primals, index)
        moved = [None if dx is None else _along(dx, order, self.dimension) for dx in tangents]
        return tuple(outs), tuple(moved)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values, axis = align_mapped(size, args, axes)
        dimension = self.dimension + (axis <= self.dimension)
        outs = Sort(dimension, self.num_keys, self.is_stable)(*values)
        return outs, (axis,) * len(outs)

    def padded(self, at: Any, *xs: Any) -> Any:
        """Padding is what comes last; with several keys, whether it is padding is the first."""
        type, axes = at.types[0], (self.dimension,)
        inside = at.inside(type.shape, axes)
        if inside is None:
            return self(*xs)
        last = _last(type.dtype)
        if self.num_keys == 1 and last is not None and (self.is_stable or len(xs) == 1):
            # Of equal elements those of lower places come first, and padding has the highest.
            return self(at.filled(xs[0], type, last, axes), *xs[1:])
        first = convert(inside, _INT32)
        _, *outs = Sort(self.dimension, self.num_keys + 1, self.is_stable)(-first, *xs)
        return tuple(outs)


def _last(dtype: np.dtype) -> Any:
    """Return an element that no other one comes after; None where there is none to be named."""
    if dtype.kind == "f":
        return np.nan
    return True if dtype.kind == "b" else np.iinfo(dtype).max if dtype.kind in "iu" else None


# In NumPy


def _rising(x: np.ndarray) -> np.ndarray:
    """Turn floats into signed integers that rise as they do, NaN last; and these back.

    Of two negative floats the greater has the smaller magnitude bits, so those are flipped.
    """
    bits = np.dtype(f"i{x.dtype.itemsize}")
    if x.dtype.kind == "f":
        if (missing := np.isnan(x)).any():
            x = np.where(missing, x.dtype.type(np.nan), x)
        x = x.view(bits)
    flipped = np.right_shift(x, 8 * bits.itemsize - 1)  # all ones for negative numbers
    flipped &= np.iinfo(bits).max
    return np.bitwise_xor(flipped, x, out=flipped)


def _sort_array(x: np.ndarray, axis: int) -> np.ndarray:
    """Return NumPy's sort, with negative zeros first among zeros."""
    wide = x.astype(widened(x.dtype), copy=False)
    if wide.dtype.kind != "f" or not has_negative_zero(wide):
        return np.sort(wide, axis).astype(x.dtype, copy=False)
    return _rising(np.sort(_rising(wide), axis)).view(wide.dtype).astype(x.dtype, copy=False)


def stable_order(keys: Sequence[np.ndarray], axis: int) -> np.ndarray:
    """Return the stable permutation along the axis that sorts by the keys, the first foremost."""
    parts: list[np.ndarray] = []
    for key in keys:
        if is_complex(key.dtype):
            parts += [np.real(key), np.imag(key)]
        else:
            parts.append(key.astype(widened(key.dtype), copy=False))
    (key, *more), n = parts, keys[0].shape[axis]
    if more:
        return np.lexsort(parts[::-1], axis)
    if key.size >= _MANY and key.dtype.kind in "iu":
        order = _counting_argsort(key, axis)
        if order is not None:
            return order
    if key.dtype.itemsize > 4 or key.size < _MANY:
        return np.argsort(key, axis, kind="stable")
    # With the index in the lower half all are different, and NumPy sorts integers faster by value.
    if key.dtype.kind == "f":
        key = _rising(key + np.float32(0))  # the zeros become one
    packed = key.astype(np.int64, order="C")
    packed <<= 31
    packed |= np.arange(n).reshape([n if d == axis else 1 for d in range(key.ndim)])
    packed.sort(axis)
    packed &= 0x7FFFFFFF
    return packed


def _counting_argsort(key: np.ndarray, axis: int) -> np.ndarray | None:
    """Return the stable permutation of integers near each other, or all different; else None."""
    least = key.min()
    width, n = int(key.max()) - int(least) + 1, key.shape[axis]
    if width <= 1 << 16:  # of so few bits NumPy counts the digits
        short = np.uint8 if width <= 1 << 8 else np.uint16
        line = np.subtract(key, least, dtype=short, casting="unsafe")
        return np.argsort(line, axis, kind="stable")
    if width == n == key.size:  # perhaps a permutation: the order is its inverse
        order = np.full(n, -1, np.intp)
        order[key.reshape(-1) - least] = np.arange(n)
        return order.reshape(key.shape) if order.min() >= 0 else None
    return None


_MANY = 1 << 9


class TopK(Primitive):
    """The k greatest along the last axis, falling, and their indices; the first of equals first."""

    k: int
    multiple = True
    transpose = NOT_LINEAR

    def infer(self, x: ArrayType) -> tuple[ArrayType, ArrayType]:
        if is_complex(x.dtype):
            raise TypeError(f"top_k: expected real numbers or booleans, got {x}")
        if not x.ndim or not 0 <= self.k <= x.shape[-1]:
            raise ValueError(
                f"top_k: expected 0 <= k <= the size of the last axis of {x}, got {self.k}"
            )
        shape = (*x.shape[:-1], self.k)
        return x.with_shape(shape), array_type(shape, _INT32)

    def reference(self, x: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Give the end of a stable sort of the reversed axis, reversed: equals keep their order."""
        wide = x[..., ::-1].astype(widened(x.dtype), copy=False)
        last = np.argsort(wide, -1, kind="stable")[..., ::-1][..., : self.k]
        order = x.shape[-1] - 1 - last
        return np.take_along_axis(x, order, -1), order.astype(np.int32)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """XLA selects; NumPy sorts everything."""
        return types[0].size >= TOP_K

    def lower(self, b: Any, x: Any) -> list[Any]:
        """Write CHLO ``top_k`` of keys in which bits compare as numbers do.

        On several devices it is a sort: ``top_k`` brings the whole array to all of them.
        """
        values, indices = b.outs
        if not values.size:
            return [b.splat(0, values), b.splat(0, indices)]
        called = called_top_k(b, x, self.k, b.outs)
        if called is not None:
            return called
        if b.partitioned:
            order = b.inline(self._by_sorting, x)
        else:
            key = ops.sort_lowering.canonical_key(b, x)
            outs = (array_type(values.shape, key.type.dtype), indices)
            _, order = b.emit_many("top_k", (key,), outs, f"k = {self.k} : i64", dialect="chlo")
        return [b.inline(lambda v, i: _along(v, i, v.ndim - 1), x, order), order]

    def onnx(self, b: Any, x: Any) -> list[Any]:
        """Write ``TopK``."""
        values, order = b.order(x, x.type.ndim - 1, self.k, True)
        return [values, b.convert(order, b.outs[1].dtype)]

    def _by_sorting(self, x: Any) -> Any:
        """Return the indices of the k greatest."""
        falling = argsort(x, descending=True)
        return convert(slice_in_dim(falling, 0, self.k, 1, x.ndim - 1), _INT32)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        values, order = self(*primals)
        return (values, order), (_along(tangents[0], order, order.ndim - 1), None)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(move_to_front(args[0], axes[0])), (0, 0)

    def padded(self, at: Any, x: Any) -> Any:
        """Padding is the least that there is, and comes after what equals it."""
        least = greatest_below(x.type.dtype)
        return at.static(self)(at.filled(x, at.types[0], least, (x.ndim - 1,)))


# Functions


def sort_operands(
    operand: Any, dimension: int = -1, is_stable: bool = True, num_keys: int = 1
) -> Any:
    """Sort an array along an axis, or several together by the first of them.

    Args:
        operand: an array, or a sequence of arrays of one shape.
        dimension: the axis, negative from the end.
        is_stable: whether equal elements stay in their order.
        num_keys: how many of the arrays are compared, the first foremost.

    Returns:
        The sorted array, or a tuple of them; NaN comes last.

    Raises:
        TypeError: ``num_keys`` is not an integer.
        ValueError: there is no array, shapes differ, or the axis is out of bounds.

    Source: StableHLO, ``sort``.

    >>> import stretto.numpy as snp
    >>> from stretto._engine.ops.sort import sort_operands
    >>> keys, values = snp.array([2, 1, 2]), snp.array([7.0, 8.0, 6.0])
    >>> sort_operands((keys, values), num_keys=2)[1]
    Array([8., 6., 7.], dtype=float32)
    """
    is_sequence = isinstance(operand, (tuple, list))
    operands = operand if is_sequence else [operand]
    values = [as_value(x, "sort", f"operand {i}") for i, x in enumerate(operands)]
    if not values:
        raise ValueError("sort: expected at least one operand, got none")
    axis = canonical_axis(dimension, values[0].ndim, "sort")
    outs = Sort(axis, integer(num_keys, "sort", "num_keys"), bool(is_stable))(*values)
    return outs if is_sequence else outs[0]


def sort(x: Any, axis: int = -1, *, descending: bool = False, stable: bool = True) -> Any:
    """Put the elements of ``x`` in ascending order along ``axis``, or ``descending``.

    NaN comes last (first if ``descending``), the two zeros are equal, and complex numbers go by
    real part, then imaginary part.

    >>> import stretto.numpy as snp
    >>> snp.sort(snp.array([3.0, 1.0, 2.0]))
    Array([1., 2., 3.], dtype=float32)
    """
    x = as_value(x, "sort")
    axis = canonical_axis(axis, x.ndim, "sort")
    (out,) = Sort(axis, 1, bool(stable))(x)
    return rev(out, (axis,)) if descending else out


def argsort(
    x: ArrayLike, axis: int = -1, *, descending: bool = False, stable: bool = True
) -> Array:
    """Find the indices that sort an array along an axis.

    Args:
        x: an array.
        axis: the axis, negative from the end.
        descending: whether to sort from the greatest down.
        stable: whether equal elements stay in their order.

    Returns:
        The indices, of the default integer dtype.

    Raises:
        ValueError: the axis is out of bounds.

    >>> import stretto.numpy as snp
    >>> snp.argsort(snp.array([3.0, 1.0, 2.0]))
    Array([1, 2, 0], dtype=int32)
    """
    value = as_value(x, "argsort")
    axis = canonical_axis(axis, value.ndim, "argsort")
    index = broadcasted_iota(_INT32, value.shape, axis)
    if descending:  # equals in reversed order, reversed again
        value, index = rev(value, (axis,)), rev(index, (axis,))
    _, order = Sort(axis, 1, bool(stable))(value, index)
    order = rev(order, (axis,)) if descending else order
    return convert(order, default_dtype("int"))


def top_k(operand: ArrayLike, k: int, *, axis: int = -1) -> tuple[Array, Array]:
    """Find the greatest elements along an axis.

    Args:
        operand: an array.
        k: how many.
        axis: the axis, negative from the end.

    Returns:
        The elements, falling, and their int32 indices; of equal elements the first come first, and
            NaN counts as greatest.

    Raises:
        TypeError: ``k`` is not an integer.
        ValueError: the axis has fewer than ``k`` elements, or is out of bounds.

    >>> import stretto as st
    >>> st.lax.top_k(st.numpy.array([3.0, 1.0, 2.0]), 2)
    (Array([3., 2.], dtype=float32), Array([0, 2], dtype=int32))
    """
    x = as_value(operand, "top_k", "operand")
    primitive = TopK(integer(k, "top_k", "k"))
    last = x.ndim - 1
    if not x.ndim or (place := canonical_axis(axis, x.ndim, "top_k")) == last:
        return primitive(x)
    values, indices = primitive(move_axis(x, place, last))
    return move_axis(values, last, place), move_axis(indices, last, place)
