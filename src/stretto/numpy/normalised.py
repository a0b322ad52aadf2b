"""Logarithms of sums of exponentials, and what these normalise: softmax and its logarithm.

Layer 7 (numpy). Not NumPy's: ``stretto.nn`` and ``stretto.special`` give them under their names.
"""

from __future__ import annotations

import math
from typing import Any

from stretto.control.stop_gradient import StopGradient
from stretto.core.interpreter import as_value
from stretto.core.types import inexact_dtype, is_complex, is_inexact
from stretto.numpy.logic import isfinite, mask_of_where
from stretto.numpy.reductions import max as max_
from stretto.numpy.reductions import sum as sum_
from stretto.ops.arithmetic import absolute, real
from stretto.ops.arithmetic import sign as sign_
from stretto.ops.broadcast import canonical_axes, squeeze
from stretto.ops.comparison import eq, full_like, lt, select, zeros_like
from stretto.ops.comparison import where as choose
from stretto.ops.convert import convert
from stretto.ops.exponential import exp, expm1, log, log1p

__all__ = ["log1mexp", "log_softmax", "logsumexp", "softmax"]

_STOP = StopGradient()


def _float(x: Any, who: str) -> Any:
    x = as_value(x, who)
    return x if is_inexact(x.dtype) else convert(x, inexact_dtype(x.dtype), x.weak_type)


def _greatest(x: Any, axes: tuple[int, ...], where: Any = None) -> Any:
    """The greatest element over the axes, kept, as a constant."""
    x = _STOP(real(x) if is_complex(x.dtype) else x)
    lowest = None if where is None and x.size else -math.inf
    return max_(x, axes, None, True, lowest, where)


def softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` over ``axis``, one or several, of the elements ``where`` holds.

    The others are 0. Types below float32 are added up in float32.

    >>> import stretto as st
    >>> st.nn.softmax(st.numpy.array([0.0, 1000.0]))
    Array([0., 1.], dtype=float32)
    """
    x = _float(x, "softmax")
    axes = canonical_axes(axis, x.ndim, "softmax")
    where = None if where is None else mask_of_where(where, "softmax")
    unnormalized = exp(x - _greatest(x, axes, where))
    out = unnormalized / sum_(unnormalized, axes, keepdims=True, where=where)
    return out if where is None else choose(where, out, zeros_like(out))


def log_softmax(x: Any, axis: Any = -1, where: Any = None) -> Any:
    """``x - log(sum(exp(x)))`` over ``axis``, one or several, of the elements ``where`` holds.

    The others are -inf.

    >>> import stretto as st
    >>> st.nn.log_softmax(st.numpy.array([0.0, 0.0])).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """
    x = _float(x, "log_softmax")
    axes = canonical_axes(axis, x.ndim, "log_softmax")
    where = None if where is None else mask_of_where(where, "log_softmax")
    shifted = x - _greatest(x, axes, where)
    out = shifted - log(sum_(exp(shifted), axes, keepdims=True, where=where))
    return out if where is None else choose(where, out, full_like(out, -math.inf))


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, all by default, without overflow.

    -inf, with a derivative of 0, where the sum is 0. With ``return_sign`` a tuple of the logarithm
    of the sum's size, and its sign.

    >>> import stretto as st
    >>> st.nn.logsumexp(st.numpy.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    x = _float(a, "logsumexp")
    if b is not None:
        b = as_value(b, "logsumexp", "b")
        x = choose(eq(b, zeros_like(b)), -math.inf, x)
    if where is not None:
        x = choose(mask_of_where(where, "logsumexp"), x, -math.inf)
    axes = canonical_axes(axis, x.ndim, "logsumexp")
    top = _greatest(x, axes)
    top = select(isfinite(top), top, zeros_like(top))
    terms = exp(x - top)
    total = sum_(terms if b is None else terms * b, axes, keepdims=True)
    size, sign = total, None
    if return_sign:
        size, sign = absolute(total), sign_(total)
    none = eq(total, zeros_like(total))
    size = log(select(none, full_like(size, 1), size))
    out = select(none, full_like(size, -math.inf), size + top)
    if not keepdims:
        out, sign = squeeze(out, axes), None if sign is None else squeeze(sign, axes)
    return (out, sign) if return_sign else out


def log1mexp(x: Any) -> Any:
    """``log(1 - exp(-x))``, exact for small and large ``x``; NaN where ``x < 0``.

    Source: Mächler, Accurately Computing log(1 - exp(-|a|)), 2012.

    >>> import stretto as st
    >>> st.nn.log1mexp(st.numpy.array([1e-10, 50.0]))
    Array([-2.3025850e+01, -1.9287499e-22], dtype=float32)
    """
    x = _float(x, "log1mexp")
    small = lt(x, full_like(x, math.log(2)))
    near, far = choose(small, x, 1.0), choose(small, 1.0, x)
    return choose(small, log(-expm1(-near)), log1p(-exp(-far)))
