"""A convolution in the forms that XLA's CPU backend is fast at: without groups, features last.

``op`` is a ``ConvGeneralDilated`` throughout; its lowering chooses among these forms.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convolution.axes import order_of, relaid
from stretto._engine.ops.convolution.geometry import ConvDimensionNumbers
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.shape import slice_in_dim

MOST_GROUPS = 64
"""The most groups that are written out: each one takes the compiler time."""


def features_last(ndim: int) -> ConvDimensionNumbers:
    """Batch, positions, features; for kernels positions, input features, output features."""
    positions = tuple(range(1, ndim - 1))
    image = (0, ndim - 1, *positions)
    return ConvDimensionNumbers(image, (ndim - 1, ndim - 2, *range(ndim - 2)), image)


def in_layout(
    layout: ConvDimensionNumbers,
    form: Callable[..., Any],
    op: Any,
    lhs: Any,
    rhs: Any,
    out: ArrayType,
) -> Any:
    """The convolution by the form, its operands put in that layout and its output back."""
    dims = op.dims
    shape = tuple(out.shape[a] for a in order_of(dims.out_spec, layout.out_spec))
    result = form(
        dataclasses.replace(op, dims=layout),
        relaid(lhs, dims.lhs_spec, layout.lhs_spec),
        relaid(rhs, dims.rhs_spec, layout.rhs_spec),
        out.with_shape(shape),
    )
    return relaid(result, layout.out_spec, dims.out_spec)


def with_features_last(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution with features last."""
    form = lambda op, lhs, rhs, out: op(lhs, rhs)
    return in_layout(features_last(lhs.ndim), form, op, lhs, rhs, out)


def by_group(op: Any, lhs: Any, rhs: Any) -> Any:
    """A convolution without groups for each group, their outputs joined along the features."""
    groups = max(op.feature_groups, op.batch_groups)
    one = dataclasses.replace(op, feature_groups=1, batch_groups=1)
    axis = op.dims.lhs_spec[1 if op.batch_groups == 1 else 0]

    def part(x: Any, axis: int, g: int) -> Any:
        n = x.shape[axis] // groups
        return slice_in_dim(x, g * n, (g + 1) * n, axis=axis)

    outs = [one(part(lhs, axis, g), part(rhs, op.dims.rhs_spec[0], g)) for g in range(groups)]
    return concatenate(outs, op.dims.out_spec[1])
