"""Packed ensembles: members side by side in the channels of one network, kept apart by groups.

A network of width w becomes one of width α w whose layers work in groups, one for each of the M
members (γ of them for γ > 1): member i has the channels from i α w / M on. So ordinary layers in
between, such as batch normalization and pooling, take it as one network. The first layer shows all
members the same input; the last sets their outputs apart, along axis 0. Source: Laurent et al.,
"Packed-Ensembles for efficient uncertainty estimation", 2023.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.layout import move_axis, reshape
from stretto.nn import init
from stretto.nn.convolution import Conv2d
from stretto.nn.functional.checks import check_features, positive, two_keys
from stretto.nn.module import Module, Parameter

__all__ = ["PackedConv2d", "PackedLinear", "packed_width"]


def packed_width(features: int, alpha: float, num_estimators: int, gamma: int = 1) -> int:
    """Return the features of all members together, where one network would have ``features``.

    Layers in between, such as ``BatchNorm2d``, are made of this width.

    Args:
        features: features or channels of one network.
        alpha: its widening.
        num_estimators: how many members.
        gamma: groups within each member.

    Returns:
        ``alpha * features``, rounded up to a multiple of ``num_estimators * gamma``.

    Raises:
        ValueError: an argument is not positive.

    >>> from stretto.ensemble.layers import packed_width
    >>> packed_width(64, alpha=2, num_estimators=4), packed_width(10, 1.5, 4)
    (128, 16)
    """
    positive("packed_width", features=features, num_estimators=num_estimators, gamma=gamma)
    if not (isinstance(alpha, (int, float)) and alpha > 0):
        raise ValueError(f"packed_width: alpha must be a positive number, got {alpha!r}")
    step = num_estimators * gamma
    return math.ceil(round(alpha * features, 6) / step) * step


def _split(x: Array, num_estimators: int, place: int) -> Array:
    """Return the members in the axis ``place`` along an axis of their own, the first."""
    own = x.shape[place] // num_estimators
    members = reshape(x, (*x.shape[:place], num_estimators, own, *x.shape[place + 1 :]))
    return move_axis(members, place, 0)


class PackedLinear(Module):
    """``Linear`` layers of many members, side by side in the features.

    ``weight`` is (groups, outputs of a group, inputs of a group), uniform within ±1/√inputs, as is
    ``bias``.

    Args:
        in_features: of the one network that this stands for.
        out_features: of that network.
        alpha: its widening.
        num_estimators: how many members.
        gamma: groups within each member.
        bias: whether to add one.
        first: the input has ``in_features``, which all members see; otherwise
            ``packed_width(in_features, ...)``.
        last: the output is (num_estimators, ..., out_features), with whole members (``gamma`` does
            not count); otherwise (..., ``packed_width(out_features, ...)``).
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the parameters; the default float by default.

    Raises:
        ValueError: a size is not positive; or, when called, the input does not match.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import PackedLinear
    >>> hidden = PackedLinear(8, 16, alpha=2, num_estimators=4, first=True)
    >>> head = PackedLinear(16, 3, alpha=2, num_estimators=4, last=True)
    >>> x = hidden(st.numpy.ones((5, 8)))
    >>> x.shape, head(x).shape
    ((5, 32), (4, 5, 3))
    """

    weight: Any
    bias: Any

    def __init__(
        self,
        in_features: int,
        out_features: int,
        alpha: float,
        num_estimators: int,
        gamma: int = 1,
        bias: bool = True,
        first: bool = False,
        last: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.num_estimators = num_estimators
        self.last = last
        sizes = _sizes(in_features, out_features, alpha, num_estimators, gamma, first, last)
        self.in_features, self.out_features, self.groups = sizes
        weight_key, bias_key = two_keys(key, "PackedLinear")
        inputs, outputs = self.in_features // self.groups, self.out_features // self.groups
        bound = 1 / math.sqrt(inputs)
        shape = (self.groups, outputs, inputs)
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        shape = (self.out_features,)
        drawn = init.uniform(bias_key, shape, -bound, bound, dtype) if bias else None
        self.register_parameter("bias", drawn)

    def forward(self, input: ArrayLike) -> Array:
        """Map each group.

        Args:
            input: (..., features), as for the class.

        Returns:
            (..., features of all members), or (num_estimators, ..., out_features) of the last
                layer.

        Raises:
            ValueError: the last axis of ``input`` has another size.
        """
        x = check_features(self, input, self.in_features)
        x = reshape(x, (*x.shape[:-1], self.groups, self.in_features // self.groups))
        last = x.ndim - 1
        # (groups, ..., outputs of a group)
        out = dot_general(x, self.weight, (((last,), (2,)), ((last - 1,), (0,))))
        out = move_axis(out, 0, last - 1)
        out = reshape(out, (*out.shape[:-2], self.out_features))
        if self.bias is not None:
            out = out + self.bias
        return _split(out, self.num_estimators, last - 1) if self.last else out

    def extra_repr(self) -> str:
        """Return the sizes of all members together."""
        return (
            f"in_features={self.in_features}, out_features={self.out_features}, "
            f"groups={self.groups}, num_estimators={self.num_estimators}"
        )


def _sizes(
    inputs: int,
    outputs: int,
    alpha: float,
    num_estimators: int,
    gamma: int,
    first: bool,
    last: bool,
) -> tuple[int, int, int]:
    """Return inputs, outputs and groups of all members together."""
    wide_in = packed_width(inputs, alpha, num_estimators, gamma)
    wide_out = packed_width(outputs, alpha, num_estimators, gamma)
    groups = 1 if first else num_estimators * (1 if last else gamma)
    return (inputs if first else wide_in, outputs * num_estimators if last else wide_out, groups)


class PackedConv2d(Conv2d):
    """``Conv2d`` layers of many members, side by side in the channels.

    Images are (batch, channels, height, width); those of the last layer
    (num_estimators, batch, channels, height, width).

    Args:
        in_channels: of the one network that this stands for.
        out_channels: of that network.
        kernel_size: as for ``Conv2d``.
        alpha: as for ``PackedLinear``.
        num_estimators: how many members.
        gamma: as for ``PackedLinear``.
        stride: as for ``Conv2d``.
        padding: as for ``Conv2d``.
        dilation: as for ``Conv2d``.
        groups: of the one network.
        bias: whether to add one.
        padding_mode: as for ``Conv2d``.
        first: as for ``PackedLinear``.
        last: as for ``PackedLinear``.
        key: a key; ``None`` draws from the ambient stream.
        dtype: of the parameters; the default float by default.

    Raises:
        ValueError: ``groups`` do not divide the widths; or, when called, the input does not match.

    >>> import stretto as st
    >>> from stretto.ensemble.layers import PackedConv2d
    >>> first = PackedConv2d(3, 16, 3, alpha=2, num_estimators=4, padding=1, first=True)
    >>> second = PackedConv2d(16, 16, 3, alpha=2, num_estimators=4, padding=1)
    >>> x = second(first(st.numpy.ones((5, 3, 8, 8))))
    >>> x.shape, second.weight.shape
    ((5, 32, 8, 8), (32, 8, 3, 3))
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        alpha: float,
        num_estimators: int,
        gamma: int = 1,
        stride: int | Sequence[int] = 1,
        padding: str | int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        first: bool = False,
        last: bool = False,
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        positive("PackedConv2d", groups=groups)
        wide_in, wide_out, apart = _sizes(
            in_channels, out_channels, alpha, num_estimators, gamma, first, last
        )
        super().__init__(
            wide_in,
            wide_out,
            kernel_size,
            stride,
            padding,
            dilation,
            apart * groups,
            bias,
            padding_mode,
            key=key,
            dtype=dtype,
        )
        self.num_estimators = num_estimators
        self.last = last

    def forward(self, input: ArrayLike) -> Array:
        """Convolve each group.

        Args:
            input: (batch, channels, height, width).

        Returns:
            As the input, with the new channels; of the last layer, with the members along axis 0.
        """
        out: Any = super().forward(input)
        return _split(out, self.num_estimators, out.ndim - 3) if self.last else out
