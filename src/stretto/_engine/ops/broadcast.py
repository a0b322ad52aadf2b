"""Broadcast and sum, each the other's transpose; reshape; transpose of axes.

Layer 2 (ops). These move and repeat elements; every other family's rules are written with them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import settings
from stretto._engine.core.integers import axis_of, integers, sizes_of
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Kernel, Primitive
from stretto._engine.core.program import Atom, Equation, repeated
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.sharding import refuse_sharding

__all__ = [
    "broadcast_in_dim",
    "broadcast_to",
    "canonical_axis",
    "canonical_axes",
    "expand_dims",
    "move_axis",
    "move_to_front",
    "of_rank",
    "reduce_sum",
    "reshape",
    "squeeze",
    "transpose",
]


class BroadcastInDim(Primitive):
    """Put each axis of the operand at a place of a larger shape, and repeat along the others."""

    kernel = Kernel.VIEW
    light = True
    shape: tuple[int, ...]
    dims: tuple[int, ...]
    splat = True

    def infer(self, x: ArrayType) -> ArrayType:
        """The shape asked for; each operand axis must be of size 1 or fit."""
        fits = len(self.dims) == x.ndim and all(
            0 <= d < len(self.shape) and n in (1, self.shape[d])
            for d, n in zip(self.dims, x.shape, strict=False)
        )
        if not fits or any(a >= b for a, b in zip(self.dims, self.dims[1:], strict=False)):
            raise ValueError(
                f"broadcast_in_dim: {x} does not fit shape {self.shape} at axes {self.dims}: each "
                f"axis must have size 1 or the size there, in increasing places"
            )
        return x.with_shape(self.shape)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """A view that repeats."""
        if not x.ndim:
            return repeated(x, self.shape)
        if x.size and x.flags.c_contiguous:  # the same view, at a fifth of the cost
            strides = [0] * len(self.shape)
            for d, n, stride in zip(self.dims, x.shape, x.strides, strict=True):
                strides[d] = 0 if n == 1 else stride
            return np.ndarray(self.shape, x.dtype, x, 0, strides)
        placed = [1] * len(self.shape)
        for d, n in zip(self.dims, x.shape, strict=True):
            placed[d] = n
        return np.broadcast_to(x.reshape(placed), self.shape)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        """The same element."""
        return x

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``broadcast_in_dim``."""
        return b.emit(
            "broadcast_in_dim", x, attributes=f"broadcast_dimensions = {b.ints(self.dims)}"
        )

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """A broadcast of a broadcast, or of new axes of size 1, is one."""
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
        """Linear."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Sum over the axes that were repeated."""
        added = [d for d in range(len(self.shape)) if d not in self.dims]
        stretched = [d for d, n in zip(self.dims, x.shape, strict=True) if n != self.shape[d]]
        summed = ReduceSum(tuple(sorted((*added, *stretched))))(ct) if added or stretched else ct
        return (reshape(summed, x.type.shape) if stretched else summed,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis goes first, to the first place."""
        x = move_to_front(args[0], axes[0])
        shape, dims = (size, *self.shape), (0, *(d + 1 for d in self.dims))
        return broadcast_in_dim(x, shape, dims), 0


class ReduceSum(Primitive):
    """The sum over some axes."""

    kernel = Kernel.SUM
    light = True
    axes: tuple[int, ...]

    def infer(self, x: ArrayType) -> ArrayType:
        """The operand's shape without those axes."""
        check_axes(self.name, x, self.axes)
        if kind_of(x.dtype) == "bool":
            raise TypeError(f"reduce_sum: expected numbers, got {x}; convert it with .astype(int)")
        return x.with_shape(tuple(n for d, n in enumerate(x.shape) if d not in self.axes))

    def reference(self, x: np.ndarray) -> np.ndarray:
        """NumPy's sum; types below float32 accumulate in float32, as in XLA."""
        dtype = x.dtype
        if dtype.itemsize < 4 and kind_of(dtype) == "float":
            dtype = np.dtype(np.float32)
        elif dtype.kind == "V":  # the integers narrower than a byte
            dtype = np.dtype(np.int32)
        wide = x if dtype is x.dtype else x.astype(dtype)
        return np.add.reduce(wide, axis=self.axes, dtype=dtype)

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``reduce`` with ``add``."""
        return b.reduce("add", x, self.axes, 0)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linear."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Repeat over the axes that were summed."""
        shape = x.type.shape
        kept = tuple([d for d in range(len(shape)) if d not in self.axes])
        return (BroadcastInDim(shape, kept)(ct) if self.axes else ct,)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is stepped over."""
        return reduce_vmap(type(self), self.axes, args[0], axes[0])


class Reshape(Primitive):
    """The same elements in row-major order, in another shape."""

    kernel = Kernel.VIEW
    light = True
    shape: tuple[int, ...]
    splat = True

    def infer(self, x: ArrayType) -> ArrayType:
        """The shape asked for, of the same size."""
        if math.prod(self.shape) != x.size:
            raise ValueError(
                f"reshape: {x} has {x.size} elements, shape {self.shape} another number"
            )
        return x.with_shape(self.shape)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """NumPy's reshape."""
        return x.reshape(self.shape)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        """The same element."""
        return x

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``reshape``."""
        return b.emit("reshape", x)

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Only the last of several reshapes counts."""
        if self.shape == x.type.shape:
            return x
        return (self, maker.inputs) if maker and isinstance(maker.primitive, Reshape) else None

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linear."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Reshape back."""
        return (reshape(ct, x.shape),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis goes first and stays."""
        return Reshape((size, *self.shape))(move_to_front(args[0], axes[0])), 0


class Transpose(Primitive):
    """The axes in another order."""

    light = True
    permutation: tuple[int, ...]
    splat = True

    def infer(self, x: ArrayType) -> ArrayType:
        """The operand's sizes, permuted."""
        if sorted(self.permutation) != list(range(x.ndim)):
            raise ValueError(
                f"transpose: {self.permutation} is not a permutation of the {x.ndim} axes of {x}"
            )
        return x.with_shape(tuple(x.shape[d] for d in self.permutation))

    def reference(self, x: np.ndarray) -> np.ndarray:
        """A view with the strides permuted."""
        return x.transpose(self.permutation)

    def splat_reference(self, x: np.ndarray) -> np.ndarray:
        """The same element."""
        return x

    def lower(self, b: Any, x: Any) -> Any:
        """StableHLO ``transpose``."""
        return b.emit("transpose", x, attributes=f"permutation = {b.ints(self.permutation)}")

    def simpler(self, x: Atom, maker: Equation | None) -> Any:
        """Several permutations are one, and that of no axis none."""
        if self.permutation == tuple(range(x.type.ndim)):
            return x
        if maker is None or not isinstance(maker.primitive, Transpose):
            return None
        first = maker.primitive.permutation
        return Transpose(tuple([first[d] for d in self.permutation])), maker.inputs

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Linear."""
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """The inverse permutation."""
        inverse = tuple(self.permutation.index(d) for d in range(x.ndim))
        return (Transpose(inverse)(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis goes first, the others permute after it."""
        (axis,) = axes
        assert axis is not None
        rest = [d for d in range(args[0].ndim) if d != axis]
        return Transpose((axis, *(rest[d] for d in self.permutation)))(args[0]), 0


def check_axes(caller: str, x: ArrayType, axes: Sequence[int]) -> None:
    """Raise unless these are distinct, non-negative axes of ``x``."""
    if len(set(axes)) != len(axes) or any(not 0 <= a < x.ndim for a in axes):
        raise ValueError(f"{caller}: axes {tuple(axes)} are not distinct axes of {x}")


def reduce_vmap(
    family: Any, reduced: tuple[int, ...], x: Any, axis: int | None, *settings: Any
) -> tuple[Any, int]:
    """Reduce over the axes of one example, with the mapped axis among them stepped over."""
    assert axis is not None
    shifted = tuple(a if a < axis else a + 1 for a in reduced)
    out_axis = axis - sum(a < axis for a in shifted)
    return family(shifted, *settings)(x), out_axis


# Functions


def canonical_axis(axis: Any, ndim: int, caller: str) -> int:
    """The axis counted from the front; raises NumPy's ``AxisError`` where there is no such axis.

    That is a ``ValueError`` and an ``IndexError``.
    """
    a = axis_of(axis, caller)
    if not -ndim <= a < ndim:
        raise np.exceptions.AxisError(
            f"{caller}: axis {a} is out of bounds for an array of {ndim} dimensions"
        )
    return a % ndim


def canonical_axes(axis: Any, ndim: int, caller: str) -> tuple[int, ...]:
    """All axes for ``None``, else the one or several named, counted from the front."""
    if axis is None:
        return tuple(range(ndim))
    several = axis if isinstance(axis, (tuple, list)) else (axis,)
    axes = tuple(canonical_axis(a, ndim, caller) for a in several)
    if len(set(axes)) != len(axes):
        raise ValueError(f"{caller}: axis {axis} names an axis twice")
    return axes


def broadcast_in_dim(
    operand: ArrayLike,
    shape: Sequence[int],
    broadcast_dimensions: Sequence[int],
    *,
    out_sharding: None = None,
) -> Array:
    """Repeat an array to a shape, its axis ``i`` at axis ``broadcast_dimensions[i]``.

    Args:
        operand: an array.
        shape: the shape to reach.
        broadcast_dimensions: where each axis of ``operand`` goes, rising.
        out_sharding: must be None.

    Returns:
        The array, of that shape and the dtype of ``operand``.

    Raises:
        ValueError: the axes do not fit, or a size is neither 1 nor that of ``shape``.
        NotImplementedError: ``out_sharding`` is not None.

    Source: StableHLO, ``broadcast_in_dim``.

    >>> import stretto as st
    >>> st.lax.broadcast_in_dim(st.numpy.array([1, 2]), (2, 3), (0,))
    Array([[1, 1, 1],
           [2, 2, 2]], dtype=int32)
    """
    if out_sharding is not None:
        refuse_sharding("broadcast_in_dim", out_sharding=out_sharding)
    x = as_value(operand, "broadcast_in_dim", "operand")
    shape = tuple(shape)
    if x.type.shape == shape:
        return x
    return BroadcastInDim(shape, tuple(broadcast_dimensions))(x)


def broadcast_to(x: Any, shape: Sequence[int]) -> Any:
    """``x`` repeated to ``shape``: axes align from the last, and size 1 stretches (NumPy's rule).

    Raises ``ValueError`` where it does not fit.

    >>> import stretto.numpy as snp
    >>> snp.broadcast_to(snp.array([1, 2]), (2, 2))
    Array([[1, 2],
           [1, 2]], dtype=int32)
    """
    x = as_value(x, "broadcast_to")
    shape = sizes_of((shape,) if isinstance(shape, int) else shape, "broadcast_to")
    own = x.type.shape
    offset = len(shape) - len(own)
    if offset < 0 or any([n not in (1, m) for n, m in zip(own, shape[offset:], strict=True)]):
        raise ValueError(f"broadcast_to: {x.type} does not broadcast to shape {shape}")
    return x if own == shape else BroadcastInDim(shape, tuple(range(offset, len(shape))))(x)


def of_rank(x: Any, rank: int) -> Any:
    """``x``, with axes of size 1 in front up to this rank where ranks that differ are refused.

    It broadcasts to the same either way; without the axes there is one operation less.
    """
    x = as_value(x, "broadcast")
    if settings.ranks == "allow" or x.ndim >= rank or not x.ndim:
        return x
    return reshape(x, (*(1,) * (rank - x.ndim), *x.shape))


def reduce_sum(operand: ArrayLike, axes: Sequence[int], *, out_sharding: None = None) -> Array:
    """Sum the elements over axes.

    Args:
        operand: an array.
        axes: the axes to add over, negative from the end.
        out_sharding: must be None.

    Returns:
        The sums, in the dtype of ``operand``, without the axes; ``operand`` where there are none.

    Raises:
        TypeError: ``operand`` is boolean.
        ValueError: an axis is out of bounds, or is named twice.
        NotImplementedError: ``out_sharding`` is not None.

    Source: StableHLO, ``reduce``.

    >>> import stretto as st
    >>> st.lax.reduce_sum(st.numpy.ones((2, 3)), (1,))
    Array([3., 3.], dtype=float32)
    """
    if out_sharding is not None:
        refuse_sharding("reduce_sum", out_sharding=out_sharding)
    x = as_value(operand, "reduce_sum", "operand")
    axes = tuple(sorted(canonical_axes(tuple(axes), x.ndim, "reduce_sum")))
    return ReduceSum(axes)(x) if axes else x


def reshape(
    operand: ArrayLike,
    new_sizes: Sequence[int] | int,
    dimensions: Sequence[int] | None = None,
    *,
    out_sharding: None = None,
) -> Array:
    """Give an array another shape, with its elements in row-major order.

    Args:
        operand: an array.
        new_sizes: the new shape; one size may be -1, and is then found from the others.
        dimensions: an order that the axes are put in first; by default as they are.
        out_sharding: must be None.

    Returns:
        The array, of the new shape.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the sizes do not multiply to that of ``operand``.
        NotImplementedError: ``out_sharding`` is not None.

    >>> import stretto.numpy as snp
    >>> snp.reshape(snp.arange(6), (2, -1))
    Array([[0, 1, 2],
           [3, 4, 5]], dtype=int32)
    """
    x = as_value(operand, "reshape", "operand")
    if out_sharding is not None:
        refuse_sharding("reshape", out_sharding=out_sharding)
    if dimensions is not None:
        x = transpose(x, dimensions)
    given = new_sizes if isinstance(new_sizes, (tuple, list)) else (new_sizes,)
    sizes = list(integers(given, "reshape", "the new shape"))
    if sizes.count(-1) == 1:
        rest = math.prod(n for n in sizes if n != -1)
        if rest == 0 or x.size % rest:
            raise ValueError(
                f"reshape: {x.type} ({x.size} elements) does not fit shape {tuple(sizes)}"
            )
        sizes[sizes.index(-1)] = x.size // rest
    if math.prod(sizes) != x.size or any(n < 0 for n in sizes):
        raise ValueError(f"reshape: {x.type} ({x.size} elements) does not fit shape {tuple(sizes)}")
    return x if x.shape == tuple(sizes) else Reshape(tuple(sizes))(x)


def transpose(operand: ArrayLike, permutation: Sequence[int] | None = None) -> Array:
    """Put the axes of an array in another order.

    Args:
        operand: an array.
        permutation: the axes in their new order; reversed by default.

    Returns:
        The array with its axes in that order.

    Raises:
        ValueError: ``permutation`` does not name each axis once.

    >>> import stretto.numpy as snp
    >>> snp.transpose(snp.ones((2, 3))).shape
    (3, 2)
    """
    x = as_value(operand, "transpose", "operand")
    if permutation is None:
        order = tuple(range(x.ndim))[::-1]
    else:
        order = canonical_axes(tuple(permutation), x.ndim, "transpose")
        if len(order) != x.ndim:
            raise ValueError(
                f"transpose: axes {tuple(permutation)} must name all {x.ndim} axes of {x.type}"
            )
    return x if order == tuple(range(x.ndim)) else Transpose(order)(x)


def move_axis(x: Any, source: int, destination: int) -> Any:
    """The axis ``source`` moved to ``destination`` (both non-negative), the others in order."""
    if source == destination:
        return x
    rest = [d for d in range(x.ndim) if d != source]
    rest.insert(destination, source)
    return transpose(x, rest)


def move_to_front(x: Any, axis: int | None) -> Any:
    """The mapped axis first."""
    assert axis is not None
    return move_axis(x, axis, 0)


def expand_dims(array: ArrayLike, dimensions: int | Sequence[int]) -> Array:
    """Insert axes of size 1.

    Args:
        array: an array.
        dimensions: the places of the new axes in the result, negative from the end.

    Returns:
        The array with the new axes.

    Raises:
        ValueError: a place is out of bounds, or is named twice.

    >>> import stretto.numpy as snp
    >>> snp.expand_dims(snp.ones(3), 0).shape
    (1, 3)
    """
    x = as_value(array, "expand_dims", "array")
    several = tuple(dimensions) if isinstance(dimensions, (tuple, list)) else (dimensions,)
    ndim = x.ndim + len(several)
    places = canonical_axes(several, ndim, "expand_dims")
    dims = [d for d in range(ndim) if d not in places]
    shape = [1] * ndim
    for d, n in zip(dims, x.shape, strict=True):
        shape[d] = n
    return reshape(x, tuple(shape))


def squeeze(array: ArrayLike, dimensions: int | Sequence[int] | None = None) -> Array:
    """Remove axes of size 1.

    Args:
        array: an array.
        dimensions: the axes to remove; by default all of size 1.

    Returns:
        The array without these axes.

    Raises:
        ValueError: a named axis has another size, is out of bounds, or is named twice.

    >>> import stretto.numpy as snp
    >>> snp.squeeze(snp.ones((1, 3, 1))).shape
    (3,)
    """
    x = as_value(array, "squeeze", "array")
    if dimensions is None:
        axes: tuple[int, ...] = tuple(d for d, n in enumerate(x.shape) if n == 1)
    else:
        axes = canonical_axes(dimensions, x.ndim, "squeeze")
    if any(x.shape[a] != 1 for a in axes):
        raise ValueError(f"squeeze: axis {dimensions} of {x.type} has a size other than 1")
    return reshape(x, tuple(n for d, n in enumerate(x.shape) if d not in axes))
