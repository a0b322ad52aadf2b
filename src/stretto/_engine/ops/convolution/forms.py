"""Forms of a convolution for special geometries: few outputs, volumes, single elements, gaps.

``op`` is a ``ConvGeneralDilated`` throughout; ``formulation`` chooses.
"""

from __future__ import annotations

import dataclasses
import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.operands import (
    FEWEST_COLUMNS,
    along_features,
    as_matrix,
    as_output,
    batch_first,
    cut,
    merge,
    order_of,
    spread,
)
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import move_axis, reshape, transpose
from stretto._engine.ops.shape import pad

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
