"""Means, variances and weighted means."""

from __future__ import annotations

import math
from typing import Any, Literal, overload

import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.interpreter import Tracer, Value, as_value
from stretto._engine.core.sizes import Size, is_size
from stretto._engine.core.types import inexact_dtype, is_complex, is_inexact, real_dtype
from stretto._engine.core.typing import Array, ArrayLike, Axes, DType, DTypeLike, Shape
from stretto._engine.eager.twins import FLOAT, eager
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full_like, gt
from stretto._engine.ops.comparison import where as choose
from stretto._engine.ops.complex_parts import conj, real
from stretto._engine.ops.convert import convert, rounded_once
from stretto._engine.ops.elementwise import promote_values
from stretto._engine.ops.exponential import root_of_squares
from stretto._engine.ops.layout import canonical_axes, reshape, transpose
from stretto._engine.ops.shape import slice
from stretto.numpy.arguments import refuse_out
from stretto.numpy.arithmetic import multiply, subtract, true_divide
from stretto.numpy.dtypes import as_dtype
from stretto.numpy.logic import mask_of_where
from stretto.numpy.reductions import keep, masked, wide_dtype
from stretto.numpy.reductions import sum as sum_

__all__ = ["average", "mean", "std", "var"]


def _count(x: Array, axes: tuple[int, ...], where: ArrayLike | None, caller: str) -> int | Array:
    """Return the number of elements over the axes: static, or by a mask."""
    if where is None:
        return math.prod([x.shape[d] for d in axes])
    mask = broadcast_to(mask_of_where(where, caller), x.shape)
    return sum_(mask, axes)


def _over(total: Array, count: int | float | Array) -> Array:
    """Return the total over the count, which may be zero."""
    if isinstance(count, (int, float, Size)):
        return true_divide(total, count)
    return true_divide(total, convert(count, total.dtype))


def _mean(x: Array, axes: tuple[int, ...], where: ArrayLike | None, caller: str) -> Array:
    return _over(sum_(x, axes, where=where), _count(x, axes, where, caller))


def mean_about_first(x: Value, axes: tuple[int, ...]) -> Array:
    """Return the mean over axes, which stay with size 1: of equal elements it is exactly these.

    It is a + mean(x - a), for the first element a, with the slope of the mean. The plain mean of
    10^10, seven times, is off by 1024 in a compiled program, which what divides by the deviation
    would turn into 1.
    """
    shape = tuple([1 if d in axes else n for d, n in enumerate(x.shape)])
    count = math.prod([x.shape[d] for d in axes])
    if any([is_size(x.shape[d]) or not x.shape[d] for d in axes]):
        return _over(reshape(sum_(x, axes), shape), count)
    # Of one slice along each axis, XLA stored the first: half of an array with a batch of 2.
    first = stop_gradient(slice(x, [0] * x.ndim, shape))
    return first + _over(reshape(sum_(x - first, axes), shape), count)


@described_like(sum_)
def mean(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
) -> Array:
    """Average the elements over axes.

    Narrow floats are added up in float32. In a ``dtype`` of integers or booleans, the elements are
    converted first, and the mean last.

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        dtype: the dtype of the result; by default that of ``a``, for integers the default float.

    Returns:
        The means, of the shape of ``a`` without the axes; NaN where there is no element.

    As NumPy's and the array API standard's ``mean``.

    >>> import stretto.numpy as snp
    >>> snp.mean(snp.array([[1, 2], [3, 4]]), axis=0)
    Array([2., 3.], dtype=float32)
    """
    x = as_value(a, "mean", "a")
    refuse_out("mean", out)
    wanted = inexact_dtype(x.dtype) if dtype is None else as_dtype(dtype)
    axes = canonical_axes(axis, x.ndim, "mean")
    inexact = inexact_dtype(wanted)
    if inexact is wanted:
        result = _mean(convert(x, wide_dtype(wanted)), axes, where, "mean")
    else:
        total = convert(sum_(x, axes, wanted, where=where), inexact)
        result = _over(total, _count(x, axes, where, "mean"))
    return keep(convert(result, wanted), x.shape, axes, keepdims)


def _variance(
    caller: str,
    a: ArrayLike,
    axis: Axes,
    dtype: DTypeLike | None,
    out: None,
    ddof: ArrayLike,
    where: ArrayLike | None,
    mean: ArrayLike | None,
    correction: ArrayLike | None,
) -> tuple[Array, DType, Shape, Shape]:
    """Return the variance in a wide dtype, the dtype wanted, the shape and the axes."""
    x = as_value(a, caller, "a")
    refuse_out(caller, out)
    wanted = real_result(x) if dtype is None else as_dtype(dtype)
    if not is_inexact(wanted):
        raise TypeError(
            f"{caller}: dtype must be a float or complex dtype, got {wanted.name}; leave it out, "
            f"and convert the result with .astype({wanted.name!r})"
        )
    if correction is not None:
        if isinstance(ddof, Value) or ddof:
            raise ValueError(f"{caller}: give ddof= or correction=, which mean the same, not both")
        ddof = correction
    lost: Any = ddof
    axes = canonical_axes(axis, x.ndim, caller)
    x = convert(x, wide_dtype(inexact_dtype(x.dtype)))
    if where is not None:
        x = masked(caller, x, where, 0)  # neither read nor squared
    if mean is None:
        center = keep(_mean(x, axes, where, caller), x.shape, axes, True)
    else:
        center = convert(as_value(mean, caller, "mean"), x.dtype)
    squares = _squares(x, center)
    count = _count(x, axes, where, caller)
    total = sum_(squares, axes, where=where)
    if is_size(count):
        count = convert(as_value(count), total.dtype)  # a product of sizes may exceed int32
    if isinstance(count, int) and not isinstance(ddof, Tracer):
        spread = _over(total, count - lost) if count > lost else full_like(total, math.nan)
    else:
        enough = gt(count, lost)
        freedom = choose(enough, count - lost, 1)
        spread = choose(enough, _over(total, freedom), math.nan)
    return spread, wanted, x.shape, axes


def _squares_at_rest(x: np.ndarray, center: np.ndarray) -> np.ndarray:
    away = np.asarray(np.subtract(x, center))
    return np.square(away, away)


@eager(_squares_at_rest, FLOAT)
def _squares(x: Array, center: Array) -> Array:
    """Square the distance of each element from the centre; at rest in one piece of memory."""
    away = subtract(x, center)
    return real(away * conj(away)) if is_complex(x.dtype) else multiply(away, away)


def real_result(a: ArrayLike) -> np.dtype:
    """Return the dtype of a variance: the real float of the argument."""
    return real_dtype(inexact_dtype(as_value(a).dtype))


def var(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Average the squared distances from the mean over axes.

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        dtype: the dtype of the result, a float; by default the real one of ``a``.
        out: must be None: arrays are immutable.
        ddof: what is taken off the number of elements n before dividing; may be traced.
        keepdims: whether the axes stay, with size 1.
        where: a mask of the elements that count; all by default.
        mean: the mean, with the axes kept, where it is known already.
        correction: the array API standard's name for ``ddof``.

    Returns:
        The variances, of the shape of ``a`` without the axes; NaN where n is not above ``ddof``.

    Raises:
        NotImplementedError: ``out`` is given.
        TypeError: ``where`` is not boolean; or ``dtype`` is neither float nor complex.
        ValueError: an axis is out of bounds, or is named twice; or ``ddof`` and ``correction`` are
            both given.

    As NumPy's and the array API standard's ``var``.

    >>> import stretto.numpy as snp
    >>> snp.var(snp.array([1.0, 2.0, 3.0]), ddof=1)
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance(
        "var", a, axis, dtype, out, ddof, where, mean, correction
    )
    return keep(convert(spread, wanted), shape, axes, keepdims)


@described_like(var)
def std(
    a: ArrayLike,
    axis: Axes = None,
    dtype: DTypeLike | None = None,
    out: None = None,
    ddof: ArrayLike = 0,
    keepdims: bool = False,
    *,
    where: ArrayLike | None = None,
    mean: ArrayLike | None = None,
    correction: ArrayLike | None = None,
) -> Array:
    """Take the square root of the variance over axes; its derivative at 0 is 0.

    Returns:
        The deviations, of the shape of ``a`` without the axes; NaN where n is not above ``ddof``.

    As NumPy's and the array API standard's ``std``.

    >>> import stretto.numpy as snp
    >>> snp.std(snp.array([1.0, 3.0]))
    Array(1., dtype=float32)
    """
    spread, wanted, shape, axes = _variance(
        "std", a, axis, dtype, out, ddof, where, mean, correction
    )
    return keep(convert(root_of_squares(spread), wanted), shape, axes, keepdims)


@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: Literal[False] = False,
    keepdims: bool = False,
) -> Array: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    *,
    returned: Literal[True],
    keepdims: bool = False,
) -> tuple[Array, Array]: ...
@overload
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]: ...
@rounded_once
def average(
    a: ArrayLike,
    axis: Axes = None,
    weights: ArrayLike | None = None,
    returned: bool = False,
    keepdims: bool = False,
) -> Array | tuple[Array, Array]:
    """Average the elements over axes, each by its weight.

    Args:
        a: an array, or a number.
        axis: the axes to average over; all by default.
        weights: one for each element, or one for each place along the axes; all 1 by default.
        returned: whether to return the sum of weights too.
        keepdims: whether the axes stay, with size 1.

    Returns:
        The means, of the shape of ``a`` without the axes; a tuple with the sums of weights if
        ``returned``.

    Raises:
        ValueError: an axis is out of bounds, or is named twice; or ``weights`` has another shape.

    As NumPy's ``average``.

    >>> import stretto.numpy as snp
    >>> snp.average(snp.array([1.0, 2.0]), weights=snp.array([1.0, 3.0]))
    Array(1.75, dtype=float32)
    """
    x = as_value(a, "average", "a")
    if weights is None:
        out = mean(x, axis, keepdims=keepdims)
        count = _count(x, canonical_axes(axis, x.ndim, "average"), None, "average")
        return (out, full_like(out, count)) if returned else out
    w = along_axes("average", weights, x, axis)
    x, w = promote_values("average", x, w, inexact=True)
    total = sum_(w, axis, keepdims=keepdims)
    out = sum_(x * w, axis, keepdims=keepdims) / total
    return (out, total) if returned else out


def along_axes(caller: str, weights: ArrayLike, x: Array, axis: Axes) -> Array:
    """Shape weights to broadcast with ``x``: weights of its elements, or of places along axes."""
    w = as_value(weights, caller, "weights")
    if w.shape == x.shape:
        return w
    axes = canonical_axes(axis, x.ndim, caller)
    if w.shape != tuple(x.shape[d] for d in axes):
        raise ValueError(
            f"{caller}: weights must have the shape of a, {x.type}, or be one for each place along "
            f"axis {axis}; got {w.type}"
        )
    w = transpose(w, sorted(range(len(axes)), key=axes.__getitem__))
    return reshape(w, tuple(n if d in axes else 1 for d, n in enumerate(x.shape)))
