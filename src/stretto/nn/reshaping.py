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
    """The axes from ``start_dim`` to ``end_dim`` as one: by default all but the batch.

    >>> import stretto as st
    >>> st.nn.Flatten()(st.numpy.ones((4, 3, 8, 8))).shape
    (4, 192)
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim = start_dim
        self.end_dim = end_dim

    def forward(self, input: ArrayLike) -> Array:
        """The input flattened."""
        return functions.flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The axes."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """The axis ``dim`` as several, of these sizes.

    >>> import stretto as st
    >>> st.nn.Unflatten(1, (3, -1))(st.numpy.ones((4, 12))).shape
    (4, 3, 4)
    """

    def __init__(self, dim: int, unflattened_size: Sequence[int]) -> None:
        super().__init__()
        self.dim = dim
        self.unflattened_size = tuple(unflattened_size)

    def forward(self, input: ArrayLike) -> Array:
        """The input with more axes."""
        return functions.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """The axis and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """From (..., c r², h, w) to (..., c, h r, w r); see ``functional.pixel_shuffle``.

    >>> import stretto as st
    >>> st.nn.PixelShuffle(2)(st.numpy.ones((4, 12, 8, 8))).shape
    (4, 3, 16, 16)
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: ArrayLike) -> Array:
        """Channels moved to pixels."""
        return functions.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """From (..., c, h r, w r) to (..., c r², h, w); see ``functional.pixel_unshuffle``.

    >>> import stretto as st
    >>> st.nn.PixelUnshuffle(2)(st.numpy.ones((4, 3, 16, 16))).shape
    (4, 12, 8, 8)
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: ArrayLike) -> Array:
        """Pixels moved to channels."""
        return functions.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """The channels of all groups dealt out in turn; see ``functional.channel_shuffle``.

    >>> import stretto as st
    >>> st.nn.ChannelShuffle(2)(st.numpy.ones((4, 6, 8, 8))).shape
    (4, 6, 8, 8)
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: ArrayLike) -> Array:
        """The channels in another order."""
        return functions.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """The windows of images as columns; see ``functional.unfold``.

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
        """The windows."""
        return functions.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The settings."""
        return (
            f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )


class Fold(Module):
    """Columns added up where their windows lie in images; see ``functional.fold``.

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
        """The images."""
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
    """(batch, channels, spatial ...) at another size; see ``functional.interpolate``.

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
        """The input at the other size."""
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
        given = f"size={self.size}" if self.scale_factor is None else ""
        return f"{given or f'scale_factor={self.scale_factor}'}, mode={self.mode!r}"


class UpsamplingNearest2d(Upsample):
    """``Upsample`` of images by the nearest element.

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
    """``Upsample`` of images between four neighbours, the corners staying in place.

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
