"""The classifier: scikit-learn's contract, probabilities, weights, classes and calibration."""

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.datasets import make_moons
from sklearn.utils.estimator_checks import parametrize_with_checks

from stretto import nn
from stretto.ensemble import EnsembleClassifier

SMALL = {"n_members": 2, "hidden": (8,), "epochs": 60, "learning_rate": 0.03}
X, Y = make_moons(300, noise=0.3, random_state=0)
NEW, NEW_Y = make_moons(300, noise=0.3, random_state=1)


@parametrize_with_checks([EnsembleClassifier(**SMALL)])
def test_the_contract(estimator, check):
    check(estimator)


@pytest.fixture(scope="module")
def fitted():
    return EnsembleClassifier(4, hidden=(32,), epochs=40, random_state=0).fit(X, Y)


def test_it_learns_and_its_probabilities_are_the_mean_of_the_members(fitted):
    assert fitted.score(NEW, NEW_Y) > 0.85
    probs = fitted.predict_members(NEW)
    assert probs.shape == (4, 300, 2) and len({p.tobytes() for p in probs}) == 4
    np.testing.assert_allclose(fitted.predict_proba(NEW), probs.mean(axis=0), rtol=1e-12)
    assert fitted.history_["loss"].shape == (40, 4)


def test_a_row_has_the_same_bits_whatever_is_beside_it(fitted):
    whole = fitted.predict_proba(NEW)
    np.testing.assert_array_equal(fitted.predict_proba(NEW[7:8]), whole[7:8])
    np.testing.assert_array_equal(fitted.predict_proba(NEW[::-1]), whole[::-1])


def test_the_order_and_the_units_of_a_table_do_not_matter(fitted):
    again = EnsembleClassifier(4, hidden=(32,), epochs=40, random_state=0)
    places = np.random.default_rng(0).permutation(len(X))
    again.fit(X[places], Y[places])
    np.testing.assert_array_equal(again.predict_proba(NEW), fitted.predict_proba(NEW))
    # Other numbers are shuffled otherwise, so that this is another training of the same.
    labels = again.fit(X * 1e6 + 1e9, Y).predict(NEW * 1e6 + 1e9)
    assert (labels == fitted.predict(NEW)).mean() > 0.95


def test_members_of_a_bootstrap_differ_more():
    spread = {}
    for order in ("own", "bootstrap"):
        made = EnsembleClassifier(6, hidden=(32,), epochs=40, order=order, random_state=0)
        spread[order] = made.fit(X, Y).predict_members(NEW).std(axis=0).mean()
        assert made.score(NEW, NEW_Y) > 0.85
    assert spread["bootstrap"] > spread["own"]


def test_early_stopping_leaves_members_at_their_best():
    made = EnsembleClassifier(
        3, hidden=(32,), epochs=200, early_stopping=True, patience=3, order="bootstrap",
        validation_fraction=0.3, learning_rate=0.02, random_state=0,
    ).fit(X, Y)  # fmt: skip
    losses = made.history_["validation_loss"]
    assert len(losses) < 200 and losses.shape[1] == 3
    assert made.score(NEW, NEW_Y) > 0.85


def test_partial_fits_add_up_and_classes_are_checked():
    for order in ("own", "bootstrap"):
        made = EnsembleClassifier(2, hidden=(32,), learning_rate=0.02, order=order, random_state=0)
        with pytest.raises(ValueError, match="classes must be passed on the first call"):
            made.partial_fit(X, Y)
        for start in range(0, 300, 100):
            made.partial_fit(X[start : start + 100], Y[start : start + 100], classes=[0, 1])
        early = made.score(NEW, NEW_Y)
        for _ in range(20):
            made.partial_fit(X, Y)
        assert made.score(NEW, NEW_Y) > max(0.85, early)
        with pytest.raises(ValueError, match=r"y has classes \[3\], which are not among"):
            made.partial_fit(X[:1], [3])


def test_it_goes_on_from_a_fit(fitted):
    made = EnsembleClassifier(2, hidden=(8,), epochs=2, random_state=0).fit(X, Y)
    before = made.predict_members(NEW)
    kept = made.ensemble_
    made.partial_fit(X, Y)
    assert made.ensemble_ is not kept and np.abs(made.predict_members(NEW) - before).max() > 0
    assert np.isfinite(np.asarray(kept(NEW.astype(np.float32)))).all()  # it is not donated


def test_calibration_is_a_temperature_of_the_mean():
    over = EnsembleClassifier(3, hidden=(64, 64), epochs=150, random_state=0).fit(X[:80], Y[:80])
    nll = lambda: -np.log(over.predict_proba(NEW)[np.arange(300), NEW_Y]).mean()
    labels, before = over.predict(NEW), nll()
    over.calibrate(X[80:], Y[80:])
    assert over.temperature_ > 1 and nll() < before
    np.testing.assert_array_equal(over.predict(NEW), labels)
    with pytest.raises(ValueError, match=r"classes that are not among \[0, 1\]"):
        over.calibrate(X, Y + 5)


def test_bad_parameters_are_named():
    def refused(match, **params):
        with pytest.raises((ValueError, TypeError), match=match):
            EnsembleClassifier(**params).fit(X, Y)

    refused("EnsembleClassifier: n_members must be .*0", n_members=0)
    refused(r"EnsembleClassifier: hidden\[1\] must be", hidden=(8, -1))
    refused("order must be 'own', .*; got 'same'", order="same")
    refused(r"optimizer must name .* 'adamv' \(did you mean 'adam", optimizer="adamv")
    refused("model= must make a module that gives 2 numbers", model=_three, epochs=1)
    with pytest.raises(ValueError, match=r"all of sample_weight are 0|non-zero"):
        EnsembleClassifier().fit(X, Y, sample_weight=np.zeros(300))


def _three(key, inputs, outputs):
    return nn.Linear(inputs, outputs + 1, key=key)
