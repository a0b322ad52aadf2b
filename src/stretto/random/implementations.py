"""What a key is: the ways to make one of a seed, split it, fold data in, and draw bits.

Three implementations, under JAX's names. Each works on words: uint32 arrays whose last axis holds a
key, and whose leading axes hold many. ``threefry2x32`` is the default: every bit is that of a
published cipher, in one of two layouts of counters (``config.threefry_partitionable``). ``rbg``
splits keys in the same way, and draws bits with Philox, which takes fewer operations a bit;
``unsafe_rbg`` also splits and folds with Philox, by a rule that has not been shown to be sound.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from stretto._engine.core.config import config
from stretto._engine.core.typing import Array
from stretto._engine.ops.bitwise import bitwise_xor
from stretto._engine.ops.broadcast import broadcast_to
from stretto._engine.ops.comparison import zeros_like
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import move_axis, reshape
from stretto._engine.ops.random.bits import RandomBits, threefry2x32
from stretto._engine.ops.random.rng_bit_generator import RandomAlgorithm, RngBitGenerator
from stretto._engine.ops.shape import slice_in_dim

_PHILOX = RandomAlgorithm.RNG_PHILOX
_UINT32 = np.dtype(np.uint32)
_ROWS_PER_KEY = 10
"""How many rows of bits ``unsafe_rbg`` draws for each that it keeps as a key."""


class Implementation(NamedTuple):
    """Functions of words; ``size`` of them are a key.

    ``seed(pair)`` makes a key of the two words of a seed; ``split(words, shape)`` new keys of each,
    along axes before the last; ``fold_in(words, low)`` a key of each and a word of its own;
    ``bits(words, width, shape)`` unsigned integers of each, in the words' leading axes, then shape.
    """

    name: str
    tag: str
    size: int
    seed: Callable[[Array], Array]
    split: Callable[[Array, tuple[int, ...]], Array]
    fold_in: Callable[[Array, Array], Array]
    bits: Callable[[Array, int, tuple[int, ...]], Array]

    def __repr__(self) -> str:
        return self.name

    def __hash__(self) -> int:
        return hash(self.name)

    def __eq__(self, other: object) -> bool:
        return self is other

    def __ne__(self, other: object) -> bool:
        return self is not other

    def __reduce__(self) -> tuple[Any, ...]:
        return implementation, (self.name,)


def _columns(words: Array) -> list[Array]:
    """The words of keys, each without the last axis."""
    axis = words.ndim - 1
    parts = [slice_in_dim(words, i, i + 1, axis=axis) for i in range(words.shape[axis])]
    return [reshape(x, words.shape[:-1]) for x in parts]


def _joined(columns: Sequence[Array]) -> Array:
    return concatenate([reshape(x, (*x.shape, 1)) for x in columns], columns[0].ndim)


def _threefry_split(words: Array, shape: tuple[int, ...]) -> Array:
    if config.threefry_partitionable:
        return RandomBits(32, shape, "pairs")(words)
    return RandomBits(32, (*shape, 2), "original")(words)


def _threefry_fold_in(words: Array, low: Array) -> Array:
    # The two words of the key that has the data as its seed, as counters.
    k0, k1 = _columns(words)
    low = broadcast_to(low, k0.shape)
    return _joined(threefry2x32(k0, k1, zeros_like(low), low))


def _threefry_bits(words: Array, width: int, shape: tuple[int, ...]) -> Array:
    layout = "partitionable" if config.threefry_partitionable else "original"
    return RandomBits(width, shape, layout)(words)


def _twice(pair: Array) -> Array:
    return concatenate([pair, pair], pair.ndim - 1)


def _halves(words: Array) -> Array:
    """The two pairs of words that an rbg key consists of, along an axis before the last."""
    return reshape(words, (*words.shape[:-1], 2, 2))


def _rbg_split(words: Array, shape: tuple[int, ...]) -> Array:
    batch = words.shape[:-1]
    halves = _threefry_split(_halves(words), shape)
    return reshape(move_axis(halves, len(batch), halves.ndim - 2), (*batch, *shape, 4))


def _rbg_fold_in(words: Array, low: Array) -> Array:
    low = low if not low.ndim else reshape(low, (*low.shape, 1))
    return reshape(_threefry_fold_in(_halves(words), low), words.shape)


def _rbg_bits(words: Array, width: int, shape: tuple[int, ...]) -> Array:
    return RngBitGenerator(shape, np.dtype(f"u{width // 8}"), _PHILOX)(words)[1]


def _unsafe_split(words: Array, shape: tuple[int, ...]) -> Array:
    batch, count = words.shape[:-1], math.prod(shape)
    rows = reshape(
        _rbg_bits(words, 32, (_ROWS_PER_KEY * count, 4)), (*batch, count, _ROWS_PER_KEY, 4)
    )
    kept = slice_in_dim(rows, 0, 1, axis=len(batch) + 1)
    return reshape(kept, (*batch, *shape, 4))


def _unsafe_fold_in(words: Array, low: Array) -> Array:
    seeded = _twice(_joined([zeros_like(low), low]))
    rows = _rbg_bits(seeded, 32, (_ROWS_PER_KEY, 4))
    last = slice_in_dim(rows, _ROWS_PER_KEY - 1, _ROWS_PER_KEY, axis=low.ndim)
    return bitwise_xor(words, broadcast_to(reshape(last, (*low.shape, 4)), words.shape))


IMPLEMENTATIONS = {
    scheme.name: scheme
    for scheme in (
        Implementation(
            "threefry2x32",
            "fry",
            2,
            lambda pair: pair,
            _threefry_split,
            _threefry_fold_in,
            _threefry_bits,
        ),
        Implementation("rbg", "rbg", 4, _twice, _rbg_split, _rbg_fold_in, _rbg_bits),
        Implementation("unsafe_rbg", "urbg", 4, _twice, _unsafe_split, _unsafe_fold_in, _rbg_bits),
    )
}


def implementation(name: str | None = None) -> Implementation:
    """The implementation of this name, or ``config.default_prng_impl``."""
    return IMPLEMENTATIONS[config.default_prng_impl if name is None else name]
