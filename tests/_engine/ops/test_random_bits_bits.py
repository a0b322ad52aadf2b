"""Threefry-2x32: the laws, and the test vectors of its authors."""

import ml_dtypes
import numpy as np
import pytest

from stretto import numpy as snp
from stretto._engine.api.jit.jit import jit
from stretto._engine.core.interpreter import as_value
from stretto._engine.core.types import array_type
from stretto._engine.ops.random_bits import (
    RandomBits,
    Threefry2x32,
    UnitFloat,
    WideRemainder,
    bits_width,
    threefry2x32,
    unit_float,
    wide_remainder,
)
from stretto.laws import law

WORDS = np.array([0, 1, 2**31, 2**32 - 1], np.uint32)

LAWS = [
    law(Threefry2x32, threefry2x32, WORDS[:1], WORDS[1:2], WORDS, WORDS[::-1].copy()),
    law(Threefry2x32, threefry2x32, *(np.uint32(n) for n in range(4))),
    law(Threefry2x32, threefry2x32, WORDS[0], WORDS[1], WORDS.reshape(2, 2), WORDS[:2]),
    law(Threefry2x32, threefry2x32, *(np.zeros((0, 2), np.uint32),) * 4),
]


def bits(width, shape, layout):
    def draw(key):
        return RandomBits(width, shape, layout)(key)

    return draw


LAWS += [
    law(RandomBits, bits(width, shape, layout), WORDS[2:])
    for layout, widths in {
        "original": (8, 16, 32, 64),
        "partitionable": (8, 32, 64),
        "pairs": (32,),
    }.items()
    for width in widths
    for shape in ((), (3,), (2, 5), (0, 2))
]


# Random123, kat_vectors: threefry2x32 with 20 rounds; counter, key, result.
VECTORS = [
    ((0, 0), (0, 0), (0x6B200159, 0x99BA4EFE)),
    ((2**32 - 1,) * 2, (2**32 - 1,) * 2, (0x1CB996FC, 0xBB002BE7)),
    ((0x243F6A88, 0x85A308D3), (0x13198A2E, 0x03707344), (0xC4923A9C, 0x483DF7A0)),
]


@pytest.mark.parametrize(("counter", "key", "want"), VECTORS)
@pytest.mark.parametrize("run", [lambda f: f, jit], ids=["eager", "jit"])
def test_published_vectors(counter, key, want, run):
    words = [np.uint32(n) for n in (*key, *counter)]
    assert tuple(int(x) for x in run(threefry2x32)(*words)) == want


def test_blocks_make_no_difference():
    count = np.arange(20001, dtype=np.uint32)
    k0, k1 = np.uint32(5), np.uint32(7)
    whole = [np.asarray(x) for x in threefry2x32(k0, k1, count, count[::-1])]
    compiled = [np.asarray(x) for x in jit(threefry2x32)(k0, k1, count, count[::-1])]
    part = [np.asarray(x) for x in threefry2x32(k0, k1, count[9000:9010], count[::-1][9000:9010])]
    for w, c, p in zip(whole, compiled, part, strict=True):
        np.testing.assert_array_equal(w, c)
        np.testing.assert_array_equal(w[9000:9010], p)
    keys = np.broadcast_to(count, (3, 20001))  # repeated, not constant
    np.testing.assert_array_equal(  # a counter that is one for all
        threefry2x32(k0, k1, np.uint32(3), count)[1][7],
        threefry2x32(k0, k1, np.uint32(3), np.uint32(7))[1],
    )
    rows = np.asarray(threefry2x32(keys, k1, count, count)[0])
    np.testing.assert_array_equal(rows[2], threefry2x32(count, k1, count, count)[0])


def test_an_array_of_keys_is_each_key():
    keys = WORDS.reshape(2, 1, 2)
    for layout, width in (("original", 16), ("partitionable", 64), ("pairs", 32)):
        op = RandomBits(width, (3, 5), layout)
        got = np.asarray(op(as_value(keys)))
        for i in range(2):
            np.testing.assert_array_equal(got[i, 0], op(as_value(keys[i, 0])))


@pytest.mark.parametrize(
    "layout, width",
    [
        *[("original", w) for w in (8, 16, 32, 64)],
        *[("partitionable", w) for w in (8, 32, 64)],
        ("pairs", 32),
    ],
)
def test_of_a_size_that_varies(layout, width):
    draw = lambda key, x: RandomBits(width, (*x.shape, 3), layout)(key)
    f = jit(draw, dynamic_axes=(None, {0: "n"}))
    for n in (1, 2, 5, 42, 64):
        x = snp.zeros(n)
        np.testing.assert_array_equal(f(WORDS[2:], x), np.asarray(draw(as_value(WORDS[2:]), x)))


def test_refuses():
    with pytest.raises(TypeError, match=r"expected keys, uint32\[..., 2\], got uint32\[4\]"):
        RandomBits(32, (), "original")(as_value(WORDS))
    with pytest.raises(TypeError, match=r"uint32 arrays of one shape, got uint32\[\], int"):
        threefry2x32(np.uint32(0), 1, 2, 3)
    with pytest.raises(ValueError, match="do not broadcast"):
        threefry2x32(np.uint32(0), np.uint32(0), WORDS, WORDS[:3])


RNG = np.random.default_rng(0)


def words(width, *shape):
    """Random integers, the greatest and the least among them."""
    x = RNG.integers(0, 2**width, shape, np.uint64, endpoint=False)
    x.reshape(-1)[:2] = 0, 2**width - 1
    return x.astype(f"u{width // 8}")


def to(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    return lambda bits: unit_float(bits, dtype)


FLOATS = [
    ("float32", 32, 23),
    ("float16", 16, 10),
    ("bfloat16", 8, 7),
    ("float8_e4m3fn", 8, 3),
    ("float64", 64, 52),
]

LAWS += [
    *[law(UnitFloat, to(name), words(width, 3, 4)) for name, width, _ in FLOATS],
    law(UnitFloat, to("float32"), np.zeros((0, 2), np.uint32)),
    law(WideRemainder, wide_remainder, words(32, 8), words(32, 8), words(32, 8)),
    law(WideRemainder, wide_remainder, words(8, 4, 2), words(8, 4, 2), words(8, 4, 2)),
    law(WideRemainder, wide_remainder, words(64, 6), words(64, 6), words(64, 6)),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize(("name", "width", "mantissa"), FLOATS[:-1])
def test_floats_are_the_highest_bits(name, width, mantissa):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    assert bits_width(dtype) == width
    x = words(width, 100)
    want = (x >> (width - mantissa)).astype(np.float64) / 2**mantissa
    np.testing.assert_array_equal(np.asarray(unit_float(x, dtype)).astype(np.float64), want)


def test_remainder_is_that_of_the_wide_number():
    # Spans up to 2**16: the square of 2**16 mod span must fit in 32 bits.
    upper, lower, span = words(32, 100), words(32, 100), words(16, 100).astype(np.uint32)
    span[0] = 1
    want = [
        (int(u) * 2**32 + int(v)) % int(s) if s else int(v)
        for u, v, s in zip(upper, lower, span, strict=True)
    ]
    assert np.asarray(wide_remainder(upper, lower, span)).tolist() == want


def test_refuses_of_numbers():
    with pytest.raises(TypeError, match=r"expected uint32 for float32, got uint16\[2\]"):
        unit_float(words(16, 2), np.dtype(np.float32))
    with pytest.raises(TypeError, match="expected an array of kind uint"):
        wide_remainder(*[np.ones(2, np.int32)] * 3)


@pytest.mark.parametrize(
    ("operation", "shape", "least"),
    [
        (Threefry2x32(), lambda n: (n,), 1 << 22),
        (RandomBits(32, (1 << 20,), "partitionable"), lambda n: (n // 2, 2), 16),
        (RandomBits(8, (1 << 22,), "original"), lambda n: (n // 2, 2), 16),
    ],
    ids=["cipher", "words", "bytes"],
)
def test_many_words_are_encrypted_by_a_program(operation, shape, least):
    for n, compiled in ((least, True), (least - 2, False)):
        type = array_type(shape(n), np.dtype(np.uint32))
        assert operation.compiled((type,) * 4) is compiled


@pytest.mark.parametrize(
    ("op", "types"),
    [
        (Threefry2x32(), [((2,), "uint32")] * 3 + [((3,), "uint32")]),
        (Threefry2x32(), [((2,), "uint32")] * 3 + [((2,), "int32")]),
        (RandomBits(32, (2,), "original"), [((2,), "int32")]),
        (RandomBits(32, (2,), "original"), [((), "uint32")]),
        (RandomBits(32, (2,), "original"), [((3,), "uint32")]),
        (UnitFloat(np.dtype(np.float32)), [((3,), "int32")]),
        (UnitFloat(np.dtype(np.float32)), [((3,), "uint16")]),
    ],
    ids=str,
)
def test_words_of_another_shape_or_kind_are_refused(op, types):
    with pytest.raises(TypeError, match=r"expected|of one shape"):
        op.infer(*[array_type(shape, np.dtype(dtype)) for shape, dtype in types])
