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
from stretto.ops.bitcast import bitcast_convert_type
from stretto.ops.broadcast import broadcast_to, reshape
from stretto.ops.comparison import (
    bitwise_or,
    bitwise_xor,
    eq,
    full,
    full_like,
    select,
    shift_left,
    shift_right_logical,
    zeros_like,
)
from stretto.ops.convert import convert
from stretto.ops.random_bits import threefry2x32
from stretto.ops.iota import iota
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


def words_of(key: Any, who: str) -> tuple[Any, Any]:
    """The two words of a key, checked."""
    key = as_value(key, f"random.{who}", "key")
    if key.dtype != _UINT32 or key.shape != (2,):
        hint = " (for several keys use vmap)" if key.ndim > 1 and key.shape[-1] == 2 else ""
        raise TypeError(
            f"random.{who}: expected a key, uint32[2], got {key.type}{hint}; make one with "
            f"random.PRNGKey(seed)"
        )
    return tuple([reshape(slice_in_dim(key, i, i + 1), ()) for i in range(2)])  # type: ignore[return-value]


def PRNGKey(seed: Any) -> Any:  # noqa: N802 (JAX's name)
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


def _encrypt(words: tuple[Any, Any], n: int) -> tuple[Any, Any]:
    """The original layout: counters 0 to n - 1 in two halves, an odd one out paired with 0."""
    half = -(-n // 2)
    first = iota(_UINT32, half)
    second = first + full_like(first, half)
    if n % 2:
        second = select(eq(second, full_like(second, n)), zeros_like(second), second)
    return threefry2x32(*words, first, second)


def _encrypt_each(words: tuple[Any, Any], shape: tuple[int, ...]) -> tuple[Any, Any]:
    """The partitionable layout: each element's 64-bit index, high and low word."""
    low = reshape(iota(_UINT32, math.prod(shape)), shape)
    return threefry2x32(*words, zeros_like(low), low)


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
    Array([ 64467757, 2916123636], dtype=uint32)
    """
    words = words_of(key, "split")
    shape = static_shape(num, "split")
    n = math.prod(shape)
    _check_count(2 * n, "split")
    if config.threefry_partitionable:
        pairs = _encrypt_each(words, shape)
        columns = [reshape(x, (*shape, 1)) for x in pairs]
        return concatenate(columns, len(shape))
    return reshape(concatenate(_encrypt(words, 2 * n)), (*shape, 2))


def fold_in(key: Any, data: Any) -> Any:
    """A new key from a key and a 32-bit integer, such as the number of a step or of a member.

    >>> from stretto import random
    >>> random.fold_in(random.PRNGKey(42), 7).shape
    (2,)
    """
    words = words_of(key, "fold_in")
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
    pair = threefry2x32(*words, zeros_like(low), low)
    return concatenate([reshape(x, (1,)) for x in pair])


def random_bits(key: Any, width: int, shape: tuple[int, ...], who: str = "bits") -> Any:
    """Unsigned integers of 8, 16, 32 or 64 random bits each."""
    words = words_of(key, who)
    size = math.prod(shape)
    dtype = np.dtype(f"u{width // 8}")
    count = -(-size * width // 32)
    _check_count(count, who)
    if config.threefry_partitionable:
        first, second = _encrypt_each(words, shape)
        if width == 64:
            return _wide(first, second, dtype)
        return convert(bitwise_xor(first, second), dtype)
    if not size:
        return full(shape, 0, dtype)
    first, second = _encrypt(words, count)
    if width == 64:
        return reshape(_wide(first, second, dtype), shape)
    out = concatenate([first, second])
    if width < 32:  # the low bits of each word first
        out = reshape(bitcast_convert_type(out, dtype), -1)
    return reshape(slice_in_dim(out, 0, size), shape)


def _wide(high: Any, low: Any, dtype: np.dtype) -> Any:
    high, low = convert(high, dtype), convert(low, dtype)
    return bitwise_or(shift_left(high, full_like(high, 32)), low)


def bits(key: Any, shape: Any = (), dtype: Any = None) -> Any:
    """Random bits: unsigned integers, each value equally likely.

    ``dtype`` is ``uint8``, ``uint16``, ``uint32`` (the default) or ``uint64``.

    >>> from stretto import random
    >>> random.bits(random.PRNGKey(0), (2,))
    Array([1797259609, 2579123966], dtype=uint32)
    """
    target = default_dtype("int") if dtype is None else as_dtype(dtype)
    if dtype is None:
        target = np.dtype(f"u{target.itemsize}")
    if kind_of(target) != "uint" or target.name not in ("uint8", "uint16", "uint32", "uint64"):
        raise TypeError(f"random.bits: dtype must be unsigned, 8 to 64 bits; got {target}")
    return random_bits(key, 8 * target.itemsize, static_shape(shape, "bits"))


def spread(x: Any, shape: tuple[int, ...], who: str, name: str) -> Any:
    """A parameter of a distribution at the shape of the draw; raises ``ValueError`` if it does not
    fit."""
    extra = len(shape) - x.ndim
    if extra < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[extra:], strict=True)):
        raise ValueError(f"random.{who}: {name} {x.type} does not broadcast to shape {shape}")
    return broadcast_to(x, shape)
