"""Anchored members on perturbed targets: exact samples where all is linear and Gaussian."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import randomised_map

SCALE, NOISE, EXAMPLES = 0.7, 0.3, 12
X = np.random.default_rng(0).standard_normal((EXAMPLES, 3))
Y = X @ np.array([1.0, -2.0, 0.5]) + 0.1


def error(member, x, y):
    return ((member(x) - y) ** 2).mean() / (2 * NOISE**2)


def apply(w, x):
    return x @ w


def drawn(key):
    """The anchor and the perturbations of a member, as the docstring says that they are found."""
    anchors, targets = st.random.split(key)
    anchor = SCALE * st.random.normal(st.random.fold_in(anchors, 0), (3,), np.float64)
    each = [
        st.random.normal(st.random.fold_in(targets, n), (), np.float64) for n in range(EXAMPLES)
    ]
    return np.asarray(anchor), NOISE * np.array(each)


def minimum(anchor, perturbation):
    precision = X.T @ X / NOISE**2 + np.eye(3) / SCALE**2
    return np.linalg.solve(precision, X.T @ (Y + perturbation) / NOISE**2 + anchor / SCALE**2)


def test_trained_members_are_the_minima_of_their_own_targets_and_anchors():
    with st.config(enable_x64=True):
        loss, keys = randomised_map(error, SCALE, NOISE, st.random.key(0), 4, data_size=EXAMPLES)
        ensemble = st.Ensemble(apply, snp.zeros((4, 3)))
        data = snp.asarray(X), snp.asarray(Y), snp.arange(EXAMPLES)
        fitted = ensemble.fit(
            loss, data, st.optim.sgd(0.05), steps=400, batch_size=EXAMPLES, per_member=keys
        )
        expected = [minimum(*drawn(key)) for key in keys["posterior_key"]]
        got = [member.params for member in fitted.ensemble]
        np.testing.assert_allclose(got, expected, 1e-8)
        assert np.ptp(got, axis=0).min() > 0.01


def test_the_minima_are_distributed_as_the_posterior():
    """Of 4,000 members, whose minima are found in closed form."""
    with st.config(enable_x64=True):
        keys = randomised_map(error, SCALE, NOISE, st.random.key(1), 4_000, data_size=EXAMPLES)[1]
        of = st.vmap(st.random.split)(keys["posterior_key"])
        anchors = SCALE * st.vmap(
            lambda k: st.random.normal(st.random.fold_in(k, 0), (3,), np.float64)
        )(of[:, 0])
        one = lambda k, n: st.random.normal(st.random.fold_in(k, n), (), np.float64)
        each = st.vmap(lambda k: st.vmap(lambda n: one(k, n))(snp.arange(EXAMPLES)))(of[:, 1])
        minima = np.array([minimum(a, NOISE * e) for a, e in zip(anchors, each, strict=True)])
    precision = X.T @ X / NOISE**2 + np.eye(3) / SCALE**2
    covariance = np.linalg.inv(precision)
    mean = covariance @ X.T @ Y / NOISE**2
    spread = np.sqrt(np.diag(covariance))
    np.testing.assert_allclose(minima.mean(0), mean, atol=4 * spread.max() / np.sqrt(4_000))
    ratio = np.linalg.solve(np.linalg.cholesky(covariance), (minima - mean).T)
    np.testing.assert_allclose(ratio @ ratio.T / 4_000, np.eye(3), atol=0.1)


def test_an_example_has_its_perturbation_in_every_batch():
    loss, keys = randomised_map(error, SCALE, NOISE, st.random.key(2), 1, data_size=EXAMPLES)
    key = keys["posterior_key"][0]
    member = st.Ensemble(apply, snp.ones((1, 3)))[0]
    x, y = X.astype(np.float32), Y.astype(np.float32)
    order = np.random.default_rng(1).permutation(EXAMPLES)
    parts = [
        loss(member, x[part], y[part], part, posterior_key=key) for part in order.reshape(3, 4)
    ]
    whole = loss(member, x, y, np.arange(EXAMPLES), posterior_key=key)
    np.testing.assert_allclose(np.mean(parts), whole, 1e-5)


def test_the_prior_is_over_all_parameters_of_a_module_and_counts_once_for_all_examples():
    loss, keys = randomised_map(lambda m, x, y: 0.0 * y.sum(), 2.0, None, st.random.key(3), 1,
                                data_size=10)  # fmt: skip
    layer = nn.Linear(3, 2)
    anchors, _ = st.random.split(keys["posterior_key"][0])
    weights = [x for _, x in layer.named_parameters()]
    off = [
        w - 2.0 * st.random.normal(st.random.fold_in(anchors, k), w.shape)
        for k, w in enumerate(weights)
    ]
    expected = sum(float((d**2).sum()) for d in off) / (2 * 4.0 * 10)
    found = loss(layer, snp.ones((4, 3)), snp.ones((4, 2)), None,
                 posterior_key=keys["posterior_key"][0])  # fmt: skip
    np.testing.assert_allclose(found, expected, 1e-5)


def test_targets_of_several_outputs_are_perturbed_one_by_one():
    seen = []
    loss, keys = randomised_map(lambda m, x, y: seen.append(y) or y.sum(), 1.0, 0.5,
                                st.random.key(4), 1, data_size=6)  # fmt: skip
    member = st.Ensemble(apply, snp.ones((1, 3)))[0]
    loss(member, X[:6], snp.zeros((6, 2)), np.arange(6), posterior_key=keys["posterior_key"][0])
    assert seen[0].shape == (6, 2)
    assert len(np.unique(np.asarray(seen[0]))) == 12


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"prior_scale": 0.0}, "prior_scale must be positive, got 0.0"),
        ({"noise": -1.0}, "noise must be positive, got -1.0"),
        ({"prior_scale": float("inf")}, "prior_scale must be positive, got inf"),
        ({"size": 0}, "size must be at least 1, got 0"),
        ({"data_size": 0}, "data_size must be at least 1, got 0"),
    ],
)
def test_what_is_out_of_range_is_refused(changed, message):
    arguments = {"prior_scale": 1.0, "noise": 1.0, "key": st.random.key(0), "size": 2,
                 "data_size": 5} | changed  # fmt: skip
    with pytest.raises(ValueError, match=message):
        randomised_map(error, **arguments)


def test_data_without_numbers_are_refused():
    loss, keys = randomised_map(error, 1.0, 1.0, st.random.key(0), 1, data_size=5)
    member = st.Ensemble(apply, snp.ones((1, 3)))[0]
    with pytest.raises(
        ValueError, match=r"expected data \(x, y, arange\(examples\)\), got numbers"
    ):
        loss(member, X[:5], snp.zeros(5), 3, posterior_key=keys["posterior_key"][0])
