"""The approximation of the inverse error function in float32: its accuracy, ends, blocks."""

import numpy as np
import pytest
from scipy import special

from stretto._engine.ops.special.erf_inv_reference import _BLOCK, erf_inv_float32

pytestmark = pytest.mark.filterwarnings("ignore::RuntimeWarning")  # callers have them off


def test_close_to_the_inverse():
    x = np.linspace(-0.99999, 0.99999, 4001).astype(np.float32)
    got = erf_inv_float32(x)
    assert got.dtype == np.float32
    want, central = special.erfinv(x.astype(float)), abs(x) < 0.99
    np.testing.assert_allclose(got[central], want[central], rtol=4e-7)
    # Nearer to the ends the rounding of x^2 counts: by 2^-25 of a 1 - x^2 of at least 2e-5.
    np.testing.assert_allclose(got, want, rtol=1e-4)


def test_odd_to_the_bit():
    x = np.array([1e-30, 0.1, 0.6, 0.99, 0.9999999], np.float32)
    np.testing.assert_array_equal(erf_inv_float32(-x), -erf_inv_float32(x))
    assert np.signbit(erf_inv_float32(np.float32([-0.0])))[0]


def test_ends_and_beyond():
    x = np.array([1, -1, 1.5, -2, np.nan], np.float32)
    np.testing.assert_array_equal(erf_inv_float32(x), [np.inf, -np.inf, np.nan, np.nan, np.nan])


def test_about_the_border_of_the_two_polynomials():
    """w = -log(1 - x^2) is 5 at x = sqrt(1 - e^-5)."""
    x = np.float32(np.sqrt(1 - np.exp(-5))) + np.arange(-8, 9) * np.float32(2**-24)
    got = erf_inv_float32(x.astype(np.float32))
    assert (np.diff(got) >= 0).all()
    np.testing.assert_allclose(got, special.erfinv(x.astype(np.float32).astype(float)), rtol=4e-7)


def test_blocks_are_the_same_as_all_at_once():
    x = np.random.default_rng(0).uniform(-1, 1, (3, _BLOCK)).astype(np.float32)
    got = erf_inv_float32(x)
    assert got.shape == x.shape
    np.testing.assert_array_equal(got[1], erf_inv_float32(x[1]))
    assert erf_inv_float32(x[:0]).shape == (0, _BLOCK)
