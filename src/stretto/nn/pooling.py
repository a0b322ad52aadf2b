"""Layers that pool: windows of a given size, or a given number of windows.

Arguments and attributes are PyTorch's; the functions are in ``functional.pooling``.
"""

from __future__ import annotations

from collections.abc import Sequence

from stretto.nn import functional as F
from stretto.nn.function_layers import Pool, applies

# Windows of a given size


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


@applies(F.max_pool1d)
class MaxPool1d(_MaxPool):
    _axes = 1


@applies(F.max_pool2d)
class MaxPool2d(_MaxPool):
    _axes = 2


@applies(F.max_pool3d)
class MaxPool3d(_MaxPool):
    _axes = 3


@applies(F.avg_pool1d)
class AvgPool1d(Pool):
    _axes = 1

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


@applies(F.avg_pool2d)
class AvgPool2d(_AvgPool):
    _axes = 2


@applies(F.avg_pool3d)
class AvgPool3d(_AvgPool):
    _axes = 3


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


@applies(F.lp_pool1d)
class LPPool1d(_LPPool):
    _axes = 1


@applies(F.lp_pool2d)
class LPPool2d(_LPPool):
    _axes = 2


@applies(F.lp_pool3d)
class LPPool3d(_LPPool):
    _axes = 3


# A given number of windows


class _AdaptiveAvgPool(Pool):
    def __init__(self, output_size: int | Sequence[int | None] | None) -> None:
        super().__init__(output_size=output_size)


@applies(F.adaptive_avg_pool1d)
class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    _axes = 1


@applies(F.adaptive_avg_pool2d)
class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    _axes = 2


@applies(F.adaptive_avg_pool3d)
class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    _axes = 3


class _AdaptiveMaxPool(Pool):
    def __init__(
        self, output_size: int | Sequence[int | None] | None, return_indices: bool = False
    ) -> None:
        super().__init__(output_size=output_size, return_indices=return_indices)


@applies(F.adaptive_max_pool1d)
class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    _axes = 1


@applies(F.adaptive_max_pool2d)
class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    _axes = 2


@applies(F.adaptive_max_pool3d)
class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    _axes = 3
