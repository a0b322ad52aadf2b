"""Distributions of vectors: SciPy's values, simplices, batches, refusals, slopes."""

import numpy as np
import pytest
from scipy import stats

import stretto as st
from stretto.scipy import stats as ours


def test_dirichlet():
    alpha = np.array([0.5, 2.0, 3.5])
    x = np.array([0.2, 0.3, 0.5])
    with st.enable_x64():
        want = stats.dirichlet.logpdf(x, alpha)
        np.testing.assert_allclose(ours.dirichlet.logpdf(x, alpha), want, rtol=1e-12)
        # The last proportion may be left out.
        np.testing.assert_allclose(ours.dirichlet.logpdf(x[:2], alpha), want, rtol=1e-12)
        columns = np.stack([x, x[::-1]], 1)
        got = ours.dirichlet.pdf(columns, alpha)
        np.testing.assert_allclose(got, [stats.dirichlet.pdf(v, alpha) for v in columns.T])
        for off in ([0.2, 0.3, 0.6], [0.0, 0.5, 0.5], [-0.1, 0.6, 0.5]):
            assert float(ours.dirichlet.logpdf(np.array(off), alpha)) == -np.inf
    for bad in (np.ones(5) / 5, np.float32(1.0)):
        for f in (ours.dirichlet.logpdf, ours.dirichlet.pdf):
            expected = rf"dirichlet.{f.__name__}: expected alpha of shape \(k,\) and x"
            with pytest.raises(ValueError, match=expected):
                f(bad, alpha)


def test_multinomial():
    x, p = np.array([[2, 3, 1], [6, 0, 0], [1, 1, 1]]), np.array([0.2, 0.5, 0.3])
    with st.enable_x64():
        got = np.asarray(ours.multinomial.logpmf(x, 6, p))
        np.testing.assert_allclose(got[:2], stats.multinomial.logpmf(x[:2], 6, p), rtol=1e-12)
        assert got[2] == -np.inf  # the counts do not add up
        assert float(ours.multinomial.pmf(np.array([1.5, 4.5, 0]), 6, p)) == 0
        assert float(ours.multinomial.pmf(np.array([-1, 4, 3]), 6, p)) == 0
        assert float(ours.multinomial.pmf(np.array([2, 0]), 2, np.array([1.0, 0.0]))) == 1


def test_multivariate_normal():
    random = np.random.default_rng(0)
    a = random.normal(size=(3, 3))
    cov, mean, x = a @ a.T + np.eye(3), random.normal(size=3), random.normal(size=(4, 3))
    with st.enable_x64():
        want = stats.multivariate_normal.logpdf(x, mean, cov)
        got = ours.multivariate_normal.logpdf(x, mean, cov)
        np.testing.assert_allclose(got, want, rtol=1e-12)
        np.testing.assert_allclose(ours.multivariate_normal.pdf(x, mean, cov), np.exp(want))
        np.testing.assert_allclose(
            ours.multivariate_normal.logpdf(0.3, 1.0, 4.0), stats.norm.logpdf(0.3, 1.0, 2.0)
        )
        # The gradient in x is -cov^-1 (x - mean).
        slope = st.grad(lambda x: ours.multivariate_normal.logpdf(x, mean, cov))(x[0])
        np.testing.assert_allclose(slope, -np.linalg.solve(cov, x[0] - mean), rtol=1e-10)
        singular = ours.multivariate_normal.logpdf(np.zeros(2), np.zeros(2), np.ones((2, 2)))
        assert not np.isfinite(float(singular))
