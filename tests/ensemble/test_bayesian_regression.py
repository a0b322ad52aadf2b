"""Bayesian linear regression against the conjugate formulas, the Gaussian process, MacKay's law."""

import json
from pathlib import Path

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


FOLDER = Path(__file__).parents[3] / "shared" / "reference" / "posteriors"
"""laplace-torch's values, where the folder is there."""


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
        out = fitted.predict(new)
        mean, variance = out.mean, out.variance
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
    out = one.predict(NEW)
    mean, variance = out.mean, out.variance
    np.testing.assert_allclose(mean, two.predict(NEW).mean[:, 0], rtol=1e-10)
    np.testing.assert_allclose(variance, two.predict(NEW).variance[:, 0], rtol=1e-10)
    assert one.predict(NEW[0]).mean.shape == ()


def test_predictions_are_gaussians_of_single_numbers():
    out = fit_bayesian_regression(X, Y).predict(NEW, noise=True)
    mean, std = np.asarray(out.mean), np.asarray(out.std)
    assert out.sample(st.random.key(0), 3).shape == (3, *mean.shape)
    expected = stats.norm(mean, std).logpdf(mean + 1)
    np.testing.assert_allclose(out.log_density(mean + 1), expected, rtol=1e-10)
    both = out.mixture()
    np.testing.assert_allclose(both.variance, (std**2).mean(0) + mean.var(0), rtol=1e-10)


def test_ten_members_at_once_are_each_alone():
    features = snp.tanh(X @ RNG.normal(size=(10, P, 4)))
    together = st.jit(st.vmap(fit_bayesian_regression, (0, None)))(features, Y)
    out = st.vmap(lambda f, x: f.predict(x), (0, 0))(together, features)
    means, variances = out.mean, out.variance
    assert means.shape == variances.shape == (10, N, 2)
    for i in (0, 9):
        alone = fit_bayesian_regression(features[i], Y)
        np.testing.assert_allclose(together.noise[i], alone.noise, rtol=1e-10)
        np.testing.assert_allclose(together.prior_precision[i], alone.prior_precision, rtol=1e-8)
        np.testing.assert_allclose(means[i], alone.predict(features[i]).mean, rtol=1e-9)
        np.testing.assert_allclose(variances[i], alone.predict(features[i]).variance, rtol=1e-8)


@pytest.mark.parametrize("settings", [SETTINGS, {}])
@pytest.mark.parametrize("dead", [0, 2])
def test_the_slope_of_the_evidence_by_features(settings, dead):
    """At the maximum too, and with features that are 0: features can be trained by it."""
    value = lambda x: fit_bayesian_regression(x, Y, **settings).log_marginal_likelihood().sum()
    x, direction = X.copy(), RNG.normal(size=X.shape)
    x[:, :dead] = 0
    slopes = st.jit(st.grad(value))(snp.asarray(x))
    ends = [float(value(x + s * direction)) for s in (1e-5, -1e-5)]
    np.testing.assert_allclose((slopes * direction).sum(), (ends[0] - ends[1]) / 2e-5, rtol=1e-5)


def test_saved_and_loaded(tmp_path):
    fitted = fit_bayesian_regression(X, Y)
    st.save(tmp_path / "fitted.safetensors", fitted)
    again = st.load(tmp_path / "fitted.safetensors", like=fitted)
    np.testing.assert_array_equal(again.predict(NEW).variance, fitted.predict(NEW).variance)


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


@pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the reference values")
def test_a_network_s_last_layer_at_its_map_is_laplace_torch_s():
    """There the last layer's Laplace is exact; means agree as far as the training got, 1e-8."""
    arrays = np.load(FOLDER / "reference.npz")
    numbers = json.loads((FOLDER / "reference.json").read_text())
    layer = "reg.last_layer.full.ggn"

    def features(x):
        hidden = np.tanh(x @ arrays["reg.w.0.weight"].T + arrays["reg.w.0.bias"])
        return np.concatenate([hidden, np.ones((len(x), 1))], axis=1)

    fitted = fit_bayesian_regression(
        features(arrays["reg.x"]), arrays["reg.y"][:, 0], prior_precision=1.0, noise=0.2
    )
    out = fitted.predict(features(arrays["reg.xt"]))
    mean, variance = out.mean, out.variance
    np.testing.assert_allclose(mean, arrays["reg.f_test"][:, 0], atol=1e-7)
    np.testing.assert_allclose(variance, arrays[f"{layer}.glm_var"][:, 0, 0], rtol=1e-10)
    np.testing.assert_allclose(fitted.weights[:8], arrays["reg.w.2.weight"][0], atol=1e-7)
    evidence = lambda log: fitted.log_marginal_likelihood(snp.exp(log[0]), 0.2 * snp.exp(log[1]))
    value, slopes = st.value_and_grad(evidence)(snp.zeros(2))
    np.testing.assert_allclose(value, numbers[f"{layer}.marglik0"], rtol=1e-10)
    expected = [numbers[f"{layer}.dmarglik_dlog{name}0"] for name in ("prior", "sigma")]
    np.testing.assert_allclose(slopes, expected, rtol=1e-6)
