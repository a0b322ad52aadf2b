"""Leading zeros, high halves and fewer bits: the laws, Python's integers, and rounding to even."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.api.jit.jit import jit
from stretto._engine.core.config import enable_x64
from stretto._engine.ops.bits import Clz, Mulhi, ReducePrecision, clz, mulhi, reduce_precision
from stretto.laws import bf16, f16, f32, f64, i8, i32, law, u32
from stretto.lax import population_count

WORDS = np.array([0, 1, 2, 77, 2**31, 2**32 - 1], np.uint32)


def fewer(exponent_bits, mantissa_bits):
    def reduced(x):
        return reduce_precision(x, exponent_bits, mantissa_bits)

    return reduced


LAWS = [
    *(law(Clz, clz, t(2, 3)) for t in (i32, u32, i8)),
    law(Clz, clz, WORDS, mapped=False),
    *(law(Mulhi, mulhi, t(5), t(5)) for t in (i32, u32, i8)),
    law(Mulhi, mulhi, WORDS, WORDS[::-1].copy(), mapped=False),
    law(ReducePrecision, fewer(11, 52), f64(2, 3)),
    law(ReducePrecision, fewer(5, 7), f32(2, 3), difference=False),
    law(ReducePrecision, fewer(4, 3), bf16(4), difference=False, mapped=False),
    law(ReducePrecision, fewer(4, 3), f16(4), difference=False, mapped=False),
]


@pytest.mark.parametrize("case", LAWS, ids=str)
def test_laws(case):
    case.check()


@pytest.mark.parametrize("name", ["int8", "uint8", "int16", "uint32", "int64", "uint64", "int4"])
def test_integers_are_pythons(name):
    dtype = np.dtype(getattr(ml_dtypes, name, name))
    info = ml_dtypes.iinfo(dtype)
    ends = [info.min, info.min + 1, -1 % (info.max + 1), 0, 1, 3, info.max // 3, info.max]
    end = np.asarray([dtype.type(n) for n in ends], dtype)
    x, y = np.repeat(end, 8), np.tile(end, 8)
    bits = info.bits
    zeros = [bits - (int(a) % 2**bits).bit_length() for a in x]
    high = [int(a) * int(b) >> bits for a, b in zip(x, y, strict=True)]
    with enable_x64():
        for run in (lambda f: f, jit):
            count, product = run(lambda x, y: (clz(x), mulhi(x, y)))(x, y)
            assert count.dtype == product.dtype == dtype
            assert [int(n) for n in np.asarray(count)] == zeros
            assert [int(n) for n in np.asarray(product)] == high


def test_reduced_floats_are_those_of_the_narrower_dtype():
    rng = np.random.default_rng(0)
    x = (rng.normal(size=500) * 10.0 ** rng.integers(-6, 6, 500)).astype(np.float32)
    x = np.concatenate([x, np.float32([0, -0.0, np.inf, -np.inf, np.nan, 65519, 65520, 6.1e-5])])
    with np.errstate(over="ignore"):
        half = x.astype(np.float16).astype(np.float32)
    half[np.abs(x) < 2**-14] *= 0  # what float16 has as subnormal is zero
    got, compiled = fewer(5, 10)(x), jit(fewer(5, 10))(x)
    np.testing.assert_array_equal(got, compiled)
    np.testing.assert_array_equal(got, half)
    brain = x.astype(ml_dtypes.bfloat16).astype(np.float32)
    np.testing.assert_array_equal(fewer(8, 7)(x), brain)


def test_refusals():
    with pytest.raises(TypeError, match="clz: expected an array of kind int or uint"):
        clz(np.float32(1))
    with pytest.raises(TypeError, match="mulhi: expected an array of kind int or uint"):
        mulhi(np.float32(1), np.float32(1))
    with pytest.raises(TypeError, match="reduce_precision: expected an array of kind float"):
        reduce_precision(np.int32(1), 5, 10)
    with pytest.raises(ValueError, match="expected exponent_bits >= 1"):
        reduce_precision(np.float32(1), 0, 10)
    with pytest.raises(ValueError, match=r"mantissa_bits >= 0, got 5 and -1"):
        reduce_precision(np.float32(1), 5, -1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("more", [0, 1])
def test_as_many_bits_as_there_are_change_nothing(dtype, more):
    info = ml_dtypes.finfo(dtype)
    least = info.smallest_subnormal
    x = np.array([1 + float(info.eps), info.max, info.tiny, least, -1 / 3, np.inf], info.dtype)
    with enable_x64():
        got = reduce_precision(x, int(info.nexp) + more, int(info.nmant) + more)
    np.testing.assert_array_equal(np.asarray(got), x)


def test_the_fewest_bits():
    x = np.array([0, 1, 1.5, 3.5, -1, np.inf], np.float32)
    assert np.asarray(reduce_precision(x, 1, 3))[0] == 0
    assert np.asarray(reduce_precision(x, 8, 0)).tolist() == [0, 1, 2, 4, -1, np.inf]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
@pytest.mark.parametrize("mantissa_bits", [0, 1, 2, 5])
def test_halves_are_rounded_to_even(dtype, mantissa_bits):
    unit = 2.0**-mantissa_bits  # what stays is a multiple of it, from 1 to 2
    for low in (1, 2 - unit):
        x = low + np.arange(5) / 4 * unit
        for sign in (1, -1):
            with enable_x64():
                given = (sign * x).astype(getattr(ml_dtypes, dtype, dtype))
                got = np.asarray(reduce_precision(given, 5, mantissa_bits), np.float64)
            np.testing.assert_array_equal(got, sign * np.rint(x / unit) * unit)


@pytest.mark.parametrize("f", [clz, population_count])
def test_truth_values_count_as_int32(f):
    out = f(np.array([True, False]))
    assert out.dtype == np.int32 and not out.weak_type
    np.testing.assert_array_equal(out, f(np.array([1, 0], np.int32)))


@pytest.mark.parametrize("run", [lambda f: f, jit])
def test_few_bits_of_exponent(run):
    """With three, powers from 2^-2 to 2^3: what is beyond is infinite, what is below zero."""
    x = [2.0**-3, -(2.0**-3), 0.2499, 0.25, 15.5, 15.75, -15.75, 16.0, np.nan, -0.0, np.inf, 3.25]
    want = [0.0, -0.0, 0.25, 0.25, 15.5, 15.75, -15.75, np.inf, np.nan, -0.0, np.inf, 3.25]
    got = np.asarray(run(lambda x: reduce_precision(x, 3, 6))(np.array(x, np.float32)))
    np.testing.assert_array_equal(got, np.array(want, np.float32))
    np.testing.assert_array_equal(np.signbit(got), np.signbit(np.array(want)))
