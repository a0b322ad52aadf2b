"""Layers that pool to a given size, by means or maxima of as many windows.

Arguments and attributes are PyTorch's; the functions are in ``functional.adaptive``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.nn.function_layers import Pool
from stretto.nn.functional import adaptive

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
]


class _AdaptiveAvgPool(Pool):
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__(output_size=output_size)


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """Take the mean of each of a given number of windows of signals.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows; None keeps the input's size.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveAvgPool1d``; see ``functional.adaptive_avg_pool1d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveAvgPool1d(2)(st.numpy.array([[1.0, 2.0, 3.0]]))
    Array([[1.5, 2.5]], dtype=float32)
    """

    _axes = 1
    function = adaptive.adaptive_avg_pool1d


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """Take the mean of each of a given number of windows of images.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveAvgPool2d``; see ``functional.adaptive_avg_pool2d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveAvgPool2d((1, None))(st.numpy.ones((4, 16, 7, 5))).shape
    (4, 16, 1, 5)
    """

    _axes = 2
    function = adaptive.adaptive_avg_pool2d


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """Take the mean of each of a given number of windows of volumes.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveAvgPool3d``; see ``functional.adaptive_avg_pool3d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveAvgPool3d(2)(st.numpy.ones((4, 2, 5, 6, 7))).shape
    (4, 2, 2, 2, 2)
    """

    _axes = 3
    function = adaptive.adaptive_avg_pool3d


class _AdaptiveMaxPool(Pool):
    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """Take the maximum of each of a given number of windows of signals.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows; None keeps the input's size.
        return_indices: whether to return the places of the maxima as well.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveMaxPool1d``; see ``functional.adaptive_max_pool1d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveMaxPool1d(2)(st.numpy.array([[1.0, 2.0, 3.0]]))
    Array([[2., 3.]], dtype=float32)
    """

    _axes = 1
    function = adaptive.adaptive_max_pool1d


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """Take the maximum of each of a given number of windows of images.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.
        return_indices: whether to return the places of the maxima as well.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveMaxPool2d``; see ``functional.adaptive_max_pool2d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveMaxPool2d((3, None))(st.numpy.ones((4, 16, 7, 5))).shape
    (4, 16, 3, 5)
    """

    _axes = 2
    function = adaptive.adaptive_max_pool2d


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """Take the maximum of each of a given number of windows of volumes.

    Window o of m over n elements goes from ⌊o n / m⌋ to ⌈(o + 1) n / m⌉.

    Args:
        output_size: the number of windows along each axis, a number or one per axis; None keeps the
            input's.
        return_indices: whether to return the places of the maxima as well.

    Raises:
        ValueError: a size is not positive, or an input does not fit.

    As PyTorch's ``nn.AdaptiveMaxPool3d``; see ``functional.adaptive_max_pool3d``.

    >>> import stretto as st
    >>> st.nn.AdaptiveMaxPool3d(2)(st.numpy.ones((4, 2, 5, 6, 7))).shape
    (4, 2, 2, 2, 2)
    """

    _axes = 3
    function = adaptive.adaptive_max_pool3d
