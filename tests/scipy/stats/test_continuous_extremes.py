"""Distributions of extremes: SciPy's values, integrals, quantiles, ends, slopes."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto.scipy import stats as ours
from tests.scipy.stats.methods import INF, check_density, check_ends, check_methods, check_slopes

# Name: shapes, the ends of the support, the methods that SciPy's values are compared for.
CASES = {
    "pareto": ((2.5,), 1.0, INF, "pdf logpdf cdf logcdf sf logsf"),
    "gumbel_r": ((), -INF, INF, "cdf sf pdf"),
    "gumbel_l": ((), -INF, INF, "cdf sf pdf"),
}
X = np.array([-30.0, -2.0, -0.5, 0.0, 0.3, 0.9, 1.5, 4.0, 30.0])


@pytest.mark.parametrize("name", CASES)
def test_scipys(name):
    check_methods(name, CASES[name][0], X, CASES[name][3], 1e-10)


@pytest.mark.parametrize("name", CASES)
def test_densities_integrate_to_one(name):
    shapes, low, high, _ = CASES[name]
    if name != "pareto":  # beyond, the rest is below rounding
        low, high = max(low, -45.0), min(high, 45.0)
    check_density(name, shapes, low, high, ())


@pytest.mark.parametrize("name", CASES)
def test_ends(name):
    check_ends(name, *CASES[name][:3])


@pytest.mark.parametrize("name", CASES)
def test_slopes(name):
    check_slopes(name, CASES[name][0], (1.2, 1.7) if name == "pareto" else (0.2, 0.8))


@pytest.mark.parametrize("name", CASES)
def test_quantiles(name):
    f, shapes = getattr(ours, name), CASES[name][0]
    # At a bounded end of the support the values themselves leave no room for so small a tail.
    least = 1e-3 if name == "pareto" else 1e-12
    q = np.array([least, 0.01, 0.2499, 0.3, 0.5, 0.8, 0.999])
    with st.enable_x64():
        np.testing.assert_allclose(f.cdf(f.ppf(q, *shapes), *shapes), q, rtol=1e-12)
        np.testing.assert_allclose(f.sf(f.isf(q, *shapes), *shapes), q, rtol=1e-12)
        np.testing.assert_array_equal(f.ppf(np.array([0.0, 1.0]), *shapes), CASES[name][1:3])
        slope = st.grad(lambda q: f.ppf(q, *shapes))(0.3)
        np.testing.assert_allclose(slope, 1 / f.pdf(f.ppf(0.3, *shapes), *shapes), rtol=1e-10)


def test_tails_keep_their_digits():
    x = np.array([20.0, 35.0])
    with st.enable_x64():
        far = stats.gumbel_r.sf(x)
        np.testing.assert_allclose(ours.gumbel_r.sf(x), far, rtol=1e-12)
        np.testing.assert_allclose(ours.gumbel_r.logsf(x), np.log(far), rtol=1e-12)


def test_shapes_broadcast_and_those_out_of_range_are_nan():
    with st.enable_x64():
        b, x = np.array([[0.5], [2.0], [0.0], [-1.0]]), np.array([1.5, 3.0])
        got = np.asarray(ours.pareto.logpdf(x, b))
        np.testing.assert_allclose(got[:2], stats.pareto.logpdf(x, b[:2]))
        assert got.shape == (4, 2) and np.isnan(got[2:]).all()
    with pytest.raises(TypeError, match="pareto"):
        ours.pareto.pdf(1.0)
