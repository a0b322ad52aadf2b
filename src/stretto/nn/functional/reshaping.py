"""Elements rearranged: axes joined and split, padding, windows laid out and added back, resizing.

Names, meanings and defaults are those of ``torch`` and ``torch.nn.functional``. Every mode of
resizing works axis by axis, by nearest elements or by means of neighbours. Means are products with
a matrix (outputs, inputs) of weights, a few in each row; over long axes these few elements are read
by index.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from stretto._engine.api.autodiff.linear_functions import linear_transpose
from stretto._engine.api.graph import ShapeDtypeStruct
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.linear_call import with_transpose
from stretto._engine.ops.broadcast import broadcast_to, reduce_sum
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import canonical_axis, expand_dims, move_axis, reshape, transpose
from stretto._engine.ops.reducing.reduce import widened
from stretto._engine.ops.shape import concatenate, rev, slice_in_dim
from stretto._engine.ops.shape import pad as pad_values
from stretto.nn.functional.checks import (
    add_batch_axis,
    as_float,
    drop_batch_axis,
    explains_keywords,
    per_axis,
)
from stretto.nn.functional.pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from stretto.numpy.taking import take


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


def _window_settings(
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
            f"padding {paddings}"
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
    settings = _window_settings("unfold", x.shape[2:], kernel_size, dilation, padding, stride)
    sizes, dilations, paddings, strides, counts = settings
    x = pad_values(x, 0, [(0, 0, 0), (0, 0, 0), *[(p, p, 0) for p in paddings]])
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
    sizes, *_, counts = _window_settings(caller, space, kernel_size, dilation, padding, stride)
    elements, windows = math.prod(sizes), math.prod(counts)
    if x.shape[1] % elements or x.shape[2] != windows:
        raise ValueError(
            f"{caller}: expected (batch, channels × {elements} kernel elements, {windows} "
            f"windows), got {x.type}"
        )
    images = ShapeDtypeStruct((x.shape[0], x.shape[1] // elements, *space), x.dtype)
    back = linear_transpose(
        lambda images: unfold(images, kernel_size, dilation, padding, stride), images
    )
    (out,) = back(x)
    return drop_batch_axis(out, single)


# Padding of the last axes


def pad(
    input: ArrayLike, pad: Sequence[int], mode: str = "constant", value: float | None = None
) -> Array:
    """Add elements before and after, along the last axes.

    Args:
        input: an array of any shape.
        pad: (before, after) of the last axis, then of the one before it, and so on; negative
            numbers take elements away.
        mode: ``"constant"``, ``"reflect"`` (without the end element itself), ``"replicate"`` (the
            end element) or ``"circular"`` (from the other end).
        value: the constant, 0 by default.

    Returns:
        The padded array, of the dtype of ``input``.

    Raises:
        TypeError: ``pad`` is not of integers.
        ValueError: ``pad`` does not come in pairs, has more of them than there are axes, asks for
            more elements than an axis has, or ``mode`` is unknown.

    As PyTorch's ``nn.functional.pad``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.pad(snp.array([[1.0, 2.0, 3.0]]), (1, 2), mode="reflect")
    Array([[2., 1., 2., 3., 2., 1.]], dtype=float32)
    """
    x = as_value(input, "pad", "input")
    ends = list(integers(pad, "pad", "pad"))
    if len(ends) % 2 or len(ends) > 2 * x.ndim:
        raise ValueError(
            f"pad: pad must be pairs (before, after), at most one for each axis of {x.type}, the "
            f"last axis first; got {tuple(ends)}"
        )
    pairs = [(0, 0)] * (x.ndim - len(ends) // 2) + [*zip(ends[::2], ends[1::2])][::-1]
    for axis, (low, high) in enumerate(pairs):
        if x.shape[axis] + low + high < 0:
            raise ValueError(f"pad: {(low, high)} takes away more than axis {axis} of {x.type} has")
    if mode == "constant":
        fill = 0 if value is None else value
        return pad_values(x, fill, [(low, high, 0) for low, high in pairs])
    if mode not in ("reflect", "replicate", "circular"):
        raise ValueError(
            f"pad: mode must be 'constant', 'reflect', 'replicate' or 'circular', got {mode!r}"
        )
    if value is not None and value != 0:
        raise ValueError(f"pad: value is for mode 'constant', got mode {mode!r}")
    for axis, (low, high) in enumerate(pairs):
        if low or high:
            x = _beyond(x, axis, low, high, mode)
    return x


def _beyond(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Return ``x`` with its own elements before and after along an axis."""
    crop = max(-low, 0), max(-high, 0)
    if mode == "circular":  # elements taken away are not repeated
        x = slice_in_dim(x, crop[0], x.shape[axis] - crop[1], 1, axis)
        crop = 0, 0
    n = x.shape[axis]
    most = {"reflect": n - 1, "circular": n}.get(mode, max(low, high) if n else 0)
    if max(low, high) > max(most, 0):
        raise ValueError(
            f"pad: mode {mode!r} can add at most {max(most, 0)} elements to axis {axis} of "
            f"{x.type}, got {(low, high)}"
        )
    low, high = max(low, 0), max(high, 0)
    if low or high:
        x = _extend(x, axis, low, high, mode)
    return slice_in_dim(x, crop[0], x.shape[axis] - crop[1], 1, axis)


def _extend(x: Array, axis: int, low: int, high: int, mode: str) -> Array:
    n = x.shape[axis]

    def extend(x: Array) -> Array:
        parts = [x]
        if low:
            before = {"reflect": 1, "circular": n - low}.get(mode, 0)
            parts.insert(0, _copied_elements(x, axis, before, low, mode))
        if high:
            after = {"reflect": n - 1 - high, "circular": 0}.get(mode, n - 1)
            parts.append(_copied_elements(x, axis, after, high, mode))
        return concatenate(parts, axis)

    return with_transpose(extend, lambda ct: _add_padding_back(ct, axis, low, high, mode), x)


def _copied_elements(x: Array, axis: int, start: int, count: int, mode: str) -> Array:
    if mode == "replicate":
        shape = tuple(count if d == axis else size for d, size in enumerate(x.shape))
        return broadcast_to(slice_in_dim(x, start, start + 1, 1, axis), shape)
    part = slice_in_dim(x, start, start + count, 1, axis)
    return rev(part, (axis,)) if mode == "reflect" else part


def _add_padding_back(ct: Array, axis: int, low: int, high: int, mode: str) -> Array:
    """Return the transpose: each element's own cotangent, and those of its copies.

    One concatenation, of the stretches in which the same copies are added: sums of padded arrays
    would store one of the whole size for each copy.
    """
    n = ct.shape[axis] - low - high
    copies = [(0, 0, low), (0, low + n, high)]  # where the copy goes, and where its cotangents are
    pieces = [slice_in_dim(ct, start, start + size, 1, axis) for _, start, size in copies]
    if mode == "replicate":
        pieces = [expand_dims(reduce_sum(piece, (axis,)), (axis,)) for piece in pieces]
    if mode == "reflect":
        pieces = [rev(piece, (axis,)) for piece in pieces]
    first = {"reflect": 1, "replicate": 0, "circular": n - low}[mode]
    last = {"reflect": n - 1 - high, "replicate": n - 1, "circular": 0}[mode]
    added = [(at, piece) for at, piece in zip((first, last), pieces) if piece.shape[axis]]
    ends = {end for at, piece in added for end in (at, at + piece.shape[axis])}
    out = []
    for start, stop in pairwise(sorted({0, n, *ends})):
        part = slice_in_dim(ct, low + start, low + stop, 1, axis)
        for at, piece in added:
            if at <= start and stop <= at + piece.shape[axis]:
                part = part + slice_in_dim(piece, start - at, stop - at, 1, axis)
        out.append(part)
    return concatenate(out, axis)


# Resizing

_RANKS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "trilinear": (5,),
    "bicubic": (4,),
    "area": (3, 4, 5),
}
_SPARSE = 32
"""The multiply-adds in a product that take as long as reading one element by its index."""

_MEANS = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Resize the spatial axes.

    In the linear and cubic modes an infinity or NaN may spread along its line.

    Args:
        input: (batch, channels, and one to three spatial axes).
        size: the spatial sizes, a number or one per axis; this or ``scale_factor``.
        scale_factor: by how much sizes grow, likewise.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (signals), ``"bilinear"`` or
            ``"bicubic"`` (images), ``"trilinear"`` (volumes), or ``"area"``
            (``adaptive_avg_pool``).
        align_corners: whether, in the linear and cubic modes, corner elements keep their places;
            otherwise elements are little squares, aligned at their edges.
        recompute_scale_factor: whether the scale is taken from the rounded sizes.
        antialias: whether, where an image gets smaller, elements are means over as many more
            inputs, so that fine patterns fade; for ``"bilinear"`` and ``"bicubic"``.

    Returns:
        The resized array, of the dtype of ``input``; integers become floats, except in the nearest
        modes.

    Raises:
        TypeError: ``size`` is neither an integer nor a sequence of them.
        ValueError: ``mode`` does not fit the rank or ``antialias``, or both or neither of ``size``
            and ``scale_factor`` are given.

    As PyTorch's ``nn.functional.interpolate``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> x = snp.array([[[1.0, 3.0]]])
    >>> F.interpolate(x, scale_factor=2)
    Array([[[1., 1., 3., 3.]]], dtype=float32)
    >>> F.interpolate(x, size=4, mode="linear")
    Array([[[1. , 1.5, 2.5, 3. ]]], dtype=float32)
    """
    return _resize(
        "interpolate",
        input,
        size,
        scale_factor,
        mode,
        align_corners,
        recompute_scale_factor,
        antialias,
    )


def _resize(
    caller: str,
    input: ArrayLike,
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool = False,
) -> Array:
    """Return what ``interpolate`` and ``upsample`` compute."""
    x = as_value(input, caller, "input")
    if mode not in _RANKS or x.ndim not in _RANKS[mode]:
        fits = [name for name, ranks in _RANKS.items() if x.ndim in ranks]
        raise ValueError(
            f"{caller}: mode {mode!r} does not fit input {x.type}; expected (batch, channels, "
            f"and 1 to 3 spatial axes), for which there are {fits}"
        )
    weighing = mode in ("linear", "bilinear", "trilinear", "bicubic")
    if align_corners is not None and not weighing:
        raise ValueError(f"{caller}: align_corners is for the linear and cubic modes, got {mode!r}")
    if antialias and mode not in _FILTERS:
        raise ValueError(f"{caller}: antialias is for the modes {list(_FILTERS)}, got {mode!r}")
    sizes, scales = _resized_sizes(caller, x, size, scale_factor)
    if recompute_scale_factor:
        scales = [None] * len(sizes)
    if mode == "area":
        return _MEANS[x.ndim](x, sizes)
    if not weighing:
        for axis, (m, scale) in enumerate(zip(sizes, scales, strict=True), 2):
            x = _nearest(x, axis, m, scale, mode == "nearest-exact")
        return x
    x = as_float(x, caller)
    out = convert(x, widened(x.dtype))
    weights = _cubic if mode == "bicubic" else _linear
    for axis, (m, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        n = x.shape[axis]
        if antialias:
            matrix = _filter_matrix(n, m, _scale(n, m, scale, bool(align_corners)), *_FILTERS[mode])
            out = _apply_matrix(out, axis, matrix)
            continue
        # Where sizes are equal the linear modes copy, as PyTorch does, whatever the scale.
        if n != m or (mode == "bicubic" and scale is not None):
            matrix = weights(n, _positions(n, m, scale, bool(align_corners)), bool(align_corners))
            out = _apply_matrix(out, axis, matrix)
    return convert(out, x.dtype)


def upsample(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Array:
    """Resize the spatial axes: the same as ``interpolate``.

    Args:
        input: (batch, channels, and one to three spatial axes).
        size: the spatial sizes, a number or one per axis; this or ``scale_factor``.
        scale_factor: by how much sizes grow, likewise.
        mode: as for ``interpolate``.
        align_corners: as for ``interpolate``.

    Returns:
        The resized array.

    Raises:
        TypeError: as for ``interpolate``.
        ValueError: as for ``interpolate``.

    As PyTorch's ``nn.functional.upsample``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.upsample(snp.ones((1, 2, 4, 4)), scale_factor=2).shape
    (1, 2, 8, 8)
    """
    return _resize("upsample", input, size, scale_factor, mode, align_corners, None)


def _resized_sizes(
    caller: str, x: Array, size: int | Sequence[int] | None, factor: float | Sequence[float] | None
) -> tuple[list[int], list[float | None]]:
    """Return the sizes of the spatial axes, and their scales where ``factor`` gives them."""
    n = x.ndim - 2
    if (size is None) == (factor is None):
        raise ValueError(f"{caller}: give size or scale_factor, one of them; got {size}, {factor}")
    name, setting = ("scale_factor", factor) if size is None else ("size", size)
    values: Any = tuple(setting) if isinstance(setting, (tuple, list)) else (setting,) * n
    if len(values) != n or not all(v > 0 for v in values):
        raise ValueError(f"{caller}: {name} must be a positive number, or {n}; got {setting!r}")
    if size is not None:
        return list(integers(values, caller, "size")), [None] * n
    scales = [float(s) for s in values]
    sizes = [math.floor(m * s) for m, s in zip(x.shape[2:], scales, strict=True)]
    if not all(sizes):
        raise ValueError(f"{caller}: scale_factor {factor} leaves nothing of input {x.type}")
    return sizes, list(scales)


def _nearest(x: Array, axis: int, m: int, scale: float | None, exact: bool) -> Array:
    n = x.shape[axis]
    # PyTorch repeats elements for the same size or twice that, whatever the scale, unless "exact".
    if m % n == 0 and (scale in (None, m / n) or (m <= 2 * n and not exact)):
        if m == n:
            return x
        shape = (*x.shape[: axis + 1], m // n, *x.shape[axis + 1 :])
        wide = broadcast_to(expand_dims(x, (axis + 1,)), shape)
        return reshape(wide, (*x.shape[:axis], m, *x.shape[axis + 1 :]))
    # In float32, as PyTorch computes it: the rounding decides which element is nearest.
    ratio = np.float32(n / m if scale is None else 1 / scale)
    positions = (np.arange(m, dtype=np.float32) + np.float32(0.5 if exact else 0)) * ratio
    index = np.minimum(np.floor(positions).astype(np.int32), n - 1)
    return take(x, index, axis, mode="clip")


def _positions(n: int, m: int, scale: float | None, align_corners: bool) -> np.ndarray:
    """Return where among the ``n`` inputs each of the ``m`` outputs lies."""
    o = np.arange(m, dtype=np.float64)
    ratio = _scale(n, m, scale, align_corners)
    return o * ratio if align_corners else (o + 0.5) * ratio - 0.5


def _scale(n: int, m: int, scale: float | None, align_corners: bool) -> float:
    """Return how many of the ``n`` inputs one of the ``m`` outputs stands for."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return n / m if scale is None else 1 / scale


def _matrix_of_taps(n: int, taps: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return rows that weigh inputs: of each tap an index, kept within bounds, and a weight."""
    out = np.zeros((len(taps[0][0]), n))
    for index, weight in taps:
        np.add.at(out, (np.arange(len(index)), np.clip(index, 0, n - 1)), weight)
    return out


def _linear(n: int, positions: np.ndarray, align_corners: bool) -> np.ndarray:
    positions = np.maximum(positions, 0)
    low = np.floor(positions).astype(np.int64)
    t = positions - low
    return _matrix_of_taps(n, [(low, 1 - t), (low + 1, t)])


def _cubic(n: int, positions: np.ndarray, align_corners: bool) -> np.ndarray:
    low = np.floor(positions).astype(np.int64)
    return _matrix_of_taps(
        n, [(low + k, _keys_kernel(positions - (low + k), -0.75)) for k in range(-1, 3)]
    )


def _keys_kernel(d: np.ndarray, a: float) -> np.ndarray:
    """Return the weights at these distances, of Keys, Cubic Convolution Interpolation, 1981."""
    d = np.abs(d)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


_FILTERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "bilinear": (lambda d: np.maximum(1 - np.abs(d), 0), 1.0),
    "bicubic": (lambda d: _keys_kernel(d, -0.5), 2.0),
}
"""The weights by distance of the modes that can smooth, and how far they reach."""


def _filter_matrix(
    n: int, m: int, ratio: float, weights: Callable[[np.ndarray], np.ndarray], reach: float
) -> np.ndarray:
    """Return rows that weigh inputs by a filter as wide as one of the outputs."""
    width = max(ratio, 1.0)
    centers = (ratio * (np.arange(m) + 0.5))[:, None]
    inputs = np.arange(n)
    first = np.trunc(centers - reach * width + 0.5)
    last = np.trunc(centers + reach * width + 0.5)
    inside = (inputs >= first) & (inputs < last)
    out = np.where(inside, weights((inputs + 0.5 - centers) / width), 0.0)
    return out / out.sum(1, keepdims=True)


def _apply_matrix(x: Array, axis: int, matrix: np.ndarray) -> Array:
    """Return the product with a matrix, most elements of which are 0."""
    taps, back = _taps(matrix), _taps(matrix.T)
    m, n = matrix.shape
    if n < _SPARSE * len(taps) or m < _SPARSE * len(back):
        return _product(x, axis, matrix)
    return with_transpose(lambda x: _sum_of(taps, x, axis), lambda ct: _sum_of(back, ct, axis), x)


def _taps(matrix: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what is not 0 in each row: the first column and its weight, the second, and so on."""
    order = np.argsort(matrix == 0, axis=1, kind="stable")
    order = order[:, : np.count_nonzero(matrix, axis=1).max()]
    weights = np.take_along_axis(matrix, order, 1)
    # Where a row has fewer, its first counts again, by 0.
    index = np.where(weights == 0, order[:, :1], order).astype(np.int32)
    return [*zip(index.T, weights.T, strict=True)]


def _sum_of(taps: list[tuple[np.ndarray, np.ndarray]], x: Array, axis: int) -> Array:
    after = (1,) * (x.ndim - axis - 1)
    terms = [
        take(x, index, axis, mode="clip") * as_value(weight.astype(x.dtype).reshape(-1, *after))
        for index, weight in taps
    ]
    return functools.reduce(operator.add, terms)


def _product(x: Array, axis: int, matrix: np.ndarray) -> Array:
    weights = as_value(matrix.astype(x.dtype))
    # The highest precision: these are coordinates, and few products.
    out = dot_general(x, weights, (((axis,), (1,)), ((), ())), "highest")
    return move_axis(out, out.ndim - 1, axis)
