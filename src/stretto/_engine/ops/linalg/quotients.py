"""Divided differences of a function of eigenvalues, which are slopes where values are equal."""

from __future__ import annotations

from typing import Any

import ml_dtypes

from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full_like, le, select
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.reducing.reduce import reduce_max


def _square(vector: Any) -> tuple[Any, Any]:
    """Matrices of ``vector[i]`` and of ``vector[j]`` in row i and column j."""
    shape, last = (*vector.shape, vector.shape[-1]), vector.ndim
    row = broadcast_in_dim(vector, shape, tuple(range(last)))
    return row, broadcast_in_dim(vector, shape, (*range(last - 1), last))


def quotients(w: Any, h: Any, slope: Any) -> Any:
    """``(h[j] - h[i]) / (w[j] - w[i])``; the mean slope where values are equal, or nearly so.

    Nearly equal are values that differ by the square root of the precision, relative to the larger,
    or by less than their own errors: there the difference of rounded ``h`` says less than the
    slopes. Where ``h`` changes by more than the slopes say, it is no function of values alone that
    is smooth there, and the quotient, or NaN, is right.
    """
    eps = float(ml_dtypes.finfo(w.dtype).eps)
    wi, wj = _square(w)
    hi, hj = _square(h)
    si, sj = _square(slope)
    dw, dh = wj - wi, hj - hi
    greatest = reduce_max(absolute(w), (w.ndim - 1,))
    noise = broadcast_in_dim(greatest, dw.shape, range(greatest.ndim)) * (eps * w.shape[-1])
    near = absolute(dw) <= maximum(maximum(absolute(wi), absolute(wj)) * eps**0.5, noise)
    steepest = maximum(absolute(si), absolute(sj))
    size = maximum(absolute(hi), absolute(hj))
    smooth = le(absolute(dh), steepest * absolute(dw) * 2 + size * (8 * eps))
    near = near & smooth
    quotient = dh / select(near, full_like(dw, 1), dw)
    return select(near, (si + sj) * 0.5, quotient)
