"""Draws from continuous distributions that have no parameters but bounds.

Each is a function of uniform bits, by the formulas that JAX uses, so that the numbers are JAX's to
rounding; but floats narrower than float32 are float32's, rounded.

Large draws at rest are compiled as a whole; small ones run operation by operation.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.interpreter import state
from stretto._engine.core.types import as_dtype, is_complex, real_dtype, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.arithmetic import absolute, add, divide, multiply, negative, sign, subtract
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.bits import population_count
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full_like, ge, select, zeros_like
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log, log1p, sqrt
from stretto._engine.ops.extrema import maximum, minimum
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.random_bits import bits_width, unit_float
from stretto._engine.ops.rounding import nextafter
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.special.error_functions import erf_inv
from stretto._engine.ops.trigonometric import tan
from stretto.random.draw_arguments import (
    draw,
    float_dtype,
    parameter,
    round_draw,
    spread,
    static_shape,
    wide,
)
from stretto.random.keys import as_key, parts, random_bits

__all__ = ["cauchy", "exponential", "gumbel", "laplace", "logistic", "maxwell", "normal", "uniform"]

_LARGE = 1 << 18
"""The number of elements from which some ten draws repay the time to compile."""


def when_large(fun: Callable[..., Array], static_argnums: tuple[int, ...]) -> Callable[..., Array]:
    """Return ``fun``, to be called with the number of elements before its arguments.

    It is compiled for many elements, unless a transformation is at work, which decides for itself.
    """
    compiled = jit(fun, static_argnums=static_argnums)

    def choose(size: int, *args: Any) -> Array:
        at_rest = state.interpreter.at_rest
        return (compiled if at_rest and size >= _LARGE else fun)(*args)

    return choose


STATIC = (int, float, np.integer, np.floating)


def uniform_float(key: Key, shape: tuple[int, ...], dtype: np.dtype, caller: str) -> Array:
    """Draw floats in [0, 1), as many as the mantissa has values, equally likely."""
    return unit_float(random_bits(key, bits_width(dtype), shape, caller), dtype)


def _formula_of_bits(
    key: Key,
    shape: tuple[int, ...],
    dtype: np.dtype,
    caller: str,
    formula: Callable[..., Array],
    parameters: tuple[float, ...],
) -> Array:
    return formula(uniform_float(key, shape, dtype, caller), *parameters)


_formula_when_large = when_large(_formula_of_bits, (1, 2, 3, 4, 5))


def _evaluate(
    key: Key,
    shape: tuple[int, ...],
    dtype: np.dtype,
    caller: str,
    formula: Callable[..., Array],
    *parameters: float,
) -> Array:
    """Evaluate a formula of numbers in [0, 1) and static parameters."""
    size = math.prod(shape)
    return _formula_when_large(size, key, shape, dtype, caller, formula, parameters)


@draw
def uniform(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    minval: ArrayLike = 0.0,
    maxval: ArrayLike = 1.0,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw numbers in ``[minval, maxval)``, equally likely.

    Args:
        minval: the least number; broadcasts to ``shape``.
        maxval: the bound above; broadcasts to ``shape``.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, or a bound does not broadcast to ``shape``.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x23456789))
    >>> random.uniform(subkey, (5,))
    Array([0.2918682 , 0.90834665, 0.13555491, 0.08107758, 0.9746183 ],
          dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(uniform(key, shape, dtype, minval, maxval), out_sharding, "random.uniform")
    target = float_dtype(dtype, "uniform")
    sizes = static_shape(shape, "uniform")
    if isinstance(minval, STATIC) and isinstance(maxval, STATIC):
        if target == wide(target):
            return _evaluate(key, sizes, target, "uniform", between, float(minval), float(maxval))
        low, high = (np.asarray(bound).astype(target) for bound in (minval, maxval))
        out = _evaluate(key, sizes, wide(target), "uniform", between, float(low), float(high))
        return _inside(convert(out, target), low, high)
    low = convert(parameter(minval, target, "uniform", "minval"), target)
    high = convert(parameter(maxval, target, "uniform", "maxval"), target)
    below = nextafter(high, full_like(high, float(ml_dtypes.finfo(target).min)))
    low, high, below = (
        spread(x, sizes, "uniform", name)
        for x, name in ((low, "minval"), (high, "maxval"), (below, "maxval"))
    )
    unit = uniform_float(key, sizes, wide(target), "uniform")
    out = stretch(unit, convert(low, unit.dtype), convert(high, unit.dtype))
    return maximum(low, minimum(below, convert(out, target)))


def between(unit: Array, minval: float, maxval: float) -> Array:
    """Return numbers in [0, 1) as numbers between two static bounds."""
    if minval == 0 and maxval == 1:
        return unit
    low, high = (np.asarray(bound).astype(unit.dtype) for bound in (minval, maxval))
    out = stretch(unit, full_like(unit, low), full_like(unit, high))
    # Where the steps of `unit` are finer than numbers are below `high`, rounding may reach it.
    step = float(high - low) * float(ml_dtypes.finfo(unit.dtype).eps)
    return _inside(out, low, high) if step < 2 * float(high - adjacent(high, -1)) else out


def stretch(unit: Array, low: Array, high: Array) -> Array:
    """Return numbers of [0, 1) as numbers of [low, high)."""
    return maximum(low, add(multiply(unit, subtract(high, low)), low))


def _inside(x: Array, low: np.ndarray, high: np.ndarray) -> Array:
    """Keep numbers that are rounded to the dtype of the bounds in [low, high)."""
    below = full_like(x, adjacent(high, -1))
    return maximum(full_like(x, low), minimum(below, x))


def adjacent(x: np.ndarray, direction: int) -> np.ndarray:
    """Return the number of this dtype that comes next, upwards for 1 and downwards for -1."""
    # Not towards infinity, which some types of 8 bits do not have.
    return np.nextafter(x, np.asarray(direction * ml_dtypes.finfo(x.dtype).max, x.dtype))


@draw
def normal(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the normal distribution of mean 0 and variance 1.

    Args:
        dtype: floating or complex; the default float by default. A complex number's two parts have
            variance 1/2 each.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is neither floating nor complex.
        ValueError: a size is negative.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x23456789))
    >>> random.normal(key, (2,))
    Array([-0.67039955,  0.02259737], dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(normal(key, shape, dtype), out_sharding, "random.normal")
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    sizes = static_shape(shape, "normal")
    if is_complex(target):
        part = real_dtype(target)
        re, im = (_evaluate(k, sizes, part, "normal", normal_of) for k in parts(key, 2, "normal"))
        root = full_like(re, math.sqrt(2))
        return complex_(divide(re, root), divide(im, root))
    work = wide(float_dtype(target, "normal"))
    return round_draw(_evaluate(key, sizes, work, "normal", normal_of), target)


def normal_of(unit: Array) -> Array:
    """Return numbers in [0, 1) as normal ones: sqrt(2) erf_inv(u), u uniform in (-1, 1)."""
    low = adjacent(np.asarray(-1, unit.dtype), 1)
    u = between(unit, float(low), 1.0)
    return multiply(full_like(u, math.sqrt(2)), erf_inv(u))


@draw
def exponential(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the exponential distribution of mean 1: ``-log(1 - u)``.

    >>> from stretto import random
    >>> bool((random.exponential(random.PRNGKey(0), (100,)) >= 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(exponential(key, shape, dtype), out_sharding, "random.exponential")
    target, sizes = float_dtype(dtype, "exponential"), static_shape(shape, "exponential")
    work = wide(target)
    return round_draw(_evaluate(key, sizes, work, "exponential", exponential_of), target)


def exponential_of(unit: Array) -> Array:
    """Return numbers in [0, 1) as exponential ones."""
    return negative(log1p(negative(unit)))


@draw
def gumbel(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Gumbel distribution: ``-log(-log(u))``.

    Args:
        mode: ``"high"`` draws twice the bits, for a longer tail; ``"low"`` is the default. In
            float32, and what is drawn in it, ``"highest"`` counts all of the 64 bits that it draws,
            however small ``u`` is; in float64 it is ``"high"``.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, or ``mode`` is none of these.

    >>> from stretto import random
    >>> random.gumbel(random.key(0), (2, 3), mode="highest").shape
    (2, 3)
    """
    if out_sharding is not None:
        return laid_out(gumbel(key, shape, dtype, mode), out_sharding, "random.gumbel")
    target, sizes = float_dtype(dtype, "gumbel"), static_shape(shape, "gumbel")
    work = wide(target)
    info = ml_dtypes.finfo(work)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"random.gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}")
    if mode == "highest" and work == np.float32:
        words = random_bits(key, 32, (2, *sizes), "gumbel")
        return round_draw(_gumbel_of_words(words, sizes), target)
    if mode not in ("high", "highest"):
        return round_draw(
            _evaluate(key, sizes, work, "gumbel", _gumbel_of, float(info.tiny)), target
        )
    both = uniform_float(key, (2, *sizes), work, "gumbel")
    high, low = (reshape(slice_in_dim(both, i, i + 1), sizes) for i in range(2))
    fine = add(multiply(full_like(low, 2.0**-info.nmant), low), full_like(low, info.tiny))
    x = select(ge(high, full_like(high, 0.5)), high, add(high, fine))
    return round_draw(negative(log(negative(log1p(negative(x))))), target)


def _gumbel_of(unit: Array, low: float) -> Array:
    return negative(log(negative(log(between(unit, low, 1.0)))))


def _gumbel_of_words(words: Array, sizes: tuple[int, ...]) -> Array:
    """Make Gumbel numbers of 64 bits each, u being seen from the nearer of 0 and 1."""
    high, low = (reshape(slice_in_dim(words, i, i + 1), sizes) for i in range(2))
    near = high < 1 << 31
    # 1 - u in 64 bits: the complement, and one.
    least = ~low + 1
    other = ~high + (least == 0).astype(high.dtype)
    x = _float_of_words(select(near, high, other), select(near, low, least))
    return negative(log(negative(select(near, log1p(negative(x)), log(x)))))


def _float_of_words(high: Array, low: Array) -> Array:
    """Return the float32 of 64 bits after the binary point, cut off after 24, and never zero."""
    at_high, at_low = _leading_zeros(high), _leading_zeros(low)
    empty = at_high == 32
    shift = select(empty, full_like(at_high, 1), at_high)  # what is not used has a shift in range
    filled = high << shift | select(at_high == 0, zeros_like(low), low >> (32 - shift))
    top = select(empty, low << select(at_low == 32, zeros_like(low), at_low), filled)
    zeros = select(empty, at_low + 32, at_high)
    # 1.m 2**(-1 - zeros): the leading one is implied.
    return bitcast_convert_type((126 - zeros) << 23 | (top >> 8) & 0x7FFFFF, np.float32)


def _leading_zeros(x: Array) -> Array:
    for step in (1, 2, 4, 8, 16):  # every bit below the highest set
        x = x | x >> step
    return 32 - population_count(x)


@draw
def laplace(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Laplace distribution of mean 0 and scale 1.

    >>> from stretto import random
    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(laplace(key, shape, dtype), out_sharding, "random.laplace")
    target, sizes = float_dtype(dtype, "laplace"), static_shape(shape, "laplace")
    work = wide(target)
    low = -1 + float(ml_dtypes.finfo(work).epsneg)
    return round_draw(_evaluate(key, sizes, work, "laplace", _laplace_of, low), target)


def _laplace_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return multiply(sign(u), log1p(negative(absolute(u))))


@draw
def logistic(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the logistic distribution: ``log(u) - log(1 - u)``.

    >>> from stretto import random
    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(logistic(key, shape, dtype), out_sharding, "random.logistic")
    target, sizes = float_dtype(dtype, "logistic"), static_shape(shape, "logistic")
    work = wide(target)
    low = float(ml_dtypes.finfo(work).tiny)
    return round_draw(_evaluate(key, sizes, work, "logistic", _logistic_of, low), target)


def _logistic_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return subtract(log(u), log1p(negative(u)))


@draw
def cauchy(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Cauchy distribution: ``tan(pi (u - 1/2))``.

    >>> from stretto import random
    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(cauchy(key, shape, dtype), out_sharding, "random.cauchy")
    target, sizes = float_dtype(dtype, "cauchy"), static_shape(shape, "cauchy")
    work = wide(target)
    low = float(ml_dtypes.finfo(work).eps)
    return round_draw(_evaluate(key, sizes, work, "cauchy", _cauchy_of, low), target)


def _cauchy_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return tan(multiply(full_like(u, math.pi), subtract(u, full_like(u, 0.5))))


@draw
def maxwell(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Maxwell distribution: the length of three normal numbers.

    >>> from stretto import random
    >>> random.maxwell(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(maxwell(key, shape, dtype), out_sharding, "random.maxwell")
    sizes = static_shape(shape, "maxwell")
    target = float_dtype(dtype, "maxwell")
    x = normal(as_key(key, "maxwell"), (*sizes, 3), wide(target))
    return round_draw(sqrt(reduce_sum(multiply(x, x), (len(sizes),))), target)
