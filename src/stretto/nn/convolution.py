"""Layers that convolve: ``Conv1d``, ``Conv2d``, ``Conv3d`` and their transposes.

Arguments, attributes, shapes and initial distributions are PyTorch's.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, ClassVar

from stretto._engine.core.functions import described
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key
from stretto.nn import init
from stretto.nn.functional import convolution as functions
from stretto.nn.functional.checks import check_signal, per_axis, positive, two_keys
from stretto.nn.functional.reshaping import pad
from stretto.nn.module import Module, Parameter

_SETTINGS = {
    "in_channels": "the channels of the input.",
    "out_channels": "the channels of the output.",
    "kernel_size": "the size of the kernel.",
    "padding": 'how many elements to add at both ends, or ``"same"`` or ``"valid"`` (none).',
    "dilation": "the distance between elements that the kernel takes.",
    "groups": "into how many groups the channels are divided, which do not mix.",
    "bias": "whether there is a bias.",
    "padding_mode": 'only ``"zeros"``.',
    "key": "the key to draw the parameters from; by default the ambient stream's next one.",
    "dtype": "the dtype of the parameters, by default the default float.",
    "output_padding": "how many elements to add at the end of the output, fewer than\n"
    "        ``stride`` or ``dilation``.",
}
"""The settings of layers that convolve, as their docstrings describe them."""

_convolution = described(_SETTINGS)
_transposed = described(
    {
        **_SETTINGS,
        "stride": "the distance between outputs of neighbouring inputs.",
        "padding": "how many elements to take away at both ends of the output.",
        "dilation": "the distance between elements that the kernel adds to.",
    }
)

_PAD_MODES = ("reflect", "replicate", "circular")


class _Kernel(Module):
    """Hold what convolutions and their transposes share: settings, weight and bias."""

    _axes: ClassVar[int]
    _function: ClassVar[Callable[..., Any]]

    weight: Array
    bias: Array | None

    def _set_up(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int],
        padding: int | Sequence[int] | str,
        dilation: int | Sequence[int],
        groups: int,
        padding_mode: str,
    ) -> None:
        super().__init__()
        caller, n = type(self).__name__, self._axes
        positive(caller, in_channels=in_channels, out_channels=out_channels, groups=groups)
        if in_channels % groups or out_channels % groups:
            raise ValueError(
                f"{caller}: groups must divide in_channels and out_channels, got groups={groups}, "
                f"in_channels={in_channels}, out_channels={out_channels}"
            )
        self.in_channels = in_channels
        self.out_channels = out_channels
        self.kernel_size = per_axis(kernel_size, n, caller, "kernel_size")
        self.stride = per_axis(stride, n, caller, "stride")
        self.padding: Any = padding
        self.dilation = per_axis(dilation, n, caller, "dilation")
        self.groups = groups
        self.padding_mode = padding_mode

    def _draw(
        self, shape: tuple[int, ...], bias: bool, key: Key | None, dtype: DTypeLike | None
    ) -> None:
        """Draw weight and bias, uniform within ±1/√n, where n is the size of ``weight[0]``."""
        weight_key, bias_key = two_keys(key, type(self).__name__)
        bound = 1 / math.sqrt(math.prod(shape[1:]))
        self.weight = Parameter(init.uniform(weight_key, shape, -bound, bound, dtype))
        outputs = (self.out_channels,)
        values = init.uniform(bias_key, outputs, -bound, bound, dtype) if bias else None
        self.register_parameter("bias", values)

    def extra_repr(self) -> str:
        """Return the settings that are not PyTorch's defaults."""
        n = self._axes
        usual = {
            "padding": (0,) * n,
            "dilation": (1,) * n,
            "output_padding": (0,) * n,
            "groups": 1,
            "padding_mode": "zeros",
        }
        parts = [f"{self.in_channels}, {self.out_channels}, kernel_size={self.kernel_size}"]
        parts.append(f"stride={self.stride}")
        for name, value in usual.items():
            if name in self._roles and getattr(self, name) != value:
                parts.append(f"{name}={getattr(self, name)!r}")
        if self.bias is None:
            parts.append("bias=False")
        return ", ".join(parts)


class _Convolution(_Kernel):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] | str = 0,
        dilation: int | Sequence[int] = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        caller = type(self).__name__
        if not isinstance(padding, str):
            padding = per_axis(padding, self._axes, caller, "padding", 0)
        self._set_up(
            in_channels, out_channels, kernel_size, stride, padding, dilation, groups, padding_mode
        )
        if padding_mode != "zeros" and padding_mode not in _PAD_MODES:
            raise ValueError(
                f"{caller}: padding_mode must be 'zeros', 'reflect', 'replicate' or 'circular', "
                f"got {padding_mode!r}"
            )
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(
                    f"{caller}: padding must be 'same', 'valid' or numbers, got {padding!r}"
                )
            if padding == "same" and any(s != 1 for s in self.stride):
                raise ValueError(f"{caller}: padding='same' needs a stride of 1, got {self.stride}")
        shape = (out_channels, in_channels // groups, *self.kernel_size)
        self._draw(shape, bias, key, dtype)

    def forward(self, input: ArrayLike) -> Array:
        """Convolve the input.

        Args:
            input: (batch, in_channels, *space), or without the batch.

        Returns:
            (batch, out_channels, *space), without the batch if the input is; an axis of n becomes
            (n + 2 padding - dilation (kernel_size - 1) - 1) // stride + 1.
        """
        x = check_signal(self, input, self._axes, self.in_channels)
        padding = self.padding
        if self.padding_mode != "zeros":
            x = pad(x, self._ends(), self.padding_mode)
            padding = 0
        return type(self)._function(
            x, self.weight, self.bias, self.stride, padding, self.dilation, self.groups
        )

    def _ends(self) -> tuple[int, ...]:
        """Return the padding in the order that ``pad`` takes: the last axis first."""
        if self.padding == "valid":
            return ()
        if self.padding == "same":
            totals = [d * (k - 1) for k, d in zip(self.kernel_size, self.dilation, strict=True)]
            pairs = [(total // 2, total - total // 2) for total in totals]
        else:
            pairs = [(p, p) for p in self.padding]
        return tuple(p for pair in reversed(pairs) for p in pair)


@_convolution
class Conv1d(_Convolution):
    """Convolve signals (batch, channels, length), or one without the batch.

    Output channel o is ``bias[o]`` plus the sum over input channels c of the cross-correlation of
    ``weight[o, c]`` with ``input[c]``. ``weight`` is (out_channels, in_channels / groups, size),
    ``bias`` (out_channels,) or None; both begin uniform within ±1/√(in_channels / groups × size).

    Args:
        stride: by how much the kernel moves from one output to the next.
        padding_mode: what to pad with: ``"zeros"``, ``"reflect"``, ``"replicate"`` or
            ``"circular"``.

    Raises:
        ValueError: the groups do not divide the channels, a setting is not one of those above, or
            an input does not fit.

    As PyTorch's ``nn.Conv1d``.

    >>> import stretto as st
    >>> layer = st.nn.Conv1d(3, 8, 5, padding=2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 3, 20))).shape
    (4, 8, 20)
    """

    _axes = 1
    _function = functions.conv1d


@_convolution
class Conv2d(_Convolution):
    """Convolve images (batch, channels, height, width), or one without the batch.

    ``weight`` is (out_channels, in_channels / groups, height, width), ``bias`` (out_channels,) or
    None; both begin uniform within ±1/√n, n the elements of ``weight[0]``.

    Args:
        kernel_size: the size of the kernel, one number or (height, width), as are the next three.
        stride: by how much the kernel moves.
        padding_mode: what to pad with, as for ``Conv1d``.

    Raises:
        ValueError: as for ``Conv1d``.

    As PyTorch's ``nn.Conv2d``.

    >>> import stretto as st
    >>> layer = st.nn.Conv2d(3, 16, 3, stride=2, padding=1, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 16, 4, 4)
    """

    _axes = 2
    _function = functions.conv2d


@_convolution
class Conv3d(_Convolution):
    """Convolve volumes (batch, channels, depth, height, width), or one without the batch.

    ``weight`` is (out_channels, in_channels / groups, depth, height, width), ``bias``
    (out_channels,) or None; both begin uniform within ±1/√n, n the elements of ``weight[0]``.

    Args:
        kernel_size: the size of the kernel, one number or one per axis, as are the next three.
        stride: by how much the kernel moves.
        padding_mode: what to pad with, as for ``Conv1d``.

    Raises:
        ValueError: as for ``Conv1d``.

    As PyTorch's ``nn.Conv3d``.

    >>> import stretto as st
    >>> layer = st.nn.Conv3d(2, 4, 3, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((1, 2, 5, 5, 5))).shape
    (1, 4, 3, 3, 3)
    """

    _axes = 3
    _function = functions.conv3d


class _Transposed(_Kernel):
    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        output_padding: int | Sequence[int] = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: int | Sequence[int] = 1,
        padding_mode: str = "zeros",
        *,
        key: Key | None = None,
        dtype: DTypeLike | None = None,
    ) -> None:
        caller = type(self).__name__
        if padding_mode != "zeros":
            raise ValueError(f"{caller}: padding_mode must be 'zeros', got {padding_mode!r}")
        self._set_up(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            per_axis(padding, self._axes, caller, "padding", 0),
            dilation,
            groups,
            padding_mode,
        )
        self.output_padding = per_axis(output_padding, self._axes, caller, "output_padding", 0)
        shape = (in_channels, out_channels // groups, *self.kernel_size)
        self._draw(shape, bias, key, dtype)

    def forward(self, input: ArrayLike, output_size: Sequence[int] | None = None) -> Array:
        """Apply the transpose of a convolution.

        Args:
            input: (batch, in_channels, *space), or without the batch.
            output_size: the spatial sizes to reach, in place of ``output_padding``.

        Returns:
            (batch, out_channels, *space), without the batch if the input is.

        Raises:
            ValueError: ``input`` does not fit, or ``output_size`` cannot be reached.
        """
        x = check_signal(self, input, self._axes, self.in_channels)
        extra = self.output_padding if output_size is None else self._extra(x, output_size)
        return type(self)._function(
            x, self.weight, self.bias, self.stride, self.padding, extra, self.groups, self.dilation
        )

    def _extra(self, x: Array, output_size: Sequence[int]) -> tuple[int, ...]:
        """Return the output padding that yields this size."""
        n = self._axes
        targets = tuple(output_size)[-n:]
        sizes = zip(x.shape[-n:], self.kernel_size, self.stride, self.padding, self.dilation)
        least = [(m - 1) * s - 2 * p + d * (k - 1) + 1 for m, k, s, p, d in sizes]
        most = [size + s - 1 for size, s in zip(least, self.stride, strict=True)]
        if len(targets) != n or any(
            not low <= size <= high for low, size, high in zip(least, targets, most, strict=False)
        ):
            raise ValueError(
                f"{type(self).__name__}: output_size must be from {tuple(least)} to {tuple(most)} "
                f"for input {x.type}, got {tuple(output_size)}"
            )
        return tuple(size - low for low, size in zip(least, targets, strict=True))


@_transposed
class ConvTranspose1d(_Transposed):
    """Apply the transpose of a convolution of signals.

    An output is (length - 1) stride - 2 padding + dilation (kernel_size - 1) + output_padding + 1
    long. ``weight`` is (in_channels, out_channels / groups, size), ``bias`` (out_channels,) or
    None; both begin uniform within ±1/√(out_channels / groups × size).

    Raises:
        ValueError: the groups do not divide the channels, a setting is out of range, or an input
            does not fit.

    As PyTorch's ``nn.ConvTranspose1d``.

    >>> import stretto as st
    >>> layer = st.nn.ConvTranspose1d(3, 2, 4, stride=2, padding=1, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 3, 10))).shape
    (4, 2, 20)
    """

    _axes = 1
    _function = functions.conv_transpose1d


@_transposed
class ConvTranspose2d(_Transposed):
    """Apply the transpose of a convolution of images (batch, channels, height, width).

    Settings, parameters and errors are those of ``ConvTranspose1d``; each setting is a number or
    one per axis.

    As PyTorch's ``nn.ConvTranspose2d``.

    >>> import stretto as st
    >>> layer = st.nn.ConvTranspose2d(3, 2, 3, stride=2, padding=1, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 3, 5, 5)), output_size=(10, 10)).shape
    (4, 2, 10, 10)
    """

    _axes = 2
    _function = functions.conv_transpose2d


@_transposed
class ConvTranspose3d(_Transposed):
    """Apply the transpose of a convolution of volumes (batch, channels, depth, height, width).

    Settings, parameters and errors are those of ``ConvTranspose1d``; each setting is a number or
    one per axis.

    As PyTorch's ``nn.ConvTranspose3d``.

    >>> import stretto as st
    >>> layer = st.nn.ConvTranspose3d(3, 2, 2, stride=2, key=st.random.PRNGKey(0))
    >>> layer(st.numpy.ones((4, 3, 5, 5, 5))).shape
    (4, 2, 10, 10, 10)
    """

    _axes = 3
    _function = functions.conv_transpose3d
