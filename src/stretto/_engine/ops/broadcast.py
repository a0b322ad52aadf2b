"""Broadcast and sum, each the other's transpose.

Every other family's rules are written with these and those of ``layout``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.integers import integers, sizes_of
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import CARRIED, Kernel, Primitive
from stretto._engine.core.program import Atom, Equation, repeated
from stretto._engine.core.types import ArrayType, has_rows, kind_of
from stretto._engine.core.typing import Array, ArrayLike, ShardingLike
from stretto._engine.ops.layout import (
    Reshape,
    canonical_axes,
    check_axes,
    laid_out,
    move_to_front,
    reduce_vmap,
    reshape,
)


class BroadcastInDim(Primitive):
    """Put each axis of the operand at a place of a larger shape, and repeat along the others."""

    padded = CARRIED

    kernel = Kernel.VIEW
    light = True
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    splat = True
    keeps_zeros = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        places = {d: i for i, d in enumerate(self.dims) if x.shape[i] == self.shape[d]}
        return [places.get(d) for d in range(out.ndim)]

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        (x,) = types
        return (0 in self.dims) == has_rows(x)

    def infer(self, x: ArrayType) -> ArrayType:
        """Return the shape requested; each operand axis must have size 1 or fit."""
        fits = len(self.dims) == x.ndim and all(
            0 <= d < len(self.shape) and n in (1, self.shape[d])
            for d, n in zip(self.dims, x.shape, strict=False)
        )
        if any(n < 0 for n in self.shape):
            raise ValueError(f"broadcast_in_dim: sizes must not be negative, got {self.shape}")
        if not fits or any(a >= b for a, b in zip(self.dims, self.dims[1:], strict=False)):
            raise ValueError(
                f"broadcast_in_dim: {x} does not fit shape {self.shape} at axes {self.dims}: each "
                f"axis must have size 1 or the size there, in increasing places"
            )
        return x.with_shape(self.shape)

    def reference(self, x: np.ndarray) -> np.ndarray:
        if not x.ndim:
            return repeated(x, self.shape)
        if x.size and x.flags.c_contiguous:  # the same view, at a fifth of the cost
            strides = [0] * len(self.shape)
            for d, n, stride in zip(self.dims, x.shape, x.strides, strict=True):
                strides[d] = 0 if n == 1 else stride
            return np.ndarray(self.shape, x.dtype, x, 0, strides)
        sizes = [1] * len(self.shape)
        for d, n in zip(self.dims, x.shape, strict=True):
            sizes[d] = n
        return np.broadcast_to(x.reshape(sizes), self.shape)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        return x

    def lower(self, b: Any, x: Any) -> Any:
        return b.broadcast(x, self.dims, b.outs[0])

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Return a broadcast of a broadcast, or of a reshape that adds axes of size 1, is one."""
        if self.shape == x.type.shape:
            return x
        if maker is None:
            return None
        before: Any = maker.primitive
        (source,) = maker.inputs
        if isinstance(before, BroadcastInDim):
            dims = before.dims
        elif isinstance(before, Reshape):
            dims = tuple([d for d, n in enumerate(before.shape) if n != 1])
            if tuple([before.shape[d] for d in dims]) != source.type.shape:
                return None
        else:
            return None
        return BroadcastInDim(self.shape, tuple([self.dims[d] for d in dims])), (source,)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        added = [d for d in range(len(self.shape)) if d not in self.dims]
        stretched = [d for d, n in zip(self.dims, x.shape, strict=True) if n != self.shape[d]]
        total = ReduceSum(tuple(sorted((*added, *stretched))))(ct) if added or stretched else ct
        return (reshape(total, x.type.shape) if stretched else total,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        x = move_to_front(args[0], axes[0])
        shape, dims = (size, *self.shape), (0, *(d + 1 for d in self.dims))
        return broadcast_in_dim(x, shape, dims), 0


class ReduceSum(Primitive):
    """The sum over some axes."""

    kernel = Kernel.SUM
    light = True
    axes: tuple[int, ...]
    keeps_zeros = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return [d for d in range(x.ndim) if d not in self.axes]

    def infer(self, x: ArrayType) -> ArrayType:
        check_axes(self.name, x, self.axes)
        if kind_of(x.dtype) == "bool":
            raise TypeError(f"reduce_sum: expected numbers, got {x}; convert it with .astype(int)")
        return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in self.axes))

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Use NumPy's sum; types below float32 accumulate in float32, as in XLA."""
        dtype = x.dtype
        if dtype.itemsize < 4 and kind_of(dtype) == "float":
            dtype = np.dtype(np.float32)
        elif dtype.kind == "V":  # the integers narrower than a byte
            dtype = np.dtype(np.int32)
        wide = x if dtype is x.dtype else x.astype(dtype)
        return np.add.reduce(wide, axis=self.axes, dtype=dtype)

    def lower(self, b: Any, x: Any) -> Any:
        return b.reduce("add", x, self.axes, 0)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        shape = x.type.shape
        kept = tuple([d for d in range(len(shape)) if d not in self.axes])
        return (BroadcastInDim(shape, kept)(ct) if self.axes else ct,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return reduce_vmap(type(self), self.axes, args[0], axes[0])

    def by_rows(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> bool:
        return 0 not in self.axes

    def sums_rows(self, types: Sequence[ArrayType]) -> bool:
        return 0 in self.axes

    def padded(self, at: Any, x: Any) -> Any:
        """Count padding as 0."""
        return self(at.filled(x, at.types[0], 0, self.axes))


# Functions


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Repeat an array to a shape, its axis ``i`` at axis ``broadcast_dimensions[i]``.

    Args:
        operand: an array.
        shape: the shape to reach.
        broadcast_dimensions: where each axis of ``operand`` goes, in increasing order.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The array, of that shape and the dtype of ``operand``.

    Raises:
        TypeError: a size or an axis is not an integer.
        ValueError: the axes do not fit, a size is neither 1 nor that of ``shape``, or one is
            negative; or the result cannot be split as ``out_sharding`` says.

    Source: StableHLO, ``broadcast_in_dim``.

    >>> import stretto as st
    >>> st.lax.broadcast_in_dim(st.numpy.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        result = broadcast_in_dim(operand, shape, broadcast_dimensions)
        return laid_out(result, out_sharding, "broadcast_in_dim")
    caller = "broadcast_in_dim"
    x = as_value(operand, caller, "operand")
    sizes = integers(shape, caller, "shape")
    dims = integers(broadcast_dimensions, caller, "broadcast_dimensions")
    if x.type.shape == sizes and dims == tuple(range(len(sizes))):
        return x
    return BroadcastInDim(sizes, dims)(x)


def broadcast_to(x: Any, shape: Sequence[int], caller: str = "broadcast_to") -> Any:
    """Repeat ``x`` to ``shape``: axes align from the last, and size 1 stretches (NumPy's rule).

    Raises ``ValueError``, which names the caller, where it does not fit.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_to(snp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = as_value(x, caller)
    shape = sizes_of(shape, caller)
    own = x.type.shape
    offset = len(shape) - len(own)
    if offset < 0 or any([n not in (1, m) for n, m in zip(own, shape[offset:], strict=True)]):
        raise ValueError(f"{caller}: {x.type} does not broadcast to shape {shape}")
    return x if own == shape else BroadcastInDim(shape, tuple(range(offset, len(shape))))(x)


def of_rank(x: Any, rank: int) -> Any:
    """Put axes of size 1 in front of ``x`` up to this rank, where differing ranks are refused.

    It broadcasts to the same shape either way; without the axes there is one operation fewer.
    """
    x = as_value(x, "broadcast")
    if settings.ranks == "allow" or x.ndim >= rank or not x.ndim:
        return x
    return reshape(x, (*(1,) * (rank - x.ndim), *x.shape))


def reduce_sum(
    operand: ArrayLike, axes: Sequence[int], *, out_sharding: ShardingLike | None = None
) -> Array:
    """Sum the elements over axes.

    Args:
        operand: an array.
        axes: the axes to add over, negative from the end.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The sums, in the dtype of ``operand``, without the axes; ``operand`` where there are none.

    Raises:
        TypeError: ``operand`` is boolean, or an axis is not an integer.
        ValueError: an axis is out of bounds, or is named twice; or the result cannot be split as
            ``out_sharding`` says.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_sum(st.numpy.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(reduce_sum(operand, axes), out_sharding, "reduce_sum")
    x = as_value(operand, "reduce_sum", "operand")
    named = integers(axes, "reduce_sum", "axes")
    canonical = tuple(sorted(canonical_axes(named, x.ndim, "reduce_sum")))
    return ReduceSum(canonical)(x) if canonical else x
