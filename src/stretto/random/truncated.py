"""Draws from the normal distribution between bounds, however far out they are."""

from __future__ import annotations

import math

import ml_dtypes
import numpy as np

from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.arithmetic import divide, multiply, negative
from stretto._engine.ops.comparison import full, full_like, gt, le, select
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import exp as exp_of
from stretto._engine.ops.extrema import clamp, maximum
from stretto._engine.ops.layout import laid_out
from stretto._engine.ops.rounding import nextafter
from stretto._engine.ops.special.error_functions import erf, erf_inv
from stretto._engine.ops.written import Number, Written, exp, log, log1p, sqrt
from stretto.random.distributions import STATIC, adjacent, stretch, uniform_float
from stretto.random.draw_arguments import (
    draw,
    drawing_as_jax,
    float_dtype,
    parameter,
    round_draw,
    shape_of,
    spread,
    wide,
)
from stretto.random.keys import as_key
from stretto.special.errors import erfcx, erfcx_formula

__all__ = ["truncated_normal"]

_ROOT_HALF = math.sqrt(0.5)
_NEAR = 0.5
"""An interval that begins this far from 0 counts as a tail."""

_STEPS = 4
"""The steps of Newton's method: from 0.5 on, three err by 2e-9, four by rounding."""


def _mills(x: Number) -> Number:
    """Q(x) / φ(x), for the normal density φ and what it integrates to from x on, Q."""
    return math.sqrt(math.pi / 2) * erfcx_formula(_ROOT_HALF * x)


def _tail_formula(near: Number, far: Number, v: Number) -> Number:
    """Return the x for which Q(x) = Q(near) - v (Q(near) - Q(far))."""
    at_near = _mills(near)
    # Q(far) / Q(near), which their own values, 0 in far tails, would not give.
    ratio = exp(-0.5 * (far - near) * (far + near)) * _mills(far) / at_near
    depth = -log1p(-v * (1.0 - ratio))  # log Q(near) - log Q(x)
    # Without the change of the Mills ratio x² is near² + 2 depth: Newton's method then comes down
    # upon x, as -log Q is convex, and its slope is the inverse of the Mills ratio.
    step = 2.0 * depth / (near + sqrt(near * near + 2.0 * depth))
    for _ in range(_STEPS):
        here = _mills(near + step)
        excess = step * (near + 0.5 * step) - log(here / at_near) - depth
        step = step - excess * here
    return near + step


def _density_ratio(x: Array, bound: Array) -> Array:
    """φ(bound) / φ(x)."""
    return exp_of(full_like(x, 0.5) * (x - bound) * (x + bound))


def _mass(x: Array, bound: Array) -> Array:
    """Q(bound) / φ(x)."""
    scaled = erfcx(full_like(x, _ROOT_HALF) * bound)
    return full_like(x, math.sqrt(math.pi / 2)) * scaled * _density_ratio(x, bound)


class NormalTail(Written):
    """The quantile at ``v`` of the normal distribution between two positive bounds."""

    formula = staticmethod(_tail_formula)
    # φ(x) dx = (1 - v) φ(near) dnear + v φ(far) dfar + (Q(near) - Q(far)) dv
    partials = (
        lambda d, x, near, far, v: d * (full_like(v, 1) - v) * _density_ratio(x, near),
        lambda d, x, near, far, v: d * v * _density_ratio(x, far),
        lambda d, x, near, far, v: d * (_mass(x, near) - _mass(x, far)),
    )


NORMAL_TAIL = NormalTail()


def _center(unit: Array, low: Array, high: Array) -> Array:
    """Turn numbers in [0, 1) into normal ones between bounds, by JAX's formula."""
    root = full((), math.sqrt(2), unit.dtype)
    first, last = (erf(divide(bound, root)) for bound in (low, high))
    sizes = unit.shape
    first, last = spread(first, sizes, "", ""), spread(last, sizes, "", "")
    return multiply(full_like(unit, math.sqrt(2)), erf_inv(stretch(unit, first, last)))


def _tail(unit: Array, low: Array, high: Array) -> Array:
    """Do the same where the bounds have one sign: by the upper tail, or the lower turned round."""
    upper = gt(low, full_like(low, 0))
    near, far = select(upper, low, negative(high)), select(upper, high, negative(low))
    # The lower tail is run through from its far end, where unit is 0 and a bound may be infinite.
    least = full_like(unit, float(ml_dtypes.finfo(unit.dtype).epsneg))
    v = select(upper, unit, full_like(unit, 1) - maximum(unit, least))
    x = NORMAL_TAIL(near, far, v)
    return select(upper, x, negative(x))


def _between(
    unit: Array, low: Array, high: Array, known: tuple[np.ndarray, np.ndarray] | None
) -> Array:
    """Turn numbers in [0, 1) into normal ones between bounds, maybe ``known`` while tracing."""
    if drawing_as_jax() or (known is not None and known[0] <= _NEAR and known[1] >= -_NEAR):
        return _center(unit, low, high)
    low, high = (spread(x, unit.shape, "", "") for x in (low, high))
    if known is not None and known[0] <= known[1]:
        return _tail(unit, low, high)
    tail = gt(low, full_like(low, _NEAR)) | gt(negative(high), full_like(high, _NEAR))
    one = full_like(low, 1)
    # Each formula is kept from the bounds of the other, where its derivative may be NaN.
    center = _center(unit, select(tail, negative(one), low), select(tail, one, high))
    return select(tail, _tail(unit, select(tail, low, one), select(tail, high, one + one)), center)


@draw
def truncated_normal(
    key: Key,
    lower: ArrayLike,
    upper: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the standard normal distribution, restricted to ``(lower, upper)``.

    Each number is the quantile of a uniform one, by the error function where the bounds have 0
    between them, and else by its scaled complement, which is accurate however far from 0 they are.

    Args:
        lower: the bound below; may be infinite.
        upper: the bound above; may be infinite.
        shape: of the result; by default that to which the bounds broadcast.

    Returns:
        Numbers of this shape and dtype; ``lower`` where no number of the dtype lies between the
        bounds, NaN where ``lower`` exceeds ``upper`` or either is NaN.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, the bounds are two numbers in the wrong order, or a bound
            does not broadcast to ``shape``.

    Source: Devroye, Non-Uniform Random Variate Generation, 1986, II.2, for the inversion; Newton's
    method on the logarithm of the tail.

    >>> from stretto import random
    >>> x = random.truncated_normal(random.PRNGKey(0), -1.0, 1.0, (100,))
    >>> bool((abs(x) < 1).all())
    True
    >>> random.truncated_normal(random.PRNGKey(0), 8.0, 9.0, (3,)).round(2)
    Array([8.4 , 8.05, 8.12], dtype=float32)
    """
    caller = "truncated_normal"
    if out_sharding is not None:
        result = truncated_normal(key, lower, upper, shape, dtype)
        return laid_out(result, out_sharding, f"random.{caller}")
    target = float_dtype(dtype, caller)
    known = None
    if isinstance(lower, STATIC) and isinstance(upper, STATIC):
        known = np.asarray(lower).astype(target), np.asarray(upper).astype(target)
        if lower > upper and not drawing_as_jax():
            raise ValueError(
                f"random.{caller}: lower must not exceed upper, got {lower} and {upper}"
            )
    low = convert(parameter(lower, target, caller, "lower"), target)
    high = convert(parameter(upper, target, caller, "upper"), target)
    sizes = shape_of(shape, caller, low, high)
    unit = uniform_float(as_key(key, caller), sizes, wide(target), caller)
    bounds = spread(low, sizes, caller, "lower"), spread(high, sizes, caller, "upper")
    drawn = _between(unit, convert(low, unit.dtype), convert(high, unit.dtype), known)
    # Rounding must not reach the bounds.
    info = ml_dtypes.finfo(target)
    above, below = full_like(low, float(info.max)), full_like(high, float(info.min))
    least = spread(nextafter(low, above), sizes, caller, "lower")
    most = spread(nextafter(high, below), sizes, caller, "upper")
    out = clamp(least, round_draw(drawn, target), most)
    if drawing_as_jax() or (known is not None and adjacent(known[0], 1) <= adjacent(known[1], -1)):
        return out
    # No number lies between the bounds, or they are in the wrong order, or NaN.
    none = select(le(*bounds), bounds[0], full_like(out, np.nan))
    return select(le(least, most), out, none)
