"""Choose the form that a convolution is lowered in, by its geometry, and say why.

``op`` is a ``ConvGeneralDilated``, whose lowering writes what is chosen here; reports and the
planner ask the same function. Decision 37 has the measurements.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.recorder import record_shared
from stretto._engine.core.types import ArrayType
from stretto._engine.kernels import NARROW, convolves, kernels, multiplies
from stretto._engine.ops.convolution import forms
from stretto._engine.ops.convolution.geometry import (
    MOST_GROUPS,
    by_group,
    features_last,
    group_of,
    with_features_last,
)


class Formulation(NamedTuple):
    """A form of a convolution, and why it is the one for this geometry."""

    name: str
    reason: str
    write: Callable[..., Any] | None
    """Writes ``(op, b, lhs, rhs, out)`` by a builder; None for StableHLO's ``convolution``."""
    fraction: float
    """Roughly the fraction of the best rate of multiply-adds that it reaches, for the planner."""
    laid_out: int = 0
    """The elements of windows that it lays out anew first."""
    run: int = 1
    """How many of them lie side by side before and after."""
    in_place: bool = False
    """Says whether kernels of ours read and write elements of arrays where they lie, in loops."""
    parts: int = 1
    """How many convolutions it is written out as."""


_WORTH = 1 << 11
"""The multiply-adds of a group, such as a member, from which a call of a kernel is worth its few
microseconds."""

_SHALLOW = 256
"""The terms of a sum up to which a gradient by the kernel is mostly writing, if it is large."""

_FEWER = 1 << 18
"""The tiles of two by two, times the square of features times outputs over their sum, from which a
gradient by kernels of three by three takes fewer products."""

_NARROW = 12
"""The fewest positions of a row for which a spread image is taken apart by residues, or a window of
one element with a step is not a product of what is cut out."""

_BROAD = 128
"""The features and outputs from which narrower rows of a spread image pay, and the features up to
which a window of one element with a step does."""

_FEWEST_TERMS = 16
"""The fewest terms of a sum: with fewer, writing the result is all that takes time."""


def suits_kernel(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether a kernel of ours takes the convolution and is as fast as any other form."""
    (_, _, *spatial), (_, features, *window) = op.dims[:2]
    if lhs.ndim not in (3, 4) or not lhs.size or op.precision is not None:
        return False
    if not convolves(lhs.dtype, rhs.dtype, out.dtype):
        return False
    row = spatial[0] if lhs.shape[spatial[-1]] == 1 else spatial[-1]
    if lhs.shape[row] > 1 and math.prod(lhs.shape[row + 1 :]) > 1:
        return False  # the elements of its rows do not lie side by side
    if any([s > 1 and d > 1 for s, d in zip(op.strides, op.lhs_dilation, strict=True)]):
        return False
    groups = op.feature_groups * op.batch_groups
    inputs = rhs.shape[features]
    elements = math.prod([rhs.shape[a] for a in window])
    spread = math.prod(op.lhs_dilation)
    if out.size // groups * inputs * elements < _WORTH * spread:
        return False
    if lanes_are_outputs(op, rhs.shape, out.shape):
        # A product comes out as the kernel lies, where that is most of the work.
        several = max([out.shape[a] for a in op.dims.out_spec[2:]]) > 1
        shallow = several and inputs * elements <= _SHALLOW and not _takes_fewer(op, lhs, rhs, out)
        return not (shallow and forms.suits_positions_together(op, lhs, rhs, out))
    if inputs == 1 and lhs.dtype in NARROW:
        return False  # making floats of all takes longer than the sums
    if forms.suits_scattered(op, lhs, rhs) or forms.suits_pointwise(op, lhs, rhs):
        return False  # products, and elements moved
    narrow = out.shape[op.dims.out_spec[-1]] < _NARROW * op.lhs_dilation[-1]
    if elements == 1 and max(op.strides) > 1 and (narrow or inputs > _BROAD):
        return False
    if spread > 1 and narrow and min(inputs, rhs.shape[op.dims.rhs_spec[0]] // groups) < _BROAD:
        return False  # each residue of positions has rows too short for what they cost
    return groups > 1 or inputs * elements >= _FEWEST_TERMS * spread


def _takes_fewer(op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> bool:
    """Say whether the kernel of a gradient by kernels of three by three takes fewer products.

    The bound is ``suits_winograd``'s in ``kernels/winograd.h``.
    """
    (n, *_), (o, i, *window) = op.dims[:2]
    if [out.shape[a] for a in op.dims.out_spec[2:]] != [3, 3] or out.dtype != np.float32:
        return False
    if {*op.strides, *op.lhs_dilation, *op.rhs_dilation} != {1}:
        return False
    batch = lhs.shape[n] // op.batch_groups
    outputs = rhs.shape[o] // (op.feature_groups * op.batch_groups)
    tiles = rhs.shape[i] * math.prod([(rhs.shape[a] + 1) // 2 for a in window])
    return tiles * (batch * outputs / (batch + outputs)) ** 2 >= _FEWER


def lanes_are_outputs(op: Any, kernel: Sequence[int], out: Sequence[int]) -> bool:
    """Say which way a kernel goes: windows larger than positions are those of a gradient by it."""
    elements = math.prod([kernel[a] for a in op.dims.rhs_spec[2:]])
    positions = math.prod([out[a] for a in op.dims.out_spec[2:]])
    return positions < elements and max(op.lhs_dilation) == 1


def formulation(
    op: Any, lhs: ArrayType, rhs: ArrayType, out: ArrayType, called: bool = True
) -> Formulation:
    """Return the form that ``op`` is lowered in for operands of these types.

    Unless kernels of ours may not be ``called``, or are turned off, they come first.

    Groups of several features are written out, and axes put in one order, features last. XLA's
    CPU backend computes a convolution without groups by matrix products, but one with groups
    element by element; inside a loop, also one with its axes in another order.
    """
    if not (lhs.size and rhs.size and out.size):
        return Formulation("zeros", "there is nothing to sum", _zeros, 1.0)
    ours = called and kernels is not None and config.kernels
    if ours and suits_kernel(op, lhs, rhs, out):
        reason = "its windows are multiplied where they lie, and nothing is laid out anew"
        # One output is 0.05 to 0.15 of the rate, 16 are 0.3, and 128 all but all.
        outputs = rhs.shape[op.dims.rhs_spec[0]] // (op.feature_groups * op.batch_groups)
        rate = (outputs + 2) / (outputs + 40)
        if not lanes_are_outputs(op, rhs.shape, out.shape):
            rate *= min(1.0, out.shape[op.dims.out_spec[-1]] / 16) ** 0.5  # rows of few lanes
        return Formulation("a kernel of our own", reason, None, rate, in_place=True)
    groups, inputs = max(op.feature_groups, op.batch_groups), rhs.shape[op.dims.rhs_spec[1]]
    outputs = rhs.shape[op.dims.rhs_spec[0]] // groups
    window = math.prod([rhs.shape[a] for a in op.dims.rhs_spec[2:]])
    products = max(0.01, min(0.5, 0.06 * (inputs - 1)) * outputs / (outputs + 16))
    in_place = ours and multiplies(lhs.dtype, rhs.dtype, out.dtype)  # if it is made of products
    if forms.suits_positions(op, lhs, rhs, out):
        reason = "few positions, each of which is one product of matrices"
        return Formulation("products by position", reason, _positions, 0.5, in_place=in_place)
    if forms.suits_shifted(op, lhs, rhs, out):
        reason = f"{groups} groups with few terms a sum, which XLA computes one product at a time"
        # Several inputs of a group side by side are read one by one.
        apart = inputs == 1 or op.dims.lhs_spec[1] != lhs.ndim - 1
        rate = 0.01 if op.batch_groups > 1 else 0.12 if apart else 0.05
        return Formulation("sum of shifted slices", reason, _shifted, rate)
    if forms.suits_scattered(op, lhs, rhs):
        reason = "each output is made of one element of the image, and the rest are zeros"
        return Formulation("elements in one product", reason, _scattered, 0.5, in_place=in_place)
    if forms.suits_elements(op, lhs, rhs, out):
        reason = "few output features, so products of elements are fewer than of windows"
        name = "elements, then sums over windows"
        return Formulation(name, reason, _elements, 0.3, in_place=in_place)
    why = forms.reason_for_windows(op, lhs, rhs, out)
    if why is not None:
        positions = out.size // out.shape[op.dims.out_spec[1]]
        run = inputs if op.dims.lhs_spec[1] == lhs.ndim - 1 else out.shape[op.dims.out_spec[-1]]
        laid_out = 0 if window == 1 else positions * window * inputs
        rate = 0.5 * min(1.0, outputs / 16)
        return Formulation("windows in one product", why, _windows, rate, laid_out, run, in_place)
    if forms.suits_planes(op, lhs, rhs, out):
        reason = "planes and features are one product, which XLA has not for volumes"
        return Formulation("planes of a volume", reason, _planes, min(0.45, 0.03 * inputs))
    if forms.suits_positions_together(op, lhs, rhs, out):
        reason = "few positions, and few examples or a large kernel, so one product is faster"
        return Formulation("positions in one product", reason, _positions, 0.5, in_place=in_place)
    if forms.suits_pointwise(op, lhs, rhs):
        reason = f"{groups} groups of windows of one element, which one batched product takes"
        return Formulation("a product for each group", reason, _pointwise, 0.5, in_place=in_place)
    if 1 < groups <= MOST_GROUPS and inputs > 1:
        reason = f"{groups} groups, each of which XLA computes by matrix products"
        each = formulation(*group_of(op, lhs, rhs, out), called)
        rate, laid_out = 0.8 * each.fraction, groups * each.laid_out
        return Formulation(
            "groups written out", reason, _by_group, rate, laid_out, each.run, parts=groups
        )
    return _of_xla(op, lhs, groups, inputs, window, products)


def _of_xla(
    op: Any, lhs: ArrayType, groups: int, inputs: int, window: int, products: float
) -> Formulation:
    """Choose StableHLO's ``convolution``, features last, for want of a better form."""
    if groups > 1:
        reason = f"{groups} groups are too many to write out"
        if inputs == 1:
            reason = f"{window} terms a sum are too many to write out"
        reason += ", and XLA computes them one product at a time: slow"
    elif lhs.kind in ("float", "complex"):
        reason = "no groups, so XLA uses matrix products where the kernel fits in the image"
    else:
        reason = "no groups, and integers, for which no other form is faster"
    laid_out = op.dims == features_last(lhs.ndim)
    write = None if laid_out else _features_last
    return Formulation("XLA's convolution", reason, write, products if groups == 1 else 0.006)


def _zeros(op: Any, b: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    return b.splat(0, out)


def _by_call(form: Callable[..., Any]) -> Callable[..., Any]:
    """Write a call of what a function of values, and of the type of the output, computes."""

    def write(op: Any, b: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
        fun = lambda lhs, rhs: [form(op, lhs, rhs, out)]
        program = record_shared(fun, (lhs.type, rhs.type), "convolution")
        # Apart: the compiler would do the sum again in each operation that reads its elements.
        return b.call(program, (lhs, rhs), apart=True)[0]

    return write


_shifted = _by_call(forms.of_shifted)
_elements = _by_call(forms.of_elements)


def _in_place(form: Callable[..., Any]) -> Callable[..., Any]:
    """Write what such a function computes in its place."""

    def write(op: Any, b: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
        return b.inline(lambda lhs, rhs: form(op, lhs, rhs, out), lhs, rhs)

    return write


_scattered = _in_place(forms.of_scattered)
_positions = _in_place(forms.of_positions)
_planes = _in_place(forms.as_planes)
_pointwise = _in_place(forms.of_pointwise)
_windows = _in_place(forms.of_windows)
_features_last = _in_place(with_features_last)


def _by_group(op: Any, b: Any, lhs: Any, rhs: Any, out: ArrayType) -> Any:
    return b.inline(lambda lhs, rhs: by_group(op, lhs, rhs), lhs, rhs)
