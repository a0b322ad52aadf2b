"""The members of estimators and their losses, beside the formulas.

Rows: merged whatever their order, weighted, standardized, held out, and drawn again.
"""

import numpy as np
import pytest
from scipy import special, stats

import stretto as st
from stretto.ensemble.estimators import estimator
from stretto.ensemble.estimators.estimator import draw_counts, halves, merge_equal_rows, scale_of

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 3)).astype(np.float32)
W = RNG.uniform(size=6).astype(np.float32)
itself = lambda x: x


def test_a_perceptron_has_the_layers_asked_for():
    make = lambda hidden, dropout=0.0, activation="relu": estimator.perceptron(
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
    variance = special.log1p(np.exp(outs[:, 1])) + estimator.LEAST_VARIANCE
    nll = -stats.norm(outs[:, 0], np.sqrt(variance)).logpdf(y[:, 0]) - np.log(2 * np.pi) / 2
    got = estimator.gaussian(itself, {"x": outs, "y": y, "w": W})
    np.testing.assert_allclose(got, (W * nll).mean(), rtol=1e-5)
    got = estimator.squares(itself, {"x": X[:, :1], "y": y, "w": W})
    np.testing.assert_allclose(got, (W * (X[:, 0] - y[:, 0]) ** 2).mean(), rtol=1e-5)
    labels = np.array([0, 1, 2, 0, 1, 2], np.int32)
    logs = special.log_softmax(X, axis=-1)[np.arange(6), labels]
    got = estimator.cross_entropy(itself, {"x": X, "y": labels, "w": W})
    np.testing.assert_allclose(got, -(W * logs).mean(), rtol=1e-5)


def test_a_member_has_weights_of_its_own_for_the_places_of_a_batch_alone():
    y, own = X[:, :1], np.arange(10, dtype=np.float32)
    i = np.array([9, 0, 3, 1, 2, 5], np.int32)
    batch = {"x": X[:, 1:2], "y": y}
    expected = estimator.squares(itself, {**batch, "w": own[i]})
    assert estimator.squares(itself, {**batch, "i": i}, own) == expected
    held_out = estimator.squares(itself, {**batch, "w": W}, own)
    assert held_out == estimator.squares(itself, {**batch, "w": W})


def table(seed=0, rows=40, columns=3):
    rng = np.random.default_rng(seed)
    return rng, rng.integers(0, 3, (rows, columns)) * 0.1, rng.integers(0, 2, rows)


def test_weights_are_counts_and_the_order_does_not_matter_to_the_last_bit():
    rng, x, y = table()
    weights = rng.integers(0, 4, len(x))
    one = merge_equal_rows(x, y, weights)
    places = rng.permutation(weights.sum())
    repeated = merge_equal_rows(x.repeat(weights, 0)[places], y.repeat(weights)[places], None)
    for a, b in zip(one, repeated):
        np.testing.assert_array_equal(a, b)
    assert one.weights.sum() == weights.sum()
    rows = np.column_stack([one.x, one.y])
    assert len(np.unique(rows, axis=0)) == len(rows)
    expected = {tuple(r) for r, w in zip(np.column_stack([x, y]), weights) if w}
    assert {tuple(r) for r in rows} == expected


def test_negative_zero_is_zero_and_no_row_is_lost():
    found = merge_equal_rows(np.array([[0.0], [-0.0], [1.0]]), np.zeros(3), None)
    assert sorted(zip(found.x[:, 0].tolist(), found.weights.tolist())) == [(0, 2), (1, 1)]
    x = np.random.default_rng(1).normal(size=(5000, 4))
    assert len(merge_equal_rows(x, x[:, 0], None).x) == 5000


def test_scales_are_weighted_and_leave_constant_columns_alone():
    x = np.array([[1.0, 7.1], [3.0, 7.1], [9.0, 7.1]])
    mean, scale = scale_of(x, np.array([1.0, 1.0, 0.0]), True)
    np.testing.assert_allclose(mean, [2, 7.1])
    assert scale.tolist() == [1, 1]
    assert scale_of(x, np.ones(3), True)(x).dtype == np.float32
    np.testing.assert_array_equal(scale_of(x, np.ones(3), False)(x), x.astype(np.float32))


def test_what_is_held_out_is_not_trained_on():
    inside, outside = halves(10, 0.25, np.random.default_rng(0), "me")
    assert sorted([*inside, *outside]) == list(range(10)) and len(outside) == 2
    with pytest.raises(ValueError, match=r"me: validation_fraction must be in \(0, 1\), got 1"):
        halves(10, 1, np.random.default_rng(0), "me")
    with pytest.raises(ValueError, match=r"holds out 1 of 1 different examples, .* give more"):
        halves(1, 0.1, np.random.default_rng(0), "me")


def test_a_bootstrap_draws_as_often_as_the_weights_say():
    weights = np.array([1.0, 2.0, 7.0])
    counts = draw_counts(weights, 4000, np.random.default_rng(0))
    assert (counts.sum(axis=1) == 10).all()
    # The standard error of these means is at most √(10 · 0.21 / 4000) = 0.023.
    np.testing.assert_allclose(counts.mean(axis=0), weights, atol=0.1)
    # Weights of another scale stand for a count of 1 on average.
    assert draw_counts(weights / 100, 1, np.random.default_rng(0)).sum() == 3
