"""Estimators with ``posterior="laplace"``: what they predict, their files, and what is refused."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp

pytest.importorskip("sklearn")

from sklearn.base import clone

from stretto.ensemble import EnsembleClassifier, EnsembleRegressor
from stretto.ensemble.estimators import regressor

SETTINGS = {"n_members": 2, "hidden": (8,), "epochs": 30, "random_state": 0}


def rows(seed=0, count=60):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(count, 2)), rng.normal(size=count)


X, NOISE = rows()
LABELS = np.where(X[:, 0] > 0, "a", "b")
FAR = np.array([[30.0, 30.0], [-30.0, 30.0]])


def test_a_classifier_is_less_sure_away_from_the_data():
    plain = EnsembleClassifier(**SETTINGS).fit(X, LABELS)
    wide = EnsembleClassifier(**SETTINGS, posterior="laplace").fit(X, LABELS)
    np.testing.assert_array_equal(plain.predict_members(X), wide.predict_members(X))
    found = wide.predict_proba(X)
    np.testing.assert_allclose(found.sum(-1), 1, rtol=1e-6)
    assert (wide.predict(X) == LABELS).mean() > 0.8
    assert wide.predict_proba(FAR).max() < plain.predict_proba(FAR).max()
    # The same draws for a row, whatever is beside it.
    np.testing.assert_array_equal(wide.predict_proba(X[:3]), found[:3])
    probs = wide.laplace_.probabilities(wide.x_scale_(X), st.random.key(wide._seed), samples=4000)
    np.testing.assert_allclose(found, probs, atol=0.06)  # four errors of 1,000 draws
    wide.calibrate(*[X, LABELS])
    assert wide.predict_proba(X).shape == (60, 2)


@pytest.mark.parametrize("loss", ["squared_error", "gaussian_nll"])
def test_a_regressors_deviation_has_what_members_do_not_know(loss):
    y = X[:, 0] + 0.3 * NOISE
    settings = {**SETTINGS, "loss": loss}
    plain = EnsembleRegressor(**settings).fit(X, y)
    wide = EnsembleRegressor(**settings, posterior="laplace").fit(X, y)
    (mean, std), (same, more) = [m.predict(X, return_std=True) for m in (plain, wide)]
    np.testing.assert_allclose(mean, same, rtol=1e-5)
    own = np.asarray(wide.laplace_.predict(wide.x_scale_(X)).variance)[..., 0].mean(0)
    scale = wide.y_scale_.scale[0]
    np.testing.assert_allclose(more**2 - std**2, own * scale**2, rtol=1e-3)
    far = [m.predict(FAR, return_std=True)[1] for m in (plain, wide)]
    assert (far[1] > far[0]).all()
    mean, lower, upper = wide.predict(X, return_interval=0.9)
    assert ((lower < y) & (y < upper)).mean() > 0.8
    assert wide.calibrate(X, y).predict(X, return_std=True)[1].shape == (60,)


def test_the_root_of_means_and_softplus_variances_is_that_of_the_fisher_information():
    f = snp.array([0.3, -1.0, 0.5, 2.0])  # two means, and what their variances are made of
    root = np.asarray(regressor._softplus_root(f, None), np.float64)
    rng = np.random.default_rng(0)
    means, variances, _ = map(np.asarray, regressor._of_outputs(f))
    y = (means + np.sqrt(variances) * rng.normal(size=(40_000, 2))).astype(np.float32)
    slopes = np.asarray(st.vmap(st.grad(regressor._softplus_nll), (None, 0))(f, y))
    # The mean over 40,000 draws of squares of slopes, whose fourth moments are those of χ².
    np.testing.assert_allclose(slopes.T @ slopes / len(y), root @ root.T, atol=0.08)


def test_rows_are_counted():
    y = X[:, 0] + 0.3 * NOISE
    many = np.ones(60)
    many[:10] = 2
    twice = np.concatenate([X, X[:10]]), np.concatenate([y, y[:10]])
    make = lambda: EnsembleRegressor(**SETTINGS, loss="squared_error", posterior="laplace")
    weighted, repeated = make().fit(X, y, many), make().fit(*twice)
    found, expected = [m.predict(X, return_std=True)[1] for m in (weighted, repeated)]
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    with pytest.raises(ValueError, match=r"sample_weight must be whole numbers of them; got 0\.5"):
        make().fit(X, y, many / 2)


def test_saved_and_loaded(tmp_path):
    path = tmp_path / "model.safetensors"
    for model, y in [
        (EnsembleClassifier(**SETTINGS, posterior="laplace"), LABELS),
        (EnsembleRegressor(**SETTINGS, posterior="laplace"), X[:, 0]),
    ]:
        model.fit(X, y).save(path)
        loaded = type(model).load(path)
        assert loaded.posterior == "laplace"
        if isinstance(model, EnsembleClassifier):
            np.testing.assert_array_equal(loaded.predict_proba(X), model.predict_proba(X))
        else:
            found, expected = [m.predict(X, return_std=True)[1] for m in (loaded, model)]
            np.testing.assert_array_equal(found, expected)


def test_what_is_refused():
    make = lambda **changed: EnsembleClassifier(**SETTINGS, **changed)
    assert clone(make(posterior="laplace")).posterior == "laplace"
    with pytest.raises(ValueError, match="posterior must be None or 'laplace', got 'swag'"):
        make(posterior="swag").fit(X, LABELS)
    with pytest.raises(ValueError, match="order='bootstrap' trains have seen others"):
        make(posterior="laplace", order="bootstrap").fit(X, LABELS)
    with pytest.raises(ValueError, match="partial_fit does not see all rows"):
        make(posterior="laplace").partial_fit(X, LABELS, classes=["a", "b"])
    fitted = make(posterior="laplace").fit(X, LABELS)
    with pytest.raises(NotImplementedError, match=r"function\(\) gives what the members say"):
        fitted.function()
    with pytest.raises(AttributeError):
        make().fit(X, LABELS).laplace_  # noqa: B018
