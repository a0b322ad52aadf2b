"""Conformal sets: the quantile by hand, and the coverage promised, on new examples."""

import math

import numpy as np
import pytest
from scipy import special

import stretto as st
from stretto.ensemble import conformal

MEMBERS, EXAMPLES, CLASSES = 2, 199, 6


def draw(seed, examples=EXAMPLES):
    rng = np.random.default_rng(seed)
    z = rng.normal(size=(MEMBERS, examples, CLASSES))
    labels = [rng.choice(CLASSES, p=special.softmax(row)) for row in z[0]]
    return special.softmax(z * 1.5, axis=-1).astype(np.float32), np.int32(labels)  # overconfident


PROBS, LABELS = draw(0)


def plain_score(row, label, method):
    if method == "lac":
        return 1 - row[label]
    order = np.argsort(-row, kind="stable")
    return row[order][: list(order).index(label) + 1].sum()


@pytest.mark.parametrize("method", ["lac", "aps"])
@pytest.mark.parametrize("coverage", [0.5, 0.9])
def test_the_definition_eagerly_jitted_and_vmapped(method, coverage):
    fit = lambda p, y: conformal.fit_conformal(p, y, coverage, method)
    expected = []
    for p in PROBS:
        ordered = np.sort([plain_score(row, y, method) for row, y in zip(p, LABELS)])
        expected.append(ordered[math.ceil((EXAMPLES + 1) * coverage) - 1])
    runs = (fit(PROBS, LABELS), st.jit(fit)(PROBS, LABELS), st.vmap(fit, (0, None))(PROBS, LABELS))
    for found in runs:
        np.testing.assert_allclose(found.threshold, expected, rtol=1e-5)
    sets = np.asarray(st.jit(lambda c, p: c(p))(fit(PROBS, LABELS), PROBS))
    for m, i in [(0, 0), (1, 3), (1, 7)]:
        inside = [plain_score(PROBS[m, i], c, method) <= expected[m] for c in range(CLASSES)]
        np.testing.assert_array_equal(sets[m, i], inside)


@pytest.mark.parametrize("method", ["lac", "aps"])
def test_the_coverage_promised_holds_on_new_examples(method):
    covered = []
    for seed in range(20):
        (probs, _), labels = draw(seed)
        sets = conformal.fit_conformal(probs, labels, 0.9, method)
        (probs, _), labels = draw(1000 + seed)
        covered.append(np.take_along_axis(np.asarray(sets(probs)), labels[:, None], -1).mean())
    # 0.9 in expectation, and at most 1 / 200 more but for ties, as of "aps" at 1 for classes that
    # are last. The mean of 20 draws has a spread of 0.007.
    assert 0.88 < np.mean(covered) < 0.93


def test_too_few_examples_for_the_coverage_give_all_classes():
    found = conformal.fit_conformal(PROBS[0, :5], LABELS[:5], 0.9)
    assert np.asarray(found(PROBS[0])).all()
    found = conformal.fit_conformal(PROBS[0, :9], LABELS[:9], 0.9)  # ⌈10 × 0.9⌉ = 9: the greatest
    assert np.isfinite(float(found.threshold))


def test_one_example_at_a_time():
    found = conformal.fit_conformal(PROBS[0], LABELS)
    np.testing.assert_array_equal(found(PROBS[0])[3], found(PROBS[0, 3]))


def test_nan_gives_empty_sets():
    probs = PROBS.copy()
    probs[1, 0] = np.nan
    found = conformal.fit_conformal(probs, LABELS)
    assert np.isnan(np.asarray(found.threshold)).tolist() == [False, True]
    assert not np.asarray(found(PROBS))[1].any()


def test_misuse():
    with pytest.raises(ValueError, match=r"coverage must be in \(0, 1\), got 90"):
        conformal.fit_conformal(PROBS, LABELS, 90)
    with pytest.raises(ValueError, match="method must be 'lac' or 'aps', got 'raps'"):
        conformal.fit_conformal(PROBS, LABELS, method="raps")
    with pytest.raises(ValueError, match="at least 1 example, got 0"):
        conformal.fit_conformal(PROBS[:, :0], LABELS[:0])
