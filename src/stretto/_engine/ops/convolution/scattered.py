"""A convolution over a spread image whose elements each meet windows of their own: one product.

Where the gaps between an image's elements are as wide as the kernel, as in the transpose of a
convolution whose windows do not overlap, each output is made of one element, and the zeros in
between add nothing. XLA multiplies the zeros. ``op`` is a ``ConvGeneralDilated``; ``formulation``
chooses.
"""

from __future__ import annotations

from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convolution.products import (
    along_features,
    as_matrix,
    as_output,
    batch_first,
)
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import pad


def suits(op: Any, lhs: ArrayType, rhs: ArrayType) -> bool:
    """Whether each output is made of at most one of the image's elements."""
    if op.feature_groups * op.batch_groups > 1 or lhs.kind not in ("float", "complex"):
        return False
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    return (
        any(d > 1 for d in op.lhs_dilation)
        and all(s == 1 for s in op.strides)
        and all(k <= d for k, d in zip(window, op.lhs_dilation, strict=True))
        and all(k == 1 or d == 1 for k, d in zip(window, op.rhs_dilation, strict=True))
    )


def as_product(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution: what each element gives to its window, and the windows side by side.

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
