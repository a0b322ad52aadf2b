"""Recipes of mergekit: read with their own meaning, or refused by name."""

import pytest

import stretto as st
from stretto.merge.mergekit_recipes import read
from stretto.merge.recipes import Case, Model

pytest.importorskip("yaml")

SLERP = """
slices:
  - sources:
      - model: org/one
        layer_range: [0, 32]
      - model: org/two+org/adapter
        layer_range: [0, 32]
merge_method: slerp
base_model: org/one
parameters:
  t:
    - filter: self_attn
      value: [0, 0.5, 1]
    - filter: "*"
      value: 1e-1
dtype: bfloat16
"""


def test_slices_with_filters_and_gradients():
    found = read(SLERP, "")
    (part,) = found.parts
    assert part.layers == ((0, 32), (0, 32))
    assert part.models == (Model("org/one"), Model("org/two", {}, "org/adapter"))
    assert found.settings["t"] == (
        Case((0, 0.5, 1), "self_attn", "part"),
        Case((0.1,), None, "part"),
    )
    assert (found.method, found.out_dtype, found.as_mergekit) == ("slerp", "BF16", True)


def test_the_dtype_of_the_result_goes_before_that_of_the_arithmetic():
    text = "merge_method: linear\nmodels:\n  - {model: a}\ndtype: float32\nout_dtype: float16\n"
    assert read(text, "").out_dtype == "F16"


def test_paths_that_are_there_are_relative_to_the_recipe(tmp_path):
    (tmp_path / "a").mkdir()
    path = tmp_path / "r.yaml"
    path.write_text("merge_method: linear\nmodels:\n  - model: a\n  - model: org/b\n")
    found = st.merge.read_recipe(path)
    assert [m.path for m in found.models] == [str(tmp_path / "a"), "org/b"]


@pytest.mark.parametrize(
    "text, words",
    [
        ("[", "is no YAML"),
        ("3", "expected one table"),
        ("a: 1\n---\nb: 2", "got 2 documents: merges of merges are not supported"),
        ("models: [{model: a}]", "merge_method is missing"),
        (
            "merge_method: tiees\nmodels: [{model: a}]",
            "merge_method 'tiees' is unknown; did you mean 'ties'?",
        ),
        (
            "merge_method: linear\nmodel: []\nmodels: [{model: a}]",
            "the key 'model' is unknown; did you",
        ),
        ("merge_method: linear\nmodels: 3", "models must be a list"),
        ("merge_method: linear\nmodels: [3]", "models[0] must be a table"),
        ("merge_method: linear\nmodels: [{model: [a]}]", "a model must be a path"),
        ("merge_method: linear\nmodels: [{model: a, weight: 1}]", "the key 'weight' is unknown"),
        (
            "merge_method: linear\nmodels: [{model: a, parameters: {weight: x}}]",
            "weight must be a number",
        ),
        ("merge_method: linear\nmodels: [{model: a}]\nmodules: {}", "modules is not supported"),
        (
            "merge_method: linear\nmodels: [{model: a}]\ntokenizer_source: union",
            "tokenizer_source is not",
        ),
        ("merge_method: linear\nmodels: [{model: a}]\nchat_template: auto", "chat_template is not"),
        ("merge_method: linear\nmodels: [{model: a}]\ndtype: int4", "dtype must be one of"),
        ("merge_method: ties\nmodels: [{model: a}]", "ties needs a base"),
        ("merge_method: linear\nmodels: []", "expected either models or slices, got none"),
        (
            "merge_method: linear\nmodels: [{model: a}]\n"
            "parameters: {weight: [{filter: 3, value: 1}]}",
            "a filter must be text, got 3",
        ),
        (
            "merge_method: passthrough\nslices: [{sources: [{model: a, layer_range: [3, 2]}]}]",
            "layer_range must be [first, after the last], got [3, 2]",
        ),
    ],
)
def test_faults(text, words):
    with pytest.raises(ValueError, match=r"^merge: ") as caught:
        read(text, "")
    assert words in str(caught.value)


def test_tags_of_python_are_not_made(tmp_path):
    text = "merge_method: !!python/object/apply:os.system ['touch x']"
    with pytest.raises(ValueError, match="is no YAML"):
        read(text, str(tmp_path))


def test_how_masks_are_stored_there_is_ignored():
    text = "merge_method: ties\nbase_model: b\nmodels: [{model: a, parameters: {weight: 1}}]\n"
    assert read(text + "parameters: {int8_mask: true}", "").settings == {}


def test_without_the_library(monkeypatch):
    monkeypatch.setattr("stretto.merge.mergekit_recipes.find_spec", lambda name: None)
    with pytest.raises(ModuleNotFoundError, match="need PyYAML: pip install 'stretto\\[yaml\\]'"):
        read(SLERP, "")
