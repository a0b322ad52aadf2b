"""Arrays made of no operand: numbers in order, constants, and sizes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core import sizes
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.primitive import CARRIED, ZERO_DERIVATIVE, Primitive, Refused
from stretto._engine.core.sizes import Size
from stretto._engine.core.types import ArrayType, array_type, default_dtype, kind_of
from stretto._engine.core.typing import Array, DTypeLike, ShardingLike
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.layout import canonical_axis, laid_out


class Iota(Primitive):
    """Each element's index along one axis."""

    padded = CARRIED

    light = True
    dtype: np.dtype
    shape: tuple[int, ...]
    dimension: int

    def infer(self) -> ArrayType:
        if not 0 <= self.dimension < len(self.shape):
            raise ValueError(f"iota: dimension {self.dimension} is not an axis of {self.shape}")
        if kind_of(self.dtype) == "bool":
            raise TypeError("iota: expected a dtype of numbers, got bool")
        return array_type(self.shape, self.dtype)

    def reference(self) -> np.ndarray:
        """Use NumPy's ``arange``, repeated; the narrow dtypes round and wrap."""
        line = np.arange(self.shape[self.dimension]).astype(self.dtype)
        after = len(self.shape) - self.dimension - 1
        return np.broadcast_to(line.reshape(-1, *(1,) * after), self.shape)

    def lower(self, b: Any) -> Any:
        return b.iota(self.dimension, b.outs[0])

    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None


def iota(dtype: DTypeLike, size: int) -> Array:
    """Count from 0 to ``size - 1``.

    Args:
        dtype: the dtype.
        size: how many numbers.

    Returns:
        The numbers, ``[size]``.

    Raises:
        TypeError: ``size`` is not an integer, or ``dtype`` is not one of numbers.
        ValueError: ``size`` is negative.

    >>> import stretto as st
    >>> st.lax.iota(float, 3)
    Array([0., 1., 2.], dtype=float32)
    """
    return _counted("iota", dtype, sizes_of((size,), "iota"), 0)


def broadcasted_iota(
    dtype: DTypeLike,
    shape: Sequence[int],
    dimension: int,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Make an array whose elements are their indices along an axis.

    Args:
        dtype: the dtype.
        shape: the sizes of the axes.
        dimension: the axis to count along, negative from the end.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The indices.

    Raises:
        TypeError: a size is not an integer, or ``dtype`` is not one of numbers.
        ValueError: a size is negative, or the axis is out of bounds; or the result cannot be split
            as ``out_sharding`` says.

    Source: StableHLO, ``iota``.

    >>> import stretto as st
    >>> st.lax.broadcasted_iota(int, (2, 2), 0)
    Array([[0, 0],
           [1, 1]], dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(broadcasted_iota(dtype, shape, dimension), out_sharding, "broadcasted_iota")
    return _counted("broadcasted_iota", dtype, sizes_of(shape, "broadcasted_iota"), dimension)


def _counted(caller: str, dtype: DTypeLike, sizes: tuple[int, ...], dimension: int) -> Array:
    canonical = dtype_argument(dtype, caller)
    if kind_of(canonical) == "bool":
        raise TypeError(f"{caller}: expected a dtype of numbers, got bool")
    return Iota(canonical, sizes, canonical_axis(dimension, len(sizes), caller))()


# Constant arrays inside programs.
#
# A rule, or a user's derivative, may bring an array of its own into a program that is derived from
# another. An equation without operands holds it, so that programs stay closed.


class Held:
    """An array as a static parameter, compared by identity."""

    __slots__ = ("array", "type")

    def __init__(self, array: np.ndarray, type: ArrayType) -> None:
        self.array = array
        self.type = type

    def __repr__(self) -> str:
        return self.type.short()


class Constant(Primitive):
    """An array."""

    padded = CARRIED

    light = True
    held: Held
    interned = False
    rollable = False
    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return self.held.type

    def reference(self) -> np.ndarray:
        return self.held.array

    def lower(self, b: Any) -> Any:
        return b.array(self.held.array)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None


# Sizes that are known while the program runs, as values.


_KNOWN_LATER = Refused("the size is known only where the program is given a bucket")


class SizeOf(Primitive):
    """A size as a weak integer of this dtype."""

    light = True
    size: Size
    dtype: np.dtype = np.dtype(np.int32)
    reference = _KNOWN_LATER

    def lower(self, b: Any) -> Any:
        """Read the size off the shape of an input: in files alone, others know it beforehand."""
        return b.size_value(self.size, self.infer())

    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return array_type((), self.dtype, True)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None

    def padded(self, at: Any) -> Any:
        """Return the true size: an int64 where the bucket's may be too great for an int32."""
        size = at.exact(self.size)
        return convert(size, max(size.type.dtype, self.dtype), True)


sizes._VALUE.append(lambda size: SizeOf(size, default_dtype("int"))())
