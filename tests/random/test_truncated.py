"""Normal numbers between bounds: quantiles of uniform ones, also in the tails; bad bounds."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto import random as R
from stretto.laws import f32, f64, law
from stretto.random.truncated import NORMAL_TAIL, NormalTail

# At 0.99, of v, differences in float32 find a slope of a hundred times the value.
NEAR, FAR, PART = f32(3).within(0.6, 3), f32(3).within(3.5, 5), f32(3).within(0.1, 0.9)
LAWS = [
    law(NormalTail, NORMAL_TAIL, NEAR, FAR, PART),
    law(NormalTail, NORMAL_TAIL, *[x(3).within(8, 9) for x in (f64,)], f64(3).within(9.5, 12),
        f64(3).within(0.1, 0.9)),
]  # fmt: skip


@pytest.mark.parametrize("law", LAWS, ids=str)
def test_laws(law):
    law.check()


BOUNDS = [
    (8.0, 9.0), (-9.0, -8.0), (8.0, np.inf), (-np.inf, -8.0), (0.6, 0.7), (3.0, 3.1), (-5.0, -0.7),
    (30.0, np.inf), (36.0, 36.001), (1.0, 50.0),
]  # fmt: skip


@pytest.mark.parametrize(("low", "high"), BOUNDS)
def test_tails_are_quantiles(low, high):
    # SciPy's own are held in logarithms, in 64 bits.
    key, size = R.key(5), (2000,)
    u = np.asarray(R.uniform(key, size)).astype(np.float64)
    want = stats.truncnorm.ppf(u, low, high)
    arrays = np.float32([low]), np.float32([high])
    compiled = st.jit(lambda low, high: R.truncated_normal(key, low, high, size))
    for x in (
        R.truncated_normal(key, low, high, size),
        R.truncated_normal(key, *arrays, size),
        compiled(*arrays),
    ):
        np.testing.assert_allclose(x, want, rtol=4e-7)
        assert (np.asarray(x) > low).all() and (np.asarray(x) < high).all()
    with st.enable_x64():
        u = np.asarray(R.uniform(key, size, "float64"))
        x = R.truncated_normal(key, low, high, size, "float64")
        np.testing.assert_allclose(x, stats.truncnorm.ppf(u, low, high), rtol=1e-9)


def test_far_tails():
    # Beyond x the rest is exponential: x (y - x) has mean 1 and variance 1 but for 1 / x**2.
    for far in (1e3, 1e5):
        with st.enable_x64():
            x = np.asarray(R.truncated_normal(R.key(0), far, np.inf, (100_000,), "float64"))
        rest = far * (x - far)
        assert abs(rest.mean() - 1) < 5 / np.sqrt(1e5)
    for far in (1e6, 1e18, 1e30):
        x = np.asarray(R.truncated_normal(R.key(0), far, np.inf, (10,)))
        assert (x == np.nextafter(np.float32(far), np.float32(np.inf))).all()
        assert (R.truncated_normal(R.key(0), -np.inf, -far, (10,)) == -x).all()


def test_infinite_bounds_are_none():
    key, size = R.key(1), (1000,)
    x = R.truncated_normal(key, -np.inf, np.inf, size)
    # A uniform number is right to 6e-8, which 3.6 deviations out is 5e-5.
    np.testing.assert_allclose(x, R.normal(key, size), rtol=1e-6, atol=5e-5)


def test_bounds_that_leave_no_number():
    key = R.key(0)
    with pytest.raises(ValueError, match=r"lower must not exceed upper, got 2.0 and 1.0"):
        R.truncated_normal(key, 2.0, 1.0)
    low, high = np.float32([1, np.nan, 0, 8, 2, -2]), np.float32([0, 1, np.nan, 8, 2, -2])
    want = [np.nan, np.nan, np.nan, 8, 2, -2]
    for draw in (R.truncated_normal, st.jit(R.truncated_normal)):
        np.testing.assert_array_equal(draw(key, low, high), want)
    np.testing.assert_array_equal(R.truncated_normal(key, 8.0, 8.01, (2,), "bfloat16"), [8, 8])
    assert np.isnan(R.truncated_normal(key, np.nan, 1.0))


def test_differentiates_with_respect_to_bounds():
    key = R.key(0)
    total = lambda low, high: R.truncated_normal(key, low, high, (500,), "float64").sum()
    with st.enable_x64():
        for low, high in ((8.0, 8.5), (-7.0, -6.5), (-1.0, 2.0), (-0.4, 0.1)):
            arrays = np.float64(low), np.float64(high)
            got = st.grad(total, (0, 1))(*arrays)
            again = st.jit(st.grad(total, (0, 1)))(*arrays)
            step = 1e-5
            want = [
                (total(low + step, high) - total(low - step, high)) / (2 * step),
                (total(low, high + step) - total(low, high - step)) / (2 * step),
            ]
            np.testing.assert_allclose(got, want, rtol=1e-6)
            np.testing.assert_allclose(again, want, rtol=1e-6)
        # Bounds of both kinds at once, infinite ones among them.
        low, high = np.float64([8, -1, -np.inf]), np.float64([np.inf, 1, -6])
        slopes = st.grad(lambda b: R.truncated_normal(key, *b, (3,), "float64").sum())((low, high))
        assert np.isfinite(slopes[0]).all() and np.isfinite(slopes[1]).all()
