"""Layers that normalize channels over batches or instances, and may keep running statistics.

Arguments, attributes, buffers and defaults are PyTorch's. In train mode layers with running
statistics update their buffers: at rest on the module itself, inside a transformation through
``nn.stateful_call``.
"""

from __future__ import annotations

import math
from typing import Any, ClassVar

import numpy as np

from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import greater
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import reduce_sum, reshape
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert
from stretto.nn import init
from stretto.nn.functional import normalization as functions
from stretto.nn.inputs import check_signal, positive, refuse
from stretto.nn.module import Module

__all__ = [
    "BatchNorm1d",
    "BatchNorm2d",
    "BatchNorm3d",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "InstanceNorm3d",
]


class _Tracking(Module):
    """What layers with running statistics share."""

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
        """The settings."""
        names = ("eps", "momentum", "affine", "track_running_stats")
        settings = ", ".join(f"{name}={getattr(self, name)}" for name in names)
        return f"{self.num_features}, {settings}"


def _unbiased(variance: Array, count: int) -> Array:
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
        x = self._checked(input)
        mean, variance = self.running_mean, self.running_var
        if self.training or mean is None:
            mean, variance = self._statistics(x)
        return functions.batch_norm(x, mean, variance, self.weight, self.bias, eps=self.eps)

    def _checked(self, input: ArrayLike) -> Array:
        return check_signal(self, input, self._axes, self.num_features, batch=True)

    def _statistics(self, x: Array) -> tuple[Array, Array]:
        """The mean and variance of the batch; in train mode the running ones move towards them."""
        mean, variance = functions.batch_statistics(x)
        count = x.size // self.num_features
        if self.training:
            if count == 1:
                refuse(self, "of more than 1 value per channel in train mode", x)
            if self.running_mean is not None:
                batches = self.num_batches_tracked + 1
                share = 1 / batches if self.momentum is None else self.momentum
                self.update_buffer("num_batches_tracked", batches)
                self._track(mean, _unbiased(variance, count), share)
        return mean, variance


class BatchNorm1d(_BatchNorm):
    """Normalize each channel over the batch: (batch, channels) or (batch, channels, length).

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel. In
    train mode mean and (biased) variance are the batch's, and the buffers ``running_mean`` and
    ``running_var`` (unbiased) move towards them; in evaluation mode they are the running ones.
    Without running statistics the batch's are always used.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics; None makes them plain means.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

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

    def _checked(self, input: ArrayLike) -> Array:
        x = as_value(input, "BatchNorm1d", "input")
        if x.ndim not in (2, 3) or x.shape[1] != self.num_features:
            channels = f"{self.num_features} channels"
            refuse(self, f"(batch, {channels}) or (batch, {channels}, length)", x)
        return x


class BatchNorm2d(_BatchNorm):
    """Normalize each channel of images (batch, channels, height, width) over the batch.

    Settings, buffers and errors are those of ``BatchNorm1d``.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics; None makes them plain means.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

    As PyTorch's ``nn.BatchNorm2d``.

    >>> import stretto as st
    >>> st.nn.BatchNorm2d(3)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _axes = 2


class BatchNorm3d(_BatchNorm):
    """Normalize each channel of volumes (batch, channels, depth, height, width) over the batch.

    Settings, buffers and errors are those of ``BatchNorm1d``.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics; None makes them plain means.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

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
            for v in (mean, _unbiased(variance, math.prod(spatial)))
        )
        self._track(mean, variance, 0.0 if self.momentum is None else self.momentum)


class InstanceNorm1d(_InstanceNorm):
    """Normalize each channel of each signal (batch, channels, length), or of one, by itself.

    The output is ``(input - mean) / sqrt(variance + eps) * weight + bias`` for each channel. By
    default there are neither parameters nor running statistics.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

    Raises:
        RuntimeError: an update of the buffers would be lost; see ``nn.stateful_call``.
        ValueError: an input does not fit, or has only one value per channel.

    As PyTorch's ``nn.InstanceNorm1d``. Source: Ulyanov et al., Instance Normalization, 2016.

    >>> import stretto as st
    >>> st.nn.InstanceNorm1d(1)(st.numpy.array([[1.0, 3.0]])).round(3)
    Array([[-1.,  1.]], dtype=float32)
    """

    _axes = 1


class InstanceNorm2d(_InstanceNorm):
    """Normalize each channel of each image (batch, channels, height, width) by itself.

    Settings, buffers and errors are those of ``InstanceNorm1d``.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

    As PyTorch's ``nn.InstanceNorm2d``.

    >>> import stretto as st
    >>> st.nn.InstanceNorm2d(3)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 8, 8)
    """

    _axes = 2


class InstanceNorm3d(_InstanceNorm):
    """Normalize each channel of each volume (batch, channels, depth, height, width) by itself.

    Settings, buffers and errors are those of ``InstanceNorm1d``.

    Args:
        num_features: the number of channels, axis 1.
        eps: what is added to the variance.
        momentum: the share of a batch in the running statistics.
        affine: whether there are ``weight`` (ones) and ``bias`` (zeros), each (num_features,).
        track_running_stats: whether there are running statistics.
        dtype: the dtype of the parameters, by default the default float.

    As PyTorch's ``nn.InstanceNorm3d``.

    >>> import stretto as st
    >>> st.nn.InstanceNorm3d(3)(st.numpy.ones((4, 3, 2, 8, 8))).shape
    (4, 3, 2, 8, 8)
    """

    _axes = 3
