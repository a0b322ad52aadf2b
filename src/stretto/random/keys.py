"""Keys: made from a seed, split, folded with data, and turned into random bits.

Layer 7. A key is a ``uint32[2]`` array; every draw takes one, and equal keys give equal numbers,
whatever transformation the draw is under. Which counters a key encrypts is one of two layouts, both
JAX's: the original one, and, with ``config.threefry_partitionable``, the one in which each element
depends on its own index alone, so that an array can be made in parts. Next, read ``distributions``.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto.core.config import config
from stretto.core.errors import TracedValueError
from stretto.core.interpreter import Tracer, Value, as_value, constant
from stretto.core.types import as_dtype, default_dtype, kind_of
from stretto.ops.broadcast import broadcast_to, reshape
from stretto.ops.comparison import (
    full_like,
    shift_right_logical,
    zeros_like,
)
from stretto.ops.convert import convert
from stretto.ops.random_bits import RandomBits, threefry2x32
from stretto.ops.shape import concatenate, slice_in_dim

__all__ = ["PRNGKey", "bits", "fold_in", "key", "split"]

_UINT32 = np.dtype(np.uint32)
_WORD = 0xFFFFFFFF


def static_shape(shape: Any, who: str) -> tuple[int, ...]:
    """The shape as a tuple of Python integers; refuses traced sizes."""
    if isinstance(shape, Tracer):
        raise TracedValueError(
            f"random.{who}: shape must be known while tracing, but is traced: {shape.origin()}. "
            f"Name the argument in static_argnums"
        )
    several = shape if isinstance(shape, (tuple, list, Value, np.ndarray)) else (shape,)
    sizes = tuple([operator.index(n) for n in several])
    if any(n < 0 for n in sizes):
        raise ValueError(f"random.{who}: sizes must not be negative, got shape {sizes}")
    return sizes


def checked(key: Any, who: str) -> Any:
    """The key as a value; refuses what is not one."""
    key = as_value(key, f"random.{who}", "key")
    if key.dtype != _UINT32 or key.shape != (2,):
        hint = " (for several keys use vmap)" if key.ndim > 1 and key.shape[-1] == 2 else ""
        raise TypeError(
            f"random.{who}: expected a key, uint32[2], got {key.type}{hint}; make one with "
            f"random.PRNGKey(seed)"
        )
    return key


def PRNGKey(seed: Any) -> Any:
    """The key of an integer seed: its high and its low 32 bits.

    As in JAX, the high bits are 0 unless 64-bit types are on, so seeds that differ by a multiple of
    2**32 then give one key; negative seeds count as two's complement. Raises ``OverflowError`` for
    a seed of more than 64 bits, ``TypeError`` for anything but one integer.

    >>> from stretto import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    if isinstance(seed, (int, np.integer)):
        number = int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise OverflowError(f"random.PRNGKey: the seed {number} has more than 64 bits")
        high = number >> 32 & _WORD if config.enable_x64 else 0
        return constant(np.array([high, number & _WORD], _UINT32))
    seed = as_value(seed, "random.PRNGKey", "seed")
    if seed.ndim or kind_of(seed.dtype) not in ("int", "uint"):
        raise TypeError(f"random.PRNGKey: seed must be one integer, got {seed.type}")
    low = convert(seed, _UINT32)
    high = zeros_like(low)
    if seed.dtype.itemsize == 8:
        high = convert(shift_right_logical(seed, full_like(seed, 32)), _UINT32)
    return concatenate([reshape(high, (1,)), reshape(low, (1,))])


def key(seed: Any) -> Any:
    """The key of an integer seed, the same raw ``uint32[2]`` array that ``PRNGKey`` gives.

    >>> from stretto import random
    >>> random.key(42)
    Array([ 0, 42], dtype=uint32)
    """
    return PRNGKey(seed)


def _check_count(n: int, who: str) -> None:
    if n >= 1 << 32:
        raise ValueError(
            f"random.{who}: {n} words of 32 bits from one key are too many; split the key"
        )


def split(key: Any, num: int | Sequence[int] = 2) -> Any:
    """``num`` new keys, an array of them along the first axis (or several, for a shape).

    The key itself should not be used again.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(42))
    >>> subkey
    Array([255383827, 267815257], dtype=uint32)
    """
    key = checked(key, "split")
    shape = static_shape(num, "split")
    _check_count(2 * math.prod(shape), "split")
    if config.threefry_partitionable:
        return RandomBits(32, shape, "pairs")(key)
    return RandomBits(32, (*shape, 2), "original")(key)


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and a 32-bit integer, such as the number of a step or of a member.

    >>> from stretto import random
    >>> random.fold_in(random.PRNGKey(42), 7).shape
    (2,)
    """
    key = checked(key, "fold_in")
    if isinstance(data, (int, np.integer)):
        number = int(data)
        if not -(1 << 31) <= number < 1 << 32:
            raise OverflowError(f"random.fold_in: data {number} has more than 32 bits")
        low = constant(np.asarray(number & _WORD, _UINT32))
    else:
        low = as_value(data, "random.fold_in", "data")
        if low.ndim or kind_of(low.dtype) not in ("int", "uint"):
            raise TypeError(f"random.fold_in: data must be one integer, got {low.type}")
        low = convert(low, _UINT32)
    # The two words of the key that has `data` as its seed, as counters.
    k0, k1 = (reshape(slice_in_dim(key, i, i + 1), ()) for i in (0, 1))
    pair = threefry2x32(k0, k1, zeros_like(low), low)
    return concatenate([reshape(x, (1,)) for x in pair])


def random_bits(key: Any, width: int, shape: tuple[int, ...], who: str = "bits") -> Any:
    """Unsigned integers of 8, 16, 32 or 64 random bits each."""
    key = checked(key, who)
    _check_count(-(-math.prod(shape) * width // 32), who)
    layout = "partitionable" if config.threefry_partitionable else "original"
    return RandomBits(width, shape, layout)(key)


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Random bits: unsigned integers, each value equally likely.

    ``dtype`` is ``uint8``, ``uint16``, ``uint32`` (the default) or ``uint64``.

    >>> from stretto import random
    >>> random.bits(random.PRNGKey(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    target = default_dtype("int") if dtype is None else as_dtype(dtype)
    if dtype is None:
        target = np.dtype(f"u{target.itemsize}")
    if kind_of(target) != "uint" or target.name not in ("uint8", "uint16", "uint32", "uint64"):
        raise TypeError(f"random.bits: dtype must be unsigned, 8 to 64 bits; got {target}")
    return random_bits(key, 8 * target.itemsize, static_shape(shape, "bits"))


def spread(x: Any, shape: tuple[int, ...], who: str, name: str) -> Any:
    """A parameter of a distribution at the shape of the draw.

    Raises ``ValueError`` where it does not broadcast to that.
    """
    extra = len(shape) - x.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[extra:], strict=True)):
        raise ValueError(f"random.{who}: {name} {x.type} does not broadcast to shape {shape}")
    return broadcast_to(x, shape)
