"""Layers that pad: with zeros or a constant, reflected, replicated, circular.

Arguments and attributes are PyTorch's; the function is ``functional.pad``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from stretto._engine.core.typing import Array, ArrayLike
from stretto.nn.functional.arguments import numbers
from stretto.nn.functional.padding import pad
from stretto.nn.inputs import check_signal
from stretto.nn.module import Module

__all__ = [
    "CircularPad1d",
    "CircularPad2d",
    "CircularPad3d",
    "ConstantPad1d",
    "ConstantPad2d",
    "ConstantPad3d",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReflectionPad3d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "ReplicationPad3d",
    "ZeroPad1d",
    "ZeroPad2d",
    "ZeroPad3d",
]


class _Pad(Module):
    """``padding`` is a number for all ends, or (before, after) for each axis, the last first."""

    _axes: ClassVar[int]
    _mode: ClassVar[str] = "constant"

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
        """The padding."""
        return str(self.padding)


class _ConstantPad(_Pad):
    def __init__(self, padding: int | Sequence[int], value: float) -> None:
        super().__init__(padding)
        self.value = value

    def forward(self, input: ArrayLike) -> Array:
        """Pad the input.

        Args:
            input: (batch, channels, *space), or without the batch.

        Returns:
            The same axes with the padding around them.
        """
        x = check_signal(self, input, self._axes)
        return pad(x, self.padding, value=self.value)

    def extra_repr(self) -> str:
        """The padding and the value."""
        return f"padding={self.padding}, value={self.value}"


class ConstantPad1d(_ConstantPad):
    """Put a constant around signals (batch, channels, length), or one.

    Args:
        padding: a number for all ends, or (before, after); negative ones take elements away.
        value: the constant.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ConstantPad1d``.

    >>> import stretto as st
    >>> st.nn.ConstantPad1d(1, 2.0)(st.numpy.array([[1.0, 3.0]]))
    Array([[2., 1., 3., 2.]], dtype=float32)
    """

    _axes = 1


class ConstantPad2d(_ConstantPad):
    """Put a constant around images (batch, channels, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.
        value: the constant.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ConstantPad2d``.

    >>> import stretto as st
    >>> st.nn.ConstantPad2d(1, 2.0)(st.numpy.ones((1, 4, 5))).shape
    (1, 6, 7)
    """

    _axes = 2


class ConstantPad3d(_ConstantPad):
    """Put a constant around volumes (batch, channels, depth, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.
        value: the constant.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ConstantPad3d``.

    >>> import stretto as st
    >>> st.nn.ConstantPad3d(1, 2.0)(st.numpy.ones((1, 4, 5, 6))).shape
    (1, 6, 7, 8)
    """

    _axes = 3


class ZeroPad1d(_Pad):
    """Put zeros around signals (batch, channels, length), or one.

    Args:
        padding: a number for all ends, or (before, after); negative ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ZeroPad1d``.

    >>> import stretto as st
    >>> st.nn.ZeroPad1d(1)(st.numpy.array([[1.0, 3.0]]))
    Array([[0., 1., 3., 0.]], dtype=float32)
    """

    _axes = 1


class ZeroPad2d(_Pad):
    """Put zeros around images (batch, channels, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ZeroPad2d``.

    >>> import stretto as st
    >>> st.nn.ZeroPad2d(1)(st.numpy.ones((1, 4, 5))).shape
    (1, 6, 7)
    """

    _axes = 2


class ZeroPad3d(_Pad):
    """Put zeros around volumes (batch, channels, depth, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ZeroPad3d``.

    >>> import stretto as st
    >>> st.nn.ZeroPad3d(1)(st.numpy.ones((1, 4, 5, 6))).shape
    (1, 6, 7, 8)
    """

    _axes = 3


class ReflectionPad1d(_Pad):
    """Reflect the ends of signals (batch, channels, length), or one.

    The end elements themselves are not repeated.

    Args:
        padding: a number for all ends, or (before, after); negative ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReflectionPad1d``.

    >>> import stretto as st
    >>> st.nn.ReflectionPad1d(1)(st.numpy.array([[1.0, 3.0]]))
    Array([[3., 1., 3., 1.]], dtype=float32)
    """

    _axes = 1
    _mode = "reflect"


class ReflectionPad2d(_Pad):
    """Reflect the ends of images (batch, channels, height, width), or one.

    The end elements themselves are not repeated.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReflectionPad2d``.

    >>> import stretto as st
    >>> st.nn.ReflectionPad2d(1)(st.numpy.ones((1, 4, 5))).shape
    (1, 6, 7)
    """

    _axes = 2
    _mode = "reflect"


class ReflectionPad3d(_Pad):
    """Reflect the ends of volumes (batch, channels, depth, height, width), or one.

    The end elements themselves are not repeated.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReflectionPad3d``.

    >>> import stretto as st
    >>> st.nn.ReflectionPad3d(1)(st.numpy.ones((1, 4, 5, 6))).shape
    (1, 6, 7, 8)
    """

    _axes = 3
    _mode = "reflect"


class ReplicationPad1d(_Pad):
    """Repeat the end elements of signals (batch, channels, length), or one.

    Args:
        padding: a number for all ends, or (before, after); negative ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReplicationPad1d``.

    >>> import stretto as st
    >>> st.nn.ReplicationPad1d(1)(st.numpy.array([[1.0, 3.0]]))
    Array([[1., 1., 3., 3.]], dtype=float32)
    """

    _axes = 1
    _mode = "replicate"


class ReplicationPad2d(_Pad):
    """Repeat the end elements of images (batch, channels, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReplicationPad2d``.

    >>> import stretto as st
    >>> st.nn.ReplicationPad2d(1)(st.numpy.ones((1, 4, 5))).shape
    (1, 6, 7)
    """

    _axes = 2
    _mode = "replicate"


class ReplicationPad3d(_Pad):
    """Repeat the end elements of volumes (batch, channels, depth, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.ReplicationPad3d``.

    >>> import stretto as st
    >>> st.nn.ReplicationPad3d(1)(st.numpy.ones((1, 4, 5, 6))).shape
    (1, 6, 7, 8)
    """

    _axes = 3
    _mode = "replicate"


class CircularPad1d(_Pad):
    """Wrap around the ends of signals (batch, channels, length), or one.

    Args:
        padding: a number for all ends, or (before, after); negative ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.CircularPad1d``.

    >>> import stretto as st
    >>> st.nn.CircularPad1d(1)(st.numpy.array([[1.0, 3.0]]))
    Array([[3., 1., 3., 1.]], dtype=float32)
    """

    _axes = 1
    _mode = "circular"


class CircularPad2d(_Pad):
    """Wrap around the ends of images (batch, channels, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.CircularPad2d``.

    >>> import stretto as st
    >>> st.nn.CircularPad2d(1)(st.numpy.ones((1, 4, 5))).shape
    (1, 6, 7)
    """

    _axes = 2
    _mode = "circular"


class CircularPad3d(_Pad):
    """Wrap around the ends of volumes (batch, channels, depth, height, width), or one.

    Args:
        padding: a number for all ends, or (before, after) of each axis, the last first; negative
            ones take elements away.

    Raises:
        ValueError: ``padding`` has another length, an input has another rank, or an axis has too
            few elements.

    As PyTorch's ``nn.CircularPad3d``.

    >>> import stretto as st
    >>> st.nn.CircularPad3d(1)(st.numpy.ones((1, 4, 5, 6))).shape
    (1, 6, 7, 8)
    """

    _axes = 3
    _mode = "circular"
