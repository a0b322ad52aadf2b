"""Intervals and variances fitted to held-out errors: by hand, and their promise on new examples."""

import math

import numpy as np
import pytest

import stretto as st
from stretto.ensemble import fit_conformal_intervals, fit_variance_scaling


def draw(seed, *shape):
    rng = np.random.default_rng(seed)
    deviations = rng.uniform(0.5, 2, shape)
    means = rng.normal(size=shape)
    targets = means + 3 * deviations * rng.normal(size=shape)  # three times too sure
    return [x.astype(np.float32) for x in (means, deviations, targets)]


@pytest.mark.parametrize("shape", [(199,), (199, 2)])
def test_the_definition_eagerly_and_jitted(shape):
    means, deviations, targets = draw(0, *shape)
    scores = np.sort(np.abs(targets - means) / deviations, axis=0)
    for fit in (fit_conformal_intervals, st.jit(fit_conformal_intervals)):
        intervals = fit(means, deviations, targets)
        for coverage in (0.5, 0.9):
            lower, upper = intervals(means, deviations, coverage)
            reach = scores[math.ceil(200 * coverage) - 1] * deviations
            np.testing.assert_allclose(upper, means + reach, rtol=1e-5)
            np.testing.assert_allclose(lower, means - reach, rtol=1e-5, atol=1e-6)


def test_coverage_on_new_examples():
    intervals = fit_conformal_intervals(*draw(1, 1000))
    means, deviations, targets = draw(2, 20000)
    for coverage in (0.5, 0.8, 0.95):
        lower, upper = intervals(means, deviations, coverage)
        held = st.ensemble.interval_coverage(lower, upper, targets)
        # Of 1000 held-out scores it has a deviation of √(0.25 / 1000) = 0.016 at most.
        assert abs(float(held) - coverage) < 0.05


def test_too_few_examples_give_infinite_intervals():
    intervals = fit_conformal_intervals(np.zeros(3), np.ones(3), np.ones(3))
    assert np.isposinf(intervals(np.zeros(1), np.ones(1), 0.9)[1]).all()
    assert intervals(np.zeros(1), np.ones(1), 0.75)[1].tolist() == [1]


def test_the_factor_of_variances_is_the_best():
    means, deviations, targets = draw(3, 5000, 2)
    scaling = fit_variance_scaling(means, deviations**2, targets)
    z = (targets - means) / deviations
    np.testing.assert_allclose(scaling.factor, (z**2).mean(axis=0), rtol=1e-5)
    nll = lambda f: float(st.ensemble.gaussian_nll(means, f * deviations**2, targets))
    best = nll(np.asarray(scaling.factor))
    assert best < nll(np.asarray(scaling.factor) * 1.05) and best < nll(scaling.factor * 0.95)
    np.testing.assert_allclose(scaling(np.ones((3, 2))), np.broadcast_to(scaling.factor, (3, 2)))


def test_bad_arguments_are_named():
    with pytest.raises(ValueError, match="deviations must be positive, got 0"):
        fit_conformal_intervals(np.zeros(2), np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match=r"expected means of the shape of targets, \(2,\)"):
        fit_conformal_intervals(np.zeros((3, 2)), np.ones(2), np.zeros(2))
    with pytest.raises(ValueError, match="fit_variance_scaling: expected at least 1 example"):
        fit_variance_scaling(np.zeros(0), np.ones(0), np.zeros(0))
    with pytest.raises(ValueError, match=r"coverage must be in \(0, 1\), got 1"):
        fit_conformal_intervals(np.zeros(2), np.ones(2), np.zeros(2))(np.zeros(1), np.ones(1), 1)
