"""Draws of integers, truth values, categories, orders, and counts: how often something happens.

The former are by the methods that JAX uses, so that the numbers are JAX's. Of counts, small
expectations add up waiting times; large ones propose from a table mountain and reject. All elements
draw until the last is accepted.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from stretto._engine.core.integers import integer
from stretto._engine.core.interpreter import Tracer, as_value, constant
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import (
    as_dtype,
    default_dtype,
    inexact_dtype,
    kind_of,
    promote,
    scalar_dtype,
)
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.higher_order.scan import scan
from stretto._engine.higher_order.while_loop import while_loop
from stretto._engine.ops.arithmetic import absolute, add, multiply, subtract
from stretto._engine.ops.bits import bitwise_and
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import full, full_like, gt, le, lt, ne, select, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.exponential import log, log1p, sqrt
from stretto._engine.ops.extrema import clamp
from stretto._engine.ops.index.gather_scatter import gather
from stretto._engine.ops.index.geometry import GatherDimensionNumbers
from stretto._engine.ops.iota import iota
from stretto._engine.ops.layout import canonical_axis, laid_out, move_axis, reshape, transpose
from stretto._engine.ops.random_bits import wide_remainder
from stretto._engine.ops.reducing.cumulative import cummax, cumsum
from stretto._engine.ops.reducing.reduce import argmax, reduce_or
from stretto._engine.ops.rounding import ceil, floor
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sort import sort_operands, top_k
from stretto._engine.ops.special.gamma import lgamma
from stretto.random.distributions import gumbel, uniform, when_large
from stretto.random.draw_arguments import (
    draw,
    float_dtype,
    in_range,
    integer_dtype,
    parameter,
    round_draw,
    shape_of,
    spread,
    static_shape,
    wide,
)
from stretto.random.keys import as_key, parts, random_bits, split

__all__ = ["bernoulli", "binomial", "categorical", "choice", "geometric", "multinomial",
           "permutation", "poisson", "rademacher", "randint"]  # fmt: skip

_SORTS = 3
"""The number of sorts that shuffle 2**32 elements."""


@draw
def bernoulli(
    key: Key,
    p: ArrayLike = 0.5,
    shape: ShapeLike | None = None,
    mode: str = "low",
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw truth values that hold with probability ``p``.

    Args:
        p: the probability.
        shape: of the result; by default that of ``p``.
        mode: ``"high"`` draws twice the bits, for a very small ``p``; ``"low"`` is the default.

    Returns:
        Booleans of this shape.

    Raises:
        TypeError: ``key`` is not one key, or ``p`` is not real.
        ValueError: a size is negative, ``mode`` is neither, or ``p`` does not broadcast to
            ``shape``.

    >>> from stretto import random
    >>> random.bernoulli(random.PRNGKey(0), 1.0, (3,))
    Array([ True,  True,  True], dtype=bool)
    """
    if out_sharding is not None:
        return laid_out(bernoulli(key, p, shape, mode), out_sharding, "random.bernoulli")
    if mode not in ("low", "high"):
        raise ValueError(f"random.bernoulli: mode must be 'low' or 'high', got {mode!r}")
    in_range(p, "bernoulli", "p", 1)
    chance = as_value(p, "random.bernoulli", "p")
    chance = convert(chance, wide(inexact_dtype(chance.dtype)))
    if kind_of(chance.dtype) != "float":
        raise TypeError(f"random.bernoulli: p must be real, got {chance.type}")
    sizes = chance.shape if shape is None else static_shape(shape, "bernoulli")
    key = as_key(key, "bernoulli")
    chance = spread(chance, sizes, "bernoulli", "p")
    if mode == "low":
        return lt(uniform(key, sizes, chance.dtype), chance)
    both = uniform(key, (2, *sizes), chance.dtype)
    first, second = (reshape(slice_in_dim(both, i, i + 1), sizes) for i in range(2))
    fine = multiply(second, full_like(second, 2.0 ** -np.finfo(chance.dtype).nmant))
    return lt(fine, subtract(chance, first))


@draw
def rademacher(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw -1 or 1, equally likely.

    Args:
        dtype: of the result; the default integer by default.

    Raises:
        TypeError: ``key`` is not one key.
        ValueError: a size is negative.

    >>> from stretto import random
    >>> bool((abs(random.rademacher(random.key(0), (9,))) == 1).all())
    True
    """
    if out_sharding is not None:
        return laid_out(rademacher(key, shape, dtype), out_sharding, "random.rademacher")
    target = default_dtype("int") if dtype is None else as_dtype(dtype)
    heads = bernoulli(as_key(key, "rademacher"), 0.5, static_shape(shape, "rademacher"))
    # In unsigned types and booleans -1 is what it converts to.
    tails = convert(full((), -1, np.dtype(np.int32)), target)
    return select(heads, full_like(heads, 1, target), broadcast_to(tails, heads.shape))


@draw
def randint(
    key: Key,
    shape: ShapeLike,
    minval: ArrayLike,
    maxval: ArrayLike,
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw integers in ``[minval, maxval)``, equally likely but for a bias below 2**-bits.

    The bounds are clipped to the range of ``dtype``; where ``maxval`` is not above ``minval``, the
    numbers are ``minval``.

    Args:
        minval: integers, the least numbers; broadcast to ``shape``.
        maxval: integers, one more than the greatest; broadcast to ``shape``.
        dtype: of integers of 8 to 64 bits; the default integer by default.

    Raises:
        TypeError: ``key`` is not one key, or a bound or ``dtype`` is not of integers.
        ValueError: a size is negative, or a bound does not broadcast to ``shape``.

    >>> from stretto import random
    >>> x = random.randint(random.PRNGKey(0), (100,), 0, 10)
    >>> int(x.min()), int(x.max())
    (0, 9)
    """
    if out_sharding is not None:
        return laid_out(randint(key, shape, minval, maxval, dtype), out_sharding, "random.randint")
    target = integer_dtype(dtype, "randint")
    sizes = static_shape(shape, "randint")
    # Narrow integers are drawn as int32, against bias.
    drawn = target if target.itemsize >= 4 else np.dtype(np.int32)
    low, _ = _bound(minval, drawn, target, 0, "minval")
    high, beyond = _bound(maxval, drawn, target, 1, "maxval")
    low, high = spread(low, sizes, "randint", "minval"), spread(high, sizes, "randint", "maxval")
    width = 8 * drawn.itemsize
    upper, lower = (random_bits(k, width, sizes, "randint") for k in parts(key, 2, "randint"))
    # The wide remainder takes a span of 0 as 2**width.
    span = convert(subtract(high, low), np.dtype(f"u{drawn.itemsize}"))
    one = full_like(span, 1)
    span = select(le(high, low), one, span)
    if beyond is not None:
        span = select(bitwise_and(broadcast_to(beyond, sizes), gt(high, low)), add(span, one), span)
    return convert(add(low, convert(wide_remainder(upper, lower, span), drawn)), target)


def _bound(
    x: ArrayLike, drawn: np.dtype, target: np.dtype, room: int, name: str
) -> tuple[Array, Array | None]:
    """Clip a bound to the range of ``target`` and ``room`` above it, in the dtype drawn.

    Second, whether it was above what that dtype holds; ``None`` where it surely was not.
    """
    info, held = np.iinfo(target), np.iinfo(drawn)
    least, most = int(info.min), min(int(info.max) + room, int(held.max))
    if isinstance(x, (int, np.integer)) and not isinstance(x, (bool, np.bool_)):
        number = min(max(int(x), least), most)
        beyond = full((), True, np.dtype(bool)) if int(x) > held.max else None
        return full((), number, drawn), beyond
    value = as_value(x, "random.randint", name)
    if kind_of(value.dtype) not in ("int", "uint"):
        value = convert(value, scalar_dtype(int))
    own = np.iinfo(value.dtype)
    beyond = gt(value, full_like(value, int(held.max))) if int(own.max) > held.max else None
    low = full_like(value, max(least, int(own.min)))
    high = full_like(value, min(most, int(own.max)))
    return convert(clamp(low, value, high), drawn), beyond


@draw
def categorical(
    key: Key,
    logits: ArrayLike,
    axis: int = -1,
    shape: ShapeLike | None = None,
    replace: bool = True,
    mode: str | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw indices along an axis, each with probability proportional to ``exp(logits)``.

    Args:
        logits: logarithms of weights.
        axis: that of the categories.
        shape: of the result; by default that of ``logits`` without ``axis``, in which it must end.
        replace: whether one category may be drawn several times; otherwise the indices along the
            leading axes of ``shape`` are all different.
        mode: as for ``gumbel``.

    Returns:
        Integers of this shape.

    Raises:
        TypeError: ``key`` is not one key.
        ValueError: ``shape`` does not end as it must, or there are fewer categories than draws
            without replacement.

    >>> import stretto.numpy as snp
    >>> from stretto import random
    >>> random.categorical(random.PRNGKey(0), snp.array([0.0, 20.0]))
    Array(1, dtype=int32)
    """
    caller = "categorical"
    if out_sharding is not None:
        result = categorical(key, logits, axis, shape, replace, mode)
        return laid_out(result, out_sharding, f"random.{caller}")
    key, values = as_key(key, caller), as_value(logits, f"random.{caller}", "logits")
    values = convert(values, wide(inexact_dtype(values.dtype)))
    place = canonical_axis(axis, values.ndim, f"random.{caller}")
    batch = (*values.shape[:place], *values.shape[place + 1 :])
    sizes = batch if shape is None else static_shape(shape, caller)
    first = len(sizes) - len(batch)
    if first < 0 or any(n not in (1, m) for n, m in zip(batch, sizes[first:], strict=True)):
        raise ValueError(
            f"random.{caller}: shape {sizes} must end in what logits {values.type} without axis "
            f"{axis} broadcast to"
        )
    prefix = sizes[:first]
    if replace:
        full_shape = list(sizes)
        full_shape.insert(first + place, values.shape[place])
        noise = gumbel(key, tuple(full_shape), values.dtype, mode)
        scores = add(noise, spread(values, tuple(full_shape), caller, "logits"))
        return argmax(scores, first + place, default_dtype("int"))
    count, n = math.prod(prefix), values.shape[place]
    if count > n:
        raise ValueError(
            f"random.{caller}: {count} draws without replacement from {n} categories are too many"
        )
    if sizes[first:] != batch:
        raise ValueError(f"random.{caller}: without replacement shape {sizes} must end in {batch}")
    scores = add(values, gumbel(key, values.shape, values.dtype, mode))
    _, order = top_k(move_axis(scores, place, values.ndim - 1), count)
    order = transpose(order, (order.ndim - 1, *range(order.ndim - 1)))
    return reshape(order, sizes)


def _static_length(x: ArrayLike, caller: str, name: str) -> int:
    return integer(x, f"random.{caller}", name, 0)


@draw
def permutation(
    key: Key,
    x: ArrayLike,
    axis: int = 0,
    independent: bool = False,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Put the parts of an array along an axis in random order.

    Args:
        x: an array; or an integer, for ``range(x)``.
        axis: that of the parts.
        independent: whether each line along the axis gets an order of its own.

    Returns:
        An array of the shape and dtype of ``x``.

    Raises:
        TypeError: ``key`` is not one key, or ``x`` is a number that is not an integer.
        ValueError: ``axis`` is out of bounds.

    >>> from stretto import random
    >>> random.permutation(random.PRNGKey(0), 5).sum()
    Array(10, dtype=int32)
    """
    if out_sharding is not None:
        return laid_out(permutation(key, x, axis, independent), out_sharding, "random.permutation")
    key, values = as_key(key, "permutation"), as_value(x, "random.permutation")
    if not values.ndim:
        if kind_of(values.dtype) not in ("int", "uint"):
            raise TypeError(
                f"random.permutation: x must be an integer or have an axis, got {values.type}"
            )
        return _shuffle(key, iota(default_dtype("int"), _static_length(x, "permutation", "x")), 0)
    place = canonical_axis(axis, values.ndim, "random.permutation")
    if independent or values.ndim == 1:
        return _shuffle(key, values, place)
    order = _shuffle(key, iota(default_dtype("int"), values.shape[place]), 0)
    return _take(values, order, place)


def _shuffle(key: Key, x: Array, axis: int) -> Array:
    """Sort by random words, often enough that equal words hardly matter."""
    size: Any = x.size
    varies = is_size(size)
    greatest = size.bounds()[1] if varies else size
    for sorts in range(_SORTS):
        enough = int(0xFFFFFFFF ** (sorts / 3))  # elements that so many sorts are enough for
        if greatest <= enough:
            break
        key, subkey = parts(key, 2)
        words = random_bits(subkey, 32, x.shape, "permutation")
        _, after = sort_operands((words, x), axis)
        more = (
            gt(as_value(size), full((), enough, np.dtype(np.int32))) if varies and sorts else None
        )
        x = after if more is None else select(broadcast_to(more, x.shape), after, x)
    return x


def _take(x: Array, indices: Array, axis: int) -> Array:
    """Return the parts of ``x`` at a line of indices along ``axis``."""
    others = tuple(d for d in range(x.ndim) if d != axis)
    sizes = tuple(1 if d == axis else n for d, n in enumerate(x.shape))
    numbers = GatherDimensionNumbers(others, (axis,), (axis,))
    return gather(x, reshape(indices, (indices.size, 1)), numbers, sizes)


def choice(
    key: Key,
    a: ArrayLike,
    shape: ShapeLike = (),
    replace: bool = True,
    p: ArrayLike | None = None,
    axis: int = 0,
    mode: str | None = None,
) -> Array:
    """Choose parts of an array at random.

    Args:
        key: a key, typed or raw.
        a: an array; or an integer, for ``range(a)``.
        shape: how many to choose: what ``axis`` is replaced with.
        replace: whether a part may be chosen several times.
        p: (n,), the probability of each part; equal by default.
        axis: that of the parts.
        mode: as for ``gumbel``.

    Returns:
        The parts, in the dtype of ``a``.

    Raises:
        TypeError: ``key`` is not one key.
        ValueError: more parts than there are, or than have a probability above 0, were asked for
            without replacement; there are none; or ``p`` is of another shape.

    >>> from stretto import random
    >>> random.choice(random.PRNGKey(0), 5, (3,)).shape
    (3,)
    """
    caller = "random.choice"
    key, sizes = as_key(key, "choice"), static_shape(shape, "choice")
    values = as_value(a, caller, "a")
    whole = not values.ndim
    place = 0 if whole else canonical_axis(axis, values.ndim, caller)
    n = _static_length(a, "choice", "a") if whole else values.shape[place]
    draws = math.prod(sizes)
    if not draws:
        return full((*values.shape[:place], *sizes, *values.shape[place + 1 :]), 0, values.dtype)
    if n <= 0:
        raise ValueError(f"{caller}: a has no parts to choose from")
    if not replace and draws > n:
        raise ValueError(f"{caller}: {draws} draws without replacement from {n} parts are too many")
    if p is None and not replace:
        shuffled = permutation(key, n if whole else values, place)
        out = slice_in_dim(shuffled, 0, draws, axis=place)
    else:
        order = reshape(
            randint(key, sizes, 0, n) if p is None else _choose(key, n, sizes, replace, p, mode),
            (draws,),
        )
        out = order if whole else _take(values, order, place)
    if whole:
        return reshape(out, sizes)
    return reshape(out, (*values.shape[:place], *sizes, *values.shape[place + 1 :]))


def _choose(
    key: Key, n: int, shape: tuple[int, ...], replace: bool, p: ArrayLike, mode: str | None
) -> Array:
    in_range(p, "choice", "p", whole=True)
    chances = as_value(p, "random.choice", "p")
    chances = convert(chances, wide(inexact_dtype(chances.dtype)))
    if chances.shape != (n,):
        raise ValueError(
            f"random.choice: p must have shape {(n,)}, one number for each part; got {chances.type}"
        )
    if not replace:  # the greatest of log p + Gumbel noise
        _enough(chances, math.prod(shape))
        scores = add(gumbel(key, (n,), chances.dtype, mode), log(chances))
        return convert(top_k(scores, math.prod(shape))[1], default_dtype("int"))
    # Sums in any order round, so a part of no chance may exceed the one before it. It never is the
    # first that is not below a number, if it has the greatest sum of those before it that have one.
    likely = gt(chances, zeros_like(chances))
    sums = cummax(select(likely, cumsum(chances), full_like(chances, -np.inf)))
    total = spread(slice_in_dim(sums, n - 1, n), (math.prod(shape),), "choice", "p")
    u = uniform(key, shape, chances.dtype)
    u = reshape(subtract(full_like(u, 1), u), (math.prod(shape),))
    return _first_not_below(sums, multiply(total, u))


def _enough(chances: Array, draws: int) -> None:
    """Raise ``ValueError`` where parts of no chance would have to be chosen, if that is known."""
    if isinstance(chances, Tracer):
        return
    likely = int(np.count_nonzero(np.asarray(chances)))
    if likely < draws:
        raise ValueError(
            f"random.choice: {draws} draws without replacement from {likely} parts whose "
            f"probability p is not 0 are too many"
        )


def _first_not_below(line: Array, values: Array) -> Array:
    """Count for each value the elements of a rising line that are below it, by halving."""
    index = default_dtype("int")
    (n,) = line.shape
    below = full(values.shape, 0, index)
    bits = 31 if is_size(n) else n.bit_length()
    for step in (1 << k for k in reversed(range(bits))):
        # Below are at least `below`; are they at least `below + step`?
        further = add(below, full_like(below, step))
        last = subtract(clamp(0, further, n), full_like(below, 1))
        fits = bitwise_and(le(further, full_like(below, n)), lt(_take(line, last, 0), values))
        below = select(fits, further, below)
    return below


_BOOL, _INT32 = np.dtype(bool), np.dtype(np.int32)


def any_of(pred: Array) -> Array:
    """Say whether it holds for any element."""
    return reduce_or(pred, tuple(range(pred.ndim)))


def _probability(p: ArrayLike, caller: str) -> Array:
    """Return a real parameter in its own floating dtype, or in float32 if that is narrower."""
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
            broadcast to ``shape``.

    >>> from stretto import random
    >>> bool((random.geometric(random.key(0), 0.5, (9,)) >= 1).all())
    True
    """
    if out_sharding is not None:
        return laid_out(geometric(key, p, shape, dtype), out_sharding, "random.geometric")
    target, chance = integer_dtype(dtype, "geometric"), _probability(p, "geometric")
    sizes = shape_of(shape, "geometric", chance)
    u = uniform(as_key(key, "geometric"), sizes, chance.dtype)
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
            broadcast to ``shape``.

    Source: below an expectation of 10 Knuth, "The Art of Computer Programming" 2, 3.4.1, algorithm
    Q, in logarithms; from there on Hörmann, "The transformed rejection method for generating
    Poisson random variables", Insurance: Mathematics and Economics 12, 1993 (PTRS).

    >>> from stretto import random
    >>> bool((random.poisson(random.key(0), 3.0, (9,)) >= 0).all())
    True
    """
    if out_sharding is not None:
        return laid_out(poisson(key, lam, shape, dtype), out_sharding, "random.poisson")
    target, key = integer_dtype(dtype, "poisson"), as_key(key, "poisson")
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
    """Add exponential waiting times until they exceed the rate."""

    def wait(state: tuple[Array, ...]) -> tuple[Array, ...]:
        turn, count, key, total = state
        key, here = parts(key, 2)
        count = select(total > -rate, count + 1, count)
        return turn + 1, count, key, total + log(uniform(here, rate.shape, rate.dtype))

    def is_waiting(state: tuple[Array, ...]) -> Array:
        turn, _, _, total = state
        return any_of(total > -rate) & (turn < most)

    nothing = full((), 0, _INT32)
    start = (nothing, full_like(rate, 0, _INT32), key, zeros_like(rate))
    return while_loop(is_waiting, wait, start)[1] - 1


def _poisson_rejected(key: Key, rate: Array, most: int) -> Array:
    """Reject by PTRS, with the constants of its paper."""
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

    def is_missing(state: tuple[Array, ...]) -> Array:
        turn, _, accepted, _ = state
        return any_of(~accepted) & (turn < most)

    nothing = full((), 0, _INT32)
    start = (nothing, full_like(rate, -1), full(rate.shape, False, _BOOL), key)
    return while_loop(is_missing, propose, start)[1]


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
    target, key = float_dtype(dtype, "binomial"), as_key(key, "binomial")
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
    return round_draw(select(as_drawn, out, trials - out), target)


_binomial_when_large = when_large(_binomial, (0,))


def _binomial_added(key: Key, trials: Array, chance: Array) -> Array:
    """Add geometric waiting times until they exceed the trials."""
    per_trial = log1p(-chance)

    def wait(state: tuple[Array, ...]) -> tuple[Array, ...]:
        count, total, key = state
        here, key = parts(key, 2)
        count = select(total <= trials, count + 1, count)
        u = uniform(here, trials.shape, trials.dtype)
        return count, total + ceil(log(u) / per_trial), key

    start = (zeros_like(trials), zeros_like(trials), key)
    return while_loop(lambda state: any_of(state[1] <= trials), wait, start)[0] - 1


def _binomial_rejected(key: Key, n: Array, p: Array) -> Array:
    """Reject by BTRS, with the constants of its paper."""
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
    return while_loop(lambda state: any_of(~state[1]), propose, start)[0]


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

    keys = split(as_key(key, caller), ratios.shape[0])
    _, counts = scan(draw, trials, (ratios, keys), unroll=unroll)
    return round_draw(move_axis(counts, 0, counts.ndim - 1), target)
