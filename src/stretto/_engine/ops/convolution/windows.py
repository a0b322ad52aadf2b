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
    places = range(1, n + 1)
    if math.prod(window) <= math.prod(positions):
        # For each element of the window, what it meets at all positions.
        parts = [
            cut(image, places, [j * d for j, d in zip(at, op.rhs_dilation, strict=True)],
                positions, op.strides)
            for at in itertools.product(*map(range, window))
        ]  # fmt: skip
        rows = [reshape(part, (depth, 1, part.size // depth)) for part in parts]
        windows = rows[0] if len(rows) == 1 else concatenate(rows, 1)
        columns = (*positions, count)
    else:
        # For each position, the elements of its window.
        parts = [
            cut(image, places, [o * s for o, s in zip(at, op.strides, strict=True)],
                window, op.rhs_dilation)
            for at in itertools.product(*map(range, positions))
        ]  # fmt: skip
        rows = [reshape(part, (depth * math.prod(window), 1, count)) for part in parts]
        windows = rows[0] if len(rows) == 1 else concatenate(rows, 1)
        columns = (*positions, count)
    terms = depth * math.prod(window)
    kernel = reshape(transpose(rhs, dims.rhs_spec), (rhs.size // terms, terms))
    windows = reshape(windows, (terms, windows.size // terms))
    product = DotGeneral(((1,), (0,)), ((), ()), op.precision, op.preferred)(kernel, windows)
    result = reshape(product, (kernel.shape[0], *columns))
    order = {dims.out_spec[1]: 0, dims.out_spec[0]: n + 1}
    order |= {a: 1 + i for i, a in enumerate(dims.out_spec[2:])}
    return transpose(result, tuple(order[a] for a in range(out.ndim)))
