"""Sums of exponentials, and the functions that they normalize."""

from __future__ import annotations

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto.numpy import normalized
from stretto.numpy.normalized import logsumexp

__all__ = ["log_softmax", "logsumexp", "softmax"]


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
