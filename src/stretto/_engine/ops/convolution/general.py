"""Convolution: windows of one array, each contracted with a kernel; and the functions for it.

One primitive of StableHLO's generality: any rank, layout, stride, dilation, padding and grouping.
Its derivative and both its transposes are convolutions again.

Along one spatial axis, with ``n`` inputs, ``k`` kernel elements and ``m`` outputs,

    out[o] = sum_j rhs[j] lhs[i]  over  i * lhs_dilation + low = o * stride + j * rhs_dilation.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer, integers, pairs_of
from stretto._engine.core.interpreter import Linear
from stretto._engine.core.primitive import Kernel
from stretto._engine.core.sizes import greater, is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.bilinear import (
    Bilinear,
    accumulated,
    accumulator,
    cotangent_and_known,
    precision_config,
    precision_name,
    promote_dtypes,
)
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto._engine.ops.convolution.formulation import formulation
from stretto._engine.ops.convolution.geometry import (
    ConvDimensionNumbers,
    Pairs,
    dilated,
    dimension_numbers_of,
    letters,
    merge,
    merge_inside,
    pads,
    split_axis,
    transposed_pad,
)
from stretto._engine.ops.layout import laid_out, move_axis, transpose
from stretto._engine.ops.shape import rev
from stretto._engine.ops.thresholds import (
    CONVOLUTION_FEATURES,
    CONVOLUTION_PATCHES,
    CONVOLUTION_PRODUCTS,
)


def convolve(op: Any, lhs: np.ndarray, rhs: np.ndarray, out_dtype: np.dtype) -> np.ndarray:
    """Return the convolution ``op``, added up in the accumulator of ``out_dtype``."""
    wide = accumulator(out_dtype)
    x = lhs.transpose(op.dims.lhs_spec).astype(wide, copy=False)  # batch, features, spatial...
    kernel = rhs.transpose(op.dims.rhs_spec).astype(wide, copy=False)  # output, input, spatial...
    view = _windows(_pad_array(x, op.padding, op.lhs_dilation), kernel, op.strides, op.rhs_dilation)
    n = len(op.strides)
    batch, features, *rest = view.shape
    out_spatial, window = rest[:n], rest[n:]
    groups = op.feature_groups * op.batch_groups
    # As [group, batch, out..., features, window...]: the group is outermost in batch or features.
    inner = features // op.feature_groups
    batch //= op.batch_groups
    split = view.reshape(
        (op.batch_groups, batch, op.feature_groups, inner, *out_spatial, *window)
    ).transpose((0, 2, 1, *range(4, 4 + n), 3, *range(4 + n, 4 + 2 * n)))
    depth = inner * math.prod(window)
    left = split.reshape((groups, batch * math.prod(out_spatial), depth))
    out_features = kernel.shape[0] // groups
    right = kernel.reshape((groups, out_features, depth)).transpose((0, 2, 1))
    product = np.matmul(left, right).reshape((groups, batch, *out_spatial, out_features))
    plain = product.transpose((1, 0, n + 2, *range(2, n + 2))).reshape(
        (batch, groups * out_features, *out_spatial)
    )
    return plain.transpose(np.argsort(op.dims.out_spec)).astype(out_dtype, copy=False)


def _pad_array(x: np.ndarray, padding: Any, dilation: tuple[int, ...]) -> np.ndarray:
    """Return zeros between, before and after; negative padding crops."""
    if not any(low or high for low, high in padding) and set(dilation) <= {1}:
        return x
    sizes, source, target = [], [], []
    for n, (low, high), d in zip(x.shape[2:], padding, dilation, strict=True):
        extent = (n - 1) * d + 1 if n else 0
        size = max(0, low + extent + high)
        # Element i goes to low + i d; those from `first` up to `last` fall within the size.
        first = max(0, -(low // d))
        last = max(first, min(n, (size - 1 - low) // d + 1))
        start = low + first * d if last > first else 0
        sizes.append(size)
        source.append(slice(first, last))
        target.append(slice(start, start + (last - first - 1) * d + 1 if last > first else 0, d))
    out = np.zeros((*x.shape[:2], *sizes), x.dtype)
    out[(slice(None), slice(None), *target)] = x[(slice(None), slice(None), *source)]
    return out


def _windows(
    x: np.ndarray, kernel: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]
) -> np.ndarray:
    """Return a view [batch, features, out..., window...] of what each output sums over."""
    x = np.ascontiguousarray(x)
    sizes, steps, window, gaps = [], [], [], []
    for n, k, s, d, stride in zip(
        x.shape[2:], kernel.shape[2:], strides, dilation, x.strides[2:], strict=True
    ):
        room = n - ((k - 1) * d + 1 if k else 0)
        sizes.append(room // s + 1 if room >= 0 else 0)
        steps.append(stride * s)
        window.append(k)
        gaps.append(stride * d)
    return np.lib.stride_tricks.as_strided(
        x, (*x.shape[:2], *sizes, *window), (*x.strides[:2], *steps, *gaps), writeable=False
    )


_WITH_KERNELS = {"bfloat16", "float16", "float32", "float64"}
"""The dtypes that GPUs have convolutions for; others are written with other operations."""


class ConvGeneralDilated(Bilinear):
    """Sums of products of a kernel with the windows of an array."""

    strides: tuple[int, ...]
    padding: Pairs
    lhs_dilation: tuple[int, ...]
    rhs_dilation: tuple[int, ...]
    dims: ConvDimensionNumbers
    feature_groups: int = 1
    batch_groups: int = 1
    precision: str | tuple[str, str] | None = None
    preferred: np.dtype | None = None
    kernel = Kernel.ONE

    def infer(self, lhs: ArrayType, rhs: ArrayType) -> ArrayType:
        """Size by the windows that fit; refuse features and groups that do not go together."""
        _check(self, lhs, rhs)
        (batch, _), (out_features, _) = (
            _sizes(lhs, self.dims.lhs_spec),
            _sizes(rhs, self.dims.rhs_spec),
        )
        shape = [0] * lhs.ndim
        spatial = _out_spatial(self, lhs, rhs)
        sizes = (batch // self.batch_groups, out_features, *spatial)
        for place, n in zip(self.dims.out_spec, sizes, strict=True):
            shape[place] = n
        weak = self.preferred is None and lhs.weak_type and rhs.weak_type
        return array_type(tuple(shape), self.preferred or lhs.dtype, weak)

    def reference(self, lhs: np.ndarray, rhs: np.ndarray) -> np.ndarray:
        """Return windows as a view, then one matrix product for each group."""
        return convolve(self, lhs, rhs, self.preferred or lhs.dtype)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile for many features, and where laying out windows would take too much memory."""
        (out,), rhs = self.out_types(types), types[1]
        outputs, inputs, *window = [rhs.shape[a] for a in self.dims.rhs_spec]
        groups = self.feature_groups * self.batch_groups
        patches = out.size // max(1, outputs) * groups * inputs * math.prod(window)
        if patches >= CONVOLUTION_PATCHES:
            return True
        wide = types[0].dtype.itemsize > 4 or min(inputs, outputs) < CONVOLUTION_FEATURES
        return not wide and self.work(types, (out,)) >= CONVOLUTION_PRODUCTS

    def work(self, types: Sequence[ArrayType], outs: Sequence[ArrayType]) -> float:
        rhs = types[1]
        return outs[0].size * rhs.size / max(1, rhs.shape[self.dims.rhs_spec[0]])

    def lower(self, b: Any, lhs: Any, rhs: Any) -> Any:
        """Return the form that ``formulation`` chooses, or StableHLO ``convolution``.

        GPUs have kernels of their own for floats. Sizes that vary, in a file, choose no form.
        """
        (out,) = b.outs
        if any([t.varies for t in (lhs.type, rhs.type, out)]):
            b.ints([n for pair in self.padding for n in pair])  # refuses what is not known
        elif (called := b.called_convolution(self, lhs, rhs)) is not None:
            return called
        elif b.platform == "cpu" or lhs.type.dtype.name not in _WITH_KERNELS:
            chosen = formulation(self, lhs.type, rhs.type, out, called=False)
            if chosen.write is not None:
                return chosen.write(self, b, lhs, rhs, out)
        pads = str([list(pair) for pair in self.padding]) if self.padding else ""
        dims = self.dims
        return b.convolution(
            lhs,
            rhs,
            f"window_strides = {b.ints(self.strides)}, "
            f"padding = dense<{pads}> : tensor<{len(self.padding)}x2xi64>, "
            f"lhs_dilation = {b.ints(self.lhs_dilation)}, "
            f"rhs_dilation = {b.ints(self.rhs_dilation)}, "
            f"dimension_numbers = #stablehlo.conv<{letters(dims.lhs_spec, 'bf')}x"
            f"{letters(dims.rhs_spec, 'oi')}->{letters(dims.out_spec, 'bf')}>, "
            f"feature_group_count = {self.feature_groups} : i64, "
            f"batch_group_count = {self.batch_groups} : i64"
            f"{precision_config(self.precision, b.platform)}",
        )

    def onnx(self, b: Any, lhs: Any, rhs: Any) -> Any:
        """Write ``Conv``; for dtypes without it, products for each place in the kernel."""
        return b.convolution(self, lhs, rhs, b.outs[0])

    def transpose(self, ct: Any, lhs: Any, rhs: Any) -> tuple[Any, Any]:
        """Return a convolution of ``ct`` with the reversed kernel, or of ``lhs`` with ``ct``."""
        linear, known = (lhs, rhs) if isinstance(lhs, Linear) else (rhs, lhs)
        if not ct.size:
            out = full(linear.shape, 0, linear.dtype)
        else:
            ct, known = cotangent_and_known(ct, known)
            rule = _transpose_lhs if isinstance(lhs, Linear) else _transpose_rhs
            out = rule(self, ct, known, linear.type)
        out = convert(out, linear.dtype, linear.type.weak_type)
        return (out, None) if isinstance(lhs, Linear) else (None, out)

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        (lhs, rhs), (axis_l, axis_r) = args, axes
        (batch, features, *_), (out_features, *_) = self.dims.lhs_spec, self.dims.rhs_spec
        out_batch, out_place, *_ = self.dims.out_spec
        groups = max(self.feature_groups, self.batch_groups)
        if axis_l is not None and axis_r is not None:
            # Groups (member, group), each with its own features (or batch) and output features.
            joint = dataclasses.replace(
                self,
                feature_groups=self.feature_groups * (size if self.batch_groups == 1 else 1),
                batch_groups=self.batch_groups * (size if self.batch_groups > 1 else 1),
            )
            into = features if self.batch_groups == 1 else batch
            out = joint(merge(lhs, axis_l, into), merge(rhs, axis_r, out_features))
            return split_axis(out, out_place, size), out_place
        if axis_l is not None:
            # Batch (group, member, example): the groups stay outermost.
            lhs = merge_inside(lhs, axis_l, batch, self.batch_groups)
            return split_axis(self(lhs, rhs), out_batch, size), out_batch
        assert axis_r is not None
        # Output features (group, member, feature).
        out = self(lhs, merge_inside(rhs, axis_r, out_features, groups))
        if groups == 1:
            return split_axis(out, out_place, size), out_place
        out = split_axis(split_axis(out, out_place, groups), out_place + 1, size)
        out = move_axis(out, out_place + 1, out_place)  # member, group, feature
        return merge(out, out_place + 1, out_place + 1), out_place

    def padded(self, at: Any, lhs: Any, rhs: Any) -> Any:
        """Padding is that of the convolution, zeros, and counts as 0 where it is summed over."""
        (one, other), (out,), dims = at.types, at.outs, self.dims
        lhs = at.filled(lhs, one, 0, dims.lhs_spec[1:])
        rhs = at.filled(rhs, other, 0, dims.rhs_spec[1:])
        lhs = _in_groups(at, lhs, one, dims.lhs_spec[1], self.feature_groups)
        lhs = _in_groups(at, lhs, one, dims.lhs_spec[0], self.batch_groups)
        groups = self.feature_groups * self.batch_groups
        rhs = _in_groups(at, rhs, other, dims.rhs_spec[0], groups)
        op = self
        if any([is_size(low) for low, _ in self.padding]):
            op, lhs = _padded_before(at, self, lhs, one)
        op, padding = at.static(op), []
        for n, k, m, s, (low, high), ld, rd in _along(op, lhs.type, rhs.type, at.carrier(out)):
            # the kernel may have more padding than the array has
            reach = (m - 1) * s + dilated(k, rd) - low - dilated(n, ld)
            padding.append((low, max(high, reach)))
        result = dataclasses.replace(op, padding=tuple(padding))(lhs, rhs)
        return _out_of_groups(at, result, out, dims.out_spec[1], groups)


def _padded_before(
    at: Any, op: ConvGeneralDilated, lhs: Any, type: ArrayType
) -> tuple[ConvGeneralDilated, Any]:
    """Return the convolution and its image, which has the padding in front where that varies."""
    config, shape = [(0, 0, 0)] * type.ndim, list(type.shape)
    padding, spread = list(op.padding), list(op.lhs_dilation)
    for k, axis in enumerate(op.dims.lhs_spec[2:]):
        low, high = padding[k]
        if is_size(low):
            config[axis] = (low, 0, spread[k] - 1)
            shape[axis] = low + dilated(shape[axis], spread[k])
            padding[k], spread[k] = (0, high), 1
    lhs = at.spread(lhs, full((), 0, lhs.dtype), config, shape)
    return dataclasses.replace(op, padding=tuple(padding), lhs_dilation=tuple(spread)), lhs


def _in_groups(at: Any, x: Any, type: ArrayType, axis: int, groups: Any) -> Any:
    """Return the carrier with the elements of each group followed by their own padding, zeros."""
    each = type.shape[axis] // groups
    if not is_size(each) or (groups.__class__ is int and groups == 1):
        return x
    parts = type.with_shape((*type.shape[:axis], groups, each, *type.shape[axis + 1 :]))
    return merge(at.filled(at.taken(x, type.shape, parts.shape), parts, 0), axis, axis)


def _out_of_groups(at: Any, x: Any, type: ArrayType, axis: int, groups: Any) -> Any:
    """Return the elements of all groups, and then all padding; what ``_in_groups`` is undone by."""
    each = type.shape[axis] // groups
    if not is_size(each) or (groups.__class__ is int and groups == 1):
        return at.fit(x, type)
    parts = type.with_shape((*type.shape[:axis], groups, each, *type.shape[axis + 1 :]))
    return at.taken(at.fit(split_axis(x, axis, at.bound(groups)), parts), parts.shape, type.shape)


def _transpose_lhs(op: ConvGeneralDilated, ct: Any, rhs: Any, lhs: ArrayType) -> Any:
    # lhs'[i] = sum ct[o] rhs[j] over  o * stride = i * lhs_dilation + j' * rhs_dilation - low',
    # where j' = k-1-j counts the kernel from its end, and low' = (k-1) * rhs_dilation - low. So ct
    # is dilated by the stride, windows step by lhs_dilation, and `high'` lets n of them fit.
    # Features: lhs'[n, (g, i)] = sum_o ct[n, (g, o)] rhs[(g, o), i], a kernel [(g, i), o].
    # With batch groups: lhs'[(g, n), i] = sum_o ct[n, (g, o)] rhs[(g, o), i]: the same kernel with
    # feature groups gives [n, (g, i)], and g then moves to the batch.
    dims = op.dims
    (batch, features, *_), (o, i, *spatial_r) = dims.lhs_spec, dims.rhs_spec
    groups = max(op.feature_groups, op.batch_groups)
    kernel = rev(rhs, spatial_r)
    if groups > 1:
        kernel = split_axis(kernel, o, groups)
        kernel = merge(kernel, o, i)
    padding = []
    for n, k, m, s, (low, _), ld, rd in _along(op, lhs, rhs.type, ct.type):
        before = dilated(k, rd) - 1 - low
        padding.append((before, dilated(n, ld) + dilated(k, rd) - 1 - dilated(m, s) - before))
    back = ConvGeneralDilated(
        op.lhs_dilation,
        tuple(padding),
        op.strides,
        op.rhs_dilation,
        ConvDimensionNumbers(dims.out_spec, (i, o, *spatial_r), dims.lhs_spec),
        groups,
        1,
        op.precision,
    )
    out = back(ct, kernel)
    if op.batch_groups > 1:
        out = merge(split_axis(out, features, groups), features, batch)
    return out


def _transpose_rhs(op: ConvGeneralDilated, ct: Any, lhs: Any, rhs: ArrayType) -> Any:
    # rhs'[j] = sum ct[o] lhs[i] over  i * lhs_dilation + low = j * rhs_dilation + o * stride:
    # ct is the kernel, dilated by the stride, and windows step by rhs_dilation; `high'` lets k fit.
    # The sum over the batch makes it the input feature, and lhs's features the batch. With feature
    # groups rhs'[(g, o), i] = sum_n lhs[n, (g, i)] ct[n, (g, o)] splits that batch: batch groups.
    # With batch groups rhs'[(g, o), i] = sum_n lhs[(g, n), i] ct[n, (g, o)]: feature groups.
    # If lhs is spread out more than ct, as in a transposed convolution, ct is the image instead,
    # with low' = (k-1) * rhs_dilation - low, and what comes of it is reversed.
    dims = op.dims
    (batch, features, *spatial_l), (o, i, *spatial_r) = dims.lhs_spec, dims.rhs_spec
    out_batch, out_features, *spatial_o = dims.out_spec
    padding = []
    if math.prod(op.lhs_dilation) > math.prod(op.strides) and op.feature_groups == op.batch_groups:
        for n, k, m, s, (low, _), ld, rd in _along(op, lhs.type, rhs, ct.type):
            before = dilated(k, rd) - 1 - low
            padding.append((before, dilated(n, ld) + dilated(k, rd) - 1 - dilated(m, s) - before))
        back = ConvGeneralDilated(
            op.rhs_dilation,
            tuple(padding),
            op.strides,
            op.lhs_dilation,
            ConvDimensionNumbers(
                (out_features, out_batch, *spatial_o),
                (features, batch, *spatial_l),
                (o, i, *spatial_r),
            ),
            precision=op.precision,
        )
        return rev(back(ct, lhs), spatial_r)
    for n, k, m, s, (low, _), ld, rd in _along(op, lhs.type, rhs, ct.type):
        padding.append((low, dilated(k, rd) + dilated(m, s) - 1 - dilated(n, ld) - low))
    back = ConvGeneralDilated(
        op.rhs_dilation,
        tuple(padding),
        op.lhs_dilation,
        op.strides,
        ConvDimensionNumbers(
            (features, batch, *spatial_l), (out_features, out_batch, *spatial_o), (i, o, *spatial_r)
        ),
        op.batch_groups,
        op.feature_groups,
        op.precision,
    )
    return back(lhs, ct)


# Sizes


def _sizes(type: ArrayType, spec: tuple[int, ...]) -> tuple[int, int]:
    return type.shape[spec[0]], type.shape[spec[1]]


def _along(op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType, out: ArrayType) -> Any:
    """Return for each spatial axis: sizes of input, kernel, output; stride, padding, dilations."""
    return zip(
        [lhs.shape[a] for a in op.dims.lhs_spec[2:]],
        [rhs.shape[a] for a in op.dims.rhs_spec[2:]],
        [out.shape[a] for a in op.dims.out_spec[2:]],
        op.strides,
        op.padding,
        op.lhs_dilation,
        op.rhs_dilation,
        strict=True,
    )


def _out_spatial(op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType) -> list[int]:
    out = []
    for a, r, s, (low, high), ld, rd in zip(
        op.dims.lhs_spec[2:],
        op.dims.rhs_spec[2:],
        op.strides,
        op.padding,
        op.lhs_dilation,
        op.rhs_dilation,
        strict=True,
    ):
        room = low + dilated(lhs.shape[a], ld) + high - dilated(rhs.shape[r], rd)
        out.append(greater(room // s + 1, 0))
    return out


def _check(
    op: ConvGeneralDilated, lhs: ArrayType, rhs: ArrayType, caller: str = "conv_general_dilated"
) -> None:
    if lhs.dtype != rhs.dtype:
        raise TypeError(f"{caller}: operands must have one dtype, got {lhs} and {rhs}")
    if kind_of(lhs.dtype) == "bool":
        raise TypeError(f"{caller}: expected numbers, got {lhs}; convert it with .astype(...)")
    if lhs.ndim != rhs.ndim or lhs.ndim < 2:
        raise ValueError(
            f"{caller}: operands must have one rank, 2 or more, got lhs: {lhs} and rhs: {rhs}"
        )
    n = lhs.ndim - 2
    for name in ("strides", "padding", "lhs_dilation", "rhs_dilation"):
        value = getattr(op, name)
        if len(value) != n:
            raise ValueError(f"{caller}: {name} {value} must have {n} entries for lhs: {lhs}")
    if any(s < 1 for s in (*op.strides, *op.lhs_dilation, *op.rhs_dilation)):
        raise ValueError(
            f"{caller}: strides {op.strides} and dilations {op.lhs_dilation}, {op.rhs_dilation} "
            f"must be positive"
        )
    (batch, features), (out_features, in_features) = (
        _sizes(lhs, op.dims.lhs_spec),
        _sizes(rhs, op.dims.rhs_spec),
    )
    g, b = op.feature_groups, op.batch_groups
    if g < 1 or b < 1 or (g > 1 and b > 1):
        raise ValueError(
            f"{caller}: group counts must be positive and one of them 1, got feature_group_count "
            f"{g} and batch_group_count {b}"
        )
    if features != in_features * g:
        raise ValueError(
            f"{caller}: lhs: {lhs} has {features} features (axis {op.dims.lhs_spec[1]}), but rhs: "
            f"{rhs} takes {in_features} (axis {op.dims.rhs_spec[1]}) in each of {g} groups"
        )
    if out_features % (g * b) or batch % b:
        raise ValueError(
            f"{caller}: {g * b} groups do not divide the {out_features} output features of rhs: "
            f"{rhs} or the batch of lhs: {lhs}"
        )


# Functions


def ones_or(values: Sequence[int] | None, n: int, caller: str, argument: str) -> tuple[int, ...]:
    """Return the numbers, or ``n`` ones for None; raises ``ValueError`` for numbers below 1."""
    return (1,) * n if values is None else integers(values, caller, argument, 1)


def conv_general_dilated(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Convolve an array with a kernel, which is not reversed.

    Args:
        lhs: the input.
        rhs: the kernel; both are promoted to one dtype.
        window_strides: the steps of the window along each spatial axis.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        lhs_dilation: the spacing of the inputs along each spatial axis, with zeros between
            (fractional strides); by default 1.
        rhs_dilation: the spacing of the kernel's elements; by default 1.
        dimension_numbers: the layouts, as in ``conv_dimension_numbers``; by default ``NC...`` and
            ``OI...``.
        feature_group_count: how many groups the features are divided into.
        batch_group_count: how many groups the batch is divided into.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        out_sharding: where the result is to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The output, laid out by ``dimension_numbers``.

    Raises:
        TypeError: a number of groups is not an integer.
        ValueError: features, groups or numbers of entries do not fit, or padding is named together
            with ``lhs_dilation``; or the result cannot be split as ``out_sharding`` says.

    Source: StableHLO, ``convolution``.

    >>> import stretto as st
    >>> image, kernel = st.numpy.ones((1, 3, 8, 8)), st.numpy.ones((16, 3, 3, 3))
    >>> st.lax.conv_general_dilated(image, kernel, (2, 2), "SAME").shape
    (1, 16, 4, 4)
    """
    result = convolved(
        "conv_general_dilated",
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        dimension_numbers,
        feature_group_count,
        batch_group_count,
        precision,
        preferred_element_type,
    )
    return laid_out(result, out_sharding, "conv_general_dilated")


def convolved(
    caller: str,
    lhs: Any,
    rhs: Any,
    window_strides: Any,
    padding: Any,
    lhs_dilation: Any = None,
    rhs_dilation: Any = None,
    dimension_numbers: Any = None,
    feature_group_count: int = 1,
    batch_group_count: int = 1,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Return what ``conv_general_dilated`` gives; errors name the caller."""
    left, right = promote_dtypes(caller, lhs, rhs)
    dims = dimension_numbers_of(caller, left.shape, right.shape, dimension_numbers)
    n = left.ndim - 2
    strides = ones_or(window_strides, n, caller, "window_strides")
    rhs_dilation = ones_or(rhs_dilation, n, caller, "rhs_dilation")
    if len(strides) != n or len(rhs_dilation) != n:
        raise ValueError(
            f"{caller}: window_strides {strides} and rhs_dilation {rhs_dilation} must have {n} "
            f"entries for lhs: {left.type}"
        )
    lhs_dilation = ones_or(lhs_dilation, n, caller, "lhs_dilation")
    if isinstance(padding, str) and any(d != 1 for d in lhs_dilation):
        raise ValueError(
            f"{caller}: padding {padding!r} is not defined with lhs_dilation {lhs_dilation}: give "
            f"(low, high) pairs, or use conv_transpose"
        )
    extents = [
        dilated(right.shape[a], d) for a, d in zip(dims.rhs_spec[2:], rhs_dilation, strict=True)
    ]
    inputs = [left.shape[a] for a in dims.lhs_spec[2:]]
    pairs = pads(padding, inputs, extents, strides, caller)
    for size, dilation, pair in zip(inputs, lhs_dilation, pairs, strict=False):
        if dilated(size, dilation) + sum(pair) < 0:
            raise ValueError(
                f"{caller}: padding {pair} takes away more than the {size} elements that a spatial "
                f"axis of lhs has: {left.type}"
            )
    op = ConvGeneralDilated(
        strides,
        pairs,
        lhs_dilation,
        rhs_dilation,
        dims,
        integer(feature_group_count, caller, "feature_group_count"),
        integer(batch_group_count, caller, "batch_group_count"),
        precision_name(precision, caller),
    )
    if caller != "conv_general_dilated":  # the name that the primitive's own errors give
        _check(op, left.type, right.type, caller)
    return accumulated(
        caller,
        left,
        right,
        preferred_element_type,
        lambda x, y, dtype: dataclasses.replace(op, preferred=dtype)(x, y),
    )


def conv(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve an array, laid out as ``NC...``, with a kernel laid out as ``OI...``.

    Args:
        lhs: the input.
        rhs: the kernel.
        window_strides: the steps of the window along each spatial axis.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        The output, laid out as ``NC...``.

    Raises:
        ValueError: shapes or numbers of entries do not fit.

    >>> import stretto as st
    >>> x, kernel = st.numpy.ones((1, 3, 8, 8)), st.numpy.ones((16, 3, 3, 3))
    >>> st.lax.conv(x, kernel, (1, 1), "SAME").shape
    (1, 16, 8, 8)
    """
    return convolved(
        "conv",
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Convolve an array (``NC...``) with a kernel (``OI...``), with dilations.

    Args:
        lhs: the input.
        rhs: the kernel.
        window_strides: the steps of the window along each spatial axis.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        lhs_dilation: the spacing of the inputs along each spatial axis; None for 1.
        rhs_dilation: the spacing of the kernel's elements; None for 1.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.

    Returns:
        The output, laid out as ``NC...``.

    Raises:
        ValueError: shapes or numbers of entries do not fit, or padding by name is asked for with
            ``lhs_dilation``.

    >>> import stretto as st
    >>> x, kernel = st.numpy.ones((1, 3, 8, 8)), st.numpy.ones((16, 3, 3, 3))
    >>> st.lax.conv_with_general_padding(x, kernel, (1, 1), [(0, 0), (0, 0)], None, (2, 2)).shape
    (1, 16, 4, 4)
    """
    return convolved(
        "conv_with_general_padding",
        lhs,
        rhs,
        window_strides,
        padding,
        lhs_dilation,
        rhs_dilation,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


_CHANNELS_LAST = {n: (f"N{s}C", f"{s}IO", f"N{s}C") for n, s in enumerate(("", "H", "HW", "HWD"))}


def conv_transpose(
    lhs: ArrayLike,
    rhs: ArrayLike,
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: DTypeLike | None = None,
    use_consistent_padding: bool = False,
) -> Array:
    """Convolve with fractional strides: each input gives ``strides`` outputs.

    Args:
        lhs: the input, by default ``N...C``.
        rhs: the kernel, by default ``...IO``.
        strides: how many outputs each input gives along each spatial axis.
        padding: ``"SAME"`` gives ``n * stride`` outputs, ``"VALID"`` as many as a convolution would
            take to ``n``; or pairs (low, high) that pad the dilated input.
        rhs_dilation: the spacing of the kernel's elements; by default 1.
        dimension_numbers: the layouts, as in ``conv_dimension_numbers``.
        transpose_kernel: whether to reverse the kernel in space and swap its features, so that this
            is the gradient of the convolution with it.
        precision: as in ``dot_general``.
        preferred_element_type: the dtype of the result; by default that of the operands.
        use_consistent_padding: whether pairs are those of the convolution that goes the other way,
            which crops.

    Returns:
        The output.

    Raises:
        TypeError: a stride, or a number in ``padding``, is not an integer.
        ValueError: shapes or numbers of entries do not fit, or there are no default layouts for so
            many spatial axes.

    >>> import stretto as st
    >>> x, kernel = st.numpy.ones((1, 4, 4, 3)), st.numpy.ones((3, 3, 3, 8))
    >>> st.lax.conv_transpose(x, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 8)
    """
    caller = "conv_transpose"
    x, y = promote_dtypes(caller, lhs, rhs)
    n = x.ndim - 2
    if dimension_numbers is None:
        if n not in _CHANNELS_LAST:
            raise ValueError(f"{caller}: give dimension_numbers for lhs: {x.type}")
        dimension_numbers = _CHANNELS_LAST[n]
    dims = dimension_numbers_of(caller, x.shape, y.shape, dimension_numbers)
    strides = integers(strides, caller, "strides", 1)
    rhs_dilation = ones_or(rhs_dilation, n, caller, "rhs_dilation")
    pairs = None if isinstance(padding, str) else pairs_of(padding, caller, "padding")
    for name, values in (("strides", strides), ("rhs_dilation", rhs_dilation), ("padding", pairs)):
        if values is not None and len(values) != n:
            raise ValueError(f"{caller}: {name} {values} must have {n} entries for lhs: {x.type}")
    if isinstance(padding, str):
        padding = [
            transposed_pad(dilated(y.shape[a], d), s, padding.upper())
            for a, d, s in zip(dims.rhs_spec[2:], rhs_dilation, strides, strict=True)
        ]
    elif pairs and use_consistent_padding:
        extents = [
            dilated(y.shape[a], d) for a, d in zip(dims.rhs_spec[2:], rhs_dilation, strict=True)
        ]
        padding = [
            (k - 1 - low, k - 1 - high) for k, (low, high) in zip(extents, pairs, strict=True)
        ]
    if transpose_kernel:
        o, i, *spatial = dims.rhs_spec
        order = list(range(y.ndim))
        order[o], order[i] = i, o
        y = transpose(rev(y, spatial), order)
    return convolved(
        caller,
        x,
        y,
        (1,) * n,
        padding,
        strides,
        rhs_dilation,
        dims,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
