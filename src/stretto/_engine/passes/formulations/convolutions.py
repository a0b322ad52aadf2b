"""Formulations of a convolution that is mapped over members, and what each would cost.

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
from typing import Any

from stretto._engine.autodiff.evaluate import record_closed
from stretto._engine.core.cost import Machine
from stretto._engine.core.types import ArrayType, bytes_of
from stretto._engine.higher_order.loops import map_
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.general import ConvGeneralDilated
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.convolution.operands import cut
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import pad
from stretto._engine.passes.formulations.forms import Choice, Form, Parts, Shared, Whole

MOST_WRITTEN = 64
"""The most members that are written out, since compiling each takes time."""

_MOST_WINDOW = 64
"""The largest number of kernel elements for which windows are laid out."""

_SHORT = 5
"""Copying takes so many times as long where only a few elements lie side by side."""


def of_convolution(
    op: ConvGeneralDilated, lhs: Any, rhs: Any, size: int, machine: Machine
) -> list[Choice]:
    """Return the formulations of ``op`` for these operands, at least one of which is mapped."""
    types = lhs.type, rhs.type
    out = op.infer(*types)
    work = size * op.work(types, (out,))
    time = machine.product(work, convolution_fraction(op, *types))
    cutting = machine.copying(lhs.to_cut + rhs.to_cut)
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

    if isinstance(rhs, Shared):  # one kernel: the members are more images
        return [Choice(Form.WIDE_CONVOLUTION, time + stacking, mapped)]
    both = not isinstance(lhs, Shared)
    together = machine.product(work, _fraction_mapped(op, size, both, *types))
    if both:  # the members' features are put side by side
        together += machine.copying(size * bytes_of(lhs.type))
    choices = [
        Choice(Form.IN_TURN, 1.1 * time + stacking + cutting + size * machine.turn, in_turn),
        Choice(
            Form.GROUPED_CONVOLUTION if both else Form.WIDE_CONVOLUTION, together + stacking, mapped
        ),
    ]
    if size <= MOST_WRITTEN:
        each = time + cutting + 16 * size * machine.kernel
        choices.append(Choice(Form.WRITTEN_OUT, each, written))
    window = math.prod(rhs.type.shape[a] for a in op.dims.rhs_spec[2:])
    if not both and window <= _MOST_WINDOW and op.feature_groups == op.batch_groups == 1:
        rows = out.size // out.shape[op.dims.out_spec[1]]
        inputs = rhs.type.shape[op.dims.rhs_spec[1]]
        laid_out = rows * window * inputs * out.dtype.itemsize
        # They are put together from runs of as many elements as there are features.
        laying_out = machine.copying(laid_out) * (_SHORT if inputs < 16 else 1)
        once = machine.product(work, machine.wide) + laying_out + cutting

        def products() -> Any:
            return _products(op, _windows(op, lhs.value, rhs.type), rhs, size)

        choices.append(Choice(Form.PRODUCTS_OF_WINDOWS, once, products))
    return choices


def convolution_fraction(op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType) -> float:
    """Return the fraction of the best rate that a convolution reaches as it is lowered."""
    return formulation(op, lhs, rhs, op.infer(lhs, rhs)).fraction


@functools.lru_cache(1024)
def _fraction_mapped(
    op: ConvGeneralDilated, size: int, both: bool, lhs: ArrayType, rhs: ArrayType
) -> float:
    """Return that of the one convolution that mapping the kernel, or both operands, makes of it."""
    axes = (0 if both else None, 0)
    types = [
        t if axis is None else t.with_shape((size, *t.shape))
        for t, axis in zip((lhs, rhs), axes, strict=True)
    ]
    program, _ = record_closed(lambda *xs: ([op.vmap(size, xs, axes)[0]], None), types, "mapped")
    for equation in program.equations:
        if isinstance(equation.primitive, ConvGeneralDilated):
            return convolution_fraction(equation.primitive, *[a.type for a in equation.inputs])
    raise AssertionError(f"{op} mapped is no convolution")


def _whole(x: Any) -> tuple[Any, int | None]:
    return (x.value, None) if isinstance(x, Shared) else (x.front(), 0)


def _products(op: ConvGeneralDilated, windows: Any, rhs: Any, size: int) -> Any:
    """Return each member's kernel times the windows of the shared image."""
    if size <= MOST_WRITTEN:
        return Parts([_product(op, windows, rhs.member(i)) for i in range(size)])
    return Whole(map_(lambda kernel: _product(op, windows, kernel), rhs.front()), 0)


def _product(op: ConvGeneralDilated, windows: Any, kernel: Any) -> Any:
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
