"""Arrays put together: concatenate.

Its transpose is slices.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.comparison import or_zeros
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import align_mapped
from stretto._engine.ops.layout import canonical_axis
from stretto._engine.ops.shape import slice_in_dim


class Concatenate(Primitive):
    """The operands one after another along an axis."""

    light = True
    axis: int
    keeps_zeros = True
    rearranges = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return [None if d == self.axis else d for d in range(out.ndim)]

    def infer(self, *types: ArrayType) -> ArrayType:
        """Sizes add along the axis; everything else must agree."""
        first, d = types[0], self.axis
        if not 0 <= d < first.ndim:
            raise ValueError(f"concatenate: axis {d} is not an axis of {first}")
        for i, other in enumerate(types[1:], 1):
            fits = other.ndim == first.ndim and all(
                n == m or a == d
                for a, (n, m) in enumerate(zip(first.shape, other.shape, strict=True))
            )
            if not fits or other.dtype != first.dtype:
                raise (TypeError if fits else ValueError)(
                    f"concatenate: operands must have one dtype, and one shape but for axis {d}; "
                    f"got {first} (operand 0) and {other} (operand {i})"
                )
        total = sum(t.shape[d] for t in types)
        shape = (*first.shape[:d], total, *first.shape[d + 1 :])
        return array_type(shape, first.dtype, all(t.weak_type for t in types))

    def reference(self, *arrays: np.ndarray) -> np.ndarray:
        return np.concatenate(arrays, self.axis)

    def lower(self, b: Any, *operands: Any) -> Any:
        return b.emit("concatenate", *operands, attributes=f"dimension = {self.axis} : i64")

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*map(or_zeros, tangents, primals))

    def transpose(self, ct: Any, *args: Any) -> tuple[Any, ...]:
        cts, start = [], 0
        for x in args:
            stop = start + x.shape[self.axis]
            linear = isinstance(x, Linear)
            cts.append(slice_in_dim(ct, start, stop, axis=self.axis) if linear else None)
            start = stop
        return tuple(cts)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values, axis = align_mapped(size, args, axes)
        return Concatenate(self.axis + (axis <= self.axis))(*values), axis

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return self.axis != 0

    def padded(self, at: Any, *xs: Any) -> Any:
        """Put each operand where those before it end, over their padding."""
        d, types = self.axis, at.types
        if not any([is_size(t.shape[d]) for t in types[:-1]]):
            return self(*xs)
        out = at.fit(xs[0], at.outs[0])
        end = types[0].shape[d]
        for x, type in zip(xs[1:], types[1:], strict=True):
            start = [0] * type.ndim
            start[d] = at.size(end)
            out = at.put(out, x, start)
            end = end + type.shape[d]
        return out


def concatenate(operands: Sequence[ArrayLike], dimension: int = 0) -> Array:
    """Join arrays one after another along an axis.

    Args:
        operands: the arrays, which are promoted to one dtype.
        dimension: the axis, negative from the end.

    Returns:
        The joined array.

    Raises:
        TypeError: ``operands`` is not a sequence of arrays.
        ValueError: there are no arrays, they differ in another axis, or the axis is out of bounds.

    Source: StableHLO, ``concatenate``.

    >>> import stretto.numpy as snp
    >>> snp.concatenate([snp.array([1, 2]), snp.array([3.5])])
    Array([1. , 2. , 3.5], dtype=float32)
    """
    try:
        arrays = list(operands)
    except TypeError:
        message = f"concatenate: operands must be a sequence of arrays, got {operands!r}"
        raise TypeError(message) from None
    values = [as_value(x, "concatenate", f"operand {i}") for i, x in enumerate(arrays)]
    if not values:
        raise ValueError("concatenate: expected at least one array, got none")
    d = canonical_axis(dimension, values[0].ndim, "concatenate")
    dtype, weak = promote([(x.dtype, x.weak_type) for x in values], "concatenate")
    values = [convert(x, dtype, weak) for x in values]
    return values[0] if len(values) == 1 else Concatenate(d)(*values)
