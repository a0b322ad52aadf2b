"""Slices whose place is known only when the program runs, read and updated.

Each is the other's transpose. A batch of slices at different places is a gather or a scatter: see
``gather_scatter``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Linear, Value, as_value
from stretto._engine.core.primitive import Kernel, Primitive
from stretto._engine.core.sizes import is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, kind_of, promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import ADD
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import full, full_like, lt, or_zeros, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index.gather_scatter import gather, scatter
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.index.primitives import ScatterAdd
from stretto._engine.ops.layout import canonical_axis, move_to_front, reshape
from stretto._engine.ops.shape import concatenate


def _check_starts(caller: str, x: ArrayType, starts: Sequence[ArrayType]) -> None:
    kinds = {t.dtype for t in starts}
    scalars = all(not t.shape and kind_of(t.dtype) in ("int", "uint") for t in starts)
    if len(starts) != x.ndim or len(kinds) > 1 or not scalars:
        raise TypeError(
            f"{caller}: expected one start index for each axis of {x}, integer scalars of one "
            f"dtype; got {', '.join(map(str, starts)) or 'none'}"
        )


def _check_sizes(caller: str, what: str, x: ArrayType, sizes: Sequence[int]) -> None:
    if len(sizes) != x.ndim or any(not 0 <= m <= n for m, n in zip(sizes, x.shape, strict=False)):
        raise ValueError(f"{caller}: {what} {tuple(sizes)} does not fit into {x}")


def _window(
    shape: Sequence[int], sizes: Sequence[int], starts: Sequence[np.ndarray]
) -> tuple[slice, ...]:
    """Return the slices that are read: each start moved so that the slice fits."""
    return tuple(
        slice(a := max(0, min(int(start), n - m)), a + m)
        for n, m, start in zip(shape, sizes, starts, strict=True)
    )


def _vectors(
    size: int, starts: Sequence[Any], axes: Sequence[int | None], dims: Sequence[int]
) -> Any:
    """Return index vectors along the last axis, one an example, of the starts along ``dims``."""
    columns = []
    for d in dims:
        line = starts[d] if axes[d] is not None else broadcast_to(starts[d], (size,))
        columns.append(reshape(line, (size, 1)))
    return concatenate(columns, 1)


_FEW = 1 << 10
"""The size of a slice up to which its cotangent is added by a scatter, which reads nothing that a
loop has to order before its writes; NumPy takes some time for each element of one."""


class DynamicSlice(Primitive):
    """The slice of a static size whose start is given by scalar operands, moved to fit."""

    sizes: tuple[int, ...]
    kernel = Kernel.ONE

    @property
    def accumulates(self) -> tuple[int, ...]:
        return (0,)

    def infer(self, x: ArrayType, *starts: ArrayType) -> ArrayType:
        _check_starts(self.name, x, starts)
        _check_sizes(self.name, "the slice of sizes", x, self.sizes)
        return x.with_shape(self.sizes)

    def reference(self, x: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        return x[_window(x.shape, self.sizes, starts)]

    def lower(self, b: Any, x: Any, *starts: Any) -> Any:
        return b.dynamic_slice(x, starts, self.sizes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, *starts), dx = primals, tangents[0]
        return self(x, *starts), None if dx is None else self(dx, *starts)

    def transpose(self, ct: Any, x: Linear, *starts: Any) -> tuple[Any, ...]:
        """Add ``ct`` in the place it was read from, to zeros or to the sum so far."""
        total = x.so_far
        if total is None:
            total = full(x.shape, 0, x.dtype, ct.weak_type)
        elif starts and not is_size(ct.size) and ct.size <= _FEW:
            axes = tuple(range(x.type.ndim))
            place = concatenate([reshape(start, (1,)) for start in starts], 0)
            write = ScatterAdd(ScatterDimensionNumbers(axes, (), axes), "clip")
            return (write(total, place, ct), *(None for _ in starts))
        else:
            ct = ADD(self(total, *starts), ct)
        return (DYNAMIC_UPDATE_SLICE(total, ct, *starts), *(None for _ in starts))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Read the mapped axis whole where all have one start; with several, gather."""
        (x, *starts), (axis, *start_axes) = args, axes
        if all(a is None for a in start_axes):
            assert axis is not None
            zero = full_like(starts[0], 0) if starts else full((), 0, np.dtype(np.int32))
            moved = (*starts[:axis], zero, *starts[axis:])
            return DynamicSlice((*self.sizes[:axis], size, *self.sizes[axis:]))(x, *moved), axis
        batched = int(axis is not None)
        if axis is not None:
            x = move_to_front(x, axis)
        # a start along an axis that is read whole can only be 0
        dims = [d for d, m in enumerate(self.sizes) if m != x.shape[d + batched]] or [0]
        numbers = GatherDimensionNumbers(
            offset_dims=tuple(range(1, len(self.sizes) + 1)),
            collapsed_slice_dims=(),
            start_index_map=tuple(d + batched for d in dims),
            operand_batching_dims=(0,) * batched,
            start_indices_batching_dims=(0,) * batched,
        )
        sizes = (*(lesser(size, 1),) * batched, *self.sizes)
        vectors = _vectors(size, starts, start_axes, dims)
        return gather(x, vectors, numbers, sizes, mode="clip"), 0

    def padded(self, at: Any, x: Any, *starts: Any) -> Any:
        """Starts are moved so that the slice fits into the true size."""
        type = at.types[0]
        moved = _move_starts(at, starts, type.shape, self.sizes)
        return at.fit(at.cut(x, moved, at.shape(self.sizes)), at.outs[0])


class DynamicUpdateSlice(Primitive):
    """The operand with a slice, whose start is given by scalar operands, replaced."""

    kernel = Kernel.ONE

    def infer(self, x: ArrayType, update: ArrayType, *starts: ArrayType) -> ArrayType:
        _check_starts(self.name, x, starts)
        _check_sizes(self.name, "the update of shape", x, update.shape)
        if update.dtype != x.dtype:
            raise TypeError(f"{self.name}: expected an update of dtype {x.dtype}, got {update}")
        return array_type(x.shape, x.dtype, x.weak_type and update.weak_type)

    def reference(self, x: np.ndarray, update: np.ndarray, *starts: np.ndarray) -> np.ndarray:
        out = x.copy()
        out[_window(x.shape, update.shape, starts)] = update
        return out

    def lower(self, b: Any, x: Any, update: Any, *starts: Any) -> Any:
        return b.dynamic_update_slice(x, update, starts)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x, update, *starts), (dx, du, *_) = primals, tangents
        out = self(x, update, *starts)
        if dx is None and du is None:
            return out, None
        return out, self(or_zeros(dx, x), or_zeros(du, update), *starts)

    def transpose(self, ct: Any, x: Any, update: Any, *starts: Any) -> tuple[Any, ...]:
        """Give the update its slice of the cotangent, and the operand the rest."""
        ct_x = ct_update = None
        if isinstance(x, Linear):
            ct_x = self(ct, full(update.shape, 0, ct.dtype, ct.weak_type), *starts)
        if isinstance(update, Linear):
            ct_update = DynamicSlice(update.shape)(ct, *starts)
        return (ct_x, ct_update, *(None for _ in starts))

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Update the mapped axis whole where all have one start; with several, scatter."""
        (x, update, *starts), (axis, update_axis, *start_axes) = args, axes
        x, update = (
            broadcast_in_dim(v, (size, *v.shape), range(1, v.ndim + 1))
            if a is None
            else move_to_front(v, a)
            for v, a in ((x, axis), (update, update_axis))
        )
        if all(a is None for a in start_axes):
            zero = full_like(starts[0], 0) if starts else full((), 0, np.dtype(np.int32))
            return self(x, update, zero, *starts), 0
        ndim = update.ndim - 1
        dims = [d for d in range(ndim) if update.shape[d + 1] != x.shape[d + 1]] or [0]
        numbers = ScatterDimensionNumbers(
            update_window_dims=tuple(range(1, ndim + 1)),
            inserted_window_dims=(),
            scatter_dims_to_operand_dims=tuple(d + 1 for d in dims),
            operand_batching_dims=(0,),
            scatter_indices_batching_dims=(0,),
        )
        vectors = _vectors(size, starts, start_axes, dims)
        return scatter(x, vectors, update, numbers, mode="clip", unique_indices=True), 0

    def padded(self, at: Any, x: Any, update: Any, *starts: Any) -> Any:
        """Write as the slice; padding of the update is what is there."""
        type, part = at.types[:2]
        moved = _move_starts(at, starts, type.shape, part.shape)
        own = [d for d, n in enumerate(part.shape) if is_size(n) and n != type.shape[d]]
        mask = at.inside(part.shape, own)
        if mask is not None:
            update = select(mask, update, at.cut(x, moved, update.shape))
        return at.put(x, update, moved)


DYNAMIC_UPDATE_SLICE = DynamicUpdateSlice()


def _move_starts(
    at: Any, starts: Sequence[Any], shape: Sequence[Any], sizes: Sequence[Any]
) -> list[Any]:
    """Return the starts, each moved so that a window of these sizes fits into the true shape."""
    moved: list[Any] = []
    for start, n, m in zip(starts, shape, sizes, strict=True):
        last = n - m
        if not is_size(last) and last == 0:
            moved.append(0)
        else:
            near = minimum(start, convert(at.size(last), start.dtype))
            moved.append(maximum(near, full_like(start, 0)))
    return moved


# Functions


def _start_indices(
    caller: str, x: Any, starts: Any, allow_negative: bool | Sequence[bool]
) -> list[Any]:
    """Return a scalar for each axis, of one dtype, negative ones from the end if allowed."""
    if isinstance(starts, (Value, np.ndarray)):
        vector = as_value(starts, caller, "start_indices")
        if vector.shape != (x.ndim,):
            raise TypeError(
                f"{caller}: expected {x.ndim} start indices, one for each axis of {x.type}, got "
                f"{vector.type}"
            )
        pick = DynamicSlice((1,))
        starts = [reshape(pick(vector, full((), i, np.dtype(np.int32))), ()) for i in range(x.ndim)]
    elif not isinstance(starts, (tuple, list)):
        raise TypeError(
            f"{caller}: start_indices must be a sequence of integer scalars, one for each axis of "
            f"{x.type}, or an array of them; got {starts!r}"
        )
    if len(starts) != x.ndim:
        raise TypeError(
            f"{caller}: expected {x.ndim} start indices, one for each axis of {x.type}, got "
            f"{len(starts)}"
        )
    each = isinstance(allow_negative, (tuple, list))
    from_end = allow_negative if each else [allow_negative] * x.ndim
    if len(from_end) != x.ndim:
        raise ValueError(
            f"{caller}: allow_negative_indices must be a bool, or one for each axis of {x.type}; "
            f"got {allow_negative}"
        )
    if all(type(i) is int for i in starts):
        int32 = np.dtype(np.int32)
        bound = np.iinfo(int32).max
        places = [
            i + n if i < 0 and wraps else i
            for i, n, wraps in zip(starts, x.shape, from_end, strict=True)
        ]
        return [full((), max(0, min(i, bound)), int32) for i in places]
    values = [as_value(i, caller, f"start index {d}") for d, i in enumerate(starts)]
    for v in values:
        if v.shape or kind_of(v.dtype) not in ("int", "uint"):
            raise TypeError(f"{caller}: a start index must be an integer scalar, got {v.type}")
    dtype, _ = promote([(v.dtype, v.weak_type) for v in values], caller)
    if kind_of(dtype) not in ("int", "uint"):  # unsigned and signed of 64 bits have no common type
        raise TypeError(f"{caller}: start indices must have one dtype, got {values}")
    if dtype.itemsize < 4 or dtype.kind not in "iu":
        dtype = np.dtype(np.int32)  # so that every size fits
    values = [convert(v, dtype) for v in values]
    if dtype.kind == "u":
        return values
    return [
        select(lt(v, 0), v + full_like(v, n), v) if wraps else v
        for v, n, wraps in zip(values, x.shape, from_end, strict=True)
    ]


def dynamic_slice(
    operand: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    slice_sizes: Sequence[int],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Take a part of static sizes from a start that may be traced.

    Args:
        operand: an array.
        start_indices: an integer scalar for each axis, or an array of them; moved so that the part
            lies within ``operand``.
        slice_sizes: the sizes of the part.
        allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Returns:
        The part.

    Raises:
        TypeError: a size is not an integer, or there is not one integer index for each axis, of one
            dtype.
        ValueError: the sizes do not fit.

    Source: StableHLO, ``dynamic_slice``.

    >>> import stretto as st
    >>> st.lax.dynamic_slice(st.numpy.arange(5), (9,), (2,))
    Array([3, 4], dtype=int32)
    """
    x = as_value(operand, "dynamic_slice", "operand")
    sizes = integers(slice_sizes, "dynamic_slice", "slice_sizes")
    return _slice("dynamic_slice", x, start_indices, sizes, allow_negative_indices)


def _slice(caller: str, x: Any, starts: Any, sizes: tuple[int, ...], negative: Any) -> Any:
    _check_sizes(caller, "the slice of sizes", x.type, sizes)
    return DynamicSlice(sizes)(x, *_start_indices(caller, x, starts, negative))


def dynamic_update_slice(
    operand: ArrayLike,
    update: ArrayLike,
    start_indices: ArrayLike | Sequence[ArrayLike],
    *,
    allow_negative_indices: bool | Sequence[bool] = True,
) -> Array:
    """Replace a part of an array, from a start that may be traced.

    Args:
        operand: an array.
        update: the new part, of the dtype and rank of ``operand``.
        start_indices: an integer scalar for each axis, or an array of them; moved so that the part
            lies within ``operand``.
        allow_negative_indices: whether negative starts count from the end; for all axes or each.

    Returns:
        The array with the part replaced.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the sizes do not fit.

    Source: StableHLO, ``dynamic_update_slice``.

    >>> import stretto as st
    >>> st.lax.dynamic_update_slice(st.numpy.arange(4), st.numpy.array([7, 7]), (1,))
    Array([0, 7, 7, 3], dtype=int32)
    """
    caller = "dynamic_update_slice"
    x, part = as_value(operand, caller, "operand"), as_value(update, caller, "update")
    return _update(caller, x, part, start_indices, allow_negative_indices)


def _update(caller: str, x: Any, part: Any, starts: Any, negative: Any) -> Any:
    _check_update(caller, x.type, part.type)
    if part.weak_type:
        part = convert(part, x.dtype, x.weak_type)
    return DYNAMIC_UPDATE_SLICE(x, part, *_start_indices(caller, x, starts, negative))


def _check_update(caller: str, x: ArrayType, update: ArrayType) -> None:
    _check_sizes(caller, "the update of shape", x, update.shape)
    if update.dtype != x.dtype and not update.weak_type:
        raise TypeError(f"{caller}: expected an update of dtype {x.dtype}, got {update}")


def _along(x: Any, start: Any, axis: int) -> list[Any]:
    starts: list[Any] = [0] * x.ndim
    starts[axis] = start
    return starts


def dynamic_slice_in_dim(
    operand: ArrayLike,
    start_index: ArrayLike,
    slice_size: int,
    axis: int = 0,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take a part along one axis, from a start that may be traced.

    Args:
        operand: an array.
        start_index: an integer scalar, moved so that the part lies within ``operand``.
        slice_size: the size of the part.
        axis: the axis, negative from the end.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        The part.

    Raises:
        TypeError: ``slice_size`` is not an integer.
        ValueError: the size does not fit, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.dynamic_slice_in_dim(st.numpy.arange(5), 1, 2)
    Array([1, 2], dtype=int32)
    """
    x = as_value(operand, "dynamic_slice_in_dim", "operand")
    axis = canonical_axis(axis, x.ndim, "dynamic_slice_in_dim")
    sizes = (
        *x.shape[:axis],
        integer(slice_size, "dynamic_slice_in_dim", "slice_size"),
        *x.shape[axis + 1 :],
    )
    starts = _along(x, start_index, axis)
    return _slice("dynamic_slice_in_dim", x, starts, sizes, allow_negative_indices)


def dynamic_index_in_dim(
    operand: ArrayLike,
    index: ArrayLike,
    axis: int = 0,
    keepdims: bool = True,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Take the part at an index along an axis, which may be traced.

    Args:
        operand: an array.
        index: an integer scalar, moved into bounds.
        axis: the axis, negative from the end.
        keepdims: whether to keep the axis, with size 1.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        The part.

    Raises:
        TypeError: ``axis`` is not an integer.
        ValueError: the axis is empty or out of bounds.

    >>> import stretto as st
    >>> st.lax.dynamic_index_in_dim(st.numpy.arange(5), 3, keepdims=False)
    Array(3, dtype=int32)
    """
    caller = "dynamic_index_in_dim"
    x = as_value(operand, caller, "operand")
    axis = canonical_axis(axis, x.ndim, caller)
    sizes = (*x.shape[:axis], 1, *x.shape[axis + 1 :])
    part = _slice(caller, x, _along(x, index, axis), sizes, allow_negative_indices)
    return part if keepdims else reshape(part, (*x.shape[:axis], *x.shape[axis + 1 :]))


def dynamic_update_slice_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    start_index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace a part along one axis, from a start that may be traced.

    Args:
        operand: an array.
        update: the new part, of the dtype and rank of ``operand``.
        start_index: an integer scalar, moved so that the part lies within ``operand``.
        axis: the axis, negative from the end.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        The array with the part replaced.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the sizes do not fit, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.dynamic_update_slice_in_dim(st.numpy.arange(4), st.numpy.array([9]), 2, 0)
    Array([0, 1, 9, 3], dtype=int32)
    """
    caller = "dynamic_update_slice_in_dim"
    x, part = as_value(operand, caller, "operand"), as_value(update, caller, "update")
    axis = canonical_axis(axis, x.ndim, caller)
    return _update(caller, x, part, _along(x, start_index, axis), allow_negative_indices)


def dynamic_update_index_in_dim(
    operand: ArrayLike,
    update: ArrayLike,
    index: ArrayLike,
    axis: int,
    *,
    allow_negative_indices: bool = True,
) -> Array:
    """Replace the part at an index along an axis, which may be traced.

    Args:
        operand: an array.
        update: the new part, with or without the axis.
        index: an integer scalar, moved into bounds.
        axis: the axis, negative from the end.
        allow_negative_indices: whether a negative start counts from the end.

    Returns:
        The array with the part replaced.

    Raises:
        TypeError: the dtypes differ.
        ValueError: the sizes do not fit, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.dynamic_update_index_in_dim(st.numpy.arange(4), 9, 2, 0)
    Array([0, 1, 9, 3], dtype=int32)
    """
    caller = "dynamic_update_index_in_dim"
    x, part = as_value(operand, caller, "operand"), as_value(update, caller, "update")
    axis = canonical_axis(axis, x.ndim, caller)
    if part.ndim == x.ndim - 1:
        part = reshape(part, (*part.shape[:axis], 1, *part.shape[axis:]))
    return _update(caller, x, part, _along(x, index, axis), allow_negative_indices)
