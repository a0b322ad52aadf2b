"""Bits of floats by arithmetic: every pattern of a dtype of 16 bits, and edges of wider ones."""

import ml_dtypes
import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import enable_x64, lax
from tests.export.running import agrees, exported, operators, run

WIDTHS = {"float16": 16, "float32": 32, "float64": 64}


def patterns(dtype):
    """Bits of floats: all of 16, or those around each power of two, and random ones."""
    width = WIDTHS[dtype]
    if width == 16:
        return np.arange(1 << 16).astype(np.uint16)
    nmant = ml_dtypes.finfo(dtype).nmant
    powers = np.arange(1 << (width - 1 - nmant), dtype=np.uint64) << np.uint64(nmant)
    near = [powers + np.uint64(k) for k in (0, 1, 2)] + [powers[1:] - np.uint64(k) for k in (1, 2)]
    small = np.arange(1000, dtype=np.uint64)
    drawn = np.random.default_rng(0).integers(0, 1 << 63, 2000, np.uint64) >> np.uint64(64 - width)
    found = np.concatenate([*near, small, drawn])
    return np.concatenate([found, found | np.uint64(1 << (width - 1))]).astype(f"u{width // 8}")


@pytest.mark.parametrize("dtype", WIDTHS)
def test_floats_of_bits(dtype):
    bits = patterns(dtype)
    with enable_x64():
        f = lambda bits: lax.bitcast_convert_type(bits, dtype)
        model = exported(f, bits, opset=25)
        (got,) = run(model, [bits])
    assert "BitCast" not in operators(model)
    want = bits.view(dtype)
    np.testing.assert_array_equal(got, want)  # NaN where NaN is, whichever
    real = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(want[real]))


@pytest.mark.parametrize("dtype", WIDTHS)
def test_bits_of_floats(dtype):
    bits = patterns(dtype)
    x = bits.view(dtype)
    x = x[~np.isnan(x)]
    with enable_x64():
        f = lambda x: lax.bitcast_convert_type(x, f"int{WIDTHS[dtype]}")
        model = exported(f, x, opset=21)
        (got,) = run(model, [x])
        (nan,) = run(exported(f, x[:1], opset=21), [np.full(1, np.nan, dtype)])
    assert "BitCast" not in operators(model)
    np.testing.assert_array_equal(got, x.view(f"i{WIDTHS[dtype] // 8}"))
    np.testing.assert_array_equal(nan, np.full(1, np.nan, dtype).view(nan.dtype))


def test_bits_of_bfloat16():
    x = np.array([0.0, -0.0, 1.5, -3e38, 1e-40, np.inf, 255.0], np.float32)
    f = lambda x: lax.bitcast_convert_type(x.astype("bfloat16"), "uint16")
    agrees(f, x, opset=21)
    back = lambda bits: lax.bitcast_convert_type(bits, "bfloat16").astype("float32")
    agrees(back, x.astype(ml_dtypes.bfloat16).view(np.uint16), opset=21)


@pytest.mark.parametrize("opset", [21, 25, 26])
def test_what_looks_at_bits_has_every_opset(opset):
    x = np.array([1.5, -0.0, 3e-41, -7.0], np.float32)
    agrees(lambda x: snp.copysign(x, -x), x, opset=opset)
    agrees(lambda x: snp.nextafter(x, 0.0), x, opset=opset, rtol=0)
    agrees(lambda key: st.random.normal(key, (5,)), np.array([1, 2], np.uint32), opset=opset)
