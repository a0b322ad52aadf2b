import numpy as np
import pytest
from scipy import stats as theirs

import stretto as st
import stretto.numpy as snp
from stretto.scipy.stats import gaussian_kde

RNG = np.random.default_rng(0)
ONE = RNG.normal(size=20).astype(np.float32)
TWO = RNG.normal(size=(2, 15)).astype(np.float32)
WEIGHTS = RNG.uniform(0.2, 1, 15).astype(np.float32)
POINTS = RNG.normal(size=(2, 4)).astype(np.float32)


def close(ours, other):
    np.testing.assert_allclose(ours, other, rtol=2e-4)


@pytest.mark.parametrize("method", [None, "silverman", 0.3])
def test_densities(method):
    ours, other = gaussian_kde(TWO, method, WEIGHTS), theirs.gaussian_kde(TWO, method, WEIGHTS)
    close(ours(POINTS), other(POINTS))
    close(st.jit(lambda k, p: k.logpdf(p))(ours, POINTS), other.logpdf(POINTS))
    close(ours.covariance, other.covariance)
    close(ours.inv_cov, other.inv_cov)
    close(ours.neff, other.neff)


def test_integrals():
    ours, other = gaussian_kde(TWO), theirs.gaussian_kde(TWO)
    cov = np.array([[1.0, 0.2], [0.2, 0.5]], np.float32)
    mean = np.array([0.3, -0.1], np.float32)
    close(ours.integrate_gaussian(mean, cov), other.integrate_gaussian(mean, cov))
    weighted = gaussian_kde(TWO, weights=WEIGHTS)
    close(
        ours.integrate_kde(weighted), other.integrate_kde(theirs.gaussian_kde(TWO, None, WEIGHTS))
    )
    close(
        gaussian_kde(ONE).integrate_box_1d(-1, 0.5),
        theirs.gaussian_kde(ONE).integrate_box_1d(-1, 0.5),
    )


def test_estimates_are_trees():
    estimates = st.vmap(gaussian_kde)(snp.asarray(np.stack([ONE, ONE + 1])))
    out = st.vmap(lambda k: k(snp.array([0.5])))(estimates)
    close(out[1], gaussian_kde(ONE + 1)(np.array([0.5], np.float32)))
    slope = st.grad(lambda p: gaussian_kde(ONE).logpdf(p).sum())(snp.array([0.5]))
    step = 1e-2
    ahead, behind = (gaussian_kde(ONE).logpdf(np.array([0.5 + s])) for s in (step, -step))
    np.testing.assert_allclose(slope, (ahead - behind) / (2 * step), rtol=1e-2)


def test_draws_have_the_estimates_moments():
    kde = gaussian_kde(TWO)
    draws = np.asarray(kde.resample(st.random.PRNGKey(0), (20_000,)))
    assert draws.shape == (2, 20_000)
    expected = np.cov(TWO, bias=True) + np.asarray(kde.covariance)
    np.testing.assert_allclose(np.cov(draws), expected, atol=0.05)


def test_errors():
    with pytest.raises(ValueError, match="more than one sample"):
        gaussian_kde(np.ones(1, np.float32))
    with pytest.raises(ValueError, match="weights of shape"):
        gaussian_kde(TWO, weights=WEIGHTS[:3])
    with pytest.raises(ValueError, match="bw_method"):
        gaussian_kde(TWO, "scots")
    kde = gaussian_kde(TWO)
    with pytest.raises(ValueError, match="evaluate: expected points of 2 dimensions"):
        kde(np.ones((3, 4), np.float32))
    for f in (kde.pdf, kde.logpdf):
        with pytest.raises(ValueError, match=rf"kde.{f.__name__}: expected x of 2 dimensions"):
            f(np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match=r"integrate_box_1d: the samples have 2 dimensions"):
        kde.integrate_box_1d(0, 1)
    with pytest.raises(ValueError, match="integrate_gaussian: expected mean"):
        kde.integrate_gaussian(np.ones(3), np.eye(2))
    with pytest.raises(TypeError, match=r"kde.integrate_gaussian: mean must be an array"):
        kde.integrate_gaussian([0.0, 0.0], np.eye(2))
    with pytest.raises(ValueError, match=r"kde.integrate_kde: the estimates have 2 and 1 dim"):
        kde.integrate_kde(gaussian_kde(ONE))
    with pytest.raises(NotImplementedError, match="resample"):
        kde.integrate_box([0, 0], [1, 1])
    with pytest.raises(NotImplementedError, match="immutable"):
        kde.set_bandwidth(0.1)
