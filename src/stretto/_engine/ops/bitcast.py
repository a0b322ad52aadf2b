"""The bits of elements, read as another dtype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import CARRIED, NOT_LINEAR, ZERO_DERIVATIVE, Kernel, Primitive
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.convert import dtype_argument
from stretto._engine.ops.layout import move_to_front


class BitcastConvertType(Primitive):
    """The same bits as another dtype; narrower elements along a new last axis, low bits first."""

    padded = CARRIED
    dtype: np.dtype
    kernel = Kernel.ONE

    def infer(self, x: ArrayType) -> ArrayType:
        """Return the same shape, with an axis more for a narrower dtype and one less for wider."""
        wide, narrow = x.dtype.itemsize, self.dtype.itemsize
        for dtype in (x.dtype, self.dtype):
            sub_byte = dtype.name.endswith(("int4", "int2"))
            if (kind_of(dtype) in ("bool", "complex") or sub_byte) and x.dtype != self.dtype:
                raise TypeError(
                    f"bitcast_convert_type: expected floats or integers of whole bytes, got {x} to "
                    f"{self.dtype}"
                )
        if wide == narrow:
            shape = x.shape
        elif wide > narrow:
            shape = (*x.shape, wide // narrow)
        else:
            ratio = narrow // wide
            if not x.ndim or x.shape[-1] != ratio:
                raise ValueError(
                    f"bitcast_convert_type: {ratio} elements of {x.dtype} make one {self.dtype}, "
                    f"so the last axis must have size {ratio}; got {x}"
                )
            shape = x.shape[:-1]
        return array_type(shape, self.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        wide, narrow = x.dtype.itemsize, self.dtype.itemsize
        if wide == narrow:
            return x.view(self.dtype)
        if wide > narrow:
            flat = np.ascontiguousarray(x).reshape(-1).view(self.dtype)
            return flat.reshape((*x.shape, wide // narrow))
        return np.ascontiguousarray(x).reshape(-1).view(self.dtype).reshape(x.shape[:-1])

    def lower(self, b: Any, x: Any) -> Any:
        return b.emit("bitcast_convert", x)

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis stays where it is, or goes first where the last axis is used up."""
        (x,), (axis,) = args, axes
        if x.dtype.itemsize >= self.dtype.itemsize:
            return self(x), axis
        return self(move_to_front(x, axis)), 0


def bitcast_convert_type(operand: ArrayLike, new_dtype: DTypeLike) -> Array:
    """Read the bits of an array as another dtype.

    Args:
        operand: an array of integers or real floats.
        new_dtype: the dtype to read as.

    Returns:
        The array; a narrower dtype adds a last axis, the low bits first, and a wider one removes
            it.

    Raises:
        TypeError: a dtype is boolean or complex, or ``new_dtype`` is not a dtype.
        ValueError: the last axis does not hold the parts of one element.

    Source: StableHLO, ``bitcast_convert``.

    >>> import stretto as st
    >>> import stretto.numpy as snp
    >>> st.lax.bitcast_convert_type(snp.array([1.0, -0.0]), snp.uint32)
    Array([1065353216, 2147483648], dtype=uint32)
    """
    caller = "bitcast_convert_type"
    x = as_value(operand, caller, "operand")
    target = dtype_argument(new_dtype, caller, "new_dtype")
    return x if x.dtype == target and not x.weak_type else BitcastConvertType(target)(x)
