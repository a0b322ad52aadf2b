"""Posteriors in files: round trips, what has to match, and damaged files."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto import nn
from stretto.ensemble import Laplace, fit_laplace
from tests.ensemble.posteriors import perceptron, table

KEY = st.random.key(0)
ALL = ["full", "kron", "diagonal", "low_rank"]


@pytest.fixture(autouse=True)
def _float64():
    with st.config(enable_x64=True):
        yield


@pytest.mark.parametrize("structure", ALL)
@pytest.mark.parametrize("many", [False, True])
def test_what_is_saved_is_loaded(tmp_path, structure, many):
    x, y = table()
    model = st.Ensemble([perceptron(i) for i in range(3)]) if many else perceptron(0)
    like = st.Ensemble([perceptron(9)]) if many else perceptron(9)
    laplace = fit_laplace(
        model, (x, y), structure=structure, rank=4, weights=["2.*"], prior_precision=2.0
    )
    laplace.save(tmp_path / "a")
    for other in (like, laplace):
        loaded = Laplace.load(tmp_path / "a", like=other)
        assert st.tree.structure(loaded) == st.tree.structure(laplace)
        for mine, theirs in zip(st.tree.leaves(loaded), st.tree.leaves(laplace), strict=True):
            np.testing.assert_array_equal(mine, theirs)
        found = loaded.probabilities(x, KEY)
        np.testing.assert_array_equal(found, laplace.probabilities(x, KEY))


def test_functions_of_a_tree(tmp_path):
    rng = np.random.default_rng(0)
    linear = lambda w, x: x @ w
    x, y = snp.asarray(rng.normal(size=(6, 3))), snp.asarray(rng.normal(size=(6, 1)))
    model = linear, snp.asarray(rng.normal(size=(3, 1)))
    laplace = fit_laplace(model, (x, y), likelihood="gaussian", noise=0.5, structure="full")
    laplace.save(tmp_path / "a")
    loaded = Laplace.load(tmp_path / "a", like=(linear, snp.zeros((3, 1))))
    np.testing.assert_array_equal(loaded.predict(x).covariance, laplace.predict(x).covariance)
    found = loaded.log_marginal_likelihood()
    np.testing.assert_array_equal(found, laplace.log_marginal_likelihood())


def test_what_does_not_match(tmp_path):
    x, y = table()
    path = tmp_path / "a"
    laplace = fit_laplace(perceptron(0), (x, y), structure="diagonal")
    laplace.save(path)
    for like, message in [
        (st.Ensemble([perceptron(0)]), "it has one network, `like` is a Ensemble"),
        (nn.Linear(2, 3), "it has the arrays 0.weight, .*, expected weight, bias"),
        (perceptron(0, width=4), r"its shape of 0.weight is \(5, 2\), that of `like` \(4, 2\)"),
        (
            fit_laplace(perceptron(0), (x, snp.ones((30, 3))), likelihood="gaussian", noise=1.0),
            "its likelihood is 'categorical', that of `like` 'gaussian'",
        ),
    ]:
        with pytest.raises(ValueError, match=message):
            Laplace.load(path, like=like)
    st.save(path, {"a": x})
    with pytest.raises(ValueError, match="not the file of a Laplace"):
        Laplace.load(path, like=perceptron(0))
    st.save(path, {"a": x}, {"stretto.laplace": '{"version": 9}'})
    with pytest.raises(ValueError, match=r"its description is damaged: .*version 9, and this"):
        Laplace.load(path, like=perceptron(0))
    st.save(path, {"a": x}, {"stretto.laplace": "{"})
    with pytest.raises(ValueError, match="its description is damaged"):
        Laplace.load(path, like=perceptron(0))


def test_functions_are_not_saved(tmp_path):
    x, y = table()
    nll = lambda f, y: -nn.functional.log_softmax(f, -1)[y]
    for settings in ({"likelihood": nll}, {"weights": lambda name: name.startswith("2")}):
        laplace = fit_laplace(perceptron(0), (x, y), structure="diagonal", **settings)
        laplace.save(tmp_path / "a")
        with pytest.raises(ValueError, match="which is not saved; load it with like= a Laplace"):
            Laplace.load(tmp_path / "a", like=perceptron(0))
        loaded = Laplace.load(tmp_path / "a", like=laplace)
        np.testing.assert_array_equal(loaded.predict(x).covariance, laplace.predict(x).covariance)
