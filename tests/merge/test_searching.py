"""Searches: optima of known functions, settings of recipes, greedy soups; stopped and resumed."""

import json
from importlib.util import find_spec

import numpy as np
import pytest

import stretto as st
from stretto.merge import searching
from tests.merge import models

needs_cmaes = pytest.mark.skipif(find_spec("cmaes") is None, reason="cmaes is not installed")


def bowl(x):
    """Narrow in some directions, and turned."""
    n = len(x)
    turn, _ = np.linalg.qr(np.random.default_rng(9).standard_normal((n, n)))
    return -np.sum(10.0 ** (3 * np.arange(n) / max(n - 1, 1)) * (turn @ (x - 0.3)) ** 2)


def valley(x):
    return -np.sum(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)


@needs_cmaes
@pytest.mark.parametrize("function, n, optimum, generations", [
    (bowl, 1, 0.3, 60), (bowl, 6, 0.3, 250), (valley, 4, 1.0, 300),
])  # fmt: skip
def test_optima(function, n, optimum, generations):
    found = st.merge.cma_es(function, np.zeros(n), 0.5, generations=generations, seed=2)
    np.testing.assert_allclose(found.point, optimum, 0, 1e-5)
    assert found.score == function(found.point) == found.history[-1]
    assert list(found.history) == sorted(found.history)
    assert len(found.history) == generations + 1
    assert found.history[0] == function(np.zeros(n))


@needs_cmaes
def test_bounds_hold_and_may_be_the_optimum():
    seen = []

    def score(x):
        seen.append(x)
        return x[0] - x[1] if x[2] < 0.9 else np.nan

    found = st.merge.cma_es(score, [0.5] * 3, bounds=(0, 1), generations=40, population=9)
    assert len(seen) == 1 + 40 * 9
    assert np.min(seen) >= 0 and np.max(seen) <= 1
    assert found.score > 0.999
    again = st.merge.cma_es(score, [0.5] * 3, bounds=(0, 1), generations=40, population=9)
    np.testing.assert_array_equal(found.point, again.point)
    other = st.merge.cma_es(score, [0.5] * 3, bounds=(0, 1), generations=40, population=9, seed=1)
    assert not np.array_equal(found.point, other.point)


@needs_cmaes
@pytest.mark.parametrize("change, words", [
    ({"start": [[0.0]]}, r"start must be a vector, got shape \(1, 1\)"),
    ({"start": []}, r"start must be a vector, got shape \(0,\)"),
    ({"start": [2.0], "bounds": (0, 1)}, r"start must be within 0 and 1, got \[2.0\]"),
    ({"bounds": (1, 0)}, r"bounds must be \(least, largest\), got \(1, 0\)"),
    ({"spread": 0}, "spread must be positive, got 0"),
    ({"population": 3}, "population must be 4 or more, got 3"),
    ({"generations": 0}, "generations must be 1 or more, got 0"),
    ({"seed": -1}, r"seed must be a whole number from 0 to 2\^32 - 1, got -1"),
])  # fmt: skip
def test_arguments_that_make_no_sense(change, words):
    with pytest.raises(ValueError, match=f"^cma_es: {words}$"):
        st.merge.cma_es(sum, **{"start": [0.0]} | change)


def test_a_search_without_the_package(monkeypatch, tmp_path):
    monkeypatch.setattr(searching, "find_spec", lambda name: None)
    for call in (
        lambda: st.merge.cma_es(sum, [0.0]),
        lambda: st.merge.evolve(tmp_path / "r.toml", len, tmp_path / "out"),
    ):
        with pytest.raises(
            ModuleNotFoundError, match=r"needs the package cmaes: pip install 'stre"
        ):
            call()


@pytest.fixture
def family(tmp_path):
    paths, weights = models.family(tmp_path, "a", "b")
    for name, tensors in weights.items():  # few, as each candidate is written
        weights[name] = {k: x for k, x in tensors.items() if "up_proj" in k}
        models.save_file(weights[name], paths[name])
    base = weights["base"]
    wanted = {
        k: base[k] + 0.8 * (weights["a"][k] - base[k]) + 0.1 * (weights["b"][k] - base[k])
        for k in base
    }  # fmt: skip
    recipe = {"method": "task_arithmetic", "base": paths["base"],
              "models": [paths["base"], paths["a"], paths["b"]]}  # fmt: skip
    return recipe, paths, wanted


class Near:
    """A score: how near a result is to what is wanted. It counts calls."""

    def __init__(self, wanted, only=None):
        self.wanted, self.only, self.calls, self.stop = wanted, only, 0, None

    def __call__(self, checkpoint):
        if self.stop is not None and self.calls >= self.stop:
            raise KeyboardInterrupt
        self.calls += 1
        names = [n for n in checkpoint if self.only is None or self.only in n]
        return -sum(np.sum((np.asarray(checkpoint[n]) - self.wanted[n]) ** 2) for n in names)


def numbers(evolved, name="weight"):
    return [m.settings[name][0].values for m in evolved.recipe.models if name in m.settings]


@needs_cmaes
def test_weights_evolve(tmp_path, family):
    recipe, _, wanted = family
    score = Near(wanted)
    found = st.merge.evolve(recipe, score, tmp_path / "best", generations=20)
    assert score.calls == 1 + 20 * 6
    np.testing.assert_allclose(numbers(found), [[0.8], [0.1]], 0, 0.02)  # the base has no weight
    again = models.read(tmp_path / "best")
    loss = sum(np.sum((again[k] - wanted[k]) ** 2) for k in wanted)
    np.testing.assert_allclose(found.score, -loss, 1e-5)
    assert not list(tmp_path.glob(".*"))


@needs_cmaes
def test_what_is_searched_and_where_it_starts(tmp_path, family):
    recipe, paths, _ = family
    recipe = recipe | {
        "models": [{"path": paths["a"], "weight": 0.8},
                   {"path": paths["b"], "weight": [{"match": "*", "value": 3.0}]}],
        "parameters": {"lambda": 9.0},
    }  # fmt: skip
    search = {"weight": (0.0, 1.0), "lambda": (0.5, 1.5)}
    seen = []

    def score(checkpoint):
        seen.append({n: np.asarray(checkpoint[n]) for n in checkpoint})
        return -float(len(seen))  # the start stays the best

    found = st.merge.evolve(
        recipe, score, tmp_path / "best", search=search, points=2, generations=1, population=4
    )
    assert len(seen) == 5
    assert numbers(found) == [(0.8, 0.8), (0.5, 0.5)]
    assert found.recipe.settings["lambda"][0].values == (1.5, 1.5)
    read = models.read(tmp_path / "best")
    for name, x in seen[0].items():
        np.testing.assert_array_equal(read[name], x)


@needs_cmaes
def test_values_over_the_layers(tmp_path, family):
    recipe, _, wanted = family
    first, last = (f"model.layers.{i}.mlp.up_proj.weight" for i in (0, models.LAYERS - 1))
    base = models.read(recipe["base"])
    for name, share in ((first, 0.2), (last, 0.9)):
        delta = models.read(recipe["models"][1])[name] - base[name]
        wanted[name] = base[name] + share * delta
    layers = recipe | {"models": recipe["models"][1:2]}
    score = Near({first: wanted[first], last: wanted[last]})
    found = st.merge.evolve(
        layers, lambda c: score({n: c[n] for n in (first, last)}), tmp_path / "best",
        points=2, generations=15,
    )  # fmt: skip
    np.testing.assert_allclose(numbers(found), [[0.2, 0.9]], 0, 0.02)


@needs_cmaes
def test_slices(tmp_path, family):
    _, paths, _ = family
    parts = [
        {"models": [{"path": paths[n], "layers": [0, 2]}], "parameters": {"scale": 5.0}}
        for n in "ab"
    ]
    recipe = {"method": "passthrough", "slices": parts}
    weights = models.read(paths["a"])
    score = Near({k: 0.5 * x for k, x in weights.items()}, "layers.0.")
    found = st.merge.evolve(
        recipe, score, tmp_path / "best", search={"scale": (0.0, 2.0)}, generations=10
    )
    np.testing.assert_allclose(found.recipe.settings["scale"][0].values, 0.5, 0, 0.01)
    linear = recipe | {"method": "linear"}
    linear["slices"] = [{k: v for k, v in p.items() if k == "models"} for p in parts]
    read = st.merge.evolve(linear, lambda c: 0.0, tmp_path / "2", generations=1).recipe
    assert [len(p.models[0].settings["weight"][0].values) for p in read.parts] == [1, 1]


@needs_cmaes
def test_a_stopped_search_goes_on(tmp_path, family):
    recipe, _, wanted = family
    whole = Near(wanted)
    st.merge.evolve(recipe, whole, tmp_path / "whole", generations=4)
    stopped = Near(wanted)
    stopped.stop = 10
    with pytest.raises(KeyboardInterrupt):
        st.merge.evolve(recipe, stopped, tmp_path / "out", generations=4)
    assert not (tmp_path / "out").exists()
    scores = tmp_path / ".out.searching" / "scores.jsonl"
    assert len(scores.read_text().splitlines()) == 10
    scores.write_text(scores.read_text() + '{"plan": "abc", "sc')  # cut by a kill
    rest = Near(wanted)
    st.merge.evolve(recipe, rest, tmp_path / "out", generations=4)
    assert rest.calls == whole.calls - 10
    assert (tmp_path / "out").read_bytes() == (tmp_path / "whole").read_bytes()
    stopped.calls = 0
    with pytest.raises(KeyboardInterrupt):
        st.merge.evolve(recipe, stopped, tmp_path / "2", generations=4)
    anew = Near(wanted)
    st.merge.evolve(recipe, anew, tmp_path / "2", generations=4, resume=False)
    assert anew.calls == whole.calls


@needs_cmaes
@pytest.mark.parametrize("change, words", [
    ({"search": {}}, "search must name a setting, got none"),
    ({"search": {"wieght": (0, 1)}}, "no setting 'wieght' that is a number; did you mean 'weight'"),
    ({"search": {"normalize": (0, 1)}}, "has no setting 'normalize' that is a number"),
    ({"search": {"weight": (1, 1)}}, r"weight must be \(least, largest\), got \(1, 1\)"),
    ({"search": {"density": (0, 2)}}, "search: density must be from 0 to 1, got 2"),
    ({"points": 0}, "points must be 1 or more, got 0"),
])  # fmt: skip
def test_what_cannot_be_searched(tmp_path, family, change, words):
    with pytest.raises(ValueError, match=f"^evolve: .*{words}"):
        st.merge.evolve(family[0], lambda c: 0.0, tmp_path / "out", **change)
    (tmp_path / "there").write_text("")
    with pytest.raises(ValueError, match="there is a file already"):
        st.merge.evolve(family[0], lambda c: 0.0, tmp_path / "there")


def test_a_greedy_soup(tmp_path):
    paths, weights = models.family(tmp_path, *"abcd")
    listed = [paths[n] for n in "abcd"]
    wanted = {k: (weights["a"][k] + weights["c"][k]) / 2 for k in weights["a"]}
    score = Near(wanted)
    found = st.merge.greedy_soup(listed, score, tmp_path / "soup")
    trees = [st.load(path) for path in listed]
    expected = st.ensemble.greedy_soup(trees, Near(wanted))
    assert found.members == expected.members
    assert sorted(found.members) == [0, 2]
    np.testing.assert_allclose(found.scores, expected.scores, 1e-5)
    for name, x in models.read(tmp_path / "soup").items():
        np.testing.assert_allclose(x, wanted[name], 1e-6)
    assert score.calls == 7  # four alone, and three averages
    assert not list(tmp_path.glob(".*"))
    with pytest.raises(ValueError, match="expected at least one model, got none"):
        st.merge.greedy_soup([], score, tmp_path / "out")
    with pytest.raises(ValueError, match="the score of every model is NaN"):
        st.merge.greedy_soup(listed[:2], lambda c: np.nan, tmp_path / "out")
    values = iter([1.0, np.nan, np.nan])
    assert st.merge.greedy_soup(
        listed[:2], lambda c: next(values), tmp_path / "out", resume=False
    ).members == (0,)


def test_candidates_of_folders(tmp_path):
    paths = [
        models.as_folder(tmp_path / name, models.draw(i), shards=2) for i, name in enumerate("ab")
    ]
    seen = []

    def score(checkpoint):
        seen.append(checkpoint.path)
        with open(f"{checkpoint.path}/config.json") as file:
            return float(json.load(file)["num_hidden_layers"])

    found = st.merge.greedy_soup(paths, score, tmp_path / "out")
    assert found.members == (0, 1)
    assert (tmp_path / "out" / "tokenizer.json").exists()
    assert set(seen) == {str(tmp_path / ".out.searching" / "candidate")}
