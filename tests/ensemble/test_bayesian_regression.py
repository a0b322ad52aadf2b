"""Bayesian linear regression against the conjugate formulas, the Gaussian process, MacKay's law."""

import numpy as np
import pytest
from scipy import optimize, stats

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import fit_bayesian_regression

RNG = np.random.default_rng(0)
N, P = 30, 6
X = RNG.normal(size=(N, P)) * np.array([1, 2, 0.5, 1, 3, 0.1])
Y = X @ RNG.normal(size=(P, 2)) + np.array([0.3, 1.5]) * RNG.normal(size=(N, 2))
NEW = RNG.normal(size=(5, P))
ALPHA, SIGMA = np.array([0.7, 2.0]), np.array([0.4, 1.2])
WIDE = RNG.normal(size=(8, 20))  # more features than examples
SETTINGS = {"prior_precision": ALPHA, "noise": SIGMA}


@pytest.fixture(autouse=True)
def in_float64():
    with st.enable_x64():
        yield


def conjugate(x, y, alpha, sigma):
    """The posterior of one output's weights (Bishop, 2006, equations 3.53 and 3.54)."""
    covariance = np.linalg.inv(alpha * np.eye(x.shape[1]) + x.T @ x / sigma**2)
    return covariance @ x.T @ y / sigma**2, covariance


def of_gaussian_process(x, y, alpha, sigma):
    covariance = sigma**2 * np.eye(len(x)) + x @ x.T / alpha
    return stats.multivariate_normal(np.zeros(len(x)), covariance).logpdf(y)


CASES = {"tall": (X, Y), "wide": (WIDE, RNG.normal(size=(8, 2))), "rank 2": (X[:, [0, 0, 1]], Y)}


@pytest.mark.parametrize("case", CASES)
def test_the_conjugate_formulas_and_the_gaussian_process(case):
    x, y = CASES[case]
    new = RNG.normal(size=(5, x.shape[1]))
    fit = lambda x, y: fit_bayesian_regression(x, y, **SETTINGS)
    for fitted in (fit(x, y), st.jit(fit)(x, y)):
        mean, variance = fitted.predict(new)
        noisy = fitted.predict(new, noise=True).variance
        for k in range(2):
            w, covariance = conjugate(x, y[:, k], ALPHA[k], SIGMA[k])
            own = np.einsum("ni,ij,nj->n", new, covariance, new)
            np.testing.assert_allclose(fitted.weights[:, k], w, rtol=1e-10, atol=1e-12)
            np.testing.assert_allclose(fitted.covariance[k], covariance, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(mean[:, k], new @ w, rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(variance[:, k], own, rtol=1e-9)
            np.testing.assert_allclose(noisy[:, k], own + SIGMA[k] ** 2, rtol=1e-9)
            expected = of_gaussian_process(x, y[:, k], ALPHA[k], SIGMA[k])
            np.testing.assert_allclose(fitted.log_marginal_likelihood()[k], expected, rtol=1e-11)


def test_the_evidence_of_other_settings():
    fitted = fit_bayesian_regression(X, Y, **SETTINGS)
    found = st.jit(lambda f, a: f.log_marginal_likelihood(a, 0.9))(fitted, 3.0)
    expected = [of_gaussian_process(X, Y[:, k], 3.0, 0.9) for k in range(2)]
    np.testing.assert_allclose(found, expected, rtol=1e-12)


def test_the_maximum_of_the_evidence():
    """Bishop's equations 3.92 and 3.95 hold there, and no optimizer finds more."""
    for fitted in (fit_bayesian_regression(X, Y), st.jit(fit_bayesian_regression)(X, Y)):
        gamma = np.asarray(fitted.effective_parameters)
        alpha = gamma / np.square(fitted.weights).sum(0)
        variance = np.square(Y - X @ np.asarray(fitted.weights)).sum(0) / (N - gamma)
        np.testing.assert_allclose(fitted.prior_precision, alpha, rtol=1e-8)
        np.testing.assert_allclose(np.square(fitted.noise), variance, rtol=1e-8)
        for k in range(2):
            f = lambda p, k=k: -of_gaussian_process(X, Y[:, k], *np.exp(p))
            best = -optimize.minimize(f, np.zeros(2), method="Nelder-Mead").fun
            assert abs(float(fitted.log_marginal_likelihood()[k]) - best) < 1e-5


@pytest.mark.parametrize("given", SETTINGS)
def test_the_maximum_where_one_is_given(given):
    fitted = fit_bayesian_regression(X, Y, **{given: SETTINGS[given]})
    other = "noise" if given == "prior_precision" else "prior_precision"
    np.testing.assert_allclose(getattr(fitted, given), SETTINGS[given])
    value = lambda log: fitted.log_marginal_likelihood(**{other: snp.exp(log)}).sum()
    log = snp.log(getattr(fitted, other))
    np.testing.assert_allclose(st.grad(value)(log), np.zeros(2), atol=1e-7)
    assert float(value(log)) > max(float(value(log + 0.1)), float(value(log - 0.1)))


def test_features_that_say_nothing():
    y = RNG.normal(size=N)
    nothing = fit_bayesian_regression(np.zeros((N, 2)), y)
    np.testing.assert_allclose(nothing.noise, np.sqrt(np.mean(y**2)))
    assert np.isfinite(nothing.predict(np.ones((1, 2))).variance).all()


def test_one_output_without_an_axis():
    two, one = fit_bayesian_regression(X, Y), fit_bayesian_regression(X, Y[:, 0])
    assert one.weights.shape == (P,) and one.covariance.shape == (P, P)
    assert one.effective_parameters.shape == one.log_marginal_likelihood().shape == ()
    np.testing.assert_allclose(one.weights, two.weights[:, 0], rtol=1e-10)
    np.testing.assert_allclose(one.covariance, two.covariance[0], rtol=1e-10)
    mean, variance = one.predict(NEW)
    np.testing.assert_allclose(mean, two.predict(NEW).mean[:, 0], rtol=1e-10)
    np.testing.assert_allclose(variance, two.predict(NEW).variance[:, 0], rtol=1e-10)
    assert one.predict(NEW[0]).mean.shape == ()


def test_ten_members_at_once_are_each_alone():
    features = snp.tanh(X @ RNG.normal(size=(10, P, 4)))
    together = st.jit(st.vmap(fit_bayesian_regression, (0, None)))(features, Y)
    means, variances = st.vmap(lambda f, x: f.predict(x), (0, 0))(together, features)
    assert means.shape == variances.shape == (10, N, 2)
    for i in (0, 9):
        alone = fit_bayesian_regression(features[i], Y)
        np.testing.assert_allclose(together.noise[i], alone.noise, rtol=1e-10)
        np.testing.assert_allclose(together.prior_precision[i], alone.prior_precision, rtol=1e-8)
        np.testing.assert_allclose(means[i], alone.predict(features[i]).mean, rtol=1e-9)
        np.testing.assert_allclose(variances[i], alone.predict(features[i]).variance, rtol=1e-8)


@pytest.mark.parametrize("settings", [SETTINGS, {}])
def test_the_slope_of_the_evidence_by_features(settings):
    """At the maximum too: features can be trained by it."""
    value = lambda x: fit_bayesian_regression(x, Y, **settings).log_marginal_likelihood().sum()
    direction = RNG.normal(size=X.shape)
    slopes = st.jit(st.grad(value))(snp.asarray(X))
    ends = [float(value(X + s * direction)) for s in (1e-5, -1e-5)]
    np.testing.assert_allclose((slopes * direction).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-6)


def test_float32():
    with st.enable_x64(False):
        fitted = fit_bayesian_regression(X.astype(np.float32), Y.astype(np.float32))
        assert fitted.noise.dtype == np.float32
    exact = fit_bayesian_regression(X, Y)
    np.testing.assert_allclose(fitted.noise, exact.noise, rtol=1e-4)
    np.testing.assert_allclose(fitted.prior_precision, exact.prior_precision, rtol=1e-3)


def test_misuse():
    with pytest.raises(ValueError, match=r"features of shape \(examples, features\) .* \(30,\)"):
        fit_bayesian_regression(X[:, 0], Y)
    with pytest.raises(ValueError, match=r"got \(30, 6\) and \(7, 2\)"):
        fit_bayesian_regression(X, Y[:7])
    with pytest.raises(ValueError, match="prior_precision must be positive, got -1"):
        fit_bayesian_regression(X, Y, prior_precision=-1.0)
    with pytest.raises(ValueError, match="noise must be a number or 'evidence', got 'auto'"):
        fit_bayesian_regression(X, Y, noise="auto")
    with pytest.raises(ValueError, match=r"noise that is a number or of shape \(2,\), .*\(3,\)"):
        fit_bayesian_regression(X, Y, noise=np.ones(3))
    with pytest.raises(ValueError, match=r"features of shape \(..., 6\), got \(5, 5\)"):
        fit_bayesian_regression(X, Y).predict(NEW[:, :5])
