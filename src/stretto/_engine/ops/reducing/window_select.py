"""Find the greatest or least element in each window; read and add values there.

What the derivatives of ``window``'s greatest and least are made of. Each works along one axis.
Short windows are lowered as selections among the slices that hold their first elements, their
second ones and so on, which XLA fuses into one pass; long ones by index.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.arithmetic import divide, remainder
from stretto._engine.ops.comparison import eq, full, ge, gt, lt, ne, select, where, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.elementwise import FLOAT, align_mapped
from stretto._engine.ops.index.gather_scatter import gather, scatter_add
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import greatest_below, least_above, widened
from stretto._engine.ops.reducing.window_geometry import (
    PLAIN,
    AxisWindow,
    behind,
    padded_before,
    patches_reference,
    window_attributes,
    window_shape,
)
from stretto._engine.ops.shape import pad, slice_in_dim
from stretto._engine.ops.thresholds import WINDOW_PLACES

_INDEX = np.dtype(np.int32)
_SHORT = 32


def _along(x: Any, axis: int, value: Any, others: Any) -> tuple[Any, ...]:
    """``value`` for the axis, ``others`` for each of the rest."""
    return tuple(value if d == axis else others for d in range(x.ndim))


class AxisSelection(Primitive, abstract=True):
    """An operation on the windows along one axis."""

    axis: int
    window: AxisWindow

    def windows_over(self, x: ArrayType) -> tuple[int, ...]:
        """Return the shape of an array with one element for each window."""
        if not 0 <= self.axis < x.ndim or kind_of(x.dtype) not in FLOAT:
            raise TypeError(f"{self.name}: expected floats with an axis {self.axis}, got {x}")
        return window_shape(self.name, x, _along(x, self.axis, self.window, PLAIN))

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for large arrays: XLA runs through the operands once."""
        return self.work(types, self.out_types(types)) >= WINDOW_PLACES

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return min(types[0].size, outs[0].size) * self.window.size

    def slices(self, x: Any, fill: Any) -> list[Any]:
        """Return the first element of each window, the second, and so on."""
        w, count = self.window, self.window.count(x.shape[self.axis])
        x = pad(x, fill, _along(x, self.axis, w.config, (0, 0, 0)))
        reach = (count - 1) * w.stride + 1
        starts = [k * w.dilation for k in range(w.size)]
        return [slice_in_dim(x, i, i + reach, w.stride, self.axis) for i in starts]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values, axis = align_mapped(size, args, axes)
        _, *settings = [value for _, value in self.parameters()]
        return type(self)(self.axis + (axis <= self.axis), *settings)(*values), axis

    def over(self, at: Any, x: Any, type: ArrayType, fill: Any) -> tuple[Any, Any]:
        """Return the operation of fixed sizes, and the array under windows, with this padding."""
        x = at.filled(x, type, fill, (self.axis,))
        if not is_size(self.window.low):
            return at.static(self), x
        x, window = padded_before(at, x, at.outs[0], self.axis, self.window, fill)
        return dataclasses.replace(at.static(self), window=window), x


class WindowPlace(AxisSelection):
    """The place in each window of its greatest element, or its least: of equals the first.

    NaN goes before all numbers. The place is 0 in a window that lies on padding.
    """

    greatest: bool
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def infer(self, x: ArrayType) -> ArrayType:
        return array_type(self.windows_over(x), _INDEX)

    def identity(self, dtype: np.dtype) -> Any:
        """Return what is never chosen where there is another element."""
        return (greatest_below if self.greatest else least_above)(dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        wide = x.astype(widened(x.dtype), copy=False)
        start = np.asarray(self.identity(x.dtype)).astype(wide.dtype)
        lines = patches_reference(wide, self.axis, self.window, start)
        return (np.argmax if self.greatest else np.argmin)(lines, axis=0)

    def lower(self, b: Any, x: Any) -> Any:
        """Write ``composed``; over long windows, a reduction of values with their indices."""
        if not b.outs[0].size:
            return b.splat(0, b.outs[0])
        return b.inline(self.composed, x) if self.window.size <= _SHORT else self._long(b, x)

    def better(self, x: Any, y: Any) -> Any:
        """Say whether ``x`` goes before ``y`` whatever their places are."""
        beyond = gt(x, y) if self.greatest else lt(x, y)
        return beyond | (ne(x, x) & eq(y, y))

    def composed(self, x: Any) -> Any:
        """Try the places one after another."""
        best, *others = self.slices(x, self.identity(x.dtype))
        place = full(best.shape, 0, _INDEX)
        for k, value in enumerate(others, 1):
            better = self.better(value, best)
            best, place = select(better, value, best), where(better, k, place)
        return place

    def _long(self, b: Any, x: Any) -> Any:
        """Elements with their indices, the lesser of which wins among equals."""
        unsigned = np.dtype(np.uint32)
        index = b.emit(
            "iota",
            attributes=f"iota_dimension = {self.axis} : i64",
            out=array_type(x.type.shape, unsigned),
        )
        nowhere = int(np.iinfo(unsigned).max)
        starts = (b.scalar(self.identity(x.type.dtype), x.type.dtype), b.scalar(nowhere, unsigned))
        pair = [s.type for s in starts]

        def choose(x: Any, i: Any, y: Any, j: Any) -> Any:
            first = self.better(x, y) | (~self.better(y, x) & lt(i, j))
            return [select(first, x, y), select(first, i, j)]

        region = b.scalar_region([*pair, *pair], lambda *both: b.inline_many(choose, *both))
        windows = _along(x.type, self.axis, self.window, PLAIN)
        shape = b.outs[0].shape
        outs = [array_type(shape, t.dtype) for t in pair]
        attributes = window_attributes(b, windows)
        _, at = b.emit_many("reduce_window", (x, index, *starts), outs, attributes, (region,))
        return b.inline(self._place_of, at)

    def _place_of(self, index: Any) -> Any:
        """Turn the index i of window o's element into its place (i b + low - o s) / d."""
        w = self.window
        i = convert(index, _INDEX)
        start = broadcasted_iota(_INDEX, i.shape, self.axis) * w.stride - w.low
        return where(lt(i, 0), 0, divide(i * w.base_dilation - start, w.dilation))

    def padded(self, at: Any, x: Any) -> Any:
        """Padding is that of the windows, which is never chosen."""
        op, x = self.over(at, x, at.types[0], self.identity(x.type.dtype))
        return at.fit(op(x), at.outs[0])


class SelectAndGatherAdd(AxisSelection):
    """The element at a place in each window, given for each; 0 where that is padding."""

    def infer(self, x: ArrayType, place: ArrayType) -> ArrayType:
        shape = self.windows_over(x)
        _check_place(self.name, place, shape)
        return x.with_shape(shape)

    def reference(self, x: np.ndarray, place: np.ndarray) -> np.ndarray:
        lines = patches_reference(x, self.axis, self.window, 0)
        return np.take_along_axis(lines, place[None], 0)[0]

    def lower(self, b: Any, x: Any, place: Any) -> Any:
        return b.inline(self.composed, x, place) if b.outs[0].size else b.splat(0, b.outs[0])

    def composed(self, x: Any, place: Any) -> Any:
        """Write it with other operations."""
        if self.window.size > _SHORT:
            n = x.shape[self.axis]
            index = _index(place, self.axis, self.window, n)
            numbers, sizes = _numbers(x, self.axis), (1,) * x.ndim
            return gather(x, index, numbers, sizes, mode="fill", fill_value=0)
        out = full(place.shape, 0, x.dtype)
        for k, value in enumerate(self.slices(x, 0)):
            out = select(eq(place, k), value, out)
        return out

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(tangents[0], primals[1])

    def transpose(self, ct: Any, x: Linear, place: Any) -> tuple[Any, None]:
        n = x.shape[self.axis]
        return SelectAndScatterAdd(self.axis, self.window, n)(ct, place), None

    def padded(self, at: Any, x: Any, place: Any) -> Any:
        """Padding is that of the windows, 0."""
        op, x = self.over(at, x, at.types[0], 0)
        return at.fit(op(x, place), at.outs[0])


class SelectAndScatterAdd(AxisSelection):
    """Zeros, ``n`` along the axis, to which each window's value is added at a place in it."""

    n: int

    def infer(self, values: ArrayType, place: ArrayType) -> ArrayType:
        shape = list(values.shape)
        shape[self.axis] = self.n
        out = values.with_shape(tuple(shape))
        expected = self.windows_over(out)
        if values.shape != expected:
            raise TypeError(f"{self.name}: expected values of shape {expected}, got {values}")
        _check_place(self.name, place, expected)
        return out

    def reference(self, values: np.ndarray, place: np.ndarray) -> np.ndarray:
        """Added at index arrays, in wide floats; what goes to padding to a spare element."""
        w, axis = self.window, self.axis
        at: list[Any] = list(np.indices(place.shape, sparse=True))
        i = at[axis] * w.stride + place * w.dilation - w.low
        reach = dilated(self.n, w.base_dilation)
        there = (i >= 0) & (i < reach) & (i % w.base_dilation == 0)
        at[axis] = np.where(there, i // w.base_dilation, self.n)
        shape = (*values.shape[:axis], self.n + 1, *values.shape[axis + 1 :])
        out = np.zeros(shape, widened(values.dtype))
        np.add.at(out, tuple(at), values.astype(out.dtype, copy=False))
        return out.take(range(self.n), axis).astype(values.dtype, copy=False)

    def lower(self, b: Any, values: Any, place: Any) -> Any:
        out = b.outs[0]
        if not values.type.size or not out.size:
            return b.splat(0, out)
        wide = b.convert(values, widened(out.dtype))
        return b.convert(b.inline(self.composed, wide, place), out.dtype)

    def composed(self, values: Any, place: Any) -> Any:
        """Write it with other operations."""
        w, axis = self.window, self.axis
        shape = list(values.shape)
        if w.size > _SHORT:
            shape[axis] = self.n
            zeros = full(tuple(shape), 0, values.dtype)
            numbers = ScatterDimensionNumbers.of(_numbers(values, axis))
            return scatter_add(zeros, _index(place, axis, w, self.n), values, numbers)
        reach = dilated(self.n, w.base_dilation)
        shape[axis] = reach
        out = full(tuple(shape), 0, values.dtype)
        for k in range(w.size):
            here = select(eq(place, k), values, zeros_like(values))
            low = k * w.dilation - w.low
            high = reach - low - dilated(values.shape[axis], w.stride)
            out = out + pad(here, 0, _along(values, axis, (low, high, w.stride - 1), (0, 0, 0)))
        return slice_in_dim(out, 0, reach, w.base_dilation, axis)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(tangents[0], primals[1])

    def transpose(self, ct: Any, values: Linear, place: Any) -> tuple[Any, None]:
        return SelectAndGatherAdd(self.axis, self.window)(ct, place), None

    def padded(self, at: Any, values: Any, place: Any) -> Any:
        """Padding adds 0."""
        axis, w, (out,) = self.axis, self.window, at.outs
        both = zip((values, place), at.types, strict=True)
        values, place = [at.filled(x, type, 0, (axis,)) for x, type in both]
        if not is_size(w.low):
            return at.static(self)(values, place)
        # What is in front of the first element is part of the array, and is left out.
        n = at.bound(self.n)
        reach = dilated(n, w.base_dilation)
        most = at.bound(w.low) + reach
        whole = SelectAndScatterAdd(axis, behind(w, values.shape[axis], most), most)(values, place)
        starts: list[Any] = [0] * whole.ndim
        starts[axis] = at.size(w.low)
        sizes = at.shape(out.shape)
        part = at.cut(whole, starts, (*sizes[:axis], reach, *sizes[axis + 1 :]))
        return slice_in_dim(part, 0, reach, w.base_dilation, axis)


def _check_place(caller: str, place: ArrayType, shape: tuple[int, ...]) -> None:
    if place.shape != shape or place.dtype != _INDEX:
        raise TypeError(f"{caller}: expected places {array_type(shape, _INDEX)}, got {place}")


def _numbers(x: Any, axis: int) -> GatherDimensionNumbers:
    """Return the numbers for one element along the axis for each line of the others."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    return GatherDimensionNumbers((), (axis,), (axis,), others, others)


def _index(place: Any, axis: int, window: AxisWindow, n: int) -> Any:
    """Index vectors of what is at a place in each window; ``n`` where that is padding."""
    w = window
    i = broadcasted_iota(_INDEX, place.shape, axis) * w.stride + place * w.dilation - w.low
    there = ge(i, 0) & lt(i, dilated(n, w.base_dilation)) & eq(remainder(i, w.base_dilation), 0)
    return reshape(where(there, divide(i, w.base_dilation), n), (*place.shape, 1))
