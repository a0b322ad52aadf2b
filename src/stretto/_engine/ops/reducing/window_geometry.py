"""Lay windows along an axis, view those of a NumPy array, and have XLA reduce them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from stretto._engine.core.sizes import greater
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.shape import Pad, pad


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
