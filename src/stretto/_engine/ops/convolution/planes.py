"""A convolution over volumes as one over planes, with the taps along the depth as input features.

XLA's CPU backend has no matrix product for three spatial axes that is as fast as for two: it takes
four times as long. So the planes that a window reaches are put side by side, as features of the
plane in its middle, and the planes are a batch. ``op`` is a ``ConvGeneralDilated``; ``formulation``
chooses.
"""

from __future__ import annotations

import dataclasses
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convolution.axes import merge, order_of
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.convolution.slices import cut
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import pad

_MOST_COPIES = 8
"""The most times that a plane is copied."""

_MOST_SLICES = 64
"""The most planes of a window."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Whether it is over volumes, without groups, with few copies of planes, and not of lines."""
    if lhs.ndim != 5 or op.feature_groups * op.batch_groups > 1:
        return False
    taps, *window = [rhs.shape[a] for a in op.dims.rhs_spec[2:]]
    planes = out.shape[op.dims.out_spec[2]]
    if lhs.kind not in ("float", "complex") or max(window) == 1:
        return False
    return taps <= _MOST_SLICES and min(taps, planes) <= _MOST_COPIES


def as_planes(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution; axes but the depth stay in their order, behind the batch."""
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
