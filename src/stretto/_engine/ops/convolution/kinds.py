"""Convolutions with fewer arguments, and the transposed one.

Each is a ``conv_general_dilated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.integers import integers, pairs_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.convolution.general import convolved, ones_or
from stretto._engine.ops.convolution.geometry import dilated, dimension_numbers_of, transposed_pad
from stretto._engine.ops.layout import transpose
from stretto._engine.ops.shape import rev


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
