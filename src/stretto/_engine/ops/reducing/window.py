"""Reductions over windows: sum, product, greatest, least, bits and truth.

The function in front of these is in ``higher_order/reduce``, beside the operation for other
reductions.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full
from stretto._engine.ops.elementwise import NUMERIC
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.reduce import (
    ReduceAnd,
    ReduceMax,
    ReduceMin,
    ReduceOr,
    ReduceProd,
    ReduceXor,
    Reduction,
    widened,
)
from stretto._engine.ops.reducing.window_geometry import (
    PLAIN,
    AxisWindow,
    Windows,
    padded_before,
    patches,
    patches_reference,
    reduce_windows,
    window_shape,
)
from stretto._engine.ops.reducing.window_select import SelectAndGatherAdd, WindowPlace
from stretto._engine.ops.shape import pad

_FEW = 32
"""Windows of up to this many elements are combined in a loop, one call for each."""


def _combined(ufunc: np.ufunc, lines: np.ndarray) -> np.ndarray:
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
        """``whole`` is the reduction over axes that combines elements in the same way."""
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
                wide = _combined(self.ufunc, patches_reference(wide, axis, window, start))
        return wide.astype(x.dtype, copy=False)

    def lower(self, b: Any, x: Any) -> Any:
        out = b.outs[0]
        if not self.windows:
            return x
        if not x.type.size or not out.size:
            return b.splat(self.identity(out.dtype), out)
        return b.convert(reduce_windows(b, self.op, x, self.windows, self.identity), out.dtype)

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
                    ct = _repeated(ct, axis, w, x.shape[axis])
            return (ct,)
        back = [w.transposed(n) for n, w in zip(x.shape, self.windows, strict=True)]
        return (ReduceWindowSum(tuple(back))(ct),)


def _repeated(ct: Any, axis: int, w: AxisWindow, n: int) -> Any:
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
