"""Distributions of whole numbers: SciPy's values, sums, what lies between, slopes, ends."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto.scipy import stats as ours

CASES = {  # shapes, the numbers that have nearly all the probability
    "bernoulli": ((0.3,), np.arange(2.0)),
    "binom": ((9.0, 0.3), np.arange(10.0)),
    "betabinom": ((9.0, 0.7, 2.5), np.arange(10.0)),
    "geom": ((0.4,), np.arange(1.0, 90)),
    "nbinom": ((3.5, 0.4), np.arange(120.0)),
    "poisson": ((4.5,), np.arange(60.0)),
}


@pytest.mark.parametrize("name", CASES)
def test_scipys_and_they_add_up_to_one(name):
    shapes, k = CASES[name]
    f, theirs = getattr(ours, name), getattr(stats, name)
    with st.enable_x64():
        want = theirs.logpmf(k, *shapes)
        np.testing.assert_allclose(f.logpmf(k, *shapes), want, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(np.sum(f.pmf(k, *shapes)), 1, rtol=1e-12)
        np.testing.assert_array_equal(f.pmf(k + 2, *shapes, loc=2), f.pmf(k, *shapes))


@pytest.mark.parametrize("name", CASES)
def test_between_and_beyond_the_numbers_there_is_nothing(name):
    shapes, k = CASES[name]
    f = getattr(ours, name)
    outside = np.array([k[0] + 0.5, k[0] - 1, -np.inf, np.inf])
    with st.enable_x64():
        np.testing.assert_array_equal(f.logpmf(outside, *shapes), -np.inf)
        np.testing.assert_array_equal(f.pmf(outside, *shapes), 0)
        assert np.isnan(float(f.pmf(np.nan, *shapes)))


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(getattr(ours, n), "cdf")])
def test_cumulative(name):
    shapes, k = CASES[name]
    f = getattr(ours, name)
    with st.enable_x64():
        sums = np.cumsum(f.pmf(k, *shapes))
        np.testing.assert_allclose(f.cdf(k, *shapes), sums, rtol=1e-12)
        np.testing.assert_allclose(f.cdf(k + 0.7, *shapes), sums, rtol=1e-12)
        ends = np.array([-np.inf, k[0] - 1.0, np.inf])
        np.testing.assert_array_equal(f.cdf(ends, *shapes), [0, 0, 1])


def test_certain_outcomes():
    with st.enable_x64():
        np.testing.assert_array_equal(ours.bernoulli.pmf(np.arange(2), 0.0), [1, 0])
        np.testing.assert_array_equal(ours.bernoulli.pmf(np.arange(2), 1.0), [0, 1])
        np.testing.assert_array_equal(ours.binom.pmf(np.array([0, 5]), 5, 1.0), [0, 1])
        np.testing.assert_array_equal(ours.geom.pmf(np.array([1, 2]), 1.0), [1, 0])
        np.testing.assert_array_equal(ours.poisson.pmf(np.array([0, 1]), 0.0), [1, 0])


@pytest.mark.parametrize(
    "name, bad",
    [
        ("bernoulli", (1.1,)),
        ("binom", (-1.0, 0.3)),
        ("betabinom", (9.0, -1.0, 1.0)),
        ("geom", (0.0,)),
        ("nbinom", (0.0, 0.5)),
        ("poisson", (-0.1,)),
    ],
)
def test_parameters_out_of_range_are_nan(name, bad):
    assert np.isnan(float(getattr(ours, name).pmf(1, *bad)))


def test_slopes_of_the_logarithms():
    with st.enable_x64():
        slope = st.grad(lambda p: ours.binom.logpmf(3, 9.0, p))(0.4)
        np.testing.assert_allclose(slope, 3 / 0.4 - 6 / 0.6, rtol=1e-12)
        slope = st.grad(lambda mu: ours.poisson.logpmf(3, mu))(2.0)
        np.testing.assert_allclose(slope, 3 / 2 - 1, rtol=1e-12)
        slope = st.grad(lambda p: ours.geom.logpmf(4, p))(0.3)
        np.testing.assert_allclose(slope, 1 / 0.3 - 3 / 0.7, rtol=1e-12)
        slope = st.grad(lambda p: ours.bernoulli.logpmf(0, p))(0.3)
        np.testing.assert_allclose(slope, -1 / 0.7, rtol=1e-12)


def test_the_entropy_of_poissons():
    mu = np.array([0.1, 3.0, 20.0])
    with st.enable_x64():
        np.testing.assert_allclose(ours.poisson.entropy(mu), stats.poisson.entropy(mu), rtol=1e-5)
        assert float(ours.poisson.entropy(0.0)) == 0
