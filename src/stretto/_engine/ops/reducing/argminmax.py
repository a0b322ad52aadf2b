"""Find where along an axis the greatest element is, and the least."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.types import ArrayType, array_type, is_inexact, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import eq, full_like, ne, select
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.elementwise import INTEGRAL
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import canonical_axis, check_axes
from stretto._engine.ops.reducing.reduce import Chooser, ReduceMax, ReduceMin, widened


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
        """NumPy's: the first NaN, where there is one, else the first of equals."""
        search = np.argmax if self.chooser is ReduceMax else np.argmin
        return np.asarray(search(x.astype(widened(x.dtype), copy=False), axis=self.axis))

    def lower(self, b: Any, x: Any) -> Any:
        """Return the least index of an element that equals the one chosen, or is NaN if that is."""
        out = b.outs[0]
        return b.inline(self.composed, x) if out.size else b.splat(0, out)

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
