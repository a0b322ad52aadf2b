"""Keys: made from a seed, split, folded with data, and turned into random bits.

Every draw takes a key, and equal keys give equal numbers, whatever transformation the draw is
under. A key is typed (``key``), or the raw words of one (``PRNGKey``), which are taken to be of
``config.default_prng_impl``; functions return the kind that they take.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.interpreter import as_value, constant
from stretto._engine.core.sizes import exceeds
from stretto._engine.core.types import as_dtype, default_dtype, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, Key, ShapeLike, ShardingLike
from stretto._engine.ops.bits import shift_right_logical
from stretto._engine.ops.comparison import full_like, zeros_like
from stretto._engine.ops.convert import convert
from stretto._engine.ops.layout import laid_out, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim
from stretto.random.draw_arguments import draw, static_shape
from stretto.random.key_arrays import (
    IMPLEMENTATIONS,
    Implementation,
    KeyArray,
    KeyDtype,
    implementation,
)

_UINT32 = np.dtype(np.uint32)
_WORD = 0xFFFFFFFF


def _resolve(impl: str | KeyDtype | None, caller: str) -> Implementation:
    """Return the implementation of a name or a dtype, the default for None."""
    if isinstance(impl, KeyDtype):
        return impl.implementation
    if impl is None or (isinstance(impl, str) and impl in IMPLEMENTATIONS):
        return implementation(impl)
    raise ValueError(
        f"random.{caller}: impl must be one of {', '.join(map(repr, IMPLEMENTATIONS))}, or a dtype "
        f"of keys; got {impl!r}"
    )


def _one_of(impl: str | KeyDtype | None, dtype: KeyDtype | None, caller: str) -> Implementation:
    if impl is not None and dtype is not None:
        raise ValueError(f"random.{caller}: give impl or dtype, and not both")
    return _resolve(dtype if impl is None else impl, caller)


def _of_data(keys: Key, caller: str, single: bool = False) -> tuple[Array, Implementation]:
    """Return the words of keys and their implementation; ``TypeError`` for what is no key."""
    if isinstance(keys, KeyArray):
        words, scheme = keys._words, keys._implementation
        if not (single and keys.shape):
            return words, scheme
        got = f"keys of shape {keys.shape}"
    else:
        words, scheme = as_value(keys, f"random.{caller}", "key"), implementation()
        fits = words.dtype == _UINT32 and words.shape[-1:] == (scheme.size,)
        if fits and not (single and words.ndim > 1):
            return words, scheme
        got = str(words.type)
    batched = words.ndim > 1 and words.shape[-1] == scheme.size
    hint = " (for several keys use vmap)" if batched else ""
    raise TypeError(
        f"random.{caller}: expected a key, uint32[{scheme.size}], got {got}{hint}; make one with "
        f"random.key(seed)"
    )


def as_key(key: Key, caller: str) -> Key:
    """Return one key, typed or a value of raw words; refuses what is not one."""
    words, _ = _of_data(key, caller, single=True)
    return key if isinstance(key, KeyArray) else words


def _as_key_array(words: Array, scheme: Implementation) -> Key:
    """Return a ``KeyArray``, which annotations call a ``Key``, as they do an array of words."""
    keys: Any = KeyArray(words, scheme)
    return keys


def _like(key: Key, words: Array) -> Key:
    """Return words as keys of the kind of ``key``."""
    return _as_key_array(words, key._implementation) if isinstance(key, KeyArray) else words


def _words_of_seed(seed: ArrayLike, scheme: Implementation, caller: str) -> Array:
    """Return the words of the key of a seed."""
    if isinstance(seed, np.ndarray) and not seed.ndim and seed.dtype.kind in "iu":
        seed = seed.item()
    if isinstance(seed, (int, np.integer)):
        number = int(seed)
        if not -(1 << 63) <= number < 1 << 64:
            raise OverflowError(f"random.{caller}: the seed {number} has more than 64 bits")
        # Raw keys are JAX's to the bit, which the values that others publish are drawn with.
        as_jax = caller == "PRNGKey" or config.integer_overflow == "wrap"
        short = -(1 << 31) <= number < 1 << 32 or as_jax
        high = 0 if short and not config.enable_x64 else number >> 32 & _WORD
        return scheme.seed(constant(np.array([high, number & _WORD], _UINT32)))
    if isinstance(seed, KeyArray):
        raise TypeError(f"random.{caller}: seed must be one integer, got a key")
    value = as_value(seed, f"random.{caller}", "seed")
    if value.ndim or kind_of(value.dtype) not in ("int", "uint"):
        raise TypeError(f"random.{caller}: seed must be one integer, got {value.type}")
    low = convert(value, _UINT32)
    high = zeros_like(low)
    if value.dtype.itemsize == 8:
        high = convert(shift_right_logical(value, full_like(value, 32)), _UINT32)
    return scheme.seed(concatenate([reshape(high, (1,)), reshape(low, (1,))]))


def PRNGKey(seed: ArrayLike, *, impl: str | KeyDtype | None = None) -> Array:
    """Make a raw key from an integer seed: an array of words, its high and its low 32 bits.

    It is JAX's key to the bit: without 64-bit types the low 32 bits of the seed count, and the high
    word is 0. ``key`` uses both words of a longer seed.

    Args:
        seed: one integer.
        impl: ``"threefry2x32"``, or ``"rbg"`` or ``"unsafe_rbg"``, whose keys are the two words
            twice; by default ``config.default_prng_impl``, which is what functions take a raw key
            to be of.

    Returns:
        uint32[2], or uint32[4].

    Raises:
        OverflowError: the seed has more than 64 bits.
        TypeError: the seed is not one integer.
        ValueError: there is no such implementation.

    >>> from stretto import random
    >>> random.PRNGKey(42)
    Array([ 0, 42], dtype=uint32)
    """
    return _words_of_seed(seed, _resolve(impl, "PRNGKey"), "PRNGKey")


def key(
    seed: ArrayLike, *, impl: str | KeyDtype | None = None, dtype: KeyDtype | None = None
) -> Key:
    """Make a typed key from an integer seed, around its high and its low 32 bits.

    Negative seeds count as two's complement, of 32 bits where those hold the seed and 64-bit types
    are off, so that seeds of 32 bits give the words that ``PRNGKey`` gives. Of longer ones both
    words are used: ``config.integer_overflow = "wrap"`` loses the high one, as JAX does.

    Args:
        seed: one integer.
        impl: the implementation, as for ``PRNGKey``; the key remembers it.
        dtype: the same, as a dtype of keys; give one of the two.

    Returns:
        A ``KeyArray`` of shape ().

    Raises:
        OverflowError: the seed has more than 64 bits.
        TypeError: the seed is not one integer.
        ValueError: there is no such implementation, or both ``impl`` and ``dtype`` are given.

    >>> from stretto import random
    >>> random.key(42)
    Array((), dtype=key<fry>) overlaying:
    [ 0 42]
    """
    scheme = _one_of(impl, dtype, "key")
    return _as_key_array(_words_of_seed(seed, scheme, "key"), scheme)


def key_data(keys: Key) -> Array:
    """Return the words of keys.

    Args:
        keys: typed or raw keys.

    Returns:
        (*shape, n), uint32; raw keys as they are.

    Raises:
        TypeError: ``keys`` are not keys.

    >>> from stretto import random
    >>> random.key_data(random.key(42))
    Array([ 0, 42], dtype=uint32)
    """
    return _of_data(keys, "key_data")[0]


def wrap_key_data(
    key_bits_array: ArrayLike, *, impl: str | KeyDtype | None = None, dtype: KeyDtype | None = None
) -> Key:
    """Make typed keys from their words; undoes ``key_data``.

    Args:
        key_bits_array: (*shape, n), uint32.
        impl: the implementation; by default ``config.default_prng_impl``.
        dtype: the same, as a dtype of keys; give one of the two.

    Returns:
        A ``KeyArray`` of this shape.

    Raises:
        TypeError: the words are of another dtype, or the last axis is of another size.
        ValueError: there is no such implementation, or both ``impl`` and ``dtype`` are given.

    >>> import stretto.numpy as snp
    >>> from stretto import random
    >>> random.wrap_key_data(snp.zeros((3, 2), dtype=snp.uint32)).shape
    (3,)
    """
    scheme = _one_of(impl, dtype, "wrap_key_data")
    words = as_value(key_bits_array, "random.wrap_key_data", "key_bits_array")
    if words.dtype != _UINT32 or words.shape[-1:] != (scheme.size,):
        raise TypeError(
            f"random.wrap_key_data: expected key_bits_array to be uint32[..., {scheme.size}] for "
            f"{scheme.name}, got {words.type}"
        )
    return _as_key_array(words, scheme)


def key_impl(keys: Key) -> str:
    """Return the name of the implementation of keys.

    Args:
        keys: typed or raw keys.

    Returns:
        The name, such as ``"threefry2x32"``.

    Raises:
        TypeError: ``keys`` are not keys.

    >>> from stretto import random
    >>> random.key_impl(random.key(0))
    'threefry2x32'
    """
    return _of_data(keys, "key_impl")[1].name


def key_dtype(impl_spec: str | KeyDtype | None = None) -> KeyDtype:
    """Return the dtype of an implementation's typed keys.

    Args:
        impl_spec: the implementation; by default ``config.default_prng_impl``.

    Returns:
        The dtype.

    Raises:
        ValueError: there is no such implementation.

    >>> from stretto import random
    >>> random.key_dtype("rbg")
    key<rbg>
    """
    return KeyDtype(_resolve(impl_spec, "key_dtype"))


def clone(key: Key) -> Key:
    """Return the same keys, to be used once more on purpose.

    Args:
        key: typed or raw keys.

    Returns:
        The keys.

    Raises:
        TypeError: ``key`` is not a key.

    >>> from stretto import random
    >>> random.clone(random.PRNGKey(1))
    Array([0, 1], dtype=uint32)
    """
    return _like(key, _of_data(key, "clone")[0])


def _check_count(n: int, caller: str) -> None:
    if exceeds(n, (1 << 32) - 1):
        raise ValueError(
            f"random.{caller}: {n} words of 32 bits from one key are too many; split the key"
        )


def split(key: Key, num: int | Sequence[int] = 2) -> Key:
    """Make new keys from a key, which should not be used again.

    Args:
        key: a key, typed or raw.
        num: how many, or a shape.

    Returns:
        An array of keys, along the first axis or with this shape; typed if ``key`` is.

    Raises:
        TypeError: ``key`` is not one key.
        ValueError: a size is negative, or too many words are asked for.

    >>> from stretto import random
    >>> key, subkey = random.split(random.PRNGKey(42))
    >>> subkey
    Array([255383827, 267815257], dtype=uint32)
    """
    words, scheme = _of_data(key, "split", single=True)
    shape = static_shape(num, "split")
    _check_count(scheme.size * math.prod(shape), "split")
    return _like(key, scheme.split(words, shape))


def parts(key: Key, count: int, caller: str = "split") -> list[Key]:
    """Return the ``count`` keys of a split, each by itself."""
    words, scheme = _of_data(key, caller, single=True)
    rows = scheme.split(words, (count,))
    each = [reshape(slice_in_dim(rows, i, i + 1), (scheme.size,)) for i in range(count)]
    return [_like(key, words) for words in each]


def fold_in(key: Key, data: ArrayLike) -> Key:
    """Make a new key from a key and an integer, such as the number of a step or of a member.

    Args:
        key: a key, typed or raw.
        data: one integer of at most 32 bits.

    Returns:
        A key; typed if ``key`` is.

    Raises:
        TypeError: ``key`` is not one key, or ``data`` is not one integer.
        OverflowError: ``data`` has more than 32 bits.

    >>> from stretto import random
    >>> random.fold_in(random.key(42), 7).shape
    ()
    """
    words, scheme = _of_data(key, "fold_in", single=True)
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
    return _like(key, scheme.fold_in(words, low))


def random_bits(key: Key, width: int, shape: tuple[int, ...], caller: str = "bits") -> Array:
    """Draw unsigned integers of 8, 16, 32 or 64 random bits each."""
    words, scheme = _of_data(key, caller, single=True)
    _check_count(-(-math.prod(shape) * width // 32), caller)
    return scheme.bits(words, width, shape)


@draw
def bits(
    key: Key,
    shape: ShapeLike = (),
    dtype: DTypeLike | None = None,
    *,
    out_sharding: ShardingLike | None = None,
) -> Array:
    """Draw random bits: unsigned integers, each value equally likely.

    Args:
        dtype: ``uint8``, ``uint16``, ``uint32`` or ``uint64``; by default as wide as the default
            integer.

    Returns:
        Integers of this shape and dtype.

    Raises:
        TypeError: ``key`` is not one key, or ``dtype`` is another.
        ValueError: a size is negative.

    >>> from stretto import random
    >>> random.bits(random.PRNGKey(0), (2,))
    Array([ 928981903, 3453687069], dtype=uint32)
    """
    if out_sharding is not None:
        return laid_out(bits(key, shape, dtype), out_sharding, "random.bits")
    target = default_dtype("int") if dtype is None else as_dtype(dtype)
    if dtype is None:
        target = np.dtype(f"u{target.itemsize}")
    if kind_of(target) != "uint" or target.name not in ("uint8", "uint16", "uint32", "uint64"):
        raise TypeError(f"random.bits: dtype must be unsigned, 8 to 64 bits; got {target}")
    return random_bits(key, 8 * target.itemsize, static_shape(shape, "bits"))
