"""The members of estimators and their losses, beside the formulas."""

import numpy as np
import pytest
from scipy import special, stats

import stretto as st
from stretto.ensemble.estimators import networks

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
W = RNG.uniform(size=6).astype(np.float32)
itself = lambda x: x


def test_a_perceptron_has_the_layers_asked_for():
    make = lambda hidden, dropout=0.0, activation="relu": networks.perceptron(
        st.random.key(0), 3, 2, hidden, activation, dropout, "me"
    )
    kinds = [type(m).__name__ for m in make((8, 4), 0.1, "tanh")]
    assert kinds == ["Linear", "Tanh", "Dropout", "Linear", "Tanh", "Dropout", "Linear"]
    assert make(())(X).shape == (6, 2) and len(make(())) == 1
    with pytest.raises(ValueError, match=r"me: activation must be .* 'rleu' \(did you mean 'relu'"):
        make((8,), activation="rleu")


def test_losses_are_weighted_means_of_the_formulas():
    y = RNG.normal(size=(6, 1)).astype(np.float32)
    outs = X[:, :2]
    variance = special.log1p(np.exp(outs[:, 1])) + networks.LEAST_VARIANCE
    nll = -stats.norm(outs[:, 0], np.sqrt(variance)).logpdf(y[:, 0]) - np.log(2 * np.pi) / 2
    got = networks.gaussian(itself, {"x": outs, "y": y, "w": W})
    np.testing.assert_allclose(got, (W * nll).mean(), rtol=1e-5)
    got = networks.squares(itself, {"x": X[:, :1], "y": y, "w": W})
    np.testing.assert_allclose(got, (W * (X[:, 0] - y[:, 0]) ** 2).mean(), rtol=1e-5)
    labels = np.array([0, 1, 2, 0, 1, 2], np.int32)
    logs = special.log_softmax(X, axis=-1)[np.arange(6), labels]
    got = networks.cross_entropy(itself, {"x": X, "y": labels, "w": W})
    np.testing.assert_allclose(got, -(W * logs).mean(), rtol=1e-5)


def test_a_member_has_weights_of_its_own_for_the_places_of_a_batch_alone():
    y, own = X[:, :1], np.arange(10, dtype=np.float32)
    i = np.array([9, 0, 3, 1, 2, 5], np.int32)
    batch = {"x": X[:, 1:2], "y": y}
    expected = networks.squares(itself, {**batch, "w": own[i]})
    assert networks.squares(itself, {**batch, "i": i}, own) == expected
    held_out = networks.squares(itself, {**batch, "w": W}, own)
    assert held_out == networks.squares(itself, {**batch, "w": W})
