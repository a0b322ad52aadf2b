"""Polynomials fitted to points by least squares."""

from __future__ import annotations

from typing import Any, Literal, overload

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.size_guards import without_elements
from stretto._engine.core.types import is_complex
from stretto._engine.core.typing import Array, ArrayLike
from stretto._engine.ops.arithmetic import conj
from stretto._engine.ops.bilinear import promote_dtypes
from stretto._engine.ops.contract import matmul
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import expand_dims, reshape, transpose
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.products import outer
from stretto.numpy.limits import finfo
from stretto.numpy.linalg.systems import inv, lstsq
from stretto.numpy.polynomials import inexact_of, vander
from stretto.numpy.reductions import sum as sum_

__all__ = ["polyfit"]


@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    cov: Literal[False] = False,
) -> Array: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: Literal[False] = False,
    w: ArrayLike | None = None,
    *,
    cov: Literal[True, "unscaled"],
) -> tuple[Array, Array]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    *,
    full: Literal[True],
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> tuple[Array, Array, Array, Array, float]: ...
@overload
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, float]: ...
def polyfit(
    x: ArrayLike,
    y: ArrayLike,
    deg: int,
    rcond: float | None = None,
    full: bool = False,
    w: ArrayLike | None = None,
    cov: bool | str = False,
) -> Array | tuple[Array, Array] | tuple[Array, Array, Array, Array, float]:
    """Fit a polynomial to points, by least squares of ``w (y - p(x))``.

    Args:
        x: an array ``[m]``.
        y: an array ``[m]``, or ``[m, k]`` for k fits at once.
        deg: the degree of the polynomial.
        rcond: up to what, relative to the greatest, singular values count as zero; by default ``m
            eps``.
        full: whether to return the sums of squared residuals, the rank, the singular values and
            ``rcond`` too.
        w: weights ``[m]``.
        cov: whether to return the covariance of the coefficients too, scaled by the reduced
            chi-square, or not if ``"unscaled"``.

    Returns:
        The coefficients ``[deg + 1]`` or ``[deg + 1, k]``, that of the highest power first; a tuple
        with what else is asked for.

    Raises:
        TypeError: ``deg`` is not an integer, or an array has another shape.
        ValueError: ``deg`` is negative, ``cov`` is another, or the points are too few for it.

    As NumPy's ``polyfit``.

    >>> import stretto.numpy as snp
    >>> snp.polyfit(snp.arange(5.0), 2 * snp.arange(5.0) + 1, 1).round(3)
    Array([2., 1.], dtype=float32)
    """
    order = integer(deg, "polyfit", "deg") + 1
    if order < 1:
        raise ValueError(f"polyfit: deg must not be negative, got {deg}")
    if cov not in (False, True, "unscaled"):
        raise ValueError(f"polyfit: cov must be False, True or 'unscaled', got {cov!r}")
    value, other = promote_dtypes("polyfit", x, y)
    value, other = inexact_of(value), inexact_of(other)
    m = value.size
    of_rank = value.ndim == 1 and other.ndim in (1, 2)
    if not of_rank or without_elements(m, "polyfit") or other.shape[0] != m:
        raise TypeError(
            f"polyfit: x must be of rank 1 and not empty, y of rank 1 or 2 and as long; got "
            f"{value.type} and {other.type}"
        )
    # The relative rounding error of a sum of m terms in the dtype of the data
    cutoff = m * float(finfo(value.dtype).eps) if rcond is None else rcond
    left, right = vander(value, order), other
    if w is not None:
        weights = convert(as_value(w, "polyfit", "w"), value.dtype)
        if weights.shape != (m,):
            raise TypeError(f"polyfit: w must be of shape {(m,)}, got {weights.type}")
        left = left * expand_dims(weights, 1)
        right = right * (weights if other.ndim == 1 else expand_dims(weights, 1))
    # Scaling the columns to length 1 conditions the problem nearly as well as any scaling can.
    scale = sqrt(sum_(_squared(left), 0))
    left = left / expand_dims(scale, 0)
    c, residuals, rank, singular = lstsq(left, right, cutoff)
    c = c / (scale if other.ndim == 1 else expand_dims(scale, 1))
    if full:
        return c, residuals, rank, singular, cutoff
    if not cov:
        return c
    base = inv(matmul(conj(transpose(left)), left)) / outer(scale, scale)
    if cov == "unscaled":
        factor: Any = 1
    else:
        if m <= order:
            raise ValueError(
                f"polyfit: {m} points are too few to scale the covariance of {order} coefficients; "
                f"pass cov='unscaled'"
            )
        factor = residuals / (m - order)
    if other.ndim == 1:
        return c, base * (factor if cov == "unscaled" else reshape(factor, ()))
    return c, expand_dims(base, 2) * factor


def _squared(x: Array) -> Array:
    return (conj(x) * x).real if is_complex(x.dtype) else x * x
