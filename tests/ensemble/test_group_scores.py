"""Scores by group: each equals the score of the group's examples alone."""

import functools

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import ensemble as e
from stretto.ensemble import by_group

RNG = np.random.default_rng(0)
MEMBERS, EXAMPLES, CLASSES = 4, 40, 5
PROBS = RNG.dirichlet(np.ones(CLASSES), (MEMBERS, EXAMPLES))
LABELS = RNG.integers(0, CLASSES, EXAMPLES)
GROUPS = RNG.integers(0, 3, EXAMPLES)
GROUPS[GROUPS == 1] = 3  # group 1 is empty
TARGETS = RNG.normal(size=(EXAMPLES, 2))
MEANS = RNG.normal(size=(MEMBERS, EXAMPLES, 2))
VARIANCES = RNG.uniform(0.5, 2, (MEMBERS, EXAMPLES, 2))

CASES = {
    "accuracy": (e.accuracy, (PROBS, LABELS), {}),
    "top_k_accuracy": (e.top_k_accuracy, (PROBS, LABELS), {"k": 2}),
    "nll": (e.nll, (PROBS, LABELS), {}),
    "nll_from_logits": (e.nll_from_logits, (PROBS, LABELS), {}),
    "brier": (e.brier, (PROBS, LABELS), {}),
    "ece": (e.ece, (PROBS, LABELS), {"bins": 4}),
    "ece of equal mass": (e.ece, (PROBS, LABELS), {"bins": 5, "binning": "mass"}),
    "ece of many bins of equal mass": (e.ece, (PROBS, LABELS), {"bins": 30, "binning": "mass"}),
    "mce": (e.mce, (PROBS, LABELS), {"bins": 4}),
    "classwise_ece": (e.classwise_ece, (PROBS, LABELS), {}),
    "classwise_ece of equal mass": (e.classwise_ece, (PROBS, LABELS), {"binning": "mass"}),
    "mae": (e.mae, (MEANS, TARGETS), {}),
    "rmse": (e.rmse, (MEANS, TARGETS), {}),
    "gaussian_nll": (e.gaussian_nll, (MEANS, VARIANCES, TARGETS), {}),
    "crps_gaussian": (e.crps_gaussian, (MEANS, VARIANCES, TARGETS), {}),
    "crps_ensemble": (e.crps_ensemble, (MEANS, TARGETS), {"fair": True}),
    "energy_score_ensemble": (e.energy_score_ensemble, (MEANS, TARGETS), {}),
    "interval_coverage": (e.interval_coverage, (MEANS - 1, MEANS + 1, TARGETS), {}),
    "interval_score": (e.interval_score, (MEANS - 1, MEANS + 1, TARGETS), {"coverage": 0.8}),
    "pinball_loss": (
        e.pinball_loss,
        (MEANS, TARGETS),
        {"quantiles": snp.array([0.1, 0.3, 0.6, 0.8])},
    ),
}


@pytest.fixture(autouse=True)
def in_float64():
    with st.enable_x64():
        yield


@pytest.mark.parametrize("name", CASES)
def test_the_score_of_the_group_alone(name):
    score, arguments, settings = CASES[name]
    run = functools.partial(by_group, score, groups=GROUPS, **settings)
    expected = []
    for g in range(4):
        # Examples are the axis before classes, or before outputs; of labels the last.
        cut = lambda x, g=g: x[g == GROUPS] if len(x) == EXAMPLES else x[:, g == GROUPS]
        expected.append(score(*map(cut, arguments), **settings) if g != 1 else None)
    expected[1] = np.full(expected[0].shape, np.nan)
    for found in (run(*arguments), st.jit(run)(*arguments)):
        np.testing.assert_allclose(found.score, np.stack(expected), rtol=1e-12, atol=1e-14)
        assert found.count.tolist() == np.bincount(GROUPS).tolist()


def test_traced_groups_and_those_out_of_range():
    run = st.jit(lambda g: by_group(e.accuracy, PROBS[0], LABELS, groups=g, num_groups=2))
    found = run(np.where(GROUPS == 3, -1, GROUPS))
    expected = by_group(e.accuracy, PROBS[0], LABELS, groups=GROUPS)
    assert found.count.tolist() == [(GROUPS == 0).sum(), 0]
    np.testing.assert_allclose(found.score[0], expected.score[0])


def test_names():
    names = np.array(["b", "unused", "a", "c"])[GROUPS]
    found = by_group(e.accuracy, PROBS[0], LABELS, groups=names)  # a, b, c
    expected = by_group(e.accuracy, PROBS[0], LABELS, groups=GROUPS).score
    np.testing.assert_allclose(found.score, expected[np.array([2, 0, 3])])
    halves = by_group(e.accuracy, PROBS[0], LABELS, groups=GROUPS == 3)
    assert halves.count.tolist() == [(GROUPS != 3).sum(), (GROUPS == 3).sum()]


def test_the_worst_group_and_the_gap():
    found = by_group(e.accuracy, PROBS, LABELS, groups=GROUPS)
    held = np.delete(np.asarray(found.score), 1, axis=0)
    np.testing.assert_array_equal(found.lowest, held.min(0))
    np.testing.assert_array_equal(found.highest, held.max(0))
    np.testing.assert_array_equal(found.gap, held.max(0) - held.min(0))


@pytest.mark.parametrize(("score", "settings"), [(e.brier, {}), (e.ece, {"binning": "mass"})])
def test_nan_stays_in_its_group(score, settings):
    probs = PROBS[0].copy()
    probs[np.flatnonzero(GROUPS == 2)[0]] = np.nan
    found = by_group(score, probs, LABELS, groups=GROUPS, **settings)
    assert np.isnan(np.asarray(found.score)).tolist() == [False, True, True, False]
    assert np.isnan(float(found.gap))


def test_gradients_of_the_worst_group_are_that_group_s():
    loss = lambda p: by_group(e.brier, p, LABELS, groups=GROUPS).highest
    probs = snp.asarray(PROBS[0])
    worst = int(np.nanargmax(by_group(e.brier, probs, LABELS, groups=GROUPS).score))
    slopes = np.asarray(st.grad(loss)(probs))
    own = st.grad(lambda p: e.brier(p, LABELS[worst == GROUPS]))(probs[worst == GROUPS])
    np.testing.assert_allclose(slopes[worst == GROUPS], own, rtol=1e-12)
    assert not slopes[worst != GROUPS].any()


def test_a_function_of_one_s_own():
    square = lambda p, t: snp.mean(snp.square(p - t))
    found = by_group(square, MEANS[0, :, 0], TARGETS[:, 0], groups=GROUPS)
    expected = [np.mean((MEANS[0] - TARGETS)[g == GROUPS, 0] ** 2) for g in (0, 2, 3)]
    np.testing.assert_allclose(found.score[np.array([0, 2, 3])], expected)


@pytest.mark.parametrize("name", ["reliability", "f1", "r2", "auroc", "aurc", "confusion_matrix"])
def test_what_is_no_mean_is_refused_by_name(name):
    with pytest.raises(ValueError, match=f"by_group: {name} is no mean over examples"):
        by_group(getattr(e, name), PROBS[0], LABELS, groups=GROUPS)


def test_misuse():
    deviation = lambda p, t: snp.std(p - t)
    with pytest.raises(ValueError, match="<lambda> is no mean over examples: of all it is"):
        by_group(deviation, MEANS[0], TARGETS, groups=GROUPS)
    with pytest.raises(ValueError, match=r"groups of shape \(40,\).* got \(3,\)"):
        by_group(e.accuracy, PROBS, LABELS, groups=[0, 1, 2])
    with pytest.raises(ValueError, match="expected groups from 0 to 1, got 3"):
        by_group(e.accuracy, PROBS, LABELS, groups=np.minimum(GROUPS * 3, 3), num_groups=2)
    with pytest.raises(TypeError, match="got float64"):
        by_group(e.accuracy, PROBS, LABELS, groups=GROUPS.astype(float))
    with pytest.raises(ValueError, match="num_groups= must say how many"):
        st.jit(lambda g: by_group(e.accuracy, PROBS, LABELS, groups=g))(GROUPS)
    with pytest.raises(ValueError, match="settings are given by name"):
        by_group(e.interval_score, MEANS, MEANS, TARGETS, 0.8, groups=GROUPS)
    with pytest.raises(ValueError, match="labels from 0 to 4"):
        by_group(e.accuracy, PROBS, LABELS + 9, groups=GROUPS)
    with pytest.raises(ValueError, match="expected 40 examples along axis -1 of argument 1"):
        by_group(e.accuracy, PROBS, LABELS[:3], groups=GROUPS)
    with pytest.raises(ValueError, match="num_groups is of groups that are integers"):
        by_group(e.accuracy, PROBS, LABELS, groups=["a"] * EXAMPLES, num_groups=2)
