"""Recipes: what they mean, and all that is wrong with one, told at once."""

import json

import pytest

import stretto as st
from stretto.merge.recipes import Case

GOOD = {"method": "ties", "base": "b", "models": [{"path": "m", "weight": 0.5}]}


def faults(**change):
    """The words about a recipe."""
    with pytest.raises(ValueError, match=r"^merge: ") as caught:
        st.merge.read_recipe({k: v for k, v in (GOOD | change).items() if v is not ...})
    return str(caught.value)


def test_values_by_name_and_depth():
    assert Case((3,)).at(0.7) == 3
    assert Case((0, 1)).at(0.25) == 0.25
    assert [Case((0, 4, 2)).at(t) for t in (0, 0.25, 0.5, 0.75, 1)] == [0, 2, 4, 3, 2]
    assert [Case((True, False)).at(t) for t in (0, 0.4, 1)] == [True, True, False]
    assert Case((1,)).matches("anything")
    assert Case((1,), "*.mlp.*").matches("layers.0.mlp.up")
    assert not Case((1,), "mlp").matches("layers.0.mlp.up")
    assert Case((1,), "mlp", "part").matches("layers.0.mlp.up")
    assert Case((1,), r"\.(0|1)\.mlp", "regex").matches("layers.0.mlp.up")
    assert not Case((1,), r"^mlp", "regex").matches("layers.0.mlp.up")


def test_a_recipe_in_toml_and_json(tmp_path):
    toml = tmp_path / "recipe.toml"
    toml.write_text(
        'method = "ties"\nbase = "b"\nout_dtype = "bfloat16"\nseed = 3\n'
        "[parameters]\nlambda = 0.8\n"
        '[[models]]\npath = "m"\n'
        'weight = [{match = "*.mlp.*", value = [0.1, 0.9]}, {value = 0.3}]\n'
    )
    found = st.merge.read_recipe(toml)
    assert found.models[0].path == str(tmp_path / "m")
    assert found.base.path == str(tmp_path / "b")
    assert found.settings == {"lambda": (Case((0.8,)),)}
    assert found.models[0].settings["weight"] == (Case((0.1, 0.9), "*.mlp.*"), Case((0.3,)))
    assert (found.out_dtype, found.seed, found.as_mergekit) == ("BF16", 3, False)
    same = tmp_path / "recipe.json"
    same.write_text(json.dumps({
        "method": "ties", "base": "b", "out_dtype": "bfloat16", "seed": 3,
        "parameters": {"lambda": 0.8},
        "models": [{
            "path": "m", "weight": [{"match": "*.mlp.*", "value": [0.1, 0.9]}, {"value": 0.3}],
        }],
    }))  # fmt: skip
    assert st.merge.read_recipe(same) == found
    assert st.merge.read_recipe(found) is found


def test_all_faults_at_once():
    words = faults(
        method="tiess",
        modles=[],
        seed=-1,
        out_dtype="float17",
        models=[{"path": "m"}, {"weight": 1}],
    )
    assert words.startswith("merge: the recipe has 5 faults:\n")
    assert "the key 'modles' is unknown; did you mean 'models'?" in words
    assert "method 'tiess' is unknown; did you mean 'ties'?" in words
    assert "seed must be a whole number from 0 to 2^32 - 1, got -1" in words
    assert "out_dtype must be one of float32, float16, bfloat16, float64, got 'float17'" in words
    assert "models[1] must have a path" in words


@pytest.mark.parametrize(
    "change, words",
    [
        ({"method": ...}, "method is missing"),
        ({"base": ...}, "ties needs a base"),
        ({"models": ...}, "expected either models or slices, got none"),
        ({"models": "m"}, "models must be a list, got 'm'"),
        ({"models": [3]}, "models[0] must have a path, got 3"),
        ({"parameters": 3}, "parameters must be a table, got 3"),
        ({"parameters": {"densty": 1}}, "ties has no setting 'densty'; did you mean 'density'?"),
        ({"parameters": {"density": 1.5}}, "density must be from 0 to 1, got 1.5"),
        ({"parameters": {"density": float("nan")}}, "density must be from 0 to 1, got nan"),
        ({"parameters": {"lambda": "much"}}, "lambda must be a number, got 'much'"),
        ({"parameters": {"lambda": True}}, "lambda must be a number, got True"),
        ({"parameters": {"normalize": 1}}, "normalize must be true or false"),
        (
            {"parameters": {"lambda": [{"mach": "x", "value": 1}]}},
            "the key 'mach' is unknown; did you",
        ),
        ({"parameters": {"lambda": [{"match": 3, "value": 1}]}}, "a pattern must be text, got 3"),
        ({"parameters": {"lambda": [{"regex": "(", "value": 1}]}}, "'(' is no regular expression"),
        ({"parameters": {"lambda": [{"regex": "(a+)+$", "value": 1}]}}, "may take for ever"),
        ({"parameters": {"lambda": float("inf")}}, "must be from -1e+30 to 1e+30, got inf"),
        ({"parameters": {"lambda": 10**5000}}, "must be from -1e+30 to 1e+30, got int with"),
        (
            {"models": [{"path": "m", "layers": [0, 1]}]},
            "models[0]: layers are for the models of slices",
        ),
        ({"dtype": []}, "dtype must be one of float32"),
        ({"models": [{"path": "m", "adapter": {}}]}, "adapter must be a path, got {}"),
        ({"parameters": {"lambda": [{"regex": "a*a*a*a*$", "value": 1}]}}, "may take for ever"),
        ({"models": [{"path": "m", "lambda": 1}]}, "ties has no setting 'lambda'"),
        ({"slices": [{"models": [{"path": "m", "layers": [0, 1]}]}]}, "got both"),
        ({"seed": True}, "seed must be a whole number"),
        ({"seed": 1 << 32}, "seed must be a whole number"),
    ],
)
def test_faults(change, words):
    assert words in faults(**change)


@pytest.mark.parametrize(
    "part, words",
    [
        (3, "slices[0] must have a list of models, got 3"),
        (
            {"models": [{"path": "m"}]},
            "slices[0].models[0]: layers must be [first, after the last]",
        ),
        ({"models": [{"path": "m", "layers": [2, 1]}]}, "layers must be [first, after the last]"),
        ({"models": [{"path": "m", "layers": [0, 1]}], "model": 1}, "the key 'model' is unknown"),
        (
            {"models": [{"path": "m", "layers": [0, 2]}, {"path": "n", "layers": [0, 1]}]},
            "its models have different numbers of layers",
        ),
    ],
)
def test_faults_of_slices(part, words):
    assert words in faults(models=..., slices=[part])


@pytest.mark.parametrize(
    "method, models, base, words",
    [
        ("slerp", "ab", "base", "slerp takes 2 models with the base, got 3"),
        ("slerp", "a", None, "slerp needs a base"),
        ("nuslerp", "a", None, "nuslerp takes 2 models, got 1"),
        ("model_stock", "a", "base", "model_stock takes 2 or more models, got 1"),
        ("passthrough", "ab", None, "passthrough takes 1 models, got 2"),
    ],
)
def test_how_many_models(method, models, base, words):
    change = {"method": method, "models": list(models), "base": base or ..., "parameters": {}}
    assert words in faults(**change)


def test_the_base_among_the_models_counts_once():
    recipe = {"method": "slerp", "base": "b", "models": ["b", "m"], "parameters": {"t": 0.5}}
    assert st.merge.read_recipe(recipe).base.path == "b"


@pytest.mark.parametrize("text", ["", "[]", "3", "{", "[" * 100_000, "\xff"])
def test_what_is_no_recipe(tmp_path, text):
    path = tmp_path / "recipe.json"
    path.write_bytes(text.encode("latin1"))
    with pytest.raises(ValueError, match="is no recipe"):
        st.merge.read_recipe(path)


def test_paths_that_lead_nowhere(tmp_path):
    with pytest.raises(FileNotFoundError):
        st.merge.read_recipe(tmp_path / "recipe.toml")
    with pytest.raises(ValueError, match="no regular file"):
        st.merge.read_recipe(tmp_path)
    with pytest.raises(TypeError, match="path must be a string"):
        st.merge.read_recipe(3)
