"""A convolution without groups as one product of its kernel with the windows of the image.

Layer 2 (ops). XLA's CPU backend computes a convolution by matrix products, too, but for that it
turns kernel and image to other orders of their axes, and where the kernel is larger than the image
it falls into plain loops. A product of one's own needs the windows laid out. That costs nothing
where they do not overlap, and little where there are few of them, or few features. ``op`` is a
``ConvGeneralDilated``; ``formulation`` chooses. Next, read ``positions``, then ``shifted``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.convolution.products import along_features
from stretto._engine.ops.convolution.slices import cut, spread
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import concatenate, pad

__all__ = ["as_product", "by_example", "reason", "with_kernel_as_it_is"]

_MOST_SLICES = 128
"""The most slices that the windows are put together from: the compiler takes its time over each."""

_FEW_INPUTS = 4
"""The most input features for which overlapping windows are laid out."""

_MOST_ELEMENTS = 1 << 21
"""The most elements of overlapping windows that are laid out: more leave the fastest caches."""


def reason(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> str | None:
    """Why one product is faster than XLA's convolution; None where it is not."""
    dims = op.dims
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return None
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    if _apart(op, window):
        return "its windows do not overlap"
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    if min(math.prod(window), math.prod(positions)) > _MOST_SLICES:
        return None
    if _kernel_larger(op, lhs, rhs, out):
        return "the kernel is larger than the image, or than what its windows take"
    inputs = rhs.shape[dims.rhs_spec[1]]
    elements = math.prod(window) * inputs * out.size // out.shape[dims.out_spec[1]]
    few = inputs <= _FEW_INPUTS and len(window) > 0 and math.prod(window) <= _MOST_SLICES
    # TODO-TUNE
    if few and elements <= _MOST_ELEMENTS and math.prod(window) <= math.prod(positions):
        return "it has few input features, so its windows are small"
    return None


def as_product(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution, in the order of axes that needs the least to be moved."""
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    if not _apart(op, window) and _kernel_larger(op, lhs.type, rhs.type, out):
        return with_kernel_as_it_is(op, lhs, rhs, out)
    return by_example(op, lhs, rhs, out)


def by_example(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution with the image's features where they are, and the kernel turned to fit."""
    dims = op.dims
    batch, features, *spatial = dims.lhs_spec
    axis = lhs.ndim - 1 if features > max(spatial, default=0) else 1
    order = [batch, *spatial]
    order.insert(axis, features)
    image = transpose(spread(op, lhs), tuple(order))
    places = [a for a in range(lhs.ndim) if a not in (0, axis)]
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    if math.prod(window) == 1:
        windows = cut(image, places, [0] * len(places), positions, op.strides)
    elif _apart(op, window):
        windows = _split(image, places, axis, window, positions, op.strides)
    else:
        parts = []
        for at in itertools.product(*map(range, window)):
            starts = [k * step for k, step in zip(at, op.rhs_dilation, strict=True)]
            part = cut(image, places, starts, positions, op.strides)
            parts.append(reshape(part, (*part.shape[:axis], 1, *part.shape[axis:])))
        windows = concatenate(parts, axis)
    terms = rhs.size // rhs.shape[dims.rhs_spec[0]]
    outputs = rhs.shape[dims.rhs_spec[0]]
    # Window first, then features: the order of the joined axis, here and in the kernel.
    shape = [image.shape[0], *positions]
    shape.insert(axis, terms)
    windows = reshape(windows, tuple(shape))
    kernel = transpose(rhs, (dims.rhs_spec[0], *dims.rhs_spec[2:], dims.rhs_spec[1]))
    result = along_features(op, reshape(kernel, (outputs, terms)), windows, axis)
    order = {dims.out_spec[0]: 0, dims.out_spec[1]: axis}
    order |= dict(zip(dims.out_spec[2:], places, strict=True))
    return transpose(result, tuple(order[a] for a in range(out.ndim)))


def with_kernel_as_it_is(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution: rows are output features, columns examples and positions, or turned."""
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
        part = cut(image, range(1, n + 1), starts, sizes, strides)
        before = depth if by_element else part.size // count
        parts.append(reshape(part, (before, 1, part.size // before)))
    windows = parts[0] if len(parts) == 1 else concatenate(parts, 1)
    terms = depth * math.prod(window)
    windows = reshape(windows, (depth, math.prod(window), math.prod(positions) * count))
    outputs = rhs.size // terms
    if dims.rhs_spec[0] > dims.rhs_spec[1]:  # output features last, and so the window first
        windows = reshape(transpose(windows, (1, 0, 2)), (terms, windows.shape[2]))
        kernel = transpose(rhs, (*dims.rhs_spec[2:], dims.rhs_spec[1], dims.rhs_spec[0]))
        kernel, contracted = reshape(kernel, (terms, outputs)), ((0,), (0,))
    else:
        windows = reshape(windows, (terms, windows.shape[2]))
        kernel = reshape(transpose(rhs, dims.rhs_spec), (outputs, terms))
        contracted = ((1,), (0,))
    product = DotGeneral(contracted, ((), ()), op.precision, op.preferred)(kernel, windows)
    result = reshape(product, (outputs, *positions, count))
    order = {dims.out_spec[1]: 0, dims.out_spec[0]: n + 1}
    order |= {a: 1 + i for i, a in enumerate(dims.out_spec[2:])}
    return transpose(result, tuple(order[a] for a in range(out.ndim)))


def _apart(op: Any, window: list[int]) -> bool:
    """Whether no two windows share an element."""
    return all(
        dilated(k, d) <= s for k, d, s in zip(window, op.rhs_dilation, op.strides, strict=True)
    ) and all(k == 1 or d == 1 for k, d in zip(window, op.rhs_dilation, strict=True))


def _kernel_larger(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Whether the kernel is larger than the image, or than what its windows take."""
    dims = op.dims
    larger = any(
        dilated(rhs.shape[k], d) > dilated(lhs.shape[n], s)
        for k, d, n, s in zip(
            dims.rhs_spec[2:], op.rhs_dilation, dims.lhs_spec[2:], op.lhs_dilation, strict=True
        )
    )
    outputs = out.shape[dims.out_spec[1]]
    return larger or 2 * (out.size // outputs) <= outputs


def _split(
    image: Any,
    places: list[int],
    axis: int,
    window: list[int],
    positions: list[int],
    strides: tuple[int, ...],
) -> Any:
    """Windows that do not overlap: each spatial axis as positions and elements within.

    The elements go before the features, which lie at ``axis``.
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
    order[axis:axis] = inside
    return transpose(split, tuple(order))
