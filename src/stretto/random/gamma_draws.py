"""Draws of gamma numbers, and of what is made of them.

Gamma numbers are found by rejection: each element has a key of its own, draws until it is accepted,
and waits for the others. The derivative with respect to the parameter is the implicit one, that of
the quantile at a probability held fixed. Beta, Dirichlet, chi-square, F and Student's t numbers,
generalized normal ones, and points of balls follow from them.
"""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from stretto._engine.core.functions import described_like
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.higher_order.custom_derivatives import custom_jvp
from stretto._engine.higher_order.stop_gradient import stop_gradient
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.broadcast import reduce_sum
from stretto._engine.ops.comparison import full, full_like, select, zeros_like
from stretto._engine.ops.exponential import exp, log, log1p, sqrt
from stretto._engine.ops.extrema import maximum
from stretto._engine.ops.layout import expand_dims, laid_out, reshape
from stretto._engine.ops.random_bits import bits_width, unit_float
from stretto._engine.ops.reducing.reduce import reduce_max
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.special.incomplete import random_gamma_grad
from stretto.random.discrete_draws import any_of, rademacher
from stretto.random.distributions import exponential, normal, normal_of, when_large
from stretto.random.draw_arguments import (
    draw,
    draw_of_parameters,
    float_dtype,
    in_range,
    parameter,
    round_draw,
    shape_of,
    spread,
    static_shape,
    wide,
)
from stretto.random.key_arrays import Implementation, implementation
from stretto.random.keys import as_key, key_data, key_impl, parts, split

__all__ = ["ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma",
           "t"]  # fmt: skip


def _split(scheme: Implementation, words: Array, count: int) -> list[Array]:
    """Return new keys of each key: ``count`` arrays of them."""
    rows, axis = scheme.split(words, (count,)), words.ndim - 1
    return [reshape(slice_in_dim(rows, i, i + 1, axis=axis), words.shape) for i in range(count)]


def _unit(scheme: Implementation, words: Array, dtype: np.dtype) -> Array:
    """Return a number in [0, 1) from each of many keys."""
    return unit_float(scheme.bits(words, bits_width(dtype), ()), dtype)


def _where(pred: Array, new: Array, old: Array) -> Array:
    """Return keys or numbers of the elements where ``pred`` holds, else the old ones."""
    if new.ndim > pred.ndim:
        pred = expand_dims(pred, (pred.ndim,)) & full(new.shape, True, pred.dtype)
    return select(pred, new, old)


def _normal_above(
    scheme: Implementation, words: Array, slope: Array, going: Array
) -> tuple[Array, Array]:
    """Draw normal ``x`` with positive ``v = 1 + slope x``, and ``v``, of elements that go on."""

    def again(state: tuple[Array, ...]) -> tuple[Array, ...]:
        words, x, v, trying = state
        following, here = _split(scheme, words, 2)
        new = normal_of(_unit(scheme, here, x.dtype))
        moved = _where(trying, new, x)
        v = _where(trying, 1 + new * slope, v)
        return following, moved, v, trying & (v <= 0)

    start = (words, zeros_like(slope), full_like(slope, -1), going)
    _, x, v, _ = while_loop(lambda state: any_of(state[-1]), again, start)
    return x, v


def _accept(scheme: Implementation, words: Array, a: Array) -> tuple[Array, Array]:
    """Draw ``v`` of Marsaglia and Tsang for each key and ``a`` of at least 1, with ``a - 1/3``."""
    d = a - 1 / 3
    slope = (1 / 3) / sqrt(d)

    def again(state: tuple[Array, ...]) -> tuple[Array, ...]:
        words, _, going = state
        old = state[1]
        following, normal_words, uniform_words = _split(scheme, words, 3)
        x, v = _normal_above(scheme, normal_words, slope, going)
        square, cube = x * x, v * v * v
        u = _unit(scheme, uniform_words, a.dtype)
        refused = (u >= 1 - 0.0331 * (square * square)) & (
            log(u) >= square * 0.5 + d * ((1 - cube) + log(cube))
        )
        return _where(going, following, words), _where(going, cube, old), going & refused

    going = full(a.shape, True, np.dtype(bool))
    start = (words, full_like(a, 1), going)
    return while_loop(lambda state: any_of(state[-1]), again, start)[1], d


def _sample(scheme: Implementation, in_logs: bool, words: Array, a: Array) -> Array:
    """Return a gamma number, or its logarithm, of each key and each ``a``."""
    whole = a >= 1
    words, boosting = _split(scheme, words, 2)
    v, d = _accept(scheme, words, select(whole, a, a + 1))
    # Below 1: gamma(a) is gamma(a + 1) u**(1/a).
    u = _unit(scheme, boosting, a.dtype)
    if in_logs:
        logs = log1p(-u)
        boost = select(whole | (logs == 0), zeros_like(a), logs * (1 / a))
        return log(d) + log(v) + boost
    return d * v * select(whole, full_like(a, 1), (1 - u) ** (1 / a))


_sampled_when_large = when_large(_sample, (0, 1))


def _gamma(
    key: Key,
    a: ArrayLike,
    shape: ShapeLike | None,
    dtype: DTypeLike | None,
    caller: str,
    in_logs: bool,
) -> Array:
    target = float_dtype(dtype, caller)
    a = parameter(a, target, caller, "a", nonnegative=True)
    sizes = shape_of(shape, caller, a)
    a = spread(a, sizes, caller, "a")
    words = key_data(split(as_key(key, caller), math.prod(sizes)))
    scheme = implementation(key_impl(key))
    out = _differentiable(scheme, in_logs, reshape(words, (*sizes, scheme.size)), a)
    return round_draw(out, target)


@functools.partial(custom_jvp, nondiff_argnums=(0, 1))
def _differentiable(scheme: Implementation, in_logs: bool, words: Array, a: Array) -> Array:
    return _sampled_when_large(a.size, scheme, in_logs, words, a)


@_differentiable.defjvp
def _implicit(
    scheme: Implementation,
    in_logs: bool,
    primals: tuple[Array, Array],
    tangents: tuple[Array, Array],
) -> tuple[Array, Array]:
    """dx = -(dF(x; a)/da) / (dF(x; a)/dx) da; for logarithms over x."""
    words, a = primals
    out = _differentiable(scheme, in_logs, words, a)
    if not in_logs:
        return out, tangents[1] * random_gamma_grad(a, out)
    x = exp(out)
    x = select(x == 0, full_like(x, ml_dtypes.finfo(x.dtype).tiny), x)
    return out, tangents[1] * (random_gamma_grad(a, x) / x)


@draw_of_parameters
def gamma(
    key: Key,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw from the gamma distribution of shape ``a`` and scale 1.

    The derivative with respect to ``a`` is the implicit one; with a small ``a``, for which numbers
    underflow, use ``loggamma``.

    Args:
        a: the shape parameter, positive.
        shape: of the result; by default that of ``a``.

    Source: Marsaglia and Tsang, "A simple method for generating gamma variables", ACM TOMS 26,
    2000; the derivative: Figurnov, Mohamed, Mnih, "Implicit reparameterization gradients", NeurIPS
    2018.

    >>> from stretto import random
    >>> bool((random.gamma(random.key(0), 2.0, (9,)) > 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(gamma(key, a, shape, dtype), out_sharding, "random.gamma")
    return _gamma(key, a, shape, dtype, "gamma", False)


@described_like(gamma)
def loggamma(
    key: Key,
    a: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw logarithms of gamma numbers: those of ``gamma`` for the same key, without underflow.

    >>> from stretto import random
    >>> x = random.loggamma(random.key(0), 1e-4, (9,))
    >>> bool((x > -1e9).all()), bool((x < 3).all())
    (True, True)
    """
    if out_sharding is not None:
        return laid_out(loggamma(key, a, shape, dtype), out_sharding, "random.loggamma")
    return _gamma(key, a, shape, dtype, "loggamma", True)


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
    return round_draw(x / (x + y), target)


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
        ValueError: ``alpha`` has no axis, a size is negative, or ``alpha`` does not broadcast.

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
    logs = loggamma(as_key(key, caller), value, (*batch, value.shape[-1]), wide(target))
    last = (logs.ndim - 1,)
    weights = exp(logs - stop_gradient(expand_dims(reduce_max(logs, last), last)))
    return round_draw(weights / expand_dims(reduce_sum(weights, last), last), target)


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
    key = as_key(key, "chisquare")
    logs = loggamma(key, value / 2, shape_of(shape, "chisquare", value), wide(target))
    return round_draw(exp(logs) * 2, target)


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
    return round_draw(above / (chisquare(den_key, den, sizes, work) / den), target)


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
    return round_draw(n * sqrt(half / gamma(gamma_key, half, sizes, work)), target)


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
    return round_draw(rademacher(sign_key, sizes, work) * length, target)


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
    return round_draw(g / expand_dims(total ** (1 / value), (len(sizes),)), target)
