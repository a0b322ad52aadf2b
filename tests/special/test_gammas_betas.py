"""Beta functions and binomial coefficients: values, poles, symmetry, derivatives."""

import math

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64
from tests.special.values import check_values

INF, NAN = np.inf, np.nan

VALUES = {
    "beta": [
        (1e-30, 2.0, 9.99999999999999917e+29), (0.5, 0.5, 3.14159265358979324),
        (30.0, 40.0, 1.05394246037965457e-21), (79.5, 300.0, 8.03756843277256371e-86),
        (-1.5, 2.25, 2.18504796191009984), (-0.3, -0.4, -3.76930902453231405),
    ],
    "betaln": [
        (1e-08, 100000000.0, 18.4206805539734015), (7.999, 8.0, -10.8482232555358181),
        (8.0, 8.0, -10.848948661710063), (3.0, 1000000000000000.0, -102.923182004172113),
        (10000000000.0, 100000000000.0, -33509970718.9625233),
        (-1.5, 2.25, 0.781637778837582237), (0.2, 500.0, 0.281302234729260456),
    ],
    "betainc": [
        (0.5, 0.5, 1e-10, 6.36619772378191684e-6), (2.0, 3.0, 0.999, 0.999999996003),
        (100.0, 90.0, 0.5, 0.233539631937043245), (0.001, 5.0, 0.4, 0.999968066088088606),
        (1000.0, 2000.0, 0.33, 0.350632676134183419),
    ],
    "comb": [
        (50.0, 25.0, 126410606437752.0), (5.5, 2.25, 13.6304083008017101),
        (1000000.0, 3.0, 166666166667000000.0), (0.5, 0.25, 1.07870520237675871),
    ],
}  # fmt: skip


@pytest.mark.parametrize("name", VALUES)
def test_values(name):
    check_values(getattr(special, name), VALUES[name])


def test_symmetric():
    a, b = np.array([0.5, 3.0, 1e-10, 200.0]), np.array([2.0, 1e6, 5.0, 0.01])
    with enable_x64():
        for f in (special.beta, special.betaln, jit(special.betaln)):
            np.testing.assert_array_equal(f(a, b), f(b, a))
        np.testing.assert_allclose(
            special.betainc(a, b, 0.3), 1 - special.betainc(b, a, 0.7), rtol=1e-9, atol=1e-14
        )


def test_poles():
    """As SciPy's: finite where the other is whole and at most -a."""
    a, b = (v.ravel() for v in np.meshgrid([0.0, -1.0, -3.0, -5.0], [0.5, 1.0, 2.0, 3.0, 4.0, NAN]))
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_allclose(f(special.beta)(a, b), sp.beta(a, b), rtol=1e-14)
            np.testing.assert_allclose(f(special.betaln)(a, b), sp.betaln(a, b), rtol=1e-14)


def test_edges_of_the_incomplete_function():
    with enable_x64():
        for f in (special.betainc, jit(special.betainc)):
            np.testing.assert_array_equal(f(2.0, 3.0, np.array([0.0, 1.0])), [0, 1])
            assert np.isnan(np.asarray(f(2.0, 3.0, np.array([-0.1, 1.1, NAN])))).all()
            assert np.isnan(float(f(-1.0, 3.0, 0.5)))


def test_whole_numbers_are_exact():
    n, k = (v.ravel().astype(float) for v in np.meshgrid(np.arange(40), np.arange(40)))
    want = [math.comb(int(a), int(b)) for a, b in zip(n, k, strict=True)]
    with enable_x64():
        for f in (special.comb, jit(special.comb)):
            np.testing.assert_array_equal(f(n, k), want)
        none = special.comb(np.array([-3.0, 3.0, 3.0]), np.array([1.0, -1, 4]))
        np.testing.assert_array_equal(none, 0)


def test_derivatives():
    with enable_x64():
        a, b = 2.5, 0.7
        by_a, by_b = grad(special.betaln, (0, 1))(a, b)
        np.testing.assert_allclose(by_a, sp.digamma(a) - sp.digamma(a + b), rtol=1e-13)
        np.testing.assert_allclose(by_b, sp.digamma(b) - sp.digamma(a + b), rtol=1e-13)
        np.testing.assert_allclose(grad(special.beta)(a, b), sp.beta(a, b) * by_a, rtol=1e-13)
        by_n, by_k = grad(special.comb, (0, 1))(5.0, 2.0)
        np.testing.assert_allclose(by_n, 10 * (sp.digamma(6) - sp.digamma(4)), rtol=1e-13)
        np.testing.assert_allclose(by_k, 10 * (sp.digamma(4) - sp.digamma(3)), rtol=1e-13)
        density = grad(special.betainc, 2)(2.0, 3.0, 0.4)
        np.testing.assert_allclose(density, 12 * 0.4 * 0.36, rtol=1e-13)


def test_combinations_with_repetition():
    n, k = (v.ravel() for v in np.meshgrid([0.0, 0.5, 1.0, 2.0, 5.0], [0.0, 1.0, 2.0, 3.5]))
    with enable_x64():
        want = sp.comb(n, k, repetition=True)
        f = lambda n, k: special.comb(n, k, repetition=True)
        np.testing.assert_allclose(f(n, k), want, atol=1e-12)
        np.testing.assert_allclose(jit(f)(n, k), want, atol=1e-12)
        assert float(special.comb(0, 0, repetition=True)) == 1.0
