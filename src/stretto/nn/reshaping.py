"""Layers that rearrange elements: axes joined and split, pixels, windows, padding, resizing.

Names, arguments, attributes and meanings are PyTorch's; most call their function of ``functional``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn import functional as F
from stretto.nn.function_layers import FunctionLayer, applies
from stretto.nn.functional.checks import check_signal, hashable, numbers
from stretto.nn.functional.reshaping import pad
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


_INPUTS = {
    1: "signals (batch, channels, length)",
    2: "images (batch, channels, height, width)",
    3: "volumes (batch, channels, depth, height, width)",
}


# Padding: the layers of signals, images and volumes differ in ``_axes`` alone, and their docstrings
# are made of their base's words


def _docstring(cls: type[_Pad]) -> str:
    """Return the docstring of a layer of this number of axes."""
    n, constant = cls._axes, issubclass(cls, _ConstantPad)
    first, _, more = cls._words.partition("\n\n")
    sizes, padded = (str(s[: n + 1]) for s in ((1, 4, 5, 6), (1, 6, 7, 8)))
    lines = [
        f"{first} {_INPUTS[n]}, or one.",
        *(["", more] if more else []),
        "",
        "Args:",
        "    padding: a number for all ends, or (before, after)"
        + ("" if n == 1 else " of each axis, the last first")
        + "; negative",
        "        ones take elements away.",
        *(["    value: the constant."] if constant else []),
        "",
        "Raises:",
        "    ValueError: ``padding`` has another length, an input has another rank, or an axis has",
        "        too few elements.",
        "",
        f"As PyTorch's ``nn.{cls.__name__}``; see ``functional.pad``.",
        "",
        ">>> import stretto as st",
        f">>> st.nn.{cls.__name__}(1{', 2.0' if constant else ''})(st.numpy.ones({sizes})).shape",
        padded,
    ]
    return "\n".join(lines)


class _Pad(Module):
    """``padding`` is a number for all ends, or (before, after) for each axis, the last first."""

    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"
    _words: ClassVar[str] = "Put zeros around"

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_axes" in vars(cls):
            cls.__doc__ = _docstring(cls)

    def __init__(self, padding: int | Sequence[int]) -> None:
        super().__init__()
        n, ends = self._axes, numbers(padding, type(self).__name__, "padding")
        self.padding = ends * (2 * n) if len(ends) == 1 else ends
        if len(self.padding) != 2 * n:
            raise ValueError(
                f"{type(self).__name__}: padding must be a number or {2 * n}, (before, after) of "
                f"each axis, the last first; got {padding!r}"
            )

    def forward(self, input: ArrayLike) -> Array:
        """Pad the input.

        Args:
            input: (batch, channels, *space), or without the batch.

        Returns:
            The same axes with the padding around them.
        """
        x = check_signal(self, input, self._axes)
        return pad(x, self.padding, self._mode)

    def extra_repr(self) -> str:
        """Return the padding."""
        return str(self.padding)


class _ConstantPad(_Pad):
    _words = "Put a constant around"

    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    @described_like(_Pad.forward)
    def forward(self, input: ArrayLike) -> Array:
        """Pad the input."""
        x = check_signal(self, input, self._axes)
        return pad(x, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """Return the padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class _ReflectionPad(_Pad):
    _mode = "reflect"
    _words = "Reflect the ends of\n\nThe end elements themselves are not repeated."


class _ReplicationPad(_Pad):
    _mode = "replicate"
    _words = "Repeat the end elements of"


class _CircularPad(_Pad):
    _mode = "circular"
    _words = "Wrap around the ends of"


class ConstantPad1d(_ConstantPad):
    _axes = 1


class ConstantPad2d(_ConstantPad):
    _axes = 2


class ConstantPad3d(_ConstantPad):
    _axes = 3


class ZeroPad1d(_Pad):
    _axes = 1


class ZeroPad2d(_Pad):
    _axes = 2


class ZeroPad3d(_Pad):
    _axes = 3


class ReflectionPad1d(_ReflectionPad):
    _axes = 1


class ReflectionPad2d(_ReflectionPad):
    _axes = 2


class ReflectionPad3d(_ReflectionPad):
    _axes = 3


class ReplicationPad1d(_ReplicationPad):
    _axes = 1


class ReplicationPad2d(_ReplicationPad):
    _axes = 2


class ReplicationPad3d(_ReplicationPad):
    _axes = 3


class CircularPad1d(_CircularPad):
    _axes = 1


class CircularPad2d(_CircularPad):
    _axes = 2


class CircularPad3d(_CircularPad):
    _axes = 3
