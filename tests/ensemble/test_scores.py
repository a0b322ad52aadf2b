"""Scores against their definitions written out in NumPy, in float64, and scikit-learn's."""

import numpy as np
import pytest
from scipy import special
from sklearn import metrics

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import combination, scores

MEMBERS, EXAMPLES, CLASSES = 3, 200, 5
RNG = np.random.default_rng(0)
LOGITS = (2 * RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES))).astype(np.float32)
PROBS = special.softmax(LOGITS, axis=-1)
LABELS = RNG.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def plain_accuracy(p, y):
    return np.mean([row.argmax() == label for row, label in zip(p, y)])


def plain_top_2(p, y):
    return metrics.top_k_accuracy_score(y, p, k=2, labels=range(CLASSES))


def plain_nll(p, y):
    return np.mean([-np.log(row[label]) for row, label in zip(p, y)])


def plain_brier(p, y):
    return np.mean([((row - np.eye(CLASSES)[label]) ** 2).sum() for row, label in zip(p, y)])


PAIRS = {
    "accuracy": (scores.accuracy, plain_accuracy),
    "top_2": (lambda p, y: scores.top_k_accuracy(p, y, k=2), plain_top_2),
    "nll": (scores.nll, plain_nll),
    "nll_from_logits": (lambda p, y: scores.nll_from_logits(snp.log(p) + 5, y), plain_nll),
    "brier": (scores.brier, plain_brier),
}


@pytest.mark.parametrize("name", PAIRS)
def test_each_member_is_scored_alone(name):
    score, plain = PAIRS[name]
    expected = [plain(p.astype(np.float64), LABELS) for p in PROBS]
    np.testing.assert_allclose(score(PROBS, LABELS), expected, rtol=1e-5)
    np.testing.assert_allclose(score(PROBS[0], LABELS), expected[0], rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_labels_of_each_member(name):
    score, plain = PAIRS[name]
    own = np.stack([np.roll(LABELS, i) for i in range(MEMBERS)])
    expected = [plain(p.astype(np.float64), y) for p, y in zip(PROBS, own)]
    np.testing.assert_allclose(score(PROBS, own), expected, rtol=1e-5)


@pytest.mark.parametrize("name", PAIRS)
def test_jitted_and_vmapped(name):
    score, _ = PAIRS[name]
    expected = np.asarray(score(PROBS, LABELS))
    np.testing.assert_allclose(st.jit(score)(PROBS, LABELS), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(score, (0, None))(PROBS, LABELS), expected, rtol=1e-5)


def test_scikit_learn_s():
    p = PROBS[0]
    np.testing.assert_allclose(
        scores.nll(p, LABELS), metrics.log_loss(LABELS, p, labels=range(CLASSES)), rtol=1e-5
    )
    two = p[:, :2] / p[:, :2].sum(-1, keepdims=True)
    expected = 2 * metrics.brier_score_loss(LABELS % 2, two[:, 1])  # theirs is of one class
    np.testing.assert_allclose(scores.brier(two, LABELS % 2), expected, rtol=1e-5)


def test_perfect_and_opposite_predictions():
    probs, labels = np.eye(3, dtype=np.float32), np.arange(3, dtype=np.int32)
    for score, right, wrong in [
        (scores.accuracy, 1, 0),
        (scores.nll, 0, -np.log(np.finfo(np.float32).tiny)),
        (scores.brier, 0, 2),
    ]:
        np.testing.assert_allclose(score(probs, labels), right, atol=1e-7)
        np.testing.assert_allclose(score(probs, (labels + 1) % 3), wrong, rtol=1e-6)


def test_the_likelihood_from_logits_does_not_underflow():
    logits = np.float32([[0, -300], [0, -np.inf]])
    np.testing.assert_allclose(scores.nll_from_logits(logits, np.array([1, 0])), 150)
    assert scores.nll_from_logits(logits, np.array([1, 1])) == np.inf
    slope = st.grad(scores.nll_from_logits)(snp.asarray(logits), snp.array([1, 0]))
    np.testing.assert_allclose(slope, [[0.5, -0.5], [0, 0]], atol=1e-7)


def test_the_likelihood_of_an_ensemble_from_its_logits():
    found = st.jit(lambda z: scores.nll_from_logits(combination.log_mean(z), LABELS))(LOGITS)
    np.testing.assert_allclose(found, plain_nll(PROBS.mean(0).astype(np.float64), LABELS), 1e-5)


def test_derivatives():
    z = snp.asarray(LOGITS[0])
    one_hot = np.eye(CLASSES)[LABELS]
    slope = st.jit(st.grad(scores.nll_from_logits))(z, LABELS)
    np.testing.assert_allclose(slope, (PROBS[0] - one_hot) / EXAMPLES, atol=1e-8)
    slope = st.jit(st.grad(scores.brier))(snp.asarray(PROBS[0]), LABELS)
    np.testing.assert_allclose(slope, 2 * (PROBS[0] - one_hot) / EXAMPLES, atol=1e-8)
    slope = st.jit(st.grad(scores.nll))(snp.asarray(PROBS[0]), LABELS)
    np.testing.assert_allclose(slope, -one_hot / PROBS[0] / EXAMPLES, rtol=1e-5, atol=1e-8)


def test_the_second_derivative_of_the_likelihood():
    z, y = snp.asarray(LOGITS[0, 0]), LABELS[:1]
    f = lambda z: scores.nll_from_logits(z[None], y)
    p = special.softmax(LOGITS[0, 0].astype(np.float64))
    expected = np.diag(p) - np.outer(p, p)
    np.testing.assert_allclose(st.jit(st.hessian(f))(z), expected, atol=1e-6)


def test_ties_of_top_k():
    equal = np.full((3, 3), 1 / 3, np.float32)
    found = [float(scores.top_k_accuracy(equal, np.arange(3), k=k)) for k in (1, 2, 3)]
    np.testing.assert_allclose(found, [1 / 3, 2 / 3, 1], rtol=1e-6)


def test_nan_stays_nan():
    probs = PROBS.copy()
    probs[1, 7, 2] = np.nan
    for name, (score, _) in PAIRS.items():
        missing = np.isnan(np.asarray(score(probs, LABELS)))
        np.testing.assert_array_equal(missing, [False, True, False], err_msg=name)


def test_one_example():
    for name, (score, plain) in PAIRS.items():
        p, y = PROBS[0, :1], LABELS[:1]
        if name != "top_2":  # scikit-learn wants more
            np.testing.assert_allclose(score(p, y), plain(p, y), rtol=1e-5, err_msg=name)


def test_low_precision_is_raised():
    probs = snp.asarray(np.float32([[0.5, 0.5], [0.25, 0.75]])).astype(snp.bfloat16)
    assert scores.nll(probs, np.array([0, 1])).dtype == np.float32


def test_a_traced_label_out_of_range_has_no_probability():
    probs = np.float32([[0.5, 0.5]])
    score = lambda score: float(st.jit(score)(probs, snp.array([2])))
    assert score(scores.accuracy) == 0
    assert score(scores.nll) == pytest.approx(-np.log(np.finfo(np.float32).tiny))
    assert score(scores.nll_from_logits) == np.inf


def test_no_examples_have_no_score():
    for name, (score, _) in PAIRS.items():
        assert np.isnan(np.asarray(score(PROBS[:, :0], LABELS[:0]))).all(), name


def test_misuse_of_k():
    with pytest.raises(ValueError, match="expected at least 1 as k, got 0"):
        scores.top_k_accuracy(PROBS, LABELS, k=0)
    with pytest.raises(ValueError, match="k is 6, but there are 5 classes"):
        scores.top_k_accuracy(PROBS, LABELS, k=6)
