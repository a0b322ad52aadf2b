"""Scores of numbers against scikit-learn, SciPy and numerical integration."""

import itertools
import math

import numpy as np
import pytest
from scipy import integrate, stats
from sklearn import metrics

import stretto as st
import stretto.numpy as snp
from stretto.ensemble import regression_scores as scores

MEMBERS, EXAMPLES = 4, 30
RNG = np.random.default_rng(0)
TARGETS = RNG.normal(size=EXAMPLES).astype(np.float32)
MEANS = (TARGETS + 0.5 * RNG.normal(size=(MEMBERS, EXAMPLES))).astype(np.float32)
VARIANCES = RNG.uniform(0.2, 2, (MEMBERS, EXAMPLES)).astype(np.float32)
POINTS = {
    "rmse": (scores.rmse, metrics.root_mean_squared_error),
    "mae": (scores.mae, metrics.mean_absolute_error),
    "r2": (scores.r2, metrics.r2_score),
}


@pytest.mark.parametrize("name", POINTS)
def test_scikit_learn_s_eagerly_jitted_and_vmapped(name):
    score, theirs = POINTS[name]
    expected = [theirs(TARGETS, p) for p in MEANS]
    np.testing.assert_allclose(score(MEANS, TARGETS), expected, rtol=1e-5)
    np.testing.assert_allclose(st.jit(score)(MEANS, TARGETS), expected, rtol=1e-5)
    np.testing.assert_allclose(st.vmap(score, (0, None))(MEANS, TARGETS), expected, rtol=1e-5)


def test_several_numbers_an_example():
    targets, predictions = TARGETS.reshape(10, 3), MEANS.reshape(MEMBERS, 10, 3)
    expected = [metrics.r2_score(targets, p) for p in predictions]
    np.testing.assert_allclose(scores.r2(predictions, targets), expected, rtol=1e-5)
    expected = [metrics.mean_absolute_error(targets, p) for p in predictions]
    np.testing.assert_allclose(scores.mae(predictions, targets), expected, rtol=1e-5)
    expected = np.sqrt(((predictions - targets) ** 2).mean((1, 2)))
    np.testing.assert_allclose(scores.rmse(predictions, targets), expected, rtol=1e-5)


def integrated_crps(cdf, y, low=-30.0, high=30.0, breaks=()):
    """∫ (F(x) − [x ≥ y])² dx, the definition."""
    f = lambda x: (cdf(x) - (x >= y)) ** 2
    inner = sorted([y, *breaks])
    ends = [low, *inner, high]
    return sum(integrate.quad(f, a, b)[0] for a, b in itertools.pairwise(ends))


def test_gaussian_nll_is_scipy_s():
    expected = -stats.norm.logpdf(TARGETS, MEANS, np.sqrt(VARIANCES)).mean(-1)
    for score in (scores.gaussian_nll, st.jit(scores.gaussian_nll)):
        np.testing.assert_allclose(score(MEANS, VARIANCES, TARGETS), expected, rtol=1e-5)


def test_crps_of_gaussians_is_the_integral():
    expected = [
        integrated_crps(stats.norm(m, np.sqrt(v)).cdf, y)
        for m, v, y in zip(MEANS[0, :5], VARIANCES[0, :5], TARGETS[:5])
    ]
    for score in (scores.crps_gaussian, st.jit(scores.crps_gaussian)):
        found = score(MEANS[0, :5], VARIANCES[0, :5], TARGETS[:5])
        np.testing.assert_allclose(found, np.mean(expected), rtol=1e-5)


def test_crps_of_almost_no_variance_is_the_absolute_error():
    found = scores.crps_gaussian(MEANS, np.full_like(MEANS, 1e-12), TARGETS)
    np.testing.assert_allclose(found, scores.mae(MEANS, TARGETS), rtol=1e-4)


def test_crps_of_members_is_the_integral():
    expected = [
        integrated_crps(lambda x, m=m: np.mean(m <= x), y, -5, 5, m)
        for m, y in zip(MEANS.T[:5].astype(np.float64), TARGETS[:5])
    ]
    for score in (scores.crps_ensemble, st.jit(scores.crps_ensemble)):
        np.testing.assert_allclose(score(MEANS[:, :5], TARGETS[:5]), np.mean(expected), rtol=1e-4)


def test_crps_that_is_fair():
    pairs = np.abs(MEANS[:, None] - MEANS).sum((0, 1)) / (MEMBERS * (MEMBERS - 1))
    expected = (np.abs(MEANS - TARGETS).mean(0) - pairs / 2).mean()
    found = scores.crps_ensemble(MEANS, TARGETS, fair=True)
    np.testing.assert_allclose(found, expected, rtol=1e-4)


def test_crps_of_one_member_is_the_absolute_error():
    found = scores.crps_ensemble(MEANS[:1], TARGETS)
    np.testing.assert_allclose(found, scores.mae(MEANS[0], TARGETS), rtol=1e-6)


def test_crps_keeps_the_axes_between():
    stacked = np.stack([MEANS, MEANS[::-1] + 1], axis=1)  # (members, 2, examples)
    found = scores.crps_ensemble(stacked, TARGETS)
    expected = [scores.crps_ensemble(MEANS + i, TARGETS) for i in (0, 1)]
    np.testing.assert_allclose(found, np.stack(expected), rtol=1e-5)


def test_intervals():
    low, high = MEANS - 0.5, MEANS + 0.5
    expected = ((low <= TARGETS) & (high >= TARGETS)).mean(-1)
    np.testing.assert_allclose(scores.interval_coverage(low, high, TARGETS), expected, 1e-6)
    ends = np.zeros(2, np.float32)
    assert float(scores.interval_coverage(ends, ends + 1, np.float32([0, 1]))) == 1
    assert np.isnan(float(scores.interval_coverage(ends, ends + 1, np.float32([np.nan, 1]))))


def test_probability_integral_transforms():
    found = st.jit(scores.pit_gaussian)(MEANS, VARIANCES, TARGETS)
    expected = stats.norm.cdf(TARGETS, MEANS, np.sqrt(VARIANCES))
    np.testing.assert_allclose(found, expected, rtol=1e-5)
    far = scores.pit_gaussian(np.zeros(1, np.float32), 1.0, np.float32([-10]))
    np.testing.assert_allclose(far, stats.norm.cdf(-10), rtol=1e-4)  # not 0
    found = scores.pit_ensemble(MEANS, TARGETS)
    np.testing.assert_allclose(found, (MEANS <= TARGETS).mean(0))


def test_nan_stays_nan():
    means = MEANS.copy()
    means[0, 3] = np.nan
    assert np.isnan(np.asarray(scores.rmse(means, TARGETS))).tolist() == [True] + [False] * 3
    assert np.isnan(float(scores.crps_ensemble(means, TARGETS)))
    assert np.isnan(np.asarray(scores.pit_ensemble(means, TARGETS)))[3]


SMOOTH = {
    "rmse": lambda m, v: scores.rmse(m, TARGETS),
    "mae": lambda m, v: scores.mae(m, TARGETS),
    "r2": lambda m, v: scores.r2(m, TARGETS),
    "gaussian_nll": lambda m, v: scores.gaussian_nll(m, v, TARGETS),
    "crps_gaussian": lambda m, v: scores.crps_gaussian(m, v, TARGETS),
    "crps_ensemble": lambda m, v: scores.crps_ensemble(m, TARGETS),
    "pit_gaussian": lambda m, v: snp.mean(scores.pit_gaussian(m, v, TARGETS), axis=-1),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_gradients_are_the_limits_of_differences(name):
    with st.enable_x64():
        f = lambda m, v: snp.sum(SMOOTH[name](m, v))
        m, v = (snp.asarray(x.astype(np.float64)) for x in (MEANS, VARIANCES))
        dm, dv = (np.random.default_rng(i).normal(size=m.shape) for i in (1, 2))
        gm, gv = st.jit(st.grad(f, argnums=(0, 1)))(m, v)
        step = 1e-6
        ends = [f(m + s * dm, v + s * dv) for s in (step, -step)]
        expected = (ends[0] - ends[1]) / (2 * step)
        np.testing.assert_allclose(snp.sum(gm * dm) + snp.sum(gv * dv), expected, rtol=1e-6)


def test_misuse():
    with pytest.raises(ValueError, match=r"rmse: expected targets of shape.*\(7,\) and \(4, 30\)"):
        scores.rmse(MEANS, TARGETS[:7])
    with pytest.raises(ValueError, match=r"variances of the shape of means, \(4, 30\)"):
        scores.gaussian_nll(MEANS, np.ones(7, np.float32), TARGETS)
    with pytest.raises(ValueError, match=r"variances must be positive, got 0.0; if a head"):
        scores.crps_gaussian(MEANS, 0.0, TARGETS)
    with pytest.raises(ValueError, match="fair=True needs at least 2 members"):
        scores.crps_ensemble(MEANS[:1], TARGETS, fair=True)
    with pytest.raises(ValueError, match="an axis of members before the shape of the targets"):
        scores.crps_ensemble(MEANS, MEANS)
    with pytest.raises(ValueError, match="upper"):
        scores.interval_coverage(TARGETS, TARGETS[:3], TARGETS)
    assert math.isfinite(float(scores.gaussian_nll(MEANS[0], 1.0, TARGETS)))
