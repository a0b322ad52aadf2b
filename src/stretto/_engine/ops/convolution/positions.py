"""A convolution with few positions as a product for each of them.

Layer 2 (ops). Such is the gradient of a convolution by its kernel: windows nearly as large as the
image, and as many positions as the kernel has elements. ``op`` is a ``ConvGeneralDilated``;
``formulation`` chooses. Next, read ``shifted``, then ``forms``.
"""

from __future__ import annotations

import itertools
import math
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.contract import DotGeneral
from stretto._engine.ops.convolution.axes import split_axis
from stretto._engine.ops.convolution.slices import assembled, cut, spread
from stretto._engine.ops.layout import move_axis, reshape, transpose

__all__ = ["as_products", "suits"]

_MOST_POSITIONS = 49
"""The most products that are written out: the compiler takes its time over each."""

_FEWEST_IN_GROUPS = 3
"""With groups, the least number of rows and columns; with fewer, sums of slices are faster."""


def suits(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Whether products of so few positions are faster than other forms."""
    dims = op.dims
    if lhs.kind not in ("float", "complex"):
        return False
    positions = math.prod([out.shape[a] for a in dims.out_spec[2:]])
    window = math.prod([rhs.shape[a] for a in dims.rhs_spec[2:]])
    if positions > _MOST_POSITIONS or window <= positions:
        return False
    groups = op.feature_groups * op.batch_groups
    few = min(out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]] // groups)
    # Without groups XLA's convolution takes a fifth longer alone, but less time in a network, and
    # half the memory: the slices for all positions are there at once.
    return few >= _FEWEST_IN_GROUPS if groups > 1 else positions == 1


def as_products(op: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    """The convolution: at each position its window of the image times the whole kernel."""
    dims, groups = op.dims, op.feature_groups * op.batch_groups
    spatial = dims.lhs_spec[2:]
    image = spread(op, lhs)
    window = [rhs.shape[a] for a in dims.rhs_spec[2:]]
    terms = rhs.size // rhs.shape[dims.rhs_spec[0]]
    kernel, axis = _matrices(rhs, dims.rhs_spec, groups, 0, terms)
    if groups == 1 and axis == 1:
        # As in a layer whose weights are transposed, by which the compiler's options are chosen.
        kernel, axis = transpose(kernel, (1, 0)), 0
    batch = ((0,), (0,)) if groups > 1 else ((), ())
    shape = (groups, out.shape[dims.out_spec[0]], out.shape[dims.out_spec[1]] // groups)
    parts = []
    counts = [out.shape[a] for a in dims.out_spec[2:]]
    grouped = 0 if op.feature_groups == 1 else 1
    for position in itertools.product(*map(range, counts)):
        starts = [o * s for o, s in zip(position, op.strides, strict=True)]
        part = cut(image, spatial, starts, window, op.rhs_dilation)
        left, left_axis = _matrices(part, dims.lhs_spec, groups, grouped, terms)
        product = DotGeneral(((left_axis,), (axis,)), batch, op.precision, op.preferred)
        parts.append(reshape(product(left, kernel), shape))
    return assembled(op, parts, out)


def _matrices(
    x: Any, spec: tuple[int, ...], groups: int, grouped: int, terms: int
) -> tuple[Any, int]:
    """An operand as a matrix, one for each of several groups, and the axis of it to sum over.

    The axis that is kept is ``spec[0]``; the groups divide ``spec[grouped]``. What is summed are
    the rows where the axis that is kept comes last: nothing is moved.
    """
    kept, *summed = spec
    if groups > 1:
        x = split_axis(transpose(x, spec), grouped, groups)
        if grouped:
            x = move_axis(x, 1, 0)
        return reshape(x, (groups, x.size // groups // terms, terms)), 2
    if kept == x.ndim - 1:
        return reshape(transpose(x, (*summed, kept)), (terms, x.shape[kept])), 0
    return reshape(transpose(x, (kept, *summed)), (x.shape[kept], terms)), 1
