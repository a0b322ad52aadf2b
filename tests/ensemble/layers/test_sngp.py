"""SNGP's layers against NumPy: the kernel, the precision, variances, and spectral norms."""

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto import nn, optim
from stretto.ensemble.layers import (
    RandomFeatureGaussianProcess,
    SpectralNorm,
    mean_field_logits,
    update_precision,
)

KEY = st.random.PRNGKey(0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(12, 3))
NEW = RNG.normal(size=(5, 3))
D = 16


@pytest.fixture(autouse=True)
def in_float64():
    with st.enable_x64():
        yield


def head(likelihood="categorical", outputs=4, **settings):
    settings = {"key": KEY, "dtype": np.float64, "num_features": D, **settings}
    return RandomFeatureGaussianProcess(3, outputs, likelihood=likelihood, **settings).eval()


def features(layer, x):
    waves = x / layer.length_scale @ np.asarray(layer.random_weight).T + layer.random_phase
    return np.sqrt(2 / layer.num_features) * np.cos(waves)


def weights_of(layer, x):
    """λ of each example and output, (examples, matrices)."""
    z = features(layer, x) @ np.asarray(layer.weight).T
    if layer.likelihood == "gaussian":
        return np.full((len(x), 1), 1 / layer.noise**2)
    p = special.softmax(z, -1) if layer.likelihood == "categorical" else special.expit(z)
    return p * (1 - p)


def test_features_are_an_rbf_kernel():
    layer = RandomFeatureGaussianProcess(
        3, 1, 2000, likelihood="gaussian", length_scale=1.7, key=KEY, dtype=np.float64
    )
    phi = np.asarray(layer.features(X))
    distances = np.square(X[:, None] - X).sum(-1)
    # A mean of 2,000 products 2 cos cos has a deviation of at most 1 / √2000 = 0.022.
    np.testing.assert_allclose(phi @ phi.T, np.exp(-distances / (2 * 1.7**2)), atol=0.09)


@pytest.mark.parametrize("likelihood", ["categorical", "bernoulli", "gaussian"])
def test_precision_variance_and_logits_are_the_formulas(likelihood):
    layer = head(likelihood, prior_precision=0.6, noise=0.7)
    after = update_precision(layer, [X[:5], (X[5:], "labels")])
    phi, new = features(layer, X), features(layer, NEW)
    precision = np.einsum("nk,ni,nj->kij", weights_of(layer, X), phi, phi)
    np.testing.assert_allclose(after.precision, precision, rtol=1e-10, atol=1e-13)
    assert not layer.precision.any()
    inverse = np.linalg.inv(precision + 0.6 * np.eye(D))
    variance = np.broadcast_to(np.einsum("ni,kij,nj->nk", new, inverse, new), (5, 4))
    mean = new @ np.asarray(layer.weight).T
    for found in (after.distribution(NEW), st.jit(lambda m, x: m.distribution(x))(after, NEW)):
        np.testing.assert_allclose(found.mean, mean, rtol=1e-10)
        np.testing.assert_allclose(found.variance, variance, rtol=1e-9)
    expected = mean if likelihood == "gaussian" else mean / np.sqrt(1 + np.pi / 8 * variance)
    np.testing.assert_allclose(after(NEW), expected, rtol=1e-10)
    np.testing.assert_allclose(st.vmap(after)(NEW), expected, rtol=1e-10)
    np.testing.assert_allclose(after.clone().train()(NEW), mean, rtol=1e-10)
    np.testing.assert_allclose(after(NEW.reshape(5, 1, 3))[:, 0], expected, rtol=1e-10)


def test_gaussian_variance_is_bayesian_regression_on_the_features():
    layer = update_precision(head("gaussian", 1, prior_precision=0.6, noise=0.7), [X])
    fitted = st.ensemble.fit_bayesian_regression(
        layer.features(X), X[:, :1], prior_precision=0.6, noise=0.7
    )
    expected = fitted.predict(layer.features(NEW)).variance
    np.testing.assert_allclose(layer.distribution(NEW).variance, expected, rtol=1e-9)


def test_momentum_moves_the_precision_towards_that_of_all_data():
    layer = head(momentum=0.9, data_size=120)
    exact = update_precision(layer, [X]).precision
    step = st.jit(nn.stateful_call)
    out, after = step(layer.train(), X)
    np.testing.assert_allclose(after.precision, 0.1 * 10 * exact, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(out, features(layer, X) @ np.asarray(layer.weight).T, rtol=1e-10)
    layer(X)  # at rest the buffer is the module's own
    np.testing.assert_allclose(layer.precision, after.precision, rtol=1e-10, atol=1e-14)
    np.testing.assert_allclose(update_precision(layer, [X]).precision, exact, rtol=1e-10)
    with pytest.raises(RuntimeError, match="stateful_call"):
        st.jit(lambda m, x: m(x))(layer, X)


def test_the_precision_is_factored_once_when_it_is_known():
    layer = head("gaussian", prior_precision=0.6)
    np.testing.assert_allclose(layer.root[0], 0.6**0.5 * np.eye(D), rtol=1e-15)
    predict = lambda m, x: m.distribution(x).variance
    assert "cholesky" not in str(st.make_graph(predict)(layer, NEW))
    after = update_precision(layer, [X])
    whole = np.asarray(after.precision[0]) + 0.6 * np.eye(D)
    np.testing.assert_allclose(after.root[0] @ after.root[0].T, whole, rtol=1e-12, atol=1e-14)
    assert "root" in after.state_dict()


@pytest.mark.parametrize("call", [st.jit, lambda f: f])
def test_a_tracked_precision_is_factored_when_it_has_moved(call):
    layer = update_precision(head("gaussian", momentum=0.9, data_size=120, noise=0.5), [X])
    assert layer.root_is_current
    _, moved = st.jit(nn.stateful_call)(layer.train(), X)
    moved = moved.eval()
    assert not moved.root_is_current
    np.testing.assert_array_equal(moved.root, layer.root)
    new = features(layer, NEW)
    for module in (layer.eval(), moved, update_precision(moved, [X])):
        inverse = np.linalg.inv(np.asarray(module.precision[0]) + np.eye(D))
        variance = call(lambda m, x: m.distribution(x).variance)(module, NEW)
        expected = np.einsum("ni,ij,nj->n", new, inverse, new)
        np.testing.assert_allclose(variance[:, 0], expected, rtol=1e-9)
    assert not np.allclose(moved.precision, layer.precision)


def test_gradients_are_of_weights_and_inputs_not_of_what_is_drawn():
    layer = head().train()
    slopes = st.grad(lambda m: (m(X) ** 2).sum())(layer)
    z = features(layer, X) @ np.asarray(layer.weight).T
    np.testing.assert_allclose(slopes.weight, 2 * z.T @ features(layer, X), rtol=1e-9)
    assert set(dict(layer.named_parameters())) == {"weight"}


def network(i):
    keys = st.random.split(st.random.PRNGKey(i), 4)
    return nn.Sequential(
        SpectralNorm(nn.Linear(3, 6, key=keys[0], dtype=np.float64), 0.9, key=keys[1]),
        nn.Tanh(),
        RandomFeatureGaussianProcess(6, 2, D, key=keys[2], dtype=np.float64),
    )


def test_an_ensemble_is_each_member_alone():
    members = [network(i) for i in range(3)]
    labels = (X[:, 0] > 0).astype(np.int32)
    loss = lambda m, x, y: nn.functional.cross_entropy(m(x), y)
    settings = {"epochs": 2, "batch_size": 4, "key": KEY, "progress": False}
    ensemble = st.Ensemble(members)
    fitted = ensemble.fit(loss, (X, labels), optim.sgd(0.1), **settings).ensemble
    after = update_precision(fitted, [X[:6], X[6:]])
    out = after(NEW)
    assert out.shape == (3, 5, 2)
    for i in (0, 2):
        alone = update_precision(fitted[i], [X])
        np.testing.assert_allclose(out[i], alone(NEW), rtol=1e-9, atol=1e-12)
        for name in ("precision", "root"):
            one, other = getattr(after[i][2], name), getattr(alone[2], name)
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        assert not np.array_equal(fitted[i][0].direction, members[i][0].direction)


def test_fit_tracks_the_precision_with_momentum():
    ensemble = st.Ensemble([head(outputs=2, momentum=0.5, data_size=12) for _ in range(2)])
    labels = (X[:, 0] > 0).astype(np.int32)
    loss = lambda m, x, y: nn.functional.cross_entropy(m(x), y)
    settings = {"epochs": 40, "batch_size": 12, "key": KEY, "progress": False}
    fitted = ensemble.fit(loss, (X, labels), optim.sgd(1e-9), **settings).ensemble
    exact = update_precision(fitted, [X])
    np.testing.assert_allclose(fitted[1].precision, exact[1].precision, rtol=1e-6, atol=1e-9)


def test_uncertainty_grows_away_from_the_data():
    layer = update_precision(head(num_features=256), [X] * 50)
    far = st.nn.functional.softmax(layer(X * 0 + 30 + X), dim=-1).max(-1)
    assert layer.distribution(X).variance.max() < layer.distribution(X + 30).variance.mean()
    assert np.isfinite(np.asarray(far)).all()


def test_the_mean_field_formula_is_near_the_mean_probability():
    logits = 1.5 + 2.0 * np.random.default_rng(0).normal(size=100_000)
    mean = special.expit(logits).mean()
    assert abs(special.expit(float(mean_field_logits(1.5, 4.0))) - mean) < 0.02
    with pytest.raises(ValueError, match="factor must be at least 0, got -1"):
        mean_field_logits(1.0, 1.0, -1)


LAYERS = {
    "linear": (lambda: nn.Linear(5, 7, key=KEY, dtype=np.float64), None, (5,)),
    "conv": (
        lambda: nn.Conv2d(2, 3, 3, padding=1, stride=2, key=KEY, dtype=np.float64),
        (2, 5, 6),
        (2, 5, 6),
    ),
    "circular": (
        lambda: nn.Conv1d(2, 2, 3, padding=1, padding_mode="circular", key=KEY, dtype=np.float64),
        (2, 7),
        (2, 7),
    ),
}


def matrix(layer, shape):
    """The layer without its bias, as a matrix."""
    basis = np.eye(int(np.prod(shape))).reshape(-1, *shape)
    columns = np.asarray(layer(basis)) - np.asarray(layer(basis * 0))
    return columns.reshape(len(basis), -1).T


@pytest.mark.parametrize("case", LAYERS)
def test_the_spectral_norm_is_that_of_the_operator(case):
    make, given, shape = LAYERS[case]
    layer = make()
    s = np.linalg.norm(matrix(layer, shape), 2)
    bounded = SpectralNorm(layer, s / 2, 300, given, key=KEY)
    x = np.random.default_rng(1).normal(size=(4, *shape))
    out = bounded(x)  # train mode: 300 iterations more
    np.testing.assert_allclose(bounded.spectral_norm(), s, rtol=1e-6)
    np.testing.assert_allclose(np.linalg.norm(matrix(bounded, shape), 2), s / 2, rtol=1e-6)
    bias = np.asarray(layer(x * 0))
    np.testing.assert_allclose(out, (layer(x) - bias) / 2 + bias, rtol=1e-5, atol=1e-9)
    loose = SpectralNorm(layer, 2 * s, 1, given, key=KEY).eval()
    np.testing.assert_allclose(loose(x), layer(x), rtol=1e-12)
    assert set(dict(bounded.named_parameters())) == {"layer.weight", "layer.bias"}


def test_the_spectral_norm_s_gradient_is_by_the_singular_vectors():
    layer = SpectralNorm(nn.Linear(5, 7, key=KEY, dtype=np.float64), 0.1, 300, key=KEY)
    layer(np.zeros((1, 5)))
    u, _, v = np.linalg.svd(layer.layer.weight)
    slopes = st.grad(lambda m: m.spectral_norm())(layer)
    np.testing.assert_allclose(slopes.layer.weight, np.outer(u[:, 0], v[0]), atol=1e-6)


def test_a_weight_of_zeros_stays_finite():
    zero = nn.Linear(2, 2, key=KEY, dtype=np.float64)
    zero.weight = nn.Parameter(snp.zeros((2, 2)))
    layer = SpectralNorm(zero, key=KEY)
    slopes = st.grad(lambda m: nn.stateful_call(m, np.ones((1, 2)))[0].sum())(layer)
    assert np.isfinite(np.asarray(slopes.layer.weight)).all()


def test_misuse(monkeypatch):
    with pytest.raises(ValueError, match=r"likelihood must be 'categorical', .* got 'poisson'"):
        head("poisson")
    with pytest.raises(ValueError, match="one logit is of the likelihood 'bernoulli'"):
        head("categorical", 1)
    with pytest.raises(ValueError, match="length_scale must be positive, got 0"):
        head(length_scale=0)
    with pytest.raises(ValueError, match=r"momentum must be in \[0, 1\), and takes data_size"):
        head(momentum=0.9)
    with pytest.raises(ValueError, match="3 features"):
        head()(NEW[:, :2])
    with pytest.raises(ValueError, match="Linear has no RandomFeatureGaussianProcess"):
        update_precision(nn.Linear(2, 2), [X])
    with pytest.raises(ValueError, match="at least one batch"):
        update_precision(head(), [])
    with pytest.raises(TypeError, match="expected a module or an Ensemble of modules, got a int"):
        update_precision(3, [X])
    with pytest.raises(TypeError, match="expected an Ensemble of modules"):
        update_precision(st.Ensemble(lambda p, x: x * p, [1.0, 2.0]), [X])
    monkeypatch.setitem(RandomFeatureGaussianProcess.__init__.__globals__, "_LARGE", 1000)
    with pytest.warns(
        UserWarning, match=r"precision \(4, 16, 16\) and its root take 0.0 GiB; fewer"
    ):
        head()
    with pytest.raises(TypeError, match="expected a Linear, Conv1d, Conv2d or Conv3d, got Tanh"):
        SpectralNorm(nn.Tanh())
    with pytest.raises(ValueError, match=r"expected input_shape \(channels, \*space\), got None"):
        SpectralNorm(nn.Conv2d(2, 3, 3))
    with pytest.raises(ValueError, match=r"expected input_shape \(2, 8, 8\), .* got \(3, 8, 8\)"):
        SpectralNorm(nn.Conv2d(2, 3, 3), input_shape=(3, 8, 8))
    with pytest.raises(ValueError, match="norm_bound must be positive, got 0"):
        SpectralNorm(nn.Linear(2, 3), 0)
