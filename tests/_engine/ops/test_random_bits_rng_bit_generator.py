"""Bits from states: the laws, published vectors, and the layouts of XLA."""

import numpy as np
import pytest

from stretto._engine.api.jit.jit import jit
from stretto._engine.api.vectorize import vmap
from stretto._engine.core.config import enable_x64
from stretto._engine.core.types import array_type
from stretto._engine.ops.random_bits import RandomAlgorithm, RngBitGenerator, rng_bit_generator
from stretto.laws import law

THREE_FRY, PHILOX = RandomAlgorithm.RNG_THREE_FRY, RandomAlgorithm.RNG_PHILOX
STATE = np.array([1, 2, 2**32 - 2, 2**32 - 1], np.uint32)


def draw(shape, dtype, algorithm):
    def bits(key):
        return rng_bit_generator(key, shape, dtype, algorithm)

    return bits


LAWS = [
    law(RngBitGenerator, draw(shape, np.dtype(dtype), algorithm), STATE)
    for algorithm, shape, dtype in [
        (PHILOX, (), "uint32"),
        (PHILOX, (3, 5), "uint32"),
        (PHILOX, (5,), "uint16"),
        (PHILOX, (0, 3), "uint8"),
        (THREE_FRY, (), "uint32"),
        (THREE_FRY, (3, 5), "uint8"),
        (THREE_FRY, (3, 2), "uint32"),
    ]
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


# Random123, kat_vectors: philox4x32 with 10 rounds; all bits of counter and key, the result.
VECTORS = [
    (0, (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (2**32 - 1, (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD)),
]


@pytest.mark.parametrize(("word", "want"), VECTORS)
def test_published_vectors(word, want):
    key, bits = rng_bit_generator(np.full(4, word, np.uint32), (4,))
    assert tuple(map(int, bits)) == want
    after = (word * (2**32 + 1) + 1) % 2**64
    assert tuple(map(int, key)) == (word, word, after % 2**32, after >> 32)


# The first and last bits, and the counter's low word after, that XLA gives for [1, 2, 3, 4].
GIVEN = [
    (PHILOX, (7,), "uint8", 5, 0x64, 0x74),
    (PHILOX, (7,), "uint32", 5, 0x1E8FE864, 0xA4486574),
    (PHILOX, (7,), "uint64", 7, 0x4D5E0BD71E8FE864, 0xBD872C7E2377BF5B),
    (THREE_FRY, (7,), "uint16", 7, 0x33EC, 0xFB5B),
    (THREE_FRY, (7,), "uint64", 10, 0x8617198E5DF433EC, 0x68DF7FBDB06837D0),
]


@pytest.mark.parametrize("case", GIVEN, ids=lambda case: f"{case[0].name}-{case[2]}")
def test_bits_are_those_of_xla(case):
    algorithm, shape, dtype, counter, first, last = case
    with enable_x64():
        key, bits = rng_bit_generator(np.arange(1, 5, dtype=np.uint32), shape, dtype, algorithm)
    assert bits.dtype == dtype
    assert (int(key[2]), int(bits[0]), int(bits[-1])) == (counter, first, last)


def test_where_the_words_of_threefry_lie():
    """Along the first even axis, else the first of the largest, with what is too much left out."""
    words = np.asarray(rng_bit_generator(STATE, (12,), algorithm=THREE_FRY)[1]).reshape(6, 2)
    rows = rng_bit_generator(STATE, (4, 3), algorithm=THREE_FRY)[1]
    np.testing.assert_array_equal(rows, words.reshape(2, 3, 2).swapaxes(1, 2).reshape(4, 3))
    odd = rng_bit_generator(STATE, (3, 3), algorithm=THREE_FRY)[1]
    np.testing.assert_array_equal(odd, rows[:3])
    last = rng_bit_generator(STATE, (3, 4), algorithm=THREE_FRY)[1]
    np.testing.assert_array_equal(last, words.reshape(3, 4))
    short = rng_bit_generator(STATE, (2, 5), algorithm=THREE_FRY)[1]
    np.testing.assert_array_equal(short, words[:5].T)
    short = rng_bit_generator(STATE, (5, 2), algorithm=THREE_FRY)[1]
    np.testing.assert_array_equal(short, words[:5])


def test_both_forms_of_a_state_and_many_counters():
    state = STATE[::-1].copy()  # with a counter that has room to grow
    with enable_x64():
        key, bits = rng_bit_generator(state.view(np.uint64), (5000,))
        half, rest = jit(lambda k: rng_bit_generator(k, (2500,)))(state)
        assert key.dtype == np.uint64
    np.testing.assert_array_equal(bits[:2500], rest)
    np.testing.assert_array_equal(rng_bit_generator(half, (2500,))[1], bits[2500:])


def test_each_mapped_key_gives_what_it_gives_alone():
    keys = np.stack([STATE, STATE + np.uint32(7)], 1)
    bits = vmap(lambda k: rng_bit_generator(k, (40,))[1], in_axes=1)(keys)
    np.testing.assert_array_equal(bits[1], rng_bit_generator(keys[:, 1], (40,))[1])


def test_refusals():
    with pytest.raises(TypeError, match=r"expected a key uint32\[4\] or uint64\[2\], got uint32"):
        rng_bit_generator(STATE[:2], (3,))
    with pytest.raises(TypeError, match="expected dtype to be uint8"):
        rng_bit_generator(STATE, (3,), np.int32)
    with pytest.raises(ValueError, match="algorithm must be one of"):
        rng_bit_generator(STATE, (3,), algorithm=7)
    with pytest.raises(TypeError, match="out_sharding must be a sharding"):
        rng_bit_generator(STATE, (3,), out_sharding="x")


def test_a_bad_dtype_is_named():
    with pytest.raises(TypeError, match=r"^rng_bit_generator: dtype must be a dtype"):
        rng_bit_generator(np.arange(4, dtype=np.uint32), (2,), "bad")


def test_algorithms_have_the_numbers_of_xla():
    assert [(a.name, a.value) for a in RandomAlgorithm] == [
        ("RNG_DEFAULT", 0), ("RNG_THREE_FRY", 1), ("RNG_PHILOX", 2),
    ]  # fmt: skip


@pytest.mark.parametrize("count", [1, 8, 9, 40])
def test_a_few_counters_and_many_are_encrypted_alike(count):
    """Few of them in integers of Python."""
    some = rng_bit_generator(STATE, (4 * count,))[1]
    np.testing.assert_array_equal(some, rng_bit_generator(STATE, (400,))[1][: 4 * count])


def test_wide_numbers_of_threefry_lie_in_a_row():
    """A counter gives one, so there are no halves to lay out."""
    with enable_x64():
        for shape in ((4, 3), (3, 4), (3, 3)):
            rows = rng_bit_generator(STATE, shape, np.uint64, THREE_FRY)[1]
            line = rng_bit_generator(STATE, (shape[0] * shape[1],), np.uint64, THREE_FRY)[1]
            np.testing.assert_array_equal(rows, np.reshape(line, shape))


def test_many_counters_are_encrypted_by_a_program():
    op = RngBitGenerator((1 << 20,), np.dtype(np.uint32), PHILOX)
    for states, compiled in ((4, True), (3, False)):
        assert op.compiled((array_type((states, 4), np.dtype(np.uint32)),)) is compiled


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize("algorithm", [PHILOX, THREE_FRY])
@pytest.mark.parametrize("count", [1, 2, 4, 5])
def test_a_number_of_64_bits_is_two_words_the_low_one_first(algorithm, count, run):
    state = np.arange(1, 5, dtype=np.uint32)
    with enable_x64():
        after, words = run(draw((4 * count,), np.dtype("uint32"), algorithm))(state)
        same, wide = run(draw((2 * count,), np.dtype("uint64"), algorithm))(state)
        np.testing.assert_array_equal(np.asarray(words).view(np.uint64), wide)
        np.testing.assert_array_equal(after, same)


@pytest.mark.parametrize("algorithm", [PHILOX, THREE_FRY])
@pytest.mark.parametrize(("dtype", "width"), [("uint8", 8), ("uint16", 16)])
def test_narrow_numbers_are_the_low_bits_of_words(algorithm, dtype, width):
    state = np.arange(1, 5, dtype=np.uint32)
    _, words = draw((8,), np.dtype("uint32"), algorithm)(state)
    _, narrow = draw((8,), np.dtype(dtype), algorithm)(state)
    np.testing.assert_array_equal(np.asarray(words) % 2**width, narrow)


@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
@pytest.mark.parametrize(
    ("shape", "lines"),
    [((2, 3), (1, 2, 3)), ((3, 2), (3, 2, 1)), ((3, 5), (3, 5, 1)), ((5, 3), (1, 5, 3)),
     ((3, 4, 6), (3, 4, 6)), ((3, 3), (1, 3, 3))],
)  # fmt: skip
def test_the_words_of_a_counter_lie_along_one_axis(shape, lines, run):
    """Of even size, the first of them, or else the first of the largest: both words of Threefry."""
    before, along, after = lines
    op = RngBitGenerator(shape, np.dtype("uint32"), THREE_FRY)
    half = -(-along // 2)
    assert op.extents == lines and op.counters == (before, half, after)
    state = np.arange(1, 5, dtype=np.uint32)
    bits = run(draw(shape, np.dtype("uint32"), THREE_FRY))(state)[1]
    _, plain = draw((2 * before * half * after,), np.dtype("uint32"), THREE_FRY)(state)
    pairs = np.asarray(plain).reshape(before, half, after, 2).transpose(0, 1, 3, 2)
    want = pairs.reshape(before, 2 * half, after)[:, :along]
    np.testing.assert_array_equal(np.asarray(bits).reshape(lines), want)


@pytest.mark.parametrize("algorithm", [PHILOX, THREE_FRY])
@pytest.mark.parametrize(
    ("shape", "dtype"), [((3, 5), "uint32"), ((4,), "uint16"), ((3,), "uint64")]
)
def test_many_states_compiled_have_the_bits_of_each(algorithm, shape, dtype):
    states = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    with enable_x64():
        f = draw(shape, np.dtype(dtype), algorithm)
        for got, want in zip(jit(vmap(vmap(f)))(states), vmap(vmap(f))(states), strict=True):
            np.testing.assert_array_equal(got, want)
        after, bits = f(states[1, 2])
        np.testing.assert_array_equal(got[1, 2], bits)
        np.testing.assert_array_equal(jit(vmap(vmap(f)))(states)[0][1, 2], after)
