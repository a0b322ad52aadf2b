"""Resizing images: by nearest elements, or by means of neighbours.

Names, meanings and defaults are those of ``torch.nn.functional``. Every mode works axis by axis.
Means are products with a matrix (outputs, inputs) of weights, a few in each row; over long axes
these few elements are read by index.
"""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.higher_order.linear_call import with_transpose
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.contract import dot_general
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, move_axis, reshape
from stretto._engine.ops.reducing.reduce import widened
from stretto.nn.functional.adaptive import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_avg_pool3d,
)
from stretto.nn.functional.checks import as_float
from stretto.numpy.taking import take

_RANKS = {
    "nearest": (3, 4, 5),
    "nearest-exact": (3, 4, 5),
    "linear": (3,),
    "bilinear": (4,),
    "trilinear": (5,),
    "bicubic": (4,),
    "area": (3, 4, 5),
}
_SPARSE = 32
"""How many multiply-adds in a product take as long as reading one element by its index."""

_MEANS = {3: adaptive_avg_pool1d, 4: adaptive_avg_pool2d, 5: adaptive_avg_pool3d}


def interpolate(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Array:
    """Resize the spatial axes.

    In the linear and cubic modes an infinity or NaN may spread along its line.

    Args:
        input: (batch, channels, and one to three spatial axes).
        size: the spatial sizes, a number or one per axis; this or ``scale_factor``.
        scale_factor: by how much sizes grow, likewise.
        mode: ``"nearest"``, ``"nearest-exact"``, ``"linear"`` (signals), ``"bilinear"`` or
            ``"bicubic"`` (images), ``"trilinear"`` (volumes), or ``"area"``
            (``adaptive_avg_pool``).
        align_corners: whether, in the linear and cubic modes, corner elements keep their places;
            otherwise elements are little squares, aligned at their edges.
        recompute_scale_factor: whether the scale is taken from the rounded sizes.
        antialias: whether, where an image gets smaller, elements are means over as many more
            inputs, so that fine patterns fade; for ``"bilinear"`` and ``"bicubic"``.

    Returns:
        The resized array, of the dtype of ``input``; integers become floats, except in the nearest
        modes.

    Raises:
        TypeError: ``size`` is neither an integer nor a sequence of them.
        ValueError: ``mode`` does not fit the rank or ``antialias``, or both or neither of ``size``
            and ``scale_factor`` are given.

    As PyTorch's ``nn.functional.interpolate``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> x = snp.array([[[1.0, 3.0]]])
    >>> F.interpolate(x, scale_factor=2)
    Array([[[1., 1., 3., 3.]]], dtype=float32)
    >>> F.interpolate(x, size=4, mode="linear")
    Array([[[1. , 1.5, 2.5, 3. ]]], dtype=float32)
    """
    return _resize(
        "interpolate",
        input,
        size,
        scale_factor,
        mode,
        align_corners,
        recompute_scale_factor,
        antialias,
    )


def _resize(
    caller: str,
    input: ArrayLike,
    size: int | Sequence[int] | None,
    scale_factor: float | Sequence[float] | None,
    mode: str,
    align_corners: bool | None,
    recompute_scale_factor: bool | None,
    antialias: bool = False,
) -> Array:
    """Return what ``interpolate`` and ``upsample`` compute."""
    x = as_value(input, caller, "input")
    if mode not in _RANKS or x.ndim not in _RANKS[mode]:
        fits = [name for name, ranks in _RANKS.items() if x.ndim in ranks]
        raise ValueError(
            f"{caller}: mode {mode!r} does not fit input {x.type}; expected (batch, channels, "
            "and 1 "
            f"to 3 spatial axes), for which there are {fits}"
        )
    weighing = mode in ("linear", "bilinear", "trilinear", "bicubic")
    if align_corners is not None and not weighing:
        raise ValueError(f"{caller}: align_corners is for the linear and cubic modes, got {mode!r}")
    if antialias and mode not in _FILTERS:
        raise ValueError(f"{caller}: antialias is for the modes {list(_FILTERS)}, got {mode!r}")
    sizes, scales = _sizes(caller, x, size, scale_factor)
    if recompute_scale_factor:
        scales = [None] * len(sizes)
    if mode == "area":
        return _MEANS[x.ndim](x, sizes)
    if not weighing:
        for axis, (m, scale) in enumerate(zip(sizes, scales, strict=True), 2):
            x = _nearest(x, axis, m, scale, mode == "nearest-exact")
        return x
    x = as_float(x, caller)
    out = convert(x, widened(x.dtype))
    weights = _cubic if mode == "bicubic" else _linear
    for axis, (m, scale) in enumerate(zip(sizes, scales, strict=True), 2):
        n = x.shape[axis]
        if antialias:
            matrix = _filter_matrix(n, m, _scale(n, m, scale, bool(align_corners)), *_FILTERS[mode])
            out = _apply_matrix(out, axis, matrix)
            continue
        # Where sizes are equal the linear modes copy, as PyTorch does, whatever the scale.
        if n != m or (mode == "bicubic" and scale is not None):
            matrix = weights(n, _positions(n, m, scale, bool(align_corners)), bool(align_corners))
            out = _apply_matrix(out, axis, matrix)
    return convert(out, x.dtype)


def upsample(
    input: ArrayLike,
    size: int | Sequence[int] | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Array:
    """Resize the spatial axes: the same as ``interpolate``.

    Args:
        input: (batch, channels, and one to three spatial axes).
        size: the spatial sizes, a number or one per axis; this or ``scale_factor``.
        scale_factor: by how much sizes grow, likewise.
        mode: as for ``interpolate``.
        align_corners: as for ``interpolate``.

    Returns:
        The resized array.

    Raises:
        TypeError: as for ``interpolate``.
        ValueError: as for ``interpolate``.

    As PyTorch's ``nn.functional.upsample``.

    >>> import stretto.numpy as snp
    >>> from stretto.nn import functional as F
    >>> F.upsample(snp.ones((1, 2, 4, 4)), scale_factor=2).shape
    (1, 2, 8, 8)
    """
    return _resize("upsample", input, size, scale_factor, mode, align_corners, None)


def _sizes(
    caller: str, x: Array, size: int | Sequence[int] | None, factor: float | Sequence[float] | None
) -> tuple[list[int], list[float | None]]:
    """Return the sizes of the spatial axes, and their scales where ``factor`` gives them."""
    n = x.ndim - 2
    if (size is None) == (factor is None):
        raise ValueError(f"{caller}: give size or scale_factor, one of them; got {size}, {factor}")
    name, setting = ("scale_factor", factor) if size is None else ("size", size)
    values: Any = tuple(setting) if isinstance(setting, (tuple, list)) else (setting,) * n
    if len(values) != n or not all(v > 0 for v in values):
        raise ValueError(f"{caller}: {name} must be a positive number, or {n}; got {setting!r}")
    if size is not None:
        return list(integers(values, caller, "size")), [None] * n
    scales = [float(s) for s in values]
    sizes = [math.floor(m * s) for m, s in zip(x.shape[2:], scales, strict=True)]
    if not all(sizes):
        raise ValueError(f"{caller}: scale_factor {factor} leaves nothing of input {x.type}")
    return sizes, list(scales)


def _nearest(x: Array, axis: int, m: int, scale: float | None, exact: bool) -> Array:
    n = x.shape[axis]
    # PyTorch repeats elements for the same size or twice that, whatever the scale, unless "exact".
    if m % n == 0 and (scale in (None, m / n) or (m <= 2 * n and not exact)):
        if m == n:
            return x
        shape = (*x.shape[: axis + 1], m // n, *x.shape[axis + 1 :])
        wide = broadcast_to(expand_dims(x, (axis + 1,)), shape)
        return reshape(wide, (*x.shape[:axis], m, *x.shape[axis + 1 :]))
    # In float32, as PyTorch computes it: the rounding decides which element is nearest.
    ratio = np.float32(n / m if scale is None else 1 / scale)
    positions = (np.arange(m, dtype=np.float32) + np.float32(0.5 if exact else 0)) * ratio
    index = np.minimum(np.floor(positions).astype(np.int32), n - 1)
    return take(x, index, axis, mode="clip")


def _positions(n: int, m: int, scale: float | None, align_corners: bool) -> np.ndarray:
    """Return where among the ``n`` inputs each of the ``m`` outputs lies."""
    o = np.arange(m, dtype=np.float64)
    ratio = _scale(n, m, scale, align_corners)
    return o * ratio if align_corners else (o + 0.5) * ratio - 0.5


def _scale(n: int, m: int, scale: float | None, align_corners: bool) -> float:
    """Return how many of the ``n`` inputs one of the ``m`` outputs stands for."""
    if align_corners:
        return (n - 1) / (m - 1) if m > 1 else 0.0
    return n / m if scale is None else 1 / scale


def _matrix(n: int, taps: list[tuple[np.ndarray, np.ndarray]]) -> np.ndarray:
    """Return rows that weigh inputs: of each tap an index, kept within bounds, and a weight."""
    out = np.zeros((len(taps[0][0]), n))
    for index, weight in taps:
        np.add.at(out, (np.arange(len(index)), np.clip(index, 0, n - 1)), weight)
    return out


def _linear(n: int, positions: np.ndarray, align_corners: bool) -> np.ndarray:
    positions = np.maximum(positions, 0)
    low = np.floor(positions).astype(np.int64)
    t = positions - low
    return _matrix(n, [(low, 1 - t), (low + 1, t)])


def _cubic(n: int, positions: np.ndarray, align_corners: bool) -> np.ndarray:
    low = np.floor(positions).astype(np.int64)
    return _matrix(n, [(low + k, _keys(positions - (low + k), -0.75)) for k in range(-1, 3)])


def _keys(d: np.ndarray, a: float) -> np.ndarray:
    """Return the weights at these distances, of Keys, Cubic Convolution Interpolation, 1981."""
    d = np.abs(d)
    near = ((a + 2) * d - (a + 3)) * d * d + 1
    far = ((a * d - 5 * a) * d + 8 * a) * d - 4 * a
    return np.where(d <= 1, near, np.where(d < 2, far, 0))


_FILTERS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], float]] = {
    "bilinear": (lambda d: np.maximum(1 - np.abs(d), 0), 1.0),
    "bicubic": (lambda d: _keys(d, -0.5), 2.0),
}
"""The weights by distance of the modes that can smooth, and how far they reach."""


def _filter_matrix(
    n: int, m: int, ratio: float, weights: Callable[[np.ndarray], np.ndarray], reach: float
) -> np.ndarray:
    """Return rows that weigh inputs by a filter as wide as one of the outputs."""
    width = max(ratio, 1.0)
    centers = (ratio * (np.arange(m) + 0.5))[:, None]
    inputs = np.arange(n)
    first = np.trunc(centers - reach * width + 0.5)
    last = np.trunc(centers + reach * width + 0.5)
    inside = (inputs >= first) & (inputs < last)
    out = np.where(inside, weights((inputs + 0.5 - centers) / width), 0.0)
    return out / out.sum(1, keepdims=True)


def _apply_matrix(x: Array, axis: int, matrix: np.ndarray) -> Array:
    """Return the product with a matrix, most elements of which are 0."""
    taps, back = _taps(matrix), _taps(matrix.T)
    m, n = matrix.shape
    if n < _SPARSE * len(taps) or m < _SPARSE * len(back):
        return _product(x, axis, matrix)
    return with_transpose(lambda x: _sum_of(taps, x, axis), lambda ct: _sum_of(back, ct, axis), x)


def _taps(matrix: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Return what is not 0 in each row: the first column and its weight, the second, and so on."""
    order = np.argsort(matrix == 0, axis=1, kind="stable")
    order = order[:, : np.count_nonzero(matrix, axis=1).max()]
    weights = np.take_along_axis(matrix, order, 1)
    # Where a row has fewer, its first counts again, by 0.
    index = np.where(weights == 0, order[:, :1], order).astype(np.int32)
    return [*zip(index.T, weights.T, strict=True)]


def _sum_of(taps: list[tuple[np.ndarray, np.ndarray]], x: Array, axis: int) -> Array:
    after = (1,) * (x.ndim - axis - 1)
    terms = [
        take(x, index, axis, mode="clip") * as_value(weight.astype(x.dtype).reshape(-1, *after))
        for index, weight in taps
    ]
    return functools.reduce(operator.add, terms)


def _product(x: Array, axis: int, matrix: np.ndarray) -> Array:
    weights = as_value(matrix.astype(x.dtype))
    # The highest precision: these are coordinates, and few products.
    out = dot_general(x, weights, (((axis,), (1,)), ((), ())), "highest")
    return move_axis(out, out.ndim - 1, axis)
