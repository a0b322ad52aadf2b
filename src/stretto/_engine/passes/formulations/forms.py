"""The forms of operations over members, and the formulations of products and convolutions.

A plan asks for forms; a formulation is one way to compute a product or a convolution that is mapped
over members, with what it would cost.

With both operands mapped a contraction is one batched product, or one product a member. With one
mapped it may also be

- a *wide* product: the members join the free axes of the mapped operand, which must be copied if
  its axes do not lie in that order;
- a *batched* product, with the shared operand repeated for each member;
- the same in *chunks* of members, so that the repeated operand stays in the cache.

Mapping turns a convolution into one with groups, which is lowered in a form that follows from its
geometry: fast with few features in each group, slow with many in many groups. So the members are
one such convolution, or written out one by one, or computed in a loop; or, if they share the image,
its windows are laid out in memory once and each member is one matrix product. What a convolution
costs is asked of the function that chooses its form.
"""

from __future__ import annotations

import functools
import itertools
import math
from collections.abc import Callable, Sequence
from enum import Enum, StrEnum
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.core.config import config
from stretto._engine.core.cost import Machine
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.higher_order.loops import map_
from stretto._engine.kernels import kernels, multiplies
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import cut, dilated
from stretto._engine.ops.layout import expand_dims, move_axis, move_to_front, reshape, transpose
from stretto._engine.ops.shape import concatenate, pad, part_of


class Form(Enum):
    """A formulation of a product or convolution of all members, by its name in reports."""

    BATCHED_PRODUCT = "one batched product"
    WIDE_PRODUCT = "one wide product"
    WIDE_PRODUCT_MEMBERS_FIRST = "one wide product, members first"
    CHUNKS = "chunks of members"
    GROUPED_CONVOLUTION = "one convolution with groups"
    WIDE_CONVOLUTION = "one wide convolution"
    PRODUCTS_OF_WINDOWS = "matrix products of windows laid out once"
    WRITTEN_OUT = "members written out"
    IN_TURN = "members in turn"


class Plan(StrEnum):
    """A value of the setting ``plan``."""

    AUTO = "auto"
    MEASURE = "measure"
    AT_ONCE = "at once"
    BATCHED = "batched"
    WIDE = "wide"
    WRITTEN_OUT = "written out"
    IN_TURN = "in turn"

    def asks_for(self, form: Form) -> bool:
        """Say whether an operation is to have this form; where none is asked for, the fastest."""
        return form in _ASKED.get(self, ())


_ASKED = {
    Plan.BATCHED: (Form.BATCHED_PRODUCT, Form.GROUPED_CONVOLUTION, Form.WIDE_CONVOLUTION),
    Plan.WIDE: (Form.WIDE_PRODUCT, Form.WIDE_CONVOLUTION),
    Plan.WRITTEN_OUT: (Form.WRITTEN_OUT,),
}


class Choice(NamedTuple):
    """A form that an operation may have, its estimated time, and a function that runs it."""

    form: Form
    microseconds: float
    run: Callable[[], Any]


# The values of all members


class Shared:
    """One value for all members."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        return self.value.type

    def member(self, i: int) -> Any:
        """Return the value that member ``i`` sees."""
        return self.value

    to_cut = to_stack = 0


class Whole:
    """The values of all members in one array, along an axis."""

    __slots__ = ("_parts", "axis", "value")

    def __init__(self, value: Any, axis: int) -> None:
        self.value, self.axis = value, axis
        self._parts: list[Any] | None = None

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        whole = self.value.type
        return whole.with_shape(whole.shape[: self.axis] + whole.shape[self.axis + 1 :])

    @property
    def to_cut(self) -> int:
        """The bytes that cutting it into parts would copy."""
        return 0 if self._parts is not None else bytes_of(self.value.type)

    to_stack = 0

    def front(self) -> Any:
        """Return the array with the members along axis 0."""
        if self.axis:
            self.value, self.axis = move_to_front(self.value, self.axis), 0
        return self.value

    def at(self, axis: int) -> Any:
        """Return the array with the members along this axis."""
        return move_axis(self.value, self.axis, axis)

    def member(self, i: int) -> Any:
        """Return the value of member ``i``."""
        if self._parts is None:
            whole, axis = self.value.shape, self.axis
            shape = (*whole[:axis], *whole[axis + 1 :])
            ones = (1,) * len(whole)

            def part(k: int) -> Any:
                starts = tuple([k if a == axis else 0 for a in range(len(whole))])
                limits = (*whole[:axis], k + 1, *whole[axis + 1 :])
                return reshape(part_of(self.value, starts, limits, ones, hidden=True), shape)

            self._parts = [part(k) for k in range(whole[axis])]
        return self._parts[i]


class Parts:
    """The value of each member separately."""

    __slots__ = ("_whole", "values")

    def __init__(self, values: Sequence[Any]) -> None:
        self.values = values
        self._whole: Any = None

    axis = to_cut = 0

    @property
    def type(self) -> ArrayType:
        """The type of one member's."""
        return self.values[0].type

    @property
    def to_stack(self) -> int:
        """The bytes that stacking them would copy."""
        if self._whole is not None:
            return 0
        return len(self.values) * bytes_of(self.type)

    @property
    def value(self) -> Any:
        """The array of all members, along axis 0."""
        return self.front()

    def front(self) -> Any:
        """Return the array of all members, along axis 0."""
        if self._whole is None:
            self._whole = concatenate([expand_dims(x, 0) for x in self.values], 0)
        return self._whole

    def at(self, axis: int) -> Any:
        """Return the array of all members, along this axis."""
        return move_axis(self.front(), 0, axis)

    def member(self, i: int) -> Any:
        """Return the value of member ``i``."""
        return self.values[i]


# Convolutions


MOST_WRITTEN = 64
"""The most members that are written out, since compiling each takes time."""

_PART = 10
"""The kernels that each convolution has beside what its rate says, where many are written out."""

_MOST_WINDOW = 64
"""The largest number of kernel elements for which windows are laid out."""

_SHORT, _RUN = 5, 16
"""Copying takes up to so many times as long where fewer elements than that lie side by side."""


def of_convolution(
    op: ConvGeneralDilated, lhs: Any, rhs: Any, size: int, machine: Machine
) -> list[Choice]:
    """Return the formulations of ``op`` for these operands, at least one of which is mapped."""
    types = lhs.type, rhs.type
    out = op.infer(*types)
    form = formulation(op, *types, out)
    time = size * _time(op, *types, machine)
    stacking = machine.copying(lhs.to_stack + rhs.to_stack)

    def mapped() -> Any:
        pairs = [_whole(lhs), _whole(rhs)]
        result, axis = op.vmap(size, [v for v, _ in pairs], [a for _, a in pairs])
        return Whole(result, axis)

    def written() -> Any:
        return Parts([op(lhs.member(i), rhs.member(i)) for i in range(size)])

    def in_turn() -> Any:
        moving = [x.front() for x in (lhs, rhs) if not isinstance(x, Shared)]

        def one(values: Any) -> Any:
            own = iter(values)
            return op(*[x.value if isinstance(x, Shared) else next(own) for x in (lhs, rhs)])

        return Whole(map_(one, tuple(moving)), 0)

    own = not isinstance(lhs, Shared), not isinstance(rhs, Shared)
    moved = size * sum([bytes_of(x.type) for x, o in zip((lhs, rhs), own, strict=True) if o])
    moving = 0.0 if form.in_place else machine.moving(moved + size * bytes_of(out))
    turns, turning = 1.1 if all(own) else 1.3, size * (machine.turn + 4 * machine.kernel)
    name = Form.GROUPED_CONVOLUTION if all(own) else Form.WIDE_CONVOLUTION
    at_once = _mapped_time(op, size, own, *types, machine, config.kernels)
    choices = [
        Choice(Form.IN_TURN, turns * time + stacking + moving + turning, in_turn),
        Choice(name, at_once + stacking, mapped),
    ]
    if not own[1]:
        return choices
    cutting = machine.copying(lhs.to_cut + rhs.to_cut)
    if size <= MOST_WRITTEN:
        laid_out = machine.fresh_memory(size * form.laid_out * out.dtype.itemsize)
        together = machine.copying(size * bytes_of(out))  # the parts are put together in the end
        each = time + laid_out + cutting + together + _PART * size * machine.kernel
        choices.append(Choice(Form.WRITTEN_OUT, each, written))
    window = math.prod(rhs.type.shape[a] for a in op.dims.rhs_spec[2:])
    if not own[0] and window <= _MOST_WINDOW and op.feature_groups == op.batch_groups == 1:
        rows = out.size // out.shape[op.dims.out_spec[1]]
        inputs = rhs.type.shape[op.dims.rhs_spec[1]]
        laid_out = rows * window * inputs * out.dtype.itemsize
        columns = rhs.type.shape[op.dims.rhs_spec[0]]
        rate = machine.wide * min(1.0, columns / _RUN)
        once = machine.product(size * op.work(types, (out,)), rate) + cutting
        once += _laying_out(laid_out, inputs, machine) + 4 * size * machine.kernel

        def products() -> Any:
            return _convolution_products(op, _windows(op, lhs.value, rhs.type), rhs, size)

        choices.append(Choice(Form.PRODUCTS_OF_WINDOWS, once, products))
    return choices


def _apart(run: int) -> float:
    """Return how many times as long copying takes in runs of so many elements."""
    return min(_SHORT, max(1.0, _RUN / max(1, run)))


def _laying_out(size: int, run: int, machine: Machine) -> float:
    """Return the time to lay out windows of so many bytes, in runs of so many elements.

    One thread does it, or they share what does not fit in their own caches: it is as if none did.
    """
    return _apart(run) * 2 * size / machine.shared + machine.fresh_memory(size)


def _time(op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType, machine: Machine) -> float:
    """Return the time of a convolution as it is lowered."""
    out = op.infer(lhs, rhs)
    form = formulation(op, lhs, rhs, out)
    laid_out = _laying_out(form.laid_out * out.dtype.itemsize, form.run, machine)
    parts = (form.parts - 1) * _PART * machine.kernel
    return machine.product(op.work((lhs, rhs), (out,)), form.fraction) + laid_out + parts


def convolution_fraction(
    op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType, machine: Machine
) -> float:
    """Return the fraction of the best rate that a convolution reaches as it is lowered."""
    work = op.work((lhs, rhs), (op.infer(lhs, rhs),))
    return machine.product(work, 1.0) / _time(op, lhs, rhs, machine) if work else 1.0


@functools.lru_cache(1024)
def _mapped_time(
    op: ConvGeneralDilated,
    size: int,
    own: tuple[bool, bool],
    lhs: ArrayType,
    rhs: ArrayType,
    machine: Machine,
    kernels: bool,
) -> float:
    """Return the time of the one convolution that mapping makes, and of moving members for it.

    Whether ``kernels`` are called decides its form, and so is part of what the time is kept for.
    """
    axes = [0 if o else None for o in own]
    types = [
        t.with_shape((size, *t.shape)) if o else t for t, o in zip((lhs, rhs), own, strict=True)
    ]
    program, _ = record_closed(lambda *xs: ([op.vmap(size, xs, axes)[0]], None), types, "mapped")
    mapped = next(e for e in program.equations if isinstance(e.primitive, ConvGeneralDilated))
    primitive: Any = mapped.primitive
    image, kernel = [a.type for a in mapped.inputs]
    time = _time(primitive, image, kernel, machine)
    # Members go from the front to the batch, or to features, inside groups, and back.
    (batch, features, *_), (outputs, *_) = op.dims[:2]
    place = op.dims.out_spec[0 if not own[1] else 1]
    groups = 1 if all(own) else op.batch_groups * (1 if own[0] else op.feature_groups)
    into = batch if not own[1] or op.batch_groups > 1 else features
    moves = [(op.infer(lhs, rhs), place), *[(lhs, into)] * own[0], *[(rhs, outputs)] * own[1]]
    for type, axis in moves:
        if groups * math.prod(type.shape[:axis]) > 1:
            side_by_side = math.prod(type.shape[axis:]) // groups
            time += _apart(side_by_side) * machine.copying(size * bytes_of(type))
    return time


def _whole(x: Any) -> tuple[Any, int | None]:
    return (x.value, None) if isinstance(x, Shared) else (x.front(), 0)


def _convolution_products(op: ConvGeneralDilated, windows: Any, rhs: Any, size: int) -> Any:
    """Return each member's kernel times the windows of the shared image."""
    if size <= MOST_WRITTEN:
        return Parts([_convolution_product(op, windows, rhs.member(i)) for i in range(size)])
    return Whole(map_(lambda kernel: _convolution_product(op, windows, kernel), rhs.front()), 0)


def _convolution_product(op: ConvGeneralDilated, windows: Any, kernel: Any) -> Any:
    """Return the convolution with a kernel, as one matrix product."""
    dims = op.dims
    rows, depth = windows.shape[:-1], windows.shape[-1]
    flat = reshape(windows, (math.prod(rows), depth))
    order = (*dims.rhs_spec[2:], dims.rhs_spec[1], dims.rhs_spec[0])
    columns = reshape(transpose(kernel, order), (depth, kernel.shape[dims.rhs_spec[0]]))
    result = DotGeneral(((1,), (0,)), ((), ()), op.precision, op.preferred)(flat, columns)
    # From batch, output positions, features to the layout of the output.
    order = (dims.out_spec[0], *dims.out_spec[2:], dims.out_spec[1])
    back = tuple(sorted(range(len(order)), key=order.__getitem__))
    return transpose(reshape(result, (*rows, result.shape[1])), back)


def _windows(op: ConvGeneralDilated, lhs: Any, kernel: ArrayType) -> Any:
    """Return each output's window: (batch, output positions..., kernel positions x features)."""
    dims = op.dims
    spatial = [kernel.shape[a] for a in dims.rhs_spec[2:]]
    image = transpose(lhs, (dims.lhs_spec[0], *dims.lhs_spec[2:], dims.lhs_spec[1]))
    edges = [(low, high, d - 1) for (low, high), d in zip(op.padding, op.lhs_dilation, strict=True)]
    image = pad(image, 0, [(0, 0, 0), *edges, (0, 0, 0)])
    counts = [
        (n - dilated(k, d)) // s + 1
        for n, k, d, s in zip(image.shape[1:-1], spatial, op.rhs_dilation, op.strides, strict=True)
    ]
    parts = []
    for at in itertools.product(*map(range, spatial)):
        starts = [j * d for j, d in zip(at, op.rhs_dilation, strict=True)]
        parts.append(cut(image, range(1, image.ndim - 1), starts, counts, op.strides))
    return concatenate(parts, image.ndim - 1)


# Products


_CHUNK_BYTES = 1 << 21


def _in_kernel(op: DotGeneral, dtype: np.dtype) -> bool:
    """Say whether a kernel of ours computes a product.

    It reads members, and what they share, as they lie: nothing is repeated or laid out anew.
    """
    usual = op.precision is None and multiplies(dtype, dtype, op.preferred or dtype)
    return usual and kernels is not None and config.kernels


def _batched_time(
    op: DotGeneral, dtype: np.dtype, work: float, size: int, machine: Machine
) -> float:
    """Return the time of one product for each member, of so much work together."""
    if _in_kernel(op, dtype):
        return machine.product(work, machine.wide)
    return machine.product(work, machine.fraction(work / size)) + size * machine.item


def of_product(op: DotGeneral, x: Any, y: Any, size: int, machine: Machine) -> list[Choice]:
    """Return the formulations of ``op`` for these operands, at least one of which is mapped."""
    if isinstance(x, Shared) or isinstance(y, Shared):
        return _one_mapped(op, x, y, size, machine)

    def batched() -> Any:
        out, axis = op.vmap(size, (x.front(), y.front()), (0, 0))
        return Whole(out, axis)

    def written() -> Any:
        return Parts([op(x.member(i), y.member(i)) for i in range(size)])

    types = x.type, y.type
    out = op.infer(*types)
    work = size * op.work(types, (out,))
    time = _batched_time(op, out.dtype, work, size, machine)
    stacking, cutting = x.to_stack + y.to_stack, x.to_cut + y.to_cut
    together = machine.copying(size * bytes_of(out))  # the parts are put together in the end
    return [
        Choice(Form.BATCHED_PRODUCT, time + machine.copying(stacking), batched),
        Choice(
            Form.WRITTEN_OUT,
            time + machine.copying(cutting) + together + 4 * size * machine.kernel,
            written,
        ),
    ]


def _one_mapped(op: DotGeneral, x: Any, y: Any, size: int, machine: Machine) -> list[Choice]:
    first = isinstance(y, Shared)
    mapped, other = (x, y.value) if first else (y, x.value)
    member = mapped.type
    types = (member, other.type) if first else (other.type, member)
    out = op.infer(*types)
    work = size * op.work(types, (out,))
    item = out.dtype.itemsize
    bytes_mapped, bytes_other, bytes_out = (t.size * size * item for t in (member, other, out))
    in_kernel = _in_kernel(op, out.dtype)
    batched_time = _batched_time(op, out.dtype, work, size, machine)
    if not in_kernel and _scattered(op, (types[0].ndim, types[1].ndim), not first):
        batched_time += machine.copying(bytes_mapped)
    stacking = machine.copying(mapped.to_stack)

    def wide() -> Any:
        values = (mapped.value, other) if first else (other, mapped.value)
        result, axis = op.vmap(size, values, (mapped.axis, None) if first else (None, mapped.axis))
        return Whole(result, axis)

    def members_first() -> Any:
        swapped = DotGeneral(
            (tuple(a + 1 for a in op.summed[not first]), op.summed[first]),
            ((), ()),
            op.precision,
            op.preferred,
        )
        result = swapped(mapped.front(), other)  # member, free of mapped, free of other
        if not first:
            n = 1 + member.ndim - len(op.summed[1])
            axes = (0, *range(n, result.ndim), *range(1, n))
            result = transpose(result, axes)
        return Whole(result, 0)

    def repeated(count: int, value: Any) -> Any:
        copies = broadcast_to(other, (count, *other.shape))
        values = (value, copies) if first else (copies, value)
        return op.vmap(count, values, (0, 0))[0]

    def batched() -> Any:
        return Whole(repeated(size, mapped.front()), 0)

    chunk = _chunk(size, other.size * item)

    def chunks() -> Any:
        front = mapped.front()
        turns = size // chunk
        cut = reshape(front, (turns, chunk, *front.shape[1:]))
        result = map_(lambda value: repeated(chunk, value), cut)
        return Whole(reshape(result, (size, *result.shape[2:])), 0)

    def written() -> Any:
        values = [mapped.member(i) for i in range(size)]
        return Parts([op(v, other) if first else op(other, v) for v in values])

    wide_time = machine.product(work, machine.wide) + stacking
    trailing = op.summed[not first] == tuple(
        range(member.ndim - len(op.summed[not first]), member.ndim)
    )
    choices = []
    free_first = first and not op.shared[0]
    turned = 0.0 if free_first and mapped.axis == 0 else machine.copying(bytes_out)
    lies = trailing and not op.shared[0] and mapped.axis == 0
    if lies:
        time = wide_time + (0.0 if first else machine.copying(bytes_out) / 2)
        choices.append(Choice(Form.WIDE_PRODUCT_MEMBERS_FIRST, time, members_first))
    choices.append(
        Choice(
            Form.WIDE_PRODUCT,
            wide_time + turned + (0.0 if lies else machine.copying(bytes_mapped)),
            wide,
        )
    )
    choices.append(
        Choice(
            Form.BATCHED_PRODUCT,
            batched_time + stacking + (0.0 if in_kernel else machine.copying(bytes_other) / 2),
            batched,
        )
    )
    if 1 < chunk < size:
        choices.append(
            Choice(
                Form.CHUNKS,
                batched_time
                + stacking
                + bytes_other / machine.near
                + machine.moving(bytes_mapped + bytes_out)
                + size // chunk * 4 * machine.turn,
                chunks,
            )
        )
    copied = machine.copying(mapped.to_cut) + machine.copying(bytes_out)
    each = batched_time + copied + 4 * size * machine.kernel
    return [*choices, Choice(Form.WRITTEN_OUT, each, written)]


def _scattered(op: DotGeneral, ranks: tuple[int, int], side: bool) -> bool:
    """Return whether free axes of an operand are apart from each other.

    XLA multiplies stacks of matrices, and copies an operand that is none.
    """
    free = op.free_of(*ranks)[side]
    return bool(free) and free[-1] - free[0] >= len(free)


def _chunk(size: int, item_bytes: int) -> int:
    """Return the largest divisor of the number of members that keeps a chunk in the cache."""
    most = max(1, _CHUNK_BYTES // max(1, item_bytes))
    return max(d for d in range(1, math.isqrt(size) * 2 + 2) if size % d == 0 and d <= max(most, 1))
