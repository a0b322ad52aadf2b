"""Sums of exponentials: large and small ones, infinities, signs, factors of zero."""

import numpy as np
import pytest
from scipy import special as sp

from stretto import grad, jit, special
from stretto._engine.core.config import enable_x64

INF, NAN = np.inf, np.nan


@pytest.mark.parametrize("shift", [0.0, 1e4, -1e4])
def test_great_and_small_numbers(shift):
    x = np.array([[0.3, -1.2, 2.0], [0.0, -50.0, 1.0]]) + shift
    with enable_x64():
        for f in (lambda f: f, jit):
            np.testing.assert_allclose(f(special.logsumexp)(x), sp.logsumexp(x), rtol=1e-14)
            total = f(lambda x: special.softmax(x, axis=1))(x)
            np.testing.assert_allclose(total, sp.softmax(x, axis=1), rtol=1e-11)
            logs = f(lambda x: special.log_softmax(x, axis=0))(x)
            # SciPy's is 0 where the logarithm is -6e-22.
            np.testing.assert_allclose(logs, sp.log_softmax(x, axis=0), rtol=1e-11, atol=1e-20)


@pytest.mark.parametrize(
    "x, want",
    [
        ([-INF, -INF], -INF),
        ([-INF, 1.0], 1.0),
        ([INF, 1.0], INF),
        ([NAN, 1.0], NAN),
        ([INF, -INF], INF),
    ],
)
def test_infinities(x, want):
    np.testing.assert_array_equal(special.logsumexp(np.array(x)), want)
    np.testing.assert_array_equal(jit(special.logsumexp)(np.array(x)), want)


def test_factors_and_signs():
    x, b = np.array([1.0, 2.0, 0.5]), np.array([1.0, -2.0, 0.0])
    with enable_x64():
        size, sign = special.logsumexp(x, b=b, return_sign=True)
        want, want_sign = sp.logsumexp(x, b=b, return_sign=True)
        np.testing.assert_allclose([size, sign], [want, want_sign], rtol=1e-14)
        assert np.isnan(float(special.logsumexp(x, b=b)))  # the sum is negative
        # A factor of zero counts for nothing, whatever it multiplies.
        assert float(special.logsumexp(np.array([INF, 0.0]), b=np.array([0.0, 1.0]))) == 0
        kept = special.logsumexp(np.ones((2, 3)), axis=(0, 1), keepdims=True)
        assert kept.shape == (1, 1)


def test_the_elements_that_count():
    x, some = np.array([1.0, 50.0, 2.0]), np.array([True, False, True])
    with enable_x64():
        got = special.logsumexp(x, where=some)
    np.testing.assert_allclose(got, sp.logsumexp(x[some]), rtol=1e-14)
    assert float(special.logsumexp(x, where=np.zeros(3, bool))) == -INF


def test_derivatives():
    x = np.array([1000.0, 1001.0, -INF])
    with enable_x64():
        slopes = grad(special.logsumexp)(x)
        np.testing.assert_allclose(slopes, sp.softmax(x), rtol=1e-14)
        first = lambda x: special.softmax(x, axis=0)[0]
        p = sp.softmax(x[:2])
        np.testing.assert_allclose(grad(first)(x[:2]), [p[0] * p[1], -p[0] * p[1]], rtol=1e-12)
