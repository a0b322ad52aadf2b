"""Layers that rearrange elements, and that resize: ``Flatten``, ``PixelShuffle``, ``Upsample``.

Arguments and attributes are PyTorch's; the functions are in ``functional.reshaping`` and
``functional.resizing``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, applies
from stretto.nn.inputs import hashable
from stretto.nn.module import Module


@applies(F.flatten, "By default all axes but the first, the batch, are joined.")
class Flatten(FunctionLayer):
    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__(start_dim=start_dim, end_dim=end_dim)


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
        return F.unflatten(input, self.dim, self.unflattened_size)

    def extra_repr(self) -> str:
        """Return the axis and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


@applies(F.pixel_shuffle)
class PixelShuffle(FunctionLayer):
    def __init__(self, upscale_factor: int) -> None:
        super().__init__(upscale_factor=upscale_factor)


@applies(F.pixel_unshuffle)
class PixelUnshuffle(FunctionLayer):
    def __init__(self, downscale_factor: int) -> None:
        super().__init__(downscale_factor=downscale_factor)


@applies(F.channel_shuffle)
class ChannelShuffle(FunctionLayer):
    def __init__(self, groups: int) -> None:
        super().__init__(groups=groups)


@applies(F.unfold)
class Unfold(FunctionLayer):
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__(kernel_size=kernel_size, dilation=dilation, padding=padding, stride=stride)


@applies(F.fold)
class Fold(FunctionLayer):
    def __init__(
        self,
        output_size: int | Sequence[int],
        kernel_size: int | Sequence[int],
        dilation: int | Sequence[int] = 1,
        padding: int | Sequence[int] = 0,
        stride: int | Sequence[int] = 1,
    ) -> None:
        super().__init__(
            output_size=output_size,
            kernel_size=kernel_size,
            dilation=dilation,
            padding=padding,
            stride=stride,
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
        return F.interpolate(
            input,
            self.size,
            self.scale_factor,
            self.mode,
            self.align_corners,
            self.recompute_scale_factor,
        )

    def extra_repr(self) -> str:
        """Return the size or the factor, and the mode."""
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


@described_like(UpsamplingNearest2d)
class UpsamplingBilinear2d(Upsample):
    """Resize images by means of four neighbours, with corners in their places.

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
