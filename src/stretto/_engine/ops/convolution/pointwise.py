"""A convolution in groups whose windows are single elements, as one product with a batch of groups.

Mapping a layer of such windows over the members of an ensemble makes one. Written out, it would be
slices, products and a concatenation for each group, all of which the compiler takes its time over.
``op`` is a ``ConvGeneralDilated``; ``formulation`` chooses.
"""

from __future__ import annotations

import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.products import FEWEST_COLUMNS, as_output, batch_first
from stretto._engine.ops.convolution.slices import cut, spread
from stretto._engine.ops.layout import move_axis, reshape, transpose


def suits(op: Any, lhs: ArrayType, rhs: ArrayType) -> bool:
    """Whether there are groups of features, before the positions, and a window has one element."""
    features, *spatial = op.dims.lhs_spec[1:]
    window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    return (
        op.feature_groups > 1
        and math.prod(window) == 1
        and features < max(spatial, default=0)
        and lhs.kind in ("float", "complex")
    )


def as_product(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution: a product for each example and group, or for each group of few positions."""
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
