"""Windows of an array laid out, kernels that change with the place, and the resulting shapes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.comparison import full
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.convert import convert_element_type
from stretto._engine.ops.convolution.general import ones_or
from stretto._engine.ops.convolution.geometry import (
    ConvDimensionNumbers,
    conv_dimension_numbers,
    dilated,
    dimension_numbers_of,
    pads,
    transposed_pad,
)
from stretto._engine.ops.layout import move_axis, reshape, transpose
from stretto._engine.ops.reducing.window import AxisWindow, patches

if TYPE_CHECKING:
    from stretto.lax.products import PrecisionLike

__all__ = ["ConvGeneralDilatedDimensionNumbers", "conv_general_dilated_local",
           "conv_general_dilated_patches", "conv_general_permutations",
           "conv_general_shape_tuple", "conv_shape_tuple",
           "conv_transpose_shape_tuple", "padtype_to_pads",
           "reduce_window_shape_tuple"]  # fmt: skip

ConvGeneralDilatedDimensionNumbers: TypeAlias = ConvDimensionNumbers | tuple[str, str, str] | None
"""The forms of ``dimension_numbers`` in convolutions."""


def _laid_out(
    caller: str,
    x: Array,
    dims: ConvDimensionNumbers,
    filter_shape: Sequence[int],
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
) -> Array:
    """Return the windows: [batch, features times the window's elements, positions...]."""
    n = x.ndim - 2
    x = transpose(x, dims.lhs_spec)
    sizes = integers(filter_shape, caller, "filter_shape", 1)
    steps = ones_or(strides, n, caller, "window_strides")
    bases = ones_or(lhs_dilation, n, caller, "lhs_dilation")
    gaps = ones_or(rhs_dilation, n, caller, "rhs_dilation")
    if not len(sizes) == len(steps) == len(bases) == len(gaps) == n:
        raise ValueError(
            f"{caller}: filter_shape, window_strides and dilations must have {n} entries for lhs: "
            f"{x.type}; got {sizes}, {steps}, {bases} and {gaps}"
        )
    if isinstance(padding, str) and any(d != 1 for d in bases):
        raise ValueError(
            f"{caller}: padding {padding!r} is not defined with lhs_dilation {bases}: give (low, "
            f"high) pairs"
        )
    extents = [dilated(k, d) for k, d in zip(sizes, gaps, strict=True)]
    ends = pads(padding, x.shape[2:], extents, steps, caller)
    zero = full((), 0, x.dtype)
    columns = zip(sizes, steps, ends, bases, gaps, strict=True)
    # Each axis' windows get their elements on a new first axis, the last spatial axis' outermost.
    for d, (k, s, (low, high), base, gap) in enumerate(columns):
        x = patches(x, 2 + 2 * d, AxisWindow(k, s, low, high, base, gap), zero)
        x = move_axis(x, 0, 2 + d)  # [batch, features, elements..., positions..., rest...]
    batch, features = x.shape[:2]
    return reshape(x, (batch, features * math.prod(sizes), *x.shape[2 + n :]))


def conv_general_dilated_patches(
    lhs: ArrayLike,
    filter_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Lay out along features the windows that a convolution would see.

    Args:
        lhs: the input.
        filter_shape: the sizes of the window along the spatial axes.
        window_strides: the steps of the window along each spatial axis.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        lhs_dilation: the spacing of the inputs; by default 1.
        rhs_dilation: the spacing of the window's elements; by default 1.
        dimension_numbers: the layouts, as in ``conv_dimension_numbers``; by default ``NC...`` and
            ``OI...``.
        precision: has no effect, since elements are copied.
        preferred_element_type: the dtype of the result; by default that of ``lhs``.

    Returns:
        The windows: for each input feature, its window's elements in row-major order.

    Raises:
        TypeError: a number in ``filter_shape`` is not an integer.
        ValueError: numbers of entries do not fit.

    >>> import stretto as st
    >>> x = st.numpy.reshape(st.numpy.arange(3.0), (1, 1, 3))
    >>> st.lax.conv_general_dilated_patches(x, (2,), (1,), "VALID")
    Array([[[0., 1.],
            [1., 2.]]], dtype=float32)
    """
    caller = "conv_general_dilated_patches"
    x = as_value(lhs, caller, "lhs")
    dims = dimension_numbers_of(caller, x.shape, (1,) * x.ndim, dimension_numbers)
    out = _laid_out(
        caller, x, dims, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation
    )
    place = sorted(range(out.ndim), key=dims.out_spec.__getitem__)
    out = transpose(out, place)
    if preferred_element_type is None:
        return out
    return convert_element_type(out, preferred_element_type)


@described_like(conv_general_dilated_patches)
def conv_general_dilated_local(
    lhs: ArrayLike,
    rhs: ArrayLike,
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    filter_shape: Sequence[int],
    lhs_dilation: Sequence[int] | None = None,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: ConvGeneralDilatedDimensionNumbers = None,
    precision: PrecisionLike = None,
) -> Array:
    """Convolve with another kernel at every output position.

    Args:
        rhs: the kernels, laid out as the kernel's axes in ``dimension_numbers``: output features,
            input features times window elements (in the order of ``conv_general_dilated_patches``),
            and the output's positions.
        precision: as in ``dot_general``.

    Returns:
        The output.

    Raises:
        TypeError: a number in ``filter_shape`` is not an integer.
        ValueError: shapes do not fit.

    >>> import stretto as st
    >>> x, kernels = st.numpy.ones((1, 1, 3)), st.numpy.array([[[1.0, 10.0], [2.0, 20.0]]])
    >>> st.lax.conv_general_dilated_local(x, kernels, (1,), "VALID", (2,))
    Array([[[ 3., 30.]]], dtype=float32)
    """
    caller = "conv_general_dilated_local"
    x, y = promote_dtypes(caller, lhs, rhs)
    dims = dimension_numbers_of(caller, x.shape, y.shape, dimension_numbers)
    windows = _laid_out(
        caller, x, dims, filter_shape, window_strides, padding, lhs_dilation, rhs_dilation
    )
    kernels = transpose(y, dims.rhs_spec)
    if kernels.shape[1:] != windows.shape[1:]:
        raise ValueError(
            f"{caller}: rhs must have {windows.shape[1]} features in and positions "
            f"{windows.shape[2:]}, in the order of dimension_numbers; got {kernels.shape[1]} and "
            f"{kernels.shape[2:]} of {y.type}"
        )
    positions = tuple(range(2, windows.ndim))
    numbers = (((1,), (1,)), (positions, positions))
    out = dot_general(windows, kernels, numbers, precision)  # [positions..., batch, features]
    n = len(positions)
    out = transpose(out, (n, n + 1, *range(n)))
    return transpose(out, sorted(range(out.ndim), key=dims.out_spec.__getitem__))


# Shapes


def padtype_to_pads(
    in_shape: Sequence[int],
    window_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str,
) -> list[tuple[int, int]]:
    """Say which pairs (low, high) padding by name stands for.

    Args:
        in_shape: the sizes of the input's spatial axes.
        window_shape: those of the window.
        window_strides: the steps of the window.
        padding: ``"SAME"``, ``"SAME_LOWER"`` or ``"VALID"``.

    Returns:
        A pair for each axis.

    Raises:
        ValueError: there is no padding of that name.

    >>> import stretto as st
    >>> st.lax.padtype_to_pads((5, 6), (2, 3), (2, 2), "SAME")
    [(0, 1), (0, 1)]
    """
    sizes, extents, strides = (
        tuple(map(int, np.asarray(s))) for s in (in_shape, window_shape, window_strides)
    )
    return list(pads(padding, sizes, extents, strides, "padtype_to_pads"))


def conv_general_permutations(
    dimension_numbers: tuple[str, str, str],
) -> tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...]]:
    """Say which axes three strings name, each in the order of ``ConvDimensionNumbers``.

    Args:
        dimension_numbers: three strings, for input, kernel and output.

    Returns:
        The axes of input, kernel and output.

    Raises:
        ValueError: the strings do not fit each other.

    >>> import stretto as st
    >>> st.lax.conv_general_permutations(("NHWC", "HWIO", "NCHW"))
    ((0, 3, 1, 2), (3, 2, 0, 1), (0, 1, 2, 3))
    """
    lhs, rhs = ((1,) * len(spec) for spec in dimension_numbers[:2])
    dims = conv_dimension_numbers(lhs, rhs, dimension_numbers)
    return dims.lhs_spec, dims.rhs_spec, dims.out_spec


def conv_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    strides: Sequence[int],
    pads: str | Sequence[tuple[int, int]],
    batch_group_count: int = 1,
) -> tuple[int, ...]:
    """Compute the shape of the convolution of ``NC...`` with ``OI...``.

    Args:
        lhs_shape: the shape of the input.
        rhs_shape: the shape of the kernel.
        strides: the steps of the window.
        pads: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        batch_group_count: how many groups the batch is divided into.

    Returns:
        The shape of the output.

    Raises:
        ValueError: numbers of entries do not fit.

    >>> import stretto as st
    >>> st.lax.conv_shape_tuple((1, 3, 8, 8), (4, 3, 3, 3), (2, 2), [(1, 1), (1, 1)])
    (1, 4, 4, 4)
    """
    sizes = _positions("conv_shape_tuple", lhs_shape[2:], rhs_shape[2:], strides, pads)
    return (lhs_shape[0] // batch_group_count, rhs_shape[0], *sizes)


def _positions(
    caller: str,
    sizes: Sequence[int],
    windows: Sequence[int],
    strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
) -> tuple[int, ...]:
    ends = pads(padding, sizes, windows, strides, caller)
    columns = zip(sizes, windows, strides, ends, strict=True)
    return tuple(AxisWindow(k, s, low, high).count(n) for n, k, s, (low, high) in columns)


def conv_general_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: tuple[str, str, str],
) -> tuple[int, ...]:
    """Compute the shape of the convolution of arrays laid out by ``dimension_numbers``.

    Args:
        lhs_shape: the shape of the input.
        rhs_shape: the shape of the kernel.
        window_strides: the steps of the window.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each spatial
            axis.
        dimension_numbers: three strings, for input, kernel and output.

    Returns:
        The shape of the output.

    Raises:
        ValueError: numbers of entries or strings do not fit.

    >>> import stretto as st
    >>> names = ("NHWC", "HWIO", "NCHW")
    >>> st.lax.conv_general_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", names)
    (1, 4, 4, 4)
    """
    dims = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    lhs = [lhs_shape[d] for d in dims.lhs_spec]
    rhs = [rhs_shape[d] for d in dims.rhs_spec]
    return _order_sizes(dims, conv_shape_tuple(lhs, rhs, window_strides, padding))


def _order_sizes(dims: ConvDimensionNumbers, sizes: Sequence[int]) -> tuple[int, ...]:
    return tuple(sizes[dims.out_spec.index(d)] for d in range(len(sizes)))


@described_like(conv_general_shape_tuple)
def conv_transpose_shape_tuple(
    lhs_shape: Sequence[int],
    rhs_shape: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    dimension_numbers: tuple[str, str, str],
) -> tuple[int, ...]:
    """Compute the shape of ``conv_transpose`` of arrays laid out by ``dimension_numbers``.

    Args:
        window_strides: how many outputs each input gives.
        padding: ``"SAME"``, ``"VALID"``, or a pair (low, high) for each spatial axis.

    >>> import stretto as st
    >>> names = ("NHWC", "HWIO", "NCHW")
    >>> st.lax.conv_transpose_shape_tuple((1, 8, 8, 3), (3, 3, 3, 4), (2, 2), "SAME", names)
    (1, 4, 16, 16)
    """
    dims = conv_dimension_numbers(lhs_shape, rhs_shape, dimension_numbers)
    kernel = [rhs_shape[d] for d in dims.rhs_spec]
    windows = zip(kernel[2:], window_strides, strict=True)
    ends = (
        [transposed_pad(k, s, padding.upper()) for k, s in windows]
        if isinstance(padding, str)
        else padding
    )
    spread = [
        dilated(lhs_shape[d], s) for d, s in zip(dims.lhs_spec[2:], window_strides, strict=True)
    ]
    sizes = _positions("conv_transpose_shape_tuple", spread, kernel[2:], (1,) * len(spread), ends)
    return _order_sizes(dims, (lhs_shape[dims.lhs_spec[0]], kernel[0], *sizes))


def reduce_window_shape_tuple(
    operand_shape: Sequence[int],
    window_dimensions: Sequence[int],
    window_strides: Sequence[int],
    padding: str | Sequence[tuple[int, int]],
    base_dilation: Sequence[int] | None = None,
    window_dilation: Sequence[int] | None = None,
) -> tuple[int, ...]:
    """Compute the shape of ``reduce_window``: the number of windows along each axis.

    Args:
        operand_shape: the shape of the array.
        window_dimensions: the sizes of the window.
        window_strides: the steps between windows.
        padding: ``"SAME"``, ``"SAME_LOWER"``, ``"VALID"``, or a pair (low, high) for each axis.
        base_dilation: the spacing of the elements; by default 1.
        window_dilation: the spacing of the window's elements; by default 1.

    Returns:
        The shape of the output.

    Raises:
        TypeError: a stride, or a size of the window, is not an integer.
        ValueError: numbers of entries do not fit.

    >>> import stretto as st
    >>> st.lax.reduce_window_shape_tuple((8, 8), (2, 2), (2, 2), "VALID")
    (4, 4)
    """
    caller, n = "reduce_window_shape_tuple", len(operand_shape)
    bases = ones_or(base_dilation, n, caller, "base_dilation")
    gaps = ones_or(window_dilation, n, caller, "window_dilation")
    window_strides = integers(window_strides, caller, "window_strides", 1)
    window_dimensions = integers(window_dimensions, caller, "window_dimensions", 1)
    sizes = [dilated(m, d) for m, d in zip(operand_shape, bases, strict=True)]
    extents = [dilated(m, d) for m, d in zip(window_dimensions, gaps, strict=True)]
    return _positions(caller, sizes, extents, window_strides, padding)
