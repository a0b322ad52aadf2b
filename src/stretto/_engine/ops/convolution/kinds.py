"""Convolutions with fewer arguments, and the transposed one.

Layer 2 (ops). Each is a ``conv_general_dilated``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from stretto._engine.core.integers import pairs_of
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.broadcast import transpose
from stretto._engine.ops.convolution.general import (
    conv_dimension_numbers,
    conv_general_dilated,
    ones_or,
)
from stretto._engine.ops.convolution.geometry import dilated, transposed_pad
from stretto._engine.ops.shape import rev

__all__ = ["conv", "conv_transpose", "conv_with_general_padding"]


def conv(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolve ``lhs`` (``NC...``) with the kernel ``rhs`` (``OI...``)."""
    return conv_general_dilated(
        lhs,
        rhs,
        window_strides,
        padding,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )


def conv_with_general_padding(
    lhs: Any,
    rhs: Any,
    window_strides: Sequence[int],
    padding: Any,
    lhs_dilation: Sequence[int] | None,
    rhs_dilation: Sequence[int] | None,
    precision: Any = None,
    preferred_element_type: Any = None,
) -> Any:
    """Convolve ``lhs`` (``NC...``) with ``rhs`` (``OI...``), with dilations."""
    return conv_general_dilated(
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
    lhs: Any,
    rhs: Any,
    strides: Sequence[int],
    padding: Any,
    rhs_dilation: Sequence[int] | None = None,
    dimension_numbers: Any = None,
    transpose_kernel: bool = False,
    precision: Any = None,
    preferred_element_type: Any = None,
    use_consistent_padding: bool = False,
) -> Any:
    """Convolve with fractional strides: each input gives ``strides`` outputs.

    ``padding`` ``"SAME"`` gives ``n * stride`` outputs, ``"VALID"`` as many as a convolution would
    take to ``n``; pairs pad the dilated input, or with ``use_consistent_padding`` are those of the
    convolution that goes the other way, which crops. By default the layout is ``N...C`` and
    ``...IO``. With ``transpose_kernel`` the kernel is that of the convolution whose gradient this
    is: reversed in space, its features swapped.

    >>> import stretto as st
    >>> x, kernel = st.numpy.ones((1, 4, 4, 3)), st.numpy.ones((3, 3, 3, 8))
    >>> st.lax.conv_transpose(x, kernel, (2, 2), "SAME").shape
    (1, 8, 8, 8)
    """
    who = "conv_transpose"
    lhs, rhs = promote_dtypes(who, lhs, rhs)
    n = lhs.ndim - 2
    if dimension_numbers is None:
        if n not in _CHANNELS_LAST:
            raise ValueError(f"{who}: give dimension_numbers for lhs: {lhs.type}")
        dimension_numbers = _CHANNELS_LAST[n]
    dims = conv_dimension_numbers(lhs.shape, rhs.shape, dimension_numbers)
    rhs_dilation = ones_or(rhs_dilation, n, who, "rhs_dilation")
    if isinstance(padding, str):
        pairs = []
        for a, d, s in zip(dims.rhs_spec[2:], rhs_dilation, strides, strict=True):
            pairs.append(transposed_pad(dilated(rhs.shape[a], d), s, padding.upper()))
        padding = pairs
    elif use_consistent_padding:
        extents = [
            dilated(rhs.shape[a], d) for a, d in zip(dims.rhs_spec[2:], rhs_dilation, strict=True)
        ]
        padding = [
            (k - 1 - low, k - 1 - high)
            for k, (low, high) in zip(extents, pairs_of(padding, who, "padding"), strict=True)
        ]
    if transpose_kernel:
        o, i, *spatial = dims.rhs_spec
        order = list(range(rhs.ndim))
        order[o], order[i] = i, o
        rhs = transpose(rev(rhs, spatial), order)
    return conv_general_dilated(
        lhs,
        rhs,
        (1,) * n,
        padding,
        strides,
        rhs_dilation,
        dims,
        precision=precision,
        preferred_element_type=preferred_element_type,
    )
