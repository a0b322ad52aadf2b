"""Sums of exponentials, and the functions that they normalize."""

from __future__ import annotations

from typing import Literal, overload

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto.numpy import normalized

__all__ = ["log_softmax", "logsumexp", "softmax"]


@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: Literal[False] = False,
    where: ArrayLike | None = None,
) -> Array: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    *,
    return_sign: Literal[True],
    where: ArrayLike | None = None,
) -> tuple[Array, Array]: ...
@overload
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]: ...
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Compute ``log(sum(b * exp(a)))`` over axes, without overflow.

    Args:
        a: an array.
        axis: the axes to add over, negative from the end; all by default.
        b: factors, broadcast with ``a``; by default 1.
        keepdims: whether to keep the axes, with size 1.
        return_sign: whether to return the sign of the sum too.
        where: booleans, broadcast with ``a``: the elements that count; by default all.

    Returns:
        The logarithms; with ``return_sign`` a pair, the logarithms of the sums' absolute
            values and the signs.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As SciPy's ``logsumexp``.

    >>> import stretto as st
    >>> st.special.logsumexp(st.numpy.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    return normalized.logsumexp(a, axis, b, keepdims, return_sign, where)


def softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute ``exp(x) / sum(exp(x))`` over axes, without overflow.

    Args:
        x: an array.
        axis: the axes to add over, negative from the end; all by default.

    Returns:
        The shares, of the shape of ``x``, which add up to 1 over the axes.

    Raises:
        ValueError: an axis is out of bounds, or is named twice.

    As SciPy's ``softmax``.

    >>> import stretto as st
    >>> st.special.softmax(st.numpy.array([[0.0, 1000.0], [0.0, 0.0]]), axis=1)
    Array([[0. , 1. ],
           [0.5, 0.5]], dtype=float32)
    """
    return normalized.softmax(x, axis)


@described_like(softmax)
def log_softmax(x: ArrayLike, /, *, axis: Axes = None) -> Array:
    """Compute ``x - logsumexp(x)`` over axes.

    Returns:
        The logarithms of ``softmax``, of the shape of ``x``.

    As SciPy's ``log_softmax``.

    >>> import stretto as st
    >>> st.special.log_softmax(st.numpy.array([0.0, 1000.0]))
    Array([-1000.,     0.], dtype=float32)
    """
    return normalized.log_softmax(x, axis)
