"""Reliability and calibration errors against loops in NumPy, in float64."""

import numpy as np
import pytest
from scipy import special

import stretto as st
from stretto.ensemble import scores

MEMBERS, EXAMPLES, CLASSES = 3, 203, 5
RNG = np.random.default_rng(0)
PROBS = special.softmax(2 * RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES)), -1).astype(np.float32)
LABELS = RNG.integers(0, CLASSES, EXAMPLES).astype(np.int32)


def bins_of(confidence, bins, binning):
    """The examples in each bin."""
    if binning == "mass":
        return np.array_split(np.argsort(confidence, kind="stable"), bins)
    edges = np.arange(bins + 1) / bins
    inside = [(edges[m] < confidence) & (confidence <= edges[m + 1]) for m in range(bins)]
    return [np.flatnonzero(i) for i in inside]


def gaps(confidence, happened, bins, binning):
    """Return each bin's share of the examples, and its frequency less mean confidence."""
    for members in bins_of(confidence, bins, binning):
        if len(members):
            gap = happened[members].mean() - confidence[members].mean()
            yield len(members) / len(confidence), gap


def plain_ece(p, y, *how):
    return sum(share * abs(gap) for share, gap in gaps(p.max(-1), p.argmax(-1) == y, *how))


def plain_mce(p, y, *how):
    return max(abs(gap) for _, gap in gaps(p.max(-1), p.argmax(-1) == y, *how))


def plain_classwise(p, y, *how):
    return np.mean(
        [sum(s * abs(g) for s, g in gaps(p[:, c], y == c, *how)) for c in range(CLASSES)]
    )


def plain_brier_reliability(p, y, *how):
    return np.sum([sum(s * g**2 for s, g in gaps(p[:, c], y == c, *how)) for c in range(CLASSES)])


PAIRS = {
    "ece": (scores.ece, plain_ece),
    "mce": (scores.mce, plain_mce),
    "classwise_ece": (scores.classwise_ece, plain_classwise),
    "brier_reliability": (
        lambda *args: scores.brier_decomposition(*args).reliability,
        plain_brier_reliability,
    ),
}
HOW = [(15, "width"), (4, "width"), (15, "mass"), (4, "mass"), (300, "mass")]


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("how", HOW, ids=lambda how: f"{how[0]}-{how[1]}")
def test_the_definition_eagerly_and_jitted(name, how):
    score, plain = PAIRS[name]
    expected = [plain(p.astype(np.float64), LABELS, *how) for p in PROBS]
    np.testing.assert_allclose(score(PROBS, LABELS, *how), expected, rtol=1e-4)
    found = st.jit(lambda p, y: score(p, y, *how))(PROBS[0], LABELS)
    np.testing.assert_allclose(found, expected[0], rtol=1e-4)


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("binning", ["width", "mass"])
def test_vmapped_and_with_labels_of_each_member(name, binning):
    score, plain = PAIRS[name]
    own = np.stack([np.roll(LABELS, i) for i in range(MEMBERS)])
    expected = [plain(p.astype(np.float64), y, 10, binning) for p, y in zip(PROBS, own)]
    f = lambda p, y: score(p, y, 10, binning)
    np.testing.assert_allclose(f(PROBS, own), expected, rtol=1e-4)
    np.testing.assert_allclose(st.jit(st.vmap(f))(PROBS, own), expected, rtol=1e-4)


def test_a_confidence_on_an_edge_is_in_the_lower_bin():
    probs = np.float32([[0.5, 0.5], [0.75, 0.25]])
    share = scores.reliability(probs, np.array([0, 0]), bins=2).share
    np.testing.assert_array_equal(share, [0.5, 0.5])


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_reliability_sums_to_the_whole(binning):
    in_bins = scores.reliability(PROBS, LABELS, 10, binning)
    assert in_bins.share.shape == (MEMBERS, 10)
    share, confidence, accuracy = map(np.asarray, in_bins)
    np.testing.assert_allclose(share.sum(-1), 1, rtol=1e-6)
    np.testing.assert_allclose((share * confidence).sum(-1), PROBS.max(-1).mean(-1), rtol=1e-5)
    np.testing.assert_allclose(
        (share * accuracy).sum(-1), scores.accuracy(PROBS, LABELS), rtol=1e-5
    )


@pytest.mark.parametrize("binning", ["width", "mass"])
def test_the_parts_of_the_brier_score_add_up(binning):
    parts = scores.brier_decomposition(PROBS, LABELS, 10, binning)
    whole = parts.reliability - parts.resolution + parts.uncertainty + parts.within
    np.testing.assert_allclose(whole, scores.brier(PROBS, LABELS), rtol=1e-6)
    base = np.bincount(LABELS) / EXAMPLES
    np.testing.assert_allclose(parts.uncertainty, (base * (1 - base)).sum(), rtol=1e-5)


def test_nothing_is_within_bins_of_equal_predictions():
    levels = RNG.integers(0, 10, EXAMPLES)
    first = (levels + 0.5) / 10
    probs = np.stack([first, 1 - first], -1).astype(np.float32)
    parts = scores.brier_decomposition(probs, LABELS % 2, bins=10)
    np.testing.assert_allclose(parts.within, 0, atol=1e-6)


def test_perfect_and_opposite_predictions():
    probs, labels = np.eye(3, dtype=np.float32), np.arange(3, dtype=np.int32)
    for score in (scores.ece, scores.mce):
        np.testing.assert_allclose(score(probs, labels), 0, atol=1e-7)
        np.testing.assert_allclose(score(probs, (labels + 1) % 3), 1, rtol=1e-6)


def test_nan_stays_nan():
    probs = PROBS.copy()
    probs[1, 7] = np.nan
    for name, (score, _) in PAIRS.items():
        for binning in ("width", "mass"):
            missing = np.isnan(np.asarray(score(probs, LABELS, 10, binning)))
            assert missing.tolist() == [False, True, False], (name, binning)


def test_one_example():
    probs, labels = np.float32([[0.25, 0.75]]), np.array([0])
    np.testing.assert_allclose(scores.ece(probs, labels), 0.75)
    np.testing.assert_allclose(scores.ece(probs, labels, binning="mass"), 0.75)


def test_the_derivative_by_the_confidence():
    probs, labels = np.float32([[0.7, 0.3], [0.9, 0.1]]), np.array([0, 1])
    slope = st.jit(st.grad(scores.ece))(probs, labels)
    # The first is less sure than right, the second surer; each has half the examples.
    np.testing.assert_allclose(slope, [[-0.5, 0], [0.5, 0]], atol=1e-7)
