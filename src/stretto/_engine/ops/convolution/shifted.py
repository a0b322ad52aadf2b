"""A convolution with groups as a sum over the kernel's elements, of shifted slices of the image.

XLA's CPU backend computes a convolution with groups one product at a time, in plain loops. With few
features in each group, as in depthwise convolutions, there is a better way: each element of the
kernel times the slice of the image that it meets, for all outputs at once. The compiler makes one
vectorized loop of all these products and sums. ``op`` is a ``ConvGeneralDilated`` throughout; its
lowering chooses.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np

from stretto._engine.core.types import ArrayType, kind_of
from stretto._engine.ops.broadcast import broadcast_in_dim, reduce_sum
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.operands import (
    assembled,
    cut,
    in_layout,
    relaid,
    split_axis,
    spread,
)
from stretto._engine.ops.layout import reshape, transpose

_MOST_TERMS = 128
"""The most products in the sum of one element: the compiler takes its time over each."""

_MOST_PAIRS = 4
"""The most input features in a group; of the batch, pairs of an input and an output feature."""


_MANY_TERMS = 16
"""The terms from which a sum along the last axis repays putting positions there."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether the sum has so few terms that it is faster than other forms."""
    if op.feature_groups > 1:
        inputs, *window = [rhs.shape[a] for a in op.dims.rhs_spec[1:]]
        return inputs <= _MOST_PAIRS and inputs * math.prod(window) <= _MOST_TERMS
    if op.batch_groups > 1:
        pairs = out.shape[op.dims.out_spec[0]] * (out.shape[op.dims.out_spec[1]] // op.batch_groups)
        positions = math.prod([out.shape[a] for a in op.dims.out_spec[2:]])
        return pairs <= _MOST_PAIRS and positions <= _MOST_TERMS
    return False


def as_sum(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
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
        if part.shape != tuple(sizes):
            part = broadcast_in_dim(part, sizes, range(image.ndim))
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
    return assembled(op, parts, out)


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
    return assembled(op, parts, out)


def _dtype_of_sums(lhs: Any, out: ArrayType) -> np.dtype:
    """Return the dtype to add up in: at least float32 for floats, never narrower than they are."""
    wide = lhs.dtype if lhs.dtype.itemsize > out.dtype.itemsize else out.dtype
    if kind_of(wide) == "float" and wide.itemsize < 4:
        return np.dtype(np.float32)
    return wide
