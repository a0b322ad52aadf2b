"""Convolution in NumPy: windows as a view, then matrix products.

The reference rule of ``general``.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.ops.bilinear import accumulator


def convolve(op: Any, lhs: np.ndarray, rhs: np.ndarray, out_dtype: np.dtype) -> np.ndarray:
    """The convolution ``op``, added up in the accumulator of ``out_dtype``."""
    wide = accumulator(out_dtype)
    x = lhs.transpose(op.dims.lhs_spec).astype(wide, copy=False)  # batch, features, spatial...
    kernel = rhs.transpose(op.dims.rhs_spec).astype(wide, copy=False)  # output, input, spatial...
    view = _windows(_padded(x, op.padding, op.lhs_dilation), kernel, op.strides, op.rhs_dilation)
    n = len(op.strides)
    batch, features, *rest = view.shape
    out_spatial, window = rest[:n], rest[n:]
    groups = op.feature_groups * op.batch_groups
    # As [group, batch, out..., features, window...]: the group is outermost in batch or features.
    inner = features // op.feature_groups
    batch //= op.batch_groups
    split = view.reshape(
        (op.batch_groups, batch, op.feature_groups, inner, *out_spatial, *window)
    ).transpose((0, 2, 1, *range(4, 4 + n), 3, *range(4 + n, 4 + 2 * n)))
    depth = inner * math.prod(window)
    left = split.reshape((groups, batch * math.prod(out_spatial), depth))
    out_features = kernel.shape[0] // groups
    right = kernel.reshape((groups, out_features, depth)).transpose((0, 2, 1))
    product = np.matmul(left, right).reshape((groups, batch, *out_spatial, out_features))
    plain = product.transpose((1, 0, n + 2, *range(2, n + 2))).reshape(
        (batch, groups * out_features, *out_spatial)
    )
    return plain.transpose(np.argsort(op.dims.out_spec)).astype(out_dtype, copy=False)


def _padded(x: np.ndarray, padding: Any, dilation: tuple[int, ...]) -> np.ndarray:
    """Zeros between, before and after; negative padding crops."""
    if not any(low or high for low, high in padding) and set(dilation) <= {1}:
        return x
    sizes, source, target = [], [], []
    for n, (low, high), d in zip(x.shape[2:], padding, dilation, strict=True):
        extent = (n - 1) * d + 1 if n else 0
        size = max(0, low + extent + high)
        # Element i goes to low + i d; those from `first` up to `last` fall within the size.
        first = max(0, -(low // d))
        last = max(first, min(n, (size - 1 - low) // d + 1))
        start = low + first * d if last > first else 0
        sizes.append(size)
        source.append(slice(first, last))
        target.append(slice(start, start + (last - first - 1) * d + 1 if last > first else 0, d))
    out = np.zeros((*x.shape[:2], *sizes), x.dtype)
    out[(slice(None), slice(None), *target)] = x[(slice(None), slice(None), *source)]
    return out


def _windows(
    x: np.ndarray, kernel: np.ndarray, strides: tuple[int, ...], dilation: tuple[int, ...]
) -> np.ndarray:
    """A view [batch, features, out..., window...] of what each output sums over."""
    x = np.ascontiguousarray(x)
    sizes, steps, window, gaps = [], [], [], []
    for n, k, s, d, stride in zip(
        x.shape[2:], kernel.shape[2:], strides, dilation, x.strides[2:], strict=True
    ):
        room = n - ((k - 1) * d + 1 if k else 0)
        sizes.append(room // s + 1 if room >= 0 else 0)
        steps.append(stride * s)
        window.append(k)
        gaps.append(stride * d)
    return np.lib.stride_tricks.as_strided(
        x,
        (*x.shape[:2], *sizes, *window),
        (*x.strides[:2], *steps, *gaps),
        writeable=False,
    )
