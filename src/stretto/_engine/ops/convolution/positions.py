"""A convolution with few positions as products: one for all of them, or in groups one for each.

Such is the gradient of a convolution by its kernel: windows nearly as large as the image, and as
many positions as the kernel has elements. The product comes out in the order that the kernel has,
so that what reads a gradient need not turn it. ``op`` is a ``ConvGeneralDilated``; ``formulation``
chooses.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.operands import (
    assembled,
    cut,
    features_last,
    relaid,
    split_axis,
    spread,
)
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import move_axis, reshape, transpose

_MOST_POSITIONS = 49
"""The most products that are written out: the compiler takes its time over each."""

_MOST_ELEMENTS = 5 << 20
"""The most elements of the windows of all positions, without groups; half where they gain less."""

_FEW_EXAMPLES, _FEW_EXAMPLES_LAST = 6, 3
"""The examples up to which XLA's convolution has too few terms side by side.

The latter if the features of the image, the rows of the windows, come last: there it has less to
turn.
"""

_LARGE_KERNEL = 1 << 17
"""The elements of a kernel from which turning its gradient takes longer than laying out windows."""

_IMAGES_LARGER = 4
"""How many times larger than all examples' products the images are, so that they are not turned."""

_FEWEST_IN_GROUPS = 3
"""With groups, the least number of rows and columns; with fewer, sums of slices are faster."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether there is one position, or groups for which products are fastest."""
    dims = op.dims
    groups = op.feature_groups * op.batch_groups
    positions = _few_positions(op, lhs, rhs, out)
    few = min(out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]] // groups)
    return positions > 0 and few >= _FEWEST_IN_GROUPS if groups > 1 else positions == 1


def suits_together(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether, without groups, one product for all positions is faster than XLA's convolution.

    In a gradient by the kernel the features that are summed are the examples. XLA's matrix products
    have few terms side by side where these are few, and give the gradient with its axes in another
    order than that of a kernel whose output features come first.
    """
    dims = op.dims
    positions = _few_positions(op, lhs, rhs, out)
    outputs, inputs = rhs.shape[dims.rhs_spec[0]], rhs.shape[dims.rhs_spec[1]]
    elements = positions * lhs.shape[dims.lhs_spec[0]] * (rhs.size // max(1, outputs))
    if not elements or op.feature_groups * op.batch_groups > 1:
        return False
    if dims == features_last(lhs.ndim):
        return False  # as it is when XLA's convolution has been chosen, and nothing is turned
    last = dims.lhs_spec[0] == lhs.ndim - 1
    if inputs <= (_FEW_EXAMPLES_LAST if last else _FEW_EXAMPLES):
        return elements <= _MOST_ELEMENTS
    turned = dims.out_spec[1] < dims.out_spec[0] and out.size >= _LARGE_KERNEL
    return turned and 2 * elements <= _MOST_ELEMENTS


def _few_positions(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> int:
    """Say how many positions there are, if they are few and the windows larger; else 0."""
    if lhs.kind not in ("float", "complex"):
        return 0
    positions = math.prod([out.shape[a] for a in op.dims.out_spec[2:]])
    window = math.prod([rhs.shape[a] for a in op.dims.rhs_spec[2:]])
    return 0 if positions > _MOST_POSITIONS or window <= positions else positions


def as_products(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve by the product of each position's window and the whole kernel."""
    if op.feature_groups * op.batch_groups > 1:
        return _one_by_one(op, lhs, rhs, out)
    form = _summed if _suits_summed(op, lhs.type, rhs.type, out) else _together
    return form(op, lhs, rhs, out)


def _suits_summed(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether adding up a small product for each example is faster than to turn the images."""
    examples = rhs.shape[op.dims.rhs_spec[1]]
    return (
        op.dims.lhs_spec == op.dims.rhs_spec
        and op.dims.lhs_spec[:2] == (1, 0)
        and all(out.shape[a] == 1 for a in op.dims.out_spec[2:])
        and examples > 1
        and _IMAGES_LARGER * examples * out.size <= lhs.size + rhs.size
    )


def _summed(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Without groups, one position, both images with the examples first: a product for each."""
    dims = op.dims
    examples, outputs = rhs.shape[:2]
    (window,) = _windows(op, lhs, rhs.type, out)
    matrices = reshape(rhs, (examples, outputs, rhs.size // examples // outputs))
    windows = reshape(window, (examples, lhs.shape[1], matrices.shape[2]))
    product = DotGeneral(((2,), (2,)), ((0,), (0,)), op.precision, op.preferred)
    result = reduce_sum(product(matrices, windows), (0,))
    order = (dims.out_spec[1], dims.out_spec[0], *dims.out_spec[2:])
    result = relaid(reshape(result, (*result.shape, *[1] * (out.ndim - 2))), range(out.ndim), order)
    return convert(result, out.dtype)


def _together(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Multiply without groups: one product, of the windows of all positions."""
    dims = op.dims
    batch, outputs = out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]]
    counts = [out.shape[a] for a in dims.out_spec[2:]]
    kernel, summed = _matrix(rhs, dims.rhs_spec)
    last = dims.lhs_spec[0] == lhs.ndim - 1
    windows = _joined(op, lhs, rhs.type, counts, last)
    terms = rhs.size // outputs
    if last:
        windows = reshape(windows, (terms, windows.size // terms))
        order, shape = (*dims.out_spec[2:], dims.out_spec[0]), (*counts, batch)
    else:
        windows = reshape(windows, (windows.size // terms, terms))
        order, shape = (dims.out_spec[0], *dims.out_spec[2:]), (batch, *counts)
    operands = (windows, int(not last)), (kernel, summed)
    kernel_first = dims.out_spec[1] < dims.out_spec[0] and out.size >= _LARGE_KERNEL
    if kernel_first:
        operands = operands[::-1]
        order, shape = (dims.out_spec[1], *order), (outputs, *shape)
    else:
        order, shape = (*order, dims.out_spec[1]), (*shape, outputs)
    (left, left_axis), (right, right_axis) = operands
    if right_axis == 1:
        # As in a layer whose weights are transposed, by which the compiler's options are chosen.
        right, right_axis = transpose(right, (1, 0)), 0
    product = DotGeneral(((left_axis,), (right_axis,)), ((), ()), op.precision, op.preferred)
    result = relaid(reshape(product(left, right), shape), range(out.ndim), order)
    return convert(result, out.dtype)


def _joined(op: Any, lhs: Any, rhs: ArrayType, counts: list[int], last: bool) -> Any:
    """Return what all positions take of the image, joined along one axis after the other.

    The axes are those of the batch, then of positions, then what is summed; if the batch is
    ``last`` in the image, what is summed, then positions, then the batch.
    """
    batch, *summed = op.dims.lhs_spec
    image = spread(op, lhs)
    image = transpose(image, (*summed, batch) if last else (batch, *summed))
    # From the last axis to the first; positions are joined in front of the batch, or behind it.
    first, at = (1, image.ndim - 1) if last else (2, 1)
    for done, k in enumerate(reversed(range(len(counts)))):
        place = first + k + (0 if last else done)
        size, step, dilation = rhs.shape[op.dims.rhs_spec[2 + k]], op.strides[k], op.rhs_dilation[k]
        parts = []
        for o in range(counts[k]):
            part = cut(image, (place,), (o * step,), (size,), (dilation,), hidden=True)
            parts.append(reshape(part, (*part.shape[:at], 1, *part.shape[at:])))
        image = parts[0] if len(parts) == 1 else concatenate(parts, at)
    return image


def _windows(op: Any, lhs: Any, rhs: ArrayType, out: ArrayType) -> Iterator[Any]:
    """Return what each position takes of the image."""
    image = spread(op, lhs)
    sizes = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    for position in itertools.product(*[range(out.shape[a]) for a in op.dims.out_spec[2:]]):
        starts = [o * s for o, s in zip(position, op.strides, strict=True)]
        yield cut(image, op.dims.lhs_spec[2:], starts, sizes, op.rhs_dilation, hidden=True)


def _matrix(x: Any, spec: tuple[int, ...]) -> tuple[Any, int]:
    """Return an operand as a matrix, and the axis of it to sum over; ``spec[0]`` is kept.

    What is summed are the rows where the axis that is kept comes last: nothing is moved.
    """
    kept, *summed = spec
    terms = x.size // x.shape[kept]
    if kept == x.ndim - 1:
        return reshape(transpose(x, (*summed, kept)), (terms, x.shape[kept])), 0
    return reshape(transpose(x, (kept, *summed)), (x.shape[kept], terms)), 1


def _one_by_one(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Multiply with groups: a product for each position, of the matrices of all groups."""
    dims, groups = op.dims, op.feature_groups * op.batch_groups
    kernel = _matrices(rhs, dims.rhs_spec, groups, 0)
    grouped = 0 if op.feature_groups == 1 else 1
    shape = (groups, out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]] // groups)
    product = DotGeneral(((2,), (2,)), ((0,), (0,)), op.precision, op.preferred)
    parts = [
        reshape(product(_matrices(part, dims.lhs_spec, groups, grouped), kernel), shape)
        for part in _windows(op, lhs, rhs.type, out)
    ]
    return assembled(op, parts, out)


def _matrices(x: Any, spec: tuple[int, ...], groups: int, grouped: int) -> Any:
    """Return an operand as a matrix for each group, summed along its last axis.

    The axis that is kept is ``spec[0]``; the groups divide ``spec[grouped]``.
    """
    x = split_axis(transpose(x, spec), grouped, groups)
    if grouped:
        x = move_axis(x, 1, 0)
    rows = x.shape[1]
    return reshape(x, (groups, rows, x.size // groups // rows))
