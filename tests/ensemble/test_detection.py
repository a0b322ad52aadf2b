"""Areas and rates against scikit-learn's."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as some
from sklearn import metrics

import stretto as st
from stretto.ensemble import detection

RNG = np.random.default_rng(0)


def plain_fpr(positive, scores, tpr=0.95):
    false, true, _ = metrics.roc_curve(positive, scores, drop_intermediate=False)
    return false[np.argmax(true >= tpr - 1e-9)]


PAIRS = {
    "auroc": (detection.auroc, metrics.roc_auc_score),
    "aupr": (detection.aupr, metrics.average_precision_score),
    "fpr95": (detection.fpr_at_tpr, plain_fpr),
    "fpr50": (lambda s, p: detection.fpr_at_tpr(s, p, 0.5), lambda p, s: plain_fpr(p, s, 0.5)),
}
JITTED = {name: st.jit(pair[0]) for name, pair in PAIRS.items()}
SCORES = RNG.normal(size=(3, 200)).astype(np.float32)
SCORES[1] = SCORES[1].round(1)  # many ties
SCORES[2] = SCORES[2] > 0  # two values
POSITIVE = (RNG.uniform(size=200) < 0.3) | (SCORES[0] > 1)


@pytest.mark.parametrize("name", PAIRS)
def test_scikit_learn_s_eagerly_jitted_and_vmapped(name):
    score, theirs = PAIRS[name]
    expected = [theirs(POSITIVE, s) for s in SCORES]
    np.testing.assert_allclose(score(SCORES, POSITIVE), expected, rtol=1e-5)
    np.testing.assert_allclose(JITTED[name](SCORES, POSITIVE.astype(np.int32)), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(score, (0, None))(SCORES, POSITIVE), expected, rtol=1e-5)
    own = np.stack([np.roll(POSITIVE, i) for i in range(3)])
    expected = [theirs(p, s) for p, s in zip(own, SCORES)]
    np.testing.assert_allclose(score(SCORES, own), expected, rtol=1e-5)


@settings(max_examples=60)
@given(some.lists(some.tuples(some.integers(-3, 3), some.booleans()), min_size=12, max_size=12))
def test_any_ties(pairs):
    scores, positive = (np.array(x) for x in zip(*pairs))
    if 0 < positive.sum() < 12:
        for name, (_, theirs) in PAIRS.items():
            found = JITTED[name](scores.astype(np.float32), positive)
            np.testing.assert_allclose(found, theirs(positive, scores), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("name", ["auroc", "aupr", "fpr"])
def test_two_arrays_are_one_with_labels(name):
    general = detection.fpr_at_tpr if name == "fpr" else getattr(detection, name)
    inside, outside = SCORES[:, :80], SCORES[:, 80:]
    positive = np.arange(200) >= 80
    for score in (getattr(detection, f"ood_{name}"), st.jit(getattr(detection, f"ood_{name}"))):
        np.testing.assert_allclose(score(inside, outside), general(SCORES, positive), rtol=1e-6)


def test_the_other_kind_as_positives():
    inside, outside = SCORES[0, :80], SCORES[0, 80:]
    expected = metrics.average_precision_score(np.arange(200) < 80, -SCORES[0])
    np.testing.assert_allclose(detection.ood_aupr(-outside, -inside), expected, rtol=1e-5)


def test_extremes():
    low, high = np.float32([-np.inf, 0, 1]), np.float32([2, 3, np.inf])
    for score, best, worst in [(detection.ood_auroc, 1, 0), (detection.ood_fpr, 0, 1)]:
        assert float(score(low, high)) == best
        assert float(score(high, low)) == worst
    assert float(detection.ood_aupr(low, high)) == 1
    equal = np.zeros(4, np.float32)
    assert float(detection.ood_auroc(equal, equal)) == 0.5
    assert float(detection.ood_aupr(equal, equal[:1])) == pytest.approx(0.2)
    assert float(detection.ood_fpr(equal, equal)) == 1
    zeros = np.float32([-0.0, 0.0])  # equal, though their bits differ
    assert float(detection.ood_auroc(zeros[:1], zeros[1:])) == 0.5
    assert float(detection.ood_auroc(zeros[1:], zeros[:1])) == 0.5
    assert float(detection.ood_auroc(np.float32([1]), np.float32([2]))) == 1


@pytest.mark.parametrize("count", [20, 40, 60, 100, 1000])
def test_exactly_the_share_asked_for_is_enough(count):
    outside = np.arange(count, dtype=np.float32)
    cut = count // 20  # so many may be missed
    inside = np.float32([cut - 0.5, cut + 0.5])
    assert float(detection.ood_fpr(inside, outside)) == 0.5
    assert float(detection.ood_fpr(inside, outside, tpr=1.0)) == 1


def test_what_is_undefined_is_nan():
    for score in (detection.auroc, detection.aupr, detection.fpr_at_tpr):
        for positive in (np.zeros(200, bool), np.ones(200, bool)):
            assert np.isnan(np.asarray(score(SCORES, positive))).all()
        scores = SCORES.copy()
        scores[1, 5] = np.nan
        missing = np.isnan(np.asarray(score(scores, POSITIVE)))
        assert missing.tolist() == [False, True, False]
    assert np.isnan(float(detection.ood_auroc(np.zeros(0, np.float32), SCORES[0])))


def test_many_examples_do_not_lose_counts():
    rng = np.random.default_rng(3)
    inside, outside = (rng.normal(i, 1, 100_000).astype(np.float32) for i in (0, 1))
    both, positive = np.concatenate([inside, outside]), np.arange(200_000) >= 100_000
    for scores in (both, both.round(1)):
        for name in ("auroc", "aupr"):
            score, theirs = JITTED[name], PAIRS[name][1]
            np.testing.assert_allclose(score(scores, positive), theirs(positive, scores), rtol=1e-6)


def test_derivatives_are_zero():
    slope = st.grad(detection.ood_auroc)(SCORES[0, :80], SCORES[0, 80:])
    np.testing.assert_array_equal(slope, np.zeros(80))


def test_misuse():
    with pytest.raises(ValueError, match=r"auroc: expected scores of shape.*\(3, 200\) and \(7,\)"):
        detection.auroc(SCORES, POSITIVE[:7])
    with pytest.raises(TypeError, match="positive of a boolean or integer dtype, got float32"):
        detection.auroc(SCORES, POSITIVE.astype(np.float32))
    with pytest.raises(ValueError, match=r"ood_aupr: expected scores_in and scores_out"):
        detection.ood_aupr(SCORES, SCORES[0])
    with pytest.raises(ValueError, match=r"ood_fpr: tpr must be in \(0, 1\], got 95"):
        detection.ood_fpr(SCORES, SCORES, 95)
