"""Gaussian predictions and links: NumPy, SciPy, references, and the ways around rounding."""

from pathlib import Path

import numpy as np
import pytest
from scipy import special, stats

import stretto as st
import stretto.numpy as snp
from stretto.ensemble.gaussian import (
    Gaussian,
    bridge,
    log_mean_over_draws,
    mean_over_draws,
    probit,
    root_of,
)

FOLDER = Path(__file__).parents[3] / "shared" / "reference" / "posteriors"
needs_reference = pytest.mark.skipif(not FOLDER.is_dir(), reason="needs the reference values")
KEY = st.random.key(0)


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


def spread(rng, *shape):
    x = rng.normal(size=(*shape, shape[-1]))
    return x @ np.swapaxes(x, -1, -2)


def test_moments_and_density_of_events_of_any_rank():
    rng = np.random.default_rng(0)
    mean, matrix, y = rng.normal(size=(3, 4)), spread(rng, 3, 4), rng.normal(size=(3, 4))
    many = Gaussian(snp.asarray(mean), snp.asarray(matrix))
    np.testing.assert_array_equal(many.variance, np.diagonal(matrix, axis1=1, axis2=2))
    np.testing.assert_allclose(many.std, np.sqrt(many.variance), rtol=1e-15)
    expected = [
        stats.multivariate_normal(m, c).logpdf(v) for m, c, v in zip(mean, matrix, y, strict=True)
    ]
    np.testing.assert_allclose(many.log_density(y), expected, rtol=1e-10)
    square = Gaussian(
        snp.asarray(mean[0].reshape(2, 2)), snp.asarray(matrix[0].reshape(2, 2, 2, 2))
    )
    np.testing.assert_array_equal(square.variance, np.diagonal(matrix[0]).reshape(2, 2))
    np.testing.assert_allclose(square.log_density(y[0].reshape(2, 2)), expected[0], rtol=1e-10)


def test_draws_have_the_moments_of_singular_covariances_too():
    rng = np.random.default_rng(1)
    matrix = spread(rng, 3)
    matrix[2] = matrix[:, 2] = 0
    one = Gaussian(snp.asarray([1.0, 2.0, 3.0]), snp.asarray(matrix))
    draws = np.asarray(one.sample(KEY, 20_000))
    error = 5 * np.sqrt(np.outer(np.diag(matrix), np.diag(matrix)).max() * 2 / 20_000)
    np.testing.assert_allclose(np.cov(draws.T), matrix, atol=error)
    np.testing.assert_array_equal(draws[:, 2], 3)
    root = np.asarray(root_of(snp.asarray(matrix)))
    np.testing.assert_allclose(root @ root.T, matrix, atol=1e-13)


def test_the_mixture_has_the_moments_of_its_draws():
    rng = np.random.default_rng(2)
    mean, matrix = rng.normal(size=(5, 3, 2)), spread(rng, 5, 3, 2)
    whole = Gaussian(snp.asarray(mean), snp.asarray(matrix)).mixture()
    np.testing.assert_allclose(whole.mean, mean.mean(0), rtol=1e-13)
    for i in range(3):
        between = np.cov(mean[:, i].T, bias=True)
        np.testing.assert_allclose(whole.covariance[i], matrix[:, i].mean(0) + between, rtol=1e-12)


def test_a_mixture_needs_members():
    with pytest.raises(ValueError, match="expected members along axis 0, got one distribution"):
        Gaussian(snp.zeros(2), snp.eye(2)).mixture()
    with pytest.raises(ValueError, match=r"Gaussian.sample: expected at least 1 draw, got 0"):
        Gaussian(snp.zeros(2), snp.eye(2)).sample(KEY, 0)


@needs_reference
@pytest.mark.parametrize("tag", ["cla.all.full", "cla.last_layer.diag", "con.all.kron"])
def test_links_are_the_references(tag):
    values = np.load(FOLDER / "reference.npz")
    mean, matrix = [snp.asarray(values[f"{tag}.ggn.{n}"]) for n in ("glm_mean", "glm_var")]
    one = Gaussian(mean, matrix)
    found = st.nn.functional.softmax(probit(mean, one.variance), -1)
    np.testing.assert_allclose(found, values[f"{tag}.ggn.probit"], atol=1e-14)
    np.testing.assert_allclose(bridge(mean, matrix), values[f"{tag}.ggn.bridge"], atol=1e-14)


def test_the_mean_over_draws_of_one_logit_is_the_integral():
    mean, variance = np.array([[0.5], [-2.0]]), np.array([[[4.0]], [[1.0]]])
    one = Gaussian(snp.asarray(mean), snp.asarray(variance))
    samples = 2000
    draw = lambda key: one.sample(key, 1)[0]
    found = mean_over_draws(draw, st.nn.functional.sigmoid, KEY, samples)
    nodes, weights = np.polynomial.hermite_e.hermegauss(60)
    z = mean + np.sqrt(variance[:, 0]) * nodes
    expected = (special.expit(z) * weights).sum(-1, keepdims=True) / np.sqrt(2 * np.pi)
    np.testing.assert_allclose(found, expected, atol=4 * 0.5 / np.sqrt(samples))
    # The same draws in logarithms, and the approximation without draws within what it promises.
    logs = log_mean_over_draws(draw, st.nn.functional.logsigmoid, KEY, samples)
    np.testing.assert_allclose(np.exp(logs), found, rtol=1e-12)
    scaled = probit(one.mean, one.variance)
    np.testing.assert_allclose(st.nn.functional.sigmoid(scaled), expected, atol=0.02)


def test_the_bridge_does_not_overflow():
    mean = snp.asarray([[1000.0, -1000.0, 0.0]])
    np.testing.assert_allclose(bridge(mean, snp.eye(3)[None]), [[1, 0, 0]], atol=1e-12)


def test_under_transformations():
    rng = np.random.default_rng(3)
    mean, matrix = snp.asarray(rng.normal(size=(4, 2))), snp.asarray(spread(rng, 4, 2))
    y = snp.zeros((4, 2))
    of = lambda m, c, y: Gaussian(m, c).log_density(y)
    whole = of(mean, matrix, y)
    np.testing.assert_allclose(st.jit(of)(mean, matrix, y), whole, rtol=1e-12)
    np.testing.assert_allclose(st.vmap(of)(mean, matrix, y), whole, rtol=1e-12)
    slope = st.grad(lambda m: of(m, matrix, y).sum())(mean)
    expected = -np.linalg.solve(np.asarray(matrix), np.asarray(mean)[..., None])[..., 0]
    np.testing.assert_allclose(slope, expected, rtol=1e-9)
