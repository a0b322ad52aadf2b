"""Reductions over windows, and the windows themselves, laid along axes.

First how windows lie along an axis, a NumPy array's windows as a view, and their reduction by XLA;
then the sum, product, greatest, least, bits and truth of each; last the places of greatest and
least. The function in front of these is in ``higher_order/reduce``, beside the operation for other
reductions.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.arithmetic import divide, remainder
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import eq, full, ge, gt, lt, ne, select, where, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.elementwise import FLOAT, NUMERIC, align_mapped
from stretto._engine.ops.index.gather_scatter import gather, scatter_add
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
    Reduction,
    greatest_below,
    least_above,
    widened,
)
from stretto._engine.ops.shape import Pad, pad, slice_in_dim
from stretto._engine.ops.thresholds import WINDOW_PLACES


class AxisWindow(NamedTuple):
    """Windows of ``size`` elements along one axis, their starts ``stride`` apart.

    The operand first gets ``low`` and ``high`` elements of padding at its ends (removed where
    negative), and ``base_dilation - 1`` between neighbours; the elements of a window are
    ``dilation`` apart in that.
    """

    size: int = 1
    stride: int = 1
    low: int = 0
    high: int = 0
    base_dilation: int = 1
    dilation: int = 1

    @property
    def extent(self) -> int:
        """The distance that a window covers."""
        return dilated(self.size, self.dilation)

    @property
    def config(self) -> tuple[int, int, int]:
        """The padding, as ``Pad`` takes it."""
        return self.low, self.high, self.base_dilation - 1

    @property
    def tiles(self) -> bool:
        """Say whether windows begin where the ones before end, so that each element is in one."""
        return self.size == self.stride and self.base_dilation == self.dilation == 1

    def padded(self, n: int) -> int:
        """Say how many elements there are after padding ``n``."""
        return self.low + dilated(n, self.base_dilation) + self.high

    def count(self, n: int) -> int:
        """Return the number of windows over ``n`` elements."""
        return greater((self.padded(n) - self.extent) // self.stride + 1, 0)

    def transposed(self, n: int) -> AxisWindow:
        """Return the windows that hold each of ``n`` elements: strides and dilations change places.

        Element i is in window o, at place k, where i b + low - k d = o s (b, d, s: base dilation,
        dilation, stride). With k' = size - 1 - k the starts are at i b - ((size - 1) d - low).
        """
        low = self.extent - 1 - self.low
        reach = self.extent + (n - 1) * self.base_dilation
        high = reach - low - dilated(self.count(n), self.stride)
        return AxisWindow(self.size, self.base_dilation, low, high, self.stride, self.dilation)

    def __repr__(self) -> str:
        plain = self._field_defaults
        changed = [f"{name}={v}" for name, v in self._asdict().items() if v != plain[name]]
        return f"({', '.join(changed)})"


PLAIN = AxisWindow()
"""One window for each element: nothing happens along the axis."""

Windows: TypeAlias = tuple[AxisWindow, ...]


def window_shape(caller: str, x: ArrayType, windows: Windows) -> tuple[int, ...]:
    """Return the number of windows along each axis; raises ``ValueError`` where they do not fit."""
    if len(windows) != x.ndim:
        raise ValueError(f"{caller}: expected a window size for each axis of {x}, got {windows}")
    for d, (n, w) in enumerate(zip(x.shape, windows, strict=True)):
        if min(w.size, w.stride, w.base_dilation, w.dilation) < 1:
            raise ValueError(
                f"{caller}: window sizes, strides and dilations must be positive; axis {d} of {x} "
                f"has {w}"
            )
        if w.padded(n) < 0:
            raise ValueError(f"{caller}: padding takes away more than axis {d} of {x} has: {w}")
    return tuple(w.count(n) for n, w in zip(x.shape, windows, strict=True))


def patches_reference(x: np.ndarray, axis: int, window: AxisWindow, fill: Any) -> np.ndarray:
    """Return the windows along an axis, elements first, with ``fill`` in the padding."""
    w, count = window, window.count(x.shape[axis])
    if w.config != (0, 0, 0):
        config = tuple(w.config if d == axis else (0, 0, 0) for d in range(x.ndim))
        x = Pad(config).reference(x, np.asarray(fill, x.dtype))
    if not count:
        return np.empty((w.size, *x.shape[:axis], 0, *x.shape[axis + 1 :]), x.dtype)
    view = np.lib.stride_tricks.sliding_window_view(x, w.extent, axis)
    view = np.moveaxis(view[..., :: w.dilation], -1, 0)
    return view[(slice(None),) * (axis + 1) + (slice(None, None, w.stride),)]


def patches(x: Any, axis: int, window: AxisWindow, fill: Any) -> Any:
    """Return the same of a value, written with other operations; ``fill`` is a value of rank 0."""
    w, count = window, window.count(x.shape[axis])
    if not count:
        return full((w.size, *x.shape[:axis], 0, *x.shape[axis + 1 :]), 0, x.dtype)
    x = Pad(tuple(w.config if d == axis else (0, 0, 0) for d in range(x.ndim)))(x, fill)
    index, at = np.dtype(np.int32), (w.size, count, 1)
    places = broadcasted_iota(index, at, 0) * w.dilation + broadcasted_iota(index, at, 1) * w.stride
    others = tuple(d + 1 for d in range(x.ndim) if d != axis)
    numbers = GatherDimensionNumbers(others, (axis,), (axis,))
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    return Gather(numbers, sizes, "promise_in_bounds")(x, places)


def padded_before(
    at: Any, x: Any, out: ArrayType, axis: int, window: AxisWindow, fill: Any
) -> tuple[Any, AxisWindow]:
    """Return an array that holds padding of varying size in front, and windows over it.

    ``out`` is the type with one element for each window, ``fill`` what is in padding.
    """
    w, shape = window, list(x.type.shape)
    config = [(w.low, 0, w.base_dilation - 1) if d == axis else (0, 0, 0) for d in range(x.ndim)]
    shape[axis] = w.low + dilated(shape[axis], w.base_dilation)
    x = at.spread(x, full((), fill, x.type.dtype), config, shape)
    return x, behind(w, at.bound(out.shape[axis]), x.type.shape[axis])


def behind(window: AxisWindow, count: int, n: int) -> AxisWindow:
    """Return so many windows over ``n`` elements that begin with the first window's padding."""
    w = window
    high = max(count - 1, 0) * w.stride + w.extent - n
    return AxisWindow(w.size, w.stride, 0, high, 1, w.dilation)


def window_attributes(b: Any, windows: Windows) -> str:
    """Return the attributes of StableHLO ``reduce_window``."""

    def ints(name: str) -> str:
        return b.ints([getattr(w, name) for w in windows])

    rows = [[w.low, w.high] for w in windows]
    padding = f"dense<{rows}> : tensor<{len(rows)}x2xi64>"
    return (
        f"window_dimensions = {ints('size')}, window_strides = {ints('stride')}, "
        f"base_dilations = {ints('base_dilation')}, window_dilations = {ints('dilation')}, "
        f"padding = {padding}"
    )


def reduce_windows(
    b: Any, op: str, x: Any, windows: Windows, identity: Callable[[np.dtype], Any]
) -> Any:
    """Write StableHLO ``reduce_window`` by one operation; narrow floats in float32."""
    shape = window_shape(op, x.type, windows)
    narrow = kind_of(x.type.dtype) == "float" and x.type.dtype.itemsize < 4
    wide = b.convert(x, np.dtype(np.float32)) if narrow else x
    spread = [w for w in windows if w.base_dilation > 1]
    if spread and all(w.size <= w.base_dilation for w in spread):
        # No window holds two elements, which XLA sees only if they are spread out beforehand.
        config = [w.config for w in windows]
        wide = b.inline(lambda v: pad(v, identity(x.type.dtype), config), wide)
        windows = tuple(AxisWindow(w.size, w.stride, dilation=w.dilation) for w in windows)
    element = array_type((), wide.type.dtype)
    (out,) = b.emit_many(
        "reduce_window",
        (wide, b.scalar(identity(x.type.dtype), element.dtype)),
        (array_type(shape, element.dtype),),
        window_attributes(b, windows),
        (b.combiner(op, element),),
    )
    return out


_FEW = 32
"""Windows of up to this many elements are combined in a loop, one call for each."""


def _combine(ufunc: np.ufunc, lines: np.ndarray) -> np.ndarray:
    """Combine the lines of the first axis; ``reduce`` would go through strided ones singly."""
    if not 1 < len(lines) <= _FEW:
        return np.asarray(ufunc.reduce(lines, axis=0, dtype=lines.dtype))
    out = np.asarray(ufunc(lines[0], lines[1]))
    for line in lines[2:]:
        ufunc(out, line, out=out)
    return out


class WindowReduction(Primitive, abstract=True):
    """The elements of each window combined by an associative, commutative operation.

    A subclass states the kinds of dtype that it ``accepts``, the StableHLO operation ``op`` and
    the NumPy function ``ufunc`` that combine two elements, and the ``identity`` for a dtype, which
    is the padding.
    """

    windows: Windows
    accepts: ClassVar[frozenset[str]]
    op: ClassVar[str]
    ufunc: ClassVar[np.ufunc]
    transpose = NOT_LINEAR

    def __init_subclass__(
        cls, whole: type[Reduction] | None = None, abstract: bool = False, **kwargs: Any
    ) -> None:
        """Take, as ``whole``, the reduction over axes that combines elements in the same way."""
        if whole is not None:
            cls.accepts, cls.op, cls.ufunc = whole.accepts, whole.op, whole.ufunc
            cls.identity = staticmethod(whole.identity)
        super().__init_subclass__(abstract=abstract, **kwargs)

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return what combines with any element to that element."""
        raise NotImplementedError

    def infer(self, x: ArrayType) -> ArrayType:
        if kind_of(x.dtype) not in self.accepts:
            raise TypeError(
                f"{self.name}: expected an array of kind {' or '.join(sorted(self.accepts))}, got "
                f"{x}"
            )
        return x.with_shape(window_shape(self.name, x, self.windows))

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        return outs[0].size * math.prod(w.size for w in self.windows)

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Apply the ufunc axis by axis; narrow dtypes in wider ones, as in XLA."""
        wide = x.astype(widened(x.dtype), copy=False)
        start = np.asarray(self.identity(x.dtype)).astype(wide.dtype)[()]
        for axis, window in enumerate(self.windows):
            if window != PLAIN:
                wide = _combine(self.ufunc, patches_reference(wide, axis, window, start))
        return wide.astype(x.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        out = b.outs[0]
        if not self.windows:
            return x
        if not x.type.size or not out.size:
            return b.splat(self.identity(out.dtype), out)
        return b.convert(reduce_windows(b, self.op, x, self.windows, self.identity), out.dtype)

    def onnx(self, b: Any, x: Any) -> Any:
        """Combine slices along each axis, or write ``MaxPool``."""
        out = b.outs[0]
        if not self.windows:
            return x
        if not out.varies and (not x.type.size or not out.size):
            return b.splat(self.identity(out.dtype), out)
        return b.windows(self.op, x, self.windows, self.identity(x.type.dtype), out)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        return type(self)((*self.windows[:axis], PLAIN, *self.windows[axis:]))(args[0]), axis

    def along(self, axis: int) -> WindowReduction:
        """Return the same along one axis only."""
        return type(self)(tuple(w if d == axis else PLAIN for d, w in enumerate(self.windows)))

    def padded(self, at: Any, x: Any) -> Any:
        """Padding is that of the windows, the identity."""
        (type,), identity = at.types, self.identity(x.type.dtype)
        x = at.filled(x, type, identity)
        windows = list(self.windows)
        for axis, window in enumerate(windows):
            if is_size(window.low):
                x, windows[axis] = padded_before(at, x, at.outs[0], axis, window, identity)
        return at.fit(self.__class__(at.static(tuple(windows)))(x), at.outs[0])


class ReduceWindowSum(WindowReduction):
    """The sum of each window."""

    accepts = NUMERIC
    op = "add"
    ufunc = np.add

    @staticmethod
    def identity(dtype: np.dtype) -> Any:
        """Return 0."""
        return 0

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def transpose(self, ct: Any, x: Linear) -> tuple[Any]:
        if not ct.type.size:
            return (full(x.shape, 0, x.dtype, ct.type.weak_type),)
        if all(w == PLAIN or w.tiles for w in self.windows):
            for axis, w in enumerate(self.windows):
                if w != PLAIN:
                    ct = _repeat(ct, axis, w, x.shape[axis])
            return (ct,)
        back = [w.transposed(n) for n, w in zip(x.shape, self.windows, strict=True)]
        return (ReduceWindowSum(tuple(back))(ct),)


def _repeat(ct: Any, axis: int, w: AxisWindow, n: int) -> Any:
    """Return for each of ``n`` elements what its one window has, or 0 if no window has it."""
    shape, count = ct.shape, ct.shape[axis]
    split = (*shape[: axis + 1], w.size, *shape[axis + 1 :])
    dims = tuple(d for d in range(len(split)) if d != axis + 1)
    wide = broadcast_in_dim(ct, split, dims)
    wide = reshape(wide, (*shape[:axis], count * w.size, *shape[axis + 1 :]))
    config = [(0, 0, 0)] * len(shape)
    config[axis] = (-w.low, n + w.low - count * w.size, 0)
    return pad(wide, 0, config)


class WindowChooser(WindowReduction, abstract=True):
    """A reduction that chooses one of the elements of each window."""

    greatest: ClassVar[bool]

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        """Take the tangent of the element chosen, axis by axis: the first of equals."""
        (x,), (dx,) = primals, tangents
        out = self(x)
        for axis in reversed(range(x.ndim)):
            window = self.windows[axis]
            if window != PLAIN:
                place = WindowPlace(axis, window, self.greatest)(x)
                dx = SelectAndGatherAdd(axis, window)(dx, place)
                x = self.along(axis)(x)
        return out, dx


class ReduceWindowMax(WindowChooser, whole=ReduceMax):
    """The greatest of each window; NaN where any is."""

    greatest = True


class ReduceWindowMin(WindowChooser, whole=ReduceMin):
    """The least of each window; NaN where any is."""

    greatest = False


class ReduceWindowProd(WindowReduction, whole=ReduceProd):
    """The product of each window."""

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        (x,), (dx,) = primals, tangents
        out = self(x)
        for axis, window in enumerate(self.windows):
            if window != PLAIN:
                one, zero = (full((), n, x.dtype) for n in (1, 0))
                lines = [patches(v, axis, window, e) for v, e in ((x, one), (dx, zero))]
                x, dx = ReduceProd((0,)).jvp(lines[:1], lines[1:])
        return out, dx


class WindowBits(WindowReduction, abstract=True):
    """A reduction of bits, or of truth values."""

    jvp = ZERO_DERIVATIVE


class ReduceWindowAnd(WindowBits, whole=ReduceAnd):
    """The bits, or truth, in all elements of each window."""


class ReduceWindowOr(WindowBits, whole=ReduceOr):
    """The bits, or truth, in any element of each window."""


class ReduceWindowXor(WindowBits, whole=ReduceXor):
    """The bits, or truth, in an odd number of elements of each window."""


# Where the greatest or least element of each window is, and values read and added there: what the
# derivatives of the greatest and least are made of. Each works along one axis. Short windows are
# lowered as selections among the slices that hold their first elements, their second ones and so
# on, which XLA fuses into one pass; long ones by index.


_INDEX = np.dtype(np.int32)
_SHORT = 32


def _along(x: Any, axis: int, value: Any, others: Any) -> tuple[Any, ...]:
    """Return ``value`` for the axis, ``others`` for each of the rest."""
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
        """Reduce elements with their indices, the lesser of which wins among equals."""
        unsigned = np.dtype(np.uint32)
        index = b.iota(self.axis, array_type(x.type.shape, unsigned))
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
        """Add at index arrays, in wide floats; what goes to padding goes to a spare element."""
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
    """Return index vectors of what is at a place in each window; ``n`` where that is padding."""
    w = window
    i = broadcasted_iota(_INDEX, place.shape, axis) * w.stride + place * w.dilation - w.low
    there = ge(i, 0) & lt(i, dilated(n, w.base_dilation)) & eq(remainder(i, w.base_dilation), 0)
    return reshape(where(there, divide(i, w.base_dilation), n), (*place.shape, 1))
