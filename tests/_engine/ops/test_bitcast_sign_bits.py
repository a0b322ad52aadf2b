"""The bits of floats: zeros of either sign, signs, and float32 cut in half."""

import ml_dtypes
import numpy as np
import pytest

from stretto._engine.ops.arithmetic import ABS, MUL, NEG, SIGN
from stretto._engine.ops.bitcast import has_negative_zero, has_zero, signs, upper_halves
from stretto._engine.ops.extrema import CLAMP, MAX, MIN

BFLOAT16 = np.dtype(ml_dtypes.bfloat16)
ALL = np.arange(1 << 16, dtype=np.uint16)
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1.5, -3.0, 1e-40, -1e-40], BFLOAT16)
PAIRS = [v.reshape(-1) for v in np.meshgrid(SPECIAL, SPECIAL)]


@pytest.fixture(autouse=True)
def quiet():
    """As where operations run: of infinities and signalling NaN NumPy says nothing."""
    with np.errstate(all="ignore"):
        yield


def same(x, y):
    """Equal, with the signs of zeros; NaN may have either sign."""
    x, y = np.asarray(x, np.float64), np.asarray(y, np.float64)
    return np.array_equal(x, y, equal_nan=True) and np.array_equal(
        np.signbit(x)[~np.isnan(x)], np.signbit(y)[~np.isnan(y)]
    )


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64"])
def test_zeros_are_told_apart(dtype):
    dtype = np.dtype(getattr(ml_dtypes, dtype, dtype))
    for values, negative, positive in [
        ([1.0, -2.0, np.nan], False, False),
        ([1.0, 0.0, -np.inf], False, True),
        ([1.0, -0.0, -np.nan], True, False),
        ([-0.0, 0.0], True, True),
        ([], False, False),
    ]:
        x = np.array(values, dtype)
        assert (has_negative_zero(x), has_zero(x)) == (negative, positive)


def test_of_eight_bits_any_number_may_be_a_zero():
    x = np.ones(3, ml_dtypes.float8_e4m3fnuz)
    assert has_negative_zero(x)
    assert has_zero(x)


@pytest.mark.parametrize("dtype", [BFLOAT16, np.dtype(np.float16)], ids=str)
@pytest.mark.parametrize("part", ["all", "finite", "no zero"])
def test_signs_are_those_of_every_number(dtype, part):
    x = ALL.view(dtype)
    wide = x.astype(np.float32)
    keep = {"all": slice(None), "finite": np.isfinite(wide), "no zero": wide != 0}[part]
    x, wide = x[keep], wide[keep]
    assert signs(x).dtype == dtype
    assert same(signs(x), np.copysign(np.sign(wide), wide))
    assert same(signs(x[::3]), np.copysign(np.sign(wide), wide)[::3])


def test_many_signs_of_float16_are_those_of_few():
    x = ALL.view(np.float16)
    assert same(SIGN.reference(x), np.concatenate([SIGN.reference(v) for v in x.reshape(64, -1)]))


def test_upper_halves_lose_nothing():
    x = ALL.view(BFLOAT16)
    assert same(upper_halves(x.astype(np.float32), BFLOAT16), x)


@pytest.mark.parametrize("primitive", [NEG, ABS, SIGN], ids=lambda p: p.name)
def test_many_bfloat16_of_one_operand_as_in_float32(primitive):
    x = ALL.view(BFLOAT16)
    want = primitive.reference(x.astype(np.float32)).astype(BFLOAT16)
    assert same(primitive.widely(x), want)
    assert primitive.widely(x.reshape(256, 256).T).shape == (256, 256)


@pytest.mark.parametrize("primitive", [MAX, MIN, MUL], ids=lambda p: p.name)
def test_many_bfloat16_of_two_operands_as_in_float32(primitive):
    for x, y in (PAIRS, [PAIRS[0], np.broadcast_to(SPECIAL[6], PAIRS[0].shape)]):
        got = primitive.widely(x, y).astype(BFLOAT16, copy=False)
        want = primitive.reference(x.astype(np.float32), y.astype(np.float32))
        assert same(got, want.astype(BFLOAT16))


def test_many_bfloat16_between_bounds_as_in_float32():
    x, low = PAIRS
    bounds = [low, x, np.broadcast_to(np.asarray(1, BFLOAT16), x.shape)]
    assert same(CLAMP.widely(*bounds), CLAMP.reference(*[v.astype(np.float32) for v in bounds]))
