"""Fitted weights against SciPy's optimum, and selection against a plain loop."""

import numpy as np
import pytest
from scipy import optimize, special

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import combination, scores

MEMBERS, EXAMPLES, CLASSES = 6, 150, 4
RNG = np.random.default_rng(0)
LABELS = RNG.integers(0, CLASSES, EXAMPLES).astype(np.int32)
SKILL = np.float64([0.2, 1.5, 1, 0, 1.2, 0.5])
LOGITS = RNG.normal(size=(MEMBERS, EXAMPLES, CLASSES)) + (
    SKILL[:, None, None] * np.eye(CLASSES)[LABELS]
)
PROBS = special.softmax(2 * LOGITS, axis=-1).astype(np.float32)
OF_LABEL = PROBS[:, np.arange(EXAMPLES), LABELS].astype(np.float64)


def mixture_nll(w):
    return -np.log(w @ OF_LABEL).mean()


def best_weights():
    f = lambda a: mixture_nll(special.softmax(a))
    return special.softmax(optimize.minimize(f, np.zeros(MEMBERS), tol=1e-10).x)


def test_stacking_is_as_good_as_it_promises():
    expected = best_weights()
    for fit in (combination.stacking_weights, st.jit(combination.stacking_weights)):
        found = np.asarray(fit(PROBS, LABELS))
        assert (found >= 0).all()
        np.testing.assert_allclose(found.sum(), 1, rtol=1e-6)
        gap = mixture_nll(found.astype(np.float64)) - mixture_nll(expected)
        assert -1e-6 < gap < 1e-5  # SciPy's end, too, is not exact
        np.testing.assert_allclose(found, expected, atol=5e-3)  # the optimum is flat


def test_stacking_more_exactly_in_float64():
    with st.enable_x64():
        found = combination.stacking_weights(PROBS.astype(np.float64), LABELS, tolerance=1e-9)
        np.testing.assert_allclose(found, best_weights(), atol=1e-4)


def test_stacking_beats_the_equal_mean_and_every_member():
    weights = combination.stacking_weights(PROBS, LABELS)
    stacked = float(scores.nll(combination.weighted_mean(PROBS, weights), LABELS))
    assert stacked <= float(scores.nll(combination.mean(PROBS), LABELS))
    assert stacked <= np.asarray(scores.nll(PROBS, LABELS)).min()


def test_stacking_vmapped():
    labels = np.stack([LABELS, np.roll(LABELS, 1)])
    found = st.jit(st.vmap(combination.stacking_weights, (None, 0)))(PROBS, labels)
    expected = np.stack([combination.stacking_weights(PROBS, y) for y in labels])
    np.testing.assert_allclose(found, expected, atol=1e-4)


def test_stacking_of_one_member_of_certainties_and_of_nan():
    np.testing.assert_allclose(combination.stacking_weights(PROBS[:1], LABELS), [1])
    right = np.eye(CLASSES, dtype=np.float32)[LABELS]
    found = combination.stacking_weights(np.stack([right, np.roll(right, 1, -1)]), LABELS)
    np.testing.assert_allclose(found, [1, 0], atol=1e-4)
    probs = PROBS.copy()
    probs[2, 0] = np.nan
    assert np.isnan(np.asarray(combination.stacking_weights(probs, LABELS))).all()


def plain_greedy(rounds, score, replacement=True):
    total, order, path = np.zeros((EXAMPLES, CLASSES)), [], []
    for k in range(1, rounds + 1):
        found = [float(score(((total + p) / k).astype(np.float32), LABELS)) for p in PROBS]
        if not replacement:
            found = [np.inf if m in order else s for m, s in enumerate(found)]
        best = int(np.argmin(found))
        order.append(best)
        path.append(found[best])
        total = total + PROBS[best]
    until = int(np.argmin(path)) + 1
    return np.bincount(order[:until], minlength=MEMBERS) / until, order, path


def inaccuracy(p, y):
    return 1 - scores.accuracy(p, y)


@pytest.mark.parametrize("replacement", [True, False], ids=["again", "once"])
@pytest.mark.parametrize("score", [scores.nll, inaccuracy], ids=["nll", "accuracy"])
def test_greedy_selection_is_the_loop(score, replacement):
    rounds = 12 if replacement else MEMBERS
    weights, order, path = plain_greedy(rounds, score, replacement)
    fit = lambda p, y: combination.greedy_selection(
        p, y, rounds, score=score, replacement=replacement
    )
    for found in (fit(PROBS, LABELS), st.jit(fit)(PROBS, LABELS)):
        np.testing.assert_array_equal(found.order, order)
        np.testing.assert_allclose(found.scores, path, rtol=1e-5, atol=1e-6)
        np.testing.assert_allclose(found.weights, weights, rtol=1e-6)


def test_selection_vmapped():
    labels = np.stack([LABELS, np.roll(LABELS, 1)])
    fit = lambda y: combination.greedy_selection(PROBS, y, 5)
    found = st.jit(st.vmap(fit))(labels)
    for i, y in enumerate(labels):
        np.testing.assert_array_equal(found.order[i], fit(y).order)
        np.testing.assert_allclose(found.weights[i], fit(y).weights, rtol=1e-6)


def test_a_member_that_diverged_is_not_chosen():
    probs = PROBS.copy()
    probs[1, 5] = np.nan  # the best one, on one example
    found = combination.greedy_selection(probs, LABELS, 6)
    assert 1 not in np.asarray(found.order)
    assert np.isfinite(np.asarray(found.weights)).all()


def test_misuse():
    with pytest.raises(ValueError, match=r"probs of shape \(members, examples, classes\)"):
        combination.stacking_weights(PROBS[0], LABELS)
    with pytest.raises(ValueError, match="tolerance must be positive, got 0"):
        combination.stacking_weights(PROBS, LABELS, tolerance=0)
    with pytest.raises(ValueError, match="at least 1 round, got 0"):
        combination.greedy_selection(PROBS, LABELS, 0)
    with pytest.raises(ValueError, match="at most 6 rounds, one a member; got 7"):
        combination.greedy_selection(PROBS, LABELS, 7, replacement=False)
    with pytest.raises(ValueError, match=r"one number a member, shape \(6,\).*it gave \(\)"):
        combination.greedy_selection(PROBS, LABELS, 2, score=lambda p, y: snp.mean(p))
    with pytest.raises(ValueError, match="expected labels from 0 to 3"):
        combination.stacking_weights(PROBS, LABELS + 1)
