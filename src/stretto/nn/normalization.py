"""Layers that normalize: over batches, instances, features, groups or neighboring channels.

Arguments, attributes, buffers and defaults are PyTorch's. In train mode layers with running
statistics update their buffers: at rest on the module itself, inside a transformation through
``nn.stateful_call``.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.functions import described, described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import greater
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import reduce_sum, reshape
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto.nn import init
from stretto.nn.functional import normalization as functions
from stretto.nn.functional.checks import as_float, check_signal, numbers, positive, refuse
from stretto.nn.module import Module

_normalization = described(
    {
        "eps": "what is added to the variance.",
        "dtype": "the dtype of the parameters, by default the default float.",
        "affine": "whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).",
        "num_features": "the number of channels, axis 1.",
        "momentum": "the share of a batch in the running statistics; None makes them plain means.",
        "track_running_stats": "whether there are running statistics.",
    }
)
"""Complete the docstring of a layer that normalizes."""


@_normalization
class LayerNorm(Module):
    """Normalize the last axes to mean 0 and variance 1, then scale and shift.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias``, with mean and variance
    over the last axes of each example.

    Args:
        normalized_shape: the shape of those axes, and of the parameters.
        elementwise_affine: whether there is ``weight`` (ones).
        bias: whether there is ``bias`` (zeros) as well.

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
        """Return the settings."""
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

    @described_like(LayerNorm.forward)
    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input."""
        x = _with_last_axes(self, input, self.normalized_shape)
        return functions.rms_norm(x, self.normalized_shape, self.weight, self.eps)

    def extra_repr(self) -> str:
        """Return the settings."""
        return (
            f"{self.normalized_shape}, eps={self.eps}, elementwise_affine={self.elementwise_affine}"
        )


def _with_last_axes(layer: Module, input: ArrayLike, shape: tuple[int, ...]) -> Array:
    x = as_float(input, type(layer).__name__)
    if x.shape[max(x.ndim - len(shape), 0) :] != shape:
        refuse(layer, f"(..., {', '.join(map(str, shape))})", x)
    return x


@_normalization
class GroupNorm(Module):
    """Normalize each example's channels in groups, then scale and shift each channel.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias``, with mean and variance
    over a group's channels and space.

    Args:
        num_groups: the number of groups, a divisor of ``num_channels``.
        num_channels: the number of channels, axis 1.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_channels,).

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
        """Return the settings."""
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
        """Return the settings."""
        return f"{self.size}, alpha={self.alpha}, beta={self.beta}, k={self.k}"


class _Tracking(Module):
    """Hold what layers with running statistics share."""

    _axes: ClassVar[int]

    weight: Array | None
    bias: Array | None
    running_mean: Array | None
    running_var: Array | None
    num_batches_tracked: Any

    def __init__(
        self,
        num_features: int,
        eps: float,
        momentum: float | None,
        affine: bool,
        track_running_stats: bool,
        dtype: DTypeLike | None,
    ) -> None:
        super().__init__()
        positive(type(self).__name__, num_features=num_features)
        self.num_features = num_features
        self.eps = eps
        self.momentum = momentum
        self.affine = affine
        self.track_running_stats = track_running_stats
        shape = (num_features,)
        self.register_parameter("weight", init.ones(shape, dtype) if affine else None)
        self.register_parameter("bias", init.zeros(shape, dtype) if affine else None)
        count = full((), 0, np.dtype(np.int32)) if track_running_stats else None
        self.register_buffer(
            "running_mean", init.zeros(shape, dtype) if track_running_stats else None
        )
        self.register_buffer(
            "running_var", init.ones(shape, dtype) if track_running_stats else None
        )
        self.register_buffer("num_batches_tracked", count)

    def _track(self, mean: Array, variance: Array, share: ArrayLike) -> None:
        """Move the running statistics by this share of the way towards those of a batch."""
        for name, new in (("running_mean", mean), ("running_var", variance)):
            old = getattr(self, name)
            new = convert(stop_gradient(new), old.dtype)
            self.update_buffer(name, convert(old + (new - old) * share, old.dtype))

    def extra_repr(self) -> str:
        """Return the settings."""
        names = ("eps", "momentum", "affine", "track_running_stats")
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{self.num_features}, {settings}"


def _unbias(variance: Array, count: int) -> Array:
    # One value is refused, but of a count that varies it is not known: its variance, 0, stays.
    return variance * (count / greater(count - 1, 1))


class _BatchNorm(_Tracking):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = True,
        track_running_stats: bool = True,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        In train mode by its own statistics, otherwise by the running ones.

        Args:
            input: (batch, num_features, *space).

        Returns:
            The same shape and dtype.

        Raises:
            RuntimeError: the update of the running statistics would be lost.
            ValueError: the input does not fit, or has only one value per channel in train mode.
        """
        x = self._check(input)
        mean, variance = self.running_mean, self.running_var
        if self.training or mean is None:
            mean, variance = self._statistics(x)
        return functions.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)

    def _check(self, input: ArrayLike) -> Array:
        return check_signal(self, input, self._axes, self.num_features, batch=True)

    def _statistics(self, x: Array) -> tuple[Array, Array]:
        """Return the batch's mean and variance; in train mode the running ones approach them."""
        mean, variance = functions.batch_statistics(x)
        count = x.size // self.num_features
        if self.training:
            if count == 1:
                refuse(self, "of more than 1 value per channel in train mode", x)
            if self.running_mean is not None:
                batches = self.num_batches_tracked + 1
                share = 1 / batches if self.momentum is None else self.momentum
                self.update_buffer("num_batches_tracked", batches)
                self._track(mean, _unbias(variance, count), share)
        return mean, variance


@_normalization
class BatchNorm1d(_BatchNorm):
    """Normalize each channel over the batch: (batch, channels) or (batch, channels, length).

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel. In
    train mode mean and (biased) variance are the batch's, and the buffers ``running_mean`` and
    ``running_var`` (unbiased) move towards them; in evaluation mode they are the running ones.
    Without running statistics the batch's are always used.

    Raises:
        RuntimeError: an update of the buffers would be lost; see ``nn.stateful_call``.
        ValueError: an input does not fit, or has only one value per channel in train mode.

    As PyTorch's ``nn.BatchNorm1d``. Source: Ioffe and Szegedy, Batch Normalization, 2015.

    >>> import stretto as st
    >>> layer = st.nn.BatchNorm1d(2)
    >>> layer(st.numpy.array([[1.0, 5.0], [3.0, 5.0]])).round(3)
    Array([[-1.,  0.],
           [ 1.,  0.]], dtype=float32)
    >>> layer.running_mean, layer.num_batches_tracked
    (Array([0.2, 0.5], dtype=float32), Array(1, dtype=int32))
    """

    _axes = 1

    def _check(self, input: ArrayLike) -> Array:
        x = as_value(input, "BatchNorm1d", "input")
        if x.ndim not in (2, 3) or x.shape[1] != self.num_features:
            channels = f"{self.num_features} channels"
            refuse(self, f"(batch, {channels}) or (batch, {channels}, length)", x)
        return x


@_normalization
class BatchNorm2d(_BatchNorm):
    """Normalize each channel of images (batch, channels, height, width) over the batch.

    Settings, buffers and errors are those of ``BatchNorm1d``.

    As PyTorch's ``nn.BatchNorm2d``.

    >>> import stretto as st
    >>> st.nn.BatchNorm2d(3)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _axes = 2


@_normalization
class BatchNorm3d(_BatchNorm):
    """Normalize each channel of volumes (batch, channels, depth, height, width) over the batch.

    Settings, buffers and errors are those of ``BatchNorm1d``.

    As PyTorch's ``nn.BatchNorm3d``.

    >>> import stretto as st
    >>> st.nn.BatchNorm3d(3)(st.numpy.ones((4, 3, 2, 8, 8))).shape
    (4, 3, 2, 8, 8)
    """

    _axes = 3


class _InstanceNorm(_Tracking):
    def __init__(
        self,
        num_features: int,
        eps: float = 1e-5,
        momentum: float | None = 0.1,
        affine: bool = False,
        track_running_stats: bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> None:
        super().__init__(num_features, eps, momentum, affine, track_running_stats, dtype)

    def forward(self, input: ArrayLike) -> Array:
        """Normalize the input.

        By its own statistics, or in evaluation mode by the running ones if there are any.

        Args:
            input: (batch, num_features, *space), or without the batch.

        Returns:
            The same shape and dtype.

        Raises:
            RuntimeError: the update of the running statistics would be lost.
            ValueError: the input does not fit, or has only one value per channel.
        """
        x = check_signal(self, input, self._axes, self.num_features)
        single = x.ndim == self._axes + 1
        batch = reshape(x, (1, *x.shape)) if single else x
        own = self.training or self.running_mean is None
        if own and batch.size == batch.shape[0] * self.num_features:
            refuse(self, "of more than 1 value per channel", x)
        if self.training and self.running_mean is not None:
            self._observe(batch)
        out = functions.instance_norm(
            batch, self.running_mean, self.running_var, self.weight, self.bias, own, eps=self.eps
        )
        return reshape(out, x.shape)

    def _observe(self, x: Array) -> None:
        """Move the running statistics towards the means over the examples of theirs."""
        examples, channels, *spatial = x.shape
        together = reshape(x, (1, examples * channels, *spatial))
        mean, variance = functions.batch_statistics(together)
        mean, variance = (
            reduce_sum(reshape(v, (examples, channels)), (0,)) / examples
            for v in (mean, _unbias(variance, math.prod(spatial)))
        )
        self._track(mean, variance, 0.0 if self.momentum is None else self.momentum)


@_normalization
class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each signal (batch, channels, length), or of one, by itself.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel. By
    default there are neither parameters nor running statistics.

    Args:
        momentum: the share of a batch in the running statistics.

    Raises:
        RuntimeError: an update of the buffers would be lost; see ``nn.stateful_call``.
        ValueError: an input does not fit, or has only one value per channel.

    As PyTorch's ``nn.InstanceNorm1d``. Source: Ulyanov et al., Instance Normalization, 2016.

    >>> import stretto as st
    >>> st.nn.InstanceNorm1d(1)(st.numpy.array([[1.0, 3.0]])).round(3)
    Array([[-1.,  1.]], dtype=float32)
    """

    _axes = 1


@_normalization
class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image (batch, channels, height, width) by itself.

    Settings, buffers and errors are those of ``InstanceNorm1d``.

    Args:
        momentum: the share of a batch in the running statistics.

    As PyTorch's ``nn.InstanceNorm2d``.

    >>> import stretto as st
    >>> st.nn.InstanceNorm2d(3)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _axes = 2


@_normalization
class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume (batch, channels, depth, height, width) by itself.

    Settings, buffers and errors are those of ``InstanceNorm1d``.

    Args:
        momentum: the share of a batch in the running statistics.

    As PyTorch's ``nn.InstanceNorm3d``.

    >>> import stretto as st
    >>> st.nn.InstanceNorm3d(3)(st.numpy.ones((4, 3, 2, 8, 8))).shape
    (4, 3, 2, 8, 8)
    """

    _axes = 3
