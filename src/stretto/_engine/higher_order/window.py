"""Reductions over windows by any operation: ``reduce_window``.

As in ``reduce``, a sum, a maximum and so on is recognized and becomes the primitive in
``ops/reducing/window``; any other operation keeps its program.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.autodiff.vmap import vmap_flat
from stretto._engine.core import tree
from stretto._engine.core.integers import integers
from stretto._engine.core.types import ArrayType
from stretto._engine.higher_order.family import split
from stretto._engine.higher_order.monoid import monoid_of, start_of
from stretto._engine.higher_order.reduce import Combination, Reduce, combination
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convolution.geometry import check_front, dilated, pads
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.window_geometry import (
    PLAIN,
    AxisWindow,
    Windows,
    patches,
    window_attributes,
    window_shape,
)


class ReduceWindow(Combination):
    """The elements of each window combined by a program."""

    windows: Windows

    @property
    def along(self) -> Sequence[int]:
        """The axes with windows of more than an element."""
        return [axis for axis, window in enumerate(self.windows) if window != PLAIN]

    def padded(self, at: Any, *args: Any) -> Sequence[Any]:
        """Padding is passed over, like that of the windows."""
        check_front(self.name, [w.low for w in self.windows])
        return super().padded(at, *args)

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        """Return the number of windows along each axis."""
        shape = window_shape(self.name, self.check(types), self.windows)
        return tuple(t.with_shape(shape) for t in self.computation.out_types)

    def in_pairs(self, *args: Any) -> list[Any]:
        """Return windows along an extra axis, reduced axis by axis, the last axis first."""
        arrays, starts = split(args, len(args) // 2)
        over = Reduce(self.computation, (0,))
        for axis, window in reversed([*enumerate(self.windows)]):
            if window != PLAIN:
                lines = [patches(x, axis, window, s) for x, s in zip(arrays, starts, strict=True)]
                arrays = over.in_pairs(*lines, *starts)
        return arrays

    def lines(self, arrays: Sequence[Any], starts: Sequence[Any]) -> tuple[list[Any], Any]:
        """Return the elements of each window along a first axis, in row-major order.

        Padding is masked.
        """
        mask = full(arrays[0].shape, True, np.dtype(bool))
        absent = full((), False, np.dtype(bool))
        filled = [*zip(arrays, starts, strict=True), (mask, absent)]
        *lines, mask = [self._in_lines(x, fill) for x, fill in filled]
        return lines, mask

    def _in_lines(self, x: Any, fill: Any) -> Any:
        rank = len(self.windows)
        for k, (axis, window) in enumerate(reversed([*enumerate(self.windows)])):
            x = patches(x, k + axis, window, fill)
        return reshape(x, (math.prod(x.shape[:rank]), *x.shape[rank:]))

    def steps(self, type: ArrayType) -> int:
        """Return the elements of a window."""
        return math.prod(w.size for w in self.windows)

    def lower(self, b: Any, *operands: Any) -> list[Any]:
        """StableHLO ``reduce_window``; the program for scalars, which XLA returns unchanged."""
        if not operands[0].type.size or not b.outs[0].size or not self.windows:
            return b.inline_many(self.interpret, *operands)
        attributes = window_attributes(b, self.windows)
        return self.lowered(b, "reduce_window", operands, attributes)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Use windows of one element along the mapped axis; other operations for a scalar."""
        placed = self.mapped(size, args, axes)
        if placed is None:
            return vmap_flat(self.composed, size, args, axes)
        values, axis = placed
        windows = (*self.windows[:axis], PLAIN, *self.windows[axis:])
        outs = ReduceWindow(self.computation, windows)(*values)
        return outs, (axis,) * len(outs)


def _windows(
    caller: str,
    x: ArrayType,
    sizes: Sequence[int],
    strides: Sequence[int] | None,
    padding: Any,
    base_dilation: Sequence[int] | None,
    window_dilation: Sequence[int] | None,
) -> Windows:
    """Return the windows along each axis of ``x``; raises ``ValueError`` if an entry is missing."""
    plain = (1,) * x.ndim
    options = {
        "window_dimensions": sizes,
        "window_strides": plain if strides is None else strides,
        "base_dilation": plain if base_dilation is None else base_dilation,
        "window_dilation": plain if window_dilation is None else window_dilation,
    }
    ints = {name: integers(values, "reduce_window", name) for name, values in options.items()}
    for name, values in ints.items():
        if len(values) != x.ndim or min(values, default=1) < 1:
            raise ValueError(
                f"{caller}: {name} must be a positive integer for each axis of {x}, got {values}"
            )
    sizes, strides, bases, dilations = ints.values()
    extents = [dilated(n, d) for n, d in zip(sizes, dilations, strict=True)]
    ends = pads(padding, x.shape, extents, strides, caller)
    if len(ends) != x.ndim:
        raise ValueError(
            f"{caller}: padding must be a pair (low, high) for each axis of {x}, got {padding}"
        )
    lows, highs = [low for low, _ in ends], [high for _, high in ends]
    columns = zip(sizes, strides, lows, highs, bases, dilations, strict=True)
    return tuple(AxisWindow(*column) for column in columns)


def reduce_window(
    operand: Any,
    init_value: Any,
    computation: Callable[[Any, Any], Any],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int] | None = None,
    padding: str | Sequence[tuple[int, int]] = "VALID",
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> Any:
    """Combine the elements in each window over an array, by any associative function.

    A ``computation`` that is ``lax.add``, ``mul``, ``max``, ``min`` or bitwise becomes that
    reduction, and the initial value is combined with its result once. For others the initial value
    must leave every element as it is. On a CPU, one that is not associative takes the elements of a
    window in row-major order, starting from the initial value and without the padding, compiled or
    not, and so does its derivative. That of ``max`` and ``min`` goes to the first of equal
    elements.

    Args:
        operand: an array, or a tree of arrays of one shape.
        init_value: the initial scalar, or a tree of them of the same structure.
        computation: an associative and commutative function of two elements that returns one.
        window_dimensions: the size of the window along each axis.
        window_strides: the steps between windows along each axis; by default 1.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each axis.
        base_dilation: the spacing of the elements along each axis; by default 1.
        window_dilation: the spacing of the elements of a window along each axis; by default 1.

    Returns:
        The combinations, one for each window; of the dtypes of ``operand``.

    Raises:
        TypeError: ``computation`` returns something unlike what it takes, or uses traced values
            from outside.
        ValueError: shapes or structures differ, an initial value is not a scalar, there is no
            operand, or the numbers of entries for the axes do not fit.

    Source: StableHLO, ``reduce_window``.

    >>> import stretto as st
    >>> x = st.numpy.array([1.0, 3.0, 2.0, 5.0])
    >>> st.lax.reduce_window(x, -st.numpy.inf, st.lax.max, (2,), (2,), "VALID")
    Array([3., 5.], dtype=float32)
    """
    caller = "reduce_window"
    arrays, starts, program, structure = combination(caller, operand, init_value, computation)
    windows = _windows(
        caller,
        arrays[0].type,
        window_dimensions,
        window_strides,
        padding,
        base_dilation,
        window_dilation,
    )
    monoid = monoid_of(program)
    if monoid is not None:
        out = monoid.window(windows)(*arrays)
        outs = [monoid.started(caller, out, starts[0])]
    else:
        starts = [start_of(caller, x, s) for x, s in zip(arrays, starts, strict=True)]
        outs = ReduceWindow(program, windows)(*arrays, *starts)
    return tree.unflatten(structure, outs)
