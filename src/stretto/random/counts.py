"""Draws of counts: how often something happens.

Small expectations add up waiting times; large ones propose from a table mountain and reject. All
elements draw until the last is accepted.
"""

from __future__ import annotations

import math

import numpy as np

from stretto._engine.core.interpreter import as_value, constant
from stretto._engine.core.types import inexact_dtype, kind_of, promote
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.arithmetic import absolute
from stretto._engine.ops.comparison import full, full_like, ne, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log, log1p
from stretto._engine.ops.extrema import clamp
from stretto._engine.ops.layout import move_axis
from stretto._engine.ops.powers import sqrt
from stretto._engine.ops.reducing.cumulative import cumsum
from stretto._engine.ops.reducing.reduce import reduce_or
from stretto._engine.ops.rounding import ceil, floor
from stretto._engine.ops.sharding import laid_out
from stretto._engine.ops.special.gamma import lgamma
from stretto.random.distributions import uniform, when_large
from stretto.random.draw_arguments import (
    draw,
    float_dtype,
    in_range,
    integer_dtype,
    parameter,
    rounded,
    shape_of,
    spread,
    static_shape,
    wide,
)
from stretto.random.keys import checked, parts, split

__all__ = ["binomial", "geometric", "multinomial", "poisson"]

_BOOL, _INT32 = np.dtype(bool), np.dtype(np.int32)


def _any(pred: Array) -> Array:
    return reduce_or(pred, tuple(range(pred.ndim)))


def _probability(p: ArrayLike, caller: str) -> Array:
    """A real parameter in its own floating dtype, or in float32 if that is narrower."""
    whole = caller == "multinomial"
    in_range(p, caller, "p", math.inf if whole else 1, whole=whole)
    value = as_value(p, f"random.{caller}", "p")
    value = convert(value, wide(inexact_dtype(value.dtype)))
    if kind_of(value.dtype) != "float":
        raise TypeError(f"random.{caller}: p must be real, got {value.type}")
    return value


@draw
def geometric(
    key: Key,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw how many trials it takes to succeed: integers from 1 on.

    By the inverse of the distribution function.

    Args:
        p: the probability of success of a trial.
        shape: of the result; by default that of ``p``.
        dtype: of integers of 8 to 64 bits; the default integer by default.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not of integers.
        ValueError: a size is negative, ``p`` is a number outside 0 to 1, or a parameter does not
            broadcast to ``shape``; or the result cannot be split as ``out_sharding`` says.

    >>> from stretto import random
    >>> bool((random.geometric(random.key(0), 0.5, (9,)) >= 1).all())
    True
    """
    if out_sharding is not None:
        return laid_out(geometric(key, p, shape, dtype), out_sharding, "random.geometric")
    target, chance = integer_dtype(dtype, "geometric"), _probability(p, "geometric")
    sizes = shape_of(shape, "geometric", chance)
    u = uniform(checked(key, "geometric"), sizes, chance.dtype)
    u = select(u == 0, full_like(u, 1), u)  # the logarithm of 0 is infinite
    per_trial = spread(log1p(-chance), sizes, "geometric", "p")
    return convert(floor(log(u) / per_trial) + 1, target)


@draw
def poisson(
    key: Key,
    lam: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw how many independent events happen: integers from 0 on.

    Computed in float32.

    Args:
        lam: how many are expected.
        shape: of the result; by default that of ``lam``.
        dtype: of integers of 8 to 64 bits; the default integer by default.

    Returns:
        Numbers of this shape and dtype; -1 where ``lam`` is negative or NaN.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not of integers.
        ValueError: a size is negative, ``lam`` is a negative number, or a parameter does not
            broadcast to ``shape``; or the result cannot be split as ``out_sharding`` says.

    Source: below an expectation of 10 Knuth, "The Art of Computer Programming" 2, 3.4.1, algorithm
    Q, in logarithms; from there on Hörmann, "The transformed rejection method for generating
    Poisson random variables", Insurance: Mathematics and Economics 12, 1993 (PTRS).

    >>> from stretto import random
    >>> bool((random.poisson(random.key(0), 3.0, (9,)) >= 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(poisson(key, lam, shape, dtype), out_sharding, "random.poisson")
    target, key = integer_dtype(dtype, "poisson"), checked(key, "poisson")
    rate = parameter(lam, np.dtype(np.float32), "poisson", "lam", nonnegative=True)
    sizes = shape_of(shape, "poisson", rate)
    rate = spread(rate, sizes, "poisson", "lam")
    return _poisson_when_large(rate.size, target, key, rate)


def _poisson(target: np.dtype, key: Key, rate: Array) -> Array:
    few = ne(rate, rate) | (rate < 10)
    most = min(int(np.iinfo(target).max), int(np.iinfo(_INT32).max))
    added = _poisson_added(key, select(few, rate, zeros_like(rate)), most)
    rejected = _poisson_rejected(key, select(few, full_like(rate, 1e5), rate), most)
    out = select(few, convert(added, target), convert(rejected, target))
    return select(rate == 0, zeros_like(out), out)


_poisson_when_large = when_large(_poisson, (0,))


def _poisson_added(key: Key, rate: Array, most: int) -> Array:
    """Exponential waiting times are added until they exceed the rate."""

    def wait(state: tuple[Array, ...]) -> tuple[Array, ...]:
        turn, count, key, total = state
        key, here = parts(key, 2)
        count = select(total > -rate, count + 1, count)
        return turn + 1, count, key, total + log(uniform(here, rate.shape, rate.dtype))

    def waiting(state: tuple[Array, ...]) -> Array:
        turn, _, _, total = state
        return _any(total > -rate) & (turn < most)

    nothing = full((), 0, _INT32)
    start = (nothing, full_like(rate, 0, _INT32), key, zeros_like(rate))
    return while_loop(waiting, wait, start)[1] - 1


def _poisson_rejected(key: Key, rate: Array, most: int) -> Array:
    """PTRS, with the constants of its paper."""
    b = 0.931 + 2.53 * sqrt(rate)
    a = -0.059 + 0.02483 * b
    inverse = 1.1239 + 1.1328 / (b - 3.4)
    sure_bound = 0.9277 - 3.6224 / (b - 2)
    log_rate = log(rate)

    def propose(state: tuple[Array, ...]) -> tuple[Array, ...]:
        turn, count, accepted, key = state
        key, first, second = parts(key, 3)
        u = uniform(first, rate.shape, rate.dtype) - 0.5
        v = uniform(second, rate.shape, rate.dtype)
        inside = 0.5 - absolute(u)
        k = floor((2 * a / inside + b) * u + rate + 0.43)
        proposed = log(v * inverse / (a / (inside * inside) + b))
        log_probability = -rate + k * log_rate - lgamma(k + 1)
        outside = (k < 0) | ((inside < 0.013) & (v > inside))
        good = ((inside >= 0.07) & (v <= sure_bound)) | (~outside & (proposed <= log_probability))
        return turn + 1, select(good, k, count), accepted | good, key

    def missing(state: tuple[Array, ...]) -> Array:
        turn, _, accepted, _ = state
        return _any(~accepted) & (turn < most)

    nothing = full((), 0, _INT32)
    start = (nothing, full_like(rate, -1), full(rate.shape, False, _BOOL), key)
    return while_loop(missing, propose, start)[1]


@draw
def binomial(
    key: Key,
    n: ArrayLike,
    p: ArrayLike,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
) -> Array:
    """Draw how many trials succeed: whole numbers of a floating dtype.

    Args:
        n: the number of trials; of one that is not whole, the part before the point counts.
        p: the probability of success of a trial.
        shape: of the result; by default that to which ``n`` and ``p`` broadcast.

    Returns:
        Numbers of this shape and dtype; NaN where ``n`` is negative, or ``n`` or ``p`` is out of
            range.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: a size is negative, ``n`` or ``p`` is a number out of range, or a parameter does
            not broadcast to ``shape``.

    Source: below an expectation of 10 waiting times, Kachitvichyanukul and Schmeiser, "Binomial
    random variate generation", CACM 31, 1988; else Hörmann, "The generation of binomial random
    variates", Journal of Statistical Computation and Simulation 46, 1993 (BTRS).

    >>> from stretto import random
    >>> x = random.binomial(random.key(0), 10, 0.5, (9,))
    >>> bool(((x >= 0) & (x <= 10)).all())
    True
    """
    target, key = float_dtype(dtype, "binomial"), checked(key, "binomial")
    chance = _probability(p, "binomial")
    trials = parameter(n, chance.dtype, "binomial", "n", nonnegative=True)
    sizes = shape_of(shape, "binomial", trials, chance)
    trials, chance = spread(trials, sizes, "binomial", "n"), spread(chance, sizes, "binomial", "p")
    return _binomial_when_large(chance.size, target, key, trials, chance)


def _binomial(target: np.dtype, key: Key, trials: Array, chance: Array) -> Array:
    # The rarer outcome is counted.
    small = chance < 0.5
    rare = select(small, chance, 1 - chance)
    improper = ne(rare, rare) | (rare < 0)
    unknown = ne(trials, trials) | (trials < 0)
    endless = trials == np.inf
    rare = select(improper, full_like(rare, 0.01), rare)
    few = unknown | (trials * rare <= 10)
    trials = floor(trials)
    added = _binomial_added(key, select(few, trials, zeros_like(trials)), rare)
    rejected = _binomial_rejected(
        key, select(few, full_like(trials, 1e4), trials), select(few, full_like(rare, 0.5), rare)
    )
    out = select(few, added, rejected)
    out = select(improper | unknown, full_like(out, np.nan), out)
    out = select(endless & ~(improper | unknown), full_like(out, np.inf), out)
    as_drawn = small | unknown | ne(chance, chance) | endless
    return rounded(select(as_drawn, out, trials - out), target)


_binomial_when_large = when_large(_binomial, (0,))


def _binomial_added(key: Key, trials: Array, chance: Array) -> Array:
    """Geometric waiting times are added until they exceed the trials."""
    per_trial = log1p(-chance)

    def wait(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, total, key = state
        here, key = parts(key, 2)
        count = select(total <= trials, count + 1, count)
        u = uniform(here, trials.shape, trials.dtype)
        return count, total + ceil(log(u) / per_trial), key

    start = (zeros_like(trials), zeros_like(trials), key)
    return while_loop(lambda state: _any(state[1] <= trials), wait, start)[0] - 1


def _binomial_rejected(key: Key, n: Array, p: Array) -> Array:
    """BTRS, with the constants of its paper."""
    deviation = sqrt(n * p * (1 - p))
    b = 1.15 + 2.53 * deviation
    a = -0.0873 + 0.0248 * b + 0.01 * p
    center = n * p + 0.5
    sure_bound = 0.92 - 4.2 / b
    odds = p / (1 - p)
    alpha = (2.83 + 5.1 / b) * deviation
    mode = floor((n + 1) * p)

    def propose(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, accepted, key = state
        key, first, second = parts(key, 3)
        u = uniform(first, n.shape, n.dtype) - 0.5
        v = uniform(second, n.shape, n.dtype)
        inside = 0.5 - absolute(u)
        k = floor((2 * a / inside + b) * u + center)
        proposed = log(v * alpha / (a / (inside * inside) + b))
        # log of the probability of k over that of the mode, by Stirling's series.
        log_ratio = (
            (mode + 0.5) * log((mode + 1) / (odds * (n - mode + 1)))
            + (n + 1) * log((n - mode + 1) / (n - k + 1))
            + (k + 0.5) * log(odds * (n - k + 1) / (k + 1))
            + _stirling_rest(mode)
            + _stirling_rest(n - mode)
            - _stirling_rest(k)
            - _stirling_rest(n - k)
        )
        outside = (k < 0) | (k > n)
        good = ((inside >= 0.07) & (v <= sure_bound)) | (~outside & (proposed <= log_ratio))
        return select(good, k, count), accepted | good, key

    start = (full_like(p, -1), full(p.shape, False, _BOOL), key)
    return while_loop(lambda state: _any(~state[1]), propose, start)[0]


_RESTS = np.array(
    [
        0.08106146679532726,
        0.04134069595540929,
        0.02767792568499834,
        0.02079067210376509,
        0.01664469118982119,
        0.01387612882307075,
        0.01189670994589177,
        0.01041126526197210,
        0.009255462182712733,
        0.008330563433362871,
    ]
)
"""log(k!) less Stirling's formula in k + 1, for k from 0 to 9."""


def _stirling_rest(k: Array) -> Array:
    """log(k!) - (log(2 pi)/2 + (k + 1/2) log(k + 1) - (k + 1)), for whole k from 0 on."""
    few = clamp(full((), 0, k.dtype), k, full((), 9, k.dtype))
    square = (few + 1) * (few + 1)
    series = (1 / 12 - (1 / 360 - 1 / 1260 / square) / square) / (few + 1)
    table = constant(_RESTS.astype(k.dtype))
    return select(k <= 9, table[convert(floor(few), _INT32)], series)


@draw
def multinomial(
    key: Key,
    n: ArrayLike,
    p: ArrayLike,
    *,
    shape: ShapeLike | None = None,
    dtype: DTypeLike | None = None,
    unroll: int | bool = 1,
) -> Array:
    """Draw how many trials have each outcome: whole numbers of a floating dtype.

    Outcome by outcome, ``binomial`` of what is left.

    Args:
        n: the number of trials; broadcasts to ``p`` without its last axis.
        p: (..., outcomes), the probabilities along the last axis.
        shape: of the result, the axis of outcomes included; by default that of ``p``.
        unroll: for the ``scan`` over the outcomes.

    Returns:
        (..., outcomes).

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is not floating.
        ValueError: ``p`` has no axis, a size is negative, a number is out of range, or shapes do
            not match.

    >>> from stretto import random
    >>> import stretto.numpy as snp
    >>> x = random.multinomial(random.key(0), 10, snp.array([0.2, 0.3, 0.5]))
    >>> x.shape, float(x.sum())
    ((3,), 10.0)
    """
    caller = "multinomial"
    target, chance = float_dtype(dtype, caller), _probability(p, caller)
    in_range(n, caller, "n", nan=True)
    trials = as_value(n, f"random.{caller}", "n")
    if kind_of(trials.dtype) == "complex":
        raise TypeError(f"random.{caller}: n must be real, got {trials.type}")
    own = [(x.dtype, x.weak_type) for x in (trials, chance)]
    common = wide(inexact_dtype(promote(own, f"random.{caller}")[0]))
    if not chance.ndim:
        raise ValueError(f"random.{caller}: p must have an axis of outcomes, got {chance.type}")
    sizes = chance.shape if shape is None else static_shape(shape, caller)
    chance = spread(convert(chance, common), sizes, caller, "p")
    trials = spread(convert(trials, common), sizes[:-1], caller, "n")
    chances = move_axis(chance, chance.ndim - 1, 0)
    left = cumsum(chances, 0, reverse=True)
    ratios = chances / select(left == 0, full_like(left, 1), left)

    def draw(rest: Array, step: tuple[Array, Key]) -> tuple[Array, Array]:
        ratio, key = step
        bounded = clamp(full((), 0, common), ratio, full((), 1, common))
        count = binomial(key, rest, bounded, dtype=common)
        return rest - count, count

    keys = split(checked(key, caller), ratios.shape[0])
    _, counts = scan(draw, trials, (ratios, keys), unroll=unroll)
    return rounded(move_axis(counts, 0, counts.ndim - 1), target)
