"""Layers that rearrange elements, and that resize: ``Flatten``, ``PixelShuffle``, ``Upsample``.

Arguments and attributes are PyTorch's; the functions are in ``functional.reshaping`` and
``functional.resizing``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn.functional import reshaping as functions
from stretto.nn.functional.resizing import interpolate
from stretto.nn.inputs import hashable
from stretto.nn.module import Module

__all__ = [
    "ChannelShuffle",
    "Flatten",
    "Fold",
    "PixelShuffle",
    "PixelUnshuffle",
    "Unflatten",
    "Unfold",
    "Upsample",
    "UpsamplingBilinear2d",
    "UpsamplingNearest2d",
]


class Flatten(Module):
    """Join consecutive axes into one: by default all but the batch.

    Args:
        start_dim: the first axis to join.
        end_dim: the last axis to join.

    Raises:
        ValueError: the axes do not fit an input.

    As PyTorch's ``nn.Flatten``.

    >>> import stretto as st
    >>> st.nn.Flatten()(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 192)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: ArrayLike) -> Array:
        """Join the axes.

        Args:
            input: an array of any shape.

        Returns:
            The same elements, with fewer axes.
        """
        return functions.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """Split an axis into several.

    Args:
        dim: the axis.
        unflattened_size: the sizes; one of them may be -1 for what remains.

    Raises:
        ValueError: the sizes do not multiply to an input's axis.

    As PyTorch's ``nn.Unflatten``.

    >>> import stretto as st
    >>> st.nn.Unflatten(1, (3, -1))(st.numpy.ones((4, 12))).shape
    (4, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: ArrayLike) -> Array:
        """Split the axis.

        Args:
            input: an array of any shape.

        Returns:
            The same elements, with more axes.
        """
        return functions.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The axis and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """Move channels to pixels: from (..., c r², h, w) to (..., c, h r, w r).

    Args:
        upscale_factor: r.

    Raises:
        ValueError: r² does not divide an input's channels.

    As PyTorch's ``nn.PixelShuffle``.

    >>> import stretto as st
    >>> st.nn.PixelShuffle(2)(st.numpy.ones((4, 12, 8, 8))).shape
    (4, 3, 16, 16)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: ArrayLike) -> Array:
        """Move channels to pixels.

        Args:
            input: (..., c r², h, w).

        Returns:
            (..., c, h r, w r).
        """
        return functions.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """Move pixels to channels: from (..., c, h r, w r) to (..., c r², h, w).

    Args:
        downscale_factor: r.

    Raises:
        ValueError: r does not divide an input's height and width.

    As PyTorch's ``nn.PixelUnshuffle``.

    >>> import stretto as st
    >>> st.nn.PixelUnshuffle(2)(st.numpy.ones((4, 3, 16, 16))).shape
    (4, 12, 8, 8)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: ArrayLike) -> Array:
        """Move pixels to channels.

        Args:
            input: (..., c, h r, w r).

        Returns:
            (..., c r², h, w).
        """
        return functions.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Reorder the channels: the first of each group, then the second of each, and so on.

    Args:
        groups: the number of groups.

    Raises:
        ValueError: the groups do not divide an input's channels.

    As PyTorch's ``nn.ChannelShuffle``.

    >>> import stretto as st
    >>> st.nn.ChannelShuffle(2)(st.numpy.ones((4, 6, 8, 8))).shape
    (4, 6, 8, 8)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: ArrayLike) -> Array:
        """Reorder the channels.

        Args:
            input: (batch, channels, ...).

        Returns:
            The same shape.
        """
        return functions.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """Lay out the windows of images as columns.

    Args:
        kernel_size: the size of a window, a number or (height, width), as are the settings after
            it.
        dilation: the distance between elements of a window.
        padding: how many zeros to add at both ends.
        stride: the distance between windows.

    Raises:
        ValueError: an input has another rank, or no window fits.

    As PyTorch's ``nn.Unfold``.

    >>> import stretto as st
    >>> st.nn.Unfold(2)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 12, 49)
    """

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.kernel_size = hashable(kernel_size)
        self.dilation = hashable(dilation)
        self.padding = hashable(padding)
        self.stride = hashable(stride)

    def forward(self, input: ArrayLike) -> Array:
        """Lay out the windows.

        Args:
            input: (batch, channels, height, width), or without the batch.

        Returns:
            (batch, channels × kernel elements, windows), without the batch if the input is.
        """
        return functions.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Add columns up where their windows lie in images.

    Args:
        output_size: the height and width of the images.
        kernel_size: the size of a window, a number or (height, width), as are the settings after
            it.
        dilation: the distance between elements of a window.
        padding: how many zeros were added at both ends.
        stride: the distance between windows.

    Raises:
        ValueError: the number of elements or of windows of an input does not fit.

    As PyTorch's ``nn.Fold``.

    >>> import stretto as st
    >>> st.nn.Fold(8, 2)(st.numpy.ones((4, 12, 49))).shape
    (4, 3, 8, 8)
    """

    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__()
        self.output_size = hashable(output_size)
        self.kernel_size = hashable(kernel_size)
        self.dilation = hashable(dilation)
        self.padding = hashable(padding)
        self.stride = hashable(stride)

    def forward(self, input: ArrayLike) -> Array:
        """Add the columns up.

        Args:
            input: (batch, channels × kernel elements, windows), or without the batch.

        Returns:
            (batch, channels, *output_size), without the batch if the input is.
        """
        return functions.fold(
            input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride
        )

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, "
            f"dilation={self.dilation}, padding={self.padding}, stride={self.stride}"
        )


class Upsample(Module):
    """Resize the spatial axes.

    Args:
        size: the spatial sizes, a number or one per axis; this or ``scale_factor``.
        scale_factor: by how much sizes grow, likewise.
        mode: as for ``functional.interpolate``.
        align_corners: whether corner elements keep their places, in the linear and cubic modes.
        recompute_scale_factor: whether the scale is taken from the rounded sizes.

    Raises:
        ValueError: the settings do not fit an input, or each other; on the call.

    As PyTorch's ``nn.Upsample``; see ``functional.interpolate``.

    >>> import stretto as st
    >>> st.nn.Upsample(scale_factor=2, mode="bilinear")(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 16, 16)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
        mode: str = "nearest",
        align_corners: bool | None = None,
        recompute_scale_factor: bool | None = None,
    ) -> None:
        super().__init__()
        self.size = hashable(size)
        self.scale_factor = hashable(scale_factor)
        self.mode = mode
        self.align_corners = align_corners
        self.recompute_scale_factor = recompute_scale_factor

    def forward(self, input: ArrayLike) -> Array:
        """Resize the input.

        Args:
            input: (batch, channels, and one to three spatial axes).

        Returns:
            The same axes with other sizes.
        """
        return interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """The size or the factor, and the mode."""
        name = "size" if self.scale_factor is None else "scale_factor"
        return f"{name}={getattr(self, name)}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """Resize images by the nearest element.

    Args:
        size: the height and width; this or ``scale_factor``.
        scale_factor: by how much they grow.

    Raises:
        ValueError: the settings do not fit an input, or each other; on the call.

    As PyTorch's ``nn.UpsamplingNearest2d``.

    >>> import stretto as st
    >>> st.nn.UpsamplingNearest2d(scale_factor=2)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 16, 16)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "nearest")


class UpsamplingBilinear2d(Upsample):
    """Resize images by means of four neighbours, with corners in their places.

    Args:
        size: the height and width; this or ``scale_factor``.
        scale_factor: by how much they grow.

    Raises:
        ValueError: the settings do not fit an input, or each other; on the call.

    As PyTorch's ``nn.UpsamplingBilinear2d``.

    >>> import stretto as st
    >>> st.nn.UpsamplingBilinear2d(scale_factor=2)(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 3, 16, 16)
    """

    def __init__(
        self,
        size: int | Sequence[int] | None = None,
        scale_factor: float | Sequence[float] | None = None,
    ) -> None:
        super().__init__(size, scale_factor, "bilinear", True)
