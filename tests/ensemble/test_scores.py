"""Scores against their definitions written out in NumPy, in float64."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import scores

MEMBERS, EXAMPLES, CLASSES = 3, 200, 5


@pytest.fixture(scope="module")
def predictions():
    rng = np.random.default_rng(0)
    z = np.exp(2 * rng.normal(size=(MEMBERS, EXAMPLES, CLASSES)))
    probs = (z / z.sum(-1, keepdims=True)).astype(np.float32)
    return probs, rng.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def plain_accuracy(p, y):
    return np.mean([row.argmax() == label for row, label in zip(p, y)])


def plain_nll(p, y):
    return np.mean([-np.log(row[label]) for row, label in zip(p, y)])


def plain_brier(p, y):
    return np.mean([((row - np.eye(CLASSES)[label]) ** 2).sum() for row, label in zip(p, y)])


def plain_ece(p, y, bins=15):
    confidence, right = p.max(-1), p.argmax(-1) == y
    total = 0.0
    for m in range(bins):
        inside = (confidence > m / bins) & (confidence <= (m + 1) / bins)
        if inside.any():
            total += inside.mean() * abs(right[inside].mean() - confidence[inside].mean())
    return total


PAIRS = [
    (scores.accuracy, plain_accuracy),
    (scores.nll, plain_nll),
    (scores.brier, plain_brier),
    (scores.ece, plain_ece),
    (lambda p, y: scores.ece(p, y, bins=4), lambda p, y: plain_ece(p, y, bins=4)),
]


@pytest.mark.parametrize(("score", "plain"), PAIRS)
def test_each_member_is_scored_alone(predictions, score, plain):
    probs, labels = predictions
    expected = [plain(p.astype(np.float64), labels) for p in probs]
    np.testing.assert_allclose(score(probs, labels), expected, rtol=1e-5)
    np.testing.assert_allclose(score(probs[0], labels), expected[0], rtol=1e-5)


@pytest.mark.parametrize(("score", "plain"), PAIRS)
def test_labels_of_each_member(predictions, score, plain):
    probs, labels = predictions
    own = np.stack([np.roll(labels, i) for i in range(MEMBERS)])
    expected = [plain(p.astype(np.float64), y) for p, y in zip(probs, own)]
    np.testing.assert_allclose(score(probs, own), expected, rtol=1e-5)


@pytest.mark.parametrize("score", [pair[0] for pair in PAIRS])
def test_jitted_and_vmapped(predictions, score):
    probs, labels = map(snp.asarray, predictions)
    expected = np.asarray(score(probs, labels))
    np.testing.assert_allclose(st.jit(score)(probs, labels), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(score, (0, None))(probs, labels), expected, rtol=1e-5)


def test_perfect_and_opposite_predictions():
    probs, labels = np.eye(3, dtype=np.float32), np.arange(3, dtype=np.int32)
    for score, right, wrong in [
        (scores.accuracy, 1, 0),
        (scores.nll, 0, -np.log(np.finfo(np.float32).tiny)),
        (scores.brier, 0, 2),
        (scores.ece, 0, 1),
    ]:
        np.testing.assert_allclose(score(probs, labels), right, atol=1e-7)
        np.testing.assert_allclose(score(probs, (labels + 1) % 3), wrong, rtol=1e-6)


def test_a_confidence_on_an_edge_is_in_the_lower_bin():
    probs = np.float32([[0.5, 0.5], [0.75, 0.25]])
    share = scores.reliability(probs, np.array([0, 0]), bins=2).share
    np.testing.assert_array_equal(share, [0.5, 0.5])


def test_reliability_sums_to_the_whole(predictions):
    probs, labels = predictions
    in_bins = scores.reliability(probs, labels, bins=10)
    assert in_bins.share.shape == (MEMBERS, 10)
    share, confidence, accuracy = map(np.asarray, in_bins)
    np.testing.assert_allclose(share.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose((share * confidence).sum(-1), probs.max(-1).mean(-1), rtol=1e-5)
    np.testing.assert_allclose(
        (share * accuracy).sum(-1), scores.accuracy(probs, labels), rtol=1e-5
    )


def test_low_precision_is_raised():
    probs = snp.asarray(np.float32([[0.5, 0.5], [0.25, 0.75]])).astype(snp.bfloat16)
    assert scores.nll(probs, np.array([0, 1])).dtype == np.float32


def test_entropies(predictions):
    probs, _ = predictions
    p = probs.astype(np.float64)

    def entropy(p):
        return -(p * np.log(p)).sum(-1)

    total, inherent = entropy(p.mean(0)), entropy(p).mean(0)
    np.testing.assert_allclose(scores.predictive_entropy(probs), total, rtol=1e-5)
    # A difference of numbers of order 1 in float32.
    np.testing.assert_allclose(scores.mutual_information(probs), total - inherent, atol=1e-5)


def test_entropies_of_certainty_have_finite_derivatives():
    probs = snp.asarray(np.eye(2, dtype=np.float32)[:, None])  # two sure members that disagree
    np.testing.assert_allclose(scores.mutual_information(probs), [np.log(2)], rtol=1e-6)
    slope = st.grad(lambda p: scores.mutual_information(p).sum())(probs)
    assert np.isfinite(np.asarray(slope)).all()


def test_equal_members_do_not_disagree(predictions):
    probs = np.repeat(predictions[0][:1], 4, axis=0)
    information = np.asarray(scores.mutual_information(probs))
    assert (information >= 0).all()
    np.testing.assert_allclose(information, 0, atol=1e-6)


@pytest.mark.parametrize("score", [scores.accuracy, scores.nll, scores.brier, scores.ece])
def test_shapes_and_types_that_do_not_fit(score):
    probs = np.full((4, 2), 0.5, np.float32)
    with pytest.raises(ValueError, match=r"labels of shape \(examples,\), got \(4, 2\) and \(3,\)"):
        score(probs, np.zeros(3, np.int32))
    with pytest.raises(ValueError, match="expected probs of shape"):
        score(probs[0], np.int32(0))
    with pytest.raises(TypeError, match="integer dtype, got float32"):
        score(probs, np.zeros(4, np.float32))


def test_other_misuse():
    with pytest.raises(ValueError, match="at least 1 bin, got 0"):
        scores.ece(np.full((4, 2), 0.5, np.float32), np.zeros(4, np.int32), bins=0)
    with pytest.raises(ValueError, match="mutual_information: expected probs of shape"):
        scores.mutual_information(np.ones(3, np.float32))
