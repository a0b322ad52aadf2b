"""A convolution with few output features: products for each element first, then sums over windows.

Such are the last layers of networks that give images, and the gradient by the image of a first
layer. XLA lays out windows, each as large as all input features, for few columns of a product. Here
a product gives what each element adds to each output of the windows it lies in, and these are added
up. ``op`` is a ``ConvGeneralDilated``; ``formulation`` chooses.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convolution.products import (
    along_features,
    as_matrix,
    as_output,
    batch_first,
)
from stretto._engine.ops.convolution.slices import cut, spread

_FEW_OUTPUTS, _MANY_INPUTS = 4, 16
"""The most output features, and the fewest input features."""

_MOST_TERMS = 64
"""The most elements of a window: the compiler takes its time over each slice."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Whether products of the elements are faster than products of windows."""
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
    """The convolution: a matrix applied to each element's features, then shifted slices added."""
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
