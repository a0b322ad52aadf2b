"""Random bits from a key, and from a state.

A key gives them by the Threefry-2x32 block cipher, which encrypts counters. The two layouts of
counters are JAX's. A state gives them by the counter-based generators of StableHLO's
``rng_bit_generator``: Threefry-2x32 with 20 rounds, Philox-4x32 with 10. Which counters those
encrypt, and where their words go, is as in XLA on CPUs; they are written with other operations
here, so that the bits are the same on every device and under ``vmap``.

Source: Salmon, Moraes, Dror, Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011; 20
rounds, rotations from its table 2.
"""

from __future__ import annotations

import enum
import functools
import math
from collections.abc import Sequence
from typing import Any

import ml_dtypes
import numpy as np

from stretto._engine.core.config import enable_x64
from stretto._engine.core.errors import MissingRuleError
from stretto._engine.core.integers import sizes_of
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.primitive import CARRIED, NOT_LINEAR, ZERO_DERIVATIVE, Primitive
from stretto._engine.core.program import Program
from stretto._engine.core.recorder import record_shared
from stretto._engine.core.sizes import is_size
from stretto._engine.core.types import ArrayType, array_type, kind_of
from stretto._engine.core.typing import Array, ArrayLike, DTypeLike, ShardingLike
from stretto._engine.ops.arithmetic import ADD, MUL, REM, SUB
from stretto._engine.ops.bitcast import BitcastConvertType, bitcast_convert_type
from stretto._engine.ops.bits import OR, SHIFT_LEFT, SHIFT_RIGHT_LOGICAL, XOR
from stretto._engine.ops.broadcast import broadcast_in_dim, broadcast_to
from stretto._engine.ops.comparison import EQ, SELECT, full, full_like, lt, select
from stretto._engine.ops.convert import convert, dtype_argument
from stretto._engine.ops.elementwise import Elementwise, align_mapped, broadcast_shapes
from stretto._engine.ops.iota import Iota, iota
from stretto._engine.ops.layout import laid_out, move_axis, move_to_front, reshape
from stretto._engine.ops.shape import concatenate, slice_in_dim

_UINT32, _UINT64 = np.dtype(np.uint32), np.dtype(np.uint64)
_ROTATIONS = ((13, 15, 26, 6), (17, 29, 16, 24))
_PARITY = 0x1BD11BDA
_WORD = 0xFFFFFFFF
_BLOCK = 1 << 13
_FEW = 8


class Threefry2x32(Primitive):
    """The cipher of pairs of counters under pairs of keys, element by element."""

    padded = CARRIED
    name = "threefry2x32"
    multiple = True

    def infer(self, *types: ArrayType) -> tuple[ArrayType, ArrayType]:
        first = types[0]
        if any(t.shape != first.shape or t.dtype != _UINT32 for t in types):
            raise TypeError(
                f"threefry2x32: expected uint32 arrays of one shape, got "
                f"{', '.join(map(str, types))}"
            )
        out = array_type(first.shape, _UINT32)
        return out, out

    def reference(
        self, k0: np.ndarray, k1: np.ndarray, c0: np.ndarray, c1: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """Use NumPy's integers, in blocks that stay in the cache; Python's for a few."""
        k0, k1 = _scalar_or_flat(k0), _scalar_or_flat(k1)
        out0, out1 = _encrypt(k0, k1, c0.reshape(-1), c1.reshape(-1))
        return out0.reshape(c0.shape), out1.reshape(c0.shape)

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile from where NumPy takes longer than compiling."""
        return types[0].size >= 1 << 22

    def lower(self, b: Any, k0: Any, k1: Any, c0: Any, c1: Any) -> list[Any]:
        """Give a call of a function that holds the rounds, written once a shape, and kept apart."""
        if not c0.type.size:
            return [b.splat(0, out) for out in b.outs]
        operands = (k0, k1, c0, c1)
        program = _program(self, tuple([x.type for x in operands]))
        return b.inline_many(_unpack, *b.call(program, operands, apart=True))

    def written_out(self, *words: Any) -> list[Any]:
        """Write all rounds, operation by operation; the two words as one of 64 bits."""
        return [_pack(*_rounds(*words))]

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        values, axis = align_mapped(size, args, axes)
        return self(*values), (axis, axis)


THREEFRY2X32 = Threefry2x32()


def _scalar_or_flat(x: np.ndarray) -> np.ndarray:
    """Return the element that a broadcast view repeats, else the elements in a row."""
    return x.reshape(-1) if any(x.strides) or not x.size else x[(0,) * x.ndim]


def _encrypt(k0: Any, k1: Any, c0: np.ndarray, c1: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the cipher of rows of words; those of a key may be one for all."""
    operands, size = (k0, k1, c0, c1), c0.size
    if size <= _FEW:
        lists = [x.tolist() if x.ndim else [int(x)] * size for x in operands]
        words = [_cipher_one(*row) for row in zip(*lists, strict=True)]
        out = np.array(words, _UINT32).reshape(size, 2)
        return out[:, 0], out[:, 1]
    out = np.empty((2, size), _UINT32)
    for start in range(0, size, _BLOCK):
        part = slice(start, start + _BLOCK)
        out[0, part], out[1, part] = _cipher(*[x[part] if x.ndim else x for x in operands])
    return out[0], out[1]


def _cipher(
    k0: np.ndarray, k1: np.ndarray, c0: np.ndarray, c1: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Encrypt in five groups of four rounds, a word of the key added after each group."""
    keys = (k0, k1, k0 ^ k1 ^ np.uint32(_PARITY))
    x0, x1 = np.add(c0, k0), np.add(c1, k1)
    spare = np.empty_like(x1)
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            np.add(x0, x1, out=x0)
            np.left_shift(x1, np.uint32(r), out=spare)
            np.right_shift(x1, np.uint32(32 - r), out=x1)
            np.bitwise_or(x1, spare, out=x1)
            np.bitwise_xor(x1, x0, out=x1)
        np.add(x0, keys[(group + 1) % 3], out=x0)
        np.add(x1, keys[(group + 2) % 3] + np.uint32(group + 1), out=x1)
    return x0, x1


def _cipher_one(k0: int, k1: int, x0: int, x1: int) -> tuple[int, int]:
    """Do as ``_cipher``, with one pair of Python integers."""
    keys = (k0, k1, k0 ^ k1 ^ _PARITY)
    x0, x1 = x0 + k0 & _WORD, x1 + k1 & _WORD
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = x0 + x1 & _WORD
            x1 = (x1 << r & _WORD | x1 >> 32 - r) ^ x0
        x0 = x0 + keys[(group + 1) % 3] & _WORD
        x1 = x1 + keys[(group + 2) % 3] + group + 1 & _WORD
    return x0, x1


def _rounds(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """Write the cipher with other operations, of values of one shape."""
    word = lambda n: full(c0.shape, n, _UINT32)
    keys = (k0, k1, XOR(XOR(k0, k1), word(_PARITY)))
    x0, x1 = ADD(c0, k0), ADD(c1, k1)
    for group in range(5):
        for r in _ROTATIONS[group % 2]:
            x0 = ADD(x0, x1)
            rotated = OR(SHIFT_LEFT(x1, word(r)), SHIFT_RIGHT_LOGICAL(x1, word(32 - r)))
            x1 = XOR(x0, rotated)
        x0 = ADD(x0, keys[(group + 1) % 3])
        x1 = ADD(x1, ADD(keys[(group + 2) % 3], word(group + 1)))
    return x0, x1


def _pack(x0: Any, x1: Any) -> Any:
    """Return both words as one integer of 64 bits, the first word low.

    A kernel has one result: what made two of them would compute all rounds for each.
    """
    return _integers(x1, x0, _UINT64)


def _unpack(packed: Any) -> list[Any]:
    """Return the two words again."""
    pairs, axis = bitcast_convert_type(packed, _UINT32), packed.ndim
    return [reshape(slice_in_dim(pairs, i, i + 1, axis=axis), packed.shape) for i in (0, 1)]


@functools.lru_cache(256)
def _program(primitive: Primitive, types: tuple[ArrayType, ...]) -> Program:
    """Return what a primitive is written out as, without the positions of its first caller.

    It is called, and the compiler must leave it a call: fused with what reads the bits, the rounds
    would be computed once for each reader, and take many times as long to compile.
    """
    source: Any = primitive
    return record_shared(source.written_out, types, primitive.name)


def _integers(x0: Any, x1: Any, dtype: np.dtype) -> Any:
    """Return integers of 64 bits, the first word high."""
    return OR(SHIFT_LEFT(convert(x0, dtype), full(x0.shape, 32, dtype)), convert(x1, dtype))


class RandomBits(Primitive):
    """Unsigned integers of random bits, for a key or an array of keys, which lie on the last axis.

    ``layout`` says which counters are encrypted, and what becomes of the two words of each:

    - ``original``: 0 to n - 1 in two halves, the first of an odd n with 0 in place of n; all first
      words, then all second words, cut into integers low bits first.
    - ``partitionable``: each element's 64-bit index; the two words as one of 64 bits, or their
      exclusive or.
    - ``pairs``: the same, and both words along a new last axis.
    """

    width: int
    shape: tuple[int, ...]
    layout: str

    def infer(self, key: ArrayType) -> ArrayType:
        if key.dtype != _UINT32 or not key.ndim or key.shape[-1] != 2:
            raise TypeError(f"random_bits: expected keys, uint32[..., 2], got {key}")
        pair = (2,) if self.layout == "pairs" else ()
        return array_type((*key.shape[:-1], *self.shape, *pair), self.dtype)

    @property
    def dtype(self) -> np.dtype:
        """The unsigned dtype of this width."""
        return np.dtype(f"u{self.width // 8}")

    @functools.cached_property
    def count(self) -> int:
        """Return the number of 32-bit words in the original layout."""
        return -(-math.prod(self.shape) * self.width // 32)

    def reference(self, key: np.ndarray) -> np.ndarray:
        """Return the cipher of NumPy's counters, its words viewed as the integers."""
        batch, dtype = key.shape[:-1], self.dtype
        size = math.prod(self.shape)
        original = self.layout == "original"
        first = np.arange(-(-self.count // 2) if original else size, dtype=_UINT32)
        if original:
            second = first + np.uint32(first.size)
            if self.count % 2:
                second[-1] = 0
        else:
            first, second = np.zeros_like(first), first
        if batch:
            wide = (*batch, first.size)
            keys = [np.broadcast_to(key[..., i : i + 1], wide) for i in (0, 1)]
            counters = [np.broadcast_to(x, wide) for x in (first, second)]
            x0, x1 = THREEFRY2X32.reference(*keys, *counters)
        else:
            x0, x1 = _encrypt(key[0], key[1], first, second)
        if self.layout == "pairs":
            return np.stack([x0, x1], -1).reshape((*batch, *self.shape, 2))
        if self.width == 64:
            bits = x0.astype(dtype) << dtype.type(32) | x1
        elif original:
            bits = np.concatenate([x0, x1], -1)
            bits = bits.view(dtype)[..., :size]
        else:
            bits = (x0 ^ x1).astype(dtype)
        return bits.reshape((*batch, *self.shape))

    def compiled(self, types: tuple[ArrayType, ...]) -> bool:
        """Compile from where NumPy takes longer than compiling."""
        return types[0].size * self.count >= 1 << 24

    def lower(self, b: Any, key: Any) -> Any:
        """Return a call of a function that holds counters and rounds, kept apart."""
        (out,) = b.outs
        if not out.size:
            return b.splat(0, out)
        return b.call(_program(self, (key.type,)), (key,), apart=True)[0]

    def written_out(self, key: Any) -> list[Any]:
        """Write the rounds of the counters, and their words as the integers."""
        batch = key.shape[:-1]
        k0, k1 = (slice_in_dim(key, i, i + 1, axis=len(batch)) for i in (0, 1))
        size = math.prod(self.shape)
        if self.layout == "original":
            half = -(-self.count // 2)
            first = iota(_UINT32, half)
            second = ADD(first, full((half,), half, _UINT32))
            if self.count % 2:
                last = full((half,), self.count, _UINT32)
                second = SELECT(EQ(second, last), full((half,), 0, _UINT32), second)
        else:
            first, second = full((size,), 0, _UINT32), iota(_UINT32, size)
        shape = (*batch, first.size)
        x0, x1 = _rounds(*[broadcast_to(x, shape) for x in (k0, k1, first, second)])
        if self.layout == "pairs":
            pairs = bitcast_convert_type(_pack(x0, x1), _UINT32)
            return [reshape(pairs, (*batch, *self.shape, 2))]
        if self.width == 64:
            bits = _integers(x0, x1, self.dtype)
        elif self.layout == "original":
            pairs = bitcast_convert_type(_pack(x0, x1), _UINT32)
            first_words_first = move_axis(pairs, len(batch) + 1, len(batch))
            bits = reshape(first_words_first, (*batch, 2 * first.size))
            if self.width < 32:
                bits = reshape(bitcast_convert_type(bits, self.dtype), (*batch, -1))
            bits = slice_in_dim(bits, 0, size, axis=len(batch))
        else:
            bits = convert(XOR(x0, x1), self.dtype)
        return [reshape(bits, (*batch, *self.shape))]

    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def vmap(self, size: int, args: Sequence[Any], axes: Sequence[int | None]) -> Any:
        return self(move_to_front(args[0], axes[0])), 0

    def padded(self, at: Any, key: Any) -> Any:
        """Each element's counters are computed from its place in the array of the true size."""
        batch, shape = key.shape[:-1], at.shape(self.shape)
        whole = (*batch, *shape)
        size = convert(at.size(math.prod(self.shape)), _UINT32)
        rank = broadcast_to(convert(at.rank(self.shape), _UINT32), whole)
        parts = [slice_in_dim(key, i, i + 1, 1, len(batch)) for i in (0, 1)]
        k0, k1 = (broadcast_in_dim(reshape(w, batch), whole, range(len(batch))) for w in parts)
        encrypt = lambda c0, c1: THREEFRY2X32(k0, k1, c0, c1)
        zero = full(whole, 0, _UINT32)
        if self.layout != "original":
            x0, x1 = encrypt(zero, rank)
            if self.layout == "pairs":
                pair = [reshape(x, (*whole, 1)) for x in (x0, x1)]
                return concatenate(pair, len(whole))
            if self.width == 64:
                return _integers(x0, x1, self.dtype)
            return convert(x0 ^ x1, self.dtype)
        if self.width == 64:
            x0, x1 = encrypt(rank, rank + broadcast_to(size, whole))
            return _integers(x0, x1, self.dtype)
        each = 32 // self.width
        count = (size + (each - 1)) // each
        half = broadcast_to((count + 1) >> 1, whole)
        word, part = rank // each, rank % each
        first = lt(word, half)
        second = select(lt(word + half, broadcast_to(count, whole)), word + half, zero)
        x0, x1 = encrypt(select(first, word, word - half), select(first, second, word))
        bits = select(first, x0, x1) >> (part * self.width)
        return convert(bits & ((1 << self.width) - 1), self.dtype)


def threefry2x32(k0: Any, k1: Any, c0: Any, c1: Any) -> tuple[Any, Any]:
    """Give the two words that Threefry-2x32 makes of counter words ``c0, c1`` under key ``k0, k1``.

    All uint32; broadcast to one shape. Source: Salmon et al., SC 2011.

    >>> import stretto.numpy as snp
    >>> zero = snp.uint32(0)
    >>> [hex(int(word)) for word in threefry2x32(zero, zero, zero, zero)]
    ['0x6b200159', '0x99ba4efe']
    """
    values = [
        as_value(x, "threefry2x32", name)
        for x, name in zip((k0, k1, c0, c1), ("k0", "k1", "c0", "c1"), strict=True)
    ]
    shape = broadcast_shapes("threefry2x32", *[x.shape for x in values])
    return THREEFRY2X32(*[broadcast_to(x, shape) for x in values])


# Random bits as numbers: floats in [0, 1), and integers below a bound.
#
# Both treat each element alone; as primitives they are one step where nothing is compiled.


def bits_width(dtype: np.dtype) -> int:
    """Return the number of random bits from which ``unit_float`` makes one number of this dtype."""
    info = ml_dtypes.finfo(dtype)
    return 8 if info.nmant < 8 else int(info.bits)


class UnitFloat(Elementwise):
    """The highest bits as the mantissa of a float in [1, 2), less 1."""

    accepts = frozenset({"uint"})
    splat = False
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    dtype: np.dtype

    def infer(self, *types: ArrayType) -> ArrayType:
        """Return the floating dtype; refuses other numbers of bits."""
        (x,) = types
        if kind_of(x.dtype) != "uint" or 8 * x.dtype.itemsize != bits_width(self.dtype):
            raise TypeError(
                f"unit_float: expected uint{bits_width(self.dtype)} for {self.dtype}, got {x}"
            )
        return array_type(x.shape, self.dtype)

    def reference(self, x: np.ndarray) -> np.ndarray:
        shift, one = self._constants(x.dtype)
        word = np.right_shift(x, x.dtype.type(shift), dtype=x.dtype).astype(one.dtype, copy=False)
        return np.bitwise_or(word, one).view(self.dtype) - self.dtype.type(1)

    def _constants(self, bits: np.dtype) -> tuple[int, np.ndarray]:
        one = np.ones((), self.dtype).view(f"u{self.dtype.itemsize}")
        return 8 * bits.itemsize - ml_dtypes.finfo(self.dtype).nmant, one

    def lower(self, b: Any, x: Any) -> Any:
        def written_out(bits: Any) -> Any:
            shift, one = self._constants(bits.dtype)
            word = convert(SHIFT_RIGHT_LOGICAL(bits, full_like(bits, shift)), one.dtype)
            number = bitcast_convert_type(OR(word, full_like(word, one)), self.dtype)
            return SUB(number, full_like(number, 1))

        return b.inline(written_out, x)

    def onnx(self, b: Any, x: Any) -> Any:
        """Multiply the highest bits by a power of two, which is as exact, and has fewer nodes."""

        def written_out(bits: Any) -> Any:
            shift, _ = self._constants(bits.dtype)
            word = convert(SHIFT_RIGHT_LOGICAL(bits, full_like(bits, shift)), self.dtype)
            return MUL(word, full_like(word, 2.0 ** -ml_dtypes.finfo(self.dtype).nmant))

        return b.inline(written_out, x)


class WideRemainder(Elementwise):
    """``(upper * 2**bits + lower) mod span``; a span of 0 stands for ``2**bits``."""

    accepts = frozenset({"uint"})
    splat = False
    jvp = ZERO_DERIVATIVE
    transpose = NOT_LINEAR

    def reference(self, upper: np.ndarray, lower: np.ndarray, span: np.ndarray) -> np.ndarray:
        """Multiply remainders, which wraps; modulo 0 changes nothing."""
        whole = span == 0
        safe = np.where(whole, 1, span).astype(span.dtype)
        half = span.dtype.type(1 << 4 * span.dtype.itemsize)
        factor = half % safe
        factor = factor * factor % safe  # 2**bits mod span
        return np.where(whole, lower, (upper % safe * factor + lower % safe) % safe)

    def lower(self, b: Any, upper: Any, lower: Any, span: Any) -> Any:
        def written_out(upper: Any, lower: Any, span: Any) -> Any:
            factor = REM(full_like(span, 1 << 4 * span.dtype.itemsize), span)
            factor = REM(MUL(factor, factor), span)
            return REM(ADD(MUL(REM(upper, span), factor), REM(lower, span)), span)

        return b.inline(written_out, upper, lower, span)


WIDE_REMAINDER = WideRemainder()


def unit_float(bits: Any, dtype: np.dtype) -> Any:
    """Make floats in [0, 1), as many as the mantissa has values, of unsigned integers.

    >>> import stretto.numpy as snp
    >>> unit_float(snp.array([0, 2**31, 2**32 - 1], dtype=snp.uint32), np.dtype("float32"))
    Array([0.       , 0.5      , 0.9999999], dtype=float32)
    """
    return UnitFloat(dtype)(as_value(bits, "unit_float", "bits"))


def wide_remainder(upper: Any, lower: Any, span: Any) -> Any:
    """Return integers below ``span`` from twice their number of bits, all unsigned and of one type.

    >>> import stretto.numpy as snp
    >>> upper, lower, span = (snp.array(n, dtype=snp.uint8) for n in (2, 7, 10))
    >>> wide_remainder(upper, lower, span)  # (2 * 256 + 7) mod 10
    Array(9, dtype=uint8)
    """
    operands = zip((upper, lower, span), ("upper", "lower", "span"), strict=True)
    return WIDE_REMAINDER(*[as_value(x, "wide_remainder", name) for x, name in operands])


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
    return list(np.array(words, _UINT64).T.reshape(4, *shape))


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
        """Return the sizes before, along and after the axis on which a counter's numbers lie.

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
        """Return the sizes of the counters; a last one of which not all is needed counts too."""
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
        """Take any number of states; where bits lie depends on the shape that is asked for."""
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
