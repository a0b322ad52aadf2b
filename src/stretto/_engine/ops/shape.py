"""Parts of arrays taken out and put together: slice, split, pad, reverse, concatenate.

Slice and pad are each other's transposes; the transpose of concatenate is slices.
"""

from __future__ import annotations

import builtins
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer, integers
from stretto._engine.core.interpreter import Linear, as_value
from stretto._engine.core.primitive import Kernel, Primitive
from stretto._engine.core.sizes import greater, is_size, slice_bounds
from stretto._engine.core.types import ArrayType, array_type, is_complex, promote
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.comparison import full, or_zeros, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import align_mapped
from stretto._engine.ops.layout import canonical_axes, canonical_axis, check_axes, move_to_front

_INT32 = np.dtype(np.int32)


PadConfig = tuple[tuple[int, int, int], ...]


def _dilated(n: int, interior: int) -> int:
    return n + greater(n - 1, 0) * interior


def _ends_inside(limit: int, n: int, stride: int) -> bool:
    """Say whether a slice ends inside; if its size varies, the bound may be past its last step."""
    return limit - (stride - 1) <= n if is_size(limit) else limit <= n


class Pad(Primitive):
    """The operand with a scalar put before, after and between its elements along each axis.

    ``config`` holds (low, high, interior) for each axis; negative ``low`` and ``high`` crop.
    """

    config: PadConfig
    kernel = Kernel.ONE
    keeps_zeros = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        """Return the axes without padding; none of the value's, which all of them add to."""
        whole = [not any(c) for c in self.config]
        return [d if not k and w else None for d, w in enumerate(whole)]

    def infer(self, x: ArrayType, value: ArrayType) -> ArrayType:
        if value.shape or value.dtype != x.dtype:
            raise TypeError(f"pad: expected a padding value {x.with_shape(())}, got {value}")
        if len(self.config) != x.ndim or any(interior < 0 for *_, interior in self.config):
            raise ValueError(
                f"pad: expected (low, high, interior) with interior >= 0 for each axis of {x}; got "
                f"{self.config}"
            )
        shape = tuple(
            low + high + _dilated(n, interior)
            for n, (low, high, interior) in zip(x.shape, self.config, strict=True)
        )
        shape = tuple([greater(n, 0) if is_size(n) else n for n in shape])
        if any(n < 0 for n in shape):
            raise ValueError(f"pad: {self.config} crops more than {x} has: sizes {shape}")
        return array_type(shape, x.dtype, x.weak_type and value.weak_type)

    def reference(self, x: np.ndarray, value: np.ndarray) -> np.ndarray:
        """Put the value everywhere, then the operand's elements where they go."""
        shape, source, target = [], [], []
        for n, (low, high, interior) in zip(x.shape, self.config, strict=True):
            step, size = interior + 1, low + high + _dilated(n, interior)
            first = -(min(low, 0) // step)  # the first element not cropped, and the last
            last = min(n, (size - 1 - low) // step + 1)
            place = low + first * step
            count = max(last - first, 0)
            shape.append(size)
            source.append(builtins.slice(first, first + count))
            target.append(builtins.slice(place, place + count * step, step))
        out = np.empty(shape, x.dtype)
        out[...] = value
        out[tuple(target)] = x[tuple(source)]
        return out

    def lower(self, b: Any, x: Any, value: Any) -> Any:
        return b.pad(x, value, self.config, b.outs[0])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*map(or_zeros, tangents, primals))

    def padding(self, shape: Sequence[int]) -> Any:
        """Say where an output holds the padding value: a mask, for an operand of this shape."""
        boolean = np.dtype(bool)
        return self(full(tuple(shape), False, boolean), full((), True, boolean))

    def transpose(self, ct: Any, x: Any, value: Any) -> tuple[Any, Any]:
        """Take the operand's elements out again, and sum the rest."""
        ct_x = ct_value = None
        if isinstance(x, Linear):
            crop = pad(ct, 0, [(-low, -high, 0) for low, high, _ in self.config])
            strides = [interior + 1 for *_, interior in self.config]
            ct_x = slice(crop, (0,) * x.ndim, crop.shape, strides)
        if isinstance(value, Linear):
            outside = select(self.padding(x.shape), ct, zeros_like(ct))
            ct_value = reduce_sum(outside, range(ct.ndim))
        return ct_x, ct_value

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is not padded; mapped values are put in by a mask."""
        (x, value), (axis, value_axis) = args, axes
        if value_axis is None:
            assert axis is not None
            config = (*self.config[:axis], (0, 0, 0), *self.config[axis:])
            return Pad(config)(x, value), axis
        if axis is None:
            x = broadcast_in_dim(x, (size, *x.shape), range(1, x.ndim + 1))
        else:
            x = move_to_front(x, axis)
        batched = Pad(((0, 0, 0), *self.config))
        inside = batched(x, full((), 0, x.dtype, x.weak_type))
        outside = broadcast_in_dim(value, inside.shape, (0,))
        return select(batched.padding(x.shape), outside, inside), 0

    def padded(self, at: Any, x: Any, value: Any) -> Any:
        """The value is in the place of padding, too."""
        (type, _), (out,) = at.types, at.outs
        mask = at.inside(type.shape)
        if mask is not None:
            x = select(mask, x, broadcast_in_dim(value, x.shape, ()))
        return at.spread(x, value, self.config, out.shape)


class Slice(Primitive):
    """Every ``strides``-th element from ``starts`` up to, but not including, ``limits``.

    Where the place is ``hidden``, the compiler does not learn it: kernels that read slices at
    different places are then equal, and compiled once.
    """

    kernel = Kernel.VIEW
    light = True
    starts: tuple[int, ...]
    limits: tuple[int, ...]
    strides: tuple[int, ...]
    hidden: bool = False
    keeps_zeros = True
    rearranges = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return [d if x.shape[d] == out.shape[d] else None for d in range(out.ndim)]

    def infer(self, x: ArrayType) -> ArrayType:
        settings = (self.starts, self.limits, self.strides)
        fits = all(len(s) == x.ndim for s in settings) and all(
            0 <= start <= limit and stride > 0 and _ends_inside(limit, n, stride)
            for start, limit, stride, n in zip(*settings, x.shape, strict=True)
        )
        if not fits:
            raise ValueError(
                f"slice: expected 0 <= start <= limit <= size and stride > 0 for each axis of {x}; "
                f"got starts {self.starts}, limits {self.limits}, strides {self.strides}"
            )
        return x.with_shape(
            tuple(-((a - z) // s) for a, z, s in zip(*settings, strict=True))  # rounded up
        )

    def reference(self, x: np.ndarray) -> np.ndarray:
        return x[tuple(map(builtins.slice, self.starts, self.limits, self.strides))]

    def lower(self, b: Any, x: Any) -> Any:
        if self.hidden and b.hides and {*self.strides} <= {1}:
            sizes = b.outs[0].shape
            whole = [m == n for m, n in zip(sizes, x.type.shape, strict=True)]
            places = [
                b.scalar(0, _INT32) if w else b.hide(start)
                for w, start in zip(whole, self.starts, strict=True)
            ]
            return b.dynamic_slice(x, places, sizes)
        return b.slice(x, [*zip(self.starts, self.limits, self.strides, strict=True)])

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Return zeros where nothing was taken."""
        config = []
        for n, m, start, stride in zip(x.shape, ct.shape, self.starts, self.strides, strict=True):
            config.append((start, n - start - _dilated(m, stride - 1), stride - 1))
        return (pad(ct, 0, config),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        starts, limits, strides = (
            (*s[:axis], whole, *s[axis:])
            for s, whole in ((self.starts, 0), (self.limits, size), (self.strides, 1))
        )
        return Slice(starts, limits, strides)(args[0]), axis

    def padded(self, at: Any, x: Any) -> Any:
        """Start where starts that may vary say; limits that vary are where padding begins."""
        (out,) = at.outs
        for axis, step in enumerate(self.strides):
            if is_size(step):
                x = at.every(step, x, axis, self.starts[axis], out.shape[axis])
        whole = [is_size(step) for step in self.strides]
        starts, strides = (
            tuple([plain if w else v for v, w in zip(values, whole, strict=True)])
            for values, plain in ((self.starts, 0), (self.strides, 1))
        )
        sizes = zip(at.shape(out.shape), strides, strict=True)
        spans = [(n - 1) * step + 1 if n else 0 for n, step in sizes]
        limits = [start + span for start, span in zip(starts, spans, strict=True)]
        fits = [not is_size(end) and end <= n for end, n in zip(limits, x.shape, strict=True)]
        if all(fits):
            return Slice(starts, tuple(limits), strides)(x)
        x = at.cut(x, [at.size(n) if is_size(n) else n for n in starts], spans)
        return Slice((0,) * x.ndim, x.shape, strides)(x)


class Rev(Primitive):
    """The order of the elements reversed along some axes."""

    light = True
    axes: tuple[int, ...]
    keeps_zeros = True
    rearranges = True

    def kept_axes(self, k: int, x: ArrayType, out: ArrayType) -> Sequence[int | None]:
        return [None if d in self.axes else d for d in range(out.ndim)]

    def infer(self, x: ArrayType) -> ArrayType:
        check_axes(self.name, x, self.axes)
        return x

    def reference(self, x: np.ndarray) -> np.ndarray:
        return np.flip(x, self.axes)

    def lower(self, b: Any, x: Any) -> Any:
        return b.reverse(x, self.axes)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        """Reverse again: it is its own inverse and transpose."""
        return (self(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        return Rev(tuple(a + (axis <= a) for a in self.axes))(args[0]), axis

    def padded(self, at: Any, x: Any) -> Any:
        """Reversed, padding comes first, and is left out."""
        (type,) = at.types
        starts: list[Any] = [0] * type.ndim
        for axis in self.axes:
            if is_size(type.shape[axis]):
                starts[axis] = at.size(at.bound(type.shape[axis]) - type.shape[axis])
        back = self(x)
        fixed = all([start.__class__ is int for start in starts])
        return back if fixed else at.cut(back, starts, x.shape)


# Functions


def pad(
    operand: ArrayLike, padding_value: ArrayLike, padding_config: Sequence[tuple[int, int, int]]
) -> Array:
    """Put a value before, after and between the elements of an array.

    Args:
        operand: an array.
        padding_value: a scalar, which is converted to the dtype of ``operand``.
        padding_config: a triple (low, high, interior) for each axis; negative ``low`` and ``high``
            crop.

    Returns:
        The padded array.

    Raises:
        TypeError: the padding value is complex and the array is real, or ``padding_config`` does
            not consist of triples of integers.
        ValueError: there is not a triple for each axis, or a size would be negative.

    Source: StableHLO, ``pad``.

    >>> import stretto as st
    >>> st.lax.pad(st.numpy.array([1, 2]), 0, [(1, 0, 2)])
    Array([0, 1, 0, 0, 2], dtype=int32)
    """
    x = as_value(operand, "pad", "operand")
    if type(padding_value) is complex and not is_complex(x.dtype):
        raise TypeError(f"pad: padding_value {padding_value} is complex, the operand {x.type}")
    if type(padding_value) in (bool, int, float, complex):
        filler = full((), padding_value, x.dtype, True)
    else:
        filler = as_value(padding_value, "pad", "padding_value")
        filler = convert(filler, x.dtype, filler.weak_type and x.weak_type)
    config = _pad_config(padding_config)
    if not any(map(any, config)) and len(config) == x.ndim and not filler.ndim:
        return x
    return Pad(config)(x, filler)


def _pad_config(padding_config: Sequence[tuple[int, int, int]]) -> PadConfig:
    try:
        low, high, interior = zip(*padding_config, strict=True) if padding_config else ((), (), ())
    except (TypeError, ValueError):
        message = f"pad: padding_config must be (low, high, interior) triples, got {padding_config}"
        raise TypeError(message) from None
    columns = [integers(column, "pad", "padding_config") for column in (low, high, interior)]
    return tuple(zip(*columns, strict=True))


def slice(
    operand: ArrayLike,
    start_indices: Sequence[int],
    limit_indices: Sequence[int],
    strides: Sequence[int] | None = None,
) -> Array:
    """Take the elements within static bounds.

    Args:
        operand: an array.
        start_indices: the first index along each axis.
        limit_indices: the index to stop before along each axis.
        strides: the steps along each axis; by default 1.

    Returns:
        The part.

    Raises:
        TypeError: a bound or a stride is not an integer.
        ValueError: the bounds are not within ``operand``, or a stride is not positive.

    Source: StableHLO, ``slice``.

    >>> import stretto as st
    >>> st.lax.slice(st.numpy.arange(6), (1,), (6,), (2,))
    Array([1, 3, 5], dtype=int32)
    """
    x = as_value(operand, "slice", "operand")
    starts = integers(start_indices, "slice", "start_indices")
    limits = integers(limit_indices, "slice", "limit_indices")
    steps = (1,) * x.ndim if strides is None else integers(strides, "slice", "strides")
    return part_of(x, starts, limits, steps)


slice_ = slice  # for modules that need the builtin too


def part_of(
    x: Array,
    starts: tuple[int, ...],
    limits: tuple[int, ...],
    strides: tuple[int, ...],
    hidden: bool = False,
) -> Array:
    """Return a ``Slice`` of a value; the value itself where that is all of it."""
    if limits == x.shape and not any(starts) and {*strides} <= {1} and len(starts) == x.ndim:
        return x
    return Slice(starts, limits, strides, hidden)(x)


def slice_in_dim(
    operand: ArrayLike,
    start_index: int | None,
    limit_index: int | None,
    stride: int = 1,
    axis: int = 0,
) -> Array:
    """Take ``operand[start:limit:stride]`` along one axis.

    Args:
        operand: an array.
        start_index: the first index, negative from the end; None for 0.
        limit_index: the index to stop before, negative from the end; None for the size.
        stride: the step, positive.
        axis: the axis, negative from the end.

    Returns:
        The part.

    Raises:
        TypeError: a limit, the stride or ``axis`` is not an integer.
        ValueError: ``stride`` is not positive, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.slice_in_dim(st.numpy.arange(6), 1, -1)
    Array([1, 2, 3, 4], dtype=int32)
    """
    x = as_value(operand, "slice_in_dim", "operand")
    axis = canonical_axis(axis, x.ndim, "slice_in_dim")
    stride = integer(stride, "slice_in_dim", "stride")
    if stride <= 0:
        raise ValueError(
            f"slice_in_dim: expected stride > 0, got {stride}; use rev to go backwards"
        )
    for name, index in (("start_index", start_index), ("limit_index", limit_index)):
        if index is not None:
            integer(index, "slice_in_dim", name)
    start, count, _ = slice_bounds(builtins.slice(start_index, limit_index), x.shape[axis])
    starts, limits, strides = [0] * x.ndim, list(x.shape), [1] * x.ndim
    starts[axis], limits[axis], strides[axis] = start, start + count, stride
    return slice(x, starts, limits, strides)


def split(operand: ArrayLike, sizes: Sequence[int], axis: int = 0) -> list[Array]:
    """Cut an array along an axis into parts of given sizes.

    Args:
        operand: an array.
        sizes: the sizes of the parts.
        axis: the axis, negative from the end.

    Returns:
        The parts.

    Raises:
        TypeError: a size is not an integer.
        ValueError: the sizes do not add up to that of the axis, or the axis is out of bounds.

    >>> import stretto as st
    >>> st.lax.split(st.numpy.arange(3), (1, 2))
    [Array([0], dtype=int32), Array([1, 2], dtype=int32)]
    """
    x = as_value(operand, "split", "operand")
    axis = canonical_axis(axis, x.ndim, "split")
    parts = integers(sizes, "split", "sizes")
    if sum(parts) != x.shape[axis] or any(n < 0 for n in parts):
        raise ValueError(
            f"split: sizes {tuple(parts)} must add up to {x.shape[axis]}, axis {axis} of {x.type}"
        )
    out, start = [], 0
    for n in parts:
        out.append(slice_in_dim(x, start, start + n, axis=axis))
        start += n
    return out


def rev(operand: ArrayLike, dimensions: Sequence[int]) -> Array:
    """Reverse the order of the elements along axes.

    Args:
        operand: an array.
        dimensions: the axes, negative from the end.

    Returns:
        The reversed array.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    Source: StableHLO, ``reverse``.

    >>> import stretto as st
    >>> st.lax.rev(st.numpy.arange(3), (0,))
    Array([2, 1, 0], dtype=int32)
    """
    x = as_value(operand, "rev", "operand")
    canonical = canonical_axes(dimensions, x.ndim, "rev")
    return Rev(tuple(sorted(canonical)))(x) if canonical else x


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
        return b.concatenate(operands, self.axis, b.outs[0])

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
