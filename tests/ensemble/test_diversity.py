"""Diversity against scikit-learn, and counts written out."""

import numpy as np
import pytest
from sklearn import metrics

import stretto as st
from stretto.ensemble import uncertainty

MEMBERS, EXAMPLES, CLASSES = 4, 50, 3
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, CLASSES, EXAMPLES).astype(np.int32)
PREDICTIONS = RNG.uniform(size=(MEMBERS, EXAMPLES, CLASSES)) + 0.7 * np.eye(CLASSES)[LABELS]
PREDICTIONS = PREDICTIONS.astype(np.float32)
VOTES = PREDICTIONS.argmax(-1)


def pairwise(f, rows):
    return np.array([[f(a, b) for b in rows] for a in rows])


def plain_q(a, b):
    n = [[np.sum((a == i) & (b == j)) for j in (0, 1)] for i in (0, 1)]
    return (n[1][1] * n[0][0] - n[0][1] * n[1][0]) / (n[1][1] * n[0][0] + n[0][1] * n[1][0])


PAIRS = {
    "disagreement": (
        uncertainty.pairwise_disagreement,
        pairwise(lambda a, b: np.mean(a != b), VOTES),
    ),
    "kappa": (uncertainty.cohen_kappa, pairwise(metrics.cohen_kappa_score, VOTES)),
    "q": (
        lambda p: uncertainty.q_statistic(p, LABELS),
        pairwise(plain_q, (VOTES == LABELS).astype(int)),
    ),
}


@pytest.mark.parametrize("name", PAIRS)
def test_the_definition_eagerly_jitted_and_with_more_axes(name):
    measure, expected = PAIRS[name]
    np.testing.assert_allclose(measure(PREDICTIONS), expected, rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(st.jit(measure)(PREDICTIONS), expected, rtol=1e-5, atol=1e-6)
    two = np.stack([PREDICTIONS, PREDICTIONS[::-1]], axis=1)
    both = np.stack([expected, expected[::-1, ::-1]], axis=-1)
    np.testing.assert_allclose(measure(two), both, rtol=1e-5, atol=1e-6)
    mapped = st.vmap(measure, in_axes=1, out_axes=-1)(two)
    np.testing.assert_allclose(mapped, both, rtol=1e-5, atol=1e-6)


def test_what_is_undefined_is_nan():
    always_first = np.tile(np.float32([1, 0]), (2, 5, 1))
    assert np.isnan(np.asarray(uncertainty.cohen_kappa(always_first))).all()
    assert np.isnan(np.asarray(uncertainty.q_statistic(always_first, np.zeros(5, np.int32)))).all()


def test_nan_stays_nan():
    predictions = PREDICTIONS.copy()
    predictions[1, 3, 0] = np.nan
    expected = (np.arange(MEMBERS) == 1)[:, None] | (np.arange(MEMBERS) == 1)
    for name, (measure, _) in PAIRS.items():
        np.testing.assert_array_equal(np.isnan(measure(predictions)), expected, err_msg=name)


def test_misuse():
    with pytest.raises(ValueError, match=r"predictions of shape \(members, ..., examples, classes"):
        uncertainty.cohen_kappa(PREDICTIONS[0])
    with pytest.raises(ValueError, match=r"q_statistic: expected predictions of shape"):
        uncertainty.q_statistic(PREDICTIONS, LABELS[:3])
