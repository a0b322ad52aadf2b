"""Sums of exponentials, and what they normalise.

Next, read ``bessel``.
"""

from __future__ import annotations

from typing import Any

from stretto.numpy import normalised

__all__ = ["log_softmax", "logsumexp", "softmax"]


def logsumexp(
    a: Any,
    axis: Any = None,
    b: Any = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: Any = None,
) -> Any:
    """``log(sum(b * exp(a)))`` over ``axis``, all by default, without overflow.

    With ``return_sign`` a tuple of the logarithm of the sum's size, and its sign; only elements
    count of which ``where`` holds.

    >>> import stretto as st
    >>> st.special.logsumexp(st.numpy.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    return normalised.logsumexp(a, axis, b, keepdims, return_sign, where)


def softmax(x: Any, /, *, axis: Any = None) -> Any:
    """``exp(x) / sum(exp(x))`` over ``axis``, all by default.

    >>> import stretto as st
    >>> st.special.softmax(st.numpy.array([[0.0, 1000.0], [0.0, 0.0]]), axis=1)
    Array([[0. , 1. ],
           [0.5, 0.5]], dtype=float32)
    """
    return normalised.softmax(x, axis)


def log_softmax(x: Any, /, *, axis: Any = None) -> Any:
    """``x - logsumexp(x)`` over ``axis``, all by default.

    >>> import stretto as st
    >>> st.special.log_softmax(st.numpy.array([0.0, 1000.0]))
    Array([-1000.,     0.], dtype=float32)
    """
    return normalised.log_softmax(x, axis)
