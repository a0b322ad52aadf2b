"""Plans: which tensors make which, with which numbers; and faults, before anything is written."""

import contextlib
import json

import ml_dtypes
import numpy as np
import pytest

import stretto as st
from stretto.merge.planning import room_for
from tests.merge import models

NAMES = ("a", "b")


@pytest.fixture
def family(tmp_path):
    return models.family(tmp_path, *NAMES)[0]


def planned(recipe, **options):
    plan = st.merge.plan(recipe, **options)
    plan.close()
    return plan


def numbers(plan, setting):
    return {s.name: np.asarray(s.settings[setting]).tolist() for s in plan.steps}


def refused(recipe):
    with pytest.raises(ValueError, match=r"^merge: |^Checkpoint: ") as caught:
        st.merge.plan(recipe)
    return str(caught.value)


def test_settings_by_name_and_depth(family):
    recipe = {
        "method": "ties",
        "base": family["base"],
        "models": [
            {"path": family["a"], "weight": [0, 0.3, 0.9], "density": 0.5},
            {"path": family["b"], "weight": [{"match": "*.mlp.*", "value": 0.7}, {"value": 0.1}]},
        ],
        "parameters": {"density": [{"regex": r"\.0\.", "value": 0.2}, {"value": 0.8}]},
    }
    plan = planned(recipe)
    weight, density = numbers(plan, "weight"), numbers(plan, "density")
    assert weight["model.embed_tokens.weight"] == [0, 0.1]
    np.testing.assert_allclose(weight["model.layers.0.mlp.up_proj.weight"], [0, 0.7])
    np.testing.assert_allclose(weight["model.layers.1.mlp.up_proj.weight"], [0.2, 0.7])
    np.testing.assert_allclose(weight["model.layers.2.self_attn.q_proj.weight"], [0.5, 0.1])
    np.testing.assert_allclose(weight["model.layers.3.self_attn.q_proj.weight"], [0.9, 0.1])
    assert weight["lm_head.weight"] == [0.9, 0.1]
    assert density["model.layers.0.mlp.up_proj.weight"] == [0.5, 0.2]
    assert density["lm_head.weight"] == [0.5, 0.8]
    assert "15 tensors merged, 0 copied" in str(plan)


def test_in_mergekits_recipes_what_is_in_no_layer_is_at_the_first_depth(family):
    found = st.merge.read_recipe({
        "method": "linear", "models": [{"path": family[n], "weight": [0.2, 0.8]} for n in NAMES],
    })  # fmt: skip
    assert numbers(planned(found), "weight")["lm_head.weight"] == [0.8, 0.8]
    theirs = found._replace(as_mergekit=True)
    assert numbers(planned(theirs), "weight")["lm_head.weight"] == [0.2, 0.2]
    assert numbers(planned(theirs), "weight")["model.layers.3.input_layernorm.weight"] == [0.8, 0.8]


def test_all_faults_of_files_at_once(tmp_path, family):
    changed = models.draw(1)
    del changed["model.norm.weight"]
    changed["extra"] = np.ones(1, np.float32)
    changed["lm_head.weight"] = changed["lm_head.weight"][:-1]
    changed["model.layers.0.input_layernorm.weight"] = np.arange(models.HIDDEN)
    models.save_file(changed, family["b"])
    words = refused({"method": "linear", "models": [family["a"], family["b"]]})
    assert "has 4 faults" in words
    assert f"model.norm.weight is missing in {family['b']}" in words
    assert f"extra is in {family['b']} and not in {family['a']}" in words
    assert "lm_head.weight: lm_head.weight of" in words
    assert "has shape [49, 24], and lm_head.weight of" in words
    assert "model.layers.0.input_layernorm.weight: " in words
    assert "expected numbers of one kind" in words


def test_files_that_cannot_be_opened_are_all_named(tmp_path, family):
    (tmp_path / "bad.safetensors").write_bytes(b"x")
    words = refused({
        "method": "linear",
        "models": [family["a"], str(tmp_path / "no"), str(tmp_path / "bad.safetensors")],
    })  # fmt: skip
    assert "/no: No such file or directory; models are paths, and nothing is downloaded" in words
    assert "a safetensors file has 8 before its header" in words


@pytest.mark.parametrize(
    "models_, parameters, words",
    [
        ([{"weight": 1}, {"weight": -1}], {}, "the weights [1.0, -1.0] add up to 0"),
        ([{"weight": 1}, {}], {"weight": [{"match": "*embed*", "value": 1}]},
         "linear needs weight for model 2, for lm_head.weight and 13 more"),
        ([{}, {}], {"weight": [{"match": "*.mpl.*", "value": 1}, {"value": 2}]},
         "weight: no tensor matches '*.mpl.*'"),
    ],
)  # fmt: skip
def test_faults_of_settings(family, monkeypatch, models_, parameters, words):
    if "needs" in words:  # where a method has no default
        how = st.merge.METHODS["linear"]
        required = how.settings[0]._replace(default=st.merge.METHODS["ties"].settings[0].default)
        changed = how._replace(settings=(required, *how.settings[1:]))
        monkeypatch.setitem(st.merge.METHODS, "linear", changed)
    listed = [{"path": family[n]} | m for n, m in zip(NAMES, models_, strict=True)]
    assert words in refused({"method": "linear", "models": listed, "parameters": parameters})


def test_della_needs_probabilities(family):
    recipe = {"method": "della", "base": family["base"], "models": [family["a"]],
              "parameters": {"weight": 1, "density": 0.9, "epsilon": 0.2}}  # fmt: skip
    assert "must be between 0 and 1, got density 0.9 and epsilon 0.2" in refused(recipe)


def test_what_is_no_float(tmp_path):
    extra = {"steps": np.arange(3), "mask": np.array([True])}
    paths, _ = models.family(tmp_path, *NAMES, extra=extra)
    plan = planned({"method": "linear", "models": [paths["a"], paths["b"]]})
    assert {s.name for s in plan.steps if s.copied} == {"steps", "mask"}
    assert "15 tensors merged, 2 copied" in str(plan)


def test_quantised_and_complex_tensors_are_refused(tmp_path):
    path = str(tmp_path / "m.safetensors")
    models.save_file({"w": np.ones(3, ml_dtypes.float8_e4m3fn)}, path)
    assert "w is quantised (F8_E4M3)" in refused({"method": "linear", "models": [path]})
    models.save_file({"w": np.ones(3, np.complex64)}, path)
    assert "w is complex" in refused({"method": "linear", "models": [path]})


def test_tied_weights_are_found_where_they_are_left_out(tmp_path):
    full = models.draw(0)
    full["lm_head.weight"] = full["model.embed_tokens.weight"]
    tied = {k: v for k, v in full.items() if k != "lm_head.weight"}
    with_head = models.as_folder(tmp_path / "full", full, tie_word_embeddings=True)
    without = models.as_folder(tmp_path / "tied", tied, tie_word_embeddings=True)
    for first, second in ((with_head, without), (without, with_head)):
        plan = planned({"method": "linear", "models": [first, second]})
        assert ("lm_head.weight" in {s.name for s in plan.steps}) == (first == with_head)
    silent = models.as_folder(tmp_path / "silent", tied)  # tied is what most kinds are by default
    planned({"method": "linear", "models": [with_head, silent]})
    untied = models.as_folder(tmp_path / "untied", tied, tie_word_embeddings=False)
    assert "lm_head.weight is missing" in refused(
        {"method": "linear", "models": [with_head, untied]}
    )


@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("method", ["linear", "slerp"])
def test_buffers_that_only_some_have(tmp_path, which, method):
    """As versions of a library differ in what they write."""
    extra = {"position_ids": np.arange(4), "rotary_emb.inv_freq": np.ones(3, np.float32)}
    both = [models.draw(0), models.draw(1)]
    both[which] |= extra
    paths = [str(tmp_path / f"{name}.safetensors") for name in NAMES]
    for path, tensors in zip(paths, both, strict=True):
        models.save_file(tensors, path)
    recipe = {"method": "linear", "models": paths}
    if method == "slerp":
        recipe = {
            "method": "slerp",
            "base": paths[0],
            "models": paths[1:],
            "parameters": {"t": 0.5},
        }
    st.merge.run(recipe, tmp_path / "out")
    found = models.read(tmp_path / "out")
    assert set(found) == set(both[0])  # the first has the say
    for name in extra if which == 0 else ():
        np.testing.assert_array_equal(found[name], extra[name])


def test_models_of_different_kinds_are_told_in_few_lines(tmp_path):
    paths = [str(tmp_path / f"{name}.safetensors") for name in NAMES]
    for path in paths:
        models.save_file({f"{path[-13:]}{i}": np.ones(1) for i in range(400)}, path)
    words = refused({"method": "linear", "models": paths})
    assert "has 800 faults" in words
    assert len(words.splitlines()) == 52
    assert words.endswith("and 750 more")


def test_what_lies_beside_is_copied(tmp_path):
    folder = models.as_folder(tmp_path / "model", models.draw(0))
    kept = {"scheduler/scheduler_config.json": "{}", "1_Pooling/config.json": '{"dim": 3}',
            "tokenizer/merges.txt": "a b", "README.md": "# A"}  # fmt: skip
    left = {"onnx/model.onnx": "", "onnx/config.json": "{}", ".git/HEAD.json": "{}",
            "model.py": "1 / 0", "deep/er/config.json": "{}",
            "old/pytorch_model.bin": ""}  # fmt: skip
    for name, text in (kept | left).items():
        path = tmp_path / "model" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    out = tmp_path / "out"
    st.merge.run({"method": "linear", "models": [folder]}, out)
    found = {str(p.relative_to(out)) for p in out.rglob("*") if p.is_file()}
    assert found == {*kept, "model.safetensors", "config.json", "tokenizer.json"}
    assert all((out / name).read_text().split() == text.split() or name.endswith("config.json")
               for name, text in kept.items())  # fmt: skip
    assert json.loads((out / "1_Pooling" / "config.json").read_text()) == {"dim": 3}


def stacked(tmp_path):
    """Two models in folders, with a configuration, and their weights."""
    weights = [models.draw(i) for i in range(2)]
    return [models.as_folder(tmp_path / n, w) for n, w in zip(NAMES, weights, strict=True)], weights


def test_layers_of_two_models(tmp_path):
    folders, weights = stacked(tmp_path)
    recipe = {"method": "passthrough", "slices": [
        {"models": [{"path": folders[0], "layers": [0, 3]}]},
        {"models": [{"path": folders[1], "layers": [1, 4]}]},
    ]}  # fmt: skip
    out = tmp_path / "out"
    st.merge.run(recipe, out)
    found = models.read(out / "model.safetensors")
    origin = [(0, 0), (0, 1), (0, 2), (1, 1), (1, 2), (1, 3)]
    for i, (which, layer) in enumerate(origin):
        for part in ("input_layernorm", "self_attn.q_proj", "mlp.up_proj"):
            expected = weights[which][f"model.layers.{layer}.{part}.weight"]
            np.testing.assert_array_equal(found.pop(f"model.layers.{i}.{part}.weight"), expected)
    np.testing.assert_array_equal(
        found.pop("model.embed_tokens.weight"), weights[0]["model.embed_tokens.weight"]
    )
    for name in ("lm_head.weight", "model.norm.weight"):
        np.testing.assert_array_equal(found.pop(name), weights[1][name])
    assert not found
    assert json.loads((out / "config.json").read_text())["num_hidden_layers"] == 6
    assert (out / "tokenizer.json").read_text() == "{}"


@pytest.mark.parametrize("shards, size", [(3, None), (1, 9000), (3, 9000)])
def test_one_index_or_none(tmp_path, shards, size):
    """The index of the input is not that of the result."""
    folder = models.as_folder(tmp_path / "model", models.draw(0), shards=shards)
    (tmp_path / "model" / "pytorch_model.bin.index.json").write_text("{}")
    (tmp_path / "model" / "model_index.json").write_text("{}")
    report = st.merge.run(
        {"method": "linear", "models": [folder]}, tmp_path / "out", shard_size=size
    )
    assert (len(report.files) > 1) == (size is not None)
    beside = {p.name for p in (tmp_path / "out").iterdir()} - report.files.keys()
    index = set() if size is None else {"model.safetensors.index.json"}
    assert beside == {"config.json", "tokenizer.json", "model_index.json"} | index
    assert st.merge.Checkpoint(tmp_path / "out").keys() == models.shapes().keys()


def test_a_tree_of_ours_comes_back_as_it_was(tmp_path):
    for name, value in (("a", 1.0), ("b", 3.0)):
        tree = {"layers": [{"w": np.full(3, value + i)} for i in range(3)], "rate": value}
        st.save(tmp_path / f"{name}.safetensors", tree)
    paths = [tmp_path / f"{name}.safetensors" for name in NAMES]
    st.merge.run({"method": "linear", "models": paths}, tmp_path / "mean")
    found = st.load(tmp_path / "mean")
    assert found["rate"] == 2.0 and isinstance(found["rate"], float)
    assert [x["w"].tolist() for x in found["layers"]] == [[2 + i] * 3 for i in range(3)]
    # Of other layers it is another tree, which the header does not describe.
    recipe = {"method": "passthrough", "slices": [
        {"models": [{"path": path, "layers": [0, 2]}]} for path in paths
    ]}  # fmt: skip
    st.merge.run(recipe, tmp_path / "stack")
    with st.enable_x64():
        found = st.load(tmp_path / "stack")
    assert [float(found[f"layers.{i}.w"][0]) for i in range(4)] == [1, 2, 3, 4]


def test_numbers_in_names_that_are_no_layers(tmp_path):
    tensors = {f"layers.{n}.w": np.ones(2, np.float32) for n in (0, 1, 999_999, "9" * 5000)}
    path = str(tmp_path / "m.safetensors")
    models.save_file(tensors, path)
    recipe = {"method": "linear", "models": [{"path": path, "weight": [1, 3]}]}
    assert numbers(planned(recipe), "weight") == {
        "layers.0.w": [1], "layers.1.w": [3], "layers.999999.w": [3],
        f"layers.{'9' * 5000}.w": [3],
    }  # fmt: skip
    slices = [{"models": [{"path": path, "layers": [0, 10**12]}]}]
    assert f"m.safetensors has 2 layers, got {10**12}" in refused(
        {"method": "passthrough", "slices": slices}
    )


def test_layers_take_their_words_with_them(tmp_path):
    kinds = [["full", "sliding", "full", "sliding"], list("abcd")]
    folders = [
        models.as_folder(tmp_path / n, models.draw(0), layer_types=k, layers_of=[1, 2, 3, 4])
        for n, k in zip(NAMES, kinds, strict=True)
    ]
    recipe = {"method": "passthrough", "slices": [
        {"models": [{"path": folders[0], "layers": [1, 3]}]},
        {"models": [{"path": folders[1], "layers": [0, 1]}]},
    ]}  # fmt: skip
    st.merge.run(recipe, tmp_path / "out")
    said = json.loads((tmp_path / "out" / "config.json").read_text())
    assert (said["layer_types"], said["num_hidden_layers"]) == (["sliding", "full", "a"], 3)
    assert said["layers_of"] == [1, 2, 3, 4]


def test_slices_have_settings_of_their_own(tmp_path):
    folders, _ = stacked(tmp_path)
    pair = [{"path": folders[0], "layers": [0, 2]}, {"path": folders[1], "layers": [0, 2]}]
    recipe = {"method": "slerp", "base": folders[0], "parameters": {"t": 0.5}, "slices": [
        {"models": pair, "parameters": {"t": [0, 0.4]}},
        {"models": [{"path": f, "layers": [2, 4]} for f in folders]},
    ]}  # fmt: skip
    t = numbers(planned(recipe), "t")
    assert [t[f"model.layers.{i}.mlp.up_proj.weight"] for i in range(4)] == [0, 0.4, 0.5, 0.5]
    recipe["slices"][1]["models"][1]["layers"] = [3, 5]
    assert "has 4 layers, got 5" in refused(recipe)


def test_shards_and_dtype(tmp_path):
    folders, _ = stacked(tmp_path)
    recipe = {"method": "linear", "models": folders, "out_dtype": "bfloat16"}
    plan = planned(recipe, shard_size=4000)
    assert len(plan.shards) > 2
    for shard in plan.shards:
        size = sum(s.nbytes for s in shard.steps)
        assert size <= 4000 or len(shard.steps) == 1
    st.merge.run(recipe, tmp_path / "out", shard_size=4000)
    index = json.loads((tmp_path / "out" / "model.safetensors.index.json").read_text())
    assert set(index["weight_map"]) == set(models.shapes())
    assert index["metadata"]["total_size"] == plan.nbytes
    assert json.loads((tmp_path / "out" / "config.json").read_text())["torch_dtype"] == "bfloat16"
    found = st.merge.Checkpoint(tmp_path / "out")
    assert {s.code for s in found.stored.values()} == {"BF16"}
    assert found.metadata == {"format": "pt"}


def test_the_index_of_an_input_is_not_copied(tmp_path):
    folder = models.as_folder(tmp_path / "a", models.draw(1), shards=2)
    st.merge.run({"method": "linear", "models": [folder]}, tmp_path / "out")
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {"config.json", "model.safetensors", "tokenizer.json"}
    assert set(st.merge.Checkpoint(tmp_path / "out")) == set(models.shapes())


def test_a_plan_is_told_from_others(family):
    def digest():
        with contextlib.closing(st.merge.plan(recipe)) as plan:
            return plan.digest()

    recipe = {"method": "linear", "models": [{"path": family["a"], "weight": 1.0}, family["b"]]}
    first = digest()
    assert digest() == first
    recipe["models"][0]["weight"] = 2.0
    assert digest() != first
    recipe["models"][0]["weight"] = 1.0
    assert digest() == first
    models.save_file(models.draw(7), family["b"])
    assert digest() != first


def test_no_room(tmp_path):
    assert room_for(str(tmp_path / "deep" / "er" / "out"), 1) is None
    words = room_for(str(tmp_path / "deep" / "er" / "out"), 1 << 62)
    assert words.startswith(f"the result takes {1 << 62:,} bytes, and {tmp_path} has room for ")


def test_files_beside_the_models(tmp_path):
    paths, weights = models.family(tmp_path, "a", "b")
    listed = models.with_beside("fisher", [paths["a"], paths["b"]], [weights["a"]] * 2, tmp_path)
    recipe = {"method": "fisher", "models": listed}
    step = st.merge.plan(recipe).steps[0]
    assert [s.checkpoint.path for s in step.beside] == [m["fisher"] for m in listed]
    digest = st.merge.plan(recipe).digest()
    other = [listed[0], listed[1] | {"fisher": listed[0]["fisher"]}]
    assert st.merge.plan({"method": "fisher", "models": other}).digest() != digest
    wrong = [{"path": paths["a"]}, listed[1] | {"fisher": 3}]
    with pytest.raises(ValueError, match=r"models\[1\]: fisher must be a path, got 3"):
        st.merge.plan({"method": "fisher", "models": wrong})
    with pytest.raises(ValueError, match=r"fisher needs fisher for .*a.safetensors: the path of a "
                       "file with the diagonal"):  # fmt: skip
        st.merge.plan({"method": "fisher", "models": wrong[:1]})
    with pytest.raises(ValueError, match="No such file"):
        lost = {"fisher": str(tmp_path / "lost.safetensors")}
        st.merge.plan({"method": "fisher", "models": [listed[0] | lost]})
    with pytest.raises(ValueError, match=r"the weights \[0.0, 0.0\] add up to 0"):
        st.merge.plan(recipe | {"parameters": {"weight": 0}})
    whole = {k: np.ones(x.shape, np.int32) for k, x in weights["a"].items()}
    models.save_file(whole, tmp_path / "integers.safetensors")
    integers = listed[0] | {"fisher": str(tmp_path / "integers.safetensors")}
    with pytest.raises(ValueError, match=r"is I32, and no float"):
        st.merge.plan({"method": "fisher", "models": [integers, listed[1]]})


def test_files_beside_layers_that_are_put_together(tmp_path):
    paths, weights = models.family(tmp_path, "a", "b")
    listed = models.with_beside("fisher", [paths["a"], paths["b"]], [weights["a"]] * 2, tmp_path)
    slices = [{"models": [m | {"layers": [first, first + 2]} for m in listed]} for first in (2, 1)]
    steps = {s.name: s for s in st.merge.plan({"method": "fisher", "slices": slices}).steps}
    step = steps["model.layers.3.mlp.up_proj.weight"]
    assert [s.name for s in step.beside] == ["model.layers.2.mlp.up_proj.weight"] * 2
    st.merge.run({"method": "fisher", "slices": slices}, tmp_path / "out")
    fishers = [models.read(m["fisher"]) for m in listed]
    name = "model.layers.2.mlp.up_proj.weight"
    top = sum(f[name] * weights[n][name] for f, n in zip(fishers, "ab", strict=True))
    np.testing.assert_allclose(
        models.read(tmp_path / "out")[step.name], top / sum(f[name] for f in fishers), 1e-4, 1e-5
    )


def test_matrices_of_inputs_are_for_matrices(tmp_path):
    paths, _ = models.family(tmp_path, "a")
    models.save_file(
        {"model.norm.weight": np.ones((24, 24), np.float32)}, tmp_path / "g.safetensors"
    )
    listed = [{"path": paths["a"], "grams": str(tmp_path / "g.safetensors")}]
    with pytest.raises(ValueError, match=r"model.norm.weight of shape \[24\] has a matrix in"):
        st.merge.plan({"method": "regmean", "models": listed})
