"""Reductions over axes, greatest, least, product, bitwise and logical; and argmax and argmin.

The sum is in ``broadcast``, beside its transpose; the running forms are in ``cumulative``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Kernel, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, is_inexact, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops import reducing
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.comparison import eq, full_like, ne, select, zeros_like
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.elementwise import COMPARABLE, INTEGRAL, NUMERIC
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import (
    canonical_axes,
    canonical_axis,
    check_axes,
    reduce_vmap,
    reshape,
    transpose,
)
from stretto._engine.ops.reducing.along import called_along
from stretto._engine.ops.shape import pad, slice_in_dim


def greatest_below(dtype: np.dtype) -> Any:
    """Return the identity of ``max``: minus infinity, or the least number of the dtype."""
    return _extreme(dtype, -1)


def least_above(dtype: np.dtype) -> Any:
    """Return the identity of ``min``: infinity, or the greatest number of the dtype."""
    return _extreme(dtype, 1)


def _extreme(dtype: np.dtype, sign: int) -> Any:
    kind = kind_of(dtype)
    if kind == "bool":
        return sign > 0
    if kind in ("int", "uint"):
        info = ml_dtypes.iinfo(dtype)
        return int(info.max if sign > 0 else info.min)
    infinite = np.asarray(sign * np.inf).astype(dtype)
    if np.isinf(infinite.astype(np.float32)):
        return infinite[()]
    info = ml_dtypes.finfo(dtype)  # the dtypes of 8 bits that have no infinity
    return np.asarray(info.max if sign > 0 else info.min, dtype)[()]


def widened(dtype: np.dtype) -> np.dtype:
    """Give the dtype in which NumPy reduces: float32 for narrow floats, int32 for int4 and int2."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    if kind in ("int", "uint") and dtype.kind not in "iu":
        return np.dtype(np.int32)
    return dtype


class Reduction(Primitive, abstract=True):
    """The elements over some axes combined by an associative, commutative operation.

    A subclass states the kinds of dtype that it ``accepts``, the StableHLO operation ``op`` and
    the NumPy function ``ufunc`` that combine two elements, and the ``identity`` for a dtype.
    """

    kernel = Kernel.SUM
    light = True
    axes: tuple[int, ...]
    accepts: ClassVar[frozenset[str]]
    op: ClassVar[str]
    ufunc: ClassVar[np.ufunc]
    transpose = NOT_LINEAR

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return what combines with any element to that element."""
        raise NotImplementedError

    def infer(self, x: ArrayType) -> ArrayType:
        check_axes(self.name, x, self.axes)
        if kind_of(x.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name}: expected an array of kind {' or '.join(sorted(self.accepts))}, got "
                f"{x}"
            )
        return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in self.axes))

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Return the ufunc's ``reduce``; narrow dtypes in wider ones, as in XLA."""
        wide = x.astype(widened(x.dtype), copy=False)
        start = np.asarray(self.identity(x.dtype)).astype(wide.dtype)[()]
        out = self.ufunc.reduce(wide, axis=self.axes, initial=start, dtype=wide.dtype)
        return np.asarray(out).astype(x.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        return b.reduce(self.op, x, self.axes, self.identity(x.type.dtype))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return reduce_vmap(type(self), self.axes, args[0], axes[0])

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return 0 not in self.axes

    def padded(self, at: Any, x: Any) -> Any:
        """Padding counts as the identity."""
        return self(at.filled(x, at.types[0], self.identity(x.type.dtype), self.axes))


class Chooser(Reduction, abstract=True):
    """A reduction that chooses one of the elements."""

    accepts = COMPARABLE | {"bool"}

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Average the tangents of the elements that equal the one chosen; NaN equals NaN."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        kept = tuple(d for d in range(x.ndim) if d not in self.axes)
        chosen = eq(x, broadcast_in_dim(out, x.shape, kept)) | ne(x, x)
        count = reduce_sum(convert(chosen, x.dtype), self.axes)
        return out, reduce_sum(select(chosen, dx, zeros_like(dx)), self.axes) / count


class ReduceMax(Chooser):
    """The greatest; NaN where any is."""

    op = "maximum"
    ufunc = np.maximum
    identity = staticmethod(greatest_below)


class ReduceMin(Chooser):
    """The least; NaN where any is."""

    op = "minimum"
    ufunc = np.minimum
    identity = staticmethod(least_above)


class ReduceProd(Reduction):
    """The product."""

    accepts = NUMERIC
    op = "multiply"
    ufunc = np.multiply

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return 1."""
        return 1

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Apply the product rule over a tree of halves, so that zeros need no division.

        d(u v) = du v + u dv
        """
        (x,), (dx,) = primals, tangents
        u, du = lines_first(x, self.axes), lines_first(dx, self.axes)
        n = u.shape[0]
        out = self(x)
        if is_size(n):
            return out, reshape(reduce_sum(_others(u) * du, (0,)), out.shape)
        while n > 1:
            half = (n + 1) // 2
            first, last = (slice_in_dim(v, 0, half) for v in (u, du))
            second, dlast = slice_in_dim(u, half, n), slice_in_dim(du, half, n)
            if n % 2:
                rest = [(0, 1, 0), *[(0, 0, 0)] * (u.ndim - 1)]
                second, dlast = pad(second, 1, rest), pad(dlast, 0, rest)
            u, du = first * second, last * second + first * dlast
            n = half
        return out, reshape(du, out.shape) if n else zeros_like(out)


def _others(x: Any) -> Any:
    """Return for each element along the first axis the product of all others."""
    rest = [(0, 0, 0)] * (x.ndim - 1)
    before = pad(reducing.cumulative.cumprod(x), 1, [(1, -1, 0), *rest])
    return before * pad(reducing.cumulative.cumprod(x, reverse=True), 1, [(-1, 1, 0), *rest])


def lines_first(x: Any, axes: tuple[int, ...]) -> Any:
    """Join the axes into the first one."""
    kept = tuple(d for d in range(x.ndim) if d not in axes)
    joined = 1
    for d in axes:
        joined *= x.shape[d]
    return reshape(transpose(x, (*axes, *kept)), (joined, *(x.shape[d] for d in kept)))


class Bits(Reduction, abstract=True):
    """A reduction of bits, or of truth values."""

    accepts = INTEGRAL | {"bool"}
    jvp = ZERO_DERIVATIVE

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return no bit."""
        return 0


class ReduceAnd(Bits):
    """The bits, or truth, in all."""

    op = "and"
    ufunc = np.bitwise_and

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return all bits."""
        kind = kind_of(dtype)
        return -1 if kind == "int" else True if kind == "bool" else int(ml_dtypes.iinfo(dtype).max)


class ReduceOr(Bits):
    """The bits, or truth, in any."""

    op = "or"
    ufunc = np.bitwise_or


class ReduceXor(Bits):
    """The bits, or truth, in an odd number."""

    op = "xor"
    ufunc = np.bitwise_xor


# Functions

_operands = {
    "operand": "an array.",
    "axes": "the axes to reduce, negative from the end; all by default.",
}
_reduction = described(_operands)
_reduction_of_bits = described(
    _operands,
    raises="""TypeError: ``operand`` is neither of integers nor boolean.
    ValueError: an axis is out of bounds, or is named twice.""",
)


def _reduced(family: type[Reduction], x: Any, axes: Sequence[int] | int | None, caller: str) -> Any:
    x = as_value(x, caller, "operand")
    canonical = tuple(sorted(canonical_axes(axes, x.ndim, caller)))
    if kind_of(x.dtype) not in family.accepts or canonical:
        return family(canonical)(x)
    return x


@_reduction
def reduce_max(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Take the greatest element over axes.

    The derivative is shared equally among elements that tie.

    Returns:
        The greatest elements; NaN where any is. Of no elements, minus infinity or the least
            integer.

    Raises:
        TypeError: ``operand`` is complex.
        ValueError: an axis is out of bounds, or is named twice.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_max(st.numpy.array([[1, 5], [7, 3]]), (0,))
    Array([7, 5], dtype=int32)
    """
    return _reduced(ReduceMax, operand, axes, "reduce_max")


@_reduction
def reduce_min(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Take the least element over axes.

    The derivative is shared equally among elements that tie.

    Returns:
        The least elements; NaN where any is. Of no elements, infinity or the greatest integer.

    Raises:
        TypeError: ``operand`` is complex.
        ValueError: an axis is out of bounds, or is named twice.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_min(st.numpy.array([[1, 5], [7, 3]]), (0,))
    Array([1, 3], dtype=int32)
    """
    return _reduced(ReduceMin, operand, axes, "reduce_min")


@_reduction
def reduce_prod(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Multiply the elements over axes.

    Returns:
        The products, in the dtype of ``operand``; 1 of no elements.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_prod(st.numpy.array([[1, 5], [7, 3]]), (0,))
    Array([ 7, 15], dtype=int32)
    """
    return _reduced(ReduceProd, operand, axes, "reduce_prod")


@_reduction_of_bits
def reduce_and(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Combine the bits, or truth values, over axes by "and".

    Returns:
        The bits, or truth, that all elements have.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_and(st.numpy.array([6, 3]))
    Array(2, dtype=int32)
    """
    return _reduced(ReduceAnd, operand, axes, "reduce_and")


@_reduction_of_bits
def reduce_or(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Combine the bits, or truth values, over axes by "or".

    Returns:
        The bits, or truth, that any element has.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_or(st.numpy.array([6, 3]))
    Array(7, dtype=int32)
    """
    return _reduced(ReduceOr, operand, axes, "reduce_or")


@_reduction_of_bits
def reduce_xor(operand: ArrayLike, axes: Sequence[int] | int | None = None) -> Array:
    """Combine the bits, or truth values, over axes by "exclusive or".

    Returns:
        The bits, or truth, that an odd number of elements has.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_xor(st.numpy.array([6, 3]))
    Array(5, dtype=int32)
    """
    return _reduced(ReduceXor, operand, axes, "reduce_xor")


class Place(Primitive, abstract=True):
    """The index, along an axis, of the element that a chooser chooses: the first of equals."""

    axis: int
    index_dtype: np.dtype
    chooser: ClassVar[type[Chooser]]
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def infer(self, x: ArrayType) -> ArrayType:
        check_axes(self.name, x, (self.axis,))
        if kind_of(x.dtype) not in Chooser.accepts:
            raise TypeError(f"{self.name}: expected real numbers or booleans, got {x}")
        if kind_of(self.index_dtype) not in INTEGRAL:
            raise TypeError(
                f"{self.name}: expected an integer index_dtype, got {self.index_dtype.name}"
            )
        if not x.shape[self.axis]:
            raise ValueError(
                f"{self.name}: axis {self.axis} of {x} is empty, so no element can be chosen"
            )
        shape = tuple(n for d, n in enumerate(x.shape) if d != self.axis)
        return array_type(shape, self.index_dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Use NumPy's: the first NaN, where there is one, else the first of equals."""
        search = np.argmax if self.chooser is ReduceMax else np.argmin
        return np.asarray(search(x.astype(widened(x.dtype), copy=False), axis=self.axis))

    def lower(self, b: Any, x: Any) -> Any:
        """Return the least index of an element that equals the one chosen, or is NaN if that is."""
        out = b.outs[0]
        places = array_type(out.shape, np.dtype(np.int32))
        called = called_along(b, self.name, (x,), self.axis, places) if out.size else None
        if called is not None:
            return b.convert(called, out.dtype)
        return b.inline(self.composed, x) if out.size else b.splat(0, out)

    def onnx(self, b: Any, x: Any) -> Any:
        """Write ``ArgMax`` or ``ArgMin``."""
        out = b.outs[0]
        if not out.varies and not out.size:
            return b.splat(0, out)
        return b.place(x, self.axis, self.chooser is ReduceMax, out)

    def composed(self, x: Any) -> Any:
        """Write it with other operations."""
        kept = tuple(d for d in range(x.ndim) if d != self.axis)
        chosen = self.chooser((self.axis,))(x)
        there = eq(x, broadcast_in_dim(chosen, x.shape, kept))
        if is_inexact(x.dtype):
            there = there | ne(x, x)
        index = broadcasted_iota(np.dtype(np.int32), x.shape, self.axis)
        index = select(there, index, full_like(index, x.shape[self.axis]))
        return convert(ReduceMin((self.axis,))(index), self.index_dtype)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        shifted = self.axis + (axis <= self.axis)
        return type(self)(shifted, self.index_dtype)(args[0]), axis - (shifted < axis)

    def padded(self, at: Any, x: Any) -> Any:
        """Padding is never chosen: it counts as the last of what all others come before."""
        identity = self.chooser.identity(x.type.dtype)
        return self(at.filled(x, at.types[0], identity, (self.axis,)))


class Argmax(Place):
    """The index of the greatest element."""

    chooser = ReduceMax


class Argmin(Place):
    """The index of the least element."""

    chooser = ReduceMin


_index = described(
    {
        "operand": "an array.",
        "axis": "the axis to go along, negative from the end.",
        "index_dtype": "the dtype of the indices; by default int32.",
    },
    raises="""TypeError: ``operand`` is complex, or ``index_dtype`` is not of integers.
    ValueError: the axis is empty, or out of bounds.""",
)


@_index
def argmax(operand: ArrayLike, axis: int, index_dtype: DTypeLike = np.int32) -> Array:
    """Find the index of the greatest element along an axis.

    Returns:
        The indices, without the axis: the first of equal elements; NaN counts as greatest.

    >>> import stretto as st
    >>> st.lax.argmax(st.numpy.array([1.0, 5.0, 5.0]), 0)
    Array(1, dtype=int32)
    """
    return _place(Argmax, operand, axis, index_dtype, "argmax")


@_index
def argmin(operand: ArrayLike, axis: int, index_dtype: DTypeLike = np.int32) -> Array:
    """Find the index of the least element along an axis.

    Returns:
        The indices, without the axis: the first of equal elements; NaN counts as least.

    >>> import stretto as st
    >>> st.lax.argmin(st.numpy.array([5.0, 1.0, 1.0]), 0)
    Array(1, dtype=int32)
    """
    return _place(Argmin, operand, axis, index_dtype, "argmin")


def _place(
    family: type[Place], operand: ArrayLike, axis: int, index_dtype: DTypeLike, caller: str
) -> Array:
    x = as_value(operand, caller, "operand")
    dtype = dtype_argument(index_dtype, caller, "index_dtype")
    return family(canonical_axis(axis, x.ndim, caller), dtype)(x)
