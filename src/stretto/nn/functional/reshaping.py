"""Axes joined and split, channels exchanged with space, windows laid out and added back.

Names, meanings and defaults are those of ``torch`` and ``torch.nn.functional``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from stretto._engine.api.autodiff.linear_transpose import linear_transpose
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.layout import canonical_axis, expand_dims, reshape, transpose
from stretto._engine.ops.shape import concatenate, pad, slice_in_dim
from stretto.nn.functional.checks import (
    add_batch_axis,
    drop_batch_axis,
    explains_keywords,
    per_axis,
)


def flatten(input: ArrayLike, start_dim: int = 0, end_dim: int = -1) -> Array:
    """Join consecutive axes into one.

    Args:
        input: an array of any shape.
        start_dim: the first axis to join.
        end_dim: the last axis to join.

    Returns:
        The array with the axes joined; (1,) for a scalar.

    Raises:
        ValueError: the first comes after the last, or one is out of bounds.

    As PyTorch's ``torch.flatten``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.flatten(snp.ones((2, 3, 4)), 1).shape
    (2, 12)
    """
    x = as_value(input, "flatten", "input")
    if not x.ndim:
        return reshape(x, (1,))
    first, last = (canonical_axis(d, x.ndim, "flatten") for d in (start_dim, end_dim))
    if first > last:
        raise ValueError(
            f"flatten: start_dim {start_dim} comes after end_dim {end_dim} in {x.type}"
        )
    joined = math.prod(x.shape[first : last + 1])
    return reshape(x, (*x.shape[:first], joined, *x.shape[last + 1 :]))


@explains_keywords
def unflatten(input: ArrayLike, dim: int, sizes: Sequence[int]) -> Array:
    """Split an axis into several.

    Args:
        input: an array of any shape.
        dim: the axis.
        sizes: the sizes; one of them may be -1 for what remains.

    Returns:
        The array with more axes.

    Raises:
        ValueError: the sizes do not multiply to the axis, or ``dim`` is out of bounds.

    As PyTorch's ``torch.unflatten``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.unflatten(snp.ones((2, 12)), 1, (3, -1)).shape
    (2, 3, 4)
    """
    x = as_value(input, "unflatten", "input")
    d = canonical_axis(dim, x.ndim, "unflatten")
    wanted, n = tuple(sizes), x.shape[d]
    known = math.prod(s for s in wanted if s != -1)
    rest = n // known if known else 0
    parts = tuple(rest if s == -1 else s for s in wanted)
    if wanted.count(-1) > 1 or min(wanted, default=0) < -1 or math.prod(parts) != n or not wanted:
        raise ValueError(f"unflatten: sizes {wanted} do not make up axis {dim} of {x.type}")
    return reshape(x, (*x.shape[:d], *parts, *x.shape[d + 1 :]))


def _images(caller: str, input: ArrayLike) -> Array:
    x = as_value(input, caller, "input")
    if x.ndim < 3:
        raise ValueError(f"{caller}: input must be (..., channels, height, width), got {x.type}")
    return x


def pixel_shuffle(input: ArrayLike, upscale_factor: int) -> Array:
    """Move channels to pixels: each r² of them become squares of r × r.

    Args:
        input: (..., c r², h, w).
        upscale_factor: r.

    Returns:
        (..., c, h r, w r).

    Raises:
        ValueError: r² does not divide the channels, or there are fewer than three axes.

    As PyTorch's ``nn.functional.pixel_shuffle``. Source: Shi et al., Real-Time Single Image and
    Video Super-Resolution, 2016.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.pixel_shuffle(snp.arange(4.0).reshape(4, 1, 1), 2)
    Array([[[0., 1.],
            [2., 3.]]], dtype=float32)
    """
    x = _images("pixel_shuffle", input)
    (r,) = per_axis(upscale_factor, 1, "pixel_shuffle", "upscale_factor")
    *outer, c, h, w = x.shape
    if c % (r * r):
        raise ValueError(f"pixel_shuffle: {r}² does not divide the {c} channels of {x.type}")
    x = reshape(x, (math.prod(outer), c // (r * r), r, r, h, w))
    return reshape(transpose(x, (0, 1, 4, 2, 5, 3)), (*outer, c // (r * r), h * r, w * r))


def pixel_unshuffle(input: ArrayLike, downscale_factor: int) -> Array:
    """Move pixels to channels: the inverse of ``pixel_shuffle``.

    Args:
        input: (..., c, h r, w r).
        downscale_factor: r.

    Returns:
        (..., c r², h, w).

    Raises:
        ValueError: r does not divide height and width, or there are fewer than three axes.

    As PyTorch's ``nn.functional.pixel_unshuffle``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.pixel_unshuffle(snp.ones((2, 3, 8, 8)), 2).shape
    (2, 12, 4, 4)
    """
    x = _images("pixel_unshuffle", input)
    (r,) = per_axis(downscale_factor, 1, "pixel_unshuffle", "downscale_factor")
    *outer, c, h, w = x.shape
    if h % r or w % r:
        raise ValueError(f"pixel_unshuffle: {r} does not divide height and width of {x.type}")
    x = reshape(x, (math.prod(outer), c, h // r, r, w // r, r))
    return reshape(transpose(x, (0, 1, 3, 5, 2, 4)), (*outer, c * r * r, h // r, w // r))


def channel_shuffle(input: ArrayLike, groups: int) -> Array:
    """Reorder the channels: the first of each group, then the second of each, and so on.

    Args:
        input: (batch, channels, ...), of three axes or more.
        groups: the number of groups, which divides the channels.

    Returns:
        The same shape and dtype.

    Raises:
        ValueError: the groups do not divide the channels, or there are fewer than three axes.

    As PyTorch's ``nn.functional.channel_shuffle``. Source: Zhang et al., ShuffleNet, 2017.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.channel_shuffle(snp.arange(4.0).reshape(1, 4, 1), 2).ravel()
    Array([0., 2., 1., 3.], dtype=float32)
    """
    caller = "channel_shuffle"
    x = as_value(input, caller, "input")
    (groups,) = per_axis(groups, 1, caller, "groups")
    if x.ndim < 3 or x.shape[1] % groups:
        raise ValueError(
            f"{caller}: input must be (batch, channels, ...), with channels that {groups} groups "
            f"divide; got {x.type}"
        )
    b, c, *spatial = x.shape
    x = reshape(x, (b, groups, c // groups, *spatial))
    return reshape(transpose(x, (0, 2, 1, *range(3, x.ndim))), (b, c, *spatial))


# Windows


def _settings(
    caller: str,
    space: tuple[int, ...],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int],
    padding: int | Sequence[int],
    stride: int | Sequence[int],
) -> tuple[tuple[int, ...], ...]:
    """Return kernel sizes, dilations, paddings, strides, and numbers of windows, of both axes."""
    sizes = per_axis(kernel_size, 2, caller, "kernel_size")
    dilations = per_axis(dilation, 2, caller, "dilation")
    paddings = per_axis(padding, 2, caller, "padding", 0)
    strides = per_axis(stride, 2, caller, "stride")
    columns = zip(space, sizes, dilations, paddings, strides, strict=True)
    counts = tuple((n + 2 * p - d * (k - 1) - 1) // s + 1 for n, k, d, p, s in columns)
    if min(counts) < 1:
        raise ValueError(
            f"{caller}: windows of {sizes} with dilation {dilations} do not fit {space} with "
            "padding "
            f"{paddings}"
        )
    return sizes, dilations, paddings, strides, counts


def unfold(
    input: ArrayLike,
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Array:
    """Lay out the windows of images as columns.

    Args:
        input: (batch, channels, height, width), or without the batch.
        kernel_size: the size of a window, a number or (height, width), as are the settings after
            it.
        dilation: the distance between elements of a window.
        padding: how many zeros to add at both ends.
        stride: the distance between windows.

    Returns:
        (batch, channels × kernel elements, windows), without the batch if the input is.

    Raises:
        ValueError: ``input`` has another rank, or no window fits.

    As PyTorch's ``nn.functional.unfold``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.unfold(snp.arange(9.0).reshape(1, 3, 3), 2)
    Array([[0., 1., 3., 4.],
           [1., 2., 4., 5.],
           [3., 4., 6., 7.],
           [4., 5., 7., 8.]], dtype=float32)
    """
    x, single = add_batch_axis(input, 2, "unfold")
    settings = _settings("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    sizes, dilations, paddings, strides, counts = settings
    x = pad(x, 0, [(0, 0, 0), (0, 0, 0), *[(p, p, 0) for p in paddings]])
    batch, channels, *_ = x.shape
    # Axis by axis, the first elements of all windows, their second ones, and so on.
    for axis, (k, s, d, count) in enumerate(zip(sizes, strides, dilations, counts, strict=True)):
        reach = (count - 1) * s + 1
        parts = [slice_in_dim(x, i * d, i * d + reach, s, 2 + 2 * axis) for i in range(k)]
        x = concatenate([expand_dims(part, (2 + axis,)) for part in parts], 2 + axis)
    out = reshape(x, (batch, channels * math.prod(sizes), math.prod(counts)))
    return drop_batch_axis(out, single)


def fold(
    input: ArrayLike,
    output_size: int | Sequence[int],
    kernel_size: int | Sequence[int],
    dilation: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    stride: int | Sequence[int] = 1,
) -> Array:
    """Add columns up where their windows lie in images: the transpose of ``unfold``.

    Args:
        input: (batch, channels × kernel elements, windows), or without the batch.
        output_size: the height and width of the images.
        kernel_size: the size of a window, a number or (height, width), as are the settings after
            it.
        dilation: the distance between elements of a window.
        padding: how many zeros were added at both ends.
        stride: the distance between windows.

    Returns:
        (batch, channels, *output_size), without the batch if the input is.

    Raises:
        ValueError: the number of elements or of windows does not fit.

    As PyTorch's ``nn.functional.fold``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.fold(snp.ones((1, 4, 4)), 3, 2)
    Array([[[[1., 2., 1.],
             [2., 4., 2.],
             [1., 2., 1.]]]], dtype=float32)
    """
    caller = "fold"
    x, single = add_batch_axis(input, 1, caller)
    space = per_axis(output_size, 2, caller, "output_size")
    sizes, *_, counts = _settings(caller, space, kernel_size, dilation, padding, stride)
    elements, windows = math.prod(sizes), math.prod(counts)
    if x.shape[1] % elements or x.shape[2] != windows:
        raise ValueError(
            f"{caller}: expected (batch, channels × {elements} kernel elements, {windows} "
            "windows), "
            f"got {x.type}"
        )
    images = ShapeDtypeStruct((x.shape[0], x.shape[1] // elements, *space), x.dtype)
    back = linear_transpose(
        lambda images: unfold(images, kernel_size, dilation, padding, stride), images
    )
    (out,) = back(x)
    return drop_batch_axis(out, single)
