"""Convolutions and their transposes, along one, two or three axes.

Names, meanings and defaults are those of ``torch.nn.functional``: channels before spatial axes, and
a kernel that is not reversed. Each is one operation of ``ops.convolution``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import differs_by_example
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convolution.general import conv_general_dilated
from stretto._engine.ops.layout import reshape, transpose
from stretto._engine.ops.shape import rev
from stretto.nn.functional.checks import add_batch_axis, drop_batch_axis, per_axis


def _kernel(caller: str, weight: ArrayLike, n: int, axes: str) -> Array:
    value = as_value(weight, caller, "weight")
    if value.ndim != n + 2:
        raise ValueError(
            f"{caller}: weight must have {n + 2} axes ({axes}, {n} spatial), got {value.type}"
        )
    return value


def _groups(caller: str, groups: int) -> int:
    return per_axis(groups, 1, caller, "groups")[0]


def _plus_bias(caller: str, out: Array, bias: ArrayLike | None, channels: int) -> Array:
    if bias is None:
        return out
    value = as_value(bias, caller, "bias")
    if value.shape != (channels,):
        raise ValueError(f"{caller}: bias must have {channels} elements, got {value.type}")
    return out + of_rank(reshape(value, (channels, *(1,) * (out.ndim - 2))), out.ndim)


def _convolve(
    n: int,
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int] | str,
    dilation: int | Sequence[int],
    groups: int,
) -> Array:
    caller = f"conv{n}d"
    x, single = add_batch_axis(input, n, caller)
    kernel = _kernel(caller, weight, n, "output channels, input channels of a group")
    groups = _groups(caller, groups)
    strides = per_axis(stride, n, caller, "stride")
    dilations = per_axis(dilation, n, caller, "dilation")
    channels, (outputs, inputs) = x.shape[1], kernel.shape[:2]
    if channels != inputs * groups:
        raise ValueError(
            f"{caller}: input {x.type} has {channels} channels (axis 1), but weight {kernel.type} "
            f"takes {inputs} in each of {groups} groups, {inputs * groups} together"
        )
    if outputs % groups:
        raise ValueError(
            f"{caller}: {groups} groups do not divide the {outputs} output channels of weight "
            f"{kernel.type}"
        )
    pairs = _padding(caller, padding, kernel.shape[2:], strides, dilations)
    for size, k, d, (low, high) in zip(x.shape[2:], kernel.shape[2:], dilations, pairs):
        if not differs_by_example(size) and size + low + high < d * (k - 1) + 1:
            raise ValueError(
                f"{caller}: a kernel that spans {d * (k - 1) + 1} does not fit an axis of "
                f"{size} with padding {(low, high)}: input {x.type}, weight {kernel.type}"
            )
    out = conv_general_dilated(
        x, kernel, strides, pairs, None, dilations, feature_group_count=groups
    )
    return drop_batch_axis(_plus_bias(caller, out, bias, outputs), single)


def _padding(
    caller: str,
    padding: int | Sequence[int] | str,
    kernel: tuple[int, ...],
    strides: tuple[int, ...],
    dilations: tuple[int, ...],
) -> list[tuple[int, int]]:
    if not isinstance(padding, str):
        return [(p, p) for p in per_axis(padding, len(kernel), caller, "padding", 0)]
    if padding == "valid":
        return [(0, 0)] * len(kernel)
    if padding != "same":
        raise ValueError(f"{caller}: padding must be 'same', 'valid' or numbers, got {padding!r}")
    if any(s != 1 for s in strides):
        raise ValueError(
            f"{caller}: padding='same' needs a stride of 1, got {strides}; give numbers"
        )
    totals = [d * (k - 1) for k, d in zip(kernel, dilations, strict=True)]
    return [(total // 2, total - total // 2) for total in totals]


def conv1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """Convolve signals with a kernel that is not reversed.

    Args:
        input: (batch, channels, length), or without the batch.
        weight: (outputs, channels / groups, size).
        bias: (outputs,).
        stride: by how much the kernel moves from one output to the next.
        padding: how many zeros to add at both ends, ``"valid"`` (none) or ``"same"`` (as many
            outputs as inputs; ``stride`` must be 1).
        dilation: the distance between elements that the kernel takes.
        groups: into how many groups the channels are divided, which do not mix.

    Returns:
        (batch, outputs, (length + 2 padding - dilation (size - 1) - 1) // stride + 1), without the
        batch if the input is.

    Raises:
        ValueError: channels, groups and sizes do not fit, or ``padding`` is unknown.

    As PyTorch's ``nn.functional.conv1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.conv1d(snp.array([[1.0, 2.0, 4.0]]), snp.array([[[1.0, -1.0]]]))
    Array([[-1., -2.]], dtype=float32)
    """
    return _convolve(1, input, weight, bias, stride, padding, dilation, groups)


@described_like(conv1d)
def conv2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """Convolve images with a kernel that is not reversed.

    Args:
        input: (batch, channels, height, width), or without the batch.
        weight: (outputs, channels / groups, height, width).
        stride: by how much the kernel moves, a number or (vertical, horizontal), as are the next
            two.
        padding: how many zeros to add at both ends, ``"valid"`` or ``"same"``, as for ``conv1d``.

    Returns:
        (batch, outputs, height, width), with sizes as of ``conv1d``, without the batch if the input
        is.

    As PyTorch's ``nn.functional.conv2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> images, kernel = snp.ones((2, 3, 8, 8)), snp.ones((16, 3, 3, 3))
    >>> F.conv2d(images, kernel, stride=2, padding=1).shape
    (2, 16, 4, 4)
    """
    return _convolve(2, input, weight, bias, stride, padding, dilation, groups)


@described_like(conv2d)
def conv3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = 0,
    dilation: int | Sequence[int] = 1,
    groups: int = 1,
) -> Array:
    """Convolve volumes with a kernel that is not reversed.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.
        weight: (outputs, channels / groups, depth, height, width).
        stride: by how much the kernel moves, a number or one per axis, as are the next two.

    Returns:
        (batch, outputs, depth, height, width), with sizes as of ``conv1d``, without the batch if
        the input is.

    As PyTorch's ``nn.functional.conv3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.conv3d(snp.ones((1, 2, 4, 4, 4)), snp.ones((5, 2, 3, 3, 3)), padding="same").shape
    (1, 5, 4, 4, 4)
    """
    return _convolve(3, input, weight, bias, stride, padding, dilation, groups)


def _transpose(
    n: int,
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None,
    stride: int | Sequence[int],
    padding: int | Sequence[int],
    output_padding: int | Sequence[int],
    groups: int,
    dilation: int | Sequence[int],
) -> Array:
    caller = f"conv_transpose{n}d"
    x, single = add_batch_axis(input, n, caller)
    filters = _kernel(caller, weight, n, "input channels, output channels of a group")
    groups = _groups(caller, groups)
    strides = per_axis(stride, n, caller, "stride")
    dilations = per_axis(dilation, n, caller, "dilation")
    paddings = per_axis(padding, n, caller, "padding", 0)
    extra = per_axis(output_padding, n, caller, "output_padding", 0)
    channels, (inputs, outputs), spatial = x.shape[1], filters.shape[:2], filters.shape[2:]
    if channels != inputs or inputs % groups:
        raise ValueError(
            f"{caller}: input {x.type} has {channels} channels (axis 1), but weight {filters.type} "
            f"takes {inputs}, in {groups} groups"
        )
    for e, s, d in zip(extra, strides, dilations, strict=True):
        if e >= max(s, d):
            raise ValueError(
                f"{caller}: output_padding must be less than stride or dilation, got "
                f"output_padding {extra}, stride {strides}, dilation {dilations}"
            )
    # out[o] = sum x[i] w[j] over i s + j d = o + p: with j' = k-1-j that is a convolution of x,
    # spread out by s, with the reversed kernel, over d (k-1) - p before it.
    kernel = rev(filters, tuple(range(2, n + 2)))
    kernel = reshape(kernel, (groups, inputs // groups, outputs, *spatial))
    kernel = transpose(kernel, (0, 2, 1, *range(3, n + 3)))
    kernel = reshape(kernel, (groups * outputs, inputs // groups, *spatial))
    columns = zip(spatial, dilations, paddings, extra, strict=True)
    pairs = [(d * (k - 1) - p, d * (k - 1) - p + e) for k, d, p, e in columns]
    for size, s, k, d, pair in zip(x.shape[2:], strides, spatial, dilations, pairs):
        if size and (size - 1) * s + 1 + sum(pair) < d * (k - 1):
            raise ValueError(
                f"{caller}: padding {paddings} takes away more than the output has: input {x.type} "
                f"and weight {filters.type}"
            )
    out = conv_general_dilated(
        x, kernel, (1,) * n, pairs, strides, dilations, feature_group_count=groups
    )
    return drop_batch_axis(_plus_bias(caller, out, bias, groups * outputs), single)


def conv_transpose1d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """Apply the transpose of ``conv1d``: each input adds the kernel to the output.

    Args:
        input: (batch, channels, length), or without the batch.
        weight: (channels, outputs / groups, size).
        bias: (outputs,).
        stride: the distance between outputs of neighbouring inputs.
        padding: how many elements to take away at both ends of the output.
        output_padding: how many elements to add at its end, fewer than ``stride`` or ``dilation``.
        groups: into how many groups the channels are divided, which do not mix.
        dilation: the distance between elements that the kernel adds to.

    Returns:
        (batch, outputs, (length - 1) stride - 2 padding + dilation (size - 1) + output_padding +
        1), without the batch if the input is.

    Raises:
        ValueError: channels, groups, sizes or paddings do not fit.

    As PyTorch's ``nn.functional.conv_transpose1d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.conv_transpose1d(snp.array([[1.0, 2.0]]), snp.array([[[1.0, 10.0]]]), stride=2)
    Array([[ 1., 10.,  2., 20.]], dtype=float32)
    """
    return _transpose(1, input, weight, bias, stride, padding, output_padding, groups, dilation)


@described_like(conv_transpose1d)
def conv_transpose2d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """Apply the transpose of ``conv2d``: each input adds the kernel to the output.

    Args:
        input: (batch, channels, height, width), or without the batch.
        weight: (channels, outputs / groups, height, width).

    Returns:
        (batch, outputs, height, width), with sizes as of ``conv_transpose1d``.

    As PyTorch's ``nn.functional.conv_transpose2d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> images, kernel = snp.ones((2, 16, 4, 4)), snp.ones((16, 3, 3, 3))
    >>> F.conv_transpose2d(images, kernel, stride=2, padding=1, output_padding=1).shape
    (2, 3, 8, 8)
    """
    return _transpose(2, input, weight, bias, stride, padding, output_padding, groups, dilation)


@described_like(conv_transpose1d)
def conv_transpose3d(
    input: ArrayLike,
    weight: ArrayLike,
    bias: ArrayLike | None = None,
    stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0,
    groups: int = 1,
    dilation: int | Sequence[int] = 1,
) -> Array:
    """Apply the transpose of ``conv3d``: each input adds the kernel to the output.

    Args:
        input: (batch, channels, depth, height, width), or without the batch.
        weight: (channels, outputs / groups, depth, height, width).

    Returns:
        (batch, outputs, depth, height, width), with sizes as of ``conv_transpose1d``.

    As PyTorch's ``nn.functional.conv_transpose3d``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.conv_transpose3d(snp.ones((1, 2, 2, 2, 2)), snp.ones((2, 1, 2, 2, 2)), stride=2).shape
    (1, 1, 4, 4, 4)
    """
    return _transpose(3, input, weight, bias, stride, padding, output_padding, groups, dilation)
