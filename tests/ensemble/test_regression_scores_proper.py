"""Interval, pinball and energy scores against their definitions in NumPy, and their laws."""

import numpy as np
import pytest
from sklearn import metrics

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import regression_scores as scores

RNG = np.random.default_rng(0)
TARGETS = RNG.normal(size=30)
MEMBERS = RNG.normal(size=(5, 30, 3))
VECTORS = RNG.normal(size=(30, 3))


@pytest.fixture(autouse=True)
def in_float64():
    with st.enable_x64():
        yield


def winkler(low, high, y, coverage):
    alpha = 1 - coverage
    score = high - low
    score = score + np.where(y < low, 2 / alpha * (low - y), 0)
    return (score + np.where(y > high, 2 / alpha * (y - high), 0)).mean(-1)


def test_the_interval_score_is_winkler_s():
    low, high = -1 + 0.1 * RNG.normal(size=(2, 30)), 1 + 0.1 * RNG.normal(size=(2, 30))
    for run in (scores.interval_score, st.jit(scores.interval_score, static_argnums=3)):
        np.testing.assert_allclose(run(low, high, TARGETS, 0.8), winkler(low, high, TARGETS, 0.8))
    by_one = st.vmap(scores.interval_score, (0, 0, None))(low, high, TARGETS)
    np.testing.assert_allclose(by_one, winkler(low, high, TARGETS, 0.9))
    assert np.isposinf(float(scores.interval_score(low[0] - np.inf, high[0], TARGETS)))


def test_the_interval_score_is_a_sum_of_two_pinball_losses():
    low, high = snp.asarray(TARGETS[::-1].copy()), snp.asarray(TARGETS[::-1] + 1)
    ends = snp.stack([low, high])
    losses = scores.pinball_loss(ends, TARGETS, snp.array([0.1, 0.9]))
    np.testing.assert_allclose(
        scores.interval_score(low, high, TARGETS, 0.8), losses.sum() * 2 / 0.2, rtol=1e-14
    )


def test_the_pinball_loss_is_scikit_learn_s():
    predictions, taus = RNG.normal(size=(3, 30)), np.array([0.1, 0.5, 0.7])
    expected = [
        metrics.mean_pinball_loss(TARGETS, q, alpha=t)
        for q, t in zip(predictions, taus, strict=True)
    ]
    for run in (scores.pinball_loss, st.jit(scores.pinball_loss)):
        np.testing.assert_allclose(run(predictions, TARGETS, taus), expected, rtol=1e-14)
    np.testing.assert_allclose(scores.pinball_loss(predictions[0], TARGETS, 0.1), expected[0])
    members = scores.pinball_loss(np.stack([predictions, predictions], 1), TARGETS, taus)
    np.testing.assert_allclose(members, np.stack([expected, expected], 1))


def test_the_pinball_loss_over_all_quantiles_is_half_the_crps():
    members, y = np.sort(RNG.normal(size=8)), 0.3
    taus = (np.arange(80_000) + 0.5) / 80_000
    quantiles = members[(taus * 8).astype(int)][:, None]  # the inverse of the members' shares
    mean = scores.pinball_loss(quantiles, np.array([y]), taus).mean()
    crps = scores.crps_ensemble(members[:, None], np.array([y]))
    np.testing.assert_allclose(2 * mean, crps, rtol=1e-8)


def energy(members, y, fair=False):
    """The definition, all pairs at once: (members, examples, outputs)."""
    m = len(members)
    error = np.linalg.norm(members - y, axis=-1).mean(0)
    pairs = np.linalg.norm(members[:, None] - members, axis=-1).sum((0, 1))
    return (error - pairs / (2 * m * (m - fair))).mean()


@pytest.mark.parametrize("fair", [False, True])
def test_the_energy_score_is_its_definition(fair):
    run = lambda p: scores.energy_score_ensemble(p, VECTORS, fair=fair)
    expected = energy(MEMBERS, VECTORS, fair)
    np.testing.assert_allclose(run(MEMBERS), expected, rtol=1e-13)
    np.testing.assert_allclose(st.jit(run)(MEMBERS), expected, rtol=1e-13)
    two = np.stack([MEMBERS, 2 * MEMBERS], 1)
    both = [expected, energy(2 * MEMBERS, VECTORS, fair)]
    np.testing.assert_allclose(run(two), both, rtol=1e-13)
    np.testing.assert_allclose(st.vmap(run, 1)(two), both, rtol=1e-13)


def test_the_energy_score_of_one_output_is_the_crps():
    for fair in (False, True):
        one = scores.energy_score_ensemble(MEMBERS[..., :1], VECTORS[:, :1], fair=fair)
        crps = scores.crps_ensemble(MEMBERS[..., 0], VECTORS[:, 0], fair=fair)
        np.testing.assert_allclose(one, crps, rtol=1e-12)


def test_the_energy_score_of_one_member_is_the_distance():
    found = scores.energy_score_ensemble(MEMBERS[:1], VECTORS)
    np.testing.assert_allclose(found, np.linalg.norm(MEMBERS[0] - VECTORS, axis=-1).mean())


SMOOTH = {
    "interval": lambda p: scores.interval_score(p[0, :, 0] - 1, p[1, :, 1] + 1, TARGETS),
    "pinball": lambda p: scores.pinball_loss(p[0], VECTORS, 0.3),
    "energy": lambda p: scores.energy_score_ensemble(p, VECTORS, fair=True),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_the_limits_of_differences(name):
    f = lambda p: snp.sum(SMOOTH[name](p))
    slopes, direction = st.grad(f)(snp.asarray(MEMBERS)), RNG.normal(size=MEMBERS.shape)
    ends = [float(f(MEMBERS + s * direction)) for s in (1e-6, -1e-6)]
    expected = (ends[0] - ends[1]) / 2e-6
    np.testing.assert_allclose((slopes * direction).sum(), expected, rtol=1e-6)


def test_members_that_are_equal_have_finite_gradients():
    equal = snp.zeros((3, 4, 2))
    slopes = st.grad(lambda p: scores.energy_score_ensemble(p, np.zeros((4, 2))))(equal)
    assert not slopes.any()


def test_dtypes_and_nan():
    low = np.zeros(30, np.float32)
    assert scores.interval_score(low, low + 1, TARGETS.astype(np.float32)).dtype == np.float32
    wrong = MEMBERS.copy()
    wrong[0, 0, 0] = np.nan
    assert np.isnan(float(scores.energy_score_ensemble(wrong, VECTORS)))
    assert np.isnan(float(scores.pinball_loss(wrong[0], VECTORS)))


def test_misuse():
    with pytest.raises(ValueError, match=r"interval_score: coverage must be in \(0, 1\), got 90"):
        scores.interval_score(TARGETS, TARGETS, TARGETS, 90)
    with pytest.raises(ValueError, match=r"pinball_loss: quantiles must be in \(0, 1\), got 95"):
        scores.pinball_loss(TARGETS, TARGETS, 95)
    with pytest.raises(ValueError, match=r"predictions of shape \(quantiles, ..., examples, ...\)"):
        scores.pinball_loss(TARGETS, TARGETS, [0.1, 0.9])
    with pytest.raises(ValueError, match="of one number an example it is crps_ensemble"):
        scores.energy_score_ensemble(MEMBERS[..., 0], TARGETS)
    with pytest.raises(ValueError, match="fair=True needs at least 2 members, got 1"):
        scores.energy_score_ensemble(MEMBERS[:1], VECTORS, fair=True)
    with pytest.raises(ValueError, match="upper"):
        scores.interval_score(TARGETS, TARGETS[:3], TARGETS)
