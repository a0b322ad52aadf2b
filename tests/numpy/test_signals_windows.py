"""Windows: the slope of Kaiser's, and messages."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp


def test_the_slope_of_kaisers_window():
    step = 1e-3
    slope = (np.kaiser(7, 2 + step) - np.kaiser(7, 2 - step)) / (2 * step)
    jvp = st.jit(lambda b: st.jvp(lambda b: snp.kaiser(7, b), (b,), (snp.ones(()),)))
    out, rise = jvp(2.0)
    np.testing.assert_allclose(out, np.kaiser(7, 2), rtol=1e-5)
    np.testing.assert_allclose(rise, slope, rtol=1e-4, atol=1e-6)
    with pytest.raises(ValueError, match="kaiser: expected one number in beta"):
        st.jit(lambda b: snp.kaiser(7, b))(snp.ones(2))


def test_a_length_must_be_known():
    with pytest.raises(st.errors.TracedValueError):
        st.jit(snp.hanning)(3)
    assert snp.hanning(-2).shape == (0,) and snp.bartlett(1).tolist() == [1]


def test_i0_of_infinity_is_infinite():
    x = snp.array([np.inf, -np.inf, 1e30, 800.0, np.nan, 0.0])
    with st.config(interpret_small=False):
        compiled = st.jit(snp.i0)(x)
    for out in (snp.i0(x), compiled):
        np.testing.assert_array_equal(out, [np.inf, np.inf, np.inf, np.inf, np.nan, 1.0])
    with st.enable_x64():
        assert np.isfinite(snp.i0(snp.array(700.0)))


def test_kaiser_of_large_parameters_is_narrow():
    with st.config(interpret_small=False):
        compiled = st.jit(lambda beta: [snp.kaiser(n, beta) for n in (7, 1, 0)])(1e10)
    for seven, one, none in (compiled, [snp.kaiser(n, 1e10) for n in (7, 1, 0)]):
        np.testing.assert_array_equal(seven, [0, 0, 0, 1, 0, 0, 0])
        np.testing.assert_array_equal(one, [1])
        assert none.shape == (0,)
    for beta in (690.0, 705.0):  # of the one from NumPy, of the other from here
        np.testing.assert_allclose(snp.kaiser(9, beta)[3], np.kaiser(9, beta)[3], rtol=1e-4)
