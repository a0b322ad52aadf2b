"""Sums of exponentials: softmax, its logarithm, softplus and logsumexp.

Not NumPy's: ``stretto.nn`` and ``stretto.special`` give them under their names.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, Literal, overload

import ml_dtypes
import numpy as np

from stretto._engine import higher_order
from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import is_complex, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.arithmetic import sign as sign_
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import eq, full_like, lt, select, zeros_like
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import real
from stretto._engine.ops.convert import as_inexact, convert
from stretto._engine.ops.elementwise import broadcast_shapes
from stretto._engine.ops.exponential import exp, expm1, log, log1p, logistic
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import canonical_axes, squeeze
from stretto._engine.ops.shape import rev
from stretto.numpy.arguments import refuse_complex
from stretto.numpy.extrema import max as max_
from stretto.numpy.logic import greater, isfinite, mask_of_where
from stretto.numpy.reductions import any as any_
from stretto.numpy.reductions import sum as sum_


def _greatest(x: Array, axes: tuple[int, ...], where: Array | None = None) -> Array:
    """Return the greatest element over the axes, kept, as a constant."""
    x = higher_order.stop_gradient.StopGradient()(real(x) if is_complex(x.dtype) else x)
    lowest = None if where is None and exceeds(x.size, 0) else -math.inf
    return max_(x, axes, None, True, lowest, where)


def _exponents(
    caller: str, x: Array, axes: tuple[int, ...], where: ArrayLike | None, initial: ArrayLike | None
) -> tuple[Array, Array | None, Callable[[Array], Array]]:
    """Return ``x`` minus its greatest element, the mask, and what adds up the elements it selects.

    Where the mask is false ``x`` is not read; with no element the sum is 1.
    """
    if where is None:
        top = _at_least(_greatest(x, axes), initial)
        return x - convert(top, x.dtype), None, lambda terms: sum_(terms, axes, keepdims=True)
    mask = mask_of_where(where, caller)
    shape = broadcast_shapes(caller, x.shape, mask.shape)
    x, mask = broadcast_to(x, shape), broadcast_to(mask, shape)
    some = any_(mask, axes, keepdims=True)
    top = choose(some, _at_least(_greatest(x, axes, mask), initial), 0)
    # 0 rather than -inf, so that no derivative is infinity times zero.
    shifted = choose(mask, x - convert(top, x.dtype), 0)
    return shifted, mask, lambda e: choose(some, sum_(e, axes, keepdims=True, where=mask), 1)


def _at_least(top: Array, initial: ArrayLike | None) -> Array:
    return top if initial is None else maximum(top, full_like(top, initial))


def _softplus(x: np.ndarray) -> np.ndarray:
    """Compute ``softplus`` in NumPy."""
    return np.maximum(x, 0) + np.log1p(np.exp(-np.abs(x)))


@eager(_softplus, FLOAT)
def softplus(x: ArrayLike) -> Array:
    """Take ``log(1 + exp(x))`` of each element, without overflow.

    Args:
        x: an array of any shape; integers become floats.

    Returns:
        The values, in the shape of ``x``.

    Raises:
        TypeError: ``x`` is not an array or a number.

    As ``jax.nn.softplus``.

    >>> import stretto as st
    >>> softplus(st.numpy.array([0.0, 100.0])).round(3)
    Array([  0.693, 100.   ], dtype=float32)
    """
    x = as_inexact(x, "softplus")
    # Select a side, as max and |.| have no second derivative at 0.
    positive = greater(x, 0)
    return select(positive, x, zeros_like(x)) + log1p(exp(select(positive, -x, x)))


def _ahead(
    x: Array, axes: tuple[int, ...], where: ArrayLike | None, initial: ArrayLike | None
) -> Array | None:
    """Return ``x`` minus the other class; None unless there are two, and unmasked.

    The softmax of two classes is the logistic function of this, whose digits and slopes stay where
    one class is sure: there ``exp(x) / sum(exp(x))`` is 1, and its slope the difference of two
    numbers that are 1.
    """
    two = len(axes) == 1 and x.shape[axes[0]] == 2 and x.dtype.kind != "c"
    return x - rev(x, axes) if two and where is None and initial is None else None


def softmax(
    x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None, initial: ArrayLike | None = None
) -> Array:
    """Normalize the exponentials of the elements over axes: ``exp(x) / sum(exp(x))``.

    Narrow floats are added up in float32. Elements that ``where`` leaves out are 0, with
    derivatives of 0 whatever ``x`` is there.

    Args:
        x: an array, or a number.
        axis: the axes to normalize over; None is all.
        where: a mask of the elements that count; all by default.
        initial: a lower bound of the number that is subtracted before ``exp``; it changes the
            result by no more than rounding.

    Returns:
        An array of the float dtype and shape of ``x``.

    Raises:
        TypeError: ``where`` is not boolean.
        ValueError: an axis is out of bounds, or is named twice.

    As JAX's ``nn.softmax``.

    >>> import stretto as st
    >>> softmax(st.numpy.array([0.0, 1000.0]))
    Array([0., 1.], dtype=float32)
    """
    value: Any = as_inexact(x, "softmax")
    axes = canonical_axes(axis, value.ndim, "softmax")
    ahead = _ahead(value, axes, where, initial)
    if ahead is not None:
        return logistic(ahead)
    shifted, mask, total = _exponents("softmax", value, axes, where, initial)
    unnormalized = exp(shifted)
    out = unnormalized / total(unnormalized)
    return out if mask is None else select(mask, out, zeros_like(out))


@described_like(softmax)
def log_softmax(
    x: ArrayLike, axis: Axes = -1, where: ArrayLike | None = None, initial: ArrayLike | None = None
) -> Array:
    """Compute the logarithm of ``softmax`` over axes: ``x - log(sum(exp(x)))``.

    Elements that ``where`` leaves out are -inf, with derivatives of 0 whatever ``x`` is there.

    Args:
        initial: as for ``softmax``.

    As JAX's ``nn.log_softmax``.

    >>> import stretto as st
    >>> log_softmax(st.numpy.array([0.0, 0.0])).round(3)
    Array([-0.693, -0.693], dtype=float32)
    """
    value: Any = as_inexact(x, "log_softmax")
    axes = canonical_axes(axis, value.ndim, "log_softmax")
    ahead = _ahead(value, axes, where, initial)
    if ahead is not None:
        return 0 - softplus(-ahead)  # 0, and not -0, where it is sure
    shifted, mask, total = _exponents("log_softmax", value, axes, where, initial)
    out = shifted - log(total(exp(shifted)))
    return out if mask is None else select(mask, out, full_like(out, -math.inf))


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
@described_like(softmax)
def logsumexp(
    a: ArrayLike,
    axis: Axes = None,
    b: ArrayLike | None = None,
    keepdims: bool = False,
    return_sign: bool = False,
    where: ArrayLike | None = None,
) -> Array | tuple[Array, Array]:
    """Compute ``log(sum(b * exp(a)))`` over axes without overflow.

    Args:
        a: an array, or a number.
        axis: the axes to add over; all by default.
        b: weights, which broadcast with ``a``; where they are 0, ``a`` does not count, whatever it
            is.
        keepdims: whether the axes stay, with size 1.
        return_sign: whether to return the sign of the sum too, and the logarithm of its size.

    Returns:
        The logarithms, -inf with a derivative of 0 where the sum is 0; a tuple with the signs if
        ``return_sign``.

    As SciPy's ``logsumexp``.

    >>> import stretto as st
    >>> st.special.logsumexp(st.numpy.array([1000.0, 1000.0])).round(2)
    Array(1000.69, dtype=float32)
    """
    x: Any = as_inexact(a, "logsumexp", "a")
    axes = canonical_axes(axis, x.ndim, "logsumexp")
    if where is not None:
        mask = mask_of_where(where, "logsumexp")
        x = choose(mask, x, -math.inf)
        b = None if b is None else choose(mask, b, 0)
    counted, weightless, weights = x, None, None
    if b is not None:
        weights = as_value(b, "logsumexp", "b")
        weightless = eq(weights, zeros_like(weights))
        counted = choose(weightless, -math.inf, x)
    top = _greatest(counted, axes)
    top = convert(select(isfinite(top), top, zeros_like(top)), x.dtype)
    away = x - top
    if weightless is not None:
        # Weights of 0 have the derivative exp(x - out), kept finite: infinity times 0 is NaN.
        most = 0.9 * math.log(float(ml_dtypes.finfo(real_dtype(away.dtype)).max))
        size = real(away) if is_complex(away.dtype) else away
        away = choose(weightless & ~lt(size, full_like(size, most)), most, away)
    terms = exp(away)
    total = sum_(terms if weights is None else terms * weights, axes, keepdims=True)
    size, sign = total, total
    if return_sign:
        size, sign = absolute(total), sign_(total)
    none = eq(total, zeros_like(total))
    size = log(select(none, full_like(size, 1), size))
    out = select(none, full_like(size, -math.inf), size + top)
    if not keepdims:
        out, sign = squeeze(out, axes), squeeze(sign, axes) if return_sign else sign
    return (out, sign) if return_sign else out


def log1mexp(x: ArrayLike) -> Array:
    """Compute ``log(1 - exp(-x))``, exactly for small and large ``x``.

    Args:
        x: an array of real numbers.

    Returns:
        An array of the float dtype and shape of ``x``; NaN where ``x < 0``.

    Raises:
        TypeError: ``x`` is complex, or not an array or a number.

    Mächler, Accurately computing log(1 - exp(-|a|)), 2012.

    >>> import stretto as st
    >>> log1mexp(st.numpy.array([1e-10, 50.0]))
    Array([-2.3025850e+01, -1.9287499e-22], dtype=float32)
    """
    refuse_complex("log1mexp", x=x)
    value = as_inexact(x, "log1mexp")
    small = lt(value, full_like(value, math.log(2)))
    near, far = choose(small, value, 1.0), choose(small, 1.0, value)
    return choose(small, log(-expm1(-near)), log1p(-exp(-far)))
