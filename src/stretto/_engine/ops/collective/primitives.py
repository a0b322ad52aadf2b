"""Primitives across the examples of a named axis: sum, gather, scatter, exchange, permute, index.

One example of ``vmap`` cannot see the others; these can. The vectorizer of the axis calls
``collect``, which sees all examples at once and leaves ordinary operations; for other axes there is
the ``vmap`` rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.primitive import CARRIED, ZERO_DERIVATIVE, NamedAxis, Primitive, Refused
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to, reduce_sum
from stretto._engine.ops.comparison import full_like
from stretto._engine.ops.elementwise import NUMERIC
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import move_axis, move_to_front, reshape
from stretto._engine.ops.shape import slice_in_dim

_BOUND: Any = Refused(
    "it works across the examples of a vmap, and outside the vmap that names its axis there are "
    "none; call it inside the function passed to vmap(..., axis_name=...)"
)


class Collective(Primitive, abstract=True):
    """An operation across the ``size`` examples of the axis named ``axis``."""

    onnx = Refused(
        "it works across devices, of which a file knows none: export what one device does"
    )
    axis: Any
    size: int
    reference = _BOUND
    padded = CARRIED

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset((NamedAxis(self.axis),))

    def collect(self, name: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """Return the output for all examples of the axis of this name, and its mapped axis.

        ``axes`` may all be ``None``.
        """
        self.check_size(size)
        return self.across(args[0], axes[0])

    def check_size(self, size: int) -> None:
        """Raise unless the vectorizer is of the axis that was bound."""
        if size != self.size:
            raise ValueError(
                f"{self.name}: it was called under a vmap whose axis {self.axis!r} has size "
                f"{self.size}, but is run under one of that name with size {size}; give the two "
                f"axes different names"
            )

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return ``collect`` of the one operand."""
        raise NotImplementedError

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self(*tangents)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), axes[0]


class Adding(Collective, abstract=True):
    """A collective that adds."""

    accepts: ClassVar[frozenset[str]] = NUMERIC

    def check(self, x: ArrayType) -> None:
        """Raise unless it can be added."""
        if kind_of(x.dtype) not in self.accepts:
            raise TypeError(f"{self.name}: expected numbers, got {x}")


class Leading(Collective, abstract=True):
    """A collective whose operand has an axis 0 with an entry for each example of the named axis."""

    def check_lead(self, x: ArrayType) -> None:
        """Raise unless axis 0 has the size of the named one."""
        if not x.ndim or x.shape[0] != self.size:
            raise ValueError(f"{self.name}: axis 0 must have size {self.size}, got {x}")


class Total(Adding, abstract=True):
    """The sum over the examples: the same for all."""

    def infer(self, x: ArrayType) -> ArrayType:
        self.check(x)
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return a sum over the mapped axis; of what all share, a multiple."""
        return total_of(x, axis, self.size), None

    def lower(self, b: Any, x: Any) -> Any:
        (total,) = b.all_reduce((x,), (self.axis,))
        return total


def total_of(x: Any, axis: int | None, size: int) -> Any:
    """Return the sum over a mapped axis; of what all share, a multiple."""
    return x * full_like(x, size) if axis is None else reduce_sum(x, (axis,))


class PSum(Total):
    """The sum over the examples, for each of them."""

    name = "psum"

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i = sum_j x_j for each i, hence x'_j = sum_i y'_i."""
        return (self(ct),)


class AllGather(Collective):
    """All examples along a new axis 0: the same for all."""

    def infer(self, x: ArrayType) -> ArrayType:
        return x.with_shape((self.size, *x.shape))

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return all examples, as they are."""
        if axis is None:
            return broadcast_to(x, (self.size, *x.shape)), None
        return move_to_front(x, axis), None

    def lower(self, b: Any, x: Any) -> Any:
        return b.all_gather(x, self.axis, self.size)

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i[j] = x_j, hence x'_j = sum_i y'_i[j]."""
        return (PSumScatter(self.axis, self.size)(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (axis,) = axes
        assert axis is not None
        return self(*args), axis + 1


class PSumScatter(Adding, Leading):
    """The sum over the examples; each example gets its own entry along axis 0."""

    name = "psum_scatter"

    def infer(self, x: ArrayType) -> ArrayType:
        self.check(x)
        self.check_lead(x)
        return x.with_shape(x.shape[1:])

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return the sum, whose axis 0 becomes the mapped one."""
        return x * full_like(x, self.size) if axis is None else reduce_sum(x, (axis,)), 0

    def lower(self, b: Any, x: Any) -> Any:
        """Return a sum over the devices along the axis, of which each keeps a part."""
        return b.reduce_scatter(x, self.axis)

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i = sum_j x_j[i], hence x'_j[i] = y'_i."""
        return (AllGather(self.axis, self.size)(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is moved out of the way of axis 0."""
        x, axis = _second(args[0], axes[0])
        return self(x), axis - 1


class AllToAll(Leading):
    """Send each example j its own entry along axis 0: y_i[j] = x_j[i]."""

    def infer(self, x: ArrayType) -> ArrayType:
        self.check_lead(x)
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """The mapped axis and axis 0 change places, which moves nothing."""
        if axis is None:
            dims = (0, *range(2, x.ndim + 1))
            return broadcast_in_dim(x, (self.size, *x.shape), dims), 0
        return move_to_front(x, axis), 1

    def lower(self, b: Any, x: Any) -> Any:
        return b.all_to_all(x, self.axis, self.size)

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i[j] = x_j[i], hence x'_j[i] = y'_i[j]."""
        return (self(ct),)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        """The mapped axis is moved out of the way of axis 0."""
        x, axis = _second(args[0], axes[0])
        return self(x), axis


class PPermute(Collective):
    """The value of another example, by (source, destination); zeros where none is sent."""

    name = "ppermute"
    perm: tuple[tuple[int, int], ...]

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return the examples in another order."""
        x = broadcast_to(x, (self.size, *x.shape)) if axis is None else move_to_front(x, axis)
        return take_rows(x, sources_of(self.perm, self.size), 0) if self.size else x, 0

    def lower(self, b: Any, x: Any) -> Any:
        return b.permute(x, self.axis, self.perm)

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        perm = tuple((destination, source) for source, destination in self.perm)
        return (PPermute(self.axis, self.size, perm)(ct),)


class AxisIndex(Collective):
    """The index of the example among all, an int32."""

    jvp = ZERO_DERIVATIVE
    transpose = Refused("it has no operand")

    def infer(self) -> ArrayType:
        return array_type((), np.dtype(np.int32))

    def collect(self, name: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        self.check_size(size)
        return iota(np.int32, size), 0

    def lower(self, b: Any) -> Any:
        return b.index_along(self.axis)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(), None


def _second(x: Any, axis: int | None) -> tuple[Any, int]:
    """Return the value with its mapped axis moved out of first place, and that axis."""
    assert axis is not None
    return (move_axis(x, 0, 1), 1) if axis == 0 else (x, axis)


def sources_of(perm: Sequence[tuple[int, int]], size: int) -> np.ndarray:
    """Return for each of ``size`` destinations its source; ``size`` for those that have none."""
    sources = np.full(size, size, np.int32)
    for source, destination in perm:
        sources[destination] = source
    return sources


def take_rows(x: Any, places: np.ndarray, fill: Any) -> Any:
    """Return ``x[places]``, with ``fill`` for places past the end."""
    first = places.ndim
    numbers = GatherDimensionNumbers(tuple(range(first, first + x.ndim - 1)), (0,), (0,))
    return gather(
        x,
        places.reshape(*places.shape, 1),
        numbers,
        (1, *x.shape[1:]),
        mode="fill" if np.any(places >= x.shape[0]) else "promise_in_bounds",
        fill_value=fill,
    )


# Several sums over devices as one collective: what the planner makes of ``psum``s.
#
# A collective takes as long as a message between all devices, whatever it carries; so sums that
# can be taken at once are, and a sum along one axis after another is one along both.
# ``passes/simplify`` writes it into programs.


class TotalsTogether(Primitive):
    """The sum of each operand along all ``axes``, pairs of a name and a size; of one dtype."""

    onnx = Refused(
        "it works across devices, of which a file knows none: export what one device does"
    )
    axes: tuple[tuple[Any, int], ...]
    multiple = True
    reference = Refused(
        "it works across the examples of a vmap; call it inside the vmap of its axes"
    )
    padded = Refused("it is made of sums whose sizes are fixed by then: use stretto.lax.psum")

    @property
    def names(self) -> tuple[Any, ...]:
        """The names of the axes."""
        return tuple([name for name, _ in self.axes])

    @property
    def effects(self) -> frozenset[Any]:
        return frozenset([NamedAxis(name) for name in self.names])

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ...]:
        if len({type.dtype for type in types}) > 1:
            raise TypeError(f"{self.name}: expected operands of one dtype, got {types}")
        return types

    def collect(self, name: Any, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        totals = [total_of(x, axis, size) for x, axis in zip(args, axes, strict=True)]
        rest = tuple([pair for pair in self.axes if pair[0] != name])
        return TotalsTogether(rest)(*totals) if rest else totals, (None,) * len(args)

    def lower(self, b: Any, *operands: Any) -> Sequence[Any]:
        return b.all_reduce(operands, self.names)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any]) -> tuple[Any, Any]:
        return self(*primals), self._of_some(tangents)

    def transpose(self, cts: Sequence[Any], *args: Any) -> Sequence[Any]:
        """y_i = sum_j x_j for each i, hence x'_j = sum_i y'_i."""
        return self._of_some(cts)

    def _of_some(self, values: Sequence[Any]) -> list[Any]:
        """Return the sums of those that are not None, which stands for zero."""
        sums = iter(self(*[x for x in values if x is not None]))
        return [None if x is None else next(sums) for x in values]

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(*args), tuple(axes)


# From values that are the same along a named axis to values that vary along it, and back.
#
# In the program of one part of a ``shard_map`` every value is either the same for all parts along
# an axis of the mesh, or varies. These operations go between the two, so that each is linear in
# the right way: what is the same has one cotangent, what varies has one for each part.


class PVary(Collective):
    """A value that is the same for all, for each of them."""

    name = "pvary"

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Return the value as it is."""
        return x, axis

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y_i = x for each i, hence x' = sum_i y'_i."""
        return (PSumSame(self.axis, self.size)(ct),)


class PSumSame(Total):
    """The sum over all of a value that varies: one value, the same for all."""

    name = "psum_same"

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y = sum_i x_i, hence x'_i = y'."""
        return (PVary(self.axis, self.size)(ct),)


class PSame(Collective):
    """The one value of a value that varies by name alone, being equal for all."""

    name = "psame"

    def infer(self, x: ArrayType) -> ArrayType:
        return x

    def across(self, x: Any, axis: int | None) -> tuple[Any, int | None]:
        """Take the derivative of the first."""
        if axis is None:
            return x, None
        first = slice_in_dim(move_to_front(x, axis), 0, 1)
        return reshape(first, first.shape[1:]), None

    def lower(self, b: Any, x: Any) -> Any:
        return x

    def transpose(self, ct: Any, x: Any) -> tuple[Any, ...]:
        """y = sum_i x_i / n, of equal x_i, hence x'_i = y' / n."""
        return (PVary(self.axis, self.size)(ct / full_like(ct, self.size)),)
