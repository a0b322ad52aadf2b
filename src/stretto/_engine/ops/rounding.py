"""Whole numbers near others, the next floating-point number, and whether a number is finite."""

from __future__ import annotations

from typing import Any

import numpy as np

from stretto._engine.core.functions import described
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import ZERO_DERIVATIVE
from stretto._engine.core.types import ArrayType, array_type, is_complex, is_inexact
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops import thresholds
from stretto._engine.ops.comparison import full, lt, select, zeros_like
from stretto._engine.ops.complex_parts import imag, real
from stretto._engine.ops.elementwise import FLOAT, Elementwise, binary


class Floor(Elementwise):
    """The greatest whole number not above."""

    accepts = FLOAT
    costs = thresholds.ROUNDED
    op = "floor"
    reference = staticmethod(np.floor)
    jvp = ZERO_DERIVATIVE


class Ceil(Elementwise):
    """The least whole number not below."""

    accepts = FLOAT
    costs = thresholds.ROUNDED
    op = "ceil"
    reference = staticmethod(np.ceil)
    jvp = ZERO_DERIVATIVE


class Nearest(Elementwise, abstract=True):
    """The nearest whole number."""

    accepts = FLOAT
    jvp = ZERO_DERIVATIVE


class Round(Nearest):
    """The nearest whole number; halves to the even one."""

    costs = thresholds.ROUNDED
    op = "round_nearest_even"
    reference = staticmethod(np.rint)


class RoundAway(Nearest):
    """The nearest whole number; halves to the one further from zero."""

    op = "round_nearest_afz"

    def reference(self, x: np.ndarray) -> np.ndarray:
        """Truncate, and go one further where half or more was cut off."""
        whole = np.trunc(x)
        further = np.where(np.abs(x - whole) >= 0.5, np.copysign(1, x), 0)
        return np.copysign(whole + further.astype(x.dtype), x)


class IsFinite(Elementwise):
    """Say whether an element is neither infinite nor NaN."""

    accepts = FLOAT
    op = "is_finite"
    reference = staticmethod(np.isfinite)
    jvp = ZERO_DERIVATIVE

    def out_dtype(self, dtype: np.dtype) -> np.dtype:
        return np.dtype(bool)

    def infer(self, x: ArrayType) -> ArrayType:
        return array_type(x.shape, super().infer(x).dtype)


class Nextafter(Elementwise):
    """The next number after ``x`` towards ``y``."""

    accepts = FLOAT
    costs = thresholds.NEXTAFTER
    op = "next_after"
    dialect = "chlo"
    partials = (lambda dx, out, x, y: dx, None)  # up to rounding, it is x

    def reference(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Use NumPy's; ``y`` where they are equal, also among zeros."""
        return np.where(x == y, y, np.nextafter(x, y))


FLOOR, CEIL, ROUND, ROUND_AWAY = Floor(), Ceil(), Round(), RoundAway()
IS_FINITE, NEXTAFTER = IsFinite(), Nextafter()


_rounding = described(
    {"x": "an array of real numbers; integers stay as they are."},
    "An array of the dtype and shape of ``x``.",
    "TypeError: ``x`` is complex.",
)


def _whole(primitive: Elementwise, x: Any) -> Any:
    x = as_value(x, primitive.name)
    return primitive(x) if is_inexact(x.dtype) else x


@_rounding
def floor(x: ArrayLike) -> Array:
    """Find the greatest whole number not above each element.

    As NumPy's and the array API standard's ``floor``. Source: StableHLO, ``floor``.

    >>> import stretto.numpy as snp
    >>> snp.floor(snp.array([1.7, -1.2]))
    Array([ 1., -2.], dtype=float32)
    """
    return _whole(FLOOR, x)


@_rounding
def ceil(x: ArrayLike) -> Array:
    """Find the least whole number not below each element.

    As NumPy's and the array API standard's ``ceil``. Source: StableHLO, ``ceil``.

    >>> import stretto.numpy as snp
    >>> snp.ceil(snp.array([1.2, -1.7]))
    Array([ 2., -1.], dtype=float32)
    """
    return _whole(CEIL, x)


def round_(x: Any) -> Any:
    """Return the nearest whole number, halves to the even one; integers as they are.

    Source: StableHLO, ``round_nearest_even``.

    >>> import stretto as st
    >>> st.numpy.round(st.numpy.array([0.5, 1.5]))
    Array([0., 2.], dtype=float32)
    """
    return _whole(ROUND, x)


def truncated(x: Any) -> Any:
    """Return each element without its fraction."""
    x = as_value(x, "trunc")
    return select(lt(x, zeros_like(x)), ceil(x), floor(x)) if is_inexact(x.dtype) else x


def is_finite(x: ArrayLike) -> Array:
    """Tell whether each element is neither infinite nor NaN.

    Args:
        x: an array or a number.

    Returns:
        Booleans, of the shape of ``x``.

    Source: StableHLO, ``is_finite``.

    >>> import stretto as st
    >>> st.lax.is_finite(st.numpy.array([1.0, float("inf")]))
    Array([ True, False], dtype=bool)
    """
    value = as_value(x, "is_finite")
    if is_complex(value.dtype):
        return IS_FINITE(real(value)) & IS_FINITE(imag(value))
    if not is_inexact(value.dtype):
        return full(value.shape, True, np.dtype(bool))
    return IS_FINITE(value)


def nextafter(x1: ArrayLike, x2: ArrayLike) -> Array:
    """Compute the next number after ``x1`` towards ``x2``, element by element.

    Args:
        x1: the floats to start from.
        x2: the floats to go towards, promoted and broadcast with ``x1``.

    Returns:
        The numbers, of the promoted dtype.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: CHLO, ``next_after``.

    >>> import stretto as st
    >>> st.lax.nextafter(st.numpy.array(0.0), 1.0) > 0
    Array(True, dtype=bool)
    """
    return binary(NEXTAFTER, x1, x2)
