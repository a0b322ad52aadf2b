"""Layers that pool windows of a given size: by maxima, means and power means.

Arguments and attributes are PyTorch's; the functions are in ``functional.pooling``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.nn.function_layers import Pool
from stretto.nn.functional import pooling

__all__ = [
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "LPPool1d",
    "LPPool2d",
    "LPPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]


class _MaxPool(Pool):
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        dilation: int | Sequence[int] = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            dilation=dilation,
            return_indices=return_indices,
            ceil_mode=ceil_mode,
        )


class MaxPool1d(_MaxPool):
    """Take the maximum of each window of signals.

    Args:
        kernel_size: the size of a window.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many elements, which never win, to add at both ends.
        dilation: the distance between elements of a window.
        return_indices: whether to return the places of the maxima as well.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.MaxPool1d``; see ``functional.max_pool1d``.

    >>> import stretto as st
    >>> st.nn.MaxPool1d(2)(st.numpy.array([[1.0, 3.0, 2.0, 5.0]]))
    Array([[3., 5.]], dtype=float32)
    """

    _axes = 1
    function = pooling.max_pool1d


class MaxPool2d(_MaxPool):
    """Take the maximum of each window of images.

    Args:
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many elements, which never win, to add at both ends.
        dilation: the distance between elements of a window.
        return_indices: whether to return the places of the maxima as well.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.MaxPool2d``; see ``functional.max_pool2d``.

    >>> import stretto as st
    >>> st.nn.MaxPool2d(3, stride=2, padding=1)(st.numpy.ones((4, 16, 8, 8))).shape
    (4, 16, 4, 4)
    """

    _axes = 2
    function = pooling.max_pool2d


class MaxPool3d(_MaxPool):
    """Take the maximum of each window of volumes.

    Args:
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many elements, which never win, to add at both ends.
        dilation: the distance between elements of a window.
        return_indices: whether to return the places of the maxima as well.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.MaxPool3d``; see ``functional.max_pool3d``.

    >>> import stretto as st
    >>> st.nn.MaxPool3d(2)(st.numpy.ones((4, 2, 6, 6, 6))).shape
    (4, 2, 3, 3, 3)
    """

    _axes = 3
    function = pooling.max_pool3d


class AvgPool1d(Pool):
    """Take the mean of each window of signals.

    Args:
        kernel_size: the size of a window.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many zeros to add at both ends.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.
        count_include_pad: whether the zeros of the padding count.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.AvgPool1d``; see ``functional.avg_pool1d``.

    >>> import stretto as st
    >>> st.nn.AvgPool1d(2)(st.numpy.array([[1.0, 3.0, 2.0, 6.0]]))
    Array([[2., 4.]], dtype=float32)
    """

    _axes = 1
    function = pooling.avg_pool1d

    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
        )


class _AvgPool(Pool):
    def __init__(
        self,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        padding: int | Sequence[int] = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__(
            kernel_size=kernel_size,
            stride=kernel_size if stride is None else stride,
            padding=padding,
            ceil_mode=ceil_mode,
            count_include_pad=count_include_pad,
            divisor_override=divisor_override,
        )


class AvgPool2d(_AvgPool):
    """Take the mean of each window of images.

    Args:
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many zeros to add at both ends.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.
        count_include_pad: whether the zeros of the padding count.
        divisor_override: what to divide sums by, in place of the number of elements.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.AvgPool2d``; see ``functional.avg_pool2d``.

    >>> import stretto as st
    >>> st.nn.AvgPool2d(2)(st.numpy.ones((4, 16, 8, 8))).shape
    (4, 16, 4, 4)
    """

    _axes = 2
    function = pooling.avg_pool2d


class AvgPool3d(_AvgPool):
    """Take the mean of each window of volumes.

    Args:
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        padding: how many zeros to add at both ends.
        ceil_mode: whether a last window may reach beyond the end, where nothing counts.
        count_include_pad: whether the zeros of the padding count.
        divisor_override: what to divide sums by, in place of the number of elements.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.AvgPool3d``; see ``functional.avg_pool3d``.

    >>> import stretto as st
    >>> st.nn.AvgPool3d(2)(st.numpy.ones((4, 2, 6, 6, 6))).shape
    (4, 2, 3, 3, 3)
    """

    _axes = 3
    function = pooling.avg_pool3d


class _LPPool(Pool):
    def __init__(
        self,
        norm_type: float,
        kernel_size: int | Sequence[int],
        stride: int | Sequence[int] | None = None,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__(
            norm_type=norm_type, kernel_size=kernel_size, stride=stride, ceil_mode=ceil_mode
        )


class LPPool1d(_LPPool):
    """Take the root of the sum of powers in each window of signals.

    Args:
        norm_type: the power.
        kernel_size: the size of a window.
        stride: the distance between windows; ``kernel_size`` by default.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.LPPool1d``; see ``functional.lp_pool1d``.

    >>> import stretto as st
    >>> st.nn.LPPool1d(2, 2)(st.numpy.array([[3.0, 4.0]]))
    Array([[5.]], dtype=float32)
    """

    _axes = 1
    function = pooling.lp_pool1d


class LPPool2d(_LPPool):
    """Take the root of the sum of powers in each window of images.

    Args:
        norm_type: the power.
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.LPPool2d``; see ``functional.lp_pool2d``.

    >>> import stretto as st
    >>> st.nn.LPPool2d(2, 2)(st.numpy.ones((4, 16, 8, 8))).shape
    (4, 16, 4, 4)
    """

    _axes = 2
    function = pooling.lp_pool2d


class LPPool3d(_LPPool):
    """Take the root of the sum of powers in each window of volumes.

    Args:
        norm_type: the power.
        kernel_size: the size of a window, a number or one per axis, as are the settings after it.
        stride: the distance between windows; ``kernel_size`` by default.
        ceil_mode: whether a last window may reach beyond the end.

    Raises:
        ValueError: an input has another rank, a setting is out of range, or no window fits; on the
            call.

    As PyTorch's ``nn.LPPool3d``; see ``functional.lp_pool3d``.

    >>> import stretto as st
    >>> st.nn.LPPool3d(2, 2)(st.numpy.ones((4, 2, 6, 6, 6))).shape
    (4, 2, 3, 3, 3)
    """

    _axes = 3
    function = pooling.lp_pool3d
