"""A convolution without groups as one product of its kernel with the windows of the image.

XLA's CPU backend computes a convolution by matrix products, too, but for that it turns kernel and
image to other orders of their axes, and where the kernel is larger than the image it falls into
plain loops. A product of one's own needs the windows laid out. That costs nothing where they do not
overlap, and little where there are few of them, or few features. ``op`` is a
``ConvGeneralDilated``; ``formulation`` chooses.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.geometry import (
    along_features,
    as_output,
    batch_first,
    cut,
    dilated,
    relaid,
    spread,
)
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import concatenate, pad

_MOST_SLICES = 128
"""The most slices that the windows are put together from: the compiler takes its time over each."""

_FEW_TERMS = 64
"""The most terms of a sum for which overlapping windows are laid out."""

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
    terms = math.prod(window) * rhs.shape[dims.rhs_spec[1]]
    elements = terms * out.size // out.shape[dims.out_spec[1]]
    if terms <= _FEW_TERMS and elements <= _MOST_ELEMENTS:
        return "it has few input features, so its windows are small"
    return None


def as_product(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
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
        windows = _split(image, places, within, window, positions, op.strides)
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


def _split(
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
