"""Draws from continuous distributions.

Layer 7. Each is a function of uniform bits, by the formulas that JAX uses, so that the numbers are
JAX's to rounding. Next, read ``discrete``.
"""

from __future__ import annotations

import math
from typing import Any

import ml_dtypes
import numpy as np

from stretto.core.interpreter import as_value
from stretto.core.types import as_dtype, is_complex, kind_of, real_dtype, scalar_dtype
from stretto.ops.arithmetic import (
    absolute,
    add,
    clamp,
    complex_,
    divide,
    maximum,
    multiply,
    negative,
    nextafter,
    sign,
    subtract,
)
from stretto.ops.broadcast import reduce_sum, reshape
from stretto.ops.comparison import full, full_like, ge, select
from stretto.ops.convert import convert
from stretto.ops.elementwise import broadcast_shapes
from stretto.ops.exponential import erf, erf_inv, exp, log, log1p, power, sqrt
from stretto.ops.random_numbers import bits_width, unit_float
from stretto.ops.shape import slice_in_dim
from stretto.ops.trigonometric import tan
from stretto.random.keys import random_bits, split, spread, static_shape

__all__ = [
    "cauchy",
    "exponential",
    "gumbel",
    "laplace",
    "logistic",
    "lognormal",
    "maxwell",
    "normal",
    "pareto",
    "rayleigh",
    "truncated_normal",
    "uniform",
    "weibull_min",
]


_STATIC = (int, float, np.integer, np.floating)


def float_dtype(dtype: Any, who: str) -> np.dtype:
    """The floating dtype asked for, the default for None."""
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    if kind_of(target) != "float":
        raise TypeError(f"random.{who}: dtype must be floating, got {target}")
    return target


def parameter(x: Any, dtype: np.dtype, who: str, name: str) -> Any:
    """A distribution's parameter, in the dtype of the draw."""
    return convert(as_value(x, f"random.{who}", name), dtype)


def uniform_float(key: Any, shape: tuple[int, ...], dtype: np.dtype, who: str) -> Any:
    """Floats in [0, 1), as many as the mantissa has values, equally likely."""
    return unit_float(random_bits(key, bits_width(dtype), shape, who), dtype)


def uniform(
    key: Any, shape: Any = (), dtype: Any = None, minval: Any = 0.0, maxval: Any = 1.0
) -> Any:
    """Numbers in ``[minval, maxval)``, equally likely.

    The bounds broadcast to ``shape``. Raises ``TypeError`` for a dtype that is not floating.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x123456789))
    >>> random.uniform(subkey, (5,))
    Array([0.2918682 , 0.90834665, 0.13555491, 0.08107758, 0.9746183 ],
          dtype=float32)
    """
    target = float_dtype(dtype, "uniform")
    sizes = static_shape(shape, "uniform")
    out = uniform_float(key, sizes, target, "uniform")
    if isinstance(minval, _STATIC) and isinstance(maxval, _STATIC):
        if minval == 0 and maxval == 1:
            return out
        low, high = np.asarray(minval).astype(target), np.asarray(maxval).astype(target)
        low, span = full_like(out, low), full_like(out, high - low)
    else:
        low = spread(parameter(minval, target, "uniform", "minval"), sizes, "uniform", "minval")
        high = spread(parameter(maxval, target, "uniform", "maxval"), sizes, "uniform", "maxval")
        span = subtract(high, low)
    return maximum(low, add(multiply(out, span), low))


def normal(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the normal distribution of mean 0 and variance 1; real or complex.

    A complex number's two parts have variance 1/2 each.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(0x123456789))
    >>> random.normal(key, (2,))
    Array([-0.67039955,  0.02259737], dtype=float32)
    """
    target = scalar_dtype(float) if dtype is None else as_dtype(dtype)
    sizes = static_shape(shape, "normal")
    if is_complex(target):
        part = real_dtype(target)
        re, im = (_normal(k, sizes, part) for k in _pair(key))
        root = full_like(re, math.sqrt(2))
        return complex_(divide(re, root), divide(im, root))
    return _normal(key, sizes, float_dtype(target, "normal"))


def _pair(key: Any) -> tuple[Any, Any]:
    keys = split(key)
    return tuple([reshape(slice_in_dim(keys, i, i + 1), (2,)) for i in range(2)])  # type: ignore[return-value]


def _normal(key: Any, shape: tuple[int, ...], dtype: np.dtype) -> Any:
    # sqrt(2) erf_inv(u), u uniform in (-1, 1).
    low = np.nextafter(np.asarray(-1, dtype), np.asarray(0, dtype))
    u = uniform(key, shape, dtype, float(low), 1.0)
    return multiply(full_like(u, math.sqrt(2)), erf_inv(u))


def truncated_normal(key: Any, lower: Any, upper: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers from the standard normal distribution, given that they lie in ``(lower, upper)``.

    ``shape`` is by default that to which the bounds broadcast.

    >>> from stretto import random
    >>> x = random.truncated_normal(random.PRNGKey(0), -1.0, 1.0, (100,))
    >>> bool((abs(x) < 1).all())
    True
    """
    who = "truncated_normal"
    target = float_dtype(dtype, who)
    low, high = parameter(lower, target, who, "lower"), parameter(upper, target, who, "upper")
    sizes = (
        broadcast_shapes(f"random.{who}", low.shape, high.shape)
        if shape is None
        else static_shape(shape, who)
    )
    root = full((), math.sqrt(2), target)
    u = uniform(key, sizes, target, erf(divide(low, root)), erf(divide(high, root)))
    out = multiply(root, erf_inv(u))
    # Rounding must not reach the bounds.
    inner = nextafter(low, full_like(low, np.inf)), nextafter(high, full_like(high, -np.inf))
    return clamp(spread(inner[0], sizes, who, "lower"), out, spread(inner[1], sizes, who, "upper"))


def exponential(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the exponential distribution of mean 1.

    >>> from stretto import random
    >>> bool((random.exponential(random.PRNGKey(0), (100,)) >= 0).all())
    True
    """
    u = uniform(key, shape, float_dtype(dtype, "exponential"))
    return negative(log1p(negative(u)))


def gumbel(key: Any, shape: Any = (), dtype: Any = None, mode: str | None = None) -> Any:
    """Numbers from the Gumbel distribution: ``-log(-log(u))``.

    ``mode="high"`` draws twice the bits, for a longer tail; ``"low"`` is the default.
    """
    target, sizes = float_dtype(dtype, "gumbel"), static_shape(shape, "gumbel")
    info = ml_dtypes.finfo(target)
    if mode not in (None, "low", "high"):
        raise ValueError(f"random.gumbel: mode must be 'low' or 'high', got {mode!r}")
    if mode != "high":
        u = uniform(key, sizes, target, float(info.tiny), 1.0)
        return negative(log(negative(log(u))))
    both = uniform_float(key, (2, *sizes), target, "gumbel")
    high, low = (reshape(slice_in_dim(both, i, i + 1), sizes) for i in range(2))
    fine = add(multiply(full_like(low, 2.0**-info.nmant), low), full_like(low, info.tiny))
    x = select(ge(high, full_like(high, 0.5)), high, add(high, fine))
    return negative(log(negative(log1p(negative(x)))))


def laplace(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the Laplace distribution of mean 0 and scale 1."""
    target = float_dtype(dtype, "laplace")
    low = -1 + float(ml_dtypes.finfo(target).epsneg)
    u = uniform(key, shape, target, low, 1.0)
    return multiply(sign(u), log1p(negative(absolute(u))))


def logistic(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the logistic distribution: ``log(u) - log(1 - u)``."""
    target = float_dtype(dtype, "logistic")
    u = uniform(key, shape, target, float(ml_dtypes.finfo(target).tiny), 1.0)
    return subtract(log(u), log1p(negative(u)))


def cauchy(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the Cauchy distribution: ``tan(pi (u - 1/2))``."""
    target = float_dtype(dtype, "cauchy")
    u = uniform(key, shape, target, float(ml_dtypes.finfo(target).eps), 1.0)
    return tan(multiply(full_like(u, math.pi), subtract(u, full_like(u, 0.5))))


def _shape_for(x: Any, shape: Any, who: str) -> tuple[int, ...]:
    return x.shape if shape is None else static_shape(shape, who)


def lognormal(key: Any, sigma: Any = 1.0, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers whose logarithm is normal, of mean 0 and standard deviation ``sigma``."""
    target = float_dtype(dtype, "lognormal")
    scale = parameter(sigma, target, "lognormal", "sigma")
    sizes = _shape_for(scale, shape, "lognormal")
    return exp(multiply(normal(key, sizes, target), spread(scale, sizes, "lognormal", "sigma")))


def pareto(key: Any, b: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers from the Pareto distribution on [1, oo) of exponent ``b``."""
    target = float_dtype(dtype, "pareto")
    power_ = parameter(b, target, "pareto", "b")
    sizes = _shape_for(power_, shape, "pareto")
    return exp(divide(exponential(key, sizes, target), spread(power_, sizes, "pareto", "b")))


def rayleigh(key: Any, scale: Any, shape: Any = None, dtype: Any = None) -> Any:
    """Numbers from the Rayleigh distribution: ``scale * sqrt(-2 log(u))``."""
    target = float_dtype(dtype, "rayleigh")
    factor = parameter(scale, target, "rayleigh", "scale")
    sizes = _shape_for(factor, shape, "rayleigh")
    u = log(uniform(key, sizes, target))
    return multiply(spread(factor, sizes, "rayleigh", "scale"), sqrt(multiply(u, full_like(u, -2))))


def weibull_min(
    key: Any, scale: Any, concentration: Any, shape: Any = (), dtype: Any = None
) -> Any:
    """Numbers from the Weibull distribution: ``scale * (-log(1 - u)) ** (1 / concentration)``."""
    who = "weibull_min"
    target, sizes = float_dtype(dtype, who), static_shape(shape, who)
    factor = spread(parameter(scale, target, who, "scale"), sizes, who, "scale")
    shaping = parameter(concentration, target, who, "concentration")
    inverse = spread(divide(full_like(shaping, 1), shaping), sizes, who, "concentration")
    return multiply(power(exponential(key, sizes, target), inverse), factor)


def maxwell(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Numbers from the Maxwell distribution: the length of three normal numbers."""
    sizes = static_shape(shape, "maxwell")
    x = normal(key, (*sizes, 3), float_dtype(dtype, "maxwell"))
    return sqrt(reduce_sum(multiply(x, x), (len(sizes),)))
