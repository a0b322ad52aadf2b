"""Merging trees in memory: as files are merged, and as ``st.ensemble`` does it."""

import numpy as np
import pytest

import stretto as st
import stretto.numpy as snp
from stretto.merge import METHODS
from tests.merge import models


def nested(weights):
    return {"layers": [{"w": snp.array(w)} for w in weights], "steps": 3}


@pytest.fixture
def members():
    rng = np.random.default_rng(2)
    draw = lambda: nested(rng.standard_normal((2, 4, 6)).astype(np.float32))
    return draw(), [draw(), draw()]


@pytest.mark.parametrize("method", sorted(METHODS))
def test_results_are_those_of_files(tmp_path, method):
    how = METHODS[method]
    count = 1 if how.base == "first" else how.most or 3
    paths, weights = models.family(tmp_path, *"abc"[:count])
    values = {"density": 0.4, "select_topk": 0.4, "t": 0.3, "weight": 0.7}
    settings = {s.name: values[s.name] for s in how.settings if s.name in values}
    has_base = how.base != "none"
    tuned = [weights[n] for n in "abc"[:count]]
    listed = models.with_beside(method, [paths[n] for n in "abc"[:count]], tuned, tmp_path)
    recipe = {"method": method, "models": listed, "parameters": settings}
    if has_base:
        recipe["base"] = paths["base"]
    st.merge.run(recipe, tmp_path / "out", seed=5)
    base = weights["base"] if has_base else None
    key, extra = models.beside(method, tuned)
    own = {} if key is None else {key: extra}
    found = st.merge.trees(method, tuned, base, seed=5, **settings, **own)
    for name, x in models.read(tmp_path / "out").items():
        np.testing.assert_array_equal(found[name], x, err_msg=name)


def test_the_ensembles_functions_agree(members):
    base, tuned = members
    soup = st.merge.trees("linear", tuned)
    expected = st.ensemble.uniform_soup(tuned)
    st_close(soup, expected)
    vectors = [st.ensemble.task_vector(t, base) for t in tuned]
    st_close(
        st.merge.trees("task_arithmetic", tuned, base, weight=(0.5, 0.25)),
        st.ensemble.add_task_vectors(base, vectors, [0.5, 0.25]),
    )
    fishers = [st.tree.map(lambda x: x * x, t) for t in reversed(tuned)]
    st_close(
        st.merge.trees("fisher", tuned, fisher=fishers, weight=(2.0, 1.0)),
        st.ensemble.fisher_average(tuned, fishers, [2.0, 1.0]),
    )
    st_close(st.merge.trees("slerp", tuned[1:], tuned[0], t=0.3)["layers"][0]["w"],
             st.tree.slerp(tuned[0]["layers"][0], tuned[1]["layers"][0], 0.3)["w"])  # fmt: skip


def st_close(found, expected):
    for x, y in zip(st.tree.leaves(found), st.tree.leaves(expected), strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(x, y, 1e-5, 1e-6)


def test_an_ensemble(members):
    _, tuned = members
    ensemble = st.Ensemble(lambda p, x: x, tuned)
    soup, expected = st.merge.trees("linear", ensemble), st.ensemble.uniform_soup(ensemble)
    assert st.tree.structure(soup) == st.tree.structure(expected)
    st_close(soup, expected)


def test_settings_by_name(members):
    base, tuned = members
    cases = [{"match": "layers.0.*", "value": 0.0}, {"value": 1.0}]
    found = st.merge.trees("task_arithmetic", tuned[:1], base, weight=cases, lambda_=0.5)
    np.testing.assert_array_equal(found["layers"][0]["w"], base["layers"][0]["w"])
    half = (np.asarray(base["layers"][1]["w"]) + np.asarray(tuned[0]["layers"][1]["w"])) / 2
    np.testing.assert_allclose(found["layers"][1]["w"], half, 1e-5, 1e-6)


def test_dtypes_stay():
    x = {"a": snp.ones(3, "bfloat16"), "b": np.arange(3), "c": snp.ones((), "float16")}
    found = st.merge.trees("linear", [x, x])
    assert found["a"].dtype == snp.bfloat16
    assert found["c"].shape == ()
    np.testing.assert_array_equal(found["b"], x["b"])


def test_what_is_wrong(members):
    base, tuned = members
    with pytest.raises(ValueError, match="method 'tie' is unknown; did you mean 'ties'"):
        st.merge.trees("tie", tuned, base)
    with pytest.raises(ValueError, match="expected weight of each of 2 models, got 3"):
        st.merge.trees("ties", tuned, base, weight=(1, 2, 3))
    with pytest.raises(ValueError, match="ties needs weight for model 1"):
        st.merge.trees("ties", tuned, base)
    with pytest.raises(ValueError, match="ties needs a base"):
        st.merge.trees("ties", tuned, weight=1.0)
    with pytest.raises(ValueError, match="member 1 differs in structure from member 0"):
        st.merge.trees("linear", [tuned[0], {"x": snp.ones(3)}])
    counted = [{"n": snp.array([1, 2])}, {"n": snp.array([1, 3])}]
    with pytest.raises(ValueError, match=r'n has integers.* or take the first by integers="first"'):
        st.merge.trees("linear", counted)
    assert st.merge.trees("linear", counted, integers="first")["n"].tolist() == [1, 2]
    with pytest.raises(ValueError, match='integers must be "equal" or "first", got \'mean\''):
        st.merge.trees("linear", counted, integers="mean")
    with pytest.raises(ValueError, match="1 of 3 elements of a are NaN"):
        st.merge.trees("linear", [{"a": snp.array([1, np.nan, 0])}])
