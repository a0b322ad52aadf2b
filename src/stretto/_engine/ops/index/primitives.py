"""The primitives of gather and scatter, each the other's transpose; and elements along an axis."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple

import ml_dtypes
import numpy as np

from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Kernel, Primitive
from stretto._engine.core.sizes import at_most, is_size, lesser
from stretto._engine.core.types import ArrayType, array_type, default_dtype, kind_of
from stretto._engine.ops.arithmetic import add, negative, subtract
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import eq, full, gt, lt, or_zeros, where
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.index.geometry import (
    GatherDimensionNumbers,
    ScatterDimensionNumbers,
    access_mode,
    attribute,
    bounds_operand,
    flags,
    index_operand,
    out_shape,
    reading_mode,
    window_sizes,
)
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, move_to_front, reshape
from stretto._engine.ops.shape import concatenate

# Gather


def fill_bytes(dtype: np.dtype, fill_value: Any, caller: str = "gather") -> bytes:
    """Return the bytes of the element that is read out of bounds.

    By default NaN, the least signed or greatest unsigned integer, or True.
    """
    if fill_value is None:
        kind = kind_of(dtype)
        if kind in ("int", "uint"):
            bounds = ml_dtypes.iinfo(dtype)
            fill_value = int(bounds.min if kind == "int" else bounds.max)
        else:
            fill_value = True if kind == "bool" else math.nan
    element = np.asarray(fill_value)
    if element.ndim or element.dtype.kind in "OSU":
        raise TypeError(f"{caller}: fill_value must be a scalar, got {fill_value!r}")
    return element.astype(dtype).tobytes()


def fill_element(dtype: np.dtype, fill: bytes) -> Any:
    """Return the element of those bytes."""
    return np.frombuffer(fill, dtype)[0]


class Gather(Primitive):
    """Windows of the operand that start at the index vectors."""

    dimension_numbers: GatherDimensionNumbers
    slice_sizes: tuple[int, ...]
    mode: str = "clip"
    fill: bytes = b""
    indices_are_sorted: bool = False
    unique_indices: bool = False
    kernel = Kernel.ONE

    @property
    def accumulates(self) -> tuple[int, ...]:
        return (0,)

    def infer(self, x: ArrayType, indices: ArrayType) -> ArrayType:
        numbers, sizes = self.dimension_numbers, self.slice_sizes
        return x.with_shape(out_shape("gather", x, indices, numbers, sizes))

    def reference(self, x: np.ndarray, indices: np.ndarray) -> np.ndarray:
        """Broadcast index arrays, and index as NumPy does."""
        numbers, sizes = self.dimension_numbers, self.slice_sizes
        types = array_type(x.shape, x.dtype), array_type(indices.shape, indices.dtype)
        fill = fill_element(x.dtype, self.fill) if self.mode == "fill" else None
        shape = out_shape("gather", *types, numbers, sizes)
        return gather_reference(x, indices, numbers, sizes, out_shape=shape, fill=fill)

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        """Count what is read, not the whole operand."""
        return super().work(types[1:], outs)

    def lower(self, b: Any, x: Any, indices: Any) -> Any:
        """Write StableHLO ``gather``, which clamps; then a select for windows to fill."""
        n = self.dimension_numbers
        out = b.outs[0]
        indices = index_operand(b, indices)
        fields = {
            "offset_dims": n.offset_dims,
            "collapsed_slice_dims": n.collapsed_slice_dims,
            "operand_batching_dims": n.operand_batching_dims,
            "start_indices_batching_dims": n.start_indices_batching_dims,
            "start_index_map": n.start_index_map,
        }
        numbers = attribute("gather", fields, indices.type.ndim - 1)
        clipped = b.windows_at(x, indices, numbers, self.slice_sizes, self.indices_are_sorted, out)
        if self.mode != "fill" or not n.start_index_map:
            return clipped
        bounds = bounds_operand(b, indices, x.type.shape, self.slice_sizes, n.start_index_map)
        low = b.compare("GE", indices, b.splat(0, indices.type))
        high = b.compare("LE", indices, bounds)
        inside = b.emit("and", low, high, out=low.type)
        inside = b.reduce("and", inside, (indices.type.ndim - 1,), True)
        places = [d for d in range(out.ndim) if d not in n.offset_dims]
        mask = b.broadcast(inside, places, array_type(out.shape, np.dtype(bool)))
        fill = b.splat(fill_element(out.dtype, self.fill), out)
        return b.emit("select", mask, clipped, fill, out=out)

    def onnx(self, b: Any, x: Any, indices: Any) -> Any:
        """Write ``Gather``, or ``GatherND`` of index arrays; then a choice for windows to fill."""
        out = b.outs[0]
        fills = self.mode == "fill" and self.dimension_numbers.start_index_map
        fill = b.splat(fill_element(out.dtype, self.fill), out) if fills else None
        indices = index_operand(b, indices)
        return b.gather(x, indices, self.dimension_numbers, self.slice_sizes, out, fill)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Gather the tangent of the operand; the fill value is constant."""
        out, dx = self(*primals), tangents[0]
        if dx is None:
            return out, None
        zero = fill_bytes(dx.dtype, 0) if self.fill else b""
        return out, dataclasses.replace(self, fill=zero)(dx, primals[1])

    def transpose(self, ct: Any, x: Any, indices: Any) -> tuple[Any, Any]:
        """Add each window's cotangent where the window was read, to zeros or to the sum so far."""
        write = ScatterAdd(
            ScatterDimensionNumbers.of(self.dimension_numbers),
            _WRITE_MODE[self.mode],
            self.indices_are_sorted,
            self.unique_indices,
        )
        total = x.so_far
        if total is None:
            total = full(x.shape, 0, x.dtype, ct.type.weak_type)
        return write(total, indices, ct), None

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis becomes a window axis, an axis of the indices, or a batching axis."""
        x, indices = (
            a if d is None else move_to_front(a, d) for a, d in zip(args, axes, strict=True)
        )
        both, shared = None not in axes, axes[0] is None
        sizes = self.slice_sizes
        if not shared:
            sizes = (lesser(size, 1) if both else size, *sizes)
        gather_ = dataclasses.replace(
            self,
            dimension_numbers=self.dimension_numbers.mapped(not shared, axes[1] is not None),
            slice_sizes=sizes,
            indices_are_sorted=self.indices_are_sorted and axes[1] is None,
            unique_indices=self.unique_indices and not shared,
        )
        return gather_(x, indices), 0

    def padded(self, at: Any, x: Any, indices: Any) -> Any:
        """Out of bounds is what is past the true size; padding of the indices is in no order."""
        type, places = at.types
        moved = self.dimension_numbers.start_index_map
        if any([is_size(type.shape[d]) for d in moved]):
            last = _last_starts(at, type, self.slice_sizes, moved, indices)
            if self.mode == "fill":
                outside = full(indices.shape, _FAR, indices.dtype)
                indices = where(gt(indices, last), outside, indices)
            elif self.mode == "clip":
                indices = minimum(indices, last)
        fixed = dataclasses.replace(
            self,
            slice_sizes=at.static(self.slice_sizes),
            indices_are_sorted=self.indices_are_sorted and not places.varies,
        )
        return at.fit(fixed(x, indices), at.outs[0])


_WRITE_MODE = {"clip": "clip", "fill": "drop", "promise_in_bounds": "promise_in_bounds"}
_READ_MODE = {write: read for read, write in _WRITE_MODE.items()}


# Scatter


class ScatterFamily(Primitive, abstract=True):
    """The operand with windows that start at the index vectors combined with the updates.

    A subclass names its ``update``; ``op`` is the StableHLO operation that combines the element
    there and the update's.
    """

    dimension_numbers: ScatterDimensionNumbers
    mode: str = "drop"
    indices_are_sorted: bool = False
    unique_indices: bool = False
    update: ClassVar[str]
    op: ClassVar[str]

    def infer(self, x: ArrayType, indices: ArrayType, updates: ArrayType) -> ArrayType:
        """Return the operand's type; the updates must have the shape of the windows."""
        self.check(self.name, x, indices, updates)
        return x

    def check(self, caller: str, x: ArrayType, indices: ArrayType, updates: ArrayType) -> None:
        """Raise unless the types fit each other and the dimension numbers."""
        numbers = self.dimension_numbers.gather()
        sizes = window_sizes(x, updates, numbers)
        shape = out_shape(caller, x, indices, numbers, sizes)
        if updates.shape != shape or updates.dtype != x.dtype:
            raise TypeError(
                f"{caller}: expected updates of type {array_type(shape, x.dtype)}, got "
                f"{updates}; operand {x}, indices {indices}, {self.dimension_numbers}"
            )
        kind = kind_of(x.dtype)
        if (kind == "bool" and self.update == "sub") or (
            kind == "complex" and self.update in ("min", "max")
        ):
            raise TypeError(f"{caller}: not defined for {x}")

    def reference(self, x: np.ndarray, indices: np.ndarray, updates: np.ndarray) -> np.ndarray:
        """Return a copy, written at index arrays; narrow floats accumulate in float32."""
        numbers = self.dimension_numbers.gather()
        types = array_type(x.shape, x.dtype), array_type(updates.shape, x.dtype)
        sizes = window_sizes(*types, numbers)
        clip = self.mode == "clip"
        return scatter_reference(self.update, x, indices, updates, numbers, sizes=sizes, clip=clip)

    def lower(self, b: Any, x: Any, indices: Any, updates: Any) -> Any:
        """Write StableHLO ``scatter``, which drops windows out of bounds."""
        return self.written(b, x, indices, updates, self.combine)

    def written(
        self, b: Any, x: Any, indices: Any, updates: Any, combine: Callable[..., Any]
    ) -> Any:
        """Return the text of a scatter at these places that combines elements so."""
        n = self.dimension_numbers
        out = x.type
        sizes = window_sizes(x.type, updates.type, n.gather())
        indices = index_operand(b, indices)
        if self.mode == "clip" and n.scatter_dims_to_operand_dims:
            last = bounds_operand(b, indices, x.type.shape, sizes, n.scatter_dims_to_operand_dims)
            first = b.splat(0, indices.type)
            indices = b.emit("clamp", first, indices, last, out=indices.type)
        narrow = kind_of(x.type.dtype) == "float" and x.type.dtype.itemsize < 4
        if narrow and self.update in ("add", "sub", "mul"):
            x, updates = (b.convert(v, np.dtype(np.float32)) for v in (x, updates))
        element = array_type((), x.type.dtype)
        region = b.scalar_region((element, element), lambda old, new: [combine(b, old, new)])
        fields = {
            "update_window_dims": n.update_window_dims,
            "inserted_window_dims": n.inserted_window_dims,
            "input_batching_dims": n.operand_batching_dims,
            "scatter_indices_batching_dims": n.scatter_indices_batching_dims,
            "scatter_dims_to_operand_dims": n.scatter_dims_to_operand_dims,
        }
        numbers = attribute("scatter", fields, indices.type.ndim - 1)
        unique = self.unique_indices and self.mode != "clip"
        (result,) = b.emit_many(
            "scatter",
            (x, indices, updates),
            (x.type,),
            f"scatter_dimension_numbers = {numbers}, {flags(self.indices_are_sorted, unique)}",
            (region,),
        )
        return b.convert(result, out.dtype)

    def onnx(self, b: Any, x: Any, indices: Any, updates: Any) -> Any:
        """Write ``ScatterND`` at index arrays."""
        numbers = self.dimension_numbers.gather()
        sizes = window_sizes(x.type, updates.type, numbers)
        indices, clip = index_operand(b, indices), self.mode == "clip"
        return b.scatter(self.update, x, indices, updates, numbers, sizes, clip)

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        """Return the new element, from the old one and the update's."""
        return b.emit(self.op, old, new, out=old.type)

    def distinct(self, indices: Any) -> bool:
        """Say whether it is known that no element is updated twice."""
        stepped = self.dimension_numbers.scatter_indices_batching_dims
        sizes = [n for d, n in enumerate(indices.shape[:-1]) if d not in stepped]
        return at_most(math.prod(sizes)) <= 1 or (self.unique_indices and self.mode != "clip")

    def read(self, x: Any, indices: Any, updates: Any) -> Any:
        """Give the elements of ``x`` where each update goes; zero for updates that are dropped."""
        numbers = self.dimension_numbers.gather()
        return Gather(
            numbers,
            window_sizes(x.type, updates.type, numbers),
            _READ_MODE[self.mode],
            fill_bytes(x.dtype, 0),
            self.indices_are_sorted,
            self.unique_indices,
        )(x, indices)

    def other(self, family: type[ScatterFamily], *args: Any) -> Any:
        """Return another member of the family at the same places."""
        fields = dict(self.parameters())
        return family(**fields)(*args)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis becomes a window axis, or a batching axis if the indices have it."""
        x, indices, updates = args
        x, updates = (
            broadcast_to(v, (size, *v.shape)) if axis is None else move_to_front(v, axis)
            for v, axis in ((x, axes[0]), (updates, axes[2]))
        )
        mapped = axes[1] is not None
        if mapped:
            indices = move_to_front(indices, axes[1])
        numbers = self.dimension_numbers.gather().mapped(True, mapped)
        scatter_ = dataclasses.replace(
            self,
            dimension_numbers=ScatterDimensionNumbers.of(numbers),
            indices_are_sorted=self.indices_are_sorted and not mapped,
        )
        return scatter_(x, indices, updates), 0

    def padded(self, at: Any, x: Any, indices: Any, updates: Any) -> Any:
        """Count what is past the true size as out of bounds; drop updates that are padding."""
        numbers = self.dimension_numbers
        type, places, changes = at.types
        moved = numbers.scatter_dims_to_operand_dims
        sizes = window_sizes(type, changes, numbers.gather())
        wide = [a for a, n in enumerate(changes.shape) if is_size(n)]
        across = [a for a in wide if a not in numbers.update_window_dims]
        part = [a for a in wide if a not in across and not _whole(self, type, sizes, a)]
        if part:
            updates = self.kept(at, x, indices, updates, part)
        if across or any([is_size(type.shape[d]) for d in moved]):
            last = _last_starts(at, type, sizes, moved, indices)
            far = full(indices.shape, _FAR, indices.dtype)
            if self.mode == "clip":
                low = full(indices.shape, 0, indices.dtype)
                indices = maximum(minimum(indices, last), low)
            else:
                indices = where(gt(indices, last), far, indices)
            mask = at.inside(places.shape)
            if mask is not None:
                indices = where(mask, indices, far)
            in_order = self.indices_are_sorted and mask is None
            write = dataclasses.replace(self, mode="drop", indices_are_sorted=in_order)
            return write(x, indices, updates)
        return self(x, indices, updates)

    def kept(self, at: Any, x: Any, indices: Any, updates: Any, axes: Sequence[int]) -> Any:
        """Return the updates, with what changes nothing in the place of padding along window axes.

        By default that is what is there.
        """
        inside = at.inside(at.types[2].shape, axes)
        return where(inside, updates, self.read(x, indices, updates))


class ScatterSet(ScatterFamily):
    """The update replaces the element."""

    name = "scatter"
    update = "set"

    def combine(self, b: Any, old: Any, new: Any) -> Any:
        """Return the update's element."""
        return new

    def lower(self, b: Any, x: Any, indices: Any, updates: Any) -> Any:
        """The last update of an element sets it; GPUs write in any order, so they are numbered."""
        if b.platform == "cpu" or self.distinct(indices.type) or not updates.type.size:
            return super().lower(b, x, indices, updates)
        number = array_type(x.type.shape, default_dtype("int"))
        ids = b.inline(lambda: _numbers(updates.type.shape))
        greatest = lambda b, old, new: b.emit("maximum", old, new, out=old.type)
        winner = self.written(b, b.splat(0, number), indices, ids, greatest)
        return b.inline(_set_by, winner, x, updates)

    def winners(self, x: Any, indices: Any, updates: Any) -> tuple[Any, Any]:
        """Return the number of the update that set each element, from 1, or 0; and all numbers."""
        ids = _numbers(updates.shape)
        return self(full(x.shape, 0, ids.dtype), indices, ids), ids

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Each element's tangent is that of what it was set by.

        Where several updates may set one element, their numbers are scattered first, and value and
        tangent are read by the number that won: so they agree on devices that write in any order.
        """
        x, indices, updates = primals
        dx, _, du = tangents
        if dx is None and du is None:
            return self(*primals), None
        if du is None or self.distinct(indices):
            return self(*primals), self(or_zeros(dx, x), indices, or_zeros(du, updates))
        winner, _ = self.winners(x, indices, updates)
        return _set_by(winner, x, updates), _set_by(winner, or_zeros(dx, x), du)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, None, Any]:
        """Overwritten elements get zero; an update gets the cotangent of the elements it set."""
        ct_x = ct_updates = None
        if isinstance(x, Linear):
            ct_x = self(ct, indices, full(updates.shape, 0, ct.dtype, ct.type.weak_type))
        if isinstance(updates, Linear):
            ct_updates = self.read(ct, indices, updates)
            if not self.distinct(indices):
                winner, ids = self.winners(x, indices, updates)
                ct_updates = where(eq(self.read(winner, indices, ids), ids), ct_updates, 0)
        return ct_x, None, ct_updates


_FAR = 1 << 30
"""An index that is out of bounds of any axis whose size varies."""


def _last_starts(
    at: Any, type: ArrayType, sizes: Sequence[Any], moved: Sequence[int], indices: Any
) -> Any:
    """Return the last start of each component of index vectors at which a window fits."""
    ends = [convert(at.size(type.shape[d] - sizes[d]), indices.dtype) for d in moved]
    line = concatenate([reshape(end, (1,)) for end in ends], 0)
    return broadcast_in_dim(line, indices.shape, (indices.ndim - 1,))


def _whole(op: ScatterFamily, type: ArrayType, sizes: Sequence[Any], axis: int) -> bool:
    """Say whether windows are as large as the operand along this axis of the updates."""
    numbers = op.dimension_numbers
    left_out = {*numbers.inserted_window_dims, *numbers.operand_batching_dims}
    own = [d for d in range(type.ndim) if d not in left_out]
    d = own[numbers.update_window_dims.index(axis)]
    return bool(sizes[d] == type.shape[d])


def _numbers(shape: tuple[int, ...]) -> Any:
    """Return numbers from 1 for elements of this shape, in order."""
    return reshape(add(iota(default_dtype("int"), math.prod(shape)), 1), shape)


def _set_by(winner: Any, old: Any, new: Any) -> Any:
    """Return the old elements, each replaced by the new one with this number, unless that is 0."""
    from_ = reshape(maximum(subtract(winner, 1), 0), (*winner.shape, 1))
    take = Gather(GatherDimensionNumbers((), (0,), (0,)), (1,), "promise_in_bounds")
    return where(eq(winner, 0), old, take(reshape(new, (new.size,)), from_))


class ScatterAdd(ScatterFamily):
    """The update is added to the element."""

    update = "add"
    op = "add"

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        x, indices, _ = primals
        dx, _, du = tangents
        out = self(*primals)
        return out, dx if du is None else self(or_zeros(dx, x), indices, du)

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, None, Any]:
        """Give the operand the cotangent itself, and the updates what they read of it."""
        ct_updates = self.read(ct, indices, updates) if isinstance(updates, Linear) else None
        return (ct if isinstance(x, Linear) else None), None, ct_updates

    def kept(self, at: Any, x: Any, indices: Any, updates: Any, axes: Sequence[int]) -> Any:
        """Padding adds 0."""
        return at.filled(updates, at.types[2], 0, axes)


class ScatterSub(ScatterAdd):
    """The update is subtracted from the element."""

    update = "sub"
    op = "subtract"

    def transpose(self, ct: Any, x: Any, indices: Any, updates: Any) -> tuple[Any, None, Any]:
        """Do as for addition, with the sign of the updates reversed."""
        ct_x, _, ct_updates = super().transpose(ct, x, indices, updates)
        return ct_x, None, None if ct_updates is None else negative(ct_updates)


# Elements taken along an axis


def take_along_axis(
    x: Any,
    indices: Any,
    axis: int,
    mode: str | None = None,
    fill_value: Any = None,
    wrap_negative: bool = True,
) -> Any:
    """Return the elements of ``x`` at ``indices`` along ``axis``, line by line.

    ``x`` and ``indices`` have one number of axes, and broadcast along the others. Negative indices
    count from the end if ``wrap_negative``; ``mode`` and ``fill_value`` are those of ``gather``.

    >>> import stretto.numpy as snp
    >>> x = snp.array([[3, 1, 2], [6, 5, 4]])
    >>> snp.take_along_axis(x, snp.argsort(x, axis=1), axis=1)
    Array([[1, 2, 3],
           [4, 5, 6]], dtype=int32)
    """
    x, indices = as_value(x, "take_along_axis"), as_value(indices, "take_along_axis", "indices")
    if x.ndim != indices.ndim:
        raise ValueError(
            f"take_along_axis: x and indices must have one number of axes, got {x.type} and "
            f"{indices.type}"
        )
    axis = canonical_axis(axis, x.ndim, "take_along_axis")
    n, m = x.shape[axis], indices.shape[axis]
    shapes = [(*v.shape[:axis], 1, *v.shape[axis + 1 :]) for v in (x, indices)]
    shape = broadcast_shapes("take_along_axis", *shapes)
    x = broadcast_to(x, (*shape[:axis], n, *shape[axis + 1 :]))
    indices = broadcast_to(indices, (*shape[:axis], m, *shape[axis + 1 :]))
    if wrap_negative and kind_of(indices.dtype) == "int":
        if indices.dtype.itemsize < 4:  # so that the size fits
            indices = convert(indices, np.dtype(np.int32))
        indices = where(lt(indices, 0), add(indices, n), indices)
    if not indices.size:  # of an axis without elements no window can be taken, nor given a slope
        return convert(indices, x.dtype)
    others = tuple(d for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers((), (axis,), (axis,), others, others)
    sizes = tuple(1 if d == axis else lesser(k, 1) for d, k in enumerate(x.shape))
    access = access_mode("take_along_axis", reading_mode(mode, fill_value), "clip")
    fill = fill_bytes(x.dtype, fill_value, "take_along_axis") if access == "fill" else b""
    return Gather(numbers, sizes, access, fill)(x, reshape(indices, (*indices.shape, 1)))


# In NumPy: whole index arrays by broadcasting, no loop over indices. Gathers and scatters share one
# geometry, which ``locate`` works out: which elements of the operand the windows cover, in what
# order of axes.


_UFUNCS = {
    "add": np.add,
    "sub": np.subtract,
    "mul": np.multiply,
    "min": np.minimum,
    "max": np.maximum,
}


class Located(NamedTuple):
    """The places where windows lie.

    ``indexed`` axes of the operand are reached by the integer arrays ``at``, which broadcast to
    the batch axes followed by the axes of partial windows; the ``full`` axes are taken whole.
    ``permutation`` brings (batch, partial, full) to the axes of the output.
    """

    indexed: tuple[int, ...]
    full: tuple[int, ...]
    at: tuple[np.ndarray, ...]
    shape: tuple[int, ...]
    permutation: tuple[int, ...]


def starts_of(
    shape: Sequence[int], indices: np.ndarray, numbers: Any, sizes: Sequence[int], clip: bool
) -> tuple[np.ndarray, np.ndarray | None]:
    """Give the start indices as int64, in bounds where ``clip``; else which windows lie in bounds.

    The second result is ``None`` where all do.
    """
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    indices = indices.astype(np.int64)
    last = np.asarray([shape[d] - sizes[d] for d in numbers.start_index_map], np.int64)
    if indices.size and indices.min() >= 0:
        ends = indices.reshape(-1, len(last)).max(0) if len(last) > 1 else indices.max()
        if np.all(ends <= last):
            return indices, None
    if clip:
        return np.minimum(np.maximum(indices, 0), last), None
    inside = np.asarray(((indices >= 0) & (indices <= last)).all(axis=-1))
    return indices, None if inside.all() else inside


def locate(shape: Sequence[int], starts: np.ndarray, numbers: Any, sizes: Sequence[int]) -> Located:
    """Return the geometry of windows of these ``sizes`` at ``starts``."""
    batch = starts.shape[:-1]
    window = [
        d
        for d in range(len(shape))
        if d not in numbers.collapsed_slice_dims and d not in numbers.operand_batching_dims
    ]
    full = tuple(d for d in window if sizes[d] == shape[d])
    partial = tuple(d for d in window if sizes[d] != shape[d])
    indexed = tuple(d for d in range(len(shape)) if d not in full)
    ndim = len(batch) + len(partial)

    def along(axis: int, n: int) -> np.ndarray:
        return np.arange(n).reshape([n if i == axis else 1 for i in range(ndim)])

    at = []
    for d in indexed:
        position = np.zeros((1,) * ndim, np.int64)
        if d in numbers.start_index_map:
            start = starts[..., numbers.start_index_map.index(d)]
            position = start.reshape(batch + (1,) * len(partial))
        elif d in numbers.operand_batching_dims:
            place = numbers.operand_batching_dims.index(d)
            position = along(numbers.start_indices_batching_dims[place], shape[d])
        if d in partial:
            position = position + along(len(batch) + partial.index(d), sizes[d])
        at.append(position)
    covered = (*batch, *(sizes[d] for d in partial), *(shape[d] for d in full))
    axis_of = {d: len(batch) + i for i, d in enumerate((*partial, *full))}
    window_axes = dict(zip(numbers.offset_dims, window, strict=True))
    batch_axes = iter(range(len(batch)))
    permutation = tuple(
        axis_of[window_axes[o]] if o in window_axes else next(batch_axes)
        for o in range(len(covered))
    )
    return Located(indexed, full, tuple(at), covered, permutation)


def _slices(
    starts: np.ndarray, sizes: Sequence[int], ndim: int, index_map: Sequence[int]
) -> tuple[slice, ...]:
    """Return the only window as slices."""
    first = [0] * ndim
    for d, start in zip(index_map, starts.reshape(-1).tolist(), strict=True):
        first[d] = start
    return tuple(slice(a, a + n) for a, n in zip(first, sizes, strict=True))


def gather_reference(
    operand: np.ndarray,
    indices: np.ndarray,
    numbers: Any,
    sizes: Sequence[int],
    *,
    out_shape: tuple[int, ...],
    fill: Any = None,
) -> np.ndarray:
    """Return windows of the operand.

    Those out of bounds hold ``fill``, or are clamped for ``None``.
    """
    if not math.prod(out_shape):
        return np.zeros(out_shape, operand.dtype)
    starts, inside = starts_of(operand.shape, indices, numbers, sizes, fill is None)
    if inside is not None:
        starts = np.where(inside[..., None], starts, 0)
    if math.prod(starts.shape[:-1]) == 1:
        windows = operand[_slices(starts, sizes, operand.ndim, numbers.start_index_map)]
        out = windows.reshape(out_shape)
    else:
        located = locate(operand.shape, starts, numbers, sizes)
        windows = operand.transpose(located.indexed + located.full)
        if len(located.at) == 1:
            windows = windows.take(located.at[0], axis=0)
        elif located.at:
            windows = windows[located.at]
        out = np.broadcast_to(windows, located.shape).transpose(located.permutation)
    if inside is None:
        return out
    mask_shape = [1 if o in numbers.offset_dims else n for o, n in enumerate(out_shape)]
    return np.where(inside.reshape(mask_shape), out, fill)


def scatter_reference(
    update: str,
    operand: np.ndarray,
    indices: np.ndarray,
    updates: np.ndarray,
    numbers: Any,
    *,
    sizes: Sequence[int],
    clip: bool,
) -> np.ndarray:
    """Return the operand with windows updated, in the order of the indices.

    Those outside are dropped.
    """
    dtype = operand.dtype
    if update != "set":
        wide = _wide(dtype)
        operand, updates = operand.astype(wide, order="C"), updates.astype(wide, copy=False)
    else:
        operand = operand.copy(order="C")
    if updates.size:
        starts, inside = starts_of(operand.shape, indices, numbers, sizes, clip)
        if inside is None and math.prod(starts.shape[:-1]) == 1:
            first = _slices(starts, sizes, operand.ndim, numbers.start_index_map)
            _write_one(_UFUNCS.get(update), operand[(*first, ...)], updates)
        elif inside is None or inside.any():
            places = locate(operand.shape, starts, numbers, sizes)
            _write(_UFUNCS.get(update), operand, updates, places, inside)
    return operand.astype(dtype, copy=False)


def _wide(dtype: np.dtype) -> np.dtype:
    """Return the dtype that updates accumulate in."""
    kind = kind_of(dtype)
    if kind == "float" and dtype.itemsize < 4:
        return np.dtype(np.float32)
    if kind in ("int", "uint") and dtype.kind not in "iu":
        return np.dtype(np.int32)
    return dtype


def _write_one(ufunc: np.ufunc | None, view: np.ndarray, updates: np.ndarray) -> None:
    """Update the only window, a view of the target."""
    updates = updates.reshape(view.shape)
    view[...] = updates if ufunc is None else ufunc(view, updates)


def _positions(
    target: np.ndarray, updates: np.ndarray, located: Located, at: Sequence[np.ndarray]
) -> np.ndarray:
    """Return the place of each update in the target's row-major order."""
    stride = [math.prod(target.shape[d + 1 :]) for d in range(target.ndim)]
    flat: Any = np.zeros(updates.shape, np.int64)
    head = flat.ndim - len(located.full)
    for d, a in zip(located.indexed, at, strict=True):
        flat += (a * stride[d]).reshape(a.shape + (1,) * len(located.full))
    for i, d in enumerate(located.full):
        steps = np.arange(target.shape[d]) * stride[d]
        flat += steps.reshape([-1 if j == head + i else 1 for j in range(flat.ndim)])
    return flat


def _write(
    ufunc: np.ufunc | None,
    target: np.ndarray,
    updates: np.ndarray,
    located: Located,
    inside: np.ndarray | None,
) -> None:
    """Update the target in place; a ufunc of ``None`` sets."""
    inverse = sorted(range(updates.ndim), key=located.permutation.__getitem__)
    updates = updates.transpose(inverse)  # to (batch, partial, full)
    axes = located.indexed + located.full
    ndim = len(located.shape) - len(located.full)
    at = [np.broadcast_to(a, located.shape[:ndim]) for a in located.at]
    if inside is not None:
        at = [a[inside] for a in at]
        updates = updates[inside]
    if ufunc is None and at:
        # NumPy follows the order of index arrays of one axis: of equal indices the last wins.
        rows = updates.reshape(-1, *(target.shape[d] for d in located.full))
        target.transpose(axes)[tuple(a.reshape(-1) for a in at)] = rows
        return
    # Positions in row-major order: ufunc.at is fast on arrays of one axis.
    flat = at[0] if target.ndim == len(at) == 1 else _positions(target, updates, located, at)
    line = target.reshape(-1)
    if ufunc is None:
        line[flat.reshape(-1)] = updates.reshape(-1)
    else:
        ufunc.at(line, flat.reshape(-1), updates.reshape(-1))
