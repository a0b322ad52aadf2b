"""A convolution without groups as one product of its kernel with the windows of the image.

Layer 2 (ops). XLA's CPU backend computes a convolution by matrix products, too, but for that it
turns kernel and image to other orders of their axes, and where the kernel is larger than the image
it falls into plain loops. Here the windows are laid out so that the kernel stays as it is, with its
output features first: that pays where the kernel is larger than what the windows take. ``op`` is a
``ConvGeneralDilated``; its lowering chooses. Next, read ``shifted``, then ``forms``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.geometry import dilated
from stretto._engine.ops.convolution.slices import cut, spread
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import concatenate

__all__ = ["as_product", "suits"]

_MOST_SLICES = 128
"""The most slices that the windows are put together from: the compiler takes its time over each."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Whether one product is faster than XLA's convolution."""
    dims = op.dims
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return False
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    positions = [out.shape[a] for a in dims.out_spec[2:]]
    if min(math.prod(window), math.prod(positions)) > _MOST_SLICES:
        return False
    image = [lhs.shape[a] for a in dims.lhs_spec[2:]]
    larger = any(
        dilated(k, d) > dilated(n, s)
        for k, d, n, s in zip(window, op.rhs_dilation, image, op.lhs_dilation, strict=True)
    )
    columns = out.shape[dims.out_spec[0]] * math.prod(positions)
    return larger or 2 * columns <= out.shape[dims.out_spec[1]]


def as_product(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution: rows are output features, columns examples and positions."""
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
    kernel = reshape(transpose(rhs, dims.rhs_spec), (rhs.size // terms, terms))
    windows = reshape(windows, (terms, windows.size // terms))
    product = DotGeneral(((1,), (0,)), ((), ()), op.precision, op.preferred)(kernel, windows)
    result = reshape(product, (kernel.shape[0], *positions, count))
    order = {dims.out_spec[1]: 0, dims.out_spec[0]: n + 1}
    order |= {a: 1 + i for i, a in enumerate(dims.out_spec[2:])}
    return transpose(result, tuple(order[a] for a in range(out.ndim)))
