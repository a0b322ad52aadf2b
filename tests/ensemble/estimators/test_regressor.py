"""The regressor: scikit-learn's contract, deviations, intervals and their coverage."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from scipy import stats
from sklearn.utils.estimator_checks import parametrize_with_checks

from stretto.ensemble import EnsembleRegressor

SMALL = {"n_members": 2, "hidden": (8,), "epochs": 60, "learning_rate": 0.03}


def draw(seed, rows=600):
    """Noise that grows from 0.5 to 5 from left to right; units far from 1."""
    rng = np.random.default_rng(seed)
    x = rng.uniform(-1, 1, (rows, 2))
    deviation = 0.5 + 4.5 * (x[:, 0] + 1) / 2
    return x, 1000 + 20 * x[:, 1] + deviation * rng.normal(size=rows), deviation


X, Y, _ = draw(0)
NEW, NEW_Y, DEVIATION = draw(1, 2000)


@parametrize_with_checks([EnsembleRegressor(**SMALL)])
def test_the_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return EnsembleRegressor(5, hidden=(32,), epochs=60, random_state=0).fit(X, Y)


def test_it_learns_means_and_the_noise_of_each_row(fitted):
    assert fitted.score(NEW, NEW_Y) > 0.9
    mean, std = fitted.predict(NEW, return_std=True)
    np.testing.assert_array_equal(mean, fitted.predict(NEW))
    assert np.corrcoef(std, DEVIATION)[0, 1] > 0.9
    assert 0.7 < (std / DEVIATION).mean() < 1.3


def test_the_deviation_is_that_of_the_mixture(fitted):
    mean, std = fitted.predict(NEW, return_std=True)
    means, stds = fitted.predict_members(NEW, return_std=True)
    assert means.shape == stds.shape == (5, 2000)
    np.testing.assert_allclose(mean, means.mean(axis=0), rtol=1e-10)
    np.testing.assert_allclose(std**2, (stds**2).mean(axis=0) + means.var(axis=0), rtol=1e-8)
    np.testing.assert_array_equal(fitted.predict_members(NEW), means)


def test_intervals_are_gaussian_and_after_calibration_conformal():
    made = EnsembleRegressor(5, hidden=(64, 64), epochs=150, random_state=0).fit(X[:150], Y[:150])
    mean, std = made.predict(NEW, return_std=True)
    middle, lower, upper = made.predict(NEW, return_interval=0.9)
    np.testing.assert_array_equal(middle, mean)
    np.testing.assert_allclose(upper - mean, stats.norm.ppf(0.95) * std, rtol=1e-9)
    np.testing.assert_allclose(mean - lower, upper - mean, rtol=1e-9)
    covered = lambda low, high: ((low <= NEW_Y) & (high >= NEW_Y)).mean()
    assert covered(lower, upper) < 0.85  # it has learnt its few rows by heart
    z2 = np.mean((NEW_Y - mean) ** 2 / std**2)
    assert z2 > 1.2

    made.calibrate(X[150:], Y[150:])
    for coverage in (0.5, 0.9):
        middle, lower, upper = made.predict(NEW, return_interval=coverage)
        np.testing.assert_array_equal(middle, mean)
        # Of 450 held-out rows the coverage has a deviation of 0.024 at most.
        assert abs(covered(lower, upper) - coverage) < 0.06
    mean, std = made.predict(NEW, return_std=True)
    assert 0.8 < np.mean((NEW_Y - mean) ** 2 / std**2) < 1.25
    with pytest.warns(UserWarning, match="calibrate got 5 rows; intervals of a coverage of 0.9"):
        made.calibrate(X[150:155], Y[150:155])
    assert np.isinf(made.predict(NEW[:3], return_interval=0.9)[1]).all()
    assert len(made.fit(X[:50], Y[:50]).scores_) == 0  # of other members


def test_squared_error_has_one_noise_for_all_rows():
    made = EnsembleRegressor(3, hidden=(16,), epochs=40, loss="squared_error", random_state=0)
    _, stds = made.fit(X, Y).predict_members(NEW, return_std=True)
    assert made.score(NEW, NEW_Y) > 0.9 and np.ptp(stds) == 0
    error = np.sqrt(np.mean((made.predict(X) - Y) ** 2))
    np.testing.assert_allclose(stds[0, 0], error, rtol=1e-4)  # float32 predictions
    assert made.ensemble_(NEW.astype(np.float32)).shape == (3, 2000, 1)


def test_several_targets_are_standardized_and_calibrated_apart():
    both = np.column_stack([Y, -1e-3 * Y])
    made = EnsembleRegressor(3, hidden=(32,), epochs=60, random_state=0).fit(X, both)
    assert made.predict(NEW).shape == (2000, 2)
    assert made.score(NEW, np.column_stack([NEW_Y, -1e-3 * NEW_Y])) > 0.9
    made.calibrate(X, both)
    mean, lower, upper = made.predict(NEW, return_interval=0.8)
    assert lower.shape == (2000, 2) and (lower < mean).all() and (mean < upper).all()
    assert 500 < np.median((upper - lower)[:, 0] / (upper - lower)[:, 1]) < 2000
    with pytest.raises(ValueError, match=r"calibrate expects y with 2 targets .* got an array"):
        made.calibrate(X, Y)


def test_partial_fits_add_up():
    for loss in ("gaussian_nll", "squared_error"):
        made = EnsembleRegressor(2, hidden=(32,), learning_rate=0.01, loss=loss, random_state=0)
        for _ in range(25):
            made.partial_fit(X, Y)
        assert made.score(NEW, NEW_Y) > 0.85
        assert (made.predict(NEW, return_std=True)[1] > 0).all()


def test_bad_arguments_are_named(fitted):
    with pytest.raises(ValueError, match=r"return_interval is a coverage in \(0, 1\).*got 90"):
        fitted.predict(NEW, return_interval=90)
    with pytest.raises(ValueError, match="return_std or return_interval, not both"):
        fitted.predict(NEW, return_std=True, return_interval=0.9)
    with pytest.raises(ValueError, match=r"loss must be .* or 'squared_error', got 'mse"):
        EnsembleRegressor(loss="mse").fit(X, Y)
    with pytest.raises(ValueError, match=r"all of sample_weight are 0|non-zero"):
        EnsembleRegressor().fit(X, Y, sample_weight=np.zeros(600))


def test_small_tables_are_stopped_early_by_default():
    """They would be learnt by heart; smaller ones have no rows to spare, larger ones are not."""
    make = lambda **options: EnsembleRegressor(2, hidden=(64, 64), random_state=0, **options)
    by_default, never = make().fit(X, Y), make(early_stopping=False).fit(X, Y)
    assert "validation_loss" in by_default.history_ and "validation_loss" not in never.history_
    assert by_default.score(NEW, NEW_Y) > never.score(NEW, NEW_Y) - 0.01
    assert "validation_loss" not in make(epochs=1).fit(X[:150], Y[:150]).history_
    assert [make()._stops_early(n) for n in (199, 200, 10_000, 10_001)] == [0, 1, 1, 0]
    with pytest.raises(ValueError, match="early_stopping must be True, False or 'auto'"):
        make(early_stopping="yes").fit(X, Y)
