"""Layers that normalize each example by itself: over features, groups or neighbouring channels.

Arguments, attributes and defaults are PyTorch's. ``batch_normalization`` has those with running
statistics.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto.nn import init
from stretto.nn.functional import normalization as functions
from stretto.nn.functional.arguments import as_float, numbers
from stretto.nn.inputs import positive, refuse
from stretto.nn.module import Module

__all__ = ["GroupNorm", "LayerNorm", "LocalResponseNorm", "RMSNorm"]


class LayerNorm(Module):
    """Normalize the last axes to mean 0 and variance 1, then scale and shift.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias``, with mean and variance
    over the last axes of each example.

    Args:
        normalized_shape: the shape of those axes, and of the parameters.
        eps: what is added to the variance.
        elementwise_affine: whether there is ``weight`` (ones).
        bias: whether there is ``bias`` (zeros) as well.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: an input has other last axes.

    As PyTorch's ``nn.LayerNorm``. Source: Ba et al., Layer Normalization, 2016.

    >>> import stretto as st
    >>> st.nn.LayerNorm(2)(st.numpy.array([[1.0, 3.0], [0.0, 8.0]])).round(3)
    Array([[-1.,  1.],
           [-1.,  1.]], dtype=float32)
    """

    weight: Array | None
    bias: Array | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float = 1e-5,
        elementwise_affine: bool = True,
        bias: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = numbers(normalized_shape, type(self).__name__, "normalized_shape")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        shape = self.normalized_shape
        self.register_parameter("weight", init.ones(shape, dtype) if elementwise_affine else None)
        biased = elementwise_affine and bias
        self.register_parameter("bias", init.zeros(shape, dtype) if biased else None)

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        Args:
            input: an array whose last axes are ``normalized_shape``.

        Returns:
            The same shape and dtype; integers become floats.
        """
        x = _with_last_axes(self, input, self.normalized_shape)
        return functions.layer_norm(x, self.normalized_shape, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, "
            f"elementwise_affine={self.elementwise_affine}, bias={self.bias is not None}"
        )


class RMSNorm(Module):
    """Divide by the root mean square over the last axes, then scale.

    The output is ``input / sqrt(mean(input²) + eps) * weight``.

    Args:
        normalized_shape: the shape of those axes, and of ``weight``.
        eps: what is added to the mean; by default the precision of the dtype.
        elementwise_affine: whether there is ``weight`` (ones).
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: an input has other last axes.

    As PyTorch's ``nn.RMSNorm``. Source: Zhang and Sennrich, Root Mean Square Layer Normalization,
    2019.

    >>> import stretto as st
    >>> st.nn.RMSNorm(2)(st.numpy.array([[3.0, 4.0]])).round(3)
    Array([[0.849, 1.131]], dtype=float32)
    """

    weight: Array | None

    def __init__(
        self,
        normalized_shape: int | Sequence[int],
        eps: float | None = None,
        elementwise_affine: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        self.normalized_shape = numbers(normalized_shape, type(self).__name__, "normalized_shape")
        self.eps = eps
        self.elementwise_affine = elementwise_affine
        ones = init.ones(self.normalized_shape, dtype) if elementwise_affine else None
        self.register_parameter("weight", ones)

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        Args:
            input: an array whose last axes are ``normalized_shape``.

        Returns:
            The same shape and dtype; integers become floats.
        """
        x = _with_last_axes(self, input, self.normalized_shape)
        return functions.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _with_last_axes(layer: Module, input: ArrayLike, shape: tuple[int, ...]) -> Array:
    x = as_float(input, type(layer).__name__)
    if x.shape[max(x.ndim - len(shape), 0) :] != shape:
        refuse(layer, f"(..., {', '.join(map(str, shape))})", x)
    return x


class GroupNorm(Module):
    """Normalize each example's channels in groups, then scale and shift each channel.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias``, with mean and variance
    over a group's channels and space.

    Args:
        num_groups: the number of groups, a divisor of ``num_channels``.
        num_channels: the number of channels, axis 1.
        eps: what is added to the variance.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_channels,).
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        ValueError: the groups do not divide the channels, or an input does not fit.

    As PyTorch's ``nn.GroupNorm``. Source: Wu and He, Group Normalization, 2018.

    >>> import stretto as st
    >>> st.nn.GroupNorm(2, 4)(st.numpy.array([[1.0, 3.0, 10.0, 30.0]])).round(3)
    Array([[-1.,  1., -1.,  1.]], dtype=float32)
    """

    weight: Array | None
    bias: Array | None

    def __init__(
        self,
        num_groups: int,
        num_channels: int,
        eps: float = 1e-5,
        affine: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__()
        positive("GroupNorm", num_groups=num_groups, num_channels=num_channels)
        if num_channels % num_groups:
            raise ValueError(
                f"GroupNorm: num_groups must divide num_channels, got {num_groups} and "
                f"{num_channels}"
            )
        self.num_groups = num_groups
        self.num_channels = num_channels
        self.eps = eps
        self.affine = affine
        shape = (num_channels,)
        self.register_parameter("weight", init.ones(shape, dtype) if affine else None)
        self.register_parameter("bias", init.zeros(shape, dtype) if affine else None)

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        Args:
            input: (batch, num_channels, ...).

        Returns:
            The same shape and dtype; integers become floats.
        """
        x = as_value(input, "GroupNorm", "input")
        if x.ndim < 2 or x.shape[1] != self.num_channels:
            refuse(self, f"(batch, {self.num_channels} channels, ...)", x)
        return functions.group_norm(x, self.num_groups, self.weight, self.bias, self.eps)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.num_groups}, {self.num_channels}, eps={self.eps}, affine={self.affine}"


class LocalResponseNorm(Module):
    """Divide by a power of the mean square of neighbouring channels.

    The output is ``input / (k + alpha * mean)**beta``, with the mean of squares over ``size``
    channels.

    Args:
        size: how many channels count, around each.
        alpha: the factor of the mean.
        beta: the power.
        k: what is added to the mean.

    Raises:
        ValueError: ``size`` is not positive, or an input has fewer than 3 axes.

    As PyTorch's ``nn.LocalResponseNorm``. Source: Krizhevsky et al., ImageNet Classification with
    Deep Convolutional Neural Networks, 2012.

    >>> import stretto as st
    >>> layer = st.nn.LocalResponseNorm(3, alpha=3.0, beta=1.0)
    >>> layer(st.numpy.ones((1, 3, 1))).round(3).ravel()
    Array([0.333, 0.25 , 0.333], dtype=float32)
    """

    def __init__(self, size: int, alpha: float = 1e-4, beta: float = 0.75, k: float = 1.0) -> None:
        super().__init__()
        positive("LocalResponseNorm", size=size)
        self.size = size
        self.alpha = alpha
        self.beta = beta
        self.k = k

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        Args:
            input: (batch, channels, length, ...).

        Returns:
            The same shape and dtype; integers become floats.
        """
        return functions.local_response_norm(input, self.size, self.alpha, self.beta, self.k)

    def extra_repr(self) -> str:
        """The settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"
