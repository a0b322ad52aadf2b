"""Random numbers and dropout, from the ambient stream of keys (``nn.keys``).

They are other numbers than PyTorch's, of the same distributions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import stretto.numpy as snp
from stretto import random
from stretto.nn import functional as F
from stretto.random.streams import next_key

__all__ = ["TABLE"]


def _drawn(draw: Callable[..., Any]) -> Callable[..., Any]:
    """Numbers of a shape, of the dtype that PyTorch found."""
    return lambda size, *, dtype=None, **_: draw(tuple(size), dtype or snp.float32)


def _like(draw: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *, dtype=None, **_: draw(x.shape, x.dtype if dtype is None else dtype)


def _uniform(shape: Sequence[int], dtype: Any) -> Any:
    return random.uniform(next_key("rand"), shape, dtype)


def _normal(shape: Sequence[int], dtype: Any) -> Any:
    return random.normal(next_key("randn"), shape, dtype)


def _integers(low: int, high: int, size: Sequence[int], *, dtype: Any = None, **_: Any) -> Any:
    return random.randint(next_key("randint"), tuple(size), low, high)


def _dropout(x: Any, p: float, train: bool) -> Any:
    return F.dropout(x, p, train)


def _native_dropout(x: Any, p: float, train: bool | None) -> tuple[Any, Any]:
    """The result, and which elements were kept."""
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
    """The result, and the slope of each element."""
    if not training:
        return snp.where(x > 0, x, x * ((lower + upper) / 2)), noise
    drawn = random.uniform(next_key("rrelu"), x.shape, x.dtype, lower, upper)
    slopes = snp.where(x > 0, 1, drawn)
    return x * slopes, slopes


def _bernoulli(x: Any, p: Any = None, **_: Any) -> Any:
    chance = x if p is None else p
    return random.bernoulli(next_key("bernoulli"), chance, x.shape).astype(x.dtype)


TABLE: dict[str, Callable[..., Any]] = {
    "aten.bernoulli.default": _bernoulli,
    "aten.bernoulli.p": _bernoulli,
    "aten.bernoulli.Tensor": _bernoulli,
    "aten.dropout.default": _dropout,
    "aten.native_dropout.default": _native_dropout,
    "aten.exponential.default": lambda x, lambd=1.0, **_: (
        random.exponential(next_key("exponential"), x.shape, x.dtype) / lambd
    ),
    "aten.normal_functional.default": lambda x, mean=0.0, std=1.0, **_: (
        mean + std * _normal(x.shape, x.dtype)
    ),
    "aten.rand.default": _drawn(_uniform),
    "aten.rand_like.default": _like(_uniform),
    "aten.randint.default": lambda high, size, **how: _integers(0, high, size, **how),
    "aten.randint.low": _integers,
    "aten.randn.default": _drawn(_normal),
    "aten.randn_like.default": _like(_normal),
    "aten.randperm.default": lambda n, **_: random.permutation(next_key("randperm"), n),
    "aten.rrelu_with_noise_functional.default": _leaky_at_random,
    "aten.uniform.default": lambda x, low=0.0, high=1.0, **_: (
        low + (high - low) * _uniform(x.shape, x.dtype)
    ),
}
