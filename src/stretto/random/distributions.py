"""Draws from continuous distributions that have no parameters but bounds.

Each is a function of uniform bits, by the formulas that JAX uses, so that the numbers are JAX's to
rounding. Next, read ``parametric`` and ``gammas``.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import ml_dtypes
import numpy as np

from stretto._engine.core.types import as_dtype, is_complex, real_dtype, scalar_dtype
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.arithmetic import absolute, add, divide, multiply, negative, sign, subtract
from stretto._engine.ops.bitcast import bitcast_convert_type
from stretto._engine.ops.bitwise import population_count
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full, full_like, ge, select, zeros_like
from stretto._engine.ops.complex_parts import complex_
from stretto._engine.ops.exponential import log, log1p
from stretto._engine.ops.extrema import clamp, maximum
from stretto._engine.ops.layout import reshape
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.random.numbers import bits_width, unit_float
from stretto._engine.ops.rounding import nextafter
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sharding import laid_out
from stretto._engine.ops.special.error_functions import erf, erf_inv
from stretto._engine.ops.trigonometric import tan
from stretto.random.arguments import float_dtype, parameter, shape_of, spread, static_shape
from stretto.random.compiling import when_large
from stretto.random.keys import checked, parts, random_bits

__all__ = [
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "maxwell",
    "normal",
    "truncated_normal",
    "uniform",
]


_STATIC = (int, float, np.integer, np.floating)


def uniform_float(key: Key, shape: tuple[int, ...], dtype: np.dtype, caller: str) -> Array:
    """Floats in [0, 1), as many as the mantissa has values, equally likely."""
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


def _drawn(
    key: Key,
    shape: tuple[int, ...],
    dtype: np.dtype,
    caller: str,
    formula: Callable[..., Array],
    *parameters: float,
) -> Array:
    """A formula of numbers in [0, 1) and static parameters."""
    size = math.prod(shape)
    return _formula_when_large(size, key, shape, dtype, caller, formula, parameters)


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
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        minval: the least number; broadcasts to ``shape``.
        maxval: the bound above; broadcasts to ``shape``.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, or a bound does not broadcast to ``shape``; or the result
            cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x123456789))
    >>> random.uniform(subkey, (5,))
    Array([0.2918682 , 0.90834665, 0.13555491, 0.08107758, 0.9746183 ],
          dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(uniform(key, shape, dtype, minval, maxval), out_sharding, "random.uniform")
    target = float_dtype(dtype, "uniform")
    sizes = static_shape(shape, "uniform")
    if isinstance(minval, _STATIC) and isinstance(maxval, _STATIC):
        return _drawn(key, sizes, target, "uniform", between, float(minval), float(maxval))
    out = uniform_float(key, sizes, target, "uniform")
    low = spread(parameter(minval, target, "uniform", "minval"), sizes, "uniform", "minval")
    high = spread(parameter(maxval, target, "uniform", "maxval"), sizes, "uniform", "maxval")
    return maximum(low, add(multiply(out, subtract(high, low)), low))


def between(unit: Array, minval: float, maxval: float) -> Array:
    """Numbers in [0, 1) as numbers between two static bounds."""
    if minval == 0 and maxval == 1:
        return unit
    low, high = (np.asarray(bound).astype(unit.dtype) for bound in (minval, maxval))
    low, span = full_like(unit, low), full_like(unit, high - low)
    return maximum(low, add(multiply(unit, span), low))


def normal(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the normal distribution of mean 0 and variance 1.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating or complex; the default float by default. A complex number's two parts have
            variance 1/2 each.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is neither floating nor complex.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x123456789))
    >>> random.normal(key, (2,))
    Array([-0.67039955,  0.02259737], dtype=float32)
    """
    if out_sharding is not None:
        return laid_out(normal(key, shape, dtype), out_sharding, "random.normal")
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    sizes = static_shape(shape, "normal")
    if is_complex(target):
        part = real_dtype(target)
        re, im = (_drawn(k, sizes, part, "normal", normal_of) for k in parts(key, 2, "normal"))
        root = full_like(re, math.sqrt(2))
        return complex_(divide(re, root), divide(im, root))
    return _drawn(key, sizes, float_dtype(target, "normal"), "normal", normal_of)


def normal_of(unit: Array) -> Array:
    """Numbers in [0, 1) as normal ones: sqrt(2) erf_inv(u), u uniform in (-1, 1)."""
    low = np.nextafter(np.asarray(-1, unit.dtype), np.asarray(0, unit.dtype))
    u = between(unit, float(low), 1.0)
    return multiply(full_like(u, math.sqrt(2)), erf_inv(u))


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

    Args:
        key: a key, typed or raw.
        lower: the bound below.
        upper: the bound above.
        shape: of the result; by default that to which the bounds broadcast.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, or a bound does not broadcast to ``shape``; or the result
            cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> x = random.truncated_normal(random.PRNGKey(0), -1.0, 1.0, (100,))
    >>> bool((abs(x) < 1).all())
    True
    """
    caller = "truncated_normal"
    if out_sharding is not None:
        result = truncated_normal(key, lower, upper, shape, dtype)
        return laid_out(result, out_sharding, f"random.{caller}")
    target = float_dtype(dtype, caller)
    low, high = parameter(lower, target, caller, "lower"), parameter(upper, target, caller, "upper")
    sizes = shape_of(shape, caller, low, high)
    root = full((), math.sqrt(2), target)
    key = checked(key, "truncated_normal")
    u = uniform(key, sizes, target, erf(divide(low, root)), erf(divide(high, root)))
    out = multiply(root, erf_inv(u))
    # Rounding must not reach the bounds.
    inner = nextafter(low, full_like(low, np.inf)), nextafter(high, full_like(high, -np.inf))
    return clamp(
        spread(inner[0], sizes, caller, "lower"), out, spread(inner[1], sizes, caller, "upper")
    )


def exponential(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the exponential distribution of mean 1: ``-log(1 - u)``.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> bool((random.exponential(random.PRNGKey(0), (100,)) >= 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(exponential(key, shape, dtype), out_sharding, "random.exponential")
    target, sizes = float_dtype(dtype, "exponential"), static_shape(shape, "exponential")
    return _drawn(key, sizes, target, "exponential", exponential_of)


def exponential_of(unit: Array) -> Array:
    """Numbers in [0, 1) as exponential ones."""
    return negative(log1p(negative(unit)))


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
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        mode: ``"high"`` draws twice the bits, for a longer tail; ``"low"`` is the default. In
            float32 ``"highest"`` counts all of the 64 bits that it draws, however small ``u`` is;
            in other dtypes it is ``"high"``.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, or ``mode`` is none of these; or the result cannot be split
            as ``out_sharding`` says.

    >>> from stretto import random
    >>> random.gumbel(random.key(0), (2, 3), mode="highest").shape
    (2, 3)
    """
    if out_sharding is not None:
        return laid_out(gumbel(key, shape, dtype, mode), out_sharding, "random.gumbel")
    target, sizes = float_dtype(dtype, "gumbel"), static_shape(shape, "gumbel")
    info = ml_dtypes.finfo(target)
    if mode not in (None, "low", "high", "highest"):
        raise ValueError(f"random.gumbel: mode must be 'low', 'high' or 'highest', got {mode!r}")
    if mode == "highest" and target == np.float32:
        return _gumbel_of_words(random_bits(key, 32, (2, *sizes), "gumbel"), sizes)
    if mode not in ("high", "highest"):
        return _drawn(key, sizes, target, "gumbel", _gumbel_of, float(info.tiny))
    both = uniform_float(key, (2, *sizes), target, "gumbel")
    high, low = (reshape(slice_in_dim(both, i, i + 1), sizes) for i in range(2))
    fine = add(multiply(full_like(low, 2.0**-info.nmant), low), full_like(low, info.tiny))
    x = select(ge(high, full_like(high, 0.5)), high, add(high, fine))
    return negative(log(negative(log1p(negative(x)))))


def _gumbel_of(unit: Array, low: float) -> Array:
    return negative(log(negative(log(between(unit, low, 1.0)))))


def _gumbel_of_words(words: Array, sizes: tuple[int, ...]) -> Array:
    """Gumbel numbers of 64 bits each, high and low words: u, seen from the nearer of 0 and 1."""
    high, low = (reshape(slice_in_dim(words, i, i + 1), sizes) for i in range(2))
    near = high < 1 << 31
    # 1 - u in 64 bits: the complement, and one.
    least = ~low + 1
    other = ~high + (least == 0).astype(high.dtype)
    x = _float_of_words(select(near, high, other), select(near, low, least))
    return negative(log(negative(select(near, log1p(negative(x)), log(x)))))


def _float_of_words(high: Array, low: Array) -> Array:
    """The float32 of 64 bits after the binary point, cut off after 24 of them, and never zero."""
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


def laplace(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Laplace distribution of mean 0 and scale 1.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> random.laplace(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(laplace(key, shape, dtype), out_sharding, "random.laplace")
    target, sizes = float_dtype(dtype, "laplace"), static_shape(shape, "laplace")
    low = -1 + float(ml_dtypes.finfo(target).epsneg)
    return _drawn(key, sizes, target, "laplace", _laplace_of, low)


def _laplace_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return multiply(sign(u), log1p(negative(absolute(u))))


def logistic(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the logistic distribution: ``log(u) - log(1 - u)``.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> random.logistic(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(logistic(key, shape, dtype), out_sharding, "random.logistic")
    target, sizes = float_dtype(dtype, "logistic"), static_shape(shape, "logistic")
    low = float(ml_dtypes.finfo(target).tiny)
    return _drawn(key, sizes, target, "logistic", _logistic_of, low)


def _logistic_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return subtract(log(u), log1p(negative(u)))


def cauchy(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Cauchy distribution: ``tan(pi (u - 1/2))``.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> random.cauchy(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(cauchy(key, shape, dtype), out_sharding, "random.cauchy")
    target, sizes = float_dtype(dtype, "cauchy"), static_shape(shape, "cauchy")
    low = float(ml_dtypes.finfo(target).eps)
    return _drawn(key, sizes, target, "cauchy", _cauchy_of, low)


def _cauchy_of(unit: Array, low: float) -> Array:
    u = between(unit, low, 1.0)
    return tan(multiply(full_like(u, math.pi), subtract(u, full_like(u, 0.5))))


def maxwell(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the Maxwell distribution: the length of three normal numbers.

    Args:
        key: a key, typed or raw.
        shape: of the result.
        dtype: floating; the default float by default.
        out_sharding: where the result is to be, a ``NamedSharding`` or a ``PartitionSpec``.

    Returns:
        Numbers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> random.maxwell(random.key(0), (2,)).shape
    (2,)
    """
    if out_sharding is not None:
        return laid_out(maxwell(key, shape, dtype), out_sharding, "random.maxwell")
    sizes = static_shape(shape, "maxwell")
    x = normal(checked(key, "maxwell"), (*sizes, 3), float_dtype(dtype, "maxwell"))
    return sqrt(reduce_sum(multiply(x, x), (len(sizes),)))
