"""What users of libraries of posteriors have reported, tried here: values, or what is refused.

The oracle is Σ JᵀΛJ, example by example, from whole Jacobians and formulas of Λ in NumPy.
"""

import itertools
from typing import Any

import numpy as np
import pytest
from scipy import special

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import Laplace, fit_laplace
from tests.ensemble.posteriors import close, perceptron

KEY = st.random.key(0)
RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(12, 2)), RNG.integers(3, size=12).astype(np.int32)


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


def in_float64(model):
    """Return a module of float64, whose ties are kept."""
    model.load_state_dict({n: w.astype(np.float64) for n, w in model.state_dict().items()})
    return model.eval()


def jacobian(model, x, weights):
    """Return the Jacobian of one example's outputs, (outputs, weights)."""
    of = lambda w: st.func.functional_call(model, w, x)[0].reshape(-1)
    by_name = st.jacrev(of)(weights)
    return np.concatenate([np.reshape(by_name[n], (len(of(weights)), -1)) for n in weights], 1)


def whole(model, x, hessian):
    """Return Σ JᵀΛJ of all parameters, with Λ = hessian(outputs, example)."""
    weights = dict(model.named_parameters())
    total: Any = 0
    for i in range(len(st.tree.leaves(x)[0])):
        one = st.tree.map(lambda leaf, i=i: leaf[i : i + 1], x)
        j = jacobian(model, one, weights)
        outputs = np.asarray(st.func.functional_call(model, weights, one)).reshape(-1)
        total = total + j.T @ hessian(outputs, i) @ j
    return total


def of_classes(f, i=0):
    p = special.softmax(f)
    return np.diag(p) - np.outer(p, p)


def curvature(laplace):
    return laplace._posterior.precision.curvature


# Likelihoods and targets


def test_losses_with_a_weight_of_each_class_or_example():
    model, of_class = perceptron(0), snp.array([1.0, 2.0, 5.0])
    log = lambda f, y: -nn.functional.log_softmax(f, -1)[y]
    laplace = fit_laplace(
        model, (X, Y), likelihood=lambda f, y: of_class[y] * log(f, y), structure="full"
    )
    close(curvature(laplace), whole(model, X, lambda f, i: of_class[Y[i]] * of_classes(f)))
    own = fit_laplace(  # what nll takes for a target is any tree
        model, (X, (Y, of_class[Y])), likelihood=lambda f, y: y[1] * log(f, y[0]), structure="full"
    )
    close(own.log_marginal_likelihood(), laplace.log_marginal_likelihood())
    (value,) = {float(v) for v in own.tuned(noise=False).prior_precision.values()}
    assert value > 0


def test_examples_without_a_label():
    model, some = perceptron(0), snp.where(snp.arange(12) < 3, -100, Y)
    with pytest.raises(ValueError, match=r"is nan: .* labels from 0 on, .*give a function nll"):
        fit_laplace(model, (X, some), structure="full")
    with pytest.raises(ValueError, match="below the number of classes"):
        fit_laplace(model, (X, Y + 3), structure="diagonal")
    ignoring = lambda f, y: snp.where(y < 0, 0.0, -nn.functional.log_softmax(f, -1)[y])
    laplace = fit_laplace(model, (X, some), likelihood=ignoring, structure="full")
    rest = fit_laplace(model, (X[3:], Y[3:]), structure="full")
    close(curvature(laplace), curvature(rest))
    close(laplace.log_marginal_likelihood(), rest.log_marginal_likelihood())


def test_targets_that_are_no_numbers_of_the_likelihood():
    model = perceptron(0, outputs=1)
    missing = snp.where(snp.arange(12)[:, None] < 3, np.nan, X[:, :1])
    with pytest.raises(ValueError, match="is nan: inputs, weights and targets must be finite"):
        fit_laplace(model, (X, missing), likelihood="gaussian", noise=1.0)
    signs = snp.where(X[:, :1] > 0, 1, -1)
    with pytest.raises(ValueError, match="targets of 'bernoulli' must be 0 or 1, got -1"):
        fit_laplace(model, (X, signs), likelihood="bernoulli")
    yes, number = [
        fit_laplace(model, (X, t), likelihood="bernoulli", structure="diagonal")
        for t in (X[:, :1] > 0, (X[:, :1] > 0).astype(np.float64))
    ]
    close(yes.log_marginal_likelihood(), number.log_marginal_likelihood())
    one_hot = nn.functional.one_hot(Y, 3)
    with pytest.raises(ValueError, match=r"must have shape \(\), since its outputs have \(3,\)"):
        fit_laplace(perceptron(0), (X, one_hot))
    with pytest.raises(ValueError, match=r"at least two.*one logit an example is 'bernoulli'"):
        fit_laplace(model, (X, snp.zeros(12, np.int32)))
    with pytest.raises(TypeError, match="categorical: y must be an array or a number"):
        fit_laplace(perceptron(0), (X, (Y, Y)))


def test_a_member_that_diverged_leaves_the_others():
    broken = st.tree.map(lambda w: w * np.nan, perceptron(0))
    found = fit_laplace(st.Ensemble([perceptron(0), broken]), (X, Y), structure="diagonal")
    evidence = np.asarray(found.log_marginal_likelihood())
    assert np.isnan(evidence).tolist() == [False, True]
    with pytest.raises(ValueError, match="weights and targets must be finite"):
        fit_laplace(broken, (X, Y), structure="diagonal")


def test_several_binary_labels():
    model, labels = perceptron(0), (RNG.random((12, 3)) < 0.5).astype(np.float64)
    laplace = fit_laplace(model, (X, labels), likelihood="bernoulli", structure="full")
    close(
        curvature(laplace),
        whole(model, X, lambda f, i: np.diag(special.expit(f) * special.expit(-f))),
    )
    assert laplace.probabilities(X, KEY).shape == (12, 3)


def test_a_noise_of_each_output():
    model, sigma = perceptron(0, outputs=2), np.array([0.5, 2.0])
    with pytest.raises(ValueError, match=r"noise must be a number, got float64\[2\]; outputs that"):
        fit_laplace(model, (X, X), likelihood="gaussian", noise=sigma)
    nll = lambda f, y: (((f - y) / sigma) ** 2).sum() / 2
    laplace = fit_laplace(model, (X, X), likelihood=nll, structure="full")
    close(curvature(laplace), whole(model, X, lambda f, i: np.diag(sigma**-2)))
    own = laplace.predict(X)
    close(own.with_noise(sigma**2).variance, own.variance + sigma**2)


def test_several_means_with_a_variance_each():
    layers = nn.Linear(2, 3), nn.Tanh(), nn.Linear(3, 4), nn.Unflatten(-1, (2, 2))
    model = in_float64(nn.Sequential(*layers))
    laplace = fit_laplace(model, (X, X), likelihood="heteroscedastic", structure="full")
    hessian = lambda f, i: np.diag(
        np.stack([np.exp(-f.reshape(2, 2)[:, 1]), np.full(2, 0.5)], -1).ravel()
    )
    close(curvature(laplace), whole(model, X, hessian))
    assert laplace.predict(X).mean.shape == (12, 2, 2)
    assert laplace.predict(X, noise=True).mean.shape == (12, 2)


def test_logits_divided_by_a_temperature_are_a_likelihood():
    model = perceptron(0)
    hot = lambda f, y: -nn.functional.log_softmax(f / 2, -1)[y]
    laplace = fit_laplace(model, (X, Y), likelihood=hot, structure="full")
    close(curvature(laplace), whole(model, X, lambda f, i: of_classes(f / 2) / 4))


def test_a_regression_without_an_axis_of_outputs():
    model = perceptron(0, outputs=1)
    with pytest.raises(ValueError, match=r"must have shape \(1,\), .* got \(\)"):
        fit_laplace(model, (X, X[:, 0]), likelihood="gaussian", noise=1.0)
    settings = {"likelihood": "gaussian", "noise": 1.0, "structure": "kron"}
    flat = lambda weights, x: st.func.functional_call(model, weights, x)[:, 0]
    params = dict(model.named_parameters())
    laplace = fit_laplace((flat, params), (X, X[:, 0]), **settings)
    expected = fit_laplace(model, (X, X[:, :1]), **settings)
    close(laplace.predict(X).variance, expected.predict(X).variance[:, 0])
    close(laplace.predict(X).covariance, laplace.predict(X).variance)
    joint = laplace.predict(X, joint=True).covariance
    close(joint, expected.predict(X, joint=True).covariance[:, 0, :, 0])


# Data


def test_batches_of_any_sizes_from_a_loader():
    model = perceptron(0)
    expected = fit_laplace(model, (X, Y))
    cut = (0, 5, 7, 12)
    loader = ((X[a:b], Y[a:b]) for a, b in itertools.pairwise(cut))
    for found in (
        fit_laplace(model, loader),
        fit_laplace(model, (X, Y), batch_size=5),
    ):
        close(found.predict(X).covariance, expected.predict(X).covariance)
        close(found.log_marginal_likelihood(), expected.log_marginal_likelihood())


def test_data_of_other_forms_are_refused():
    for message, data in [
        ("got batches of tuple of 3: of several inputs x is a tuple", [(X, X, Y)]),
        ("got batches of ndarray", [X, Y]),
        ("got tuple of 3", (X, X, Y)),
        (r"as many targets as inputs .* got float64\[2\], int32\[\]", [(X[0], Y[0])]),
        (r"got float64\[12,2\], int32\[3\]", [(X, Y[:3])]),
        (r"got float64\[0,2\], int32\[0\]", (X[:0], Y[:0])),
    ]:
        with pytest.raises(ValueError, match=message):
            fit_laplace(perceptron(0), data)


class TwoInputs(nn.Module):
    """A sum of two layers of two inputs, given as a dictionary or one after the other."""

    def __init__(self, key):
        super().__init__()
        first, second = st.random.split(key)
        self.a, self.b = nn.Linear(2, 3, key=first), nn.Linear(3, 3, key=second)

    def forward(self, x, other=None):
        first, second = (x["a"], x["b"]) if other is None else (x, other)
        return snp.tanh(self.a(first)) + self.b(second)


def test_inputs_that_are_a_dictionary_or_several():
    models = [in_float64(TwoInputs(k)) for k in st.random.split(KEY, 2)]
    inputs = {"a": X, "b": snp.asarray(RNG.normal(size=(12, 3)))}
    several = inputs["a"], inputs["b"]
    expected = whole(models[0], inputs, of_classes)
    one = fit_laplace(models[0], (inputs, Y), structure="full")
    close(curvature(one), expected)
    close(curvature(fit_laplace(models[0], (several, Y), structure="full")), expected)
    many = fit_laplace(st.Ensemble(models), (several, Y), structure="full")
    close(curvature(many)[0], expected)
    close(many.predict(several).covariance[0], one.predict(inputs).covariance)
    close(many.members(KEY, 2)(several).mean(0), many.members(KEY, 2)(inputs).mean(0))
    assert one.probabilities(inputs, KEY).shape == (12, 3)


# Networks


def test_an_lstm():
    class Recurrent(nn.Module):
        def __init__(self):
            super().__init__()
            self.lstm = nn.LSTM(2, 2, batch_first=True, key=KEY)
            self.head = nn.Linear(2, 1, key=KEY)

        def forward(self, x):
            return self.head(self.lstm(x)[0][:, -1])

    model, x = in_float64(Recurrent()), snp.asarray(RNG.normal(size=(4, 3, 2)))
    settings = {"likelihood": "gaussian", "noise": 1.0}
    laplace = fit_laplace(model, (x, x[:, 0, :1]), structure="full", **settings)
    precision = whole(model, x, lambda f, i: np.eye(1)) + np.eye(len(curvature(laplace)))
    j = jacobian(model, x[:1], dict(model.named_parameters()))
    close(laplace.predict(x[:1]).covariance[0], j @ np.linalg.inv(precision) @ j.T)
    kron = fit_laplace(model, (x, x[:, 0, :1]), structure="kron", **settings)
    assert (kron.predict(x).variance > 0).all()


def residual():
    """A residual network with batch normalization, and convolutions without biases."""

    class Residual(nn.Module):
        def __init__(self):
            super().__init__()
            keys = st.random.split(KEY, 3)
            self.first = nn.Conv2d(1, 2, 3, padding=1, bias=False, key=keys[0])
            self.norm = nn.BatchNorm2d(2)
            self.second = nn.Conv2d(2, 2, 3, padding=1, bias=False, key=keys[1])
            self.head = nn.Linear(2, 3, key=keys[2])

        def forward(self, x):
            z = nn.functional.relu(self.norm(self.first(x)))
            return self.head((z + self.second(z)).mean((2, 3)))

    return in_float64(Residual())


def test_a_residual_network_with_batch_normalization():
    model, x = residual(), snp.asarray(RNG.normal(size=(6, 1, 3, 3)))
    full = fit_laplace(model, (x, Y[:6]), structure="full")
    close(curvature(full), whole(model, x, of_classes))
    kron = fit_laplace(model, (x, Y[:6]), structure="kron")  # the norm has exact blocks
    assert list(kron.prior_precision) == [n for n, _ in model.named_parameters()]
    without = ["first.*", "second.*", "head.*"]
    some = fit_laplace(model, (x, Y[:6]), structure="kron", weights=without)
    assert "norm.weight" not in some.prior_precision
    assert (some.predict(x).variance < kron.predict(x).variance).all()
    with pytest.raises(ValueError, match="norm, a BatchNorm2d, takes the statistics of its batch"):
        fit_laplace(model.train(), (x, Y[:6]), weights="last")


@pytest.mark.parametrize("structure", ["full", "kron", "diagonal", "low_rank"])
def test_a_last_layer_that_is_a_convolution(structure):
    layers = nn.Conv2d(1, 2, 3, padding=1, key=KEY), nn.Tanh(), nn.Conv2d(2, 1, 1, key=KEY)
    model, x = in_float64(nn.Sequential(*layers)), snp.asarray(RNG.normal(size=(3, 1, 2, 2)))
    laplace = fit_laplace(
        model, (x, x), likelihood="gaussian", noise=0.5, structure=structure, weights="last"
    )
    j = np.stack([jacobian(model, x[i : i + 1], dict(model.named_parameters())) for i in range(3)])
    j = j[..., -3:]  # two weights and a bias
    h = np.einsum("noi,noj->ij", j, j)
    if structure == "kron":
        h[:2, 2] = h[2, :2] = 0  # a bias is its own block
    h = np.diag(np.diag(h)) if structure == "diagonal" else h
    out = laplace.predict(x)
    expected = j @ np.linalg.inv(h / 0.25 + np.eye(3)) @ j.transpose(0, 2, 1)
    close(out.covariance.reshape(3, 4, 4), expected)
    assert laplace.predict(x, noise=True).variance.shape == (3, 1, 2, 2)


class Tied(nn.Module):
    """Its last layer's weight is that of the embedding."""

    def __init__(self, key):
        super().__init__()
        self.embedding = nn.Embedding(4, 3, key=key)
        self.head = nn.Linear(3, 4, key=key)
        self.head.weight = nn.Parameter(self.embedding.weight)

    def forward(self, x):
        return self.head(snp.tanh(self.embedding(x)))


def tied(key=KEY):
    model = in_float64(Tied(key))
    assert model.head.weight is model.embedding.weight
    return model


@pytest.mark.parametrize("structure", ["full", "kron", "diagonal", "low_rank"])
def test_tied_weights_are_one_weight(structure, tmp_path):
    models, x = [tied(k) for k in st.random.split(KEY, 2)], snp.asarray(RNG.integers(0, 4, 9))
    labels = x.astype(np.int32)
    laplace = fit_laplace(models[0], (x, labels), structure=structure)
    assert list(laplace.prior_precision) == ["embedding.weight", "head.bias"]
    many = fit_laplace(st.Ensemble(models), (x, labels), structure=structure)
    h = whole(models[0], x, of_classes)
    if structure == "full":
        close(curvature(laplace), h)
    if structure in ("full", "low_rank"):
        j = jacobian(models[0], x[:1], dict(models[0].named_parameters()))
        expected = j @ np.linalg.inv(h + np.eye(16)) @ j.T
        close(laplace.predict(x[:1]).covariance[0], expected)
    if structure == "diagonal":
        found = laplace._posterior.precision.curvature
        close(np.concatenate([np.ravel(found[n]) for n in laplace.prior_precision]), np.diag(h))
    close(many.predict(x).covariance[0], laplace.predict(x).covariance)
    close(many.log_marginal_likelihood()[0], laplace.log_marginal_likelihood())
    if structure != "kron":
        return  # what does not depend on the structure
    first = st.random.split(KEY, 2)[0]
    close(many.members(KEY, 2)(x)[:2], laplace.members(first, 2)(x))
    drawn = laplace.sample(KEY, 2)[1]
    assert drawn.head.weight is drawn.embedding.weight
    laplace.save(tmp_path / "tied.safetensors")
    again = Laplace.load(tmp_path / "tied.safetensors", models[1])
    close(again.predict(x).covariance, laplace.predict(x).covariance)
    inside = st.jit(lambda laplace: laplace.predict(x).covariance)(again)
    close(inside, laplace.predict(x).covariance)


def test_a_tied_module_in_train_mode_is_refused_as_others_are():
    model = nn.Sequential(tied(), nn.Dropout(0.5)).train()
    with pytest.raises(ValueError, match="fit_laplace: 1, a Dropout, drops numbers at random"):
        fit_laplace(model, (Y, Y))


def test_frozen_parts_are_uncertain_unless_they_are_left_out():
    many = st.Ensemble([perceptron(0)], frozen="0.*")
    assert len(fit_laplace(many, (X, Y)).prior_precision) == 4
    last = fit_laplace(many, (X, Y), structure="full", weights=lambda name: name[0] == "2")
    close(curvature(last)[0], whole(perceptron(0), X, of_classes)[15:, 15:])


@pytest.mark.parametrize(
    ("structure", "kind"),
    [*[(s, "bfloat16") for s in ("full", "kron", "diagonal", "low_rank")], ("full", "float16")],
)
def test_narrow_weights_are_computed_in_float32(structure, kind):
    narrow = st.tree.cast(perceptron(0), kind)
    x = snp.asarray(X).astype(kind)
    found = fit_laplace(narrow, (x, Y), structure=structure)
    expected = fit_laplace(
        st.tree.cast(narrow, "float32"), (x.astype(np.float32), Y), structure=structure
    )
    out = found.predict(x)
    assert out.mean.dtype == out.covariance.dtype == np.float32
    np.testing.assert_array_equal(out.covariance, expected.predict(x).covariance)
    np.testing.assert_array_equal(found.members(KEY, 2)(x), expected.members(KEY, 2)(x))
    np.testing.assert_array_equal(
        found.tuned().prior_precision["0.bias"], expected.tuned().prior_precision["0.bias"]
    )
    assert found.sample(KEY, 2)(x).dtype == kind


def test_a_network_that_computes_in_bfloat16():
    model = st.tree.cast(perceptron(0), "float32")
    half = lambda weights, x: st.func.functional_call(
        model, st.tree.cast(weights, "bfloat16"), x.astype("bfloat16")
    )
    x, params = X.astype(np.float32), dict(model.named_parameters())
    found, expected = [fit_laplace(m, (x, Y), structure="kron") for m in ((half, params), model)]
    # bfloat16 has 8 bits.
    close(found.predict(x).variance, expected.predict(x).variance, rtol=2e-2)
    close(found.log_marginal_likelihood(), expected.log_marginal_likelihood(), rtol=1e-3)


def test_outputs_that_are_complex():
    phase = lambda w, x: (x @ w).astype(np.complex128)
    with pytest.raises(TypeError, match="expected real outputs of the model, got complex128"):
        fit_laplace((phase, snp.ones((2, 3))), (X, Y))


def test_images_of_bytes():
    x = snp.asarray(RNG.integers(0, 255, (12, 1, 1, 2)).astype(np.uint8))
    model = nn.Sequential(nn.Flatten(), perceptron(0))
    found = fit_laplace(model, (x, Y), structure="full")
    expected = whole(model, x.astype(np.float64), of_classes)
    close(curvature(found), expected, atol=1e-9 * np.abs(expected).max())


# Priors and draws


def test_a_prior_of_each_layer():
    model, own = perceptron(0), {"0.weight": 1.0, "0.bias": 2.0, "2.weight": 3.0, "2.bias": 4.0}
    laplace = fit_laplace(model, (X, Y), structure="full", prior_precision=own)
    delta = np.repeat([1.0, 2.0, 3.0, 4.0], [10, 5, 15, 3])
    j = jacobian(model, X[:1], dict(model.named_parameters()))
    precision = whole(model, X, of_classes) + np.diag(delta)
    close(laplace.predict(X[:1]).covariance[0], j @ np.linalg.inv(precision) @ j.T)
    with pytest.raises(ValueError, match=r"prior_precision\['0.weight'\] must be a number"):
        fit_laplace(model, (X, Y), prior_precision={**own, "0.weight": snp.ones((5, 2))})
    with pytest.raises(ValueError, match=r"an entry for each of 0.weight, .*; got 0.\*, 2.\*"):
        fit_laplace(model, (X, Y), prior_precision={"0.*": 1.0, "2.*": 2.0})


def test_draws_have_the_covariance_of_the_posterior_and_not_its_transposed_root():
    model, n = perceptron(0), 20_000
    laplace = fit_laplace(model, (X, Y), structure="full")
    drawn = laplace.members(KEY, n).differences
    rows = np.concatenate([np.reshape(x, (n, -1)) for x in drawn.values()], 1)
    expected = np.linalg.inv(whole(model, X, of_classes) + np.eye(33))
    # A covariance of n draws is off by √((σ_i²σ_j² + σ_ij²) / n), below √(2 / n) here, where all
    # variances are below that of the prior, 1; 5 of these among 1,089.
    close(np.cov(rows.T), expected, atol=5 * (2 / n) ** 0.5)


def test_fewer_weights_than_the_rank_are_all_there():
    model = in_float64(nn.Linear(2, 3, bias=False, key=KEY))
    low, full = [fit_laplace(model, (X, Y), structure=s) for s in ("low_rank", "full")]
    close(low.log_marginal_likelihood(), full.log_marginal_likelihood())
    close(low.predict(X).covariance, full.predict(X).covariance)


def test_two_posteriors_of_one_network_do_not_meet():
    model = perceptron(0)
    first = fit_laplace(model, (X, Y), structure="diagonal")
    before = first.predict(X).variance
    second = fit_laplace(model, (X[:3], Y[:3]), structure="diagonal", prior_precision=2.0)
    assert not np.allclose(second.predict(X).variance, before)
    np.testing.assert_array_equal(first.predict(X).variance, before)
