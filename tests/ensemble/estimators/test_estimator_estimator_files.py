"""Estimators in files: the same predictions, and refusals in words."""

import json

import numpy as np
import pytest

pytest.importorskip("sklearn", reason="scikit-learn is not installed")

import stretto as st
from stretto import nn
from stretto.ensemble import EnsembleClassifier, EnsembleRegressor

RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = X.sum(axis=1)
SMALL = {"hidden": (4,), "epochs": 2, "random_state": 0}


def linear(key, inputs, outputs):
    return nn.Linear(inputs, outputs, key=key)


def test_a_regressor_comes_back_with_its_calibration(tmp_path):
    path = tmp_path / "model.safetensors"
    made = EnsembleRegressor(3, **SMALL).fit(X, Y).calibrate(X, Y)
    made.feature_names_in_ = np.asarray(["a", "b", "c"], object)
    made.save(path)
    again = EnsembleRegressor.load(path)
    assert again.get_params() == made.get_params()
    del made.feature_names_in_
    assert again.feature_names_in_.tolist() == ["a", "b", "c"]
    del again.feature_names_in_
    for ask in ({}, {"return_std": True}, {"return_interval": 0.8}):
        np.testing.assert_array_equal(again.predict(X, **ask), made.predict(X, **ask))
    np.testing.assert_array_equal(again.history_["loss"], made.history_["loss"])
    again.partial_fit(X, Y)


@pytest.mark.parametrize(
    "classes", [["a", "bc"], [-1, 7], [False, True], [1.0, 2.0], np.array(["a", "bc"], object)]
)
def test_classes_of_any_kind_come_back(tmp_path, classes):
    path = tmp_path / "model.safetensors"
    y = np.asarray(classes)[(Y > 0).astype(int)]
    made = EnsembleClassifier(2, **SMALL).fit(X, y).calibrate(X, y)
    made.save(path)
    again = EnsembleClassifier.load(path)
    assert again.classes_.dtype == made.classes_.dtype
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    np.testing.assert_array_equal(again.predict_proba(X), made.predict_proba(X))


def test_functions_are_not_saved_and_have_to_be_given(tmp_path):
    path = tmp_path / "model.safetensors"
    rng = np.random.RandomState(0)
    made = EnsembleRegressor(2, model=linear, epochs=1, random_state=rng).fit(X, Y)
    made.save(path)
    with pytest.raises(ValueError, match="functions are not saved; give model="):
        EnsembleRegressor.load(path)
    again = EnsembleRegressor.load(path, model=linear)
    np.testing.assert_array_equal(again.predict(X), made.predict(X))
    with pytest.raises(ValueError, match=r"does not describe an EnsembleRegressor: .*shape"):
        EnsembleRegressor.load(path, model=lambda k, i, o: nn.Linear(i, o + 1, key=k))


def test_other_files_are_refused(tmp_path):
    path = tmp_path / "model.safetensors"
    st.save(path, {"w": np.ones(2)})
    with pytest.raises(ValueError, match=r"EnsembleRegressor.load: .*not the file of an estimator"):
        EnsembleRegressor.load(path)
    EnsembleClassifier(2, **SMALL).fit(X, Y > 0).save(path)
    with pytest.raises(ValueError, match="it has an EnsembleClassifier; load it with"):
        EnsembleRegressor.load(path)
    record = json.loads(st.files.load_header(path).metadata["stretto.estimator"])
    arrays = st.load(path)
    for change in (
        {"version": 9},
        {"params": {"n_member": 3}},
        {"params": 3},
        {"features": -1},
        {"members": 9},
    ):
        st.save(path, arrays, {"stretto.estimator": json.dumps({**record, **change})})
        with pytest.raises(ValueError, match=r"EnsembleClassifier.load: .*model.safetensors"):
            EnsembleClassifier.load(path)
    st.save(path, arrays, {"stretto.estimator": "{"})
    with pytest.raises(ValueError, match="its description is damaged"):
        EnsembleClassifier.load(path)
    with pytest.raises(ValueError, match="classes are saved if they are numbers"):
        made = EnsembleClassifier(2, **SMALL).fit(X, Y > 0)
        made.classes_ = np.array([None, 1], object)
        made.save(path)
