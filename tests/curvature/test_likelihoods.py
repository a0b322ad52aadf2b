import math

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.curvature import likelihood_of

CASES = {
    "categorical": ((4,), 2),
    "bernoulli": ((3,), np.array([0, 1, 1])),
    "gaussian": ((3,), np.array([0.5, -1.0, 2.0])),
    "heteroscedastic": ((3, 2), np.array([0.5, -1.0, 2.0])),
}


@pytest.fixture(autouse=True)
def _double():
    with st.enable_x64():
        yield


def outputs(shape, seed=0):
    return snp.array(np.random.default_rng(seed).normal(size=shape))


def square(root):
    flat = np.asarray(root).reshape(-1, root.shape[-1])
    return flat @ flat.T


@pytest.mark.parametrize("name", ["categorical", "bernoulli", "gaussian"])
def test_the_root_is_that_of_the_hessian(name):
    shape, y = CASES[name]
    likelihood, f = likelihood_of(name), outputs(shape)
    hessian = st.hessian(lambda f: likelihood.nll(f, y))(f)
    np.testing.assert_allclose(square(likelihood.root(f, y)), hessian, atol=1e-15)


def test_the_root_of_pixels_is_block_diagonal():
    likelihood, f = likelihood_of("categorical"), outputs((3, 2, 2))
    y = np.array([[0, 1], [2, 2]])
    hessian = st.hessian(lambda f: likelihood.nll(f, y))(f).reshape(12, 12)
    np.testing.assert_allclose(square(likelihood.root(f, y)), hessian, atol=1e-15)


def test_the_heteroscedastic_root_is_that_of_the_expected_hessian():
    # E of the Hessian over y ~ N(m, v): diag(1 / v, 1 / 2); of it only (m - y)² is random.
    likelihood, f = likelihood_of("heteroscedastic"), outputs((1, 2))
    deviation = math.exp(0.5 * float(f[0, 1]))
    hessian = st.hessian(likelihood.nll)
    # Gauss-Hermite with two nodes is exact for squares.
    both = [hessian(f, f[:, 0] + s * deviation).reshape(2, 2) for s in (-1, 1)]
    expected = (np.asarray(both[0]) + np.asarray(both[1])) / 2
    np.testing.assert_allclose(square(likelihood.root(f, None)), expected, atol=1e-15)


@pytest.mark.parametrize("name", ["categorical", "bernoulli", "gaussian", "heteroscedastic"])
def test_diagonal_and_factor_are_the_square_of_the_root(name):
    likelihood = likelihood_of(name)
    for shape in [(3, 2), (1, 2), (4, 3, 2)]:
        f = outputs(shape)
        diagonal, factor = likelihood.diagonal_and_factor(f, None)
        assert diagonal.shape == shape
        found = np.diag(np.ravel(diagonal))
        if factor is not None:
            beside = -square(factor)
            np.fill_diagonal(beside, np.ravel(diagonal))
            found = beside
        np.testing.assert_allclose(found, square(likelihood.root(f, None)), atol=1e-15)


def test_the_root_of_classes_that_are_out_of_the_question():
    root = likelihood_of("categorical").root(snp.array([-2000.0, 0.0, 3.0, -2000.0]), None)
    p = 1 / (1 + math.exp(3.0))
    expected = np.zeros((4, 4))
    expected[1:3, 1:3] = p * (1 - p) * np.array([[1, -1], [-1, 1]])
    np.testing.assert_allclose(square(root), expected, atol=1e-15)


def test_losses_are_whole_negative_log_likelihoods():
    f = outputs((2,))
    got = likelihood_of("gaussian").nll(f, np.zeros(2))
    expected = sum(0.5 * float(x) ** 2 + 0.5 * math.log(2 * math.pi) for x in f)
    np.testing.assert_allclose(got, expected, rtol=1e-15)
    f = snp.array([[0.3, -0.4]])
    same = likelihood_of("heteroscedastic").nll(f, np.array([1.0]))
    variance = math.exp(-0.4)
    expected = 0.5 * (0.7**2 / variance + math.log(2 * math.pi * variance))
    np.testing.assert_allclose(same, expected, rtol=1e-15)
    got = likelihood_of("bernoulli").nll(snp.array(0.2), 1)
    np.testing.assert_allclose(got, -math.log(1 / (1 + math.exp(-0.2))), rtol=1e-15)
    logits, y = outputs((5, 3)), np.array([0, 2, 1])
    got = likelihood_of("categorical").nll(logits, y)
    same = st.nn.functional.cross_entropy(logits[None], y[None], reduction="sum")
    np.testing.assert_allclose(got, same, rtol=1e-15)


def test_the_loss_of_no_class_is_nan_where_it_is_traced():
    nll = likelihood_of("categorical").nll
    assert np.isnan(st.jit(nll)(snp.zeros(3), 3))
    with pytest.raises(ValueError, match="the classes of input must be from 0 to 2"):
        nll(snp.zeros(3), 3)


@pytest.mark.parametrize("name", CASES)
def test_slopes_of_drawn_targets_have_mean_zero_and_the_root_as_deviation(name):
    shape, _ = CASES[name]
    likelihood, f = likelihood_of(name), outputs(shape)
    keys = st.random.split(st.random.key(1), 40_000)
    slopes = st.vmap(lambda k: st.grad(likelihood.nll)(f, likelihood.sample(k, f)).reshape(-1))(
        keys
    )
    slopes = np.asarray(slopes)
    expected = square(likelihood.root(f, None))
    # Standard errors of 40,000 draws are below 0.02 of the largest entry.
    scale = np.abs(expected).max()
    assert np.abs(slopes.mean(0)).max() < 0.02 * math.sqrt(scale)
    assert np.abs(slopes.T @ slopes / len(slopes) - expected).max() < 0.05 * scale


def test_a_function_has_the_root_of_its_hessian():
    likelihood = likelihood_of(lambda f, y: snp.logaddexp(0, snp.sum(f**2)) - y * f[0])
    f = outputs((3,))
    hessian = st.hessian(lambda f: likelihood.nll(f, 1.0))(f)
    np.testing.assert_allclose(square(likelihood.root(f, 1.0)), hessian, atol=1e-14)


def test_a_negative_eigenvalue_has_no_root():
    likelihood = likelihood_of(lambda f, y: f[0] ** 2 - f[1] ** 2)
    assert np.isnan(likelihood.root(snp.ones(2), None)).any()


def test_equal_functions_make_equal_likelihoods():
    def nll(f, y):
        return snp.sum((f - y) ** 2)

    assert likelihood_of(nll) == likelihood_of(nll)
    assert likelihood_of(likelihood_of("gaussian")) is likelihood_of("gaussian")


def test_what_is_no_likelihood_is_refused():
    with pytest.raises(ValueError, match=r"likelihood must be one of 'categorical', .* 'poisson'"):
        likelihood_of("poisson")
    with pytest.raises(TypeError, match="got int"):
        likelihood_of(3)
    with pytest.raises(ValueError, match=r"heteroscedastic: expected outputs \(..., 2\)"):
        likelihood_of("heteroscedastic").root(snp.zeros(3), None)
    with pytest.raises(ValueError, match="with one logit an example"):
        likelihood_of("categorical").root(snp.zeros(()), None)
    with pytest.raises(
        ValueError, match=r"gaussian: targets of one example must have shape \(2,\)"
    ):
        likelihood_of("gaussian").nll(snp.zeros(2), np.zeros(()))
    with pytest.raises(TypeError, match="categorical: targets must be integers"):
        likelihood_of("categorical").nll(snp.zeros(2), 1.0)
