"""Medians."""

from __future__ import annotations

from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto.numpy.quantiles import quantile_of

__all__ = ["median", "nanmedian"]


def median(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Find the middle value over axes, or the mean of the middle two.

    Args:
        a: an array of real numbers.
        axis: the axes to search over; all by default.
        out: must be None: arrays are immutable.
        overwrite_input: has no effect: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The medians, in the float dtype of ``a``, of its shape without the axes; NaN where there is
        one.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or there is no element.

    As NumPy's ``median``.

    >>> import stretto.numpy as snp
    >>> snp.median(snp.array([5, 1, 2, 4]))
    Array(3., dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("median", a, 0.5, axis, out, "linear", keepdims, None)


def nanmedian(
    a: ArrayLike,
    axis: Axes = None,
    out: None = None,
    overwrite_input: bool = False,
    keepdims: bool = False,
) -> Array:
    """Find the middle value over axes, without the elements that are NaN.

    Args:
        a: an array of real numbers.
        axis: the axes to search over; all by default.
        out: must be None: arrays are immutable.
        overwrite_input: has no effect: arrays are immutable.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The medians, in the float dtype of ``a``, of its shape without the axes; NaN where there is
        no number.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``a`` is complex.
        ValueError: an axis is out of bounds, or is named twice; or there is no element.

    As NumPy's ``nanmedian``.

    >>> import stretto.numpy as snp
    >>> snp.nanmedian(snp.array([1.0, snp.nan, 3.0]))
    Array(2., dtype=float32)
    """
    del overwrite_input  # arrays are immutable
    return quantile_of("nanmedian", a, 0.5, axis, out, "linear", keepdims, None)
