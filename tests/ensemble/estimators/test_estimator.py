"""Both estimators with scikit-learn's tools, with tables and with modules of one's own."""

import pickle

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import PolynomialFeatures

from stretto import nn, optim
from stretto.ensemble import EnsembleClassifier, EnsembleRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(120, 3))
Y = X @ [1.0, -2.0, 0.5]
REGRESSOR = EnsembleRegressor(2, hidden=(8,), epochs=30, learning_rate=0.02, random_state=0)
CLASSIFIER = EnsembleClassifier(2, hidden=(8,), epochs=30, learning_rate=0.02, random_state=0)


def test_pipelines_cross_validation_and_searches():
    piped = make_pipeline(PolynomialFeatures(2), clone(REGRESSOR))
    assert cross_val_score(piped, X, Y, cv=2).min() > 0.5
    grid = {"hidden": [(), (8,)], "learning_rate": [1e-6, 0.02]}
    search = GridSearchCV(clone(CLASSIFIER), grid, cv=2).fit(X, Y > 0)
    assert search.best_params_["learning_rate"] == 0.02 and search.best_score_ > 0.8
    assert search.predict(X[:2]).dtype == bool


def test_clones_and_pickles():
    fitted = clone(REGRESSOR).fit(X, Y).calibrate(X, Y)
    assert clone(fitted).get_params() == REGRESSOR.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(X), fitted.predict(X))
    again.partial_fit(X, Y)
    again = pickle.loads(pickle.dumps(again))  # with a trainer, which is not pickled
    again.partial_fit(X, Y)
    assert np.isfinite(again.predict(X)).all()


def test_a_module_and_an_optimizer_of_ones_own():
    def make(key, inputs, outputs):
        assert (inputs, outputs) == (3, 2)
        return nn.Sequential(nn.LayerNorm(3), nn.Linear(inputs, outputs, key=key))

    made = EnsembleRegressor(
        2, model=make, optimizer=optim.sgd, learning_rate=0.05,
        optimizer_options={"momentum": 0.5}, epochs=30, random_state=0,
    ).fit(X, Y)  # fmt: skip
    assert [type(m).__name__ for m in made.ensemble_[0]] == ["LayerNorm", "Linear"]
    assert made.score(X, Y) > 0.5


def test_dropout_is_for_training_alone():
    made = clone(CLASSIFIER).set_params(dropout=0.5).fit(X, Y > 0)
    np.testing.assert_array_equal(made.predict_proba(X), made.predict_proba(X))
    assert made.score(X, Y > 0) > 0.8


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_tables_and_the_order_of_their_columns(library):
    frames = pytest.importorskip(library)
    table = frames.DataFrame({name: X[:, i] for i, name in enumerate(("a", "b", "c"))})
    fitted = clone(REGRESSOR).fit(table, frames.Series(Y))
    assert fitted.feature_names_in_.tolist() == ["a", "b", "c"]
    np.testing.assert_array_equal(fitted.predict(table), clone(REGRESSOR).fit(X, Y).predict(X))
    with pytest.raises(ValueError, match="in the same order"):
        fitted.predict(table[["b", "a", "c"]])
    with pytest.raises(ValueError, match=r"unseen at fit time|missing"):
        fitted.predict(frames.DataFrame(dict.fromkeys(("a", "b", "d"), X[:, 0])))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        fitted.predict(X)
    labels = frames.Series(np.where(Y > 0, "up", "down").tolist())
    assert clone(CLASSIFIER).fit(table, labels).classes_.tolist() == ["down", "up"]
