"""The formulas of the gamma function in NumPy: where they meet, poles, ends of the range."""

import numpy as np
import pytest
from scipy import special

from stretto._engine.ops.special import gamma_formulas as formulas

POINTS = np.concatenate([
    np.linspace(-6.37, 12.1, 400),
    # About every border of a formula.
    *[np.array([b - 1e-9, b, b + 1e-9]) for b in (-0.5, 0.25, 0.5, 1.5, 2.5, 7.5, 8.0, 150.3)],
])  # fmt: skip


@pytest.mark.filterwarnings("ignore")
def test_scipys():
    near_zero = np.abs(special.gammaln(POINTS)) < 0.05  # SciPy's own digits are lost there
    got = formulas.log_gamma_formula(POINTS)
    np.testing.assert_allclose(got, special.gammaln(POINTS), rtol=4e-14, atol=2e-15)
    np.testing.assert_allclose(got[near_zero], special.gammaln(POINTS)[near_zero], atol=1e-15)
    np.testing.assert_allclose(formulas.gamma_formula(POINTS), special.gamma(POINTS), rtol=3e-14)
    psi = special.digamma(POINTS)
    np.testing.assert_allclose(formulas.digamma_formula(POINTS), psi, rtol=1e-12, atol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_poles_and_ends():
    x = np.array([0.0, -0.0, -1.0, -7.0, np.inf, np.nan])
    np.testing.assert_array_equal(formulas.log_gamma_formula(x), [*[np.inf] * 5, np.nan])
    np.testing.assert_array_equal(
        formulas.gamma_formula(x), [np.inf, -np.inf, np.nan, np.nan, np.inf, np.nan]
    )
    np.testing.assert_array_equal(
        formulas.digamma_formula(x), [-np.inf, np.inf, np.nan, np.nan, np.inf, np.nan]
    )


@pytest.mark.filterwarnings("ignore")
def test_to_the_end_of_the_range():
    assert np.isfinite(formulas.gamma_formula(np.array([171.6]))).all()
    assert np.isposinf(formulas.gamma_formula(np.array([171.7, 1e300]))).all()
    tiny = np.array([1e-308, 1e-300])
    np.testing.assert_allclose(formulas.gamma_formula(tiny), 1 / tiny, rtol=1e-15)
    np.testing.assert_allclose(formulas.log_gamma_formula(tiny), -np.log(tiny), rtol=1e-15)
    great = np.array([1e100, 1e305])
    want = great * (np.log(great) - 1)
    np.testing.assert_allclose(formulas.log_gamma_formula(great), want, rtol=1e-15)


def test_what_stirlings_series_adds():
    x = np.array([8.0, 20.0, 1e3])
    rest = special.gammaln(x) - ((x - 0.5) * np.log(x) - x + 0.5 * np.log(2 * np.pi))
    np.testing.assert_allclose(formulas.stirling_remainder(x), rest, rtol=1e-8, atol=1e-12)
    # 1 / 12x - 1 / 360x^3
    np.testing.assert_allclose(formulas.stirling_remainder(1e6), 1 / 12e6, rtol=1e-12)


def test_about_two():
    e = np.array([-0.5, -1e-20, 0.0, 1e-20, 0.5])
    got = formulas.log_gamma_two(e)
    np.testing.assert_allclose(got[[0, 4]], special.gammaln([1.5, 2.5]), rtol=1e-14)
    np.testing.assert_allclose(got[[1, 3]], e[[1, 3]] * (1 - np.euler_gamma), rtol=1e-14)
    assert got[2] == 0
