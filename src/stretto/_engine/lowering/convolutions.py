"""Convolutions by kernels of our own: whether one can be, and how its operands lie in memory.

A kernel sees a convolution of images in the plane, in groups, each axis with its stride in every
array (``kernels/convolution.h``). So layouts of kernels and results, groups of features or of the
batch, and reversed windows are strides, and nothing is moved for them; only the rows of the image
have to lie side by side.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.types import ArrayType
from stretto._engine.ops.convolution.formulation import lanes_are_outputs
from stretto._engine.ops.product_strides import AxisPairs, View

TARGET = "stretto_convolution"
"""The name of the kernel."""


def geometry(op: Any, lhs: View, rhs: View, out: View) -> tuple[int, ...] | None:
    """Return what is passed to the kernel; None if the image lies otherwise.

    Args:
        op: a ``ConvGeneralDilated``.
        lhs: how the image lies.
        rhs: how the kernel lies; its strides are negative along axes that are reversed.
        out: how the result lies.
    """
    (n, f, *spatial), (o, i, *window), (m, q, *positions) = op.dims
    groups = op.feature_groups * op.batch_groups
    along = list(range(len(spatial)))
    if len(along) == 2 and lhs.shape[spatial[1]] == 1:
        along.reverse()  # rows of one element: columns are as good
    spatial, window, positions = ([axes[a] for a in along] for axes in (spatial, window, positions))
    if lhs.strides[spatial[-1]] != 1 and lhs.shape[spatial[-1]] > 1:
        return None
    lone = 2 - len(along)
    sizes = [
        [1] * lone + [view.shape[axis] for axis in axes]
        for view, axes in ((lhs, spatial), (rhs, window), (out, positions))
    ]
    steps, gaps, spread = (
        [1] * lone + [values[a] for a in along]
        for values in (op.strides, op.rhs_dilation, op.lhs_dilation)
    )
    low = [0] * lone + [op.padding[a][0] for a in along]
    batch = lhs.shape[n] // op.batch_groups
    features, outputs = rhs.shape[i], rhs.shape[o] // groups
    # Of the features or of the batch, whichever are in groups, those of one lie together.
    of_features = op.feature_groups > 1
    group = features * lhs.strides[f] if of_features else batch * lhs.strides[n]
    numbers = [groups, batch, features, outputs]
    numbers += [size for pair in sizes for size in pair] + steps + gaps + low + spread
    numbers += [group, *_strides(lhs, n, f, spatial)]
    numbers += [outputs * rhs.strides[o], *_strides(rhs, o, i, window)]
    numbers += [outputs * out.strides[q], *_strides(out, m, q, positions)]
    numbers += [rhs.offset, int(lanes_are_outputs(op, rhs.shape, out.shape))]
    return tuple(numbers)


def as_product(op: Any, kernel: ArrayType) -> tuple[AxisPairs, AxisPairs, tuple[int, ...]] | None:
    """Return the axes of the product that a convolution is, or None.

    It is one where its windows are the elements of the image: the axes that are summed, those that
    are shared, and which axis of the product each axis of the result is.
    """
    (n, f, *spatial), (o, i, *window), out_spec = op.dims
    if any([kernel.shape[axis] != 1 for axis in window]) or op.feature_groups * op.batch_groups > 1:
        return None
    if {*op.strides, *op.lhs_dilation} != {1} or any([low or high for low, high in op.padding]):
        return None
    free = [a for a in range(kernel.ndim) if a != f] + [kernel.ndim + a for a in (o, *window)]
    outer = sorted(free[: kernel.ndim - 1]) + sorted(free[kernel.ndim - 1 :])
    named = [n, kernel.ndim + o, *spatial]
    order = [0] * kernel.ndim
    for axis, source in zip(out_spec, named, strict=True):
        order[axis] = outer.index(source)
    return ((f,), (i,)), ((), ()), (*order, *[outer.index(kernel.ndim + a) for a in window])


def _strides(view: View, first: int, second: int, spatial: Sequence[int]) -> list[int]:
    """Return the strides of the axes as a kernel has them; along a missing one, a row's length."""
    strides = [view.strides[axis] for axis in spatial]
    if len(strides) == 1:
        strides = [view.shape[spatial[0]] * strides[0], *strides]
    return [view.strides[first], view.strides[second], *strides]
