"""Distributions of angles: periods, integrals, large concentrations, slopes."""

import numpy as np
from scipy import integrate, special, stats

import stretto as st
from stretto.scipy import stats as ours

TURN = 2 * np.pi


def test_they_integrate_to_one_over_a_turn():
    with st.enable_x64():
        for f in (lambda x: ours.vonmises.pdf(x, 2.5), lambda x: ours.wrapcauchy.pdf(x, 0.6)):
            total = integrate.quad_vec(lambda x, f=f: np.asarray(f(x)), 0, TURN)[0]
            np.testing.assert_allclose(total, 1, rtol=1e-12)


def test_von_mises_goes_round():
    x, kappa = np.array([-1.0, 0.3, 2.0]), 3.0
    with st.enable_x64():
        want = stats.vonmises.logpdf(x, kappa)
        for turns in (0, 1, -3):
            got = ours.vonmises.logpdf(x + turns * TURN, kappa)
            np.testing.assert_allclose(got, want, rtol=1e-12)
        np.testing.assert_allclose(ours.vonmises.pdf(x, 0.0), 1 / TURN)


def test_great_concentrations_do_not_overflow():
    """Near its middle the normal density of variance 1 / kappa."""
    with st.enable_x64():
        got = ours.vonmises.logpdf(1e-4, 1e7)
        np.testing.assert_allclose(got, stats.norm.logpdf(1e-4, scale=1e7**-0.5), rtol=1e-6)
        slope = st.grad(lambda k: ours.vonmises.logpdf(0.5, k))(1e3)
        # cos(x) - I_1 / I_0
        want = np.cos(0.5) - special.i1e(1e3) / special.i0e(1e3)
        np.testing.assert_allclose(slope, want, rtol=1e-10)


def test_wrapped_cauchy_has_one_turn():
    x = np.array([0.0, 1.0, 3.0, 6.2])
    with st.enable_x64():
        got = ours.wrapcauchy.pdf(x, 0.3)
        np.testing.assert_allclose(got, stats.wrapcauchy.pdf(x, 0.3), rtol=1e-12)
        np.testing.assert_array_equal(ours.wrapcauchy.pdf(np.array([-0.1, 6.3]), 0.3), 0)
        by_c = st.grad(lambda c: ours.wrapcauchy.logpdf(1.0, c))(0.3)
        want = -0.6 / 0.91 - (0.6 - 2 * np.cos(1)) / (1.09 - 0.6 * np.cos(1))
        np.testing.assert_allclose(by_c, want, rtol=1e-12)


def test_parameters_out_of_range_are_nan():
    for got in (ours.vonmises.pdf(0.0, -1.0), ours.wrapcauchy.pdf(1.0, 0.0),
                ours.wrapcauchy.pdf(1.0, 1.0)):  # fmt: skip
        assert np.isnan(float(got))
