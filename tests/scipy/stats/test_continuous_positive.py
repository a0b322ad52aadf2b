"""Distributions by incomplete functions: SciPy's values, integrals, ends, slopes in parameters."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto.scipy import stats as ours
from tests.scipy.stats.methods import INF, check_density, check_ends, check_methods, check_slopes

CASES = {  # shapes, the ends of the support, points
    "gamma": ((2.3,), 0.0, INF, np.array([1e-8, 0.4, 1.0, 7.0, 90.0])),
    "chi2": ((3.0,), 0.0, INF, np.array([1e-8, 0.4, 1.0, 7.0, 90.0])),
    "beta": ((1.5, 2.5), 0.0, 1.0, np.array([1e-8, 0.2, 0.6, 0.99])),
    "t": ((4.0,), -INF, INF, np.array([-50.0, -1.0, 0.0, 0.3, 9.0])),
    "gennorm": ((1.3,), -INF, INF, np.array([-5.0, -1.0, 0.4, 3.0])),
}


@pytest.mark.parametrize("name", CASES)
def test_scipys(name):
    shapes, _, _, x = CASES[name]
    inside = x + 0.5 if name != "beta" else np.array([0.6, 0.8, 1.5, 2.4])
    check_methods(name, shapes, inside, "pdf logpdf cdf sf", 1e-10)


@pytest.mark.parametrize("name", CASES)
def test_densities_integrate_to_one(name):
    shapes, low, high, _ = CASES[name]
    check_density(name, shapes, low, high)


@pytest.mark.parametrize("name", CASES)
def test_ends(name):
    shapes, low, high, _ = CASES[name]
    check_ends(name, shapes, low, high)


@pytest.mark.parametrize("name", CASES)
def test_slopes(name):
    check_slopes(name, CASES[name][0], (0.3, 0.8))


@pytest.mark.parametrize(
    "name, shapes", [("gamma", (1.0,)), ("gamma", (0.5,)), ("chi2", (2.0,)), ("beta", (1.0, 1.0)),
                     ("beta", (0.5, 2.0))]
)  # fmt: skip
def test_at_the_end_of_the_support(name, shapes):
    with st.enable_x64():
        got = getattr(ours, name).pdf(0.0, *shapes)
        np.testing.assert_allclose(got, getattr(stats, name).pdf(0.0, *shapes))


def test_slopes_in_the_parameters():
    step = 1e-5
    with st.enable_x64():
        for name, x in (("gamma", 1.7), ("chi2", 1.7), ("t", 0.8), ("gennorm", 0.8)):
            (shape,), theirs = CASES[name][0], getattr(stats, name)
            f = getattr(ours, name)
            slope = st.grad(lambda a, x=x, f=f: f.logpdf(x, a))(shape)
            ends = [theirs.logpdf(x, shape + s * step) for s in (1, -1)]
            np.testing.assert_allclose(slope, (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_relatives():
    """chi2 is a gamma distribution, t of one degree Cauchy's, gennorm of two a normal one."""
    x = np.array([0.2, 1.0, 5.0])
    with st.enable_x64():
        np.testing.assert_allclose(ours.chi2.cdf(x, 3.0), ours.gamma.cdf(x, 1.5, scale=2.0))
        np.testing.assert_allclose(ours.t.cdf(x, 1.0), ours.cauchy.cdf(x), rtol=1e-12)
        near = ours.gennorm.cdf(x, 2.0, scale=np.sqrt(2))
        np.testing.assert_allclose(near, ours.norm.cdf(x), rtol=1e-12)
        np.testing.assert_allclose(ours.beta.sf(0.3, 2.0, 5.0), ours.beta.cdf(0.7, 5.0, 2.0))


def test_parameters_out_of_range_are_nan():
    for name, (shapes, *_) in CASES.items():
        bad = (0.0, *shapes[1:])
        assert np.isnan(float(getattr(ours, name).logpdf(0.5, *bad))), name
        assert np.isnan(float(getattr(ours, name).cdf(0.5, *bad))), name
