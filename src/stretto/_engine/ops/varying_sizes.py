"""Arrays whose sizes vary, carried in a bucket, one behind the other, or in a rectangle.

Where a size varies, an array is carried by a larger one, whose size is the greatest of the bucket;
what lies past the true size is padding, and holds anything. A ``padded`` rule says how to compute
the valid part of a result from such operands, by operations of fixed sizes; ``Bucket`` is what
these rules work with. Examples that differ in length lie one behind the other, as rows, or in a
rectangle.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.errors import SizeError
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import Primitive
from stretto._engine.core.program import Program
from stretto._engine.core.sizes import Dimension, Size, SizeVariable, is_size
from stretto._engine.core.types import ArrayType
from stretto._engine.ops.arithmetic import DIV, SUB, subtract
from stretto._engine.ops.bits import AND
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.comparison import eq, full, ge, lt, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.identities import optimization_barrier
from stretto._engine.ops.index.dynamic import DynamicSlice, DynamicUpdateSlice
from stretto._engine.ops.index.gather_scatter import gather, scatter_add
from stretto._engine.ops.index.geometry import GatherDimensionNumbers, ScatterDimensionNumbers
from stretto._engine.ops.index.primitives import Gather
from stretto._engine.ops.iota import broadcasted_iota
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.reducing.cumulative import cumsum
from stretto._engine.ops.shape import Pad, pad, slice_

_INT32, _INT64 = np.dtype(np.int32), np.dtype(np.int64)
_MOST, _MOST_LONG = (1 << 31) - 1, (1 << 63) - 1


def too_great(n: Dimension, most: int, where: str, way_out: str) -> str:
    """Say that int32 may not hold a size, how great it may be, and what to do."""
    return (
        f"the size {n} may be as great as {most} in the bucket that this call needs, and int32, in "
        f"which sizes are {where}, has integers up to {_MOST}: {way_out}"
    )


def varying(type: ArrayType) -> list[int]:
    """Return the axes whose size varies."""
    return [axis for axis, n in enumerate(type.shape) if is_size(n)]


class Bucket:
    """The greatest sizes, as integers, and the true ones, as values.

    ``types`` and ``outs`` are those of the equation whose rule is called, with sizes that vary.
    """

    def __init__(
        self, most: Mapping[SizeVariable, int], values: Mapping[SizeVariable, Any]
    ) -> None:
        self.most = dict(most)
        self.values = dict(values)
        self.types: Sequence[ArrayType] = ()
        self.outs: Sequence[ArrayType] = ()
        self.done: set[str] = set()
        """The rule being called has "replaced" padding, "moved" parts, or gone "one by one"."""
        self.zeros: dict[int, tuple[Any, Sequence[int]]] = {}
        """Hold, by identity, values whose padding counts as 0 in sums along these axes."""
        self._sizes: dict[Size, Any] = {}
        self._masks: dict[Any, Any] = {}

    # Sizes

    def bound(self, n: Dimension) -> int:
        """Return the greatest that a size is in this bucket."""
        return max(0, int(n.bounds(self.most.__getitem__)[1])) if isinstance(n, Size) else n

    def shape(self, shape: Sequence[Dimension]) -> tuple[int, ...]:
        """Return the shape of the array that carries one of this shape."""
        return tuple([self.bound(n) for n in shape])

    def carrier(self, type: ArrayType) -> ArrayType:
        """Return the type of the array that carries one of this type."""
        return type.with_shape(self.shape(type.shape))

    def size(self, n: Dimension) -> Any:
        """Return the true size, an int32 scalar; ``SizeError`` where that may be too small."""
        value = self.exact(n)
        if value.type.dtype != _INT32:
            raise SizeError(
                too_great(n, self.bound(n), "counted and indexed", "use smaller arrays")
            )
        return value

    def exact(self, n: Dimension) -> Any:
        """Give the true size, an int32 scalar, or an int64 one where the bucket's may be too great.

        Nothing on the way to it is rounded or wraps: the terms are int64, too, where they may add
        up to more than 32 bits hold. ``SizeError`` where they may to more than 64.
        """
        if not isinstance(n, Size):
            return as_value(np.int32(n) if abs(n) <= _MOST else np.int64(n))
        known = self._sizes.get(n)
        if known is None:
            largest = n.largest_sum(self.most.__getitem__)
            if largest > _MOST_LONG:
                raise SizeError(
                    f"the size {n} has terms of up to {int(largest)} in the bucket that this call "
                    f"needs, and int64 has integers up to {_MOST_LONG}: multiply it as a float, "
                    f"x.shape[0] * 1.0"
                )
            dtype = _INT32 if largest <= _MOST else _INT64
            zero = as_value(dtype.type(0))
            total = n.at(
                lambda v: convert(self.values[v], dtype), _floor_divide, lambda x: maximum(x, zero)
            )
            fits = self.bound(n) <= _MOST and -self.bound(-n) >= -_MOST
            known = self._sizes[n] = convert(as_value(total), _INT32 if fits else _INT64)
        return known

    def greatest(self) -> tuple[Size, int]:
        """Return the size asked for that may be the greatest, and how great."""
        n = max(self._sizes, key=self.bound)
        return n, self.bound(n)

    def static(self, value: Any) -> Any:
        """Return a parameter or operation with the greatest sizes in place of those that vary."""
        if isinstance(value, Size):
            return self.bound(value)
        if isinstance(value, (tuple, list)):
            parts = [self.static(v) for v in value]
            if all([new is old for new, old in zip(parts, value, strict=True)]):
                return value
            kind: Any = value.__class__
            return kind(parts) if kind in (tuple, list) else kind(*parts)  # a named one
        if isinstance(value, Primitive):
            old = dict(value.parameters())
            new = {name: self.static(v) for name, v in old.items()}
            same = all([new[name] is old[name] for name in old])
            return value if same else type(value)(**new)
        if isinstance(value, Program) or not dataclasses.is_dataclass(value):
            return value
        fields = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        new = {name: self.static(v) for name, v in fields.items()}
        if all([new[name] is fields[name] for name in fields]):
            return value
        return type(value)(**new)

    # Padding

    def inside(self, shape: Sequence[Dimension], axes: Sequence[int] | None = None) -> Any:
        """Say which elements of a carrier are not padding along these axes, by default along all.

        None if all of them are.
        """
        wanted = tuple(
            [a for a, n in enumerate(shape) if is_size(n) and (axes is None or a in axes)]
        )
        if not wanted:
            return None
        self.done.add("replaced")
        key = tuple(shape), wanted
        mask = self._masks.get(key)
        if mask is None:
            outer = self.shape(shape)
            for axis in wanted:
                # Compared along the one axis, so that a kernel reads a row for each example.
                index = broadcasted_iota(_INT32, (outer[axis],), 0)
                along = lt(index, broadcast_in_dim(self.size(shape[axis]), index.shape, ()))
                here = broadcast_in_dim(along, outer, (axis,))
                mask = here if mask is None else AND(mask, here)
            self._masks[key] = mask
        return mask

    def filled(
        self, x: Any, type: ArrayType, element: Any, axes: Sequence[int] | None = None
    ) -> Any:
        """Return the carrier with this element in the place of padding along these axes."""
        _, zero = self.zeros.get(id(x), (x, ()))
        if element == 0:
            wanted = varying(type) if axes is None else [a for a in varying(type) if a in axes]
            if all([a in zero for a in wanted]):
                return x
            # Along all axes, so that sums along different ones share one selection.
            axes = [a for a in varying(type) if a not in zero]
        mask = self.inside(type.shape, axes)
        if mask is None:
            return x
        return select(mask, x, full(x.type.shape, element, x.type.dtype, x.type.weak_type))

    def fit(self, x: Any, type: ArrayType) -> Any:
        """Return an array that begins with the elements of one of this type, cut or grown."""
        wanted = self.shape(type.shape)
        config = [(0, n - have, 0) for n, have in zip(wanted, x.type.shape, strict=True)]
        if all([high == 0 for _, high, _ in config]):
            return x
        if all([high <= 0 for _, high, _ in config]):
            return slice_(x, (0,) * len(wanted), wanted)
        return pad(x, full((), 0, x.type.dtype), config)

    def rank(self, shape: Sequence[Dimension]) -> Any:
        """Count for each element of a carrier those before it in an array of the true shape."""
        outer = self.shape(shape)
        self.size(math.prod(shape))  # refused if int32 cannot count the elements
        rank = full(outer, 0, _INT32)
        for axis in range(len(shape)):
            step = self.size(math.prod(shape[axis + 1 :]))
            rank = rank + broadcasted_iota(_INT32, outer, axis) * step
        return rank

    def taken(self, x: Any, shape: Sequence[Dimension], wanted: Sequence[Dimension]) -> Any:
        """Return the elements of an array of one shape, in order, as one of another shape."""
        self.done.add("one by one")
        outer = self.shape(wanted)
        if not x.size:
            return full(outer, 0, x.type.dtype, x.type.weak_type)
        rest = self.rank(wanted)
        place = full(outer, 0, _INT32)
        for axis in range(len(shape)):
            step = broadcast_in_dim(self.size(math.prod(shape[axis + 1 :])), outer, ())
            here = DIV(rest, step)
            rest = rest - here * step
            place = place + here * math.prod(self.shape(shape[axis + 1 :]))
        numbers = GatherDimensionNumbers((), (0,), (0,))
        line = reshape(x, (math.prod(x.type.shape),))
        return Gather(numbers, (1,), "clip")(line, reshape(place, (*outer, 1)))

    def cut(self, x: Any, starts: Sequence[Any], sizes: Sequence[int]) -> Any:
        """Give the window of these sizes at starts that are values, with anything past the end."""
        rooms = [
            0 if start.__class__ is int and start + n <= have else n
            for start, n, have in zip(starts, sizes, x.type.shape, strict=True)
        ]
        if any([start.__class__ is not int for start in starts]):
            self.done.add("moved")
        if any(rooms):
            x = pad(x, full((), 0, x.type.dtype), [(0, room, 0) for room in rooms])
        return DynamicSlice(tuple(sizes))(x, *map(_index, starts))

    def put(self, x: Any, part: Any, starts: Sequence[Any]) -> Any:
        """Return the array with a part written at starts that are values, as far as it fits."""
        have = x.type.shape
        if any([start.__class__ is not int for start in starts]):
            self.done.add("moved")
            room = [(0, n, 0) for n in part.type.shape]
            x = pad(x, full((), 0, x.type.dtype), room)
        x = DynamicUpdateSlice()(x, part, *map(_index, starts))
        return slice_(x, (0,) * len(have), have)

    def spread(
        self, x: Any, value: Any, config: Sequence[Sequence[Any]], shape: Sequence[Dimension]
    ) -> Any:
        """Pad with this ``config``, whose sizes may vary, to carry an array of this shape.

        The value is in the place of padding already.
        """
        outer = self.shape(shape)
        for axis, (low, _, inner) in enumerate(config):
            if isinstance(inner, Size):
                x = self._apart(x, value, axis, low, inner, outer[axis])
                config = [c if d != axis else (0, 0, 0) for d, c in enumerate(config)]
        ends, starts = [], []
        for (low, _, inner), m, n in zip(config, x.type.shape, outer, strict=True):
            # out[i] is spread[i - low], of which there are enough for each low
            most, least = low, low
            if isinstance(low, Size):
                most, least = self.bound(low), -self.bound(-low)
            first, have = max(most, 0), m + max(m - 1, 0) * inner
            ends.append((first, max(0, n - least - have), inner))
            starts.append(self.size(first - low) if isinstance(low, Size) else first - low)
        return self.cut(Pad(tuple(ends))(x, value), starts, outer)

    def _apart(self, x: Any, value: Any, axis: int, low: Any, inner: Size, n: int) -> Any:
        """Lay an array's elements ``inner + 1`` apart among ``n`` along an axis, and the value."""
        place = broadcasted_iota(_INT32, (n,), 0) - self.size(low)
        step = broadcast_in_dim(self.size(inner + 1), (n,), ())
        index = DIV(place, step)
        there = AND(ge(place, full((n,), 0, _INT32)), eq(index * step, place))
        outer = (*x.type.shape[:axis], n, *x.type.shape[axis + 1 :])
        there = broadcast_in_dim(there, outer, (axis,))
        return select(there, self.along(x, axis, index), broadcast_in_dim(value, outer, ()))

    def every(self, step: Dimension, x: Any, axis: int, start: Dimension, count: Dimension) -> Any:
        """Return so many elements along an axis, from a start, so far apart."""
        place = broadcasted_iota(_INT32, (self.bound(count),), 0)
        return self.along(x, axis, place * self.size(step) + self.size(start))

    def along(self, x: Any, axis: int, places: Any) -> Any:
        """Return the elements at these places along an axis, the last one for those beyond it."""
        self.done.add("one by one")
        others = tuple([d for d in range(x.ndim) if d != axis])
        sizes = tuple([1 if d == axis else n for d, n in enumerate(x.type.shape)])
        numbers = GatherDimensionNumbers(others, (axis,), (axis,))
        return Gather(numbers, sizes, "clip")(x, reshape(places, (*places.type.shape, 1)))

    # Programs

    def run(self, program: Program, args: Sequence[Any]) -> list[Any]:
        """Return what a program gives, with carriers for its arguments and results."""
        raise NotImplementedError

    def closed(self, program: Program) -> tuple[Program, list[Any]]:
        """Give the program of fixed sizes, and the values that come before its other arguments."""
        raise NotImplementedError


def _index(start: Any) -> Any:
    return as_value(np.int32(start)) if start.__class__ is int else convert(start, _INT32)


def _floor_divide(x: Any, by: int) -> Any:
    """Return the quotient of a value, which may be negative, rounded down."""
    if isinstance(x, int):
        return x // by
    by_ = full(x.type.shape, by, x.type.dtype, x.type.weak_type)
    whole = DIV(x, by_)
    negative = lt(x - whole * by_, full(x.type.shape, 0, x.type.dtype, x.type.weak_type))
    return SUB(whole, convert(negative, whole.type.dtype, whole.type.weak_type))


# Examples one behind the other, or in a rectangle.
#
# The first axis of an array holds the elements of all examples, rows, in order, and maybe room
# behind them; or the first axis is that of examples, and the second has room for the longest. What
# is behind the end of an example, or behind the last, holds anything.


_COMPARED = 1 << 20
"""Up to so many comparisons, all at once, take less time than a running sum, step by step.

A barrier keeps XLA from making them again for each element that is gathered.
"""


def starts(lengths: Any) -> Any:
    """Return the row at which each example begins."""
    return subtract(_ends(lengths), lengths)


def examples_of_rows(lengths: Any, room: int) -> Any:
    """Give the example that each row is of; those behind the last are of one that is not there."""
    count = lengths.shape[0]
    ends = _ends(lengths)
    if count * room <= _COMPARED:  # how many examples end before
        shape = (room, count)
        over = lt(broadcast_in_dim(ends, shape, (1,)), broadcasted_iota(_INT32, shape, 0) + 1)
        return optimization_barrier(reduce_sum(convert(over, _INT32), (1,)))
    numbers = ScatterDimensionNumbers.of(GatherDimensionNumbers((), (0,), (0,)))
    zeros, ones = full((room,), 0, _INT32), full((count,), 1, _INT32)
    return cumsum(scatter_add(zeros, reshape(ends, (count, 1)), ones, numbers), 0)


def _ends(lengths: Any) -> Any:
    """Return the row behind the last of each example."""
    count = lengths.shape[0]
    if count * count > _COMPARED:
        return cumsum(lengths, 0)
    shape = (count, count)
    before = lt(broadcasted_iota(_INT32, shape, 1), broadcasted_iota(_INT32, shape, 0) + 1)
    every = broadcast_in_dim(lengths, shape, (1,))
    return optimization_barrier(reduce_sum(select(before, every, full(shape, 0, _INT32)), (1,)))


def for_each_row(x: Any, examples: Any) -> Any:
    """Return what an array has for each example, for each row."""
    return rows_at(x, examples)


def to_rectangle(rows: Any, lengths: Any, longest: int) -> Any:
    """Return rows as a rectangle, ``[example, place, ...]``."""
    shape = (lengths.shape[0], longest)
    place = broadcasted_iota(_INT32, shape, 1)
    first = broadcast_in_dim(starts(lengths), shape, (0,))
    return rows_at(rows, first + place)


def to_rows(x: Any, lengths: Any, examples: Any) -> Any:
    """Return a rectangle as rows, of which ``examples`` are those that they are of."""
    count, longest = x.shape[:2]
    # Row r of example e is element e longest + (r - starts[e]) of the rectangle.
    shift = broadcasted_iota(_INT32, (count,), 0) * longest - starts(lengths)
    row = broadcasted_iota(_INT32, examples.shape, 0)
    index = row + for_each_row(shift, examples)
    return rows_at(reshape(x, (count * longest, *x.shape[2:])), index)


def clear_rest(rows: Any, lengths: Any) -> Any:
    """Return the rows, with 0 in those behind the last example, which so have no derivative."""
    total = broadcast_in_dim(reduce_sum(lengths, (0,)), rows.shape, ())
    inside = lt(broadcasted_iota(_INT32, rows.shape, 0), total)
    return select(inside, rows, full(rows.shape, 0, rows.dtype, rows.type.weak_type))


def rows_at(x: Any, index: Any, mode: str = "clip") -> Any:
    """Read elements along the first axis; those out of range by the mode of ``gather``."""
    batch = index.ndim
    numbers = GatherDimensionNumbers(tuple(range(batch, batch + x.ndim - 1)), (0,), (0,))
    places, sizes = reshape(index, (*index.shape, 1)), (1, *x.shape[1:])
    return gather(x, places, numbers, sizes, mode=mode, fill_value=0 if mode == "fill" else None)
