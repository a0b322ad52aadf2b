"""Interpolation along a line through given points.

Next, read ``covariance``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.ops.comparison import eq, full_like, gt, lt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.convert import convert
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import argsort
from stretto.numpy.arguments import inexact_values
from stretto.numpy.arithmetic import absolute
from stretto.numpy.directly import FLOAT, directly
from stretto.numpy.joining import concatenate, take
from stretto.numpy.remainders import remainder
from stretto.numpy.searching import searchsorted

__all__ = ["interp"]


def interp(
    x: Any, xp: Any, fp: Any, left: Any = None, right: Any = None, period: Any = None
) -> Any:
    """At each element of ``x`` the line through the points (``xp``, ``fp``), ``xp`` rising.

    Before the first point it is ``left``, after the last one ``right``; by default the values
    there, and with ``"extrapolate"`` the line goes on. With ``period`` the points repeat, and need
    not be in order. Derivatives are those of the line's pieces; at a point, of the piece after it.

    >>> import stretto.numpy as snp
    >>> snp.interp(snp.array([0.0, 1.5]), snp.array([1.0, 2.0]), snp.array([10.0, 20.0]))
    Array([10., 15.], dtype=float32)
    """
    (fp,) = inexact_values("interp", fp=fp)
    x, xp = inexact_values("interp", x=x, xp=xp)
    if xp.ndim != 1 or fp.shape != xp.shape or not xp.size:
        raise ValueError(
            f"interp: xp and fp must have one shape of rank 1, not empty; got {xp.type}, {fp.type}"
        )
    if is_complex(x.dtype):
        raise TypeError(f"interp: x and xp must be real, got {x.type}")
    for name, end in (("left", left), ("right", right)):
        if isinstance(end, str) and end != "extrapolate":
            raise ValueError(f"interp: {name} must be a number or 'extrapolate', got {end!r}")
    if period is not None:
        x, xp, fp = _repeated(x, xp, fp, period)
        left = right = None
    _, fp = inexact_values("interp", x=x, fp=fp)
    ends = {"left": left, "right": right}
    if not any(isinstance(end, str) or np.ndim(end) for end in ends.values()):
        found = directly(np.interp, FLOAT, x, xp, fp, **ends)
        if found is not None:
            return found
    real = real_dtype(fp.dtype)
    n = xp.shape[0]
    first, last = (take(fp, i) for i in (0, n - 1))
    if n == 1:
        out = full_like(x, 0, fp.dtype) + first
    else:
        at = searchsorted(slice_in_dim(xp, 1, -1), x, "right")  # the piece before the element
        low, high = take(xp, at, mode="clip"), take(xp, at + 1, mode="clip")
        base, rise = take(fp, at, mode="clip"), take(fp, at + 1, mode="clip")
        width = high - low
        part = convert((x - low) / choose(eq(width, 0), full_like(width, 1), width), real)
        out = choose(eq(width, 0), base, base + part * (rise - base))
    for end, value, beyond in (
        (left, first, lt(x, take(xp, 0))),
        (right, last, gt(x, take(xp, n - 1))),
    ):
        if not isinstance(end, str):
            out = choose(beyond, value if end is None else end, out)
    return out


def _repeated(x: Any, xp: Any, fp: Any, period: Any) -> tuple[Any, Any, Any]:
    """The points of one period in order, with the last one before them and the first one after."""
    period = absolute(period)
    x, xp = remainder(x, period), remainder(xp, period)
    order = argsort(xp)
    xp, fp = take(xp, order), take(fp, order)
    xp = concatenate([slice_in_dim(xp, -1, None) - period, xp, slice_in_dim(xp, 0, 1) + period])
    return x, xp, concatenate([slice_in_dim(fp, -1, None), fp, slice_in_dim(fp, 0, 1)])
