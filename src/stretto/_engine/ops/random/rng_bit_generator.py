"""Random bits from a state: the counter-based generators of StableHLO's ``rng_bit_generator``.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011:
Threefry-2x32 with 20 rounds, Philox-4x32 with 10. Which counters are encrypted, and where their
words go, is as in XLA on CPUs. It is written with other operations here, so that the bits are the
same on every device and under ``vmap``.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.bitcast import BitcastConvertType
from stretto._engine.ops.broadcast import broadcast_in_dim
from stretto._engine.ops.comparison import full
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.iota import Iota
from stretto._engine.ops.joining import concatenate
from stretto._engine.ops.layout import move_to_front, reshape
from stretto._engine.ops.random.bits import THREEFRY2X32
from stretto._engine.ops.shape import slice_in_dim
from stretto._engine.ops.sharding import laid_out

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_WORD = 0xFFFFFFFF
_FEW = 8
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


class RandomAlgorithm(enum.IntEnum):
    """The generators; the default is Philox.

    >>> import stretto as st
    >>> st.lax.RandomAlgorithm(2).name
    'RNG_PHILOX'
    """

    RNG_DEFAULT = 0
    RNG_THREE_FRY = 1
    RNG_PHILOX = 2


def _philox(counter: Sequence[Any], key: Any) -> list[Any]:
    """Run ten rounds on four words under a key of 64 bits: uint64, traced or not, or Python's."""
    a, b, c, d = counter
    k, m = key & _WORD, key >> 32
    for step in range(10):
        if step:
            k, m = (k + _WEYL[0]) & _WORD, (m + _WEYL[1]) & _WORD
        first, second = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a, b, c, d = (second >> 32) ^ b ^ k, second & _WORD, (first >> 32) ^ d ^ m, first & _WORD
    return [a, b, c, d]


def _philox_of_arrays(counter: Sequence[np.ndarray], key: np.ndarray) -> Sequence[np.ndarray]:
    """Do as ``_philox``; a few in Python's integers, which take a tenth of the time."""
    shape = counter[0].shape
    if math.prod(shape) > _FEW:
        return _philox(counter, key)
    operands = [np.broadcast_to(x, shape).reshape(-1).tolist() for x in (*counter, key)]
    words = [_philox(row[:4], row[4]) for row in zip(*operands, strict=True)]
    return list(np.array(words, _UINT64).reshape(-1, 4).T.reshape(4, *shape))


class RngBitGenerator(Primitive):
    """A state, or states along leading axes, to the states after and their bits.

    A state is a key and a counter of 64 bits each, low words first. That counter and those after it
    are encrypted (Philox takes the key as the high half of its counters too), and the state after
    has the first one not used.
    """

    multiple = True

    shape: tuple[int, ...]
    dtype: np.dtype
    algorithm: RandomAlgorithm

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ArrayType]:
        (state,) = types
        if (state.dtype, state.shape[-1:]) not in ((_UINT32, (4,)), (_UINT64, (2,))):
            raise TypeError(
                f"rng_bit_generator: expected a key uint32[4] or uint64[2], got {state}"
            )
        if self.dtype.kind != "u":
            raise TypeError(
                f"rng_bit_generator: expected dtype to be uint8, uint16, uint32 or uint64, got "
                f"{self.dtype}; bitcast_convert_type reads the bits as another"
            )
        bits = array_type((*state.shape[:-1], *self.shape), self.dtype)
        return array_type(state.shape, state.dtype), bits

    @property
    def each(self) -> int:
        """The numbers that one counter gives: a word each, two for a uint64."""
        words = 2 if self.algorithm is RandomAlgorithm.RNG_THREE_FRY else 4
        return words // 2 if self.dtype == _UINT64 else words

    @functools.cached_property
    def extents(self) -> tuple[int, int, int]:
        """The sizes before, along and after the axis on which a counter's numbers lie together.

        For the two words of Threefry it is the first axis of even size, else the first of the
        largest; otherwise the numbers lie in a row.
        """
        if self.algorithm is not RandomAlgorithm.RNG_THREE_FRY or self.each == 1 or not self.shape:
            return 1, math.prod(self.shape), 1
        even = [axis for axis, n in enumerate(self.shape) if n % 2 == 0]
        axis = even[0] if even else self.shape.index(max(self.shape))
        before, after = math.prod(self.shape[:axis]), math.prod(self.shape[axis + 1 :])
        return before, self.shape[axis], after

    @functools.cached_property
    def counters(self) -> tuple[int, int, int]:
        """The sizes of the counters; a last one whose numbers are not all needed counts as well."""
        before, along, after = self.extents
        return before, -(-along // self.each), after

    def reference(self, state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        states = np.ascontiguousarray(state).view(_UINT64)
        key, start = states[..., :1], states[..., 1:]
        count = math.prod(self.counters)
        low = start + np.arange(count, dtype=_UINT64)
        if self.algorithm is RandomAlgorithm.RNG_THREE_FRY:
            operands = [
                np.broadcast_to(x.astype(_UINT32), low.shape)
                for x in (key & _WORD, key >> 32, low & _WORD, low >> 32)
            ]
            words = [x.astype(_UINT64) for x in THREEFRY2X32.reference(*operands)]
        else:
            high = key + (low < start)
            words = _philox_of_arrays((low & _WORD, low >> 32, high & _WORD, high >> 32), key)
        batch, (before, blocks, after) = state.shape[:-1], self.counters
        bits = np.stack(
            [x.reshape(*batch, before, blocks, after) for x in self._numbers(words)], -2
        ).astype(self.dtype)
        rows = bits.reshape(*batch, before, blocks * self.each, after)[..., : self.extents[1], :]
        following = np.concatenate([key, start + np.uint64(count)], -1)
        return following.view(state.dtype), rows.reshape((*batch, *self.shape))

    def _numbers(self, words: Sequence[Any]) -> Sequence[Any]:
        if self.dtype != _UINT64:
            return words
        return [x | (y << 32) for x, y in zip(words[::2], words[1::2], strict=True)]

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile from where NumPy takes longer than compiling."""
        return types[0].size * math.prod(self.counters) >= 1 << 22

    def lower(self, b: Any, state: Any) -> Any:
        """Write it with other operations, of 64 bits whatever the setting."""
        with enable_x64():
            return b.inline_many(self._written_out, state)

    def _written_out(self, state: Any) -> tuple[Any, Any]:
        batch = state.shape[:-1]
        states = state
        if state.dtype == _UINT32:
            states = BitcastConvertType(_UINT64)(reshape(state, (*batch, 2, 2)))
        key, start = (slice_in_dim(states, i, i + 1, axis=len(batch)) for i in (0, 1))
        count = math.prod(self.counters)
        wide = (*batch, count)
        first, key_wide = (broadcast_in_dim(x, wide, range(len(wide))) for x in (start, key))
        low = first + Iota(_UINT64, wide, len(batch))()
        if self.algorithm is RandomAlgorithm.RNG_THREE_FRY:
            operands = (key_wide, key_wide >> 32, low, low >> 32)
            pair = THREEFRY2X32(*[convert(x, _UINT32) for x in operands])
            words = [convert(x, _UINT64) for x in pair]
        else:
            high = key_wide + convert(low < first, _UINT64)
            words = _philox((low & _WORD, low >> 32, high & _WORD, high >> 32), key_wide)
        before, blocks, after = self.counters
        bits = concatenate(
            [
                reshape(convert(x, self.dtype), (*batch, before, blocks, 1, after))
                for x in self._numbers(words)
            ],
            len(batch) + 2,
        )
        rows = reshape(bits, (*batch, before, blocks * self.each, after))
        rows = slice_in_dim(rows, 0, self.extents[1], axis=len(batch) + 1)
        following = concatenate([key, start + full(start.shape, count, _UINT64)], len(batch))
        if state.dtype == _UINT32:
            following = reshape(BitcastConvertType(_UINT32)(following), state.shape)
        return following, reshape(rows, (*batch, *self.shape))

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(move_to_front(args[0], axes[0])), (0, 0)

    def padded(self, at: Any, state: Any) -> Any:
        """Any number of states; where bits lie depends on the shape that is asked for."""
        if any(map(is_size, self.shape)):
            raise MissingRuleError(
                f"rng_bit_generator gives no bits of a size that varies, {at.outs[1]}: use "
                f"stretto.random.bits, or take them from as many as there are at most"
            )
        return self(state)


def rng_bit_generator(
    key: ArrayLike,
    shape: Sequence[int],
    dtype: DTypeLike = np.uint32,
    algorithm: RandomAlgorithm | int = RandomAlgorithm.RNG_DEFAULT,
    *,
    out_sharding: ShardingLike | None = None,
) -> tuple[Array, Array]:
    """Make uniform random bits, and the key that comes next.

    Under ``vmap`` each key gives what it gives alone.

    Args:
        key: uint32[4] or uint64[2]: a key of 64 bits and a counter of 64, low words first.
        shape: the sizes of the axes.
        dtype: an unsigned dtype; uint8 and uint16 are the low bits of 32.
        algorithm: the generator; by default Philox.
        out_sharding: where the bits are to be: a ``NamedSharding``, or a ``PartitionSpec`` over
            the mesh in use.

    Returns:
        The next key, and the bits: those that XLA gives on a CPU, on every device.

    Raises:
        TypeError: the key is not one of these, or the dtype is not unsigned.
        ValueError: there is no such algorithm; or the result cannot be split as ``out_sharding``
            says.

    Source: Salmon et al., SC 2011.

    >>> import stretto as st, stretto.numpy as snp
    >>> key, bits = st.lax.rng_bit_generator(snp.arange(4, dtype=snp.uint32), (2,))
    >>> key, bits
    (Array([0, 1, 3, 3], dtype=uint32), Array([ 895509795, 3230209149], dtype=uint32))
    """
    if out_sharding is not None:
        after, bits = rng_bit_generator(key, shape, dtype, algorithm)
        return after, laid_out(bits, out_sharding, "rng_bit_generator")
    try:
        generator = RandomAlgorithm(algorithm)
    except ValueError:
        raise ValueError(
            f"rng_bit_generator: algorithm must be one of {[a.name for a in RandomAlgorithm]}, got "
            f"{algorithm!r}"
        ) from None
    if generator is RandomAlgorithm.RNG_DEFAULT:
        generator = RandomAlgorithm.RNG_PHILOX
    sizes = sizes_of(shape, "rng_bit_generator")
    state = as_value(key, "rng_bit_generator", "key")
    return RngBitGenerator(sizes, dtype_argument(dtype, "rng_bit_generator"), generator)(state)
