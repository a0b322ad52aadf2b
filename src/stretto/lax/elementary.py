"""Functions of numbers with the further arguments of ``jax.lax``: accuracy, rounding, dtype.

The functions themselves are in ``ops/exponential``, ``ops/trigonometric`` and
``ops/rounding``. At the end are the engine's functions that ``jax.lax`` calls by other names.
"""

from __future__ import annotations

import enum
import functools
import inspect
from collections.abc import Callable

from stretto._engine.api import vectorize
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import as_dtype, is_inexact
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike
from stretto._engine.ops import (
    arithmetic,
    complex_parts,
    exponential,
    extrema,
    rounding,
    trigonometric,
)
from stretto._engine.ops import sort as sorting
from stretto._engine.ops.bilinear import AccuracyMode, Tolerance, check_accuracy
from stretto._engine.ops.convert import convert
from stretto._engine.ops.elementwise import FLOAT, check_kind

__all__ = ["RoundingMethod", "abs", "cbrt", "complex", "cos", "div", "exp", "exp2",
           "expm1", "log", "log1p", "logistic", "map", "max", "min", "mul", "neg",
           "pow", "rem", "round", "rsqrt", "sin", "sort", "sqrt", "sub", "tan", "tanh"]  # fmt: skip


def _with_accuracy(function: Callable[[ArrayLike], Array]) -> Callable[..., Array]:
    """Add a keyword ``accuracy`` to a function: a ``Tolerance``, ``AccuracyMode`` or None.

    A CPU computes each function in one way, which meets every accuracy that can be requested.
    """

    @functools.wraps(function)
    def within(x: ArrayLike, *, accuracy: Tolerance | AccuracyMode | None = None) -> Array:
        if accuracy is not None:
            check_accuracy(function.__name__, accuracy)
        return function(x)

    del within.__wrapped__  # type: ignore[attr-defined]  # so that the signature is the new one
    within.__doc__ = (inspect.getdoc(function) or "").replace(
        "\n\nReturns:",
        "\n    accuracy: a ``Tolerance``, an ``AccuracyMode`` or None; a CPU computes the function"
        "\n        in one way in any case.\n\nReturns:",
    )
    return within


cbrt = _with_accuracy(exponential.cbrt)
cos = _with_accuracy(trigonometric.cos)
exp = _with_accuracy(exponential.exp)
exp2 = _with_accuracy(exponential.exp2)
expm1 = _with_accuracy(exponential.expm1)
log = _with_accuracy(exponential.log)
log1p = _with_accuracy(exponential.log1p)
logistic = _with_accuracy(exponential.logistic)
rsqrt = _with_accuracy(exponential.rsqrt)
sin = _with_accuracy(trigonometric.sin)
sqrt = _with_accuracy(exponential.sqrt)
tan = _with_accuracy(trigonometric.tan)
tanh = _with_accuracy(trigonometric.tanh)


class RoundingMethod(enum.IntEnum):
    """Says where halves go: away from zero, or to the even neighbour.

    >>> import stretto as st
    >>> st.lax.round(2.5, st.lax.RoundingMethod.TO_NEAREST_EVEN)
    Array(2., dtype=float32, weak_type=True)
    """

    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


def round(x: ArrayLike, rounding_method: RoundingMethod = RoundingMethod.AWAY_FROM_ZERO) -> Array:
    """Round each element to the nearest whole number.

    Args:
        x: an array or a number.
        rounding_method: where halves go.

    Returns:
        The whole numbers, of the shape and dtype of ``x``; integers as they are.

    Raises:
        ValueError: there is no such method.

    Source: StableHLO, ``round_nearest_afz`` and ``round_nearest_even``.

    >>> import stretto as st
    >>> st.lax.round(st.numpy.array([0.5, -1.5]))
    Array([ 1., -2.], dtype=float32)
    >>> st.lax.round(st.numpy.array([0.5, -1.5]), st.lax.RoundingMethod.TO_NEAREST_EVEN)
    Array([ 0., -2.], dtype=float32)
    """
    method = RoundingMethod(rounding_method)
    value = as_value(x, "round")
    if method is RoundingMethod.TO_NEAREST_EVEN or not is_inexact(value.dtype):
        return rounding.round_(value)
    check_kind("round", FLOAT, value.type)
    return rounding.ROUND_AWAY(value)


def mul(x: ArrayLike, y: ArrayLike, *, out_dtype: DTypeLike | None = None) -> Array:
    """Multiply two arrays, element by element.

    Args:
        x: an array or a number.
        y: another, promoted and broadcast with ``x``.
        out_dtype: a dtype that both are converted to first; by default the promoted one.

    Returns:
        The products.

    Raises:
        ValueError: the shapes cannot be broadcast together.

    Source: StableHLO, ``multiply``.

    >>> import stretto as st
    >>> x = st.numpy.array([100], dtype="int8")
    >>> st.lax.mul(x, x, out_dtype="int32")
    Array([10000], dtype=int32)
    """
    if out_dtype is None:
        return arithmetic.multiply(x, y)
    dtype = as_dtype(out_dtype)
    operands = [convert(as_value(v, "mul", name), dtype) for v, name in ((x, "x"), (y, "y"))]
    return arithmetic.multiply(*operands)


abs = arithmetic.absolute
complex = complex_parts.complex_
div = arithmetic.divide
map = vectorize.map_
max = extrema.maximum
min = extrema.minimum
neg = arithmetic.negative
pow = exponential.power
rem = arithmetic.remainder
sort = sorting.sort_operands
sub = arithmetic.subtract
