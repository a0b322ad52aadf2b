"""Removal of means and lines of best fit."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import stretto.numpy as snp
from stretto._engine.core.integers import integers
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import inexact_dtype
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.broadcast import of_rank
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import canonical_axis, move_axis
from stretto._engine.ops.shape import split
from stretto.numpy.statistics import mean_about_first

__all__ = ["detrend"]


@rounded_once
def detrend(
    data: ArrayLike,
    axis: int = -1,
    type: str = "linear",
    bp: int | Sequence[int] | np.ndarray = 0,
    overwrite_data: None = None,
) -> Array:
    """Subtract the line of best fit along an axis, or the mean.

    Args:
        data: an array.
        axis: the axis, negative from the end.
        type: ``"linear"`` or ``"constant"``.
        bp: the positions that separate pieces with lines of their own; by default none.
        overwrite_data: must be None.

    Returns:
        The array minus the lines, at least float32.

    Raises:
        NotImplementedError: ``overwrite_data`` is not None.
        TypeError: a position in ``bp`` is not an integer.
        ValueError: a position is beyond the data, there is no such type, or the axis is out of
            bounds.

    As SciPy's ``detrend``.

    >>> import stretto as st
    >>> st.scipy.signal.detrend(st.numpy.array([1.0, 4.0, 8.0, 8.0, 9.0])).round(3) + 0.0
    Array([-1.,  0.,  2.,  0., -1.], dtype=float32)
    """
    if overwrite_data is not None:
        raise NotImplementedError("detrend: arrays are immutable, so there is no overwrite_data")
    if type not in ("linear", "constant"):
        raise ValueError(f"detrend: type must be 'linear' or 'constant'; got {type!r}")
    x = as_value(data, "detrend", "data")
    x = convert(x, inexact_dtype(x.dtype))
    axis = canonical_axis(axis, x.ndim, "detrend")
    if type == "constant":
        return x - mean_about_first(x, (axis,))
    x = move_axis(x, axis, x.ndim - 1)
    n = x.shape[-1]
    if not n:
        return move_axis(x, x.ndim - 1, axis)
    positions = sorted({0, n, *integers(np.ravel(bp), "detrend", "bp")})
    if positions[0] < 0 or positions[-1] > n:
        raise ValueError(f"detrend: bp must be positions along the axis, 0 to {n}; got {bp}")
    pieces = split(x, np.diff(positions).tolist(), x.ndim - 1)
    return move_axis(concatenate([_without_line(p) for p in pieces], -1), x.ndim - 1, axis)


def _without_line(x: Array) -> Array:
    """x - mean(x) - t (t . x) / (t . t) along the last axis, with positions t from the middle."""
    t = np.arange(x.shape[-1]) - (x.shape[-1] - 1) / 2
    t = (t / max(float(np.sqrt(t @ t)), 1e-30)).astype(x.dtype)
    t = of_rank(t, x.ndim)
    x = x - mean_about_first(x, (x.ndim - 1,))
    return x - t * snp.sum(t * x, -1, keepdims=True)
