"""Forms of a convolution for special geometries, each with the question whether it suits one.

They serve few outputs, volumes, groups of single elements, gaps, few positions, groups of few
features, and windows without groups. ``op`` is a ``ConvGeneralDilated`` throughout;
``formulation`` chooses.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.geometry import (
    FEWEST_COLUMNS,
    ConvDimensionNumbers,
    along_features,
    as_matrix,
    as_output,
    assemble,
    batch_first,
    cut,
    dilated,
    features_last,
    in_layout,
    merge,
    order_of,
    relaid,
    split_axis,
    spread,
)
from stretto._engine.ops.layout import move_axis, reshape, transpose
from stretto._engine.ops.shape import concatenate, pad

_FEW_OUTPUTS, _MANY_INPUTS = 4, 16
"""The most output features, and the fewest input features."""

# A convolution with few output features: products for each element first, then sums over windows.
#
# Such are the last layers of networks that give images, and the gradient by the image of a first
# layer. XLA lays out windows, each as large as all input features, for few columns of a product.
# Here a product gives what each element adds to each output of the windows it lies in, and these
# are added up.


_MOST_TERMS = 64
"""The most elements of a window: the compiler takes its time over each slice."""


def suits_elements(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether products of the elements are faster than products of windows."""
    dims = op.dims
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return False
    if out.dtype != lhs.dtype or out.dtype.itemsize < 4:
        return False  # narrow floats are added up in wider ones
    if any(d > 1 for d in op.lhs_dilation):
        return False  # most products would be of zeros
    outputs, inputs, *window = [rhs.shape[a] for a in dims.rhs_spec]
    overlap = math.prod(op.strides) < math.prod(window)
    few = outputs <= _FEW_OUTPUTS and inputs >= _MANY_INPUTS
    return few and overlap and math.prod(window) <= _MOST_TERMS


def of_elements(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve by a matrix applied to each element's features, then add shifted slices."""
    dims = op.dims
    axis = lhs.ndim - 1 if dims.lhs_spec[1] > max(dims.lhs_spec[2:]) else 1
    image, places = batch_first(op, spread(op, lhs), axis)
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    outputs = rhs.shape[dims.rhs_spec[0]]
    given = along_features(op, *as_matrix(op, rhs), image, axis)
    total: Any = None
    for number, at in enumerate(itertools.product(*map(range, window))):
        starts = [k * step for k, step in zip(at, op.rhs_dilation, strict=True)]
        part = cut(given, (axis,), (number * outputs,), (outputs,), (1,))
        part = cut(part, places, starts, positions, op.strides)
        total = part if total is None else total + part
    return as_output(op, total, axis, places)


# A convolution over volumes as one over planes, with the taps along the depth as input features.
#
# XLA's CPU backend has no matrix product for three spatial axes that is as fast as for two: it
# takes four times as long. So the planes that a window reaches are put side by side, as features
# of the plane in its middle, and the planes are a batch.


_MOST_COPIES = 8
"""The most times that a plane is copied."""

_MOST_SLICES = 64
"""The most planes of a window."""


def suits_planes(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether it is over volumes, without groups, with few copies of planes, none of lines."""
    if lhs.ndim != 5 or op.feature_groups * op.batch_groups > 1:
        return False
    taps, *window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    planes = out.shape[op.dims.out_spec[2]]
    if lhs.kind not in ("float", "complex") or max(window) == 1:
        return False
    return taps <= _MOST_SLICES and min(taps, planes) <= _MOST_COPIES


def as_planes(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve; axes but the depth stay in their order, behind the batch."""
    dims = op.dims
    batch, features, depth = dims.lhs_spec[:3]
    rest = [a for a in range(5) if a not in (batch, depth)]
    out_rest = [a for a in range(5) if a not in (dims.out_spec[0], dims.out_spec[2])]
    planes = out.shape[dims.out_spec[2]]

    low, high = op.padding[0]
    config = [(low, high, op.lhs_dilation[0] - 1) if a == depth else (0, 0, 0) for a in range(5)]
    image = transpose(pad(lhs, 0, config), (batch, depth, *rest))
    starts = [k * op.rhs_dilation[0] for k in range(rhs.shape[dims.rhs_spec[2]])]
    steps = op.strides[:1]
    parts = [cut(image, [1], [start], [planes], steps, hidden=True) for start in starts]
    image = concatenate(parts, 2 + rest.index(features))
    image = reshape(image, (image.shape[0] * planes, *image.shape[2:]))

    tap = dims.rhs_spec[2]
    outputs, inputs, *window = [a - (a > tap) for a in dims.rhs_spec if a != tap]
    flat = dataclasses.replace(
        op,
        strides=op.strides[1:],
        padding=op.padding[1:],
        lhs_dilation=op.lhs_dilation[1:],
        rhs_dilation=op.rhs_dilation[1:],
        dims=ConvDimensionNumbers(
            (0, *[1 + rest.index(a) for a in (features, *dims.lhs_spec[3:])]),
            (outputs, inputs, *window),
            (0, *[1 + out_rest.index(a) for a in (dims.out_spec[1], *dims.out_spec[3:])]),
        ),
    )
    result = flat(image, merge(rhs, tap, inputs))
    result = reshape(result, (lhs.shape[batch], planes, *result.shape[1:]))
    return transpose(result, order_of(range(5), (dims.out_spec[0], dims.out_spec[2], *out_rest)))


# A convolution in groups whose windows are single elements, as one product with a batch of groups.
#
# Mapping a layer of such windows over the members of an ensemble makes one. Written out, it would
# be slices, products and a concatenation for each group, all of which the compiler takes its time
# over.


def suits_pointwise(op: Any, lhs: ArrayType, rhs: ArrayType) -> bool:
    """Say whether features in groups lie before positions, and a window has one element."""
    features, *spatial = op.dims.lhs_spec[1:]
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    return (
        op.feature_groups > 1
        and math.prod(window) == 1
        and features < max(spatial, default=0)
        and lhs.kind in ("float", "complex")
    )


def of_pointwise(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve by a product for each example and group, or for each group of few positions."""
    dims, groups = op.dims, op.feature_groups
    image, places = batch_first(op, spread(op, lhs), 1)
    counts = [out.shape[a] for a in dims.out_spec[2:]]
    image = cut(image, places, [0] * len(places), counts, op.strides)
    examples, positions = image.shape[0], math.prod(counts)
    outputs, inputs = (rhs.shape[a] for a in dims.rhs_spec[:2])
    kernel = reshape(transpose(rhs, dims.rhs_spec), (groups, outputs // groups, inputs))
    dot = lambda contracted, batch: DotGeneral(contracted, batch, op.precision, op.preferred)
    if positions >= FEWEST_COLUMNS or examples == 1:
        columns = reshape(image, (examples, groups, inputs, positions))
        kernels = broadcast_in_dim(kernel, (examples, *kernel.shape), (1, 2, 3))
        result = dot(((3,), (2,)), ((0, 1), (0, 1)))(kernels, columns)
    else:
        columns = move_axis(reshape(image, (examples, groups, inputs, positions)), 0, 2)
        columns = reshape(columns, (groups, inputs, examples * positions))
        result = dot(((2,), (1,)), ((0,), (0,)))(kernel, columns)
        result = reshape(result, (groups, outputs // groups, examples, positions))
        result = move_axis(result, 2, 0)
    return as_output(op, reshape(result, (examples, outputs, *counts)), 1, places)


# A convolution over a spread image whose elements each meet windows of their own: one product.
#
# Where the gaps between an image's elements are as wide as the kernel, as in the transpose of a
# convolution whose windows do not overlap, each output is made of one element, and the zeros in
# between add nothing. XLA multiplies the zeros.


def suits_scattered(op: Any, lhs: ArrayType, rhs: ArrayType) -> bool:
    """Say whether each output is made of at most one of the image's elements."""
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return False
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    return (
        any(d > 1 for d in op.lhs_dilation)
        and all(s == 1 for s in op.strides)
        and all(k <= d for k, d in zip(window, op.lhs_dilation, strict=True))
        and all(k == 1 or d == 1 for k, d in zip(window, op.rhs_dilation, strict=True))
    )


def of_scattered(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve by what each element gives to its window, and the windows side by side.

    The output ``o`` meets the element ``i`` at ``t`` of the reversed window, where
    ``o = i * dilation + t + low - (k - 1)``.
    """
    dims = op.dims
    spatial = dims.lhs_spec[2:]
    n = len(spatial)
    last = dims.lhs_spec[1] > max(spatial)
    axis = n + 1 if last else 1
    image, places = batch_first(op, lhs, axis)
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    outputs = rhs.shape[dims.rhs_spec[0]]
    given = along_features(op, *as_matrix(op, rhs, reverse=True), image, axis)
    sizes = [image.shape[0], *[lhs.shape[a] for a in spatial]]
    sizes[axis:axis] = [*window, outputs]
    given = reshape(given, tuple(sizes))
    # The gap after each window, then (element, place in its window) as one axis.
    config = [(0, 0, 0)] * given.ndim
    for i, (k, d) in enumerate(zip(window, op.lhs_dilation, strict=True)):
        config[axis + i] = (0, d - k, 0)
    given = pad(given, 0, config)
    where = [a for a in range(given.ndim) if not axis <= a <= axis + n]  # batch, then elements
    joined = [0]
    for i in range(n):
        joined += [where[1 + i], axis + i]
    joined.insert(2 * n + 1 if last else 1, axis + n)
    given = transpose(given, tuple(joined))
    lengths = [lhs.shape[a] * d for a, d in zip(spatial, op.lhs_dilation, strict=True)]
    shape = [image.shape[0], *lengths]
    shape.insert(axis, outputs)
    given = reshape(given, tuple(shape))
    config = [(0, 0, 0)] * given.ndim
    for i, place in enumerate(places):
        low = op.padding[i][0] - (window[i] - 1)
        config[place] = (low, out.shape[dims.out_spec[2 + i]] - low - lengths[i], 0)
    given = pad(given, 0, config)
    return as_output(op, given, axis, places)


# A convolution with few positions as products: one for all of them, or in groups one for each.
#
# Such is the gradient of a convolution by its kernel: windows nearly as large as the image, and as
# many positions as the kernel has elements. The product comes out in the order that the kernel has,
# so that what reads a gradient need not turn it.


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
"""The images are so many times larger than all examples' products where they are not turned."""

_FEWEST_IN_GROUPS = 3
"""The fewest rows and columns of a group's product; with fewer, sums of slices are faster."""


def suits_positions(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether there is one position, or groups for which products are fastest."""
    dims = op.dims
    groups = op.feature_groups * op.batch_groups
    positions = _few_positions(op, lhs, rhs, out)
    few = min(out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]] // groups)
    return positions > 0 and few >= _FEWEST_IN_GROUPS if groups > 1 else positions == 1


def suits_positions_together(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
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


def of_positions(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve by the product of each position's window and the whole kernel."""
    if op.feature_groups * op.batch_groups > 1:
        return _one_by_one(op, lhs, rhs, out)
    form = _sum_over_examples if _suits_summed(op, lhs.type, rhs.type, out) else _together
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


def _sum_over_examples(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Add a product for each example: no groups, one position, both images examples first."""
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
    windows = _join_windows(op, lhs, rhs.type, counts, last)
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


def _join_windows(op: Any, lhs: Any, rhs: ArrayType, counts: list[int], last: bool) -> Any:
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
    return assemble(op, parts, out)


def _matrices(x: Any, spec: tuple[int, ...], groups: int, grouped: int) -> Any:
    """Return an operand as a matrix for each group, summed along its last axis.

    The axis that is kept is ``spec[0]``; the groups divide ``spec[grouped]``.
    """
    x = split_axis(transpose(x, spec), grouped, groups)
    if grouped:
        x = move_axis(x, 1, 0)
    rows = x.shape[1]
    return reshape(x, (groups, rows, x.size // groups // rows))


# A convolution with groups as a sum over the kernel's elements, of shifted slices of the image.
#
# XLA's CPU backend computes a convolution with groups one product at a time, in plain loops. With
# few features in each group, as in depthwise convolutions, there is a better way: each element of
# the kernel times the slice of the image that it meets, for all outputs at once. The compiler makes
# one vectorized loop of all these products and sums.


_MOST_SHIFTED_TERMS = 128
"""The most products in the sum of one element: the compiler takes its time over each."""

_MOST_PAIRS = 4
"""The most input features in a group; of the batch, pairs of an input and an output feature."""


_MANY_TERMS = 16
"""The terms from which a sum along the last axis repays putting positions there."""


def suits_shifted(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether the sum has so few terms that it is faster than other forms."""
    if op.feature_groups > 1:
        inputs, *window = [rhs.shape[a] for a in op.dims.rhs_spec[1:]]
        return inputs <= _MOST_PAIRS and inputs * math.prod(window) <= _MOST_SHIFTED_TERMS
    if op.batch_groups > 1:
        pairs = out.shape[op.dims.out_spec[0]] * (out.shape[op.dims.out_spec[1]] // op.batch_groups)
        positions = math.prod([out.shape[a] for a in op.dims.out_spec[2:]])
        return pairs <= _MOST_PAIRS and positions <= _MOST_SHIFTED_TERMS
    return False


def of_shifted(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve in the form that is fastest, with positions last where that repays it."""
    if op.feature_groups > 1:
        form = of_feature_groups
        terms = rhs.size // rhs.shape[op.dims.rhs_spec[0]]
        turned = terms >= _MANY_TERMS
    else:
        last, positions = rhs.shape[op.dims.rhs_spec[-1]], out.shape[op.dims.out_spec[-1]]
        wide = len(op.strides) > 0 and positions >= 5 and last <= 16 * positions
        form = of_diagonals if wide and kind_of(out.dtype) == "float" else of_batch_groups
        turned = True
    if turned and lhs.ndim - 1 in op.dims.lhs_spec[:2]:
        plain = ConvDimensionNumbers(*[tuple(range(lhs.ndim))] * 3)
        return in_layout(plain, form, op, lhs, rhs, out)
    return form(op, lhs, rhs, out)


def of_feature_groups(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve features in groups: sum kernel elements times slices of the image."""
    groups, dims, sums = op.feature_groups, op.dims, _dtype_of_sums(lhs, out)
    features, spatial = dims.lhs_spec[1], dims.lhs_spec[2:]
    image = split_axis(spread(op, convert(lhs, sums)), features, groups)
    # The features are two axes now, groups and those within.
    inside, places = features + 1, [a + (a > features) for a in spatial]
    kernel = transpose(convert(rhs, sums), dims.rhs_spec)
    kernel = split_axis(kernel, 0, groups)  # groups, outputs, inputs, window
    counts = [out.shape[a] for a in dims.out_spec[2:]]
    sizes = list(image.shape)
    sizes[inside] = kernel.shape[1]
    for place, n in zip(places, counts, strict=True):
        sizes[place] = n
    total: Any = None
    window = kernel.shape[3:]
    for element in itertools.product(range(kernel.shape[2]), *map(range, window)):
        starts = [j * d for j, d in zip(element[1:], op.rhs_dilation, strict=True)]
        part = cut(image, (inside, *places), (element[0], *starts), (1, *counts), (1, *op.strides))
        one = cut(kernel, range(2, kernel.ndim), element, [1] * len(element), [1] * len(element))
        factor = broadcast_in_dim(reshape(one, kernel.shape[:2]), sizes, (features, inside))
        total = part * factor if total is None else total + part * factor
    shape = [n for a, n in enumerate(total.shape) if a != inside]
    shape[features] = total.shape[features] * total.shape[inside]
    total = relaid(reshape(total, tuple(shape)), dims.lhs_spec, dims.out_spec)
    return convert(total, out.dtype)


def of_batch_groups(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve a batch in groups, with few positions: a sum of products for each."""
    groups, dims, sums = op.batch_groups, op.dims, _dtype_of_sums(lhs, out)
    batch, spatial = dims.lhs_spec[0], dims.lhs_spec[2:]
    image = split_axis(spread(op, convert(lhs, sums)), batch, groups)
    behind = lambda a: a + (a > batch)
    places = [behind(a) for a in spatial]
    summed = (behind(dims.lhs_spec[1]), *places)
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    # Both get an axis more, for the features that the other has in a group: image (groups, own,
    # 1), kernel (groups, 1, own), beside the summed axes.
    kernel = split_axis(convert(rhs, sums), dims.rhs_spec[0], groups)
    after = lambda a: a + (a > dims.rhs_spec[0])
    source = {batch: dims.rhs_spec[0], batch + 1: dims.rhs_spec[0] + 1}
    source |= {s: after(a) for s, a in zip(summed, dims.rhs_spec[1:], strict=True)}
    kernel = transpose(kernel, tuple(source[a] for a in range(image.ndim)))
    own, others = image.shape[batch + 1], kernel.shape[batch + 1]
    sizes = [kernel.shape[a] for a in range(kernel.ndim)]
    sizes[batch + 1 : batch + 2] = [own, others]
    kept = [a for a in range(len(sizes)) if a != batch + 2]
    other = [a for a in range(len(sizes)) if a != batch + 1]
    kernel = broadcast_in_dim(kernel, sizes, other)
    over = [a + (a > batch + 1) for a in summed]
    counts = [out.shape[a] for a in dims.out_spec[2:]]
    parts = []
    for position in itertools.product(*map(range, counts)):
        starts = [o * s for o, s in zip(position, op.strides, strict=True)]
        part = cut(image, places, starts, window, op.rhs_dilation)
        product = broadcast_in_dim(part, sizes, kept) * kernel
        parts.append(reduce_sum(product, over))
    return assemble(op, parts, out)


def of_diagonals(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve a batch in groups, by products whose diagonals are the sums.

    Along the last axis, the product of kernel and image has each element of the one times each of
    the other; those that meet at a position lie on a diagonal. That is more arithmetic than the
    sums alone, by the size of the image over the number of positions, and much faster arithmetic.
    """
    groups, dims, sums = op.batch_groups, op.dims, _dtype_of_sums(lhs, out)
    *window, last = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    *counts, positions = [out.shape[a] for a in dims.out_spec[2:]]
    n = len(window)
    # The image: groups, summed features, the axes but the last, features within, the last.
    axes = (dims.lhs_spec[1], *dims.lhs_spec[2:-1], dims.lhs_spec[0], dims.lhs_spec[-1])
    image = transpose(spread(op, convert(lhs, sums)), axes)
    image = split_axis(image, n + 1, groups)
    image = transpose(image, (n + 1, *range(n + 1), n + 2, n + 3))
    # The kernel: groups, features within, its last axis, and what is summed.
    axes = (dims.rhs_spec[0], dims.rhs_spec[-1], *dims.rhs_spec[1:-1])
    kernel = split_axis(transpose(convert(rhs, sums), axes), 0, groups)
    others, depth = kernel.shape[1], math.prod(kernel.shape[3:])
    rows = reshape(kernel, (groups, others * last, depth))
    own, length = image.shape[n + 2], image.shape[n + 3]
    product = DotGeneral(((2,), (1,)), ((0,), (0,)), op.precision, None)
    parts = []
    for position in itertools.product(*map(range, counts)):
        starts = [o * s for o, s in zip(position, op.strides[:-1], strict=True)]
        part = cut(image, range(2, n + 2), starts, window, op.rhs_dilation[:-1])
        pairs = product(rows, reshape(part, (groups, depth, own * length)))
        pairs = transpose(reshape(pairs, (groups, others, last, own, length)), (0, 3, 1, 2, 4))
        pairs = reshape(pairs, (groups, own, others, last * length))
        for o in range(positions):
            # The element t meets that at o * stride + t * dilation.
            step = length + op.rhs_dilation[-1]
            met = cut(pairs, [3], [o * op.strides[-1]], [last], [step])
            parts.append(reduce_sum(met, (3,)))
    return assemble(op, parts, out)


def _dtype_of_sums(lhs: Any, out: ArrayType) -> np.dtype:
    """Return the dtype to add up in: at least float32 for floats, never narrower than they are."""
    wide = lhs.dtype if lhs.dtype.itemsize > out.dtype.itemsize else out.dtype
    if kind_of(wide) == "float" and wide.itemsize < 4:
        return np.dtype(np.float32)
    return wide


# A convolution without groups as one product of its kernel with the windows of the image.
#
# XLA's CPU backend computes a convolution by matrix products, too, but for that it turns kernel and
# image to other orders of their axes, and where the kernel is larger than the image it falls into
# plain loops. A product of one's own needs the windows laid out. That costs nothing where they do
# not overlap, and little where there are few of them, or few features.


_MOST_WINDOW_SLICES = 128
"""The most slices that the windows are put together from: the compiler takes its time over each."""

_FEW_TERMS = 64
"""The most terms of a sum for which overlapping windows are laid out."""

_MOST_WINDOW_ELEMENTS = 1 << 21
"""The most elements of overlapping windows that are laid out: more leave the fastest caches."""


def reason_for_windows(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> str | None:
    """Say why one product is faster than XLA's convolution; None where it is not."""
    dims = op.dims
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return None
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    if _apart(op, window):
        return "its windows do not overlap"
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    if min(math.prod(window), math.prod(positions)) > _MOST_WINDOW_SLICES:
        return None
    if _kernel_larger(op, lhs, rhs, out):
        return "the kernel is larger than the image, or than what its windows take"
    terms = math.prod(window) * rhs.shape[dims.rhs_spec[1]]
    elements = terms * out.size // out.shape[dims.out_spec[1]]
    if terms <= _FEW_TERMS and elements <= _MOST_WINDOW_ELEMENTS:
        return "it has few input features, so its windows are small"
    return None


def of_windows(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve in the order of axes that needs the least to be moved."""
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    if not _apart(op, window) and _kernel_larger(op, lhs.type, rhs.type, out):
        return (by_row if _outputs_last(op) else by_column)(op, lhs, rhs, out)
    features, spatial = op.dims.lhs_spec[1], op.dims.lhs_spec[2:]
    return (by_row if features > max(spatial, default=0) else by_example)(op, lhs, rhs, out)


def by_row(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve with features last: rows are windows, columns output features."""
    return _in_layout(op, lhs, rhs, out, lhs.ndim - 1)


def by_example(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve with features after the batch: a product for each example."""
    return _in_layout(op, lhs, rhs, out, 1)


def _in_layout(op: Any, lhs: Any, rhs: Any, out: ArrayType, axis: int) -> Any:
    """Return the convolution of an image whose features lie at ``axis``, and its batch first."""
    dims, last = op.dims, axis == lhs.ndim - 1
    image, places = batch_first(op, spread(op, lhs), axis)
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    outputs, inputs = rhs.shape[dims.rhs_spec[0]], rhs.shape[dims.rhs_spec[1]]
    terms = inputs * math.prod(window)
    # Features last: the window's elements before them; else after them, as in the kernel.
    within = axis if last else axis + 1
    if math.prod(window) == 1:
        windows = cut(image, places, [0] * len(places), positions, op.strides)
    elif _apart(op, window):
        windows = _split_windows(image, places, within, window, positions, op.strides)
    elif math.prod(window) <= math.prod(positions):
        parts = []
        for at in itertools.product(*map(range, window)):
            starts = [k * step for k, step in zip(at, op.rhs_dilation, strict=True)]
            part = cut(image, places, starts, positions, op.strides, hidden=True)
            parts.append(reshape(part, (*part.shape[:within], 1, *part.shape[within:])))
        windows = concatenate(parts, within)
    else:
        parts = []
        for at in itertools.product(*map(range, positions)):
            starts = [o * step for o, step in zip(at, op.strides, strict=True)]
            part = cut(image, places, starts, window, op.rhs_dilation, hidden=True)
            shape = (part.shape[0], 1, terms) if last else (part.shape[0], terms, 1)
            parts.append(reshape(part, shape))
        windows = concatenate(parts, 1 if last else 2)
    shape = [image.shape[0], *positions]
    shape.insert(axis, terms)
    windows = reshape(windows, tuple(shape))
    summed = (*dims.rhs_spec[2:], dims.rhs_spec[1]) if last else dims.rhs_spec[1:]
    if _outputs_last(op):
        kernel = reshape(transpose(rhs, (*summed, dims.rhs_spec[0])), (terms, outputs))
    else:
        kernel = reshape(transpose(rhs, (dims.rhs_spec[0], *summed)), (outputs, terms))
    result = along_features(op, kernel, int(not _outputs_last(op)), windows, axis)
    return as_output(op, result, axis, places)


def by_column(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """Convolve so that rows are output features, columns positions and examples.

    A kernel with its output features first stays as it is.
    """
    dims = op.dims
    (batch, features, *spatial), n = dims.lhs_spec, len(dims.lhs_spec) - 2
    image = transpose(spread(op, lhs), (features, *spatial, batch))
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    depth, count = image.shape[0], image.shape[-1]
    by_element = math.prod(window) <= math.prod(positions)
    # For each element of the window, what it meets at all positions; or for each position, its
    # window: whichever are fewer.
    if by_element:
        counts, steps, sizes, strides = window, op.rhs_dilation, positions, op.strides
    else:
        counts, steps, sizes, strides = positions, op.strides, window, op.rhs_dilation
    parts = []
    for at in itertools.product(*map(range, counts)):
        starts = [k * step for k, step in zip(at, steps, strict=True)]
        part = cut(image, range(1, n + 1), starts, sizes, strides, hidden=True)
        before = depth if by_element else part.size // count
        parts.append(reshape(part, (before, 1, part.size // before)))
    windows = parts[0] if len(parts) == 1 else concatenate(parts, 1)
    terms = depth * math.prod(window)
    kernel = reshape(transpose(rhs, dims.rhs_spec), (rhs.size // terms, terms))
    windows = reshape(windows, (terms, windows.size // terms))
    product = DotGeneral(((1,), (0,)), ((), ()), op.precision, op.preferred)(kernel, windows)
    result = reshape(product, (kernel.shape[0], *positions, count))
    return relaid(result, (n + 1, *range(n + 1)), dims.out_spec)


def _outputs_last(op: Any) -> bool:
    """Say whether the kernel's output features come after its input features."""
    return op.dims.rhs_spec[0] > op.dims.rhs_spec[1]


def _apart(op: Any, window: list[int]) -> bool:
    """Say whether no two windows share an element."""
    return all(
        dilated(k, d) <= s for k, d, s in zip(window, op.rhs_dilation, op.strides, strict=True)
    ) and all(k == 1 or d == 1 for k, d in zip(window, op.rhs_dilation, strict=True))


def _kernel_larger(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether the kernel is larger than the image, or than what its windows take.

    The latter counts for kernels with output features first, which XLA's convolution turns round.
    """
    dims = op.dims
    larger = any(
        dilated(rhs.shape[k], d) > dilated(lhs.shape[n], s)
        for k, d, n, s in zip(
            dims.rhs_spec[2:], op.rhs_dilation, dims.lhs_spec[2:], op.lhs_dilation, strict=True
        )
    )
    outputs = out.shape[dims.out_spec[1]]
    return larger or (not _outputs_last(op) and 2 * (out.size // outputs) <= outputs)


def _split_windows(
    image: Any,
    places: list[int],
    within: int,
    window: list[int],
    positions: list[int],
    strides: tuple[int, ...],
) -> Any:
    """Return windows that do not overlap: each spatial axis as positions and elements within.

    The elements become axes at ``within``.
    """
    config = [(0, 0, 0)] * image.ndim
    for place, n, s in zip(places, positions, strides, strict=True):
        config[place] = (0, n * s - image.shape[place], 0)
    image = pad(image, 0, config)
    shape: list[int] = []
    at: dict[int, int] = {}
    for a, n in enumerate(image.shape):
        at[a] = len(shape)
        if a in places:
            which = places.index(a)
            shape += [positions[which], strides[which]]
        else:
            shape.append(n)
    inside = [at[a] + 1 for a in places]
    split = cut(reshape(image, tuple(shape)), inside, [0] * len(inside), window, [1] * len(inside))
    order = [at[a] for a in range(image.ndim)]
    order[within:within] = inside
    return transpose(split, tuple(order))
