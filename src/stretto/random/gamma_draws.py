"""Draws of gamma numbers.

Gamma numbers are found by rejection: each element has a key of its own, draws until it is accepted,
and waits for the others. The derivative with respect to the parameter is the implicit one, that of
the quantile at a probability held fixed.
"""

from __future__ import annotations

import functools
import math

import ml_dtypes
import numpy as np

from stretto._engine.core.descriptions import described_like
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.higher_order.custom_jvp import custom_jvp
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.comparison import full, full_like, select, zeros_like
from stretto._engine.ops.exponential import exp, log, log1p
from stretto._engine.ops.layout import expand_dims, reshape
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.random.bits import bits_width, unit_float
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sharding import laid_out
from stretto._engine.ops.special.incomplete import random_gamma_grad
from stretto.random.distributions import normal_of, when_large
from stretto.random.draw_arguments import (
    draw_of_parameters,
    float_dtype,
    parameter,
    rounded,
    shape_of,
    spread,
)
from stretto.random.implementations import Implementation, implementation
from stretto.random.keys import checked, key_data, key_impl, split

__all__ = ["gamma", "loggamma"]


def _split(scheme: Implementation, words: Array, count: int) -> list[Array]:
    """New keys of each key: ``count`` arrays of them."""
    rows, axis = scheme.split(words, (count,)), words.ndim - 1
    return [reshape(slice_in_dim(rows, i, i + 1, axis=axis), words.shape) for i in range(count)]


def _unit(scheme: Implementation, words: Array, dtype: np.dtype) -> Array:
    """A number in [0, 1) from each of many keys."""
    return unit_float(scheme.bits(words, bits_width(dtype), ()), dtype)


def _where(pred: Array, new: Array, old: Array) -> Array:
    """Keys or numbers of the elements where ``pred`` holds, else the old ones."""
    if new.ndim > pred.ndim:
        pred = expand_dims(pred, (pred.ndim,)) & full(new.shape, True, pred.dtype)
    return select(pred, new, old)


def _any(pred: Array) -> Array:
    return reduce_or(pred, tuple(range(pred.ndim)))


def _normal_above(
    scheme: Implementation, words: Array, slope: Array, going: Array
) -> tuple[Array, Array]:
    """Normal ``x`` for which ``v = 1 + slope x`` is positive, and ``v``, of elements that go on."""

    def again(state: tuple[Array, ...]) -> tuple[Array, ...]:
        words, x, v, trying = state
        following, here = _split(scheme, words, 2)
        new = normal_of(_unit(scheme, here, x.dtype))
        moved = _where(trying, new, x)
        v = _where(trying, 1 + new * slope, v)
        return following, moved, v, trying & (v <= 0)

    start = (words, zeros_like(slope), full_like(slope, -1), going)
    _, x, v, _ = while_loop(lambda state: _any(state[-1]), again, start)
    return x, v


def _accepted(scheme: Implementation, words: Array, a: Array) -> tuple[Array, Array]:
    """``v`` of Marsaglia and Tsang for each key and each ``a`` of at least 1; ``a - 1/3``."""
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
    return while_loop(lambda state: _any(state[-1]), again, start)[1], d


def _sampled(scheme: Implementation, in_logs: bool, words: Array, a: Array) -> Array:
    """A gamma number, or its logarithm, of each key and each ``a``."""
    whole = a >= 1
    words, boosting = _split(scheme, words, 2)
    v, d = _accepted(scheme, words, select(whole, a, a + 1))
    # Below 1: gamma(a) is gamma(a + 1) u**(1/a).
    u = _unit(scheme, boosting, a.dtype)
    if in_logs:
        logs = log1p(-u)
        boost = select(whole | (logs == 0), zeros_like(a), logs * (1 / a))
        return log(d) + log(v) + boost
    return d * v * select(whole, full_like(a, 1), (1 - u) ** (1 / a))


_sampled_when_large = when_large(_sampled, (0, 1))


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
    words = key_data(split(checked(key, caller), math.prod(sizes)))
    scheme = implementation(key_impl(key))
    out = _differentiable(scheme, in_logs, reshape(words, (*sizes, scheme.size)), a)
    return rounded(out, target)


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
