"""Random numbers and dropout, from the ambient stream of keys (``nn.keys``).

They are other numbers than PyTorch's, of the same distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import lax, random
from stretto.nn import functional as F
from stretto.random.streams import next_key


def _drawn(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Return numbers of a shape, of the dtype that PyTorch found."""
    return lambda size, *, dtype=None, **_: draw(tuple(size), dtype or snp.float32)


def _like(draw: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *, dtype=None, **_: draw(x.shape, x.dtype if dtype is None else dtype)


def _uniform(shape: Sequence[int], dtype: Any) -> Any:
    return random.uniform(next_key("rand"), shape, dtype)


def _normal(shape: Sequence[int], dtype: Any) -> Any:
    return random.normal(next_key("randn"), shape, dtype)


def _integers(low: int, high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Any:
    """Draw integers in ``[low, high)``; PyTorch's are of 64 bits unless it is told otherwise."""
    drawn = dtype if dtype is not None and dtype.kind in "iu" else snp.dtype("int32")
    return random.randint(next_key("randint"), tuple(size), low, high, drawn)


def _integers_like(x: Any, low: Any, high: Any, *, dtype: Any = None, **_: Any) -> Any:
    return _integers(low, high, x.shape, dtype=x.dtype if dtype is None else dtype)


def _random(x: Any, low: int = 0, high: int | None = None, **_: Any) -> Any:
    """Draw whole numbers, up to the greatest that the dtype has; for floats, has exactly."""
    if high is None:
        kind = x.dtype.kind
        high = 2 if kind == "b" else snp.iinfo(x.dtype).max if kind in "iu" else 1 << _digits(x)
    return _integers(low, high, x.shape, dtype=x.dtype)


def _digits(x: Any) -> int:
    """Return how many bits the whole numbers have that a float holds, 31 at most."""
    return min(31, snp.finfo(x.dtype).nmant + 1)


def _dropout(x: Any, p: float, train: bool) -> Any:
    return F.dropout(x, p, train)


def _native_dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """Return the result, and which elements were kept."""
    if train is False or p == 0:
        return x, snp.ones(x.shape, bool)
    if p == 1:
        return x * 0, snp.zeros(x.shape, bool)
    kept = random.bernoulli(next_key("dropout"), 1 - p, x.shape)
    return snp.where(kept, x / (1 - p), 0), kept


def _leaky_at_random(
    x: Any,
    noise: Any,
    lower: float = 1 / 8,
    upper: float = 1 / 3,
    training: bool = False,
    generator: Any = None,
) -> tuple[Any, Any]:
    """Return the result, and the slope of each element."""
    if not training:
        return snp.where(x > 0, x, x * ((lower + upper) / 2)), noise
    drawn = random.uniform(next_key("rrelu"), x.shape, x.dtype, lower, upper)
    slopes = snp.where(x > 0, 1, drawn)
    return x * slopes, slopes


def _bernoulli(x: Any, p: Any = None, **_: Any) -> Any:
    chance = x if p is None else p
    return random.bernoulli(next_key("bernoulli"), chance, x.shape).astype(x.dtype)


# Draws whose parameters are tensors. Numbers of these have no slope in the parameters, as in
# PyTorch, whose distributions write them by others where they have one (``rsample``).


def _normal_of(mean: Any, std: Any, size: Sequence[int] | None = None, **_: Any) -> Any:
    mean, std = lax.stop_gradient((snp.asarray(mean), snp.asarray(std)))
    shape = snp.broadcast_shapes(mean.shape, std.shape) if size is None else tuple(size)
    return mean + std * _normal(shape, snp.result_type(mean, std))


def _gamma(alpha: Any, *_: Any, **__: Any) -> Any:
    """Draw gamma numbers of scale 1, with the implicit derivative by their shape parameter."""
    return random.gamma(next_key("gamma"), alpha, alpha.shape, alpha.dtype)


def _poisson(rate: Any, *_: Any, **__: Any) -> Any:
    rate = lax.stop_gradient(rate)
    return random.poisson(next_key("poisson"), rate, rate.shape).astype(rate.dtype)


def _binomial(count: Any, p: Any, *_: Any, **__: Any) -> Any:
    count, p = lax.stop_gradient(tuple(snp.broadcast_arrays(count, p)))
    return random.binomial(next_key("binomial"), count, p, count.shape, count.dtype)


def _geometric(x: Any, p: float, **_: Any) -> Any:
    return random.geometric(next_key("geometric"), p, x.shape).astype(x.dtype)


def _multinomial(weights: Any, n: int, replacement: bool = False, **_: Any) -> Any:
    """Draw indices of rows of weights that need not add up to 1; without replacement in turn.

    The ``n`` greatest of logarithms with Gumbel noise are distributed like draws in turn.
    """
    logits = snp.log(lax.stop_gradient(weights))
    shape = (n, *weights.shape[:-1])
    drawn = random.categorical(next_key("multinomial"), logits, -1, shape, replacement)
    return snp.moveaxis(drawn, 0, -1)


TABLE: dict[str, Callable[..., Any]] = {
    "aten._standard_gamma.default": _gamma,
    "aten.bernoulli.default": _bernoulli,
    "aten.bernoulli.p": _bernoulli,
    "aten.bernoulli.Tensor": _bernoulli,
    "stretto.binomial.default": _binomial,
    "aten.cauchy.default": lambda x, median=0.0, sigma=1.0, **_: (
        median + sigma * random.cauchy(next_key("cauchy"), x.shape, x.dtype)
    ),
    "aten.dropout.default": _dropout,
    "aten.native_dropout.default": _native_dropout,
    "aten.exponential.default": lambda x, lambd=1.0, **_: (
        random.exponential(next_key("exponential"), x.shape, x.dtype) / lambd
    ),
    "aten.geometric.default": _geometric,
    "aten.log_normal.default": lambda x, mean=1.0, std=2.0, **_: snp.exp(
        mean + std * _normal(x.shape, x.dtype)
    ),
    "aten.multinomial.default": _multinomial,
    "aten.normal.Tensor_Tensor": _normal_of,
    "aten.normal.Tensor_float": lambda mean, std=1.0, **_: _normal_of(mean, std),
    "aten.normal.float_Tensor": lambda mean, std, **_: _normal_of(mean, std),
    "aten.normal.float_float": _normal_of,
    "aten.normal_functional.default": lambda x, mean=0.0, std=1.0, **_: (
        mean + std * _normal(x.shape, x.dtype)
    ),
    "aten.poisson.default": _poisson,
    "aten.rand.default": _drawn(_uniform),
    "aten.rand_like.default": _like(_uniform),
    "aten.randint.default": lambda high, size, **how: _integers(0, high, size, **how),
    "aten.randint.low": _integers,
    "aten.randint_like.default": lambda x, high, **how: _integers_like(x, 0, high, **how),
    "aten.randint_like.low_dtype": _integers_like,
    "aten.randn.default": _drawn(_normal),
    "aten.randn_like.default": _like(_normal),
    "aten.random.default": _random,
    "aten.random.from": _random,
    "aten.random.to": lambda x, high, **_: _random(x, 0, high),
    "aten.randperm.default": lambda n, **_: random.permutation(next_key("randperm"), n),
    "aten.rrelu_with_noise_functional.default": _leaky_at_random,
    "aten.uniform.default": lambda x, low=0.0, high=1.0, **_: (
        low + (high - low) * _uniform(x.shape, x.dtype)
    ),
}
