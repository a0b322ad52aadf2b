"""Scores class by class against scikit-learn's."""

import numpy as np
import pytest
from sklearn import metrics

import stretto as st
from stretto.ensemble import scores

MEMBERS, EXAMPLES, CLASSES = 3, 60, 5
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, CLASSES - 1, EXAMPLES).astype(np.int32)  # none of the last class
PROBS = (RNG.uniform(size=(MEMBERS, EXAMPLES, CLASSES)) + np.eye(CLASSES)[LABELS]).astype(
    np.float32
)
PROBS[0, ..., -1] = 0  # nor predicted, by the first member
AVERAGES = ["macro", "micro", "weighted"]


def predicted(p):
    return p.argmax(-1)


PAIRS = {
    "matrix": (
        scores.confusion_matrix,
        lambda p, y: metrics.confusion_matrix(y, predicted(p), labels=range(CLASSES)),
    ),
    "f1": (
        lambda p, y: scores.f1(p, y, average=None),
        lambda p, y: metrics.f1_score(
            y, predicted(p), average=None, labels=range(CLASSES), zero_division=0
        ),
    ),
    **{
        average: (
            lambda p, y, average=average: scores.f1(p, y, average=average),
            lambda p, y, average=average: metrics.f1_score(y, predicted(p), average=average),
        )
        for average in AVERAGES
    },
}


@pytest.mark.parametrize("name", PAIRS)
def test_scikit_learn_s_eagerly_jitted_and_vmapped(name):
    score, plain = PAIRS[name]
    expected = [plain(p, LABELS) for p in PROBS]
    np.testing.assert_allclose(score(PROBS, LABELS), expected, rtol=1e-5)
    np.testing.assert_allclose(st.jit(score)(PROBS, LABELS), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(score, (0, None))(PROBS, LABELS), expected, rtol=1e-5)
    own = np.stack([np.roll(LABELS, i) for i in range(MEMBERS)])
    expected = [plain(p, y) for p, y in zip(PROBS, own)]
    np.testing.assert_allclose(score(PROBS, own), expected, rtol=1e-5)


def test_balanced_accuracy():
    # scikit-learn warns where a class is predicted and never the label.
    probs = np.where(np.arange(CLASSES) == CLASSES - 1, 0, PROBS)
    expected = [metrics.balanced_accuracy_score(LABELS, predicted(p)) for p in probs]
    for score in (scores.balanced_accuracy, st.jit(scores.balanced_accuracy)):
        np.testing.assert_allclose(score(probs, LABELS), expected, rtol=1e-6)


def test_balanced_accuracy_leaves_out_classes_without_examples():
    probs, labels = np.eye(3, dtype=np.float32), np.array([0, 1, 1])
    np.testing.assert_allclose(scores.balanced_accuracy(probs, labels), 0.75)


def test_nan():
    probs = PROBS.copy()
    probs[1, 7] = np.nan
    assert np.asarray(scores.confusion_matrix(probs, LABELS)).sum((-2, -1)).tolist() == [
        EXAMPLES,
        EXAMPLES - 1,
        EXAMPLES,
    ]
    for score in (scores.f1, scores.balanced_accuracy):
        missing = np.isnan(np.asarray(score(probs, LABELS)))
        assert missing.tolist() == [False, True, False]
    assert np.isnan(np.asarray(scores.f1(probs, LABELS, None))[1]).all()


def test_an_unknown_average():
    with pytest.raises(ValueError, match="average must be 'macro', 'micro', 'weighted' or None"):
        scores.f1(PROBS, LABELS, "binary")
