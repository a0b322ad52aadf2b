"""Continuous distributions of closed form: SciPy's values, integrals, quantiles, ends, slopes."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto.scipy import stats as ours
from tests.scipy.stats.methods import (
    INF,
    NAN,
    check_density,
    check_ends,
    check_methods,
    check_slopes,
)

ALL = "pdf logpdf cdf logcdf sf logsf"
# Name: shapes, the ends of the support, points where the density has a kink.
CASES = {
    "norm": ((), -INF, INF, ()),
    "cauchy": ((), -INF, INF, ()),
    "expon": ((), 0.0, INF, ()),
    "laplace": ((), -INF, INF, (0.0,)),
    "logistic": ((), -INF, INF, ()),
    "uniform": ((), 0.0, 1.0, ()),
    "truncnorm": ((-0.7, 1.9), -0.7, 1.9, ()),
}
X = np.array([-30.0, -2.0, -0.5, 0.0, 0.3, 0.9, 1.5, 4.0, 30.0])


@pytest.mark.parametrize("name", CASES)
def test_scipys(name):
    check_methods(name, CASES[name][0], X, ALL, 1e-10)


@pytest.mark.parametrize("name", CASES)
def test_densities_integrate_to_one(name):
    shapes, low, high, breaks = CASES[name]
    if name != "cauchy":  # beyond, the rest is below rounding
        low, high = max(low, -45.0), min(high, 45.0)
    check_density(name, shapes, low, high, breaks)


@pytest.mark.parametrize("name", CASES)
def test_ends(name):
    shapes, low, high, _ = CASES[name]
    check_ends(name, shapes, low, high)


@pytest.mark.parametrize("name", CASES)
def test_slopes(name):
    check_slopes(name, CASES[name][0], (0.2, 0.8))


@pytest.mark.parametrize("name", [n for n in CASES if hasattr(getattr(ours, n), "ppf")])
def test_quantiles(name):
    f, shapes = getattr(ours, name), CASES[name][0]
    # At a bounded end of the support the values themselves leave no room for so small a tail.
    least = 1e-3 if name == "uniform" else 1e-12
    q = np.array([least, 0.01, 0.2499, 0.3, 0.5, 0.8, 0.999])
    with st.enable_x64():
        np.testing.assert_allclose(f.cdf(f.ppf(q, *shapes), *shapes), q, rtol=1e-12)
        np.testing.assert_allclose(f.sf(f.isf(q, *shapes), *shapes), q, rtol=1e-12)
        ends = np.array([0.0, 1.0])
        np.testing.assert_array_equal(f.ppf(ends, *shapes), CASES[name][1:3])
        np.testing.assert_array_equal(f.isf(ends, *shapes), CASES[name][2:0:-1])
        outside = np.array([-0.1, 1.1, NAN])
        assert np.isnan(np.asarray(f.ppf(outside, *shapes))).all()
        # The quantile's slope is one over the density there.
        slope = st.grad(lambda q: f.ppf(q, *shapes))(0.3)
        np.testing.assert_allclose(slope, 1 / f.pdf(f.ppf(0.3, *shapes), *shapes), rtol=1e-10)


def test_tails_keep_their_digits():
    x = np.array([20.0, 35.0])
    with st.enable_x64():
        for name in ("norm", "logistic", "laplace"):
            f, theirs = getattr(ours, name), getattr(stats, name)
            np.testing.assert_allclose(f.sf(x), theirs.sf(x), rtol=1e-12, err_msg=name)
            np.testing.assert_allclose(f.logsf(x), np.log(theirs.sf(x)), rtol=1e-12, err_msg=name)
        far = np.array([6.1, 8.0])
        got = ours.truncnorm.logpdf(far, 6.0, 9.0)
        np.testing.assert_allclose(got, stats.truncnorm.logpdf(far, 6.0, 9.0), rtol=1e-8)


def test_bounds_in_the_wrong_order_give_nan():
    with st.enable_x64():
        assert np.isnan(float(ours.truncnorm.pdf(0.0, 1.0, -1.0)))
