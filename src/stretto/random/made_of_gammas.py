"""Draws made of gamma numbers: beta, Dirichlet, chi-square, F, Student's t, and points of balls."""

from __future__ import annotations

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.exponential import exp
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import expand_dims
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.sharding import laid_out
from stretto.random.discrete_draws import rademacher
from stretto.random.distributions import exponential, normal
from stretto.random.draw_arguments import (
    draw,
    draw_of_parameters,
    float_dtype,
    in_range,
    parameter,
    rounded,
    shape_of,
    spread,
    static_shape,
    wide,
)
from stretto.random.gamma_draws import gamma, loggamma
from stretto.random.keys import checked, parts

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "generalized_normal", "t"]


@draw_of_parameters
def beta(
    key: Key,
    a: ArrayLike,
    b: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the beta distribution: ``x / (x + y)`` of two gamma numbers.

    Args:
        a: the first shape parameter, positive.
        b: the second, positive.
        shape: of the result; by default that to which ``a`` and ``b`` broadcast.

    >>> from stretto import random
    >>> x = random.beta(random.key(0), 2.0, 3.0, (9,))
    >>> bool(((x > 0) & (x < 1)).all())
    True
    """
    if out_sharding is not None:
        return laid_out(beta(key, a, b, shape, dtype), out_sharding, "random.beta")
    target = float_dtype(dtype, "beta")
    first = parameter(a, target, "beta", "a", lossless=True, nonnegative=True)
    second = parameter(b, target, "beta", "b", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "beta", first, second)
    first, second = spread(first, sizes, "beta", "a"), spread(second, sizes, "beta", "b")
    of_first, of_second = parts(key, 2, "beta")
    work = wide(target)
    x, y = (loggamma(of_first, first, sizes, work), loggamma(of_second, second, sizes, work))
    greater = maximum(x, y)
    x, y = exp(x - greater), exp(y - greater)
    return rounded(x / (x + y), target)


@draw
def dirichlet(
    key: Key,
    alpha: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw points of the simplex from the Dirichlet distribution: gamma numbers over their sum.

    Args:
        alpha: (..., n), positive.
        shape: that of the result without its last axis; by default that of ``alpha`` without it.

    Returns:
        (*shape, n), adding up to 1 along the last axis.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: ``alpha`` has no axis, a size is negative, or ``alpha`` does not broadcast; or
            the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> import stretto.numpy as snp
    >>> x = random.dirichlet(random.key(0), snp.ones(3), (2,))
    >>> x.shape, snp.allclose(x.sum(-1), 1)
    ((2, 3), Array(True, dtype=bool))
    """
    caller = "dirichlet"
    if out_sharding is not None:
        return laid_out(dirichlet(key, alpha, shape, dtype), out_sharding, f"random.{caller}")
    target = float_dtype(dtype, caller)
    in_range(alpha, caller, "alpha", whole=True, nan=True)
    value = parameter(alpha, target, caller, "alpha")
    if not value.ndim:
        raise ValueError(f"random.{caller}: alpha must have an axis, got {value.type}")
    batch = value.shape[:-1] if shape is None else static_shape(shape, caller)
    logs = loggamma(checked(key, caller), value, (*batch, value.shape[-1]), wide(target))
    last = (logs.ndim - 1,)
    weights = exp(logs - stop_gradient(expand_dims(reduce_max(logs, last), last)))
    return rounded(weights / expand_dims(reduce_sum(weights, last), last), target)


@draw_of_parameters
def chisquare(
    key: Key,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the chi-square distribution: ``2 gamma(df / 2)``.

    Args:
        df: the degrees of freedom.
        shape: of the result; by default that of ``df``.

    >>> from stretto import random
    >>> bool((random.chisquare(random.key(0), 3, (9,)) > 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(chisquare(key, df, shape, dtype), out_sharding, "random.chisquare")
    target = float_dtype(dtype, "chisquare")
    value = parameter(df, target, "chisquare", "df", lossless=True, nonnegative=True)
    key = checked(key, "chisquare")
    logs = loggamma(key, value / 2, shape_of(shape, "chisquare", value), wide(target))
    return rounded(exp(logs) * 2, target)


@draw_of_parameters
def f(
    key: Key,
    dfnum: ArrayLike,
    dfden: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the F distribution: the ratio of two chi-squares, each over its freedom.

    Args:
        dfnum: the degrees of freedom of the numerator.
        dfden: those of the denominator.
        shape: of the result; by default that to which the parameters broadcast.

    >>> from stretto import random
    >>> bool((random.f(random.key(0), 3, 4, (9,)) > 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(f(key, dfnum, dfden, shape, dtype), out_sharding, "random.f")
    target = float_dtype(dtype, "f")
    num = parameter(dfnum, target, "f", "dfnum", lossless=True, nonnegative=True)
    den = parameter(dfden, target, "f", "dfden", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "f", num, den)
    den_key, num_key = parts(key, 2, "f")
    work = wide(target)
    above = chisquare(num_key, num, sizes, work) / num
    return rounded(above / (chisquare(den_key, den, sizes, work) / den), target)


@described_like(chisquare)
def t(
    key: Key,
    df: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from Student's t distribution: ``n / sqrt(chi2 / df)``.

    >>> from stretto import random
    >>> random.t(random.key(0), 3.0, (2, 3)).shape
    (2, 3)
    """
    if out_sharding is not None:
        return laid_out(t(key, df, shape, dtype), out_sharding, "random.t")
    target = float_dtype(dtype, "t")
    value = parameter(df, target, "t", "df", lossless=True, nonnegative=True)
    sizes = shape_of(shape, "t", value)
    normal_key, gamma_key = parts(key, 2, "t")
    work = wide(target)
    n, half = normal(normal_key, sizes, work), spread(value, sizes, "t", "df") / 2
    return rounded(n * sqrt(half / gamma(gamma_key, half, sizes, work)), target)


@draw_of_parameters
def generalized_normal(
    key: Key,
    p: ArrayLike,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw numbers of density proportional to ``exp(-abs(x)**p)``.

    A sign and ``gamma(1/p)**(1/p)``. For ``p`` of 2 a normal distribution of variance 1/2, of 1 the
    Laplace distribution.

    Args:
        p: the exponent.

    >>> from stretto import random
    >>> random.generalized_normal(random.key(0), 1.5, (2, 3)).shape
    (2, 3)
    """
    caller = "generalized_normal"
    if out_sharding is not None:
        return laid_out(generalized_normal(key, p, shape, dtype), out_sharding, f"random.{caller}")
    target, sizes = float_dtype(dtype, caller), static_shape(shape, caller)
    power = parameter(p, target, caller, "p", nonnegative=True)
    inverse = 1 / spread(power, sizes, caller, "p")
    length_key, sign_key = parts(key, 2, caller)
    work = wide(target)
    length = gamma(length_key, inverse, sizes, work) ** inverse
    return rounded(rademacher(sign_key, sizes, work) * length, target)


@draw_of_parameters
def ball(
    key: Key,
    d: int,
    p: ArrayLike = 2,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw points of the unit ball of the p-norm, equally likely.

    Args:
        d: the number of dimensions.
        p: the exponent of the norm.
        shape: that of the result without its last axis.

    Returns:
        (*shape, d).

    Source: Barthe, Guédon, Mendelson, Naor, "A probabilistic approach to the geometry of the l_p^n
    ball", Annals of Probability 33, 2005.

    >>> from stretto import random
    >>> x = random.ball(random.key(0), 3, shape=(5,))
    >>> x.shape, bool(((x * x).sum(-1) < 1).all())
    ((5, 3), True)
    """
    if out_sharding is not None:
        return laid_out(ball(key, d, p, shape, dtype), out_sharding, "random.ball")
    target, sizes = float_dtype(dtype, "ball"), static_shape(shape, "ball")
    (n,) = static_shape(d, "ball")
    value = parameter(p, target, "ball", "p", nonnegative=True)
    direction_key, radius_key = parts(key, 2, "ball")
    work = wide(target)
    g = generalized_normal(direction_key, value, (*sizes, n), work)
    total = reduce_sum(absolute(g) ** value, (len(sizes),)) + exponential(radius_key, sizes, work)
    return rounded(g / expand_dims(total ** (1 / value), (len(sizes),)), target)
