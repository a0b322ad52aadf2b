"""Random bits as numbers: the laws, the definitions, refusals."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops.random.numbers import (
    UnitFloat,
    WideRemainder,
    bits_width,
    unit_float,
    wide_remainder,
)
from stretto.laws import law

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

LAWS = [
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


def test_refuses():
    with pytest.raises(TypeError, match=r"expected uint32 for float32, got uint16\[2\]"):
        unit_float(words(16, 2), np.dtype(np.float32))
    with pytest.raises(TypeError, match="expected an array of kind uint"):
        wide_remainder(*[np.ones(2, np.int32)] * 3)
